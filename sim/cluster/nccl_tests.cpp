// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests (github:NVIDIA/nccl-tests src/util.cu writes both forms).
#include "sim/cluster/measured.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

namespace dipsim {

namespace {

constexpr double kMaxBytes = 1e15;
constexpr double kMaxMicroseconds = 1e12;

/// Programs of nccl-tests and what they run.
constexpr std::array<std::pair<std::string_view, std::optional<CollectiveKind>>, 6> kPrograms = {
    {{"all_gather", CollectiveKind::AllGather},
     {"reduce_scatter", CollectiveKind::ReduceScatter},
     {"all_reduce", CollectiveKind::AllReduce},
     {"broadcast", CollectiveKind::Broadcast},
     {"alltoall", CollectiveKind::AllToAll},
     {"sendrecv", std::nullopt}}};

/// Takes the collective from a command such as "./build/all_reduce_perf".
void take_program(std::string_view command, NcclTestsFile& out) {
  const std::size_t folder = command.rfind('/');
  const std::string_view program =
      folder == std::string_view::npos ? command : command.substr(folder + 1);
  for (const auto& [name, kind] : kPrograms) {
    if (program == std::string(name) + "_perf" || program == name) {
      out.names_collective = true;
      out.kind = kind;
    }
  }
}

/// Ranks and the hosts that they run on.
class Devices {
 public:
  void add(std::string_view host) {
    ++ranks_;
    hosts_.emplace(host);
  }

  void put(NcclTestsFile& out) const {
    if (ranks_ > 0) {
      out.members = ranks_;
      out.nodes = static_cast<int>(hosts_.size());
    }
  }

 private:
  int ranks_ = 0;
  std::set<std::string> hosts_;
};

struct Word {
  std::string_view text;
  int column = 0;
};

std::vector<Word> words_of(std::string_view line) {
  constexpr std::string_view space = " \t\r";
  std::vector<Word> words;
  for (std::size_t i = line.find_first_not_of(space); i != std::string_view::npos;
       i = line.find_first_not_of(space, i)) {
    const std::size_t end = std::min(line.find_first_of(space, i), line.size());
    words.push_back({line.substr(i, end - i), static_cast<int>(i) + 1});
    i = end;
  }
  return words;
}

class TextReader {
 public:
  TextReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  NcclTestsFile read() {
    for (const std::string_view line : split(text_, '\n')) {
      ++line_;
      width_ = static_cast<int>(line.size());
      const std::vector<Word> words = words_of(line);
      if (words.empty() || line.find("NCCL INFO") != std::string_view::npos ||
          line.starts_with("NCCL version")) {
        continue;
      }
      words.front().text.starts_with('#') ? comment(words) : row(words);
    }
    if (out_.points.empty()) {
      fail(1, "no row of measurements; this is no output of nccl-tests");
    }
    devices_.put(out_);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(int column, const std::string& message) const {
    fail_input(fmt::format("{}:{}:{}", file_, line_, column), message);
  }

  /// The header of the table, "# Rank 0 … on HOST device …", "# Collective test starting: NAME".
  void comment(const std::vector<Word>& words) {
    const auto at = [&](std::size_t i) { return i < words.size() ? words[i].text : ""; };
    if (at(1) == "size" && at(2) == "count") {
      time_ = 0;
      for (std::size_t i = 1; i < words.size() && time_ == 0; ++i) {
        time_ = words[i].text == "time" || words[i].text == "cputime" ? i - 1 : 0;
      }
    } else if (at(1) == "Rank") {
      const auto on = std::ranges::find(words, "on", &Word::text);
      devices_.add(on == words.end() || on + 1 == words.end() ? "" : (on + 1)->text);
    } else if (at(1) == "Collective" && at(3) == "starting:") {
      take_program(at(4), out_);
    }
  }

  void row(const std::vector<Word>& words) {
    if (time_ == 0) {
      fail(words.front().column, "a row before the header (# size count … time algbw busbw)");
    }
    if (words.size() < time_ + 3) {
      fail(width_ + 1, fmt::format("{} cells where time, algbw and busbw end at {}; is the file "
                                   "cut off?",
                                   words.size(), time_ + 3));
    }
    const double bytes = number(words[0], "size", 0.0, kMaxBytes);
    const double us = number(words[time_], "time", 0.0, kMaxMicroseconds);
    if (bytes == 0.0) {
      return;  // sizes below one element per rank
    }
    if (us == 0.0) {
      fail(words[time_].column, "a time of 0");
    }
    if (!out_.points.empty() && bytes <= out_.points.back().bytes) {
      fail(words[0].column, "sizes must grow; give one file per run and data type");
    }
    out_.points.push_back({bytes, us});
  }

  double number(const Word& word, std::string_view what, double low, double high) const {
    double value = 0.0;
    const char* const end = word.text.data() + word.text.size();
    const auto [stop, error] = std::from_chars(word.text.data(), end, value);
    if (error != std::errc{} || stop != end || !(low <= value && value <= high)) {
      fail(word.column, fmt::format("{} \"{}\" is no number from {} to {}", what,
                                    shortened(word.text), shortest(low), shortest(high)));
    }
    return value;
  }

  std::string_view text_;
  const std::string& file_;
  int line_ = 0;
  int width_ = 0;
  std::size_t time_ = 0;  ///< column of the out-of-place time; 0: no header yet
  Devices devices_;
  NcclTestsFile out_;
};

/// Files of other versions may hold more keys: only those that are needed are asked for.
class JsonReader {
 public:
  NcclTestsFile read(const JsonValue& root) {
    JsonObject object = root.object();
    if (const auto args = object.find("args"); args && !args->items().empty()) {
      take_program(args->items().front().text(), out_);
    }
    JsonObject config = object.at("config").object();
    if (const auto devices = config.find("devices")) {
      Devices found;
      for (const JsonValue& device : devices->items()) {
        found.add(device.object().at("hostname").text());
      }
      found.put(out_);
    }
    const JsonValue results = object.at("results");
    for (const JsonValue& result : results.items()) {
      add(result);
    }
    if (out_.points.empty()) {
      results.fail("holds no measurement");
    }
    return std::move(out_);
  }

 private:
  void add(const JsonValue& result) {
    JsonObject row = result.object();
    const JsonValue size = row.at("size");
    const double bytes = size.number(0.0, kMaxBytes);
    const JsonValue placed = row.at("out_of_place");
    if (bytes == 0.0 || !placed.is_object()) {
      return;  // nothing was sent, or only the in-place run was made
    }
    JsonObject times = placed.object();
    const auto cpu = times.find("cpu_time");
    const double us = (cpu ? *cpu : times.at("time"))
                          .number(std::numeric_limits<double>::min(), kMaxMicroseconds);
    if (!out_.points.empty() && bytes <= out_.points.back().bytes) {
      size.fail("sizes must grow; give one file per run and data type");
    }
    out_.points.push_back({bytes, us});
  }

  NcclTestsFile out_;
};

}  // namespace

NcclTestsFile read_nccl_tests(std::string_view text, const std::string& file) {
  if (text.starts_with('{')) {
    const JsonDocument document(text, file);
    return JsonReader().read(document.root());
  }
  return TextReader(text, file).read();
}

}  // namespace dipsim
