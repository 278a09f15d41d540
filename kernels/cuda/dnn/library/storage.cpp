// SPDX-License-Identifier: Apache-2.0
// Memory of a program on the GPU.
#include "kernels/cuda/dnn/library/storage.h"

#include <algorithm>

#include "kernels/cuda/buffer.h"
#include "kernels/cuda/error.h"

namespace muster::cuda {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;  ///< larger pieces get a buffer of their own
constexpr uint64_t kWaste = 4;                  ///< a reused piece is at most this many times too large

uint64_t roundUp(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + Storage::kAlign - 1) / Storage::kAlign) * Storage::kAlign;
}

}  // namespace

Result<std::byte*> Storage::buffer(uint64_t bytes) {
  MUSTER_TRY(std::unique_ptr<Buffer> made, device_.allocate(bytes));
  std::byte* data = bytesOf(*made);
  MUSTER_CUDA(cudaMemsetAsync(data, 0, bytes, device_.stream()));
  bytes_ += made->bytes();
  buffers_.push_back(std::move(made));
  return data;
}

Result<void*> Storage::keep(uint64_t bytes) {
  const uint64_t wanted = roundUp(bytes);
  if (wanted >= kChunk) {
    MUSTER_TRY(std::byte * whole, buffer(wanted));
    return static_cast<void*>(whole);
  }
  if (wanted > left_) {
    MUSTER_TRY(chunk_, buffer(kChunk));
    left_ = kChunk;
  }
  std::byte* piece = chunk_;
  chunk_ += wanted;
  left_ -= wanted;
  return static_cast<void*>(piece);
}

Result<void*> Storage::take(uint64_t bytes) {
  const uint64_t wanted = roundUp(bytes);
  Piece* best = nullptr;
  for (Piece& piece : pieces_)
    if (piece.free && piece.bytes >= wanted && piece.bytes <= kWaste * wanted &&
        (best == nullptr || piece.bytes < best->bytes))
      best = &piece;
  if (best == nullptr) {
    MUSTER_TRY(void* data, keep(wanted));
    pieces_.push_back({data, wanted, false});
    return data;
  }
  best->free = false;
  return best->data;
}

void Storage::give(void* taken) {
  for (Piece& piece : pieces_)
    if (piece.data == taken) piece.free = true;
}

}  // namespace muster::cuda
