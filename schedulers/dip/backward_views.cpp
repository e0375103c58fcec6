// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/backward_views.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace dipsim::dip {

namespace {

/// Keeps those options of pairs with W that `wanted` accepts; all where it accepts none. Pairs of
/// equal cost share a run of options before and after.
template <class Wanted>
GraphView with_options(const ReplicaGraph& replica, const Wanted& wanted) {
  GraphView view{.graph = replica, .pass_of = {}, .option_of = {}};
  ReplicaGraph& graph = view.graph;
  view.pass_of.resize(replica.passes.size());
  std::iota(view.pass_of.begin(), view.pass_of.end(), Index{0});
  graph.options.clear();
  constexpr Index kUnknown = ReplicaGraph::kNone;
  std::vector<Index> first(replica.options.size(), kUnknown);
  std::vector<Index> count(replica.options.size(), 0);
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    const Index old = replica.first_option[pair];
    if (first[old] == kUnknown) {
      first[old] = static_cast<Index>(graph.options.size());
      const auto options = replica.options_of(pair);
      const bool all =
          replica.weight[pair] == ReplicaGraph::kNone || std::ranges::none_of(options, wanted);
      for (Index o = 0; o < options.size(); ++o) {
        if (all || wanted(options[o])) {
          graph.options.push_back(options[o]);
          view.option_of.push_back(o);
          ++count[old];
        }
      }
    }
    graph.first_option[pair] = first[old];
    graph.option_count[pair] = count[old];
  }
  return view;
}

}  // namespace

std::optional<GraphView> whole_backwards(const ReplicaGraph& replica) {
  // A W that takes no time may still read what its I has left.
  const auto whole = [](const PairOption& o) { return o.weight == 0 && o.kept == 0; };
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    if (replica.weight[pair] != ReplicaGraph::kNone &&
        std::ranges::none_of(replica.options_of(pair), whole)) {
      return std::nullopt;
    }
  }
  GraphView view = with_options(replica, whole);
  ReplicaGraph& graph = view.graph;
  // Hops point to W only from its own backward, where they stand somewhere in the run.
  std::vector<Hop> hops;
  for (Pass& pass : graph.passes) {
    const auto first = static_cast<Index>(hops.size());
    for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
      if (!graph.is_weight(graph.hops[h].to)) {
        hops.push_back(graph.hops[h]);
      }
    }
    pass.first_hop = first;
    pass.last_hop = static_cast<Index>(hops.size());
  }
  graph.hops = std::move(hops);
  graph.passes.resize(graph.first_weight);
  graph.tasks.resize(graph.first_weight);
  graph.transient.resize(graph.first_weight);
  graph.weight.assign(graph.pair_count(), ReplicaGraph::kNone);
  view.pass_of.resize(graph.first_weight);
  return view;
}

GraphView split_backwards(const ReplicaGraph& replica) {
  return with_options(replica, [](const PairOption& o) { return o.weight > 0; });
}

Composition expand(const ReplicaGraph& replica, const GraphView& view,
                   const Composition& composition) {
  Composition whole{.sequence = {}, .choice = {}, .makespan = composition.makespan};
  whole.sequence.reserve(replica.passes.size());
  const bool lacks_weights = view.graph.passes.size() < replica.passes.size();
  for (const Index id : composition.sequence) {
    const Index pass = view.pass_of[id];
    whole.sequence.push_back(pass);
    const Index weight = replica.weight[replica.passes[pass].pair];
    if (lacks_weights && replica.kind(pass) == PassKind::Backward &&
        weight != ReplicaGraph::kNone) {
      whole.sequence.push_back(weight);
    }
  }
  for (std::size_t pair = 0; pair < composition.choice.size(); ++pair) {
    whole.choice.push_back(
        view.option_of[view.graph.first_option[pair] + composition.choice[pair]]);
  }
  return whole;
}

}  // namespace dipsim::dip
