// SPDX-License-Identifier: Apache-2.0
#include "traces/workload.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "traces/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace dipsim {

namespace fs = std::filesystem;

std::vector<std::string> Workload::warnings() const {
  const PackingStats counts = stats();
  std::vector<std::string> out;
  const auto warn = [&](std::int64_t count, const std::string& text) {
    if (count > 0) {
      out.push_back(fmt::format("{}: {}", name_, text));
    }
  };
  const std::string times =
      counts.wraps == 1 ? std::string("once") : fmt::format("{} times", counts.wraps);
  warn(counts.wraps,
       fmt::format("shorter than the run: began anew {}, each time in another order", times));
  warn(counts.cut,
       fmt::format("{} of {} samples were cut to what fits", counts.cut, counts.samples));
  warn(counts.too_large, fmt::format("{} of {} samples were dropped: their media alone don't fit",
                                     counts.too_large, counts.samples));
  warn(counts.unusable,
       fmt::format("{} of {} samples were dropped: they hold nothing that the model "
                   "takes, or a picture of a shape that its token rule refuses",
                   counts.unusable, counts.samples));
  warn(counts.ignored_media,
       fmt::format("{} images, videos or audio clips were ignored: the model doesn't take them",
                   counts.ignored_media));
  return out;
}

namespace {

constexpr double kMostImages = 1e6;  // in the mean
constexpr std::size_t kMostMicrobatches = 10'000'000;

std::vector<Microbatch> take(Packer& packer, std::size_t count) {
  std::vector<Microbatch> out(count);
  std::ranges::generate(out, [&] { return packer.next(); });
  return out;
}

PackerOptions packer_options(const WorkloadOptions& options, std::uint64_t seed) {
  return {.limits = options.packing,
          .rule = TokenRule(options.tokens),
          .feeds = options.feeds,
          .seed = seed};
}

std::unique_ptr<Packer> make_packer(const WorkloadOptions& options, std::uint64_t seed,
                                    std::unique_ptr<SampleSource> samples) {
  return packer_for(options.feeds).make(packer_options(options, seed), std::move(samples));
}

/// Draws the images of each microbatch and fills the sequence with text. The documents that the
/// sequence consists of are as long as those of draw_web_document().
class ImageCountWorkload final : public Workload {
 public:
  ImageCountWorkload(const std::string& name, const WorkloadOptions& options, ImageDraw draw,
                     double mean)
      : Workload(name), options_(options), rule_(options.tokens), draw_(draw), mean_(mean) {
    if (packer_for(options.feeds).feed != Feed::Sequence) {
      fail_input(name,
                 "holds text and images; a model that generates videos needs t2v-clips or a "
                 "trace file with videos");
    }
    const std::optional<MediaTokens> image = rule_.image({});
    DIPSIM_CHECK(image.has_value(), "no token rule refuses a square");
    image_ = *image;
    sees_ = std::ranges::find(options_.feeds, Feed::Image) != options_.feeds.end();
  }

  std::vector<Microbatch> iteration(std::size_t index) override {
    RandomStream random(options_.seed, "images", index);
    std::vector<Microbatch> out(options_.microbatches);
    std::ranges::generate(out, [&] { return draw_microbatch(random, index); });
    return out;
  }

  [[nodiscard]] PackingStats stats() const override { return stats_; }

 private:
  [[nodiscard]] std::int64_t image_tokens() const { return image_.merged + rule_.markers(); }

  Microbatch draw_microbatch(RandomStream& random, std::size_t index) {
    const std::int32_t capacity = options_.packing.tokens;
    const std::int64_t wanted = draw_(random, index, mean_);
    const std::int64_t most =
        std::min<std::int64_t>(options_.packing.max_images, capacity / image_tokens());
    Microbatch out;
    if (sees_) {
      stats_.cut += wanted > most ? 1 : 0;
      out.images.assign(static_cast<std::size_t>(std::min(wanted, most)), image_);
    } else {
      stats_.ignored_media += wanted;
    }
    out.documents = draw_documents(random, index, capacity);
    // The draw is of a whole microbatch: which image belongs to which document is not said.
    out.samples = {{.documents = static_cast<std::int32_t>(out.documents.size()),
                    .images = static_cast<std::int32_t>(out.images.size())}};
    ++stats_.samples;
    ++stats_.microbatches;
    stats_.load += capacity;
    stats_.capacity += capacity;
    return out;
  }

  [[nodiscard]] std::vector<std::int32_t> draw_documents(RandomStream& random, std::size_t index,
                                                         std::int64_t rest) const {
    std::vector<std::int32_t> out;
    while (rest > 0) {
      const Sample document = draw_web_document(random, index);
      const std::int64_t tokens =
          document.text_tokens + static_cast<std::int64_t>(document.images.size()) * image_tokens();
      out.push_back(static_cast<std::int32_t>(std::min(tokens, rest)));
      rest -= tokens;
    }
    return out;
  }

  WorkloadOptions options_;
  TokenRule rule_;
  ImageDraw draw_;
  double mean_;
  MediaTokens image_;
  bool sees_ = true;
  PackingStats stats_;
};

/// Packs samples that are drawn anew for each iteration.
class DrawnWorkload final : public Workload {
 public:
  DrawnWorkload(const std::string& name, WorkloadOptions options, SampleDraw draw)
      : Workload(name), options_(std::move(options)), draw_(draw) {}

  std::vector<Microbatch> iteration(std::size_t index) override {
    const std::uint64_t seed = RandomStream(options_.seed, "packer", index).bits();
    const std::unique_ptr<Packer> packer =
        make_packer(options_, seed, generated_samples(draw_, options_.seed, index));
    std::vector<Microbatch> out = take(*packer, options_.microbatches);
    stats_ += packer->stats();
    return out;
  }

