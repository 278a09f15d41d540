// SPDX-License-Identifier: Apache-2.0
// XIDs, the numbers under which NVIDIA's driver reports errors.
#include "kernels/checks/xid.h"

#include <algorithm>
#include <iterator>

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
    case 46:
      return "GPU stopped processing, by timeout";
    case 48:
      return "double-bit ECC error";
    case 61:
    case 62:
      return "internal micro-controller halt";
    case 63:
      return "row remapping recorded";
    case 64:
      return "row remapping failed";
    case 69:
      return "graphics engine class error";
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
    case 143:
      return "GPU initialization error";
    case 144:
      return "NVLink: SAW error";
    case 145:
      return "NVLink: RLW error";
    case 146:
      return "NVLink: TLW error";
    case 147:
      return "NVLink: TREX error";
    case 148:
      return "NVLink: NVLPW_CTRL error";
    case 149:
      return "NVLink: NETIR error";
    case 150:
      return "NVLink: MSE error";
    case 154:
      return "GPU recovery action changed";
    case 155:
      return "NVLink: error defined by software";
    case 156:
      return "resource retirement event";
    case 157:
      return "resource retirement failure";
    case 158:
      return "GPU fatal timeout";
    case 162:
      return "power smoothing available again";
    case 167:
      return "fatal PCIe timeout";
    case 168:
      return "errors in the write-protected region: reduced memory capacity";
    case 169:
      return "halt of the micro-controller SEC2";
    case 170:
      return "NVLink interrupt in confidential computing mode";
    case 171:
      return "uncorrectable DRAM error, details of XID 48";
    default:
      return "see NVIDIA's XID catalogue";
  }
}

}  // namespace

XidClass xidClass(int xid) {
  constexpr int kIgnored[] = {37, 38, 63, 66, 92, 137, 141, 160};
  constexpr int kApplication[] = {13, 31, 32, 43, 45, 69, 94};
  constexpr int kInformation[] = {154, 162};
  const auto among = [xid](const auto& list) {
    return std::find(std::begin(list), std::end(list), xid) != std::end(list);
  };
  if (xid >= 144 && xid <= 150) return XidClass::kByText;
  return among(kIgnored)       ? XidClass::kIgnored
         : among(kApplication) ? XidClass::kApplication
         : among(kInformation) ? XidClass::kInformation
                               : XidClass::kFatal;
}

std::string xidText(int xid) {
  return "XID " + std::to_string(xid) + " (" + xidMeaning(xid) + ")";
}

}  // namespace muster
