// SPDX-License-Identifier: Apache-2.0
// A network compiled through host_dnn.so itself beside its f64 reference, with the same parameters and
// inputs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/host/device.h"
#include "kernels/interfaces/nn.h"
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
  Pair(OpenNn& open, const Network& network, uint32_t seed = 1, Dtype dtype = Dtype::kF32);

  Program& program() { return *program_; }
  Reference& reference() { return reference_; }

  /// Every layer's output and the loss, each computed by the reference from the very values that the program
  /// has for the layer's inputs: errors do not add up over layers.
  void expectForward();
  void expectGradients(size_t most = 30);  ///< of each parameter, at most so many elements
  std::vector<std::vector<float>> trained(const OptimizerSpec& spec, int steps, double learningRate);

 private:
  void fill();

  /// The program's own values for one layer's inputs, where they are numbers.
  void takeInputs(const Layer& layer);
  [[nodiscard]] double outputBound(const Layer& layer) const;
  /// On the path of a gradient, from the input to the loss and back; 0 in f32.
  [[nodiscard]] int roundings() const;
  /// At most `most` elements. In bf16 each rounding costs, beside `bound`, what rounding all parameters does
  /// to the exact gradient: where normalisation cancels nearly all of one, little is left but that. Such
  /// errors are independent and add up as a random walk, of which two standard deviations are allowed.
  void expectGradient(int parameter, const std::vector<float>& found, double bound, size_t most);

  const Network& network_;
  Dtype dtype_;
  std::mt19937 random_;
  std::unique_ptr<Program> program_;
  Reference reference_;
  Reference rounded_;  ///< the same with its parameters off by kBf16Roundoff
};

/// Half a unit in the last place of bf16's 8 bits, of a number in [1, 2).
constexpr double kBf16Roundoff = 0x1p-8;
/// How often numbers are rounded to bf16 on the way through a layer, the weights too: each time is an error
/// of at most kBf16Roundoff.
int forwardRoundings(const Layer& layer);
int backwardRoundings(const Layer& layer);

/// The values that were read; empty, and a failure, where that was an error.
std::vector<float> got(Result<std::vector<float>> read);
std::vector<float> toFloat(const std::vector<double>& values);

}  // namespace muster::testing
