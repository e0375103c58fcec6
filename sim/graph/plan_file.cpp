// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/plan_file.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/plan_tables.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <utility>

namespace dipsim {

using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

/// Text of a value; bytes that are no UTF-8 (of a path, say) become a replacement character.
std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json notes_json(const std::vector<Note>& notes) {
  ordered_json out = ordered_json::array();
  for (const Note& note : notes) {
    out.push_back({note.name, note.text});
  }
  return out;
}

std::vector<Note> read_notes(const JsonValue& value) {
  std::vector<Note> notes;
  for (const JsonValue& item : value.items()) {
    const std::vector<JsonValue> parts = item.items();
    if (parts.size() != 2) {
      item.fail("a note is a list of two texts: name and text");
    }
    notes.push_back({parts[0].text(), parts[1].text()});
  }
  return notes;
}

template <class Tag>
ordered_json ids_json(std::span<const Id<Tag>> ids) {
  ordered_json out = ordered_json::array();
  for (const Id<Tag> id : ids) {
    out.push_back(id.value);
  }
  return out;
}

template <class Tag>
std::vector<Id<Tag>> read_ids(const JsonValue& value) {
  std::vector<Id<Tag>> ids;
  for (const JsonValue& item : value.items()) {
    ids.emplace_back(static_cast<std::int32_t>(item.integer(0, kMaxId)));
  }
  return ids;
}

template <class Tag>
ordered_json id_rows_json(const Rows<Id<Tag>>& rows) {
  ordered_json out = ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back(ids_json(rows[i]));
  }
  return out;
}

template <class Tag>
Rows<Id<Tag>> read_id_rows(const JsonValue& value) {
  Rows<Id<Tag>> rows;
  for (const JsonValue& item : value.items()) {
    const std::vector<Id<Tag>> row = read_ids<Tag>(item);
    rows.add_row(std::span<const Id<Tag>>(row));
  }
  return rows;
}

int small(JsonObject& object, std::string_view key, std::int64_t low = 0) {
  return static_cast<int>(object.at(key).integer(low, kMaxId));
}

Bytes bytes(JsonObject& object, std::string_view key) {
  return Bytes{object.at(key).integer(0, static_cast<std::int64_t>(kMaxBytes))};
}

ordered_json rank_json(const Rank& rank) {
  return {{"replica", rank.replica},
          {"position", rank.position},
          {"tp", rank.tp},
          {"cp", rank.cp},
          {"cells", ids_json(std::span(rank.cells))},
          {"memory_limit_bytes", rank.memory_limit.count},
          {"reserved_bytes", rank.reserved.count},
          {"speed", rank.speed}};
}

Rank read_rank(const JsonValue& value) {
  JsonObject object = value.object();
  Rank rank{.replica = small(object, "replica"),
            .position = small(object, "position"),
            .tp = small(object, "tp", 1),
            .cp = small(object, "cp", 1),
            .cells = read_ids<CellTag>(object.at("cells")),
            .memory_limit = bytes(object, "memory_limit_bytes"),
            .reserved = bytes(object, "reserved_bytes"),
            .speed = object.at("speed").number(1e-6, 1e6)};
  object.finish();
  return rank;
}

ordered_json chunk_json(const Chunk& chunk) {
  ordered_json layers = ordered_json::array();
  for (const LayerRange& range : chunk.layers) {
    layers.push_back({range.module.value, range.first, range.count});
  }
  return {{"layers", layers},
          {"rank", chunk.rank.value},
          {"weight_set", chunk.weight_set},
          {"copy", chunk.copy},
          {"weights_bytes", chunk.weights.count},
          {"gradients_bytes", chunk.gradients.count},
          {"optimizer_bytes", chunk.optimizer.count}};
}

/// A list of exactly three whole numbers.
std::array<int, 3> read_triple(const JsonValue& value, std::string_view what) {
  const std::vector<JsonValue> parts = value.items();
  if (parts.size() != 3) {
    value.fail(fmt::format("must be three whole numbers: {}", what));
  }
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < 3; ++i) {
    numbers[i] = static_cast<int>(parts[i].integer(0, kMaxId));
  }
  return numbers;
}

Chunk read_chunk(const JsonValue& value) {
  JsonObject object = value.object();
  Chunk chunk;
  for (const JsonValue& item : object.at("layers").items()) {
    const auto [module, first, count] = read_triple(item, "module, first layer, layers");
    chunk.layers.push_back({ModuleId(module), first, count});
  }
  chunk.rank = RankId(small(object, "rank"));
  chunk.weight_set = small(object, "weight_set");
  chunk.copy = small(object, "copy");
  chunk.weights = bytes(object, "weights_bytes");
  chunk.gradients = bytes(object, "gradients_bytes");
  chunk.optimizer = bytes(object, "optimizer_bytes");
  object.finish();
  return chunk;
}

ordered_json work_json(const Work& work) {
  ordered_json portions = ordered_json::array();
  for (const Portion& portion : work.portions) {
    portions.push_back({portion.microbatch.value, portion.first, portion.count});
  }
  return {{"iteration", work.iteration}, {"replica", work.replica},
          {"module", work.module.value}, {"sequence_piece", work.sequence_piece},
          {"copy", work.copy},           {"portions", portions}};
}

