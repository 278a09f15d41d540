// SPDX-License-Identifier: Apache-2.0
// What nvcc gives to a .cu source, for g++: the words of the language, the thread's place, and the intrinsics
// that our kernels use. convert.py puts it first.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "tests/kernels/cuda/emulation/fibers.h"
#include "tests/kernels/cuda/emulation/streams.h"

#define __global__
#define __device__
#define __host__
// One block runs at a time, so that a static variable is the block's.
#define __shared__ static
#define __launch_bounds__(...)

#define threadIdx (::muster::emulation::currentThread().threadIndex)
#define blockIdx (::muster::emulation::currentThread().blockIndex)
#define blockDim (::muster::emulation::currentThread().block)
#define gridDim (::muster::emulation::currentThread().grid)

inline void __syncthreads() {
  ::muster::emulation::syncBlock();
}
inline uint32_t __shfl_xor_sync(uint32_t lanes, uint32_t value, int distance) {
  return ::muster::emulation::exchange(lanes, value, static_cast<unsigned>(distance));
}
template <typename T>
T __ldcs(const T* from) {
  return *from;
}
template <typename T>
T __ldcg(const T* from) {
  return *from;
}
template <typename T>
void __stcs(T* to, const T& value) {
  *to = value;
}
inline long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}
inline void __nanosleep(unsigned) {}
/// Threads take turns at barriers only: nothing comes between.
template <typename T>
T atomicAdd(T* to, T value) {
  return std::exchange(*to, *to + value);
}
template <typename T>
T atomicMin(T* to, T value) {
  return std::exchange(*to, std::min(*to, value));
}
template <typename T>
T atomicMax(T* to, T value) {
  return std::exchange(*to, std::max(*to, value));
}

namespace muster::emulation {

uint64_t nanoseconds();  ///< the GPU's clock

struct LaunchShape {
  dim3 grid, block;
  size_t sharedBytes;
  cudaStream_t stream;
};

/// Queues a kernel; its arguments are copied now, as a launch does.
template <typename Kernel, typename... Arguments>
void launch(const LaunchShape& shape, Kernel kernel, const Arguments&... arguments) {
  queueKernel(shape.stream, shape.grid, shape.block,
              [kernel, copied = std::make_tuple(arguments...)] { std::apply(kernel, copied); });
}

}  // namespace muster::emulation
