// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_picture.hpp"

#include "report/axis.hpp"
#include "report/names.hpp"
#include "report/palette.hpp"
#include "report/row_painter.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"
#include "report/timeline_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostSingleBoxes = 3000;  ///< above, boxes have no tooltips and share paths
constexpr std::size_t kMostFineBoxes = 30'000;  ///< above, columns are one pixel wide
constexpr double kFineColumn = 0.25;

struct MarkStyle {
  std::string_view name;
  std::string_view fill;
};

/// By MarkKind.
constexpr std::array<MarkStyle, 4> kMarkStyles = {{{"transfer (sent)", kTransferColour},
                                                   {"collective", kCollectiveColour},
                                                   {"copy out to host memory", kCopyOutColour},
                                                   {"copy in from host memory", kCopyInColour}}};

struct Layout {
  Scale x;
  double top = 0.0;
  double row = 0.0;    ///< from one row to the next
  double bar = 0.0;    ///< height of the passes
  double strip = 0.0;  ///< height of the marks below them
  double label_size = 13.0;
  double bottom = 0.0;

  [[nodiscard]] double row_top(std::size_t i) const { return top + row * static_cast<double>(i); }

  [[nodiscard]] double px(Time t) const { return x(to_milliseconds(t - kStart)); }

  [[nodiscard]] double box_top(const Box& box) const {
    return row_top(box.row) + (box.half == Half::Lower ? bar / 2.0 : 0.0);
  }

  [[nodiscard]] double half_middle(std::size_t i, Half half) const {
    if (half == Half::Whole) {
      return row_top(i) + bar / 2.0;
    }
    return row_top(i) + (half == Half::Upper ? bar / 4.0 : 0.75 * bar);
  }

  [[nodiscard]] double box_height(const Box& box) const {
    return box.half == Half::Whole ? bar : bar / 2.0;
  }
};

/// Heights, by the number of rows.
struct RowSize {
  std::size_t most_rows;
  double row, gap, strip, label;
};

constexpr std::array<RowSize, 4> kRowSizes = {{{8, 46.0, 8.0, 6.0, 13.0},
                                               {16, 32.0, 6.0, 5.0, 13.0},
                                               {32, 21.0, 3.0, 3.0, 12.0},
                                               {kMostRows, 14.0, 2.0, 2.0, 10.0}}};

Layout lay_out(const TimelineRows& rows, const TaskNames& names, double top) {
  const RowSize& size = *std::ranges::find_if(
      kRowSizes, [&](const RowSize& one) { return rows.ranks.size() <= one.most_rows; });
  Layout layout;
  layout.x = rank_row_scale(to_milliseconds(rows.end - kStart), names);
  layout.top = top;
  layout.row = size.row;
  layout.strip = rows.marks.empty() ? 0.0 : size.strip;
  layout.bar = size.row - size.gap - layout.strip;
  layout.label_size = size.label;
  layout.bottom = layout.row_top(rows.ranks.size());
  return layout;
}

std::vector<LegendEntry> legend(const TimelineRows& rows) {
  std::vector<LegendEntry> entries;
  entries.reserve(rows.colours.size() + kMarkStyles.size() + 1);
  for (const BoxColour& colour : rows.colours) {
    entries.push_back({colour.name, {"", colour.fill}});
  }
  for (std::size_t kind = 0; kind < kMarkStyles.size(); ++kind) {
    const auto is_kind = [&](const Mark& mark) { return mark.kind == static_cast<MarkKind>(kind); };
    if (std::ranges::any_of(rows.marks, is_kind)) {
      entries.push_back({std::string(kMarkStyles[kind].name), {"", kMarkStyles[kind].fill}});
    }
  }
  entries.push_back({"idle", kGround});
  return entries;
}

