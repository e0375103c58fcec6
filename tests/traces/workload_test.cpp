// SPDX-License-Identifier: Apache-2.0
#include "traces/workload.hpp"

#include "sim/core/error.hpp"
#include "tests/support/environment.hpp"
#include "traces/generate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace {

using dipsim::Feed;
using dipsim::Microbatch;
using dipsim::WorkloadOptions;

WorkloadOptions options_for(std::string_view trace, std::size_t microbatches = 16) {
  WorkloadOptions out;
  out.feeds = trace == "t2v-clips" ? std::vector{Feed::Prompt, Feed::Clip}
                                   : std::vector{Feed::Image, Feed::Sequence};
  out.microbatches = microbatches;
  return out;
}

std::vector<std::vector<Microbatch>> iterations(const std::string& trace,
                                                const WorkloadOptions& options,
                                                const std::vector<std::size_t>& order) {
  const auto workload = dipsim::open_workload(trace, options);
  std::vector<std::vector<Microbatch>> out(order.size());
  for (const std::size_t index : order) {
    out.at(index) = workload->iteration(index);
  }
  return out;
}

std::string complaint(const std::string& trace, const WorkloadOptions& options) {
  try {
    dipsim::open_workload(trace, options)->iteration(0);
  } catch (const dipsim::Error& error) {
    CHECK(error.kind() == dipsim::ErrorKind::Input);
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("every trace gives the asked number of microbatches within the limits") {
  std::set<std::string_view> names;
  for (const dipsim::TraceInfo& trace : dipsim::all_traces()) {
    CAPTURE(trace.name);
    CHECK(names.insert(trace.name).second);
    CHECK_FALSE(trace.summary.empty());
    CHECK_FALSE(trace.source.empty());
    const auto workload = dipsim::open_workload(std::string(trace.name), options_for(trace.name));
    for (std::size_t index = 0; index < 22; ++index) {
      const std::vector<Microbatch> microbatches = workload->iteration(index);
      REQUIRE(microbatches.size() == 16);
      for (const Microbatch& microbatch : microbatches) {
        REQUIRE(std::accumulate(microbatch.documents.begin(), microbatch.documents.end(), 0) <=
                8192);
        REQUIRE(microbatch.images.size() <= 48);
        REQUIRE(microbatch.clips.size() <= 8);
        REQUIRE(microbatch.documents.empty() != microbatch.clips.empty());
      }
    }
    CHECK(workload->stats().microbatches == 22 * 16);
    CHECK(workload->stats().fill() > 0.6);
  }
}

TEST_CASE(
    "every trace: equal options give equal iterations, in whatever order they are asked for") {
  for (const dipsim::TraceInfo& trace : dipsim::all_traces()) {
    CAPTURE(trace.name);
    const std::string name(trace.name);
    WorkloadOptions options = options_for(name);
    options.first_pass = dipsim::FirstPass::Shuffled;
    const auto forward = iterations(name, options, {0, 1, 2, 3});
    CHECK((forward == iterations(name, options, {3, 1, 0, 2})));
    options.seed = 2;
    CHECK((forward != iterations(name, options, {0, 1, 2, 3})));
  }
}

TEST_CASE("dip-images: the images follow the bounds, and text fills every sequence") {
  const auto workload = dipsim::open_workload("dip-images", options_for("dip-images", 64));
  for (std::size_t index = 0; index < 40; ++index) {
    const dipsim::ImageBounds bounds = dipsim::dip_image_bounds(index);
    for (const Microbatch& microbatch : workload->iteration(index)) {
      const auto images = static_cast<std::int64_t>(microbatch.images.size());
      REQUIRE(images >= bounds.low);
      REQUIRE(images <= bounds.high);
      REQUIRE(std::accumulate(microbatch.documents.begin(), microbatch.documents.end(), 0) == 8192);
      REQUIRE(*std::ranges::min_element(microbatch.documents) > 0);
    }
  }
  CHECK(workload->warnings().empty());
}

TEST_CASE("a mean behind the name sets the images per microbatch") {
  const auto workload = dipsim::open_workload("steady-images:4", options_for("", 64));
  double images = 0.0;
  for (const Microbatch& microbatch : workload->iteration(0)) {
    images += static_cast<double>(microbatch.images.size());
  }
  CHECK(images / 64.0 == doctest::Approx(4.0).epsilon(0.2));
  CHECK(complaint("steady-images:x", options_for("")).find("\"x\" is no mean") == 0);
  CHECK(complaint("steady-images:-1", options_for("")).find("\"-1\" is no mean") == 0);
  CHECK(complaint("steady-images:nan", options_for("")).find("\"nan\" is no mean") == 0);
  CHECK(complaint("dip-images:4", options_for("")) == "\"dip-images\" takes no \":MEAN\"");
}

TEST_CASE("images beyond the model's limits are cut, and a model without images gets none") {
  WorkloadOptions options = options_for("");
  options.packing.max_images = 3;
  const auto cut = dipsim::open_workload("steady-images:10", options);
  CHECK(cut->iteration(0).front().images.size() == 3);
  REQUIRE(cut->warnings().size() == 1);
  CHECK(cut->warnings()[0] == "steady-images:10: 16 of 16 samples were cut to what fits");

  options.feeds = {Feed::Sequence};
  const auto blind = dipsim::open_workload("steady-images:10", options);
  CHECK(blind->iteration(0).front().images.empty());
  CHECK(blind->warnings().at(0).find("were ignored") != std::string::npos);
}

TEST_CASE("t2v-clips: clips per microbatch fall as long clips come in") {
  const auto workload = dipsim::open_workload("t2v-clips", options_for("t2v-clips", 128));
  const auto clips_in = [&](std::size_t index) {
    std::size_t clips = 0;
    for (const Microbatch& microbatch : workload->iteration(index)) {
      clips += microbatch.clips.size();
    }
    return clips;
  };
  CHECK(clips_in(0) > 3 * clips_in(5));
  CHECK(clips_in(19) > 3 * clips_in(25));
}

TEST_CASE("a trace file shorter than the run begins anew, and says how often") {
  const dipsim::test::TemporaryFolder folder;
  const std::string path = (folder.path() / "short.jsonl").string();
  std::ofstream out(path);
  for (int i = 0; i < 10; ++i) {
    out << "{\"id\":" << i << ",\"text_tokens\":" << 4001 + i << "}\n";
  }
  out.close();
  const auto workload = dipsim::open_workload(path, options_for(path, 5));
  workload->iteration(0);  // 10 samples in 5 microbatches, and one waiting
  CHECK(workload->stats().samples == 11);
  workload->iteration(5);
  CHECK(workload->stats().wraps == 6);
  REQUIRE(workload->warnings().size() == 1);
  CHECK(workload->warnings()[0] ==
        path + ": shorter than the run: began anew 6 times, each time in another order");
}

TEST_CASE("what can't be opened says why and what is there") {
  CHECK(complaint("quickstrt", options_for("")).find("did you mean \"quickstart\"?") !=
        std::string::npos);
  CHECK(complaint("none.jsonl", options_for("")) == "no such file");
  CHECK(complaint("dip-images", options_for("t2v-clips")).find("t2v-clips") != std::string::npos);
  CHECK(complaint("quickstart", options_for("t2v-clips"))
            .find("holds anything that the model takes") != std::string::npos);
  WorkloadOptions options = options_for("");
  options.microbatches = 0;
  CHECK(complaint("quickstart", options) == "0 is not allowed: 1 to 10000000");
  options = options_for("");
  options.packing.tokens = 0;
  CHECK(complaint("quickstart", options).find("tokens is 0") == 0);
  options = options_for("");
  options.tokens.rule = "llava";
  CHECK(complaint("quickstart", options).find("unknown token rule") == 0);
  CHECK(complaint("quickstart", WorkloadOptions{}).find("no packer") != std::string::npos);
}
