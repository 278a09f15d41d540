// SPDX-License-Identifier: Apache-2.0
// cuDNN's convolutions by plain loops over NHWC images.
#include <cudnn.h>

#include <array>

#include "tests/kernels/cuda/emulation/numbers.h"
#include "tests/kernels/cuda/emulation/streams.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  bool bf16 = false;
  int64_t n = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] int64_t elements() const { return n * c * h * w; }
};
struct cudnnFilterStruct {
  bool bf16 = false;
  int64_t k = 0, c = 0, r = 0, s = 0;
  [[nodiscard]] int64_t elements() const { return k * c * r * s; }
};
struct cudnnConvolutionStruct {
  int64_t padding = 0, stride = 1;
};

namespace muster::emulation {
namespace {

struct Shape {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct convolution;

  [[nodiscard]] bool fits() const {
    const auto sized = [&](int64_t in, int64_t kernel, int64_t out) {
      return (in + 2 * convolution.padding - kernel) / convolution.stride + 1 == out;
    };
    return x.c == w.c && y.c == w.k && x.n == y.n && sized(x.h, w.r, y.h) && sized(x.w, w.s, y.w);
  }
  /// Calls visit(pixel of x, pixel of y, place in the filter) wherever the three meet.
  template <typename Visit>
  void each(Visit visit) const {
    for (int64_t n = 0; n < y.n; ++n)
      for (int64_t h = 0; h < y.h; ++h)
        for (int64_t v = 0; v < y.w; ++v)
          for (int64_t rs = 0; rs < w.r * w.s; ++rs) {
            const int64_t row = h * convolution.stride - convolution.padding + rs / w.s;
            const int64_t column = v * convolution.stride - convolution.padding + rs % w.s;
            if (row < 0 || column < 0 || row >= x.h || column >= x.w) continue;
            visit((n * x.h + row) * x.w + column, (n * y.h + h) * y.w + v, rs);
          }
  }
};

/// Filters as [place][c][k], so that the inner loop is over neighbours.
std::vector<float> readFilter(const cudnnFilterStruct& w, const void* data) {
  const std::vector<float> krsc = readNumbers(data, w.bf16, w.elements());
  std::vector<float> rsck(krsc.size());
  for (int64_t k = 0; k < w.k; ++k)
    for (int64_t rs = 0; rs < w.r * w.s; ++rs)
      for (int64_t c = 0; c < w.c; ++c)
        rsck[static_cast<size_t>((rs * w.c + c) * w.k + k)] =
            krsc[static_cast<size_t>((k * w.r * w.s + rs) * w.c + c)];
  return rsck;
}

void write(void* to, bool bf16, const std::vector<double>& values, float beta) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    writeNumber(to, bf16, at, values[i] + (beta != 0 ? beta * readNumber(to, bf16, at) : 0));
  }
}

void forward(const Shape& s, const void* x, const void* w, void* y, float beta) {
  const std::vector<float> in = readNumbers(x, s.x.bf16, s.x.elements());
  const std::vector<float> filter = readFilter(s.w, w);
  std::vector<double> out(static_cast<size_t>(s.y.elements()));
  s.each([&](int64_t from, int64_t to, int64_t rs) {
    for (int64_t c = 0; c < s.w.c; ++c) {
      const double value = in[static_cast<size_t>(from * s.w.c + c)];
      const float* row = filter.data() + (rs * s.w.c + c) * s.w.k;
      double* sums = out.data() + to * s.w.k;
      for (int64_t k = 0; k < s.w.k; ++k) sums[k] += value * static_cast<double>(row[k]);
    }
  });
  write(y, s.y.bf16, out, beta);
}

void inputGradient(const Shape& s, const void* w, const void* dy, void* dx, float beta) {
  const std::vector<float> gradient = readNumbers(dy, s.y.bf16, s.y.elements());
  const std::vector<float> filter = readFilter(s.w, w);
  std::vector<double> out(static_cast<size_t>(s.x.elements()));
  s.each([&](int64_t to, int64_t from, int64_t rs) {
    const float* g = gradient.data() + from * s.w.k;
    for (int64_t c = 0; c < s.w.c; ++c) {
      const float* row = filter.data() + (rs * s.w.c + c) * s.w.k;
      double sum = 0;
      for (int64_t k = 0; k < s.w.k; ++k) sum += static_cast<double>(g[k]) * static_cast<double>(row[k]);
      out[static_cast<size_t>(to * s.w.c + c)] += sum;
    }
  });
  write(dx, s.x.bf16, out, beta);
}

