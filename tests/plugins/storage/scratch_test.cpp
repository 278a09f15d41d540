// SPDX-License-Identifier: Apache-2.0
// Where the storage plugin writes, and where it refuses to.
#include "plugins/storage/scratch.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

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
  EXPECT_THAT(left(), ElementsAre("renamed"));
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
