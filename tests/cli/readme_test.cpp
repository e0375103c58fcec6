// SPDX-License-Identifier: Apache-2.0
// The README and the documents keep what they promise: every dipsim command in them runs and ends
// with the exit code that stands behind it, on the example files that the page itself shows, and
// every link between pages leads somewhere.
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim::test {

namespace {

namespace fs = std::filesystem;

/// A fenced block of a page.
struct Block {
  std::string language;            ///< behind the opening fence
  std::string file;                ///< of the comment `<!-- file: NAME -->` before it; else ""
  std::vector<std::string> lines;  ///< joined where they end in a backslash
};

struct Page {
  fs::path path;
  std::vector<Block> blocks;
  std::vector<std::string> prose;  ///< the lines outside of blocks
};

/// A command as the page shows it.
struct Command {
  std::string line;
  std::vector<std::string> arguments;
  int exit_code = 0;
};

Page read_page(const fs::path& path) {
  static const std::regex file_comment(R"(^<!-- file: (\S+) -->$)");
  Page page{.path = path, .blocks = {}, .prose = {}};
  std::istringstream in(read_file(path));
  std::string file;
  bool inside = false;
  bool joins = false;
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (line.starts_with("```")) {
      if (!inside) {
        page.blocks.push_back({.language = line.substr(3), .file = file, .lines = {}});
      }
      inside = !inside;
      joins = false;
      file.clear();
    } else if (inside) {
      std::vector<std::string>& lines = page.blocks.back().lines;
      const bool continues = page.blocks.back().language == "sh" && line.ends_with('\\');
      line.resize(line.size() - (continues ? 1 : 0));
      if (joins) {
        lines.back() += line;
      } else {
        lines.push_back(line);
      }
      joins = continues;
    } else if (std::regex_match(line, match, file_comment)) {
      file = match[1];
    } else if (!line.empty()) {
      file.clear();
      page.prose.push_back(line);
    }
  }
  if (inside) {
    throw std::runtime_error(path.string() + ": the last block is not closed");
  }
  return page;
}

/// The README, then the documents by name.
std::vector<Page> all_pages() {
  std::vector<fs::path> documents;
  for (const fs::directory_entry& entry : fs::directory_iterator(source_dir() / "docs")) {
    if (entry.path().extension() == ".md") {
      documents.push_back(entry.path());
    }
  }
  std::ranges::sort(documents);
  std::vector<Page> pages = {read_page(source_dir() / "README.md")};
  for (const fs::path& document : documents) {
    pages.push_back(read_page(document));
  }
  return pages;
}

/// Splits a line as a shell would: quotes group, a # that begins a word begins a comment.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    } else if (c == ' ') {
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else if (std::string_view("|<>;&$*`\\").find(c) != std::string_view::npos) {
      throw std::runtime_error("not a plain command: " + std::string(line));
    } else {
      if (!in_word) {
        words.emplace_back();
        in_word = true;
      }
      if (c == '"' || c == '\'') {
        quote = c;
      } else {
        words.back() += c;
      }
    }
  }
  return words;
}

std::vector<Command> commands_of(const Page& page) {
  static const std::regex exit_comment(R"(# exit ([0-9]+)\s*$)");
  std::vector<Command> commands;
  for (const Block& block : page.blocks) {
    for (const std::string& line : block.lines) {
      if (block.language != "sh" ||
          !(line.starts_with("build/release/dipsim ") || line.starts_with("dipsim "))) {
        continue;
      }
      std::vector<std::string> words = words_of(line);
      std::smatch match;
      commands.push_back(
          {.line = line,
           .arguments = {words.begin() + 1, words.end()},
           .exit_code = std::regex_search(line, match, exit_comment) ? std::stoi(match[1]) : 0});
    }
  }
  return commands;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

/// Whether a command of the page, or another example file, names this file.
bool is_used(const Page& page, const std::string& file) {
  const bool in_command = std::ranges::any_of(commands_of(page), [&](const Command& command) {
    return std::ranges::find(command.arguments, file) != command.arguments.end();
  });
  return in_command || std::ranges::any_of(page.blocks, [&](const Block& block) {
           return !block.file.empty() && block.file != file &&
                  text_of(block.lines).find('"' + file + '"') != std::string::npos;
         });
}

/// The anchor that a heading gets: lower case, spaces as hyphens, other punctuation dropped.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading.substr(std::min(heading.find_first_not_of("# "), heading.size()))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const Page& page) {
  std::set<std::string> anchors;
  for (const std::string& line : page.prose) {
    if (line.starts_with('#')) {
      anchors.insert(anchor_of(line));
    }
  }
  return anchors;
}

