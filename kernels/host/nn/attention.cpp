// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention in blocks of rows: scores live in the cache of one thread and are computed
// again for backward.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

constexpr int64_t kBlockRows = 64;  ///< scores of a block (64 x 512 floats) fit a core's second-level cache

/// Rows of f32 that are `stride` apart.
struct Matrix {
  float* data = nullptr;
  int64_t stride = 0;
  [[nodiscard]] float* row(int64_t number) const { return data + number * stride; }
};

/// Rows of f32 as they stand in a product: as they are (N) or transposed (T).
struct Factor {
  char as = 'N';
  const float* data = nullptr;
  int64_t stride = 0;
};

/// C = A B + beta C, where A is m x k and B is k x n.
struct BlockProduct {
  int64_t m = 0, n = 0, k = 0;
  float beta = 0;
};

/// Row-major; one thread inside a parallel region.
void multiply(const BlockProduct& of, const Factor& a, const Factor& b, const Matrix& c) {
  const dnnl_status_t status = dnnl_sgemm(a.as, b.as, of.m, of.n, of.k, 1.0f, a.data, a.stride, b.data,
                                          b.stride, of.beta, c.data, c.stride);
  if (status != dnnl_success)
    std::fill_n(c.data, 1, NAN);  // arguments are ours; a failure must not look right
}

/// One head of one sample: [time, head width] each.
struct Head {
  Matrix q, k, v, y;
  Matrix dy, dq, dk, dv;
  float* logSums = nullptr;
};

