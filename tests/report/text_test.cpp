// SPDX-License-Identifier: Apache-2.0
#include "report/text.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace dipsim;

TEST_CASE("fixed: never NaN, infinity or minus zero") {
  CHECK(fixed(1.25, 1) == "1.2");
  CHECK(fixed(-0.04, 1) == "0.0");
  CHECK(fixed(-0.06, 1) == "-0.1");
  CHECK(fixed(std::numeric_limits<double>::quiet_NaN(), 1) == "n/a");
  CHECK(fixed(-std::numeric_limits<double>::infinity(), 1) == "n/a");
  CHECK(percent(0.12345) == "12.3");
}

TEST_CASE("time decimals: at least four significant digits") {
  for (const double largest : {1234.5, 999.0, 99.0, 9.9, 0.99, 0.099}) {
    const std::string text = fixed(largest, time_decimals(largest));
    std::size_t digits = 0;
    bool leading = true;
    for (const char c : text) {
      leading = leading && (c == '0' || c == '.');
      digits += !leading && c != '.' ? 1U : 0U;
    }
    CHECK_MESSAGE(digits >= 4, text);
  }
}

TEST_CASE("escape_xml: hostile text can neither open a tag nor leave an attribute") {
  CHECK(escape_xml("<script>\"'&") == "&lt;script&gt;&quot;&#39;&amp;");
  CHECK(escape_xml("µs × 3") == "µs × 3");
}

TEST_CASE("escape_xml: what XML can't carry is replaced") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(escape_xml(std::string("a\0b\x1B", 4)) == "a" + bad + "b" + bad);
  CHECK(escape_xml("\xC3") == bad);                  // cut off
  CHECK(escape_xml("\xC0\xAF") == bad + bad);        // overlong '/'
  CHECK(escape_xml("\xED\xA0\x80x").back() == 'x');  // surrogate
  CHECK(escape_xml("\xF5\x80\x80\x80") == bad + bad + bad + bad);
  CHECK(escape_xml("\xEF\xBF\xBF") == bad + bad + bad);  // U+FFFF
}

TEST_CASE("escape_markdown: cells and paragraphs keep their shape") {
  CHECK(escape_markdown("a|b\nc <i> *x* `y`") == "a\\|b c &lt;i> \\*x\\* \\`y\\`");
}

TEST_CASE("csv_field: quoted only where needed") {
  CHECK(csv_field("1f1b") == "1f1b");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"x\"\n") == "\"say \"\"x\"\"\n\"");
}

TEST_CASE("file_stem: no folders, no hidden files, never empty") {
  CHECK(file_stem("zb-h1") == "zb-h1");
  CHECK(file_stem("../../etc/passwd") == "_._.._etc_passwd");
  CHECK(file_stem("a b/c\\d:e") == "a_b_c_d_e");
  CHECK(file_stem("") == "schedule");
  CHECK(file_stem(std::string(500, 'x')).size() == 80);
}

TEST_CASE("display_width counts characters, not bytes") {
  CHECK(display_width("×µ…") == 3);
  CHECK(one_line("a\r\nb\x1B[31m") == "a  b [31m");
}
