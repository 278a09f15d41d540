// SPDX-License-Identifier: Apache-2.0
// The fabrics, as data. Paths of a site's own files (NCCL_TOPO_FILE, NCCL_TUNER_CONFIG_PATH) belong into the
// environment.
#include "plugins/collective/fabrics.h"

#include <algorithm>
#include <array>

#include "plugins/collective/fabric_choice.h"
#include "runner/core/text.h"

namespace muster::collective {
namespace {

struct Fabric {
  const char* name;
  const char* settings;  ///< without the prefix NCCL_, unless the name has another one ("FI_...")
};

constexpr std::array kFabrics = {
    Fabric{"none", ""},
    Fabric{kAutoFabric, ""},
    // Sockets only.
    Fabric{"ethernet", "IB_DISABLE=1"},
    // Any InfiniBand; the GID index is left to NCCL.
    Fabric{"ib", "IB_DISABLE=0 IB_TIMEOUT=23 IB_RETRY_CNT=7"},
    // Inside a node too: a test of the HCAs and not of NVLink.
    Fabric{kForcedFabric, "IB_DISABLE=0 IB_TIMEOUT=23 IB_RETRY_CNT=7 P2P_DISABLE=1 SHM_DISABLE=1 ALGO=Ring"},
    Fabric{"ib-sharp", "IB_DISABLE=0 IB_TIMEOUT=23 IB_RETRY_CNT=7 COLLNET_ENABLE=1"},
    Fabric{"roce", "IB_DISABLE=0 IB_GID_INDEX=3 IB_TC=106 NET_GDR_LEVEL=5"},
    // oci-hpc, H100 to B300.
    Fabric{"oci-roce",
           "CUMEM_ENABLE=0 IB_SPLIT_DATA_ON_QPS=0 IB_QPS_PER_CONNECTION=1 IB_GID_INDEX=3 IB_TC=41 IB_SL=0 "
           "IB_TIMEOUT=22 IGNORE_CPU_AFFINITY=1"},
    Fabric{"coreweave-ib", "SOCKET_IFNAME=eth0 IB_HCA=ibp"},
    Fabric{"nebius-ib", "SOCKET_IFNAME=eth0 IB_HCA=mlx5 COLLNET_ENABLE=0 IB_PCI_RELAXED_ORDERING=1"},
    Fabric{"azure-ib", "IB_PCI_RELAXED_ORDERING=1"},
    Fabric{"aws-efa", "FI_EFA_USE_DEVICE_RDMA=1"},
    // Google A4 and A3 Mega.
    Fabric{"gcp-gib",
           "NET=gIB CROSS_NIC=0 NET_GDR_LEVEL=PIX P2P_NET_CHUNKSIZE=131072 NVLS_CHUNKSIZE=524288 "
           "IB_ADAPTIVE_ROUTING=1 IB_QPS_PER_CONNECTION=4 IB_TC=52 IB_FIFO_TC=84 MIN_NCHANNELS=32"},
    Fabric{"gcp-fastrak",
           "ALGO=Ring,Tree PROTO=Simple MIN_NCHANNELS=4 DYNAMIC_CHUNK_SIZE=524288 P2P_NET_CHUNKSIZE=524288 "
           "P2P_PCI_CHUNKSIZE=524288 P2P_NVL_CHUNKSIZE=1048576 BUFFSIZE=8388608 NVLS_ENABLE=0 "
           "FASTRAK_NUM_FLOWS=2"},
    Fabric{"gb200-mnnvl", "MNNVL_ENABLE=1 CUMEM_ENABLE=1 NET_GDR_C2C=1"},
};

}  // namespace

std::vector<std::string> fabricNames() {
  std::vector<std::string> names;
  names.reserve(kFabrics.size());
  for (const Fabric& fabric : kFabrics) names.emplace_back(fabric.name);
  return names;
}

Result<std::map<std::string, std::string>> fabricSettings(const std::string& name) {
  const auto found = std::find_if(kFabrics.begin(), kFabrics.end(),
                                  [&](const Fabric& fabric) { return fabric.name == name; });
  if (found == kFabrics.end())
    return Error{ErrorCode::kUsage,
                 "unknown fabric \"" + printable(name, 64) + "\", expected one of " +
                     join(fabricNames(), ", ") + didYouMean(name, fabricNames()),
                 "params.fabric"};
  std::map<std::string, std::string> settings;
  for (const std::string& text : split(found->settings, ' ')) {
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    const std::string prefix = text.starts_with("FI_") ? "" : "NCCL_";
    settings[prefix + text.substr(0, equals)] = text.substr(equals + 1);
  }
  return settings;
}

}  // namespace muster::collective
