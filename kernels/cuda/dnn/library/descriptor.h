// SPDX-License-Identifier: Apache-2.0
// Owns the descriptors of cuDNN's backend API.
#pragma once

#include <utility>

#include "kernels/cuda/dnn/library/library_error.h"

namespace muster::cuda {

/// Owns a descriptor of the backend API.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (raw_ != nullptr) (void)cudnnBackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Status make(cudnnBackendDescriptorType_t type) {
    MUSTER_CUDNN(cudnnBackendCreateDescriptor(type, &raw_));
    return {};
  }
  Status set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const void* values,
             int64_t count = 1) {
    MUSTER_CUDNN(cudnnBackendSetAttribute(raw_, name, type, count, values));
    return {};
  }
  Status set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value.raw_);
  }
  /// Reads up to `most` values; how many there are.
  Result<int64_t> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, void* values,
                      int64_t most = 1) const {
    int64_t found = 0;
    MUSTER_CUDNN(cudnnBackendGetAttribute(raw_, name, type, most, &found, values));
    return found;
  }
  Status finalize() {
    MUSTER_CUDNN(cudnnBackendFinalize(raw_));
    return {};
  }
  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace muster::cuda
