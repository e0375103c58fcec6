// SPDX-License-Identifier: Apache-2.0
#include "experiment/setup.hpp"

#include "experiment/schedule_choice.hpp"
#include "experiment/sharded.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/compose.hpp"
#include "traces/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace dipsim {

namespace {

ParallelPlan plan_of(const ExperimentSpec& spec, const LmmModel& model) {
  ParallelPlan plan = model.parallel;
  plan.tp = spec.tp.value_or(plan.tp);
  plan.pp = spec.pp.value_or(plan.pp);
  plan.dp = spec.dp.value_or(plan.dp);
  plan.cp = spec.cp.value_or(plan.cp);
  plan.ep = spec.ep.value_or(plan.ep);
  return plan;
}

bool any_shards_weights(const ExperimentSpec& spec) {
  return std::ranges::any_of(spec.schedules, [](const std::string& text) {
    return parse_schedule(text, "schedules").info->shards_weights;
  });
}

/// Items of one kind per microbatch, averaged over an iteration.
struct LoadKind {
  std::string_view name;
  double (*count)(const Microbatch&);
};

constexpr std::array<LoadKind, 4> kLoadKinds = {{
    {"images per microbatch",
     [](const Microbatch& m) { return static_cast<double>(m.images.size()); }},
    {"audio clips per microbatch",
     [](const Microbatch& m) { return static_cast<double>(m.audios.size()); }},
    {"video clips per microbatch",
     [](const Microbatch& m) { return static_cast<double>(m.clips.size()); }},
    {"video tokens per microbatch",
     [](const Microbatch& m) {
       return std::accumulate(m.clips.begin(), m.clips.end(), 0.0,
                              [](double sum, const MediaTokens& c) { return sum + c.encoder; });
     }},
}};

void add_loads(std::span<const Microbatch> microbatches, std::vector<LoadSeries>& loads) {
  for (std::size_t kind = 0; kind < kLoadKinds.size(); ++kind) {
    double total = 0.0;
    for (const Microbatch& microbatch : microbatches) {
      total += kLoadKinds[kind].count(microbatch);
    }
    loads[kind].per_iteration.push_back(total / static_cast<double>(microbatches.size()));
  }
}

/// Drops the kinds that never occur.
void drop_empty(std::vector<LoadSeries>& loads) {
  std::erase_if(loads, [](const LoadSeries& load) {
    return std::ranges::all_of(load.per_iteration, [](double value) { return value == 0.0; });
  });
}

std::size_t median_iteration(const ModelLowering& lowering, std::span<const Batch> batches) {
  std::vector<std::pair<double, std::size_t>> by_flops;
  by_flops.reserve(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    by_flops.emplace_back(lowering.model_flops(batches[i]), i);
  }
  const auto middle = by_flops.begin() + static_cast<std::ptrdiff_t>(by_flops.size() / 2);
  std::nth_element(by_flops.begin(), middle, by_flops.end());
  return middle->second;
}

std::vector<Note> inputs_of(const ExperimentSpec& spec, const ParallelPlan& plan,
                            const Cluster& cluster) {
  std::string schedules;
  for (const std::string& schedule : spec.schedules) {
    schedules += (schedules.empty() ? "" : ",") + schedule;
  }
  std::vector<Note> notes = {{"model", spec.model},
                             {"cluster", spec.cluster},
                             {"trace", spec.trace},
                             {"schedules", schedules},
                             {"iterations", std::to_string(spec.iterations)},
                             {"microbatches", std::to_string(spec.microbatches)},
                             {"seed", std::to_string(spec.seed)},
                             {"compose", spec.compose ? "true" : "false"},
                             {"tp", std::to_string(plan.tp)},
                             {"pp", std::to_string(plan.pp)},
                             {"dp", std::to_string(plan.dp)},
                             {"profile", spec.profile.empty() ? "shipped" : spec.profile},
                             {"usable_memory_fraction", shortest(cluster.usable_memory_fraction)},
                             {"slow_gpus", text_of(spec.slow_gpus)}};
  if (plan.cp > 1) {
    notes.push_back({"cp", std::to_string(plan.cp)});
  }
  if (plan.ep > 1) {
    notes.push_back({"ep", std::to_string(plan.ep)});
  }
  for (Note& note : engine_notes(spec.engine)) {
    notes.push_back(std::move(note));
  }
  return notes;
}

/// GPUs that are slow but take no part: most likely a wrong number.
void warn_of_idle_slow_gpus(const Cluster& cluster, const ParallelPlan& plan, Setup& setup) {
  const int used = plan.rank_gpus() * plan.pp * plan.dp;
  for (const SlowGpu& slow : cluster.slow_gpus) {
    if (slow.gpu.value >= used) {
      setup.warnings.push_back(fmt::format(
          "GPU {} is slow but takes no part: the plan has GPUs 0 to {}", slow.gpu.value, used - 1));
      return;
    }
  }
}

/// What composing did so far, summed over iterations.
struct ComposedSoFar {
  Evenness packed{.microbatches = {.peak = 0.0}, .replicas = {.peak = 0.0}};
  Evenness composed = packed;
  int iterations = 0;
  bool divisible = false;

