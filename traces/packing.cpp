// SPDX-License-Identifier: Apache-2.0
#include "traces/packing.hpp"

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxUselessSamples = 1'000'000;
constexpr std::int64_t kMaxUselessPasses = 2;
constexpr std::size_t kWindow = 512;  // clips that are sorted by length at a time

/// Reads samples, and gives up on a source that has nothing for the model.
class Intake {
 public:
  Intake(std::unique_ptr<SampleSource> samples, const PackingSpec& limits)
      : samples_(std::move(samples)), limits_(limits) {}

  Sample next() {
    Sample sample = samples_->next();
    if (useless_ >= kMaxUselessSamples || samples_->wraps() - wraps_ > kMaxUselessPasses) {
      fail_useless();
    }
    ++useless_;
    ++stats_.samples;
    return sample;
  }

  /// Says why none of the samples seen since the last microbatch could be used.
  [[noreturn]] void fail_useless() const {
    if (stats_.too_large == 0) {
      fail_input("packing", fmt::format("none of {} samples holds anything that the model takes: "
                                        "another model or another trace is needed",
                                        useless_));
    }
    fail_input("packing",
               fmt::format("none of {} samples fits the model: the media of {} exceed {} "
                           "tokens or {} images, the others hold nothing that it takes",
                           useless_, stats_.too_large, limits_.tokens, limits_.max_images));
  }

  /// The last sample is in a microbatch.
  void used() {
    useless_ = 0;
    wraps_ = samples_->wraps();
  }

  void add_microbatch(double load, double capacity) {
    ++stats_.microbatches;
    stats_.load += load;
    stats_.capacity += capacity;
  }

  PackingStats& counts() { return stats_; }

  [[nodiscard]] PackingStats stats() const {
    PackingStats out = stats_;
    out.wraps = samples_->wraps();
    return out;
  }

 private:
  std::unique_ptr<SampleSource> samples_;
  PackingSpec limits_;
  PackingStats stats_;
  std::int64_t useless_ = 0;  ///< samples since the last used one
  std::int64_t wraps_ = 0;    ///< of the source at that time
};

// --- greedy
// ----------------------------------------------------------------------------------------

/// A sample in tokens.
struct Document {
  std::int32_t tokens = 0;  ///< text, merged media and their markers
  std::int64_t marked = 0;  ///< pictures, videos and audio clips
  std::vector<MediaTokens> images;
  std::vector<MediaTokens> audios;
};

/// Next-fit in arrival order: a sample that doesn't fit into the open microbatch closes it and
/// opens the next. What doesn't fit into an empty one loses text; when its media alone are too
/// large, it is dropped.
class GreedyPacker final : public Packer {
 public:
  GreedyPacker(PackerOptions options, std::unique_ptr<SampleSource> samples)
      : intake_(std::move(samples), options.limits), options_(std::move(options)) {}

  Microbatch next() override {
    Microbatch out;
    std::int64_t tokens = 0;
    for (;;) {
      if (!waiting_) {
        waiting_ = next_document();
      }
      if (tokens + waiting_->tokens > limits().tokens ||
          out.images.size() + waiting_->images.size() >
              static_cast<std::size_t>(limits().max_images)) {
        break;
      }
      tokens += waiting_->tokens;
      out.documents.push_back(waiting_->tokens);
      out.images.insert(out.images.end(), waiting_->images.begin(), waiting_->images.end());
      out.audios.insert(out.audios.end(), waiting_->audios.begin(), waiting_->audios.end());
      out.samples.push_back({.documents = 1,
                             .images = static_cast<std::int32_t>(waiting_->images.size()),
                             .audios = static_cast<std::int32_t>(waiting_->audios.size())});
      waiting_.reset();
    }
    intake_.add_microbatch(static_cast<double>(tokens), limits().tokens);
    return out;
  }

  [[nodiscard]] PackingStats stats() const override { return intake_.stats(); }

 private:
  [[nodiscard]] const PackingSpec& limits() const { return options_.limits; }

  Document next_document() {
    for (;;) {
      const Sample sample = intake_.next();
      if (std::optional<Document> document = tokenize(sample)) {
        intake_.used();
        return *std::move(document);
      }
    }
  }

