// SPDX-License-Identifier: Apache-2.0
#include "models/microbatch.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <numeric>

namespace dipsim {

namespace {

constexpr std::array<std::string_view, 5> kFeedNames = {"image", "audio", "sequence", "prompt",
                                                        "clip"};

/// Fills the instances of one module of one microbatch.
class InstanceWriter {
 public:
  InstanceWriter(Batch& batch, std::size_t microbatch) : batch_(batch), microbatch_(microbatch) {}

  void write(const Microbatch& microbatch, Feed feed) {
    batch_.instances.add_row();
    switch (feed) {
      case Feed::Image:
        media(microbatch.images, "image");
        return;
      case Feed::Audio:
        media(microbatch.audios, "audio clip");
        return;
      case Feed::Sequence:
        sequence(microbatch.documents);
        return;
      case Feed::Prompt:
        for (const MediaTokens& clip : microbatch.clips) {
          require(clip.prompt, 1, "prompt tokens of a clip");
          whole({.tokens = clip.prompt, .output_tokens = clip.prompt});
        }
        return;
      case Feed::Clip:
        for (const MediaTokens& clip : microbatch.clips) {
          require(clip.encoder, 1, "tokens of a clip");
          require(clip.prompt, 0, "prompt tokens of a clip");
          whole({.tokens = clip.encoder,
                 .output_tokens = clip.encoder,
                 .context_tokens = clip.prompt});
        }
        return;
    }
  }

 private:
  void require(std::int64_t value, std::int64_t least, std::string_view what) const {
    if (value < least || value > std::numeric_limits<std::int32_t>::max()) {
      fail_input(fmt::format("microbatch {}", microbatch_),
                 fmt::format("{} {}; from {} to {} are allowed", value, what, least,
                             std::numeric_limits<std::int32_t>::max()));
    }
  }

  void media(std::span<const MediaTokens> items, std::string_view what) {
    for (const MediaTokens& item : items) {
      require(item.encoder, 1, fmt::format("tokens of an {}", what));
      require(item.merged, 0, fmt::format("merged tokens of an {}", what));
      whole({.tokens = item.encoder, .output_tokens = item.merged});
    }
  }

  void sequence(std::span<const std::int32_t> documents) {
    if (documents.empty()) {
      return;
    }
    for (const std::int32_t tokens : documents) {
      require(tokens, 1, "tokens of a document");
    }
    const std::int64_t total = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
    require(total, 1, "tokens of a packed sequence");
    const auto tokens = static_cast<std::int32_t>(total);
    add({.tokens = tokens, .output_tokens = tokens}, documents);
  }

  void whole(Instance instance) {
    const std::int32_t tokens = instance.tokens;
    add(instance, std::span(&tokens, 1));
  }

  void add(Instance instance, std::span<const std::int32_t> groups) {
    instance.first_group = static_cast<std::int32_t>(batch_.groups.size());
    instance.group_count = static_cast<std::int32_t>(groups.size());
    batch_.groups.insert(batch_.groups.end(), groups.begin(), groups.end());
    batch_.instances.push_back(instance);
  }

  Batch& batch_;
  std::size_t microbatch_;
};

}  // namespace

std::string_view name_of(Feed feed) { return kFeedNames[static_cast<std::size_t>(feed)]; }

Batch make_batch(std::span<const Microbatch> microbatches, std::span<const Feed> feeds,
                 int replicas) {
  if (replicas < 1 || microbatches.size() % static_cast<std::size_t>(replicas) != 0) {
    fail_input("microbatches", fmt::format("{} microbatches can't be dealt to {} replicas evenly",
                                           microbatches.size(), replicas));
  }
  const std::size_t per_replica = microbatches.size() / static_cast<std::size_t>(replicas);
  Batch batch;
  batch.modules = feeds.size();
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    batch.replica.push_back(static_cast<std::int32_t>(i / per_replica));
    InstanceWriter writer(batch, i);
    for (const Feed feed : feeds) {
      writer.write(microbatches[i], feed);
    }
  }
  return batch;
}

}  // namespace dipsim
