// SPDX-License-Identifier: Apache-2.0
// A GPU as a Device: opening it, its clock, its memory, and our kernels on it.
#include "kernels/cuda/device.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <numeric>
#include <string>

#include "kernels/checks/operands.h"
#include "kernels/checks/pointer_chase.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/problems.h"
#include "kernels/spec/pattern.h"

namespace muster::cuda {
namespace {

constexpr int kBlocksPerProcessor = 8;  ///< of 256 threads: as many as a multiprocessor holds
constexpr double kHoldLimit = 5e-3;     ///< seconds; a queue of launches is full sooner
constexpr int kPoison = 0xff;           ///< all ones: NaN in every float type

const void* dataOf(const Buffer* buffer) {
  return buffer == nullptr ? nullptr : bytesOf(*buffer);
}

StreamOp streamOp(MemoryOp op) {
  switch (op) {
    case MemoryOp::kRead:
      return StreamOp::kRead;
    case MemoryOp::kWrite:
      return StreamOp::kWrite;
    case MemoryOp::kCopy:
      return StreamOp::kCopy;
    case MemoryOp::kTriad:
      return StreamOp::kTriad;
  }
  return StreamOp::kRead;
}

/// Between two events that are over.
Result<double> secondsBetween(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  MUSTER_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  return static_cast<double>(milliseconds) * 1e-3;
}

Error cannotOpen(cudaError_t code, const DeviceInfo& info) {
  (void)cudaGetLastError();
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  return openProblem(code, info.id, info.pciAddress, driver, runtime);
}

/// A MIG instance is a share of a GPU: figures of the whole one do not fit it.
Status refuseMig(const cudaDeviceProp& properties, const DeviceInfo& info) {
  if (std::string(properties.name).find(" MIG ") == std::string::npos) return {};
  return Error{ErrorCode::kUnsupported,
               std::string("MIG is on: CUDA shows ") + properties.name +
                   " in place of the whole GPU; turn it off (nvidia-smi -mig 0) for acceptance tests",
               info.id};
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const DeviceInfo& info) {
  int ordinal = -1;
  if (const cudaError_t code = cudaDeviceGetByPCIBusId(&ordinal, info.pciAddress.c_str());
      code != cudaSuccess)
    return cannotOpen(code, info);
  std::unique_ptr<CudaDevice> device(new CudaDevice(info, ordinal));
  MUSTER_CHECK_OK(device->start());
  return device;
}

Status CudaDevice::start() {
  if (const cudaError_t code = cudaSetDevice(ordinal_); code != cudaSuccess) return cannotOpen(code, info_);
  cudaDeviceProp properties{};
  if (const cudaError_t code = cudaGetDeviceProperties(&properties, ordinal_); code != cudaSuccess)
    return cannotOpen(code, info_);
  MUSTER_CHECK_OK(refuseMig(properties, info_));
  computeCapability_ = properties.major * 10 + properties.minor;
  MUSTER_CHECK_OK(checkGeneration(computeCapability_, CUDART_VERSION, info_.id));
  multiprocessors_ = properties.multiProcessorCount;
  MUSTER_TRY(stream_, makeStream());
  MUSTER_TRY(begin_, makeEvent(true));
  MUSTER_TRY(end_, makeEvent(true));
  MUSTER_TRY(parts_, makeDeviceMemory(kMaxParts * sizeof(Mismatch)));
  MUSTER_TRY(hostParts_, makePinnedMemory(kMaxParts * sizeof(Mismatch)));
  MUSTER_TRY(word_, makeDeviceMemory(sizeof(uint64_t)));
  MUSTER_TRY(gate_, makePinnedMemory(sizeof(uint32_t)));
  letGo();
  // A first launch shows whether there is code for this GPU.
  const cudaError_t code = launchHold(static_cast<const uint32_t*>(gate_.get()), kHoldLimit, stream_.get());
  if (code != cudaSuccess) return cannotOpen(code, info_);
  return synchronize();
}

CudaDevice::~CudaDevice() {
  // Nothing may run on memory that is given back, nor wait at a gate that is gone.
  if (gate_.get() != nullptr) letGo();
  if (stream_.get() != nullptr) (void)cudaStreamSynchronize(stream_.get());
}

Status CudaDevice::use() const {
  if (const cudaError_t code = cudaSetDevice(ordinal_); code != cudaSuccess)
    return workProblem(code, info_.id, "making the GPU current");
  return {};
}

Status CudaDevice::queued(cudaError_t code, const char* what) const {
  if (code == cudaSuccess) return {};
  return workProblem(code, info_.id, std::string("queueing ") + what);
}

void CudaDevice::letGo() {
  *static_cast<volatile uint32_t*>(gate_.get()) = 1;
}

int CudaDevice::blocks() const {
  return std::min(multiprocessors_ * kBlocksPerProcessor, kMaxParts);
}

double CudaDevice::now() const {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void CudaDevice::sleep(double seconds) {
  if (!(seconds > 0)) return;
  timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

Result<uint64_t> CudaDevice::freeBytes() {
  MUSTER_CHECK_OK(use());
  size_t free = 0, total = 0;
  if (const cudaError_t code = cudaMemGetInfo(&free, &total); code != cudaSuccess)
    return workProblem(code, info_.id, "asking for free memory");
  return free;
}

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(uint64_t bytes) {
  MUSTER_CHECK_OK(use());
  if (bytes == 0) return Error{ErrorCode::kUsage, "a buffer needs at least one byte", info_.id};
  letGo();  // the driver may wait for running work before it hands out memory
  void* data = nullptr;
  if (const cudaError_t code = cudaMalloc(&data, bytes); code != cudaSuccess) {
    (void)cudaGetLastError();  // else the next launch reports it again
    if (code != cudaErrorMemoryAllocation) return workProblem(code, info_.id, "allocating memory");
    MUSTER_TRY(uint64_t free, freeBytes());
    return outOfMemory(info_.id, bytes, free, bytes <= free ? "but not in one piece" : "");
  }
  auto buffer = std::make_unique<CudaBuffer>(data, bytes);
  MUSTER_CHECK_OK(queued(cudaMemsetAsync(data, kPoison, bytes, stream_.get()), "the poison of new memory"));
  MUSTER_CHECK_OK(synchronize());
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status CudaDevice::fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) {
  MUSTER_CHECK_OK(use());
  return queued(launchFillNormal(bytesOf(buffer), dtype, seed, buffer.bytes(), blocks(), stream_.get()),
                "a fill with random values");
}

Status CudaDevice::fillPattern(Buffer& buffer, const PatternPart& part) {
  MUSTER_CHECK_OK(use());
  return queued(launchFillPattern(bytesOf(buffer), part, buffer.bytes(), blocks(), stream_.get()),
                "a fill with a pattern");
}

/// Waits for the blocks' parts and combines them.
Result<Mismatch> CudaDevice::collectFound(const DeviceMemory& found) {
  const size_t bytes = static_cast<size_t>(blocks()) * sizeof(Mismatch);
  MUSTER_CHECK_OK(use());
  MUSTER_CHECK_OK(
      queued(cudaMemcpyAsync(hostParts_.get(), found.get(), bytes, cudaMemcpyDeviceToHost, stream_.get()),
             "a copy of results"));
  MUSTER_CHECK_OK(synchronize());
  const auto* parts = static_cast<const Mismatch*>(hostParts_.get());
  return std::accumulate(parts, parts + blocks(), Mismatch(), combine);
}

Result<Mismatch> CudaDevice::checkPattern(const Buffer& buffer, const PatternPart& part) {
  MUSTER_CHECK_OK(use());
  MUSTER_CHECK_OK(queued(launchCheckPattern(bytesOf(buffer), part, buffer.bytes(),
                                            static_cast<Mismatch*>(parts_.get()), blocks(), stream_.get()),
                         "a check of a pattern"));
  return collectFound(parts_);
}

/// What blocks found, block by block, in all comparisons.
class CudaDevice::PartsTally : public Tally {
 public:
  PartsTally(CudaDevice& device, DeviceMemory parts) : device_(device), parts_(std::move(parts)) {}
  [[nodiscard]] const DeviceMemory& parts() const { return parts_; }
  Result<Mismatch> read() override { return device_.collectFound(parts_); }

 private:
  CudaDevice& device_;
  DeviceMemory parts_;
};

Status CudaDevice::clearFound(const DeviceMemory& found) {
  const size_t bytes = static_cast<size_t>(blocks()) * sizeof(Mismatch);
  return queued(cudaMemsetAsync(found.get(), 0, bytes, stream_.get()), "the clearing of a count");
}

Status CudaDevice::countInto(const DeviceMemory& found, const Buffer& a, const Buffer& b, Dtype dtype) {
  MUSTER_CHECK_OK(sameSize(a, b, info_.id));
  return queued(launchCompare(bytesOf(a), bytesOf(b), dtype, a.bytes(), static_cast<Mismatch*>(found.get()),
                              blocks(), stream_.get()),
                "a comparison");
}

Result<Mismatch> CudaDevice::compareBits(const Buffer& a, const Buffer& b, Dtype dtype) {
  MUSTER_CHECK_OK(use());
  MUSTER_CHECK_OK(clearFound(parts_));
  MUSTER_CHECK_OK(countInto(parts_, a, b, dtype));
  return collectFound(parts_);
}

Result<std::unique_ptr<Tally>> CudaDevice::tally() {
  MUSTER_CHECK_OK(use());
  letGo();  // the driver may wait for running work before it hands out memory
  MUSTER_TRY(DeviceMemory parts, makeDeviceMemory(static_cast<size_t>(blocks()) * sizeof(Mismatch)));
  MUSTER_CHECK_OK(clearFound(parts));
  return std::unique_ptr<Tally>(new PartsTally(*this, std::move(parts)));
}

Status CudaDevice::countDifferences(const Buffer& a, const Buffer& b, Dtype dtype, Tally& found) {
  MUSTER_CHECK_OK(use());
  return countInto(static_cast<PartsTally&>(found).parts(), a, b, dtype);
}

Result<uint64_t> CudaDevice::hash(const Buffer& buffer) {
  MUSTER_CHECK_OK(use());
  MUSTER_CHECK_OK(queued(launchHash(bytesOf(buffer), buffer.bytes(), static_cast<uint64_t*>(parts_.get()),
                                    blocks(), stream_.get()),
                         "a hash"));
  const size_t bytes = static_cast<size_t>(blocks()) * sizeof(uint64_t);
  MUSTER_CHECK_OK(
      queued(cudaMemcpyAsync(hostParts_.get(), parts_.get(), bytes, cudaMemcpyDeviceToHost, stream_.get()),
             "a copy of results"));
  MUSTER_CHECK_OK(synchronize());
  const auto* parts = static_cast<const uint64_t*>(hostParts_.get());
  return std::accumulate(parts, parts + blocks(), scatter(buffer.bytes()));
}

/// Passes write the same result each time, so that those which only choose a shape do no harm.
Result<StreamShape> CudaDevice::shapeFor(StreamOp op, const StreamArrays& at) {
  return shapes_.choose(op, at.bytes, [&](const StreamShape& shape) -> Result<double> {
    letGo();
    MUSTER_TRY(Event begin, makeEvent(true));
    MUSTER_TRY(Event end, makeEvent(true));
    MUSTER_CHECK_OK(queued(cudaEventRecord(begin.get(), stream_.get()), "an event"));
    MUSTER_CHECK_OK(queued(launchStream(op, shape, at, stream_.get()), "a memory kernel"));
    MUSTER_CHECK_OK(queued(cudaEventRecord(end.get(), stream_.get()), "an event"));
    MUSTER_CHECK_OK(synchronize());
    return secondsBetween(begin.get(), end.get());
  });
}

Status CudaDevice::memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) {
  MUSTER_CHECK_OK(checkOperands(op, a, b, c, info_.id));
  MUSTER_CHECK_OK(use());
  const StreamOp kernel = streamOp(op);
  const StreamArrays at = {bytesOf(a), dataOf(b), dataOf(c), a.bytes(), static_cast<uint64_t*>(word_.get())};
  MUSTER_TRY(StreamShape shape, shapeFor(kernel, at));
  return queued(launchStream(kernel, shape, at, stream_.get()), "a memory kernel");
}

Status CudaDevice::fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) {
  MUSTER_CHECK_OK(checkRing(buffer, stride, info_.id));
  MUSTER_CHECK_OK(use());
  return queued(launchFillRing(bytesOf(buffer), chaseLines(buffer.bytes(), stride), stride, seed, blocks(),
                               stream_.get()),
                "the ring of a pointer chase");
}

Result<uint64_t> CudaDevice::chase(const Buffer& buffer, uint64_t from, uint64_t steps) {
  MUSTER_CHECK_OK(use());
  auto* place = static_cast<uint64_t*>(hostParts_.get());
  *place = from;
  MUSTER_CHECK_OK(
      queued(cudaMemcpyAsync(word_.get(), place, sizeof from, cudaMemcpyHostToDevice, stream_.get()),
             "the start of a pointer chase"));
  MUSTER_CHECK_OK(
      queued(launchChase(bytesOf(buffer), steps, static_cast<uint64_t*>(word_.get()), stream_.get()),
             "a pointer chase"));
  MUSTER_CHECK_OK(
      queued(cudaMemcpyAsync(place, word_.get(), sizeof from, cudaMemcpyDeviceToHost, stream_.get()),
             "the end of a pointer chase"));
  MUSTER_CHECK_OK(synchronize());
  return *place;
}

Status CudaDevice::synchronize() {
  MUSTER_CHECK_OK(use());
  letGo();
  if (const cudaError_t code = cudaStreamSynchronize(stream_.get()); code != cudaSuccess)
    return workProblem(code, info_.id, "waiting for queued work");
  return {};
}

class CudaDevice::RegisteredPin : public Pin {
 public:
  explicit RegisteredPin(RegisteredMemory memory) : memory_(std::move(memory)) {}

