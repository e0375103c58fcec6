// SPDX-License-Identifier: Apache-2.0
#include "models/model.hpp"

#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr const char* kModel = R"({
  "name": "tiny", "title": "Tiny",
  "modules": [
    {"module": {"name": "vit", "block": "plain", "layers": 2, "hidden": 64, "ffn": 128, "heads": 4,
                "patch_values": 588, "projector": true},
     "feed": "image", "mask": "full"},
    {"module": {"name": "lm", "block": "gated", "layers": 2, "hidden": 64, "ffn": 128, "heads": 4,
                "kv_groups": 2, "vocabulary": 1000},
     "feed": "sequence", "inputs": ["vit"], "mask": "documents", "head": true}],
  "parallel": {"tp": 2, "pp": 2}
})";

/// The model with one piece of its text replaced.
LmmModel load(const std::string& from = "", const std::string& to = "") {
  std::string text = kModel;
  if (!from.empty()) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "m.json").string();
  write_file(path, text);
  return load_model(path);
}

std::string refusal(const std::string& from, const std::string& to) {
  const Error error = test::error_of([&] { load(from, to); });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every shipped model loads under its own name and fits together") {
  const std::vector<std::string> names = model_names();
  for (const std::string name : {"vlm-s", "vlm-m", "vlm-l", "t2v-s", "t2v-l"}) {
    CHECK(std::ranges::find(names, name) != names.end());
  }
  for (const std::string& name : names) {
    const LmmModel model = load_model(name);
    CHECK(model.name == name);
    CHECK(model.feeds().size() == model.modules.size());
  }
}

TEST_CASE("every shipped module loads under its own name") {
  REQUIRE(module_names().size() >= 8);
  for (const std::string& name : module_names()) {
    CHECK(load_module(name).name == name);
  }
}

TEST_CASE("the models of DIP have the plans of its model table") {
  CHECK(load_model("vlm-s").parallel == ParallelPlan{.tp = 4, .pp = 4});
  CHECK(load_model("vlm-m").parallel == ParallelPlan{.tp = 8, .pp = 4});
  CHECK(load_model("vlm-l").parallel == ParallelPlan{.tp = 8, .pp = 8});
  CHECK(load_model("t2v-s").parallel == ParallelPlan{.tp = 4, .pp = 4});
  CHECK(load_model("t2v-l").parallel == ParallelPlan{.tp = 8, .pp = 8});
}

TEST_CASE("what a model file leaves out takes its default") {
  const LmmModel model = load();
  CHECK(model.tokens == TokenRuleSpec{});
  CHECK(model.packing == PackingSpec{});
  CHECK(model.parallel.dp == 1);
  CHECK(model.modules[0].trained);
  CHECK(model.modules[0].spec.head_dim == 16);
  CHECK(model.modules[0].spec.kv_groups == 4);
  CHECK(model.modules[1].spec.kv_groups == 2);
  CHECK(model.modules[1].inputs == std::vector{ModuleId{0}});
}

TEST_CASE("unknown keys and names in a model are errors that name the nearest") {
  CHECK(contains(refusal("\"hidden\": 64", "\"hiden\": 64"), "\"hidden\" is missing"));
  CHECK(contains(refusal("\"feed\": \"image\"", "\"feed\": \"image\", \"traned\": true"),
                 "did you mean \"trained\""));
  CHECK(contains(refusal("\"gated\"", "\"gatd\""), "did you mean \"gated\""));
  CHECK(contains(refusal("\"feed\": \"image\"", "\"feed\": \"images\""), "did you mean \"image\""));
  CHECK(contains(refusal("[\"vit\"]", "[\"vti\"]"), "did you mean \"vit\""));
  CHECK(contains(test::error_of([] { load_model("vlm-x"); }).what(), "unknown model \"vlm-x\""));
  CHECK(contains(test::error_of([] { load_module("vit-5"); }).what(), "did you mean \"vit-5b\""));
}

TEST_CASE("wrong types, negative, fractional and zero sizes are errors at their place") {
  CHECK(contains(refusal("\"layers\": 2", "\"layers\": 0"), "/modules/0/module/layers: 0"));
  CHECK(contains(refusal("\"layers\": 2", "\"layers\": -2"), "/layers"));
  CHECK(contains(refusal("\"layers\": 2", "\"layers\": 2.5"), "/layers"));
  CHECK(contains(refusal("\"layers\": 2", "\"layers\": \"2\""), "/layers"));
  CHECK(contains(refusal("\"tp\": 2", "\"tp\": 0"), "/parallel/tp"));
  CHECK(contains(refusal("\"head\": true", "\"head\": 1"), "/head"));
  CHECK(contains(refusal("\"layers\": 2", "\"layers\": NaN"), "line"));
}

TEST_CASE("heads that don't divide the width need an explicit head dimension") {
  CHECK(contains(refusal("\"heads\": 4", "\"heads\": 5"), "give \"head_dim\""));
  CHECK(load("\"heads\": 4", "\"heads\": 5, \"head_dim\": 10").modules[0].spec.head_dim == 10);
}

TEST_CASE("modules that don't fit together are errors") {
  CHECK(
      contains(refusal("\"name\": \"lm\"", "\"name\": \"vit\""), "two modules are named \"vit\""));
  CHECK(contains(refusal("\"inputs\": [\"vit\"], ", ""), "projector feeds no module"));
  CHECK(contains(refusal(", \"vocabulary\": 1000", ""), "a head needs a module with a vocabulary"));
  CHECK(contains(refusal("\"kv_groups\": 2", "\"kv_groups\": 3"), "kv_groups 3 does not divide"));
  CHECK(contains(refusal("\"gated\"", "\"dit\""), "dit block"));
  CHECK(contains(refusal("\"sequence\"", "\"clip\""), "dit block"));
}

TEST_CASE("the token rule of a model is checked where it stands") {
  const std::string parallel = "\"parallel\"";
  CHECK(contains(refusal(parallel, "\"tokens\": {\"rule\": \"qwen\"}, \"parallel\""), "/tokens"));
  CHECK(contains(refusal(parallel,
                         "\"tokens\": {\"rule\": \"fixed\", \"image_pixels\": 700}, "
                         "\"parallel\""),
                 "image_pixels 700"));
}

TEST_CASE("a model without modules is an error") {
  LmmModel model = load();
  model.modules.clear();
  CHECK(test::error_of([&] { check_model(model, "here"); }).where() == "here");
}

TEST_CASE("an input that stands behind its consumer is an error") {
  LmmModel model = load();
  model.modules[0].inputs = {ModuleId{1}};
  CHECK(contains(test::error_of([&] { check_model(model, "here"); }).what(), "stand before it"));
}
