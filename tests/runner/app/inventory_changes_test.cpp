// SPDX-License-Identifier: Apache-2.0
#include "runner/app/node/inventory_changes.h"

#include <gmock/gmock.h>

#include "runner/app/node/node_inventory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json gpu(const std::string& id, const std::string& serial) {
  return {{"id", id},
          {"name", "NVIDIA H100 80GB HBM3"},
          {"pci_id", "10de:2330"},
          {"uuid", "GPU-" + serial},
          {"serial", serial},
          {"peaks", {{"memory_bandwidth", 3.35e12}}},
          {"facts",
           {{"ecc", "on"},
            {"mig", "off"},
            {"power_limit", "700 W"},
            {"vbios", "96.00"},
            {"nvlinks", "18 of 18"}}}};
}

Json node() {
  return {
      {"host", {{"machine_id", "m1"}, {"board_serial", "b1"}, {"boot_id", "x"}, {"cpu", "Xeon"}}},
      {"software", {{"nvidia_driver", "570.1"}, {"kernel", "6.1"}}},
      {"nics",
       {{{"name", "eth0"}, {"kind", "network"}, {"state", "up"}, {"errors", 0}},
        {{"name", "mlx5_0/1"}, {"kind", "rdma"}, {"node_guid", "0001"}, {"firmware", "28"}, {"errors", 0}}}},
      {"devices", {gpu("gpu0", "100"), gpu("gpu1", "101")}}};
}

template <typename Change>
std::vector<std::string> changesAfter(Change change) {
  Json now = node();
  change(now);
  return inventoryChanges(node(), now);
}

TEST(InventoryChanges, AreNoneWhereOnlyVaryingValuesDiffer) {
  EXPECT_THAT(inventoryChanges(node(), node()), IsEmpty());
  EXPECT_THAT(changesAfter([](Json& now) {
                now["host"]["boot_id"] = "y";
                now["host"]["machine_id"] = "m2";  // of a node without a disk: the board says who it is
                now["nics"][0]["errors"] = 7;
                now["nics"][0]["state"] = "down";
                now["nics"][1]["errors"] = 7;
                now["nics"].push_back({{"name", "veth9"}, {"kind", "network"}});
                now["devices"][0]["facts"]["clock_measured"] = "1.9 GHz";
                now["devices"][0]["facts"]["pcie_generation"] = "1 of 5";
                now["devices"][0]["facts"]["ecc"] = "on, off after a reboot";
              }),
              IsEmpty());
}

TEST(InventoryChanges, NamePartsAndSettings) {
  EXPECT_THAT(changesAfter([](Json& now) { now["devices"][1]["serial"] = "999"; }),
              ElementsAre("gpu1 serial: was 101, is 999"));
  EXPECT_THAT(changesAfter([](Json& now) { now["devices"][1]["uuid"] = ""; }),
              ElementsAre("gpu1 uuid: was GPU-101, is none"));
  EXPECT_THAT(changesAfter([](Json& now) { now["devices"].erase(1); }), ElementsAre("gpu1 is missing"));
  EXPECT_THAT(changesAfter([](Json& now) { now["devices"].push_back(gpu("gpu2", "102")); }),
              ElementsAre("gpu2 is new"));
  for (const auto& [setting, value] :
       {std::pair{"ecc", "off"}, {"mig", "on"}, {"power_limit", "500 W"}, {"vbios", "96.01"}})
    EXPECT_THAT(changesAfter([&](Json& now) { now["devices"][0]["facts"][setting] = value; }).size(), 1)
        << setting;
  EXPECT_THAT(changesAfter([](Json& now) { now["software"]["nvidia_driver"] = "575.2"; }),
              ElementsAre("nvidia_driver: was 570.1, is 575.2"));
  EXPECT_THAT(changesAfter([](Json& now) { now["nics"][1]["node_guid"] = "0002"; }),
              ElementsAre("mlx5_0/1 node_guid: was 0001, is 0002"));
  EXPECT_THAT(changesAfter([](Json& now) { now["nics"].erase(1); }), ElementsAre("mlx5_0/1 is missing"));
}

TEST(InventoryChanges, NameAnotherHostByWhatBothInventoriesCouldRead) {
  EXPECT_THAT(changesAfter([](Json& now) { now["host"]["board_serial"] = "b2"; }),
              ElementsAre("host board_serial: was b1, is b2"));
  const auto asUser = [](Json& now) { now["host"].erase("board_serial"); };
  EXPECT_THAT(changesAfter(asUser), IsEmpty()) << "only root can read it";
  EXPECT_THAT(changesAfter([&](Json& now) {
                asUser(now);
                now["host"]["machine_id"] = "m2";
              }),
              ElementsAre("host machine_id: was m1, is m2"));
}

TEST(InventoryChanges, HoldForFactsOfAnyForm) {
  for (const char* facts : {"null", "[]", "{}", R"({"devices": "x", "nics": {"a": 1}, "host": 7})"})
    EXPECT_FALSE(inventoryChanges(node(), Json::parse(facts)).empty()) << facts;
}

/// A record that somebody changed may hold anything there.
TEST(NodeInventory, HasNoDevicesWhereItsFactsListNone) {
  NodeInventory inventory;
  for (const char* facts : {"null", "[]", "{}", "7", R"({"devices": "x"})", R"({"devices": {}})",
                            R"({"devices": [[]]})", R"({"devices": [null, "x", 5, {}]})"}) {
    inventory.facts = Json::parse(facts);
    EXPECT_TRUE(inventory.devices().empty()) << facts;
  }
  inventory.facts = node();
  EXPECT_EQ(inventory.devices().size(), 2u);
}

}  // namespace
}  // namespace muster
