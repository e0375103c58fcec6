// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory.hpp"

#include "sim/core/error.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace dipsim::dip {

namespace {

/// Steps are of equal worth when their nanoseconds per byte differ by less than this factor.
constexpr double kEqualWorth = 1.05;

/// Nanoseconds saved per byte by `to` instead of `from`; 0 where it is not faster or holds no more.
double worth_of(const PairOption& from, const PairOption& to) {
  const Nanoseconds saved = from.time() - to.time();
  const ByteCount held = to.held - from.held;
  return saved > 0 && held > 0 ? static_cast<double>(saved) / static_cast<double>(held) : 0.0;
}

/// The next option from `from` on the upper hull of time saved over bytes held, and what it is
/// worth: 0 where `from` is the last one.
std::pair<Index, double> next_on_hull(std::span<const PairOption> options, Index from) {
  std::pair<Index, double> best{from, 0.0};
  for (Index to = 0; to < options.size(); ++to) {
    if (const double worth = worth_of(options[from], options[to]); worth > best.second) {
      best = {to, worth};
    }
  }
  return best;
}

}  // namespace

MemoryChooser::MemoryChooser(const ReplicaGraph& replica)
    : graph_(&replica),
      most_saving_(most_saving_choice(replica)),
      fastest_(most_saving_),
      places_(replica),
      free_(places_.most_positions() + 1) {
  const auto pairs = static_cast<Index>(replica.pair_count());
  for (Index pair = 0; pair < pairs; ++pair) {
    add_climbs(pair);
  }
  first_climb_.push_back(static_cast<Index>(climbs_.size()));
  number_classes();
  sorted_.resize(climbs_.size());
  class_next_.resize(class_first_.size());
  slack_.reserve(places_.most_positions());
}

/// Climbs from the most saving strategy on: along the upper hull, so that each saves less time per
/// byte than the one before it.
void MemoryChooser::add_climbs(Index pair) {
  const auto options = graph_->options_of(pair);
  first_climb_.push_back(static_cast<Index>(climbs_.size()));
  Index& at = fastest_[pair];
  auto [next, worth] = next_on_hull(options, at);
  while (worth > 0.0) {
    Climb climb{
        .first_step = static_cast<Index>(steps_.size()), .from = at, .pair = pair, .worth = worth};
    while (worth > climb.worth / kEqualWorth) {
      at = next;
      std::tie(next, worth) = next_on_hull(options, at);
    }
    add_steps(options, climb, options[at].held);
    climbs_.push_back(climb);
  }
}

/// All options up to so many bytes that are worth about as much as the climb, also those that lie a
/// little below the hull: smaller steps fill the memory better.
void MemoryChooser::add_steps(std::span<const PairOption> options, Climb& climb, ByteCount held) {
  const PairOption& from = options[climb.from];
  for (Index to = 0; to < options.size(); ++to) {
    if (options[to].held <= held && worth_of(from, options[to]) >= climb.worth / kEqualWorth) {
      const PairBytes more = bytes_of(options[to]) - bytes_of(from);
      steps_.push_back({.to = to, .more = more});
      climb.least_during = std::min(climb.least_during, more.during);
      climb.most_after = std::max(climb.most_after, more.after);
    }
  }
  climb.last_step = static_cast<Index>(steps_.size());
  std::sort(steps_.begin() + climb.first_step, steps_.end(), [&](const Step& a, const Step& b) {
    return options[a.to].time() > options[b.to].time();
  });
}

/// Sorts the climbs of each rank by worth and cuts them into classes, once: neither depends on the
/// order of the passes.
void MemoryChooser::number_classes() {
  std::vector<std::vector<Index>> of_rank(graph_->ranks.size());
  for (Index climb = 0; climb < climbs_.size(); ++climb) {
    of_rank[graph_->passes[climbs_[climb].pair].rank].push_back(climb);
  }
  Index placed = 0;
  for (std::vector<Index>& rows : of_rank) {
    rank_class_.push_back(static_cast<Index>(class_first_.size()));
    std::ranges::sort(rows, {}, [&](Index row) { return std::pair(-climbs_[row].worth, row); });
    double least = std::numeric_limits<double>::infinity();  // of the class being filled
    for (const Index row : rows) {
      if (climbs_[row].worth < least) {
        class_first_.push_back(placed);
        least = climbs_[row].worth / kEqualWorth;
      }
      climbs_[row].rank_class = static_cast<Index>(class_first_.size() - 1);
      ++placed;
    }
  }
  rank_class_.push_back(static_cast<Index>(class_first_.size()));
  class_first_.push_back(placed);
}

