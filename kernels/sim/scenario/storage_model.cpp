// SPDX-License-Identifier: Apache-2.0
// Reads the storage of a scenario. The format is described in plans/README.md.
#include "kernels/sim/scenario/storage_model.h"

#include "kernels/sim/scenario/fault_reader.h"

namespace muster::sim {
namespace {

constexpr Range kStorageRate = {1, 1e13};
constexpr Range kOperationRate = {1, 1e9};
constexpr Range kFaultTime = {0, 1e9};
constexpr Range kStorageNoise = {0, 0.2};

/// Reads one [[storage.fault]]; each kind takes only its own keys.
StorageFault readStorageFault(TomlTable& table, int nodes) {
  StorageFault fault;
  table.require("kind");
  if (table.integer("node", {0, 1e6}, fault.node)) checkFaultNode(table, "node", fault.node, nodes);
  table.variants("kind", {"slow", "apart"}, [&](const std::string& kind) {
    fault.apart = kind == "apart";
    if (fault.apart) {
      table.require("node");
    } else {
      table.require("factor");
      table.quantity("factor", "ratio", {0.001, 1}, fault.factor);
      table.quantity("from", "s", kFaultTime, fault.from);
      table.quantity("until", "s", kFaultTime, fault.until);
    }
    table.finish();
  });
  if (fault.until <= fault.from) table.complain("until", "`until` must be later than `from`");
  return fault;
}

}  // namespace

void readStorage(TomlTable& root, StorageModel& out, int nodes) {
  if (!root.has("storage")) return;
  TomlTable table = root.table("storage");
  for (const char* key :
       {"read_bandwidth", "write_bandwidth", "read_operations", "write_operations", "file_rate"})
    table.require(key);
  table.quantity("read_bandwidth", "B/s", kStorageRate, out.readBandwidth);
  table.quantity("write_bandwidth", "B/s", kStorageRate, out.writeBandwidth);
  table.quantity("read_operations", "count/s", kOperationRate, out.readOperations);
  table.quantity("write_operations", "count/s", kOperationRate, out.writeOperations);
  table.quantity("file_rate", "count/s", kOperationRate, out.fileRate);
  table.quantity("noise", "ratio", kStorageNoise, out.noise);
  table.quantity("spread", "ratio", kStorageNoise, out.spread);
  for (TomlTable& fault : table.tables("fault")) out.faults.push_back(readStorageFault(fault, nodes));
  table.finish();
}

}  // namespace muster::sim
