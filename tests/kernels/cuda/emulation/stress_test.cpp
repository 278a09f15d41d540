// SPDX-License-Identifier: Apache-2.0
// The stress test on an emulated GPU, whose clock is that of a model in which it works beside the host: never
// without work, every result compared, differences counted on the GPU.
#include <gtest/gtest.h>

#include "kernels/cuda/buffer.h"
#include "plugins/compute/params.h"
#include "plugins/compute/tests.h"
#include "runner/core/statistics.h"
#include "tests/gpu/gpu.h"
#include "tests/kernels/cuda/emulation/libraries.h"
#include "tests/plugins/recording_host.h"

namespace muster::gpu {
namespace {

constexpr double kRate = 5e8;  ///< of products in the model, in FLOP/s: one takes a millisecond

class EmulatedStress : public ::testing::Test {
 protected:
  EmulatedStress() : device_(openGpu()), ops_(std::move(backend("cuda").ops(*device_)).value()) {}

  Status burn(const Json& changes = Json::object()) {
    Json params = {{"duration", 0.6},
                   {"window", 0.1},
                   {"check_interval", 0},
                   {"size", 64},
                   {"m", 64},
                   {"n", 64},
                   {"k", 64},
                   {"dtype", "f32"},
                   {"algorithm", "default"},
                   {"memory", 0},
                   {"start_timeout", 60},
                   {"reference_samples", 50}};
    params.update(changes);
    const sdk::Host host(host_.table());
    return compute::runSustained({host, *device_, *ops_}, params, 7);
  }
  /// Those of the burn alone: each work also runs once before it and once after.
  [[nodiscard]] double productsOfBurn(uint64_t before) const {
    return static_cast<double>(emulation::productsQueued() - before) - 2;
  }

  testing::RecordingHost host_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
};

TEST_F(EmulatedStress, NeverLeavesTheGpuWithoutWork) {
  ASSERT_TRUE(burn().ok()) << host_.error;
  EXPECT_GE(host_.value("sustained_duty"), 0.99);
  EXPECT_LE(host_.value("sustained_duty"), 1.0);
}

TEST_F(EmulatedStress, ComparesEveryProduct) {
  const uint64_t before = emulation::productsQueued();
  ASSERT_TRUE(burn().ok()) << host_.error;
  EXPECT_GT(host_.value("sustained_comparisons"), 2);
  EXPECT_EQ(host_.value("sustained_comparisons"), productsOfBurn(before));
  EXPECT_EQ(host_.value("sustained_mismatches"), 0);
  EXPECT_EQ(host_.value("sustained_wrong_elements"), 0);
}

/// The first, second, fourth and fifth of the burn, in several batches, of which the host hears in one sum.
TEST_F(EmulatedStress, CountsDifferencesOnTheGpuAndFetchesThemSeldom) {
  for (const uint64_t after : {2, 3, 5, 6}) emulation::spoilProduct(after);
  const uint64_t before = emulation::copiesToHost();
  ASSERT_TRUE(burn({{"reference_samples", 1}}).ok()) << host_.error;
  EXPECT_EQ(host_.value("sustained_mismatches"), 4);
  EXPECT_EQ(host_.logs.size(), 1u);
  EXPECT_NE(host_.told("sustained_first_fault").at(0).text.find("4 elements differ from the first result"),
            std::string::npos);
  // One fetch; two references of one element: the element, a row and a column.
  EXPECT_LE(emulation::copiesToHost() - before, 1u + 2 * 3);
}

/// The rate is that of products; what the GPU compares in is no part of it, what it idles is.
TEST_F(EmulatedStress, GivesTheRateOfTheProductsAlone) {
  ASSERT_TRUE(burn().ok()) << host_.error;
  const std::vector<double> rates = host_.told("sustained_throughput").at(0).samples;
  EXPECT_NEAR(medianOf(rates), kRate, 0.01 * kRate);
}

TEST_F(EmulatedStress, ComparesTheLastResultOfAnInterval) {
  const uint64_t before = emulation::productsQueued();
  ASSERT_TRUE(burn({{"check_interval", 0.2}}).ok()) << host_.error;
  EXPECT_GE(host_.value("sustained_comparisons"), 1);
  EXPECT_LE(host_.value("sustained_comparisons"), 4);
  EXPECT_GT(productsOfBurn(before), 2 * host_.value("sustained_comparisons"));
  EXPECT_GE(host_.value("sustained_duty"), 0.99);
}

TEST_F(EmulatedStress, StopsWithinTwoBatchesWhenItIsCancelled) {
  host_.cancelAfter = 4;
  EXPECT_FALSE(burn({{"duration", 3600.0}}).ok());
  EXPECT_TRUE(host_.measurements.empty());
}

}  // namespace
}  // namespace muster::gpu