void draw_rows(Svg& svg, const TimelineRows& rows, const PlanRun& run, const TaskNames& names,
               const Layout& layout) {
  svg.text(kRowTextX, layout.top - 7.0, "idle", {.size = 12.0, .theme = kDim});
  for (std::size_t i = 0; i < rows.ranks.size(); ++i) {
    const double top = layout.row_top(i);
    const double baseline = top + layout.bar / 2.0 + 0.36 * layout.label_size;
    if (i > 0 &&
        run.graph.rank(rows.ranks[i]).replica != run.graph.rank(rows.ranks[i - 1]).replica) {
      svg.line(kMargin, top - 1.0, kPictureWidth - kMargin, top - 1.0, kAxis);
    }
    svg.text(kMargin, baseline, names.rank(rows.ranks[i]), {.size = layout.label_size});
    svg.rect(layout.x.from, top, layout.x.to - layout.x.from, layout.bar, kGround);
    svg.text(kRowTextX, baseline, percent(rows.idle_share[i]) + " %",
             {.size = layout.label_size, .theme = kDim});
  }
}

std::string tooltip(const Box& box, const PlanRun& run, const TaskNames& names) {
  const Task& task = run.graph.task(box.task);
  std::string text = names.task(box.task);
  if (task.chunk.valid()) {
    text += fmt::format(" chunk {}", task.chunk.value);
  }
  const double from = to_milliseconds(box.start - kStart);
  const double to = to_milliseconds(box.end - kStart);
  const int decimals = time_decimals(to - from) + 1;
  text += fmt::format(", {}–{} ms ({} ms)", fixed(from, decimals), fixed(to, decimals),
                      fixed(to - from, decimals));
  if (task.pair.valid() && task.pair.row() < run.schedule.chosen.size()) {
    text +=
        fmt::format(", {}", name_of(run.graph.strategy(run.schedule.chosen[task.pair.row()]).mode));
  }
  return text;
}

void draw_single_boxes(Svg& svg, const TimelineRows& rows, const PlanRun& run,
                       const TaskNames& names, const Layout& layout) {
  for (const Box& box : rows.boxes) {
    const double from = layout.px(box.start);
    const double width = layout.px(box.end) - from;
    svg.rect(from, layout.box_top(box), std::max(width > 3.0 ? width - 0.5 : width, 0.1),
             layout.box_height(box), {"", rows.colours[box.colour].fill}, tooltip(box, run, names));
  }
}

/// Strokes of one colour over all rows, as one path.
class Strokes {
 public:
  /// Runs along `y`, from left to right.
  void add(double y, double from, double to) {
    if (y == y_) {
      path_ += fmt::format("m{} 0h{}", svg_number(from - at_), svg_number(to - from));
    } else {
      path_ += fmt::format("M{} {}h{}", svg_number(from), svg_number(y), svg_number(to - from));
    }
    y_ = y;
    at_ = to;
  }

  void draw(Svg& svg, std::string_view colour, double width) const {
    if (!path_.empty()) {
      svg.curve(path_, {"", colour}, {.width = width});
    }
  }

 private:
  std::string path_;
  double y_ = -1.0;
  double at_ = 0.0;
};

/// Boxes of one half (or whole ones) in pixel columns; a hairline keeps wide neighbours apart.
void draw_dense_boxes(Svg& svg, const TimelineRows& rows, const Layout& layout, Half half) {
  const double column = rows.boxes.size() <= kMostFineBoxes ? kFineColumn : 1.0;
  RowPainter painter(layout.x.from, layout.x.to, column, 0.5);
  std::vector<Strokes> strokes(rows.colours.size());
  double height = 0.0;
  for (std::size_t i = 0; i < rows.boxes.size(); ++i) {
    const Box& box = rows.boxes[i];
    if (box.half == half) {
      const double from = layout.px(box.start);
      const double to = layout.px(box.end);
      painter.paint(from, to - from >= 8.0 * column ? to - column : to, box.colour);
      height = layout.box_height(box);
    }
    if (i + 1 == rows.boxes.size() || rows.boxes[i + 1].row != box.row) {
      const double middle = layout.half_middle(box.row, half);
      for (const Run& run : painter.take_runs()) {
        strokes[run.colour].add(middle, run.from, run.to);
      }
    }
  }
  for (std::size_t colour = 0; colour < strokes.size(); ++colour) {
    strokes[colour].draw(svg, rows.colours[colour].fill, height);
  }
}

