// SPDX-License-Identifier: Apache-2.0
#include "tests/support/environment.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace dipsim::test {

namespace fs = std::filesystem;

namespace {

fs::path required(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it later
  if (value == nullptr) {
    throw std::runtime_error(std::string("the environment variable is not set: ") + name);
  }
  return value;
}

}  // namespace

fs::path source_dir() { return required("DIPSIM_SOURCE_DIR"); }

fs::path program() { return required("DIPSIM_PROGRAM"); }

std::optional<fs::path> shared_data() {
  const char* value = std::getenv("DIPSIM_SHARED_DATA");  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr || !fs::is_directory(value)) {
    return std::nullopt;
  }
  return value;
}

void report_skipped(std::string_view reason) {
  // ctest looks for the first word: tests/CMakeLists.txt.
  std::cout << "DIPSIM_TEST_SKIPPED: " << reason << '\n' << std::flush;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "dipsim-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("can't make a temporary folder: " + name);
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dipsim::test
