// SPDX-License-Identifier: Apache-2.0
#include "validate/paper.hpp"

#include "sim/core/error.hpp"
#include "validate/published_data.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

const std::string kHeader =
    "place,statement,experiment,quantity,schedule,baseline,first_iteration,last_iteration,"
    "paper_low,paper_high,reading\n";

PaperClaim claim_from(const std::string& row) {
  return read_paper_claims(CsvTable(kHeader + row + '\n', "claims.csv")).front();
}

std::string error_of(const std::string& row) {
  try {
    claim_from(row);
  } catch (const Error& error) {
    return error.where() + ": " + error.message();
  }
  return "";
}

PaperSchedule schedule(const std::string& name, std::vector<double> seconds, int gib) {
  return {.name = name,
          .variant = "full",
          .iteration_seconds = std::move(seconds),
          .mfu = 0.25,
          .peak = Bytes{std::int64_t{gib + 1} << 30U},
          .first_peak = Bytes{std::int64_t{gib} << 30U},
          .fits = gib < 80};
}

PaperExperiment example() {
  return {
      .name = "example",
      .title = "",
      .trace = "",
      .schedules = {schedule("slow", {3.0, 6.0, 9.0}, 90), schedule("dip:slice=4", {2, 2, 5}, 30),
                    schedule("dip:slice=12", {2, 2, 2}, 60)},
      .warnings = {}};
}

double value_of(const std::string& row) {
  const PaperFinding finding = find_claim(claim_from(row), example());
  REQUIRE(finding.value);
  return *finding.value;
}

}  // namespace

TEST_CASE("a claim is about the mean over its iterations") {
  CHECK(value_of("A,s,example,seconds,slow,,,,1,1,") == 6.0);
  CHECK(value_of("A,s,example,seconds,slow,,2,3,1,1,") == 7.5);
  CHECK(value_of("A,s,example,seconds,slow,,2,2,1,1,") == 6.0);
  CHECK(value_of("A,s,example,throughput,dip:slice=12,slow,,,1,1,") == 3.0);
  CHECK(value_of("A,s,example,throughput,dip:slice=12,slow,3,3,1,1,") == 4.5);
}

TEST_CASE("a claim about memory compares the first ranks") {
  CHECK(value_of("A,s,example,peak,dip:slice=12,dip:slice=4,,,1,1,") == 2.0);
  CHECK(value_of("A,s,example,mfu,slow,,,,1,1,") == 0.25);
}

TEST_CASE("the fastest slice is the number behind the prefix of the fastest schedule") {
  CHECK(value_of("A,s,example,fastest-slice,dip:slice=,,,,1,1,") == 12.0);
}

TEST_CASE("a claim about schedules that do not fit says so, and one about none has no number") {
  CHECK(find_claim(claim_from("A,s,example,seconds,slow,,,,1,1,"), example()).fits == false);
  CHECK(find_claim(claim_from("A,s,example,seconds,dip:slice=4,,,,1,1,"), example()).fits == true);
  const PaperFinding missing =
      find_claim(claim_from("A,s,example,throughput,slow,gone,,,1,1,"), example());
  CHECK(!missing.value);
  CHECK(!missing.fits);
  CHECK(!missing.ratio());
}

TEST_CASE("inside the range of the paper the ratio is one, outside it refers to the nearer end") {
  PaperFinding finding{.claim = claim_from("A,s,example,seconds,slow,,,,2,4,"), .value = 3.0};
  CHECK(*finding.ratio() == 1.0);
  finding.value = 1.0;
  CHECK(*finding.ratio() == 0.5);
  finding.value = 6.0;
  CHECK(*finding.ratio() == 1.5);
}

TEST_CASE("malformed claims are refused with file, line and column") {
  CHECK(error_of("A,s,e,second,slow,,,,1,1,").find("did you mean \"seconds\"?") !=
        std::string::npos);
  CHECK(error_of("A,s,e,seconds,slow,,,,2,1,").find("paper_high") != std::string::npos);
  CHECK(error_of("A,s,e,throughput,slow,,,,1,1,").find("baseline") != std::string::npos);
  CHECK(error_of("A,s,e,seconds,slow,fast,,,1,1,").find("baseline") != std::string::npos);
  CHECK(error_of("A,s,e,seconds,,,,,1,1,").find("schedule") != std::string::npos);
  CHECK(error_of("A,s,e,seconds,slow,,3,2,1,1,").find("last_iteration") != std::string::npos);
  CHECK(error_of("A,s,e,seconds,slow,,0,2,1,1,").find("first_iteration") != std::string::npos);
  CHECK(error_of("A,s,e,seconds,slow,,,,nan,1,").find("claims.csv") != std::string::npos);
}

TEST_CASE("every shipped claim is about a shipped experiment that runs its schedules") {
  const std::vector<PaperClaim> claims = read_paper_claims(*PublishedData().table("dip_paper"));
  REQUIRE(claims.size() > 40);
  std::stop_source stop;
  stop.request_stop();  // names are checked, nothing is run
  PaperReport report;
  CHECK_NOTHROW(
      report = run_paper(claims,
                         {.experiments = {}, .jobs = 1, .stop = stop.get_token(), .progress = {}}));
  CHECK(report.experiments.empty());
  CHECK(paper_experiment_names().size() > 10);
}

TEST_CASE("a claim about what its experiment lacks is refused before anything runs") {
  const auto refused = [](const std::string& row) {
    try {
      run_paper({claim_from(row)},
                {.experiments = {"vlm-s"}, .jobs = 1, .stop = {}, .progress = {}});
    } catch (const Error& error) {
      return error.where() + ": " + error.message();
    }
    return std::string();
  };
  CHECK(refused("A,s,vlm-q,seconds,dip,,,,1,1,").find("dip_paper.csv: line 2") == 0);
  CHECK(refused("A,s,vlm-s,seconds,dipp,,,,1,1,").find("did you mean \"dip\"?") !=
        std::string::npos);
  CHECK(refused("A,s,vlm-s,throughput,dip,megatrom,,,1,1,").find("\"megatron\"") !=
        std::string::npos);
  CHECK(refused("A,s,vlm-s,seconds,dip,,1,21,1,1,").find("20 iterations") != std::string::npos);
}

}  // namespace dipsim::test
