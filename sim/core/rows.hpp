// SPDX-License-Identifier: Apache-2.0
// A list of lists in two flat arrays (compressed sparse rows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// Rows of values of type T; `values` holds them one after the other, row i is
/// values[offsets[i] … offsets[i + 1]).
template <class T>
class Rows {
 public:
  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }

  [[nodiscard]] bool empty() const { return size() == 0; }

  [[nodiscard]] std::span<const T> operator[](std::size_t row) const {
    return {values_.data() + offsets_[row], values_.data() + offsets_[row + 1]};
  }

  [[nodiscard]] std::span<T> operator[](std::size_t row) {
    return {values_.data() + offsets_[row], values_.data() + offsets_[row + 1]};
  }

  /// All values, row after row.
  [[nodiscard]] std::span<const T> values() const { return values_; }

  /// Adds an empty last row.
  void add_row() { offsets_.push_back(offsets_.back()); }

  /// Adds a last row with these values.
  void add_row(std::span<const T> row) {
    values_.insert(values_.end(), row.begin(), row.end());
    offsets_.push_back(static_cast<std::uint32_t>(values_.size()));
  }

  /// Appends to the last row.
  void push_back(T value) {
    values_.push_back(value);
    ++offsets_.back();
  }

  void reserve(std::size_t rows, std::size_t values) {
    offsets_.reserve(rows + 1);
    values_.reserve(values);
  }

  void clear() {
    values_.clear();
    offsets_.assign(1, 0);
  }

  friend bool operator==(const Rows&, const Rows&) = default;

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> offsets_ = {0};
};

}  // namespace dipsim
