// SPDX-License-Identifier: Apache-2.0
// What NCCL says of itself in its log (NCCL_DEBUG=INFO): connections, networks, settings. The log
// is text for people of a library that changes: what is not understood is counted, and never taken for a
// fact.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cuda {

/// What was read so far.
struct NcclLog {
  /// One of the NICs that NCCL's InfiniBand transport uses: "[0]mlx5_0:1/RoCE".
  struct Hca {
    std::string name;
    int port = 1;
    std::string kind;  ///< IB or RoCE
  };
  /// A graph that NCCL laid over the machine: "Pattern 4, ... nChannels 24, ... type NVL/PIX".
  struct Graph {
    int pattern = 0;
    int channels = 0;
    std::string inside;   ///< the worst way between two GPUs of a node: LOC NVL NVB C2C PIX PXB PHB SYS
    std::string between;  ///< and from a GPU to its NIC
  };

  std::string version;                             ///< "2.28.9+cuda13.0"
  std::string network;                             ///< "IB", "Socket", a plugin's name
  bool mnnvl = false;                              ///< NVLink between nodes is in use
  bool nvls = false;                               ///< NVLink SHARP: multicast in the switch is there
  int channels = 0;                                ///< of collectives
  int nvlsChannels = 0;                            ///< of them, by NVLS
  std::map<std::string, std::string> environment;  ///< variables that NCCL says it took from there
  std::map<int, Hca> hcas;
  std::vector<Graph> graphs;
  std::map<std::string, uint64_t> connections;  ///< "P2P/CUMEM", "NET/IB/0/GDRDMA": how many were made
  std::vector<std::string> warnings;            ///< the last few, made printable
  uint64_t lines = 0;
  uint64_t unread = 0;  ///< lines of NCCL's that told nothing of the above
};

/// Reads a log piece by piece. Bounded whatever the log holds.
class NcclLogReader {
 public:
  static constexpr size_t kLongestLine = 4096;  ///< the rest of a longer one is dropped
  static constexpr size_t kMostEntries = 1024;  ///< of each list

  /// `text` may end in the middle of a line: the next piece goes on there.
  void feed(std::string_view text);
  [[nodiscard]] const NcclLog& log() const { return log_; }

 private:
  void readLine(std::string_view line);
  bool readInfo(std::string_view text);

  NcclLog log_;
  std::string open_;  ///< a line that has not ended yet
};

}  // namespace muster::cuda
