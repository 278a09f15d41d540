// SPDX-License-Identifier: Apache-2.0
// From PyTorch's orders into ours: images, and the heads of attention.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace layout_cu {

/// One thread writes all channels of a pixel: reads are coalesced along the pixels, and channels are few.
template <typename T>
__global__ void __launch_bounds__(kThreads) toNhwc(const float* from, T* to, ImageShape s) {
  const int64_t pixels = s.h * s.w;
  eachIndex(s.n * pixels, [&](int64_t row) {
    const int64_t n = row / pixels;
    const int64_t pixel = row % pixels;
    for (int64_t c = 0; c < s.padded; ++c)
      to[row * s.padded + c] = fromFloat<T>(c < s.c ? from[(n * s.c + c) * pixels + pixel] : 0.0f);
  });
}

template <typename T, int kVector, bool kPack>
__global__ void __launch_bounds__(kThreads) moveHeads(const T* from, T* to, HeadShape s, HeadParts parts) {
  const int64_t elements = s.elements();
  eachIndex(parts.count * elements / kVector, [&](int64_t i) {
    const int64_t index = i * kVector;
    const int64_t packed = packedOf(s, parts.count, index);
    const int64_t apart = index / elements * parts.stride + index % elements;
    const auto* source = reinterpret_cast<const Pack<T, kVector>*>(from + (kPack ? apart : packed));
    *reinterpret_cast<Pack<T, kVector>*>(to + (kPack ? packed : apart)) = *source;
  });
}

template <bool kPack>
cudaError_t move(Element element, const void* from, void* to, const HeadShape& shape, const HeadParts& parts,
                 cudaStream_t stream) {
  return withVectors(element, shape.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    const int64_t vectors = parts.count * shape.elements() / kVector;
    moveHeads<T, kVector, kPack><<<static_cast<unsigned>(blocksFor(vectors)), kThreads, 0, stream>>>(
        static_cast<const T*>(from), static_cast<T*>(to), shape, parts);
    return cudaGetLastError();
  });
}

}  // namespace layout_cu

using namespace layout_cu;

cudaError_t imagesToNhwc(Element element, const float* from, void* to, const ImageShape& shape,
                         cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    toNhwc<T><<<static_cast<unsigned>(blocksFor(shape.rows())), kThreads, 0, stream>>>(
        from, static_cast<T*>(to), shape);
    return cudaGetLastError();
  });
}
cudaError_t unpackHeads(Element element, const void* from, void* to, const HeadShape& shape,
                        const HeadParts& parts, cudaStream_t stream) {
  return move<false>(element, from, to, shape, parts, stream);
}
cudaError_t packHeads(Element element, const void* from, void* to, const HeadShape& shape,
                      const HeadParts& parts, cudaStream_t stream) {
  return move<true>(element, from, to, shape, parts, stream);
}

}  // namespace muster::cuda