  [[nodiscard]] bool takes(Feed feed) const {
    return std::ranges::find(options_.feeds, feed) != options_.feeds.end();
  }

  std::optional<Document> tokenize(const Sample& sample) {
    Document out;
    if (takes(Feed::Image)) {
      if (!see(sample, out)) {
        ++intake_.counts().unusable;
        return std::nullopt;
      }
    } else {
      intake_.counts().ignored_media +=
          static_cast<std::int64_t>(sample.images.size() + sample.videos.size());
    }
    const std::optional<MediaTokens> audio =
        takes(Feed::Audio) ? audio_tokens(sample.audio_seconds) : std::nullopt;
    if (audio) {
      out.audios.push_back(*audio);
      ++out.marked;
    } else if (sample.audio_seconds > 0.0) {
      ++intake_.counts().ignored_media;
    }
    return fit(std::move(out), sample.text_tokens,
               audio && sample.audio_seconds > kAudioWindowSeconds);
  }

  /// False when the rule refuses the shape of an image.
  bool see(const Sample& sample, Document& out) {
    for (const ImageSize size : sample.images) {
      const std::optional<MediaTokens> image = options_.rule.image(size);
      if (!image) {
        return false;
      }
      out.images.push_back(*image);
      ++out.marked;
    }
    for (const VideoShape& video : sample.videos) {
      if (const auto frames = options_.rule.watched_video(video)) {
        out.images.insert(out.images.end(), frames->begin(), frames->end());
        ++out.marked;
      } else {
        ++intake_.counts().ignored_media;
      }
    }
    return true;
  }

  std::optional<Document> fit(Document out, std::int32_t text, bool cut) {
    std::int64_t media = out.marked * options_.rule.markers();
    for (const MediaTokens& image : out.images) {
      media += image.merged;
    }
    for (const MediaTokens& audio : out.audios) {
      media += audio.merged;
    }
    if (media > limits().tokens ||
        out.images.size() > static_cast<std::size_t>(limits().max_images)) {
      ++intake_.counts().too_large;
      return std::nullopt;
    }
    if (media + text == 0) {
      ++intake_.counts().unusable;
      return std::nullopt;
    }
    cut = cut || media + text > limits().tokens;
    intake_.counts().cut += cut ? 1 : 0;
    out.tokens = static_cast<std::int32_t>(std::min<std::int64_t>(media + text, limits().tokens));
    return out;
  }

  Intake intake_;
  PackerOptions options_;
  std::optional<Document> waiting_;  ///< read, and not yet in a microbatch
};

// --- clips
// -----------------------------------------------------------------------------------------

struct Clip {
  double seconds = 0.0;
  std::int32_t prompt = 0;
};

/// Groups clips of similar length: sorts a window of them and cuts it into consecutive groups
/// within the limits; the groups leave the window in random order, as no training takes them by
/// length.
class ClipPacker final : public Packer {
 public:
  ClipPacker(PackerOptions options, std::unique_ptr<SampleSource> samples)
      : intake_(std::move(samples), options.limits), options_(std::move(options)) {}

  Microbatch next() override {
    if (groups_.empty()) {
      group_window();
    }
    Microbatch out;
    double seconds = 0.0;
    for (const Clip& clip : groups_.front()) {
      out.clips.push_back(options_.rule.generated_clip(clip.seconds, clip.prompt));
      out.samples.push_back({.clips = 1, .clip_seconds = clip.seconds});
      seconds += clip.seconds;
    }
    groups_.pop_front();
    intake_.add_microbatch(seconds, limits().max_clip_seconds);
    return out;
  }

  [[nodiscard]] PackingStats stats() const override { return intake_.stats(); }

 private:
  [[nodiscard]] const PackingSpec& limits() const { return options_.limits; }

