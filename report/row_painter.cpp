// SPDX-License-Identifier: Apache-2.0
#include "report/row_painter.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

RowPainter::RowPainter(double from, double to, double column, double least_cover)
    : from_(from),
      column_(column),
      least_cover_(least_cover),
      columns_(static_cast<std::size_t>(std::ceil((to - from) / column)) + 1) {}

void RowPainter::paint(double from, double to, std::size_t colour) {
  const double low = std::max((from - from_) / column_, 0.0);
  const double high = std::min((to - from_) / column_, static_cast<double>(columns_.size()));
  for (auto i = static_cast<std::size_t>(low); static_cast<double>(i) < high; ++i) {
    const auto left = static_cast<double>(i);
    const double cover = std::min(high, left + 1.0) - std::max(low, left);
    Column& column = columns_[i];
    column.covered += cover;
    if (column.colour == colour) {
      column.by_colour += cover;
    } else if (cover > column.by_colour) {
      column.colour = colour;
      column.by_colour = cover;
    }
  }
}

std::vector<Run> RowPainter::take_runs() {
  std::vector<Run> runs;
  bool open = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const double left = from_ + column_ * static_cast<double>(i);
    const bool painted = column.covered > 0.0 && column.covered >= least_cover_;
    if (painted && open && runs.back().colour == column.colour) {
      runs.back().to = left + column_;
    } else if (painted) {
      runs.push_back({left, left + column_, column.colour});
    }
    open = painted;
  }
  std::ranges::fill(columns_, Column{});
  return runs;
}

}  // namespace dipsim
