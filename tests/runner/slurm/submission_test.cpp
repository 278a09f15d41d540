// SPDX-License-Identifier: Apache-2.0
// Where the folder of a run is made, and where not.
#include "runner/slurm/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using muster::testing::TempDir;
using ::testing::HasSubstr;

constexpr uid_t kStranger = 12345;

Submission submission() {
  Submission made;
  made.id = "plan-1";
  made.planFile = "plan.toml";
  made.nodes = {"n1"};
  return made;
}

TEST(Submission, OfRootMakesNothingInTheFolderOfAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir his;
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  const auto made = RunStore::create(his.path() / "new" / "run", submission());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().text(), HasSubstr("belongs to user 12345"));
  EXPECT_THAT(made.error().text(), HasSubstr("choose another folder with --out"));
  EXPECT_TRUE(fs::is_empty(his.path()));
}

TEST(Submission, OfRootIsNotReachedByAnothersLink) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  const TempDir his, roots;
  fs::create_symlink(roots.path(), his.path() / "link");
  ASSERT_EQ(lchown((his.path() / "link").c_str(), kStranger, kStranger), 0);
  const auto made = RunStore::create(roots.path() / "run", submission(), his.path() / "link" / "run");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().text(), HasSubstr("the link to the output belongs to user 12345"));
  EXPECT_TRUE(fs::is_empty(roots.path()));
  fs::create_symlink(roots.path(), his.path() / "roots");
  EXPECT_TRUE(RunStore::create(roots.path() / "run", submission(), his.path() / "roots" / "run").ok())
      << "root's own link";
}

TEST(Submission, IsNotMadeElsewhereThanItsScriptsSay) {
  const TempDir folder;
  fs::create_directories(folder.path() / "other");
  fs::create_symlink("other", folder.path() / "link");
  EXPECT_FALSE(RunStore::create(folder.path() / "run", submission(), folder.path() / "link" / "run").ok());
  EXPECT_FALSE(RunStore::create(folder.path() / "link" / "run", submission()).ok());
}

}  // namespace
}  // namespace muster::slurm
