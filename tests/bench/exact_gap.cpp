// SPDX-License-Identifier: Apache-2.0
// How far schedules are from the true optimum of small random cases: dipsim_exact_gap.
// The cases are those of tests/support/small_instances.hpp.
#include "schedulers/exact/exact.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "tests/support/small_instances.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

namespace {

struct Flags {
  std::size_t instances = 100;
  std::uint64_t seed = 1;
  double seconds = 60.0;
  std::size_t jobs = 0;
  std::string schedules = "dip";
};

/// The two graphs of an instance.
constexpr std::array<const char*, 2> kKinds = {"F B", "F I W"};

struct Contestant {
  const ScheduleInfo* info;
  std::size_t kind;  ///< of the graphs that it orders
};

/// What a schedule did on one instance.
struct Outcome {
  std::optional<Duration> makespan;  ///< none: see `why`
  std::string why;
};

struct Solved {
  ExactResult result;
  double seconds = 0.0;
};

struct Row {
  int ranks = 0;
  int microbatches = 0;
  double room = 1.0;
  std::array<Solved, kKinds.size()> exact{};
  std::vector<Outcome> outcomes{};  ///< per contestant
};

bool fits(const TaskGraph& graph, const Timeline& timeline) {
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    if (timeline.memory[r].peak > graph.placement.ranks[r].memory_limit) {
      return false;
    }
  }
  return true;
}

/// Runs one schedule, and keeps its order in `best` where it is the fastest so far.
Outcome run(const Contestant& contestant, const TaskGraph& graph, std::optional<Schedule>& best,
            Duration& best_makespan) {
  try {
    const Schedule schedule = contestant.info->make({})->order(graph);
    validate(graph, schedule);
    const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
    if (!fits(graph, timeline)) {
      return {.makespan = {}, .why = "does not fit in memory"};
    }
    if (!best || timeline.makespan < best_makespan) {
      best = schedule;
      best_makespan = timeline.makespan;
    }
    return {.makespan = timeline.makespan, .why = ""};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) {
      throw;
    }
    return {.makespan = {}, .why = error.what()};
  }
}

Row measure(const Flags& flags, const std::vector<Contestant>& contestants, std::size_t index) {
  const test::SmallInstance instance = test::small_instance(flags.seed, index);
  Row row{.ranks = instance.ranks, .microbatches = instance.microbatches, .room = instance.room};
  row.outcomes.resize(contestants.size());
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    const TaskGraph& graph = kind == 0 ? instance.whole : instance.split;
    ExactOptions options;
    options.max_seconds = flags.seconds;
    Duration best{0};
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      if (contestants[c].kind == kind) {
        row.outcomes[c] = run(contestants[c], graph, options.incumbent, best);
      }
    }
    const auto before = std::chrono::steady_clock::now();
    row.exact[kind].result =
        solve_exact(graph, uniform_strategies(graph, RecomputeMode::Keep), options);
    row.exact[kind].seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  return row;
}

/// Above the optimum, or above its bound where it is not proven.
double gap(Duration makespan, const ExactResult& exact) {
  return static_cast<double>(makespan.count()) / static_cast<double>(exact.lower_bound.count()) -
         1.0;
}

void print_rows(const std::vector<Row>& rows, const std::vector<Contestant>& contestants) {
  fmt::print("{:>5} {:>5} {:>12} {:>6}", "case", "ranks", "microbatches", "room");
  for (const char* kind : kKinds) {
    fmt::print(" {:>12} {:>9}", fmt::format("{} ms", kind), "nodes");
  }
  for (const Contestant& contestant : contestants) {
    fmt::print(" {:>20}", contestant.info->name);
  }
  fmt::print("\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    fmt::print("{:>5} {:>5} {:>12} {:>6.2f}", i, row.ranks, row.microbatches, row.room);
    for (const Solved& solved : row.exact) {
      const ExactResult& exact = solved.result;
      fmt::print(
          " {:>12} {:>9}",
          fmt::format("{}{:.3f}", exact.proven ? "" : ">= ", to_milliseconds(exact.lower_bound)),
          exact.nodes);
    }
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      const Outcome& outcome = row.outcomes[c];
      const ExactResult& exact = row.exact[contestants[c].kind].result;
      fmt::print(" {:>20}",
                 outcome.makespan
                     ? fmt::format("{:.3f} +{:.2f} %{}", to_milliseconds(*outcome.makespan),
                                   100.0 * gap(*outcome.makespan, exact), exact.proven ? "" : "?")
                     : "-");
    }
    fmt::print("\n");
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0.0 : values[values.size() / 2];
}

