// SPDX-License-Identifier: Apache-2.0
// Real datasets and golden numbers, where the reference data lie beside the repository.
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/support/environment.hpp"
#include "traces/workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using dipsim::Feed;
using dipsim::Sample;

/// The folder of traces when all of them are there.
std::optional<fs::path> traces_with(const std::vector<std::string>& names) {
  const auto data = dipsim::test::shared_data();
  for (const std::string& name : names) {
    if (!data || !fs::exists(*data / "traces" / (name + ".jsonl"))) {
      dipsim::test::report_skipped("traces/" + name + ".jsonl is not here");
      return std::nullopt;
    }
  }
  return *data / "traces";
}

std::vector<Sample> read_all(const fs::path& path) {
  dipsim::TraceReader reader(path);
  std::vector<Sample> out;
  for (Sample sample; reader.next(sample);) {
    out.push_back(sample);
  }
  return out;
}

/// Samples of a list in order; the test reads no further than it is long.
class ListSource final : public dipsim::SampleSource {
 public:
  explicit ListSource(std::vector<Sample> samples) : samples_(std::move(samples)) {}

  Sample next() override { return samples_.at(position_++); }

 private:
  std::vector<Sample> samples_;
  std::size_t position_ = 0;
};

dipsim::TokenRule qwen() {
  dipsim::TokenRuleSpec spec;
  spec.rule = "qwen2-vl";
  spec.merge = 2;
  return dipsim::TokenRule(spec);
}

/// Tokens that a sample takes in a sequence of Qwen2-VL.
std::int64_t sequence_tokens(const dipsim::TokenRule& rule, const Sample& sample) {
  std::int64_t tokens = sample.text_tokens;
  for (const dipsim::ImageSize& image : sample.images) {
    tokens += rule.image(image)->merged + rule.markers();
  }
  for (const dipsim::VideoShape& video : sample.videos) {
    const auto frames = rule.watched_video(video);
    tokens += static_cast<std::int64_t>(frames->size()) * frames->front().merged + rule.markers();
  }
  return tokens;
}

/// Packs of 8192 tokens that next-fit makes of these samples, which have so many tokens.
std::int64_t packs_of(std::vector<Sample> samples, const dipsim::TokenRule& rule,
                      std::int64_t tokens) {
  Sample whole_pack;  // closes the last pack
  whole_pack.text_tokens = 8192;
  samples.push_back(whole_pack);
  dipsim::PackingSpec limits;
  limits.max_images = 1'000'000;
  const std::vector<Feed> feeds{Feed::Image, Feed::Sequence};
  const auto packer = dipsim::packer_for(feeds).make(
      {limits, rule, feeds, 1}, std::make_unique<ListSource>(std::move(samples)));
  std::int64_t packs = 0;
  std::int64_t packed = 0;
  for (; packed < tokens; ++packs) {
    for (const std::int32_t document : packer->next().documents) {
      packed += document;
    }
  }
  CHECK(packed == tokens);
  CHECK(packer->stats().too_large == 0);
  return packs;
}

}  // namespace

TEST_CASE("every trace of the reference data is read to its end") {
  const auto folder = traces_with({"mmc4_core_ff", "mmtrail_v1", "mmlongbench_docs"});
  if (!folder) {
    return;
  }
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(*folder)) {
    if (entry.path().extension() == ".jsonl") {
      ++files;
      CAPTURE(entry.path().filename().string());
      CHECK_FALSE(read_all(entry.path()).empty());
    }
  }
  CHECK(files >= 3);
}

TEST_CASE("token rules give the published distributions over real images, videos and audio") {
  const auto folder = traces_with({"coco_captions_val2017", "mmtrail_v1"});
  if (!folder) {
    return;
  }
  const dipsim::TokenRule rule = qwen();
  double tokens = 0.0;
  const std::vector<Sample> images = read_all(*folder / "coco_captions_val2017.jsonl");
  for (const Sample& sample : images) {
    tokens += rule.image(sample.images.at(0))->merged;
  }
  CHECK(tokens / static_cast<double>(images.size()) == doctest::Approx(348.3).epsilon(0.0002));
  double watched = 0.0;
  double heard = 0.0;
  const std::vector<Sample> clips = read_all(*folder / "mmtrail_v1.jsonl");
  for (const Sample& sample : clips) {
    const auto frames = rule.watched_video(sample.videos.at(0));
    watched += static_cast<double>(frames->size()) * frames->front().merged;
    heard += dipsim::audio_tokens(sample.audio_seconds)->merged;
  }
  CHECK(watched / 1000.0 == doctest::Approx(8089.2).epsilon(0.00002));
  CHECK(heard / 1000.0 == doctest::Approx(276.6).epsilon(0.0005));
}

