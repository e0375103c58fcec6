// SPDX-License-Identifier: Apache-2.0
#include "report/compare_files.hpp"

#include "report/chrome_trace.hpp"
#include "report/csv.hpp"
#include "report/html.hpp"
#include "report/json.hpp"
#include "report/pictures.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <set>

namespace dipsim {

std::vector<std::string> schedule_file_stems(const Comparison& comparison) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const ScheduleResult& schedule : comparison.schedules) {
    const std::string wanted = file_stem(schedule.name);
    std::string stem = wanted;
    for (int number = 2; !taken.insert(stem).second; ++number) {
      stem = fmt::format("{}_{}", wanted, number);
    }
    stems.push_back(stem);
  }
  return stems;
}

std::vector<NamedFile> comparison_files(const Comparison& comparison) {
  const Pictures pictures = draw_pictures(comparison);
  std::vector<NamedFile> files = {{"result.json", result_json(comparison)},
                                  {"iterations.csv", iterations_csv(comparison)},
                                  {"summary.md", summary_markdown(comparison)},
                                  {"report.html", report_html(comparison, pictures)},
                                  {"comparison.svg", pictures.comparison}};
  const std::vector<std::string> stems = schedule_file_stems(comparison);
  for (std::size_t i = 0; i < stems.size(); ++i) {
    if (pictures.timeline[i].empty()) {
      continue;
    }
    files.push_back({fmt::format("timeline_{}.svg", stems[i]), pictures.timeline[i]});
    if (!pictures.memory[i].empty()) {
      files.push_back({fmt::format("memory_{}.svg", stems[i]), pictures.memory[i]});
    }
    files.push_back({stems[i] + ".trace.json", chrome_trace(comparison.schedules[i].sample)});
  }
  return files;
}

}  // namespace dipsim
