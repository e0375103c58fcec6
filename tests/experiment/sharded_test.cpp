// SPDX-License-Identifier: Apache-2.0
#include "experiment/sharded.hpp"

#include "experiment/compare.hpp"
#include "experiment/setup.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// Microbatches that are told apart by their text.
std::vector<Microbatch> numbered(int count) {
  std::vector<Microbatch> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    all[static_cast<std::size_t>(i)].documents = {i};
  }
  return all;
}

}  // namespace

TEST_CASE("every step takes the next heaviest microbatches, one per replica") {
  const std::vector<double> flops = {3, 9, 1, 8, 2, 7};
  const std::vector<Microbatch> dealt = deal_evenly(numbered(6), flops, 3, 1);
  // By FLOPs: 1, 3, 5 | 0, 4, 2; replica r has the r-th of each step.
  std::vector<int> order;
  for (const Microbatch& microbatch : dealt) {
    order.push_back(static_cast<int>(microbatch.documents.front()));
  }
  CHECK(order == std::vector<int>{1, 0, 3, 4, 5, 2});
}

TEST_CASE("equally heavy microbatches stay in their order") {
  const std::vector<Microbatch> dealt = deal_evenly(numbered(4), std::vector<double>(4, 1.0), 2, 1);
  CHECK(dealt[0] == numbered(4)[0]);
  CHECK(dealt[1] == numbered(4)[2]);
}

TEST_CASE("a number of microbatches that the replicas do not share evenly is refused") {
  const Error error =
      test::error_of([] { deal_evenly(numbered(6), std::vector<double>(6, 1.0), 4, 1); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(std::string(error.what()).find("nearest legal: 4 or 8") != std::string::npos);
  // Two replicas of two GPUs each: what the user gives is the number of one replica.
  const Error two =
      test::error_of([] { deal_evenly(numbered(6), std::vector<double>(6, 1.0), 4, 2); });
  CHECK(std::string(two.what()).find("3 per replica") != std::string::npos);
  CHECK(std::string(two.what()).find("nearest legal: 2 or 4") != std::string::npos);
}

TEST_CASE("fsdp runs on all GPUs of the plan, and gathers the weights of every layer") {
  ExperimentSpec spec;
  spec.model = "vlm-s";
  spec.cluster = "h800-64";
  spec.trace = "steady-images:4";
  spec.schedules = {"1f1b", "fsdp:recompute=full"};
  spec.iterations = 1;
  spec.microbatches = 16;
  const Setup setup = prepare(spec);
  const Comparison comparison = compare(spec, setup, {});
  const TaskGraph& graph = comparison.schedules[1].sample.graph;
  CHECK(graph.placement.ranks.size() == 16);
  CHECK(graph.placement.chunks.size() == 16 * (63 + 32));
  std::size_t gathers = 0;
  std::size_t scatters = 0;
  for (const Task& task : graph.tasks) {
    gathers += task.op == Op::Gather ? 1 : 0;
    scatters += task.op == Op::Scatter ? 1 : 0;
  }
  // One microbatch per GPU: F and B of every layer gather, B scatters; all GPUs together.
  CHECK(gathers == 2 * (63 + 32));
  CHECK(scatters == 63 + 32);
  // The useful work is the same as that of the pipeline, to the rounding of splitting it.
  CHECK(graph.model_flops ==
        doctest::Approx(comparison.schedules[0].sample.graph.model_flops).epsilon(1e-9));
}

TEST_CASE("fsdp names the numbers of microbatches that it could run") {
  ExperimentSpec spec;
  spec.model = "vlm-s";
  spec.cluster = "h800-64";
  spec.trace = "steady-images:4";
  spec.schedules = {"fsdp"};
  spec.iterations = 1;
  spec.microbatches = 20;
  const Error error = test::error_of([&] {
    const Setup setup = prepare(spec);
    compare(spec, setup, {});
  });
  CHECK(std::string(error.what()).find("nearest legal: 16 or 32") != std::string::npos);
}
