// SPDX-License-Identifier: Apache-2.0
// Search calls the order evaluator millions of times: it must not allocate.
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-*,readability-*): what the standard prescribes
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }

void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

// NOLINTEND(cppcoreguidelines-*,readability-*)

namespace dipsim {
namespace {

TEST_CASE("after its first call the order evaluator allocates nothing") {
  for (const bool epilogue : {false, true}) {
    CAPTURE(epilogue);
    test::CaseShape shape;
    shape.pairs = 200;
    shape.shared_cells = true;
    shape.epilogue = epilogue;
    const test::RandomCase one = test::random_case(shape, 3);
    OrderEvaluator evaluator(one.graph);
    const Time end = evaluator.time(one.schedule).back().end;
    const std::size_t before = allocations;
    const Time again = evaluator.time(one.schedule).back().end;
    const std::size_t after = allocations;
    CHECK(after == before);
    CHECK(again == end);
  }
}

}  // namespace
}  // namespace dipsim
