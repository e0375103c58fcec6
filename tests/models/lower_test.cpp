// SPDX-License-Identifier: Apache-2.0
#include "models/lower.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/models/fake_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeCosts;
using test::FakeMicrobatch;
using test::FakeModule;

/// Layers [first, first + count) of a module on a rank.
Chunk chunk(int module, int first, int count, int rank, int weight_set, int copy = 0) {
  Chunk made;
  made.layers = {{ModuleId{module}, first, count}};
  made.rank = RankId{rank};
  made.weight_set = weight_set;
  made.copy = copy;
  return made;
}

Draft draft_on(const FakeCosts& costs, std::vector<Chunk> chunks, bool split_backward = false) {
  Draft draft;
  draft.placement.cells = costs.problem().cells;
  draft.placement.ranks = costs.problem().ranks;
  draft.placement.chunks = std::move(chunks);
  draft.split_backward = split_backward;
  return draft;
}

/// `count` instances from `first` on of a module; without module: the whole microbatch.
Work work_on(int microbatch, int module = -1, int first = 0, int count = 0, int replica = 0) {
  Work work;
  work.replica = replica;
  work.module = ModuleId{module};
  work.portions = {{MicrobatchId{microbatch}, first, count}};
  return work;
}

std::size_t count_of(const TaskGraph& graph, Op op) {
  return static_cast<std::size_t>(std::ranges::count(graph.tasks, op, &Task::op));
}

/// Edges as text: "F0w3 > B0w3" says that B of work 3 on chunk 0 waits for its F. Where a transfer
/// stands between the two passes there is "~" for ">".
std::set<std::string> waits(const TaskGraph& graph) {
  const auto name = [&](TaskId id) {
    const Task& task = graph.task(id);
    std::string text(name_of(task.op));
    if (task.chunk.valid()) {
      text += std::to_string(task.chunk.value);
    }
    if (task.work.valid()) {
      text += "w" + std::to_string(task.work.value);
    }
    return text;
  };
  std::map<TaskId, TaskId> senders;
  for (const Edge& edge : graph.edges) {
    if (graph.task(edge.to).op == Op::Transfer) {
      senders[edge.to] = edge.from;
    }
  }
  std::set<std::string> found;
  for (const Edge& edge : graph.edges) {
    if (graph.task(edge.to).op == Op::Transfer) {
      continue;
    }
    const auto sender = senders.find(edge.from);
    const bool through_link = sender != senders.end();
    found.insert(name(through_link ? sender->second : edge.from) + (through_link ? " ~ " : " > ") +
                 name(edge.to));
  }
  return found;
}

using Waits = std::set<std::string>;

TEST_CASE("a work flows through all chunks and its gradient comes back") {
  const FakeCosts costs({{"lm", 2, 1, 2, 3, true, {}}}, 2);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1)});
  draft.works = {work_on(0)};
  const Batch batch = test::fake_batch({{{5}}});
  const TaskGraph graph = lower_draft(draft, batch, costs);

  CHECK_NOTHROW(validate(graph));
  CHECK(waits(graph) == Waits{"F0w0 ~ F1w0", "F0w0 > B0w0", "F1w0 > B1w0", "B1w0 ~ B0w0"});
  CHECK(graph.tasks.size() == 6);
  CHECK(graph.module_names == std::vector<std::string>{"lm"});
  CHECK(graph.model_flops == 3.0);
  CHECK(graph.peak_flops_per_s == 5.0);
}