  void add(const ComposedIteration& iteration) {
    packed.microbatches.peak += iteration.packed.microbatches.peak;
    packed.replicas.peak += iteration.packed.replicas.peak;
    composed.microbatches.peak += iteration.composed.microbatches.peak;
    composed.replicas.peak += iteration.composed.replicas.peak;
    divisible = divisible || iteration.divisible;
    ++iterations;
  }
};

/// Everything but the data, and the trace that they come from.
struct Opened {
  Setup setup;
  std::vector<Feed> feeds;
  int replicas = 1;
  bool compose = false;
  ComposedSoFar composed;
  std::unique_ptr<Workload> workload;
};

Opened open(const ExperimentSpec& spec) {
  check(spec);
  LmmModel model = load_model(spec.model);
  Cluster cluster = load_cluster(spec.cluster);
  cluster.usable_memory_fraction =
      spec.usable_memory_fraction.value_or(cluster.usable_memory_fraction);
  if (!spec.profile.empty()) {
    cluster.gpu.profile = load_profile(spec.profile);
  }
  cluster.slow_gpus = with_speeds(std::move(cluster.slow_gpus),
                                  slow_gpus(spec.slow_gpus, cluster.nodes, cluster.gpus_per_node));
  const ParallelPlan plan = plan_of(spec, model);
  const WorkloadOptions options{.tokens = model.tokens,
                                .packing = model.packing,
                                .feeds = model.feeds(),
                                .microbatches = static_cast<std::size_t>(spec.microbatches) *
                                                static_cast<std::size_t>(plan.dp),
                                .seed = spec.seed,
                                .first_pass = FirstPass::FileOrder};
  Opened opened{.setup = {},
                .feeds = options.feeds,
                .replicas = plan.dp,
                .compose = spec.compose,
                .composed = {},
                .workload = {}};
  opened.setup.title = fmt::format("{} on {} × {}", model.title,
                                   plan.rank_gpus() * plan.pp * plan.dp, cluster.gpu.title);
  opened.setup.inputs = inputs_of(spec, plan, cluster);
  warn_of_idle_slow_gpus(cluster, plan, opened.setup);
  for (const LoadKind& kind : kLoadKinds) {
    opened.setup.loads.push_back({std::string(kind.name), {}});
  }
  opened.setup.lowering = std::make_unique<ModelLowering>(model, cluster, plan);
  if (any_shards_weights(spec)) {
    opened.setup.sharded_lowering =
        std::make_unique<ModelLowering>(std::move(model), std::move(cluster), sharded_plan(plan));
  }
  opened.workload = open_workload(spec.trace, options);
  return opened;
}

std::vector<Microbatch> compose(Opened& opened, std::span<const Microbatch> packed) {
  const ModelLowering& lowering = *opened.setup.lowering;
  const SampleWork flops = [&](const Microbatch& sample) {
    const Batch alone = make_batch(std::span(&sample, 1), opened.feeds, 1);
    return lowering.module_flops(alone, MicrobatchId{0});
  };
  ComposedIteration out =
      compose_microbatches(packed, lowering.model().packing, opened.replicas, flops);
  opened.composed.add(out);
  return std::move(out.microbatches);
}

void report_composed(const ComposedSoFar& done, int replicas, const std::string& trace,
                     Setup& setup) {
  if (!done.divisible && replicas == 1) {
    setup.warnings.push_back(trace +
                             ": compose changes nothing: every microbatch is one sample, which "
                             "stays whole, and there is one replica");
    return;
  }
  const auto mean = [&](double sum) { return sum / done.iterations; };
  std::string text = fmt::format(
      "Composed microbatches: the largest has {:.2f} × the mean FLOPs, {:.2f} × as "
      "packed",
      mean(done.composed.microbatches.peak), mean(done.packed.microbatches.peak));
  if (replicas > 1) {
    text += fmt::format("; the largest replica {:.3f} ×, {:.3f} × as packed",
                        mean(done.composed.replicas.peak), mean(done.packed.replicas.peak));
  }
  setup.remarks.push_back(text + ".");
}

/// Deals the microbatches of an iteration to all GPUs, unless that is impossible.
void shard(Opened& opened, std::span<const Microbatch> microbatches, const Batch& batch) {
  Setup& setup = opened.setup;
  if (!setup.sharded_lowering || setup.sharded_impossible) {
    return;
  }
  std::vector<double> flops;
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    const std::vector<double> modules = setup.lowering->module_flops(batch, MicrobatchId{m});
    flops.push_back(std::accumulate(modules.begin(), modules.end(), 0.0));
  }
  const int gpus = setup.sharded_lowering->plan().dp;
  try {
    setup.sharded_batches.push_back(
        make_batch(deal_evenly(microbatches, flops, static_cast<std::size_t>(gpus),
                               static_cast<std::size_t>(opened.replicas)),
                   opened.feeds, gpus));
  } catch (const Error& error) {
    setup.sharded_impossible = error;
  }
}

