// SPDX-License-Identifier: Apache-2.0
// Statements about real folders: every flipped byte is found and located, and so is whatever was added, taken
// away or put in the place of a file.
#include "runner/attest/statement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "tests/support/process.h"

namespace muster::attest {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kFlipsOfLargeFile = 10'000;
constexpr size_t kFlipsOfLargestFile = 300;

class SignedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.write("record.json", std::string(300, 'r') + "\n");
    dir_.write("artifacts/a:b/data.bin", std::string("\0\xff\x80 binary", 10));
    dir_.write("empty", "");
    dir_.write("junit.xml", randomBytes(20'000));
    dir_.write("report.html", randomBytes(200'000));
    const auto list = folder().list();
    ASSERT_TRUE(list.ok());
    auto made = statementOf(folder(), *list, Json::array());
    ASSERT_TRUE(made.ok()) << made.error().text();
    auto read = parseStatement(statementText(*made));
    ASSERT_TRUE(read.ok()) << read.error().text();
    statement_ = *std::move(read);
  }

  Folder folder() { return std::move(Folder::open(dir_.path())).value(); }
  std::vector<std::string> differences() {
    const Folder now = folder();
    return fileDifferences(statement_, now, *now.list());
  }
  std::string randomBytes(size_t count) {
    std::string bytes(count, '\0');
    for (char& c : bytes) c = static_cast<char>(random_());
    return bytes;
  }
  /// Flips a byte in place, looks at this file, and restores it.
  void expectLocated(const Folder& now, const SignedFile& signedFile, size_t at) {
    const std::string& name = signedFile.name;
    const int file = open((dir_.path() / name).c_str(), O_RDWR);
    unsigned char byte = 0;
    ASSERT_EQ(pread(file, &byte, 1, static_cast<off_t>(at)), 1);
    const auto flipped = static_cast<unsigned char>(byte ^ (1 + random_() % 255));
    ASSERT_EQ(pwrite(file, &flipped, 1, static_cast<off_t>(at)), 1);
    EXPECT_THAT(
        fileDifferences({{signedFile}, {}}, now, {}),
        ElementsAre(fmt::format("{}: byte {} is 0x{:02x}, signed was 0x{:02x}", name, at, flipped, byte)));
    ASSERT_EQ(pwrite(file, &byte, 1, static_cast<off_t>(at)), 1);
    close(file);
  }

  testing::TempDir dir_;
  std::mt19937 random_{11};
  Statement statement_;
};

TEST_F(SignedFolder, LocatesEveryFlippedByte) {
  EXPECT_THAT(differences(), IsEmpty());
  const Folder now = folder();
  for (const SignedFile& file : statement_.files) {
    const uint64_t bytes = file.sums.blocks.bytes;
    const size_t flips = bytes > 100'000 ? kFlipsOfLargestFile : kFlipsOfLargeFile;
    if (bytes <= 1000)
      for (size_t at = 0; at < bytes; ++at) expectLocated(now, file, at);
    else
      for (size_t i = 0; i < flips; ++i) expectLocated(now, file, random_() % bytes);
  }
  EXPECT_THAT(differences(), IsEmpty());
}

TEST_F(SignedFolder, NamesWhatIsMissingAddedOrOfAnotherSize) {
  fs::remove(dir_.path() / "empty");
  dir_.write("artifacts/more", "");
  dir_.write("record.json", std::string(300, 'r') + "\nmore");
  EXPECT_THAT(
      differences(),
      ElementsAre(
          HasSubstr("empty: is missing"),
          HasSubstr("record.json: is longer than the 301 bytes that were signed; it differs in bytes 256 to"),
          HasSubstr("artifacts/more: is not signed: it was added")));
  dir_.write("record.json", "short");
  EXPECT_THAT(differences()[1], HasSubstr("is 5 bytes, signed were 301; it differs in bytes 0 to 300"));
}

TEST_F(SignedFolder, FollowsNoLink) {
  fs::rename(dir_.path() / "record.json", dir_.path() / "kept");
  fs::create_symlink("kept", dir_.path() / "record.json");
  EXPECT_THAT(differences()[0], HasSubstr("record.json: cannot read it"));
  EXPECT_THAT(folder().list()->strange, ElementsAre("record.json is a symbolic link"));
  const testing::TempDir elsewhere;
  elsewhere.write("a:b/data.bin", std::string("\0\xff\x80 binary", 10));
  fs::remove_all(dir_.path() / "artifacts");
  fs::create_symlink(elsewhere.path(), dir_.path() / "artifacts");
  EXPECT_THAT(differences()[0], HasSubstr("artifacts/a:b/data.bin: cannot read it"));
}

TEST_F(SignedFolder, WaitsForNoPipeAndReadsNoEndlessFile) {
  fs::remove(dir_.path() / "empty");
  ASSERT_EQ(mkfifo((dir_.path() / "empty").c_str(), 0600), 0);
  fs::resize_file(dir_.path() / "report.html", 1ull << 42);  // four terabytes of nothing
  EXPECT_THAT(differences(), ElementsAre(HasSubstr("empty: is a pipe; expected a regular file"),
                                         HasSubstr("report.html: has 4398046511104 bytes, of which")));
}

TEST_F(SignedFolder, ReadsNoHolesThatWereSigned) {
  SignedFile& largest = statement_.files.back();
  for (SignedFile& file : statement_.files)
    if (file.name == "report.html") largest = file;
  largest.sums.blocks = {1ull << 42, 1ull << 42, {0}};
  fs::resize_file(dir_.path() / "report.html", 1ull << 42);
  EXPECT_THAT(fileDifferences({{largest}, {}}, folder(), {}), ElementsAre(HasSubstr("so sparse")));
}

TEST_F(SignedFolder, TellsThatItChangesMeanwhile) {
  const Folder now = folder();
  const FolderList list = *now.list();
  EXPECT_EQ(now.changedSince(list), "");
  std::ofstream(dir_.path() / "empty") << "no more";
  EXPECT_EQ(now.changedSince(list), "empty");
}

/// Its owner puts another folder there while it is judged, and the signed one back before the files are
/// looked at again: no file has changed.
TEST_F(SignedFolder, TellsThatAFolderWasExchangedAndPutBack) {
  const testing::TempDir other;
  other.write("a:b/data.bin", "forged");
  const auto exchange = [&] {
    return renameat2(AT_FDCWD, (dir_.path() / "artifacts").c_str(), AT_FDCWD, other.path().c_str(),
                     RENAME_EXCHANGE);
  };
  usleep(20'000);  // times of files go in steps of some milliseconds
  const Folder now = folder();
  const FolderList list = *now.list();
  ASSERT_EQ(exchange(), 0);
  ASSERT_EQ(exchange(), 0);
  EXPECT_EQ(now.changedSince(list), "the directory");
  // Whatever a file system keeps of it: what was read must be what was hashed.
  ASSERT_EQ(exchange(), 0);
  const Folder again = folder();
  ASSERT_EQ(*again.read("artifacts/a:b/data.bin", 100), "forged");
  EXPECT_EQ(again.readSha256("artifacts/a:b/data.bin"), sha256Hex("forged"));
  ASSERT_EQ(exchange(), 0);
  EXPECT_THAT(fileDifferences(statement_, again, *again.list()), IsEmpty());
  EXPECT_EQ(again.readSha256("artifacts/a:b/data.bin"), "");
  EXPECT_EQ(again.changedSince(*again.list()), "artifacts/a:b/data.bin");
}

/// What another process judged must be what is hashed here.
TEST_F(SignedFolder, TellsThatAnotherProcessReadOtherBytes) {
  const std::string name = "artifacts/a:b/data.bin";
  const Folder there = folder(), here = folder();
  ASSERT_TRUE(there.read(name, 100).ok());
  const auto reads = there.takeReads();
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_THAT(there.takeReads(), IsEmpty());
  here.note(name, reads.at(name));
  EXPECT_THAT(fileDifferences(statement_, here, *here.list()), IsEmpty());
  EXPECT_EQ(here.changedSince(*here.list()), "");
  here.note(name, sha256Hex("forged"));
  EXPECT_EQ(here.changedSince(*here.list()), name);
}

TEST_F(SignedFolder, LeavesOutWorkingFilesOfARunAlone) {
  for (const char* name :
       {".lock", "requests/a.json", "output/b.txt", "run/journal.jsonl", "run/.lock", "run/requests/a"})
    dir_.write(name, "");
  for (const char* name : {"run.key", "may/slurm.json", "may/run.key", "may/keys/n1", "may/.lock",
                           "may/n/run.key", "june/k8s.json", "june/run.key", "june/keys/n1"})
    dir_.write(name, "");
  const FolderList list = *folder().list();
  EXPECT_EQ(list.working.size(), 6U) << "those beside a journal or what was submitted";
  EXPECT_THAT(
      differences(),
      ElementsAre(HasSubstr(".lock"), HasSubstr("june/k8s.json"), HasSubstr("june/keys/n1"),
                  HasSubstr("may/n/run.key"), HasSubstr("may/slurm.json"), HasSubstr("output/b.txt"),
                  HasSubstr("requests/a.json"), HasSubstr("run.key"), HasSubstr("run/journal.jsonl")));
}

/// The statement's text with one part replaced, and why it is refused.
std::string refusal(const Statement& statement, const std::string& from, const std::string& to) {
  std::string text = statementText(statement);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const auto read = parseStatement(text.replace(at, from.size(), to));
  return read.ok() ? "" : read.error().text();
}

TEST_F(SignedFolder, RefusesStatementsOfOtherTypesAndNamesThatLeaveIt) {
  EXPECT_THAT(refusal(statement_, "Statement/v1", "Statement/v0.1"), HasSubstr("_type is"));
  EXPECT_THAT(refusal(statement_, "urn:muster:acceptance:v1", "urn:other"), HasSubstr("predicateType is"));
  for (const char* name :
       {"../record.json", "/etc/passwd", "a/../../b", "", ".", "a//b", "signature.dsse.json"})
    EXPECT_THAT(refusal(statement_, "\"empty\"", "\"" + std::string(name) + "\""), HasSubstr("name")) << name;
  EXPECT_THAT(refusal(statement_, "\"empty\"", "\"record.json\""), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(statement_, "\"_type\"", "\"_type\":\"x\",\"_type\""), HasSubstr("defined twice"));
  EXPECT_THAT(refusal(statement_, "{\"_type\"", " {\"_type\""), HasSubstr("byte 0"));
  EXPECT_THAT(refusal(statement_, "\"bytes\":0", "\"bytes\":9"), HasSubstr("block sums"));
  EXPECT_THAT(refusal(statement_, "\"block\":256", "\"block\":0"), HasSubstr("block sums"));
}

}  // namespace
}  // namespace muster::attest
