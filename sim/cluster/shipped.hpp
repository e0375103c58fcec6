// SPDX-License-Identifier: Apache-2.0
// Finds the files below configs/.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// Names of the files configs/FOLDER/NAME.json, in alphabetical order.
std::vector<std::string> shipped_names(std::string_view folder);

/// configs/FOLDER/NAME.json for a shipped name; a text with a slash or that ends in ".json" is a
/// path already. Throws Input, naming the nearest, when `what` ("cluster") has no such name.
std::filesystem::path shipped_file(std::string_view folder, std::string_view what,
                                   const std::string& name_or_path);

}  // namespace dipsim
