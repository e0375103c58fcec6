// SPDX-License-Identifier: Apache-2.0
#include "tests/support/work_tokens.hpp"

#include <cstddef>

namespace dipsim::test {

std::int64_t work_tokens(const Work& work, ModuleId module, const Batch& batch) {
  std::int64_t sum = 0;
  for (const Portion& portion : work.portions) {
    auto instances = batch.of(portion.microbatch, module);
    if (work.module.valid()) {
      instances = instances.subspan(static_cast<std::size_t>(portion.first),
                                    static_cast<std::size_t>(portion.count));
    }
    for (const Instance& instance : instances) {
      sum += instance.tokens;
    }
  }
  return sum;
}

}  // namespace dipsim::test
