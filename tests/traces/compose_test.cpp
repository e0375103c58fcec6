// SPDX-License-Identifier: Apache-2.0
#include "traces/compose.hpp"

#include "traces/packing.hpp"
#include "traces/workload.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace {

using dipsim::ComposedIteration;
using dipsim::Feed;
using dipsim::Microbatch;
using dipsim::PackingSpec;

/// Every image costs one unit of the encoder, every token one of the backbone, and a clip the
/// square of its tokens, as attention does.
std::vector<double> unit_work(const Microbatch& sample) {
  double backbone = std::accumulate(sample.documents.begin(), sample.documents.end(), 0.0);
  for (const dipsim::MediaTokens& clip : sample.clips) {
    backbone += static_cast<double>(clip.encoder) * clip.encoder;
  }
  return {static_cast<double>(sample.images.size()), backbone};
}

ComposedIteration compose(const std::vector<Microbatch>& microbatches, int replicas = 1,
                          const PackingSpec& limits = {}) {
  return dipsim::compose_microbatches(microbatches, limits, replicas, unit_work);
}

void add_document(Microbatch& to, std::int32_t tokens, std::int32_t images = 0) {
  to.documents.push_back(tokens);
  to.images.insert(to.images.end(), static_cast<std::size_t>(images), {2704, 169, 0});
  to.samples.push_back({.documents = 1, .images = images});
}

void add_clip(Microbatch& to, double seconds) {
  to.clips.push_back({.encoder = static_cast<std::int32_t>(seconds * 10.0), .prompt = 7});
  to.samples.push_back({.clips = 1, .clip_seconds = seconds});
}

/// Documents of (tokens, images).
Microbatch documents(const std::vector<std::pair<std::int32_t, std::int32_t>>& all) {
  Microbatch out;
  for (const auto& [tokens, images] : all) {
    add_document(out, tokens, images);
  }
  return out;
}

std::vector<std::size_t> images_of(const std::vector<Microbatch>& microbatches) {
  std::vector<std::size_t> out(microbatches.size());
  std::ranges::transform(microbatches, out.begin(),
                         [](const Microbatch& microbatch) { return microbatch.images.size(); });
  return out;
}

/// Everything that one sample consists of.
using WholeSample = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>,
                               std::vector<std::int32_t>, std::vector<std::int32_t>, double>;

/// The samples of an iteration in order of their content.
std::vector<WholeSample> samples_of(const std::vector<Microbatch>& microbatches) {
  std::vector<WholeSample> out;
  for (const Microbatch& microbatch : microbatches) {
    std::size_t document = 0;
    std::size_t image = 0;
    std::size_t audio = 0;
    std::size_t clip = 0;
    for (const dipsim::PackedSample& sample : microbatch.samples) {
      WholeSample whole;
      for (int i = 0; i < sample.documents; ++i) {
        std::get<0>(whole).push_back(microbatch.documents.at(document++));
      }
      for (int i = 0; i < sample.images; ++i) {
        std::get<1>(whole).push_back(microbatch.images.at(image++).encoder);
      }
      for (int i = 0; i < sample.audios; ++i) {
        std::get<2>(whole).push_back(microbatch.audios.at(audio++).encoder);
      }
      for (int i = 0; i < sample.clips; ++i) {
        std::get<3>(whole).push_back(microbatch.clips.at(clip++).encoder);
      }
      std::get<4>(whole) = sample.clip_seconds;
      out.push_back(std::move(whole));
    }
    RC_ASSERT(document == microbatch.documents.size());
    RC_ASSERT(image == microbatch.images.size());
    RC_ASSERT(audio == microbatch.audios.size());
    RC_ASSERT(clip == microbatch.clips.size());
  }
  std::ranges::sort(out);
  return out;
}

bool within(const Microbatch& microbatch, const PackingSpec& limits) {
  double seconds = 0.0;
  for (const dipsim::PackedSample& sample : microbatch.samples) {
    seconds += sample.clip_seconds;
  }
  return std::accumulate(microbatch.documents.begin(), microbatch.documents.end(),
                         std::int64_t{0}) <= limits.tokens &&
         microbatch.images.size() <= static_cast<std::size_t>(limits.max_images) &&
         microbatch.clips.size() <= static_cast<std::size_t>(limits.max_clips) &&
         seconds <= limits.max_clip_seconds + 2.0 * dipsim::kSecondsMargin;
}

