// SPDX-License-Identifier: Apache-2.0
#include "report/html.hpp"

#include "report/findings.hpp"
#include "report/text.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dipsim;

namespace {

std::string html(const Comparison& comparison) {
  return report_html(comparison, draw_pictures(comparison));
}

}  // namespace

TEST_CASE("report.html: one sound file with everything in it") {
  const Comparison comparison = test::small_comparison();
  const std::string text = html(comparison);
  CHECK(test::markup_fault(text) == "");
  CHECK(text.starts_with("<!DOCTYPE html>"));
  CHECK(text.find(escape_xml(findings(comparison).headline)) != std::string::npos);
  CHECK(test::count(text, "<svg ") == 2 + 2 * 3);
  CHECK(test::count(text, "<details open>") == 1);
  CHECK(test::count(text, "<tr class=\"winner\">") == 1);
  CHECK(text.find("<th>seed</th>") != std::string::npos);
  CHECK(text.find("K llm") != std::string::npos);
  CHECK(text.find("<dt>bubble overhead</dt>") != std::string::npos);
  CHECK_FALSE(test::prints_nan(text));
  CHECK(text == html(test::small_comparison()));
}

TEST_CASE("report.html: needs neither network nor script") {
  const std::string text = html(test::small_comparison());
  CHECK(text.find("<script") == std::string::npos);
  CHECK(text.find("<link") == std::string::npos);
  CHECK(text.find("src=") == std::string::npos);
  CHECK(text.find("href=") == std::string::npos);
  CHECK(text.find("url(") == std::string::npos);
  CHECK(test::count(text, "http") == test::count(text, "xmlns=\"http://www.w3.org/2000/svg\""));
}

TEST_CASE("report.html: hostile names stay text") {
  const std::string text = html(test::hostile_comparison());
  CHECK(test::markup_fault(text) == "");
  CHECK(text.find("<script") == std::string::npos);
  CHECK(text.find("&lt;script&gt;") != std::string::npos);
}

TEST_CASE("report.html: an empty comparison still makes a page") {
  CHECK(test::markup_fault(html(Comparison{})) == "");
}
