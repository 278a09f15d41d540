// SPDX-License-Identifier: Apache-2.0
// Where the folder of a run is made, and where not.
#include "runner/slurm/submission.h"

#include <fmt/format.h>
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

/// Comparing each line with all before it would take many minutes here.
TEST(Submission, ReadsManyJobsInTheirOrder) {
  constexpr int kJobs = 200'000;
  const TempDir folder;
  const auto run = RunStore::create(folder.path() / "run", submission());
  ASSERT_TRUE(run.ok()) << run.error().text();
  std::string log;
  for (int i = 0; i < kJobs; ++i)
    log += fmt::format("{{\"kind\":\"array\",\"job\":\"{}\",\"round\":0,\"nodes\":[],\"tasks\":1}}\n", i);
  for (int i = 1; i < kJobs; i += 2) log += fmt::format("{{\"kind\":\"cancelled\",\"job\":\"{}\"}}\n", i);
  log += "{\"kind\":\"fleet\",\"job\":\"1\",\"round\":1,\"nodes\":[],\"tasks\":1}\n";
  folder.write("run/jobs.jsonl", log);
  const auto jobs = run->jobs();
  ASSERT_TRUE(jobs.ok()) << jobs.error().text();
  ASSERT_EQ(jobs->size(), kJobs / 2 + 1u);
  for (size_t i = 0; i < kJobs / 2; ++i) ASSERT_EQ((*jobs)[i].job, std::to_string(2 * i));
  EXPECT_EQ(jobs->back().kind, JobKind::kFleet) << "submitted again under the number of one taken back";
}

TEST(Submission, RefusesARoundThatNoRunHasMade) {
  for (const char* round : {"-1", "1000000", "2147483647"}) {
    const TempDir folder;
    const auto run = RunStore::create(folder.path() / "run", submission());
    ASSERT_TRUE(run.ok()) << run.error().text();
    folder.write(
        "run/jobs.jsonl",
        fmt::format("{{\"kind\":\"array\",\"job\":\"1\",\"round\":{},\"nodes\":[],\"tasks\":1}}\n", round));
    const auto jobs = run->jobs();
    ASSERT_FALSE(jobs.ok()) << round;
    EXPECT_THAT(jobs.error().text(), HasSubstr(fmt::format("round {} is none", round)));
  }
}

TEST(Submission, KnowsItsFolderByAnyWayAndNoOther) {
  const TempDir folder;
  const fs::path run = folder.path() / "run", link = folder.path() / "link", copy = folder.path() / "copy";
  ASSERT_TRUE(RunStore::create(run, submission()).ok());
  fs::create_symlink(run, link);
  fs::copy(run, copy, fs::copy_options::recursive);
  const auto place = [](const fs::path& path) {
    const auto opened = RunStore::open(path);
    return opened.ok() ? opened->checkPlace() : Status(opened.error());
  };
  EXPECT_TRUE(place(run).ok());
  EXPECT_TRUE(place(link).ok());
  ASSERT_FALSE(place(copy).ok());
  EXPECT_THAT(place(copy).error().text(),
              HasSubstr(fmt::format("was copied or moved from {0}, where the run's jobs write; use {0}, or "
                                    "move it back",
                                    run.string())));
  fs::remove_all(run);
  EXPECT_FALSE(place(copy).ok()) << "the scripts name a folder that is not there";
  fs::rename(copy, run);
  EXPECT_TRUE(place(link).ok()) << "moved back";
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