void MemoryChooser::choose(std::span<const Index> sequence, std::span<Index> choice) {
  places_.find(sequence);
  std::ranges::copy(fastest_, choice.begin());
  for (Index rank = 0; rank < graph_->ranks.size(); ++rank) {
    if (!load(rank, fastest_)) {
      upgrade(rank, choice);
    }
  }
}

/// Fills `free_` with what is left at each position of the rank; whether nothing is missing.
bool MemoryChooser::load(Index rank, std::span<const Index> choice) {
  const std::span<const ByteCount> empty = places_.empty(rank);
  std::fill_n(free_.begin(), empty.size() + 1, 0);
  for (const Index pair : places_.pairs_of(rank)) {
    const PairOption& option = graph_->options[graph_->first_option[pair] + choice[pair]];
    add_changes(free_, places_[pair], bytes_of(option));
  }
  ByteCount held = 0;
  ByteCount least = 0;
  for (std::size_t p = 0; p < empty.size(); ++p) {
    held += free_[p];
    free_[p] = empty[p] - held;
    least = std::min(least, free_[p]);
  }
  return least >= 0;
}

/// Sets the pairs of a rank to where all climbs of the classes before `end` lead, and loads that.
bool MemoryChooser::settle(Index rank, Index end, std::span<Index> choice) {
  for (const Index pair : places_.pairs_of(rank)) {
    choice[pair] = most_saving_[pair];
    for (Index climb = first_climb_[pair];
         climb < first_climb_[pair + 1] && climbs_[climb].rank_class < end; ++climb) {
      choice[pair] = steps_[climbs_[climb].last_step - 1].to;
    }
  }
  return load(rank, choice);
}

/// The first class of a rank whose climbs don't all fit; leaves the pairs, and free_, where those
/// before lead.
Index MemoryChooser::first_scarce_class(Index rank, std::span<Index> choice) {
  Index fits_before = rank_class_[rank];
  Index too_far = rank_class_[rank + 1];
  Index settled = ReplicaGraph::kNone;
  while (too_far - fits_before > 1) {
    settled = (fits_before + too_far) / 2;
    (settle(rank, settled, choice) ? fits_before : too_far) = settled;
  }
  if (settled != fits_before) {
    DIPSIM_CHECK(settle(rank, fits_before, choice),
                 "the most saving strategies don't fit this order");
  }
  return fits_before;
}

/// The climbs of a rank's pairs from a class on: class by class, inside a class by the position of
/// the last pass.
void MemoryChooser::sort_climbs(Index rank, Index first_class) {
  for (Index c = first_class; c < rank_class_[rank + 1]; ++c) {
    class_next_[c] = class_first_[c];
  }
  for (const Index pair : places_.ends(rank)) {
    if (pair == ReplicaGraph::kNone) {
      continue;
    }
    for (Index climb = first_climb_[pair]; climb < first_climb_[pair + 1]; ++climb) {
      if (const Index c = climbs_[climb].rank_class; c >= first_class) {
        sorted_[class_next_[c]++] = climb;
      }
    }
  }
}

void MemoryChooser::upgrade(Index rank, std::span<Index> choice) {
  const Index first_class = first_scarce_class(rank, choice);
  slack_.assign({free_.data(), places_.positions(rank)});
  sort_climbs(rank, first_class);
  for (Index c = class_first_[first_class]; c < class_first_[rank_class_[rank + 1]]; ++c) {
    take(climbs_[sorted_[c]], choice);
  }
}

/// As many steps of the climb as there is room for.
void MemoryChooser::take(const Climb& climb, std::span<Index> choice) {
  // A step that failed leaves its pair behind: the climbs behind it don't apply any more.
  if (choice[climb.pair] != climb.from) {
    return;
  }
  const PairPlace& place = places_[climb.pair];
  if (slack_.at(place.backward) < climb.least_during) {
    return;  // as most do where memory is scarce
  }
  const PairBytes room = room_for(slack_, place, climb.most_after > 0);
  for (Index step = climb.last_step; step-- > climb.first_step;) {
    if (fits(steps_[step].more, room)) {
      dip::take(slack_, place, steps_[step].more);
      choice[climb.pair] = steps_[step].to;
      return;
    }
  }
}

}  // namespace dipsim::dip
