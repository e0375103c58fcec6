// SPDX-License-Identifier: Apache-2.0
// How a plan is run: part of a plan file, read by the engine.
#pragma once

#include "sim/core/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace dipsim {

/// What a transfer queues behind.
enum class LanePolicy : std::uint8_t {
  PairDirection,  ///< earlier transfers from the same rank to the same peer
  Pair,           ///< earlier transfers between the two ranks, either way
  Rank,           ///< earlier transfers sent by the same rank
  CopyEngine,     ///< earlier transfers and copies that the sender or the receiver takes part in
};

/// When a transfer may start.
enum class SendMode : std::uint8_t {
  Eager,       ///< as soon as its data are there: the receiver has a buffer
  Blocking,    ///< as Eager, but the sender's cells run nothing until it has arrived, and its host
               ///< issues nothing before that either
  Rendezvous,  ///< when also the receiver has posted: its cell has reached the pass that needs it
};

struct EngineOptions {
  LanePolicy lanes = LanePolicy::PairDirection;
  SendMode send = SendMode::Eager;
  Duration host_issue{0};  ///< the host of a rank needs this long to issue each pass, one by one
  double jitter = 0.0;     ///< sigma of log-normal factors of mean 1 on the time of every task
  std::uint64_t seed = 0;  ///< of the jitter
  /// Links are shared by all that passes them, and communication slows the passes beside it. Needs
  /// a cluster.
  bool contention = false;
  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

/// "pair-direction", "eager", … as written in files and on the command line.
std::string_view name_of(LanePolicy policy);
std::string_view name_of(SendMode mode);

/// Throw Input at `where`, naming the nearest, on an unknown name.
LanePolicy lane_policy_of(std::string_view name, const std::string& where);
SendMode send_mode_of(std::string_view name, const std::string& where);

}  // namespace dipsim
