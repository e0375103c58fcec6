// SPDX-License-Identifier: Apache-2.0
#include "traces/reader.hpp"

#include "sim/core/error.hpp"
#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using dipsim::Sample;

/// A trace file that lives as long as the object.
class TraceFile {
 public:
  explicit TraceFile(std::string_view text) : path_(folder_.path() / "t.jsonl") {
    std::ofstream(path_, std::ios::binary) << text;
  }

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  dipsim::test::TemporaryFolder folder_;
  fs::path path_;
};

std::vector<Sample> read_all(const fs::path& path) {
  dipsim::TraceReader reader(path);
  std::vector<Sample> out;
  for (Sample sample; reader.next(sample);) {
    out.push_back(sample);
  }
  return out;
}

/// "where | message" of the Input error that reading this text must give, without the folder.
std::string complaint(std::string_view text) {
  const TraceFile file(text);
  try {
    read_all(file.path());
  } catch (const dipsim::Error& error) {
    CHECK(error.kind() == dipsim::ErrorKind::Input);
    const std::string where = error.where();
    return where.substr(where.find("t.jsonl")) + " | " + error.message();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::int32_t> take_tokens(dipsim::SampleSource& source, int count) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(source.next().text_tokens);
  }
  return out;
}

std::string numbered_rows(int count) {
  std::ostringstream out;
  for (int i = 0; i < count; ++i) {
    out << "{\"id\":" << i << ",\"text_tokens\":" << i << "}\n";
  }
  return out.str();
}

