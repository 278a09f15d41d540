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
#include "runner/core/text.h"

namespace muster::env {

namespace {

constexpr const char* kCounters = "counters";  // the fact, and the key of the next stage's context

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
    MUSTER_CHECK_OK(takeUp());
    const double start = systemClock().now();
    const double end = start + params.duration;
    double next = start;
    while (true) {
      MUSTER_CHECK_OK(sample(systemClock().now(), params.load));
      if (params.duration > 0 && next >= end) return {};
      // A sample that was late does not make the next ones come in a bunch.
      next = std::max(next + params.interval, systemClock().now());
      if (params.duration > 0) next = std::min(next, end);
      if (pauseUntil(reporter_.host(), next)) continue;
      MUSTER_CHECK_OK(sample(systemClock().now(), params.load));
      return handOver();
    }
  }

  /// Counters go on from where the stage before left them, so that what they grew by between two stages is
  /// not lost.
  Status takeUp() {
    if (machine_.counters.empty()) return {};
    MUSTER_TRY(const Json before, parseJson(machine_.counters).context("context.counters"));
    JsonReader r(before, "context.counters");
    double time = 0, log = -1;
    r.read("time", time);
    r.optional("log", log);
    r.optional("devices", devicesBefore_);
    if (r.ok() && !before.contains("counts")) r.fail("counts", "is missing");
    MUSTER_CHECK_OK(r.status());
    if (log >= 0) machine_.inventory->resumeLog(log);
    counts_ = before["counts"];
    recentGrowth_.startAt(time);
    return {};
  }

  Status handOver() const {
    const double log = machine_.inventory->logPosition();
    Json counters = {{"time", sampled_}, {"devices", devices_}, {"counts", growth_.counts(log >= 0)}};
    if (log >= 0) counters["log"] = log;
    return reporter_.fact(kCounters, dumpJson(counters));
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
    resumeGrowth(readings.values);
    sampled_ = time;
    std::vector<Reading> sampled;
    for (Reading& reading : readings.values) {
      boundProcessNames(reading);
      if (auto grown = growth_.since(std::move(reading))) sampled.push_back(*std::move(grown));
    }
    MUSTER_CHECK_OK(reporter_.report(totals_.add(sampled), time));
    MUSTER_CHECK_OK(reporter_.report(totals_.add(powerExcess(sampled)), time));
    MUSTER_CHECK_OK(reporter_.report(recentGrowth_.rates(sampled, time), time));
    return reportUnreadable(readings.unreadable, time);
  }

  /// Where a GPU is gone, the driver may give its number to another one, whose counters are no growth.
  void resumeGrowth(const std::vector<Reading>& values) {
    devices_.clear();
    for (const Reading& reading : values)
      if (!reading.device.empty() && !contains(devices_, reading.device)) devices_.push_back(reading.device);
    if (!counts_.empty() && devices_ == devicesBefore_) growth_.resume(counts_);
    counts_.clear();
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
  Totals totals_;
  RecentGrowth recentGrowth_;
  std::set<std::string> processNames_;
  std::vector<std::string> devices_;  ///< of the last sample
  std::vector<std::string> devicesBefore_;
  Json counts_ = Json::object();  ///< of the stage before, until the first sample
  double sampled_ = 0;
};

}  // namespace

std::unique_ptr<sdk::Session> makeTelemetryTest(const sdk::Host& host, Machine machine) {
  return std::make_unique<TelemetryTest>(host, std::move(machine));
}

}  // namespace muster::env
