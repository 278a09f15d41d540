// SPDX-License-Identifier: Apache-2.0
// Simulated copies: rates of the scenario, near and far, side by side, over slow links; what is refused.
#include "kernels/sim/sim_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

constexpr uint64_t kCopyBytes = 1000000;
const std::string kLinks = R"([figures.copies]
host_to_device = "100 MB/s"
device_to_host = "50 MB/s"
host_bidirectional = "125 MB/s"
peer = "500 MB/s"
peer_bidirectional = "800 MB/s"
far = "50%"
kernel = "80%"
)";

class SimCopiesTest : public ::testing::Test {
 protected:
  void open(const std::string& more) {
    gpu_ = smallDevice(kLinks + more, 0);
    peer_ = smallDevice(kLinks + more, 1);
    auto copies = makeCopies(*gpu_, 0);
    ASSERT_TRUE(copies.ok());
    copies_ = std::move(*copies);
    near_ = copies_->allocatePinned(kCopyBytes, 0).value();
    far_ = copies_->allocatePinned(kCopyBytes, 1).value();
    own_ = gpu_->allocate(kCopyBytes).value();
    other_ = gpu_->allocate(kCopyBytes).value();
    there_ = peer_->allocate(kCopyBytes).value();
    back_ = peer_->allocate(kCopyBytes).value();
  }
  double seconds(const std::vector<Transfer>& transfers, CopyEngine engine = CopyEngine::kCopyEngine) {
    return *gpu_->time([&] { return copies_->copy(transfers, engine); });
  }
  std::unique_ptr<SimDevice> gpu_, peer_;
  std::unique_ptr<Copies> copies_;
  std::unique_ptr<Buffer> near_, far_, own_, other_, there_, back_;
};

TEST_F(SimCopiesTest, TakeTheTimeOfTheirDirection) {
  open("");
  EXPECT_NEAR(seconds({{own_.get(), near_.get()}}), 0.01, 1e-9);
  EXPECT_NEAR(seconds({{near_.get(), own_.get()}}), 0.02, 1e-9);
  EXPECT_NEAR(seconds({{own_.get(), far_.get()}}), 0.02, 1e-9);
  EXPECT_NEAR(seconds({{own_.get(), near_.get()}}, CopyEngine::kKernel), 0.0125, 1e-9);
  EXPECT_NEAR(seconds({{own_.get(), near_.get()}, {near_.get(), other_.get()}}), 0.016, 1e-9);
  EXPECT_NEAR(seconds({{there_.get(), own_.get()}}), 0.002, 1e-9);
  EXPECT_NEAR(seconds({{there_.get(), own_.get()}, {other_.get(), back_.get()}}), 0.0025, 1e-9);
}

TEST_F(SimCopiesTest, CarryTheContentAcross) {
  open("");
  ASSERT_TRUE(copies_->fillPinned(*near_, 9).ok());
  ASSERT_TRUE(copies_->copy({{own_.get(), near_.get()}}, CopyEngine::kCopyEngine).ok());
  ASSERT_TRUE(copies_->copy({{there_.get(), own_.get()}}, CopyEngine::kCopyEngine).ok());
  EXPECT_EQ(peer_->checkPattern(*there_, 9)->wrong, 0u);
  EXPECT_GT(peer_->checkPattern(*back_, 9)->wrong, 0u);
  EXPECT_GT(copies_->checkPinned(*far_, 9)->wrong, 0u);
}

TEST_F(SimCopiesTest, GoSlowlyOverASlowLinkOnly) {
  open("[[fault]]\nkind = \"slow_link\"\ndevice = 1\npeer_device = 0\nfactor = 0.5\n");
  EXPECT_NEAR(seconds({{there_.get(), own_.get()}}), 0.004, 1e-9);
  EXPECT_NEAR(seconds({{own_.get(), near_.get()}}), 0.01, 1e-9);
}

TEST_F(SimCopiesTest, RefuseWhatDoesNotFit) {
  open("");
  auto small = gpu_->allocate(8).value();
  EXPECT_FALSE(copies_->copy({{small.get(), near_.get()}}, CopyEngine::kCopyEngine).ok());
  EXPECT_FALSE(copies_->copy({}, CopyEngine::kCopyEngine).ok());
  EXPECT_FALSE(copies_->allocatePinned(8, 2).ok());
}

TEST(SimCopies, AreThereOnlyWithFigures) {
  auto gpu = smallDevice("", 0);
  const auto copies = makeCopies(*gpu, 0);
  ASSERT_FALSE(copies.ok());
  EXPECT_EQ(copies.error().code, ErrorCode::kUnsupported);
}

TEST(SimCopies, NeedBothFiguresOfPeers) {
  const auto errorOf = [](const std::string& peers) {
    const auto scenario = parseScenario(
        smallScenarioText("[figures.copies]\nhost_to_device = \"1 GB/s\"\ndevice_to_host = \"1 GB/s\"\n"
                          "host_bidirectional = \"1 GB/s\"\n" +
                          peers),
        "small.toml");
    return scenario.ok() ? "" : scenario.error().text();
  };
  const std::string nvlink = "peer = \"3 GB/s\"\npeer_bidirectional = \"5 GB/s\"\n";
  const std::string pcie = "pcie_peer = \"1 GB/s\"\npcie_peer_bidirectional = \"2 GB/s\"\n";
  EXPECT_THAT(errorOf("peer = \"1 GB/s\"\n"),
              ::testing::HasSubstr("`peer` and `peer_bidirectional` come together"));
  EXPECT_THAT(errorOf("pcie_peer = \"1 GB/s\"\n"),
              ::testing::HasSubstr("`pcie_peer` and `pcie_peer_bidirectional` come together"));
  for (const std::string& unclear : {nvlink + pcie, nvlink + "bridged = 2\n", pcie + "bridged = 2\n"})
    EXPECT_THAT(errorOf(unclear), ::testing::HasSubstr("`bridged` comes with both")) << unclear;
  for (const std::string& clear : {nvlink, pcie, nvlink + pcie + "bridged = 2\n"})
    EXPECT_EQ(errorOf(clear), "") << clear;
}

}  // namespace
}  // namespace muster::sim
