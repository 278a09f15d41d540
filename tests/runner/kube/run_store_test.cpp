// SPDX-License-Identifier: Apache-2.0
// Run folders of Kubernetes: whose they may be.
#include "runner/kube/run_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.h"

namespace muster::kube {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

/// Its owner could replace the values of the chart before Helm reads them.
TEST(KubeRunStore, RefusesAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder to another user";
  const TempDir place;
  const auto his = place.path() / "his";
  std::filesystem::create_directory(his);
  ASSERT_EQ(chmod(his.c_str(), 0777), 0);
  ASSERT_EQ(chown(his.c_str(), 12345, 12345), 0);
  // As somebody who is not root: root refuses more by itself.
  ASSERT_EQ(chmod(place.path().c_str(), 0777), 0);
  ASSERT_EQ(seteuid(12346), 0);
  const auto made = RunStore::create(his, Submission{});
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().text(), HasSubstr("belongs to user 12345"));
  EXPECT_TRUE(std::filesystem::is_empty(his));
}

/// What is refused changes nothing of the run that was faster.
TEST(KubeRunStore, OfSeveralThatAreMadeAtOnceIsOne) {
  const TempDir place;
  for (int round = 0; round < 200; ++round) {
    const auto folder = place.path() / std::to_string(round);
    std::atomic<int> made = 0, ready = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        made += RunStore::create(folder, Submission{}).ok() ? 1 : 0;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(made, 1) << round;
  }
}

/// Several pods of a round may come one after the other, each worse than what is there.
TEST(KubeRunStore, KeepsEachResultThatIsSetAside) {
  const TempDir place;
  Submission submission;
  submission.nodes = {"n1"};
  const auto run = RunStore::create(place.path() / "run", submission);
  ASSERT_TRUE(run.ok()) << run.error().text();
  for (const char* pod : {"first", "second", "third"}) {
    ASSERT_TRUE(run->keep("n1", {pod, 1, 0, ""}, std::string("record of ") + pod).ok());
    ASSERT_TRUE(run->setAside("n1", 1).ok());
  }
  EXPECT_EQ(testing::readWhole(place.path() / "run/attempts/n1.1/record.json"), "record of first");
  EXPECT_EQ(testing::readWhole(place.path() / "run/attempts/n1.1-2/record.json"), "record of second");
  EXPECT_EQ(testing::readWhole(place.path() / "run/attempts/n1.1-3/record.json"), "record of third");
}

/// Whoever accepts the fleet reads the record: without it no node is accepted.
TEST(KubeRunStore, DoesNotBelieveAResultWhoseRecordIsGone) {
  const TempDir place;
  Submission submission;
  submission.nodes = {"n1"};
  const auto run = RunStore::create(place.path() / "run", submission);
  ASSERT_TRUE(run.ok()) << run.error().text();
  ASSERT_TRUE(run->keep("n1", {"pod", 1, 0, ""}, "record").ok());
  EXPECT_EQ(run->result("n1")->problem, "");
  std::filesystem::remove(run->record("n1"));
  EXPECT_EQ(run->result("n1")->problem, "records/n1/record.json is missing");
}

}  // namespace
}  // namespace muster::kube