  void group_window() {
    std::vector<Clip> clips;
    while (clips.size() < kWindow) {
      add_clips(intake_.next(), clips);
    }
    std::ranges::stable_sort(clips, {}, &Clip::seconds);
    std::vector<std::vector<Clip>> groups(1);
    double seconds = 0.0;
    for (const Clip& clip : clips) {
      const bool full = groups.back().size() == static_cast<std::size_t>(limits().max_clips) ||
                        seconds + clip.seconds > limits().max_clip_seconds + kSecondsMargin;
      if (full) {
        groups.emplace_back();
        seconds = 0.0;
      }
      groups.back().push_back(clip);
      seconds += clip.seconds;
    }
    RandomStream random(options_.seed, "clip groups", windows_++);
    random.shuffle(std::span(groups));
    groups_.assign(groups.begin(), groups.end());
  }

  void add_clips(const Sample& sample, std::vector<Clip>& clips) {
    PackingStats& counts = intake_.counts();
    counts.ignored_media += static_cast<std::int64_t>(sample.images.size());
    const std::size_t before = clips.size();
    bool cut = sample.text_tokens > limits().tokens;
    for (const VideoShape& video : sample.videos) {
      if (!(video.seconds > 0.0)) {
        ++counts.ignored_media;
        continue;
      }
      cut = cut || video.seconds > limits().max_clip_seconds;
      clips.push_back({std::min(video.seconds, limits().max_clip_seconds),
                       std::min(sample.text_tokens, limits().tokens)});
    }
    if (clips.size() == before) {
      ++counts.unusable;
      return;
    }
    counts.cut += cut ? 1 : 0;
    intake_.used();
  }

  Intake intake_;
  PackerOptions options_;
  std::uint64_t windows_ = 0;
  std::deque<std::vector<Clip>> groups_;
};

template <class T>
std::unique_ptr<Packer> make(PackerOptions options, std::unique_ptr<SampleSource> samples) {
  return std::make_unique<T>(std::move(options), std::move(samples));
}

template <class T>
void require_range(const std::string& where, std::string_view what, T value, T low, T high) {
  if (!(value >= low && value <= high)) {  // also refuses NaN
    fail_input(where, fmt::format("{} is {}; allowed: {} to {}", what, value, low, high));
  }
}

}  // namespace

PackingStats& PackingStats::operator+=(const PackingStats& other) {
  samples += other.samples;
  cut += other.cut;
  too_large += other.too_large;
  unusable += other.unusable;
  ignored_media += other.ignored_media;
  wraps += other.wraps;
  microbatches += other.microbatches;
  load += other.load;
  capacity += other.capacity;
  return *this;
}

std::span<const PackerInfo> all_packers() {
  static constexpr std::array<PackerInfo, 2> packers{{
      {.name = "greedy",
       .feed = Feed::Sequence,
       .summary = "next-fit in arrival order to a limit of tokens and of images",
       .source = "DIP (arXiv 2504.14145): samples greedily packed to 8192 tokens",
       .make = make<GreedyPacker>},
      {.name = "clips",
       .feed = Feed::Clip,
       .summary = "clips of similar length, to a limit of clips and of seconds",
       .source = "DIP (arXiv 2504.14145): at most 8 clips and 16 s, after Movie Gen",
       .make = make<ClipPacker>},
  }};
  return packers;
}

const PackerInfo& packer_for(std::span<const Feed> feeds) {
  const PackerInfo* found = nullptr;
  for (const PackerInfo& packer : all_packers()) {
    if (std::ranges::find(feeds, packer.feed) == feeds.end()) {
      continue;
    }
    if (found != nullptr) {
      fail_input("model", fmt::format(R"(takes both "{}" and "{}": no packer serves both)",
                                      name_of(found->feed), name_of(packer.feed)));
    }
    found = &packer;
  }
  if (found == nullptr) {
    fail_input("model", "takes neither a packed sequence nor clips: no packer serves it");
  }
  return *found;
}

void check_packing(const PackingSpec& limits, const std::string& where) {
  require_range(where, "tokens", limits.tokens, 1, 100'000'000);
  require_range(where, "max_images", limits.max_images, 0, 1'000'000);
  require_range(where, "max_clips", limits.max_clips, 1, 100'000);
  require_range(where, "max_clip_seconds", limits.max_clip_seconds, 1e-3, 3600.0);
}

}  // namespace dipsim
