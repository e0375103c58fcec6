// SPDX-License-Identifier: Apache-2.0
#include "models/placed_module.hpp"

#include <algorithm>

namespace dipsim {

namespace {

/// Width of the tokens that module `index` hands on: that of its consumer after a projector.
int output_width_of(const LmmModel& model, std::size_t index) {
  if (model.modules[index].spec.projector) {
    for (const LmmModule& module : model.modules) {
      if (std::ranges::find(module.inputs, ModuleId{index}) != module.inputs.end()) {
        return module.spec.hidden;
      }
    }
  }
  return model.modules[index].spec.hidden;
}

/// A weight matrix.
struct Matrix {
  double in;
  double out;

  [[nodiscard]] double parameters() const { return in * out; }
};

double parameters_of(const std::vector<Matrix>& matrices) {
  double sum = 0.0;
  for (const Matrix& matrix : matrices) {
    sum += matrix.parameters();
  }
  return sum;
}

/// Parameters of a low-rank adapter beside each.
double adapters_of(const std::vector<Matrix>& matrices, int rank) {
  double sum = 0.0;
  for (const Matrix& matrix : matrices) {
    sum += rank * (matrix.in + matrix.out);
  }
  return sum;
}

void add_attention(std::vector<Matrix>& to, const ModuleSpec& spec) {
  const double hidden = spec.hidden;
  const double query = static_cast<double>(spec.heads) * spec.head_dim;
  const double key = static_cast<double>(spec.kv_groups) * spec.head_dim;
  const double value = static_cast<double>(spec.kv_groups) * spec.value_width();
  if (const LatentSpec& latent = spec.latent; latent.kv_rank > 0) {
    const double rank = latent.query_rank;
    if (rank > 0) {
      to.push_back({hidden, rank});
    }
    to.push_back({rank > 0 ? rank : hidden, query});
    to.push_back({hidden, static_cast<double>(latent.kv_rank) + latent.rope_dim});
    to.push_back({static_cast<double>(latent.kv_rank),
                  key - static_cast<double>(spec.heads) * latent.rope_dim + value});
  } else {
    to.insert(to.end(), {{hidden, query}, {hidden, key}, {hidden, value}});
  }
  to.push_back({static_cast<double>(spec.heads) * spec.value_width(), hidden});
}

void add_feed_forward(std::vector<Matrix>& to, const ModuleSpec& spec, double ffn) {
  const double hidden = spec.hidden;
  to.insert(to.end(), {{hidden, ffn}, {ffn, hidden}});
  if (spec.block == Block::Gated) {
    to.push_back({hidden, ffn});
  }
}

/// The matrices of a block that adapters may stand beside, cross attention left out.
struct BlockMatrices {
  std::vector<Matrix> dense;
  std::vector<Matrix> expert;  ///< of one routed expert
  double router = 0.0;

  BlockMatrices(const ModuleSpec& spec, LayerKind kind) {
    add_attention(dense, spec);
    if (!kind.experts) {
      add_feed_forward(dense, spec, spec.ffn);
      return;
    }
    if (spec.experts.shared_ffn > 0) {
      add_feed_forward(dense, spec, spec.experts.shared_ffn);
    }
    add_feed_forward(expert, spec, spec.experts.ffn);
    router = static_cast<double>(spec.hidden) * spec.experts.count;
  }
};

/// Of a block of DiT.
struct CrossAttention {
  double query_and_output = 0.0;
  double key_value = 0.0;

