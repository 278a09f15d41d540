// SPDX-License-Identifier: Apache-2.0
// Copies between a GPU, its host and its peers: every byte arrives, by each engine, one way and both ways;
// then the rates.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/checks/timing.h"
#include "tests/gpu/gpu.h"

namespace muster::gpu {
namespace {

constexpr CopyEngine kEngines[] = {CopyEngine::kCopyEngine, CopyEngine::kKernel};

class GpuCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    auto copies = backend("cuda").copies(*gpu_);
    ASSERT_TRUE(copies.ok()) << copies.error().text();
    copies_ = std::move(*copies);
    auto nodes = copies_->hostNodes();
    ASSERT_TRUE(nodes.ok()) << nodes.error().text();
    ASSERT_FALSE(nodes->empty());
    nodes_ = *nodes;
  }
  std::unique_ptr<Buffer> pinned(uint64_t bytes, int node) {
    auto buffer = copies_->allocatePinned(bytes, node);
    EXPECT_TRUE(buffer.ok()) << (buffer.ok() ? "" : buffer.error().text());
    return std::move(*buffer);
  }
  static std::unique_ptr<Buffer> onDevice(Device& device, uint64_t bytes) {
    auto buffer = device.allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << (buffer.ok() ? "" : buffer.error().text());
    return std::move(*buffer);
  }
  double rate(const std::vector<Transfer>& transfers, CopyEngine engine) {
    SamplingOptions options;
    options.maxTime = 3;
    const auto sampling = sampleWork(
        *gpu_, [&] { return copies_->copy(transfers, engine); }, options, [](double) { return true; });
    EXPECT_TRUE(sampling.ok()) << (sampling.ok() ? "" : sampling.error().text());
    const double best = *std::min_element(sampling->seconds.begin(), sampling->seconds.end());
    EXPECT_GT(best, 0);
    return static_cast<double>(transfers.size() * transfers[0].to->bytes()) / best;
  }

  std::unique_ptr<Device> gpu_ = openGpu();
  std::unique_ptr<Copies> copies_;
  std::vector<HostNode> nodes_;
};

TEST_F(GpuCopies, BringEveryByteToTheDeviceAndBack) {
  for (CopyEngine engine : kEngines)
    for (uint64_t bytes : {8ull, 24ull, 4096ull, (1ull << 20) + 8, 64ull << 20}) {
      auto in = pinned(bytes, nodes_.front().node), out = pinned(bytes, nodes_.front().node);
      auto there = onDevice(*gpu_, bytes);
      ASSERT_TRUE(copies_->fillPinned(*in, 77).ok());
      ASSERT_TRUE(copies_->copy({{there.get(), in.get()}}, engine).ok());
      EXPECT_EQ(gpu_->checkPattern(*there, 77)->wrong, 0u) << copyEngineName(engine) << ", " << bytes;
      ASSERT_TRUE(copies_->copy({{out.get(), there.get()}}, engine).ok());
      EXPECT_EQ(copies_->checkPinned(*out, 77)->wrong, 0u) << copyEngineName(engine) << ", " << bytes;
      EXPECT_GT(copies_->checkPinned(*out, 78)->wrong, 0u);
    }
}

TEST_F(GpuCopies, KeepDirectionsApartThatRunSideBySide) {
  constexpr uint64_t kBytes = 64ull << 20;
  for (CopyEngine engine : kEngines) {
    auto in = pinned(kBytes, nodes_.back().node), out = pinned(kBytes, nodes_.back().node);
    auto source = onDevice(*gpu_, kBytes), target = onDevice(*gpu_, kBytes);
    ASSERT_TRUE(copies_->fillPinned(*in, 11).ok());
    ASSERT_TRUE(gpu_->fillPattern(*source, 12).ok());
    ASSERT_TRUE(copies_->copy({{target.get(), in.get()}, {out.get(), source.get()}}, engine).ok());
    EXPECT_EQ(gpu_->checkPattern(*target, 11)->wrong, 0u);  // queued behind both
    EXPECT_EQ(copies_->checkPinned(*out, 12)->wrong, 0u);
  }
}

TEST_F(GpuCopies, RefuseWhatDoesNotFit) {
  auto host = pinned(64, nodes_.front().node);
  auto there = onDevice(*gpu_, 128);
  EXPECT_FALSE(copies_->copy({{there.get(), host.get()}}, CopyEngine::kCopyEngine).ok());
  EXPECT_FALSE(copies_->copy({}, CopyEngine::kCopyEngine).ok());
  EXPECT_FALSE(copies_->allocatePinned(0, nodes_.front().node).ok());
  EXPECT_FALSE(copies_->allocatePinned(4096, 777).ok());
}

TEST_F(GpuCopies, TellTheRatesOfEachNodeAndEngine) {
  constexpr uint64_t kBytes = 512ull << 20;
  for (const HostNode& node : nodes_) {
    auto in = pinned(kBytes, node.node), out = pinned(kBytes, node.node);
    auto source = onDevice(*gpu_, kBytes), target = onDevice(*gpu_, kBytes);
    const Transfer toDevice = {target.get(), in.get()}, toHost = {out.get(), source.get()};
    for (CopyEngine engine : kEngines) {
      const Json labels = {
          {"engine", copyEngineName(engine)}, {"numa_node", node.node}, {"distance", node.distance}};
      figure("host_to_device", "B/s", rate({toDevice}, engine), labels);
      figure("device_to_host", "B/s", rate({toHost}, engine), labels);
      figure("host_bidirectional", "B/s", rate({toDevice, toHost}, engine), labels);
    }
  }
}

TEST_F(GpuCopies, BringEveryByteToEachPeer) {
  if (devices().size() < 2) GTEST_SKIP() << "one GPU has no peers";
  constexpr uint64_t kBytes = 256ull << 20;
  for (const DeviceInfo& info : devices()) {
    if (info.id == gpu_->info().id) continue;
    auto peer = backend("cuda").open(info.id);
    ASSERT_TRUE(peer.ok()) << peer.error().text();
    const auto direct = copies_->connect(**peer);
    ASSERT_TRUE(direct.ok()) << direct.error().text();
    EXPECT_TRUE(copies_->connect(**peer).ok());  // again is no error
    auto source = onDevice(*gpu_, kBytes), target = onDevice(*gpu_, kBytes);
    auto there = onDevice(**peer, kBytes), back = onDevice(**peer, kBytes);
    for (CopyEngine engine : kEngines) {
      if (engine == CopyEngine::kKernel && !*direct) continue;
      ASSERT_TRUE(gpu_->fillPattern(*source, 21).ok());
      ASSERT_TRUE((*peer)->fillPattern(*back, 22).ok());
      ASSERT_TRUE((*peer)->synchronize().ok());
      const std::vector<Transfer> both = {{there.get(), source.get()}, {target.get(), back.get()}};
      ASSERT_TRUE(copies_->copy(both, engine).ok());
      EXPECT_EQ(gpu_->checkPattern(*target, 22)->wrong, 0u) << info.id;
      EXPECT_EQ((*peer)->checkPattern(*there, 21)->wrong, 0u) << info.id;
      const Json labels = {{"peer", info.id}, {"engine", copyEngineName(engine)}, {"direct", *direct}};
      figure("peer", "B/s", rate({both[0]}, engine), labels);
      figure("peer_bidirectional", "B/s", rate(both, engine), labels);
    }
  }
}

}  // namespace
}  // namespace muster::gpu