/// Memory of this process that is in use now (proc(5), statm).
std::int64_t resident_bytes() {
  std::int64_t total = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("trace reader: every documented key is read, and what carries load arrives") {
  const TraceFile file(
      "{\"id\":0,\"text_tokens\":42,\"target_tokens\":3,\"aux_text_tokens\":9,"
      "\"captions_tokens\":[9,14],\"images\":[[640,427],[352,230]],\"num_images\":2,"
      "\"segments\":[29,-1,0],\"page_text_tokens\":[99,0],\"num_events\":3,\"num_labels\":2,"
      "\"subset\":\"train\",\"turns\":5,\"doc\":43}\n"
      "\n"
      "{\"id\":1,\"num_images\":3}\r\n"
      "{\"id\":2,\"videos\":[{\"seconds\":6.12,\"w\":1280,\"h\":720,\"fps\":23.976},{}],"
      "\"num_videos\":2,\"audio_seconds\":6.12}\n"
      "{\"id\":3,\"num_videos\":1}");
  const std::vector<Sample> samples = read_all(file.path());
  REQUIRE(samples.size() == 4);
  CHECK(samples[0] == Sample{42, {{640, 427}, {352, 230}}, {}, 0.0});
  CHECK(samples[1] == Sample{0, {{}, {}, {}}, {}, 0.0});
  CHECK(samples[2] == Sample{0, {}, {{6.12, {1280, 720}, 23.976}, {}}, 6.12});
  CHECK(samples[3] == Sample{0, {}, {{}}, 0.0});
}

TEST_CASE("trace reader: what breaks the format is named with file, line and key") {
  const std::string good = "{\"id\":0,\"text_tokens\":1}\n";
  const auto second = [&](std::string_view line) { return complaint(good + std::string(line)); };
  CHECK(second("{\"id\":1,\"text_tokens\":-1}") ==
        "t.jsonl:2: /text_tokens | -1 is not a whole number from 0 to 1000000000");
  CHECK(second("{\"id\":1,\"text_tokens\":1.5}").starts_with("t.jsonl:2: /text_tokens | 1.5"));
  CHECK(second("{\"id\":1,\"text_tokens\":\"7\"}").starts_with("t.jsonl:2: /text_tokens"));
  CHECK(second("{\"id\":1,\"text_tokens\":null}").starts_with("t.jsonl:2: /text_tokens"));
  CHECK(second("{\"id\":1,\"audio_seconds\":-0.5}").starts_with("t.jsonl:2: /audio_seconds"));
  CHECK(second("{\"id\":1,\"images\":[[640]]}").starts_with("t.jsonl:2: /images/0 | 1 numbers"));
  CHECK(second("{\"id\":1,\"images\":[[640,0]]}").starts_with("t.jsonl:2: /images/0/1 | 0"));
  CHECK(second("{\"id\":1,\"images\":[[640,480]],\"num_images\":2}")
            .starts_with("t.jsonl:2: /num_images | 2 here, but 1 entries"));
  CHECK(second("{\"id\":1,\"num_images\":100001}").starts_with("t.jsonl:2: /num_images"));
  CHECK(second("{\"id\":1,\"videos\":[{\"seconds\":0}]}")
            .starts_with("t.jsonl:2: /videos/0/seconds"));
  CHECK(
      second("{\"id\":1,\"videos\":[{\"length\":1}]}").starts_with("t.jsonl:2: /videos/0/length"));
  CHECK(second("{\"id\":1,\"segments\":[-2]}").starts_with("t.jsonl:2: /segments/0"));
  CHECK(second("{\"id\":1,\"subset\":3}").starts_with("t.jsonl:2: /subset"));
  CHECK(second("{\"id\":1,\"turns\":[]}").starts_with("t.jsonl:2: /turns"));
  CHECK(second("[1,2]").starts_with("t.jsonl:2: / |"));
  CHECK(contains(second("{\"text_tokens\":1}"), "key \"id\" is missing"));
  const std::string unknown = second("{\"id\":1,\"text_token\":1}");
  CHECK(unknown.starts_with("t.jsonl:2: /text_token |"));
  CHECK(contains(unknown, "did you mean \"text_tokens\"?"));
  const std::string duplicate = second("{\"id\":1,\"turns\":1,\"turns\":2}");
  CHECK(duplicate.starts_with("t.jsonl:2: / |"));
  CHECK(contains(duplicate, "duplicate key \"turns\""));
}

TEST_CASE("trace reader: numbers that JSON doesn't have, or that overflow, are refused") {
  CHECK(complaint("{\"id\":0,\"audio_seconds\":NaN}").starts_with("t.jsonl:1: column "));
  CHECK(complaint("{\"id\":0,\"audio_seconds\":Infinity}").starts_with("t.jsonl:1: column "));
  const std::string overflow = complaint("{\"id\":0,\"audio_seconds\":1e400}");
  CHECK(overflow.starts_with("t.jsonl:1: column "));
  CHECK(contains(overflow, "1e400"));
  CHECK(complaint("{\"id\":0,\"audio_seconds\":1e300}").starts_with("t.jsonl:1: /audio_seconds"));
  CHECK(complaint("{\"id\":99999999999999999999}").starts_with("t.jsonl:1: /id"));
}

TEST_CASE("trace reader: a truncated last line is refused, a missing last line end is not") {
  CHECK(complaint("{\"id\":0}\n{\"id\":1,\"text_tok").starts_with("t.jsonl:2: column 18 |"));
  CHECK(complaint("{\"id\":0}\n{\"id\":1}") == "no error");
}

TEST_CASE("trace reader: a line beyond the limit is refused, one at the limit is read") {
  const std::string head = "{\"id\":0,\"subset\":\"";
  const auto of_length = [&](std::size_t bytes) {
    return head + std::string(bytes - head.size() - 2, 'x') + "\"}";
  };
  CHECK(complaint(of_length(dipsim::kMaxLineBytes)) == "no error");
  CHECK(complaint(of_length(dipsim::kMaxLineBytes) + "\n{\"id\":1}\n") == "no error");
  const std::string message = complaint("{\"id\":0}\n" + of_length(dipsim::kMaxLineBytes + 1));
  CHECK(message.starts_with("t.jsonl:2 | a line of more than"));
}

TEST_CASE("trace reader: a folder and a missing file are Input errors") {
  const dipsim::test::TemporaryFolder folder;
  CHECK_THROWS_AS(dipsim::TraceReader{folder.path()}, dipsim::Error);
  CHECK_THROWS_AS(dipsim::TraceReader{folder.path() / "none.jsonl"}, dipsim::Error);
}

TEST_CASE("trace reader: a trace cut off inside a line is refused, between lines it is shorter") {
  const std::string text =
      "{\"id\":0,\"text_tokens\":12,\"images\":[[64,48]]}\n"
      "{\"id\":1,\"videos\":[{\"seconds\":1.5e1}],\"audio_seconds\":2}\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const TraceFile file(std::string_view(text).substr(0, length));
    CAPTURE(length);
    std::size_t samples = 0;
    bool refused = false;
    try {
      samples = read_all(file.path()).size();
    } catch (const dipsim::Error& error) {
      refused = error.kind() == dipsim::ErrorKind::Input;
    }
    const std::size_t first_line = text.find('\n');
    const bool whole_lines = length == 0 || length == first_line || length == first_line + 1 ||
                             length + 1 >= text.size();
    CHECK(refused == !whole_lines);
    CHECK(samples == (!whole_lines || length == 0 ? 0 : length + 1 >= text.size() ? 2 : 1));
  }
}