 private:
  RegisteredMemory memory_;
};

Result<std::unique_ptr<Pin>> CudaDevice::pin(void* memory, uint64_t bytes) {
  MUSTER_CHECK_OK(use());
  const cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();  // else the next launch reports it again
    return workProblem(code, info_.id, "pinning memory of the host");
  }
  return std::unique_ptr<Pin>(std::make_unique<RegisteredPin>(RegisteredMemory(memory)));
}

class CudaDevice::EventMark : public Mark {
 public:
  explicit EventMark(Event event) : event_(std::move(event)) {}
  [[nodiscard]] cudaEvent_t event() const { return event_.get(); }

 private:
  Event event_;
};

Result<std::unique_ptr<Mark>> CudaDevice::mark() {
  MUSTER_CHECK_OK(use());
  MUSTER_TRY(Event event, makeEvent(true));
  MUSTER_CHECK_OK(queued(cudaEventRecord(event.get(), stream_.get()), "an event"));
  return std::unique_ptr<Mark>(new EventMark(std::move(event)));
}

Result<double> CudaDevice::seconds(const Mark& from, const Mark& to) {
  MUSTER_CHECK_OK(use());
  letGo();
  const cudaEvent_t end = static_cast<const EventMark&>(to).event();
  if (const cudaError_t code = cudaEventSynchronize(end); code != cudaSuccess)
    return workProblem(code, info_.id, "waiting for queued work");
  return secondsBetween(static_cast<const EventMark&>(from).event(), end);
}

/// Runs `work` between the two events, and waits.
Result<double> CudaDevice::elapsed(const std::function<Status()>& work) {
  MUSTER_CHECK_OK(queued(cudaEventRecord(begin_.get(), stream_.get()), "an event"));
  MUSTER_CHECK_OK(work());
  MUSTER_CHECK_OK(use());  // the work may have used another GPU
  MUSTER_CHECK_OK(queued(cudaEventRecord(end_.get(), stream_.get()), "an event"));
  MUSTER_CHECK_OK(synchronize());
  return secondsBetween(begin_.get(), end_.get());
}

Result<double> CudaDevice::time(const std::function<Status()>& work) {
  MUSTER_CHECK_OK(synchronize());  // an earlier hold must have ended before the gate closes again
  *static_cast<volatile uint32_t*>(gate_.get()) = 0;
  MUSTER_CHECK_OK(queued(launchHold(static_cast<const uint32_t*>(gate_.get()), kHoldLimit, stream_.get()),
                         "the hold of a timing"));
  Result<double> seconds = elapsed(work);
  letGo();
  return seconds;
}

Result<std::unique_ptr<Device>> openDevice(const DeviceInfo& info) {
  MUSTER_TRY(std::unique_ptr<CudaDevice> device, CudaDevice::open(info));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace muster::cuda
