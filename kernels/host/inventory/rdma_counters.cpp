// SPDX-License-Identifier: Apache-2.0
// The counters of an RDMA port, from sysfs.
#include "kernels/host/inventory/rdma_counters.h"

#include <charconv>
#include <limits>

#include "runner/core/text.h"

namespace muster {

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

/// One file that counts. `limit` is where the hardware's counter stops: those of the subnet management's
/// PortCounters do not wrap (InfiniBand specification, volume 1, table "PortCounters").
struct CounterFile {
  const char* counter;  ///< of kRdmaCounters
  const char* file;     ///< in the port's folder
  uint64_t limit = kNoLimit;
  uint64_t unit = 1;
};

/// hw_counters are those of mlx5 and bnxt_re (Linux: drivers/infiniband/hw); a port has those of its driver.
constexpr CounterFile kFiles[] = {
    {"link_downed", "counters/link_downed", 0xff},
    {"symbol_errors", "counters/symbol_error", 0xffff},
    {"link_error_recoveries", "counters/link_error_recovery", 0xff},
    {"receive_errors", "counters/port_rcv_errors", 0xffff},
    {"link_integrity_errors", "counters/local_link_integrity_errors", 0xf},
    {"buffer_overruns", "counters/excessive_buffer_overrun_errors", 0xf},
    {"transmit_discards", "counters/port_xmit_discards", 0xffff},
    {"retransmits", "hw_counters/packet_seq_err"},
    {"retransmits", "hw_counters/local_ack_timeout_err"},
    {"retransmits", "hw_counters/roce_adp_retrans"},
    {"retransmits", "hw_counters/to_retransmits"},
    {"retransmits", "hw_counters/seq_err_naks_rcvd"},
    {"congestion_marks", "hw_counters/np_cnp_sent"},
    {"congestion_marks", "hw_counters/rp_cnp_handled"},
    {"congestion_marks", "hw_counters/np_ecn_marked_roce_packets"},
    {"transmit_waits", "counters/port_xmit_wait"},
    {"sent_bytes", "counters/port_xmit_data", kNoLimit, 4},
    {"received_bytes", "counters/port_rcv_data", kNoLimit, 4},
};

Result<uint64_t> readCount(const Root& root, const std::string& path) {
  MUSTER_TRY(const std::string text, root.text(path, 4096));
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || rest != end || text.empty())
    return Error{ErrorCode::kProtocol, "holds \"" + printable(text, 40) + "\" where a count is expected",
                 path};
  return value;
}

}  // namespace

RdmaCounters readRdmaCounters(const Root& root, const std::string& device, int port,
                              const std::string& sysfs) {
  const std::string name = device + "/" + std::to_string(port);
  const std::string folder = sysfs + "/class/infiniband/" + device + "/ports/" + std::to_string(port) + "/";
  RdmaCounters counters;
  for (const CounterFile& entry : kFiles) {
    if (!root.exists(folder + entry.file)) continue;
    const std::string source = std::string("RDMA counter ") + entry.file;
    const auto count = readCount(root, folder + entry.file);
    if (!count.ok())
      counters.unreadable.push_back({source, name, count.error().text()});
    else if (*count >= entry.limit && entry.limit != kNoLimit)
      counters.unreadable.push_back(
          {source, name,
           "is at its maximum " + std::to_string(*count) +
               " and counts no further; clear it with perfquery -R or by loading the driver again"});
    else
      counters.values[entry.counter] += *count * entry.unit;
  }
  return counters;
}

}  // namespace muster
