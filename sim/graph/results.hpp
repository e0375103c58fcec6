// SPDX-License-Identifier: Apache-2.0
// What a comparison of schedules found: plain values that experiments fill and reports print.
#pragma once

#include "sim/graph/analysis.hpp"
#include "sim/graph/memory_contents.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/stragglers.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// A pass by what it does, without its graph.
struct PassName {
  Op op = Op::F;
  MicrobatchId microbatch{};  ///< the first one of its work
  ModuleId module{};          ///< none: several
  friend bool operator==(const PassName&, const PassName&) = default;
};

/// One schedule on one iteration's batch.
struct IterationResult {
  Duration makespan{0};
  Duration iteration{0};
  Duration lower_bound{0};  ///< on the makespan, of its own task graph; 0: unknown
  Duration busy{0};         ///< summed over cells; so is `idle`
  IdleByCause idle;
  double bubble_ratio = 0.0;
  double bubble_overhead = 0.0;
  double mfu = 0.0;
  LostTime lost{};                                 ///< to contention; part of `busy` and of `idle`
  std::vector<Bytes> peak_memory;                  ///< per rank
  bool fits = false;                               ///< every rank stays within its limit
  std::vector<MemoryContents> peak_contents = {};  ///< per rank: sums to its peak
  std::vector<std::optional<PassName>> peak_passes = {};  ///< per rank: what it runs at its peak
  std::optional<Straggler> straggler = {};                ///< where there are several replicas
  Duration slow_ranks{0};  ///< iteration time less that of the same order at full speed, no jitter
};

/// A plan and how it ran, for pictures and plan files.
struct PlanRun {
  TaskGraph graph;
  Schedule schedule;
  Timeline timeline;
};

/// One schedule over all iterations.
struct ScheduleResult {
  std::string name;
  std::string recompute;                    ///< "keep", "selective", "full", or "per pair"
  std::vector<Note> notes;                  ///< e.g. chunks per rank, B and K per module
  std::vector<IterationResult> iterations;  ///< by iteration number
  PlanRun sample;                           ///< the iteration shown in the pictures
};

/// Amount of one kind of data in every iteration, e.g. "images per microbatch".
struct LoadSeries {
  std::string name;
  std::vector<double> per_iteration;
};

struct Comparison {
  std::string title;         ///< e.g. "VLM-S on 16 × H800"
  std::vector<Note> inputs;  ///< everything needed to run it again
  std::vector<LoadSeries> loads;
  std::vector<ScheduleResult> schedules;  ///< in the order asked for; ratios refer to the first
  std::vector<std::string> remarks = {};  ///< how the data were treated, in sentences
  std::vector<std::string> warnings;      ///< e.g. "the trace wrapped 3 times, reshuffled"
  std::size_t sample_iteration = 0;       ///< index of the iteration in the pictures
  std::size_t requested_iterations = 0;   ///< more than were run when it was interrupted
};

/// Mean, least and largest of one figure over iterations.
struct Spread {
  double mean = 0.0;
  double min = 0.0;
  double max = 0.0;
};

/// The figures of a schedule over all its iterations, as result.json prints them.
struct ScheduleSummary {
  Spread iteration_time_ms;
  Spread makespan_ms;
  double throughput_ratio = 1.0;        ///< mean iteration time of the first schedule / own
  double bubble_ratio = 0.0;            ///< Σ idle / Σ (idle + busy)
  double bubble_overhead = 0.0;         ///< Σ idle / Σ busy
  double mfu = 0.0;                     ///< mean weighted by iteration time
  std::vector<double> peak_memory_gib;  ///< per rank, largest over the iterations
  bool fits = false;                    ///< on every iteration
  double lower_bound_ms = 0.0;          ///< mean
  double gap_to_bound = 0.0;            ///< Σ makespan / Σ lower bound − 1
  IdleByCause idle;                     ///< mean per iteration, summed over cells
  LostTime lost{};                      ///< mean per iteration
};

/// Summary of schedule `index` of the comparison.
ScheduleSummary summarize(const Comparison& comparison, std::size_t index);

/// The schedule with the least mean iteration time among those that fit; "" when none fits.
std::string winner(const Comparison& comparison);

/// Mean over iterations of the least lower bound among the schedules: no compared plan beats it.
double work_bound_ms(const Comparison& comparison);

}  // namespace dipsim
