// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_repair.hpp"

#include <algorithm>
#include <limits>

namespace dipsim::dip {

namespace {

/// Whether `to` needs no more than `from` before a position of the interval.
bool no_more_before(const PairPlace& place, const PairOption& from, const PairOption& to,
                    Index position) {
  const PairBytes more = bytes_of(to) - bytes_of(from);
  return more.before <= 0 && (position <= place.backward || more.during <= 0);
}

}  // namespace

MemoryRepair::MemoryRepair(std::size_t pairs, std::size_t positions) : change_(positions + 1) {
  active_.reserve(pairs);
  slack_.reserve(positions);
}

void MemoryRepair::load(const MemoryProblem& problem, std::span<const Index> choice) {
  problem_ = problem;
  std::fill_n(change_.begin(), problem.free.size() + 1, 0);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const MemoryPair& pair = problem.pairs[i];
    add_changes(change_, pair.place, bytes_of(problem.options[pair.first_option + choice[i]]));
  }
}

/// Forgets the pairs that have ended before a position.
void MemoryRepair::retire(Index position) {
  std::erase_if(active_, [&](Index pair) { return problem_.pairs[pair].place.last < position; });
}

MemoryRepair::Relief MemoryRepair::best_relief(Index position, ByteCount missing,
                                               const MemoryPrices& prices,
                                               std::span<const Index> choice) const {
  Relief best{.loss = std::numeric_limits<double>::infinity()};
  for (const Index i : active_) {
    const MemoryPair& pair = problem_.pairs[i];
    const PairOption* options = problem_.options.data() + pair.first_option;
    const PairOption& now = options[choice[i]];
    const double cost = prices.cost(pair, choice[i]);
    for (Index row = 0; row < pair.option_count; ++row) {
      const ByteCount bytes = bytes_at(pair.place, bytes_of(now), position) -
                              bytes_at(pair.place, bytes_of(options[row]), position);
      if (bytes <= 0 || !no_more_before(pair.place, now, options[row], position)) {
        continue;
      }
      const double loss =
          (prices.cost(pair, row) - cost) / static_cast<double>(std::min(bytes, missing));
      if (loss < best.loss) {
        best = {.pair = i, .option = row, .bytes = bytes, .loss = loss};
      }
    }
  }
  return best;
}

void MemoryRepair::relieve(Index position, const Relief& relief, std::span<Index> choice) {
  const MemoryPair& pair = problem_.pairs[relief.pair];
  const PairOption& from = problem_.options[pair.first_option + choice[relief.pair]];
  const PairOption& to = problem_.options[pair.first_option + relief.option];
  const PairBytes more = bytes_of(to) - bytes_of(from);
  if (position < pair.place.backward) {
    change_[pair.place.backward] += more.during - more.before;
  }
  if (position <= pair.place.backward) {
    change_[pair.place.backward + 1] += more.after - more.during;
  }
  change_[pair.place.last + 1] -= more.after;
  choice[relief.pair] = relief.option;
}

bool MemoryRepair::fit(const MemoryProblem& problem, std::span<const Index> by_first,
                       const MemoryPrices& prices, std::span<Index> choice) {
  load(problem, choice);
  active_.clear();
  auto next = by_first.begin();
  ByteCount used = 0;
  for (Index position = 0; position < problem.free.size(); ++position) {
    for (; next != by_first.end() && problem.pairs[*next].place.first == position; ++next) {
      active_.push_back(*next);
    }
    used += change_[position];
    if (used > problem.free[position]) {
      retire(position);
    }
    while (used > problem.free[position]) {
      const Relief relief = best_relief(position, used - problem.free[position], prices, choice);
      if (relief.bytes == 0) {
        return false;
      }
      relieve(position, relief, choice);
      used -= relief.bytes;
    }
  }
  return true;
}

void MemoryRepair::fill(const MemoryProblem& problem, std::span<const Index> by_first,
                        std::span<Index> choice) {
  load(problem, choice);
  ByteCount used = 0;
  for (std::size_t p = 0; p < problem.free.size(); ++p) {
    used += change_[p];
    change_[p] = problem.free[p] - used;
  }
  slack_.assign({change_.data(), problem.free.size()});
  for (const Index i : by_first) {
    const MemoryPair& pair = problem.pairs[i];
    const auto options = problem.options.subspan(pair.first_option, pair.option_count);
    const PairBytes held = bytes_of(options[choice[i]]);
    const PairBytes room = room_for(slack_, pair.place, true);
    Index best = choice[i];
    for (Index row = 0; row < options.size(); ++row) {
      if (options[row].time() < options[best].time() && fits(bytes_of(options[row]) - held, room)) {
        best = row;
      }
    }
    if (best != choice[i]) {
      take(slack_, pair.place, bytes_of(options[best]) - held);
      choice[i] = best;
    }
  }
}

}  // namespace dipsim::dip
