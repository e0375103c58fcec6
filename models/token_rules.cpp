// SPDX-License-Identifier: Apache-2.0
#include "models/token_rules.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int32_t kMaxSide = 100'000;
constexpr std::int64_t kMaxArea = 1'000'000'000;
constexpr double kMaxTokensPerSecond = 500'000.0;  // an hour of them still fits 32 bits

template <class T>
void require_range(const std::string& where, std::string_view what, T value, T low, T high) {
  if (!(value >= low && value <= high)) {  // also refuses NaN
    fail_input(where, fmt::format("{} is {}; allowed: {} to {}", what, value, low, high));
  }
}

MediaTokens tokens_of(const TokenRuleSpec& spec, std::int64_t width, std::int64_t height) {
  const std::int64_t patches = (width / spec.patch) * (height / spec.patch);
  const std::int64_t merged = patches / (std::int64_t{spec.merge} * spec.merge);
  return {.encoder = static_cast<std::int32_t>(patches),
          .merged = static_cast<std::int32_t>(merged)};
}

/// Every picture is scaled to one square.
std::optional<MediaTokens> fixed_image(const TokenRuleSpec& spec, ImageSize /*size*/) {
  return tokens_of(spec, spec.image_pixels, spec.image_pixels);
}

// --- Qwen2-VL: qwen-vl-utils vision_process.py (smart_resize, smart_nframes, fetch_video)
// ---------

constexpr double kMaxAspect = 200.0;
constexpr double kWatchedFps = 2.0;
constexpr double kMinFrames = 4.0;
constexpr double kMaxFrames = 768.0;
constexpr double kFrameFactor = 2.0;  // frames per temporal patch
constexpr std::int64_t kTokenArea = std::int64_t{28} * 28;
constexpr std::int64_t kMinFrameArea = 128 * kTokenArea;
constexpr std::int64_t kMaxFrameArea = 768 * kTokenArea;
constexpr double kVideoArea = 24'576.0 * kTokenArea;  // of all frames together
constexpr double kUnknownFps = 30.0;

/// Python's round(): halves go to the even neighbour. std::round would give other sizes.
double round_half_even(double x) { return std::nearbyint(x); }

/// The nearest multiple of a token's side that keeps the aspect and an area within the limits.
std::optional<ImageSize> smart_resize(ImageSize size, double factor, double min_area,
                                      double max_area) {
  const double h = size.height;
  const double w = size.width;
  if (std::max(h, w) / std::min(h, w) > kMaxAspect) {
    return std::nullopt;
  }
  double new_h = std::max(factor, round_half_even(h / factor) * factor);
  double new_w = std::max(factor, round_half_even(w / factor) * factor);
  if (new_h * new_w > max_area) {
    const double beta = std::sqrt(h * w / max_area);
    new_h = std::max(factor, std::floor(h / beta / factor) * factor);
    new_w = std::max(factor, std::floor(w / beta / factor) * factor);
  } else if (new_h * new_w < min_area) {
    const double beta = std::sqrt(min_area / (h * w));
    new_h = std::ceil(h * beta / factor) * factor;
    new_w = std::ceil(w * beta / factor) * factor;
  }
  return ImageSize{.width = static_cast<std::int32_t>(new_w),
                   .height = static_cast<std::int32_t>(new_h)};
}

std::optional<MediaTokens> resized_image(const TokenRuleSpec& spec, ImageSize size, double min_area,
                                         double max_area) {
  const std::optional<ImageSize> resized =
      smart_resize(size, spec.patch * spec.merge, min_area, max_area);
  if (!resized) {
    return std::nullopt;
  }
  return tokens_of(spec, resized->width, resized->height);
}

/// A picture of unknown size stands for a square.
ImageSize size_or_square(const TokenRuleSpec& spec, ImageSize size) {
  return size.known() ? size : ImageSize{.width = spec.image_pixels, .height = spec.image_pixels};
}

std::optional<MediaTokens> qwen_image(const TokenRuleSpec& spec, ImageSize size) {
  return resized_image(spec, size_or_square(spec, size), static_cast<double>(spec.min_pixels),
                       static_cast<double>(spec.max_pixels));
}

std::optional<std::vector<MediaTokens>> qwen_video(const TokenRuleSpec& spec,
                                                   const VideoShape& video) {
  const double fps = video.fps > 0.0 ? video.fps : kUnknownFps;
  const double frames = std::floor(video.seconds * fps);
  const double most = std::floor(std::min(kMaxFrames, frames) / kFrameFactor) * kFrameFactor;
  const double wanted = std::min(std::max(frames / fps * kWatchedFps, kMinFrames), most);
  const double taken = round_half_even(wanted / kFrameFactor) * kFrameFactor;
  if (taken < kFrameFactor) {
    return std::nullopt;
  }
  const double share =
      std::min(static_cast<double>(kMaxFrameArea), kVideoArea / taken * kFrameFactor);
  const double max_area = std::max(share, std::floor(kMinFrameArea * 1.05));
  const std::optional<MediaTokens> frame = resized_image(
      spec, size_or_square(spec, video.frame), static_cast<double>(kMinFrameArea), max_area);
  if (!frame) {
    return std::nullopt;
  }
  return std::vector<MediaTokens>(static_cast<std::size_t>(taken / kFrameFactor), *frame);
}