/// Targets of the links and pictures of a page, those to other sites left out.
std::vector<std::string> local_links(const Page& page) {
  static const std::regex code(R"(`[^`]*`)");
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> targets;
  for (const std::string& line : page.prose) {
    const std::string text = std::regex_replace(line, code, "code");
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find("://") == std::string::npos) {
        targets.push_back(target);
      }
    }
  }
  return targets;
}

}  // namespace

TEST_CASE("every command of the README and the documents ends as the page says") {
  std::size_t commands = 0;
  for (const Page& page : all_pages()) {
    CAPTURE(page.path.filename().string());
    const TemporaryFolder folder;
    fs::create_directory_symlink(source_dir() / "configs", folder.path() / "configs");
    for (const Block& block : page.blocks) {
      if (!block.file.empty()) {
        write_file(folder.path() / block.file, text_of(block.lines));
      }
    }
    for (const Command& command : commands_of(page)) {
      ++commands;
      CAPTURE(command.line);
      const Outcome outcome = run_program(command.arguments, folder.path());
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == command.exit_code);
    }
  }
  CHECK(commands >= 20);
}

TEST_CASE("the quick start of the README prints what the README shows") {
  const TemporaryFolder folder;
  fs::create_directory_symlink(source_dir() / "configs", folder.path() / "configs");
  const Outcome outcome =
      run_program({"compare", "configs/experiments/quickstart.json", "--quiet"}, folder.path());
  REQUIRE(outcome.exit_code == 0);
  const Page page = read_page(source_dir() / "README.md");
  const auto shown = std::ranges::find(page.blocks, "text", &Block::language);
  REQUIRE(shown != page.blocks.end());
  CHECK(text_of(shown->lines) == outcome.out);
}

TEST_CASE("every example file of a page is tried by a command of that page") {
  std::size_t files = 0;
  for (const Page& page : all_pages()) {
    for (const Block& block : page.blocks) {
      if (!block.file.empty()) {
        ++files;
        CAPTURE(page.path.filename().string());
        CAPTURE(block.file);
        CHECK(is_used(page, block.file));
      }
    }
  }
  CHECK(files >= 4);
}

TEST_CASE("every link between the pages leads to a file, and to a heading where it names one") {
  std::size_t links = 0;
  for (const Page& page : all_pages()) {
    for (const std::string& target : local_links(page)) {
      ++links;
      CAPTURE(page.path.filename().string());
      CAPTURE(target);
      const std::size_t hash = target.find('#');
      const std::string file = target.substr(0, hash);
      const fs::path path = file.empty() ? page.path : page.path.parent_path() / file;
      CHECK(fs::exists(path));
      if (hash != std::string::npos && fs::exists(path)) {
        CHECK(anchors_of(read_page(path)).contains(target.substr(hash + 1)));
      }
    }
  }
  CHECK(links >= 20);
}

TEST_CASE("the words of a shown command are those that a shell would make") {
  CHECK(words_of("dipsim a 'b c'  \"d\" e# # exit 5") ==
        std::vector<std::string>{"dipsim", "a", "b c", "d", "e#"});
  CHECK(words_of(R"(dipsim --fail-if '"dip".mfu < 0.9')") ==
        std::vector<std::string>{"dipsim", "--fail-if", R"("dip".mfu < 0.9)"});
  CHECK_THROWS(words_of("dipsim list models | less"));
}

}  // namespace dipsim::test
