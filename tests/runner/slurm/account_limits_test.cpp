// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/account_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

/// As Slurm 22.05 prints it, without lines that are no limits of ours.
constexpr const char* kText = R"(Current Association Manager state

Association Records

ClusterName=lim Account=root UserName= Partition= Priority=0 ID=1
    ParentAccount= Lft=1 DefAssoc=No
    GrpJobs=N(0) GrpJobsAccrue=N(0)
    GrpSubmitJobs=90(1) GrpWall=N(0.00)
    GrpTRES=cpu=N(0),mem=N(0)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=lim Account=root UserName=alice(1000) Partition= Priority=0 ID=2
    ParentAccount= Lft=6 DefAssoc=Yes
    GrpSubmitJobs=N(1) GrpWall=N(0.00)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=lim Account=acct UserName= Partition= Priority=0 ID=3
    ParentAccount=root(1) Lft=2 DefAssoc=No
    GrpSubmitJobs=N(0) GrpWall=N(0.00)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=lim Account=acct UserName=alice(1000) Partition= Priority=0 ID=4
    ParentAccount= Lft=3 DefAssoc=No
    GrpSubmitJobs=N(0) GrpWall=N(0.00)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs=15(2) MaxWallPJ=
ClusterName=lim Account=acct UserName=bob(100) Partition= Priority=0 ID=5
    ParentAccount= Lft=4 DefAssoc=Yes
    GrpSubmitJobs=N(0) GrpWall=N(0.00)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs=3(3) MaxWallPJ=

QOS Records

QOS=normal(1)
    UsageRaw=0.000000
    GrpJobs=N(0) GrpJobsAccrue=N(0) GrpSubmitJobs=50(1) GrpWall=N(0.00)
    Account Limits
      root
        MaxJobsPA=N(0) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1)
    User Limits
      100
        MaxJobsPU=N(0) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=1(1)
      1000
        MaxJobsPU=N(0) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=40(1)
)";

int roomOf(const Submitter& submitter) {
  const auto room = accountRoom(kText, submitter);
  return room ? room->jobs : -1;
}

TEST(AccountRoom, IsTheSmallestOfAllLimitsThatHold) {
  EXPECT_EQ(roomOf({1000, "acct", "", ""}), 13);
  EXPECT_EQ(roomOf({1000, "", "", ""}), 39)
      << "the default account has no limit, the only QOS has one for each user";
  EXPECT_EQ(roomOf({100, "", "", ""}), 0);
  EXPECT_EQ(roomOf({7, "", "", ""}), 49) << "somebody else: what the QOS leaves to all";
}

TEST(AccountRoom, CountsTheAccountsAbove) {
  std::string text = kText;
  text.replace(text.find("90(1)"), 5, "4(1)");
  const auto room = accountRoom(text, {1000, "acct", "", ""});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->jobs, 3);
  EXPECT_THAT(room->why, HasSubstr("GrpSubmitJobs of account root is 4(1)"));
}

TEST(AccountRoom, TakesAQosOnlyWhereItIsKnownToBeTheOne) {
  const std::string text = std::string(kText) + "QOS=urgent(2)\n    GrpSubmitJobs=2(0) GrpWall=N(0.00)\n";
  EXPECT_EQ(accountRoom(text, {1000, "acct", "", "urgent"})->jobs, 2);
  EXPECT_EQ(accountRoom(text, {1000, "acct", "", ""})->jobs, 13);
  EXPECT_EQ(accountRoom(text, {1000, "acct", "", "normal"})->jobs, 13);
}

TEST(AccountRoom, IsNothingWhereNothingIsLimited) {
  EXPECT_FALSE(accountRoom("Current Association Manager state\n\n", {1000, "", "", ""}));
  EXPECT_FALSE(accountRoom("", {1000, "", "", ""}));
  EXPECT_FALSE(accountRoom("=\n==\nQOS=\nClusterName= =5(1)\n", {1000, "", "", ""}));
}

}  // namespace
}  // namespace muster::slurm
