// SPDX-License-Identifier: Apache-2.0
// Where the storage plugin writes, and where it refuses to.
#include "plugins/storage/scratch.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/plugins/storage/storage_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StorageScratch : public StorageRun {
 protected:
  std::string refusal(const std::string& directory) {
    Json params = small();
    params["direct"] = false;
    params["directory"] = directory;
    EXPECT_NE(onDisk("fio", params).ran, MUSTER_OK) << directory;
    return host.error;
  }
};

TEST_F(StorageScratch, RefusesLinksFilesDevicesAndDots) {
  fs::create_directory_symlink(data(), dir().path() / "link");
  EXPECT_THAT(refusal((dir().path() / "link").string()), HasSubstr("is a symbolic link"));
  EXPECT_THAT(refusal((dir().path() / "link/").string()), HasSubstr("is a symbolic link"));
  const std::string file = dir().write("precious", "do not touch").string();
  EXPECT_THAT(refusal(file), HasSubstr("is not a directory"));
  EXPECT_EQ(readWhole(file), "do not touch");
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("never written to"));
  EXPECT_THAT(refusal("data"), HasSubstr("absolute path"));
  EXPECT_THAT(refusal(data().string() + "/.."), HasSubstr("absolute path"));
  EXPECT_THAT(refusal(data().string() + "/none"), HasSubstr("cannot open the directory"));
  EXPECT_THAT(left(), ElementsAre());
}

TEST_F(StorageScratch, TouchesNothingThatIsThere) {
  const std::string file = dir().write("data/data", "do not touch").string();
  Json params = small("write");
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(readWhole(file), "do not touch");
  EXPECT_THAT(left(), ElementsAre("data"));
}

/// Who may write to the directory above can rename ours, and put a link in its place: nothing behind it goes.
TEST_F(StorageScratch, RemovesNothingThroughALink) {
  const fs::path other = dir().path() / "other";
  dir().write("other/precious", "do not touch");
  muster_host table{};
  storage::Site site{sdk::Host(&table)};
  {
    const auto scratch = storage::Scratch::make(site, data().string());
    ASSERT_TRUE(scratch.ok()) << scratch.error().text();
    struct stat info {};
    ASSERT_EQ(fstat(scratch->fd(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    ASSERT_EQ(left().size(), 1u);
    fs::rename(data() / left()[0], data() / "renamed");
    fs::create_directory_symlink(other, fs::path(scratch->shownPath()));
  }
  EXPECT_EQ(readWhole(other / "precious"), "do not touch");
  EXPECT_EQ(left().size(), 2u) << "the renamed one, and the link of others";
}

/// The same with a directory of others, which root could remove.
TEST_F(StorageScratch, RemovesNoOtherDirectoryOfItsName) {
  muster_host table{};
  storage::Site site{sdk::Host(&table)};
  {
    const auto scratch = storage::Scratch::make(site, data().string());
    ASSERT_TRUE(scratch.ok()) << scratch.error().text();
    ASSERT_EQ(left().size(), 1u);
    dir().write("data/" + left()[0] + "/own", "written by the test");
    fs::rename(data() / left()[0], data() / "renamed");
    dir().write("data/" + fs::path(scratch->shownPath()).filename().string() + "/precious", "do not touch");
  }
  EXPECT_EQ(left().size(), 2u) << "the renamed one, and that of others";
  EXPECT_TRUE(fs::is_empty(data() / "renamed"));
  for (const std::string& name : left())
    if (name != "renamed") {
      EXPECT_EQ(readWhole(data() / name / "precious"), "do not touch");
    }
}

TEST_F(StorageScratch, OfRootIsNotWhereAnotherUserCouldReplaceIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::permissions(dir().path(), fs::perms(0755));
  ASSERT_EQ(chown(data().c_str(), 12345, 12345), 0);
  EXPECT_THAT(refusal(data().string()), HasSubstr("12345"));
  ASSERT_EQ(chown(data().c_str(), 0, 12345), 0);
  ASSERT_EQ(chmod(data().c_str(), 02775), 0);
  EXPECT_THAT(refusal(data().string()), HasSubstr("writable by others"));
  EXPECT_THAT(left(), ElementsAre());
}

TEST_F(StorageScratch, TakesNoDirectoryOfOthersForItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const auto isOwn = [&] {
    const auto fd = storage::openDirectory(data().string());
    return fd.ok() && storage::requireOwn(fd->get(), "data").ok();
  };
  ASSERT_EQ(chmod(data().c_str(), 0700), 0);
  EXPECT_TRUE(isOwn());
  ASSERT_EQ(chmod(data().c_str(), 0770), 0);
  EXPECT_FALSE(isOwn());
  ASSERT_EQ(chmod(data().c_str(), 0700), 0);
  ASSERT_EQ(chown(data().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(isOwn());
}

TEST_F(StorageScratch, KnowsTheMountOfADirectory) {
  const auto proc = storage::openDirectory("/proc");
  ASSERT_TRUE(proc.ok());
  const auto mount = storage::mountOf(proc->get());
  ASSERT_TRUE(mount.ok()) << mount.error().text();
  EXPECT_EQ(mount->type, "proc");
  EXPECT_THAT(mount->options, HasSubstr("rw"));
  EXPECT_THAT(mount->text(), HasSubstr("proc of "));
}

}  // namespace
}  // namespace muster::testing
