// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/schedule.hpp"

#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::error_of;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;

/// Two ranks; rank 2 needs both cells. `a` on rank 0, `b` on rank 1, `both` on rank 2.
struct TwoCells {
  GraphBuilder g{2};
  RankId wide = g.add_rank({CellId(0), CellId(1)});
  PairId a = g.add_pair(RankId(0), Passes::Fused, {fused(1, 2), fused(1, 3)});
  PairId b = g.add_pair(RankId(1), Passes::ForwardOnly, fused(1, 2));
  PairId both = g.add_pair(wide, Passes::ForwardOnly, fused(1, 2));
  TaskId transfer = g.add_transfer(g.f(a), g.f(b), ns(1));

  [[nodiscard]] Schedule valid() const {
    return g.schedule({{g.f(a), g.b(a), g.f(both)}, {g.f(b), g.f(both)}});
  }

  [[nodiscard]] Error error_with(const std::vector<std::vector<TaskId>>& orders) const {
    return error_of([&] { validate(g.graph, g.schedule(orders)); });
  }
};

TEST_CASE("a schedule with every pass once on each of its cells is valid") {
  TwoCells two;
  CHECK_NOTHROW(validate(two.g.graph, two.valid()));
  Schedule other = two.valid();
  other.chosen[two.a.row()] = StrategyId(1);
  CHECK_NOTHROW(validate(two.g.graph, other));
}

TEST_CASE("a schedule that breaks a rule is an input error that names the pass and the cell") {
  const TwoCells two;
  const GraphBuilder& g = two.g;
  const TaskId fa = g.f(two.a);
  const TaskId ba = g.b(two.a);
  const TaskId fb = g.f(two.b);
  const TaskId wide = g.f(two.both);

  struct Case {
    std::string what;
    std::vector<std::vector<TaskId>> orders;
    std::string part;
  };

  const std::vector<Case> cases = {
      {"a pass is missing", {{fa, wide}, {fb, wide}}, describe(g.graph, ba)},
      {"missing on one of two cells", {{fa, ba, wide}, {fb}}, describe(g.graph, wide)},
      {"twice on one cell", {{fa, ba, fa, wide}, {fb, wide}}, describe(g.graph, fa)},
      {"twice on one cell and never on the other",
       {{fa, ba, wide, wide}, {fb}},
       describe(g.graph, wide)},
      {"on a wrong cell", {{fa, ba, wide, fb}, {wide}}, describe(g.graph, fb)},
      {"too few cells", {{fa, ba, wide}}, "2"},
      {"too many cells", {{fa, ba, wide}, {fb, wide}, {}}, "3"},
      {"no task", {{fa, ba, wide, TaskId{}}, {fb, wide}}, "-1"},
      {"an unknown task", {{fa, ba, wide, TaskId(99)}, {fb, wide}}, "99"},
      {"a transfer", {{fa, ba, wide, two.transfer}, {fb, wide}}, "task"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    const Error error = two.error_with(each.orders);
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(std::string(error.what()).find("schedule") != std::string::npos);
    CHECK(std::string(error.what()).find(each.part) != std::string::npos);
  }
}

TEST_CASE("both passes of an overlapped slot count") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(RankId(0), Passes::Fused, fused(1, 2));
  const PairId b = g.add_pair(RankId(0), Passes::ForwardOnly, fused(1, 2));
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(2)});
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({g.f(b), g.b(a)});
  CHECK_NOTHROW(validate(g.graph, schedule));
  schedule.compute.push_back({g.b(a), {}});
  CHECK(error_of([&] { validate(g.graph, schedule); }).kind() == ErrorKind::Input);
}

TEST_CASE("a slot has the same shape on every cell of its rank") {
  GraphBuilder g(2);
  const RankId wide = g.add_rank({CellId(0), CellId(1)});
  const PairId a = g.add_pair(wide, Passes::Fused, fused(1, 2));
  const PairId b = g.add_pair(wide, Passes::ForwardOnly, fused(1, 2));
  g.add_pair_edges(a);
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(2)});
  const std::vector<Slot> together = {{g.f(a), {}}, {g.f(b), g.b(a)}};
  const std::vector<Slot> apart = {{g.f(a), {}}, {g.f(b), {}}, {g.b(a), {}}};
  const auto with_rows = [&](const std::vector<Slot>& first, const std::vector<Slot>& second) {
    Schedule schedule = g.schedule({});
    schedule.compute.add_row(first);
    schedule.compute.add_row(second);
    return schedule;
  };
  CHECK_NOTHROW(validate(g.graph, with_rows(together, together)));
  CHECK_NOTHROW(validate(g.graph, with_rows(apart, apart)));
  for (const Schedule& mixed : {with_rows(together, apart), with_rows(apart, together)}) {
    CHECK(error_of([&] { validate(g.graph, mixed); }).kind() == ErrorKind::Input);
  }
}

