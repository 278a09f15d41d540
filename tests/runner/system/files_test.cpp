// SPDX-License-Identifier: Apache-2.0
// Reading and replacing files on real, full, read-only and odd file systems.
#include "runner/system/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/process.h"

namespace muster {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::readWhole;
using testing::TempDir;

size_t entriesOf(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ReadFile, ReturnsEveryByte) {
  const TempDir dir;
  const std::string content = std::string("a\0b\n", 4) + std::string(200'000, 'x');
  EXPECT_EQ(*readFile(dir.write("f", content)), content);
  EXPECT_EQ(*readFile(dir.write("empty", "")), "");
}

TEST(ReadFile, ReadsKernelFilesWhoseSizeIsWrong) {
  EXPECT_THAT(*readFile("/proc/self/status"), HasSubstr("Pid:"));
}

TEST(ReadFile, StopsAtTheLimit) {
  const TempDir dir;
  const auto file = dir.write("f", "12345");
  EXPECT_TRUE(readFile(file, 5).ok());
  EXPECT_THAT(readFile(file, 4).error().text(), HasSubstr("is larger than 4 B"));
  EXPECT_FALSE(readFile("/proc/self/status", 10).ok());
}

TEST(ReadFile, RefusesASparseGiantWithoutReadingIt) {
  const TempDir dir;
  const auto file = dir.write("giant", "");
  fs::resize_file(file, 1ull << 40);
  EXPECT_EQ(readFile(file).error().code, ErrorCode::kUsage);
}

TEST(ReadFile, SaysWhatIsInTheWay) {
  const TempDir dir;
  EXPECT_EQ(readFile(dir.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(
      readFile(dir.path() / "none").error().text(),
      HasSubstr((dir.path() / "none").string() + ": cannot read it: No such file or directory (ENOENT)"));
  EXPECT_THAT(readFile(dir.path()).error().text(), HasSubstr("is a folder; expected a regular file"));
  EXPECT_THAT(readFile("/dev/zero").error().text(), HasSubstr("is a device"));
  EXPECT_EQ(readFile(dir.write("f", "") / "below").error().code, ErrorCode::kNotFound);
}

TEST(ReadFile, DoesNotWaitForTheWriterOfAPipe) {
  const TempDir dir;
  const auto pipe = dir.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(readFile(pipe).error().text(), HasSubstr("is a pipe"));
  const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  (dir.path() / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(readFile(dir.path() / "socket").error().text(), HasSubstr("is a socket"));
}

TEST(ReadFileBelow, FollowsNoLinkOnTheWay) {
  const TempDir folder, elsewhere;
  folder.write("a/b/file", "own");
  elsewhere.write("b/file", "another's");
  EXPECT_EQ(*readFileBelow(folder.path(), "a/b/file", 10), "own");
  fs::create_symlink(elsewhere.path() / "b" / "file", folder.path() / "a" / "b" / "link");
  fs::create_symlink(elsewhere.path(), folder.path() / "way");
  for (const char* name : {"a/b/link", "way/b/file"}) {
    const auto read = readFileBelow(folder.path(), name, 10);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_EQ(read.error().code, ErrorCode::kUsage) << read.error().text();
  }
  for (const char* name : {"", "/", "../file", "a/../a/b/file", "a//b/file", "./a/b/file", "a/b/"})
    EXPECT_EQ(readFileBelow(folder.path(), name, 10).error().code, ErrorCode::kProtocol) << name;
  EXPECT_EQ(readFileBelow(folder.path(), "a/b/none", 10).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(readFileBelow(folder.path(), "a/b", 10).error().text(), HasSubstr("is a folder"));
  EXPECT_THAT(readFileBelow(folder.path(), "a/b/file", 2).error().text(), HasSubstr("is larger than"));
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNothingElse) {
  for (const Durable durable : {Durable::kNo, Durable::kYes}) {
    const TempDir dir;
    const auto file = dir.write("record.json", "old");
    fs::permissions(file, fs::perms::owner_all);
    ASSERT_TRUE(writeFileAtomically(file, "new", durable).ok());
    EXPECT_EQ(readWhole(file), "new");
    EXPECT_EQ(entriesOf(dir.path()), 1u);
    EXPECT_EQ(fs::status(file).permissions(), static_cast<fs::perms>(0644));
  }
}

TEST(WriteFileAtomically, LeavesTheModeToTheUmask) {
  TempDir dir;
  const auto modeUnder = [&](mode_t mask) {
    const mode_t before = umask(mask);
    const Status written = writeFileAtomically(dir.path() / "f", "x");
    umask(before);
    struct stat info {};
    EXPECT_TRUE(written.ok() && stat((dir.path() / "f").c_str(), &info) == 0);
    return info.st_mode & 07777;
  };
  EXPECT_EQ(modeUnder(022), 0644U);
  EXPECT_EQ(modeUnder(077), 0600U);
  EXPECT_EQ(modeUnder(027), 0640U);
}

TEST(WriteFileAtomically, WritesARelativeName) {
  const TempDir dir;
  const auto before = fs::current_path();
  fs::current_path(dir.path());
  EXPECT_TRUE(writeFileAtomically("plain", "x").ok());
  fs::current_path(before);
  EXPECT_EQ(readWhole(dir.path() / "plain"), "x");
}

TEST(WriteFileAtomically, ChangesNothingWhereItCannot) {
  const TempDir dir;
  fs::create_directory(dir.path() / "taken");
  const Status onFolder = writeFileAtomically(dir.path() / "taken", "x");
  EXPECT_THAT(onFolder.error().text(), HasSubstr("EISDIR"));
  EXPECT_THAT(onFolder.error().text(), HasSubstr("choose another name"));
  EXPECT_THAT(writeFileAtomically(dir.path() / "none" / "f", "x").error().text(),
              HasSubstr("create the directory first"));
  EXPECT_EQ(writeFileAtomically(dir.write("file", "x") / "f", "x").error().code, ErrorCode::kIo);
  EXPECT_EQ(entriesOf(dir.path()), 2u);
}

/// A file system of its own, for conditions that a folder cannot have.
class Mounted {
 public:
  explicit Mounted(const fs::path& at) : at_(at) {
    fs::create_directories(at);
    mounted_ = mount("tmpfs", at.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~Mounted() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  [[nodiscard]] bool ok() const { return mounted_; }
  bool makeReadOnly() {
    return mount("tmpfs", at_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k") == 0;
  }

 private:
  fs::path at_;
  bool mounted_ = false;
};

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheDiskIsFull) {
  const TempDir dir;
  const Mounted disk(dir.path() / "full");
  if (!disk.ok()) GTEST_SKIP() << "mounting a file system is not permitted here";
  const auto file = dir.write("full/record.json", "old");
  const Status status = writeFileAtomically(file, std::string(200'000, 'x'), Durable::kNo);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(),
              HasSubstr(file.string() + ": cannot write it: No space left on device (ENOSPC)"));
  EXPECT_THAT(status.error().text(), HasSubstr("free some space"));
  EXPECT_EQ(readWhole(file), "old");
  EXPECT_EQ(entriesOf(dir.path() / "full"), 1u);
}

TEST(WriteFileAtomically, KeepsTheOldFileOnAReadOnlyDisk) {
  const TempDir dir;
  Mounted disk(dir.path() / "readonly");
  if (!disk.ok()) GTEST_SKIP() << "mounting a file system is not permitted here";
  const auto file = dir.write("readonly/record.json", "old");
  ASSERT_TRUE(disk.makeReadOnly());
  EXPECT_THAT(writeFileAtomically(file, "new").error().text(), HasSubstr("EROFS"));
  EXPECT_EQ(readWhole(file), "old");
}

/// Root may write everywhere, so the attempt is made as nobody in a child. Exit code: the errno named in the
/// error.
int writeAsNobody(const fs::path& file) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
    const Status status = writeFileAtomically(file, "new");
    _exit(!status.ok() && status.error().message.find("EACCES") != std::string::npos ? EACCES : 98);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(WriteFileAtomically, KeepsTheOldFileInAFolderThatMayNotBeWritten) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  const TempDir dir;
  const auto file = dir.write("record.json", "old");
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  EXPECT_EQ(writeAsNobody(file), EACCES);
  EXPECT_EQ(readWhole(file), "old");
}

TEST(AppendAndSync, AddsToTheEndAndNamesTheFileOnFailure) {
  const TempDir dir;
  const auto file = dir.write("journal", "a\n");
  const Fd fd(open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  EXPECT_TRUE(appendAndSync(fd.get(), "b\n", file).ok());
  EXPECT_EQ(readWhole(file), "a\nb\n");
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_THAT(appendAndSync(full.get(), "b\n", "journal").error().text(),
              HasSubstr("journal: cannot write it: No space"));
  EXPECT_THAT(appendAndSync(-1, "b", "journal").error().text(), HasSubstr("EBADF"));
}

TEST(Fd, ClosesWhatItOwnsOnce) {
  int raw = -1;
  {
    Fd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = first.get();
    Fd second(std::move(first));
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_EQ(fcntl(raw, F_GETFD), -1);
}

TEST(Sha256, MatchesTheStandardsVectors) {
  EXPECT_EQ(sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(ErrnoText, NamesTheErrorForPeopleAndForSearch) {
  EXPECT_EQ(errnoText(ENOSPC), "No space left on device (ENOSPC)");
  EXPECT_EQ(errnoText(123456), "unknown error (errno 123456)");
}

TEST(ExecutableFolder, IsThatOfThisTest) {
  EXPECT_TRUE(fs::is_directory(*executableFolder()));
}

}  // namespace
}  // namespace muster
