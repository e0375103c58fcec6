// SPDX-License-Identifier: Apache-2.0
#include "report/chrome_trace.hpp"

#include "tests/report/example.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace dipsim;
using nlohmann::json;

namespace {

std::vector<json> events(const json& trace, const std::string& phase) {
  std::vector<json> out;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) {
      out.push_back(event);
    }
  }
  return out;
}

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000.0);
}

}  // namespace

TEST_CASE("trace: every task is an event with its exact start and duration") {
  const PlanRun run = test::GPipe(3, 4).run();
  const json trace = json::parse(chrome_trace(run));
  CHECK(trace["displayTimeUnit"] == "ms");
  const std::vector<json> complete = events(trace, "X");
  REQUIRE(complete.size() == run.graph.tasks.size());
  for (const json& event : complete) {
    const auto id = event["args"]["task"].get<std::size_t>();
    const Span span = run.timeline.spans[id];
    CHECK(nanoseconds(event["ts"]) == (span.start - kStart).count());
    CHECK(nanoseconds(event["dur"]) == (span.end - span.start).count());
    CHECK(event["pid"] == run.graph.tasks[id].rank.value);
    CHECK(event["tid"].get<std::size_t>() % kLaneCount ==
          static_cast<std::size_t>(run.graph.tasks[id].lane));
  }
}

TEST_CASE("trace: nanoseconds show as fractions of a microsecond") {
  CHECK(chrome_trace(test::GPipe(1, 1).run()).find("\"ts\":0,\"dur\":2000.001,") !=
        std::string::npos);
}

TEST_CASE("trace: names say pass, microbatch and module, arguments the rest") {
  const json trace = json::parse(chrome_trace(test::GPipe(2, 2, "vit").run()));
  const std::vector<json> complete = events(trace, "X");
  const auto named = [&](const std::string& name) {
    return std::ranges::count_if(complete, [&](const json& e) { return e["name"] == name; });
  };
  CHECK(named("F mb1 vit") == 2);
  CHECK(named("B mb0 vit") == 2);
  CHECK(named("transfer mb0 to rank 1") == 1);
  const json& first = complete.front();
  CHECK(first["cat"] == "computation");
  CHECK(first["args"]["chunk"] == 0);
  CHECK(first["args"]["work"] == 0);
  CHECK(first["args"]["strategy"] == "keep");
}

TEST_CASE("trace: processes and threads have names") {
  const json trace = json::parse(chrome_trace(test::GPipe(2, 2).run()));
  std::map<std::string, std::set<std::string>> names;
  for (const json& event : events(trace, "M")) {
    if (event["args"].contains("name")) {
      names[event["name"]].insert(event["args"]["name"].get<std::string>());
    }
  }
  CHECK(names["process_name"] == std::set<std::string>{"rank 0", "rank 1"});
  CHECK(names["thread_name"] == std::set<std::string>{"compute", "comm"});
}

TEST_CASE("trace: events of one thread nest or follow each other") {
  PlanRun run = test::GPipe(2, 6).run();
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    if (run.graph.tasks[i].op == Op::Transfer) {
      run.timeline.spans[i].end += test::ms(5);  // a long latency: transfers overlap
    }
  }
  std::map<std::pair<int, int>, std::int64_t> busy_until;
  const json trace = json::parse(chrome_trace(run));
  std::set<std::string> threads;
  for (const json& event : events(trace, "X")) {
    auto& until = busy_until[{event["pid"].get<int>(), event["tid"].get<int>()}];
    CHECK(nanoseconds(event["ts"]) >= until);
    until = nanoseconds(event["ts"]) + nanoseconds(event["dur"]);
  }
  for (const json& event : events(trace, "M")) {
    threads.insert(event["args"].value("name", ""));
  }
  CHECK(threads.contains("comm 2"));
}

TEST_CASE("trace: a collective shows on every rank of its group") {
  PlanRun run = test::GPipe(3, 1).run();
  run.graph.placement.groups.add_row(std::vector<RankId>{RankId(0), RankId(2)});
  Task reduction;
  reduction.op = Op::Collective;
  reduction.lane = Lane::Gradient;
  reduction.rank = RankId(0);
  reduction.group = GroupId(0);
  run.graph.tasks.push_back(reduction);
  run.timeline.spans.push_back({kStart + test::ms(50), kStart + test::ms(60)});
  std::set<int> ranks;
  for (const json& event : events(json::parse(chrome_trace(run)), "X")) {
    if (event["name"] == "collective") {
      ranks.insert(event["pid"].get<int>());
    }
  }
  CHECK(ranks == std::set<int>{0, 2});
}

TEST_CASE("trace: an arrow leads from each transfer to the pass that needs it") {
  const PlanRun run = test::GPipe(2, 3).run();
  const json trace = json::parse(chrome_trace(run));
  const std::vector<json> starts = events(trace, "s");
  const std::vector<json> ends = events(trace, "f");
  REQUIRE(starts.size() == 2 * 3);
  REQUIRE(ends.size() == starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    CHECK(starts[i]["id"] == ends[i]["id"]);
    CHECK(starts[i]["ts"].get<double>() < ends[i]["ts"].get<double>());
    CHECK(starts[i]["pid"] != ends[i]["pid"]);
  }
}

TEST_CASE("trace: the memory counter follows the memory curve") {
  const PlanRun run = test::GPipe(2, 3).run();
  double highest = 0.0;
  std::size_t points = 0;
  for (const json& event : events(json::parse(chrome_trace(run)), "C")) {
    if (event["pid"] == 1) {
      highest = std::max(highest, event["args"]["GiB"].get<double>());
      ++points;
    }
  }
  CHECK(highest == 5.0);
  CHECK(points == run.timeline.memory[1].points.size());
}

TEST_CASE("trace: hostile names stay inside their strings") {
  const std::string text = chrome_trace(test::GPipe(2, 1, test::kHostile).run());
  CHECK(json::accept(text));
  CHECK(json::accept(chrome_trace(PlanRun{})));
}
