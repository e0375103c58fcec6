// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory.hpp"

#include "sim/core/error.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace dipsim::dip {

namespace {

/// Steps are of equal worth when their nanoseconds per byte differ by less than this factor.
constexpr double kEqualWorth = 1.05;

}  // namespace

MemoryChooser::MemoryChooser(const ReplicaGraph& replica)
    : graph_(&replica), most_saving_(most_saving_choice(replica)), fastest_(most_saving_) {
  const auto pairs = static_cast<Index>(replica.pair_count());
  for (Index pair = 0; pair < pairs; ++pair) {
    add_steps(pair);
  }
  number_classes();

  const std::size_t ranks = replica.ranks.size();
  std::vector<Index> length(ranks, 0);
  for (const Pass& pass : replica.passes) {
    ++length[pass.rank];
  }
  pass_first_.push_back(0);
  for (const Index passes : length) {
    pass_first_.push_back(pass_first_.back() + passes);
  }
  const Index longest = ranks == 0 ? 0 : *std::ranges::max_element(length);
  order_.resize(replica.passes.size());
  position_.resize(replica.passes.size());
  pass_next_.resize(ranks);
  candidates_.resize(steps_.size());
  class_next_.resize(class_first_.size());
  free_.resize(longest);
  slack_.reserve(longest);
}

/// The faster strategies on the upper hull of time saved over bytes, from the most saving one on:
/// each saves less time per byte than the one before it.
void MemoryChooser::add_steps(Index pair) {
  const auto options = graph_->options_of(pair);
  first_step_.push_back(static_cast<Index>(steps_.size()));
  while (true) {
    const PairOption& from = options[fastest_[pair]];
    Step best;
    for (Index to = 0; to < options.size(); ++to) {
      const PairOption& option = options[to];
      const Nanoseconds saved = from.time() - option.time();
      const ByteCount held = option.held - from.held;
      if (saved <= 0 || held <= 0) {
        continue;
      }
      const double worth = static_cast<double>(saved) / static_cast<double>(held);
      if (worth > best.worth) {
        best = {.from = fastest_[pair],
                .to = to,
                .held = held,
                .at_last = held + option.rebuilt - from.rebuilt,
                .worth = worth};
      }
    }
    if (best.worth == 0.0) {
      break;
    }
    steps_.push_back(best);
    fastest_[pair] = best.to;
  }
  last_step_.push_back(static_cast<Index>(steps_.size()));
}

/// Sorts the steps of each rank by worth and cuts them into classes, once: neither depends on the
/// order of the passes.
void MemoryChooser::number_classes() {
  std::vector<std::vector<Index>> of_rank(graph_->ranks.size());
  for (Index pair = 0; pair < graph_->pair_count(); ++pair) {
    for (Index step = first_step_[pair]; step < last_step_[pair]; ++step) {
      of_rank[graph_->passes[pair].rank].push_back(step);
    }
  }
  Index placed = 0;
  for (std::vector<Index>& steps : of_rank) {
    rank_class_.push_back(static_cast<Index>(class_first_.size()));
    std::ranges::sort(steps, {}, [&](Index s) { return std::pair(-steps_[s].worth, s); });
    double least = std::numeric_limits<double>::infinity();  // of the class being filled
    for (const Index row : steps) {
      Step& step = steps_[row];
      if (step.worth < least) {
        class_first_.push_back(placed);
        least = step.worth / kEqualWorth;
      }
      step.rank_class = static_cast<Index>(class_first_.size() - 1);
      ++placed;
    }
  }
  rank_class_.push_back(static_cast<Index>(class_first_.size()));
  class_first_.push_back(placed);
}

void MemoryChooser::choose(std::span<const Index> sequence, std::span<Index> choice) {
  find_positions(sequence);
  std::ranges::copy(fastest_, choice.begin());
  for (Index rank = 0; rank < graph_->ranks.size(); ++rank) {
    if (!load(rank, fastest_)) {
      upgrade(rank, choice);
    }
  }
}

void MemoryChooser::find_positions(std::span<const Index> sequence) {
  std::copy(pass_first_.begin(), pass_first_.end() - 1, pass_next_.begin());
  for (const Index pass : sequence) {
    const Index rank = graph_->passes[pass].rank;
    const Index place = pass_next_[rank]++;
    order_[place] = pass;
    position_[pass] = place - pass_first_[rank];
  }
}

/// Fills `free_` with what is left at each position of the rank; whether nothing is missing.
bool MemoryChooser::load(Index rank, std::span<const Index> choice) {
  const ReplicaGraph& graph = *graph_;
  ByteCount free = graph.room[rank];
  ByteCount least = 0;
  const Index first = pass_first_[rank];
  for (Index place = first; place < pass_first_[rank + 1]; ++place) {
    const Index pass = order_[place];
    const Index pair = graph.passes[pass].pair;
    const PairOption& option = graph.options[graph.first_option[pair] + choice[pair]];
    const bool is_forward = graph.is_forward(pass);
    free -= is_forward ? option.held : 0;
    const ByteCount left = free - graph.transient[pass] - (is_forward ? 0 : option.rebuilt);
    free += graph.ends_pair(pass) ? option.held : 0;
    free_[place - first] = left;
    least = std::min(least, left);
  }
  return least >= 0;
}

/// All steps of a rank's pairs: class by class, inside a class by the position of the last pass.
void MemoryChooser::sort_candidates(Index rank) {
  for (Index c = rank_class_[rank]; c < rank_class_[rank + 1]; ++c) {
    class_next_[c] = class_first_[c];
  }
  for (Index place = pass_first_[rank]; place < pass_first_[rank + 1]; ++place) {
    const Index pass = order_[place];
    if (!graph_->ends_pair(pass)) {
      continue;
    }
    const Index pair = graph_->passes[pass].pair;
    for (Index step = first_step_[pair]; step < last_step_[pair]; ++step) {
      candidates_[class_next_[steps_[step].rank_class]++] = {
          .pair = pair, .step = step, .last = position_[pass]};
    }
  }
}

void MemoryChooser::upgrade(Index rank, std::span<Index> choice) {
  for (Index place = pass_first_[rank]; place < pass_first_[rank + 1]; ++place) {
    const Index pair = graph_->passes[order_[place]].pair;
    choice[pair] = most_saving_[pair];
  }
  DIPSIM_CHECK(load(rank, choice), "the most saving strategies don't fit this order");
  slack_.assign({free_.data(), pass_first_[rank + 1] - pass_first_[rank]});
  sort_candidates(rank);
  const Index first_class = rank_class_[rank];
  const Index last_class = rank_class_[rank + 1];
  for (Index c = class_first_[first_class]; c < class_first_[last_class]; ++c) {
    const Candidate& candidate = candidates_[c];
    const Step& step = steps_[candidate.step];
    const Index first = position_[candidate.pair];
    const Index last = candidate.last;
    // A failed step leaves its pair behind: the later, larger ones don't apply any more.
    if (choice[candidate.pair] != step.from || slack_.least(last, last + 1) < step.at_last ||
        (first < last && slack_.least(first, last) < step.held)) {
      continue;
    }
    slack_.take(first, last, step.held);
    slack_.take(last, last + 1, step.at_last);
    choice[candidate.pair] = step.to;
  }
}

}  // namespace dipsim::dip