/// The products are f32's for both types: oneDNN 2.6 has no bf16 product that a thread may call on its own.
/// f32 is worked on where it lies, bf16 is spread out in the thread's scratch memory first, head after head.
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
    elementBytes_ = plan.elementBytes();
    inPlace_ = plan.type == memory::data_type::f32;
    MUSTER_TRY(y_, plan.makeRows(layer_.output));
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
      for (int64_t h = 0; h < heads_; ++h) {
        const Head head = headAt(n, h);
        for (int64_t row = 0; row < time_; row += kBlockRows) forwardBlock(head, row);
        settle(head.y, y_, outputAt(n, h), width_);
      }
  }

  void backward() override {
    gather(batch_ * time_ * width_);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < batch_; ++n)
      for (int64_t h = 0; h < heads_; ++h) {
        const Head head = withGradients(headAt(n, h), n, h);
        // from the last block on: it sees every key, so it may overwrite what the others add to
        for (int64_t row = (time_ - 1) / kBlockRows * kBlockRows; row >= 0; row -= kBlockRows)
          backwardBlock(head, row);
        settle(head.dq, dx_, packedAt(n, h, 0), 3 * width_);
        settle(head.dk, dx_, packedAt(n, h, 1), 3 * width_);
        settle(head.dv, dx_, packedAt(n, h, 2), 3 * width_);
      }
  }

 private:
  /// Two blocks of scores and a number for each row; what is spread out of one head.
  [[nodiscard]] int64_t threadScratch() const {
    return 2 * kBlockRows * (time_ + 16) + kBlockRows + (inPlace_ ? 0 : 8 * time_ * headWidth_);
  }
  [[nodiscard]] float* myScratch() const {
    return scratch_ + omp_get_thread_num() * threadScratch();
  }
  [[nodiscard]] ScoreBlock blockAt(int64_t row) const {
    const int64_t rows = std::min(kBlockRows, time_ - row);
    if (!layer_.attention.causal) return {rows, time_, time_};
    return {rows, row + rows, row + 1};
  }
  /// Where q, k or v (0, 1, 2) of one head begins; rows are 3 width_ apart.
  [[nodiscard]] int64_t packedAt(int64_t n, int64_t h, int64_t which) const {
    return (n * time_ * 3 + which) * width_ + h * headWidth_;
  }
  [[nodiscard]] int64_t outputAt(int64_t n, int64_t h) const {
    return n * time_ * width_ + h * headWidth_;
  }

  [[nodiscard]] void* element(void* tensor, int64_t at) const {
    return static_cast<std::byte*>(tensor) + at * elementBytes_;
  }
  /// The rows of one head in a tensor, in f32: themselves, or in the piece of scratch memory of that number.
  [[nodiscard]] Matrix rowsAt(void* tensor, int64_t at, int64_t stride, int piece, bool read = true) const {
    if (inPlace_) return {static_cast<float*>(tensor) + at, stride};
    float* to = myScratch() + 2 * kBlockRows * (time_ + 16) + kBlockRows + piece * time_ * headWidth_;
    if (read) loops_.rowsToF32(element(tensor, at), stride, to, {time_, headWidth_});
    return {to, headWidth_};
  }
  /// Writes back what was spread out.
  void settle(const Matrix& matrix, void* tensor, int64_t at, int64_t stride) const {
    if (!inPlace_) loops_.rowsFromF32(matrix.data, element(tensor, at), stride, {time_, headWidth_});
  }
  [[nodiscard]] Head headAt(int64_t n, int64_t h) const {
    Head head;
    head.q = rowsAt(x_, packedAt(n, h, 0), 3 * width_, 0);
    head.k = rowsAt(x_, packedAt(n, h, 1), 3 * width_, 1);
    head.v = rowsAt(x_, packedAt(n, h, 2), 3 * width_, 2);
    head.y = rowsAt(y_, outputAt(n, h), width_, 3);
    head.logSums = logSums_ + (n * heads_ + h) * time_;
    return head;
  }
  [[nodiscard]] Head withGradients(Head head, int64_t n, int64_t h) const {
    head.dy = rowsAt(incoming_.first, outputAt(n, h), width_, 4);
    head.dq = rowsAt(dx_, packedAt(n, h, 0), 3 * width_, 5, false);
    head.dk = rowsAt(dx_, packedAt(n, h, 1), 3 * width_, 6, false);
    head.dv = rowsAt(dx_, packedAt(n, h, 2), 3 * width_, 7, false);
    return head;
  }

  void scores(const Head& head, int64_t row, const ScoreBlock& block, float* to) const {
    multiply({block.rows, block.columns, headWidth_}, {'N', head.q.row(row), head.q.stride},
             {'T', head.k.data, head.k.stride}, {to, block.columns});
  }

  void forwardBlock(const Head& head, int64_t row) const {
    const ScoreBlock block = blockAt(row);
    float* p = myScratch();
    scores(head, row, block, p);
    loops_.softmaxBlock(block, scale_, p, head.logSums + row);
    multiply({block.rows, headWidth_, block.columns}, {'N', p, block.columns},
             {'N', head.v.data, head.v.stride}, {head.y.row(row), head.y.stride});
  }

  void backwardBlock(const Head& head, int64_t row) const {
    const ScoreBlock block = blockAt(row);
    const float beta = row + block.rows == time_ ? 0.0f : 1.0f;
    float* p = myScratch();
    float* dp = p + kBlockRows * (time_ + 16);
    float* delta = dp + kBlockRows * (time_ + 16);
    const float* dy = head.dy.row(row);
    scores(head, row, block, p);
    loops_.softmaxAgain(block, scale_, p, head.logSums + row);
    multiply({block.columns, headWidth_, block.rows, beta}, {'T', p, block.columns},
             {'N', dy, head.dy.stride}, head.dv);
    multiply({block.rows, block.columns, headWidth_}, {'N', dy, head.dy.stride},
             {'T', head.v.data, head.v.stride}, {dp, block.columns});
    rowProducts(head, row, block.rows, delta);
    loops_.softmaxBackward(block, scale_, p, dp, delta);
    multiply({block.rows, headWidth_, block.columns}, {'N', dp, block.columns},
             {'N', head.k.data, head.k.stride}, {head.dq.row(row), head.dq.stride});
    multiply({block.columns, headWidth_, block.rows, beta}, {'T', dp, block.columns},
             {'N', head.q.row(row), head.q.stride}, head.dk);
  }

  /// delta = sum of dy y over a head's width: what softmax's gradient subtracts.
  void rowProducts(const Head& head, int64_t row, int64_t rows, float* delta) const {
    for (int64_t r = 0; r < rows; ++r) {
      const float* dy = head.dy.row(row + r);
      const float* y = head.y.row(row + r);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < headWidth_; ++i) sum += dy[i] * y[i];
      delta[r] = sum;
    }
  }

  int64_t batch_ = 0, time_ = 0, width_ = 0, heads_ = 0, headWidth_ = 0, elementBytes_ = 4;
  bool inPlace_ = true;
  float scale_ = 1;
  void* x_ = nullptr;
  void* y_ = nullptr;
  void* dx_ = nullptr;
  float* logSums_ = nullptr;
  float* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> makeAttention(const Layer& layer, Plan& plan) {
  return std::make_unique<AttentionOp>(layer, plan);
}

}  // namespace muster::host
