// SPDX-License-Identifier: Apache-2.0
// Shipped models on a shipped cluster, and small batches for them.
#pragma once

#include "models/model_lowering.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

inline ModelLowering lowering_of(const std::string& model, const std::string& cluster = "h800-64") {
  const LmmModel loaded = load_model(model);
  return {loaded, load_cluster(cluster), loaded.parallel};
}

/// One microbatch per entry, with so many images and two documents, 8193 tokens together.
inline Batch images(const LmmModel& model, const std::vector<int>& per_microbatch) {
  std::vector<Microbatch> microbatches;
  for (const int count : per_microbatch) {
    Microbatch microbatch;
    microbatch.documents = {8192 - 10 * count, 10 * count + 1};
    microbatch.images.assign(static_cast<std::size_t>(count), {2704, 169, 0});
    microbatches.push_back(microbatch);
  }
  return make_batch(microbatches, model.feeds(), 1);
}

inline Batch clips(const LmmModel& model) {
  Microbatch microbatch;
  microbatch.clips = {{896, 0, 100}, {1792, 0, 200}};
  return make_batch(std::vector{microbatch}, model.feeds(), 1);
}

inline Work work_on(int module, int first, int count, int microbatch = 0) {
  return {.module = ModuleId{module}, .portions = {{MicrobatchId{microbatch}, first, count}}};
}

inline std::vector<LayerRange> layers(int module, int first, int count) {
  return {{ModuleId{module}, first, count}};
}

inline Chunk chunk_on(int rank, std::vector<LayerRange> ranges) {
  Chunk chunk;
  chunk.layers = std::move(ranges);
  chunk.rank = RankId{rank};
  return chunk;
}

}  // namespace dipsim::test
