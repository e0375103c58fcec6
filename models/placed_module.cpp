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

/// Sizes of a module as floating-point numbers, for FLOP and parameter counts.
struct Sizes {
  double hidden;
  double query;  ///< width of all query heads
  double kv;     ///< width of all key heads
  double ffn;
  double ffn_matrices;

  explicit Sizes(const ModuleSpec& spec)
      : hidden(spec.hidden),
        query(static_cast<double>(spec.heads) * spec.head_dim),
        kv(static_cast<double>(spec.kv_groups) * spec.head_dim),
        ffn(spec.ffn),
        ffn_matrices(spec.block == Block::Gated ? 3.0 : 2.0) {}

  [[nodiscard]] double self_attention() const { return hidden * (2.0 * query + 2.0 * kv); }

  [[nodiscard]] double feed_forward() const { return ffn_matrices * hidden * ffn; }

  [[nodiscard]] double cross_query_and_output() const { return 2.0 * hidden * query; }

  [[nodiscard]] double cross_key_value() const { return 2.0 * hidden * kv; }
};

double projector_parameters(const PlacedModule& module) {
  const double merged = static_cast<double>(module.merge) * module.spec.hidden;
  const double out = module.output_width;
  return merged * out + out * out;
}

}  // namespace

std::vector<PlacedModule> place_modules(const LmmModel& model, const ParallelPlan& plan) {
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
         .tp = plan.tp,
         .sequence_parallel = plan.sequence_parallel,
         .async_tp = plan.async_tp});
  }
  return placed;
}

double parameters_of(const PlacedModule& module, Part part) {
  const Sizes sizes(module.spec);
  const bool dit = module.spec.block == Block::Dit;
  switch (part) {
    case Part::First: {
      double parameters = sizes.hidden * (module.spec.vocabulary + module.spec.patch_values);
      if (dit) {  // context projection and the shared modulation of adaLN-single
        parameters += sizes.hidden * module.context_width + 6.0 * sizes.hidden * sizes.hidden;
      }
      return parameters;
    }
    case Part::Block:
      return sizes.self_attention() + sizes.feed_forward() +
             (dit ? sizes.cross_query_and_output() + sizes.cross_key_value() : 0.0);
    case Part::Last:
      return (module.head ? sizes.hidden * module.spec.vocabulary : 0.0) +
             (module.spec.projector ? projector_parameters(module) : 0.0) +
             (dit ? sizes.hidden * module.spec.patch_values : 0.0);
  }
  return 0.0;
}

std::vector<double> layer_parameters(const PlacedModule& module) {
  std::vector<double> layers(static_cast<std::size_t>(module.spec.layers),
                             parameters_of(module, Part::Block));
  layers.front() += parameters_of(module, Part::First);
  layers.back() += parameters_of(module, Part::Last);
  return layers;
}

double block_forward_flops(const PlacedModule& module, const WorkShape& shape) {
  const Sizes sizes(module.spec);
  const auto tokens = static_cast<double>(shape.tokens);
  double flops = 2.0 * tokens * (sizes.self_attention() + sizes.feed_forward()) +
                 4.0 * counted_pairs(shape, module.mask) * sizes.query;
  if (module.spec.block == Block::Dit) {
    flops += 2.0 * tokens * sizes.cross_query_and_output() +
             2.0 * static_cast<double>(shape.context_tokens) * sizes.cross_key_value() +
             4.0 * static_cast<double>(shape.cross_products) * sizes.query;
  }
  return flops;
}

double forward_flops(const PlacedModule& module, const WorkShape& shape) {
  const Sizes sizes(module.spec);
  const auto tokens = static_cast<double>(shape.tokens);
  double flops = module.spec.layers * block_forward_flops(module, shape) +
                 2.0 * tokens * sizes.hidden * module.spec.patch_values;
  if (module.spec.block == Block::Dit) {
    flops += 2.0 * static_cast<double>(shape.context_tokens) * sizes.hidden * module.context_width +
             2.0 * static_cast<double>(shape.instances) * 6.0 * sizes.hidden * sizes.hidden +
             2.0 * tokens * sizes.hidden * module.spec.patch_values;
  }
  if (module.head) {
    flops += 2.0 * tokens * sizes.hidden * module.spec.vocabulary;
  }
  if (module.spec.projector) {
    flops += 2.0 * static_cast<double>(shape.output_tokens) * projector_parameters(module);
  }
  return flops;
}

}  // namespace dipsim
