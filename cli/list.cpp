// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "models/model.hpp"
#include "report/table.hpp"
#include "schedulers/registry.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/workload.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace dipsim::cli {

namespace {

Table list_models() {
  Table table{.name = "models",
              .columns = {{"name", "name", ""},
                          {"title", "what it is", ""},
                          {"modules", "modules", ""},
                          {"tp", "TP", ""},
                          {"pp", "PP", ""},
                          {"dp", "DP", ""}},
              .rows = {}};
  for (const std::string& name : model_names()) {
    const LmmModel model = load_model(name);
    std::string modules;
    for (const LmmModule& module : model.modules) {
      modules += (modules.empty() ? "" : " + ") + module.spec.name;
    }
    table.rows.push_back({text_cell(name), text_cell(model.title), text_cell(modules),
                          whole_cell(model.parallel.tp), whole_cell(model.parallel.pp),
                          whole_cell(model.parallel.dp)});
  }
  return table;
}

Table list_clusters() {
  Table table{.name = "clusters",
              .columns = {{"name", "name", ""},
                          {"title", "what it is", ""},
                          {"gpu", "GPU", ""},
                          {"nodes", "nodes", ""},
                          {"gpus", "GPUs", ""},
                          {"nvlink_gbytes_per_s", "NVLink, one way", "GB/s"},
                          {"nic_gbytes_per_s", "network per GPU", "GB/s"}},
              .rows = {}};
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    table.rows.push_back({text_cell(name), text_cell(cluster.title), text_cell(cluster.gpu.name),
                          whole_cell(cluster.nodes), whole_cell(cluster.gpus()),
                          number_cell(cluster.nvlink_gbytes_per_s, 0),
                          number_cell(cluster.nic_gbytes_per_s, 1)});
  }
  return table;
}

Table list_gpus() {
  Table table{.name = "gpus",
              .columns = {{"name", "name", ""},
                          {"title", "what it is", ""},
                          {"peak_bf16_tflops", "peak BF16", "TFLOP/s"},
                          {"memory_gib", "memory", "GiB"},
                          {"memory_gbytes_per_s", "memory bandwidth", "GB/s"}},
              .rows = {}};
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    table.rows.push_back(
        {text_cell(name), text_cell(gpu.title), number_cell(gpu.peak_bf16_tflops.value, 1),
         number_cell(gpu.memory_gib.value, 1), number_cell(gpu.memory_gbytes_per_s.value, 0)});
  }
  return table;
}

Table list_schedules() {
  Table table{.name = "schedules",
              .columns = {{"name", "name", ""}, {"summary", "rule", ""}, {"source", "source", ""}},
              .rows = {}};
  for (const ScheduleInfo& schedule : all_schedules()) {
    table.rows.push_back({text_cell(std::string(schedule.name)),
                          text_cell(std::string(schedule.summary)),
                          text_cell(std::string(schedule.source))});
  }
  return table;
}

Table list_traces() {
  Table table{.name = "traces",
              .columns = {{"name", "name", ""},
                          {"summary", "what it yields", ""},
                          {"source", "source", ""}},
              .rows = {}};
  for (const TraceInfo& trace : all_traces()) {
    table.rows.push_back({text_cell(std::string(trace.name)), text_cell(std::string(trace.summary)),
                          text_cell(std::string(trace.source))});
  }
  return table;
}

struct Kind {
  std::string_view name;
  Table (*list)();
};

/// One line per kind of thing that can be listed.
constexpr std::array kKinds = {Kind{"models", list_models}, Kind{"clusters", list_clusters},
                               Kind{"gpus", list_gpus}, Kind{"schedules", list_schedules},
                               Kind{"traces", list_traces}};

struct ListFlags {
  std::string kind;
  OutputFlags output;
};

void run_list(const ListFlags& flags) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    if (kind.name == flags.kind) {
      print_result(render_table(kind.list(), flags.output.parsed()));
      return;
    }
    names.push_back(kind.name);
  }
  fail_input("list", unknown_name("kind", flags.kind, names));
}

}  // namespace

void add_list(CLI::App& app) {
  const auto flags = std::make_shared<ListFlags>();
  CLI::App& command = *app.add_subcommand("list", "Show what is there by name");
  command.add_option("kind", flags->kind, "models, clusters, gpus, schedules or traces")
      ->required();
  flags->output.add(command);
  command.callback([flags] { run_list(*flags); });
}

}  // namespace dipsim::cli