TEST_CASE("next-fit packing of a real mix reaches the golden number of packs") {
  const auto folder = traces_with({"coco_captions_val2017", "mmtrail_v1", "scienceqa_test_llava"});
  if (!folder) {
    return;
  }
  // golden/analysis.json, packing_mix, 8192: 7,915 of the samples fit; 5,515,118 tokens in 827
  // packs of 81.41 %.
  std::vector<Sample> mix;
  for (const char* name : {"coco_captions_val2017", "mmtrail_v1", "scienceqa_test_llava"}) {
    for (Sample& sample : read_all(*folder / (std::string(name) + ".jsonl"))) {
      if (std::string(name) == "scienceqa_test_llava" && !sample.images.empty()) {
        continue;
      }
      sample.audio_seconds = 0.0;
      mix.push_back(std::move(sample));
    }
  }
  const dipsim::TokenRule rule = qwen();
  std::erase_if(mix, [&](const Sample& s) { return sequence_tokens(rule, s) > 8192; });
  CHECK(mix.size() == 7915);
  std::int64_t tokens = 0;
  for (const Sample& sample : mix) {
    tokens += sequence_tokens(rule, sample);
  }
  CHECK(tokens == 5'515'118);

  // A shuffle moves the number of packs by 0.7 % (standard deviation of 200): take the mean of ten.
  std::int64_t packs = 0;
  for (std::uint64_t shuffle = 0; shuffle < 10; ++shuffle) {
    dipsim::RandomStream random(12345, "mix", shuffle);
    random.shuffle(std::span(mix));
    packs += packs_of(mix, rule, tokens);
  }
  CHECK(static_cast<double>(packs) / 10.0 == doctest::Approx(827.0).epsilon(0.01));
}

TEST_CASE("real datasets feed 40 iterations of 64 microbatches") {
  const auto folder = traces_with({"mmc4_core_ff", "coco_captions_val2017", "mmtrail_v1"});
  if (!folder) {
    return;
  }

  struct Case {
    std::string name;
    std::string rule;
    std::vector<Feed> feeds;
  };

  const std::vector<Feed> vlm{Feed::Image, Feed::Sequence};
  for (const Case& c :
       {Case{"mmc4_core_ff", "fixed", vlm}, Case{"mmc4_core_ff", "qwen2-vl", vlm},
        Case{"coco_captions_val2017", "fixed", vlm}, Case{"coco_captions_val2017", "qwen2-vl", vlm},
        Case{"mmtrail_v1", "qwen2-vl", vlm},
        Case{"mmtrail_v1", "fixed", {Feed::Prompt, Feed::Clip}}}) {
    dipsim::WorkloadOptions options;
    options.feeds = c.feeds;
    options.tokens.rule = c.rule;
    options.tokens.merge = c.rule == "fixed" ? 4 : 2;
    const auto workload = dipsim::open_workload((*folder / (c.name + ".jsonl")).string(), options);
    double media = 0.0;
    for (std::size_t index = 0; index < 40; ++index) {
      for (const dipsim::Microbatch& microbatch : workload->iteration(index)) {
        media += static_cast<double>(microbatch.images.size() + microbatch.clips.size());
      }
    }
    const dipsim::PackingStats stats = workload->stats();
    CAPTURE(c.name);
    CAPTURE(c.rule);
    CHECK(stats.microbatches == 2560);
    CHECK(stats.fill() > 0.65);
    CHECK(media > 0.0);
    MESSAGE(c.name << ", " << c.rule << ": fill " << stats.fill()
                   << ", images or clips per microbatch " << media / 2560.0);
  }
}
