// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_problem.hpp"

#include "sim/core/random.hpp"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, std::size_t index) : random_(seed, "random problem", index) {}

  RandomProblem run() {
    ranks_ = one_of<int>({1, 2, 2, 3, 3, 4, 4, 5, 6});
    numbers_.replicas = one_of<int>({1, 1, 1, 2, 2, 3});
    draw_modules();
    draw_costs();
    draw_cluster();
    Batch batch = draw_batch();
    numbers_.copied_per_ns = one_of<std::int64_t>({0, 1, 3, 10, 40});
    return {.costs = RandomCosts(std::move(numbers_)), .batch = std::move(batch)};
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_.integer(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

  int integer(int low, int high) { return static_cast<int>(random_.integer(low, high)); }

  bool chance(double share) { return random_.uniform() < share; }

  void draw_modules() {
    const int modules = one_of<int>({1, 2, 2, 2, 3, 3, 3, 4, 4});
    const int kind = integer(0, 4);
    const bool all_trained = chance(0.4);
    const double trained = one_of({0.2, 0.5, 0.8});
    for (int m = 0; m < modules; ++m) {
      ModuleShape shape;
      shape.name = "module" + std::to_string(m);
      shape.layers = chance(0.02) ? integer(1, ranks_) : ranks_ + integer(0, 2 * ranks_);
      shape.layer_parameters.assign(static_cast<std::size_t>(shape.layers), 1.0);
      shape.layer_parameters.front() = one_of({1.0, 3.0});
      shape.inputs = inputs_of(kind, m, modules);
      shape.trained = all_trained || chance(trained);
      numbers_.shapes.push_back(std::move(shape));
    }
  }

  std::vector<ModuleId> inputs_of(int kind, int module, int modules) {
    std::vector<ModuleId> inputs;
    for (int from = 0; from < module; ++from) {
      bool feeds = false;
      switch (kind) {
        case 0:  // a chain
          feeds = from == module - 1;
          break;
        case 1:  // encoders, and a backbone
          feeds = module == modules - 1;
          break;
        case 2:  // encoders, a backbone, and a decoder behind it
          feeds = modules < 3 || module == modules - 2 || from == modules - 2;
          break;
        case 3:  // a diamond
          feeds = from == 0 ? module != 3 : module == 3;
          break;
        default:
          feeds = chance(0.5);
      }
      if (feeds) {
        inputs.emplace_back(from);
      }
    }
    return inputs;
  }

  void draw_costs() {
    const bool equal_times = chance(0.3);
    const bool launches = chance(0.5);
    const bool weighty = chance(0.5);
    for (const ModuleShape& shape : numbers_.shapes) {
      const auto time = [&] { return equal_times ? 1 : one_of<std::int64_t>({0, 1, 1, 2, 3, 7}); };
      RandomModule module;
      module.f = time();
      module.i = time();
      module.w = time();
      module.launch = launches ? one_of<std::int64_t>({0, 5, 50}) : 0;
      module.head = one_of<std::int64_t>({0, 0, 0, 3});
      module.held = one_of<std::int64_t>({0, 1, 4, 10, 40});
      module.input = one_of<std::int64_t>({0, module.held / 4, module.held});
      module.kept = one_of<std::int64_t>({0, module.held / 2, module.held, 2 * module.held, 7});
      module.transient = one_of<std::int64_t>({0, 0, 3, 100});
      module.logits = one_of<std::int64_t>({0, 0, 0, 5});
      module.weights = weighty ? one_of<std::int64_t>({0, 10, 100}) : 0;
      module.trained = shape.trained;
      numbers_.modules.push_back(module);
    }
    numbers_.selective = chance(0.7);
    numbers_.full = chance(0.9);
    numbers_.mixed = chance(0.5);
  }

  void draw_cluster() {
    const bool unequal = chance(0.125);
    for (int r = 0; r < ranks_ * numbers_.replicas; ++r) {
      numbers_.speeds.push_back(unequal ? one_of({0.5, 1.0, 1.25}) : 1.0);
    }
    numbers_.latency = Duration{one_of<std::int64_t>({0, 0, 1, 20, 300})};
    numbers_.occupied = one_of<std::int64_t>({0, 0, 1, 2});
    numbers_.reduction = Duration{one_of<std::int64_t>({0, 0, 40})};
    numbers_.step = Duration{one_of<std::int64_t>({0, 0, 9})};
    numbers_.reserved = Bytes{one_of<std::int64_t>({0, 0, 1000})};
  }

  Batch draw_batch() {
    enum class Presence : std::uint8_t { Packed, Ragged, Sometimes, Never };
    Batch batch;
    batch.modules = numbers_.shapes.size();
    std::vector<Presence> presence;
    std::vector<std::int32_t> typical;
    for (std::size_t m = 0; m < batch.modules; ++m) {
      presence.push_back(one_of({Presence::Packed, Presence::Packed, Presence::Ragged,
                                 Presence::Ragged, Presence::Sometimes, Presence::Sometimes}));
      if (chance(0.03)) {
        presence.back() = Presence::Never;
      }
      typical.push_back(one_of<std::int32_t>({1, 2, 5, 20}));
    }
    const bool equal_lengths = chance(0.5);
    const auto instances_of = [&](std::size_t m) {
      switch (presence[m]) {
        case Presence::Packed:
          return 1;
        case Presence::Ragged:
          return one_of<int>({0, 1, 1, 2, 3, 5, 9, 13});
        case Presence::Sometimes:
          return integer(0, 1);
        default:
          return 0;
      }
    };
    const int per_replica = one_of<int>({1, 2, 3, 4, 4, 5, 6, 8, 12});
    const bool unequal = chance(0.1);
    for (int replica = 0; replica < numbers_.replicas; ++replica) {
      // A replica may have no microbatch, but not all of them.
      const int count = unequal ? integer(replica == 0 ? 1 : 0, per_replica) : per_replica;
      for (int k = 0; k < count; ++k) {
        batch.replica.push_back(replica);
        for (std::size_t m = 0; m < batch.modules; ++m) {
          batch.instances.add_row();
          for (int n = instances_of(m); n > 0; --n) {
            add_instance(batch, equal_lengths ? typical[m] : integer(1, 2 * typical[m]));
          }
        }
      }
    }
    return batch;
  }

  static void add_instance(Batch& batch, std::int32_t length) {
    batch.instances.push_back({.tokens = length,
                               .output_tokens = length,
                               .first_group = static_cast<std::int32_t>(batch.groups.size()),
                               .group_count = 1});
    batch.groups.push_back(length);
  }

  RandomStream random_;
  RandomCosts::Numbers numbers_;
  int ranks_ = 1;
};

}  // namespace

RandomProblem random_problem(std::uint64_t seed, std::size_t index) {
  return Generator(seed, index).run();
}

}  // namespace dipsim::test
