// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "experiment/compare.hpp"
#include "experiment/schedule_choice.hpp"
#include "experiment/setup.hpp"
#include "experiment/single.hpp"
#include "models/model.hpp"
#include "models/placed_module.hpp"
#include "report/table.hpp"
#include "schedulers/registry.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/graph/plan_file.hpp"
#include "traces/workload.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace dipsim::cli {

namespace {

struct DescribeFlags {
  std::string name;
  ExperimentFlags experiment;
  OutputFlags output;
};

/// Two columns: what, and its value.
Table facts(std::vector<Note> notes) {
  Table table{
      .name = "facts", .columns = {{"name", "what", ""}, {"value", "value", ""}}, .rows = {}};
  for (Note& note : notes) {
    table.rows.push_back({text_cell(std::move(note.name)), text_cell(std::move(note.text))});
  }
  return table;
}

/// The rule of a schedule, and the numbers behind its placement on the model that flags name, under
/// the variant that compare would choose on the representative iteration alone.
Table describe_schedule(const CLI::App& app, const DescribeFlags& flags) {
  ExperimentSpec spec = flags.experiment.spec(app);
  spec.schedules = {flags.name};
  const ScheduleChoice choice = parse_schedule(flags.name, "describe");
  Setup setup = prepare(spec);
  setup.batches = {setup.batches[setup.representative]};
  setup.representative = 0;
  const Comparison comparison = compare(spec, setup, {});
  std::vector<Note> notes = {{"schedule", std::string(choice.info->name)},
                             {"rule", std::string(choice.info->summary)},
                             {"source", std::string(choice.info->source)},
                             {"placed on", setup.title}};
  const std::vector<Note>& found = comparison.schedules.front().notes;
  notes.insert(notes.end(), found.begin(), found.end());
  return facts(std::move(notes));
}

Table describe_model(const std::string& name_or_path) {
  const LmmModel model = load_model(name_or_path);
  Table table{.name = "modules",
              .columns = {{"module", "module", ""},
                          {"feed", "takes", ""},
                          {"layers", "layers", ""},
                          {"hidden", "hidden", ""},
                          {"ffn", "FFN", ""},
                          {"heads", "heads", ""},
                          {"kv_groups", "KV heads", ""},
                          {"attention", "attention", ""},
                          {"block_parameters", "blocks", "10⁹ parameters"},
                          {"parameters", "with embedding and head", "10⁹ parameters"},
                          {"trained", "trained", ""}},
              .rows = {}};
  const std::vector<PlacedModule> placed = place_modules(model, {});
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const ModuleSpec& spec = placed[i].spec;
    const std::vector<double> layers = layer_parameters(placed[i]);
    double all = 0.0;
    for (const double parameters : layers) {
      all += parameters;
    }
    const double blocks =
        all - parameters_of(placed[i], Part::First) - parameters_of(placed[i], Part::Last);
    table.rows.push_back(
        {text_cell(spec.name), text_cell(std::string(name_of(model.modules[i].feed))),
         whole_cell(spec.layers), whole_cell(spec.hidden), whole_cell(spec.ffn),
         whole_cell(spec.heads), whole_cell(spec.kv_groups),
         text_cell(std::string(name_of(model.modules[i].mask))), number_cell(blocks * 1e-9, 2),
         number_cell(all * 1e-9, 2), yes_no_cell(model.modules[i].trained)});
  }
  return table;
}

/// Every number with its evidence and source.
Table describe_gpu(const Gpu& gpu) {
  Table table{.name = "parameters",
              .columns = {{"name", "parameter", ""},
                          {"value", "value", ""},
                          {"evidence", "evidence", ""},
                          {"source", "source", ""}},
              .rows = {}};
  std::vector<NamedParameter> all = {{"peak_bf16_tflops", gpu.peak_bf16_tflops},
                                     {"peak_fp8_tflops", gpu.peak_fp8_tflops},
                                     {"peak_tf32_tflops", gpu.peak_tf32_tflops},
                                     {"multiprocessors", gpu.multiprocessors},
                                     {"memory_gib", gpu.memory_gib},
                                     {"memory_gbytes_per_s", gpu.memory_gbytes_per_s},
                                     {"nvlink_gbytes_per_s", gpu.nvlink_gbytes_per_s},
                                     {"pcie_gbytes_per_s", gpu.pcie_gbytes_per_s}};
  const std::vector<NamedParameter> curves = parameters(gpu.profile);
  all.insert(all.end(), curves.begin(), curves.end());
  for (const NamedParameter& named : all) {
    table.rows.push_back({text_cell(named.name), text_cell(shortest(named.parameter.value)),
                          text_cell(std::string(name_of(named.parameter.evidence))),
                          text_cell(named.parameter.source)});
  }
  return table;
}

std::string node_text(const Cluster& cluster) {
  return cluster.node_links.kind == NodeKind::Pcie
             ? fmt::format("PCIe, {} GPUs per switch", cluster.node_links.gpus_per_switch)
             : "NVLink, every GPU to every other";
}

std::string fabric_text(const Cluster& cluster) {
  if (!cluster.fabric) {
    return "none: every network card reaches every other at full speed";
  }
  return fmt::format("{}, {} nodes per leaf switch, oversubscription {}",
                     name_of(cluster.fabric->kind), cluster.fabric->nodes_per_leaf,
                     shortest(cluster.fabric->oversubscription));
}

