// SPDX-License-Identifier: Apache-2.0
// Checks of buffers before work, shared by the backends.
#include "kernels/checks/operands.h"

#include "runner/core/units.h"

namespace muster {

Status sameSize(const Buffer& a, const Buffer& b, const std::string& device) {
  if (a.bytes() == b.bytes()) return {};
  return Error{
      ErrorCode::kUsage,
      "the buffers differ in size: " + std::to_string(a.bytes()) + " and " + std::to_string(b.bytes()) + " B",
      device};
}

Status checkOperands(MemoryOp op, const Buffer& a, const Buffer* b, const Buffer* c,
                     const std::string& device) {
  const bool needsB = op == MemoryOp::kCopy || op == MemoryOp::kTriad;
  const bool needsC = op == MemoryOp::kTriad;
  if ((needsB && b == nullptr) || (needsC && c == nullptr))
    return Error{ErrorCode::kUsage, "a memory operation lacks one of its buffers", device};
  if (a.bytes() % 8 != 0)
    return Error{ErrorCode::kUsage,
                 "memory operations take whole 64-bit words, not " + std::to_string(a.bytes()) + " B",
                 device};
  if (needsB) MUSTER_CHECK_OK(sameSize(a, *b, device));
  if (needsC) MUSTER_CHECK_OK(sameSize(a, *c, device));
  return {};
}

Status checkRing(const Buffer& buffer, uint64_t stride, const std::string& device) {
  if (stride >= 8 && stride % 8 == 0 && stride <= buffer.bytes()) return {};
  return Error{ErrorCode::kUsage,
               "a ring of lines of " + std::to_string(stride) + " B does not fit " +
                   std::to_string(buffer.bytes()) + " B; expected a multiple of 8 B, and room for a line",
               device};
}

Error outOfMemory(const std::string& device, uint64_t wanted, uint64_t free, const std::string& reason) {
  return {ErrorCode::kIo,
          "out of memory: required " + formatQuantity(static_cast<double>(wanted), "B") + ", " +
              formatQuantity(static_cast<double>(free), "B") + " is free" +
              (reason.empty() ? "" : " (" + reason + ")") + "; make the buffers smaller or free memory",
          device};
}

}  // namespace muster
