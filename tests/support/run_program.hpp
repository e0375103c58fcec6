// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dipsim::test {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
  long peak_kib = 0;  ///< largest resident set
};

/// Runs the dipsim program of this build in `folder` and waits for it. `out`: where its stdout goes
/// instead of into Outcome::out.
Outcome run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                    const std::string& out = "");

}  // namespace dipsim::test