Work read_work(const JsonValue& value) {
  JsonObject object = value.object();
  Work work{.iteration = small(object, "iteration"),
            .replica = small(object, "replica"),
            .module = ModuleId(small(object, "module", -1)),
            .sequence_piece = small(object, "sequence_piece"),
            .copy = small(object, "copy"),
            .portions = {}};
  for (const JsonValue& item : object.at("portions").items()) {
    const auto [microbatch, first, count] = read_triple(item, "microbatch, first, count");
    work.portions.push_back({MicrobatchId(microbatch), first, count});
  }
  object.finish();
  return work;
}

ordered_json placement_json(const Placement& placement) {
  ordered_json ranks = ordered_json::array();
  for (const Rank& rank : placement.ranks) {
    ranks.push_back(rank_json(rank));
  }
  ordered_json chunks = ordered_json::array();
  for (const Chunk& chunk : placement.chunks) {
    chunks.push_back(chunk_json(chunk));
  }
  ordered_json json = {{"cells", id_rows_json(placement.cells)},
                       {"ranks", ranks},
                       {"chunks", chunks},
                       {"groups", id_rows_json(placement.groups)},
                       {"slice_instances", placement.slice_instances},
                       {"notes", notes_json(placement.notes)}};
  if (placement.step_microbatches != 1) {
    json["step_microbatches"] = placement.step_microbatches;
  }
  return json;
}

Placement read_placement(const JsonValue& value) {
  JsonObject object = value.object();
  Placement placement;
  placement.cells = read_id_rows<GpuTag>(object.at("cells"));
  for (const JsonValue& item : object.at("ranks").items()) {
    placement.ranks.push_back(read_rank(item));
  }
  for (const JsonValue& item : object.at("chunks").items()) {
    placement.chunks.push_back(read_chunk(item));
  }
  placement.groups = read_id_rows<RankTag>(object.at("groups"));
  for (const JsonValue& item : object.at("slice_instances").items()) {
    placement.slice_instances.push_back(static_cast<int>(item.integer(0, kMaxId)));
  }
  if (const auto step = object.find("step_microbatches")) {
    placement.step_microbatches = static_cast<int>(step->integer(1, kMaxId));
  }
  placement.notes = read_notes(object.at("notes"));
  object.finish();
  return placement;
}

/// A slot is a task, or a list of the two tasks of an overlapped step.
ordered_json compute_json(const Rows<Slot>& compute) {
  ordered_json cells = ordered_json::array();
  for (std::size_t cell = 0; cell < compute.size(); ++cell) {
    ordered_json order = ordered_json::array();
    for (const Slot& slot : compute[cell]) {
      if (slot.together.valid()) {
        order.push_back({slot.task.value, slot.together.value});
      } else {
        order.push_back(slot.task.value);
      }
    }
    cells.push_back(std::move(order));
  }
  return cells;
}

Slot read_slot(const JsonValue& value) {
  if (!value.is_array()) {
    return {.task = TaskId(static_cast<std::int32_t>(value.integer(0, kMaxId))), .together = {}};
  }
  const std::vector<TaskId> tasks = read_ids<TaskTag>(value);
  if (tasks.size() != 2) {
    value.fail("an overlapped step is a list of two tasks");
  }
  return {.task = tasks[0], .together = tasks[1]};
}

ordered_json engine_json(const EngineOptions& engine) {
  return {{"lanes", name_of(engine.lanes)},
          {"send", name_of(engine.send)},
          {"host_issue_ns", engine.host_issue.count()},
          {"jitter", engine.jitter},
          {"jitter_seed", engine.seed},
          {"contention", engine.contention}};
}

EngineOptions read_engine(const JsonValue& value) {
  JsonObject object = value.object();
  const JsonValue lanes = object.at("lanes");
  const JsonValue send = object.at("send");
  constexpr std::int64_t kLongestIssueNs = 1'000'000'000;
  EngineOptions engine{
      .lanes = lane_policy_of(lanes.text(), lanes.where()),
      .send = send_mode_of(send.text(), send.where()),
      .host_issue = Duration(object.at("host_issue_ns").integer(0, kLongestIssueNs)),
      .jitter = object.at("jitter").number(0.0, 1.0),
      .seed = static_cast<std::uint64_t>(object.at("jitter_seed").integer(0)),
      .contention = object.at("contention").boolean()};
  object.finish();
  return engine;
}

ordered_json offloads_json(const std::vector<OffloadWindow>& offloads) {
  ordered_json out = ordered_json::array();
  for (const OffloadWindow& window : offloads) {
    out.push_back({window.pair.value, window.freed_before.value, window.fetched_after.value});
  }
  return out;
}

std::vector<OffloadWindow> read_offloads(const JsonValue& value) {
  std::vector<OffloadWindow> offloads;
  for (const JsonValue& item : value.items()) {
    const auto [pair, freed, fetched] = read_triple(item, "pair, freed before, fetched after");
    offloads.push_back({PairId(pair), TaskId(freed), TaskId(fetched)});
  }
  return offloads;
}

