// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace dipsim {

/// Coloured stretch of a row, in pixels.
struct Run {
  double from = 0.0;
  double to = 0.0;
  std::size_t colour = 0;
};

/// Paints spans of one row into columns of equal width, so that the number of runs is bounded
/// however many spans there are. A column has the colour that covers most of it.
class RowPainter {
 public:
  /// Columns of `column` pixels from `from` to at least `to`. A column is free where less than
  /// `least_cover` of it is covered.
  RowPainter(double from, double to, double column, double least_cover);

  void paint(double from, double to, std::size_t colour);

  /// What was painted since the last call, from left to right; the row is free again.
  std::vector<Run> take_runs();

 private:
  struct Column {
    double covered = 0.0;  ///< by any colour, in columns
    double by_colour = 0.0;
    std::size_t colour = 0;
  };

  double from_;
  double column_;
  double least_cover_;
  std::vector<Column> columns_;
};

}  // namespace dipsim
