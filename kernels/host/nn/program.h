// SPDX-License-Identifier: Apache-2.0
// A network compiled for the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/host/nn/op.h"

namespace muster::host {

class HostProgram : public Program {
 public:
  static Result<std::unique_ptr<Program>> compile(Device& device, const Network& network, Element element,
                                                  int threads);

  [[nodiscard]] const Network& network() const override { return network_; }
  Status writeParameter(int parameter, std::span<const float> values) override;
  Result<std::vector<float>> readParameter(int parameter) override;
  Result<std::vector<float>> readGradient(int parameter) override;
  Result<std::vector<float>> readStatistics(int statistics) override;
  Status writeStatistics(int statistics, std::span<const float> meanAndVariance) override;
  Result<std::vector<float>> readTensor(Tensor tensor) override;
  Status writeInput(Tensor input, std::span<const float> images) override;
  Status writeInput(Tensor input, std::span<const int32_t> indices) override;

  Status forward(Pass pass) override;
  Status backward(const GradientsReady& ready) override;
  Status setOptimizer(const OptimizerSpec& spec) override;
  Status step(double learningRate, double gradientScale) override;
  Result<double> loss() override;
  Result<int64_t> correct() override;

  Buffer& gradients() override { return *gradients_; }
  Buffer& parameters() override { return *parameters_; }
  [[nodiscard]] uint64_t gradientElements() const override { return elements_; }
  [[nodiscard]] ElementRange range(int parameter) const override;
  [[nodiscard]] std::string layout() const override;
  [[nodiscard]] uint64_t memoryBytes() const override;
  [[nodiscard]] std::string implementation() const override;

 private:
  HostProgram(Device& device, Network network, Element element, int threads);
  Status prepare();
  Status makeInputs();
  Status makeStatistics();
  Status makeOps();
  Status makeParameters();
  Status planBackward();
  Result<std::vector<float>> readPlain(const memory::desc& desc, const void* data, const Shape& shape);
  /// The parameters that decay, as ranges that lie side by side; or those that do not.
  [[nodiscard]] std::vector<std::pair<ElementRange, bool>> decayRanges() const;
  /// The parameters that only this operation has.
  [[nodiscard]] ElementRange rangeOf(const Layer& layer) const;

  enum class State { kNew, kForward, kEvaluated, kBackward };

  Device& device_;
  Network network_;
  Engine engine_;
  Storage storage_;
  Plan plan_;
  std::vector<std::unique_ptr<Op>> ops_;
  LossOp* loss_ = nullptr;
  std::unique_ptr<Buffer> parameters_, gradients_;
  uint64_t elements_ = 0;
  OptimizerSpec optimizer_;
  std::unique_ptr<Buffer> moments_, squares_;  ///< momentum or first moments; AdamW's second ones
  int64_t steps_ = -1;                         ///< taken by the optimizer; -1: there is none
  State state_ = State::kNew;
};

/// Runs what may throw dnnl::error and makes a Status of it.
template <typename Work>
Status guarded(const char* what, Work work) {
  try {
    return work();
  } catch (const dnnl::error& failure) {
    return Error{ErrorCode::kInternal, std::string("oneDNN cannot ") + what + ": " + failure.what(), ""};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kIo, std::string("out of memory while trying to ") + what, ""};
  }
}

}  // namespace muster::host
