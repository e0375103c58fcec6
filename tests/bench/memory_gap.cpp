// SPDX-License-Identifier: Apache-2.0
// How good DIP's memory choices are on one rank: dipsim_memory_gap. Greedy choice, solver, its
// proven bound, and (where the build has it) Cbc's exact answer, on random ranks of 200 pairs with
// ten strategies and on the ranks of shipped models.
#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/memory_solver.hpp"
#include "schedulers/dip/pair_places.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/bench/dip_steps.hpp"
#include "tests/schedulers/memory_cbc.hpp"
#include "tests/schedulers/memory_instances.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::Index;
using dip::MemoryProof;
using dip::Nanoseconds;

struct Flags {
  std::size_t instances = 10;
  std::size_t pairs = 200;
  std::uint64_t seed = 1;
  int iterations = dip::MemoryEffort{}.iterations;
  double cbc_seconds = 10.0;
};

/// Percent of what recomputation costs under the better of the answers.
std::string percent_of(double part, double whole) {
  return whole > 0.0 ? fmt::format("{:.2f}", 100.0 * part / whole) : "-";
}

/// Solves one rank from `start` and prints a line.
void report(const std::string& name, const dip::MemoryProblem& problem,
            const std::vector<Index>& start, const Flags& flags) {
  dip::MemorySolver solver(problem.pairs.size(), problem.free.size(), problem.options.size());
  std::vector<Index> choice = start;
  MemoryProof proof;
  const double seconds = test::cpu_seconds(
      [&] { proof = solver.solve(problem, choice, {.gap = 0.0, .iterations = flags.iterations}); });
  std::optional<test::CbcAnswer> exact;
  if (flags.cbc_seconds > 0.0) {
    exact = test::solve_with_cbc(problem, flags.cbc_seconds);
  }
  const auto recomputation = static_cast<double>(proof.time - proof.fastest);
  const Nanoseconds before = dip::time_of(problem, start);
  fmt::print("{:<16} {:>5} {:>9} {:>8.3f} {:>8} {:>8.3f} {:>8.4f} {:>9} ", name,
             problem.pairs.size(), problem.free.size(),
             100.0 * recomputation / static_cast<double>(proof.time),
             percent_of(static_cast<double>(before - proof.time), recomputation), 1e3 * seconds,
             100.0 * proof.gap(),
             percent_of(static_cast<double>(proof.time - proof.bound), recomputation));
  if (!exact || exact->choice.empty()) {
    fmt::print("{:>9} {:>9} {:>9}\n", "n/a", "n/a", "n/a");
    return;
  }
  const Nanoseconds best = dip::time_of(problem, exact->choice);
  const double bound = std::max(exact->bound, static_cast<double>(proof.bound));
  fmt::print("{:>9} {:>9} {:>8.1f}{}\n",
             percent_of(static_cast<double>(proof.time - best), recomputation),
             percent_of(static_cast<double>(proof.time) - bound, recomputation), exact->seconds,
             exact->optimal ? "*" : " ");
}

void report_random(const Flags& flags) {
  for (std::size_t i = 0; i < flags.instances; ++i) {
    RandomStream random(flags.seed, "memory gap " + std::to_string(i));
    const bool with_weights = i % 2 == 1;
    const double tightness = static_cast<double>(i + 1) / static_cast<double>(flags.instances + 1);
    const test::MemoryInstance instance =
        test::layered_instance(flags.pairs, with_weights, tightness, random);
    report(fmt::format("random {}{}", i, with_weights ? " (W)" : ""), instance.problem(),
           test::most_saving(instance), flags);
  }
}

/// The ranks on which the greedy choice is not the fastest, after two rounds.
void report_model(const std::string& model, const std::string& trace, bool split_backward,
                  const Flags& flags) {
  test::DipSteps steps(test::dip_replica(model, trace, split_backward));
  for (int round = 0; round < 2; ++round) {
    steps.interleave();
    steps.choose();
  }
  const dip::ReplicaGraph& replica = steps.replica();
  dip::PairPlaces places(replica);
  places.find(steps.sequence());
  std::vector<dip::MemoryPair> pairs;
  for (Index rank = 0; rank < replica.ranks.size(); ++rank) {
    const dip::MemoryProblem problem = dip::problem_of(replica, places, rank, pairs);
    std::vector<Index> start;
    for (const Index pair : places.pairs_of(rank)) {
      start.push_back(steps.choice()[pair]);
    }
    report(fmt::format("{}{} rank {}", model, split_backward ? " (W)" : "", rank), problem, start,
           flags);
  }
}

void run(const Flags& flags) {
  fmt::print(
      "recomp %: of all pass time, spent on recomputation. The next figures but ms and gap % are "
      "per cent of it:\nwhat the solver saves on its start (random: the most saving strategies; "
      "models: the greedy choice), its proven\ngap, its distance from Cbc's answer (negative: "
      "better), and from the better of both bounds. *: Cbc proved its answer\n\n"
      "{:<16} {:>5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
      "rank", "pairs", "positions", "recomp %", "saved", "ms", "gap %", "rec. gap", "over Cbc",
      "true gap", "Cbc s");
  report_random(flags);
  report_model("vlm-s", "dip-images", false, flags);
  report_model("vlm-l", "dip-images", false, flags);
  report_model("vlm-l", "dip-images", true, flags);
}

}  // namespace

}  // namespace dipsim

int main(int argc, char** argv) {
  try {
    dipsim::Flags flags;
    CLI::App app("How good DIP's memory choices are on one rank");
    app.add_option("--instances", flags.instances, "random ranks")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
    app.add_option("--pairs", flags.pairs, "pairs of each")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--seed", flags.seed, "of the random ranks")->capture_default_str();
    app.add_option("--iterations", flags.iterations, "prices that the solver tries")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option("--cbc-seconds", flags.cbc_seconds,
                   "limit of Cbc per rank; what it cuts short is not reproducible; 0: without Cbc")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    dipsim::run(flags);
    return 0;
  } catch (const dipsim::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
