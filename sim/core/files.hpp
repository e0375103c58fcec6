// SPDX-License-Identifier: Apache-2.0
// Whole files: read at once, written whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// The whole text of a regular file. Throws Input when it is missing, no regular file, unreadable
/// or larger than `limit_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::size_t limit_bytes = std::size_t{1} << 30U);

/// Writes beside the target and renames, so that a reader sees the old file or the whole new one.
/// Missing parent folders are created. Devices and pipes are written in place. Throws Environment
/// when the disk refuses.
void write_file(const std::filesystem::path& path, std::string_view content);

/// A folder that appears whole or not at all: files are written into a hidden folder nearby, and
/// commit() moves them into place. Without commit() nothing stays behind.
class StagedFolder {
 public:
  /// Throws Environment when the folder can't be made, Input when `target` exists and is no folder.
  explicit StagedFolder(std::filesystem::path target);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder();

  /// Adds one file; `name` has no folder part.
  void add(std::string_view name, std::string_view content) const;

  /// Moves every file into the target, replacing files of the same name; other files there stay.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  std::vector<std::filesystem::path> made_;  ///< folders that did not exist before, deepest first
};

/// Folder of the shipped configs/: $DIPSIM_CONFIGS, else beside the installed program, else the
/// source tree that this program was built from. Throws Environment when none exists.
std::filesystem::path config_folder();

}  // namespace dipsim
