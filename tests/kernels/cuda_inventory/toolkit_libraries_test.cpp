// SPDX-License-Identifier: Apache-2.0
// Which libraries are opened from the folders that the environment names.
#include "kernels/cuda/toolkit_libraries.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/process.h"

namespace muster::cuda {
namespace {

namespace fs = std::filesystem;
using muster::testing::TempDir;
using ::testing::HasSubstr;

constexpr uid_t kOther = 65534;
const std::string kName = "libmuster-beside.so.1";  // what no loader knows
const std::string kNeeded = "libfake-gone.so.1";

class ToolkitLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has folders of other users refused";
    fs::create_directories(folder_.path() / "lib64");
    setenv("CUDA_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("CUDA_HOME"); }
  static fs::path built(const std::string& name) { return testing::buildDir() / "tests/fakes" / name; }
  TempDir folder_, owned_;
};

TEST_F(ToolkitLibraries, AreNotOpenedForRootFromAnotherUsersFile) {
  fs::copy_file(built("fake-ok.so"), folder_.path() / "lib64" / kName);
  ASSERT_EQ(chown((folder_.path() / "lib64" / kName).c_str(), kOther, kOther), 0);
  const Status opened = openToolkitLibrary(kName);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().text(), HasSubstr("belongs to user 65534"));
}

/// A link to a library of root's: what that needs is not taken from the folder of the link.
TEST_F(ToolkitLibraries, AreOpenedForRootByTheirRealNames) {
  fs::copy_file(built("fake-beside.so"), owned_.path() / kName);
  const fs::path link = folder_.path() / "lib64" / kName;
  fs::create_symlink(owned_.path() / kName, link);
  fs::copy_file(built("fake-gone.linked"), folder_.path() / "lib64" / kNeeded);
  for (const fs::path& theirs : {link, folder_.path() / "lib64" / kNeeded, folder_.path() / "lib64"})
    ASSERT_EQ(lchown(theirs.c_str(), kOther, kOther), 0);
  const Status opened = openToolkitLibrary(kName);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().text(), HasSubstr(kNeeded));
  fs::copy_file(built("fake-gone.linked"), owned_.path() / kNeeded);
  EXPECT_TRUE(openToolkitLibrary(kName).ok());
}

}  // namespace
}  // namespace muster::cuda
