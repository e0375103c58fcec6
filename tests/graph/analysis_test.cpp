// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/analysis.hpp"

#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::at;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::RandomCase;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

/// "pipeline transfer collective host straggler"
std::string text(const IdleByCause& idle) {
  std::string out;
  for (const Duration part :
       {idle.pipeline, idle.transfer, idle.collective, idle.host, idle.straggler}) {
    out += (out.empty() ? "" : " ") + std::to_string(part.count());
  }
  return out;
}

TimelineAnalysis analyze_spans(const TaskGraph& graph, const Schedule& schedule,
                               const std::vector<Span>& spans) {
  return analyze(graph, schedule, summarize(graph, spans));
}

TEST_CASE("idle time is split into waiting for a pass, for a transfer, and having nothing left") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank1, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.add_transfer(g.f(a), g.f(b), ns(3), ns(1));
  g.add_transfer(g.b(b), g.b(a), ns(4), ns(2));
  const Schedule schedule = g.schedule({{g.f(a), g.b(a)}, {g.f(b), g.b(b)}});
  const Timeline timeline = OrderEvaluator(g.graph).evaluate(schedule);
  REQUIRE(timeline.makespan == ns(70));  // 10 + 4 + 30 + 6 + 20
  const TimelineAnalysis analysis = analyze(g.graph, schedule, timeline);
  // Rank 0 waits from 10 to 50, computed at 44. Rank 1 waits from 0 to 14, computed at 10, and has
  // nothing left from 44 to 70.
  CHECK(text(analysis.idle[0]) == "34 6 0 0 0");
  CHECK(text(analysis.idle[1]) == "36 4 0 0 0");
  CHECK(analysis.busy[0] == ns(30));
  CHECK(analysis.busy[1] == ns(30));
  CHECK(analysis.idle[0].total() == ns(40));
  CHECK(analysis.bubble_ratio == doctest::Approx(80.0 / 140.0));
  CHECK(analysis.bubble_overhead == doctest::Approx(80.0 / 60.0));
}

TEST_CASE("a cell that is busy while its data travel does not wait for that part") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId own = g.add_pair(kRank1, Passes::ForwardOnly, fused(12, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  g.add_transfer(g.f(a), g.f(x), ns(5));
  const Schedule schedule = g.schedule({{g.f(a)}, {g.f(own), g.f(x)}});
  const TimelineAnalysis analysis =
      analyze(g.graph, schedule, OrderEvaluator(g.graph).evaluate(schedule));
  CHECK(text(analysis.idle[1]) == "0 3 0 0 0");
  CHECK(text(analysis.idle[0]) == "6 0 0 0 0");
}

TEST_CASE("waiting for collectives and copies is told apart, along chains of them") {
  GraphBuilder g(2);
  Strategy strategy = fused(10, 10);
  strategy.copy = ns(5);
  const PairId a = g.add_pair(kRank0, Passes::Fused, strategy);
  g.add_pair_edges(a);
  g.add_offload(a);
  std::vector<Span> spans(g.graph.tasks.size());
  const auto set = [&](TaskId task, std::int64_t from, std::int64_t to) {
    spans[task.row()] = {at(from), at(to)};
  };
  set(g.f(a), 0, 10);
  set(g.graph.pair(a).copy_out, 10, 15);
  set(g.graph.pair(a).copy_in, 15, 20);
  set(g.b(a), 20, 30);
  const Schedule schedule = g.schedule({{g.f(a), g.b(a)}, {}});
  CHECK(text(analyze_spans(g.graph, schedule, spans).idle[0]) == "0 0 10 0 0");
  // The copy in may also start late; the cell waits for the copies all the same.
  set(g.graph.pair(a).copy_in, 18, 23);
  set(g.b(a), 23, 33);
  CHECK(text(analyze_spans(g.graph, schedule, spans).idle[0]) == "0 0 13 0 0");
}

TEST_CASE("parameters gathered without waiting for a pass are a collective wait") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(20));
  g.add_edge(gather, g.f(b));
  const Schedule schedule = g.schedule({{g.f(a), g.f(b)}});
  const std::vector<Span> spans = {{at(0), at(5)}, {at(20), at(25)}, {at(0), at(20)}};
  CHECK(text(analyze_spans(g.graph, schedule, spans).idle[0]) == "0 0 15 0 0");
}

