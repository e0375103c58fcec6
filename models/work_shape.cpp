// SPDX-License-Identifier: Apache-2.0
#include "models/work_shape.hpp"

#include <algorithm>
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

double counted_pairs(const WorkShape& shape, AttentionMask mask, std::int64_t window) {
  if (window <= 0 || mask == AttentionMask::Full || shape.sequences == 0) {
    return counted_pairs(shape, mask);
  }
  const auto sequences = static_cast<double>(shape.sequences);
  const double pairs = sequences * window_pairs(static_cast<double>(shape.tokens) / sequences,
                                                static_cast<double>(window));
  return std::min(pairs, counted_pairs(shape, mask));
}

WorkShape share_of_context(const WorkShape& shape, int cp) {
  const auto share = [cp](std::int64_t whole) { return (whole + cp - 1) / cp; };
  WorkShape local = shape;
  local.tokens = share(shape.tokens);
  local.output_tokens = share(shape.output_tokens);
  local.squares = share(shape.squares);
  return local;
}

double counted_pairs(const WorkShape& shape, AttentionMask mask) {
  const auto squares = static_cast<double>(shape.squares);
  return mask == AttentionMask::Full ? squares : squares / 2.0;
}

}  // namespace dipsim
