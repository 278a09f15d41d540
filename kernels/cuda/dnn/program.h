// SPDX-License-Identifier: Apache-2.0
// A network compiled for a GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/dnn/ops/op.h"
#include "kernels/cuda/dnn/replayed.h"

namespace muster::cuda {

/// Several operations of the backward pass that are queued at once, and the gradients that are final then.
struct Segment {
  size_t first = 0;  ///< operations first ... end - 1, in reverse
  size_t end = 0;
  ElementRange range;
  Replayed replayed;
};

class CudaProgram : public Program {
 public:
  static Result<std::unique_ptr<Program>> compile(CudaDevice& device, const Network& network,
                                                  const ProgramOptions& options);
  ~CudaProgram() override;

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
  CudaProgram(CudaDevice& device, Network network, std::unique_ptr<Engine> engine);
  Status prepare();
  Status makeInputs();
  Status makeStatistics();
  Status makeOps();
  Status makeParameters();
  Status makeBuffers();
  Status planBackward();
  Status tune();
  void makeSegments();
  Status update();

  Status writeTokenOrder(const TokenOrder& order, std::span<const int32_t> tokens);
  Result<std::vector<float>> readFlat(const float* flat, int parameter);
  Result<std::vector<double>> readSums();
  Status copyToDevice(void* to, const void* from, uint64_t bytes);
  Status copyFromDevice(void* to, const void* from, uint64_t bytes);
  /// The parameters that only this operation has.
  [[nodiscard]] ElementRange rangeOf(const Layer& layer) const;

  enum class State { kNew, kForward, kEvaluated, kBackward };

  CudaDevice& device_;
  Network network_;
  std::unique_ptr<Engine> engine_;
  Storage storage_;
  Plan plan_;
  std::vector<std::unique_ptr<Op>> ops_;
  LossOp* loss_ = nullptr;
  std::unique_ptr<Buffer> parameters_, gradients_, low_;  ///< low: the 16-bit copy of the parameters
  std::vector<float*> staging_;                           ///< by tensor: f32 NCHW images as they are written
  uint64_t elements_ = 0;
  OptimizerSpec optimizer_;
  std::unique_ptr<Buffer> moments_, squares_;  ///< momentum or first moments; AdamW's second ones
  std::unique_ptr<Buffer> decays_, scalars_;
  int64_t steps_ = -1;  ///< taken by the optimizer; -1: there is none
  State state_ = State::kNew;
  Replayed training_, evaluation_;
  std::unique_ptr<Replayed> update_;
  std::vector<Segment> segments_;  ///< from the end of the network to its start
};

}  // namespace muster::cuda
