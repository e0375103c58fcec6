// SPDX-License-Identifier: Apache-2.0
// Properties of the engine on random graphs with random valid schedules.
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/analysis.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {
namespace {

using test::CaseShape;
using test::RandomCase;

/// Calls property(case) for some random cases; run inside rc::check.
template <class Property>
void for_some_cases(bool only_engine, const Property& property) {
  constexpr std::uint64_t kCasesPerShape = 20;
  CaseShape shape;
  shape.ranks = *rc::gen::inRange<std::size_t>(1, 7);
  shape.pairs = *rc::gen::inRange<std::size_t>(1, 40);
  shape.shared_cells = *rc::gen::arbitrary<bool>();
  shape.speeds = *rc::gen::arbitrary<bool>();
  shape.epilogue = *rc::gen::arbitrary<bool>();
  shape.overlaps = *rc::gen::arbitrary<bool>();
  shape.offloads = *rc::gen::arbitrary<bool>();
  shape.only_engine = only_engine;
  const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
  for (std::uint64_t seed = first; seed < first + kCasesPerShape; ++seed) {
    property(random_case(shape, seed));
  }
}

std::string text(std::span<const Span> spans) {
  std::string out;
  for (const Span& span : spans) {
    out += test::window(span) + " ";
  }
  return out;
}

TEST_CASE("without contention, jitter and host overhead the engine equals the order evaluator") {
  CHECK(rc::check("to the nanosecond", [] {
    for_some_cases(false, [](const RandomCase& one) {
      const Timeline engine = simulate(one.graph, one.schedule);
      const Timeline fast = OrderEvaluator(one.graph).evaluate(one.schedule);
      RC_ASSERT(text(engine.spans) == text(fast.spans));
      RC_ASSERT(engine == fast);
    });
  }));
}

TEST_CASE("reductions and steps of weights that no pass uses start at once in both evaluators") {
  test::GraphBuilder b(2);
  const PairId used = b.add_pair(RankId{0}, test::Passes::Fused, test::fused(3, 5));
  b.add_pair_edges(used);
  const GroupId both = b.add_group({RankId{0}, RankId{1}});
  const TaskId behind = b.add_task(Op::Collective, Lane::Gradient, RankId{0}, test::ns(2), both);
  b.add_edge(b.b(used), behind);
  const TaskId unused = b.add_task(Op::Collective, Lane::Gradient, RankId{0}, test::ns(20), both);
  const TaskId step = b.add_task(Op::Optimizer, Lane::Compute, RankId{1}, test::ns(4));
  b.add_edge(unused, step);
  const Schedule schedule = b.schedule({{b.f(used), b.b(used)}, {}});
  OrderEvaluator evaluator(b.graph);
  for (int call = 0; call < 2; ++call) {
    const Timeline fast = evaluator.evaluate(schedule);
    CHECK(test::window(fast.spans[unused.row()]) == "0..20");
    CHECK(test::window(fast.spans[step.row()]) == "20..24");
    CHECK(test::window(fast.spans[behind.row()]) == "20..22");  // on the lane of the other one
    CHECK(fast == simulate(b.graph, schedule));
  }
}

TEST_CASE("an order evaluator can be used again after a deadlock") {
  test::GraphBuilder b(2);
  const PairId ends = b.add_pair(RankId{0}, test::Passes::Fused, test::fused(3, 5));
  const PairId other = b.add_pair(RankId{1}, test::Passes::Fused, test::fused(1, 1));
  b.add_pair_edges(ends);
  b.add_pair_edges(other);
  b.add_edge(b.b(ends), b.add_task(Op::Optimizer, Lane::Compute, RankId{0}, test::ns(4)));
  OrderEvaluator evaluator(b.graph);
  const Schedule stuck = b.schedule({{b.f(ends), b.b(ends)}, {b.b(other), b.f(other)}});
  CHECK_THROWS_AS(static_cast<void>(evaluator.time(stuck)), Error);
  const Schedule good = b.schedule({{b.f(ends), b.b(ends)}, {b.f(other), b.b(other)}});
  CHECK(evaluator.evaluate(good) == simulate(b.graph, good));
}

/// Nothing of the graph and the schedule is broken by these times.
void check_feasible(const RandomCase& one, const Timeline& timeline, const EngineOptions& options) {
  for (const Edge& edge : one.graph.edges) {
    RC_ASSERT(timeline.spans[edge.to.row()].start >= timeline.spans[edge.from.row()].end);
  }
  for (const Edge& wait : offload_waits(one.graph, one.schedule)) {
    RC_ASSERT(timeline.spans[wait.to.row()].start >= timeline.spans[wait.from.row()].end);
  }
  for (std::size_t cell = 0; cell < one.schedule.compute.size(); ++cell) {
    Time free = kStart;
    for (const Slot& slot : one.schedule.compute[cell]) {
      const Span span = timeline.spans[slot.task.row()];
      RC_ASSERT(span.start >= free);
      RC_ASSERT(span.end >= span.start);
      if (slot.together.valid()) {
        RC_ASSERT(timeline.spans[slot.together.row()] == span);
      }
      free = span.end;
    }
  }
  // Transfers share no link at one time. Jitter changes their time on the link by an unknown
  // factor.
  if (options.jitter > 0.0) {
    return;
  }
  std::map<std::pair<RankId, RankId>, std::vector<Span>> links;
  for (std::size_t i = 0; i < one.graph.tasks.size(); ++i) {
    const Task& task = one.graph.tasks[i];
    if (task.op != Op::Transfer) {
      continue;
    }
    const Span span = timeline.spans[i];
    RC_ASSERT(span.end - span.start == task.fixed + task.latency);
    const Span occupied{span.start, span.start + task.fixed};
    switch (options.lanes) {
      case LanePolicy::PairDirection:
        links[{task.rank, task.peer}].push_back(occupied);
        break;
      case LanePolicy::Pair:
        links[{std::min(task.rank, task.peer), std::max(task.rank, task.peer)}].push_back(occupied);
        break;
      case LanePolicy::Rank:
        links[{task.rank, task.rank}].push_back(occupied);
        break;
      case LanePolicy::CopyEngine:
        links[{task.rank, task.rank}].push_back(occupied);
        links[{task.peer, task.peer}].push_back(occupied);
        break;
    }
  }
  if (options.lanes != LanePolicy::CopyEngine) {
    for (const OffloadWindow& window : one.schedule.offloads) {
      const Pair& pair = one.graph.pair(window.pair);
      for (const TaskId copy : {pair.copy_out, pair.copy_in}) {
        // A lane of its own each: two queues beside those of the ranks with each other.
        const RankId rank = one.graph.task(copy).rank;
        const std::int32_t lane = copy == pair.copy_out ? -2 : -3;
        links[{rank, RankId(lane)}].push_back(timeline.spans[copy.row()]);
      }
    }
  }
  for (auto& [link, spans] : links) {
    std::erase_if(spans, [](const Span& span) { return span.start == span.end; });
    std::ranges::sort(spans, {}, &Span::start);
    for (std::size_t i = 1; i < spans.size(); ++i) {
      RC_ASSERT(spans[i].start >= spans[i - 1].end);
    }
  }
}

TEST_CASE("whatever the options, order, precedence and links are kept and the bound holds") {
  CHECK(rc::check("feasible", [] {
    EngineOptions options;
    options.lanes = static_cast<LanePolicy>(*rc::gen::inRange(0, 4));
    options.send = static_cast<SendMode>(*rc::gen::inRange(0, 3));
    options.host_issue = test::ns(*rc::gen::element(0, 0, 3, 20));
    options.jitter = *rc::gen::element(0.0, 0.0, 0.3);
    const bool only_engine = *rc::gen::arbitrary<bool>();
    for_some_cases(only_engine, [&](const RandomCase& one) {
      const Timeline timeline = simulate(one.graph, one.schedule, options);
      check_feasible(one, timeline, options);
      if (options.jitter == 0.0) {
        RC_ASSERT(timeline.makespan >= lower_bound(one.graph).makespan);
      }
      RC_ASSERT(simulate(one.graph, one.schedule, options) == timeline);
      const TimelineAnalysis analysis = analyze(one.graph, one.schedule, timeline, options.send);
      for (std::size_t cell = 0; cell < analysis.busy.size(); ++cell) {
        RC_ASSERT(analysis.busy[cell] + analysis.idle[cell].total() == timeline.makespan);
        RC_ASSERT(options.host_issue > Duration{0} || analysis.idle[cell].host == Duration{0});
      }
    });
  }));
}

TEST_CASE("memory is never negative and ends as it began") {
  CHECK(rc::check("memory", [] {
    for_some_cases(true, [](const RandomCase& one) {
      for (const MemoryCurve& curve : simulate(one.graph, one.schedule).memory) {
        for (const MemoryPoint& point : curve.points) {
          RC_ASSERT(point.held >= curve.fixed);
          RC_ASSERT(point.held <= curve.peak);
        }
        RC_ASSERT(curve.points.back().held == curve.fixed);
      }
    });
  }));
}

/// Sends in an order in which their producers are computed: no deadlock can come of it.
Schedule with_send_order(const RandomCase& one) {
  std::vector<std::vector<TaskId>> sends(one.graph.placement.ranks.size());
  for (const TaskId task : one.order) {
    if (one.graph.task(task).op == Op::Transfer) {
      sends[one.graph.task(task).rank.row()].push_back(task);
    }
  }
  Schedule schedule = one.schedule;
  for (const std::vector<TaskId>& row : sends) {
    schedule.comm.add_row(row);
  }
  return schedule;
}

TEST_CASE("a fixed order of sends that follows the computation is kept and runs to the end") {
  CHECK(rc::check("send order", [] {
    const auto lanes = static_cast<LanePolicy>(*rc::gen::inRange(0, 4));
    for_some_cases(false, [&](const RandomCase& one) {
      EngineOptions options;
      options.lanes = lanes;
      const Schedule schedule = with_send_order(one);
      const Timeline timeline = simulate(one.graph, schedule, options);
      check_feasible(one, timeline, options);
      for (std::size_t rank = 0; rank < schedule.comm.size(); ++rank) {
        Time before = kStart;
        for (const TaskId send : schedule.comm[rank]) {
          if (lanes == LanePolicy::Rank || lanes == LanePolicy::CopyEngine) {
            RC_ASSERT(timeline.spans[send.row()].start >= before);
          }
          before = timeline.spans[send.row()].start;
        }
      }
    });
  }));
}

/// The timeline as text, or "deadlock"; other errors pass through.
template <class Run>
std::string outcome(const Run& run) {
  try {
    return text(run().spans);
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::Input);
    RC_ASSERT(error.message().find("deadlock") != std::string::npos);
    return "deadlock";
  }
}

template <class Item>
void shuffle_some(RandomStream& random, std::span<Item> row) {
  for (std::int64_t k = random.integer(0, 3); k > 0 && row.size() > 1; --k) {
    const auto at =
        static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(row.size()) - 2));
    std::swap(row[at], row[at + 1]);
  }
}

