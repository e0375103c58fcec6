// SPDX-License-Identifier: Apache-2.0
// Builds the operator lists of a part, one neural-network function at a time.
#pragma once

#include "models/operators.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dipsim {

/// Appends forward, backward and saved tensors of one function after the other; finish() returns
/// them with the backward lists turned into order of execution. Sizes are those of one GPU.
class PartBuilder {
 public:
  /// `shape` is that of the whole context-parallel group.
  PartBuilder(const PlacedModule& module, Part part, const WorkShape& shape, LayerKind kind = {});

  /// A place in the lists.
  struct Mark {
    std::size_t forward = 0;
    std::size_t selective = 0;
    std::size_t saved = 0;
  };

  [[nodiscard]] Mark mark() const;
  /// Selective recomputation drops what was saved since then, but for tensors called `kept`, and
  /// runs the operators since then again.
  void recompute_since(const Mark& mark, std::span<const std::string_view> kept);

  /// Norm over the sharded tokens; keeps its input and its output.
  void norm(std::string_view name, std::int64_t tokens, std::int64_t width);
  /// `bytes` of a tensor whose tokens the group shares under sequence parallelism: the share of
  /// this GPU.
  [[nodiscard]] std::int64_t sharded(std::int64_t bytes) const;
  /// Before a matrix product split by columns: gathers the tokens of a sharded tensor, and backward
  /// scatters the sum of its gradients. Without sequence parallelism the tokens are there, and
  /// backward adds up the gradients.
  void gather(std::string_view name, std::int64_t tokens, std::int64_t width);
  /// Gathers the columns of a matrix product split by columns; backward scatters.
  void gather_columns(std::string_view name, std::int64_t tokens, std::int64_t width);
  /// Behind a matrix product split by rows: adds up partial results and shards the tokens; backward
  /// gathers. Without sequence parallelism it adds them up on all GPUs.
  void scatter(std::string_view name, std::int64_t tokens, std::int64_t width);
  /// Weight matrix split by output columns; `out` is the share of this GPU.
  void linear_by_columns(std::string_view name, std::int64_t tokens, std::int64_t in,
                         std::int64_t out);
  /// Weight matrix split by input rows; `in` is the share of this GPU.
  void linear_by_rows(std::string_view name, std::int64_t tokens, std::int64_t in,
                      std::int64_t out);
  /// Selective recomputation runs a product again, where the module says so.
  void product_again(std::string_view name, std::int64_t tokens, std::int64_t in, std::int64_t out);
  /// Copied weight matrix on the sharded tokens.
  void linear_on_shard(std::string_view name, std::int64_t tokens, std::int64_t in,
                       std::int64_t out, bool gradient_of_input);
  /// The copied matrix of a router; no adapter stands beside it.
  void router(std::string_view name, std::int64_t tokens, std::int64_t in, std::int64_t out);
  /// Looks up its rows of a vocabulary for all tokens, zeroing the rows of other GPUs.
  void embedding(std::string_view name, std::int64_t tokens, std::int64_t width);
  /// Kernel bound by memory with this traffic.
  void elementwise(std::string_view name, std::int64_t forward_bytes, std::int64_t backward_bytes);
  /// Activation function, in an expert or not. Keeps its input and its output.
  void activation(std::string_view name, std::int64_t tokens, std::int64_t inputs,
                  std::int64_t outputs, bool expert = false);
  /// One weight matrix per local expert, and `rows` rows that they share evenly.
  void grouped_linear(std::string_view name, std::int64_t rows, std::int64_t in, std::int64_t out);
  /// Every GPU of the expert-parallel group sends `bytes` to the others; backward sends them back.
  void exchange(std::string_view name, std::int64_t bytes);
  /// Keys and values of all context-parallel GPUs, `width` per token.
  void context_exchange(std::string_view name, std::int64_t key_tokens, std::int64_t width);
  /// Keeps queries, keys and values of attention.
  void save_heads(std::int64_t tokens, std::int64_t key_tokens);
  /// Scaled dot-product attention of local query heads; keeps its output.
  void attention(std::string_view name, std::int64_t tokens, std::int64_t key_tokens, double pairs,
                 bool causal);
  /// Adds to the residual stream, behind a dropout where the module has one.
  void residual(std::string_view name);
  void save(std::string_view name, std::int64_t bytes, bool cheap, bool for_weights_only);
  /// Raises the scratch memory to at least this.
  void scratch(std::int64_t bytes);

  PartOperators finish();

  [[nodiscard]] const PlacedModule& module() const { return module_; }

  /// Of this GPU: tokens of all its tensor-parallel group.
  [[nodiscard]] const WorkShape& shape() const { return shape_; }

  /// Pairs of self attention that this GPU counts.
  [[nodiscard]] double pairs() const;

  [[nodiscard]] LayerKind kind() const { return kind_; }

  [[nodiscard]] const RecomputedParts& recomputed() const { return recomputed_; }

 private:
  void linear(std::string_view name, std::int64_t tokens, std::int64_t in, std::int64_t out,
              bool gradient_of_input);

  [[nodiscard]] bool written_out() const {
    return module_.spec.attention == AttentionKernel::WrittenOut;
  }

  void written_out_attention();
  [[nodiscard]] AttentionShape fused_shape(std::int64_t tokens, double pairs, bool causal) const;
  /// Keeps the input of a product in its own type where a kernel has left it in bf16.
  void save_input_of_product(std::string_view name, std::int64_t elements, bool cheap);
  void weight_gradient(std::string_view name, const GemmShape& shape);
  /// A low-rank adapter beside `copies` products: down to the rank and up again.
  void adapter(std::string_view name, const GemmShape& shape, bool gradient_of_input);

  const PlacedModule& module_;
  const WorkShape whole_;
  const WorkShape shape_;
  const LayerKind kind_;
  const RecomputedParts recomputed_;
  const bool in_block_;
  PartOperators part_;
};

}  // namespace dipsim
