// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with the residual's addition and ReLU in the same pass over memory.
#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA::MUSTER_STORED {
namespace {

/// Runs `statistics(image, block)` for all, then `finish(block)`, then `apply(image, block)`. Where there are
/// enough blocks each thread does all three for its own ones, so that `apply` finds them in its cache.
template <typename Statistics, typename Finish, typename Apply>
void inPhases(const ImageBlocks& shape, Statistics statistics, Finish finish, Apply apply) {
  const int64_t threads = omp_get_max_threads();
  if (shape.blocks % threads == 0 || shape.blocks >= 8 * threads) {
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < shape.blocks; ++block) {
      for (int64_t image = 0; image < shape.images; ++image) statistics(image, block);
      finish(block);
      for (int64_t image = 0; image < shape.images; ++image) apply(image, block);
    }
    return;
  }
#pragma omp parallel
  {
#pragma omp for collapse(2) schedule(static)
    for (int64_t block = 0; block < shape.blocks; ++block)
      for (int64_t image = 0; image < shape.images; ++image) statistics(image, block);
#pragma omp for schedule(static)
    for (int64_t block = 0; block < shape.blocks; ++block) finish(block);
#pragma omp for collapse(2) schedule(static)
    for (int64_t block = 0; block < shape.blocks; ++block)
      for (int64_t image = 0; image < shape.images; ++image) apply(image, block);
  }
}

MUSTER_INLINE int64_t slabAt(const ImageBlocks& s, int64_t image, int64_t block) {
  return (image * s.blocks + block) * s.slab();
}
/// Two sums per lane for each image, kept in f64.
MUSTER_INLINE double* partial(const BatchNormData& d, int64_t image, int64_t block) {
  return d.scratch + (block * d.shape.images + image) * 2 * d.shape.lanes;
}

/// Mean and sum of squared deviations of one slab. The second pass finds the slab in the cache.
template <int B>
void slabStatistics(const BatchNormData& d, int64_t image, int64_t block) {
  const Stored* x = stored(d.x) + slabAt(d.shape, image, block);
  const int64_t pixels = d.shape.pixels;
  constexpr int kSums = 4;  // independent ones hide the latency of an addition
  Vec<B> sum[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= pixels; i += kSums)
    for (int j = 0; j < kSums; ++j) sum[j] += load<Vec<B>>(x + (i + j) * B);
  for (; i < pixels; ++i) sum[0] += load<Vec<B>>(x + i * B);
  const Vec<B> mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / static_cast<float>(pixels);
  Vec<B> square[kSums] = {};
  for (i = 0; i + kSums <= pixels; i += kSums)
    for (int j = 0; j < kSums; ++j) {
      const Vec<B> distance = load<Vec<B>>(x + (i + j) * B) - mean;
      square[j] += distance * distance;
    }
  for (; i < pixels; ++i) {
    const Vec<B> distance = load<Vec<B>>(x + i * B) - mean;
    square[0] += distance * distance;
  }
  const Vec<B> squares = (square[0] + square[1]) + (square[2] + square[3]);
  double* to = partial(d, image, block);
  for (int lane = 0; lane < B; ++lane) {
    to[lane] = static_cast<double>(mean[lane]);
    to[B + lane] = static_cast<double>(squares[lane]);
  }
}

/// Puts the slabs' statistics together (Chan, Golub, LeVeque 1979) and updates the running ones, whose
/// variance is the unbiased one as in PyTorch.
template <int B>
void finishStatistics(const BatchNormData& d, int64_t block) {
  const auto images = static_cast<double>(d.shape.images);
  const auto pixels = static_cast<double>(d.shape.pixels);
  const double count = images * pixels;
  for (int lane = 0; lane < B; ++lane) {
    double mean = 0;
    for (int64_t image = 0; image < d.shape.images; ++image) mean += partial(d, image, block)[lane];
    mean /= images;
    double squares = 0;
    for (int64_t image = 0; image < d.shape.images; ++image) {
      const double* from = partial(d, image, block);
      const double distance = from[lane] - mean;
      squares += from[B + lane] + pixels * distance * distance;
    }
    const int64_t channel = block * B + lane;
    const double unbiased = squares / (count > 1 ? count - 1 : 1);
    d.mean[channel] = static_cast<float>(mean);
    d.inverse[channel] = static_cast<float>(1 / std::sqrt(squares / count + d.epsilon));
    d.runningMean[channel] +=
        static_cast<float>(d.momentum * (mean - static_cast<double>(d.runningMean[channel])));
    d.runningVariance[channel] +=
        static_cast<float>(d.momentum * (unbiased - static_cast<double>(d.runningVariance[channel])));
  }
}

