// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/models/fake_costs.hpp"

namespace dipsim::test {

/// Costs whose transfers take no time and carry nothing.
class FreeTransfers final : public FakeCosts {
 public:
  using FakeCosts::FakeCosts;

  [[nodiscard]] TransferCost transfer(const Chunk& /*from*/, const Chunk& /*to*/,
                                      const Work& /*from_work*/, const Work& /*to_work*/,
                                      const Batch& /*batch*/) const override {
    return {};
  }
};

}  // namespace dipsim::test
