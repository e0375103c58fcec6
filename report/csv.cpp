// SPDX-License-Identifier: Apache-2.0
#include "report/csv.hpp"

#include "report/figures.hpp"
#include "report/text.hpp"
#include "sim/core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace dipsim {

namespace {

std::string number(double value) { return std::isfinite(value) ? shortest(value) : ""; }

std::string ms(Duration d) { return number(static_cast<double>(d.count()) / 1e6); }

std::string peak_gib(const IterationResult& result) {
  const auto fullest = std::ranges::max_element(result.peak_memory);
  return fullest == result.peak_memory.end() ? "" : number(to_gib(*fullest));
}

/// In the order of iteration_columns().
std::vector<std::string> fields(std::size_t iteration, const ScheduleResult& schedule) {
  const IterationResult& result = schedule.iterations[iteration];
  std::vector<std::string> out = {std::to_string(iteration),
                                  csv_field(schedule.name),
                                  ms(result.iteration),
                                  ms(result.makespan),
                                  ms(result.lower_bound),
                                  ms(result.busy),
                                  number(result.bubble_ratio),
                                  number(result.bubble_overhead),
                                  number(result.mfu),
                                  peak_gib(result),
                                  result.fits ? "true" : "false"};
  for (const IdleCause& cause : kIdleCauses) {
    out.push_back(ms(result.idle.*cause.member));
  }
  out.push_back(ms(result.lost.passes));
  out.push_back(ms(result.lost.flows));
  return out;
}

void append_line(std::string& out, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += i == 0 ? "" : ",";
    out += parts[i];
  }
  out += '\n';
}

constexpr std::array<Definition, 18> kColumns = {{
    {"iteration", "number of the iteration, from 0"},
    {"schedule", "name of the schedule"},
    {"iteration_time_ms", "makespan, gradient reduction and optimizer"},
    {"makespan_ms", "from the first start to the last end of the passes"},
    {"lower_bound_ms", "bound on the makespan, of the schedule's own plan"},
    {"busy_ms", "time in passes, summed over ranks"},
    {"bubble_ratio", "idle / (idle + busy)"},
    {"bubble_overhead", "idle / busy"},
    {"mfu", "model FLOPs / (iteration time × peak of all GPUs); 0 where unknown"},
    {"peak_memory_gib", "memory of the fullest rank, per GPU"},
    {"fits", "whether every rank stays within its limit"},
    {"idle_pipeline_ms", "idle time waiting for inputs, summed over ranks; so are the next"},
    {"idle_transfer_ms", "waiting for transfers"},
    {"idle_collective_ms", "waiting for collectives and copies"},
    {"idle_host_ms", "waiting for the host"},
    {"idle_straggler_ms", "waiting for a slower replica"},
    {"contention_passes_ms", "passes took longer beside communication, summed over ranks"},
    {"contention_flows_ms", "transfers, collectives and copies took longer on shared links"},
}};

}  // namespace

std::span<const Definition> iteration_columns() { return kColumns; }

std::string iterations_csv(const Comparison& comparison) {
  std::vector<std::string> header;
  for (const Definition& column : iteration_columns()) {
    header.emplace_back(column.name);
  }
  for (const LoadSeries& load : comparison.loads) {
    header.push_back(csv_field(load.name));
  }
  std::string out;
  append_line(out, header);
  const std::size_t count =
      comparison.schedules.empty() ? 0 : comparison.schedules.front().iterations.size();
  for (std::size_t iteration = 0; iteration < count; ++iteration) {
    for (const ScheduleResult& schedule : comparison.schedules) {
      std::vector<std::string> line = fields(iteration, schedule);
      for (const LoadSeries& load : comparison.loads) {
        const bool known = iteration < load.per_iteration.size();
        line.push_back(known ? number(load.per_iteration[iteration]) : "");
      }
      append_line(out, line);
    }
  }
  return out;
}

}  // namespace dipsim
