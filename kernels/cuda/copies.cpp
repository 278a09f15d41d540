// SPDX-License-Identifier: Apache-2.0
// Copies of a GPU. Several transfers run on streams of their own, between a fork from the device's stream and
// a join.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/checks/operands.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/numa.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/problems.h"
#include "kernels/interfaces/copies.h"
#include "kernels/spec/pattern.h"

namespace muster::cuda {
namespace {

constexpr StreamShape kLinkShape = {512, 4, true};  ///< links are slower than memory: any shape fills them

/// Pages of one NUMA node that the driver has pinned; GPUs see them under the same address.
class PinnedBuffer : public CudaBuffer {
 public:
  PinnedBuffer(NumaPages pages, uint64_t bytes)
      : CudaBuffer(pages.data(), bytes, false), pages_(std::move(pages)) {}
  ~PinnedBuffer() override { (void)cudaHostUnregister(pages_.data()); }

 private:
  NumaPages pages_;
};

/// A stream of the GPU that sends, and the event that joins it again.
struct Lane {
  int ordinal = 0;
  Stream stream;
  Event done;
};

class CudaCopies : public Copies {
 public:
  explicit CudaCopies(CudaDevice& device) : device_(device) {}

  Result<std::vector<HostNode>> hostNodes() override {
    return cuda::hostNodes(Root(), device_.info().numaNode);
  }
  Result<std::unique_ptr<Buffer>> allocatePinned(uint64_t bytes, int node) override;
  Status fillPinned(Buffer& buffer, uint64_t pattern) override;
  Result<Mismatch> checkPinned(const Buffer& buffer, uint64_t pattern) override;
  Result<bool> connect(Device& peer) override;
  Status copy(const std::vector<Transfer>& transfers, CopyEngine engine) override;

 private:
  [[nodiscard]] Status checked(cudaError_t code, const char* doing) const {
    if (code == cudaSuccess) return {};
    return workProblem(code, device_.info().id, doing);
  }
  Status use(int ordinal) const { return checked(cudaSetDevice(ordinal), "making a GPU current"); }
  Status enableAccess(int from, int to) const;
  Result<int> senderOf(const Transfer& transfer) const;
  Result<Lane*> laneFor(size_t index, int ordinal);
  Status queue(const Transfer& transfer, CopyEngine engine, cudaStream_t stream) const;
  Status sideBySide(const std::vector<Transfer>& transfers, CopyEngine engine);

