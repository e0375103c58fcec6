// SPDX-License-Identifier: Apache-2.0
#include "report/table.hpp"

#include "sim/core/error.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

using namespace dipsim;

namespace {

Table example() {
  return {
      "things",
      {{"name", "name", ""}, {"time_ms", "time", "ms"}, {"share", "share", "%"}, {"ok", "ok", ""}},
      {{text_cell("a×"), number_cell(1.25, 1), percent_cell(0.5), yes_no_cell(true)},
       {text_cell("long, name"), number_cell(1000.0 / 3.0, 1), unknown_cell(),
        yes_no_cell(false)}}};
}

}  // namespace

TEST_CASE("table: numbers stand on the right, units in their own line") {
  CHECK(render_table(example(), Format::Table) ==
        "name         time  share  ok\n"
        "               ms      %\n"
        "----------  -----  -----  ---\n"
        "a×            1.2   50.0  yes\n"
        "long, name  333.3    n/a  no\n");
}

TEST_CASE("table: without units there is one header line") {
  const Table table{"rows", {{"n", "n", ""}}, {{whole_cell(12)}}};
  CHECK(render_table(table, Format::Table) == " n\n--\n12\n");
}

TEST_CASE("table: JSON has full numbers, null for unknown, and a schema version") {
  const auto json = nlohmann::json::parse(render_table(example(), Format::Json));
  CHECK(json["schema_version"] == 1);
  CHECK(json["things"].size() == 2);
  CHECK(json["things"][1]["time_ms"].get<double>() == 1000.0 / 3.0);
  CHECK(json["things"][1]["share"].is_null());
  CHECK(json["things"][0]["ok"] == true);
  CHECK(json["things"][0]["share"] == 0.5);
}

TEST_CASE("table: CSV quotes fields and keeps full numbers") {
  CHECK(render_table(example(), Format::Csv) ==
        "name,time_ms,share,ok\na×,1.25,0.5,true\n\"long, name\",333.3333333333333,,false\n");
}

TEST_CASE("table: Markdown aligns numbers and names units") {
  CHECK(render_table(example(), Format::Markdown) ==
        "| name | time (ms) | share (%) | ok |\n| --- | ---: | ---: | --- |\n"
        "| a× | 1.2 | 50.0 | yes |\n| long, name | 333.3 | n/a | no |\n");
}

TEST_CASE("table: a number that isn't one is unknown in every format") {
  Table table{"rows", {{"x", "x", ""}}, {}};
  table.rows.push_back({number_cell(std::numeric_limits<double>::quiet_NaN(), 3)});
  table.rows.push_back({percent_cell(std::numeric_limits<double>::infinity())});
  for (const Format format : {Format::Table, Format::Json, Format::Csv, Format::Markdown}) {
    CHECK_FALSE(test::prints_nan(render_table(table, format)));
  }
}

TEST_CASE("table: a name with line feeds and pipes takes one line") {
  Table table{"rows", {{"x", "x", ""}}, {}};
  table.rows.push_back({text_cell(test::kHostile)});
  CHECK(test::count(render_table(table, Format::Table), "\n") == 3);
  CHECK(test::count(render_table(table, Format::Markdown), "\n") == 3);
  CHECK(nlohmann::json::accept(render_table(table, Format::Json)));
}

TEST_CASE("table: an empty one still has its header, a ragged one is a defect") {
  Table table = example();
  table.rows.clear();
  CHECK(test::count(render_table(table, Format::Table), "\n") == 3);
  CHECK(nlohmann::json::parse(render_table(table, Format::Json))["things"].empty());
  table.rows.push_back({text_cell("one")});
  CHECK_THROWS_AS(render_table(table, Format::Csv), Error);
}

TEST_CASE("format names are accepted as written, others name the nearest") {
  CHECK(format_of("table") == Format::Table);
  CHECK(format_of("json") == Format::Json);
  CHECK(format_of("csv") == Format::Csv);
  CHECK(format_of("markdown") == Format::Markdown);
  CHECK_THROWS_WITH_AS(format_of("jsn"), doctest::Contains("did you mean \"json\""), Error);
}
