// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_solver.hpp"

#include <algorithm>

namespace dipsim::dip {

namespace {

/// Answers cost more than prices and improve more slowly.
constexpr int kPricesPerAnswer = 10;

double share(Nanoseconds part, Nanoseconds whole) {
  return part > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

Nanoseconds fastest_time(const MemoryProblem& problem) {
  Nanoseconds sum = 0;
  for (const MemoryPair& pair : problem.pairs) {
    const auto options = problem.options.subspan(pair.first_option, pair.option_count);
    sum += std::ranges::min_element(options, {}, &PairOption::time)->time();
  }
  return sum;
}

}  // namespace

double MemoryProof::gap() const { return share(time - bound, time); }

double MemoryProof::recompute_gap() const { return share(time - bound, time - fastest); }

Nanoseconds time_of(const MemoryProblem& problem, std::span<const Index> choice) {
  Nanoseconds sum = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    sum += problem.options[problem.pairs[i].first_option + choice[i]].time();
  }
  return sum;
}

MemorySolver::MemorySolver(std::size_t pairs, std::size_t positions, std::size_t options)
    : tight_(pairs, positions),
      prices_(pairs, positions, options),
      repair_(pairs, positions),
      trial_(pairs) {}

/// Tries what the pairs want at the present prices.
void MemorySolver::answer(const MemoryProblem& problem, std::span<Index> choice,
                          MemoryProof& proof) {
  const std::span<Index> trial(trial_.data(), choice.size());
  std::ranges::copy(prices_.wanted(), trial.begin());
  if (!repair_.fit(problem, tight_.by_first(), prices_, trial)) {
    return;
  }
  repair_.fill(problem, tight_.by_first(), trial);
  if (const Nanoseconds time = time_of(problem, trial); time < proof.time) {
    proof.time = time;
    std::ranges::copy(trial, choice.begin());
  }
}

MemoryProof MemorySolver::solve(const MemoryProblem& problem, std::span<Index> choice,
                                const MemoryEffort& effort) {
  const MemoryProblem& tight = tight_.reduce(problem);
  MemoryProof proof{.time = time_of(tight, choice), .fastest = fastest_time(tight)};
  proof.bound = proof.fastest;
  prices_.start(tight);
  while (proof.iterations < effort.iterations && proof.gap() > effort.gap) {
    prices_.evaluate();
    proof.bound = std::max(proof.bound, prices_.bound());
    if (++proof.iterations % kPricesPerAnswer == 0) {
      answer(tight, choice, proof);
    }
    if (!prices_.step(proof.time)) {
      answer(tight, choice, proof);
      break;
    }
  }
  return proof;
}

}  // namespace dipsim::dip
