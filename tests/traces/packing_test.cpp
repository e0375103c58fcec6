// SPDX-License-Identifier: Apache-2.0
#include "traces/packing.hpp"

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "traces/generate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using dipsim::Feed;
using dipsim::Microbatch;
using dipsim::Packer;
using dipsim::PackerOptions;
using dipsim::Sample;

/// A list of samples, again and again.
class ListSource final : public dipsim::SampleSource {
 public:
  explicit ListSource(std::vector<Sample> samples) : samples_(std::move(samples)) {}

  Sample next() override {
    if (position_ == samples_.size()) {
      position_ = 0;
      ++wraps_;
    }
    return samples_[position_++];
  }

  [[nodiscard]] std::int64_t wraps() const override { return wraps_; }

 private:
  std::vector<Sample> samples_;
  std::size_t position_ = 0;
  std::int64_t wraps_ = 0;
};

const std::vector<Feed> kVlm{Feed::Image, Feed::Sequence};
const std::vector<Feed> kT2v{Feed::Prompt, Feed::Clip};

PackerOptions with(std::vector<Feed> feeds) {
  return {dipsim::PackingSpec{}, dipsim::TokenRule{dipsim::TokenRuleSpec{}}, std::move(feeds), 1};
}

std::unique_ptr<Packer> make(const PackerOptions& options,
                             std::unique_ptr<dipsim::SampleSource> source) {
  return dipsim::packer_for(options.feeds).make(options, std::move(source));
}

std::unique_ptr<Packer> make(const PackerOptions& options, std::vector<Sample> samples) {
  return make(options, std::make_unique<ListSource>(std::move(samples)));
}

Sample text(std::int32_t tokens, std::size_t images = 0) {
  Sample out;
  out.text_tokens = tokens;
  out.images.resize(images);
  return out;
}

Sample clip(double seconds, std::int32_t tokens = 20) {
  Sample out;
  out.text_tokens = tokens;
  out.videos.push_back({seconds, {}, 0.0});
  return out;
}

std::int64_t tokens_of(const Microbatch& microbatch) {
  return std::accumulate(microbatch.documents.begin(), microbatch.documents.end(), std::int64_t{0});
}

/// A sample drawn to hit every limit from both sides.
Sample wild_sample(dipsim::RandomStream& random, std::size_t /*iteration*/) {
  Sample out;
  out.text_tokens = static_cast<std::int32_t>(random.integer(0, 1) * random.integer(0, 12'000));
  out.images.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, random.integer(-20, 55))));
  if (random.uniform() < 0.4) {
    out.videos.push_back({random.uniform() * 24.0, {}, 0.0});
  }
  out.audio_seconds = random.uniform() < 0.2 ? random.uniform() * 60.0 : 0.0;
  return out;
}

}  // namespace

TEST_CASE("greedy: a sample that doesn't fit closes the microbatch, in arrival order") {
  PackerOptions options = with(kVlm);
  options.limits.tokens = 1000;
  const auto packer =
      make(options, {text(400), text(600), text(1), text(999), text(700), text(400)});
  CHECK(packer->next().documents == std::vector<std::int32_t>{400, 600});
  CHECK(packer->next().documents == std::vector<std::int32_t>{1, 999});
  CHECK(packer->next().documents == std::vector<std::int32_t>{700});
  CHECK(packer->next().documents == std::vector<std::int32_t>{400, 400});  // the list begins anew
  CHECK(packer->stats().wraps == 1);
  CHECK(packer->stats().microbatches == 4);
  CHECK(packer->stats().fill() == doctest::Approx(3500.0 / 4000.0));
}

TEST_CASE("greedy: 48 images of 169 tokens fit in 8192, and a 49th opens the next microbatch") {
  const auto packer = make(with(kVlm), {text(0, 24), text(0, 24), text(80, 1), text(8192)});
  const Microbatch first = packer->next();
  CHECK(first.images.size() == 48);
  CHECK(first.images.front() == dipsim::MediaTokens{2704, 169, 0});
  CHECK(first.documents == std::vector<std::int32_t>{24 * 169, 24 * 169});
  CHECK(packer->next().documents == std::vector<std::int32_t>{249});
}

TEST_CASE("greedy: the limit of images binds where tokens would not") {
  PackerOptions options = with(kVlm);
  options.limits.tokens = 1'000'000;
  options.limits.max_images = 5;
  const auto packer = make(options, {text(10, 3), text(10, 2), text(10, 1)});
  CHECK(packer->next().images.size() == 5);
  CHECK(packer->next().images.size() == 4);  // 1 + 3
}

