// SPDX-License-Identifier: Apache-2.0
// NCCL's environment sets: each fabric's variables, and a name that nobody knows.
#include "plugins/collective/fabrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/collective/describe.h"

namespace muster::collective {
namespace {

using ::testing::HasSubstr;

TEST(Fabrics, HaveTheirVariablesUnderNcclsNames) {
  const auto ib = fabricSettings("ib");
  ASSERT_TRUE(ib.ok());
  EXPECT_EQ(ib->at("NCCL_IB_TIMEOUT"), "23");
  EXPECT_EQ(ib->at("NCCL_IB_RETRY_CNT"), "7");
  EXPECT_EQ(ib->count("NCCL_IB_GID_INDEX"), 0u);
  const auto efa = fabricSettings("aws-efa");
  ASSERT_TRUE(efa.ok());
  EXPECT_EQ(efa->at("FI_EFA_USE_DEVICE_RDMA"), "1");
  const auto fastrak = fabricSettings("gcp-fastrak");
  ASSERT_TRUE(fastrak.ok());
  EXPECT_EQ(fastrak->at("NCCL_ALGO"), "Ring,Tree");
  EXPECT_TRUE(fabricSettings("none")->empty());
}

TEST(Fabrics, NameTheNearestOneOnATypo) {
  const auto typo = fabricSettings("rocee");
  ASSERT_FALSE(typo.ok());
  EXPECT_EQ(typo.error().code, ErrorCode::kUsage);
  EXPECT_THAT(typo.error().message, HasSubstr("roce"));
}

TEST(Fabrics, AreThoseThatThePluginOffers) {
  for (const std::string& name : fabricNames()) {
    EXPECT_THAT(describe(), HasSubstr("\"" + name + "\""));
    EXPECT_TRUE(fabricSettings(name).ok()) << name;
  }
}

}  // namespace
}  // namespace muster::collective