Schedule read_schedule(const JsonValue& value) {
  JsonObject object = value.object();
  Schedule schedule;
  for (const JsonValue& order : object.at("compute").items()) {
    schedule.compute.add_row();
    for (const JsonValue& slot : order.items()) {
      schedule.compute.push_back(read_slot(slot));
    }
  }
  schedule.comm = read_id_rows<TaskTag>(object.at("comm"));
  schedule.chosen = read_ids<StrategyTag>(object.at("chosen"));
  if (const auto offloads = object.find("offloads")) {
    schedule.offloads = read_offloads(*offloads);
  }
  object.finish();
  return schedule;
}

TaskGraph read_graph(const JsonValue& value) {
  JsonObject object = value.object();
  TaskGraph graph;
  graph.placement = read_placement(object.at("placement"));
  for (const JsonValue& item : object.at("modules").items()) {
    graph.module_names.push_back(item.text());
  }
  for (const JsonValue& item : object.at("works").items()) {
    graph.works.push_back(read_work(item));
  }
  graph.tasks = plan_tables::read<Task>(object.at("tasks"));
  graph.edges = plan_tables::read<Edge>(object.at("edges"));
  graph.pairs = plan_tables::read<Pair>(object.at("pairs"));
  graph.strategies = plan_tables::read<Strategy>(object.at("strategies"));
  graph.overlaps = plan_tables::read<Overlap>(object.at("overlaps"));
  graph.model_flops = object.at("model_flops").number(0.0);
  graph.peak_flops_per_s = object.at("peak_flops_per_s").number(0.0);
  object.finish();
  return graph;
}

std::string graph_text(const TaskGraph& graph) {
  ordered_json works = ordered_json::array();
  for (const Work& work : graph.works) {
    works.push_back(work_json(work));
  }
  return fmt::format(
      "{{\n\"placement\": {},\n\"modules\": {},\n\"works\": {},\n\"tasks\": {},\n\"edges\": {},\n"
      "\"pairs\": {},\n\"strategies\": {},\n\"overlaps\": {},\n\"model_flops\": {},\n"
      "\"peak_flops_per_s\": {}\n}}",
      dump(placement_json(graph.placement)), dump(ordered_json(graph.module_names)), dump(works),
      plan_tables::write(std::span(graph.tasks)), plan_tables::write(std::span(graph.edges)),
      plan_tables::write(std::span(graph.pairs)), plan_tables::write(std::span(graph.strategies)),
      plan_tables::write(std::span(graph.overlaps)), dump(ordered_json(graph.model_flops)),
      dump(ordered_json(graph.peak_flops_per_s)));
}

}  // namespace

std::string write_plan(const PlanFile& plan) {
  ordered_json schedule = {{"compute", compute_json(plan.schedule.compute)},
                           {"comm", id_rows_json(plan.schedule.comm)},
                           {"chosen", ids_json(std::span(plan.schedule.chosen))}};
  if (!plan.schedule.offloads.empty()) {
    schedule["offloads"] = offloads_json(plan.schedule.offloads);
  }
  return fmt::format(
      "{{\n\"schema_version\": {},\n\"name\": {},\n\"title\": {},\n\"provenance\": {},\n"
      "\"cluster\": {},\n\"engine\": {},\n\"graph\": {},\n\"schedule\": {}\n}}\n",
      kPlanSchemaVersion, dump(ordered_json(plan.name)), dump(ordered_json(plan.title)),
      dump(notes_json(plan.provenance)),
      plan.cluster ? dump(ordered_json(to_json(*plan.cluster))) : std::string("null"),
      dump(engine_json(plan.engine)), graph_text(plan.graph), dump(schedule));
}

PlanFile read_plan(const JsonValue& root) {
  JsonObject object = root.object();
  const JsonValue version = object.at("schema_version");
  if (version.integer(0) != kPlanSchemaVersion) {
    version.fail(fmt::format("this program reads plans of schema version {}", kPlanSchemaVersion));
  }
  PlanFile plan;
  plan.name = object.at("name").text();
  plan.title = object.at("title").text();
  plan.provenance = read_notes(object.at("provenance"));
  const JsonValue cluster = object.at("cluster");
  if (!cluster.raw().is_null()) {
    plan.cluster = read_cluster(cluster);
  }
  const JsonValue engine = object.at("engine");
  plan.engine = read_engine(engine);
  if (plan.engine.contention && !plan.cluster) {
    engine.fail("\"contention\" is true, but without a cluster there are no links to share");
  }
  plan.graph = read_graph(object.at("graph"));
  plan.schedule = read_schedule(object.at("schedule"));
  object.finish();
  try {
    validate(plan.graph);
    validate(plan.graph, plan.schedule);
  } catch (const Error& error) {
    fail_input(root.where() + error.where(), error.message());
  }
  return plan;
}

PlanFile read_plan(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  return read_plan(document.root());
}

}  // namespace dipsim