/// y = relu(x a + b + residual).
template <int B, bool kRelu, bool kResidual>
void applySlab(const BatchNormData& d, const Vec<B>& a, const Vec<B>& b, int64_t image, int64_t block) {
  const int64_t at = slabAt(d.shape, image, block);
  for (int64_t i = 0; i < d.shape.pixels; ++i) {
    Vec<B> v = load<Vec<B>>(stored(d.x) + at + i * B) * a + b;
    if constexpr (kResidual) v += load<Vec<B>>(stored(d.residual) + at + i * B);
    if constexpr (kRelu) v = v < 0.0f ? Vec<B>{} : v;  // NaN is not below zero and stays
    store(stored(d.y) + at + i * B, v);
  }
}

template <int B>
void applySlabAs(const BatchNormData& d, const Vec<B>& a, const Vec<B>& b, int64_t image, int64_t block) {
  if (d.residual != nullptr)
    d.relu ? applySlab<B, true, true>(d, a, b, image, block)
           : applySlab<B, false, true>(d, a, b, image, block);
  else
    d.relu ? applySlab<B, true, false>(d, a, b, image, block)
           : applySlab<B, false, false>(d, a, b, image, block);
}

/// The factor and the addend of a block's channels: x factor + addend is the normalised x, scaled and
/// shifted.
template <int B>
struct Line {
  Vec<B> factor, addend;
};
template <int B>
MUSTER_INLINE Line<B> lineOf(const BatchNormData& d, int64_t block) {
  const Vec<B> factor = load<Vec<B>>(d.scale + block * B) * load<Vec<B>>(d.inverse + block * B);
  return {factor, load<Vec<B>>(d.shift + block * B) - load<Vec<B>>(d.mean + block * B) * factor};
}

template <int B>
void train(const BatchNormData& d) {
  inPhases(
      d.shape, [&](int64_t image, int64_t block) { slabStatistics<B>(d, image, block); },
      [&](int64_t block) { finishStatistics<B>(d, block); },
      [&](int64_t image, int64_t block) {
        const Line<B> line = lineOf<B>(d, block);
        applySlabAs<B>(d, line.factor, line.addend, image, block);
      });
}

template <int B>
void evaluate(const BatchNormData& d) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < d.shape.images; ++image)
    for (int64_t block = 0; block < d.shape.blocks; ++block) {
      Vec<B> a, b;
      for (int lane = 0; lane < B; ++lane) {
        const int64_t c = block * B + lane;
        a[lane] = d.scale[c] / std::sqrt(d.runningVariance[c] + static_cast<float>(d.epsilon));
        b[lane] = d.shift[c] - d.runningMean[c] * a[lane];
      }
      applySlabAs<B>(d, a, b, image, block);
    }
}

/// What backward reads of one pixel's gradient, ReLU's mask applied. Without a residual the mask follows from
/// x by the very expression that gave y; with one, y itself is read.
template <int B, bool kRelu, bool kResidual, bool kMore>
MUSTER_INLINE Vec<B> maskedGradient(const BatchNormData& d, const BatchNormGradient& g, const Line<B>& line,
                                    const Vec<B>& x, int64_t at) {
  Vec<B> dz = load<Vec<B>>(stored(g.dy) + at);
  if constexpr (kMore) dz += load<Vec<B>>(stored(g.more) + at);
  if constexpr (kRelu) {
    Vec<B> y;
    if constexpr (kResidual)
      y = load<Vec<B>>(stored(d.y) + at);
    else
      y = x * line.factor + line.addend;
    dz = y <= 0.0f ? Vec<B>{} : dz;
  }
  return dz;
}

/// Sums of dz and dz (x - mean) of one slab; with a residual, dz is kept in dy: it is the residual's
/// gradient.
template <int B, bool kRelu, bool kResidual, bool kMore>
void gradientSums(const BatchNormData& d, const BatchNormGradient& g, int64_t image, int64_t block) {
  const int64_t slab = slabAt(d.shape, image, block);
  const Line<B> line = lineOf<B>(d, block);
  const Vec<B> mean = load<Vec<B>>(d.mean + block * B);
  constexpr int kSums = 2;
  Vec<B> sum[kSums] = {}, product[kSums] = {};
  const auto step = [&](int64_t i, int j) {
    const int64_t at = slab + i * B;
    const Vec<B> x = load<Vec<B>>(stored(d.x) + at);
    const Vec<B> dz = maskedGradient<B, kRelu, kResidual, kMore>(d, g, line, x, at);
    if constexpr (kResidual) store(stored(g.dy) + at, dz);
    sum[j] += dz;
    product[j] += dz * (x - mean);
  };
  int64_t i = 0;
  for (; i + kSums <= d.shape.pixels; i += kSums)
    for (int j = 0; j < kSums; ++j) step(i + j, j);
  for (; i < d.shape.pixels; ++i) step(i, 0);
  sum[0] += sum[1];
  product[0] += product[1];
  double* to = partial(d, image, block);
  for (int lane = 0; lane < B; ++lane) {
    to[lane] = static_cast<double>(sum[0][lane]);
    to[B + lane] = static_cast<double>(product[0][lane]);
  }
}

