// SPDX-License-Identifier: Apache-2.0
// Which folder may include which: read from the #include lines, because headers alone need no
// linking.

#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// The folders that make a layer each, and the layers that it may include besides itself.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::map<std::string, std::set<std::string>> table = [] {
    std::map<std::string, std::set<std::string>> t;
    t["sim/core"] = {};
    t["sim/cluster"] = {"sim/core"};
    t["sim/graph"] = {"sim/cluster", "sim/core"};
    t["sim/engine"] = {"sim/graph", "sim/cluster", "sim/core"};
    t["models"] = {"sim/cluster", "sim/graph", "sim/core"};
    t["traces"] = {"models", "sim/core"};
    t["schedulers"] = {"sim/graph", "sim/core"};
    t["report"] = {"sim/graph", "sim/core"};
    t["hw"] = {"models", "sim/cluster", "sim/graph", "sim/core"};
    t["experiment"] = {"schedulers",  "traces",    "models",  "sim/engine",
                       "sim/cluster", "sim/graph", "sim/core"};
    t["validate"] = t["experiment"];
    t["validate"].insert({"experiment", "hw"});
    t["cli"] = t["validate"];
    t["cli"].insert({"validate", "report"});
    return t;
  }();
  return table;
}

/// The layer that a path from the root of the repository lies in; "" for none.
std::string layer_of(std::string_view path) {
  for (const auto& [layer, uses] : allowed()) {
    if (path.starts_with(layer + "/")) {
      return layer;
    }
  }
  return "";
}

bool is_header(const fs::path& path) {
  return path.extension() == ".hpp" || path.extension() == ".cuh";
}

bool is_source(const fs::path& path) {
  return path.extension() == ".cpp" || path.extension() == ".cu";
}

/// Third-party headers that cost seconds per file that sees them: they stay in .cpp files.
bool is_heavy(std::string_view include) {
  if (include == "nlohmann/json_fwd.hpp") {
    return false;
  }
  return std::ranges::any_of(std::vector<std::string_view>{"nlohmann/", "CLI/", "boost/", "Eigen/",
                                                           "unsupported/Eigen/", "fmt/"},
                             [&](std::string_view prefix) { return include.starts_with(prefix); });
}

/// What is wrong with one #include line of `file`; "" when nothing is.
std::string objection(const std::string& file, bool quoted, const std::string& include) {
  if (is_header(file) && is_heavy(include)) {
    return "belongs in a .cpp file, not in a header";
  }
  const std::string from = layer_of(file);
  const std::string to = layer_of(include);
  if (to.empty()) {
    return quoted ? "quotes are for own headers, from the root of the repository" : "";
  }
  if (from != to && !allowed().at(from).contains(to)) {
    return from + " may not use " + to;
  }
  return "";
}

struct Findings {
  int files = 0;
  std::vector<std::string> violations;  ///< "file:line: what"
};

Findings check_tree(const fs::path& root) {
  static const std::regex line_pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  Findings findings;
  std::vector<fs::path> files;
  std::set<std::string> tops;
  for (const auto& [layer, uses] : allowed()) {
    tops.insert(layer.substr(0, layer.find('/')));
  }
  for (const std::string& top : tops) {
    if (!fs::is_directory(root / top)) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.is_regular_file() && (is_header(entry.path()) || is_source(entry.path()))) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  for (const fs::path& path : files) {
    const std::string file = path.lexically_relative(root).generic_string();
    std::ifstream in(path);
    if (!in) {
      throw std::runtime_error("can't read " + path.string());
    }
    ++findings.files;
    if (layer_of(file).empty()) {
      findings.violations.push_back(file +
                                    ":1: lies in no layer of tests/layering/layering_test.cpp");
      continue;
    }
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch match;
      if (!std::regex_match(line, match, line_pattern)) {
        continue;
      }
      const std::string include = match[2];
      const std::string wrong = objection(file, match[1] == "\"", include);
      if (!wrong.empty()) {
        std::ostringstream text;
        text << file << ':' << number << ": " << include << ": " << wrong;
        findings.violations.push_back(text.str());
      }
    }
  }
  return findings;
}

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("every #include of the repository follows the arrows between folders") {
  const Findings findings = check_tree(dipsim::test::source_dir());
  CHECK(findings.files > 0);
  for (const std::string& violation : findings.violations) {
    FAIL_CHECK(violation);
  }
}

TEST_CASE("a forbidden arrow, a heavy header and a wrong path are named with file and line") {
  const dipsim::test::TemporaryFolder folder;
  const fs::path& root = folder.path();
  write(root / "schedulers/dip/order.cpp",
        "#include <vector>\n#include \"sim/graph/graph.hpp\"\n#include \"models/cost.hpp\"\n");
  write(root / "sim/cluster/gpu.hpp",
        "#include \"nlohmann/json_fwd.hpp\"\n  #  include <fmt/format.h> // no\n");
  write(root / "sim/engine/engine.cpp", "#include <fmt/format.h>\n#include \"engine.hpp\"\n");
  write(root / "sim/new/x.cpp", "");
  write(root / "cli/main.cpp",
        "#include <CLI/CLI.hpp>\n#include \"report/html.hpp\"\n// #include \"tests/x.hpp\"\n");
  write(root / "report/html.cpp",
        "#include \"tests/support/environment.hpp\"\n#include <models/cost.hpp>\n");

  const Findings findings = check_tree(root);
  CHECK(findings.files == 6);
  const std::string quoted = "quotes are for own headers, from the root of the repository";
  const std::vector<std::string> expected = {
      "report/html.cpp:1: tests/support/environment.hpp: " + quoted,
      "report/html.cpp:2: models/cost.hpp: report may not use models",
      "schedulers/dip/order.cpp:3: models/cost.hpp: schedulers may not use models",
      "sim/cluster/gpu.hpp:1: nlohmann/json_fwd.hpp: " + quoted,
      "sim/cluster/gpu.hpp:2: fmt/format.h: belongs in a .cpp file, not in a header",
      "sim/engine/engine.cpp:2: engine.hpp: " + quoted,
      "sim/new/x.cpp:1: lies in no layer of tests/layering/layering_test.cpp",
  };
  REQUIRE(findings.violations.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(findings.violations[i] == expected[i]);
  }
}

TEST_CASE("no two folders may use each other") {
  for (const auto& [layer, uses] : allowed()) {
    for (const std::string& used : uses) {
      REQUIRE(allowed().contains(used));
      CHECK_MESSAGE(!allowed().at(used).contains(layer), layer << " and " << used);
    }
  }
}
