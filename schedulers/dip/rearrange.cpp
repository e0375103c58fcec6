// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/rearrange.hpp"

#include "schedulers/dip/held.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <queue>
#include <utility>

namespace dipsim::dip {

namespace {

/// Places are this far apart, so that others fit between them.
constexpr std::uint64_t kGap = 2;

}  // namespace

Rearranger::Rearranger(const ReplicaGraph& replica)
    : graph_(&replica),
      row_(replica.passes.size()),
      place_(replica.passes.size()),
      missing_(replica.passes.size(), 0),
      moved_(replica.ranks.size()),
      fixed_(replica.ranks.size()),
      clock_(replica),
      filling_(replica.ranks.size()) {
  sequence_.reserve(replica.passes.size());
}

std::span<const Index> Rearranger::exchange(std::span<const Index> sequence, Index one,
                                            Index other) {
  begin(sequence);
  // Equal passes of a component, several slices for instance, pair up in the order of the sequence.
  std::map<std::pair<ChunkId, PassKind>, std::array<std::vector<Index>, 2>> alike;
  for (const Index pass : sequence) {
    const Index pair = graph_->passes[pass].pair;
    const Index component = graph_->component[pair];
    if (component == one || component == other) {
      alike[{graph_->chunk[pair], graph_->kind(pass)}][component == one ? 0 : 1].push_back(pass);
    }
  }
  for (auto& [kind, passes] : alike) {
    const std::size_t count = std::min(passes[0].size(), passes[1].size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t place = place_[passes[0][i]];
      put(passes[0][i], place_[passes[1][i]]);
      put(passes[1][i], place);
    }
  }
  sort_by_place();
  return sequence_;
}

std::span<const Index> Rearranger::move_group(std::span<const Index> sequence,
                                              const GroupMove& move) {
  begin(sequence);
  const auto collect = [&](Index group, bool forward, std::vector<std::vector<Index>>& per_rank) {
    for (std::vector<Index>& passes : per_rank) {
      passes.clear();
    }
    const Group& of = graph_->groups[group];
    const Index first = forward ? of.first_forward : of.first_backward;
    const Index last = forward ? of.last_forward : of.last_backward;
    for (Index pass = first; pass < last; ++pass) {
      per_rank[graph_->passes[pass].rank].push_back(pass);
    }
    for (std::vector<Index>& passes : per_rank) {
      std::ranges::sort(passes, {}, [&](Index pass) { return place_[pass]; });
    }
  };
  collect(move.group, move.forward, moved_);
  collect(move.target, move.target_forward, fixed_);
  for (std::size_t rank = 0; rank < moved_.size(); ++rank) {
    if (move.rank != ReplicaGraph::kNone && move.rank != rank) {
      continue;
    }
    for (std::size_t i = 0; i < moved_[rank].size() && !fixed_[rank].empty(); ++i) {
      const std::uint64_t place = place_[fixed_[rank][std::min(i, fixed_[rank].size() - 1)]];
      put(moved_[rank][i], move.later ? place + 1 : place - 1);
    }
  }
  sort_by_place();
  return sequence_;
}

std::span<const Index> Rearranger::refill(std::span<const Index> sequence,
                                          std::span<const Index> choice,
                                          std::span<const Nanoseconds> durations, double fit) {
  given_.assign(sequence.begin(), sequence.end());
  sequence_.clear();
  clock_.reset();
  for (Filling& filling : filling_) {
    filling.waiting.clear();
    filling.next = 0;
    filling.held = 0;
  }
  const auto option = [&](Index pass) -> const PairOption& {
    const Index pair = graph_->passes[pass].pair;
    return graph_->options_of(pair)[choice[pair]];
  };
  // While it runs, and for its W behind it.
  const auto fits = [&](Index pass, ByteCount held) {
    const ByteCount room = graph_->room[graph_->passes[pass].rank];
    const Index weight = graph_->weight[graph_->passes[pass].pair];
    const ByteCount behind =
        graph_->is_forward(pass) || weight == ReplicaGraph::kNone
            ? 0
            : held_change(*graph_, pass, option(pass)) + graph_->transient[weight];
    return held + std::max(needed_bytes(*graph_, pass, option(pass)), behind) <= room;
  };
  for (const Index pass : given_) {
    if (graph_->is_weight(pass)) {
      continue;
    }
    const Index rank = graph_->passes[pass].rank;
    Filling& filling = filling_[rank];
    while (filling.next < filling.waiting.size()) {
      const Index weight = filling.waiting[filling.next];
      const auto idle = static_cast<double>(clock_.ready(pass) - clock_.rank_free(rank));
      if (idle < std::max(1.0, fit * static_cast<double>(durations[weight])) &&
          fits(pass, filling.held)) {
        break;
      }
      run(weight, choice, durations);
    }
    run(pass, choice, durations);
  }
  for (Filling& filling : filling_) {
    while (filling.next < filling.waiting.size()) {
      run(filling.waiting[filling.next], choice, durations);
    }
  }
  return sequence_;
}

/// Appends a pass in refill().
void Rearranger::run(Index pass, std::span<const Index> choice,
                     std::span<const Nanoseconds> durations) {
  const Index pair = graph_->passes[pass].pair;
  Filling& filling = filling_[graph_->passes[pass].rank];
  clock_.run(pass, durations[pass], [](const Hop&, Nanoseconds, bool) {});
  sequence_.push_back(pass);
  filling.held += held_change(*graph_, pass, graph_->options_of(pair)[choice[pair]]);
  switch (graph_->kind(pass)) {
    case PassKind::Forward:
      break;
    case PassKind::Backward:
      if (graph_->weight[pair] != ReplicaGraph::kNone) {
        filling.waiting.push_back(graph_->weight[pair]);
      }
      break;
    case PassKind::Weight:
      ++filling.next;
  }
}

void Rearranger::begin(std::span<const Index> sequence) {
  sequence_.assign(sequence.begin(), sequence.end());
  for (Index row = 0; row < sequence_.size(); ++row) {
    row_[sequence_[row]] = row;
    place_[sequence_[row]] = kGap * (row + 1);
  }
  first_ = static_cast<Index>(sequence_.size());
  last_ = 0;
}

void Rearranger::put(Index pass, std::uint64_t place) {
  place_[pass] = place;
  const auto target = static_cast<Index>(place / kGap);  // the row before, or the one itself + 1
  const auto size = static_cast<Index>(sequence_.size());
  first_ = std::min({first_, row_[pass], target == 0 ? 0 : target - 1});
  last_ = std::max({last_, row_[pass] + 1, std::min(target + 1, size)});
}

/// Sorts the rows that may change: a topological order, by place (then number) among those that
/// could come next.
void Rearranger::sort_by_place() {
  const auto later = [&](Index a, Index b) {
    return std::pair(place_[a], a) > std::pair(place_[b], b);
  };
  const auto for_next = [&](Index pass, const auto& body) {
    for (Index h = graph_->passes[pass].first_hop; h < graph_->passes[pass].last_hop; ++h) {
      const Index next = graph_->hops[h].to;
      if (row_[next] < last_) {  // it stands behind the pass, so behind first_
        body(next);
      }
    }
  };
  for (Index row = first_; row < last_; ++row) {
    for_next(sequence_[row], [&](Index next) { ++missing_[next]; });
  }
  std::priority_queue<Index, std::vector<Index>, decltype(later)> possible(later);
  for (Index row = first_; row < last_; ++row) {
    if (missing_[sequence_[row]] == 0) {
      possible.push(sequence_[row]);
    }
  }
  for (Index row = first_; !possible.empty(); ++row) {
    const Index pass = possible.top();
    possible.pop();
    sequence_[row] = pass;
    for_next(pass, [&](Index next) {
      if (--missing_[next] == 0) {
        possible.push(next);
      }
    });
  }
}

}  // namespace dipsim::dip
