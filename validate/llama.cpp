// SPDX-License-Identifier: Apache-2.0
#include "validate/llama.hpp"

#include "sim/core/text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace dipsim {

namespace {

struct Architecture {
  std::string_view name;  ///< without spaces, dashes and minor version
  int layers, hidden, ffn, heads, kv_groups, head_dim, vocabulary;
};

// From the models' public config.json.
constexpr std::array kArchitectures = {
    Architecture{"llama38b", 32, 4096, 14336, 32, 8, 128, 128256},
    Architecture{"llama370b", 80, 8192, 28672, 64, 8, 128, 128256},
    Architecture{"llama3405b", 126, 16384, 53248, 128, 8, 128, 128256},
    Architecture{"qwen27b", 28, 3584, 18944, 28, 4, 128, 152064},
    Architecture{"qwen232b", 64, 5120, 27648, 40, 8, 128, 152064},
};

/// Lower case, without spaces, dashes and minor version: "Llama3.1-8B" and "Llama3 8B 2-node" are
/// "llama38b".
std::string plain_name(std::string_view name) {
  std::string plain;
  name = name.substr(0, name.find(" 2-node"));
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.') {
      ++i;  // the digit behind it
    } else if (name[i] != ' ' && name[i] != '-') {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
    }
  }
  return plain;
}

}  // namespace

ModuleSpec llama_spec(std::string_view name, const CsvRow& row) {
  const auto found = std::ranges::find(kArchitectures, plain_name(name), &Architecture::name);
  if (found == kArchitectures.end()) {
    row.fail("model", "unknown model \"" + shortened(name) + "\"");
  }
  return {.name = std::string(found->name),
          .block = Block::Gated,
          .layers = found->layers,
          .hidden = found->hidden,
          .ffn = found->ffn,
          .heads = found->heads,
          .kv_groups = found->kv_groups,
          .head_dim = found->head_dim,
          .vocabulary = found->vocabulary};
}

}  // namespace dipsim