TEST_CASE("a gather that waits for a pass of another replica is a collective wait from the start") {
  for (const int replica : {0, 1}) {
    CAPTURE(replica);
    GraphBuilder g(2);
    g.graph.placement.ranks[1].replica = replica;
    const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
    const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
    const PairId slow = g.add_pair(kRank1, Passes::ForwardOnly, fused(30, 0));
    const TaskId gather =
        g.add_task(Op::Gather, Lane::Comm, kRank0, ns(4), g.add_group({kRank0, kRank1}));
    g.add_edge(g.f(a), gather);
    g.add_edge(g.f(slow), gather);
    g.add_edge(gather, g.f(b));
    const Schedule schedule = g.schedule({{g.f(a), g.f(b)}, {g.f(slow)}});
    std::vector<Span> spans(g.graph.tasks.size());
    spans[g.f(a).row()] = {at(0), at(5)};
    spans[g.f(slow).row()] = {at(0), at(30)};
    spans[gather.row()] = {at(30), at(34)};
    spans[g.f(b).row()] = {at(34), at(39)};
    const IdleByCause idle = analyze_spans(g.graph, schedule, spans).idle[0];
    CHECK(text(idle) == (replica == 1 ? "0 0 29 0 0" : "25 0 4 0 0"));
  }
}

TEST_CASE("a pass that starts later than all its gates allow waits for the host") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(10, 0));
  const PairId c = g.add_pair(kRank1, Passes::ForwardOnly, fused(10, 0));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(b), ns(3));
  std::vector<Span> spans(g.graph.tasks.size());
  spans[g.f(a).row()] = {at(2), at(12)};
  spans[transfer.row()] = {at(12), at(15)};
  spans[g.f(b).row()] = {at(19), at(29)};
  spans[g.f(c).row()] = {at(34), at(44)};  // no input: it could have started at 29
  const Schedule schedule = g.schedule({{g.f(a)}, {g.f(b), g.f(c)}});
  const TimelineAnalysis analysis = analyze_spans(g.graph, schedule, spans);
  CHECK(text(analysis.idle[1]) == "10 3 0 9 0");  // from the first start, 2, on
  CHECK(text(analysis.idle[0]) == "32 0 0 0 0");
}

TEST_CASE("a cell of a replica that has ended waits for the straggler") {
  GraphBuilder g(3);
  g.graph.placement.ranks[1].replica = 1;
  g.graph.placement.ranks[2].replica = 1;
  const PairId fast = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId slow = g.add_pair(kRank1, Passes::ForwardOnly, fused(25, 0));
  const PairId other = g.add_pair(RankId(2), Passes::ForwardOnly, fused(5, 0));
  const Schedule schedule = g.schedule({{g.f(fast)}, {g.f(slow)}, {g.f(other)}});
  const TimelineAnalysis analysis =
      analyze(g.graph, schedule, OrderEvaluator(g.graph).evaluate(schedule));
  CHECK(text(analysis.idle[0]) == "0 0 0 0 15");
  CHECK(text(analysis.idle[1]) == "0 0 0 0 0");
  CHECK(text(analysis.idle[2]) == "20 0 0 0 0");  // its own replica is still running
}

TEST_CASE("a pass that waits for another cell of its rank does not wait for the host") {
  GraphBuilder g(2);
  const RankId wide = g.add_rank({CellId(0), CellId(1)});
  const PairId own = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId both = g.add_pair(wide, Passes::ForwardOnly, fused(10, 0));
  const Schedule schedule = g.schedule({{g.f(own), g.f(both)}, {g.f(both)}});
  const TimelineAnalysis analysis =
      analyze(g.graph, schedule, OrderEvaluator(g.graph).evaluate(schedule));
  CHECK(text(analysis.idle[1]) == "10 0 0 0 0");
  CHECK(text(analysis.idle[0]) == "0 0 0 0 0");
  CHECK(analysis.busy[1] == ns(10));
}

TEST_CASE("an overlapped slot waits for the later input of its two passes") {
  GraphBuilder g(2);
  const PairId early = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId late = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId far = g.add_pair(kRank1, Passes::ForwardOnly, fused(17, 0));
  g.add_pair_edges(early);
  g.add_transfer(g.f(far), g.b(early), ns(3));
  g.graph.overlaps.push_back({g.f(late), g.b(early), ns(25)});
  Schedule schedule = g.schedule({{g.f(early)}});
  schedule.compute.push_back({g.f(late), g.b(early)});
  schedule.compute.add_row();
  schedule.compute.push_back({g.f(far), {}});
  const TimelineAnalysis analysis =
      analyze(g.graph, schedule, OrderEvaluator(g.graph).evaluate(schedule));
  CHECK(text(analysis.idle[0]) == "7 3 0 0 0");
  CHECK(analysis.busy[0] == ns(35));  // the overlapped slot once
}