/// What holds for every composition.
void require_rules(const std::vector<Microbatch>& packed, int replicas, const PackingSpec& limits) {
  const ComposedIteration out = compose(packed, replicas, limits);
  RC_ASSERT(out.microbatches.size() == packed.size());
  RC_ASSERT(samples_of(out.microbatches) == samples_of(packed));
  for (const Microbatch& microbatch : out.microbatches) {
    RC_ASSERT(!microbatch.samples.empty());
    RC_ASSERT(within(microbatch, limits));
  }
  const double rounding = 1e-8;
  RC_ASSERT(out.composed.microbatches.deviation <= out.packed.microbatches.deviation + rounding);
  RC_ASSERT(out.composed.replicas.deviation <= out.packed.replicas.deviation + rounding);
  RC_ASSERT(compose(packed, replicas, limits).microbatches == out.microbatches);
}

/// Microbatches filled at random, most of them close to a limit.
template <class Add>
std::vector<Microbatch> random_microbatches(std::size_t count, const PackingSpec& limits,
                                            const Add& add) {
  std::vector<Microbatch> out(count);
  for (Microbatch& microbatch : out) {
    const int tries = *rc::gen::inRange(1, 12);
    for (int i = 0; i < tries || microbatch.samples.empty(); ++i) {
      Microbatch more = microbatch;
      add(more);
      if (within(more, limits)) {
        microbatch = std::move(more);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("compose: images that are all in one of two microbatches are spread over both") {
  const ComposedIteration out =
      compose({documents({{100, 2}, {100, 2}}), documents({{100, 0}, {100, 0}})});
  CHECK(images_of(out.microbatches) == std::vector<std::size_t>{2, 2});
  // Images: 4 and 0 around a mean of 2, tokens even; 200 + 2 units in the mean.
  CHECK(out.packed.microbatches.deviation == doctest::Approx(2.0 / 202.0));
  CHECK(out.packed.microbatches.peak == doctest::Approx(204.0 / 202.0));
  CHECK(out.composed.microbatches.deviation == 0.0);
  CHECK(out.composed.microbatches.peak == 1.0);
  CHECK(out.divisible);
}

TEST_CASE("compose: each module is even for itself, not only their sum") {
  // 3 images and 1 token, or 1 image and 3 tokens: 4 units each way.
  const ComposedIteration out = compose({documents({{1, 3}, {1, 3}}), documents({{3, 1}, {3, 1}})});
  CHECK(images_of(out.microbatches) == std::vector<std::size_t>{4, 4});
  CHECK(out.packed.microbatches.peak == 1.0);
  CHECK(out.packed.microbatches.deviation > 0.0);
  CHECK(out.composed.microbatches.deviation == 0.0);
}

TEST_CASE("compose: the limits of packing are kept, even where evenness suffers") {
  const std::vector<Microbatch> full = {documents({{6000, 2}, {2192, 2}}), documents({{8192, 0}})};
  CHECK(compose(full).microbatches == full);
  PackingSpec few;
  few.max_images = 3;
  // Even tokens would put both documents of two images together.
  const std::vector<Microbatch> packed = {documents({{500, 2}, {400, 0}}),
                                          documents({{500, 2}, {600, 0}})};
  for (const Microbatch& microbatch : compose(packed, 1, few).microbatches) {
    CHECK(microbatch.images.size() == 2);
  }
}

TEST_CASE("compose: what is even already stays as it is") {
  const std::vector<Microbatch> even(4, documents({{100, 1}, {200, 3}}));
  const ComposedIteration out = compose(even, 2);
  CHECK(out.microbatches == even);
}

TEST_CASE("compose: no microbatch becomes empty, even where samples share no module") {
  const std::vector<Microbatch> packed = {documents({{1, 0}, {2, 0}}), documents({{3, 0}}),
                                          documents({{4, 0}})};
  const auto work_of = [](const Microbatch& sample) {
    return sample.documents[0] <= 2 ? std::vector{1.0, 0.0} : std::vector{0.0, 1.0};
  };
  for (const Microbatch& out : dipsim::compose_microbatches(packed, {}, 1, work_of).microbatches) {
    CHECK_FALSE(out.samples.empty());
  }
}

TEST_CASE("compose: whole microbatches in one replica keep their order, whatever rounding does") {
  CHECK(rc::check("order", [] {
    const auto count = *rc::gen::inRange<std::size_t>(2, 20);
    std::vector<Microbatch> packed;
    std::vector<double> work;
    for (std::size_t i = 0; i < count; ++i) {
      packed.push_back(documents({{static_cast<std::int32_t>(i) + 1, 0}}));
      work.push_back(1.0 / *rc::gen::inRange(1, 1000));
    }
    const auto work_of = [&](const Microbatch& sample) {
      return std::vector{work[static_cast<std::size_t>(sample.documents[0] - 1)]};
    };
    RC_ASSERT(dipsim::compose_microbatches(packed, {}, 1, work_of).microbatches == packed);
  }));
}

TEST_CASE("compose: heavy microbatches of one sample are spread over the replicas") {
  const std::vector<Microbatch> packed = {documents({{900, 0}}), documents({{800, 0}}),
                                          documents({{200, 0}}), documents({{100, 0}})};
  const ComposedIteration out = compose(packed, 2);
  CHECK_FALSE(out.divisible);
  CHECK(out.packed.replicas.peak == doctest::Approx(1.7));
  CHECK(out.composed.replicas.peak == 1.0);
  CHECK(out.composed.microbatches.deviation == doctest::Approx(out.packed.microbatches.deviation));
  CHECK(out.microbatches[0].documents[0] + out.microbatches[1].documents[0] == 1000);
  CHECK(compose(packed, 1).microbatches == packed);
}

TEST_CASE("compose: documents keep the counts, the limits and the samples, and grow no less even") {
  CHECK(rc::check("documents", [] {
    const int replicas = *rc::gen::inRange(1, 4);
    const auto count = static_cast<std::size_t>(replicas * *rc::gen::inRange(1, 6));
    PackingSpec limits;
    limits.tokens = 1000;
    limits.max_images = 10;
    const auto packed = random_microbatches(count, limits, [](Microbatch& to) {
      add_document(to, *rc::gen::inRange(1, 600), *rc::gen::inRange(0, 7));
      if (*rc::gen::inRange(0, 4) == 0) {
        to.audios.push_back({.encoder = *rc::gen::inRange(1, 99)});
        to.samples.back().audios = 1;
      }
    });
    require_rules(packed, replicas, limits);
  }));
}

TEST_CASE("compose: clips keep the counts, the limits and the samples, and grow no less even") {
  CHECK(rc::check("clips", [] {
    const int replicas = *rc::gen::inRange(1, 4);
    const auto count = static_cast<std::size_t>(replicas * *rc::gen::inRange(1, 6));
    const PackingSpec limits;
    const auto packed = random_microbatches(count, limits, [](Microbatch& to) {
      add_clip(to, static_cast<double>(*rc::gen::inRange(1, 161)) / 10.0);
    });
    require_rules(packed, replicas, limits);
  }));
}

TEST_CASE("compose: every trace can be composed, and those with several samples become evener") {
  for (const dipsim::TraceInfo& trace : dipsim::all_traces()) {
    CAPTURE(trace.name);
    dipsim::WorkloadOptions options;
    options.feeds = trace.name == "t2v-clips" ? std::vector{Feed::Prompt, Feed::Clip}
                                              : std::vector{Feed::Image, Feed::Sequence};
    options.microbatches = 32;
    const auto workload = dipsim::open_workload(std::string(trace.name), options);
    const std::vector<Microbatch> packed = workload->iteration(2);
    const ComposedIteration out = compose(packed, 2, options.packing);
    for (const Microbatch& microbatch : out.microbatches) {
      CHECK(within(microbatch, options.packing));
    }
    CHECK(out.divisible == (trace.mean == 0.0 && trace.name != "dip-images"));
    if (out.divisible) {
      // A long clip fills a microbatch and costs more than many short ones: little can be gained.
      const double most = trace.name == "t2v-clips" ? 1.0 : 0.5;
      CHECK(out.composed.microbatches.deviation < most * out.packed.microbatches.deviation);
    }
    CHECK(out.composed.replicas.deviation <= out.packed.replicas.deviation);
  }
}
