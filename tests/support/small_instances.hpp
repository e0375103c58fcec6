// SPDX-License-Identifier: Apache-2.0
// Small random multimodal pipelines, small enough for solve_exact(): what planners are judged on.
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>

namespace dipsim::test {

/// The same work with whole backwards (F, B) and with split ones (F, I, W).
struct SmallInstance {
  int ranks = 0;
  int microbatches = 0;
  double room = 1.0;  ///< u below; 1: memory is loose
  TaskGraph whole;
  TaskGraph split;
};

/// Instance number `index` of the sequence `seed`; equal arguments give equal instances. Every draw
/// is uniform over the stated range and, unless stated, independent of the others.
///
///  - 2 or 3 ranks, 2 to 4 microbatches. Two modules, an encoder whose output the LLM consumes;
///    each has one chunk per rank, in the order of the ranks, as DIP places modules of one segment.
///    A work is one module on one microbatch.
///  - Amount of work: 1 in 5 microbatches has none for the encoder, and then no passes there; the
///    others have 0.25 to 1.75 for the encoder, 0.8 to 1.2 for the LLM.
///  - F of a module on a rank and a microbatch: amount × (200 to 1000 µs, per module) × (0.7 to
///    1.3, per module and rank). B takes 1.6 to 2.4 times F (per module and microbatch); I takes
///    0.4 to 0.6 of B (likewise) and W the rest.
///  - Transfers, one third of the instances each: free; 10 to 100 µs latency; the same latency and
///    amount × 10 to 200 µs occupation of the link.
///  - A pair holds amount × (10 to 100 MB, per module) from F to B or I, and 0.3 to 1 of that (per
///    instance) from I to W. F, B and I need another 0 to 10 MB (per module) while they run.
///  - Memory: all ranks have the same limit. With `one` the most that a rank holds when the
///    microbatches run one after the other, and `all` what a rank could hold at most, it is
///    one + u × (all - one): u = 1 (loose) in half of the instances, else 0 to 0.6. So there is
///    always an order that fits.
///  - Every pair has one strategy: keep everything.
SmallInstance small_instance(std::uint64_t seed, std::size_t index);

}  // namespace dipsim::test