TEST_CASE(
    "greedy: text beyond the limit is cut, media beyond it drop the sample, nothing is lost "
    "silently") {
  const auto packer = make(with(kVlm), {text(20'000, 2), text(10, 49), text(0), text(100)});
  const Microbatch first = packer->next();
  CHECK(first.documents == std::vector<std::int32_t>{8192});
  CHECK(first.images.size() == 2);
  CHECK(packer->next().documents == std::vector<std::int32_t>{100});
  const dipsim::PackingStats stats = packer->stats();
  CHECK(stats.cut >= 1);
  CHECK(stats.too_large == 1);
  CHECK(stats.unusable == 1);
}

TEST_CASE("greedy: what the model doesn't take is left out and counted") {
  Sample sample = text(100, 2);
  sample.audio_seconds = 10.0;
  sample.videos.push_back({4.0, {}, 0.0});
  PackerOptions options = with({Feed::Sequence});
  options.limits.tokens = 150;
  const auto deaf = make(options, {sample});
  CHECK(deaf->next() == Microbatch{{100}, {}, {}, {}, {{.documents = 1}}});
  CHECK(deaf->stats().ignored_media == 4 * deaf->stats().samples);

  options.feeds = {Feed::Image, Feed::Audio, Feed::Sequence};
  options.limits.tokens = 1000;
  const auto hearing = make(options, {sample});
  const Microbatch heard = hearing->next();
  CHECK(heard.documents == std::vector<std::int32_t>{100 + 2 * 169 + 250});
  CHECK(heard.audios == std::vector{dipsim::MediaTokens{500, 250, 0}});
  // Only the video: the rule `fixed` has none.
  CHECK(hearing->stats().ignored_media == hearing->stats().samples);
}

TEST_CASE("greedy: qwen2-vl counts markers, watches videos and drops refused shapes") {
  PackerOptions options = with(kVlm);
  dipsim::TokenRuleSpec rule;
  rule.rule = "qwen2-vl";
  rule.merge = 2;
  options.rule = dipsim::TokenRule(rule);
  Sample watched = text(10);
  watched.videos.push_back({5.0, {1280, 720}, 25.0});
  Sample thin = text(10);
  thin.images.push_back({1, 500});
  Sample picture = text(10);
  picture.images.push_back({224, 224});
  const auto packer = make(options, {thin, picture, watched, text(8192)});
  const Microbatch first = packer->next();
  CHECK(first.documents == std::vector<std::int32_t>{10 + 2 + 64, 10 + 2 + 5 * 720});
  CHECK(first.images.size() == 1 + 5);
  CHECK(packer->stats().unusable == 1);
}

TEST_CASE("greedy: no limit is ever exceeded, and every sample is accounted for") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PackerOptions options = with({Feed::Image, Feed::Audio, Feed::Sequence});
    options.limits.tokens = static_cast<std::int32_t>(1000 + 700 * seed);
    options.limits.max_images = static_cast<int>(5 + 3 * seed);
    const auto packer = make(options, dipsim::generated_samples(wild_sample, seed, 0));
    std::int64_t documents = 0;
    double load = 0.0;
    for (int i = 0; i < 200; ++i) {
      const Microbatch microbatch = packer->next();
      REQUIRE_FALSE(microbatch.documents.empty());
      REQUIRE(tokens_of(microbatch) <= options.limits.tokens);
      REQUIRE(microbatch.images.size() <= static_cast<std::size_t>(options.limits.max_images));
      REQUIRE(*std::ranges::min_element(microbatch.documents) > 0);
      REQUIRE(microbatch.clips.empty());
      documents += static_cast<std::int64_t>(microbatch.documents.size());
      load += static_cast<double>(tokens_of(microbatch));
    }
    const dipsim::PackingStats stats = packer->stats();
    CHECK(stats.samples == documents + stats.too_large + stats.unusable + 1);  // one is waiting
    CHECK(stats.load == load);
    CHECK(stats.fill() <= 1.0);
    CHECK(stats.cut > 0);
  }
}

TEST_CASE("greedy: two neighbouring microbatches never fit into one") {
  PackerOptions options = with({Feed::Sequence});
  options.limits.tokens = 3000;
  const auto packer = make(options, dipsim::generated_samples(wild_sample, 3, 0));
  Microbatch before = packer->next();
  for (int i = 0; i < 300; ++i) {
    Microbatch now = packer->next();
    CHECK(tokens_of(before) + now.documents.front() > options.limits.tokens);
    before = std::move(now);
  }
}

TEST_CASE("clips: similar lengths go together, within 8 clips and 16 seconds") {
  const auto packer = make(with(kT2v), dipsim::generated_samples(dipsim::draw_clip, 5, 3));
  const dipsim::TokenRule rule{dipsim::TokenRuleSpec{}};
  int groups_of_several = 0;
  for (int i = 0; i < 400; ++i) {
    const Microbatch microbatch = packer->next();
    REQUIRE_FALSE(microbatch.clips.empty());
    REQUIRE(microbatch.clips.size() <= 8);
    REQUIRE(microbatch.documents.empty());
    std::int64_t tokens = 0;
    std::int32_t least = microbatch.clips.front().encoder;
    std::int32_t most = least;
    for (const dipsim::MediaTokens& one : microbatch.clips) {
      tokens += one.encoder;
      least = std::min(least, one.encoder);
      most = std::max(most, one.encoder);
      REQUIRE(one.prompt >= 1);
      REQUIRE(one.merged == 0);
    }
    REQUIRE(tokens <= 14'336 + 8);  // 16 s of 896, each clip rounded
    if (microbatch.clips.size() > 2) {
      ++groups_of_several;
      CHECK(most - least < 896);  // within a second
    }
  }
  CHECK(groups_of_several > 20);
  CHECK(packer->stats().fill() > 0.6);
}

TEST_CASE("clips: what is longer than the limit is cut, what has no length is left out") {
  Sample two = clip(3.0);
  two.videos.push_back({});
  const auto packer = make(with(kT2v), {clip(40.0), two, text(5, 1)});
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 20; ++i) {
    for (const dipsim::MediaTokens& one : packer->next().clips) {
      lengths.push_back(one.encoder);
    }
  }
  CHECK(std::set(lengths.begin(), lengths.end()) == std::set<std::int32_t>{3 * 896, 16 * 896});
  const dipsim::PackingStats stats = packer->stats();
  CHECK(stats.cut == 256);       // a window of 512 clips, every other of which has 40 s
  CHECK(stats.unusable == 255);  // between them: a picture with text
  CHECK(stats.ignored_media == 256 + 255);
}

TEST_CASE("clips: no clip of a window is lost or doubled") {
  std::vector<Sample> samples;
  for (int i = 0; i < 512; ++i) {
    samples.push_back(clip(0.5 + 0.03 * i));
  }
  const auto packer = make(with(kT2v), samples);
  std::multiset<std::int32_t> packed;
  while (packed.size() < 512) {
    for (const dipsim::MediaTokens& one : packer->next().clips) {
      packed.insert(one.encoder);
    }
  }
  const dipsim::TokenRule rule{dipsim::TokenRuleSpec{}};
  std::multiset<std::int32_t> expected;
  for (const Sample& sample : samples) {
    expected.insert(rule.generated_clip(std::min(16.0, sample.videos[0].seconds), 20).encoder);
  }
  CHECK(packed == expected);
}

TEST_CASE("clips: the groups of a window are not in order of length") {
  const auto packer = make(with(kT2v), dipsim::generated_samples(dipsim::draw_clip, 1, 0));
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 30; ++i) {
    sizes.push_back(packer->next().clips.size());
  }
  CHECK_FALSE(std::ranges::is_sorted(sizes));
  CHECK_FALSE(std::ranges::is_sorted(sizes, std::ranges::greater{}));
}

