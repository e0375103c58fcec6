// SPDX-License-Identifier: Apache-2.0
#include "validate/paper_claims.hpp"

#include "sim/core/text.hpp"

#include <algorithm>
#include <array>

namespace dipsim {

namespace {

struct QuantityName {
  PaperQuantity quantity;
  std::string_view name;
  std::string_view unit;
};

constexpr std::array kQuantities = {
    QuantityName{PaperQuantity::Seconds, "seconds", "s"},
    QuantityName{PaperQuantity::Throughput, "throughput", "×"},
    QuantityName{PaperQuantity::Peak, "peak", "×"},
    QuantityName{PaperQuantity::Mfu, "mfu", ""},
    QuantityName{PaperQuantity::FastestSlice, "fastest-slice", "instances"},
};

const QuantityName& entry_of(PaperQuantity quantity) {
  return *std::ranges::find(kQuantities, quantity, &QuantityName::quantity);
}

PaperQuantity quantity_of(const CsvRow& row) {
  const std::string_view name = row.text("quantity");
  const auto found = std::ranges::find(kQuantities, name, &QuantityName::name);
  if (found == kQuantities.end()) {
    std::vector<std::string_view> known;
    for (const QuantityName& entry : kQuantities) {
      known.push_back(entry.name);
    }
    row.fail("quantity", unknown_name("quantity", name, known));
  }
  return found->quantity;
}

/// A text that must be there.
std::string text_of(const CsvRow& row, std::string_view column) {
  const std::string text(row.text(column));
  if (text.empty()) {
    row.fail(column, "empty");
  }
  return text;
}

int iteration_of(const CsvRow& row, std::string_view column, int otherwise) {
  return row.text(column).empty() ? otherwise : static_cast<int>(row.whole(column, 1, 100'000));
}

PaperClaim claim_of(const CsvRow& row) {
  PaperClaim claim{.place = text_of(row, "place"),
                   .statement = text_of(row, "statement"),
                   .experiment = text_of(row, "experiment"),
                   .quantity = quantity_of(row),
                   .schedule = text_of(row, "schedule"),
                   .baseline = std::string(row.text("baseline")),
                   .first_iteration = iteration_of(row, "first_iteration", 1),
                   .last_iteration = iteration_of(row, "last_iteration", 0),
                   .low = row.number("paper_low", 1e-6, 1e9),
                   .high = row.number("paper_high", 1e-6, 1e9),
                   .reading = std::string(row.text("reading")),
                   .line = row.line()};
  if (claim.high < claim.low) {
    row.fail("paper_high", "below paper_low");
  }
  if (claim.last_iteration != 0 && claim.last_iteration < claim.first_iteration) {
    row.fail("last_iteration", "before first_iteration");
  }
  const bool relative =
      claim.quantity == PaperQuantity::Throughput || claim.quantity == PaperQuantity::Peak;
  if (relative == claim.baseline.empty()) {
    row.fail("baseline", relative ? "empty; this quantity is relative to a schedule"
                                  : "this quantity has none");
  }
  return claim;
}

}  // namespace

std::string_view name_of(PaperQuantity quantity) { return entry_of(quantity).name; }

std::string_view unit_of(PaperQuantity quantity) { return entry_of(quantity).unit; }

std::vector<PaperClaim> read_paper_claims(const CsvTable& table) {
  std::vector<PaperClaim> claims;
  claims.reserve(table.size());
  for (const CsvRow& row : table.rows()) {
    claims.push_back(claim_of(row));
  }
  return claims;
}

}  // namespace dipsim
