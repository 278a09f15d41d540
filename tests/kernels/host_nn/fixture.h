// SPDX-License-Identifier: Apache-2.0
// A network compiled through host_dnn.so itself beside its f64 reference, with the same parameters and
// inputs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/host/device.h"
#include "kernels/nn.h"
#include "tests/kernels/host_nn/reference.h"

namespace muster::testing {

/// Opens host_dnn.so for `threads` threads on a device of its own.
struct OpenNn {
  explicit OpenNn(int threads = 1);
  std::unique_ptr<Program> compile(const Network& network, const ProgramOptions& options = {});
  std::unique_ptr<host::HostDevice> device;
  std::unique_ptr<Nn> nn;
};

/// The program and its reference. Random parameters and inputs from a seed.
class Pair {
 public:
  Pair(OpenNn& open, const Network& network, uint32_t seed = 1);

  Program& program() { return *program_; }
  Reference& reference() { return reference_; }

  void expectForward();                    ///< the loss and every layer's output
  void expectGradients(size_t most = 30);  ///< of each parameter, at most so many elements
  std::vector<std::vector<float>> trained(const OptimizerSpec& spec, int steps, double learningRate);

 private:
  void fill();

  const Network& network_;
  std::mt19937 random_;
  std::unique_ptr<Program> program_;
  Reference reference_;
};

/// The values that were read; empty, and a failure, where that was an error.
std::vector<float> got(Result<std::vector<float>> read);
std::vector<float> toFloat(const std::vector<double>& values);

}  // namespace muster::testing
