// SPDX-License-Identifier: Apache-2.0
#include "sim/core/json.hpp"

#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dipsim {
namespace {

using test::error_of;

constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

JsonDocument parse(std::string_view text) { return {text, "x.json"}; }

Error parse_error(std::string_view text) {
  return error_of([&] { parse(text); });
}

/// The error of reading one key of a document {"k": value}.
template <class Read>
Error read_error(std::string_view value, const Read& read) {
  std::string text = "{\"k\": ";
  text += value;
  const JsonDocument document = parse(text + "}");
  return error_of([&] { read(document.root().object().at("k")); });
}

std::string nested(std::size_t depth, std::string_view inside) {
  return std::string(depth, '[') + std::string(inside) + std::string(depth, ']');
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("values of every type are read") {
  const JsonDocument document = parse(R"({"i": -3, "n": 2.5, "b": true, "t": "hé", "l": [1, 2],
                                          "o": {"x": 1}})");
  JsonObject root = document.root().object();
  CHECK(root.at("i").integer(-10) == -3);
  CHECK(root.at("i").number(-10) == -3.0);
  CHECK(root.at("n").number(0) == 2.5);
  CHECK(root.at("b").boolean());
  CHECK(root.at("t").text() == "hé");
  const std::vector<JsonValue> list = root.at("l").items();
  REQUIRE(list.size() == 2);
  CHECK(list[1].integer(0) == 2);
  CHECK(list[1].where() == "x.json: /l/1");
  CHECK(root.at("o").object().at("x").integer(0) == 1);
  CHECK(root.at("o").is_object());
  CHECK(root.at("l").is_array());
  CHECK(root.at("n").is_number());
  CHECK_NOTHROW(root.finish());
}

TEST_CASE("malformed text is an input error with line and column") {
  struct Case {
    std::string_view text;
    std::string_view place;
  };

  const std::array cases = {
      Case{R"({"a": 1)", "line 1, column 8"},      // truncated: after the last character
      Case{"{\n  \"a\": }", "line 2, column 8"},   // no value
      Case{"{\"a\": 1,}", "line 1, column 9"},     // trailing comma
      Case{"[1, 2\n", "line 2, column 1"},         // truncated after a newline
      Case{"{} x", "line 1, column 4"},            // more after the end
      Case{"[\n\n  \"abc", "line 3, column 7"},    // a text without its end
      Case{"// comment\n{}", "line 1, column 2"},  // no comments in JSON
      Case{"{'a': 1}", "line 1, column 2"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    const Error error = parse_error(each.text);
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(contains(error.where(), "x.json: line "));
    CHECK(contains(error.where(), ", column "));
    CHECK_FALSE(error.message().empty());
    CHECK_FALSE(contains(error.message(), "json.exception"));
  }
  // Where the reader stops is up to one character behind what it can't use.
  CHECK(parse_error(cases[1].text).where() == "x.json: line 2, column 8");
  CHECK(parse_error(cases[4].text).where() == "x.json: line 1, column 4");
  CHECK(contains(parse_error(cases[0].text).message(), "unexpected end"));
}

TEST_CASE("NaN, infinity and numbers that JSON does not know are malformed") {
  for (const std::string_view value : {"NaN", "nan", "Infinity", "-Infinity", "+1", "01", ".5",
                                       "1.", "0x10", "1e", "--1", "1_000"}) {
    CAPTURE(value);
    CHECK(contains(parse_error("{\"a\": " + std::string(value) + "}").where(), "line 1, column "));
  }
}

TEST_CASE("an empty document is an input error") {
  for (const std::string_view text : {"", " ", "\n\t \r\n"}) {
    const Error error = parse_error(text);
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(contains(error.message(), "empty"));
    CHECK(contains(error.where(), "x.json"));
  }
}

TEST_CASE("a number that overflows is an input error at its line") {
  for (const std::string_view value : {"1e400", "-1e400", "123456789e999"}) {
    CAPTURE(value);
    const Error error = parse_error("{\n\"a\": " + std::string(value) + "\n}");
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(contains(error.message(), value));
    CHECK(contains(error.where(), "line 2, column "));
  }
  const Error second = parse_error("{\"1e400\": \"1e400\",\n\"a\": 1e400}");
  CHECK(contains(second.where(), "line 2, column "));
}

TEST_CASE("a duplicate key is an input error that names the object, at any depth") {
  const Error error = parse_error("{\"a\": 1,\n \"a\": 2}");
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(contains(error.message(), "duplicate"));
  CHECK(contains(error.message(), "\"a\""));
  CHECK(error.where() == "x.json: /");
  const Error deep = parse_error(R"([0, [], {"w": [1], "x": {"b": 1, "c": {}, "b": 3}}])");
  CHECK(contains(deep.message(), "\"b\""));
  CHECK(deep.where() == "x.json: /2/x");
  CHECK(contains(parse_error(R"({"é": 1, "\u00e9": 2})").message(), "duplicate"));
  // The same key in two objects is none.
  CHECK_NOTHROW(parse(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"));
}

TEST_CASE("64 levels are read and 65 are refused") {
  CHECK_NOTHROW(parse(nested(64, "")));
  CHECK_NOTHROW(parse(nested(64, "1")));
  for (const std::string_view inside : {"", "1", "{}"}) {
    CAPTURE(inside);
    const Error error = parse_error(nested(65, inside));
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(contains(error.message(), "64"));
    CHECK(contains(error.where(), "x.json: /0/0/0"));
  }
  CHECK(parse_error(nested(64, "{}")).kind() == ErrorKind::Input);
  // Far deeper than any stack.
  CHECK(parse_error(std::string(5'000'000, '[')).kind() == ErrorKind::Input);
}

TEST_CASE("what follows a zero byte is not silently dropped") {
  using std::string_view_literals::operator""sv;
  CHECK(parse_error("{\"a\": 1}\0 {\"b\": 2}"sv).kind() == ErrorKind::Input);
  CHECK(parse_error("{\"a\": 1}\0"sv).kind() == ErrorKind::Input);
}

TEST_CASE("messages about ill-formed or long text can be printed as JSON") {
  const auto printable = [](const Error& error) {
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(std::string_view(error.what()).size() < 600);
    CHECK_NOTHROW(std::ignore = nlohmann::json(error.what()).dump());  // throws on bad UTF-8
  };
  printable(parse_error("{\"a\": \"\xff\"}"));
  std::string letters;
  for (int i = 0; i < 50; ++i) {
    letters += "é";
  }
  const auto as_integer = [](const JsonValue& value) { std::ignore = value.integer(0); };
  printable(read_error("\"" + letters + "\"", as_integer));
  printable(read_error("\"x" + letters + "\"", as_integer));
  for (const std::string& key : {letters, "x" + letters}) {
    printable(parse_error("{\"" + key + "\": 1, \"" + key + "\": 2}"));
  }
}

TEST_CASE("whole numbers are read up to both ends of 64 bits") {
  const JsonDocument document = parse(R"([9223372036854775807, -9223372036854775808, 0, -0, 10])");
  const std::vector<JsonValue> values = document.root().items();
  CHECK(values[0].integer(0) == kHighest);
  CHECK(values[1].integer(std::numeric_limits<std::int64_t>::min()) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(values[2].integer(0, 0) == 0);
  CHECK(values[3].integer(0) == 0);
  CHECK(values[4].integer(10, 10) == 10);
}

TEST_CASE("what is no whole number of the range is an input error with value, range and pointer") {
  const auto read = [](const JsonValue& value) { std::ignore = value.integer(1, 1000); };
  for (const std::string_view value :
       {"1.5", "1e300", "1e10", "9223372036854775808", "18446744073709551616",
        "-9223372036854775809", "0", "-1", "1001", "\"1\"", "true", "null", "[1]", "{}"}) {
    CAPTURE(value);
    const Error error = read_error(value, read);
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where() == "x.json: /k");
    CHECK(contains(error.message(), "from 1 to 1000"));
  }
  CHECK(contains(read_error("1.5", read).message(), "1.5"));
  CHECK(contains(read_error("-1", read).message(), "-1"));
  CHECK(contains(read_error("\"1\"", read).message(), "\"1\""));
  const auto no_high = [](const JsonValue& value) { std::ignore = value.integer(2); };
  CHECK(contains(read_error("1", no_high).message(), "at least 2"));
  CHECK(read_error("9223372036854775808", no_high).kind() == ErrorKind::Input);
}

TEST_CASE("what is no number of the range is an input error with value, range and pointer") {
  const auto read = [](const JsonValue& value) { std::ignore = value.number(0.0, 1.0); };
  for (const std::string_view value : {"-0.001", "1.001", "1e300", "\"0.5\"", "false", "null"}) {
    CAPTURE(value);
    const Error error = read_error(value, read);
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where() == "x.json: /k");
    CHECK(contains(error.message(), "from 0 to 1"));
  }
  const JsonDocument edges = parse("[0, 1, 1.0, 1e-320]");
  for (const JsonValue& value : edges.root().items()) {
    CHECK_NOTHROW(std::ignore = value.number(0.0, 1.0));
  }
}

TEST_CASE("a value of another type is an input error that says what is wanted") {
  const auto boolean = [](const JsonValue& v) { std::ignore = v.boolean(); };
  const auto text = [](const JsonValue& v) { std::ignore = v.text(); };
  const auto items = [](const JsonValue& v) { std::ignore = v.items(); };
  const auto object = [](const JsonValue& v) { std::ignore = v.object(); };
  CHECK(contains(read_error("1", boolean).message(), "true or false"));
  CHECK(contains(read_error("1", text).message(), "text"));
  CHECK(contains(read_error("{}", items).message(), "list"));
  CHECK(contains(read_error("[]", object).message(), "object"));
  CHECK(read_error("null", object).where() == "x.json: /k");
  const JsonDocument number = parse("5");
  CHECK(contains(error_of([&] { std::ignore = number.root().object(); }).where(), "x.json: /"));
}

TEST_CASE("a huge value is not echoed whole") {
  const auto object = [](const JsonValue& v) { std::ignore = v.object(); };
  CHECK(read_error("\"" + std::string(100'000, 'x') + "\"", object).message().size() < 300);
}

TEST_CASE("a missing key is an input error that names it and its object") {
  const JsonDocument document = parse(R"({"cluster": {"nodes": 1}})");
  JsonObject root = document.root().object();
  JsonObject cluster = root.at("cluster").object();
  const Error error = error_of([&] { std::ignore = cluster.at("gpus"); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "x.json: /cluster");
  CHECK(contains(error.message(), "gpus"));
  CHECK_FALSE(cluster.find("gpus").has_value());
}

TEST_CASE("an unknown key is an input error that names its place and the nearest known key") {
  const JsonDocument document = parse(R"({"cluster": {"nodes": 1, "gpu_per_node": 8}})");
  JsonObject root = document.root().object();
  JsonObject cluster = root.at("cluster").object();
  CHECK_NOTHROW(root.finish());
  std::ignore = cluster.at("nodes");
  std::ignore = cluster.find("gpus_per_node");
  const Error error = error_of([&] { cluster.finish(); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "x.json: /cluster/gpu_per_node");
  CHECK(contains(error.message(), "\"gpu_per_node\""));
  CHECK(contains(error.message(), "\"gpus_per_node\""));
  CHECK(contains(error.message(), "nodes"));
  cluster.ignore("gpu_per_node");
  CHECK_NOTHROW(cluster.finish());
}

TEST_CASE("keys of an object used as a map are sorted and known") {
  const JsonDocument document = parse(R"({"b": 1, "a": 2, "c": 3})");
  JsonObject root = document.root().object();
  CHECK(root.keys() == std::vector<std::string>{"a", "b", "c"});
  CHECK_NOTHROW(root.finish());
}

TEST_CASE("one of several names gives its index, and another name is an error with the nearest") {
  constexpr std::array<std::string_view, 3> kNames = {"keep", "selective", "full"};
  const JsonDocument document = parse(R"({"k": "full"})");
  CHECK(document.root().object().at("k").one_of(kNames, "mode") == 2);
  const auto read = [&](const JsonValue& v) { std::ignore = v.one_of(kNames, "recompute mode"); };
  const Error error = read_error("\"ful\"", read);
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "x.json: /k");
  CHECK(contains(error.message(), "recompute mode"));
  CHECK(contains(error.message(), "did you mean \"full\""));
  CHECK(read_error("2", read).kind() == ErrorKind::Input);
}

TEST_CASE("a pointer escapes slashes and tildes of keys") {
  const JsonDocument document = parse(R"({"a/b": {"c~d": [true]}})");
  const JsonValue value = document.root().object().at("a/b").object().at("c~d").items().front();
  CHECK(value.where() == "x.json: /a~1b/c~0d/0");
  CHECK(document.root().where() == "x.json: /");
  const Error error = error_of([&] { value.fail("no"); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == value.where());
}

TEST_CASE("a document read from a file names the file, and survives a move") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "x.json").string();
  write_file(path, "\xef\xbb\xbf{\"a\": 1}");  // with a byte order mark, as Windows writes it
  JsonDocument document = JsonDocument::from_file(path);
  const JsonDocument moved = std::move(document);
  CHECK(moved.root().object().at("a").where() == path + ": /a");
  write_file(path, "");
  CHECK(contains(error_of([&] { JsonDocument::from_file(path); }).where(), path));
  const auto none = folder.path() / "none.json";
  CHECK(error_of([&] { JsonDocument::from_file(none); }).kind() == ErrorKind::Input);
}

}  // namespace
}  // namespace dipsim
