// SPDX-License-Identifier: Apache-2.0
// The dipsim program: parses the command line and turns errors into messages and exit codes.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim::cli {

namespace {

/// One line per subcommand, in the order of the help text.
constexpr std::array kCommands = {add_compare, add_simulate, add_plan,
                                  add_list,    add_describe, add_validate};

/// A program that reads our stdout must get JSON when it asked for JSON, whatever happened.
bool wants_json(std::span<char*> arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--format=json" ||
        (argument == "json" && i > 1 && std::string_view(arguments[i - 1]) == "--format")) {
      return true;
    }
  }
  return false;
}

int report(ErrorKind kind, const std::string& where, const std::string& message, bool json) {
  const int code = static_cast<int>(kind);
  fmt::print(stderr, "error: {}{}{}\n", where, where.empty() ? "" : ": ", message);
  if (json && !result_printed()) {
    const nlohmann::ordered_json out = {
        {"schema_version", 1},
        {"error",
         {{"kind", name_of(kind)}, {"exit_code", code}, {"message", message}, {"where", where}}}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  return code;
}

/// CLI11 answers a mistyped subcommand with "A subcommand is required".
void require_known_command(const CLI::App& app, std::span<char*> arguments) {
  if (arguments.size() < 2 || arguments[1][0] == '-') {
    return;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  if (std::ranges::find(names, arguments[1]) == names.end()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    fail_input("command line", unknown_name("command", arguments[1], known));
  }
}

int run(std::span<char*> arguments) {
  CLI::App app(
      "Predicts, compares and explains pipeline schedules for training large multimodal models.",
      "dipsim");
  app.set_version_flag("--version", DIPSIM_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  app.footer(
      "Exit codes: 0 done, 1 defect of dipsim, 2 bad input, 3 nothing fits, 4 the machine "
      "lacks\nsomething, 5 a --fail-if condition holds, 130 interrupted.");
  for (const auto add : kCommands) {
    add(app);
  }
  const bool json = wants_json(arguments);
  try {
    require_known_command(app, arguments);
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return 0;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return report(ErrorKind::Input, "command line", error.what(), json);
  } catch (const Error& error) {
    return report(error.kind(), error.where(), error.message(), json);
  } catch (const Interrupted&) {
    return kInterruptedExitCode;
  } catch (const std::bad_alloc&) {
    return report(ErrorKind::Environment, "", "out of memory; ask for less", json);
  } catch (const std::exception& error) {
    return report(ErrorKind::Internal, "", error.what(), json);
  }
}

}  // namespace

}  // namespace dipsim::cli

int main(int argc, char** argv) {
  // A reader that closes our stdout early must not cost the report: the write fails instead.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return dipsim::cli::run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (...) {
    return 1;  // the error could not even be printed
  }
}
