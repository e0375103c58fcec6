// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include "report/figures.hpp"
#include "report/memory_words.hpp"
#include "report/stragglers.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

/// Everything that the sentences need, computed once.
struct Facts {
  const Comparison& comparison;
  std::vector<ScheduleSummary> summaries;
  std::vector<std::size_t> order;  ///< those that fit, fastest first
  int decimals;

  [[nodiscard]] const std::string& name(std::size_t i) const {
    return comparison.schedules[i].name;
  }

  [[nodiscard]] double mean_ms(std::size_t i) const { return summaries[i].iteration_time_ms.mean; }

  [[nodiscard]] std::string ms(double value) const { return fixed(value, decimals) + " ms"; }

  /// False for differences that would print as zero.
  [[nodiscard]] bool visible(double difference_ms) const {
    return std::abs(difference_ms) >= 0.5 * std::pow(10.0, -decimals);
  }
};

std::string join(const std::vector<std::string>& parts, std::string_view between,
                 std::string_view before_last) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      out += i + 1 == parts.size() ? before_last : between;
    }
    out += parts[i];
  }
  return out;
}

std::string memory_text(const Facts& facts, std::size_t i) {
  const FullestRank fullest = fullest_rank(facts.comparison.schedules[i], facts.summaries[i]);
  std::string text = fmt::format("rank {} needs {} GiB", fullest.rank,
                                 fixed(fullest.peak_gib, gib_decimals(fullest.peak_gib)));
  if (fullest.limit_gib > 0.0) {
    text += fmt::format(" of {} GiB", fixed(fullest.limit_gib, gib_decimals(fullest.limit_gib)));
  }
  return text;
}

std::string nothing_fits(const Facts& facts) {
  const auto use = [&](std::size_t i) {
    const FullestRank fullest = fullest_rank(facts.comparison.schedules[i], facts.summaries[i]);
    return fullest.limit_gib > 0.0 ? fullest.peak_gib / fullest.limit_gib : fullest.peak_gib;
  };
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < facts.summaries.size(); ++i) {
    nearest = use(i) < use(nearest) ? i : nearest;
  }
  return fmt::format("No schedule fits in memory; of those with a plan, {} comes nearest: {}.",
                     facts.name(nearest), memory_text(facts, nearest));
}

std::string headline(const Facts& facts) {
  const Comparison& comparison = facts.comparison;
  if (comparison.schedules.empty() || comparison.schedules.front().iterations.empty()) {
    return "No iteration was run.";
  }
  if (facts.order.empty()) {
    return nothing_fits(facts);
  }
  const std::size_t best = facts.order.front();
  const std::string time = facts.ms(facts.mean_ms(best));
  if (comparison.schedules.size() == 1) {
    return fmt::format("{} takes {} per iteration.", facts.name(best), time);
  }
  std::string text = fmt::format("{} wins: {} per iteration", facts.name(best), time);
  const auto ratio_to = [&](std::size_t other) {
    return fixed(facts.mean_ms(other) / facts.mean_ms(best), 3);
  };
  if (best != 0) {
    text += fmt::format(", {} × the throughput of {}{}", ratio_to(0), facts.name(0),
                        facts.summaries[0].fits ? "" : ", which does not fit");
  }
  if (facts.order.size() > 1 && facts.order[1] != 0) {
    text += fmt::format(", {} × the throughput of {}, the second", ratio_to(facts.order[1]),
                        facts.name(facts.order[1]));
  }
  return text + '.';
}

/// "pipeline 12.3 ms, transfer 4.5 ms": what is visible of the parts.
std::string causes_text(const Facts& facts, const std::vector<double>& parts_ms, bool with_sign) {
  std::vector<std::string> texts;
  for (std::size_t cause = 0; cause < kIdleCauses.size(); ++cause) {
    if (facts.visible(parts_ms[cause])) {
      const std::string_view sign = with_sign && parts_ms[cause] > 0.0 ? "+" : "";
      texts.push_back(
          fmt::format("{} {}{}", kIdleCauses[cause].key, sign, facts.ms(parts_ms[cause])));
    }
  }
  return join(texts, ", ", ", ");
}

/// Where an average rank spends the iteration.
std::string where_time_goes(const Facts& facts, std::size_t i) {
  const TimeShares shares = time_shares(facts.comparison.schedules[i]);
  const double total = facts.mean_ms(i);
  const auto part = [&](double ms) {
    return fmt::format("{} ({} %)", facts.ms(ms), percent(total > 0.0 ? ms / total : 0.0));
  };
  std::string text = fmt::format("An average rank of {} computes for {}", facts.name(i),
                                 part(shares.computing_ms));
  if (facts.visible(shares.slowed_ms)) {
    text +=
        fmt::format(", {} of that lost to communication beside it,", facts.ms(shares.slowed_ms));
  }
  text += fmt::format(" and idles for {}", part(shares.idle_total_ms()));
  const std::string causes =
      causes_text(facts, {shares.idle_ms.begin(), shares.idle_ms.end()}, false);
  text += causes.empty() ? "" : ": " + causes;
  if (facts.visible(shares.ending_ms)) {
    text += fmt::format("; gradient reduction and optimizer take {} more", part(shares.ending_ms));
  }
  return text + '.';
}

std::string more_or_less(const Facts& facts, double difference_ms) {
  return fmt::format("{} {}", facts.ms(std::abs(difference_ms)),
                     difference_ms > 0.0 ? "more" : "less");
}

