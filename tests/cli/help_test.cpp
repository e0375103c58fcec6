// SPDX-License-Identifier: Apache-2.0
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>

namespace dipsim::test {

TEST_CASE("the program answers --version and --help with exit code 0") {
  const TemporaryFolder folder;
  CHECK(run_program({"--version"}, folder.path()).exit_code == 0);
  const Outcome help = run_program({"--help"}, folder.path());
  CHECK(help.exit_code == 0);
  for (const char* command : {"compare", "simulate", "plan", "list", "describe", "validate"}) {
    CHECK(help.out.find(command) != std::string::npos);
    CHECK(run_program({command, "--help"}, folder.path()).exit_code == 0);
  }
}

}  // namespace dipsim::test
