// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/token_rules.hpp"

#include <cstdint>
#include <vector>

namespace dipsim {

/// One row of a dataset in raw units: what it holds, before any model's token rule.
struct Sample {
  std::int32_t text_tokens = 0;
  std::vector<ImageSize> images;   ///< an entry per image; 0 × 0 where the size is not known
  std::vector<VideoShape> videos;  ///< an entry per video; zeros where something is not known
  double audio_seconds = 0.0;      ///< 0: no audio
  friend bool operator==(const Sample&, const Sample&) = default;
};

/// An endless stream of samples that depends on nothing but its own inputs.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual Sample next() = 0;

  /// How often the source has begun anew because it was at its end.
  [[nodiscard]] virtual std::int64_t wraps() const { return 0; }

 protected:
  SampleSource() = default;
  SampleSource(const SampleSource&) = default;
  SampleSource& operator=(const SampleSource&) = default;
};

}  // namespace dipsim
