// SPDX-License-Identifier: Apache-2.0
// A malformed table is refused with file, line and column; it never becomes a number.
#include "validate/csv_table.hpp"

#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"
#include "validate/published_data.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dipsim;

/// Reading this text as t.csv fails with kind Input at this place.
void require_refused(std::string_view text, const std::string& where, const std::string& says) {
  CAPTURE(text);
  const Error error = test::error_of([&] { const CsvTable table(text, "t.csv"); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == where);
  CAPTURE(error.message());
  CHECK(error.message().find(says) != std::string::npos);
}

/// A cell "x" with this content.
Error error_of_number(const std::string& cell) {
  const CsvTable table("name,x\nfirst,1\nsecond," + cell + "\n", "t.csv");
  return test::error_of([&] { static_cast<void>(table[1].number("x")); });
}

void require_no_number(const std::string& cell) {
  CAPTURE(cell);
  const Error error = error_of_number(cell);
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "t.csv:3: x");
  CHECK(error.message().find(cell) != std::string::npos);
}

}  // namespace

TEST_CASE("a table gives text, numbers and whole numbers by column, with the line of each row") {
  const CsvTable table("a,b,c\n1.5,two,3\n\n# a comment\n-2,\"x,\"\"y\"\"\",4\n", "t.csv");
  REQUIRE(table.size() == 2);
  CHECK(table[0].number("a") == 1.5);
  CHECK(table[0].text("b") == "two");
  CHECK(table[0].whole("c") == 3);
  CHECK(table[0].line() == 2);
  CHECK(table[1].number("a", -10.0) == -2.0);
  CHECK(table[1].text("b") == "x,\"y\"");
  CHECK(table[1].line() == 5);
  CHECK(table[0].has("c"));
  CHECK_FALSE(table[0].has("d"));
}

TEST_CASE("line ends of both kinds, a missing last one, and line feeds in quotes are read") {
  const CsvTable crlf("a,b\r\n1,2\r\n3,4\r\n", "t.csv");
  REQUIRE(crlf.size() == 2);
  CHECK(crlf[1].whole("b") == 4);
  CHECK(crlf[1].line() == 3);
  const CsvTable open("a,b\n1,2", "t.csv");
  REQUIRE(open.size() == 1);
  CHECK(open[0].whole("b") == 2);
  const CsvTable quoted("a,b\n\"one\ntwo\",2\n3,4\n", "t.csv");
  REQUIRE(quoted.size() == 2);
  CHECK(quoted[0].text("a") == "one\ntwo");
  CHECK(quoted[1].line() == 4);
}

TEST_CASE("a table that is cut off is refused where it ends") {
  require_refused("a,b\n1,\"two", "t.csv:2:7", "line 2 is never closed");
  require_refused("a,b\n1,\"two\nand more\n3,4\n", "t.csv:5:1", "line 2 is never closed");
  require_refused("a,b,c\n1,2,3\n4,5", "t.csv:3:3", "2 cells in a table of 3 columns");
  require_refused("a,b,c\n1,2,3\n4", "t.csv:3:2", "cut off");
}

TEST_CASE("rows with cells too many, quotes inside cells and text behind quotes are refused") {
  require_refused("a,b\n1,2,3\n", "t.csv:2:3", "3 cells in a table of 2 columns");
  require_refused("a,b\n1,2\"3\n", "t.csv:2:4", "a quote inside a cell");
  require_refused("a,b\n1,\"2\"3\n", "t.csv:2:6", "must end at a comma");
}

TEST_CASE(
    "empty files, tables without rows, files that are no text and repeated columns are refused") {
  require_refused("a,b\n", "t.csv:1", "no row");
  require_refused("# source\na,b\n\n# end\n", "t.csv:2", "no row");
  require_refused("", "t.csv", "empty");
  require_refused("\n\n", "t.csv", "empty");
  require_refused("# only a comment\n", "t.csv", "empty");
  require_refused(std::string_view("a,b\n1,\0\x01\n", 9), "t.csv:2:3", "no text file");
  require_refused("a,b,a\n1,2,3\n", "t.csv:1", "two columns \"a\"");
}

TEST_CASE("words, empty cells, nan, infinities and numbers out of range are no numbers") {
  for (const char* cell : {"word", "1.5x", "nan", "inf", "-inf", "1e999", "-1", "1,5"}) {
    const std::string text(cell);
    if (text == "1,5") {
      require_refused("name,x\nfirst,1,5\n", "t.csv:2:3", "3 cells");
    } else {
      require_no_number(text);
    }
  }
  CHECK(error_of_number("").message().find("is empty") != std::string::npos);
  CHECK(error_of_number("").where() == "t.csv:3: x");
}

TEST_CASE("a number that may be missing is still refused when it is not finite or out of range") {
  const CsvTable table("x\nword\n-5\nnan\n1e999\n7\n", "t.csv");
  CHECK_FALSE(table[0].number_if("x"));
  CHECK(table[4].number_if("x") == 7.0);
  for (const std::size_t row : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    CAPTURE(row);
    const Error error = test::error_of([&] { static_cast<void>(table[row].number_if("x")); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where() == "t.csv:" + std::to_string(row + 2) + ": x");
  }
}

TEST_CASE("whole numbers are whole, in range and exact") {
  const CsvTable table("x\n1.5\n9\n1e17\n", "t.csv");
  CHECK(test::error_of([&] { static_cast<void>(table[0].whole("x")); }).where() == "t.csv:2: x");
  CHECK(test::error_of([&] { static_cast<void>(table[1].whole("x", 1, 8)); })
            .message()
            .find("from 1 to 8") != std::string::npos);
  CHECK(test::error_of([&] { static_cast<void>(table[2].whole("x")); }).kind() == ErrorKind::Input);
  CHECK(table[1].whole("x", 1, 9) == 9);
}

TEST_CASE("a column that is missing is refused with the nearest one") {
  const CsvTable table("iteration_time_s,gpus\n1,8\n", "t.csv");
  const Error error = test::error_of([&] { static_cast<void>(table[0].text("iteration_time")); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "t.csv");
  CHECK(error.message().find("iteration_time_s") != std::string::npos);
}

TEST_CASE("tables of the named folder come before the shipped ones") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "gemm.csv", "a\n1\n");
  const PublishedData data(folder.path());
  REQUIRE(data.table("gemm"));
  CHECK(data.table("gemm")->size() == 1);
  REQUIRE(data.table("zero_bubble_main"));
  CHECK(data.table("zero_bubble_main")->size() == 72);
  CHECK_FALSE(data.table("no_such_table"));
  CHECK(test::error_of([&] { const PublishedData none(folder.path() / "gone"); }).kind() ==
        ErrorKind::Input);
}
