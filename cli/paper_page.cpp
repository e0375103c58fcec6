// SPDX-License-Identifier: Apache-2.0
// docs/paper.md.
#include "cli/paper_tables.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace dipsim::cli {

namespace {

constexpr std::string_view kIntroduction =
    R"(# The experiments of the DIP paper

Written by `dipsim validate --paper --format markdown`; do not edit. Every statement of the paper about its experiments
(ASPLOS'26, doi 10.1145/3779212.3790154, arXiv 2504.14145) that dipsim can run stands beside dipsim's own number. The
experiments are files in [configs/experiments/paper](../configs/experiments/paper), the statements a table,
[dip_paper.csv](../validate/published/dip_paper.csv). Nothing was measured here, and no number of dipsim is chosen per
experiment: models, clusters and cost model are those of every other command.

Contents: [what the paper leaves open](#what-the-paper-leaves-open) · [statements](#statements) ·
[experiments](#experiments) · [not compared](#not-compared)

## What the paper leaves open

The paper does not print the data of its experiments, how many microbatches an iteration has (64 are named in one
place), how many images a microbatch holds, which recompute mode and how many chunks per rank the baselines used, nor
how much memory the framework left to activations. Each changes ratios by tens of percent, so readings are compared:

* **Data.** `gamma-images:10`: images per microbatch spread widely around 10, the mean at which 64 microbatches of VLM-S
  take the seconds of the ablation at the MFU that the paper prints. `dip-images`: the two waves of the dynamic trace of
  Fig. 8b. `t2v-clips`: captioned clips as its video datasets have them. On H20 also `gamma-images:3`: in 28.6 s the 16
  GPUs can't do more than 68 PFLOP at their data-sheet peak, less than half of what 64 microbatches with 10 images need.
* **Recomputation.** NAME: the fastest mode and depth that fits; NAME:recompute=full: everything recomputed, the only
  reading under which the ablation's last step, memory optimisation, has something to remove.
* **Memory.** 0.95 of the card, 4 GiB of it for framework and communication.

The seconds of the ablation and of the H20 runs decide: they agree with full recomputation in every baseline, and with
10 images per microbatch on H800 and about 3 on H20.

## Statements

**ratio** = dipsim / paper; inside a range that the paper gives it is 1, outside it refers to the nearer end. A range
stands where the paper gives one over models and baselines, or where its words can be read as a longer time or as a lower
throughput. "fits" says whether dipsim finds that all schedules of the line fit in memory.
)";

constexpr std::string_view kNotCompared = R"(
## Not compared

* *Seconds of the search on 64 cores, against Z3 and Gurobi*: they depend on the machine; `dipsim_bench` measures the
  search here, and `dipsim_exact_gap` how far from the optimum it stays.
* *Gap between best and worst schedule per slice size*: the paper maximises time to find the worst; dipsim has no such
  search.
* *"52.9 % fewer memory fluctuations"*: not defined in the paper.
* *Accuracy of its simulator* (97.6 %): the measured runs are not published. [validation.md](validation.md) compares
  dipsim with runs that are.
* *The dynamic-imbalance table on 8 GPUs*: the 2B and 5B models are not described. The 37B partition example (22.8 %
  bubbles) is a test of dipsim: 22.99 %.
)";

std::string claims_of(const PaperReport& report) {
  std::string out = render_table(claims_table(report), Format::Markdown);
  std::string readings;
  for (const PaperFinding& finding : report.findings) {
    const PaperClaim& claim = finding.claim;
    if (!claim.reading.empty()) {
      readings += fmt::format("* *{}, {}* (`{}`, {}): {}\n", escape_markdown(claim.place),
                              escape_markdown(claim.statement), claim.experiment,
                              escape_markdown(subject_of(claim)), escape_markdown(claim.reading));
    }
  }
  return readings.empty() ? out
                          : out + "\nHow lines are read, and why dipsim differs:\n\n" + readings;
}

std::string section_of(const PaperExperiment& experiment) {
  std::string out = fmt::format("\n### {}\n\n{}; trace `{}`.\n\n", experiment.name,
                                escape_markdown(experiment.title), experiment.trace);
  out += render_table(schedules_table(experiment), Format::Markdown);
  for (std::size_t i = 0; i < experiment.warnings.size(); ++i) {
    out += (i == 0 ? "\n* " : "* ") + escape_markdown(experiment.warnings[i]) + '\n';
  }
  return out;
}

}  // namespace

std::string paper_page(const PaperReport& report) {
  std::string out = fmt::format("{}\n{}", kIntroduction, claims_of(report));
  out +=
      "\n## Experiments\n\n**over dip** = mean iteration time / that of `dip`: the throughput of "
      "DIP over "
      "the schedule.\n";
  for (const PaperExperiment& experiment : report.experiments) {
    out += section_of(experiment);
  }
  return out + std::string(kNotCompared);
}

}  // namespace dipsim::cli
