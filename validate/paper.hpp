// SPDX-License-Identifier: Apache-2.0
// The experiments of the DIP paper, run, beside what the paper says about them: what
// `dipsim validate --paper` prints.
#pragma once

#include "sim/core/units.hpp"
#include "validate/paper_claims.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dipsim {

/// One schedule of an experiment.
struct PaperSchedule {
  std::string name;
  std::string variant;  ///< which recompute mode, chunks … were chosen, of how many
  std::vector<double> iteration_seconds;
  double mfu = 0.0;
  Bytes peak{};        ///< of any rank on any iteration
  Bytes first_peak{};  ///< of rank 0 on any iteration
  bool fits = false;   ///< on every iteration
  friend bool operator==(const PaperSchedule&, const PaperSchedule&) = default;

  /// Mean over all iterations.
  [[nodiscard]] double seconds() const;
};

struct PaperExperiment {
  std::string name;   ///< configs/experiments/paper/NAME.json
  std::string title;  ///< model and cluster
  std::string trace;
  std::vector<PaperSchedule> schedules;
  std::vector<std::string> warnings;  ///< e.g. a schedule that was left out, and why
  friend bool operator==(const PaperExperiment&, const PaperExperiment&) = default;

  /// Nothing where the schedule was left out.
  [[nodiscard]] const PaperSchedule* find(std::string_view schedule) const;
};

/// One statement beside dipsim's number, in the unit of its quantity.
struct PaperFinding {
  PaperClaim claim;
  std::optional<double> value;  ///< nothing where a schedule of the claim was left out
  /// Whether every schedule that the claim compares fits; nothing where one was left out.
  std::optional<bool> fits = {};

  /// dipsim's number over the nearest one that agrees with the paper: 1 inside its range.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct PaperReport {
  std::vector<PaperFinding> findings;        ///< in the order of the table
  std::vector<PaperExperiment> experiments;  ///< in alphabetical order
};

struct PaperOptions {
  std::vector<std::string> experiments;  ///< only these; empty: all
  std::size_t jobs = 0;                  ///< threads; 0: all. The result does not depend on it
  std::stop_token stop;  ///< a requested stop leaves out experiments that are not done
  /// Percent of each experiment, all experiments together; from any thread.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

/// Names of the shipped experiments of the paper, in alphabetical order.
std::vector<std::string> paper_experiment_names();

/// What dipsim finds for a claim. Throws Input, at the line of the claim, where its iterations are
/// not among those of the experiment.
PaperFinding find_claim(const PaperClaim& claim, const PaperExperiment& experiment);

/// Runs the experiments and evaluates the claims about them. Throws Input on unknown experiments
/// and on claims about what no experiment has.
PaperReport run_paper(const std::vector<PaperClaim>& claims, const PaperOptions& options);

}  // namespace dipsim
