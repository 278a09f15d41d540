// SPDX-License-Identifier: Apache-2.0
// PCI devices by their ids; what is no device, or cannot be read, is none.
#include "runner/app/prepare/pci_devices.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

TEST(PciDevices, CountsEachId) {
  const testing::TempDir dir;
  for (const char* at : {"0000:18:00.0", "0000:2a:00.0"}) {
    dir.write(std::string(at) + "/vendor", "0x10de\n");
    dir.write(std::string(at) + "/device", "0x233D\n");
  }
  dir.write("0000:00:00.0/vendor", "0x8086\n");
  dir.write("broken/vendor", "10de\n");
  dir.write("broken/device", "0x2330\n");
  EXPECT_EQ(pciDevices(dir.path()), (std::map<std::string, int>{{"10de:233d", 2}}));
  EXPECT_TRUE(pciDevices(dir.path() / "missing").empty());
}

}  // namespace
}  // namespace muster
