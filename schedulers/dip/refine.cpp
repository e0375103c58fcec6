// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/refine.hpp"

#include "sim/core/parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace dipsim::dip {

namespace {

/// Farthest that a pass moves, in passes: the gain of a move falls with its distance, its cost
/// rises. W waits for nothing but its own I, so it also moves from afar.
constexpr std::size_t kReach = 12;
constexpr std::size_t kWeightReach = 96;

/// Share of moves that start from a longest path.
constexpr double kCritical = 0.8;

/// Share of moves that rearrange many passes at once, times the number of passes: such a move costs
/// as much as timing all passes several times.
constexpr double kRearranged = 16.0;

/// Share of its time for which a W fills idle time, where all are placed anew: values tried.
constexpr std::array kFits = {0.0, 0.5, 1.0};

/// Temperatures that the rounds of cooling start from, and the one where each ends, in average pass
/// times: a move changes the makespan by the time of a pass or so.
constexpr std::array kHot = {4.0, 2.0, 1.0, 0.5};
constexpr double kCold = 0.01;

/// Moves between two looks at the stop.
constexpr std::size_t kStepsPerLook = 64;

/// What the price of a byte is multiplied by at an accepted move that leaves an order which breaks
/// the limit, and divided by at one which fits.
constexpr double kPriceStep = 1.03;

/// Farthest that the price goes from where it begins, either way.
constexpr double kPriceRange = 1'000.0;

}  // namespace

Refiner::Refiner(const ReplicaGraph& replica)
    : graph_(&replica),
      order_(replica),
      random_(0, "refine"),
      group_of_(replica.passes.size(), ReplicaGraph::kNone),
      rearranger_(replica),
      clock_(replica) {
  for (Index group = 0; group < replica.groups.size(); ++group) {
    const Group& of = replica.groups[group];
    std::fill(group_of_.begin() + of.first_forward, group_of_.begin() + of.last_forward, group);
    std::fill(group_of_.begin() + of.first_backward, group_of_.begin() + of.last_backward, group);
  }
}

std::size_t Refiner::pick(std::size_t count) {
  return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count) - 1));
}

void Refiner::refine(Composition& composition, const RefineOptions& options) {
  random_ = RandomStream(options.seed, "refine");
  order_.assign(composition.sequence, composition.choice);
  best_.assign(composition.sequence.begin(), composition.sequence.end());
  constexpr Nanoseconds kNone = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds best = order_.excess() == 0 ? order_.makespan() : kNone;
  const double scale = average_pass_time();
  const std::size_t per_round = std::max<std::size_t>(1, options.steps / kHot.size());
  const double rearranged =
      kRearranged / static_cast<double>(std::max<std::size_t>(40, best_.size()));
  usual_price_ = scale / average_held();
  for (std::size_t step = 0; step < options.steps && best > 0; ++step) {
    if (step % kStepsPerLook == 0) {
      throw_if_stopped(options.stop);
    }
    if (step % per_round == 0) {
      price_ = usual_price_;
      order_.reorder(best_);
      find_path();
    }
    const double cooled = static_cast<double>(step % per_round) / static_cast<double>(per_round);
    const double hot = kHot[std::min(step / per_round, kHot.size() - 1)];
    const double worse = random_.exponential(scale * hot * std::pow(kCold / hot, cooled));
    const double limit = cost_of_order() + worse;
    const bool rearrange = random_.uniform() < rearranged;
    if (!(rearrange ? try_rearranged(limit) : try_move(draw(), limit))) {
      continue;
    }
    adapt_price();
    find_path();
    if (order_.excess() == 0 && order_.makespan() < best) {
      best = order_.makespan();
      best_.assign(order_.sequence().begin(), order_.sequence().end());
    }
  }
  if (best < kNone) {
    composition.sequence.assign(best_.begin(), best_.end());
    composition.makespan = best;
  }
}

double Refiner::average_pass_time() const {
  double sum = 0.0;
  for (Index pass = 0; pass < graph_->passes.size(); ++pass) {
    sum += static_cast<double>(order_.duration(pass));
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, graph_->passes.size()));
}

/// Mean bytes that a pair holds, at least 1.
double Refiner::average_held() const {
  double sum = 0.0;
  for (Index pair = 0; pair < graph_->pair_count(); ++pair) {
    sum += static_cast<double>(graph_->options_of(pair)[order_.choice()[pair]].held);
  }
  return std::max(1.0, sum / static_cast<double>(std::max<std::size_t>(1, graph_->pair_count())));
}

double Refiner::cost_of_order() const {
  return static_cast<double>(order_.makespan()) + price_ * static_cast<double>(order_.excess());
}

void Refiner::adapt_price() {
  price_ *= order_.excess() > 0 ? kPriceStep : 1.0 / kPriceStep;
  price_ = std::clamp(price_, usual_price_ / kPriceRange, usual_price_ * kPriceRange);
}

