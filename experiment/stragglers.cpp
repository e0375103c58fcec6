// SPDX-License-Identifier: Apache-2.0
#include "experiment/stragglers.hpp"

#include "sim/graph/stragglers.hpp"

#include <optional>

namespace dipsim {

void add_stragglers(const PlanRun& run, const Machine& machine, const TimelineAnalysis& analysis,
                    IterationResult& result) {
  const bool slow = has_speeds(run.graph);
  const bool several = run.graph.placement.ranks.back().replica > 0;
  if (!slow && !several) {
    return;
  }
  Machine quiet = machine;
  quiet.engine.jitter = 0.0;
  std::optional<Timeline> steady;
  if (machine.engine.jitter > 0.0) {
    steady = quiet.run(run.graph, run.schedule);
  }
  std::optional<Timeline> nominal;
  if (slow) {
    nominal = quiet.run(at_full_speed(run.graph), run.schedule);
  }
  const Timeline& of_steady = steady ? *steady : run.timeline;
  const Timeline& of_nominal = nominal ? *nominal : of_steady;
  result.slow_ranks = of_steady.iteration - of_nominal.iteration;
  if (several) {
    const bool same = &of_nominal == &run.timeline;
    result.straggler = find_straggler(
        run.graph, run.schedule.compute,
        {.actual = run.timeline,
         .steady = of_steady,
         .nominal = of_nominal,
         .of_nominal =
             same ? analysis : analyze(run.graph, run.schedule, of_nominal, machine.engine.send)});
  }
}

}  // namespace dipsim
