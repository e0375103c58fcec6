// SPDX-License-Identifier: Apache-2.0
#include "experiment/schedule_choice.hpp"

#include "sim/core/error.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <string>

namespace dipsim {

namespace {

std::string complaint(const char* text) {
  const Error error =
      test::error_of([&] { static_cast<void>(parse_schedule(text, "--schedules")); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where().starts_with("--schedules"));
  return error.message();
}

}  // namespace

TEST_CASE("a schedule is a name with options behind colons") {
  const ScheduleChoice plain = parse_schedule("1f1b", "");
  CHECK(plain.info->name == "1f1b");
  CHECK(plain.label == "1f1b");
  CHECK_FALSE(plain.recompute.has_value());

  const ScheduleChoice rich =
      parse_schedule("interleaved:chunks=4:partition=time:recompute=full", "");
  CHECK(rich.options.chunks_per_rank == 4);
  CHECK(rich.options.partition == PartitionRule::PassTime);
  CHECK(rich.recompute == RecomputeMode::Full);
  CHECK(rich.label == "interleaved:chunks=4:partition=time:recompute=full");

  const ScheduleChoice given = parse_schedule("gpipe:partition=10-11-12", "");
  CHECK(given.options.partition == PartitionRule::Given);
  CHECK(given.options.given_layers == std::vector<int>{10, 11, 12});

  CHECK(parse_schedule("nnscaler:tune=batch", "").options.place_each_batch);
  CHECK_FALSE(parse_schedule("nnscaler:tune=representative", "").options.place_each_batch);

  const ScheduleChoice dip = parse_schedule("dip:slice=6:memory=off:level=full", "");
  CHECK(dip.options.dip.slice_sizes == std::vector<int>{6});
  CHECK_FALSE(dip.options.dip.memory_choice);
  CHECK(dip.options.dip.memory_levels == std::vector<RecomputeMode>{RecomputeMode::Full});
}

TEST_CASE("an unknown schedule, option or value is answered with the nearest legal one") {
  CHECK(complaint("1f1").find("\"1f1b\"") != std::string::npos);
  CHECK(complaint("interleaved:chunk=2").find("\"chunks\"") != std::string::npos);
  CHECK(complaint("1f1b:recompute=ful").find("\"full\"") != std::string::npos);
  CHECK(complaint("1f1b:chunks=0").find("from 1 to") != std::string::npos);
  CHECK(complaint("1f1b:chunks").find("key=value") != std::string::npos);
  CHECK(complaint("1f1b:partition=5-x").find("\"x\"") != std::string::npos);
}

TEST_CASE("an option that a schedule does not have is refused, not ignored") {
  CHECK(complaint("dip:chunks=2").find("dip has no option \"chunks\", which belongs to gpipe,") !=
        std::string::npos);
  CHECK(complaint("1f1b:slice=2").find("belongs to dip, dip-plus, dip-zb; its own: chunks,") !=
        std::string::npos);
  CHECK(complaint("1f1b:tune=batch").find("belongs to nnscaler") != std::string::npos);
  CHECK(complaint("megatron:partition=time").find("megatron has no option") != std::string::npos);
  CHECK(complaint("1f1b:slcie=2").find("unknown option of 1f1b") != std::string::npos);
  CHECK(complaint("nnscaler:chunks=2").find("nnscaler has no option") != std::string::npos);
}

TEST_CASE("the help names every option") {
  const std::string help = "\n" + schedule_option_help();
  for (const std::string key :
       {"chunks", "partition", "recompute", "tune", "slice", "level", "memory"}) {
    CAPTURE(key);
    CHECK(help.find("\n" + key + " (") != std::string::npos);
  }
  CHECK(help.find("\ntune (nnscaler): ") != std::string::npos);
}

}  // namespace dipsim
