// SPDX-License-Identifier: Apache-2.0
#include "models/token_rules.hpp"

#include "sim/core/error.hpp"
#include "sim/core/json.hpp"
#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace {

using dipsim::ImageSize;
using dipsim::MediaTokens;
using dipsim::TokenRule;
using dipsim::TokenRuleSpec;

TokenRuleSpec qwen(std::string_view limits = "qwen-vl-utils") {
  TokenRuleSpec spec;
  spec.rule = "qwen2-vl";
  spec.merge = 2;
  for (const dipsim::PixelLimits& known : dipsim::qwen2_vl_limits()) {
    if (known.name == limits) {
      spec.min_pixels = known.min_pixels;
      spec.max_pixels = known.max_pixels;
      return spec;
    }
  }
  FAIL("no such limits");
  return spec;
}

std::string message_of(const TokenRuleSpec& spec) {
  try {
    const TokenRule rule(spec, "m.json: /tokens");
  } catch (const dipsim::Error& error) {
    CHECK(error.kind() == dipsim::ErrorKind::Input);
    CHECK(error.where() == "m.json: /tokens");
    return error.message();
  }
  return "";
}

int integer(dipsim::JsonObject& row, std::string_view key) {
  return static_cast<int>(row.at(key).integer(0));
}

}  // namespace

TEST_CASE("fixed: every picture is 2704 patches and 169 tokens, whatever its size") {
  const TokenRule rule{TokenRuleSpec{}};
  for (const ImageSize size : {ImageSize{}, ImageSize{10, 4000}, ImageSize{728, 728}}) {
    CHECK(rule.image(size) == MediaTokens{2704, 169, 0});
  }
  CHECK(rule.markers() == 0);
  CHECK_FALSE(rule.watched_video({10.0, {640, 480}, 25.0}).has_value());
}

TEST_CASE("qwen2-vl: halves round to the even neighbour") {
  const TokenRule rule{qwen()};
  // 70 = 2.5 tokens of 28 px becomes 2, not 3; 98 = 3.5 becomes 4; 42 = 1.5 becomes 2.
  CHECK(rule.image({70, 70}) == MediaTokens{16, 4, 0});
  CHECK(rule.image({42, 98}) == MediaTokens{4 * 8, 2 * 4, 0});
  CHECK(rule.image({224, 224}) == MediaTokens{16 * 16, 8 * 8, 0});
}

TEST_CASE("qwen2-vl: the area limits hold, and shrinking rounds down, enlarging up") {
  const TokenRule rule{qwen("transformers")};
  // 28 x 28 is enlarged to 56 x 56; 1024 x 1024 shrunk to 35 x 35 tokens (35.8 each before
  // rounding).
  CHECK(rule.image({28, 28})->merged == 4);
  CHECK(rule.image({1024, 1024})->merged == 35 * 35);
  for (int width = 1; width < 3000; width += 137) {
    for (int height = 1; height < 3000; height += 171) {
      const auto tokens = rule.image({width, height});
      CAPTURE(width);
      CAPTURE(height);
      REQUIRE(tokens.has_value() == (std::max(width, height) <= 200 * std::min(width, height)));
      if (tokens && std::max(width, height) < 20 * std::min(width, height)) {
        CHECK(tokens->merged <= 1280);
        CHECK(tokens->merged >= 4);
        CHECK(tokens->encoder == 4 * tokens->merged);
      }
    }
  }
}

TEST_CASE("qwen2-vl: a side more than 200 times the other is refused") {
  const TokenRule rule{qwen()};
  CHECK(rule.image({2000, 10}).has_value());
  CHECK_FALSE(rule.image({2001, 10}).has_value());
  CHECK_FALSE(rule.image({10, 2001}).has_value());
}

TEST_CASE("qwen2-vl: a picture of unknown size counts as a square of image_pixels") {
  const TokenRule rule{qwen()};
  CHECK(rule.image({}) == rule.image({728, 728}));
  CHECK(rule.image({})->merged == 26 * 26);
}

TEST_CASE("qwen2-vl: the token count doesn't depend on which side is which") {
  const TokenRule rule{qwen()};
  for (int side = 30; side < 5000; side += 97) {
    CHECK(rule.image({side, 641}) == rule.image({641, side}));
  }
}

TEST_CASE("qwen2-vl: a video has two frames per second, two frames to an image") {
  const TokenRule rule{qwen()};
  const auto frames = rule.watched_video({5.0, {1280, 720}, 25.0});
  REQUIRE(frames.has_value());
  CHECK(frames->size() == 5);
  CHECK(frames->front() == MediaTokens{72 * 40, 36 * 20, 0});
  CHECK_FALSE(rule.watched_video({0.0, {1280, 720}, 25.0}).has_value());
  CHECK_FALSE(rule.watched_video({0.05, {1280, 720}, 25.0}).has_value());
  CHECK(rule.watched_video({5.0, {1280, 720}, 0.0}) == frames);
}

