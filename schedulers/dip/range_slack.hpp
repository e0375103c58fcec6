// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Free bytes at each position of an order: least value of a range, and taking from a range, in
/// O(blocks). Blocks of kBlock positions keep their least value and what was taken from all of
/// them, so that a range touches single positions only in its first and last block.
class RangeSlack {
 public:
  /// Largest number of positions that assign() will be given.
  void reserve(std::size_t positions) {
    values_.reserve(positions);
    blocks_.reserve(positions / kBlock + 1);
  }

  void assign(std::span<const std::int64_t> free) {
    values_.assign(free.begin(), free.end());
    blocks_.assign((free.size() + kBlock - 1) / kBlock, {});
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      refresh(b);
    }
  }

  /// Least free bytes over [first, last), which is not empty.
  [[nodiscard]] std::int64_t least(std::size_t first, std::size_t last) const {
    const std::size_t from = first / kBlock;
    const std::size_t to = (last - 1) / kBlock;
    if (from == to) {
      return scan(first, last) - blocks_[from].taken;
    }
    std::int64_t found = std::min(scan(first, (from + 1) * kBlock) - blocks_[from].taken,
                                  scan(to * kBlock, last) - blocks_[to].taken);
    for (std::size_t b = from + 1; b < to; ++b) {
      found = std::min(found, blocks_[b].least);
    }
    return found;
  }

  /// Free bytes at one position.
  [[nodiscard]] std::int64_t at(std::size_t position) const {
    return values_[position] - blocks_[position / kBlock].taken;
  }

  /// Takes `bytes` (negative: gives) at every position of [first, last), and `at_last` at `last`.
  void take(std::size_t first, std::size_t last, std::int64_t bytes, std::int64_t at_last) {
    const std::size_t from = first / kBlock;
    const std::size_t to = last / kBlock;
    values_[last] -= at_last;
    if (from == to) {
      take_inside(from, first, last, bytes);
      return;
    }
    take_inside(from, first, (from + 1) * kBlock, bytes);
    take_inside(to, to * kBlock, last, bytes);
    take_blocks(from + 1, to, bytes);
  }

  /// Takes `bytes` at every position of [first, last).
  void take(std::size_t first, std::size_t last, std::int64_t bytes) {
    if (first >= last) {
      return;
    }
    const std::size_t from = first / kBlock;
    const std::size_t to = (last - 1) / kBlock;
    if (from == to) {
      take_inside(from, first, last, bytes);
      return;
    }
    take_inside(from, first, (from + 1) * kBlock, bytes);
    take_inside(to, to * kBlock, last, bytes);
    take_blocks(from + 1, to, bytes);
  }

 private:
  static constexpr std::size_t kBlock = 8;

  struct Block {
    std::int64_t least = 0;
    std::int64_t taken = 0;  ///< not yet taken from its values
  };

  [[nodiscard]] std::int64_t scan(std::size_t first, std::size_t last) const {
    std::int64_t found = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = first; i < last; ++i) {
      found = std::min(found, values_[i]);
    }
    return found;
  }

  void take_inside(std::size_t block, std::size_t first, std::size_t last, std::int64_t bytes) {
    for (std::size_t i = first; i < last; ++i) {
      values_[i] -= bytes;
    }
    refresh(block);
  }

  void take_blocks(std::size_t first, std::size_t last, std::int64_t bytes) {
    for (std::size_t b = first; b < last; ++b) {
      blocks_[b].least -= bytes;
      blocks_[b].taken += bytes;
    }
  }

  void refresh(std::size_t block) {
    const std::size_t last = std::min((block + 1) * kBlock, values_.size());
    blocks_[block].least = scan(block * kBlock, last) - blocks_[block].taken;
  }

  std::vector<std::int64_t> values_;
  std::vector<Block> blocks_;
};

}  // namespace dipsim::dip