TEST_CASE("a choice must be among the allowed strategies of its pair") {
  const TwoCells two;
  Schedule schedule = two.valid();
  for (const StrategyId wrong : {StrategyId{}, StrategyId(2), StrategyId(99)}) {
    schedule.chosen[two.a.row()] = wrong;
    const Error error = error_of([&] { validate(two.g.graph, schedule); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find("/chosen/0") != std::string::npos);
    CHECK(error.message().find("0 to 1") != std::string::npos);
  }
  schedule = two.valid();
  schedule.chosen.pop_back();
  CHECK(error_of([&] { validate(two.g.graph, schedule); }).kind() == ErrorKind::Input);
}

TEST_CASE("a fixed order of transfers names each of them once, at its sender") {
  const TwoCells two;
  const auto with_comm = [&](const std::vector<std::vector<TaskId>>& rows) {
    Schedule schedule = two.valid();
    for (const std::vector<TaskId>& row : rows) {
      schedule.comm.add_row(row);
    }
    return schedule;
  };
  CHECK_NOTHROW(validate(two.g.graph, with_comm({{two.transfer}, {}, {}})));
  const std::vector<std::vector<std::vector<TaskId>>> wrong = {
      {{two.transfer}},                        // one row for three ranks
      {{}, {}, {}},                            // missing
      {{two.transfer, two.transfer}, {}, {}},  // twice
      {{}, {two.transfer}, {}},                // at the receiver
      {{two.g.f(two.a)}, {}, {}},              // no transfer
      {{TaskId(99)}, {}, {}},
      {{TaskId{}}, {}, {}}};
  for (const auto& rows : wrong) {
    const Error error = error_of([&] { validate(two.g.graph, with_comm(rows)); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find("/comm") != std::string::npos);
  }
}

Strategy of_mode(RecomputeMode mode, std::int64_t backward) {
  Strategy strategy = fused(1, backward);
  strategy.mode = mode;
  return strategy;
}

TEST_CASE("a uniform choice takes the mode asked for, else what saves more, else the last") {
  using enum RecomputeMode;
  GraphBuilder g(1);
  const auto allow = [&](const std::vector<Strategy>& strategies) {
    g.add_pair(RankId(0), Passes::Fused, strategies);
  };
  allow({of_mode(Keep, 2), of_mode(Selective, 3), of_mode(Full, 4)});                       // 0 1 2
  allow({of_mode(Keep, 2), of_mode(Full, 4)});                                              // 3 4
  allow({of_mode(Keep, 2)});                                                                // 5
  allow({of_mode(Keep, 2), of_mode(Offload, 2), of_mode(Selective, 3), of_mode(Full, 4)});  // 6-9
  // 10-14: mixes are never uniform, though one of them saves most
  allow({of_mode(Keep, 2), of_mode(Mixed, 3), of_mode(Selective, 4), of_mode(Mixed, 5),
         of_mode(Mixed, 6)});
  allow({of_mode(Mixed, 2), of_mode(Mixed, 3)});   // 15 16: nothing else there
  allow({of_mode(Keep, 2), of_mode(Offload, 2)});  // 17 18: offloading only where it is asked for
  const auto rows = [&](RecomputeMode mode) {
    std::vector<std::int32_t> chosen;
    for (const StrategyId id : uniform_strategies(g.graph, mode)) {
      chosen.push_back(id.value);
    }
    return chosen;
  };
  CHECK(rows(Keep) == std::vector{0, 3, 5, 6, 10, 16, 17});
  CHECK(rows(Selective) == std::vector{1, 4, 5, 8, 12, 16, 17});
  CHECK(rows(Full) == std::vector{2, 4, 5, 9, 12, 16, 17});
  CHECK(rows(Offload).at(3) == 7);
  CHECK(rows(Offload).at(6) == 18);
}

}  // namespace
}  // namespace dipsim
