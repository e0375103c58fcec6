// SPDX-License-Identifier: Apache-2.0
// One function per table of published measurements: rows in, predictions out. The table of
// registry.cpp names them.
#pragma once

#include "validate/csv_table.hpp"
#include "validate/validation_set.hpp"

#include <vector>

namespace dipsim {

std::vector<ValidationSet> megatron_layer_times(const CsvTable& table);
std::vector<ValidationSet> megatron_seqpar_iteration_times(const CsvTable& table);
std::vector<ValidationSet> megatron_sc21_table1(const CsvTable& table);
std::vector<ValidationSet> llm_foundry_mpt(const CsvTable& table);
std::vector<ValidationSet> torchtitan(const CsvTable& table);
std::vector<ValidationSet> nemo_automodel_h100(const CsvTable& table);
std::vector<ValidationSet> bridge_memory_h100(const CsvTable& table);
std::vector<ValidationSet> megatron_seqpar_memory(const CsvTable& table);
std::vector<ValidationSet> zero_bubble_memory(const CsvTable& table);
std::vector<ValidationSet> vtrain_single(const CsvTable& table);
std::vector<ValidationSet> vtrain_multi(const CsvTable& table);
std::vector<ValidationSet> nccl(const CsvTable& table);
std::vector<ValidationSet> gemm(const CsvTable& table);
std::vector<ValidationSet> attention_cudnn(const CsvTable& table);
std::vector<ValidationSet> attention(const CsvTable& table);
std::vector<ValidationSet> norm_layers(const CsvTable& table);
std::vector<ValidationSet> memory_bandwidth(const CsvTable& table);
std::vector<ValidationSet> zero_bubble_main(const CsvTable& table);

}  // namespace dipsim
