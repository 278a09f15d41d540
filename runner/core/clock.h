// SPDX-License-Identifier: Apache-2.0
// Time as a seam: the steady clock for durations, the wall clock for time stamps, replaceable in tests.
#pragma once

#include <string>

namespace muster {

/// A source of time. `now()` is monotonic seconds from an arbitrary origin; `wallUnix()` is seconds since
/// 1970 UTC.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual double now() const = 0;
  [[nodiscard]] virtual double wallUnix() const = 0;
};

/// The machine's clocks (CLOCK_MONOTONIC, CLOCK_REALTIME).
const Clock& systemClock();

/// "2026-11-21T03:10:26Z" of seconds since 1970.
std::string formatUtc(double unixSeconds);

}  // namespace muster
