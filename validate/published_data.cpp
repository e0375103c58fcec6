// SPDX-License-Identifier: Apache-2.0
#include "validate/published_data.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"

#include <cstdlib>
#include <system_error>
#include <utility>

namespace dipsim {

namespace fs = std::filesystem;

PublishedData::PublishedData(fs::path folder) : folder_(std::move(folder)) {
  std::error_code code;
  if (!fs::is_directory(folder_, code)) {
    fail_input(folder_.string(), "is no folder; give the one that holds the tables (NAME.csv)");
  }
}

std::optional<CsvTable> PublishedData::table(const std::string& name) const {
  for (const fs::path& folder : {folder_, shipped_published_folder()}) {
    const fs::path path = folder / (name + ".csv");
    std::error_code code;
    if (!folder.empty() && fs::exists(path, code)) {
      return CsvTable::from_file(path);
    }
  }
  return std::nullopt;
}

fs::path shipped_published_folder() {
  if (const char* named = std::getenv("DIPSIM_PUBLISHED")) {  // NOLINT(concurrency-mt-unsafe)
    std::error_code code;
    if (!fs::is_directory(named, code)) {
      fail_environment(named, "is no folder; DIPSIM_PUBLISHED must name the folder of the tables");
    }
    return named;
  }
  const fs::path installed = config_folder().parent_path() / "published";
  std::error_code code;
  return fs::is_directory(installed, code) ? installed : fs::path(DIPSIM_PUBLISHED_DIR);
}

}  // namespace dipsim
