// SPDX-License-Identifier: Apache-2.0
// A graph of operations that cuDNN compiles into one kernel: its backend API in the few words that attention
// needs.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/cuda/dnn/library/engine.h"

namespace muster::cuda {

using Dims = std::array<int64_t, 4>;

/// Where a tensor's values are.
enum class Holding {
  kMemory,   ///< on the GPU
  kVirtual,  ///< nowhere: between two operations
  kValue,    ///< one number on the host, read when the graph runs
};

struct GraphTensor {
  Dims dims{};
  Dims strides{};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Holding holding = Holding::kVirtual;
};

/// Owns a descriptor of the backend API.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Status make(cudnnBackendDescriptorType_t type);
  template <typename T>
  Status set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
             int64_t count);
  Status set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Status finalize();
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// Operations are added in any order; tensors are named by the numbers that tensor() gives. The first failure
/// is kept and returned by build().
class DnnGraph {
 public:
  explicit DnnGraph(Engine& engine) : engine_(engine) {}

  int tensor(const GraphTensor& spec);
  /// Adds an operation; `to` is what it writes. pointwise: `b` and `select` where the mode has them.
  void matmul(int a, int b, int to);
  void pointwise(cudnnPointwiseMode_t mode, int a, int b, int select, int to,
                 cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  void index(int like, int64_t axis, int to);
  void reduce(cudnnReduceTensorOp_t op, int x, int to);
  void reshape(int x, int to);

  /// Compiles the graph by the first of cuDNN's suggestions that works; in deterministic mode by one that
  /// says it is. kUnsupported where there is none.
  Status build();
  [[nodiscard]] uint64_t workspaceBytes() const { return workspaceBytes_; }
  /// Where each tensor that is not virtual lies; then run() may be called.
  Status bind(const std::vector<int>& tensors, const std::vector<void*>& data, void* workspace);
  Status run();

 private:
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  Status addTensor(const GraphTensor& spec, Descriptor& to, int64_t id);
  Status addPointwise(cudnnPointwiseMode_t mode, int64_t axis, const std::array<int, 3>& inputs, int to,
                      cudnnDataType_t precision);
  Status addMatmul(int a, int b, int to);
  Status addReduction(cudnnReduceTensorOp_t op, int x, int to);
  Status addReshape(int x, int to);
  Status compile();
  Status tryConfigurations(const Descriptor& graph, cudnnBackendHeurMode_t mode);
  Status tryConfiguration(const Descriptor& configuration);
  Result<bool> staysTheSame(const Descriptor& configuration);
  [[nodiscard]] const Descriptor& at(int tensor) const { return tensors_[static_cast<size_t>(tensor)]; }

  Engine& engine_;
  Status status_;
  std::vector<Descriptor> tensors_, operations_, helpers_;
  Descriptor plan_, pack_;
  uint64_t workspaceBytes_ = 0;
};

}  // namespace muster::cuda
