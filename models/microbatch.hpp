// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/batch.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// What a module takes from a microbatch.
enum class Feed : std::uint8_t {
  Image,     ///< each image is an instance of its own (ViT)
  Audio,     ///< each audio clip is an instance of its own (audio encoder)
  Sequence,  ///< the packed sequence of text and merged media tokens is one instance (LLM backbone)
  Prompt,    ///< the text of each video clip is an instance (text encoder of a T2V model)
  Clip,      ///< each video clip is an instance that attends to its prompt (DiT)
};

std::string_view name_of(Feed feed);

/// Tokens of one image, audio clip or generated video clip, by the model's token rule.
struct MediaTokens {
  std::int32_t encoder = 0;  ///< patches or frames inside the encoder (DiT: latent tokens)
  std::int32_t merged = 0;   ///< tokens that it adds to the sequence of the backbone
  std::int32_t prompt = 0;   ///< text tokens that go with it (video generation); else 0
  friend bool operator==(const MediaTokens&, const MediaTokens&) = default;
};

/// How much of a microbatch one sample brought: the next so many of its documents, images, …
struct PackedSample {
  std::int32_t documents = 0;
  std::int32_t images = 0;
  std::int32_t audios = 0;
  std::int32_t clips = 0;
  double clip_seconds = 0.0;  ///< of its clips together
  friend bool operator==(const PackedSample&, const PackedSample&) = default;
};

/// What one replica feeds through the pipeline at once, after token rule and packing.
struct Microbatch {
  std::vector<std::int32_t> documents;  ///< tokens per packed sample: text and merged media
  std::vector<MediaTokens> images;
  std::vector<MediaTokens> audios;
  std::vector<MediaTokens> clips;          ///< videos to generate
  std::vector<PackedSample> samples = {};  ///< what belongs together; packers fill it, costs don't
                                           ///< depend on it
  friend bool operator==(const Microbatch&, const Microbatch&) = default;
};

/// Spreads microbatches over modules, feeds[i] being what module i takes. The microbatches are
/// dealt to the replicas in contiguous blocks of equal size; throws Input unless `replicas` divides
/// their number. A Sequence instance has one attention group per document; every other instance is
/// one group.
Batch make_batch(std::span<const Microbatch> microbatches, std::span<const Feed> feeds,
                 int replicas);

}  // namespace dipsim