/// In an order of passes that its windows don't suit no pair offloads.
void drop_unordered_offloads(const TaskGraph& graph, Schedule& schedule) {
  try {
    validate_offloads(graph, schedule);
  } catch (const Error&) {
    for (const OffloadWindow& window : schedule.offloads) {
      schedule.chosen[window.pair.row()] = graph.pair(window.pair).first_strategy;
    }
    schedule.offloads.clear();
  }
}

TEST_CASE("a wrong order of passes is a deadlock for both evaluators or for neither") {
  CHECK(rc::check("same outcome", [] {
    int deadlocks = 0;
    for_some_cases(false, [&](RandomCase one) {
      RandomStream random(one.graph.tasks.size(), "shuffle");
      for (std::size_t cell = 0; cell < one.schedule.compute.size(); ++cell) {
        shuffle_some(random, one.schedule.compute[cell]);
      }
      drop_unordered_offloads(one.graph, one.schedule);
      validate(one.graph, one.schedule);
      const std::string engine = outcome([&] { return simulate(one.graph, one.schedule); });
      OrderEvaluator evaluator(one.graph);
      RC_ASSERT(engine == outcome([&] { return evaluator.evaluate(one.schedule); }));
      deadlocks += engine == "deadlock" ? 1 : 0;
    });
    RC_CLASSIFY(deadlocks > 0);
  }));
}