TEST_CASE("audio: 25 tokens per second, silence beyond 30 s, nothing below one token") {
  CHECK(dipsim::audio_tokens(10.0) == MediaTokens{500, 250, 0});
  CHECK(dipsim::audio_tokens(8.29) == MediaTokens{415, 207, 0});  // 829 mel frames
  CHECK(dipsim::audio_tokens(30.0) == MediaTokens{1500, 750, 0});
  CHECK(dipsim::audio_tokens(31.0) == dipsim::audio_tokens(30.0));
  CHECK_FALSE(dipsim::audio_tokens(0.0).has_value());
  CHECK_FALSE(dipsim::audio_tokens(0.02).has_value());
  CHECK(dipsim::audio_tokens(0.03) == MediaTokens{2, 1, 0});
}

TEST_CASE("generated clips: tokens grow with the seconds, and nothing is empty") {
  const TokenRule rule{TokenRuleSpec{}};
  CHECK(rule.generated_clip(16.0, 220) == MediaTokens{14'336, 0, 220});
  CHECK(rule.generated_clip(1e-4, 0) == MediaTokens{1, 0, 1});
}

TEST_CASE("an unknown rule and parameters out of range are named with what is allowed") {
  TokenRuleSpec spec;
  spec.rule = "fixd";
  CHECK(message_of(spec).find("did you mean \"fixed\"?") != std::string::npos);
  spec = {};
  spec.image_pixels = 730;
  CHECK(message_of(spec).find("nearest: 728") != std::string::npos);
  spec = {};
  spec.patch = 0;
  CHECK(message_of(spec) == "patch is 0; allowed: 1 to 1024");
  spec = {};
  spec.clip_tokens_per_s = std::numeric_limits<double>::quiet_NaN();
  CHECK(message_of(spec).find("clip_tokens_per_s is nan") == 0);
  spec = qwen();
  spec.min_pixels = spec.max_pixels + 1;
  CHECK(message_of(spec).find("min_pixels") == 0);
  spec = qwen();
  spec.max_pixels = 783;
  CHECK(message_of(spec).find("max_pixels is 783; allowed: 784") == 0);
}

TEST_CASE("every token rule has its own name, a summary and a source") {
  std::set<std::string_view> names;
  for (const dipsim::TokenRuleInfo& rule : dipsim::all_token_rules()) {
    CHECK(names.insert(rule.name).second);
    CHECK_FALSE(rule.summary.empty());
    CHECK_FALSE(rule.source.empty());
    TokenRuleSpec spec;
    spec.rule = rule.name;
    CHECK(TokenRule(spec).image({}).has_value());
  }
}

TEST_CASE("the token rules give the golden numbers of the reference implementation") {
  const auto data = dipsim::test::shared_data();
  if (!data) {
    dipsim::test::report_skipped("golden/golden_tokens.json is not here");
    return;
  }
  const auto document = dipsim::JsonDocument::from_file(*data / "golden/golden_tokens.json");
  dipsim::JsonObject golden = document.root().object();
  int rows = 0;
  for (const auto& [key, limits] : {std::pair{"qwen2vl_image", "qwen-vl-utils"},
                                    std::pair{"qwen2vl_image_1280cap", "transformers"}}) {
    const TokenRule rule{qwen(limits)};
    for (const dipsim::JsonValue& value : golden.at(key).items()) {
      dipsim::JsonObject row = value.object();
      CAPTURE(value.where());
      CHECK(rule.image({integer(row, "w"), integer(row, "h")}) ==
            MediaTokens{integer(row, "patches"), integer(row, "llm_tokens"), 0});
      ++rows;
    }
  }
  const TokenRule rule{qwen()};
  for (const dipsim::JsonValue& value : golden.at("qwen2vl_video").items()) {
    dipsim::JsonObject row = value.object();
    CAPTURE(value.where());
    const auto frames = rule.watched_video({row.at("seconds").number(0.0),
                                            {integer(row, "src_w"), integer(row, "src_h")},
                                            row.at("src_fps").number(0.0)});
    REQUIRE(frames.has_value());
    REQUIRE(frames->size() == static_cast<std::size_t>(integer(row, "grid_t")));
    CHECK(frames->front().encoder * integer(row, "grid_t") == integer(row, "patches"));
    CHECK(frames->front().merged * integer(row, "grid_t") == integer(row, "llm_tokens"));
    ++rows;
  }
  for (const dipsim::JsonValue& value : golden.at("qwen2_audio").items()) {
    dipsim::JsonObject row = value.object();
    CAPTURE(value.where());
    CHECK(dipsim::audio_tokens(row.at("seconds").number(0.0)) ==
          MediaTokens{integer(row, "encoder_frames"), integer(row, "llm_tokens"), 0});
    ++rows;
  }
  CHECK(rows == 24 + 24 + 9 + 7);
}
