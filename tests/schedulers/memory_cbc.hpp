// SPDX-License-Identifier: Apache-2.0
// The memory choice of one rank as an integer program for Cbc, where this build has it.
#pragma once

#include "schedulers/dip/memory_problem.hpp"

#include <optional>
#include <vector>

#ifdef DIPSIM_CBC
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include <Cbc_C_Interface.h>
#endif

namespace dipsim::test {

struct CbcAnswer {
  std::vector<dip::Index> choice;  ///< the best one found; empty: none
  double bound = 0.0;              ///< no choice takes less, in nanoseconds
  bool optimal = false;            ///< nothing is better than `choice`
  double seconds = 0.0;
};

#ifdef DIPSIM_CBC

/// Columns are the options of the pairs, one after the other; rows the positions, then the pairs.
class CbcProgram {
 public:
  explicit CbcProgram(const dip::MemoryProblem& problem)
      : problem_(problem),
        per_byte_(1e3 / static_cast<double>(std::ranges::max(problem.free))),
        per_nanosecond_(1e3 / static_cast<double>(longest(problem))) {
    const std::size_t positions = problem.free.size();
    for (std::size_t i = 0; i < problem.pairs.size(); ++i) {
      const dip::MemoryPair& pair = problem.pairs[i];
      for (dip::Index o = 0; o < pair.option_count; ++o) {
        add_column(pair.place, problem.options[pair.first_option + o], positions + i);
      }
    }
    row_low_.assign(positions, -std::numeric_limits<double>::infinity());
    for (const dip::ByteCount free : problem.free) {
      row_high_.push_back(static_cast<double>(free) * per_byte_);
    }
    row_low_.resize(positions + problem.pairs.size(), 1.0);
    row_high_.resize(positions + problem.pairs.size(), 1.0);
  }

  CbcAnswer solve(double seconds) {
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
    const auto columns = static_cast<int>(cost_.size());
    const std::vector<double> low(cost_.size(), 0.0);
    const std::vector<double> high(cost_.size(), 1.0);
    Cbc_loadProblem(model.get(), columns, static_cast<int>(row_low_.size()), start_.data(),
                    row_.data(), value_.data(), low.data(), high.data(), cost_.data(),
                    row_low_.data(), row_high_.data());
    for (int column = 0; column < columns; ++column) {
      Cbc_setInteger(model.get(), column);
    }
    const std::string limit = std::to_string(seconds);
    Cbc_setLogLevel(model.get(), 0);
    Cbc_setParameter(model.get(), "sec", limit.c_str());
    const auto begin = std::chrono::steady_clock::now();
    Cbc_solve(model.get());
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    return {.choice = choice_of(Cbc_getColSolution(model.get())),
            .bound = Cbc_getBestPossibleObjValue(model.get()) / per_nanosecond_,
            .optimal = Cbc_isProvenOptimal(model.get()) != 0,
            .seconds = spent.count()};
  }

 private:
  static dip::Nanoseconds longest(const dip::MemoryProblem& problem) {
    return std::ranges::max_element(problem.options, {}, &dip::PairOption::time)->time();
  }

  [[nodiscard]] std::vector<dip::Index> choice_of(const double* solution) const {
    std::vector<dip::Index> choice;
    for (const dip::MemoryPair& pair : problem_.pairs) {
      if (solution == nullptr) {
        return {};
      }
      choice.push_back(static_cast<dip::Index>(
          std::max_element(solution, solution + pair.option_count) - solution));
      solution += pair.option_count;
    }
    return choice;
  }

  void add_column(const dip::PairPlace& place, const dip::PairOption& option, std::size_t pair) {
    const dip::PairBytes bytes = dip::bytes_of(option);
    for (dip::Index p = place.first; p <= place.last; ++p) {
      row_.push_back(static_cast<int>(p));
      value_.push_back(static_cast<double>(dip::bytes_at(place, bytes, p)) * per_byte_);
    }
    row_.push_back(static_cast<int>(pair));
    value_.push_back(1.0);
    start_.push_back(static_cast<int>(row_.size()));
    cost_.push_back(static_cast<double>(option.time()) * per_nanosecond_);
  }

  // Cbc works with absolute tolerances, so that the scale of the numbers matters.
  dip::MemoryProblem problem_;
  double per_byte_;
  double per_nanosecond_;
  std::vector<int> start_{0};
  std::vector<int> row_;
  std::vector<double> value_;
  std::vector<double> cost_;
  std::vector<double> row_low_;
  std::vector<double> row_high_;
};

inline std::optional<CbcAnswer> solve_with_cbc(const dip::MemoryProblem& problem, double seconds) {
  return CbcProgram(problem).solve(seconds);
}

#else

inline std::optional<CbcAnswer> solve_with_cbc(const dip::MemoryProblem& /*problem*/,
                                               double /*seconds*/) {
  return std::nullopt;
}

#endif

}  // namespace dipsim::test
