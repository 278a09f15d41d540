// SPDX-License-Identifier: Apache-2.0
// Reads the system clocks and formats time stamps.
#include "runner/core/clock.h"

#include <cmath>
#include <ctime>

namespace muster {
namespace {

double readClock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class SystemClock : public Clock {
 public:
  [[nodiscard]] double now() const override { return readClock(CLOCK_MONOTONIC); }
  [[nodiscard]] double wallUnix() const override { return readClock(CLOCK_REALTIME); }
};

}  // namespace

const Clock& systemClock() {
  static const SystemClock clock;
  return clock;
}

std::string formatUtc(double unixSeconds) {
  // Year 9999: beyond it the text would no longer be ISO 8601. A damaged record must not crash the reader.
  constexpr double kLatest = 253402300799.0;
  if (!(unixSeconds >= 0 && unixSeconds <= kLatest)) return "unknown time";
  const auto seconds = static_cast<time_t>(std::floor(unixSeconds));
  tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[32];
  const size_t size = strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {buffer, size};
}

}  // namespace muster
