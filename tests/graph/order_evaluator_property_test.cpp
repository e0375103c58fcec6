// SPDX-License-Identifier: Apache-2.0
// The order evaluator against its definition, written as a system of inequalities whose least
// solution is found by repeated sweeps: another method than one pass along the schedule.
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {
namespace {

using test::CaseShape;
using test::random_case;
using test::RandomCase;

class Definition {
 public:
  Definition(const TaskGraph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), spans_(graph.tasks.size()) {
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      predecessors_.emplace_back();
      length_.push_back(duration_of(graph, TaskId(i), schedule.chosen));
    }
    for (const Edge& edge : graph.edges) {
      predecessors_[edge.to.row()].push_back(edge.from);
    }
  }

  std::vector<Span> solve() {
    while (sweep_passes() || sweep_links()) {
    }
    run_epilogue();
    return spans_;
  }

 private:
  bool raise(TaskId task, Time start, Duration length) {
    Span& span = spans_[task.row()];
    const Span raised{std::max(span.start, start), std::max(span.start, start) + length};
    const bool changed = !(raised == span);
    span = raised;
    return changed;
  }

  [[nodiscard]] Time inputs_of(TaskId task) const {
    Time ready = kStart;
    for (const TaskId before : predecessors_[task.row()]) {
      ready = std::max(ready, spans_[before.row()].end);
    }
    return ready;
  }

  /// A slot starts after its inputs and after the slot before it on each cell.
  bool sweep_passes() {
    bool changed = false;
    for (std::size_t cell = 0; cell < schedule_.compute.size(); ++cell) {
      Time free = kStart;
      for (const Slot& slot : schedule_.compute[cell]) {
        Time start = std::max(free, inputs_of(slot.task));
        Duration length = length_[slot.task.row()];
        if (slot.together.valid()) {
          start = std::max(start, inputs_of(slot.together));
          length = together(slot);
          changed = raise(slot.together, start, length) || changed;
          start = std::max(start, spans_[slot.together.row()].start);
        }
        changed = raise(slot.task, start, length) || changed;
        free = spans_[slot.task.row()].end;
      }
    }
    return changed;
  }

  [[nodiscard]] Duration together(const Slot& slot) const {
    const auto overlap = std::ranges::find_if(graph_.overlaps, [&](const Overlap& each) {
      return each.f == slot.task && each.b == slot.together;
    });
    const double speed = graph_.rank(graph_.task(slot.task).rank).speed;
    return Duration(std::llround(static_cast<double>(overlap->together.count()) / speed));
  }

  /// A transfer starts after its producer and after the one before it on the same link.
  bool sweep_links() {
    bool changed = false;
    std::map<std::pair<RankId, RankId>, Time> free;
    std::vector<char> sent(graph_.tasks.size(), 0);
    // A rank sends in the order of any of its cells.
    for (std::size_t cell = 0; cell < schedule_.compute.size(); ++cell) {
      for (const Slot& slot : schedule_.compute[cell]) {
        for (const TaskId producer : {slot.task, slot.together}) {
          for (const Edge& edge : graph_.edges) {
            if (edge.from != producer || graph_.task(edge.to).op != Op::Transfer ||
                sent[edge.to.row()] != 0) {
              continue;
            }
            sent[edge.to.row()] = 1;
            const Task& transfer = graph_.task(edge.to);
            Time& link = free[{transfer.rank, transfer.peer}];
            const Time start = std::max(link, spans_[producer.row()].end);
            changed = raise(edge.to, start, transfer.fixed + transfer.latency) || changed;
            link = spans_[edge.to.row()].start + transfer.fixed;
          }
        }
      }
    }
    return changed;
  }

  /// First come first served on the lanes; of those that come at once the lower task.
  void run_epilogue() {
    std::vector<char> ended(graph_.tasks.size(), 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Op op = graph_.tasks[i].op;
      ended[i] = is_pass(op) || op == Op::Transfer ? 1 : 0;
      left += ended[i] == 0 ? 1U : 0U;
    }
    std::map<std::pair<RankId, Lane>, Time> free;
    for (; left > 0; --left) {
      TaskId next;
      for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
        const bool ready =
            ended[i] == 0 && std::ranges::all_of(predecessors_[i], [&](TaskId before) {
              return ended[before.row()] != 0;
            });
        if (ready && (!next.valid() || inputs_of(TaskId(i)) < inputs_of(next))) {
          next = TaskId(i);
        }
      }
      run_on_lanes(next, free);
      ended[next.row()] = 1;
    }
  }

  void run_on_lanes(TaskId id, std::map<std::pair<RankId, Lane>, Time>& free) {
    const Task& task = graph_.task(id);
    std::vector<RankId> ranks = {task.rank};
    if (task.group.valid()) {
      const auto group = graph_.placement.groups[task.group.row()];
      ranks.assign(group.begin(), group.end());
    }
    Time start = inputs_of(id);
    for (const RankId rank : ranks) {
      start = std::max(start, free[{rank, task.lane}]);
    }
    spans_[id.row()] = {start, start + length_[id.row()]};
    for (const RankId rank : ranks) {
      free[{rank, task.lane}] = spans_[id.row()].end;
    }
  }

  const TaskGraph& graph_;
  const Schedule& schedule_;
  std::vector<Span> spans_;
  std::vector<std::vector<TaskId>> predecessors_;
  std::vector<Duration> length_;
};