void pack(Opened& opened, std::size_t iteration) {
  std::vector<Microbatch> microbatches = opened.workload->iteration(iteration);
  if (opened.compose) {
    microbatches = compose(opened, microbatches);
  }
  add_loads(microbatches, opened.setup.loads);
  opened.setup.batches.push_back(make_batch(microbatches, opened.feeds, opened.replicas));
  shard(opened, microbatches, opened.setup.batches.back());
}

Setup finish(Opened opened) {
  Setup& setup = opened.setup;
  drop_empty(setup.loads);
  for (std::string& warning : opened.workload->warnings()) {
    setup.warnings.push_back(std::move(warning));
  }
  if (opened.composed.iterations > 0) {
    report_composed(opened.composed, opened.replicas, opened.workload->name(), setup);
  }
  if (!setup.batches.empty()) {
    setup.representative = median_iteration(*setup.lowering, setup.batches);
  }
  return std::move(setup);
}

}  // namespace

const ModelLowering& Setup::lowering_of(const ScheduleInfo& schedule) const {
  if (!schedule.shards_weights) {
    return *lowering;
  }
  if (sharded_impossible) {
    throw Error(*sharded_impossible);
  }
  return *sharded_lowering;
}

const std::vector<Batch>& Setup::batches_of(const ScheduleInfo& schedule) const {
  return schedule.shards_weights ? sharded_batches : batches;
}

Setup prepare(const ExperimentSpec& spec, const std::stop_token& stop) {
  Opened opened = open(spec);
  const auto iterations = static_cast<std::size_t>(spec.iterations);
  for (std::size_t i = 0; i < iterations && !stop.stop_requested(); ++i) {
    pack(opened, i);
  }
  return finish(std::move(opened));
}

Setup prepare_iteration(const ExperimentSpec& spec, std::size_t iteration) {
  Opened opened = open(spec);
  pack(opened, iteration);
  return finish(std::move(opened));
}

}  // namespace dipsim
