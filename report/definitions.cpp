// SPDX-License-Identifier: Apache-2.0
#include "report/definitions.hpp"

#include <array>

namespace dipsim {

namespace {

// docs/metrics.md derives each.
constexpr std::array<Definition, 19> kDefinitions = {{
    {"makespan", "from the first start to the last end of the passes"},
    {"iteration time", "makespan, gradient reduction and optimizer"},
    {"vs first", "mean iteration time of the first schedule / own: relative throughput"},
    {"bubble ratio", "idle time / (idle + computing time), over all ranks"},
    {"bubble overhead", "idle time / computing time, over all ranks"},
    {"MFU", "model FLOPs, without recomputation / (iteration time × peak of all GPUs)"},
    {"peak memory", "most bytes that a GPU of the rank holds at once, weights included"},
    {"memory: reserved",
     "context, communication buffers, library workspaces, fragmentation: the cluster's "
     "reserved_gib"},
    {"memory: phases",
     "static before the first pass; warm_up to the first backward; steady to the end of the last "
     "forward; cool_down to the last pass; optimizer after it"},
    {"lower bound", "a makespan that no order of the passes of this plan can beat"},
    {"above bound", "makespan / lower bound − 1"},
    {"work bound", "the least lower bound of all compared plans, per iteration"},
    {"idle: pipeline", "waiting for inputs still being computed, or nothing left to do"},
    {"idle: transfer", "waiting for inputs that are computed but still on their way"},
    {"idle: collective", "waiting for a collective or a copy"},
    {"idle: host", "waiting for the host to issue the pass: launch gaps, not bubbles"},
    {"idle: straggler", "waiting for a slower replica"},
    {"contention: passes", "part of the computing time: lost to communication beside it"},
    {"contention: flows",
     "time that transfers, collectives and copies took longer on shared links"},
}};

}  // namespace

std::span<const Definition> metric_definitions() { return kDefinitions; }

}  // namespace dipsim
