// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/refine.hpp"

#include "schedulers/dip/held.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

namespace dipsim::dip {

namespace {

/// Farthest that a pass moves, in passes: the gain of a move falls with its distance, its cost
/// rises. W waits for nothing but its own I, so it also moves from afar.
constexpr std::size_t kReach = 12;
constexpr std::size_t kWeightReach = 96;

/// Share of moves that start from a longest path.
constexpr double kCritical = 0.8;

/// Two microbatches change places this many times per pass of the graph: that costs as much as
/// timing all passes several times.
constexpr double kExchanges = 4.0;

/// Temperatures that the rounds of cooling start from, and the one where each ends, in average pass
/// times: a move changes the makespan by the time of a pass or so.
constexpr std::array kHot = {2.0, 1.0, 0.5, 0.25, 2.0, 1.0, 0.5, 0.25};
constexpr double kCold = 0.01;

}  // namespace

Refiner::Refiner(const ReplicaGraph& replica)
    : graph_(&replica), order_(replica), random_(0, "refine"), place_(replica.passes.size()) {}

std::size_t Refiner::pick(std::size_t count) {
  return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count) - 1));
}

void Refiner::refine(Composition& composition, const RefineOptions& options) {
  random_ = RandomStream(options.seed, "refine");
  order_.assign(composition.sequence, composition.choice);
  best_.assign(composition.sequence.begin(), composition.sequence.end());
  Nanoseconds best = order_.makespan();
  const double scale = average_pass_time();
  const std::size_t per_round = std::max<std::size_t>(1, options.steps / kHot.size());
  const double exchanges =
      kExchanges / static_cast<double>(std::max<std::size_t>(40, best_.size()));
  find_path();
  for (std::size_t step = 0; step < options.steps && best > options.target; ++step) {
    if (step > 0 && step % per_round == 0) {
      order_.reorder(best_);
      find_path();
    }
    const double cooled = static_cast<double>(step % per_round) / static_cast<double>(per_round);
    const double hot = kHot[std::min(step / per_round, kHot.size() - 1)];
    const double worse = random_.exponential(scale * hot * std::pow(kCold / hot, cooled));
    const Nanoseconds limit = order_.makespan() + static_cast<Nanoseconds>(worse);
    const bool exchange = random_.uniform() < exchanges;
    if (!(exchange ? try_exchange(limit) : try_move(draw(), limit))) {
      continue;
    }
    find_path();
    if (order_.makespan() < best) {
      best = order_.makespan();
      best_.assign(order_.sequence().begin(), order_.sequence().end());
    }
  }
  composition.sequence.assign(best_.begin(), best_.end());
  composition.makespan = best;
}

double Refiner::average_pass_time() const {
  double sum = 0.0;
  for (Index pass = 0; pass < graph_->passes.size(); ++pass) {
    sum += static_cast<double>(order_.duration(pass));
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, graph_->passes.size()));
}

/// Makes the move if it fits and the makespan stays within the limit.
bool Refiner::try_move(const std::optional<Move>& move, Nanoseconds limit) {
  if (!move || !order_.fits(*move) || order_.estimate(*move) > limit) {
    return false;
  }
  const Index next = order_.next(move->pass);
  const Index previous = order_.previous(move->pass);
  if (!order_.apply(*move)) {
    return false;
  }
  if (order_.makespan() <= limit) {
    return true;
  }
  order_.apply(
      {.pass = move->pass, .target = move->later ? next : previous, .later = !move->later});
  return false;
}

/// Two microbatches change places: each pass of one goes where the other's pass of the same chunk
/// and kind stands; what only one of them has stays. Then every pass that comes before something it
/// waits for goes just behind that.
bool Refiner::try_exchange(Nanoseconds limit) {
  const auto one = static_cast<Index>(pick(graph_->components));
  const auto other = static_cast<Index>(pick(graph_->components));
  if (one == other) {
    return false;
  }
  before_.assign(order_.sequence().begin(), order_.sequence().end());
  exchange_places(one, other);
  sort_by_place();
  if (std::ranges::min(least_free(*graph_, after_, order_.choice())) < 0) {
    return false;
  }
  order_.reorder(after_);
  if (order_.makespan() <= limit) {
    return true;
  }
  order_.reorder(before_);
  return false;
}

void Refiner::exchange_places(Index one, Index other) {
  for (Index i = 0; i < before_.size(); ++i) {
    place_[before_[i]] = i;
  }
  // Equal passes of a component, several slices for instance, pair up in the order of the sequence.
  std::map<std::pair<ChunkId, PassKind>, std::array<std::vector<Index>, 2>> alike;
  for (const Index pass : before_) {
    const Index pair = graph_->passes[pass].pair;
    const Index component = graph_->component[pair];
    if (component == one || component == other) {
      alike[{graph_->chunk[pair], graph_->kind(pass)}][component == one ? 0 : 1].push_back(pass);
    }
  }
  for (auto& [kind, passes] : alike) {
    const std::size_t count = std::min(passes[0].size(), passes[1].size());
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(place_[passes[0][i]], place_[passes[1][i]]);
    }
  }
}

/// A topological order of all passes, by place among those that could come next.
void Refiner::sort_by_place() {
  const auto later = [&](Index a, Index b) { return place_[a] > place_[b]; };
  std::priority_queue<Index, std::vector<Index>, decltype(later)> possible(later);
  missing_.clear();
  for (const Pass& pass : graph_->passes) {
    missing_.push_back(pass.predecessors);
  }
  for (Index pass = 0; pass < missing_.size(); ++pass) {
    if (missing_[pass] == 0) {
      possible.push(pass);
    }
  }
  after_.clear();
  while (!possible.empty()) {
    const Index id = possible.top();
    possible.pop();
    after_.push_back(id);
    const Pass& pass = graph_->passes[id];
    for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
      if (--missing_[graph_->hops[h].to] == 0) {
        possible.push(graph_->hops[h].to);
      }
    }
  }
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