CaseShape any_shape() {
  CaseShape shape;
  shape.ranks = *rc::gen::inRange<std::size_t>(1, 6);
  shape.pairs = *rc::gen::inRange<std::size_t>(1, 25);
  shape.shared_cells = *rc::gen::arbitrary<bool>();
  shape.speeds = *rc::gen::arbitrary<bool>();
  shape.epilogue = *rc::gen::arbitrary<bool>();
  shape.overlaps = *rc::gen::arbitrary<bool>();
  return shape;
}

/// Calls property(case) for some cases of one shape; run inside rc::check.
template <class Property>
void for_some_cases(const Property& property) {
  constexpr std::uint64_t kCasesPerShape = 20;
  const CaseShape shape = any_shape();
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

TEST_CASE("random graphs and schedules are valid and have no deadlock") {
  CHECK(rc::check("valid", [] {
    for_some_cases([](const RandomCase& one) {
      validate(one.graph);
      validate(one.graph, one.schedule);
      OrderEvaluator evaluator(one.graph);
      RC_ASSERT(evaluator.time(one.schedule).size() == one.graph.tasks.size());
    });
  }));
}

TEST_CASE("the order evaluator solves the equations of its model, to the nanosecond") {
  CHECK(rc::check("equals the definition", [] {
    for_some_cases([](const RandomCase& one) {
      OrderEvaluator evaluator(one.graph);
      RC_ASSERT(text(evaluator.time(one.schedule)) ==
                text(Definition(one.graph, one.schedule).solve()));
    });
  }));
}

TEST_CASE("no random schedule beats the lower bound of its graph") {
  CHECK(rc::check("makespan >= bound", [] {
    for_some_cases([](const RandomCase& one) {
      OrderEvaluator evaluator(one.graph);
      const Duration makespan = evaluator.evaluate(one.schedule).makespan;
      const LowerBound bound = lower_bound(one.graph);
      RC_ASSERT(makespan >= bound.makespan);
      RC_ASSERT(bound.makespan >= bound.critical_path);
    });
  }));
}

TEST_CASE("when a pass takes longer no pass starts or ends earlier") {
  CHECK(rc::check("monotone", [] {
    for_some_cases([](RandomCase one) {
      OrderEvaluator evaluator(one.graph);
      const std::vector<Span> before = evaluator.evaluate(one.schedule).spans;
      one.graph.strategies[one.graph.strategies.size() / 2].f += test::ns(5);
      OrderEvaluator again(one.graph);
      const std::span<const Span> after = again.time(one.schedule);
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (is_pass(one.graph.tasks[i].op)) {
          RC_ASSERT(after[i].start >= before[i].start);
          RC_ASSERT(after[i].end >= before[i].end);
        }
      }
    });
  }));
}

}  // namespace
}  // namespace dipsim
