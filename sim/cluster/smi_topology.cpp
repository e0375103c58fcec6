// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/node_topology.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr int kMostNvlinks = 18;  // of one GPU, up to Blackwell
constexpr double kBetweenHosts = 10.0;

/// How two devices are connected, from near to far; the words are nvidia-smi's.
enum class Relation : std::uint8_t { Self, NvLink, Pix, Pxb, Phb, Node, Sys };

constexpr std::array<std::pair<std::string_view, Relation>, 6> kWords = {{{"X", Relation::Self},
                                                                          {"PIX", Relation::Pix},
                                                                          {"PXB", Relation::Pxb},
                                                                          {"PHB", Relation::Phb},
                                                                          {"NODE", Relation::Node},
                                                                          {"SYS", Relation::Sys}}};

struct Cell {
  Relation relation = Relation::Self;
  int nvlinks = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// A word and the column it starts at, from 1.
struct Word {
  std::string_view text;
  int column = 0;
};

/// nvidia-smi underlines its header with terminal codes, also when it writes to a file.
std::string without_terminal_codes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') {
        ++i;
      }
    } else if (line[i] != '\r') {
      out += line[i];
    }
  }
  return out;
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t start = line.find_first_not_of(" \t", i);
    if (start == std::string_view::npos) {
      break;
    }
    const std::size_t end = std::min(line.find_first_of(" \t", start), line.size());
    words.push_back({line.substr(start, end - start), static_cast<int>(start) + 1});
    i = end;
  }
  return words;
}

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

/// The matrix, row by row over the devices of the header.
struct Matrix {
  std::vector<std::string> names;
  std::vector<std::vector<Cell>> rows;
  std::vector<int> lines;

  [[nodiscard]] std::vector<std::size_t> gpus() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_gpu(names[i])) {
        out.push_back(i);
      }
    }
    return out;
  }
};

class SmiReader {
 public:
  SmiReader(std::string_view text, const std::string& file) : file_(file) {
    for (const std::string_view line : split(text, '\n')) {
      lines_.push_back(without_terminal_codes(line));
    }
  }

  Matrix read() {
    read_header();
    for (; line_ < lines_.size(); ++line_) {
      const std::vector<Word> words = words_of(lines_[line_]);
      if (words.empty() && matrix_.rows.empty()) {
        continue;
      }
      if (words.empty() || words.front().text.starts_with("Legend")) {
        break;
      }
      read_row(words);
    }
    check_complete();
    check_symmetric();
    return std::move(matrix_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, int column, const std::string& message) const {
    fail_input(fmt::format("{}:{}:{}", file_, line + 1, column), message);
  }

  void read_header() {
    for (; line_ < lines_.size(); ++line_) {
      const std::vector<Word> words = words_of(lines_[line_]);
      if (words.empty() || !is_gpu(words.front().text)) {
        continue;
      }
      for (const Word& word : words) {
        if (word.text == "CPU" || word.text == "NUMA") {
          break;
        }
        if (std::ranges::find(matrix_.names, word.text) != matrix_.names.end()) {
          fail(line_, word.column, fmt::format("two columns \"{}\"", word.text));
        }
        matrix_.names.emplace_back(word.text);
      }
      ++line_;
      return;
    }
    fail(0, 1, "no header line with GPU0 …; this is no output of nvidia-smi topo -m");
  }

  void read_row(const std::vector<Word>& words) {
    const std::size_t row = matrix_.rows.size();
    if (row >= matrix_.names.size() || words.front().text != matrix_.names[row]) {
      fail(line_, words.front().column,
           row < matrix_.names.size()
               ? fmt::format("the row of {} is expected here, not \"{}\"", matrix_.names[row],
                             shortened(words.front().text))
               : std::string("more rows than columns"));
    }
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
      if (i + 1 >= words.size()) {
        fail(line_, static_cast<int>(lines_[line_].size()) + 1,
             fmt::format("the cell of {} is missing; is the file cut off?", matrix_.names[i]));
      }
      cells.push_back(cell(words[i + 1]));
      if ((cells.back().relation == Relation::Self) != (i == row)) {
        fail(line_, words[i + 1].column, "\"X\" stands on the diagonal, and only there");
      }
    }
    matrix_.rows.push_back(std::move(cells));
    matrix_.lines.push_back(static_cast<int>(line_));
  }

  Cell cell(const Word& word) const {
    for (const auto& [text, relation] : kWords) {
      if (word.text == text) {
        return {relation, 0};
      }
    }
    int links = 0;
    const std::string_view digits = word.text.substr(std::min<std::size_t>(2, word.text.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), links);
    if (!word.text.starts_with("NV") || error != std::errc{} ||
        end != digits.data() + digits.size() || links < 1 || links > kMostNvlinks) {
      fail(line_, word.column,
           fmt::format("unknown relation \"{}\"; known: X, NV1 to NV{}, PIX, PXB, PHB, NODE, SYS",
                       shortened(word.text), kMostNvlinks));
    }
    return {Relation::NvLink, links};
  }

