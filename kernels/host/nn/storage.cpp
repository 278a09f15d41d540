// SPDX-License-Identifier: Apache-2.0
// Memory of a program.
#include "kernels/host/nn/storage.h"

#include <algorithm>

#include "kernels/host/buffer.h"
#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

constexpr uint64_t kLine = 16;                  ///< floats of a cache line
constexpr uint64_t kChunk = uint64_t{1} << 20;  ///< floats: larger pieces get a buffer of their own
constexpr uint64_t kWaste = 4;                  ///< a reused piece is at most this many times too large

uint64_t roundUp(uint64_t elements) {
  return std::max<uint64_t>(1, (elements + kLine - 1) / kLine) * kLine;
}

}  // namespace

Result<float*> Storage::buffer(uint64_t elements) {
  MUSTER_TRY(std::unique_ptr<Buffer> made, device_.allocate(elements * sizeof(float)));
  MUSTER_CHECK_OK(device_.fillPattern(*made, static_cast<uint64_t>(Pattern::kZeros)));
  bytes_ += made->bytes();
  auto* data = reinterpret_cast<float*>(bytesOf(*made));
  buffers_.push_back(std::move(made));
  return data;
}

Result<float*> Storage::keep(uint64_t elements) {
  const uint64_t wanted = roundUp(elements);
  if (wanted >= kChunk) return buffer(wanted);
  if (wanted > left_) {
    MUSTER_TRY(chunk_, buffer(kChunk));
    left_ = kChunk;
  }
  float* piece = chunk_;
  chunk_ += wanted;
  left_ -= wanted;
  return piece;
}

Result<float*> Storage::take(uint64_t elements) {
  const uint64_t wanted = roundUp(elements);
  Piece* best = nullptr;
  for (Piece& piece : pieces_)
    if (piece.free && piece.elements >= wanted && piece.elements <= kWaste * wanted &&
        (best == nullptr || piece.elements < best->elements))
      best = &piece;
  if (best == nullptr) {
    MUSTER_TRY(float* data, keep(wanted));
    pieces_.push_back({data, wanted, false});
    return data;
  }
  best->free = false;
  return best->data;
}

void Storage::give(const void* taken) {
  for (Piece& piece : pieces_)
    if (piece.data == taken) piece.free = true;
}

}  // namespace muster::host
