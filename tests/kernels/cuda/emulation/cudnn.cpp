// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend API for graphs of one convolution; it says of all others that it does not support them.
#include <cudnn.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/kernels/cuda/emulation/convolutions.h"
#include "tests/kernels/cuda/emulation/libraries.h"
#include "tests/kernels/cuda/emulation/numbers.h"
#include "tests/kernels/cuda/emulation/streams.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace muster::emulation {
namespace {

cudnnStatus_t answerToOtherGraphs = CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;

/// What a cudnnBackendDescriptor_t points to. Attributes that are descriptors are kept as they were then.
struct Node {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;
  std::map<cudnnBackendAttributeName_t, std::vector<std::shared_ptr<const Node>>> nodes;
  size_t engine = 0;                                  ///< of configurations and engines
  std::pair<cudnnBackendKnobType_t, int64_t> knob{};  ///< of a knob's choice

  template <typename T>
  [[nodiscard]] std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& bytes = values.at(name);
    std::vector<T> found(bytes.size() / sizeof(T));
    std::memcpy(found.data(), bytes.data(), found.size() * sizeof(T));
    return found;
  }
  template <typename T>
  [[nodiscard]] T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
  [[nodiscard]] const Node& node(cudnnBackendAttributeName_t name) const { return *nodes.at(name).at(0); }
};
struct Descriptor {
  std::shared_ptr<Node> node = std::make_shared<Node>();
};

/// One that cannot make a plan, one that takes inputs for TF32, one that adds in any order, and a plain one
/// that only the fallback mode knows.
struct EngineKind {
  int64_t number;
  cudnnBackendHeurMode_t mode;
  std::optional<cudnnBackendNumericalNote_t> note;
  int64_t workspace;
  bool runs = true;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs = {};
};
const std::array kEngines = {
    EngineKind{5, CUDNN_HEUR_MODE_A, {}, 0, false},
    EngineKind{62,
               CUDNN_HEUR_MODE_A,
               CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
               0,
               true,
               {{CUDNN_KNOB_TYPE_TILE_SIZE, 17}, {CUDNN_KNOB_TYPE_STAGES, 3}}},
    EngineKind{20, CUDNN_HEUR_MODE_A, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 100},
    EngineKind{1, CUDNN_HEUR_MODE_FALLBACK, {}, 16},
};

/// An operation on a convolution, and the tensors' names in the variant pack.
struct Operation {
  ConvolutionSize size;
  cudnnBackendDescriptorType_t type;
  int64_t x, w, y;
  float beta;
};

/// [n, c, h, w] or [k, c, r, s] whose second dimension lies innermost.
std::array<int64_t, 4> dimensionsOf(const Node& tensor) {
  const auto dims = tensor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const std::vector<int64_t> wanted = {dims.at(1) * dims.at(2) * dims.at(3), 1, dims.at(1) * dims.at(3),
                                       dims.at(1)};
  if (strides != wanted) throw CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
  return {dims[0], dims[1], dims[2], dims[3]};
}
cuda::Element elementOf(const Node& tensor) {
  switch (tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) {
    case CUDNN_DATA_HALF:
      return cuda::Element::kF16;
    case CUDNN_DATA_BFLOAT16:
      return cuda::Element::kBf16;
    case CUDNN_DATA_FLOAT:
      return cuda::Element::kF32;
    default:
      throw CUDNN_STATUS_NOT_SUPPORTED;
  }
}
ImageSize imageOf(const Node& tensor) {
  const auto [n, c, h, w] = dimensionsOf(tensor);
  return {elementOf(tensor), n, c, h, w};
}

struct Names {
  cudnnBackendAttributeName_t how, x, w, y, alpha, beta;
};
Names namesOf(cudnnBackendDescriptorType_t type) {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return {
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return {
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  throw answerToOtherGraphs;
}

Operation operationOf(const Node& graph) {
  const auto& operations = graph.nodes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.size() != 1) throw answerToOtherGraphs;
  const Node& node = *operations[0];
  const Names names = namesOf(node.type);
  const Node &how = node.node(names.how), &x = node.node(names.x), &w = node.node(names.w),
             &y = node.node(names.y);
  const auto [k, c, r, s] = dimensionsOf(w);
  Operation made{
      {imageOf(x), imageOf(y), {elementOf(w), k, c, r, s}}, node.type,
      x.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),          w.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
      y.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),          node.one<float>(names.beta)};
  const auto strides = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto paddings = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  made.size.stride = strides.at(0);
  made.size.padding = paddings.at(0);
  const bool plain =
      strides == std::vector<int64_t>(2, strides[0]) && paddings == std::vector<int64_t>(2, paddings[0]) &&
      paddings == how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) &&
      how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS) == std::vector<int64_t>(2, 1) &&
      how.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2 &&
      how.one<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION &&
      how.one<int>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT && node.one<float>(names.alpha) == 1;
  if (!plain || !made.size.fits()) throw CUDNN_STATUS_BAD_PARAM;
  return made;
}