TEST_CASE("backward is I and W where the draft splits it, and B takes their sum where not") {
  const FakeCosts costs({{"lm", 2, 1, 2, 3, true, {}}}, 2);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1)}, true);
  draft.works = {work_on(0)};
  const Batch batch = test::fake_batch({{{5}}});
  const TaskGraph graph = lower_draft(draft, batch, costs);
  CHECK_NOTHROW(validate(graph));
  CHECK(waits(graph) == Waits{"F0w0 ~ F1w0", "F0w0 > I0w0", "F1w0 > I1w0", "I1w0 ~ I0w0",
                              "I0w0 > W0w0", "I1w0 > W1w0"});
  for (const Pair& pair : graph.pairs) {
    CHECK_FALSE(pair.b.valid());
    const Strategy& keep = graph.allowed(pair).front();
    CHECK(keep.b == keep.i + keep.w);
  }

  draft.split_backward = false;
  const TaskGraph fused = lower_draft(draft, batch, costs);
  CHECK(count_of(fused, Op::B) == 2);
  const std::vector<StrategyId> chosen(2, StrategyId{0});
  CHECK(duration_of(fused, fused.pairs[0].b, chosen) == Duration{5 * (2 + 3)});
}

TEST_CASE("where a draft offloads, the copies of a pair stand between its F and its backward") {
  FakeCosts costs({{"lm", 2, 1, 2, 3, true, {}}}, 2);
  const Batch batch = test::fake_batch({{{4}}});
  for (const bool split : {false, true}) {
    CAPTURE(split);
    Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1)}, split);
    draft.works = {work_on(0, 0, 0, 1)};
    draft.weights_at_once = split;
    draft.offload = true;
    costs.copy = Duration{0};
    const TaskGraph none = costs.lower(draft, batch);
    CHECK(count_of(none, Op::CopyOut) == 0);
    costs.copy = Duration{5};
    const TaskGraph graph = costs.lower(draft, batch);
    CHECK_NOTHROW(validate(graph));
    CHECK(count_of(graph, Op::CopyOut) == 2);
    CHECK(count_of(graph, Op::CopyIn) == 2);
    const Pair& pair = graph.pairs.front();
    const TaskId backward = split ? pair.i : pair.b;
    const auto edge = [&](TaskId from, TaskId to) {
      return std::ranges::count(graph.edges, Edge{from, to});
    };
    CHECK(edge(pair.f, pair.copy_out) == 1);
    CHECK(edge(pair.copy_out, pair.copy_in) == 1);
    CHECK(edge(pair.copy_in, backward) == 1);
    CHECK(edge(pair.f, backward) == 0);
    CHECK(graph.task(pair.copy_out).lane == Lane::DeviceToHost);
    CHECK(graph.task(pair.copy_in).lane == Lane::HostToDevice);
    CHECK(graph.task(pair.copy_in).bytes == Bytes{4});
    // Keep, offload and full; with W at once behind each where the backward is split.
    const auto allowed = graph.allowed(pair);
    REQUIRE(allowed.size() == (split ? 6 : 3));
    const Strategy& offload = allowed[split ? 2 : 1];
    CHECK(offload.mode == RecomputeMode::Offload);
    CHECK(offload.copy == Duration{20});
    CHECK(offload.offload == Bytes{4});
    CHECK(offload.b == allowed[0].b);
    // No uniform mode offloads.
    for (const RecomputeMode mode :
         {RecomputeMode::Keep, RecomputeMode::Selective, RecomputeMode::Full}) {
      CHECK(allowed[uniform_strategy(allowed, mode)].mode != RecomputeMode::Offload);
    }
    draft.offload = false;
    CHECK(costs.lower(draft, batch) == none);
  }
}

TEST_CASE("transfers carry time, latency and bytes of the forward's cost both ways") {
  FakeCosts costs({{"lm", 2, 1, 2, 3, true, {}}}, 2);
  costs.latency = Duration{11};
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1)});
  draft.works = {work_on(0), work_on(1)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{5}}, {{8}}}), costs);
  int seen = 0;
  for (const Task& task : graph.tasks) {
    if (task.op == Op::Transfer) {
      const std::int64_t tokens = task.work == WorkId{0} ? 5 : 8;
      CHECK(task.lane == Lane::Comm);
      CHECK(task.rank != task.peer);
      CHECK(task.fixed == Duration{tokens});
      CHECK(task.latency == Duration{11});
      CHECK(task.bytes == Bytes{2 * tokens});
      CHECK(graph.chunk(task.chunk).rank == task.rank);
      ++seen;
    }
  }
  CHECK(seen == 4);
}