TEST_CASE("whatever the order of sends and passes, a run ends or prints its deadlock") {
  CHECK(rc::check("ends", [] {
    EngineOptions options;
    options.lanes = static_cast<LanePolicy>(*rc::gen::inRange(0, 4));
    options.send = static_cast<SendMode>(*rc::gen::inRange(0, 3));
    const bool only_engine = *rc::gen::arbitrary<bool>();
    int deadlocks = 0;
    for_some_cases(only_engine, [&](const RandomCase& one) {
      RandomStream random(one.graph.tasks.size(), "shuffle");
      Schedule schedule =  // blocking sends have no order to fix
          options.send == SendMode::Blocking ? one.schedule : with_send_order(one);
      for (std::size_t rank = 0; rank < schedule.comm.size(); ++rank) {
        shuffle_some(random, schedule.comm[rank]);
      }
      if (random.uniform() < 0.3) {
        for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
          shuffle_some(random, schedule.compute[cell]);
        }
        drop_unordered_offloads(one.graph, schedule);
      }
      const std::string end = outcome([&] { return simulate(one.graph, schedule, options); });
      deadlocks += end == "deadlock" ? 1 : 0;
    });
    RC_CLASSIFY(deadlocks > 0);
  }));
}

TEST_CASE("eager sends are never slower than rendezvous without other contention") {
  CHECK(rc::check("eager <= rendezvous", [] {
    for_some_cases(false, [](const RandomCase& one) {
      // Links without occupation, so that no order of sends matters.
      RandomCase free = one;
      for (Task& task : free.graph.tasks) {
        if (task.op == Op::Transfer) {
          task.latency += task.fixed;
          task.fixed = Duration{0};
        }
      }
      EngineOptions rendezvous;
      rendezvous.send = SendMode::Rendezvous;
      RC_ASSERT(simulate(free.graph, free.schedule).makespan <=
                simulate(free.graph, free.schedule, rendezvous).makespan);
    });
  }));
}

