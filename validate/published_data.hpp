// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/csv_table.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace dipsim {

/// Where tables of published measurements lie: a folder that the user names, and the small tables
/// that dipsim ships.
class PublishedData {
 public:
  /// Only what is shipped.
  PublishedData() = default;
  /// Throws Input when `folder` is none.
  explicit PublishedData(std::filesystem::path folder);

  /// NAME.csv of the folder, else the shipped one; nothing where neither is there. Throws Input on
  /// a malformed table.
  [[nodiscard]] std::optional<CsvTable> table(const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

/// Folder of the shipped tables: $DIPSIM_PUBLISHED, else beside the shipped configs, else
/// validate/published of the source tree.
std::filesystem::path shipped_published_folder();

}  // namespace dipsim
