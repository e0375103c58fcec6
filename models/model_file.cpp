// SPDX-License-Identifier: Apache-2.0
// Models and modules as JSON; docs/config.md describes the keys.
#include "models/model.hpp"
#include "models/token_rules.hpp"
#include "sim/cluster/shipped.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace dipsim {

namespace {

/// The names of the first `Count` values of an enumeration.
template <class Enum, std::size_t Count>
std::array<std::string_view, Count> names() {
  std::array<std::string_view, Count> out;
  for (std::size_t i = 0; i < Count; ++i) {
    out[i] = name_of(static_cast<Enum>(i));
  }
  return out;
}

/// A text that names one of the first `Count` values of an enumeration.
template <class Enum, std::size_t Count>
Enum read_enum(const JsonValue& value, std::string_view what) {
  return static_cast<Enum>(value.one_of(names<Enum, Count>(), what));
}

constexpr int kMaxLayers = 10'000;
constexpr int kMaxWidth = 1'000'000;
constexpr int kMaxVocabulary = 10'000'000;
constexpr int kMaxParallel = 100'000;
constexpr int kMaxPackedTokens = 100'000'000;

int integer_or(JsonObject& object, std::string_view key, int low, int high, int fallback) {
  const auto value = object.find(key);
  return value ? static_cast<int>(value->integer(low, high)) : fallback;
}

double number_or(JsonObject& object, std::string_view key, double low, double high,
                 double fallback) {
  const auto value = object.find(key);
  return value ? value->number(low, high) : fallback;
}

bool boolean_or(JsonObject& object, std::string_view key, bool fallback) {
  const auto value = object.find(key);
  return value ? value->boolean() : fallback;
}

int integer_at(JsonObject& object, std::string_view key, int high) {
  return static_cast<int>(object.at(key).integer(1, high));
}

int head_dim_of(JsonObject& object, const ModuleSpec& spec) {
  if (const auto value = object.find("head_dim")) {
    return static_cast<int>(value->integer(1, kMaxWidth));
  }
  if (spec.hidden % spec.heads != 0) {
    object.at("heads").fail(
        fmt::format("{} heads don't divide hidden {}; give \"head_dim\"", spec.heads, spec.hidden));
  }
  return spec.hidden / spec.heads;
}

ExpertSpec read_experts(const JsonValue& value) {
  JsonObject object = value.object();
  ExpertSpec experts;
  experts.count = integer_at(object, "count", kMaxWidth);
  experts.chosen = integer_at(object, "chosen", experts.count);
  experts.ffn = integer_at(object, "ffn", kMaxWidth);
  experts.shared_ffn = integer_or(object, "shared_ffn", 0, kMaxWidth, 0);
  experts.dense_layers = integer_or(object, "dense_layers", 0, kMaxLayers, 0);
  experts.imbalance = number_or(object, "imbalance", 1.0, 1e6, experts.imbalance);
  experts.copies = number_or(object, "copies", 0.0, 1e6, experts.copies);
  experts.separate_biases = boolean_or(object, "separate_biases", experts.separate_biases);
  object.finish();
  return experts;
}

LatentSpec read_latent(const JsonValue& value) {
  JsonObject object = value.object();
  LatentSpec latent;
  latent.kv_rank = integer_at(object, "kv_rank", kMaxWidth);
  latent.query_rank = integer_or(object, "query_rank", 0, kMaxWidth, 0);
  latent.rope_dim = integer_or(object, "rope_dim", 0, kMaxWidth, 0);
  object.finish();
  return latent;
}

WindowSpec read_window(const JsonValue& value) {
  JsonObject object = value.object();
  WindowSpec window;
  window.tokens = integer_at(object, "tokens", kMaxPackedTokens);
  window.full_every = integer_or(object, "full_every", 0, kMaxLayers, 0);
  object.finish();
  return window;
}

RecomputedParts read_recomputed(const JsonValue& value) {
  constexpr std::array<std::string_view, 6> kNames = {"core_attention",     "norms", "activations",
                                                      "expert_activations", "mlp",   "latent_up"};
  RecomputedParts parts;
  const std::array<bool*, 6> flags = {&parts.core_attention,     &parts.norms, &parts.activations,
                                      &parts.expert_activations, &parts.mlp,   &parts.latent_up};
  for (const JsonValue& item : value.items()) {
    *flags[item.one_of(kNames, "recomputed part")] = true;
  }
  return parts;
}

/// What not every module has.
void read_extras(JsonObject& object, ModuleSpec& spec) {
  spec.value_dim = integer_or(object, "value_dim", 0, kMaxWidth, 0);
  spec.query_norm = boolean_or(object, "query_norm", spec.query_norm);
  spec.lora_rank = integer_or(object, "lora_rank", 0, kMaxWidth, 0);
  spec.fused_loss = boolean_or(object, "fused_loss", spec.fused_loss);
  spec.fused_rotary = boolean_or(object, "fused_rotary", spec.fused_rotary);
  if (const auto experts = object.find("experts")) {
    spec.experts = read_experts(*experts);
  }
  if (const auto latent = object.find("latent")) {
    spec.latent = read_latent(*latent);
  }
  if (const auto window = object.find("window")) {
    spec.window = read_window(*window);
  }
  if (const auto products = object.find("products")) {
    spec.products = read_enum<DataType, 2>(*products, "data type of products");
  }
  if (const auto recomputed = object.find("recomputed")) {
    spec.recomputed = read_recomputed(*recomputed);
  }
}

ModuleSpec read_module(const JsonValue& value) {
  JsonObject object = value.object();
  ModuleSpec spec;
  spec.name = object.at("name").text();
  object.ignore("source");  // for the reader of the file
  spec.block = read_enum<Block, 3>(object.at("block"), "block");
  spec.layers = integer_at(object, "layers", kMaxLayers);
  spec.hidden = integer_at(object, "hidden", kMaxWidth);
  spec.ffn = integer_at(object, "ffn", kMaxWidth);
  spec.heads = integer_at(object, "heads", kMaxWidth);
  spec.kv_groups = integer_or(object, "kv_groups", 1, spec.heads, spec.heads);
  spec.head_dim = head_dim_of(object, spec);
  if (const auto attention = object.find("attention")) {
    spec.attention = read_enum<AttentionKernel, 4>(*attention, "attention kernel");
  }
  spec.dropout = boolean_or(object, "dropout", spec.dropout);
  spec.fused_elementwise = boolean_or(object, "fused_elementwise", spec.fused_elementwise);
  spec.products_again = boolean_or(object, "products_again", spec.products_again);
  spec.fused_accumulation = boolean_or(object, "fused_accumulation", spec.fused_accumulation);
  spec.vocabulary = integer_or(object, "vocabulary", 0, kMaxVocabulary, 0);
  spec.patch_values = integer_or(object, "patch_values", 0, kMaxWidth, 0);
  spec.projector = boolean_or(object, "projector", false);
  read_extras(object, spec);
  object.finish();
  return spec;
}

ModuleSpec module_of(const JsonValue& value) {
  return value.is_object() ? read_module(value) : load_module(value.text());
}

/// Names of earlier modules.
std::vector<ModuleId> read_inputs(const JsonValue& value, const std::vector<LmmModule>& earlier) {
  std::vector<std::string_view> names;
  names.reserve(earlier.size());
  for (const LmmModule& module : earlier) {
    names.push_back(module.spec.name);
  }
  std::vector<ModuleId> inputs;
  for (const JsonValue& item : value.items()) {
    inputs.emplace_back(item.one_of(names, "earlier module"));
  }
  return inputs;
}

LmmModule read_use(const JsonValue& value, const std::vector<LmmModule>& earlier) {
  JsonObject object = value.object();
  LmmModule module;
  module.spec = module_of(object.at("module"));
  module.feed = read_enum<Feed, 5>(object.at("feed"), "feed");
  if (const auto inputs = object.find("inputs")) {
    module.inputs = read_inputs(*inputs, earlier);
  }
  module.mask = read_enum<AttentionMask, 3>(object.at("mask"), "mask");
  module.trained = boolean_or(object, "trained", module.trained);
  module.head = boolean_or(object, "head", module.head);
  module.tied = boolean_or(object, "tied", module.tied);
  object.finish();
  return module;
}

TokenRuleSpec read_tokens(const JsonValue& value) {
  JsonObject object = value.object();
  TokenRuleSpec spec;
  const JsonValue rule = object.at("rule");
  spec.rule = rule.text();
  spec.merge = find_token_rule(spec.rule, rule.where()).merge;
  spec.image_pixels = integer_or(object, "image_pixels", 1, kMaxWidth, spec.image_pixels);
  spec.patch = integer_or(object, "patch", 1, kMaxWidth, spec.patch);
  spec.merge = integer_or(object, "merge", 1, kMaxWidth, spec.merge);
  const auto pixels = [&](std::string_view key, std::int64_t fallback) {
    const auto found = object.find(key);
    return found ? found->integer(1) : fallback;
  };
  spec.min_pixels = pixels("min_pixels", spec.min_pixels);
  spec.max_pixels = pixels("max_pixels", spec.max_pixels);
  spec.clip_tokens_per_s =
      number_or(object, "clip_tokens_per_s", 1e-3, 1e9, spec.clip_tokens_per_s);
  object.finish();
  return TokenRule(std::move(spec), value.where()).spec();
}

PackingSpec read_packing(const JsonValue& value) {
  JsonObject object = value.object();
  PackingSpec packing;
  packing.tokens = integer_or(object, "tokens", 1, kMaxPackedTokens, packing.tokens);
  packing.max_images = integer_or(object, "max_images", 0, kMaxPackedTokens, packing.max_images);
  packing.max_clips = integer_or(object, "max_clips", 1, kMaxPackedTokens, packing.max_clips);
  packing.max_clip_seconds =
      number_or(object, "max_clip_seconds", 1e-3, 1e6, packing.max_clip_seconds);
  object.finish();
  return packing;
}

ParallelPlan read_parallel(const JsonValue& value) {
  JsonObject object = value.object();
  ParallelPlan plan;
  plan.tp = integer_at(object, "tp", kMaxParallel);
  plan.pp = integer_at(object, "pp", kMaxParallel);
  plan.dp = integer_or(object, "dp", 1, kMaxParallel, plan.dp);
  plan.cp = integer_or(object, "cp", 1, kMaxParallel, plan.cp);
  plan.ep = integer_or(object, "ep", 1, kMaxParallel, plan.ep);
  if (const auto context = object.find("context")) {
    plan.context = read_enum<ContextExchange, 2>(*context, "context exchange");
  }
  plan.sequence_parallel = boolean_or(object, "sequence_parallel", plan.sequence_parallel);
  plan.async_tp = boolean_or(object, "async_tp", plan.async_tp);
  plan.zero = integer_or(object, "zero", 0, 1, plan.zero);
  plan.overlap_gradients = boolean_or(object, "overlap_gradients", plan.overlap_gradients);
  plan.clip_gradients = boolean_or(object, "clip_gradients", plan.clip_gradients);
  object.finish();
  return plan;
}

LmmModel read_model(const JsonValue& value) {
  JsonObject object = value.object();
  LmmModel model;
  model.name = object.at("name").text();
  model.title = object.at("title").text();
  object.ignore("source");
  for (const JsonValue& item : object.at("modules").items()) {
    model.modules.push_back(read_use(item, model.modules));
  }
  if (const auto tokens = object.find("tokens")) {
    model.tokens = read_tokens(*tokens);
  }
  if (const auto packing = object.find("packing")) {
    model.packing = read_packing(*packing);
  }
  model.parallel = read_parallel(object.at("parallel"));
  object.finish();
  check_model(model, value.where());
  return model;
}

}  // namespace

LmmModel load_model(const std::string& name_or_path) {
  const JsonDocument document =
      JsonDocument::from_file(shipped_file("models", "model", name_or_path));
  return read_model(document.root());
}

std::vector<std::string> model_names() { return shipped_names("models"); }

ModuleSpec load_module(const std::string& name_or_path) {
  const JsonDocument document =
      JsonDocument::from_file(shipped_file("models/modules", "module", name_or_path));
  return read_module(document.root());
}

std::vector<std::string> module_names() { return shipped_names("models/modules"); }

}  // namespace dipsim
