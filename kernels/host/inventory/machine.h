// SPDX-License-Identifier: Apache-2.0
// Facts about the machine as a whole: who made it, what runs on it, in what it is wrapped, what it limits.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/host/inventory/root.h"
#include "runner/core/json.h"

namespace muster {

/// Memory of the machine in bytes, from /proc/meminfo.
struct Memory {
  uint64_t total = 0;
  uint64_t available = 0;  ///< without swapping
  uint64_t swap = 0;
};
Result<Memory> readMemory(const Root& root);

/// What the process runs in: "docker", "podman", "kubernetes", "lxc", "systemd-nspawn", "enroot",
/// "singularity", "container" (some other one), or "none".
std::string containerKind(const Root& root);

/// "kvm", "vmware", "hyper-v", "xen", "qemu" or "virtual machine" (another one); "none" on bare metal.
std::string virtualization(const Root& root);

/// Free and whole size of the file system that holds `folder`, bytes.
struct Space {
  uint64_t free = 0;  ///< for this user
  uint64_t total = 0;
};
Result<Space> readSpace(const std::string& folder);

/// "machine_id" is a digest of /etc/machine-id. Serials of board, product and management controller can be
/// read by root alone; empty where they are not.
/// {"name", "kernel", "os", "boot_id", "machine_id", "board_serial", "product_serial", "product_uuid",
/// "cpu_governor", "c_states", "numa_balancing", "dimms", "swap_bytes", "bmc_guid", "vendor", "product",
/// "bios", "cloud", "virtualization", "container", ...}
Json hostFacts(const Root& root);
/// {"kernel", "os", "libc", "nvidia_driver" ...}: versions of what runs on it.
Json softwareFacts(const Root& root);

}  // namespace muster
