// SPDX-License-Identifier: Apache-2.0
#include "sim/core/files.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace dipsim {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path, std::size_t limit_bytes) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) {
    fail_input(path.string(), "no such file");
  }
  if (!fs::is_regular_file(status)) {
    fail_input(path.string(), "not a regular file");
  }
  const auto size = fs::file_size(path, code);
  if (code || size > limit_bytes) {
    fail_input(path.string(), fmt::format("{} bytes; at most {} can be read", size, limit_bytes));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    fail_input(path.string(), "can't be read");
  }
  return text;
}

namespace {

void write_plain(const fs::path& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    std::error_code ignored;
    fs::remove(path, ignored);
    fail_environment(path.string(), "can't be written: no permission or no space left");
  }
}

/// Makes the folder and its missing parents; returns those that were made, deepest first.
std::vector<fs::path> make_folder(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code code;
  for (fs::path at = path; !at.empty() && !fs::exists(at, code); at = at.parent_path()) {
    missing.push_back(at);
    if (at == at.parent_path()) {
      break;
    }
  }
  fs::create_directories(path, code);
  if (code) {
    fail_environment(path.string(), "folder can't be made: " + code.message());
  }
  return missing;
}

std::string partial_name(const fs::path& path) {
  return fmt::format(".{}.{}.partial", path.filename().string(), ::getpid());
}

}  // namespace

void write_file(const fs::path& path, std::string_view content) {
  if (path.has_parent_path()) {
    static_cast<void>(make_folder(path.parent_path()));
  }
  std::error_code code;
  if (fs::exists(path, code) && !fs::is_regular_file(path, code)) {
    if (fs::is_directory(path, code)) {
      fail_input(path.string(), "is a folder; name a file");
    }
    write_plain(path, content);  // a device or a pipe must not be replaced by a file
    return;
  }
  // A link stays a link: what it points to is replaced.
  const fs::path target = fs::is_symlink(path, code) ? fs::weakly_canonical(path, code) : path;
  const fs::path partial = target.parent_path() / partial_name(target);
  write_plain(partial, content);
  fs::rename(partial, target, code);
  if (code) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    fail_environment(path.string(), "can't be written: " + code.message());
  }
}

StagedFolder::StagedFolder(fs::path target)
    : target_(fs::absolute(std::move(target)).lexically_normal()) {
  if (!target_.has_filename()) {  // "out/" names the folder "out"
    target_ = target_.parent_path();
  }
  std::error_code code;
  const bool exists = fs::exists(target_, code);
  if (exists && !fs::is_directory(target_, code)) {
    fail_input(target_.string(), "exists and is no folder; name another --out");
  }
  // Inside an existing target: it may be the root of a file system of its own.
  staging_ = (exists ? target_ : target_.parent_path()) / partial_name(target_);
  made_ = make_folder(staging_);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  for (const fs::path& folder : made_) {
    fs::remove(folder, ignored);  // parents that hold something by now stay
  }
}

void StagedFolder::add(std::string_view name, std::string_view content) const {
  write_plain(staging_ / name, content);
}

void StagedFolder::commit() {
  std::error_code code;
  if (!fs::exists(target_, code)) {
    fs::rename(staging_, target_, code);
    if (code) {
      fail_environment(target_.string(), "can't be written: " + code.message());
    }
    made_.clear();
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(staging_)) {
    fs::rename(entry.path(), target_ / entry.path().filename(), code);
    if (code) {
      fail_environment((target_ / entry.path().filename()).string(),
                       "can't be written: " + code.message());
    }
  }
}

fs::path config_folder() {
  if (const char* named = std::getenv("DIPSIM_CONFIGS")) {  // NOLINT(concurrency-mt-unsafe)
    if (!fs::is_directory(named)) {
      fail_environment(named, "is no folder; DIPSIM_CONFIGS must name the configs folder");
    }
    return named;
  }
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (!code) {
    const fs::path installed = program.parent_path().parent_path() / "share/dipsim/configs";
    if (fs::is_directory(installed)) {
      return installed;
    }
  }
  if (fs::is_directory(DIPSIM_CONFIG_DIR)) {
    return DIPSIM_CONFIG_DIR;
  }
  fail_environment(DIPSIM_CONFIG_DIR,
                   "the configs folder is gone; set DIPSIM_CONFIGS to where it lies");
}

}  // namespace dipsim
