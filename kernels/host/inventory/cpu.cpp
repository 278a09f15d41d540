// SPDX-License-Identifier: Apache-2.0
// The processors: which ones we may use, what they are, how busy and how fast they are.
#include "kernels/host/inventory/cpu.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster {

CpuModel readCpuModel(const Root& root) {
  // The first block is enough, but there is one a processor: hundreds of them need room.
  const auto text = root.text("/proc/cpuinfo", 8u << 20);
  if (!text.ok()) return {};
  const std::string_view first = std::string_view(*text).substr(0, text->find("\n\n"));
  CpuModel model;
  model.name = printable(fieldOf(first, "model name"), 200);
  model.vendor = printable(fieldOf(first, "vendor_id"), 100);
  model.microcode = printable(fieldOf(first, "microcode"), 100);
  model.family = static_cast<int>(leadingInteger(fieldOf(first, "cpu family"), 0));
  const std::string_view flags = fieldOf(first, "flags");
  model.flags = " " + std::string(flags.empty() ? fieldOf(first, "Features") : flags) + " ";
  if (model.name.empty()) model.name = "unknown CPU";
  return model;
}

std::vector<int> affinity() {
  // A machine may have more processors than a cpu_set_t holds; the kernel then refuses the small set.
  for (int capacity = 1024; capacity <= 1 << 18; capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(capacity));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    std::vector<int> cpus;
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; fits && cpu < capacity; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (fits) return cpus;
  }
  return {};
}

std::vector<int> onlineCpus(const Root& root) {
  const auto text = root.text("/sys/devices/system/cpu/online");
  std::vector<int> cpus = text.ok() ? parseCpuList(*text) : std::vector<int>{};
  return cpus.empty() ? affinity() : cpus;
}

Result<CpuTimes> readCpuTimes(const Root& root) {
  MUSTER_TRY(const std::string text, root.text("/proc/stat", 8u << 20));
  constexpr double kTick = 0.01;  // USER_HZ is 100 on every Linux ABI
  std::istringstream line{std::string(fieldOf(text, "cpu"))};
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  for (double& field : ticks)
    if (!(line >> field))
      return Error{ErrorCode::kProtocol, "its first line is not \"cpu\" and eight numbers", "/proc/stat"};
  return CpuTimes{(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * kTick,
                  (ticks[3] + ticks[4]) * kTick, ticks[7] * kTick, (ticks[5] + ticks[6]) * kTick};
}

std::optional<double> reportedClockHz(const Root& root, const std::vector<int>& cpus) {
  std::optional<double> fastest;
  for (size_t i = 0; i < std::min<size_t>(cpus.size(), 8); ++i) {
    const int64_t kilohertz = root.integerOr(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpus[i]) + "/cpufreq/scaling_cur_freq", 0);
    if (kilohertz > 0) fastest = std::max(fastest.value_or(0), static_cast<double>(kilohertz) * 1e3);
  }
  return fastest;
}

namespace {

/// Sixteen additions, each of which needs the one before. The asm keeps the compiler from folding them into
/// one.
inline uint64_t addSixteenTimes(uint64_t sum, uint64_t step) {
#if defined(__x86_64__)
#define MUSTER_ADD "add %1,%0\n"
#elif defined(__aarch64__)
#define MUSTER_ADD "add %0,%0,%1\n"
#else
#error "measureClockHz() needs a dependent addition for this processor"
#endif
#define MUSTER_ADD_4 MUSTER_ADD MUSTER_ADD MUSTER_ADD MUSTER_ADD
  asm volatile(MUSTER_ADD_4 MUSTER_ADD_4 MUSTER_ADD_4 MUSTER_ADD_4 : "+r"(sum) : "r"(step) : "cc");
#undef MUSTER_ADD_4
#undef MUSTER_ADD
  return sum;
}

}  // namespace

double measureClockHz() {
  constexpr uint64_t kRounds = 5'000;  // some 30 us, which no timer tick of the kernel need interrupt
  double shortest = 1e9;
  for (int attempt = 0; attempt < 8; ++attempt) {
    uint64_t sum = 1;
    const double start = systemClock().now();
    for (uint64_t round = 0; round < kRounds; ++round) sum = addSixteenTimes(sum, round);
    shortest = std::min(shortest, systemClock().now() - start);
  }
  return static_cast<double>(kRounds * 16) / shortest;
}

std::optional<double> thermalThrottleSeconds(const Root& root, const std::vector<int>& cpus) {
  std::optional<double> longest;
  for (size_t i = 0; i < cpus.size(); ++i) {
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(cpus[i]) +
                             "/thermal_throttle/package_throttle_total_time_ms";
    const int64_t milliseconds = root.integerOr(path, -1);
    if (milliseconds < 0) {
      if (i == 0) break;  // no such counters on this kind of machine: do not look for hundreds
      continue;
    }
    longest = std::max(longest.value_or(0), static_cast<double>(milliseconds) * 1e-3);
  }
  return longest;
}

}  // namespace muster
