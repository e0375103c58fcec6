// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/table.hpp"
#include "validate/validation.hpp"

#include <string>

namespace dipsim::cli {

/// What `dipsim validate` prints. Table: the summary, other predictors, and with `rows` a table per
/// set. Csv: the summary, or with `rows` one line per row. Json: everything. Markdown: the page
/// docs/validation.md.
std::string render_validation(const Validation& validation, bool rows, Format format);

/// One line per set: errors, and whether it keeps its bar.
Table summary_table(const Validation& validation);

/// One line per predictor that a set is held beside, dipsim's own error next to it.
Table others_table(const Validation& validation);

/// One line per row of the set.
Table rows_table(const ValidationSet& set);

/// The name of the file that the rows come from, without its folder.
std::string table_name(const ValidationSet& set);

/// The JSON document: every row of every set.
std::string validation_json(const Validation& validation);

/// The page: all rows of small sets, the worst rows and the quantiles of large ones.
std::string validation_page(const Validation& validation);

/// `value` with four digits or more, none of them after a power of ten.
Cell value_cell(double value);

}  // namespace dipsim::cli
