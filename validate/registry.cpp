// SPDX-License-Identifier: Apache-2.0
#include "validate/registry.hpp"

#include "sim/core/error.hpp"
#include "validate/sets.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace dipsim {

namespace {

constexpr std::array kBuilders = {
    SetBuilder{
        "megatron_seqpar_layer_times", {"megatron_seqpar_layer_times"}, megatron_layer_times},
    SetBuilder{"megatron_seqpar_iteration_times",
               {"megatron_seqpar_iteration_times"},
               megatron_seqpar_iteration_times},
    SetBuilder{"megatron_sc21_table1", {"megatron_sc21_table1"}, megatron_sc21_table1},
    SetBuilder{"llm_foundry_mpt",
               {"llm_foundry_mpt h100_80gb bf16", "llm_foundry_mpt a100_80gb bf16",
                "llm_foundry_mpt a100_40gb bf16"},
               llm_foundry_mpt},
    SetBuilder{"torchtitan_performance", {"torchtitan bf16", "torchtitan bf16 memory"}, torchtitan},
    SetBuilder{"nemo_automodel_h100", {"nemo_automodel_h100"}, nemo_automodel_h100},
    SetBuilder{"bridge_memory_h100", {"bridge_memory_h100"}, bridge_memory_h100},
    SetBuilder{"megatron_seqpar_memory",
               {"megatron_seqpar_memory state", "megatron_seqpar_memory activations",
                "megatron_seqpar_memory shares"},
               megatron_seqpar_memory},
    SetBuilder{"zero_bubble_main", {"zero_bubble_main memory"}, zero_bubble_memory},
    SetBuilder{"vtrain_single", {"vtrain_single"}, vtrain_single},
    SetBuilder{"vtrain_multi", {"vtrain_multi"}, vtrain_multi},
    SetBuilder{"nccl", {"nccl_held_out", "nccl_held_out_small", "nccl_other"}, nccl},
    SetBuilder{"gemm", {"gemm", "gemm best-case", "gemm DeepGEMM", "gemm batched"}, gemm},
    SetBuilder{"attention_cudnn", {"attention_cudnn"}, attention_cudnn},
    SetBuilder{"attention", {"attention"}, attention},
    SetBuilder{"norm_layers", {"norm_layers", "norm_layers PyTorch"}, norm_layers},
    SetBuilder{"memory_bandwidth", {"memory_bandwidth"}, memory_bandwidth},
    SetBuilder{"zero_bubble_main", {"zero_bubble_main", "zero_bubble_bubbles"}, zero_bubble_main},
};

}  // namespace

std::span<const SetBuilder> all_set_builders() { return kBuilders; }

bool names(const SetBuilder& builder, std::string_view name) {
  return !name.empty() &&
         (builder.table == name || std::ranges::find(builder.sets, name) != builder.sets.end());
}

std::vector<ValidationSet> build_sets(const SetBuilder& builder, const CsvTable& table) {
  try {
    return builder.build(table);
  } catch (const Error& error) {
    if (error.where().find(table.file()) != std::string::npos) {
      throw;
    }
    throw Error(error.kind(), table.file() + ": " + error.where(), error.message());
  }
}

}  // namespace dipsim
