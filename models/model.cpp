// SPDX-License-Identifier: Apache-2.0
#include "models/model.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace dipsim {

std::string_view name_of(Block block) {
  constexpr std::array<std::string_view, 3> names = {"gated", "plain", "dit"};
  return names[static_cast<std::size_t>(block)];
}

std::string_view name_of(AttentionMask mask) {
  constexpr std::array<std::string_view, 3> names = {"full", "causal", "documents"};
  return names[static_cast<std::size_t>(mask)];
}

std::string_view name_of(ContextExchange exchange) {
  return exchange == ContextExchange::Ring ? "ring" : "all-gather";
}

std::vector<Feed> LmmModel::feeds() const {
  std::vector<Feed> out;
  out.reserve(modules.size());
  for (const LmmModule& module : modules) {
    out.push_back(module.feed);
  }
  return out;
}

namespace {

void check_dimensions(const ModuleSpec& spec, const std::string& where) {
  const std::array<std::pair<std::string_view, int>, 6> dimensions = {
      {{"layers", spec.layers},
       {"hidden", spec.hidden},
       {"ffn", spec.ffn},
       {"heads", spec.heads},
       {"kv_groups", spec.kv_groups},
       {"head_dim", spec.head_dim}}};
  for (const auto& [key, value] : dimensions) {
    if (value < 1) {
      fail_input(where,
                 fmt::format("module {}: {} is {}; at least 1 is needed", spec.name, key, value));
    }
  }
  if (spec.heads % spec.kv_groups != 0) {
    fail_input(where, fmt::format("module {}: kv_groups {} does not divide heads {}", spec.name,
                                  spec.kv_groups, spec.heads));
  }
  if (spec.block == Block::Dit && spec.attention == AttentionKernel::WrittenOut) {
    fail_input(where, fmt::format("module {}: a dit block has fused attention only", spec.name));
  }
}

void check_experts(const ModuleSpec& spec, const std::string& where) {
  const ExpertSpec& experts = spec.experts;
  const auto refuse = [&](const std::string& what) {
    fail_input(where, fmt::format("module {}: {}", spec.name, what));
  };
  if (experts.count == 0) {
    if (!(experts == ExpertSpec{})) {
      refuse("experts are described, but their count is 0");
    }
    return;
  }
  if (spec.block != Block::Gated) {
    refuse("experts go with the block \"gated\"");
  }
  if (experts.chosen < 1 || experts.chosen > experts.count) {
    refuse(fmt::format("{} chosen of {} experts; nearest legal: {}", experts.chosen, experts.count,
                       experts.chosen < 1 ? 1 : experts.count));
  }
  if (experts.ffn < 1 || experts.shared_ffn < 0) {
    refuse(fmt::format("experts of width {} and {} shared; at least 1 and 0 are needed",
                       experts.ffn, experts.shared_ffn));
  }
  if (experts.dense_layers < 0 || experts.dense_layers > spec.layers) {
    refuse(fmt::format("{} leading layers without experts of {} layers; nearest legal: {}",
                       experts.dense_layers, spec.layers,
                       experts.dense_layers < 0 ? 0 : spec.layers));
  }
  if (!(experts.imbalance >= 1.0) || !(experts.copies >= 0.0)) {
    refuse(fmt::format("imbalance {} and copies {}; at least 1 and 0 are needed", experts.imbalance,
                       experts.copies));
  }
}

/// Values of an own width, windows, latent attention.
void check_attention(const ModuleSpec& spec, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    fail_input(where, fmt::format("module {}: {}", spec.name, what));
  };
  const LatentSpec& latent = spec.latent;
  const bool plain = latent.kv_rank == 0 && spec.value_dim == 0 && spec.window.tokens == 0;
  if (!plain && (spec.block == Block::Dit || spec.attention == AttentionKernel::WrittenOut)) {
    refuse(
        "windows, latent attention and values of their own width need fused attention in a "
        "block that is no dit");
  }
  if (latent.kv_rank == 0) {
    if (!(latent == LatentSpec{})) {
      refuse("latent attention is described, but its kv_rank is 0");
    }
    return;
  }
  if (spec.kv_groups != spec.heads) {
    refuse(fmt::format("latent attention has keys for every head: kv_groups {}; nearest legal: {}",
                       spec.kv_groups, spec.heads));
  }
  if (latent.rope_dim < 0 || latent.rope_dim >= spec.head_dim) {
    refuse(fmt::format("rope_dim {} of the head dimension {}; nearest legal: {}", latent.rope_dim,
                       spec.head_dim, latent.rope_dim < 0 ? 0 : spec.head_dim - 1));
  }
}

void check_inputs(const LmmModel& model, std::size_t index, const std::string& where) {
  const LmmModule& module = model.modules[index];
  for (const ModuleId input : module.inputs) {
    if (!input.valid() || input.row() >= index) {
      fail_input(where, fmt::format("module {} takes input from a module that does not stand "
                                    "before it",
                                    module.spec.name));
    }
  }
  const bool has_prompt =
      module.inputs.size() == 1 && model.modules[module.inputs.front().row()].feed == Feed::Prompt;
  const bool is_dit = module.spec.block == Block::Dit;
  if (is_dit != (module.feed == Feed::Clip) || (is_dit && !has_prompt)) {
    fail_input(where,
               fmt::format("module {}: a dit block goes with the feed \"clip\" and one input "
                           "of the feed \"prompt\"",
                           module.spec.name));
  }
}

bool has_consumer(const LmmModel& model, std::size_t index) {
  return std::ranges::any_of(model.modules, [&](const LmmModule& module) {
    return std::ranges::find(module.inputs, ModuleId{index}) != module.inputs.end();
  });
}

void check_outputs(const LmmModel& model, std::size_t index, const std::string& where) {
  const LmmModule& module = model.modules[index];
  if (module.spec.projector && !has_consumer(model, index)) {
    fail_input(where,
               fmt::format("module {}: its projector feeds no module; name it in the \"inputs\" of "
                           "one",
                           module.spec.name));
  }
  if (module.tied && !module.head) {
    fail_input(where, fmt::format("module {}: a tied head needs \"head\"", module.spec.name));
  }
  if (module.head && module.spec.vocabulary == 0) {
    fail_input(where,
               fmt::format("module {}: a head needs a module with a vocabulary", module.spec.name));
  }
}

}  // namespace

void check_model(const LmmModel& model, const std::string& where) {
  if (model.modules.empty()) {
    fail_input(where, "no modules; at least one is needed");
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < model.modules.size(); ++i) {
    const ModuleSpec& spec = model.modules[i].spec;
    if (std::ranges::find(names, spec.name) != names.end()) {
      fail_input(where, fmt::format("two modules are named \"{}\"", spec.name));
    }
    names.push_back(spec.name);
    check_dimensions(spec, where);
    check_experts(spec, where);
    check_attention(spec, where);
    check_inputs(model, i, where);
    check_outputs(model, i, where);
  }
}

}  // namespace dipsim