  /// Rows of cards are left out by old drivers, rows of GPUs never.
  void check_complete() const {
    for (const std::size_t gpu : matrix_.gpus()) {
      if (gpu >= matrix_.rows.size()) {
        fail(line_ == 0 ? 0 : line_ - 1, 1,
             fmt::format("the row of {} is missing; is the file cut off?", matrix_.names[gpu]));
      }
    }
  }

  void check_symmetric() const {
    for (std::size_t a = 0; a < matrix_.rows.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (matrix_.rows[a][b] != matrix_.rows[b][a]) {
          fail(static_cast<std::size_t>(matrix_.lines[a]), 1,
               fmt::format("{} and {} differ on how they are connected", matrix_.names[a],
                           matrix_.names[b]));
        }
      }
    }
  }

  const std::string& file_;
  std::vector<std::string> lines_;
  std::size_t line_ = 0;
  Matrix matrix_;
};

/// Devices joined by any relation up to `far`, each named by its first one.
std::vector<std::size_t> groups(const Matrix& matrix, Relation far) {
  std::vector<std::size_t> group(matrix.names.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t a = 0; a < matrix.rows.size(); ++a) {
    for (std::size_t b = 0; b < matrix.names.size(); ++b) {
      const Relation relation = matrix.rows[a][b].relation;
      if (relation > Relation::NvLink && relation <= far) {
        const auto [low, high] = std::minmax(group[a], group[b]);
        std::ranges::replace(group, high, low);
      }
    }
  }
  return group;
}

class GraphBuilder {
 public:
  GraphBuilder(const Matrix& matrix, const LinkSpeeds& speeds, NodeTopology& out)
      : matrix_(matrix), speeds_(speeds), out_(out) {}

  void build() {
    int gpus = 0;
    int cards = 0;
    for (const std::string& name : matrix_.names) {
      rows_.push_back(out_.graph.add(
          is_gpu(name) ? Device{.kind = DeviceKind::Gpu, .node = 0, .index = gpus++}
                       : Device{.kind = DeviceKind::Nic, .node = 0, .index = cards++}));
    }
    out_.gpus = gpus;
    connect_pcie();
    connect_nvlinks();
  }

 private:
  /// One switch per group of devices behind the same bridges, one host per NUMA node.
  void connect_pcie() {
    const std::vector<std::size_t> bridges = groups(matrix_, Relation::Pxb);
    const std::vector<std::size_t> nodes = groups(matrix_, Relation::Node);
    std::map<std::size_t, int> hosts;
    std::map<std::size_t, int> switches;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!hosts.contains(nodes[i])) {
        const int index = static_cast<int>(hosts.size());
        const int host = out_.graph.add({.kind = DeviceKind::Host, .node = 0, .index = index});
        if (!hosts.empty()) {
          out_.graph.connect(hosts.begin()->second, host, kBetweenHosts);
        }
        hosts.emplace(nodes[i], host);
      }
      if (!switches.contains(bridges[i])) {
        const int index = static_cast<int>(switches.size());
        switches[bridges[i]] =
            out_.graph.add({.kind = DeviceKind::PcieSwitch, .node = 0, .index = index});
        out_.graph.connect(switches[bridges[i]], hosts.at(nodes[i]), speeds_.pcie_gbytes_per_s);
      }
      out_.graph.connect(rows_[i], switches[bridges[i]], speeds_.pcie_gbytes_per_s);
    }
  }

  void connect_nvlinks() {
    const std::vector<std::size_t> gpus = matrix_.gpus();
    int fewest = std::numeric_limits<int>::max();
    int switched = kMostNvlinks;
    for (const std::size_t a : gpus) {
      int total = 0;
      int most = 0;
      for (const std::size_t b : gpus) {
        total += matrix_.rows[a][b].nvlinks;
        most = std::max(most, matrix_.rows[a][b].nvlinks);
      }
      fewest = std::min(fewest, total);
      switched = std::min(switched, most);  // with a switch every cell counts all links of the GPU
    }
    const bool has_switch = fewest > kMostNvlinks;
    out_.nvlink_gbytes_per_s = (has_switch ? switched : fewest) * speeds_.nvlink_gbytes_per_s;
    if (has_switch) {
      const int nvswitch = out_.graph.add({.kind = DeviceKind::NvSwitch, .node = 0});
      for (const std::size_t a : gpus) {
        out_.graph.connect(rows_[a], nvswitch, out_.nvlink_gbytes_per_s);
      }
      return;
    }
    for (const std::size_t a : gpus) {
      for (const std::size_t b : gpus) {
        if (a < b && matrix_.rows[a][b].nvlinks > 0) {
          out_.graph.connect(rows_[a], rows_[b],
                             matrix_.rows[a][b].nvlinks * speeds_.nvlink_gbytes_per_s);
        }
      }
    }
  }

  const Matrix& matrix_;
  const LinkSpeeds& speeds_;
  NodeTopology& out_;
  std::vector<int> rows_;
};

}  // namespace

NodeTopology read_smi_topology(std::string_view text, const std::string& file,
                               const LinkSpeeds& speeds) {
  const Matrix matrix = SmiReader(text, file).read();
  NodeTopology out;
  GraphBuilder(matrix, speeds, out).build();
  return out;
}

}  // namespace dipsim
