// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention in blocks of rows: scores live in the cache of one thread and are computed
// again for backward.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

constexpr int64_t kBlockRows = 64;  ///< scores of a block (64 x 512 floats) fit a core's second-level cache

/// C = alpha op(A) op(B) + beta C, row-major with strides; one thread inside a parallel region.
void multiply(char transA, char transB, int64_t m, int64_t n, int64_t k, const float* a, int64_t strideA,
              const float* b, int64_t strideB, float beta, float* c, int64_t strideC) {
  const dnnl_status_t status =
      dnnl_sgemm(transA, transB, m, n, k, 1.0f, a, strideA, b, strideB, beta, c, strideC);
  if (status != dnnl_success) std::fill_n(c, 1, NAN);  // arguments are ours; a failure must not look right
}

class AttentionOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    const Shape& out = plan.network.shape(layer_.output);
    batch_ = out[0];
    time_ = out[1];
    width_ = out[2];
    heads_ = layer_.attention.heads;
    headWidth_ = width_ / heads_;
    scale_ = 1.0f / std::sqrt(static_cast<float>(headWidth_));
    Value& value = plan.of(layer_.output);
    value.desc = plain(out);
    MUSTER_TRY(y_, plan.storage.keep(static_cast<uint64_t>(batch_ * time_ * width_)));
    value.data = y_;
    MUSTER_TRY(logSums_, plan.storage.keep(static_cast<uint64_t>(batch_ * heads_ * time_)));
    plan.wantScratch(static_cast<uint64_t>(plan.engine.threads * threadScratch()));
    return {};
  }

  Status bind(Plan& plan) override {
    x_ = plan.of(layer_.inputs[0]).data;
    scratch_ = plan.scratch;
    return {};
  }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, 1));
    MUSTER_TRY(dx_, plan.newPart(layer_.inputs[0]));
    giveBack(plan, incoming_);
    return {};
  }

  void forward(Pass) override {
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < batch_; ++n)
      for (int64_t h = 0; h < heads_; ++h)
        for (int64_t row = 0; row < time_; row += kBlockRows) forwardBlock(n, h, row);
  }

  void backward() override {
    incoming_.gather(batch_ * time_ * width_);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < batch_; ++n)
      for (int64_t h = 0; h < heads_; ++h)
        // from the last block on: it sees every key, so it may overwrite what the others add to
        for (int64_t row = (time_ - 1) / kBlockRows * kBlockRows; row >= 0; row -= kBlockRows)
          backwardBlock(n, h, row);
  }

 private:
  /// Two blocks of scores and a number for each row.
  [[nodiscard]] int64_t threadScratch() const {
    return 2 * kBlockRows * (time_ + 16) + kBlockRows;
  }
  [[nodiscard]] float* myScratch() const {
    return scratch_ + omp_get_thread_num() * threadScratch();
  }
  [[nodiscard]] ScoreBlock blockAt(int64_t row) const {
    const int64_t rows = std::min(kBlockRows, time_ - row);
    if (!layer_.attention.causal) return {rows, time_, time_};
    return {rows, row + rows, row + 1};
  }
  /// q, k and v (0, 1, 2) of one head, from a row on; rows are 3 width_ apart.
  template <typename T>
  [[nodiscard]] T* packed(T* from, int64_t n, int64_t h, int64_t row, int64_t which) const {
    return from + ((n * time_ + row) * 3 + which) * width_ + h * headWidth_;
  }
  [[nodiscard]] int64_t outputAt(int64_t n, int64_t h, int64_t row) const {
    return (n * time_ + row) * width_ + h * headWidth_;
  }

  void scores(int64_t n, int64_t h, int64_t row, const ScoreBlock& block, float* to) const {
    multiply('N', 'T', block.rows, block.columns, headWidth_, packed(x_, n, h, row, 0), 3 * width_,
             packed(x_, n, h, 0, 1), 3 * width_, 0, to, block.columns);
  }

  void forwardBlock(int64_t n, int64_t h, int64_t row) {
    const ScoreBlock block = blockAt(row);
    float* p = myScratch();
    scores(n, h, row, block, p);
    loops().softmaxBlock(block, scale_, p, logSums_ + (n * heads_ + h) * time_ + row);
    multiply('N', 'N', block.rows, headWidth_, block.columns, p, block.columns, packed(x_, n, h, 0, 2),
             3 * width_, 0, y_ + outputAt(n, h, row), width_);
  }

  void backwardBlock(int64_t n, int64_t h, int64_t row) {
    const ScoreBlock block = blockAt(row);
    const float beta = row + block.rows == time_ ? 0.0f : 1.0f;
    float* p = myScratch();
    float* dp = p + kBlockRows * (time_ + 16);
    float* delta = dp + kBlockRows * (time_ + 16);
    const float* dy = incoming_.first + outputAt(n, h, row);
    scores(n, h, row, block, p);
    loops().softmaxAgain(block, scale_, p, logSums_ + (n * heads_ + h) * time_ + row);
    multiply('T', 'N', block.columns, headWidth_, block.rows, p, block.columns, dy, width_, beta,
             packed(dx_, n, h, 0, 2), 3 * width_);
    multiply('N', 'T', block.rows, block.columns, headWidth_, dy, width_, packed(x_, n, h, 0, 2), 3 * width_,
             0, dp, block.columns);
    rowProducts(dy, y_ + outputAt(n, h, row), block.rows, delta);
    loops().softmaxBackward(block, scale_, p, dp, delta);
    multiply('N', 'N', block.rows, headWidth_, block.columns, dp, block.columns, packed(x_, n, h, 0, 1),
             3 * width_, 0, packed(dx_, n, h, row, 0), 3 * width_);
    multiply('T', 'N', block.columns, headWidth_, block.rows, dp, block.columns, packed(x_, n, h, row, 0),
             3 * width_, beta, packed(dx_, n, h, 0, 1), 3 * width_);
  }

  /// delta = sum of dy y over a head's width: what softmax's gradient subtracts.
  void rowProducts(const float* dy, const float* y, int64_t rows, float* delta) const {
    for (int64_t r = 0; r < rows; ++r) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < headWidth_; ++i) sum += dy[r * width_ + i] * y[r * width_ + i];
      delta[r] = sum;
    }
  }

  int64_t batch_ = 0, time_ = 0, width_ = 0, heads_ = 0, headWidth_ = 0;
  float scale_ = 1;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  float* logSums_ = nullptr;
  float* scratch_ = nullptr;
  float* dx_ = nullptr;
  Incoming incoming_;
};

}  // namespace

std::unique_ptr<Op> makeAttention(const Layer& layer) {
  return std::make_unique<AttentionOp>(layer);
}

}  // namespace muster::host
