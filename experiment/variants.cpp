// SPDX-License-Identifier: Apache-2.0
#include "experiment/variants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dipsim {

namespace {

constexpr std::array kUniformModes = {RecomputeMode::Keep, RecomputeMode::Selective,
                                      RecomputeMode::Full};

std::string label_of(const PlannerOptions& options, bool chunks_vary) {
  std::string label(name_of(options.recompute));
  if (chunks_vary) {
    label = fmt::format("v={} {}", options.chunks_per_rank, label);
  }
  if (options.activation_percent != 0) {
    label += fmt::format(", activations at {} %", options.activation_percent);
  }
  return label;
}

bool fits(const VariantRecord& record) {
  return record.impossible.empty() && record.too_large == 0;
}

/// Texts joined by semicolons.
void append(std::string& list, const std::string& text) {
  list += (list.empty() ? "" : "; ") + text;
}

/// Variants that are impossible for the same reason.
struct Reason {
  std::string text;
  std::vector<std::string> variants;
};

void add_impossible(const VariantRecord& record, std::vector<Reason>& reasons) {
  auto found = std::ranges::find(reasons, record.impossible, &Reason::text);
  if (found == reasons.end()) {
    found = reasons.insert(reasons.end(), {.text = record.impossible, .variants = {}});
  }
  found->variants.push_back(record.label);
}

std::string describe(const Reason& reason) {
  const std::size_t count = reason.variants.size();
  return count <= 3 ? fmt::format("{}: {}", fmt::join(reason.variants, "; "), reason.text)
                    : fmt::format("{} variants, {} to {}: {}", count, reason.variants.front(),
                                  reason.variants.back(), reason.text);
}

}  // namespace

std::vector<Variant> variants_of(const ScheduleChoice& choice, const Problem& problem) {
  if (choice.info->chooses_memory) {
    return {{.label = "per pair", .options = choice.options}};
  }
  std::vector<PlannerOptions> alternatives = {choice.options};
  if (choice.info->alternatives != nullptr) {
    alternatives = choice.info->alternatives(choice.options, problem);
  }
  const bool chunks_vary =
      std::ranges::any_of(alternatives, [&](const PlannerOptions& alternative) {
        return alternative.chunks_per_rank != alternatives.front().chunks_per_rank;
      });
  std::vector<Variant> variants;
  for (PlannerOptions& alternative : alternatives) {
    for (const RecomputeMode mode : kUniformModes) {
      if (!choice.recompute || *choice.recompute == mode) {
        alternative.recompute = mode;
        variants.push_back({.label = label_of(alternative, chunks_vary), .options = alternative});
      }
    }
  }
  return variants;
}

std::optional<std::size_t> best_variant(std::span<const VariantRecord> records) {
  std::optional<std::size_t> best;
  const auto better = [&](std::size_t row) {
    const VariantRecord& own = records[row];
    const VariantRecord& other = records[*best];
    if (fits(own) != fits(other)) {
      return fits(own);
    }
    return fits(own) ? own.total < other.total : own.worst_peak < other.worst_peak;
  };
  for (std::size_t row = 0; row < records.size(); ++row) {
    if (records[row].impossible.empty() && (!best || better(row))) {
      best = row;
    }
  }
  return best;
}

std::vector<Note> variant_notes(std::span<const VariantRecord> records, std::size_t chosen,
                                std::size_t iterations) {
  if (records.size() == 1) {
    return {};
  }
  const VariantRecord& best = records[chosen];
  const VariantRecord* next = nullptr;
  std::string too_large;
  std::size_t slow_and_large = 0;
  std::vector<Reason> impossible;
  for (const VariantRecord& record : records) {
    if (!record.impossible.empty()) {
      add_impossible(record, impossible);
    } else if (record.too_large == 0) {
      const bool nearer = next == nullptr || record.total < next->total;
      next = &record != &best && nearer ? &record : next;
    } else if (fits(best) && record.total >= best.total) {
      ++slow_and_large;
    } else {
      append(too_large, fmt::format("{} ({} of {} iterations, at worst {:.2f} GiB)", record.label,
                                    record.too_large, iterations, to_gib(record.worst_peak)));
    }
  }
  if (slow_and_large > 0) {
    append(too_large, fmt::format("{} that are slower too", slow_and_large));
  }
  std::vector<Note> notes = {
      {"chosen", fmt::format("{}, {} of {} variants", best.label,
                             fits(best) ? "the fastest that fits" : "the smallest, as none fits,",
                             records.size())}};
  if (next != nullptr) {
    notes.push_back(
        {"next best", fmt::format("{} ({:.1f} ms)", next->label,
                                  to_milliseconds(next->total) / static_cast<double>(iterations))});
  }
  if (!too_large.empty()) {
    notes.push_back({"too large", std::move(too_large)});
  }
  for (const Reason& reason : impossible) {
    notes.push_back({"impossible", describe(reason)});
  }
  return notes;
}

}  // namespace dipsim