/// What goes before the model, and which GPUs are slow.
void add_exceptions(const Cluster& cluster, std::vector<Note>& notes) {
  for (const MeasuredTable& table : cluster.measured) {
    notes.push_back(
        {"measured", fmt::format("{} on {} GPUs in {} nodes, {} sizes from {} to {} bytes ({})",
                                 kind_name(table), table.members, table.nodes, table.points.size(),
                                 shortest(table.points.front().bytes),
                                 shortest(table.points.back().bytes), table.source)});
  }
  for (const SlowGpu& slow : cluster.slow_gpus) {
    notes.push_back(
        {"slow GPU", fmt::format("{} at {} of full speed", slow.gpu.value, shortest(slow.speed))});
  }
}

Table describe_cluster(const std::string& name_or_path) {
  const Cluster cluster = load_cluster(name_or_path);
  std::vector<Note> notes = {
      {"cluster", cluster.title},
      {"GPU", cluster.gpu.title + " (dipsim describe " + cluster.gpu.name + ")"},
      {"nodes", std::to_string(cluster.nodes)},
      {"GPUs per node", std::to_string(cluster.gpus_per_node)},
      {"inside a node", node_text(cluster)},
      {"between nodes", fabric_text(cluster)},
      {"NVLink, one way, GB/s", shortest(cluster.nvlink_gbytes_per_s)},
      {"network per GPU, one way, GB/s", shortest(cluster.nic_gbytes_per_s)},
      {"to host memory per GPU, one way, GB/s", shortest(cluster.host_gbytes_per_s)},
      {"reserved per GPU, GiB",
       shortest(cluster.reserved_gib) +
           " (context, communication buffers, library workspaces, fragmentation)"},
      {"usable share of memory", shortest(cluster.usable_memory_fraction)},
      {"limit per GPU, GiB", shortest(to_gib(cluster.memory_limit()))}};
  add_exceptions(cluster, notes);
  return facts(std::move(notes));
}

Table describe_plan(const std::string& path) {
  const PlanFile plan = read_plan(std::filesystem::path(path));
  std::vector<Note> notes = {{"plan", plan.title},
                             {"schedule", plan.name},
                             {"ranks", std::to_string(plan.graph.placement.ranks.size())},
                             {"chunks", std::to_string(plan.graph.placement.chunks.size())},
                             {"works", std::to_string(plan.graph.works.size())},
                             {"tasks", std::to_string(plan.graph.tasks.size())}};
  for (Note& note : offload_notes(plan.graph, plan.schedule)) {
    notes.push_back(std::move(note));
  }
  notes.insert(notes.end(), plan.graph.placement.notes.begin(), plan.graph.placement.notes.end());
  notes.insert(notes.end(), plan.provenance.begin(), plan.provenance.end());
  return facts(std::move(notes));
}

/// A file of the user's own: what it is shows in the key that only such files have.
Table describe_file(const std::string& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  JsonObject object = document.root().object();
  if (object.find("schedule")) {
    return describe_plan(path);
  }
  if (object.find("modules")) {
    return describe_model(path);
  }
  if (object.find("nodes")) {
    return describe_cluster(path);
  }
  if (object.find("profile")) {
    return describe_gpu(load_gpu(path));
  }
  fail_input(path,
             "is no plan, model, cluster or GPU: none of the keys \"schedule\", \"modules\", "
             "\"nodes\" and \"profile\" is there");
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_schedule(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  return std::ranges::find(all_schedules(), name, &ScheduleInfo::name) != all_schedules().end();
}

Table describe(const CLI::App& app, const DescribeFlags& flags) {
  const std::string& name = flags.name;
  const bool schedule_named = is_schedule(name);
  for (const char* flag : kWorkloadFlags) {
    if (!schedule_named && given(app, flag)) {
      fail_input(flag, "says what a schedule is placed on; it has no meaning for " + name);
    }
  }
  if (schedule_named) {
    return describe_schedule(app, flags);
  }
  if (contains(model_names(), name)) {
    return describe_model(name);
  }
  if (contains(cluster_names(), name)) {
    return describe_cluster(name);
  }
  if (contains(gpu_names(), name)) {
    return describe_gpu(load_gpu(name));
  }
  for (const TraceInfo& trace : all_traces()) {
    if (trace.name == name) {
      return facts({{"trace", name},
                    {"yields", std::string(trace.summary)},
                    {"source", std::string(trace.source)}});
    }
  }
  if (std::filesystem::exists(name)) {
    return describe_file(name);
  }
  std::vector<std::string> known = model_names();
  for (const auto& names : {cluster_names(), gpu_names()}) {
    known.insert(known.end(), names.begin(), names.end());
  }
  for (const ScheduleInfo& info : all_schedules()) {
    known.emplace_back(info.name);
  }
  for (const TraceInfo& trace : all_traces()) {
    known.emplace_back(trace.name);
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  fail_input("describe", unknown_name("name", name, views));
}

}  // namespace

void add_describe(CLI::App& app) {
  const auto flags = std::make_shared<DescribeFlags>();
  CLI::App& command = *app.add_subcommand(
      "describe",
      "Explain one thing: a schedule (and why it places a model as it does), a model, "
      "a cluster, a GPU, a trace, or a file with one of these or a plan");
  command.add_option("name", flags->name, "a name that dipsim list shows, or a file")->required();
  flags->experiment.add_workload(command);
  flags->output.add(command);
  command.callback([&command, flags] {
    print_result(render_table(describe(command, *flags), flags->output.parsed()));
  });
}

}  // namespace dipsim::cli
