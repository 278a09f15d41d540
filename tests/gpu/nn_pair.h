// SPDX-License-Identifier: Apache-2.0
// One network compiled for the GPU and for the host, with the same parameters and inputs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/interfaces/nn.h"
#include "tests/gpu/gpu.h"

namespace muster::gpu {

/// How far a GPU's result may be from the host's in f32, as a share of its root mean square. f32 differs by
/// the order of sums alone; TF32 rounds inputs of products to 10 bits, f16 everything to 10, bf16 everything
/// to 7. Gradients also see ReLUs go the other way where their input is within rounding of zero: a share s of
/// them costs about sqrt(s).
struct NnBounds {
  double output;
  double gradient;
};
NnBounds boundsOf(Dtype dtype);

/// Training on a device of its own.
struct OpenedNn {
  explicit OpenedNn(bool gpu);
  std::unique_ptr<Device> device;
  std::unique_ptr<Nn> nn;
  [[nodiscard]] bool offers(Dtype dtype) const;
  std::unique_ptr<Program> compile(const Network& network, const ProgramOptions& options);
};
/// The types that this GPU computes networks in.
std::vector<Dtype> gpuDtypes();
std::vector<Dtype> trainingDtypes();  ///< those with a backward pass: all but f16

class NnPair {
 public:
  NnPair(const Network& network, const ProgramOptions& options, uint32_t seed = 1);

  Program& gpu() { return *gpu_; }
  Program& host() { return *host_; }
  /// Loss, right rows and every layer's output of one forward pass.
  void expectOutputs(Pass pass);
  /// Every parameter's gradient; in f16 that there is none.
  void expectGradients();
  /// Running statistics of every batch normalisation.
  void expectStatistics();

 private:
  void fill(uint32_t seed);

  Network network_;
  NnBounds bounds_;
  Dtype dtype_;
  OpenedNn onGpu_, onHost_;
  std::unique_ptr<Program> gpu_, host_;
};

/// The values that were read; empty, and a failure, where that was an error.
std::vector<float> readOf(Result<std::vector<float>> read);
/// Root mean square.
double sizeOf(const std::vector<float>& values);
/// Root mean square of the differences; infinity where one is NaN or the counts differ.
double distanceOf(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace muster::gpu
