// SPDX-License-Identifier: Apache-2.0
// Embedding of tokens, with learned positions.
#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

class EmbeddingOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    const Shape& out = plan.network.shape(layer_.output);
    batch_ = out[0];
    time_ = out[1];
    width_ = out[2];
    elementBytes_ = plan.elementBytes();
    MUSTER_TRY(y_, plan.makeRows(layer_.output));
    return {};
  }

  Status bind(Plan& plan) override {
    tokens_ = static_cast<const int32_t*>(plan.of(layer_.inputs[0]).data);
    table_ = plan.parameter(layer_.weight);
    tableGradient_ = plan.gradient(layer_.weight);
    if (layer_.bias >= 0) {
      positions_ = plan.parameter(layer_.bias);
      positionsGradient_ = plan.gradient(layer_.bias);
    }
    return {};
  }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, 1));
    giveBack(plan, incoming_);
    return {};
  }

  void forward(Pass) override {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < batch_ * time_; ++row)
      loops_.embedRow(table_ + tokens_[row] * width_,
                      positions_ == nullptr ? nullptr : positions_ + row % time_ * width_, at(y_, row),
                      width_);
  }

  /// Each thread owns rows of the table, and goes through the tokens in order: the same sums every time.
  void backward() override {
    gather(batch_ * time_ * width_);
#pragma omp parallel
    {
      const int64_t threads = omp_get_num_threads();
      const int64_t thread = omp_get_thread_num();
      const int64_t begin = layer_.embedding.rows * thread / threads;
      const int64_t end = layer_.embedding.rows * (thread + 1) / threads;
      std::fill(tableGradient_ + begin * width_, tableGradient_ + end * width_, 0.0f);
      for (int64_t row = 0; row < batch_ * time_; ++row)
        if (tokens_[row] >= begin && tokens_[row] < end)
          loops_.addRow(tableGradient_ + tokens_[row] * width_, at(incoming_.first, row), width_);
      if (positions_ != nullptr) addPositions(time_ * thread / threads, time_ * (thread + 1) / threads);
    }
  }

 private:
  /// Row of what is as wide as the output.
  [[nodiscard]] void* at(void* rows, int64_t row) const {
    return static_cast<std::byte*>(rows) + row * width_ * elementBytes_;
  }
  void addPositions(int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* to = positionsGradient_ + t * width_;
      std::fill(to, to + width_, 0.0f);
      for (int64_t n = 0; n < batch_; ++n) loops_.addRow(to, at(incoming_.first, n * time_ + t), width_);
    }
  }

  int64_t batch_ = 0, time_ = 0, width_ = 0;
  const int32_t* tokens_ = nullptr;
  const float* table_ = nullptr;
  float* tableGradient_ = nullptr;
  const float* positions_ = nullptr;
  float* positionsGradient_ = nullptr;
  void* y_ = nullptr;
  int64_t elementBytes_ = 4;
};

}  // namespace

std::unique_ptr<Op> makeEmbedding(const Layer& layer, Plan& plan) {
  return std::make_unique<EmbeddingOp>(layer, plan);
}

}  // namespace muster::host
