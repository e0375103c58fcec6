// SPDX-License-Identifier: Apache-2.0
// Numbers that remember where they come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// How well a number is founded.
enum class Evidence : std::uint8_t {
  Measured,  ///< read directly off a measurement of this hardware
  Fitted,    ///< fitted to measurements of this hardware
  Prior,     ///< data sheet, vendor constant, or carried over from other hardware
};

inline constexpr std::size_t kEvidenceCount = 3;

std::string_view name_of(Evidence evidence);

/// One number of a GPU or of its cost model; the unit is in the name of the member that holds it.
struct Parameter {
  double value = 0.0;
  Evidence evidence = Evidence::Prior;
  std::string source;  ///< public place that the number can be checked at
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// A parameter with its place in the file: "gemm.start_up_us".
struct NamedParameter {
  std::string name;
  Parameter parameter;
};

}  // namespace dipsim
