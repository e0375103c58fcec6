// SPDX-License-Identifier: Apache-2.0
// The ways in which one schedule may be run, and the choice among them.
#pragma once

#include "experiment/schedule_choice.hpp"
#include "sim/core/units.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dipsim {

/// One way to run a schedule: every option is decided.
struct Variant {
  std::string label;  ///< what sets it apart: "full", "v=2 full", or "per pair"
  PlannerOptions options;
};

/// The alternatives of the schedule × recompute modes, in order of preference among equally fast
/// ones: the schedule's own order, and light recomputation first. What the user has named is not
/// varied; a schedule that chooses memory pair by pair has one variant.
std::vector<Variant> variants_of(const ScheduleChoice& choice, const Problem& problem);

/// How one variant did on all iterations.
struct VariantRecord {
  std::string label;
  Duration total{0};              ///< iteration times added up
  Bytes worst_peak{};             ///< of any rank on any iteration
  std::size_t too_large = 0;      ///< iterations on which a rank exceeds its limit
  std::string impossible{};       ///< why it can't run some iteration; "": it can run all
  std::size_t impossible_on = 0;  ///< the first one that it can't run
};

/// Row of the fastest variant that fits on every iteration; where none does, of the one that needs
/// least memory on its worst iteration; the first among equals. None where all are impossible.
std::optional<std::size_t> best_variant(std::span<const VariantRecord> records);

/// Which one was chosen and what became of the others: the next best one, those that would be
/// faster but are too large (with the iterations on which they are), and those that are impossible.
/// Nothing where there was no choice.
std::vector<Note> variant_notes(std::span<const VariantRecord> records, std::size_t chosen,
                                std::size_t iterations);

}  // namespace dipsim
