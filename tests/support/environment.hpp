// SPDX-License-Identifier: Apache-2.0
// Where a test finds what lies outside its program. main.cpp sets the defaults.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace dipsim::test {

/// Root of this repository ($DIPSIM_SOURCE_DIR).
std::filesystem::path source_dir();

/// The dipsim program of this build ($DIPSIM_PROGRAM).
std::filesystem::path program();

/// Folder of reference data that is not part of the repository ($DIPSIM_SHARED_DATA, else
/// ../shared/data beside the repository); nothing where there is none.
std::optional<std::filesystem::path> shared_data();

/// Makes ctest list the running test case as skipped, by its name. Return from the test case right
/// after it: what has been checked before does not count.
void report_skipped(std::string_view reason);

/// An empty folder that is removed with everything in it when this object goes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder(TemporaryFolder&&) = delete;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dipsim::test
