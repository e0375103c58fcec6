// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/measured.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/texts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

using namespace dipsim;
using test::contains;
using test::replaced;

/// As nccl-tests prints it.
const std::string kText =
    "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   6899 on     node-a device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   6900 on     node-a device  1 [0000:05:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid   6733 on     node-b device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid   6734 on     node-b device  1 [0000:05:00] NVIDIA H100 80GB HBM3\n"
    "NCCL version 2.28.9+cuda13.0\n"
    "node-a:6899:6899 [0] NCCL INFO Bootstrap : Using eth0\n"
    "#\n"
    "#                                              out-of-place                in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    " "
    " algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " "
    "(GB/s)  (GB/s)\n"
    "           0             0     float     sum      -1     0.03    0.00    0.00      0     0.03 "
    " "
    "  0.00    0.00      0\n"
    "           8             2     float     sum      -1    32.07    0.00    0.00      0    31.5  "
    " "
    " 0.00    0.00      0\n"
    "     1048576        262144     float     sum      -1    171.5    6.11   10.70    N/A    170.2 "
    " "
    "  6.16   10.78    N/A\n"
    "     8388608       2097152     float     sum      -1    325.7   25.76   45.08      0    324.0 "
    " "
    " 25.89   45.31      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 18.6\n"
    "#\n";

/// The same run in its JSON, shortened.
const std::string kJson =
    R"({"version":1,"start_time":"2026-01-01 00:00:00","args":["/opt/build/sendrecv_perf","-b","8"],)"
    R"("nccl_version":22809,"config":{"nthreads":1,"devices":[)"
    R"({"rank":0,"hostname":"node-a"},{"rank":1,"hostname":"node-b"}]},"results":[)"
    R"({"size":8,"count":2,"type":"float","redop":"","root":"-1","out_of_place":)"
    R"({"time":25.500000,"alg_bw":0.0,"bus_bw":0.0,"nwrong":0.000000},"in_place":)"
    R"({"time":25.0,"alg_bw":0.0,"bus_bw":0.0,"nwrong":0.0},"actual_iterations":20},)"
    R"({"size":1048576,"out_of_place":{"time":50.61,"alg_bw":20.7,"bus_bw":20.7,"nwrong":null}},)"
    R"({"size":2097152,"out_of_place":null,"in_place":{"time":74.0}}],)"
    R"("out_of_bounds":{"count":0,"okay":"true"},"end_time":"2026-01-01 00:01:00"})";

std::string refusal(const std::string& text) {
  const Error error = test::error_of([&] { read_nccl_tests(text, "run.txt"); });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

}  // namespace

TEST_CASE("the text of nccl-tests tells collective, ranks, hosts and out-of-place times") {
  const NcclTestsFile file = read_nccl_tests(kText, "run.txt");
  CHECK(file.names_collective);
  CHECK(file.kind == CollectiveKind::AllReduce);
  CHECK(file.members == 4);
  CHECK(file.nodes == 2);
  REQUIRE(file.points.size() == 3);
  CHECK(file.points[0] == MeasuredPoint{8.0, 32.07});
  CHECK(file.points[1] == MeasuredPoint{1048576.0, 171.5});
  CHECK(file.points[2] == MeasuredPoint{8388608.0, 325.7});
}

TEST_CASE("a text of an old version leaves open what it does not tell") {
  const std::string text =
      "#   size   count   type   redop   time   algbw   busbw  error   time  algbw  busbw  error\n"
      "    1024     256  float     sum  34.66    0.03    0.06  1e-07  34.47   0.03   0.06  1e-07\n";
  const NcclTestsFile file = read_nccl_tests(text, "run.txt");
  CHECK_FALSE(file.names_collective);
  CHECK_FALSE(file.members.has_value());
  CHECK_FALSE(file.nodes.has_value());
  REQUIRE(file.points.size() == 1);
  CHECK(file.points[0] == MeasuredPoint{1024.0, 34.66});
}

TEST_CASE("the JSON of nccl-tests is read alike, sizes that ran in place only left out") {
  const NcclTestsFile file = read_nccl_tests(kJson, "run.json");
  CHECK(file.names_collective);
  CHECK_FALSE(file.kind.has_value());
  CHECK(file.members == 2);
  CHECK(file.nodes == 2);
  REQUIRE(file.points.size() == 2);
  CHECK(file.points[1] == MeasuredPoint{1048576.0, 50.61});
}

TEST_CASE("a broken text of nccl-tests is refused with line and column") {
  CHECK(contains(refusal(""), "run.txt:1:1: no row"));
  CHECK(contains(refusal("# only comments\n"), "no row of measurements"));
  CHECK(contains(refusal("hello\n"), "run.txt:1:1: a row before the header"));
  CHECK(contains(refusal(replaced(kText, "  171.5 ", "  fast ")),
                 "run.txt:18:57: time \"fast\" is no number"));
  CHECK(contains(refusal(replaced(kText, "  171.5 ", "  -1.5 ")), "is no number from 0"));
  CHECK(contains(refusal(replaced(kText, "  171.5 ", "    nan ")), "is no number from 0"));
  CHECK(contains(refusal(replaced(kText, "  171.5 ", "    0.0 ")), "a time of 0"));
  CHECK(contains(refusal(replaced(kText, "     1048576   ", "           8   ")),
                 "run.txt:18:12: sizes must grow"));
  CHECK(contains(refusal(replaced(kText, "     1048576   ", "         1e99   ")), "size \"1e99\""));
}

TEST_CASE("a row that is cut off is refused") {
  const std::size_t row = kText.find("     8388608");
  const std::size_t enough = kText.find("45.08") + 5;
  for (std::size_t size = row + 8; size < kText.find("45.08"); size += 5) {
    CHECK(contains(refusal(kText.substr(0, size)), "run.txt:19:"));
  }
  CHECK(read_nccl_tests(kText.substr(0, enough), "run.txt").points.size() == 3);
}

TEST_CASE("a broken JSON of nccl-tests is refused with its place") {
  for (std::size_t size = 1; size < kJson.size(); size += 11) {
    CHECK(contains(refusal(kJson.substr(0, size)), "run.txt"));
  }
  CHECK(contains(refusal(replaced(kJson, "50.61", "-1")), "/results/1/out_of_place/time"));
  CHECK(contains(refusal(replaced(kJson, "50.61", "\"fast\"")), "/results/1/out_of_place/time"));
  CHECK(contains(refusal(replaced(kJson, "\"size\":1048576", "\"size\":8")), "sizes must grow"));
  CHECK(contains(refusal(replaced(kJson, "\"results\":[", "\"resluts\":[")),
                 "\"results\" is missing"));
  CHECK(contains(refusal(R"({"config":{},"results":[]})"), "holds no measurement"));
}
