// SPDX-License-Identifier: Apache-2.0
// The module backend_sim.so as plugins open it.
#include "kernels/interfaces/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/sim/small_scenario.h"
#include "tests/support/process.h"

namespace muster::sim {
namespace {

using muster::testing::TempDir;
using ::testing::HasSubstr;

class SimBackendModule : public ::testing::Test {
 protected:
  BackendOptions options(const std::string& more = "") {
    BackendOptions options;
    options.folder = (muster::testing::buildDir() / "kernels" / "sim").string();
    options.scenario = folder_.write("s.toml", smallScenarioText(more)).string();
    return options;
  }

  TempDir folder_;
};

TEST_F(SimBackendModule, OpensDevicesAndTheirOps) {
  auto backend = loadBackend("sim", options());
  ASSERT_TRUE(backend.ok()) << backend.error().text();
  EXPECT_EQ((*backend)->name(), "sim");
  EXPECT_EQ((*(*backend)->inventory())->devices()->size(), 2u);
  auto device = (*backend)->open("gpu1");
  ASSERT_TRUE(device.ok());
  auto ops = (*backend)->ops(**device);
  ASSERT_TRUE(ops.ok());
  EXPECT_EQ((*ops)->gemmDtypes().size(), 2u);
}

TEST_F(SimBackendModule, StartsDevicesAtTheVirtualStart) {
  BackendOptions later = options();
  later.virtualStart = 77;
  auto backend = loadBackend("sim", later);
  ASSERT_TRUE(backend.ok());
  EXPECT_DOUBLE_EQ((*(*backend)->open("gpu0"))->now(), 77);
}

TEST_F(SimBackendModule, NamesTheDevicesThatItHas) {
  auto backend = loadBackend("sim", options());
  ASSERT_TRUE(backend.ok());
  auto device = (*backend)->open("gpu2");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(device.error().text(), HasSubstr("gpu0, gpu1"));
}

TEST_F(SimBackendModule, WantsAScenario) {
  BackendOptions none = options();
  none.scenario.clear();
  auto backend = loadBackend("sim", none);
  ASSERT_FALSE(backend.ok());
  EXPECT_THAT(backend.error().text(), HasSubstr("--simulate"));
}

TEST_F(SimBackendModule, PassesOnWhatIsWrongWithAScenario) {
  auto backend = loadBackend("sim", options("[[fault]]\nkind = \"nope\"\ndevice = 0\n"));
  ASSERT_FALSE(backend.ok());
  EXPECT_THAT(backend.error().text(), HasSubstr("found \"nope\""));
}

}  // namespace
}  // namespace muster::sim
