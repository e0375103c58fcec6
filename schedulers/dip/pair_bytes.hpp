// SPDX-License-Identifier: Apache-2.0
// What a pair holds along the order of its rank, and whether there is room for it.
#pragma once

#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace dipsim::dip {

/// Positions of a pair in the order of its rank.
struct PairPlace {
  Index first = 0;     ///< of the forward
  Index backward = 0;  ///< of its backward; `first` where there is none
  Index last = 0;      ///< of its W; `backward` where there is none
};

/// Bytes at [first, backward), at `backward`, and at (backward, last].
struct PairBytes {
  ByteCount before = 0;
  ByteCount during = 0;
  ByteCount after = 0;

  friend PairBytes operator-(const PairBytes& a, const PairBytes& b) {
    return {a.before - b.before, a.during - b.during, a.after - b.after};
  }

  friend PairBytes operator+(const PairBytes& a, const PairBytes& b) {
    return {a.before + b.before, a.during + b.during, a.after + b.after};
  }
};

inline PairBytes bytes_of(const PairOption& option) {
  return {.before = option.held, .during = option.held + option.rebuilt, .after = option.kept};
}

/// At one position of the pair, first to last.
inline ByteCount bytes_at(const PairPlace& place, const PairBytes& bytes, Index position) {
  if (position < place.backward) {
    return bytes.before;
  }
  return position == place.backward ? bytes.during : bytes.after;
}

/// Adds what the pair holds to `change`, whose prefix sums are the bytes held at each position: one
/// more element than positions.
inline void add_changes(std::span<ByteCount> change, const PairPlace& place,
                        const PairBytes& bytes) {
  change[place.first] += bytes.before;
  change[place.backward] += bytes.during - bytes.before;
  change[place.backward + 1] += bytes.after - bytes.during;
  change[place.last + 1] -= bytes.after;
}

/// Least free bytes on each of the three parts. An empty part has more than any pair wants; so has
/// the last one unless it is asked for.
inline PairBytes room_for(const RangeSlack& slack, const PairPlace& place, bool ask_after) {
  constexpr ByteCount kPlenty = std::numeric_limits<ByteCount>::max();
  return {
      .before = place.first < place.backward ? slack.least(place.first, place.backward) : kPlenty,
      .during = slack.at(place.backward),
      .after = ask_after && place.backward < place.last
                   ? slack.least(place.backward + 1, place.last + 1)
                   : kPlenty};
}

inline bool fits(const PairBytes& more, const PairBytes& room) {
  return more.before <= room.before && more.during <= room.during && more.after <= room.after;
}

inline void take(RangeSlack& slack, const PairPlace& place, const PairBytes& more) {
  slack.take(place.first, place.backward, more.before, more.during);
  if (more.after != 0) {
    slack.take(place.backward + 1, place.last + 1, more.after);
  }
}

}  // namespace dipsim::dip