TEST_CASE("chunks on one rank are joined by plain edges") {
  const FakeCosts costs({{"lm", 3, 1, 1, 1, true, {}}}, 2);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1), chunk(0, 2, 1, 1, 2)});
  draft.works = {work_on(0)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{1}}}), costs);
  CHECK_NOTHROW(validate(graph));
  CHECK(count_of(graph, Op::Transfer) == 2);
  CHECK(waits(graph).contains("F1w0 > F2w0"));
  CHECK(waits(graph).contains("B2w0 > B1w0"));
}

/// Encoder with one chunk per rank, then backbone with one chunk per rank, on two ranks.
struct EncoderAndBackbone {
  FakeCosts costs;
  Draft draft;
  Batch batch = test::fake_batch({{{4, 6, 8}, {100}}, {{}, {50}}});

  EncoderAndBackbone(bool encoder_trained, bool backbone_trained, bool split)
      : costs({{"vit", 2, 1, encoder_trained ? 1 : 0, encoder_trained ? 1 : 0, encoder_trained, {}},
               {"lm",
                2,
                1,
                encoder_trained || backbone_trained ? 1 : 0,
                backbone_trained ? 1 : 0,
                backbone_trained,
                {ModuleId{0}}}},
              2) {
    draft = draft_on(
        costs,
        {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1), chunk(1, 0, 1, 0, 2), chunk(1, 1, 1, 1, 3)},
        split);
    // Microbatch 0 in two encoder slices; microbatch 1 has no image, so no encoder work.
    draft.works = {work_on(0, 0, 0, 2), work_on(0, 0, 2, 1), work_on(0, 1, 0, 1),
                   work_on(1, 1, 0, 1)};
  }

  [[nodiscard]] TaskGraph lower() const { return lower_draft(draft, batch, costs); }
};

TEST_CASE("every encoder slice feeds the backbone work of its microbatch, and only that") {
  const TaskGraph graph = EncoderAndBackbone(true, true, false).lower();
  CHECK_NOTHROW(validate(graph));
  const Waits expected{
      // forward of both slices, into the backbone work of microbatch 0
      "F0w0 ~ F1w0", "F0w1 ~ F1w1", "F1w0 ~ F2w2", "F1w1 ~ F2w2", "F2w2 ~ F3w2", "F2w3 ~ F3w3",
      // own forwards before own backwards
      "F0w0 > B0w0", "F1w0 > B1w0", "F0w1 > B0w1", "F1w1 > B1w1", "F2w2 > B2w2", "F3w2 > B3w2",
      "F2w3 > B2w3", "F3w3 > B3w3",
      // and back
      "B3w2 ~ B2w2", "B3w3 ~ B2w3", "B2w2 ~ B1w0", "B2w2 ~ B1w1", "B1w0 ~ B0w0", "B1w1 ~ B0w1"};
  CHECK(waits(graph) == expected);
  // Tokens of a slice decide its pass times and the size of what it hands on.
  const std::vector<StrategyId> fastest = uniform_strategies(graph, RecomputeMode::Keep);
  for (const Pair& pair : graph.pairs) {
    const Work& work = graph.works[graph.task(pair.f).work.row()];
    const std::int64_t tokens[] = {4 + 6, 8, 100, 50};
    CHECK(duration_of(graph, pair.f, fastest) ==
          Duration{tokens[static_cast<std::size_t>(&work - graph.works.data())]});
  }
  for (const Edge& edge : graph.edges) {
    const Task& to = graph.task(edge.to);
    if (to.op == Op::Transfer && graph.task(edge.from).op == Op::B &&
        graph.task(edge.from).chunk == ChunkId{2}) {
      CHECK((to.fixed == Duration{10} || to.fixed == Duration{8}));
    }
  }
}

