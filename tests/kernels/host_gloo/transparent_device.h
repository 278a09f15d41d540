// SPDX-License-Identifier: Apache-2.0
// A device whose memory a test reaches: to plant a wrong element, and to look at results.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernels/host/buffer.h"
#include "kernels/interfaces/device.h"

namespace muster::testing {

/// Passes everything on to a real device and remembers where its buffers are.
class TransparentDevice : public Device {
 public:
  explicit TransparentDevice(std::unique_ptr<Device> real) : real_(std::move(real)) {}

  std::vector<std::byte*> allocated;  ///< in order

  [[nodiscard]] const DeviceInfo& info() const override { return real_->info(); }
  [[nodiscard]] double now() const override { return real_->now(); }
  void sleep(double seconds) override { real_->sleep(seconds); }
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    MUSTER_TRY(auto buffer, real_->allocate(bytes));
    allocated.push_back(host::bytesOf(*buffer));
    return buffer;
  }
  [[nodiscard]] Result<uint64_t> freeBytes() override { return real_->freeBytes(); }
  Status fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) override {
    return real_->fillNormal(buffer, dtype, seed);
  }
  Status fillPattern(Buffer& buffer, const PatternPart& part) override {
    return real_->fillPattern(buffer, part);
  }
  Result<Mismatch> checkPattern(const Buffer& buffer, const PatternPart& part) override {
    return real_->checkPattern(buffer, part);
  }
  Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype dtype) override {
    return real_->compareBits(a, b, dtype);
  }
  Result<uint64_t> hash(const Buffer& buffer) override { return real_->hash(buffer); }
  Status memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) override {
    return real_->memoryOp(op, a, b, c);
  }
  Status synchronize() override { return real_->synchronize(); }
  Result<double> time(const std::function<Status()>& work) override { return real_->time(work); }

 private:
  std::unique_ptr<Device> real_;
};

/// Gives single pages: the real device's huge ones are zeroed each time, which thousands of small buffers
/// need not wait for.
class SmallPageDevice : public TransparentDevice {
 public:
  using TransparentDevice::TransparentDevice;
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return Error{ErrorCode::kIo, "no memory", std::to_string(bytes)};
    return std::unique_ptr<Buffer>(std::make_unique<host::HostBuffer>(base, bytes, base, bytes));
  }
};

}  // namespace muster::testing