  [[nodiscard]] PackingStats stats() const override { return stats_; }

 private:
  WorkloadOptions options_;
  SampleDraw draw_;
  PackingStats stats_;
};

/// Packs the samples of a file; the iterations are consecutive parts of its microbatches.
class FileWorkload final : public Workload {
 public:
  FileWorkload(const std::string& name, fs::path path, WorkloadOptions options)
      : Workload(name), path_(std::move(path)), options_(std::move(options)) {
    open();
  }

  std::vector<Microbatch> iteration(std::size_t index) override {
    if (index < next_) {
      open();
    }
    for (; next_ < index; ++next_) {
      take(*packer_, options_.microbatches);
    }
    ++next_;
    return take(*packer_, options_.microbatches);
  }

  [[nodiscard]] PackingStats stats() const override { return packer_->stats(); }

 private:
  void open() {
    packer_ = make_packer(options_, options_.seed,
                          open_trace_file(path_, options_.seed, options_.first_pass));
    next_ = 0;
  }

  fs::path path_;
  WorkloadOptions options_;
  std::unique_ptr<Packer> packer_;
  std::size_t next_ = 0;
};

template <ImageDraw Draw>
std::unique_ptr<Workload> open_images(const std::string& name, const WorkloadOptions& options,
                                      double mean) {
  return std::make_unique<ImageCountWorkload>(name, options, Draw, mean);
}

template <SampleDraw Draw>
std::unique_ptr<Workload> open_drawn(const std::string& name, const WorkloadOptions& options,
                                     double /*mean*/) {
  return std::make_unique<DrawnWorkload>(name, options, Draw);
}

std::unique_ptr<Workload> open_shipped(const std::string& name, const WorkloadOptions& options,
                                       double /*mean*/) {
  return std::make_unique<FileWorkload>(name, config_folder() / "traces" / (name + ".jsonl"),
                                        options);
}

/// The MEAN of "NAME:MEAN".
double parse_mean(const std::string& trace, std::string_view text) {
  double mean = 0.0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), mean);
  const bool allowed = mean >= 0.0 && mean <= kMostImages;  // refuses NaN
  if (code != std::errc{} || end != text.data() + text.size() || !allowed) {
    fail_input(
        "trace \"" + trace + "\"",
        fmt::format("\"{}\" is no mean number of images; allowed: 0 to {}", text, kMostImages));
  }
  return mean;
}

bool looks_like_path(const std::string& trace) {
  return trace.find('/') != std::string::npos || trace.ends_with(".jsonl") || fs::exists(trace);
}

void check_options(const WorkloadOptions& options) {
  check_packing(options.packing);
  static_cast<void>(packer_for(options.feeds));
  static_cast<void>(TokenRule(options.tokens));
  if (options.microbatches < 1 || options.microbatches > kMostMicrobatches) {
    fail_input("microbatches",
               fmt::format("{} is not allowed: 1 to {}", options.microbatches, kMostMicrobatches));
  }
}

}  // namespace

std::span<const TraceInfo> all_traces() {
  static constexpr std::array<TraceInfo, 6> traces{{
      {.name = "quickstart",
       .summary = "1,500 generated web documents with images, a file in configs/traces",
       .source = "generated: the documents of obelics-like with seed 1",
       .open = open_shipped},
      {.name = "dip-images",
       .summary = "images per microbatch in two waves of 20 iterations, up to 32",
       .source = "DIP (arXiv 2504.14145): the dynamic workload trace",
       .open = open_images<draw_dip_images>},
      {.name = "steady-images",
       .summary = "images per microbatch within 2 of a mean",
       .source = "synthetic, uniform",
       .mean = 10.0,
       .open = open_images<draw_steady_images>},
      {.name = "gamma-images",
       .summary = "images per microbatch spread widely around a mean",
       .source = "synthetic, gamma of shape 2",
       .mean = 10.0,
       .open = open_images<draw_gamma_images>},
      {.name = "obelics-like",
       .summary = "web documents of 2.5 images and 815 text tokens in the mean, packed",
       .source = "means: OBELICS dataset card; spread: chosen",
       .open = open_drawn<draw_web_document>},
      {.name = "t2v-clips",
       .summary = "captioned clips, the share of long ones in waves of 20 iterations",
       .source = "ShareGPT4Video card, InternVid README, MMTrail rows; waves: after DIP's",
       .open = open_drawn<draw_clip>},
  }};
  return traces;
}

std::unique_ptr<Workload> open_workload(const std::string& trace, const WorkloadOptions& options) {
  check_options(options);
  const std::size_t colon = trace.find(':');
  const std::string name = trace.substr(0, colon);
  std::vector<std::string_view> names;
  for (const TraceInfo& info : all_traces()) {
    names.push_back(info.name);
    if (info.name != name) {
      continue;
    }
    if (colon == std::string::npos) {
      return info.open(trace, options, info.mean);
    }
    if (info.mean == 0.0) {
      fail_input("trace \"" + trace + "\"", fmt::format(R"("{}" takes no ":MEAN")", name));
    }
    return info.open(trace, options, parse_mean(trace, std::string_view(trace).substr(colon + 1)));
  }
  if (!looks_like_path(trace)) {
    fail_input("trace", unknown_name("trace", trace, names) + ", or the path of a .jsonl file");
  }
  return std::make_unique<FileWorkload>(trace, trace, options);
}

}  // namespace dipsim
