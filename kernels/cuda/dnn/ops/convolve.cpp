// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN.
#include "kernels/cuda/dnn/ops/convolve.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{512} << 20;
constexpr int kOffers = 16;
const float kOne = 1;
const float kZero = 0;

Status describeImage(cudnnTensorDescriptor_t& to, const Engine& engine, const ImageShape& s) {
  MUSTER_CUDNN(cudnnCreateTensorDescriptor(&to));
  MUSTER_CUDNN(cudnnSetTensor4dDescriptor(to, CUDNN_TENSOR_NHWC, engine.dnnType(), static_cast<int>(s.n),
                                          static_cast<int>(s.padded), static_cast<int>(s.h),
                                          static_cast<int>(s.w)));
  return {};
}

/// Plain f32 must not become TF32; everything else may use tensor cores.
cudnnMathType_t mathOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return CUDNN_FMA_MATH;
    case Dtype::kTf32:
      return CUDNN_DEFAULT_MATH;
    default:
      return CUDNN_TENSOR_OP_MATH;
  }
}

}  // namespace

Result<std::unique_ptr<Convolver>> Convolver::make(Engine& engine, const ConvolutionShape& shape,
                                                   bool inputGradient) {
  std::unique_ptr<Convolver> made(new Convolver(engine, shape));
  MUSTER_CHECK_OK(made->describe().context(made->key("convolution")));
  MUSTER_CHECK_OK(made->findAlgorithms(inputGradient).context(made->key("convolution")));
  return made;
}

Convolver::~Convolver() {
  for (cudnnTensorDescriptor_t tensor : {x_, y_})
    if (tensor != nullptr) (void)cudnnDestroyTensorDescriptor(tensor);
  if (w_ != nullptr) (void)cudnnDestroyFilterDescriptor(w_);
  if (convolution_ != nullptr) (void)cudnnDestroyConvolutionDescriptor(convolution_);
}

std::string Convolver::key(const char* what) const {
  const FilterShape& f = shape_.filter;
  return fmt::format("{} of {}x{}x{}x{} by {}x{}x{}x{}, stride {}, padding {}", what, shape_.in.n,
                     shape_.in.padded, shape_.in.h, shape_.in.w, f.paddedK, f.paddedC, f.r, f.s,
                     shape_.stride, shape_.padding);
}

Status Convolver::describe() {
  MUSTER_CHECK_OK(describeImage(x_, engine_, shape_.in));
  MUSTER_CHECK_OK(describeImage(y_, engine_, shape_.out));
  const FilterShape& f = shape_.filter;
  MUSTER_CUDNN(cudnnCreateFilterDescriptor(&w_));
  MUSTER_CUDNN(cudnnSetFilter4dDescriptor(w_, engine_.dnnType(), CUDNN_TENSOR_NHWC,
                                          static_cast<int>(f.paddedK), static_cast<int>(f.paddedC),
                                          static_cast<int>(f.r), static_cast<int>(f.s)));
  MUSTER_CUDNN(cudnnCreateConvolutionDescriptor(&convolution_));
  const auto padding = static_cast<int>(shape_.padding);
  const auto stride = static_cast<int>(shape_.stride);
  MUSTER_CUDNN(cudnnSetConvolution2dDescriptor(convolution_, padding, padding, stride, stride, 1, 1,
                                               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  MUSTER_CUDNN(cudnnSetConvolutionMathType(convolution_, mathOf(engine_.dtype)));
  return {};
}

template <typename Performance>
Status Convolver::take(const char* what, const std::vector<Performance>& offered, Candidates& to) {
  for (const Performance& offer : offered) {
    const bool fits = offer.status == CUDNN_STATUS_SUCCESS && offer.memory <= kMostWorkspace &&
                      (!engine_.deterministic || offer.determinism == CUDNN_DETERMINISTIC) &&
                      (engine_.dtype != Dtype::kF32 || offer.mathType == CUDNN_FMA_MATH ||
                       offer.mathType == CUDNN_DEFAULT_MATH);
    if (!fits) continue;
    const cudnnMathType_t math = engine_.dtype == Dtype::kF32 ? CUDNN_FMA_MATH : offer.mathType;
    to.all.push_back({static_cast<int>(offer.algo), math, offer.memory});
  }
  if (!to.all.empty()) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("cuDNN offers {} algorithms for the {}, none that {} in {} MiB of workspace",
                           offered.size(), what, engine_.deterministic ? "is deterministic and runs" : "runs",
                           kMostWorkspace >> 20),
               ""};
}

Status Convolver::findAlgorithms(bool inputGradient) {
  int found = 0;
  std::vector<cudnnConvolutionFwdAlgoPerf_t> forward(kOffers);
  MUSTER_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(engine_.cudnn, x_, w_, convolution_, y_, kOffers,
                                                      &found, forward.data()));
  forward.resize(static_cast<size_t>(found));
  MUSTER_CHECK_OK(take("output", forward, forward_));
  std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> filter(kOffers);
  MUSTER_CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(engine_.cudnn, x_, y_, convolution_, w_, kOffers,
                                                             &found, filter.data()));
  filter.resize(static_cast<size_t>(found));
  MUSTER_CHECK_OK(take("filter's gradient", filter, filter_));
  if (!inputGradient) return {};
  std::vector<cudnnConvolutionBwdDataAlgoPerf_t> input(kOffers);
  MUSTER_CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(engine_.cudnn, w_, y_, convolution_, x_, kOffers,
                                                           &found, input.data()));
  input.resize(static_cast<size_t>(found));
  return take("input's gradient", input, input_);
}

