// SPDX-License-Identifier: Apache-2.0
// Training of neural networks on a device: a network compiled into a program of fixed shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/interfaces/device.h"
#include "kernels/spec/initial_values.h"
#include "kernels/spec/network.h"

namespace muster {

/// How a network is compiled.
struct ProgramOptions {
  /// Of activations and matrix products; parameters and their sums stay f32. In f16 there is no backward():
  /// gradients of activations are smaller than f16 can hold, and nothing scales the loss.
  Dtype dtype = Dtype::kF32;
  bool deterministic = true;  ///< bitwise the same from run to run on one machine with as many threads
};

enum class OptimizerKind { kSgd, kAdamW };

/// SGD: g += weightDecay p; m = momentum m + g; p -= lr m (m starts as g). AdamW: decoupled weight decay and
/// bias correction. Both as torch.optim does them.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0;
  bool decayAll = true;  ///< false: only parameters of role kWeight decay, as is usual for transformers
};

/// A part of the flat gradient (and parameter) buffer, in f32 elements.
struct ElementRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

enum class Pass { kTraining, kEvaluation };  ///< batch statistics, or the running ones (no backward)

/// Called while backward() runs, when the gradients of a range are final (queued, on a GPU). Ranges come from
/// the end of the buffer to its start, adjacent and without overlap, and cover all of it.
using GradientsReady = std::function<Status(ElementRange)>;

/// A compiled network with its parameters, on one device. Parameters, gradients and optimizer state are flat
/// f32 buffers whose inner order is the backend's (blocked layouts, padding with zeros): what one reads and
/// writes below is in the shapes of the Network, row-major. Starts with all parameters zero, except scales of
/// normalisations (one). Calls queue work in order; what returns data waits for it. Not thread-safe.
class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual const Network& network() const = 0;

  virtual Status writeParameter(int parameter, std::span<const float> values) = 0;
  /// Gives a parameter its start: on every backend the values of computeInitialValues().
  virtual Status fillParameter(int parameter, const InitialValues& values) {
    const int64_t count = network().parameters()[static_cast<size_t>(parameter)].elements();
    return writeParameter(parameter, computeInitialValues(values, static_cast<uint64_t>(count)));
  }
  virtual Result<std::vector<float>> readParameter(int parameter) = 0;
  virtual Result<std::vector<float>> readGradient(int parameter) = 0;  ///< of the last backward()
  /// Running mean, then running variance, of one batch normalisation.
  virtual Result<std::vector<float>> readStatistics(int statistics) = 0;
  virtual Status writeStatistics(int statistics, std::span<const float> meanAndVariance) = 0;
  /// Values of a layer's output after forward(): for checks. Outputs that only exist inside a fused
  /// operation, or whose memory was given to others, are kUnsupported; the logits always exist.
  virtual Result<std::vector<float>> readTensor(Tensor tensor) = 0;

  virtual Status writeInput(Tensor input, std::span<const float> images) = 0;
  /// kUsage names the first index that is not below the input's limit.
  virtual Status writeInput(Tensor input, std::span<const int32_t> indices) = 0;

  virtual Status forward(Pass pass) = 0;
  /// Gradients of the mean loss of the last forward(kTraining), which it uses up; replaces earlier gradients.
  /// kUnsupported in f16.
  virtual Status backward(const GradientsReady& ready = {}) = 0;
  /// Allocates the optimizer's state, zero. Needed before step().
  virtual Status setOptimizer(const OptimizerSpec& spec) = 0;
  /// One update of all parameters by gradientScale times the gradients.
  virtual Status step(double learningRate, double gradientScale = 1) = 0;

  virtual Result<double> loss() = 0;      ///< mean over the rows of the last forward()
  virtual Result<int64_t> correct() = 0;  ///< rows of the last forward() whose largest logit is the label's

  /// The flat gradient buffer, for all-reduce and hashes: f32, `layout()` says in which order.
  virtual Buffer& gradients() = 0;
  virtual Buffer& parameters() = 0;
  [[nodiscard]] virtual uint64_t gradientElements() const = 0;  ///< padding included
  /// Where a parameter lies in both buffers: parameters follow each other in the order of the network.
  [[nodiscard]] virtual ElementRange range(int parameter) const = 0;
  /// Equal on two ranks if and only if their flat buffers have one order: to be compared before any
  /// all-reduce.
  [[nodiscard]] virtual std::string layout() const = 0;
  [[nodiscard]] virtual uint64_t memoryBytes() const = 0;  ///< allocated for this program
  [[nodiscard]] virtual std::string implementation()
      const = 0;  ///< "onednn 2.6.3 avx512_core_bf16, 8 threads"
};

/// Training on one open device; owns nothing of the device, must not outlive it.
class Nn {
 public:
  virtual ~Nn() = default;
  /// Types that this device computes in hardware: f32, and tf32, bf16 and f16 where there are instructions
  /// for them.
  [[nodiscard]] virtual std::vector<Dtype> dtypes() const = 0;
  /// Whether inputs matter. Sim says no: its programs take empty ones, so that nobody makes data in vain.
  [[nodiscard]] virtual bool readsInputs() const { return true; }
  virtual Result<std::unique_ptr<Program>> compile(const Network& network, const ProgramOptions& options) = 0;
};

}  // namespace muster
