// SPDX-License-Identifier: Apache-2.0
// NUMA nodes, cores and caches of the machine, from hwloc.
#include "kernels/host/inventory/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace muster {

namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<hwloc_topology, Destroy>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

/// Only what is asked for: discovering I/O devices too takes tens of milliseconds.
Result<TopologyHandle> load(const std::string& synthetic) {
  // hwloc's plugins find I/O devices, with libraries of X11 and OpenCL; loading them costs milliseconds.
  setenv("HWLOC_PLUGINS_PATH", "", 1);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{ErrorCode::kIo, "hwloc could not start", ""};
  TopologyHandle topology(raw);
  // What /sys says is enough; asking each processor by CPUID costs milliseconds in a virtual machine.
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const auto type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE})
    hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (!synthetic.empty() && hwloc_topology_set_synthetic(raw, synthetic.c_str()) != 0)
    return Error{ErrorCode::kUsage, "hwloc does not understand the machine \"" + synthetic + "\"", ""};
  if (hwloc_topology_load(raw) != 0)
    return Error{ErrorCode::kIo, "hwloc could not read the machine's topology from /sys", ""};
  return topology;
}

int countInside(hwloc_topology_t topology, hwloc_const_bitmap_t cpus, hwloc_obj_type_t type) {
  int count = 0;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr)
    count += hwloc_bitmap_intersects(object->cpuset, cpus);
  return count;
}

uint64_t lastLevelCache(hwloc_topology_t topology, hwloc_const_bitmap_t cpus) {
  uint64_t bytes = 0;
  for (const auto type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    hwloc_obj_t cache = nullptr;
    while ((cache = hwloc_get_next_obj_by_type(topology, type, cache)) != nullptr)
      if (hwloc_bitmap_intersects(cache->cpuset, cpus) != 0) bytes += cache->attr->cache.size;
    if (bytes > 0) break;
  }
  return bytes;
}

std::vector<int> numbersOf(hwloc_const_bitmap_t bitmap) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) numbers.push_back(i);
  return numbers;
}

}  // namespace

Result<Topology> readTopology(const std::vector<int>& allowed, const std::string& synthetic) {
  MUSTER_TRY(const TopologyHandle topology, load(synthetic));
  const Bitmap allowedSet(hwloc_bitmap_alloc());
  for (const int cpu : allowed) hwloc_bitmap_set(allowedSet.get(), static_cast<unsigned>(cpu));

  Topology result;
  result.packages = std::max(0, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PACKAGE));
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    const Bitmap cpus(hwloc_bitmap_alloc());
    hwloc_bitmap_and(cpus.get(), object->cpuset, allowedSet.get());
    if (hwloc_bitmap_iszero(cpus.get()) != 0)
      continue;  // memory without processors of ours (CXL, other jobs' nodes)
    NumaNode node;
    node.index = static_cast<int>(object->os_index);
    node.cpus = numbersOf(cpus.get());
    node.cores = std::max(1, countInside(topology.get(), cpus.get(), HWLOC_OBJ_CORE));
    node.memoryBytes = object->attr->numanode.local_memory;
    node.cacheBytes = lastLevelCache(topology.get(), cpus.get());
    result.nodes.push_back(std::move(node));
  }
  if (result.nodes.empty())
    return Error{ErrorCode::kNotFound, "no NUMA node has a processor that this process may run on", ""};
  return result;
}

}  // namespace muster
