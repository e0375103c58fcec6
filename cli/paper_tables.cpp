// SPDX-License-Identifier: Apache-2.0
#include "cli/paper_tables.hpp"

#include "report/json.hpp"
#include "report/text.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>

namespace dipsim::cli {

namespace {

using nlohmann::ordered_json;

/// Decimals in which numbers of a quantity are shown.
int decimals_of(PaperQuantity quantity) {
  switch (quantity) {
    case PaperQuantity::Seconds:
      return 2;
    case PaperQuantity::FastestSlice:
      return 0;
    case PaperQuantity::Throughput:
    case PaperQuantity::Peak:
    case PaperQuantity::Mfu:
      break;
  }
  return 3;
}

std::string iterations_of(const PaperClaim& claim) {
  if (claim.last_iteration == 0) {
    return "all";
  }
  return claim.first_iteration == claim.last_iteration
             ? fmt::format("{}", claim.first_iteration)
             : fmt::format("{} to {}", claim.first_iteration, claim.last_iteration);
}

/// Mean time of `schedule` over that of dip; unknown in experiments without dip.
Cell over_dip_cell(const PaperExperiment& experiment, const PaperSchedule& schedule) {
  const PaperSchedule* dip = experiment.find("dip");
  return dip == nullptr ? unknown_cell() : number_cell(schedule.seconds() / dip->seconds(), 3);
}

std::string text_of(const PaperReport& report) {
  std::string out = render_table(claims_table(report), Format::Table);
  constexpr double kReproduced = 0.05;
  std::string readings;
  for (const PaperFinding& finding : report.findings) {
    const std::optional<double> ratio = finding.ratio();
    if (!finding.claim.reading.empty() && (!ratio || std::abs(*ratio - 1.0) > kReproduced)) {
      readings += fmt::format("{}: {} ({}): {}\n", finding.claim.place, finding.claim.statement,
                              finding.claim.experiment, finding.claim.reading);
    }
  }
  out += readings.empty() ? "" : "\nWhere dipsim is off by more than 5 %:\n" + readings;
  for (const PaperExperiment& experiment : report.experiments) {
    out += fmt::format("\n{}: {}, {}\n\n", experiment.name, one_line(experiment.title),
                       experiment.trace);
    out += render_table(schedules_table(experiment), Format::Table);
    for (const std::string& warning : experiment.warnings) {
      out += "warning: " + one_line(warning) + '\n';
    }
  }
  return out;
}

ordered_json claim_json(const PaperFinding& finding) {
  const PaperClaim& claim = finding.claim;
  const std::optional<double> ratio = finding.ratio();
  ordered_json out;
  out["place"] = claim.place;
  out["statement"] = claim.statement;
  out["experiment"] = claim.experiment;
  out["quantity"] = name_of(claim.quantity);
  out["schedule"] = claim.schedule;
  out["baseline"] = claim.baseline.empty() ? ordered_json() : ordered_json(claim.baseline);
  out["iterations"] = iterations_of(claim);
  out["paper_low"] = claim.low;
  out["paper_high"] = claim.high;
  out["dipsim"] = finding.value ? ordered_json(*finding.value) : ordered_json();
  out["ratio"] = ratio ? ordered_json(*ratio) : ordered_json();
  out["fits"] = finding.fits ? ordered_json(*finding.fits) : ordered_json();
  out["reading"] = claim.reading;
  return out;
}

ordered_json experiment_json(const PaperExperiment& experiment) {
  ordered_json schedules = ordered_json::array();
  for (const PaperSchedule& schedule : experiment.schedules) {
    schedules.push_back({{"name", schedule.name},
                         {"variant", schedule.variant},
                         {"seconds", schedule.seconds()},
                         {"iteration_seconds", schedule.iteration_seconds},
                         {"mfu", schedule.mfu},
                         {"peak_memory_gib", to_gib(schedule.peak)},
                         {"fits", schedule.fits}});
  }
  ordered_json out;
  out["name"] = experiment.name;
  out["title"] = experiment.title;
  out["trace"] = experiment.trace;
  out["schedules"] = std::move(schedules);
  out["warnings"] = experiment.warnings;
  return out;
}

}  // namespace

std::string subject_of(const PaperClaim& claim) {
  const std::string schedule =
      claim.quantity == PaperQuantity::FastestSlice ? claim.schedule + "…" : claim.schedule;
  return claim.baseline.empty() ? schedule : schedule + " over " + claim.baseline;
}

std::string paper_number(const PaperClaim& claim) {
  const int decimals = decimals_of(claim.quantity);
  const std::string low = fixed(claim.low, decimals);
  const std::string high = fixed(claim.high, decimals);
  return low == high ? low : low + " to " + high;
}

Cell dipsim_cell(const PaperFinding& finding) {
  return finding.value ? number_cell(*finding.value, decimals_of(finding.claim.quantity))
                       : unknown_cell();
}

Table claims_table(const PaperReport& report) {
  Table table{.name = "claims",
              .columns = {{"place", "in the paper", ""},
                          {"statement", "statement", ""},
                          {"experiment", "experiment", ""},
                          {"subject", "schedules", ""},
                          {"iterations", "iterations", ""},
                          {"quantity", "quantity", ""},
                          {"paper", "paper", ""},
                          {"dipsim", "dipsim", ""},
                          {"ratio", "ratio", ""},
                          {"fits", "fits", ""}},
              .rows = {}};
  for (const PaperFinding& finding : report.findings) {
    const PaperClaim& claim = finding.claim;
    const std::optional<double> ratio = finding.ratio();
    const std::string unit(unit_of(claim.quantity));
    table.rows.push_back(
        {text_cell(claim.place), text_cell(claim.statement), text_cell(claim.experiment),
         text_cell(subject_of(claim)), text_cell(iterations_of(claim)),
         text_cell(std::string(name_of(claim.quantity)) + (unit.empty() ? "" : ", " + unit)),
         text_cell(paper_number(claim)), dipsim_cell(finding),
         ratio ? number_cell(*ratio, 3) : unknown_cell(),
         finding.fits ? yes_no_cell(*finding.fits) : unknown_cell()});
  }
  return table;
}

Table schedules_table(const PaperExperiment& experiment) {
  Table table{.name = "schedules",
              .columns = {{"schedule", "schedule", ""},
                          {"seconds", "iteration", "s"},
                          {"over_dip", "over dip", "×"},
                          {"mfu", "MFU", "%"},
                          {"peak_memory_gib", "peak", "GiB"},
                          {"fits", "fits", ""},
                          {"variant", "recompute", ""}},
              .rows = {}};
  for (const PaperSchedule& schedule : experiment.schedules) {
    table.rows.push_back({text_cell(schedule.name), number_cell(schedule.seconds(), 2),
                          over_dip_cell(experiment, schedule), percent_cell(schedule.mfu),
                          number_cell(to_gib(schedule.peak), 1), yes_no_cell(schedule.fits),
                          text_cell(schedule.variant)});
  }
  return table;
}

std::string paper_json(const PaperReport& report) {
  ordered_json document;
  document["schema_version"] = kResultSchemaVersion;
  document["claims"] = ordered_json::array();
  for (const PaperFinding& finding : report.findings) {
    document["claims"].push_back(claim_json(finding));
  }
  document["experiments"] = ordered_json::array();
  for (const PaperExperiment& experiment : report.experiments) {
    document["experiments"].push_back(experiment_json(experiment));
  }
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string render_paper(const PaperReport& report, Format format) {
  switch (format) {
    case Format::Json:
      return paper_json(report);
    case Format::Csv:
      return render_table(claims_table(report), Format::Csv);
    case Format::Markdown:
      return paper_page(report);
    case Format::Table:
      break;
  }
  return text_of(report);
}

}  // namespace dipsim::cli
