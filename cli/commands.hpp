// SPDX-License-Identifier: Apache-2.0
// The subcommands: each file adds one to the program; main.cpp holds the table.
#pragma once

#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace dipsim::cli {

/// Options, help text and callback of one subcommand. A callback throws Error, or Interrupted.
void add_compare(CLI::App& app);
void add_simulate(CLI::App& app);
void add_plan(CLI::App& app);
void add_list(CLI::App& app);
void add_describe(CLI::App& app);
void add_validate(CLI::App& app);

/// Thrown after Ctrl-C once everything finished has been kept; exit code 130 as shells expect.
struct Interrupted {};

inline constexpr int kInterruptedExitCode = 130;

}  // namespace dipsim::cli