void print_effort(const std::vector<Row>& rows) {
  fmt::print("\n{:<8} {:>9} {:>10} {:>10} {:>12} {:>12}\n", "optimum", "proven", "median s",
             "most s", "median nodes", "most nodes");
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::vector<double> seconds;
    std::vector<double> nodes;
    std::size_t proven = 0;
    for (const Row& row : rows) {
      seconds.push_back(row.exact[kind].seconds);
      nodes.push_back(static_cast<double>(row.exact[kind].result.nodes));
      proven += row.exact[kind].result.proven ? 1U : 0U;
    }
    fmt::print("{:<8} {:>9} {:>10.4f} {:>10.3f} {:>12.0f} {:>12.0f}\n", kKinds[kind],
               fmt::format("{}/{}", proven, rows.size()), median(seconds),
               std::ranges::max(seconds), median(nodes), std::ranges::max(nodes));
  }
}

/// What is told of one schedule on some of the cases.
struct Gaps {
  std::vector<double> proven;
  double worst = 0.0;
  std::size_t worst_case = 0;
  std::size_t open = 0;  ///< optimum not proven
  double open_worst = 0.0;
  std::size_t failed = 0;
  std::string why;  ///< the first one failed
};

template <class Belongs>
Gaps collect(const std::vector<Row>& rows, std::size_t c, std::size_t kind,
             const Belongs& belongs) {
  Gaps gaps;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Outcome& outcome = rows[i].outcomes[c];
    const ExactResult& exact = rows[i].exact[kind].result;
    if (!belongs(rows[i])) {
      continue;
    }
    if (!outcome.makespan) {
      gaps.why = gaps.failed++ == 0 ? fmt::format("case {}: {}", i, outcome.why) : gaps.why;
    } else if (!exact.proven) {
      ++gaps.open;
      gaps.open_worst = std::max(gaps.open_worst, gap(*outcome.makespan, exact));
    } else {
      gaps.proven.push_back(gap(*outcome.makespan, exact));
      if (gaps.proven.back() > gaps.worst) {
        gaps.worst = gaps.proven.back();
        gaps.worst_case = i;
      }
    }
  }
  return gaps;
}

double mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

void print_gaps(const std::vector<Row>& rows, const std::vector<Contestant>& contestants) {
  fmt::print("\n{:<16} {:<6} {:<6} {:>6} {:>9} {:>9} {:>9} {:>8} {:>20} {:>8}\n", "schedule",
             "passes", "memory", "cases", "mean gap", "median", "worst", "in case",
             "not proven (<= gap)", "no order");
  const auto all = [](const Row&) { return true; };
  const auto loose = [](const Row& row) { return row.room >= 1.0; };
  const auto tight = [](const Row& row) { return row.room < 1.0; };
  for (std::size_t c = 0; c < contestants.size(); ++c) {
    const std::size_t kind = contestants[c].kind;
    const auto line = [&](const char* memory, const Gaps& gaps) {
      const auto percent = [&](double value) {
        return gaps.proven.empty() ? "-" : fmt::format("{:.2f} %", 100.0 * value);
      };
      fmt::print(
          "{:<16} {:<6} {:<6} {:>6} {:>9} {:>9} {:>9} {:>8} {:>20} {:>8}\n",
          contestants[c].info->name, kKinds[kind], memory, gaps.proven.size(),
          percent(mean(gaps.proven)), percent(median(gaps.proven)), percent(gaps.worst),
          gaps.worst_case,
          gaps.open == 0 ? "0" : fmt::format("{} ({:.2f} %)", gaps.open, 100.0 * gaps.open_worst),
          gaps.failed);
    };
    line("loose", collect(rows, c, kind, loose));
    line("tight", collect(rows, c, kind, tight));
    const Gaps gaps = collect(rows, c, kind, all);
    line("all", gaps);
    if (gaps.failed > 0) {
      fmt::print("  no order: {}\n", shortened(gaps.why, 200));
    }
  }
}

void run_all(const Flags& flags) {
  std::vector<Contestant> contestants;
  for (const std::string_view name : split(flags.schedules, ',')) {
    const ScheduleInfo& info = find_schedule(name);
    contestants.push_back({&info, info.split_backward ? std::size_t{1} : std::size_t{0}});
  }
  std::vector<Row> rows(flags.instances);
  parallel_for(rows.size(), flags.jobs,
               [&](std::size_t i) { rows[i] = measure(flags, contestants, i); });
  fmt::print("small instances 0 to {} of seed {}, up to {} s each\n\n", rows.size() - 1, flags.seed,
             flags.seconds);
  print_rows(rows, contestants);
  print_effort(rows);
  print_gaps(rows, contestants);
}

int main_of(int argc, char** argv) {
  Flags flags;
  CLI::App app("Compares schedules with the exact optimum of small random cases.");
  app.add_option("--instances", flags.instances, "number of cases")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "seed of the cases")->capture_default_str();
  app.add_option("--seconds", flags.seconds,
                 "most time per optimum; what it cuts short is not reproducible; 0: no limit")
      ->capture_default_str();
  app.add_option("--schedules", flags.schedules, "names, separated by commas")
      ->capture_default_str();
  app.add_option("--jobs", flags.jobs, "threads; 0: all")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  run_all(flags);
  return 0;
}

}  // namespace

}  // namespace dipsim

int main(int argc, char** argv) {
  try {
    return dipsim::main_of(argc, argv);
  } catch (const dipsim::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
