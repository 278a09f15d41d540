// SPDX-License-Identifier: Apache-2.0
// Which processors the work of one device runs on: affinity, the device's own, one of each core.
#include "kernels/host/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "kernels/host/inventory/root.h"
#include "runner/system/files.h"

namespace muster::host {
namespace {

constexpr int kMaxCpus = 8192;

struct CpuSetDeleter {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, CpuSetDeleter>;
constexpr size_t kSetBytes = CPU_ALLOC_SIZE(kMaxCpus);

CpuSet emptySet() {
  CpuSet set(CPU_ALLOC(kMaxCpus));
  CPU_ZERO_S(kSetBytes, set.get());
  return set;
}

Result<std::vector<int>> affinity() {
  CpuSet set = emptySet();
  if (sched_getaffinity(0, kSetBytes, set.get()) != 0)
    return Error{ErrorCode::kIo, "cannot read this process's affinity: " + errnoText(errno), ""};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu)
    if (CPU_ISSET_S(cpu, kSetBytes, set.get())) cpus.push_back(cpu);
  return cpus;
}

/// The lowest processor of the core that `cpu` belongs to; itself where sysfs does not say.
int firstOfCore(int cpu) {
  const Root root;
  const auto text =
      root.text("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  if (!text.ok()) return cpu;
  const std::vector<int> siblings = parseCpuList(*text);
  return siblings.empty() ? cpu : siblings.front();
}

std::vector<int> oneOfEachCore(const std::vector<int>& cpus) {
  std::vector<int> chosen;
  std::set<int> cores;
  for (int cpu : cpus)
    if (cores.insert(firstOfCore(cpu)).second) chosen.push_back(cpu);
  return chosen;
}

size_t threadLimit() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const long limit = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return limit > 0 ? static_cast<size_t>(limit) : static_cast<size_t>(kMaxCpus);
}

}  // namespace

Result<std::vector<int>> workerCpus(const DeviceInfo& info) {
  MUSTER_TRY(std::vector<int> allowed, affinity());
  std::vector<int> usable;
  for (int cpu : allowed)
    if (info.cpus.empty() || std::find(info.cpus.begin(), info.cpus.end(), cpu) != info.cpus.end())
      usable.push_back(cpu);
  if (usable.empty())
    return Error{ErrorCode::kIo,
                 "this process may run on processors " + formatCpuList(allowed) + ", the device has " +
                     formatCpuList(info.cpus) +
                     "; widen the affinity (taskset, cpuset) or leave the device out",
                 info.id};
  std::vector<int> workers = oneOfEachCore(usable);
  if (workers.size() > threadLimit()) workers.resize(threadLimit());
  return workers;
}

Status bindThread(const std::vector<int>& cpus) {
  CpuSet set = emptySet();
  for (int cpu : cpus) CPU_SET_S(cpu, kSetBytes, set.get());
  if (sched_setaffinity(0, kSetBytes, set.get()) != 0)
    return Error{ErrorCode::kIo, "cannot bind to processors " + formatCpuList(cpus) + ": " + errnoText(errno),
                 ""};
  return {};
}

}  // namespace muster::host
