// SPDX-License-Identifier: Apache-2.0
// The neutral trace format: JSON Lines, one sample per line, numbers only.
#pragma once

#include "traces/sample.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

namespace dipsim {

/// Longest line that is read: a sample of 10^5 images.
inline constexpr std::size_t kMaxLineBytes = std::size_t{2} << 20U;

/// Reads a trace from front to back in constant memory.
///
/// Each line is an object. `id` (row of the source) is needed; the rest is optional: `text_tokens`;
/// `images` [[width, height], …] in pixels, or only `num_images`; `videos` [{seconds, w, h, fps},
/// …] with unknown fields left out, or only `num_videos`; `audio_seconds`. Checked and not used:
/// `target_tokens`, `aux_text_tokens`, `captions_tokens`, `segments`, `page_text_tokens`,
/// `num_events`, `num_labels`, `turns`, `doc`, `subset`. Blank lines are skipped.
class TraceReader {
 public:
  /// Throws Input when the file is missing, is no regular file or can't be read.
  explicit TraceReader(std::filesystem::path path);

  /// Reads the next sample; false at the end of the file. Throws Input naming file, line and key on
  /// anything that breaks the format, and on a line longer than kMaxLineBytes.
  bool next(Sample& sample);

  /// Where the sample that was read last begins: for seek().
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Continues at a line that begins at this offset and has this number.
  void seek(std::uint64_t offset, std::int64_t line);

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::string buffer_;
  std::uint64_t next_offset_ = 0;
  std::uint64_t offset_ = 0;
  std::int64_t next_line_ = 1;
  std::int64_t line_ = 0;
};

/// Order in which the first pass takes the samples of a trace file.
enum class FirstPass : std::uint8_t {
  FileOrder,  ///< constant memory, however long the file
  Shuffled,   ///< by seed, like the later passes: needs 16 bytes per sample
};

/// Samples of a trace file, again and again: pass n > 0 takes them in an order drawn from (seed,
/// n). Throws Input on an empty file, else as TraceReader does.
std::unique_ptr<SampleSource> open_trace_file(const std::filesystem::path& path, std::uint64_t seed,
                                              FirstPass first_pass = FirstPass::FileOrder);

/// Writes samples in the neutral format; ids count from 0. Throws Environment when the disk
/// refuses.
void write_trace(const std::filesystem::path& path, std::span<const Sample> samples);

}  // namespace dipsim
