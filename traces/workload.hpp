// SPDX-License-Identifier: Apache-2.0
// What the iterations of a training run are fed with: a generated load, or a packed trace file.
#pragma once

#include "models/microbatch.hpp"
#include "models/model.hpp"
#include "models/token_rules.hpp"
#include "traces/packing.hpp"
#include "traces/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

struct WorkloadOptions {
  TokenRuleSpec tokens;           ///< LmmModel::tokens
  PackingSpec packing;            ///< LmmModel::packing
  std::vector<Feed> feeds;        ///< LmmModel::feeds(): which media count, and which packer serves
  std::size_t microbatches = 64;  ///< of one iteration, all replicas together
  std::uint64_t seed = 1;
  FirstPass first_pass = FirstPass::FileOrder;  ///< of a trace file
};

/// The microbatches of every iteration. Equal options give equal microbatches, in whatever order
/// the iterations are asked for. Not thread-safe.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Iteration `index`, counted from 0: WorkloadOptions::microbatches of them. A trace file is read
  /// forward: asking for an earlier iteration reads it again from the start.
  virtual std::vector<Microbatch> iteration(std::size_t index) = 0;

  /// What packing did for the iterations asked for so far.
  [[nodiscard]] virtual PackingStats stats() const = 0;

  /// What the user should know about those iterations: a trace read more than once, samples cut or
  /// dropped, media ignored.
  [[nodiscard]] std::vector<std::string> warnings() const;

  /// What was opened, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  explicit Workload(std::string name) : name_(std::move(name)) {}

  Workload(const Workload&) = default;
  Workload& operator=(const Workload&) = default;

 private:
  std::string name_;
};

/// An entry of the table of traces.
struct TraceInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// Images per microbatch, which the name may set to another value ("steady-images:12"); 0: the
  /// trace has no such parameter.
  double mean = 0.0;
  std::unique_ptr<Workload> (*open)(const std::string& name, const WorkloadOptions&, double mean);
};

std::span<const TraceInfo> all_traces();

/// Opens a trace by its name in all_traces(), with ":MEAN" behind those that have this parameter,
/// or the trace file at a path. Throws Input on an unknown name, an unreadable file and options out
/// of range. A trace that holds nothing for the model throws Input at its first iteration.
std::unique_ptr<Workload> open_workload(const std::string& trace, const WorkloadOptions& options);

}  // namespace dipsim
