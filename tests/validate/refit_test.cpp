// SPDX-License-Identifier: Apache-2.0
#include "validate/refit.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dipsim;

TEST_CASE(
    "values are rounded to three digits that read back equal, and next to nothing is nothing") {
  CHECK(rounded(0.0498234) == 0.0498);
  CHECK(rounded(0.77749) == 0.777);
  CHECK(rounded(97.94) == 97.9);
  CHECK(rounded(1.005) == std::stod("1"));
  CHECK(rounded(123.456) == 123.0);
  CHECK(rounded(12'345.0) == 12'300.0);
  CHECK(rounded(2.6e-25) == 0.0);
  CHECK(rounded(0.0) == 0.0);
}

TEST_CASE("what is carried over is a prior that names where it is from, once") {
  const Parameter fitted{0.7, Evidence::Fitted, "a table"};
  const Parameter prior = carried(fitted, "H200");
  CHECK(prior == Parameter{0.7, Evidence::Prior, "a table — carried over from H200"});
  CHECK(carried(prior, "GB200") == prior);
}