TEST_CASE("scaling all durations by k scales every time by k") {
  CHECK(rc::check("scaling", [] {
    const auto k = *rc::gen::inRange<std::int64_t>(2, 1000);
    EngineOptions options;
    options.lanes = static_cast<LanePolicy>(*rc::gen::inRange(0, 4));
    options.send = static_cast<SendMode>(*rc::gen::inRange(0, 3));
    const bool only_engine = *rc::gen::arbitrary<bool>();
    options.host_issue = test::ns(*rc::gen::inRange(0, 5));
    for_some_cases(only_engine, [&](const RandomCase& one) {
      RandomCase unit = one;
      for (Rank& rank : unit.graph.placement.ranks) {
        rank.speed = 1.0;  // no rounding
      }
      RandomCase scaled = unit;
      for (Task& task : scaled.graph.tasks) {
        task.fixed *= k;
        task.latency *= k;
      }
      for (Strategy& strategy : scaled.graph.strategies) {
        for (Duration* time :
             {&strategy.f, &strategy.i, &strategy.w, &strategy.b, &strategy.copy}) {
          *time *= k;
        }
      }
      for (Overlap& overlap : scaled.graph.overlaps) {
        overlap.together *= k;
      }
      EngineOptions scaled_options = options;
      scaled_options.host_issue *= k;
      const Timeline before = simulate(unit.graph, unit.schedule, options);
      const Timeline after = simulate(scaled.graph, scaled.schedule, scaled_options);
      for (std::size_t i = 0; i < before.spans.size(); ++i) {
        RC_ASSERT((after.spans[i].start - kStart) == (before.spans[i].start - kStart) * k);
        RC_ASSERT((after.spans[i].end - kStart) == (before.spans[i].end - kStart) * k);
      }
      RC_ASSERT(after.makespan == before.makespan * k);
      RC_ASSERT(lower_bound(scaled.graph).makespan == lower_bound(unit.graph).makespan * k);
    });
  }));
}

}  // namespace
}  // namespace dipsim
