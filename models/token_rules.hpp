// SPDX-License-Identifier: Apache-2.0
// How many tokens a model makes of a picture, a sound or a video: rules of the models' published
// preprocessing code.
#pragma once

#include "models/microbatch.hpp"
#include "models/model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// A picture's size in pixels; 0 × 0 where it is not known.
struct ImageSize {
  std::int32_t width = 0;
  std::int32_t height = 0;

  [[nodiscard]] bool known() const { return width > 0 && height > 0; }

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// A video as it is stored; 0 where something is not known.
struct VideoShape {
  double seconds = 0.0;
  ImageSize frame;
  double fps = 0.0;
  friend bool operator==(const VideoShape&, const VideoShape&) = default;
};

/// An entry of the table of token rules, which TokenRuleSpec::rule names.
struct TokenRuleInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::int32_t markers = 0;  ///< see TokenRule::markers
  std::int32_t merge = 1;    ///< TokenRuleSpec::merge where a model file does not set it
  /// Throws Input at `where` unless the parameters that the rule uses are in range.
  void (*check)(const TokenRuleSpec& spec, const std::string& where);
  /// See TokenRule::image.
  std::optional<MediaTokens> (*image)(const TokenRuleSpec& spec, ImageSize size);
  /// See TokenRule::watched_video; null where the rule has no videos.
  std::optional<std::vector<MediaTokens>> (*video)(const TokenRuleSpec& spec,
                                                   const VideoShape& video);
};

std::span<const TokenRuleInfo> all_token_rules();

/// Throws Input at `where`, naming the nearest, where there is no rule of this name.
const TokenRuleInfo& find_token_rule(std::string_view name, const std::string& where);

/// Values of TokenRuleSpec::min_pixels and max_pixels that programs ship for Qwen2-VL.
struct PixelLimits {
  std::string_view name;  ///< of the program
  std::int64_t min_pixels = 0;
  std::int64_t max_pixels = 0;
};

std::span<const PixelLimits> qwen2_vl_limits();

/// A checked TokenRuleSpec, ready to count.
class TokenRule {
 public:
  /// Throws Input at `where` on an unknown rule, on parameters out of range, and for `fixed` on a
  /// number of image_pixels that is no multiple of patch × merge.
  explicit TokenRule(TokenRuleSpec spec, const std::string& where = "token rule");

  [[nodiscard]] const TokenRuleSpec& spec() const { return spec_; }

  /// Tokens of one picture; nothing when the rule refuses its shape (qwen2-vl: one side more than
  /// 200 times the other). Sides are at most 100,000 pixels. A picture of unknown size is taken for
  /// a square of image_pixels.
  [[nodiscard]] std::optional<MediaTokens> image(ImageSize size) const;

  /// A video that the model watches: one entry per temporal patch, each an image to the encoder.
  /// Nothing when the rule makes no frames of it: it has no videos, refuses the shape, or the
  /// length is unknown or below two frames. An unknown frame rate counts as 30 frames per second.
  [[nodiscard]] std::optional<std::vector<MediaTokens>> watched_video(
      const VideoShape& video) const;

  /// A video that the model generates from a prompt of so many text tokens: at least one token
  /// each.
  [[nodiscard]] MediaTokens generated_clip(double seconds, std::int32_t prompt_tokens) const;

  /// Tokens of the backbone's sequence around each picture, video and audio clip, beside
  /// MediaTokens::merged.
  [[nodiscard]] std::int32_t markers() const { return info_->markers; }

 private:
  TokenRuleSpec spec_;
  const TokenRuleInfo* info_;
};

/// Seconds of audio that a Whisper encoder takes at once.
inline constexpr double kAudioWindowSeconds = 30.0;

/// Tokens of one audio clip (Whisper encoder, pooled by 2 as in Qwen2-Audio); what lies beyond
/// kAudioWindowSeconds is cut off. Nothing when the clip is shorter than one token.
std::optional<MediaTokens> audio_tokens(double seconds);

}  // namespace dipsim
