// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ArrayRequests, StaysBelowMaxArraySizeAndCoversEveryNode) {
  const auto requests = arrayRequests({}, 2500, {}, 1001, 0);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_THAT(requests[0].options, ElementsAre("--array=0-999"));
  EXPECT_THAT(requests[2].options, ElementsAre("--array=0-499"));
  int tasks = 0;
  for (const JobRequest& request : requests) tasks += request.job.tasks;
  EXPECT_EQ(tasks, 2500);
}

TEST(ArrayRequests, LimitsWhatRunsAtOnceAndKeepsOffOtherNodes) {
  JobSettings jobs;
  jobs.atOnce = 2;
  const auto requests = arrayRequests(jobs, 4, {"node5", "node6"}, 1001, 0);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].options, ElementsAre("--array=0-3%2", "--exclude=node[5-6]"));
  EXPECT_TRUE(arrayRequests(jobs, 0, {}, 1001, 0).empty());
}

TEST(Unavailable, NamesWhatIsDownAndRefusesWhatIsUnknown) {
  const Nodes known = {{"node1", {"node1", "idle", "", "", 0}},
                       {"node2", {"node2", "down*", "slurm", "Not responding", 0}}};
  const auto found = unavailable({"node1", "node2"}, known);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found,
              ElementsAre(std::pair<std::string, std::string>("node2", "down*: Not responding [slurm]")));
  const auto wrong = unavailable({"node1", "nod2"}, known);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("nod2; did you mean \"node2\"?"));
}

}  // namespace
}  // namespace muster::slurm
