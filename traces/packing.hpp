// SPDX-License-Identifier: Apache-2.0
// From samples to microbatches.
#pragma once

#include "models/microbatch.hpp"
#include "models/model.hpp"
#include "models/token_rules.hpp"
#include "traces/sample.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// Sums of decimal seconds may exceed PackingSpec::max_clip_seconds by as much.
inline constexpr double kSecondsMargin = 1e-9;

/// What packing did so far.
struct PackingStats {
  std::int64_t samples = 0;        ///< read
  std::int64_t cut = 0;            ///< whose text was shortened, or a clip of which was
  std::int64_t too_large = 0;      ///< dropped: the media alone exceed the limits
  std::int64_t unusable = 0;       ///< dropped: nothing in it for this model, or a refused shape
  std::int64_t ignored_media = 0;  ///< images, videos and audio that this model doesn't take
  std::int64_t wraps = 0;          ///< how often the trace began anew
  std::int64_t microbatches = 0;
  double load = 0.0;      ///< tokens (clips: seconds) in them
  double capacity = 0.0;  ///< that they could have held

  /// Share of the capacity that is in use; 0 before the first microbatch.
  [[nodiscard]] double fill() const { return capacity > 0.0 ? load / capacity : 0.0; }

  PackingStats& operator+=(const PackingStats& other);
  friend bool operator==(const PackingStats&, const PackingStats&) = default;
};

/// What a packer works by.
struct PackerOptions {
  PackingSpec limits;
  TokenRule rule;
  std::vector<Feed> feeds;  ///< what the model's modules take
  std::uint64_t seed = 1;
};

/// Makes microbatches of a stream of samples.
class Packer {
 public:
  virtual ~Packer() = default;
  /// The next microbatch, never empty. Throws Input when the source yields nothing that fits: two
  /// whole passes, or 10^6 samples, without a single one.
  virtual Microbatch next() = 0;
  [[nodiscard]] virtual PackingStats stats() const = 0;

 protected:
  Packer() = default;
  Packer(const Packer&) = default;
  Packer& operator=(const Packer&) = default;
};

/// An entry of the table of packers.
struct PackerInfo {
  std::string_view name;
  Feed feed;  ///< it serves the models that have a module with this feed
  std::string_view summary;
  std::string_view source;
  std::unique_ptr<Packer> (*make)(PackerOptions options, std::unique_ptr<SampleSource> samples);
};

std::span<const PackerInfo> all_packers();

/// The packer that serves a model with such modules. Throws Input when there is none, or two.
const PackerInfo& packer_for(std::span<const Feed> feeds);

/// Throws Input at `where` on limits out of range.
void check_packing(const PackingSpec& limits, const std::string& where = "packing");

}  // namespace dipsim
