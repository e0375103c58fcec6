// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/ids.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>

namespace dipsim::test {

/// Tokens of one module in one work; a work of no module holds all instances of its microbatches.
std::int64_t work_tokens(const Work& work, ModuleId module, const Batch& batch);

}  // namespace dipsim::test
