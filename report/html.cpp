// SPDX-License-Identifier: Apache-2.0
#include "report/html.hpp"

#include "report/comparison_table.hpp"
#include "report/definitions.hpp"
#include "report/figures.hpp"
#include "report/findings.hpp"
#include "report/memory_words.hpp"
#include "report/table.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace dipsim {

namespace {

// Pictures set their colours as attributes, which any rule overrides: dark mode restyles them here.
constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2329;--dim:#5c6670;--line:#d5dade;--card:#f5f7f9;
--mark:#e3f1e4;--alarm:#c62828}
body{margin:0 auto;max-width:1440px;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.25rem;margin:2rem 0 .5rem}
.headline{font-size:1.15rem;margin:.5rem 0 1rem}
.warning{border-left:4px solid var(--alarm);background:var(--card);padding:.4rem .8rem;margin:.4rem 0}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600}
.unit{display:block;font-weight:400;color:var(--dim)}
.number{text-align:right}
.figures th,.figures td{white-space:nowrap}
.winner{background:var(--mark);font-weight:600}
.no{color:var(--alarm);font-weight:600}
svg{display:block;width:100%;min-width:760px;height:auto}
details{border:1px solid var(--line);border-radius:8px;margin:.6rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.6rem 0;font-weight:600}
dt{font-weight:600}
dd{margin:0 0 .4rem 1.2rem;color:var(--dim)}
code{overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){
:root{--paper:#15191d;--ink:#e6e9ec;--dim:#a3adb7;--line:#39424b;--card:#1f252b;--mark:#1d3a25;--alarm:#ff7b72}
svg text.ink,svg circle.ink{fill:#e6e9ec}
svg text.dim{fill:#a3adb7}
svg line.ink{stroke:#e6e9ec}
svg rect.paper{fill:#15191d}
svg rect.ground{fill:#2b333b}
svg rect.grid{fill:#4a545e}
svg line.grid{stroke:#39424b}
svg line.axis{stroke:#7a8590}
svg text.alarm,svg rect.alarm,svg circle.alarm{fill:#ff7b72}
svg line.alarm{stroke:#ff7b72}
svg path.load,svg rect.load{fill:#333c45}
svg path.edge{stroke:#9cc5ef}
}
@media print{details{break-inside:avoid}}
)";

std::string figures_header(const Table& table) {
  std::string out = "<tr>";
  for (std::size_t i = 1; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool number = !column.unit.empty();
    out += fmt::format("<th{}>{}<span class=\"unit\">{}</span></th>",
                       number ? " class=\"number\"" : "", escape_xml(column.title),
                       escape_xml(column.unit));
  }
  return out + "</tr>\n";
}

std::string_view css_class(const Column& column, const Cell& cell) {
  if (!column.unit.empty()) {
    return " class=\"number\"";
  }
  const bool* const yes = std::get_if<bool>(&cell.value);
  return yes != nullptr && !*yes ? " class=\"no\"" : "";
}

std::string figures_row(const Table& table, const std::vector<Cell>& row) {
  const bool wins = std::get<bool>(row.front().value);
  std::string out = wins ? "<tr class=\"winner\">" : "<tr>";
  for (std::size_t i = 1; i < row.size(); ++i) {
    out +=
        fmt::format("<td{}>{}</td>", css_class(table.columns[i], row[i]), escape_xml(row[i].shown));
  }
  return out + "</tr>\n";
}

/// The comparison table; its first column, the mark of the winner, becomes the colour of the row.
std::string figures_table(const Comparison& comparison) {
  const Table table = comparison_table(comparison);
  std::string out = "<div class=\"wide\"><table class=\"figures\">\n" + figures_header(table);
  for (const auto& row : table.rows) {
    out += figures_row(table, row);
  }
  return out + "</table></div>\n";
}

std::string note_table(const std::vector<Note>& notes) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (const Note& note : notes) {
    out += fmt::format("<tr><th>{}</th><td><code>{}</code></td></tr>\n", escape_xml(note.name),
                       escape_xml(note.text));
  }
  return out + "</table></div>\n";
}

std::string picture(const std::string& svg) { return "<div class=\"wide\">\n" + svg + "</div>\n"; }

std::string why_section(const Comparison& comparison, const Findings& found,
                        const Pictures& pictures) {
  std::string out = "<h2>Why</h2>\n<ul>\n";
  for (const std::string& sentence : all_sentences(found)) {
    out += fmt::format("<li>{}</li>\n", escape_xml(sentence));
  }
  out += "</ul>\n" + picture(pictures.idle);
  for (const ScheduleResult& schedule : comparison.schedules) {
    if (!schedule.notes.empty()) {
      out += fmt::format("<details><summary>The plan of {}</summary>\n{}</details>\n",
                         escape_xml(schedule.name), note_table(schedule.notes));
    }
  }
  return out;
}

/// What the fullest rank holds, phase by phase.
std::string memory_table(const Comparison& comparison, std::size_t i) {
  const std::size_t rank = fullest_rank(comparison.schedules[i], summarize(comparison, i)).rank;
  const Table table = phase_table(comparison.schedules[i], rank);
  std::string out = fmt::format(
      "<p>Most that rank {} holds in each phase, by contents</p>\n<div class=\"wide\"><table "
      "class=\"figures\">\n<tr>",
      rank);
  for (const Column& column : table.columns) {
    const bool number = !column.unit.empty();
    out += fmt::format("<th{}>{}<span class=\"unit\">{}</span></th>",
                       number ? " class=\"number\"" : "", escape_xml(column.title),
                       escape_xml(column.unit));
  }
  out += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += fmt::format("<td{}>{}</td>", css_class(table.columns[c], row[c]),
                         escape_xml(row[c].shown));
    }
    out += "</tr>\n";
  }
  return table.rows.empty() ? "" : out + "</table></div>\n";
}

std::string timelines_section(const Comparison& comparison, const Pictures& pictures,
                              const std::vector<std::size_t>& order) {
  std::string out =
      fmt::format("<h2>Timeline and memory of iteration {}</h2>\n", comparison.sample_iteration);
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    if (pictures.timeline[i].empty() && pictures.memory[i].empty()) {
      continue;
    }
    const bool wins = !order.empty() && order.front() == i;
    out += fmt::format("<details{}><summary>{}</summary>\n{}{}{}</details>\n", wins ? " open" : "",
                       escape_xml(comparison.schedules[i].name), picture(pictures.timeline[i]),
                       picture(pictures.memory[i]), memory_table(comparison, i));
  }
  return out;
}

std::string definitions_section() {
  std::string out = "<h2>What the figures mean</h2>\n<dl>\n";
  for (const Definition& definition : metric_definitions()) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_xml(definition.name),
                       escape_xml(definition.meaning));
  }
  return out + "</dl>\n";
}

}  // namespace

std::string report_html(const Comparison& comparison, const Pictures& pictures) {
  const Findings found = findings(comparison);
  const std::string title = escape_xml(one_line(comparison.title));
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{} · "
      "dipsim</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n<p "
      "class=\"headline\">{}</p>\n",
      title, kStyle, title, escape_xml(found.headline));
  for (const std::string& warning : found.warnings) {
    out += fmt::format("<p class=\"warning\">Warning: {}</p>\n", escape_xml(warning));
  }
  out += figures_table(comparison);
  out += picture(pictures.comparison);
  out += why_section(comparison, found, pictures);
  out += timelines_section(comparison, pictures, ranking(summarize_all(comparison)));
  out += "<h2>Inputs</h2>\n" + note_table(comparison.inputs);
  out += definitions_section();
  return out + "</body>\n</html>\n";
}

}  // namespace dipsim
