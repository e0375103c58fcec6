// SPDX-License-Identifier: Apache-2.0
#include "report/chrome_trace.hpp"

#include "report/names.hpp"
#include "report/text.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr std::array<std::string_view, kLaneCount> kLaneNames = {
    "compute", "comm", "gradient", "device to host", "host to device"};

/// Nanoseconds as µs, in full: 1234 → 1.234.
std::string microseconds(Duration d) {
  std::string text = fmt::format("{}.{:03}", d.count() / 1000, d.count() % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text;
}

/// A task in the row of one rank.
struct Event {
  RankId rank;
  TaskId task;
  Span span;
  std::size_t thread = 0;
};

/// Trace viewers draw overlapping events of a thread wrongly unless they nest, and transfers of one
/// lane do overlap while their latency runs: every further one gets a thread of its own.
class Threads {
 public:
  /// Events must come by start time.
  std::size_t place(RankId rank, Lane lane, Span span) {
    std::vector<Span>& last = last_[{rank, lane}];
    const auto is_free = [&](Span before) {
      return before.end <= span.start || (before.start == span.start && before.end == span.end);
    };
    const auto found = std::ranges::find_if(last, is_free);
    const auto index = static_cast<std::size_t>(found - last.begin());
    if (found == last.end()) {
      last.push_back(span);
    } else {
      *found = span;
    }
    return index * kLaneCount + static_cast<std::size_t>(lane);
  }

  /// Calls use(rank, thread, name) for every thread in use.
  template <class Use>
  void each(Use use) const {
    for (const auto& [key, last] : last_) {
      const auto lane = static_cast<std::size_t>(key.second);
      for (std::size_t i = 0; i < last.size(); ++i) {
        const std::string more = i == 0 ? "" : fmt::format(" {}", i + 1);
        use(key.first, i * kLaneCount + lane, std::string(kLaneNames[lane]) + more);
      }
    }
  }

 private:
  std::map<std::pair<RankId, Lane>, std::vector<Span>> last_;
};

std::vector<Event> events_by_time(const PlanRun& run) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    const Task& task = run.graph.tasks[i];
    const Span span = run.timeline.spans[i];
    if ((task.op == Op::CopyOut || task.op == Op::CopyIn) && span.start == span.end) {
      continue;  // its pair keeps its activations on the GPU
    }
    if (task.group.valid()) {
      for (const RankId rank : run.graph.placement.groups[task.group.row()]) {
        events.push_back({rank, TaskId(i), span});
      }
    } else {
      events.push_back({task.rank, TaskId(i), span});
    }
  }
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    return std::tie(a.span.start, a.task, a.rank) < std::tie(b.span.start, b.task, b.rank);
  });
  return events;
}

/// Appends the events one by one.
class TraceText {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string finish() && { return std::move(out_) + "\n],\"displayTimeUnit\":\"ms\"}\n"; }

 private:
  std::string out_ = R"({"traceEvents":[)";
  bool first_ = true;
};

std::string arguments(const PlanRun& run, const TaskNames& names, TaskId id) {
  const Task& task = run.graph.task(id);
  std::string out = fmt::format(R"("task":{})", id.value);
  if (task.work.valid()) {
    out += fmt::format(R"(,"work":{},"microbatch":{})", task.work.value,
                       json_string(names.microbatch(task.work)));
  }
  if (task.chunk.valid()) {
    out += fmt::format(R"(,"chunk":{})", task.chunk.value);
  }
  if (task.pair.valid() && task.pair.row() < run.schedule.chosen.size()) {
    const StrategyId chosen = run.schedule.chosen[task.pair.row()];
    out += fmt::format(R"(,"strategy":"{}")", name_of(run.graph.strategy(chosen).mode));
  }
  if (task.peer.valid()) {
    out += fmt::format(R"(,"peer":{})", task.peer.value);
  }
  if (task.bytes.count != 0) {
    out += fmt::format(R"(,"bytes":{})", task.bytes.count);
  }
  return out;
}

void add_metadata(TraceText& text, const PlanRun& run, const TaskNames& names,
                  const Threads& threads) {
  for (std::size_t i = 0; i < run.graph.placement.ranks.size(); ++i) {
    text.add(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", i,
             json_string(names.rank(RankId(i))));
    text.add(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
             i);
  }
  threads.each([&](RankId rank, std::size_t thread, const std::string& name) {
    text.add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
             rank.value, thread, name);
  });
}

void add_events(TraceText& text, const PlanRun& run, const TaskNames& names,
                const std::vector<Event>& events) {
  for (const Event& event : events) {
    const Op op = run.graph.task(event.task).op;
    const bool computes = is_pass(op) || op == Op::Optimizer;
    text.add(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})",
        event.rank.value, event.thread, microseconds(event.span.start - kStart),
        microseconds(event.span.end - event.span.start), json_string(names.task(event.task)),
        computes ? "computation" : "communication", arguments(run, names, event.task));
  }
}

/// Flow events: an arrow from each transfer to the pass that needs it.
void add_arrows(TraceText& text, const PlanRun& run, const std::vector<Event>& events) {
  std::vector<std::size_t> thread(run.graph.tasks.size());
  for (const Event& event : events) {
    thread[event.task.row()] = event.thread;
  }
  for (std::size_t i = 0; i < run.graph.edges.size(); ++i) {
    const auto [from, to] = run.graph.edges[i];
    const Task& sender = run.graph.task(from);
    const Task& receiver = run.graph.task(to);
    if (sender.op != Op::Transfer || !is_pass(receiver.op)) {
      continue;
    }
    text.add(R"({{"ph":"s","id":{},"pid":{},"tid":{},"ts":{},"name":"needs","cat":"dependency"}})",
             i, sender.rank.value, thread[from.row()],
             microseconds(run.timeline.spans[from.row()].start - kStart));
    text.add(
        R"({{"ph":"f","bp":"e","id":{},"pid":{},"tid":{},"ts":{},"name":"needs","cat":"dependency"}})",
        i, receiver.rank.value, thread[to.row()],
        microseconds(run.timeline.spans[to.row()].start - kStart));
  }
}

void add_memory(TraceText& text, const PlanRun& run) {
  for (std::size_t rank = 0; rank < run.timeline.memory.size(); ++rank) {
    for (const MemoryPoint& point : run.timeline.memory[rank].points) {
      text.add(R"({{"ph":"C","pid":{},"ts":{},"name":"memory","args":{{"GiB":{}}}}})", rank,
               microseconds(point.at - kStart), shortest(to_gib(point.held)));
    }
  }
}

}  // namespace

std::string chrome_trace(const PlanRun& run) {
  const TaskNames names(run.graph);
  std::vector<Event> events = events_by_time(run);
  Threads threads;
  for (Event& event : events) {
    event.thread = threads.place(event.rank, run.graph.task(event.task).lane, event.span);
  }
  TraceText text;
  add_metadata(text, run, names, threads);
  add_events(text, run, names, events);
  add_arrows(text, run, events);
  add_memory(text, run);
  return std::move(text).finish();
}

}  // namespace dipsim
