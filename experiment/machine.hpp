// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

namespace dipsim {

/// What plans are run on.
struct Machine {
  EngineOptions engine;
  const Cluster* cluster = nullptr;  ///< none: a synthetic pipeline, which takes no contention

  [[nodiscard]] Timeline run(const TaskGraph& graph, const Schedule& schedule) const {
    return cluster == nullptr ? simulate(graph, schedule, engine)
                              : simulate(graph, schedule, engine, *cluster);
  }
};

}  // namespace dipsim
