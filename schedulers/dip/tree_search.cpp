// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/tree_search.hpp"

#include "sim/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace dipsim::dip {

namespace {

/// Elements of the permutation: groups, or with separate backwards group g as 2g (forward) and
/// 2g + 1 (backward).
struct Elements {
  Index groups = 0;
  bool separate = false;

  [[nodiscard]] Index count() const { return separate ? 2 * groups : groups; }

  [[nodiscard]] GroupOrder order_of(std::span<const Index> permutation) const {
    GroupOrder order;
    for (const Index element : permutation) {
      if (!separate) {
        order.forward.push_back(element);
      } else {
        (element % 2 == 0 ? order.forward : order.backward).push_back(element / 2);
      }
    }
    if (!separate) {
      order.backward = order.forward;
    }
    return order;
  }
};

struct Node {
  Index element = 0;  ///< fixed by this node, at its depth
  std::size_t parent = 0;
  std::vector<std::size_t> children;
  double best = 0.0;  ///< score
  double visits = 0.0;
};

class Tree {
 public:
  Tree(Elements elements, const TreeSearchOptions& options)
      : elements_(elements), options_(options), nodes_(1) {}

  /// Walks down to a node, adds a child where the node has grown enough, and counts the visit.
  /// Writes the elements that are fixed there.
  std::size_t select(std::vector<Index>& prefix) {
    prefix.clear();
    std::size_t at = 0;
    nodes_[at].visits += 1.0;
    while (prefix.size() < elements_.count()) {
      Node& node = nodes_[at];
      const std::size_t possible = elements_.count() - prefix.size();
      const auto wanted = static_cast<std::size_t>(std::ceil(std::sqrt(node.visits)));
      const bool grow = node.children.size() < std::min(wanted, possible);
      at = grow ? add_child(at, prefix) : best_child(node);
      nodes_[at].visits += 1.0;
      prefix.push_back(nodes_[at].element);
      if (grow) {
        break;
      }
    }
    return at;
  }

  void back_up(std::size_t at, double score) {
    while (true) {
      nodes_[at].best = std::max(nodes_[at].best, score);
      if (at == 0) {
        return;
      }
      at = nodes_[at].parent;
    }
  }

 private:
  [[nodiscard]] std::size_t best_child(const Node& node) const {
    const auto value = [&](std::size_t child) {
      const Node& of_child = nodes_[child];
      return std::pow(of_child.best, options_.alpha) +
             options_.beta * std::sqrt(std::log(node.visits) / of_child.visits);
    };
    return *std::ranges::max_element(node.children, {}, value);
  }

  /// The first element in natural order that is neither fixed above nor a child already.
  std::size_t add_child(std::size_t at, std::span<const Index> prefix) {
    std::vector<bool> taken(elements_.count(), false);
    for (const Index element : prefix) {
      taken[element] = true;
    }
    for (const std::size_t child : nodes_[at].children) {
      taken[nodes_[child].element] = true;
    }
    const auto free = std::ranges::find(taken, false) - taken.begin();
    nodes_[at].children.push_back(nodes_.size());
    nodes_.push_back({.element = static_cast<Index>(free), .parent = at, .children = {}});
    return nodes_.size() - 1;
  }

  Elements elements_;
  const TreeSearchOptions& options_;
  std::vector<Node> nodes_;
};

/// Completes a prefix at random.
class Completer {
 public:
  Completer(Elements elements, bool uniform, RandomStream& random)
      : elements_(elements), uniform_(uniform), random_(random) {}

  GroupOrder complete(std::span<const Index> prefix) {
    std::vector<bool> fixed(elements_.count(), false);
    for (const Index element : prefix) {
      fixed[element] = true;
    }
    // How far an element strays from its natural place, in places: log-uniform per completion.
    const double spread = 0.5 * std::pow(std::max(1.0, elements_.count() / 4.0), random_.uniform());
    keys_.clear();
    for (Index element = 0; element < elements_.count(); ++element) {
      if (!fixed[element]) {
        keys_.emplace_back(uniform_ ? random_.uniform() : element + spread * random_.normal(),
                           element);
      }
    }
    std::ranges::sort(keys_);
    permutation_.assign(prefix.begin(), prefix.end());
    for (const auto& [key, element] : keys_) {
      permutation_.push_back(element);
    }
    return elements_.order_of(permutation_);
  }

 private:
  Elements elements_;
  bool uniform_;
  RandomStream& random_;
  std::vector<std::pair<double, Index>> keys_;
  std::vector<Index> permutation_;
};

}  // namespace

Found search_tree(BatchEvaluator& evaluator, const Found& start, const SearchBudget& budget,
                  const TreeSearchOptions& options, std::uint64_t seed) {
  const Elements elements{.groups = static_cast<Index>(start.candidate.order.forward.size()),
                          .separate = options.separate_backwards};
  RandomStream random(seed, "tree search");
  Completer completer(elements, options.uniform_rollouts, random);
  Tree tree(elements, options);
  Found best = start;
  std::vector<std::size_t> leaves(options.leaves);
  std::vector<Candidate> candidates;
  std::vector<Index> prefix;
  const double natural = static_cast<double>(start.composition.makespan);
  for (std::size_t spent = 0; budget.used(spent) < 1.0; spent += candidates.size()) {
    candidates.clear();
    for (std::size_t& leaf : leaves) {
      leaf = tree.select(prefix);
      for (std::size_t i = 0; i < options.rollouts && budget.used(spent + candidates.size()) < 1.0;
           ++i) {
        candidates.push_back({.order = completer.complete(prefix), .way = start.candidate.way});
      }
    }
    const auto results = evaluator.compose_once(candidates, start.composition.choice);
    for (std::size_t i = 0; i < results.size(); ++i) {
      tree.back_up(leaves[i / options.rollouts],
                   natural / static_cast<double>(std::max<Nanoseconds>(1, results[i].makespan)));
      if (results[i].makespan < best.composition.makespan) {
        best = {.candidate = candidates[i], .composition = results[i]};
      }
    }
  }
  return best;
}

}  // namespace dipsim::dip