void check_fixed(const TokenRuleSpec& spec, const std::string& where) {
  const std::int32_t unit = spec.patch * spec.merge;
  if (spec.image_pixels % unit != 0) {
    const std::int32_t nearest_legal = std::max(1, (spec.image_pixels + unit / 2) / unit) * unit;
    fail_input(where,
               fmt::format("image_pixels {} is no multiple of patch x merge = {}; nearest: {}",
                           spec.image_pixels, unit, nearest_legal));
  }
}

void check_qwen(const TokenRuleSpec& spec, const std::string& where) {
  const std::int64_t unit = std::int64_t{spec.patch} * spec.merge;
  require_range(where, "max_pixels", spec.max_pixels, unit * unit, kMaxArea);
  require_range(where, "min_pixels", spec.min_pixels, std::int64_t{0}, spec.max_pixels);
}

}  // namespace

std::span<const TokenRuleInfo> all_token_rules() {
  static constexpr std::array<TokenRuleInfo, 2> rules{{
      {.name = "fixed",
       .summary = "every picture is scaled to one square: 728 px, 2704 patches, 169 tokens",
       .source = "DIP (arXiv 2504.14145), evaluation setup",
       .markers = 0,
       .merge = 4,
       .check = check_fixed,
       .image = fixed_image,
       .video = nullptr},
      {.name = "qwen2-vl",
       .summary =
           "native resolution within an area, 28 px per token; videos at 2 frames per second",
       .source = "qwen-vl-utils, vision_process.py",
       .markers = 2,
       .merge = 2,
       .check = check_qwen,
       .image = qwen_image,
       .video = qwen_video},
  }};
  return rules;
}

std::span<const PixelLimits> qwen2_vl_limits() {
  // LLaMA-Factory shrinks pictures before the processor sees them, so there a side can come out one
  // token longer than under a limit of the processor itself.
  static constexpr std::array<PixelLimits, 3> limits{{
      {.name = "qwen-vl-utils", .min_pixels = 4 * kTokenArea, .max_pixels = 16'384 * kTokenArea},
      {.name = "transformers",
       .min_pixels = std::int64_t{56} * 56,
       .max_pixels = 1280 * kTokenArea},
      {.name = "LLaMA-Factory",
       .min_pixels = std::int64_t{56} * 56,
       .max_pixels = std::int64_t{768} * 768},
  }};
  return limits;
}

const TokenRuleInfo& find_token_rule(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const TokenRuleInfo& rule : all_token_rules()) {
    if (rule.name == name) {
      return rule;
    }
    names.push_back(rule.name);
  }
  fail_input(where, unknown_name("token rule", name, names));
}

TokenRule::TokenRule(TokenRuleSpec spec, const std::string& where)
    : spec_(std::move(spec)), info_(&find_token_rule(spec_.rule, where)) {
  require_range(where, "patch", spec_.patch, 1, 1024);
  require_range(where, "merge", spec_.merge, 1, 16);
  require_range(where, "image_pixels", spec_.image_pixels, 1,
                std::min(kMaxSide, 10'000 * spec_.patch));
  require_range(where, "clip_tokens_per_s", spec_.clip_tokens_per_s, 1e-3, kMaxTokensPerSecond);
  info_->check(spec_, where);
}

std::optional<MediaTokens> TokenRule::image(ImageSize size) const {
  return info_->image(spec_, size);
}

std::optional<std::vector<MediaTokens>> TokenRule::watched_video(const VideoShape& video) const {
  if (info_->video == nullptr || !(video.seconds > 0.0)) {
    return std::nullopt;
  }
  return info_->video(spec_, video);
}

MediaTokens TokenRule::generated_clip(double seconds, std::int32_t prompt_tokens) const {
  const double tokens = std::max(1.0, std::nearbyint(seconds * spec_.clip_tokens_per_s));
  DIPSIM_CHECK(tokens < 2'147'483'648.0, "clip too long for the token rule");
  return {.encoder = static_cast<std::int32_t>(tokens), .prompt = std::max(1, prompt_tokens)};
}

std::optional<MediaTokens> audio_tokens(double seconds) {
  // 100 mel frames per second, a convolution of stride 2, then pooling by 2 (LLaMA-Factory
  // mm_plugin.py, Qwen2-Audio). The margin undoes the binary rounding of decimal seconds.
  const double heard = std::min(seconds, kAudioWindowSeconds);
  const auto mel = static_cast<std::int32_t>(std::floor(heard * 100.0 + 1e-6));
  if (mel < 3) {
    return std::nullopt;
  }
  const std::int32_t frames = (mel - 1) / 2 + 1;
  return MediaTokens{.encoder = frames, .merged = (frames - 2) / 2 + 1};
}

}  // namespace dipsim