TEST_CASE("trace source: an empty file is an Input error") {
  for (const std::string_view text : {"", "\n\n  \n"}) {
    const TraceFile file(text);
    CHECK_THROWS_AS(dipsim::open_trace_file(file.path(), 1), dipsim::Error);
  }
}

TEST_CASE("trace source: the first pass is in file order, later ones are reshuffled and complete") {
  const TraceFile file(numbered_rows(50));
  const auto source = dipsim::open_trace_file(file.path(), 7);
  std::vector<std::vector<std::int32_t>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    passes.push_back(take_tokens(*source, 50));
    CHECK(source->wraps() == pass);
  }
  CHECK(std::ranges::is_sorted(passes[0]));
  CHECK(passes[1] != passes[0]);
  CHECK(passes[2] != passes[1]);
  for (std::vector<std::int32_t>& pass : passes) {
    std::ranges::sort(pass);
    CHECK(pass == passes[0]);
  }
}

TEST_CASE("trace source: equal seeds give equal orders, other seeds others") {
  const TraceFile file(numbered_rows(40));
  const auto order = [&](std::uint64_t seed, dipsim::FirstPass first) {
    return take_tokens(*dipsim::open_trace_file(file.path(), seed, first), 120);
  };
  using enum dipsim::FirstPass;
  CHECK(order(1, FileOrder) == order(1, FileOrder));
  CHECK(order(1, FileOrder) != order(2, FileOrder));
  CHECK(order(1, Shuffled) == order(1, Shuffled));
  CHECK(order(1, Shuffled) != order(2, Shuffled));
  // The order of a pass depends on seed and pass alone.
  const auto plain = order(1, FileOrder);
  const auto shuffled = order(1, Shuffled);
  CHECK(std::equal(plain.begin() + 40, plain.end(), shuffled.begin() + 40));
  CHECK_FALSE(std::ranges::is_sorted(std::vector(shuffled.begin(), shuffled.begin() + 40)));
}

TEST_CASE("trace source: an error after a wrap names the line, not the position in the order") {
  const TraceFile file("{\"id\":0}\n\n{\"id\":1,\"text_tokens\":5}\n");
  const auto source = dipsim::open_trace_file(file.path(), 1);
  take_tokens(*source, 4);
  std::ofstream(file.path()) << "{\"id\":0}\n\n{\"id\":x,\"text_tokens\":5}\n";
  try {
    take_tokens(*source, 4);
    FAIL("the file is broken");
  } catch (const dipsim::Error& error) {
    CHECK(contains(error.where(), "t.jsonl:3"));
  }
}

TEST_CASE("trace source: a long file is streamed without being kept") {
  constexpr int kRows = 200'000;
  const TraceFile file("");
  std::ofstream out(file.path());
  for (int i = 0; i < kRows; ++i) {
    out << "{\"id\":" << i << ",\"text_tokens\":" << i << "}\n";
  }
  out.close();
  const auto source = dipsim::open_trace_file(file.path(), 1);
  std::int64_t sum = source->next().text_tokens;
  const std::int64_t before = resident_bytes();
  std::int64_t most = before;
  for (int i = 1; i < kRows; ++i) {
    sum += source->next().text_tokens;
    most = i % 10'000 == 0 ? std::max(most, resident_bytes()) : most;
  }
  CHECK(sum == std::int64_t{kRows} * (kRows - 1) / 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep freed memory
  CHECK(most - before < 1'000'000);
#endif
}

TEST_CASE("write_trace: what is written is read back") {
  const std::vector<Sample> samples{
      {42, {{640, 427}, {352, 230}}, {}, 0.0},
      {0, {{}, {}}, {}, 10.25},
      {7, {}, {{6.12, {1280, 720}, 23.976}, {}, {3.0, {}, 0.0}}, 0.0},
      {1, {}, {{}, {}}, 0.0},
  };
  const dipsim::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "out.jsonl";
  dipsim::write_trace(path, samples);
  CHECK(read_all(path) == samples);
  const std::vector<Sample> mixed{{1, {{640, 427}, {}}, {}, 0.0}};
  CHECK_THROWS_AS(dipsim::write_trace(path, mixed), dipsim::Error);
}
