// SPDX-License-Identifier: Apache-2.0
// One device as plugins see it: memory, fills, comparisons and its clock. Implemented by each backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/spec/dtype.h"
#include "kernels/spec/mismatch.h"
#include "kernels/spec/pattern.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

const char* dtypeName(Dtype dtype);  ///< f64, f32, tf32, f16, bf16, fp8_e4m3, fp8_e5m2, i8, fp4
Result<Dtype> dtypeFromName(std::string_view name);  ///< the error lists the names
size_t dtypeBits(Dtype dtype);                       ///< storage bits of one element (tf32: 32)

/// What a device is. `peaks` are theoretical, in base units: "flops.bf16" (FLOP/s), "memory_bandwidth" (B/s).
struct DeviceInfo {
  int index = 0;
  std::string id;    ///< "gpu0", "cpu0"; unique in the node
  std::string kind;  ///< "gpu" or "cpu"
  std::string name;  ///< model name
  std::string uuid;
  std::string serial;
  std::string pciId;       ///< "10de:2330"
  std::string pciAddress;  ///< "0000:18:00.0"
  uint64_t memoryBytes = 0;
  uint64_t lastLevelCacheBytes = 0;
  int numaNode = -1;
  std::vector<int> cpus;  ///< processors to bind to
  std::map<std::string, double> peaks;
  std::map<std::string, std::string> facts;  ///< driver, VBIOS, ISA, clocks ... for the inventory
};
Json toJson(const DeviceInfo& info);
Result<DeviceInfo> deviceInfoFromJson(const Json& json);

/// Memory of one device. Its bytes are never touched by plugins: `sim` keeps a tag in their place.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

/// A place in the work that was queued on a device; must not outlive it.
class Mark {
 public:
  virtual ~Mark() = default;
};

/// Memory of the host that is pinned for as long as this lives.
class Pin {
 public:
  virtual ~Pin() = default;
};

/// Adds up what comparisons find, on the device, until somebody reads it; must not outlive the device.
class Tally {
 public:
  virtual ~Tally() = default;
  /// What all comparisons queued so far found: the sum of their counts, and where one of the first ones
  /// differed. Waits for them.
  virtual Result<Mismatch> read() = 0;
};

/// The tally of a device whose comparisons are done when their call returns.
class PlainTally : public Tally {
 public:
  void add(const Mismatch& found) { sum_ = followedBy(sum_, found); }
  Result<Mismatch> read() override { return sum_; }

 private:
  Mismatch sum_;
};

/// The simple memory kernels; bytes counts as STREAM does: read and written bytes, one-way.
enum class MemoryOp { kRead, kWrite, kCopy, kTriad };

/// A device that is open for work. Calls queue work in order; synchronize() waits. Not thread-safe. Marks and
/// tallies are for devices that work on while the caller does something else; what is implemented here serves
/// those whose calls return when their work is done.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  /// Seconds on the clock that deadlines and warm-ups of this device count in: steady on real backends,
  /// virtual on sim.
  [[nodiscard]] virtual double now() const = 0;
  /// Lets `seconds` of that clock pass (settling); virtual on sim.
  virtual void sleep(double seconds) = 0;

  /// Memory aligned to a page. Out of memory is an error that says how much was wanted and how much is free.
  virtual Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<uint64_t> freeBytes() = 0;

  /// Fills with normally distributed values (mean 0, sigma 1; i8: 32) of `dtype`, a pure function of seed and
  /// index.
  virtual Status fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) = 0;
  /// Fills 64-bit words with a pure function of pattern and word index; see PatternTest in the memory plugin.
  virtual Status fillPattern(Buffer& buffer, const PatternPart& part) = 0;
  /// Reads back what fillPattern wrote.
  virtual Result<Mismatch> checkPattern(const Buffer& buffer, const PatternPart& part) = 0;
  /// Bitwise comparison of two buffers of one dtype; a NaN is wrong even against the same NaN.
  virtual Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype dtype) = 0;
  /// A tally of nothing yet.
  virtual Result<std::unique_ptr<Tally>> tally() { return std::unique_ptr<Tally>(new PlainTally); }
  /// Queues compareBits() and adds what it finds to `found`, a tally of this device.
  virtual Status countDifferences(const Buffer& a, const Buffer& b, Dtype dtype, Tally& found);
  /// A number that is equal for buffers of equal bytes, and differs for others but for one in 2^64: to
  /// compare what lies on several devices. On sim it is a function of the content's tag.
  virtual Result<uint64_t> hash(const Buffer& buffer) = 0;

  /// Queues one pass of a memory kernel: kRead reads `a`; kWrite writes `a`; kCopy a = b; kTriad a = b + s *
  /// c (f64).
  virtual Status memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) = 0;

  /// Writes the ring of a pointer chase (kernels/checks/pointer_chase.h) through as many lines of `stride`
  /// bytes as are a power of two: the first 8 bytes of each hold the byte offset of the next. kUnsupported
  /// where a backend has no memory to follow it through.
  virtual Status fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) {
    (void)buffer, (void)stride, (void)seed;
    return Error{ErrorCode::kUnsupported, "this device has no pointer chase", info().id};
  }
  /// Follows the ring for `steps` loads from byte offset `from`, each at the place that the one before it
  /// read; the offset that was reached. Waits for it.
  virtual Result<uint64_t> chase(const Buffer& buffer, uint64_t from, uint64_t steps) {
    (void)buffer, (void)from, (void)steps;
    return Error{ErrorCode::kUnsupported, "this device has no pointer chase", info().id};
  }

  /// Pins memory of the host, whole pages that must outlive the result: copies from it then need no second
  /// copy by the driver. Null where nothing is copied.
  virtual Result<std::unique_ptr<Pin>> pin(void* memory, uint64_t bytes) {
    (void)memory, (void)bytes;
    return std::unique_ptr<Pin>();
  }

  virtual Status synchronize() = 0;
  /// Device seconds that `work` takes: what it queues is timed from its first start to its last end.
  virtual Result<double> time(const std::function<Status()>& work) = 0;

  /// Queues a mark, which is reached once all work queued before it is done. Does not wait.
  virtual Result<std::unique_ptr<Mark>> mark();
  /// Waits until `to` is reached, and for nothing that was queued after it; device seconds that passed since
  /// `from`, which was queued before it.
  virtual Result<double> seconds(const Mark& from, const Mark& to);
};

}  // namespace muster
