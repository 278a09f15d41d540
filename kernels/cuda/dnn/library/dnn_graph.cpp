// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend API.
#include "kernels/cuda/dnn/library/dnn_graph.h"

#include <algorithm>

namespace muster::cuda {
namespace {

constexpr int64_t kTensorAlignment = 16;

/// cuDNN has an operation for each product, with the same attributes under names of its own.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t how, x, w, y, alpha, beta;
};

ConvolutionNames namesOf(ConvolutionProduct product) {
  switch (product) {
    case ConvolutionProduct::kOutput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionProduct::kInputGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

}  // namespace

Status DnnGraph::addTensor(const GraphTensor& spec, Descriptor& to, int64_t id) {
  const bool isVirtual = spec.holding == Holding::kVirtual;
  const bool isValue = spec.holding == Holding::kValue;
  MUSTER_CHECK_OK(to.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &spec.type));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, spec.dims.data(), 4));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, spec.strides.data(), 4));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &kTensorAlignment));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &isVirtual));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &isValue));
  return to.finalize();
}

int DnnGraph::tensor(const GraphTensor& spec) {
  const auto id = static_cast<int64_t>(tensors_.size());
  tensors_.emplace_back();
  note(addTensor(spec, tensors_.back(), id + 1));
  return static_cast<int>(id);
}

Status DnnGraph::addMatmul(int a, int b, int to) {
  Descriptor how, operation;
  const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  MUSTER_CHECK_OK(how.make(CUDNN_BACKEND_MATMUL_DESCRIPTOR));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision));
  MUSTER_CHECK_OK(how.finalize());
  MUSTER_CHECK_OK(operation.make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a)));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b)));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(to)));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how));
  MUSTER_CHECK_OK(operation.finalize());
  helpers_.push_back(std::move(how));
  operations_.push_back(std::move(operation));
  return {};
}

/// `axis` is only set for a mode that has one: not below 0. Inputs that are missing are -1.
Status DnnGraph::addPointwise(cudnnPointwiseMode_t mode, int64_t axis, const std::array<int, 3>& inputs,
                              int to, cudnnDataType_t precision) {
  Descriptor how, operation;
  MUSTER_CHECK_OK(how.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &precision));
  if (axis >= 0) MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &axis));
  MUSTER_CHECK_OK(how.finalize());
  MUSTER_CHECK_OK(operation.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(inputs[0])));
  if (inputs[1] >= 0) MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(inputs[1])));
  if (inputs[2] >= 0) MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(inputs[2])));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(to)));
  MUSTER_CHECK_OK(operation.finalize());
  helpers_.push_back(std::move(how));
  operations_.push_back(std::move(operation));
  return {};
}

Status DnnGraph::addReduction(cudnnReduceTensorOp_t op, int x, int to) {
  Descriptor how, operation;
  const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  MUSTER_CHECK_OK(how.make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &op));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision));
  MUSTER_CHECK_OK(how.finalize());
  MUSTER_CHECK_OK(operation.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x)));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(to)));
  MUSTER_CHECK_OK(operation.finalize());
  helpers_.push_back(std::move(how));
  operations_.push_back(std::move(operation));
  return {};
}

Status DnnGraph::addReshape(int x, int to) {
  Descriptor operation;
  MUSTER_CHECK_OK(operation.make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x)));
  MUSTER_CHECK_OK(operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(to)));
  MUSTER_CHECK_OK(operation.finalize());
  operations_.push_back(std::move(operation));
  return {};
}

Status DnnGraph::describeConvolution(Descriptor& how, int64_t stride, int64_t padding) {
  const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::array<int64_t, 2> strides = {stride, stride}, paddings = {padding, padding}, dilations = {1, 1};
  const int64_t dimensions = 2;
  MUSTER_CHECK_OK(how.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &dimensions));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, strides.data(), 2));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilations.data(), 2));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, paddings.data(), 2));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, paddings.data(), 2));
  return how.finalize();
}

