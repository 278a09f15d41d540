// SPDX-License-Identifier: Apache-2.0
// Test `telemetry`: the runner's helper that samples every device while stages run.
#include <algorithm>
#include <set>

#include "plugins/env/growth.h"
#include "plugins/env/params.h"
#include "plugins/env/pause.h"
#include "plugins/env/power_excess.h"
#include "plugins/env/recent_growth.h"
#include "plugins/env/tests.h"
#include "plugins/sdk/test_case.h"
#include "runner/core/clock.h"

namespace muster::env {

namespace {

class TelemetryTest : public sdk::Session {
 public:
  TelemetryTest(const sdk::Host& host, Machine machine)
      : machine_(std::move(machine)), reporter_(host, machine_, "telemetry") {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const TelemetryParams params, sdk::readParams<TelemetryParams>(*input.params));
    return machine_.virtualTime() ? overSpan(params) : live(params);
  }

 private:
  /// Real devices: samples until told to stop, and once more then, so that nothing after the last sample is
  /// lost.
  Status live(const TelemetryParams& params) {
    const double start = systemClock().now();
    const double end = start + params.duration;
    double next = start;
    while (true) {
      MUSTER_CHECK_OK(sample(systemClock().now(), params.load));
      if (params.duration > 0 && next >= end) return {};
      // A sample that was late does not make the next ones come in a bunch.
      next = std::max(next + params.interval, systemClock().now());
      if (params.duration > 0) next = std::min(next, end);
      if (!pauseUntil(reporter_.host(), next)) return sample(systemClock().now(), params.load);
    }
  }

  /// A simulation: samples the virtual span, both ends included, at once.
  Status overSpan(const TelemetryParams& params) {
    // A scenario's counters begin with it, so what strikes at its very first moment counts too.
    if (params.start <= 0) growth_.startAtZero();
    reporter_.keepSeries();
    const double span = std::max(0.0, params.end - params.start);
    const double interval = std::max(params.interval, span / (params.maxSamples - 1));
    const auto steps = static_cast<int64_t>(span / interval + 1e-9);
    for (int64_t step = 0; step <= steps && !reporter_.host().cancelled(); ++step)
      MUSTER_CHECK_OK(sample(params.start + static_cast<double>(step) * interval, params.load));
    // Counters need two samples to have grown by something, also over a span in which no time passed.
    const bool reached = steps > 0 && params.start + static_cast<double>(steps) * interval >= params.end;
    if (!reached) MUSTER_CHECK_OK(sample(params.end, params.load));
    return reporter_.flush();
  }

  Status sample(double time, const std::string& load) {
    MUSTER_TRY(Readings readings, machine_.inventory->health(time, load));
    std::vector<Reading> sampled;
    for (Reading& reading : readings.values) {
      boundProcessNames(reading);
      if (auto grown = growth_.since(std::move(reading))) sampled.push_back(*std::move(grown));
    }
    MUSTER_CHECK_OK(reporter_.report(sampled, time));
    MUSTER_CHECK_OK(reporter_.report(powerExcess(sampled), time));
    MUSTER_CHECK_OK(reporter_.report(recentGrowth_.rates(sampled, time), time));
    return reportUnreadable(readings.unreadable, time);
  }

  Status reportUnreadable(const std::vector<UnreadableSource>& unreadable, double time) {
    Labels labels;
    if (!unreadable.empty()) labels["sources"] = unreadableText(unreadable);
    return reporter_.report(
        {"unreadable_sources", "count", "", static_cast<double>(unreadable.size()), "", labels}, time);
  }

  /// Every process makes a series of its own. A name matters where the share does, and a few names are
  /// enough.
  void boundProcessNames(Reading& reading) {
    constexpr double kWorthNaming = 0.05;
    constexpr size_t kMostNames = 8;
    const auto label = reading.labels.find("process");
    if (label == reading.labels.end()) return;
    if (reading.value < kWorthNaming) {
      reading.labels.erase(label);
      reading.text.clear();
      return;
    }
    if (processNames_.size() >= kMostNames && processNames_.count(label->second) == 0)
      label->second = "others";
    if (!processNames_.insert(label->second).second) reading.text.clear();  // its words were reported before
  }

  Machine machine_;
  Reporter reporter_;
  Growth growth_;
  RecentGrowth recentGrowth_;
  std::set<std::string> processNames_;
};

}  // namespace

std::unique_ptr<sdk::Session> makeTelemetryTest(const sdk::Host& host, Machine machine) {
  return std::make_unique<TelemetryTest>(host, std::move(machine));
}

}  // namespace muster::env