TEST_CASE("a resharded tensor is a transfer first and a collective then") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(10, 0));
  const TaskId reshard = g.add_task(Op::Reshard, Lane::Comm, kRank1, ns(4));
  const TaskId transfer = g.add_transfer(g.f(a), reshard, ns(3));
  g.add_edge(reshard, g.f(b));
  std::vector<Span> spans(g.graph.tasks.size());
  spans[g.f(a).row()] = {at(0), at(10)};
  spans[transfer.row()] = {at(10), at(13)};
  spans[reshard.row()] = {at(13), at(17)};
  spans[g.f(b).row()] = {at(17), at(27)};
  const Schedule schedule = g.schedule({{g.f(a)}, {g.f(b)}});
  CHECK(text(analyze_spans(g.graph, schedule, spans).idle[1]) == "10 3 4 0 0");
}

TEST_CASE("MFU is useful FLOPs over iteration time and peak, and 0 where unknown") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(2'000'000'000, 0));
  const Schedule schedule = g.schedule({{g.f(a)}});
  const Timeline timeline = OrderEvaluator(g.graph).evaluate(schedule);
  CHECK(analyze(g.graph, schedule, timeline).mfu == 0.0);
  g.graph.model_flops = 3e12;
  CHECK(analyze(g.graph, schedule, timeline).mfu == 0.0);
  g.graph.peak_flops_per_s = 5e12;
  CHECK(analyze(g.graph, schedule, timeline).mfu == doctest::Approx(0.3));
}

TEST_CASE("nothing to do has no idle time and no ratio that is no number") {
  const GraphBuilder g(2);
  const Schedule schedule = g.schedule({{}, {}});
  const TimelineAnalysis analysis =
      analyze(g.graph, schedule, OrderEvaluator(g.graph).evaluate(schedule));
  CHECK(analysis.bubble_ratio == 0.0);
  CHECK(analysis.bubble_overhead == 0.0);
  CHECK(analysis.mfu == 0.0);
  CHECK(analysis.idle.at(1).total() == ns(0));
}

TEST_CASE("on every cell busy and idle time add up to the makespan, and the host is never blamed") {
  CHECK(rc::check("busy + idle = makespan", [] {
    test::CaseShape shape;
    shape.ranks = *rc::gen::inRange<std::size_t>(1, 6);
    shape.pairs = *rc::gen::inRange<std::size_t>(1, 20);
    shape.shared_cells = *rc::gen::arbitrary<bool>();
    shape.overlaps = *rc::gen::arbitrary<bool>();
    shape.epilogue = true;
    const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
      const RandomCase one = random_case(shape, seed);
      const Timeline timeline = OrderEvaluator(one.graph).evaluate(one.schedule);
      const TimelineAnalysis analysis = analyze(one.graph, one.schedule, timeline);
      Duration busy{0};
      Duration idle{0};
      for (std::size_t cell = 0; cell < one.schedule.compute.size(); ++cell) {
        const IdleByCause& split = analysis.idle.at(cell);
        RC_ASSERT(analysis.busy.at(cell) + split.total() == timeline.makespan);
        RC_ASSERT(split.host == ns(0));        // neither evaluator nor graph has host overhead
        RC_ASSERT(split.collective == ns(0));  // no pass waits for one
        RC_ASSERT(split.pipeline >= ns(0));
        RC_ASSERT(split.transfer >= ns(0));
        RC_ASSERT(split.straggler >= ns(0));
        busy += analysis.busy[cell];
        idle += split.total();
      }
      const auto fraction = [](Duration a, Duration b) {
        return b == ns(0) ? 0.0 : static_cast<double>(a.count()) / static_cast<double>(b.count());
      };
      RC_ASSERT(std::abs(analysis.bubble_ratio - fraction(idle, idle + busy)) < 1e-12);
      RC_ASSERT(std::abs(analysis.bubble_overhead - fraction(idle, busy)) < 1e-12);
    }
  }));
}

}  // namespace
}  // namespace dipsim
