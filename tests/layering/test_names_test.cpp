// SPDX-License-Identifier: Apache-2.0
// CTest keeps test names in CMake lists: a bracket or a semicolon in one of them hides the others.
#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

TEST_CASE("no name of a test case contains what a CMake list splits at") {
  namespace fs = std::filesystem;
  const std::regex name("TEST_CASE(?:_TEMPLATE)?\\(\\s*\"((?:[^\"\\\\]|\\\\.)*)\"");
  int names = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(dipsim::test::source_dir() / "tests")) {
    if (entry.path().extension() != ".cpp") {
      continue;
    }
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (auto at = std::sregex_iterator(text.begin(), text.end(), name);
         at != std::sregex_iterator(); ++at) {
      ++names;
      CAPTURE(entry.path().string());
      CAPTURE(at->str(1));
      CHECK(at->str(1).find_first_of("[];") == std::string::npos);
    }
  }
  CHECK(names > 100);
}
