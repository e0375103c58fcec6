// SPDX-License-Identifier: Apache-2.0
// Bytes per element of what layers keep and move.
#pragma once

#include <cstdint>

namespace dipsim {

inline constexpr std::int64_t kBf16 = 2;
inline constexpr std::int64_t kFp32 = 4;
inline constexpr std::int64_t kMask = 1;

}  // namespace dipsim
