// SPDX-License-Identifier: Apache-2.0
// Test `health`: whether the node is fit to be measured.
#include <algorithm>

#include "plugins/env/params.h"
#include "plugins/env/pause.h"
#include "plugins/env/tests.h"
#include "plugins/sdk/test_case.h"
#include "runner/core/clock.h"

namespace muster::env {

namespace {

constexpr const char* kKernelLog = "kernel log";

class HealthTest : public sdk::Session {
 public:
  HealthTest(const sdk::Host& host, Machine machine)
      : machine_(std::move(machine)), reporter_(host, machine_, "health") {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const HealthParams params, sdk::readParams<HealthParams>(*input.params));
    machine_.inventory->setLogWindow(params.kernelLogWindow);
    const double start = machine_.virtualTime() ? machine_.virtualStart : systemClock().now();
    // Counters are read twice: what grows in between shows whether the node is idle.
    MUSTER_CHECK_OK(machine_.inventory->health(start, "idle"));
    const double watched = machine_.virtualTime() ? start : systemClock().now();
    std::string folder = params.folder.empty() ? machine_.runFolder : params.folder;
    if (folder.empty()) folder = ".";
    MUSTER_TRY(Readings readings, machine_.inventory->surroundings(folder));
    // Simulated time passes by itself.
    if (!machine_.virtualTime() && !pauseUntil(reporter_.host(), watched + params.idleWindow))
      return Error{ErrorCode::kTimeout, "cancelled while measuring idle CPU time", ""};
    MUSTER_TRY(const Readings state, machine_.inventory->health(watched + params.idleWindow, "idle"));
    readings.values.insert(readings.values.end(), state.values.begin(), state.values.end());
    readings.unreadable.insert(readings.unreadable.end(), state.unreadable.begin(), state.unreadable.end());
    MUSTER_CHECK_OK(applyKernelLogChoice(params.kernelLog, readings));
    MUSTER_CHECK_OK(reporter_.report(readings.values));
    return unreadableAsError(readings.unreadable);
  }

 private:
  /// Says what became of the kernel log, and takes it out of the unreadable sources where the plan allows
  /// that.
  Status applyKernelLogChoice(const std::string& choice, Readings& readings) const {
    if (machine_.virtualTime()) return {};
    const auto isLog = [](const UnreadableSource& source) { return source.name == kKernelLog; };
    const auto log = std::find_if(readings.unreadable.begin(), readings.unreadable.end(), isLog);
    std::string said = log == readings.unreadable.end() ? "read" : "not readable: " + log->reason;
    if (choice == "off") {
      said = "not read: the plan sets kernel_log = \"off\"";
      std::erase_if(readings.values, [](const Reading& reading) {
        return reading.name == "hardware_errors" || reading.name == "hca_log_errors" ||
               reading.name == "hca_link_flaps";
      });
    }
    if (choice != "required") std::erase_if(readings.unreadable, isLog);
    return reporter_.fact("kernel_log", said);
  }

  /// What could be read has been reported; the rest makes the case an error, never "none seen".
  static Status unreadableAsError(const std::vector<UnreadableSource>& unreadable) {
    if (unreadable.empty()) return {};
    return Error{ErrorCode::kIo, "cannot be read: " + unreadableText(unreadable), ""};
  }

  Machine machine_;
  Reporter reporter_;
};

}  // namespace

std::unique_ptr<sdk::Session> makeHealthTest(const sdk::Host& host, Machine machine) {
  return std::make_unique<HealthTest>(host, std::move(machine));
}

}  // namespace muster::env
