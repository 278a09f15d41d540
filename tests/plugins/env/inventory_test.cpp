// SPDX-License-Identifier: Apache-2.0
// The inventory that the runner reads.
#include <gtest/gtest.h>

#include "kernels/interfaces/device.h"
#include "tests/plugins/env/env_run.h"

namespace muster {
namespace {

using testing::EnvOptions;
using testing::EnvResult;
using testing::runEnv;
using testing::TempDir;

TEST(EnvInventory, LeavesTheArtifactThatTheRunnerReads) {
  const EnvResult result = runEnv("inventory");
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_TRUE(result.done);
  ASSERT_EQ(result.artifacts.count("inventory.json"), 1u);
  const auto inventory = parseJson(result.artifacts.at("inventory.json"));
  ASSERT_TRUE(inventory.ok());
  for (const char* key : {"host", "software", "nics", "devices"})
    EXPECT_TRUE(inventory->contains(key)) << key;
  ASSERT_FALSE(inventory->at("devices").empty());
  const auto device = deviceInfoFromJson(inventory->at("devices")[0]);
  ASSERT_TRUE(device.ok()) << device.error().text();
  EXPECT_EQ(device->kind, "cpu");
  EXPECT_EQ(result.one("device_count").value, static_cast<double>(inventory->at("devices").size()));
  EXPECT_EQ(result.of("device_name").at(0).labels.at("device"), "cpu0");
}

TEST(EnvInventory, AnUnknownBackendIsAnErrorThatNamesIt) {
  EnvOptions options;
  options.backend = "abacus";
  const EnvResult result = runEnv("inventory", options);
  EXPECT_NE(result.output.find("abacus"), std::string::npos);
  EXPECT_NE(result.state, "ok");
}

}  // namespace
}  // namespace muster