Status DnnGraph::addConvolution(ConvolutionProduct product, const std::array<int, 3>& xwy, int64_t stride,
                                int64_t padding, bool added) {
  const ConvolutionNames names = namesOf(product);
  const float alpha = 1, beta = added ? 1 : 0;
  Descriptor how, operation;
  MUSTER_CHECK_OK(describeConvolution(how, stride, padding));
  MUSTER_CHECK_OK(operation.make(names.operation));
  MUSTER_CHECK_OK(operation.set(names.how, how));
  MUSTER_CHECK_OK(operation.set(names.x, at(xwy[0])));
  MUSTER_CHECK_OK(operation.set(names.w, at(xwy[1])));
  MUSTER_CHECK_OK(operation.set(names.y, at(xwy[2])));
  MUSTER_CHECK_OK(operation.set(names.alpha, CUDNN_TYPE_FLOAT, &alpha));
  MUSTER_CHECK_OK(operation.set(names.beta, CUDNN_TYPE_FLOAT, &beta));
  MUSTER_CHECK_OK(operation.finalize());
  helpers_.push_back(std::move(how));
  operations_.push_back(std::move(operation));
  return {};
}

void DnnGraph::matmul(int a, int b, int to) {
  if (status_.ok()) note(addMatmul(a, b, to));
}
void DnnGraph::pointwise(cudnnPointwiseMode_t mode, int a, int b, int select, int to,
                         cudnnDataType_t precision) {
  if (status_.ok()) note(addPointwise(mode, -1, {a, b, select}, to, precision));
}
void DnnGraph::index(int like, int64_t axis, int to) {
  if (status_.ok()) note(addPointwise(CUDNN_POINTWISE_GEN_INDEX, axis, {like, -1, -1}, to, CUDNN_DATA_FLOAT));
}
void DnnGraph::reduce(cudnnReduceTensorOp_t op, int x, int to) {
  if (status_.ok()) note(addReduction(op, x, to));
}
void DnnGraph::reshape(int x, int to) {
  if (status_.ok()) note(addReshape(x, to));
}
void DnnGraph::convolution(ConvolutionProduct product, int x, int w, int y, int64_t stride, int64_t padding,
                           bool added) {
  if (status_.ok()) note(addConvolution(product, {x, w, y}, stride, padding, added));
}

Status DnnGraph::compile(size_t most) {
  Descriptor graph;
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const Descriptor& operation : operations_) operations.push_back(operation.raw());
  MUSTER_CHECK_OK(graph.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  if (target_.device == nullptr)
    MUSTER_CHECK_OK(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &target_.handle));
  MUSTER_CHECK_OK(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
                            static_cast<int64_t>(operations.size())));
  MUSTER_CHECK_OK(graph.finalize());
  MUSTER_TRY(plans_, findPlans(target_, graph, most));
  return {};
}

Status DnnGraph::build(size_t most) {
  if (status_.ok()) note(compile(most));
  return status_;
}

uint64_t DnnGraph::workspaceBytes() const {
  uint64_t bytes = 0;
  for (const DnnPlan& plan : plans_) bytes = std::max(bytes, plan.workspaceBytes);
  return bytes;
}

Status DnnGraph::bind(const std::vector<int>& tensors, const std::vector<void*>& data, void* workspace) {
  std::vector<int64_t> ids;
  for (int tensor : tensors) ids.push_back(tensor + 1);
  const auto count = static_cast<int64_t>(ids.size());
  pack_ = {};
  MUSTER_CHECK_OK(pack_.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data.data(), count));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), count));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace));
  return pack_.finalize();
}

Status DnnGraph::run(size_t plan) {
  MUSTER_CUDNN(cudnnBackendExecute(target_.handle, plans_[plan].plan.raw(), pack_.raw()));
  return {};
}

}  // namespace muster::cuda
