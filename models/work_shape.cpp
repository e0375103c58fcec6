// SPDX-License-Identifier: Apache-2.0
#include "models/work_shape.hpp"

#include <span>

namespace dipsim {

namespace {

void add_sequence(WorkShape& shape, std::int64_t tokens) {
  ++shape.sequences;
  shape.squares += tokens * tokens;
}

void add(WorkShape& shape, const Batch& batch, std::span<const Instance> instances,
         AttentionMask mask) {
  for (const Instance& instance : instances) {
    ++shape.instances;
    shape.tokens += instance.tokens;
    shape.output_tokens += instance.output_tokens;
    shape.context_tokens += instance.context_tokens;
    shape.cross_products += std::int64_t{instance.tokens} * instance.context_tokens;
    if (mask == AttentionMask::Documents) {
      for (const std::int32_t tokens : batch.groups_of(instance)) {
        add_sequence(shape, tokens);
      }
    } else {
      add_sequence(shape, instance.tokens);
    }
  }
}

}  // namespace

WorkShape shape_of(const Batch& batch, const Work& work, ModuleId module, AttentionMask mask) {
  WorkShape shape;
  for (const Portion& portion : work.portions) {
    const std::span<const Instance> all = batch.of(portion.microbatch, module);
    const std::span<const Instance> held =
        work.module.valid() ? all.subspan(static_cast<std::size_t>(portion.first),
                                          static_cast<std::size_t>(portion.count))
                            : all;
    add(shape, batch, held, mask);
  }
  return shape;
}

WorkShape shape_of(const Batch& batch, MicrobatchId microbatch, ModuleId module,
                   AttentionMask mask) {
  WorkShape shape;
  add(shape, batch, batch.of(microbatch, module), mask);
  return shape;
}

double counted_pairs(const WorkShape& shape, AttentionMask mask) {
  const auto squares = static_cast<double>(shape.squares);
  return mask == AttentionMask::Full ? squares : squares / 2.0;
}

}  // namespace dipsim
