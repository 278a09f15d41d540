// SPDX-License-Identifier: Apache-2.0
// See fake_hcas.h.
#include "tests/support/fake_hcas.h"

#include <fstream>

namespace muster::testing {
namespace fs = std::filesystem;

FakeHcas::FakeHcas() {
  fs::create_directories(folder_.path() / "sys/class/infiniband");
  fs::create_directories(programs());
  for (const char* name : {"ib_write_bw", "ib_send_lat"})
    fs::create_symlink(buildDir() / "tests/fakes/perftest/fake-perftest", fs::path(programs()) / name);
  configure("");
}

void FakeHcas::add(const std::string& device, const std::string& behaviour, double gigabits,
                   double microseconds) {
  set(device, "state", "4: ACTIVE\n");
  set(device, "phys_state", "5: LinkUp\n");
  set(device, "rate", "400 Gb/sec (4X NDR)\n");
  set(device, "link_layer", "InfiniBand\n");
  for (const char* counter : {"link_downed", "symbol_error", "link_error_recovery", "port_rcv_errors",
                              "local_link_integrity_errors", "excessive_buffer_overrun_errors",
                              "port_xmit_discards", "port_xmit_wait", "port_xmit_data", "port_rcv_data"})
    set(device, std::string("counters/") + counter, "0\n");
  set(device, "hw_counters/packet_seq_err", "0\n");
  folder_.write("sys/class/infiniband/" + device + "/fw_ver", "28.39.1002\n");
  configure("device " + device + " " + behaviour + " " + std::to_string(gigabits) + " " +
            std::to_string(microseconds));
}

void FakeHcas::set(const std::string& device, const std::string& file, const std::string& text) const {
  folder_.write("sys/class/infiniband/" + device + "/ports/1/" + file, text);
}

std::string FakeHcas::portFile(const std::string& device, const std::string& file) const {
  return (folder_.path() / "sys/class/infiniband" / device / "ports/1" / file).string();
}

void FakeHcas::configure(const std::string& line) const {
  std::ofstream(fs::path(programs()) / "fake-perftest.conf", std::ios::app) << line << "\n";
}

}  // namespace muster::testing