uint64_t Convolver::workspaceBytes() const {
  size_t most = 0;
  for (const Candidates* candidates : {&forward_, &input_, &filter_})
    for (const ConvolutionAlgorithm& a : candidates->all) most = std::max(most, a.workspace);
  return most;
}

Status Convolver::tuneForward(const void* x, const void* w, void* y) {
  MUSTER_TRY(forward_.index, engine_.choose(key("output"), forward_.all.size(),
                                            [&](size_t i) { return forwardBy(forward_.all[i], x, w, y); }));
  return {};
}
Status Convolver::tuneInputGradient(const void* w, const void* dy, void* dx, bool keep) {
  MUSTER_TRY(input_.index,
             engine_.choose(key(keep ? "added input gradient" : "input gradient"), input_.all.size(),
                            [&](size_t i) { return inputGradientBy(input_.all[i], w, dy, dx, keep); }));
  return {};
}
Status Convolver::tuneFilterGradient(const void* x, const void* dy, void* dw) {
  MUSTER_TRY(filter_.index, engine_.choose(key("filter gradient"), filter_.all.size(), [&](size_t i) {
    return filterGradientBy(filter_.all[i], x, dy, dw);
  }));
  return {};
}

Status Convolver::forwardBy(const ConvolutionAlgorithm& a, const void* x, const void* w, void* y) {
  MUSTER_CUDNN(cudnnSetConvolutionMathType(convolution_, a.math));
  MUSTER_CUDNN(cudnnConvolutionForward(engine_.cudnn, &kOne, x_, x, w_, w, convolution_,
                                       static_cast<cudnnConvolutionFwdAlgo_t>(a.algorithm), engine_.workspace,
                                       a.workspace, &kZero, y_, y));
  return {};
}
Status Convolver::inputGradientBy(const ConvolutionAlgorithm& a, const void* w, const void* dy, void* dx,
                                  bool keep) {
  MUSTER_CUDNN(cudnnSetConvolutionMathType(convolution_, a.math));
  MUSTER_CUDNN(cudnnConvolutionBackwardData(engine_.cudnn, &kOne, w_, w, y_, dy, convolution_,
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(a.algorithm),
                                            engine_.workspace, a.workspace, keep ? &kOne : &kZero, x_, dx));
  return {};
}
Status Convolver::filterGradientBy(const ConvolutionAlgorithm& a, const void* x, const void* dy, void* dw) {
  MUSTER_CUDNN(cudnnSetConvolutionMathType(convolution_, a.math));
  MUSTER_CUDNN(cudnnConvolutionBackwardFilter(engine_.cudnn, &kOne, x_, x, y_, dy, convolution_,
                                              static_cast<cudnnConvolutionBwdFilterAlgo_t>(a.algorithm),
                                              engine_.workspace, a.workspace, &kZero, w_, dw));
  return {};
}

}  // namespace muster::cuda