TEST_CASE("a frozen module with nothing trained upstream has no backward") {
  for (const bool split : {false, true}) {
    const TaskGraph graph = EncoderAndBackbone(false, true, split).lower();
    CHECK_NOTHROW(validate(graph));
    for (const Pair& pair : graph.pairs) {
      const bool encoder = graph.task(pair.f).chunk.value < 2;
      CHECK(pair.b.valid() == (!encoder && !split));
      CHECK(pair.i.valid() == (!encoder && split));
      CHECK(pair.w.valid() == (!encoder && split));
    }
    // Forward hops 2 + 2, links 2, backward hops 2: nothing returns to the encoder.
    CHECK(count_of(graph, Op::Transfer) == 2 + 2 + 2 + 2);
  }
}

TEST_CASE("a frozen module behind a trained one passes gradients but has no W") {
  const TaskGraph graph = EncoderAndBackbone(true, false, true).lower();
  CHECK_NOTHROW(validate(graph));
  for (const Pair& pair : graph.pairs) {
    CHECK(pair.i.valid());
    CHECK(pair.w.valid() == (graph.task(pair.f).chunk.value < 2));
  }
}

TEST_CASE("a model with nothing to train has forwards only") {
  const TaskGraph graph = EncoderAndBackbone(false, false, true).lower();
  CHECK_NOTHROW(validate(graph));
  CHECK(count_of(graph, Op::F) == graph.pairs.size());
  CHECK(count_of(graph, Op::I) + count_of(graph, Op::W) + count_of(graph, Op::B) == 0);
}

TEST_CASE("in mixed chunks gradients skip the chunks that hold frozen layers only") {
  // vit (frozen) | vit + lm | lm: the first chunk gets no gradient.
  const FakeCosts costs({{"vit", 3, 1, 0, 0, false, {}}, {"lm", 3, 1, 1, 1, true, {ModuleId{0}}}},
                        3);
  Draft draft = draft_on(costs, {chunk(0, 0, 2, 0, 0), chunk(0, 2, 1, 1, 1), chunk(1, 1, 2, 2, 2)});
  draft.placement.chunks[1].layers.push_back({ModuleId{1}, 0, 1});
  draft.works = {work_on(0)};
  const Batch batch = test::fake_batch({{{3}, {7}}});
  CHECK(waits(lower_draft(draft, batch, costs)) ==
        Waits{"F0w0 ~ F1w0", "F1w0 ~ F2w0", "F1w0 > B1w0", "F2w0 > B2w0", "B2w0 ~ B1w0"});
}

TEST_CASE("gradients pass over a frozen tower that stands between two trained modules") {
  // vit (trained) | audio (frozen) | lm: the chain of mixed chunks returns lm's gradient to vit.
  const FakeCosts costs({{"vit", 1, 1, 1, 1, true, {}},
                         {"audio", 1, 1, 0, 0, false, {}},
                         {"lm", 1, 1, 1, 1, true, {ModuleId{0}, ModuleId{1}}}},
                        3);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(1, 0, 1, 1, 1), chunk(2, 0, 1, 2, 2)});
  draft.works = {work_on(0)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{1}, {1}, {1}}}), costs);
  CHECK_NOTHROW(validate(graph));
  CHECK(waits(graph) ==
        Waits{"F0w0 ~ F1w0", "F1w0 ~ F2w0", "F0w0 > B0w0", "F2w0 > B2w0", "B2w0 ~ B0w0"});
}

TEST_CASE("a microbatch without images keeps mixed-chunk tasks, of no length") {
  const FakeCosts costs({{"vit", 1, 1, 1, 1, true, {}}, {"lm", 1, 1, 1, 1, true, {ModuleId{0}}}},
                        2);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(1, 0, 1, 1, 1)});
  draft.works = {work_on(0)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{}, {9}}}), costs);
  REQUIRE(graph.pairs.size() == 2);
  const auto chosen = uniform_strategies(graph, RecomputeMode::Keep);
  CHECK(duration_of(graph, graph.pairs[0].f, chosen) == Duration{0});
  CHECK(duration_of(graph, graph.pairs[0].b, chosen) == Duration{0});
  CHECK(duration_of(graph, graph.pairs[1].f, chosen) == Duration{9});
}