/// Leaves the means of dz and of dz (x - mean) in the first image's partial sums.
template <int B>
void finishGradient(const BatchNormData& d, const BatchNormGradient& g, int64_t block) {
  const double count = static_cast<double>(d.shape.images) * static_cast<double>(d.shape.pixels);
  double* first = partial(d, 0, block);
  for (int lane = 0; lane < B; ++lane) {
    double sum = 0, product = 0;
    for (int64_t image = 0; image < d.shape.images; ++image) {
      sum += partial(d, image, block)[lane];
      product += partial(d, image, block)[B + lane];
    }
    const int64_t channel = block * B + lane;
    g.shift[channel] = static_cast<float>(sum);
    g.scale[channel] = static_cast<float>(product * static_cast<double>(d.inverse[channel]));
    first[lane] = sum / count;
    first[B + lane] = product / count;
  }
}

/// dx = scale inverse (dz - mean(dz) - (x - mean) inverse^2 mean(dz (x - mean))).
template <int B, bool kRelu, bool kResidual, bool kMore>
void gradientSlab(const BatchNormData& d, const BatchNormGradient& g, int64_t image, int64_t block) {
  const int64_t slab = slabAt(d.shape, image, block);
  const Line<B> line = lineOf<B>(d, block);
  const Vec<B> mean = load<Vec<B>>(d.mean + block * B);
  const Vec<B> inverse = load<Vec<B>>(d.inverse + block * B);
  const double* means = partial(d, 0, block);
  Vec<B> meanDz, meanProduct;
  for (int lane = 0; lane < B; ++lane) {
    meanDz[lane] = static_cast<float>(means[lane]);
    meanProduct[lane] = static_cast<float>(means[B + lane]);
  }
  const Vec<B> slope = meanProduct * inverse * inverse;
  for (int64_t i = 0; i < d.shape.pixels; ++i) {
    const int64_t at = slab + i * B;
    const Vec<B> x = load<Vec<B>>(stored(d.x) + at);
    Vec<B> dz;
    if constexpr (kResidual)
      dz = load<Vec<B>>(stored(g.dy) + at);
    else
      dz = maskedGradient<B, kRelu, false, kMore>(d, g, line, x, at);
    store(stored(g.dx) + at, Vec<B>(line.factor * ((dz - meanDz) - (x - mean) * slope)));
  }
}

template <int B, bool kRelu, bool kResidual, bool kMore>
void backward(const BatchNormData& d, const BatchNormGradient& g) {
  inPhases(
      d.shape,
      [&](int64_t image, int64_t block) { gradientSums<B, kRelu, kResidual, kMore>(d, g, image, block); },
      [&](int64_t block) { finishGradient<B>(d, g, block); },
      [&](int64_t image, int64_t block) { gradientSlab<B, kRelu, kResidual, kMore>(d, g, image, block); });
}

template <int B, bool kRelu>
void backwardAs(const BatchNormData& d, const BatchNormGradient& g) {
  const bool more = g.more != nullptr;
  if (d.residual != nullptr)
    more ? backward<B, kRelu, true, true>(d, g) : backward<B, kRelu, true, false>(d, g);
  else
    more ? backward<B, kRelu, false, true>(d, g) : backward<B, kRelu, false, false>(d, g);
}

}  // namespace

void batchNormTrain(const BatchNormData& d) {
  d.shape.lanes == 16 ? train<16>(d) : train<8>(d);
}
void batchNormEvaluate(const BatchNormData& d) {
  d.shape.lanes == 16 ? evaluate<16>(d) : evaluate<8>(d);
}
void batchNormBackward(const BatchNormData& d, const BatchNormGradient& g) {
  if (d.shape.lanes == 16)
    d.relu ? backwardAs<16, true>(d, g) : backwardAs<16, false>(d, g);
  else
    d.relu ? backwardAs<8, true>(d, g) : backwardAs<8, false>(d, g);
}

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