/// Makes the move if the cost stays within the limit.
bool Refiner::try_move(const std::optional<Move>& move, double limit) {
  if (!move) {
    return false;
  }
  const ByteCount excess = order_.excess_after(*move);
  if (static_cast<double>(order_.estimate(*move)) + price_ * static_cast<double>(excess) > limit) {
    return false;
  }
  const Index next = order_.next(move->pass);
  const Index previous = order_.previous(move->pass);
  if (!order_.apply(*move)) {
    return false;
  }
  if (cost_of_order() <= limit) {
    return true;
  }
  order_.apply(
      {.pass = move->pass, .target = move->later ? next : previous, .later = !move->later});
  return false;
}

bool Refiner::try_rearranged(double limit) {
  before_.assign(order_.sequence().begin(), order_.sequence().end());
  std::ranges::stable_sort(before_, {}, [&](Index pass) { return order_.head(pass); });
  const std::span<const Index> after = draw_rearranged();
  if (after.empty() || static_cast<double>(retime(clock_, after, order_.durations())) > limit) {
    return false;
  }
  order_.reorder(after);
  if (cost_of_order() <= limit) {
    return true;
  }
  order_.reorder(before_);
  return false;
}

std::span<const Index> Refiner::draw_rearranged() {
  const std::span<const Index> drawn = pick(4) == 0 ? draw_exchange() : draw_group_move();
  const bool split = graph_->first_weight < graph_->passes.size();
  if (drawn.empty() || !split || pick(3) == 0) {
    return drawn;
  }
  return rearranger_.refill(drawn, order_.choice(), order_.durations(), kFits[pick(kFits.size())]);
}

std::span<const Index> Refiner::draw_exchange() {
  const auto one = static_cast<Index>(pick(graph_->components));
  const auto other = static_cast<Index>(pick(graph_->components));
  return one == other ? std::span<const Index>{} : rearranger_.exchange(before_, one, other);
}

std::span<const Index> Refiner::draw_group_move() {
  const auto moved = static_cast<Index>(pick(graph_->passes.size()));
  const Index target = draw_near(moved);
  if (group_of_[moved] == ReplicaGraph::kNone || group_of_[target] == ReplicaGraph::kNone) {
    return {};
  }
  const GroupMove move{.group = group_of_[moved],
                       .forward = graph_->is_forward(moved),
                       .target = group_of_[target],
                       .target_forward = graph_->is_forward(target),
                       .later = pick(2) == 0,
                       .rank = pick(2) == 0 ? ReplicaGraph::kNone : graph_->passes[moved].rank};
  return move.group == move.target ? std::span<const Index>{}
                                   : rearranger_.move_group(before_, move);
}

/// Another pass of the same rank, a log-uniform number of places away.
Index Refiner::draw_near(Index pass) {
  const double reach = std::pow(static_cast<double>(graph_->passes.size()), random_.uniform());
  const bool later = pick(2) == 0;
  Index target = pass;
  for (auto left = static_cast<std::size_t>(reach); left > 0; --left) {
    const Index next = later ? order_.next(target) : order_.previous(target);
    if (next == ReplicaGraph::kNone) {
      break;
    }
    target = next;
  }
  return target;
}

void Refiner::find_path() {
  const auto backwards = order_.critical_path(random_.bits());
  path_.assign(backwards.rbegin(), backwards.rend());
  block_.resize(path_.size());
  for (std::size_t i = 0; i < path_.size(); ++i) {
    const bool continues = i > 0 && order_.next(path_[i - 1]) == path_[i];
    block_[i] = continues ? block_[i - 1] : i;
  }
}

std::optional<Move> Refiner::draw() {
  return random_.uniform() < kCritical ? draw_critical() : draw_any();
}

std::optional<Move> Refiner::draw_critical() {
  const std::size_t at = pick(path_.size());
  const std::size_t first = block_[at];
  std::size_t last = at;
  const std::size_t reach = graph_->is_weight(path_[at]) ? kWeightReach : kReach;
  while (last + 1 < path_.size() && block_[last + 1] == first && last < at + reach) {
    ++last;
  }
  switch (pick(3)) {
    case 0:  // change places with the next one
      if (at < last) {
        return Move{.pass = path_[at], .target = path_[at + 1], .later = true};
      }
      break;
    case 1:
      if (at < last) {
        return Move{.pass = path_[at], .target = path_[last], .later = true};
      }
      break;
    default:
      if (at > first) {
        const std::size_t target = std::max(first, at - std::min(at, kReach));
        return Move{.pass = path_[at], .target = path_[target], .later = false};
      }
  }
  return std::nullopt;
}

std::optional<Move> Refiner::draw_any() {
  const auto pass = static_cast<Index>(pick(graph_->passes.size()));
  const bool later = pick(2) == 0;
  const std::size_t distance = 1 + pick(kReach) * pick(2);
  Index target = pass;
  for (std::size_t i = 0; i < distance; ++i) {
    const Index next = later ? order_.next(target) : order_.previous(target);
    if (next == ReplicaGraph::kNone) {
      break;
    }
    target = next;
  }
  if (target == pass) {
    return std::nullopt;
  }
  return Move{.pass = pass, .target = target, .later = later};
}

}  // namespace dipsim::dip