void draw_marks(Svg& svg, const TimelineRows& rows, const Layout& layout) {
  RowPainter painter(layout.x.from, layout.x.to, 1.0, 0.0);
  std::array<Strokes, kMarkStyles.size()> strokes;
  for (std::size_t i = 0; i < rows.marks.size(); ++i) {
    const Mark& mark = rows.marks[i];
    painter.paint(layout.px(mark.start), layout.px(mark.end), static_cast<std::size_t>(mark.kind));
    if (i + 1 == rows.marks.size() || rows.marks[i + 1].row != mark.row) {
      const double middle = layout.row_top(mark.row) + layout.bar + 1.0 + layout.strip / 2.0;
      for (const Run& run : painter.take_runs()) {
        strokes[run.colour].add(middle, run.from, run.to);
      }
    }
  }
  for (std::size_t kind = 0; kind < strokes.size(); ++kind) {
    strokes[kind].draw(svg, kMarkStyles[kind].fill, std::max(layout.strip - 1.0, 1.0));
  }
}

/// Microbatch numbers inside the boxes that are large enough.
void draw_labels(Svg& svg, const TimelineRows& rows, const PlanRun& run, const TaskNames& names,
                 const Layout& layout) {
  const double size = layout.bar >= 24.0 ? 12.0 : 10.0;
  for (const std::string_view colour : {text_colour_on("#ffffff"), text_colour_on("#000000")}) {
    svg.begin_labels(size, colour);
    for (const Box& box : rows.boxes) {
      const Task& task = run.graph.task(box.task);
      if (!task.work.valid() || text_colour_on(rows.colours[box.colour].fill) != colour) {
        continue;
      }
      const std::string& text = names.microbatch(task.work);
      const double from = layout.px(box.start);
      const double to = layout.px(box.end);
      if (layout.box_height(box) >= size + 1.0 && to - from >= text_width(text, size) + 3.0) {
        svg.label((from + to) / 2.0,
                  layout.box_top(box) + layout.box_height(box) / 2.0 + 0.36 * size, text);
      }
    }
    svg.end_labels();
  }
}

/// Where the passes end, and after it where gradient reduction and optimizer do.
void draw_end(Svg& svg, const TimelineRows& rows, const PlanRun& run, const Layout& layout) {
  Time last_pass = kStart;
  for (const Box& box : rows.boxes) {
    if (is_pass(run.graph.task(box.task).op)) {
      last_pass = std::max(last_pass, box.end);
    }
  }
  const double x = layout.px(last_pass);
  svg.line(x, layout.top - 4.0, x, layout.bottom, kAxis, {.width = 1.5, .dash = "4 3"});
  svg.text(x - 4.0, layout.top - 7.0, "last pass ends",
           {.size = 12.0, .anchor = Anchor::End, .theme = kDim});
}

std::string subtitle(const PictureText& text, const TimelineRows& rows, const PlanRun& run) {
  const std::size_t all = run.graph.placement.ranks.size();
  if (rows.ranks.size() == all) {
    return text.subtitle;
  }
  return fmt::format("{} · {} of {} ranks shown", text.subtitle, rows.ranks.size(), all);
}

}  // namespace

std::string timeline_svg(const PlanRun& run, const PictureText& text) {
  const TaskNames names(run.graph);
  const TimelineRows rows = timeline_rows(run, names, kMostRows);
  const std::vector<LegendEntry> entries = legend(rows);
  const double top = kHeadingHeight + legend_height(entries) + 26.0;
  const Layout layout = lay_out(rows, names, top);
  Svg svg(kPictureWidth, layout.bottom + kTimeAxisHeight + 4.0, text.title);
  draw_heading(svg, {text.title, subtitle(text, rows, run)});
  draw_legend(svg, kHeadingHeight, entries);
  draw_rows(svg, rows, run, names, layout);
  draw_time_axis(svg, layout.x, layout.top, layout.bottom);
  if (rows.boxes.size() <= kMostSingleBoxes) {
    draw_single_boxes(svg, rows, run, names, layout);
  } else {
    for (const Half half : {Half::Whole, Half::Upper, Half::Lower}) {
      draw_dense_boxes(svg, rows, layout, half);
    }
  }
  draw_marks(svg, rows, layout);
  draw_labels(svg, rows, run, names, layout);
  draw_end(svg, rows, run, layout);
  return std::move(svg).finish();
}

}  // namespace dipsim
