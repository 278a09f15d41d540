// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend API.
#include "kernels/cuda/dnn/library/dnn_graph.h"

#include <algorithm>
#include <utility>

namespace muster::cuda {
namespace {

constexpr int64_t kTensorAlignment = 16;
constexpr int64_t kMostConfigurations = 8;
constexpr int64_t kMostNotes = 16;

}  // namespace

Descriptor::~Descriptor() {
  if (raw_ != nullptr) (void)cudnnBackendDestroyDescriptor(raw_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(raw_, other.raw_);
  return *this;
}

Status Descriptor::make(cudnnBackendDescriptorType_t type) {
  MUSTER_CUDNN(cudnnBackendCreateDescriptor(type, &raw_));
  return {};
}
template <typename T>
Status Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
                       int64_t count) {
  MUSTER_CUDNN(cudnnBackendSetAttribute(raw_, name, type, count, values));
  return {};
}
Status Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw, 1);
}
Status Descriptor::finalize() {
  MUSTER_CUDNN(cudnnBackendFinalize(raw_));
  return {};
}

Status DnnGraph::addTensor(const GraphTensor& spec, Descriptor& to, int64_t id) {
  const bool isVirtual = spec.holding == Holding::kVirtual;
  const bool isValue = spec.holding == Holding::kValue;
  MUSTER_CHECK_OK(to.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &spec.type, 1));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, spec.dims.data(), 4));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, spec.strides.data(), 4));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id, 1));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &kTensorAlignment, 1));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &isVirtual, 1));
  MUSTER_CHECK_OK(to.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &isValue, 1));
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
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision, 1));
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
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode, 1));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &precision, 1));
  if (axis >= 0) MUSTER_CHECK_OK(how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &axis, 1));
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
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &op, 1));
  MUSTER_CHECK_OK(how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision, 1));
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

/// Whether the engine of a configuration gives the same bits every time.
Result<bool> DnnGraph::staysTheSame(const Descriptor& configuration) {
  Descriptor engine;
  MUSTER_CHECK_OK(engine.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t found = 0;
  MUSTER_CUDNN(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &raw));
  std::array<cudnnBackendNumericalNote_t, kMostNotes> notes{};
  MUSTER_CUDNN(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        kMostNotes, &found, notes.data()));
  const auto end = notes.begin() + std::min(found, kMostNotes);
  return std::find(notes.begin(), end, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == end;
}

Status DnnGraph::tryConfiguration(const Descriptor& configuration) {
  if (engine_.deterministic) {
    MUSTER_TRY(const bool same, staysTheSame(configuration));
    if (!same) return Error{ErrorCode::kUnsupported, "cuDNN's engine is not deterministic", ""};
  }
  Descriptor plan;
  MUSTER_CHECK_OK(plan.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  MUSTER_CHECK_OK(plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &engine_.cudnn, 1));
  MUSTER_CHECK_OK(plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration));
  MUSTER_CHECK_OK(plan.finalize());
  int64_t found = 0;
  int64_t bytes = 0;
  MUSTER_CUDNN(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &found, &bytes));
  workspaceBytes_ = static_cast<uint64_t>(bytes);
  plan_ = std::move(plan);
  return {};
}

Status DnnGraph::tryConfigurations(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics;
  MUSTER_CHECK_OK(heuristics.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  MUSTER_CHECK_OK(heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  MUSTER_CHECK_OK(heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode, 1));
  MUSTER_CHECK_OK(heuristics.finalize());
  std::array<Descriptor, kMostConfigurations> configurations;
  std::array<cudnnBackendDescriptor_t, kMostConfigurations> raw{};
  for (size_t i = 0; i < configurations.size(); ++i) {
    MUSTER_CHECK_OK(configurations[i].make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw[i] = configurations[i].get();
  }
  int64_t found = 0;
  MUSTER_CUDNN(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostConfigurations, &found,
                                        raw.data()));
  Status last = Error{ErrorCode::kUnsupported, "cuDNN suggests no engine", ""};
  for (int64_t i = 0; i < std::min(found, kMostConfigurations); ++i) {
    last = tryConfiguration(configurations[static_cast<size_t>(i)]);
    if (last.ok()) return last;
  }
  return last;
}

Status DnnGraph::compile() {
  Descriptor graph;
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const Descriptor& operation : operations_) operations.push_back(operation.get());
  MUSTER_CHECK_OK(graph.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  MUSTER_CHECK_OK(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &engine_.cudnn, 1));
  MUSTER_CHECK_OK(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
                            static_cast<int64_t>(operations.size())));
  MUSTER_CHECK_OK(graph.finalize());
  const Status best = tryConfigurations(graph, CUDNN_HEUR_MODE_A);
  return best.ok() ? best : tryConfigurations(graph, CUDNN_HEUR_MODE_FALLBACK);
}

/// Which shapes, types and GPUs are served is cuDNN's to say, and it says so with several codes.
Status DnnGraph::build() {
  if (status_.ok()) note(compile());
  if (status_.ok()) return {};
  return Error{ErrorCode::kUnsupported, status_.error().message, status_.error().where};
}

Status DnnGraph::bind(const std::vector<int>& tensors, const std::vector<void*>& data, void* workspace) {
  std::vector<int64_t> ids;
  for (int tensor : tensors) ids.push_back(tensor + 1);
  const auto count = static_cast<int64_t>(ids.size());
  pack_ = {};
  MUSTER_CHECK_OK(pack_.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data.data(), count));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), count));
  MUSTER_CHECK_OK(pack_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace, 1));
  return pack_.finalize();
}

Status DnnGraph::run() {
  MUSTER_CUDNN(cudnnBackendExecute(engine_.cudnn, plan_.get(), pack_.get()));
  return {};
}

}  // namespace muster::cuda