TEST_CASE("gradient reduction joins the replicas of a weight set, then the optimizer steps") {
  FakeCosts costs({{"lm", 2, 1, 1, 1, true, {}}}, 2, 2);
  costs.reduction = Duration{100};
  costs.reduction_latency = Duration{9};
  costs.step = Duration{20};
  Draft draft = draft_on(
      costs,
      {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1), chunk(0, 0, 1, 2, 0), chunk(0, 1, 1, 3, 1)},
      true);
  draft.works = {work_on(0), work_on(1, -1, 0, 0, 1)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{5}}, {{6}}}, 2), costs);
  CHECK_NOTHROW(validate(graph));
  CHECK(count_of(graph, Op::Collective) == 2);
  CHECK(count_of(graph, Op::Optimizer) == 4);
  std::vector<std::vector<RankId>> groups;
  for (const Task& task : graph.tasks) {
    if (task.op == Op::Collective) {
      CHECK(task.fixed == Duration{109});
      CHECK(task.bytes == Bytes{7});
      CHECK(task.lane == Lane::Gradient);
      const auto group = graph.placement.groups[task.group.row()];
      groups.emplace_back(group.begin(), group.end());
    } else if (task.op == Op::Optimizer) {
      CHECK(task.fixed == Duration{20});
      CHECK(task.lane == Lane::Compute);
    }
  }
  CHECK(groups == std::vector<std::vector<RankId>>{{RankId{0}, RankId{2}}, {RankId{1}, RankId{3}}});
  const Waits found = waits(graph);
  for (const char* wait :
       {"W0w0 > collective0", "W2w1 > collective0", "W1w0 > collective1", "W3w1 > collective1",
        "collective0 > optimizer", "collective1 > optimizer"}) {
    CAPTURE(wait);
    CHECK(found.contains(wait));
  }
}

TEST_CASE("without gradient reduction the optimizer follows every pass of its rank") {
  FakeCosts costs({{"vit", 1, 1, 0, 0, false, {}}, {"lm", 2, 1, 1, 1, true, {ModuleId{0}}}}, 2);
  costs.step = Duration{20};
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(1, 0, 1, 0, 1), chunk(1, 1, 1, 1, 2)});
  draft.works = {work_on(0, 0, 0, 1), work_on(0, 1, 0, 1)};
  const TaskGraph graph = lower_draft(draft, test::fake_batch({{{5}, {6}}}), costs);
  CHECK_NOTHROW(validate(graph));
  const Waits found = waits(graph);
  CHECK(count_of(graph, Op::Optimizer) == 2);
  CHECK(found.contains("F0w0 > optimizer"));  // frozen: its forward is its last pass
  CHECK(found.contains("B1w1 > optimizer"));
  CHECK(found.contains("B2w1 > optimizer"));
}

TEST_CASE("a frozen chunk beside reduced ones still holds back the optimizer of its rank") {
  FakeCosts costs({{"vit", 1, 1, 0, 0, false, {}}, {"lm", 1, 1, 1, 1, true, {ModuleId{0}}}}, 1);
  costs.step = Duration{20};
  costs.reduction = Duration{100};
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(1, 0, 1, 0, 1)});
  draft.works = {work_on(0, 0, 0, 1), work_on(0, 1, 0, 1)};
  const Waits found = waits(lower_draft(draft, test::fake_batch({{{5}, {6}}}), costs));
  CHECK(found.contains("F0w0 > optimizer"));
  CHECK(found.contains("B1w1 > collective1"));
  CHECK(found.contains("collective1 > optimizer"));
}

