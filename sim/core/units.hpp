// SPDX-License-Identifier: Apache-2.0
// Simulated time and memory: integer nanoseconds and integer bytes.
// Floating point enters only through the two checked conversions at the end of this file.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string_view>

namespace dipsim {

/// Clock of the simulated machine; its epoch is the start of the iteration.
struct SimClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<SimClock, duration>;
};

using Duration = std::chrono::nanoseconds;
using Time = SimClock::time_point;

/// Start of the iteration.
inline constexpr Time kStart{};

/// An amount of memory or traffic; may be negative where it is a difference.
struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }

  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }

  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }

  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }

  friend constexpr Bytes operator-(Bytes a) { return {-a.count}; }

  friend constexpr Bytes operator*(Bytes a, std::int64_t k) { return {a.count * k}; }

  friend constexpr Bytes operator*(std::int64_t k, Bytes a) { return {a.count * k}; }
};

/// GB as in data sheets and link rates.
inline constexpr double kBytesPerGb = 1e9;
/// GiB as in allocator readings.
inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

inline double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

inline double to_milliseconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

inline double to_gib(Bytes b) { return static_cast<double>(b.count) / kBytesPerGib; }

/// Longest duration and largest size the program accepts anywhere: sums of 10^5 of them fit 64
/// bits.
inline constexpr double kMaxSeconds = 86'400.0;
inline constexpr double kMaxBytes = 9e13;

/// Rounds to the nearest nanosecond, halves away from zero. The only way from floating point to
/// time. `what` names the value in the message. Throws Input on NaN, infinity, a negative value or
/// one above kMaxSeconds.
Duration round_to_duration(double seconds, std::string_view what = "duration");

/// Rounds to the nearest byte, halves away from zero. The only way from floating point to bytes.
/// Throws Input on NaN, infinity, a negative value or one above kMaxBytes.
Bytes round_to_bytes(double bytes, std::string_view what = "size");

}  // namespace dipsim
