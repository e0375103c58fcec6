// SPDX-License-Identifier: Apache-2.0
#include "tests/support/work_coverage.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

namespace dipsim::test {

namespace {

/// How often each layer of each module has run on each instance.
class Coverage {
 public:
  explicit Coverage(const RandomProblem& problem) : problem_(problem) {}

  /// What is wrong with the pair; else counts its forward.
  std::string add(const TaskGraph& graph, const Pair& pair) {
    const Task& f = graph.task(pair.f);
    const Work& work = graph.works[f.work.row()];
    const bool backward = pair.b.valid() || pair.i.valid();
    bool wants_backward = false;
    bool trained = false;
    for (const LayerRange& range : graph.chunk(f.chunk).layers) {
      if (!work.module.valid() || work.module == range.module) {
        wants_backward = wants_backward || problem_.costs.has_backward(range.module);
        trained = trained || problem_.costs.trains(range.module);
        add(work, range);
      }
    }
    if (backward != wants_backward || (pair.i.valid() && trained != pair.w.valid())) {
      return describe(graph, pair.f) + " has passes too many or too few behind it";
    }
    return std::ranges::any_of(work.portions,
                               [&](const Portion& portion) {
                                 return problem_.batch.replica[portion.microbatch.row()] !=
                                        graph.rank(f.rank).replica;
                               })
               ? describe(graph, pair.f) + " runs on a foreign replica"
               : "";
  }

  [[nodiscard]] std::string difference() const {
    const Batch& batch = problem_.batch;
    std::size_t expected = 0;
    for (std::size_t m = 0; m < batch.modules; ++m) {
      std::size_t instances = 0;
      for (std::size_t b = 0; b < batch.microbatches(); ++b) {
        instances += batch.of(MicrobatchId(b), ModuleId(m)).size();
      }
      expected += instances * static_cast<std::size_t>(problem_.costs.problem().modules[m].layers);
    }
    const bool once =
        std::ranges::all_of(runs_, [](const auto& entry) { return entry.second == 1; });
    return once && runs_.size() == expected ? ""
                                            : "a layer does not run on an instance exactly once";
  }

 private:
  void add(const Work& work, const LayerRange& range) {
    for (const Portion& portion : work.portions) {
      const int all = static_cast<int>(problem_.batch.of(portion.microbatch, range.module).size());
      const int first = work.module.valid() ? portion.first : 0;
      const int count = work.module.valid() ? portion.count : all;
      for (int instance = first; instance < first + count; ++instance) {
        for (int layer = range.first; layer < range.first + range.count; ++layer) {
          ++runs_[{portion.microbatch.value, range.module.value, instance, layer}];
        }
      }
    }
  }

  const RandomProblem& problem_;
  std::map<std::array<int, 4>, int> runs_;  ///< by microbatch, module, instance, layer
};

}  // namespace

std::string broken_work(const RandomProblem& problem, const TaskGraph& graph) {
  Coverage coverage(problem);
  for (const Pair& pair : graph.pairs) {
    if (std::string broken = coverage.add(graph, pair); !broken.empty()) {
      return broken;
    }
  }
  return coverage.difference();
}

}  // namespace dipsim::test
