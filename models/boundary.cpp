// SPDX-License-Identifier: Apache-2.0
#include "models/boundary.hpp"

#include "models/element_bytes.hpp"

#include <algorithm>

namespace dipsim {

namespace {

std::int64_t inner_elements(const PlacedModule& module, const WorkShape& shape) {
  return (shape.tokens + shape.context_tokens) * module.spec.hidden;
}

std::int64_t output_elements(const PlacedModule& module, const WorkShape& shape) {
  return shape.output_tokens * module.output_width;
}

/// Output tokens of the instances in `producer` that `consumer` needs: those of its microbatches; a
/// clip needs its own prompt only.
std::int64_t consumed_tokens(const Work& producer, const Work& consumer, bool one_to_one,
                             const Batch& batch) {
  std::int64_t tokens = 0;
  for (const Portion& out : producer.portions) {
    const auto instances = batch.of(out.microbatch, producer.module);
    for (const Portion& in : consumer.portions) {
      if (in.microbatch != out.microbatch) {
        continue;
      }
      const int first = one_to_one ? std::max(out.first, in.first) : out.first;
      const int end =
          one_to_one ? std::min(out.first + out.count, in.first + in.count) : out.first + out.count;
      for (int i = first; i < end; ++i) {
        tokens += instances[static_cast<std::size_t>(i)].output_tokens;
      }
      if (!one_to_one) {
        break;  // several portions of one microbatch need the producer's tokens once
      }
    }
  }
  return tokens;
}

bool is_consumed_from(const LmmModel& model, std::size_t producer, std::size_t first_consumer) {
  for (std::size_t i = first_consumer; i < model.modules.size(); ++i) {
    if (std::ranges::find(model.modules[i].inputs, ModuleId{producer}) !=
        model.modules[i].inputs.end()) {
      return true;
    }
  }
  return false;
}

/// Elements alive between layer `layer` of module `cut` and the layer before it, for a work that
/// flows through all modules one after the other.
std::int64_t alive_elements(const LmmModel& model, const std::vector<PlacedModule>& modules,
                            const LayerRange& next, const Work& work, const Batch& batch) {
  const std::size_t cut = next.module.row();
  const auto shape = [&](std::size_t module) {
    return shape_of(batch, work, ModuleId{module}, modules[module].mask);
  };
  const bool inside = next.first > 0;
  std::int64_t elements = inside ? inner_elements(modules[cut], shape(cut)) : 0;
  for (std::size_t done = 0; done < cut; ++done) {
    if (is_consumed_from(model, done, inside ? cut + 1 : cut)) {
      elements += output_elements(modules[done], shape(done));
    }
  }
  return elements;
}

}  // namespace

Bytes boundary_bytes(const LmmModel& model, const std::vector<PlacedModule>& modules,
                     const Chunk& to, const Work& from_work, const Work& to_work,
                     const Batch& batch) {
  std::int64_t elements = 0;
  int tp = modules.front().tp;
  if (!from_work.module.valid()) {
    elements = alive_elements(model, modules, to.layers.front(), from_work, batch);
  } else if (from_work.module == to_work.module) {
    const PlacedModule& module = modules[from_work.module.row()];
    tp = module.tp;
    elements = inner_elements(module, shape_of(batch, from_work, from_work.module, module.mask));
  } else {
    const bool one_to_one = model.modules[to_work.module.row()].feed == Feed::Clip;
    elements = consumed_tokens(from_work, to_work, one_to_one, batch) *
               modules[from_work.module.row()].output_width;
    tp = std::min(modules[from_work.module.row()].tp, modules[to_work.module.row()].tp);
  }
  return Bytes{kBf16 * elements / (tp * modules.front().cp)};
}

}  // namespace dipsim
