// SPDX-License-Identifier: Apache-2.0
// XIDs, the numbers under which NVIDIA's driver reports errors.
#include "kernels/checks/xid.h"

namespace muster {
namespace {

/// Those that acceptance runs are likely to see.
const char* xidMeaning(int xid) {
  switch (xid) {
    case 13:
      return "graphics engine exception";
    case 31:
      return "GPU memory page fault";
    case 32:
      return "invalid or corrupted push buffer stream";
    case 38:
      return "driver firmware error";
    case 43:
      return "GPU stopped processing";
    case 45:
      return "preemptive cleanup";
    case 48:
      return "double-bit ECC error";
    case 61:
    case 62:
      return "internal micro-controller halt";
    case 63:
      return "row remapping recorded";
    case 64:
      return "row remapping failed";
    case 74:
      return "NVLink error";
    case 79:
      return "GPU has fallen off the bus";
    case 92:
      return "high single-bit ECC error rate";
    case 94:
      return "contained ECC error";
    case 95:
      return "uncontained ECC error";
    case 109:
      return "context switch timeout";
    case 119:
    case 120:
      return "GSP error";
    case 140:
      return "unrecovered ECC error";
    case 145:
    case 149:
      return "NVLink 5 error";
    case 154:
      return "GPU recovery action changed";
    default:
      return "see NVIDIA's XID catalogue";
  }
}

}  // namespace

bool isApplicationXid(int xid) {
  return xid == 13 || xid == 31 || xid == 43 || xid == 45;
}

std::string xidText(int xid) {
  return "XID " + std::to_string(xid) + " (" + xidMeaning(xid) + ")";
}

}  // namespace muster
