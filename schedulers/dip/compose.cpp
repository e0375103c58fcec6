// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/compose.hpp"

#include "schedulers/dip/fixed_order.hpp"

#include <algorithm>
#include <utility>

namespace dipsim::dip {

Nanoseconds makespan_of(const ReplicaGraph& replica, std::span<const Index> sequence,
                        std::span<const Index> choice) {
  PassClock clock(replica);
  std::vector<Nanoseconds> durations(replica.passes.size());
  set_durations(replica, choice, durations);
  return retime(clock, sequence, durations);
}

Composer::Composer(const TaskGraph& graph, const ReplicaGraph& replica, const DipOptions& options)
    : replica_(&replica),
      options_(&options),
      interleaver_(replica),
      chooser_(replica),
      clock_(replica),
      durations_(replica.passes.size()),
      used_(replica.pair_count()),
      sequential_(sequential_order(replica)) {
  add_levels(graph);
  add_ways();
  for (Composition* each : {&round_, &best_}) {
    each->sequence.resize(replica.passes.size());
    each->choice.resize(replica.pair_count());
  }
}

/// With memory choice: order under each level, choose from the most saving strategies upwards.
/// Without it: order under the strategies that the level gives, where these fit.
void Composer::add_levels(const TaskGraph& graph) {
  const Choice saving = most_saving_choice(*replica_);
  const MemoryLevel least = memory_level(*replica_, saving);
  require_fit(graph, *replica_, least);
  std::vector<Choice> known;
  for (const RecomputeMode mode : options_->memory_levels) {
    const Choice choice = uniform_choice(*replica_, mode);
    if (std::ranges::find(known, choice) != known.end()) {
      continue;
    }
    known.push_back(choice);
    const MemoryLevel level = memory_level(*replica_, choice);
    if (options_->memory_choice) {
      levels_.push_back({saving, level, least});
    } else if (fits(level)) {
      levels_.push_back({choice, level, level});
    }
  }
  if (levels_.empty()) {
    levels_.push_back({saving, least, least});
  }
}

/// Only weight passes make weight rules differ.
void Composer::add_ways() {
  const bool split = replica_->first_weight < replica_->passes.size();
  const std::vector<double> shares =
      options_->soft_shares.empty() ? std::vector{1.0} : options_->soft_shares;
  const std::vector<bool> wholes = options_->whole_microbatches.empty()
                                       ? std::vector<bool>{false}
                                       : options_->whole_microbatches;
  const std::size_t rules = split ? options_->weight_backlogs.size() : 1;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    for (const double share : shares) {
      for (std::size_t rule = 0; rule < rules; ++rule) {
        for (const bool whole : wholes) {
          ways_.push_back({.level = level,
                           .rule = {.soft_share = share,
                                    .whole_microbatches = whole,
                                    .weights = {.backlog = options_->weight_backlogs[rule]}}});
        }
      }
    }
  }
}

const Composition& Composer::compose(const GroupOrder& order, const Way& way) {
  std::ranges::copy(levels_[way.level].choice, round_.choice.begin());
  for (int round = 0; round < options_->rounds; ++round) {
    std::ranges::copy(round_.choice, used_.begin());
    run_round(order, way);
    if (round == 0 || round_.makespan < best_.makespan) {
      std::swap(round_.sequence, best_.sequence);
      best_.makespan = round_.makespan;
      std::ranges::copy(round_.choice, best_.choice.begin());
    }
    if (round_.choice == used_) {
      break;  // every further round would be this one
    }
  }
  return best_;
}

const Composition& Composer::compose_once(const GroupOrder& order, const Way& way,
                                          std::span<const Index> choice) {
  const std::span<const Index> from =
      options_->memory_choice ? choice : std::span<const Index>(levels_[way.level].choice);
  std::ranges::copy(from, round_.choice.begin());
  run_round(order, way);
  return round_;
}

/// Interleaves with the times of round_.choice, then chooses anew.
void Composer::run_round(const GroupOrder& order, const Way& way) {
  const Level& use = levels_[way.level];
  set_durations(*replica_, round_.choice, durations_);
  std::span<const Index> sequence =
      interleaver_.run(order, durations_, use.soft, use.hard, way.rule);
  if (sequence.empty()) {
    sequence = sequential_;  // fits: the levels do, each microbatch alone
  }
  std::ranges::copy(sequence, round_.sequence.begin());
  if (options_->memory_choice) {
    chooser_.choose(round_.sequence, round_.choice);
    set_durations(*replica_, round_.choice, durations_);
  }
  round_.makespan = retime(clock_, round_.sequence, durations_);
}

}  // namespace dipsim::dip
