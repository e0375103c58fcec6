// SPDX-License-Identifier: Apache-2.0
// What DIP's search repeats for every order, step by step, on shipped models.
#pragma once

#include "experiment/setup.hpp"
#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/registry.hpp"

#include <algorithm>
#include <ctime>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

/// Of this thread, so that other programs on the machine don't count.
inline double cpu_clock() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Step>
double cpu_seconds(const Step& step) {
  const double start = cpu_clock();
  step();
  return cpu_clock() - start;
}

/// The first replica of one iteration, on DIP's own partition.
inline dip::ReplicaGraph dip_replica(const std::string& model, const std::string& trace,
                                     bool split_backward) {
  ExperimentSpec spec;
  spec.model = model;
  spec.trace = trace;
  const Setup setup = prepare_iteration(spec, 5);
  const Batch& batch = setup.batches.front();
  const auto planner = find_schedule("dip").make({});
  const Placement placement = planner->place(*setup.lowering, batch);
  Draft draft = planner->slice(placement, batch, *setup.lowering);
  draft.split_backward = split_backward;
  const TaskGraph graph = setup.lowering->lower(draft, batch);
  return dip::replica_graphs(graph).front();
}

/// Interleaves at the selective level with the pass times of the last memory choice, as the later
/// rounds of a composition do.
class DipSteps {
 public:
  explicit DipSteps(dip::ReplicaGraph replica)
      : replica_(std::move(replica)),
        order_(dip::natural_order(replica_)),
        soft_(dip::memory_level(replica_, dip::uniform_choice(replica_, RecomputeMode::Selective))),
        hard_(dip::memory_level(replica_, dip::most_saving_choice(replica_))),
        interleaver_(replica_),
        chooser_(replica_),
        clock_(replica_),
        durations_(replica_.passes.size()),
        choice_(dip::most_saving_choice(replica_)),
        sequence_(replica_.passes.size()) {}

  void interleave() {
    dip::set_durations(replica_, choice_, durations_);
    std::ranges::copy(interleaver_.run(order_, durations_, soft_, hard_), sequence_.begin());
  }

  void choose() { chooser_.choose(sequence_, choice_); }

  dip::Nanoseconds retime() {
    dip::set_durations(replica_, choice_, durations_);
    return dip::retime(clock_, sequence_, durations_);
  }

  [[nodiscard]] const dip::ReplicaGraph& replica() const { return replica_; }

  [[nodiscard]] std::span<const dip::Index> sequence() const { return sequence_; }

  [[nodiscard]] std::span<const dip::Index> choice() const { return choice_; }

 private:
  dip::ReplicaGraph replica_;
  dip::GroupOrder order_;
  dip::MemoryLevel soft_;
  dip::MemoryLevel hard_;
  dip::Interleaver interleaver_;
  dip::MemoryChooser chooser_;
  dip::PassClock clock_;
  std::vector<dip::Nanoseconds> durations_;
  dip::Choice choice_;
  std::vector<dip::Index> sequence_;
};

}  // namespace dipsim::test
