// SPDX-License-Identifier: Apache-2.0
// Step time and memory of a language model that somebody trained: the rows of most published
// tables.
#pragma once

#include "models/model.hpp"
#include "models/training_state.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/graph/task_graph.hpp"

#include <string>
#include <vector>

namespace dipsim {

/// One training job, every replica with sequences of one length.
struct TrainingRun {
  ModuleSpec spec;
  Cluster cluster;
  ParallelPlan plan;
  TrainingState state;
  RecomputeMode recompute = RecomputeMode::Keep;
  bool tied = false;                 ///< head and embedding are one
  int sequence = 0;                  ///< tokens
  int sequences_per_microbatch = 0;  ///< of one replica
  int microbatches = 0;              ///< of one replica, through the pipeline at once
  int drains = 1;                    ///< times per step that the pipeline takes so many and drains
  std::string schedule = "1f1b";     ///< of dipsim
  int chunks_per_rank = 1;
  std::vector<int> stage_layers{};  ///< empty: equally many
  bool blocking = false;            ///< the framework waits for every pass and its transfers
  bool contention = true;           ///< links are shared, and communication slows compute
};

struct TrainingPrediction {
  double step_seconds = 0.0;
  double model_flops = 0.0;      ///< useful, of one replica, until the pipeline has drained
  std::vector<double> peak_gib;  ///< per pipeline rank, the reserve left out
  std::vector<int> in_flight;    ///< per pipeline rank: most chunk passes between F and backward
};

/// Plans and runs one iteration. Throws Input where the plan is illegal for the model.
TrainingPrediction predict(const TrainingRun& run);

/// The same cluster with as many nodes as so many GPUs need.
Cluster with_gpus(Cluster cluster, int gpus);

}  // namespace dipsim