/// Why `slow` takes longer than `fast`, split exactly: computing + idle + ending = iteration time.
std::string loses_by(const Facts& facts, std::size_t slow, std::size_t fast) {
  const ScheduleResult& a = facts.comparison.schedules[slow];
  const ScheduleResult& b = facts.comparison.schedules[fast];
  const double difference = facts.mean_ms(slow) - facts.mean_ms(fast);
  if (!facts.visible(difference)) {
    return fmt::format("{} takes as long as {}.", a.name, b.name);
  }
  const TimeShares mine = time_shares(a);
  const TimeShares other = time_shares(b);
  std::vector<std::string> parts;
  if (const double idle = mine.idle_total_ms() - other.idle_total_ms(); facts.visible(idle)) {
    std::vector<double> causes(kIdleCauses.size());
    std::ranges::transform(mine.idle_ms, other.idle_ms, causes.begin(), std::minus<>());
    parts.push_back(
        fmt::format("idles {} ({})", more_or_less(facts, idle), causes_text(facts, causes, true)));
  }
  if (const double work = mine.computing_ms - other.computing_ms; facts.visible(work)) {
    const std::string why = a.recompute == b.recompute ? ""
                                                       : fmt::format(" (recompute: {}, against {})",
                                                                     a.recompute, b.recompute);
    parts.push_back(fmt::format("computes {}{}", more_or_less(facts, work), why));
  }
  if (const double ending = mine.ending_ms - other.ending_ms; facts.visible(ending)) {
    parts.push_back(
        fmt::format("spends {} on gradient reduction and optimizer", more_or_less(facts, ending)));
  }
  return fmt::format("{} takes {} ({} %) longer than {}: an average rank {}.", a.name,
                     facts.ms(difference), percent(difference / facts.mean_ms(fast)), b.name,
                     join(parts, ", ", " and "));
}

/// Fills reasons and others.
void explain(const Facts& facts, Findings& out) {
  if (facts.summaries.empty() || facts.comparison.schedules.front().iterations.empty()) {
    return;
  }
  if (!facts.order.empty()) {
    const std::size_t best = facts.order.front();
    out.reasons.push_back(where_time_goes(facts, best));
    if (std::string peak = peak_sentence(facts.comparison.schedules[best], facts.summaries[best]);
        !peak.empty()) {
      out.reasons.push_back(std::move(peak));
    }
    for (std::string& sentence :
         straggler_sentences(facts.comparison.schedules[best], facts.decimals)) {
      out.reasons.push_back(std::move(sentence));
    }
  }
  for (std::size_t place = 1; place < facts.order.size(); ++place) {
    const std::size_t slow = facts.order[place];
    (place == 1 || slow == 0 ? out.reasons : out.others)
        .push_back(loses_by(facts, slow, facts.order.front()));
    for (std::string& sentence :
         straggler_sentences(facts.comparison.schedules[slow], facts.decimals)) {
      out.others.push_back(std::move(sentence));
    }
  }
  for (std::size_t i = 0; i < facts.summaries.size(); ++i) {
    if (!facts.summaries[i].fits) {
      out.reasons.push_back(fmt::format("{} does not fit: {} ({} per iteration, recompute {}).",
                                        facts.name(i), memory_text(facts, i),
                                        facts.ms(facts.mean_ms(i)),
                                        facts.comparison.schedules[i].recompute));
      if (std::string peak = peak_sentence(facts.comparison.schedules[i], facts.summaries[i]);
          !peak.empty()) {
        out.reasons.push_back(std::move(peak));
      }
    }
  }
}

std::string potential(const Facts& facts) {
  const double bound = work_bound_ms(facts.comparison);
  if (facts.order.empty() || !(bound > 0.0)) {
    return "";
  }
  const bool alone = facts.comparison.schedules.size() == 1;
  const std::size_t best = facts.order.front();
  const double makespan = facts.summaries[best].makespan_ms.mean;
  if (makespan <= bound || !facts.visible(makespan - bound)) {
    return fmt::format(
        "Nothing can be gained by another order: the makespan of {} is at the lower "
        "bound{}.",
        facts.name(best), alone ? "" : " of all compared plans");
  }
  return fmt::format(
      "At most {} % of the makespan of {} can still be gained: no order of {} takes less than {} "
      "on "
      "average; {} takes {}.",
      percent(1.0 - bound / makespan), facts.name(best), alone ? "its plan" : "any compared plan",
      facts.ms(bound), facts.name(best), facts.ms(makespan));
}

std::vector<std::string> warnings(const Comparison& comparison) {
  std::vector<std::string> out = comparison.warnings;
  const std::size_t run =
      comparison.schedules.empty() ? 0 : comparison.schedules.front().iterations.size();
  if (comparison.requested_iterations > run) {
    out.push_back(fmt::format("interrupted: {} of {} iterations were run", run,
                              comparison.requested_iterations));
  }
  return out;
}

}  // namespace

Findings findings(const Comparison& comparison) {
  Facts facts{comparison, summarize_all(comparison), {}, 1};
  facts.order = ranking(facts.summaries);
  facts.decimals = time_decimals(facts.summaries);
  Findings out;
  out.headline = headline(facts);
  explain(facts, out);
  out.reasons.insert(out.reasons.end(), comparison.remarks.begin(), comparison.remarks.end());
  out.potential = potential(facts);
  out.warnings = warnings(comparison);
  return out;
}

std::vector<std::string> all_sentences(const Findings& findings) {
  std::vector<std::string> out = findings.reasons;
  out.insert(out.end(), findings.others.begin(), findings.others.end());
  if (!findings.potential.empty()) {
    out.push_back(findings.potential);
  }
  return out;
}

}  // namespace dipsim
