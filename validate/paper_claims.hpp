// SPDX-License-Identifier: Apache-2.0
// Statements of the DIP paper about its experiments, one line of a table each.
#pragma once

#include "validate/csv_table.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// What a statement is about.
enum class PaperQuantity : std::uint8_t {
  Seconds,       ///< mean iteration time of `schedule`
  Throughput,    ///< of `schedule` over that of `baseline`: ratio of mean iteration times
  Peak,          ///< of `schedule` over that of `baseline`, memory of rank 0 on its worst iteration
  Mfu,           ///< of `schedule`, from 0 to 1
  FastestSlice,  ///< K of the fastest among all schedules `schedule` + "K"
};

std::string_view name_of(PaperQuantity quantity);

/// "s", "×", …, behind a number of this quantity; "" where it has no unit.
std::string_view unit_of(PaperQuantity quantity);

struct PaperClaim {
  std::string place;       ///< in the paper: "Ablation"
  std::string statement;   ///< "with DIP's partitioner"
  std::string experiment;  ///< configs/experiments/paper/NAME.json
  PaperQuantity quantity = PaperQuantity::Seconds;
  std::string schedule;
  std::string baseline;     ///< Throughput and Peak only
  int first_iteration = 1;  ///< of those that count
  int last_iteration = 0;   ///< 0: all to the end
  double low = 0.0;         ///< what the paper says; differs from `high` for a range
  double high = 0.0;
  std::string reading;  ///< how the statement is read, and why dipsim may differ
  int line = 0;         ///< of the table
};

/// One claim per row. Throws Input, naming file, line and column, on unknown quantities, ranges the
/// wrong way round, a baseline that is missing or has no use.
std::vector<PaperClaim> read_paper_claims(const CsvTable& table);

}  // namespace dipsim