void filterGradient(const Shape& s, const void* x, const void* dy, void* dw, float beta) {
  const std::vector<float> in = readNumbers(x, s.x.bf16, s.x.elements());
  const std::vector<float> gradient = readNumbers(dy, s.y.bf16, s.y.elements());
  std::vector<double> out(static_cast<size_t>(s.w.elements()));
  s.each([&](int64_t pixel, int64_t from, int64_t rs) {
    const float* row = in.data() + pixel * s.w.c;
    for (int64_t k = 0; k < s.w.k; ++k) {
      const double g = gradient[static_cast<size_t>(from * s.w.k + k)];
      double* sums = out.data() + (k * s.w.r * s.w.s + rs) * s.w.c;
      for (int64_t c = 0; c < s.w.c; ++c) sums[c] += g * static_cast<double>(row[c]);
    }
  });
  write(dw, s.w.bf16, out, beta);
}

/// One that is not supported, a faster one that adds in any order, and one that is deterministic.
template <typename Offer>
cudnnStatus_t offer(int wanted, int* found, Offer* to) {
  const std::array<Offer, 3> all = {
      {{{}, CUDNN_STATUS_NOT_SUPPORTED, -1, 0, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH},
       {{}, CUDNN_STATUS_SUCCESS, -1, 100, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH},
       {{}, CUDNN_STATUS_SUCCESS, -1, 0, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH}}};
  *found = std::min(wanted, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *found, to);
  return CUDNN_STATUS_SUCCESS;
}

float numberAt(const void* value) {
  return *static_cast<const float*>(value);
}

template <typename Run>
cudnnStatus_t queueIfFits(cudnnHandle_t handle, const Shape& shape, Run run) {
  if (!shape.fits()) return CUDNN_STATUS_BAD_PARAM;
  (void)queue(handle->stream, [run, shape] {
    run(shape);
    return cudaSuccess;
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace muster::emulation

using namespace muster::emulation;

size_t cudnnGetVersion() {
  return 91900;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error of the emulated cuDNN";
}
void cudnnGetLastErrorString(char* text, size_t) {
  text[0] = '\0';
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return *handle = new cudnnContext, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return delete handle, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return *tensor = new cudnnTensorStruct, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return delete tensor, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED;
  *tensor = {type == CUDNN_DATA_BFLOAT16, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return *filter = new cudnnFilterStruct, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return delete filter, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int r, int s) {
  if (format != CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED;
  *filter = {type == CUDNN_DATA_BFLOAT16, k, c, r, s};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return *convolution = new cudnnConvolutionStruct, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return delete convolution, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int paddingH,
                                              int paddingW, int strideH, int strideW, int dilationH,
                                              int dilationW, cudnnConvolutionMode_t mode, cudnnDataType_t) {
  if (paddingH != paddingW || strideH != strideW || dilationH != 1 || dilationW != 1 ||
      mode != CUDNN_CROSS_CORRELATION)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *convolution = {paddingH, strideH};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                     cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
                                                     cudnnTensorDescriptor_t, int wanted, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* offers) {
  return offer(wanted, found, offers);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                            cudnnTensorDescriptor_t,
                                                            cudnnConvolutionDescriptor_t,
                                                            cudnnFilterDescriptor_t, int wanted, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* offers) {
  return offer(wanted, found, offers);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t,
                                                          cudnnTensorDescriptor_t,
                                                          cudnnConvolutionDescriptor_t,
                                                          cudnnTensorDescriptor_t, int wanted, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* offers) {
  return offer(wanted, found, offers);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t xShape,
                                      const void* x, cudnnFilterDescriptor_t wShape, const void* w,
                                      cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t,
                                      void*, size_t, const void* beta, cudnnTensorDescriptor_t yShape,
                                      void* y) {
  return queueIfFits(handle, {*xShape, *yShape, *wShape, *convolution},
                     [x, w, y, add = numberAt(beta)](const Shape& shape) { forward(shape, x, w, y, add); });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, cudnnFilterDescriptor_t wShape,
                                           const void* w, cudnnTensorDescriptor_t yShape, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t, void*, size_t, const void* beta,
                                           cudnnTensorDescriptor_t xShape, void* dx) {
  return queueIfFits(
      handle, {*xShape, *yShape, *wShape, *convolution},
      [w, dy, dx, add = numberAt(beta)](const Shape& shape) { inputGradient(shape, w, dy, dx, add); });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*,
                                             cudnnTensorDescriptor_t xShape, const void* x,
                                             cudnnTensorDescriptor_t yShape, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t, void*, size_t, const void* beta,
                                             cudnnFilterDescriptor_t wShape, void* dw) {
  return queueIfFits(
      handle, {*xShape, *yShape, *wShape, *convolution},
      [x, dy, dw, add = numberAt(beta)](const Shape& shape) { filterGradient(shape, x, dy, dw, add); });
}
