// SPDX-License-Identifier: Apache-2.0
#include "report/pictures.hpp"

#include "report/comparison_picture.hpp"
#include "report/frame.hpp"
#include "report/idle_picture.hpp"
#include "report/memory_picture.hpp"
#include "report/text.hpp"
#include "report/timeline_picture.hpp"

#include <fmt/format.h>

namespace dipsim {

namespace {

std::string subtitle(const Comparison& comparison, const ScheduleResult& schedule) {
  return fmt::format("{} · iteration {} · recompute: {}", comparison.title,
                     comparison.sample_iteration, schedule.recompute);
}

PictureText timeline_text(const Comparison& comparison, const ScheduleResult& schedule) {
  const Timeline& timeline = schedule.sample.timeline;
  const double makespan = to_milliseconds(timeline.makespan);
  const double iteration = to_milliseconds(timeline.iteration);
  std::string title =
      fmt::format("{}: makespan {} ms", schedule.name, fixed(makespan, time_decimals(makespan)));
  if (comparison.sample_iteration < schedule.iterations.size()) {
    title += fmt::format(", bubble ratio {} %",
                         percent(schedule.iterations[comparison.sample_iteration].bubble_ratio));
  }
  return {title, fmt::format("{} · iteration time {} ms", subtitle(comparison, schedule),
                             fixed(iteration, time_decimals(iteration)))};
}

}  // namespace

Pictures draw_pictures(const Comparison& comparison) {
  Pictures pictures;
  pictures.comparison = comparison_svg(comparison);
  pictures.idle = idle_svg(comparison);
  for (const ScheduleResult& schedule : comparison.schedules) {
    const Timeline& timeline = schedule.sample.timeline;
    pictures.timeline.push_back(
        timeline.spans.empty()
            ? ""
            : timeline_svg(schedule.sample, timeline_text(comparison, schedule)));
    pictures.memory.push_back(
        timeline.memory.empty()
            ? ""
            : memory_svg(schedule.sample, {schedule.name + ": memory per GPU (GiB)",
                                           subtitle(comparison, schedule)}));
  }
  return pictures;
}

}  // namespace dipsim
