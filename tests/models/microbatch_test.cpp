// SPDX-License-Identifier: Apache-2.0
#include "models/microbatch.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr std::array<Feed, 5> kAllFeeds = {Feed::Image, Feed::Audio, Feed::Sequence, Feed::Prompt,
                                           Feed::Clip};

Microbatch mixed() {
  return {.documents = {100, 50},
          .images = {{2704, 169, 0}, {1024, 64, 0}},
          .audios = {{750, 750, 0}},
          .clips = {{14'336, 0, 200}, {896, 0, 20}}};
}

std::string refusal(const Microbatch& microbatch) {
  return test::error_of([&] { make_batch(std::vector{microbatch}, kAllFeeds, 1); }).what();
}

}  // namespace

TEST_CASE("every image, audio clip, prompt and video clip is an instance of one group") {
  const Batch batch = make_batch(std::vector{mixed()}, kAllFeeds, 1);
  REQUIRE(batch.modules == 5);
  const auto images = batch.of(MicrobatchId{0}, ModuleId{0});
  REQUIRE(images.size() == 2);
  CHECK(images[1].tokens == 1024);
  CHECK(images[1].output_tokens == 64);
  CHECK(batch.groups_of(images[1])[0] == 1024);
  CHECK(batch.of(MicrobatchId{0}, ModuleId{1}).size() == 1);
  const auto prompts = batch.of(MicrobatchId{0}, ModuleId{3});
  REQUIRE(prompts.size() == 2);
  CHECK(prompts[0].tokens == 200);
  const auto clips = batch.of(MicrobatchId{0}, ModuleId{4});
  REQUIRE(clips.size() == 2);
  CHECK(clips[0].tokens == 14'336);
  CHECK(clips[0].context_tokens == 200);
}

TEST_CASE("the packed sequence is one instance with one group per document") {
  const Batch batch = make_batch(std::vector{mixed()}, kAllFeeds, 1);
  const auto sequences = batch.of(MicrobatchId{0}, ModuleId{2});
  REQUIRE(sequences.size() == 1);
  CHECK(sequences[0].tokens == 150);
  const auto groups = batch.groups_of(sequences[0]);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0] == 100);
  CHECK(groups[1] == 50);
}

TEST_CASE("an empty microbatch has no instances") {
  const Batch batch = make_batch(std::vector<Microbatch>(1), kAllFeeds, 1);
  CHECK(batch.microbatches() == 1);
  for (int module = 0; module < 5; ++module) {
    CHECK(batch.of(MicrobatchId{0}, ModuleId{module}).empty());
  }
}

TEST_CASE("microbatches are dealt to the replicas in contiguous blocks") {
  const Batch batch = make_batch(std::vector<Microbatch>(6), kAllFeeds, 3);
  CHECK(batch.replica == std::vector<std::int32_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("microbatches that can't be dealt evenly are an error") {
  const auto deal = [](std::size_t count, int replicas) {
    return test::error_of([&] { make_batch(std::vector<Microbatch>(count), kAllFeeds, replicas); });
  };
  CHECK(deal(5, 2).kind() == ErrorKind::Input);
  CHECK(deal(4, 0).kind() == ErrorKind::Input);
}

TEST_CASE(
    "token counts below one, or above 32 bits together, are errors that name the microbatch") {
  Microbatch no_patches = mixed();
  no_patches.images[0].encoder = 0;
  CHECK(refusal(no_patches).find("microbatch 0") != std::string::npos);
  Microbatch empty_document = mixed();
  empty_document.documents[1] = 0;
  CHECK(refusal(empty_document).find("document") != std::string::npos);
  Microbatch no_prompt = mixed();
  no_prompt.clips[0].prompt = 0;
  CHECK(refusal(no_prompt).find("prompt") != std::string::npos);
  Microbatch huge = mixed();
  huge.documents.assign(2, std::numeric_limits<std::int32_t>::max());
  CHECK(refusal(huge).find("packed sequence") != std::string::npos);
}

TEST_CASE("every feed has a name of its own") {
  CHECK(name_of(Feed::Image) == "image");
  CHECK(name_of(Feed::Audio) == "audio");
  CHECK(name_of(Feed::Sequence) == "sequence");
  CHECK(name_of(Feed::Prompt) == "prompt");
  CHECK(name_of(Feed::Clip) == "clip");
}
