// SPDX-License-Identifier: Apache-2.0
#include "traces/reader.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/json.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace dipsim {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMaxTokens = 1'000'000'000;
constexpr std::int64_t kMaxCount = 100'000;  // images or videos of one sample
constexpr std::int64_t kMaxSide = 100'000;   // pixels, as in models/token_rules.hpp
constexpr double kMaxSampleSeconds = 1e6;
constexpr double kMinSeconds = 1e-3;
constexpr double kMaxFps = 1e4;

/// Keys of the format that carry no load of their own.
constexpr std::array<std::string_view, 5> kUnusedCounts{"target_tokens", "aux_text_tokens",
                                                        "num_events", "num_labels", "turns"};
constexpr std::array<std::string_view, 2> kUnusedLists{"captions_tokens", "page_text_tokens"};

std::int32_t count_of(const JsonValue& value, std::int64_t low, std::int64_t high) {
  return static_cast<std::int32_t>(value.integer(low, high));
}

void check_unused(JsonObject& row) {
  for (const std::string_view key : kUnusedCounts) {
    if (const auto value = row.find(key)) {
      static_cast<void>(value->integer(0, kMaxTokens));
    }
  }
  for (const std::string_view key : kUnusedLists) {
    if (const auto value = row.find(key)) {
      for (const JsonValue& item : value->items()) {
        static_cast<void>(item.integer(0, kMaxTokens));
      }
    }
  }
  if (const auto value = row.find("segments")) {  // runs of text tokens; -1 stands for an image
    for (const JsonValue& item : value->items()) {
      static_cast<void>(item.integer(-1, kMaxTokens));
    }
  }
  if (const auto value = row.find("doc")) {
    static_cast<void>(value->integer(0));
  }
  if (const auto value = row.find("subset")) {
    static_cast<void>(value->text());
  }
}

ImageSize image_size(const JsonValue& value) {
  const std::vector<JsonValue> sides = value.items();
  if (sides.size() != 2) {
    value.fail(fmt::format("{} numbers; an image is [width, height] in pixels", sides.size()));
  }
  return {.width = count_of(sides[0], 1, kMaxSide), .height = count_of(sides[1], 1, kMaxSide)};
}

VideoShape video_shape(const JsonValue& value) {
  JsonObject row = value.object();
  VideoShape video;
  if (const auto seconds = row.find("seconds")) {
    video.seconds = seconds->number(kMinSeconds, kMaxSampleSeconds);
  }
  if (const auto width = row.find("w")) {
    video.frame.width = count_of(*width, 1, kMaxSide);
  }
  if (const auto height = row.find("h")) {
    video.frame.height = count_of(*height, 1, kMaxSide);
  }
  if (const auto fps = row.find("fps")) {
    video.fps = fps->number(kMinSeconds, kMaxFps);
  }
  row.finish();
  return video;
}

/// The list under `key` and its count under `count_key`: either may be missing, both must agree.
template <class T>
std::vector<T> media(JsonObject& row, std::string_view key, std::string_view count_key,
                     T (*read)(const JsonValue&)) {
  std::vector<T> out;
  const auto list = row.find(key);
  if (list) {
    const std::vector<JsonValue> items = list->items();
    if (items.size() > static_cast<std::size_t>(kMaxCount)) {
      list->fail(fmt::format("{} entries; at most {} can be read", items.size(), kMaxCount));
    }
    out.reserve(items.size());
    for (const JsonValue& item : items) {
      out.push_back(read(item));
    }
  }
  if (const auto count = row.find(count_key)) {
    const auto number = static_cast<std::size_t>(count->integer(0, kMaxCount));
    if (list && number != out.size()) {
      count->fail(fmt::format("{} here, but {} entries under \"{}\"", number, out.size(), key));
    }
    out.resize(number);
  }
  return out;
}

Sample read_sample(const JsonValue& value) {
  JsonObject row = value.object();
  Sample sample;
  static_cast<void>(row.at("id").integer(0));
  if (const auto tokens = row.find("text_tokens")) {
    sample.text_tokens = count_of(*tokens, 0, kMaxTokens);
  }
  sample.images = media<ImageSize>(row, "images", "num_images", image_size);
  sample.videos = media<VideoShape>(row, "videos", "num_videos", video_shape);
  if (const auto seconds = row.find("audio_seconds")) {
    sample.audio_seconds = seconds->number(0.0, kMaxSampleSeconds);
  }
  check_unused(row);
  row.finish();
  return sample;
}

/// The JSON of one line. JsonDocument counts lines within its text, so malformed JSON is in its
/// line 1: name the line of the file instead.
JsonDocument parse_line(std::string_view text, const std::string& place) {
  try {
    return {text, place};
  } catch (const Error& error) {
    constexpr std::string_view within_text = ": line 1, column ";
    const std::size_t at = error.where().rfind(within_text);
    if (at == std::string::npos) {
      throw;
    }
    fail_input(fmt::format("{}: column {}", place, error.where().substr(at + within_text.size())),
               error.message());
  }
}

}  // namespace

TraceReader::TraceReader(fs::path path) : path_(std::move(path)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (!fs::exists(status)) {
    fail_input(path_.string(), "no such file");
  }
  if (!fs::is_regular_file(status)) {
    fail_input(path_.string(), "not a regular file");
  }
  in_.open(path_, std::ios::binary);
  if (!in_) {
    fail_input(path_.string(), "can't be read");
  }
  buffer_.resize(kMaxLineBytes + 1);  // getline ends what it has read with a zero
}

