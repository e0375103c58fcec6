// SPDX-License-Identifier: Apache-2.0
#include "sim/core/rows.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace dipsim {
namespace {

TEST_CASE("rows keep their values apart, empty rows included") {
  Rows<int> rows;
  CHECK(rows.empty());
  CHECK(rows.size() == 0);
  rows.add_row();
  rows.push_back(1);
  rows.push_back(2);
  rows.add_row();
  const std::array more = {3, 4, 5};
  rows.add_row(more);
  rows.push_back(6);
  REQUIRE(rows.size() == 3);
  CHECK(std::vector(rows[0].begin(), rows[0].end()) == std::vector{1, 2});
  CHECK(rows[1].empty());
  CHECK(std::vector(rows[2].begin(), rows[2].end()) == std::vector{3, 4, 5, 6});
  CHECK(rows.values().size() == 6);
}

TEST_CASE("a row can be written through its span") {
  Rows<int> rows;
  const std::array values = {1, 2};
  rows.add_row(values);
  rows.add_row(values);
  rows[1][0] = 9;
  CHECK(rows[0][0] == 1);
  CHECK(rows[1][0] == 9);
}

TEST_CASE("equal rows are equal however they were built, other row ends are not") {
  Rows<int> one_by_one;
  one_by_one.add_row();
  one_by_one.push_back(1);
  one_by_one.push_back(2);
  Rows<int> at_once;
  at_once.reserve(1, 2);
  const std::array values = {1, 2};
  at_once.add_row(values);
  CHECK(one_by_one == at_once);

  Rows<int> cut;
  cut.add_row();
  cut.push_back(1);
  cut.add_row();
  cut.push_back(2);
  CHECK(cut != at_once);
}

TEST_CASE("cleared rows can be filled again") {
  Rows<int> rows;
  const std::array values = {1, 2};
  rows.add_row(values);
  rows.clear();
  CHECK(rows.empty());
  CHECK(rows.values().empty());
  rows.add_row(values);
  CHECK(rows[0].size() == 2);
}

}  // namespace
}  // namespace dipsim