void finalize(Node& node) {
  if (node.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) (void)operationOf(node);
  if (node.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
    (void)node.node(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (node.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      !kEngines.at(node.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine).runs)
    throw CUDNN_STATUS_NOT_SUPPORTED;
  node.finalized = true;
}

/// Configurations know their engine and graph.
int64_t suggest(const Node& heuristics, int64_t most, void* const* to) {
  const auto mode = heuristics.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  int64_t count = 0;
  for (size_t i = 0; i < kEngines.size() && count < most; ++i) {
    if (kEngines[i].mode != mode) continue;
    Node& configuration = *static_cast<Descriptor*>(to[count++])->node;
    configuration.engine = i;
    configuration.nodes[CUDNN_ATTR_OPERATIONGRAPH_OPS] =
        heuristics.node(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).nodes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    configuration.finalized = true;
  }
  return count;
}

int64_t tellKnobs(const EngineKind& engine, int64_t most, void* const* to) {
  const auto count = std::min(engine.knobs.size(), static_cast<size_t>(most));
  for (size_t i = 0; i < count; ++i) static_cast<Descriptor*>(to[i])->node->knob = engine.knobs[i];
  return static_cast<int64_t>(count);
}

template <typename T>
int64_t give(T value, void* to) {
  return *static_cast<T*>(to) = value, 1;
}

int64_t get(const Node& node, cudnnBackendAttributeName_t name, int64_t most, void* to) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return suggest(node, most, static_cast<void**>(to));
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return give<int64_t>(0, to);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return (*static_cast<Descriptor**>(to))->node->engine = node.engine, 1;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return tellKnobs(kEngines.at(node.engine), most, static_cast<void**>(to));
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return give(node.knob.first, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return give(node.knob.second, to);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(kEngines.at(node.engine).number, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return kEngines.at(node.engine).note ? give(*kEngines[node.engine].note, to) : 0;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(kEngines.at(node.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine).workspace, to);
    default:
      throw CUDNN_STATUS_BAD_PARAM;
  }
}

void* dataOf(const Node& pack, int64_t id) {
  const auto ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto data = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == id && data.at(i) != nullptr && reinterpret_cast<uintptr_t>(data[i]) % 16 == 0)
      return data[i];
  throw CUDNN_STATUS_BAD_PARAM;
}

void execute(cudaStream_t stream, const Node& plan, const Node& pack) {
  const Node& configuration = plan.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const EngineKind& engine = kEngines.at(configuration.engine);
  Operation op = operationOf(configuration);
  op.size.tensorCores = engine.note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  void *x = dataOf(pack, op.x), *w = dataOf(pack, op.w), *y = dataOf(pack, op.y);
  void* workspace = pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  (void)queue(stream, [=, bytes = static_cast<size_t>(engine.workspace)] {
    std::memset(workspace, 0xA5, bytes);
    if (op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
      convolve(op.size, x, w, y, op.beta);
    else if (op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
      convolveToInput(op.size, x, w, y, op.beta);
    else
      convolveToFilter(op.size, x, w, y, op.beta);
    return cudaSuccess;
  });
}

/// The status that `work` throws; missing attributes are bad parameters.
template <typename Work>
cudnnStatus_t statusOf(Work work) {
  try {
    work();
    return CUDNN_STATUS_SUCCESS;
  } catch (cudnnStatus_t status) {
    return status;
  } catch (const std::out_of_range&) {
    return CUDNN_STATUS_BAD_PARAM;
  }
}

size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
      return sizeof(int64_t);
    default:
      return sizeof(int);
  }
}

Node& nodeOf(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor)->node;
}

}  // namespace

void answerGraphs(int status) {
  answerToOtherGraphs =
      status == 0 ? CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN : static_cast<cudnnStatus_t>(status);
}

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
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor;
  nodeOf(*descriptor).type = type;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return delete static_cast<Descriptor*>(descriptor), CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return statusOf([&] { finalize(nodeOf(descriptor)); });
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Node& node = nodeOf(descriptor);
  if (node.finalized || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* bytes = static_cast<const std::byte*>(values);
    node.values[name] = {bytes, bytes + static_cast<size_t>(count) * sizeOf(type)};
    return CUDNN_STATUS_SUCCESS;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto& set = static_cast<Descriptor* const*>(values)[i]->node;
    if (!set->finalized) return CUDNN_STATUS_BAD_PARAM;
    node.nodes[name].push_back(set);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t most, int64_t* count,
                                       void* values) {
  return statusOf([&] { *count = get(nodeOf(descriptor), name, most, values); });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return statusOf([&] { execute(handle->stream, nodeOf(plan), nodeOf(pack)); });
}
