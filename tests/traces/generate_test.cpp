// SPDX-License-Identifier: Apache-2.0
#include "traces/generate.hpp"

#include "sim/core/files.hpp"
#include "sim/core/random.hpp"
#include "tests/support/environment.hpp"
#include "traces/reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using dipsim::Sample;

double mean_images(dipsim::ImageDraw draw, std::size_t iteration, double mean) {
  constexpr int kDraws = 20'000;
  dipsim::RandomStream random(1, "test", iteration);
  std::int64_t sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    sum += draw(random, iteration, mean);
  }
  return static_cast<double>(sum) / kDraws;
}

std::vector<Sample> draw_samples(dipsim::SampleDraw draw, std::size_t iteration, int count) {
  const auto source = dipsim::generated_samples(draw, 1, iteration);
  std::vector<Sample> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(source->next());
  }
  return out;
}

template <class Value>
double mean_of(const std::vector<Sample>& samples, Value value) {
  double sum = 0.0;
  for (const Sample& sample : samples) {
    sum += static_cast<double>(value(sample));
  }
  return sum / static_cast<double>(samples.size());
}

}  // namespace

TEST_CASE("dip-images: the bounds rise for five iterations, then both shrink to 0, twice") {
  const std::vector<std::int64_t> low{0,  3, 6, 10, 13, 15, 14, 13, 12, 11,
                                      10, 9, 7, 6,  5,  4,  3,  2,  1,  0};
  const std::vector<std::int64_t> high{32, 32, 32, 32, 32, 30, 28, 26, 23, 21,
                                       19, 17, 15, 13, 11, 9,  6,  4,  2,  0};
  for (std::size_t iteration = 0; iteration < 40; ++iteration) {
    CAPTURE(iteration);
    CHECK(dipsim::dip_image_bounds(iteration).low == low[iteration % 20]);
    CHECK(dipsim::dip_image_bounds(iteration).high == high[iteration % 20]);
  }
}

TEST_CASE("dip-images: the mean peaks at 22 images and is 0 in iterations 20 and 40") {
  double peak = 0.0;
  for (std::size_t iteration = 0; iteration < 40; ++iteration) {
    peak = std::max(peak, mean_images(dipsim::draw_dip_images, iteration, 0.0));
  }
  CHECK(peak > 21.5);
  CHECK(peak < 23.0);
  CHECK(mean_images(dipsim::draw_dip_images, 19, 0.0) == 0.0);
  CHECK(mean_images(dipsim::draw_dip_images, 39, 0.0) == 0.0);
}

TEST_CASE("dip-images: draws stay within the bounds and reach both") {
  for (std::size_t iteration = 0; iteration < 20; ++iteration) {
    dipsim::RandomStream random(2, "test", iteration);
    const dipsim::ImageBounds bounds = dipsim::dip_image_bounds(iteration);
    std::int64_t low = 1000;
    std::int64_t high = -1;
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t images = dipsim::draw_dip_images(random, iteration, 0.0);
      low = std::min(low, images);
      high = std::max(high, images);
    }
    CHECK(low == bounds.low);
    CHECK(high == bounds.high);
  }
}

TEST_CASE("steady-images and gamma-images have the mean they are given") {
  for (const double mean : {2.0, 10.0, 16.0}) {
    CHECK(mean_images(dipsim::draw_steady_images, 0, mean) == doctest::Approx(mean).epsilon(0.02));
    CHECK(mean_images(dipsim::draw_gamma_images, 0, mean) == doctest::Approx(mean).epsilon(0.02));
  }
  CHECK(mean_images(dipsim::draw_gamma_images, 0, 0.0) == 0.0);
}

TEST_CASE("web documents: 2.5 images and 815 tokens in the mean, within the filter limits") {
  const std::vector<Sample> samples = draw_samples(dipsim::draw_web_document, 0, 50'000);
  CHECK(mean_of(samples, [](const Sample& s) { return s.images.size(); }) ==
        doctest::Approx(2.5).epsilon(0.02));
  CHECK(mean_of(samples, [](const Sample& s) { return s.text_tokens; }) ==
        doctest::Approx(815.0).epsilon(0.01));
  double width = 0.0;
  double height = 0.0;
  double images = 0.0;
  for (const Sample& sample : samples) {
    REQUIRE(sample.images.size() >= 1);
    REQUIRE(sample.images.size() <= 30);
    REQUIRE(sample.text_tokens >= 13);
    REQUIRE(sample.text_tokens <= 2667);
    for (const dipsim::ImageSize& image : sample.images) {
      const double aspect = static_cast<double>(image.width) / image.height;
      REQUIRE(std::min(image.width, image.height) >= 150);
      REQUIRE(std::max(aspect, 1.0 / aspect) < 2.02);  // 2, before whole pixels
      width += image.width;
      height += image.height;
      images += 1.0;
    }
  }
  CHECK(width / images == doctest::Approx(621.78).epsilon(0.02));
  CHECK(height / images == doctest::Approx(540.99).epsilon(0.02));
}

TEST_CASE("clips: long ones come and go in two waves, and lengths have the published means") {
  CHECK(dipsim::long_clip_share(0) == 0.0);
  CHECK(dipsim::long_clip_share(5) == doctest::Approx(14.0 / 15.0));
  CHECK(dipsim::long_clip_share(19) == 0.0);
  CHECK(dipsim::long_clip_share(39) == 0.0);
  const auto seconds = [](const Sample& s) { return s.videos.at(0).seconds; };
  const auto tokens = [](const Sample& s) { return s.text_tokens; };
  const std::vector<Sample> trough = draw_samples(dipsim::draw_clip, 0, 50'000);
  CHECK(mean_of(trough, seconds) == doctest::Approx(2.25).epsilon(0.02));
  const std::vector<Sample> peak = draw_samples(dipsim::draw_clip, 5, 50'000);
  CHECK(mean_of(peak, seconds) > 10.0);
  // Captions of short clips: a third below 10 words, 11 % above 20, 4/3 tokens per word.
  const double below = mean_of(trough, [&](const Sample& s) { return tokens(s) * 0.75 < 10.0; });
  const double above = mean_of(trough, [&](const Sample& s) { return tokens(s) * 0.75 > 20.0; });
  CHECK(below == doctest::Approx(1.0 / 3.0).epsilon(0.15));
  CHECK(above == doctest::Approx(0.11).epsilon(0.15));
  for (const Sample& sample : peak) {
    REQUIRE(seconds(sample) >= 0.5);
    REQUIRE(sample.text_tokens >= 1);
  }
}

TEST_CASE("generated samples: equal seeds give equal samples, other seeds and iterations others") {
  const auto first = [](std::uint64_t seed, std::size_t iteration) {
    const auto source = dipsim::generated_samples(dipsim::draw_web_document, seed, iteration);
    std::vector<Sample> out;
    for (int i = 0; i < 50; ++i) {
      out.push_back(source->next());
    }
    return out;
  };
  CHECK(first(1, 0) == first(1, 0));
  CHECK(first(1, 0) != first(2, 0));
  CHECK(first(1, 0) != first(1, 1));
}

TEST_CASE("the shipped quick-start trace is what its seed generates, byte by byte") {
  const dipsim::test::TemporaryFolder folder;
  const auto fresh = folder.path() / "quickstart.jsonl";
  dipsim::write_trace(fresh, dipsim::quickstart_samples());
  const std::string shipped =
      dipsim::read_file(dipsim::test::source_dir() / "configs/traces/quickstart.jsonl");
  CHECK((dipsim::read_file(fresh) == shipped));
  CHECK(shipped.size() < 150'000);
}
