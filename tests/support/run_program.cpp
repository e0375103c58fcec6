// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_program.hpp"

#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dipsim::test {

namespace {

/// In the child: redirects, changes folder, becomes the program. Never returns.
[[noreturn]] void become(std::vector<char*>& arguments, const std::string& folder,
                         const std::string& out, const std::string& err) {
  const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out_file < 0 || err_file < 0 || ::dup2(out_file, STDOUT_FILENO) < 0 ||
      ::dup2(err_file, STDERR_FILENO) < 0 || ::chdir(folder.c_str()) != 0) {
    ::_exit(127);
  }
  ::execv(arguments.front(), arguments.data());
  ::_exit(127);
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                    const std::string& out) {
  const TemporaryFolder captured;
  const std::string captured_out = captured.path() / "out";
  const std::string err = captured.path() / "err";
  std::vector<std::string> words = {program().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    become(pointers, folder.string(), out.empty() ? captured_out : out, err);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = out.empty() ? read_file(captured_out) : "";
  outcome.err = read_file(err);
  outcome.peak_kib = usage.ru_maxrss;
  return outcome;
}

}  // namespace dipsim::test