TEST_CASE("packers: equal seeds give equal microbatches") {
  for (const std::vector<Feed>& feeds : {kVlm, kT2v}) {
    const auto draw = feeds == kVlm ? dipsim::draw_web_document : dipsim::draw_clip;
    const auto one = make(with(feeds), dipsim::generated_samples(draw, 9, 0));
    const auto two = make(with(feeds), dipsim::generated_samples(draw, 9, 0));
    for (int i = 0; i < 100; ++i) {
      REQUIRE(one->next() == two->next());
    }
    CHECK(one->stats() == two->stats());
  }
}

TEST_CASE("packers: a source with nothing for the model is an Input error, not an endless loop") {
  for (const Sample& useless : {text(0), text(10, 49)}) {
    const auto packer = make(with(kVlm), {useless});
    CHECK_THROWS_AS(packer->next(), dipsim::Error);
  }
  const auto clips = make(with(kT2v), {text(100, 3)});
  CHECK_THROWS_AS(clips->next(), dipsim::Error);
}

TEST_CASE("packers: the modules of the model decide which one serves it") {
  CHECK(dipsim::packer_for(kVlm).name == "greedy");
  CHECK(dipsim::packer_for(kT2v).name == "clips");
  CHECK_THROWS_AS(dipsim::packer_for(std::vector{Feed::Image}), dipsim::Error);
  CHECK_THROWS_AS(dipsim::packer_for(std::vector{Feed::Sequence, Feed::Clip}), dipsim::Error);
  for (const dipsim::PackerInfo& packer : dipsim::all_packers()) {
    CHECK_FALSE(packer.summary.empty());
    CHECK_FALSE(packer.source.empty());
  }
}

TEST_CASE("packing limits out of range are named with what is allowed") {
  const auto complaint = [](auto change) {
    dipsim::PackingSpec limits;
    change(limits);
    try {
      dipsim::check_packing(limits, "m.json: /packing");
    } catch (const dipsim::Error& error) {
      CHECK(error.where() == "m.json: /packing");
      return error.message();
    }
    return std::string();
  };
  CHECK(complaint([](auto& limits) { limits.tokens = 0; }) ==
        "tokens is 0; allowed: 1 to 100000000");
  CHECK(complaint([](auto& limits) { limits.max_images = -1; }).starts_with("max_images is -1"));
  CHECK(complaint([](auto& limits) { limits.max_clips = 0; }).starts_with("max_clips is 0"));
  CHECK(complaint([](auto& limits) {
          limits.max_clip_seconds = 1e9;
        }).starts_with("max_clip_seconds is"));
  CHECK(complaint([](auto& /*limits*/) {}).empty());
}
