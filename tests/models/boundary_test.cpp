// SPDX-License-Identifier: Apache-2.0
#include "models/boundary.hpp"

#include "models/model_lowering.hpp"
#include "tests/models/shipped_models.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

}  // namespace

TEST_CASE("inside a module its sharded tokens travel, between modules the merged ones") {
  const ModelLowering lowering = lowering_of("vlm-s");  // tp 4, ViT 1792 wide, LLM 4096 wide
  const Batch batch = images(lowering.model(), {10});
  const Work slice = work_on(0, 0, 8);
  const Work sequence = work_on(1, 0, 1);
  const Chunk vit = chunk_on(0, layers(0, 0, 16));
  const Chunk llm = chunk_on(1, layers(1, 0, 8));
  CHECK(lowering.transfer(vit, chunk_on(1, layers(0, 16, 16)), slice, slice, batch).bytes.count ==
        8 * 2704 * 1792 * 2 / 4);
  CHECK(lowering.transfer(vit, llm, slice, sequence, batch).bytes.count == 8 * 169 * 4096 * 2 / 4);
  const std::int64_t tokens = batch.of(MicrobatchId{0}, ModuleId{1})[0].tokens;
  CHECK(
      lowering.transfer(llm, chunk_on(2, layers(1, 8, 8)), sequence, sequence, batch).bytes.count ==
      tokens * 4096 * 2 / 4);
}

TEST_CASE("a diffusion transformer passes its prompt on, and a clip gets its own prompt only") {
  const ModelLowering lowering = lowering_of("t2v-s");  // tp 4, text 4096 wide, DiT 3584 wide
  const Batch batch = clips(lowering.model());
  const Work clip = work_on(1, 1, 1);
  const Chunk dit = chunk_on(1, layers(1, 0, 7));
  CHECK(lowering.transfer(dit, chunk_on(2, layers(1, 7, 7)), clip, clip, batch).bytes.count ==
        (1792 + 200) * 3584 * 2 / 4);
  const Chunk text = chunk_on(0, layers(0, 24, 8));
  CHECK(lowering.transfer(text, dit, work_on(0, 0, 2), clip, batch).bytes.count ==
        200 * 4096 * 2 / 4);
  CHECK(lowering.transfer(text, dit, work_on(0, 0, 1), clip, batch).bytes.count == 0);
}

TEST_CASE("a work of no module carries whatever is alive at the cut") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {2});
  const Work whole{.portions = {{MicrobatchId{0}, 0, 0}}};
  const Chunk before = chunk_on(0, layers(0, 0, 16));
  const auto bytes = [&](std::vector<LayerRange> next) {
    return lowering.transfer(before, chunk_on(1, std::move(next)), whole, whole, batch).bytes.count;
  };
  CHECK(bytes(layers(0, 16, 16)) == 2 * 2704 * 1792 * 2 / 4);
  CHECK(bytes(layers(1, 0, 8)) == 2 * 169 * 4096 * 2 / 4);
  CHECK(bytes(layers(1, 8, 8)) == std::int64_t{8193} * 4096 * 2 / 4);
}

TEST_CASE("transfers between nodes take the network") {
  const ModelLowering lowering = lowering_of("vlm-s");  // two ranks of four GPUs per node
  const Batch batch = images(lowering.model(), {8});
  const Work slice = work_on(0, 0, 8);
  const auto occupied = [&](int from, int to) {
    return lowering
        .transfer(chunk_on(from, layers(0, 0, 16)), chunk_on(to, layers(0, 16, 16)), slice, slice,
                  batch)
        .occupied;
  };
  CHECK(occupied(0, 1) == occupied(2, 3));
  CHECK(occupied(1, 2) > 5 * occupied(0, 1));
}