TEST_CASE("pairs of equal cost share their strategies and are costed once per shape") {
  const FakeCosts costs({{"lm", 8, 1, 1, 1, true, {}}}, 4);
  Draft draft = draft_on(costs, {chunk(0, 0, 2, 0, 0), chunk(0, 2, 2, 1, 1), chunk(0, 4, 2, 2, 2),
                                 chunk(0, 6, 2, 3, 3)});
  std::vector<FakeMicrobatch> microbatches;
  for (int m = 0; m < 20; ++m) {
    microbatches.push_back({{m % 2 == 0 ? 5 : 8}});
    draft.works.push_back(work_on(m));
  }
  const TaskGraph graph = lower_draft(draft, test::fake_batch(microbatches), costs);
  CHECK_NOTHROW(validate(graph));
  CHECK(costs.costed == 4 * 2);         // chunks × shapes
  CHECK(graph.strategies.size() == 4);  // keep and full at 5 and at 8 tokens
  for (const Pair& pair : graph.pairs) {
    const std::int64_t tokens = graph.task(pair.f).work.value % 2 == 0 ? 5 : 8;
    CHECK(graph.allowed(pair).size() == 2);
    CHECK(graph.allowed(pair).front().f == Duration{2 * tokens});
  }
}

TEST_CASE("works with the same instances but other attention groups are costed apart") {
  const FakeCosts costs({{"lm", 1, 1, 1, 1, true, {}}}, 1);
  Draft draft = draft_on(costs, {chunk(0, 0, 1, 0, 0)});
  draft.works = {work_on(0), work_on(1)};
  Batch batch = test::fake_batch({{{6}}, {{6}}});
  lower_draft(draft, batch, costs);
  CHECK(costs.costed == 1);
  batch.groups[1] = 3;
  lower_draft(draft, batch, costs);
  CHECK(costs.costed == 1 + 2);
}

TEST_CASE("works flow through the chunks of their own copy and replica") {
  const FakeCosts costs({{"lm", 2, 1, 1, 1, true, {}}}, 2, 2);
  Draft draft =
      draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 0, 1, 1, 0, 1), chunk(0, 1, 1, 1, 1),
                       chunk(0, 1, 1, 0, 1, 1), chunk(0, 0, 1, 2, 0), chunk(0, 1, 1, 3, 1)});
  Work reverse = work_on(1);
  reverse.copy = 1;
  draft.works = {work_on(0), reverse, work_on(2, -1, 0, 0, 1)};
  // Microbatches 0 and 1 of replica 0, 2 of replica 1.
  Batch batch = test::fake_batch({{{1}}, {{1}}, {{1}}});
  batch.replica = {0, 0, 1};
  const TaskGraph graph = lower_draft(draft, batch, costs);
  CHECK_NOTHROW(validate(graph));
  const Waits found = waits(graph);
  CHECK(found.contains("F0w0 ~ F2w0"));
  CHECK(found.contains("F1w1 ~ F3w1"));
  CHECK(found.contains("F4w2 ~ F5w2"));
  CHECK(graph.pairs.size() == 6);
}

TEST_CASE("layers that are on no chunk, or on two, are refused by name") {
  const FakeCosts costs({{"vit", 3, 1, 1, 1, true, {}}}, 2);
  Draft missing = draft_on(costs, {chunk(0, 0, 1, 0, 0), chunk(0, 1, 1, 1, 1)});
  missing.works = {work_on(0)};
  const Batch batch = test::fake_batch({{{1}}});
  CHECK_THROWS_WITH_AS(
      lower_draft(missing, batch, costs),
      "placement: work 0 finds 2 of the 3 layers of module vit on the chunks of replica 0, copy 0",
      Error);
  Draft twice = draft_on(costs, {chunk(0, 0, 2, 0, 0), chunk(0, 1, 2, 1, 1)});
  twice.works = {work_on(0)};
  CHECK_THROWS_WITH_AS(lower_draft(twice, batch, costs),
                       "placement: chunk 1: work 0 reaches layer 1 of module vit, but layer 2 "
                       "comes next",
                       Error);
}

TEST_CASE("lowering twice gives the same graph") {
  const EncoderAndBackbone setup(true, true, true);
  CHECK(setup.lower() == setup.lower());
}

}  // namespace
