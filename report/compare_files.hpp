// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>
#include <vector>

namespace dipsim {

struct NamedFile {
  std::string name;
  std::string content;
};

/// Per schedule, the part of file names that stands for it: its name with only harmless
/// characters, all different.
std::vector<std::string> schedule_file_stems(const Comparison& comparison);

/// The reports of a comparison: result.json, iterations.csv, summary.md, report.html,
/// comparison.svg, and per schedule timeline_NAME.svg, memory_NAME.svg and NAME.trace.json where
/// its sample holds a timeline. Equal comparisons give equal bytes.
std::vector<NamedFile> comparison_files(const Comparison& comparison);

}  // namespace dipsim
