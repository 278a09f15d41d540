// SPDX-License-Identifier: Apache-2.0
// Host memory on a chosen NUMA node.
#include "kernels/cuda/numa.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/system/files.h"

namespace muster::cuda {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node/";
constexpr int kOwnDistance = 10;  // as ACPI counts
constexpr int kBind = 2;          // MPOL_BIND of <numaif.h>, which belongs to a library we do not need
constexpr int kMaxNode = 1024;
constexpr size_t kHugePage = 2u << 20;
constexpr size_t kNumaMapsLimit = 16u << 20;  // bytes

std::vector<int> numbers(const std::string& text) {
  std::vector<int> values;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) values.push_back(static_cast<int>(leadingInteger(word, 0)));
  return values;
}

std::string nodeFolder(int node) {
  return kNodes + ("node" + std::to_string(node));
}

/// Distances from `own`, in the order of the nodes that are online.
std::map<int, int> distancesFrom(const Root& root, int own) {
  std::map<int, int> distances;
  const std::vector<int> online = parseCpuList(root.factOr(std::string(kNodes) + "online"));
  const std::vector<int> row = numbers(root.factOr(nodeFolder(own) + "/distance"));
  for (size_t i = 0; i < std::min(online.size(), row.size()); ++i) distances[online[i]] = row[i];
  return distances;
}

/// Lets the kernel place pages on `node` alone. Containers often forbid it; then first touch from there has
/// to do.
bool bindPages(void* data, uint64_t bytes, int node) {
  unsigned long mask[kMaxNode / (8 * sizeof(unsigned long))] = {};
  if (node < 0 || node >= kMaxNode) return false;
  constexpr int kWord = 8 * sizeof(unsigned long);
  mask[node / kWord] = 1ul << (node % kWord);
  return syscall(SYS_mbind, data, bytes, kBind, mask, kMaxNode, 0) == 0;
}

/// Writes all pages from a processor of `node`, on a thread of its own so that the caller's affinity stays.
void touchFrom(int node, void* data, uint64_t bytes) {
  const std::vector<int> cpus = parseCpuList(Root().factOr(nodeFolder(node) + "/cpulist"));
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus)
      if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    if (!cpus.empty()) (void)sched_setaffinity(0, sizeof set, &set);  // where it went is checked afterwards
    std::memset(data, 0xff, bytes);
  }).join();
}

std::string describe(const std::map<int, uint64_t>& pages) {
  std::vector<std::string> parts;
  for (const auto& [node, count] : pages)
    parts.push_back(std::to_string(count) + " pages on node " + std::to_string(node));
  return parts.empty() ? "no page was found" : join(parts, ", ");
}

/// A kernel without NUMA has no such file, and but one node.
Status checkPlace(void* data, int node) {
  const auto maps = Root().text("/proc/self/numa_maps", kNumaMapsLimit);
  if (!maps.ok() && node == 0) return {};
  if (!maps.ok()) return Error(maps.error()).context("checking where pinned memory lies");
  const std::map<int, uint64_t> pages = pagesByNode(*maps, reinterpret_cast<uintptr_t>(data));
  if (pages.size() == 1 && pages.begin()->first == node) return {};
  return Error{ErrorCode::kIo,
               "expected pinned memory on NUMA node " + std::to_string(node) + ", found " + describe(pages) +
                   "; free memory there, or give the process its processors and memory (cpuset, numactl, "
                   "CAP_SYS_NICE)",
               ""};
}

}  // namespace

Result<std::vector<HostNode>> hostNodes(const Root& root, int ownNode) {
  std::vector<int> nodes = parseCpuList(root.factOr(std::string(kNodes) + "has_memory"));
  const std::string status = root.text("/proc/self/status").ok() ? *root.text("/proc/self/status") : "";
  const std::vector<int> allowed = parseCpuList(fieldOf(status, "Mems_allowed_list:"));
  if (!allowed.empty())
    std::erase_if(nodes, [&](int node) { return std::count(allowed.begin(), allowed.end(), node) == 0; });
  if (nodes.empty()) nodes = {0};
  const int own = nodes.size() == 1 ? nodes.front() : ownNode;
  std::map<int, int> distances;
  if (own >= 0) distances = distancesFrom(root, own);
  std::vector<HostNode> found;
  for (int node : nodes) {
    const int fallback = own < 0 ? 0 : node == own ? kOwnDistance : 2 * kOwnDistance;
    found.push_back({node, distances.count(node) > 0 ? distances[node] : fallback});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const HostNode& a, const HostNode& b) { return a.distance < b.distance; });
  return found;
}

std::map<int, uint64_t> pagesByNode(std::string_view numaMaps, uintptr_t address) {
  char start[2 * sizeof address + 1] = {};
  const auto written = std::to_chars(start, start + sizeof start - 1, address, 16);
  const std::string key(start, written.ptr);
  std::map<int, uint64_t> pages;
  for (const std::string& line : split(std::string(numaMaps), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.empty() || words.front() != key) continue;
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (word.size() < 4 || word[0] != 'N' || equals == std::string::npos || word[1] < '0' || word[1] > '9')
        continue;
      const auto node = static_cast<int>(leadingInteger(std::string_view(word).substr(1), -1));
      const auto count = leadingInteger(std::string_view(word).substr(equals + 1), 0);
      if (count > 0) pages[node] += static_cast<uint64_t>(count);
    }
  }
  return pages;
}

Result<NumaPages> NumaPages::map(uint64_t bytes, int node) {
  const uint64_t usable = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  // Forbidden pages on both sides: the kernel merges neighbours, and a merged line of numa_maps tells nothing
  // of ours.
  const uint64_t mapped = usable + 2 * kHugePage;
  void* base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto start = (reinterpret_cast<uintptr_t>(base) / kHugePage + 1) * kHugePage;
  auto* data = reinterpret_cast<void*>(start);
  if (base == MAP_FAILED || mprotect(data, usable, PROT_READ | PROT_WRITE) != 0) {
    const std::string reason = errnoText(errno);
    if (base != MAP_FAILED) munmap(base, mapped);
    return Error{ErrorCode::kIo,
                 "the host has no " + formatQuantity(static_cast<double>(bytes), "B") + " to pin (" + reason +
                     "); make the copies smaller or free memory",
                 ""};
  }
  NumaPages pages(base, mapped, data, usable);
  (void)madvise(data, usable, MADV_HUGEPAGE);  // a wish: pinning and translations get cheaper
  (void)bindPages(data, usable, node);
  touchFrom(node, data, usable);
  MUSTER_CHECK_OK(checkPlace(data, node));
  return pages;
}

NumaPages::NumaPages(NumaPages&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      bytes_(other.bytes_) {}

NumaPages::~NumaPages() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

}  // namespace muster::cuda