  explicit CrossAttention(const ModuleSpec& spec) {
    if (spec.block == Block::Dit) {
      query_and_output = 2.0 * spec.hidden * static_cast<double>(spec.heads) * spec.head_dim;
      key_value = 2.0 * spec.hidden * static_cast<double>(spec.kv_groups) * spec.head_dim;
    }
  }
};

double projector_parameters(const PlacedModule& module) {
  const double merged = static_cast<double>(module.merge) * module.spec.hidden;
  const double out = module.output_width;
  return merged * out + out * out;
}

}  // namespace

std::vector<PlacedModule> place_modules(const LmmModel& model, const ParallelPlan& plan,
                                        std::span<const ModuleGroup> groups) {
  std::vector<PlacedModule> placed;
  for (std::size_t i = 0; i < model.modules.size(); ++i) {
    const LmmModule& module = model.modules[i];
    const bool upstream = std::ranges::any_of(
        module.inputs, [&](ModuleId input) { return placed[input.row()].backward; });
    placed.push_back(
        {.spec = module.spec,
         .mask = module.mask,
         .head = module.head,
         .trained = module.trained,
         .backward = module.trained || upstream,
         .merge = module.feed == Feed::Image ? model.tokens.merge * model.tokens.merge : 1,
         .output_width = output_width_of(model, i),
         .context_width =
             module.spec.block == Block::Dit ? placed[module.inputs.front().row()].output_width : 0,
         .tp = groups.empty() ? plan.tp : groups[i].tp,
         .sequence_parallel = plan.sequence_parallel,
         .async_tp = plan.async_tp,
         .cp = plan.cp,
         .ep = plan.ep,
         .context = plan.context});
  }
  return placed;
}

namespace {

double outer_parameters(const PlacedModule& module, Part part) {
  const double hidden = module.spec.hidden;
  const bool dit = module.spec.block == Block::Dit;
  if (part == Part::First) {  // DiT: context projection and the shared modulation of adaLN-single
    return hidden * (module.spec.vocabulary + module.spec.patch_values) +
           (dit ? hidden * module.context_width + 6.0 * hidden * hidden : 0.0);
  }
  return (module.head ? hidden * module.spec.vocabulary : 0.0) +
         (module.spec.projector ? projector_parameters(module) : 0.0) +
         (dit ? hidden * module.spec.patch_values : 0.0);
}

/// Calls f(kind, layers of it) for the kinds of layers that a module has.
template <class F>
void for_each_kind(const ModuleSpec& spec, const F& f) {
  for (std::size_t i = 0; i < kLayerKinds; ++i) {
    const LayerKind kind{.experts = i % 2 == 1, .window = i / 2 == 1};
    int layers = 0;
    for (int layer = 0; layer < spec.layers; ++layer) {
      layers += spec.kind_of(layer) == kind ? 1 : 0;
    }
    if (layers > 0) {
      f(kind, layers);
    }
  }
}

}  // namespace

ParameterCount count_parameters(const PlacedModule& module, Part part, LayerKind kind) {
  ParameterCount count;
  const int rank = module.spec.lora_rank;
  if (part != Part::Block) {
    count.dense = outer_parameters(module, part);
    count.trained_dense = rank > 0 ? 0.0 : count.dense;
  } else {
    const BlockMatrices block(module.spec, kind);
    const CrossAttention cross(module.spec);
    count.dense =
        parameters_of(block.dense) + block.router + cross.query_and_output + cross.key_value;
    count.experts = module.spec.experts.count * parameters_of(block.expert);
    count.trained_dense = rank > 0 ? adapters_of(block.dense, rank) : count.dense;
    count.trained_experts =
        rank > 0 ? module.spec.experts.count * adapters_of(block.expert, rank) : count.experts;
  }
  if (!module.trained) {
    count.trained_dense = 0.0;
    count.trained_experts = 0.0;
  }
  return count;
}

double parameters_of(const PlacedModule& module, Part part, LayerKind kind) {
  return count_parameters(module, part, kind).all();
}

std::vector<double> layer_parameters(const PlacedModule& module) {
  std::vector<double> layers;
  for (int layer = 0; layer < module.spec.layers; ++layer) {
    layers.push_back(parameters_of(module, Part::Block, module.spec.kind_of(layer)));
  }
  layers.front() += parameters_of(module, Part::First);
  layers.back() += parameters_of(module, Part::Last);
  return layers;
}

double active_parameters(const PlacedModule& module) {
  double active = parameters_of(module, Part::Last);
  for_each_kind(module.spec, [&](LayerKind kind, int layers) {
    const BlockMatrices block(module.spec, kind);
    const CrossAttention cross(module.spec);
    active += layers * (parameters_of(block.dense) + block.router + cross.query_and_output +
                        cross.key_value + module.spec.experts.chosen * parameters_of(block.expert));
  });
  return active;
}

double block_forward_flops(const PlacedModule& module, const WorkShape& shape, LayerKind kind) {
  const ModuleSpec& spec = module.spec;
  const BlockMatrices block(spec, kind);
  const CrossAttention cross(spec);
  const auto tokens = static_cast<double>(shape.tokens);
  const double per_token =
      parameters_of(block.dense) + block.router + spec.experts.chosen * parameters_of(block.expert);
  const double pairs = counted_pairs(shape, module.mask, kind.window ? spec.window.tokens : 0);
  double flops =
      2.0 * tokens * per_token + 2.0 * pairs * spec.heads * (spec.head_dim + spec.value_width());
  if (spec.block == Block::Dit) {
    flops += 2.0 * tokens * cross.query_and_output +
             2.0 * static_cast<double>(shape.context_tokens) * cross.key_value +
             4.0 * static_cast<double>(shape.cross_products) * spec.heads * spec.head_dim;
  }
  return flops;
}

double forward_flops(const PlacedModule& module, const WorkShape& shape) {
  const double hidden = module.spec.hidden;
  const auto tokens = static_cast<double>(shape.tokens);
  double flops = 2.0 * tokens * hidden * module.spec.patch_values;
  for_each_kind(module.spec, [&](LayerKind kind, int layers) {
    flops += layers * block_forward_flops(module, shape, kind);
  });
  if (module.spec.block == Block::Dit) {
    flops += 2.0 * static_cast<double>(shape.context_tokens) * hidden * module.context_width +
             2.0 * static_cast<double>(shape.instances) * 6.0 * hidden * hidden +
             2.0 * tokens * hidden * module.spec.patch_values;
  }
  if (module.head) {
    flops += 2.0 * tokens * hidden * module.spec.vocabulary;
  }
  if (module.spec.projector) {
    flops += 2.0 * static_cast<double>(shape.output_tokens) * projector_parameters(module);
  }
  return flops;
}

double adapter_flops(const PlacedModule& module, const WorkShape& shape) {
  double per_token = 0.0;
  for_each_kind(module.spec, [&](LayerKind kind, int layers) {
    const BlockMatrices block(module.spec, kind);
    per_token +=
        layers * (adapters_of(block.dense, module.spec.lora_rank) +
                  module.spec.experts.chosen * adapters_of(block.expert, module.spec.lora_rank));
  });
  return 2.0 * static_cast<double>(shape.tokens) * per_token;
}

}  // namespace dipsim
