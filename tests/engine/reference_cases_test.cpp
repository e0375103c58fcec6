// SPDX-License-Identifier: Apache-2.0
// Pipelines whose makespan other simulators agree on: ASTRA-sim, SimGrid and a public emulator of
// pipeline schedules, and closed formulas without transfers. F takes 1, B takes 2.
#include "sim/engine/engine.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim {
namespace {

using test::GraphBuilder;
using test::ns;

/// 1F1B, with several chunks per rank in Megatron's interleaved order (Narayanan et al. 2021).
struct Reference {
  std::size_t ranks = 1;
  std::size_t microbatches = 1;
  std::size_t chunks = 1;
  std::int64_t transfer = 0;
  std::size_t replicas = 1;
};

class Pipeline {
 public:
  explicit Pipeline(const Reference& reference)
      : p_(reference.ranks),
        m_(reference.microbatches),
        v_(reference.chunks),
        builder_(reference.ranks * reference.replicas) {
    std::vector<std::vector<TaskId>> orders;
    for (std::size_t replica = 0; replica < reference.replicas; ++replica) {
      add_replica(replica, ns(reference.transfer));
      for (std::size_t rank = 0; rank < p_; ++rank) {
        orders.push_back(order_of(rank));
      }
    }
    schedule_ = builder_.schedule(orders);
  }

  [[nodiscard]] const TaskGraph& graph() const { return builder_.graph; }

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

 private:
  void add_replica(std::size_t replica, Duration transfer) {
    pairs_.assign(p_ * v_, {});
    for (std::size_t i = 0; i < m_; ++i) {
      for (std::size_t stage = 0; stage < p_ * v_; ++stage) {
        const RankId rank(replica * p_ + stage % p_);
        const PairId pair = builder_.add_pair(rank, test::Passes::Fused, test::fused(1, 2));
        builder_.add_pair_edges(pair);
        if (stage > 0) {
          const PairId before = pairs_[stage - 1][i];
          builder_.add_transfer(builder_.f(before), builder_.f(pair), transfer);
          builder_.add_transfer(builder_.b(pair), builder_.b(before), transfer);
        }
        pairs_[stage].push_back(pair);
      }
    }
  }

  /// The k-th F works on chunk (k mod pv) div p of microbatch (k div pv) p + k mod p; the k-th B on
  /// the same with the chunks the other way round.
  [[nodiscard]] std::vector<TaskId> order_of(std::size_t rank) const {
    const auto pair = [&](std::size_t k, bool forward) {
      const std::size_t chunk = (k % (p_ * v_)) / p_;
      const std::size_t microbatch = v_ == 1 ? k : (k / (p_ * v_)) * p_ + k % p_;
      const std::size_t mirrored = forward ? chunk : v_ - 1 - chunk;
      return pairs_[(v_ == 1 ? 0 : mirrored) * p_ + rank][microbatch];
    };
    const std::size_t passes = m_ * v_;
    const std::size_t warm_up =
        std::min(v_ == 1 ? p_ - 1 - rank : 2 * (p_ - 1 - rank) + (v_ - 1) * p_, passes);
    std::vector<TaskId> order;
    for (std::size_t k = 0; k < warm_up; ++k) {
      order.push_back(builder_.f(pair(k, true)));
    }
    for (std::size_t k = 0; k < passes; ++k) {
      if (warm_up + k < passes) {
        order.push_back(builder_.f(pair(warm_up + k, true)));
      }
      order.push_back(builder_.b(pair(k, false)));
    }
    return order;
  }

  std::size_t p_;
  std::size_t m_;
  std::size_t v_;
  GraphBuilder builder_;
  std::vector<std::vector<PairId>> pairs_;  ///< by global stage and microbatch, latest replica
  Schedule schedule_;
};

std::int64_t makespan(const Reference& reference, SendMode send = SendMode::Eager) {
  const Pipeline pipeline(reference);
  EngineOptions options;
  options.send = send;
  const Timeline timeline = simulate(pipeline.graph(), pipeline.schedule(), options);
  if (send == SendMode::Eager) {
    CHECK(OrderEvaluator(pipeline.graph()).evaluate(pipeline.schedule()) == timeline);
  }
  CHECK(lower_bound(pipeline.graph()).makespan <= timeline.makespan);
  return timeline.makespan.count();
}

std::size_t count(const TaskGraph& graph, bool passes) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.tasks, [&](const Task& task) { return is_pass(task.op) == passes; }));
}

TEST_CASE("the reference pipelines have the passes and transfers that others count") {
  const Pipeline w1({.ranks = 8, .microbatches = 64});
  CHECK(count(w1.graph(), true) == 1'024);
  CHECK(count(w1.graph(), false) == 896);
  const Pipeline w3({.ranks = 8, .microbatches = 64, .chunks = 4});
  CHECK(count(w3.graph(), true) == 4'096);
  CHECK(count(w3.graph(), false) == 3'968);
  CHECK_NOTHROW(validate(w3.graph()));
  CHECK_NOTHROW(validate(w3.graph(), w3.schedule()));
}

TEST_CASE("1F1B without transfer time takes (m + p - 1)(F + B)") {
  CHECK(makespan({.ranks = 8, .microbatches = 64}) == 213);
  CHECK(makespan({.ranks = 32, .microbatches = 256}) == 861);
  CHECK(makespan({.ranks = 1, .microbatches = 7}) == 21);
  CHECK(makespan({.ranks = 4, .microbatches = 2}) == 15);  // fewer microbatches than ranks
}

TEST_CASE("interleaved 1F1B without transfer time takes (mv + p - 1)(F + B)") {
  CHECK(makespan({.ranks = 8, .microbatches = 64, .chunks = 4}) == 789);
  CHECK(makespan({.ranks = 32, .microbatches = 256, .chunks = 4}) == 3'165);
  CHECK(makespan({.ranks = 2, .microbatches = 4, .chunks = 2}) == 27);
}

TEST_CASE("transfers of the time of a forward pass, sent eagerly") {
  CHECK(makespan({.ranks = 8, .microbatches = 64, .transfer = 1}) == 337);
  CHECK(makespan({.ranks = 8, .microbatches = 64, .chunks = 4, .transfer = 1}) == 851);
}

TEST_CASE("the same transfers, started when the receiver has posted") {
  CHECK(makespan({.ranks = 8, .microbatches = 64, .transfer = 1}, SendMode::Rendezvous) == 352);
  CHECK(makespan({.ranks = 8, .microbatches = 64, .chunks = 4, .transfer = 1},
                 SendMode::Rendezvous) == 1'309);
}

TEST_CASE("replicas that share nothing take as long as one") {
  CHECK(makespan({.ranks = 32, .microbatches = 64, .replicas = 32}) == 285);
}

}  // namespace
}  // namespace dipsim
