// SPDX-License-Identifier: Apache-2.0
// The host's Device: clock, memory, and its kernels on every worker.
#include "kernels/host/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <numeric>

#include "kernels/checks/operands.h"
#include "kernels/checks/pointer_chase.h"
#include "kernels/host/buffer.h"
#include "kernels/host/compare.h"
#include "kernels/host/cpus.h"
#include "kernels/host/free_memory.h"
#include "kernels/host/normal.h"
#include "kernels/spec/pattern.h"
#include "runner/system/files.h"

namespace muster::host {
namespace {

constexpr size_t kHugePage = 2u << 20;
volatile double readSink;  ///< where sums of read passes go, so that they must be computed

size_t roundUp(uint64_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Pages aligned to huge ones (fewer TLB misses); they exist only once somebody touches them.
Result<std::unique_ptr<HostBuffer>> mapPages(uint64_t bytes) {
  const size_t mapped = roundUp(bytes, kHugePage) + kHugePage;
  void* base =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return Error{ErrorCode::kIo, errnoText(errno), ""};
  auto* data = reinterpret_cast<void*>(roundUp(reinterpret_cast<uintptr_t>(base), kHugePage));
  (void)madvise(data, roundUp(bytes, kHugePage),
                MADV_HUGEPAGE);  // a wish: kernels without it are slower, not wrong
  return std::make_unique<HostBuffer>(base, mapped, data, bytes);
}

double* words(const Buffer* buffer, uint64_t begin) {
  return buffer == nullptr ? nullptr : reinterpret_cast<double*>(bytesOf(*buffer) + begin);
}

}  // namespace

Result<std::unique_ptr<HostDevice>> HostDevice::open(const DeviceInfo& info) {
  MUSTER_TRY(std::vector<int> cpus, workerCpus(info));
  MUSTER_CHECK_OK(bindThread(cpus));
  return std::unique_ptr<HostDevice>(new HostDevice(info, cpus));
}

double HostDevice::now() const {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void HostDevice::sleep(double seconds) {
  if (!(seconds > 0)) return;
  timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

Result<uint64_t> HostDevice::freeBytes() {
  return freeMemory(Root(), info_.numaNode);
}

/// Each worker touches its own share first, so that the pages lie near it, and so that memory which cannot be
/// had is found out here and not in the middle of a measurement.
Result<std::unique_ptr<Buffer>> HostDevice::allocate(uint64_t bytes) {
  MUSTER_TRY(uint64_t free, freeBytes());
  if (bytes == 0) return Error{ErrorCode::kUsage, "a buffer needs at least one byte", info_.id};
  if (bytes > free) return outOfMemory(info_.id, bytes, free, "");
  auto buffer = mapPages(bytes);
  if (!buffer.ok()) return outOfMemory(info_.id, bytes, free, buffer.error().message);
  std::byte* data = bytesOf(**buffer);
  pool_.split(bytes, [&](size_t, uint64_t begin, uint64_t end) { host::fillPattern(data, 0, begin, end); });
  return std::unique_ptr<Buffer>(std::move(*buffer));
}

Status HostDevice::fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) {
  if (!canFillNormal(dtype))
    return Error{ErrorCode::kUnsupported, std::string("the host backend has no ") + dtypeName(dtype),
                 info_.id};
  const uint64_t size = dtypeBits(dtype) / 8;
  std::byte* data = bytesOf(buffer);
  pool_.split(buffer.bytes(), [&](size_t, uint64_t begin, uint64_t end) {
    host::fillNormal(data + begin, dtype, seed, begin / size, (end - begin) / size);
  });
  return {};
}

Status HostDevice::fillPattern(Buffer& buffer, const PatternPart& part) {
  std::byte* data = bytesOf(buffer);
  pool_.split(buffer.bytes(),
              [&](size_t, uint64_t begin, uint64_t end) { host::fillPattern(data, part, begin, end); });
  return {};
}

Result<Mismatch> HostDevice::checkPattern(const Buffer& buffer, const PatternPart& part) {
  const std::byte* data = bytesOf(buffer);
  std::vector<Mismatch> parts(pool_.size());
  pool_.split(buffer.bytes(), [&](size_t worker, uint64_t begin, uint64_t end) {
    parts[worker] = host::checkPattern(data, part, begin, end);
  });
  return merge(parts);
}

Result<Mismatch> HostDevice::compareBits(const Buffer& a, const Buffer& b, Dtype dtype) {
  MUSTER_CHECK_OK(sameSize(a, b, info_.id));
  std::vector<Mismatch> parts(pool_.size());
  pool_.split(a.bytes(), [&](size_t worker, uint64_t begin, uint64_t end) {
    parts[worker] = compareElements(bytesOf(a), bytesOf(b), dtype, begin, end);
  });
  return merge(parts);
}

Result<uint64_t> HostDevice::hash(const Buffer& buffer) {
  const std::byte* data = bytesOf(buffer);
  std::vector<uint64_t> parts(pool_.size());
  pool_.split(buffer.bytes(), [&](size_t worker, uint64_t begin, uint64_t end) {
    parts[worker] = hashWords(data, begin, end);
  });
  return std::accumulate(parts.begin(), parts.end(), scatter(buffer.bytes()));
}

Status HostDevice::memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) {
  MUSTER_CHECK_OK(checkOperands(op, a, b, c, info_.id));
  pool_.split(a.bytes(), [&](size_t, uint64_t begin, uint64_t end) {
    const size_t n = (end - begin) / 8;
    double* to = words(&a, begin);
    switch (op) {
      case MemoryOp::kRead:
        readSink = kernels_.read(to, n);
        break;
      case MemoryOp::kWrite:
        kernels_.write(to, n);
        break;
      case MemoryOp::kCopy:
        kernels_.copy(to, words(b, begin), n);
        break;
      case MemoryOp::kTriad:
        kernels_.triad(to, words(b, begin), words(c, begin), n);
        break;
    }
  });
  return {};
}

Status HostDevice::fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) {
  MUSTER_CHECK_OK(checkRing(buffer, stride, info_.id));
  const ChaseRing ring{chaseLines(buffer.bytes(), stride), seed};
  std::byte* data = bytesOf(buffer);
  const uint64_t share = (ring.lines + pool_.size() - 1) / pool_.size();
  pool_.run([&](size_t worker) {
    const uint64_t end = std::min(ring.lines, (worker + 1) * share);
    for (uint64_t turn = worker * share; turn < end; ++turn)
      *reinterpret_cast<uint64_t*>(data + ring.line(turn) * stride) = ring.line(turn + 1) * stride;
  });
  return {};
}

/// Pages far from the caches and from the translations of addresses, on the thread that is bound to this
/// node.
Result<uint64_t> HostDevice::chase(const Buffer& buffer, uint64_t from, uint64_t steps) {
  const std::byte* data = bytesOf(buffer);
  uint64_t at = from;
  for (uint64_t i = 0; i < steps; ++i) at = *reinterpret_cast<const uint64_t*>(data + at);
  return at;
}

Result<double> HostDevice::time(const std::function<Status()>& work) {
  const double start = now();
  MUSTER_CHECK_OK(work());
  return now() - start;
}

}  // namespace muster::host
