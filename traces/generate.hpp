// SPDX-License-Identifier: Apache-2.0
// Synthetic loads from published numbers and a seed. Iterations count from 0.
#pragma once

#include "sim/core/random.hpp"
#include "traces/sample.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dipsim {

/// Iterations of one rise and fall of the dynamic loads; the waves repeat for ever.
inline constexpr std::size_t kWaveIterations = 20;

/// Bounds of a count, both included.
struct ImageBounds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Images per microbatch in DIP's dynamic trace (arXiv 2504.14145, evaluation of dynamic
/// workloads): over the first 5 iterations of a wave the lower bound rises from 0 towards 16 under
/// an upper bound of 32; over the other 15 both shrink to 0. The lower bound reaches 16 at the end
/// of the fifth iteration: only then is the mean at its peak the 22 that the paper gives.
ImageBounds dip_image_bounds(std::size_t iteration);

/// Images of one microbatch, before the limits of the model.
using ImageDraw = std::int64_t (*)(RandomStream& random, std::size_t iteration, double mean);

/// Uniform within dip_image_bounds(); has no other mean.
std::int64_t draw_dip_images(RandomStream& random, std::size_t iteration, double mean);

/// Uniform within 2 of the mean: a load that hardly varies.
std::int64_t draw_steady_images(RandomStream& random, std::size_t iteration, double mean);

/// Gamma of shape 2: a load that varies as much as packed web documents do.
std::int64_t draw_gamma_images(RandomStream& random, std::size_t iteration, double mean);

/// A sample of an endless dataset.
using SampleDraw = Sample (*)(RandomStream& random, std::size_t iteration);

/// A web document with pictures in its text, like those of OBELICS.
Sample draw_web_document(RandomStream& random, std::size_t iteration);

/// A captioned video clip, short (like ShareGPT4Video's) or long (like MMTrail's).
Sample draw_clip(RandomStream& random, std::size_t iteration);

/// Share of long clips in draw_clip(): rises and falls like the load of dip_image_bounds().
double long_clip_share(std::size_t iteration);

/// Endless samples of one iteration.
std::unique_ptr<SampleSource> generated_samples(SampleDraw draw, std::uint64_t seed,
                                                std::size_t iteration);

/// The samples of the shipped trace configs/traces/quickstart.jsonl.
std::vector<Sample> quickstart_samples();

}  // namespace dipsim
