// SPDX-License-Identifier: Apache-2.0
#include "traces/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dipsim {

namespace {

constexpr std::size_t kRisingIterations = 5;
constexpr double kPeakLow = 16.0;
constexpr double kPeakHigh = 32.0;
constexpr double kSteadySpread = 2.0;
constexpr double kGammaShape = 2.0;

std::int64_t rounded(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

/// Share of the rise that is done, from 0; 1 after it.
double rise(std::size_t iteration) {
  const std::size_t step = std::min(iteration % kWaveIterations, kRisingIterations);
  return static_cast<double>(step) / static_cast<double>(kRisingIterations);
}

/// 1 while the wave rises, then down to 0 in its last iteration.
double fall(std::size_t iteration) {
  const std::size_t step = std::max(iteration % kWaveIterations + 1, kRisingIterations);
  return static_cast<double>(kWaveIterations - step) /
         static_cast<double>(kWaveIterations - kRisingIterations);
}

}  // namespace

ImageBounds dip_image_bounds(std::size_t iteration) {
  return {.low = rounded(kPeakLow * rise(iteration) * fall(iteration)),
          .high = rounded(kPeakHigh * fall(iteration))};
}

std::int64_t draw_dip_images(RandomStream& random, std::size_t iteration, double /*mean*/) {
  const ImageBounds bounds = dip_image_bounds(iteration);
  return random.integer(bounds.low, bounds.high);
}

std::int64_t draw_steady_images(RandomStream& random, std::size_t /*iteration*/, double mean) {
  const std::int64_t low = rounded(mean - kSteadySpread);
  return std::max<std::int64_t>(0, random.integer(low, low + rounded(2.0 * kSteadySpread)));
}

std::int64_t draw_gamma_images(RandomStream& random, std::size_t /*iteration*/, double mean) {
  return rounded(random.gamma(kGammaShape, mean / kGammaShape));
}

namespace {

// OBELICS has 353 million images and 114.9 billion tokens in 141 million documents: 2.5 images and
// 815 tokens each (dataset card); it keeps documents of 1 to 30 images and 10 to 2,000 words, and
// images of 150 to 20,000 pixels a side and an aspect of at most 2 (its filter configuration).
// How the numbers spread is not published. Chosen: a tenth of the documents are galleries of 5 to
// 15 images, the others hold few (geometric); text spreads like that of MMC4 (fitted sigma of the
// logarithm 0.669). Image sizes have the means of COYO-700M (dataset card), and a chosen spread.
constexpr double kGalleryShare = 0.1;
constexpr std::int64_t kGalleryLeast = 5;
constexpr std::int64_t kGalleryMost = 15;
constexpr double kLastImage = 0.6;  // 1 / 0.6 images: 0.9 * 1 / 0.6 + 0.1 * 10 = 2.5
constexpr std::size_t kMostImages = 30;
constexpr double kTextMean = 831.0;  // the upper limit takes it to 815
constexpr double kTextSigma = 0.669;
constexpr double kTextLeast = 10.0 * 4.0 / 3.0;  // tokens: 4/3 per English word
constexpr double kTextMost = 2000.0 * 4.0 / 3.0;
constexpr double kMeanWidth = 621.78;
constexpr double kMeanHeight = 540.99;
constexpr double kSizeSigma = 0.5;
constexpr double kAspectSigma = 0.15;                // of each side
constexpr double kMaxLogAspect = std::numbers::ln2;  // of 2
constexpr double kLeastSide = 150.0;
constexpr double kMostSide = 20'000.0;

std::int32_t pixels(double side) {
  return static_cast<std::int32_t>(rounded(std::clamp(side, kLeastSide, kMostSide)));
}

ImageSize draw_image_size(RandomStream& random) {
  const double scale = kSizeSigma * random.normal();
  const double limit = kMaxLogAspect / 2.0;
  const double base = std::log(kMeanWidth / kMeanHeight) / 2.0;
  const double stretch = std::clamp(kAspectSigma * random.normal(), -limit - base, limit - base);
  // So that the mean of the log-normal is 1.
  const double shift = (kSizeSigma * kSizeSigma + kAspectSigma * kAspectSigma) / 2.0;
  return {.width = pixels(kMeanWidth * std::exp(scale + stretch - shift)),
          .height = pixels(kMeanHeight * std::exp(scale - stretch - shift))};
}

std::size_t draw_image_count(RandomStream& random) {
  if (random.uniform() < kGalleryShare) {
    return static_cast<std::size_t>(random.integer(kGalleryLeast, kGalleryMost));
  }
  std::size_t count = 1;
  while (count < kMostImages && random.uniform() >= kLastImage) {
    ++count;
  }
  return count;
}

// Short clips: those of ShareGPT4Video's aesthetic set last 2.25 s in the mean (3,000 hours, 4.8
// million captions, dataset card): an exponential law above half a second. Captions: as
// InternVid's, of which 1/3 have fewer than 10 words and 11 % more than 20 (its README):
// log-normal. Long clips: log-normal fits to 1,000 published rows of MMTrail, none shorter than 5
// s.
constexpr double kShortLeast = 0.5;
constexpr double kShortMean = 2.25;
constexpr double kShortCaptionMu = 2.483;  // words
constexpr double kShortCaptionSigma = 0.418;
constexpr double kTokensPerWord = 4.0 / 3.0;
constexpr double kLongLeast = 5.0;
constexpr double kLongMu = 2.288;
constexpr double kLongSigma = 0.636;
constexpr double kLongCaptionMu = 3.423;  // tokens
constexpr double kLongCaptionSigma = 0.233;
constexpr ImageSize kClipFrame{.width = 1280, .height = 720};

double whole_milliseconds(double seconds) { return std::nearbyint(seconds * 1e3) / 1e3; }

}  // namespace

Sample draw_web_document(RandomStream& random, std::size_t /*iteration*/) {
  Sample out;
  const double mu = std::log(kTextMean) - kTextSigma * kTextSigma / 2.0;
  const double text = std::clamp(random.log_normal(mu, kTextSigma), kTextLeast, kTextMost);
  out.text_tokens = static_cast<std::int32_t>(rounded(text));
  out.images.resize(draw_image_count(random));
  for (ImageSize& image : out.images) {
    image = draw_image_size(random);
  }
  return out;
}

double long_clip_share(std::size_t iteration) { return rise(iteration) * fall(iteration); }

Sample draw_clip(RandomStream& random, std::size_t iteration) {
  double seconds = 0.0;
  double caption = 0.0;
  if (random.uniform() < long_clip_share(iteration)) {
    seconds = std::max(kLongLeast, random.log_normal(kLongMu, kLongSigma));
    caption = random.log_normal(kLongCaptionMu, kLongCaptionSigma);
  } else {
    seconds = kShortLeast + random.exponential(kShortMean - kShortLeast);
    caption = random.log_normal(kShortCaptionMu, kShortCaptionSigma) * kTokensPerWord;
  }
  Sample out;
  out.text_tokens = static_cast<std::int32_t>(rounded(std::max(1.0, caption)));
  out.videos.push_back({.seconds = whole_milliseconds(seconds), .frame = kClipFrame});
  return out;
}

namespace {

class GeneratedSource final : public SampleSource {
 public:
  GeneratedSource(SampleDraw draw, std::uint64_t seed, std::size_t iteration)
      : draw_(draw), iteration_(iteration), random_(seed, "samples", iteration) {}

  Sample next() override { return draw_(random_, iteration_); }

 private:
  SampleDraw draw_;
  std::size_t iteration_;
  RandomStream random_;
};

constexpr std::uint64_t kQuickstartSeed = 1;
constexpr std::size_t kQuickstartSamples = 1500;

}  // namespace

std::unique_ptr<SampleSource> generated_samples(SampleDraw draw, std::uint64_t seed,
                                                std::size_t iteration) {
  return std::make_unique<GeneratedSource>(draw, seed, iteration);
}

std::vector<Sample> quickstart_samples() {
  const std::unique_ptr<SampleSource> source =
      generated_samples(draw_web_document, kQuickstartSeed, 0);
  std::vector<Sample> out(kQuickstartSamples);
  std::ranges::generate(out, [&] { return source->next(); });
  return out;
}

}  // namespace dipsim
