// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/shipped.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/text.hpp"

#include <algorithm>

namespace dipsim {

namespace fs = std::filesystem;

std::vector<std::string> shipped_names(std::string_view folder) {
  std::vector<std::string> names;
  const fs::path path = config_folder() / folder;
  if (!fs::is_directory(path)) {
    return names;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

fs::path shipped_file(std::string_view folder, std::string_view what,
                      const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) {
    return name_or_path;
  }
  const std::vector<std::string> names = shipped_names(folder);
  if (std::ranges::find(names, name_or_path) == names.end()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    fail_input("", unknown_name(what, name_or_path, known));
  }
  return config_folder() / folder / (name_or_path + ".json");
}

}  // namespace dipsim
