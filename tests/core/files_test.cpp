// SPDX-License-Identifier: Apache-2.0
#include "sim/core/files.hpp"

#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dipsim {
namespace {

namespace fs = std::filesystem;
using test::error_of;

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator{});
}

TEST_CASE("a written file reads back byte for byte, and nothing else is left") {
  const test::TemporaryFolder folder;
  const std::string content("line\r\n\0tail\xff", 12);
  write_file(folder.path() / "a.bin", content);
  CHECK(read_file(folder.path() / "a.bin") == content);
  write_file(folder.path() / "a.bin", "");
  CHECK(read_file(folder.path() / "a.bin").empty());
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("writing makes the missing parent folders") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "x" / "y" / "a.txt", "1");
  CHECK(read_file(folder.path() / "x" / "y" / "a.txt") == "1");
}

TEST_CASE("a file is replaced, not rewritten: who has it open still reads the old one") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.txt";
  write_file(path, "old");
  fs::create_hard_link(path, folder.path() / "still_old");
  write_file(path, "new");
  CHECK(read_file(path) == "new");
  CHECK(read_file(folder.path() / "still_old") == "old");
}

TEST_CASE("a file that can't be written is an error that names it and leaves nothing behind") {
  const test::TemporaryFolder folder;
  fs::create_directory(folder.path() / "taken");
  const Error onto_folder = error_of([&] { write_file(folder.path() / "taken", "1"); });
  CHECK(onto_folder.kind() == ErrorKind::Input);
  CHECK(onto_folder.where() == (folder.path() / "taken").string());
  CHECK(entries(folder.path()) == 1);

  write_file(folder.path() / "file", "1");
  const Error below_file = error_of([&] { write_file(folder.path() / "file" / "a", "1"); });
  CHECK(below_file.kind() == ErrorKind::Environment);
  CHECK(entries(folder.path()) == 2);
}

TEST_CASE("a target that is no regular file, as /dev/stdout is, is written, not replaced") {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write_file(pipe, "through");
  CHECK(fs::is_fifo(pipe));
  std::array<char, 16> received{};
  CHECK(read(reader, received.data(), received.size()) == 7);
  CHECK(std::string(received.data()) == "through");
  close(reader);
}

TEST_CASE("reading what is no readable regular file is an input error that names it") {
  const test::TemporaryFolder folder;
  const Error missing = error_of([&] { read_file(folder.path() / "none"); });
  CHECK(missing.kind() == ErrorKind::Input);
  CHECK(missing.where() == (folder.path() / "none").string());
  CHECK(error_of([&] { read_file(folder.path()); }).kind() == ErrorKind::Input);
  CHECK(error_of([&] { read_file("/dev/null"); }).kind() == ErrorKind::Input);
}

TEST_CASE("a file is read up to the limit and refused one byte above it") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "a", "12345");
  CHECK(read_file(folder.path() / "a", 5) == "12345");
  const Error error = error_of([&] { read_file(folder.path() / "a", 4); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.message().find('5') != std::string::npos);
  CHECK(error.message().find('4') != std::string::npos);
}

TEST_CASE("a staged folder appears with all its files on commit, not before") {
  const test::TemporaryFolder folder;
  const fs::path out = folder.path() / "deep" / "out";
  {
    StagedFolder staged(out);
    staged.add("a.txt", "1");
    staged.add("b.txt", "2");
    CHECK_FALSE(fs::exists(out));
    staged.commit();
    CHECK(read_file(out / "a.txt") == "1");
  }
  CHECK(read_file(out / "b.txt") == "2");
  CHECK(entries(out) == 2);
  CHECK(entries(folder.path() / "deep") == 1);
}

TEST_CASE("without commit a staged folder leaves nothing behind") {
  const test::TemporaryFolder folder;
  {
    const StagedFolder staged(folder.path() / "out");
    staged.add("a.txt", "1");
  }
  CHECK(entries(folder.path()) == 0);
  {
    const StagedFolder staged(folder.path() / "new" / "parents" / "out");
    staged.add("a.txt", "1");
  }
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("without commit an existing folder stays as it was") {
  const test::TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  write_file(out / "a.txt", "old");
  {
    const StagedFolder staged(out);
    staged.add("a.txt", "new");
    staged.add("b.txt", "new");
  }
  CHECK(read_file(out / "a.txt") == "old");
  CHECK(entries(out) == 1);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("commit into an existing folder replaces files of the same name and keeps the others") {
  const test::TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  write_file(out / "a.txt", "old");
  write_file(out / "mine.txt", "kept");
  {
    StagedFolder staged(out);
    staged.add("a.txt", "new");
    staged.commit();
  }
  CHECK(read_file(out / "a.txt") == "new");
  CHECK(read_file(out / "mine.txt") == "kept");
  CHECK(entries(out) == 2);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a trailing slash names the same folder") {
  const test::TemporaryFolder folder;
  {
    StagedFolder staged(folder.path() / "out" / "");
    staged.add("a.txt", "1");
    staged.commit();
  }
  CHECK(read_file(folder.path() / "out" / "a.txt") == "1");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a staged folder on an existing file is an input error, found before any work is done") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "out", "a file");
  const Error error = error_of([&] { const StagedFolder staged(folder.path() / "out"); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == (folder.path() / "out").string());
  CHECK(read_file(folder.path() / "out") == "a file");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a staged folder that can't be made is an environment error") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "file", "1");
  const auto kind_of = [](const fs::path& target) {
    return error_of([&] { const StagedFolder staged(target); }).kind();
  };
  CHECK(kind_of(folder.path() / "file" / "out") == ErrorKind::Environment);
  CHECK(kind_of(folder.path() / std::string(300, 'x')) == ErrorKind::Environment);
}

TEST_CASE("a staged folder can be committed into another file system") {
  // As a volume of a container is: the folder itself is a mount point.
  const fs::path shm = "/dev/shm";
  struct stat root{};
  struct stat mounted{};
  if (stat("/dev", &root) != 0 || stat(shm.c_str(), &mounted) != 0 ||
      root.st_dev == mounted.st_dev || access(shm.c_str(), W_OK) != 0) {
    test::report_skipped("/dev/shm is no writable mount point here");
    return;
  }
  const std::string name = "dipsim-test-" + std::to_string(getpid()) + ".txt";
  {
    StagedFolder staged(shm);
    staged.add(name, "1");
    CHECK_NOTHROW(staged.commit());
  }
  CHECK(fs::exists(shm / name));
  fs::remove(shm / name);
}

TEST_CASE("the configs folder is the one that the environment names, else one that exists") {
  const char* before = std::getenv("DIPSIM_CONFIGS");  // NOLINT(concurrency-mt-unsafe)
  const std::string kept = before == nullptr ? "" : before;
  const test::TemporaryFolder own;
  setenv("DIPSIM_CONFIGS", own.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(config_folder() == own.path());
  setenv("DIPSIM_CONFIGS", "/no/such/folder", 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(test::error_of([] { static_cast<void>(config_folder()); }).kind() ==
        ErrorKind::Environment);
  unsetenv("DIPSIM_CONFIGS");  // NOLINT(concurrency-mt-unsafe)
  CHECK(fs::is_directory(config_folder()));
  if (before != nullptr) {
    setenv("DIPSIM_CONFIGS", kept.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace
}  // namespace dipsim
