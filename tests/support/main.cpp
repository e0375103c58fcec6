// SPDX-License-Identifier: Apache-2.0
// main() of every test program, and the environment that tests rely on, whether ctest starts them
// or a person does.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace {

namespace fs = std::filesystem;

/// Whether the run has selected no test case: a name that ctest could not pass on would pass as
/// an empty run.
bool selected_nothing = false;

/// Listens to doctest for the number of selected test cases.
struct SelectionListener : doctest::IReporter {
  explicit SelectionListener(const doctest::ContextOptions& /*options*/) {}

  void report_query(const doctest::QueryData& /*in*/) override {}

  void test_run_start() override {}

  void test_run_end(const doctest::TestRunStats& stats) override {
    selected_nothing = stats.numTestCasesPassingFilters == 0;
  }

  void test_case_start(const doctest::TestCaseData& /*in*/) override {}

  void test_case_reenter(const doctest::TestCaseData& /*in*/) override {}

  void test_case_end(const doctest::CurrentTestCaseStats& /*in*/) override {}

  void test_case_exception(const doctest::TestCaseException& /*in*/) override {}

  void subcase_start(const doctest::SubcaseSignature& /*in*/) override {}

  void subcase_end() override {}

  void log_assert(const doctest::AssertData& /*in*/) override {}

  void log_message(const doctest::MessageData& /*in*/) override {}

  void test_case_skipped(const doctest::TestCaseData& /*in*/) override {}
};

REGISTER_LISTENER("selection", 1, SelectionListener);

// What the caller has set wins.
void set_default(const char* name, const char* value) {
  setenv(name, value, /*overwrite=*/0);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path source_dir = DIPSIM_TEST_SOURCE_DIR;
  set_default("RC_PARAMS", "seed=20261130");
  set_default("DIPSIM_SOURCE_DIR", source_dir.c_str());
  set_default("DIPSIM_PROGRAM", DIPSIM_TEST_PROGRAM);
  const fs::path data = (source_dir / "../shared/data").lexically_normal();
  if (std::error_code ignored; fs::is_directory(data, ignored)) {
    set_default("DIPSIM_SHARED_DATA", data.c_str());
  }

  const int code = doctest::Context(argc, argv).run();
  if (selected_nothing) {
    std::cerr << "error: no test case is selected\n";
    return 1;
  }
  return code;
}
