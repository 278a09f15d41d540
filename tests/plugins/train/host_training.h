// SPDX-License-Identifier: Apache-2.0
// Training on this machine's CPU, through the backend as it is built.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "kernels/interfaces/backend.h"
#include "tests/support/process.h"

namespace muster::train {

/// Tests of models by name, each with an open device.
class HostTraining : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BackendOptions options;
    options.folder = (testing::buildDir() / "kernels" / "host").string();
    auto backend = loadBackend("host", options);
    ASSERT_TRUE(backend.ok()) << backend.error().text();
    backend_ = std::move(*backend);
    auto device = backend_->open("cpu0");
    ASSERT_TRUE(device.ok()) << device.error().text();
    device_ = std::move(*device);
    auto nn = backend_->nn(*device_);
    ASSERT_TRUE(nn.ok()) << nn.error().text();
    nn_ = std::move(*nn);
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Nn> nn_;
};

}  // namespace muster::train