  CudaDevice& device_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Event fork_;
};

Result<std::unique_ptr<Buffer>> CudaCopies::allocatePinned(uint64_t bytes, int node) {
  if (bytes == 0) return Error{ErrorCode::kUsage, "a buffer needs at least one byte", device_.info().id};
  MUSTER_CHECK_OK(use(device_.ordinal()));
  MUSTER_TRY(NumaPages pages, NumaPages::map(bytes, node));
  MUSTER_CHECK_OK(checked(
      cudaHostRegister(pages.data(), pages.bytes(), cudaHostRegisterPortable | cudaHostRegisterMapped),
      "pinning memory of the host"));
  auto buffer = std::make_unique<PinnedBuffer>(std::move(pages), bytes);
  void* seen = nullptr;
  MUSTER_CHECK_OK(
      checked(cudaHostGetDevicePointer(&seen, buffer->data(), 0), "asking for the address of pinned memory"));
  if (seen != buffer->data())
    return Error{ErrorCode::kUnsupported,
                 "this GPU sees pinned memory under another address than the host does", device_.info().id};
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status CudaCopies::fillPinned(Buffer& buffer, uint64_t pattern) {
  MUSTER_CHECK_OK(device_.synchronize());  // nothing may still read or write it
  std::byte* data = bytesOf(buffer);
  for (uint64_t at = 0; at < buffer.bytes(); at += 8) {
    const uint64_t word = patternWord(pattern, at / 8);
    std::memcpy(data + at, &word, std::min<uint64_t>(8, buffer.bytes() - at));
  }
  return {};
}

Result<Mismatch> CudaCopies::checkPinned(const Buffer& buffer, uint64_t pattern) {
  MUSTER_CHECK_OK(device_.synchronize());
  const std::byte* data = bytesOf(buffer);
  Mismatch found;
  for (uint64_t at = 0; at < buffer.bytes(); at += 8) {
    const uint64_t expected = patternWord(pattern, at / 8);
    uint64_t actual = expected;
    std::memcpy(&actual, data + at, std::min<uint64_t>(8, buffer.bytes() - at));
    compareWord(expected, actual, at, found);
  }
  return found;
}

Status CudaCopies::enableAccess(int from, int to) const {
  MUSTER_CHECK_OK(use(from));
  const cudaError_t code = cudaDeviceEnablePeerAccess(to, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();  // else the next launch reports it
    return {};
  }
  return checked(code, "enabling peer access");
}

Result<bool> CudaCopies::connect(Device& peer) {
  const int own = device_.ordinal(), other = static_cast<CudaDevice&>(peer).ordinal();
  int out = 0, back = 0;
  MUSTER_CHECK_OK(checked(cudaDeviceCanAccessPeer(&out, own, other), "asking for peer access"));
  MUSTER_CHECK_OK(checked(cudaDeviceCanAccessPeer(&back, other, own), "asking for peer access"));
  if (out == 0 || back == 0) return false;
  MUSTER_CHECK_OK(enableAccess(other, own));
  MUSTER_CHECK_OK(enableAccess(own, other));  // leaves our own GPU current
  return true;
}

/// The GPU whose engines or kernels move the bytes: the one that has them, or gets them from the host.
Result<int> CudaCopies::senderOf(const Transfer& transfer) const {
  for (const Buffer* end : {transfer.from, static_cast<const Buffer*>(transfer.to)}) {
    cudaPointerAttributes attributes{};
    MUSTER_CHECK_OK(
        checked(cudaPointerGetAttributes(&attributes, bytesOf(*end)), "asking where memory lies"));
    if (attributes.type == cudaMemoryTypeDevice) return attributes.device;
  }
  return Error{ErrorCode::kUsage, "neither end of a copy is memory of a GPU", device_.info().id};
}

Result<Lane*> CudaCopies::laneFor(size_t index, int ordinal) {
  while (lanes_.size() <= index) lanes_.push_back(nullptr);
  std::unique_ptr<Lane>& lane = lanes_[index];
  if (lane == nullptr || lane->ordinal != ordinal) {
    MUSTER_CHECK_OK(device_.synchronize());
    MUSTER_CHECK_OK(use(ordinal));
    lane = std::make_unique<Lane>();
    lane->ordinal = ordinal;
    MUSTER_TRY(lane->stream, makeStream());
    MUSTER_TRY(lane->done, makeEvent(false));
  }
  return lane.get();
}

Status CudaCopies::queue(const Transfer& transfer, CopyEngine engine, cudaStream_t stream) const {
  std::byte* to = bytesOf(*transfer.to);
  const std::byte* from = bytesOf(*transfer.from);
  const uint64_t bytes = transfer.to->bytes();
  if (engine == CopyEngine::kCopyEngine)
    return checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "queueing a copy");
  return checked(launchStream(StreamOp::kCopy, kLinkShape, {to, from, nullptr, bytes, nullptr}, stream),
                 "queueing a copy by kernel");
}

Status CudaCopies::sideBySide(const std::vector<Transfer>& transfers, CopyEngine engine) {
  std::vector<Lane*> lanes;
  for (size_t i = 0; i < transfers.size(); ++i) {
    MUSTER_TRY(int sender, senderOf(transfers[i]));
    MUSTER_TRY(Lane * lane, laneFor(i, sender));
    lanes.push_back(lane);
  }
  MUSTER_CHECK_OK(use(device_.ordinal()));
  if (fork_.get() == nullptr) {
    MUSTER_TRY(fork_, makeEvent(false));
  }
  MUSTER_CHECK_OK(checked(cudaEventRecord(fork_.get(), device_.stream()), "forking streams"));
  for (size_t i = 0; i < transfers.size(); ++i) {
    MUSTER_CHECK_OK(use(lanes[i]->ordinal));
    MUSTER_CHECK_OK(checked(cudaStreamWaitEvent(lanes[i]->stream.get(), fork_.get(), 0), "forking streams"));
    MUSTER_CHECK_OK(queue(transfers[i], engine, lanes[i]->stream.get()));
    MUSTER_CHECK_OK(
        checked(cudaEventRecord(lanes[i]->done.get(), lanes[i]->stream.get()), "joining streams"));
  }
  MUSTER_CHECK_OK(use(device_.ordinal()));
  for (Lane* lane : lanes)
    MUSTER_CHECK_OK(checked(cudaStreamWaitEvent(device_.stream(), lane->done.get(), 0), "joining streams"));
  return {};
}

Status CudaCopies::copy(const std::vector<Transfer>& transfers, CopyEngine engine) {
  if (transfers.empty()) return Error{ErrorCode::kUsage, "there is nothing to copy", device_.info().id};
  for (const Transfer& transfer : transfers)
    MUSTER_CHECK_OK(sameSize(*transfer.to, *transfer.from, device_.info().id));
  if (transfers.size() > 1) return sideBySide(transfers, engine);
  MUSTER_CHECK_OK(use(device_.ordinal()));
  return queue(transfers.front(), engine, device_.stream());
}

}  // namespace

Result<std::unique_ptr<Copies>> openCopies(Device& device) {
  return std::unique_ptr<Copies>(std::make_unique<CudaCopies>(static_cast<CudaDevice&>(device)));
}

}  // namespace muster::cuda
