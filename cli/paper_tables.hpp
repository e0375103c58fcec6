// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/table.hpp"
#include "validate/paper.hpp"

#include <string>

namespace dipsim::cli {

/// What `dipsim validate --paper` prints. Table: both tables, and how claims that dipsim does not
/// reproduce within 5 % are read. Csv: the claims. Json: everything. Markdown: the page
/// docs/paper.md.
std::string render_paper(const PaperReport& report, Format format);

/// One line per claim: the paper's number, dipsim's, and their ratio.
Table claims_table(const PaperReport& report);

/// One line per schedule of the experiment: what was chosen, time, memory, and by how much dip is
/// faster.
Table schedules_table(const PaperExperiment& experiment);

/// The JSON document.
std::string paper_json(const PaperReport& report);

/// The page.
std::string paper_page(const PaperReport& report);

/// "dip over megatron" or "dip": what a claim is about.
std::string subject_of(const PaperClaim& claim);

/// "1.156 to 1.762": what the paper says, in the unit of the claim.
std::string paper_number(const PaperClaim& claim);

/// dipsim's number with as many digits as the paper's have.
Cell dipsim_cell(const PaperFinding& finding);

}  // namespace dipsim::cli