void TraceReader::seek(std::uint64_t offset, std::int64_t line) {
  in_.clear();
  in_.seekg(static_cast<std::streamoff>(offset));
  next_offset_ = offset;
  next_line_ = line;
}

bool TraceReader::next(Sample& sample) {
  for (;;) {
    in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const auto taken = static_cast<std::size_t>(in_.gcount());
    const std::string place = fmt::format("{}:{}", path_.string(), next_line_);
    if (in_.bad()) {
      fail_input(place, "can't be read any further");
    }
    if (in_.fail() && taken > 0) {  // getline stopped because the buffer is full
      fail_input(place, fmt::format("a line of more than {} bytes; one sample per line is needed",
                                    kMaxLineBytes));
    }
    if (taken == 0) {
      return false;
    }
    offset_ = next_offset_;
    line_ = next_line_;
    next_offset_ += taken;
    ++next_line_;
    const std::size_t length = in_.eof() ? taken : taken - 1;  // gcount counts the line's end
    const std::string_view text(buffer_.data(), length);
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const JsonDocument document = parse_line(text, place);
    sample = read_sample(document.root());
    return true;
  }
}

namespace {

struct LineStart {
  std::uint64_t offset = 0;
  std::int64_t line = 0;
};

class TraceFileSource final : public SampleSource {
 public:
  TraceFileSource(const fs::path& path, std::uint64_t seed, FirstPass first_pass)
      : path_(path.string()), reader_(path), seed_(seed) {
    Sample first;
    if (!reader_.next(first)) {
      fail_input(path_, "empty; a trace has one JSON object per line");
    }
    reader_.seek(0, 1);
    if (first_pass == FirstPass::Shuffled) {
      shuffle_pass();
    }
  }

  Sample next() override {
    Sample sample;
    if (order_.empty()) {
      if (reader_.next(sample)) {
        return sample;
      }
      begin_anew();
    } else if (position_ == order_.size()) {
      begin_anew();
    }
    const LineStart& start = order_[position_++];
    reader_.seek(start.offset, start.line);
    if (!reader_.next(sample)) {
      fail_input(path_, "became shorter while it was read");
    }
    return sample;
  }

  [[nodiscard]] std::int64_t wraps() const override { return wraps_; }

 private:
  void begin_anew() {
    ++wraps_;
    shuffle_pass();
  }

  /// Depends on seed and pass alone, not on the passes before.
  void shuffle_pass() {
    if (order_.empty()) {
      reader_.seek(0, 1);
      for (Sample sample; reader_.next(sample);) {
        order_.push_back({reader_.offset(), reader_.line()});
      }
    }
    std::ranges::sort(order_, {}, &LineStart::offset);
    RandomStream random(seed_, "trace order", static_cast<std::uint64_t>(wraps_));
    random.shuffle(std::span(order_));
    position_ = 0;
  }

  std::string path_;
  TraceReader reader_;
  std::uint64_t seed_;
  std::vector<LineStart> order_;  ///< of this pass; empty while the first goes through the file
  std::size_t position_ = 0;
  std::int64_t wraps_ = 0;
};

/// The list of known shapes, or only their number where nothing is known of any.
template <class T, class Known, class Text>
std::string media_text(std::string_view key, const std::vector<T>& items, Known known, Text text) {
  if (items.empty()) {
    return "";
  }
  if (std::ranges::none_of(items, known)) {
    return fmt::format(",\"num_{}\":{}", key, items.size());
  }
  std::string out;
  for (const T& item : items) {
    out += (out.empty() ? "" : ",") + text(item);
  }
  return fmt::format(R"(,"{}":[{}])", key, out);
}

std::string image_text(const ImageSize& image) {
  if (!image.known()) {
    fail_input("trace",
               "the size of some images of a sample is known and of others not: "
               "the format has no such row");
  }
  return fmt::format("[{},{}]", image.width, image.height);
}

std::string video_text(const VideoShape& video) {
  std::string out;
  const auto add = [&](std::string_view key, double value) {
    if (value > 0.0) {
      out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", key, shortest(value));
    }
  };
  add("seconds", video.seconds);
  add("w", video.frame.width);
  add("h", video.frame.height);
  add("fps", video.fps);
  return "{" + out + "}";
}

std::string line_of(const Sample& sample, std::size_t id) {
  std::string out = fmt::format(R"({{"id":{},"text_tokens":{})", id, sample.text_tokens);
  out += media_text("images", sample.images, &ImageSize::known, image_text);
  out += media_text(
      "videos", sample.videos, [](const VideoShape& v) { return v != VideoShape{}; }, video_text);
  if (sample.audio_seconds > 0.0) {
    out += ",\"audio_seconds\":" + shortest(sample.audio_seconds);
  }
  return out + "}\n";
}

}  // namespace

std::unique_ptr<SampleSource> open_trace_file(const fs::path& path, std::uint64_t seed,
                                              FirstPass first_pass) {
  return std::make_unique<TraceFileSource>(path, seed, first_pass);
}

void write_trace(const fs::path& path, std::span<const Sample> samples) {
  std::string text;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    text += line_of(samples[i], i);
  }
  write_file(path, text);
}

}  // namespace dipsim
