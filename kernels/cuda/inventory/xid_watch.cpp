// SPDX-License-Identifier: Apache-2.0
// Counts XIDs of each GPU.
#include "kernels/cuda/inventory/xid_watch.h"

#include <algorithm>
#include <charconv>

#include "kernels/checks/xid.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Log and events may both hold an XID; what the log held before the events began is counted by it alone.
XidCount together(const XidCount& before, const XidCount& events, const XidCount& now) {
  XidCount sum;
  sum.fatal = std::max(before.fatal + events.fatal, now.fatal);
  sum.application = std::max(before.application + events.application, now.application);
  const auto last = [](int a, int b, int c) { return a != 0 ? a : b != 0 ? b : c; };
  sum.lastFatal = last(events.lastFatal, now.lastFatal, before.lastFatal);
  sum.lastApplication = last(events.lastApplication, now.lastApplication, before.lastApplication);
  return sum;
}

XidCount of(const std::map<std::string, XidCount>& counts, const std::string& address) {
  const auto found = counts.find(address);
  return found == counts.end() ? XidCount{} : found->second;
}

}  // namespace

void XidCount::add(int xid) {
  const bool application_ = isApplicationXid(xid);
  ++(application_ ? application : fatal);
  (application_ ? lastApplication : lastFatal) = xid;
}

std::map<std::string, XidCount> xidsInLog(std::string_view log) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  constexpr size_t kAddressLength = 10;  // 0000:4e:00
  std::map<std::string, XidCount> counts;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const size_t mark = line.find(kMark);
    if (mark == std::string_view::npos) continue;
    line.remove_prefix(mark + kMark.size());
    if (line.starts_with("PCI:")) line.remove_prefix(4);
    const size_t number = line.find("): ");
    if (number == std::string_view::npos || line.size() < kAddressLength) continue;
    int xid = 0;
    const char* begin = line.data() + number + 3;
    if (std::from_chars(begin, line.data() + line.size(), xid).ec != std::errc{}) continue;
    counts[std::string(line.substr(0, kAddressLength))].add(xid);
  }
  return counts;
}

XidWatch::XidWatch(std::shared_ptr<const Nvml> nvml, const std::vector<Gpu>& gpus,
                   std::function<Result<std::string>()> kernelLog)
    : nvml_(std::move(nvml)), kernelLog_(std::move(kernelLog)) {
  const Nvml& api = *nvml_;
  const auto set = ask<nvmlEventSet_t>(api->nvmlEventSetCreate);
  if (!set.ok()) setProblem_ = api.words(set.code);
  set_ = set.value;
  for (const Gpu& gpu : gpus) {
    if (!gpu.lost.empty() || set_ == nullptr) continue;
    const auto types = ask<unsigned long long>(api->nvmlDeviceGetSupportedEventTypes, gpu.handle);
    nvmlReturn_t code = types.code;
    if (types.ok())
      code = (types.value & nvmlEventTypeXidCriticalError) == 0
                 ? NVML_ERROR_NOT_SUPPORTED
                 : api->nvmlDeviceRegisterEvents(gpu.handle, nvmlEventTypeXidCriticalError, set_);
    if (code != NVML_SUCCESS) problems_[gpu.handle] = api.words(code);
  }
}

XidWatch::~XidWatch() {
  if (set_ != nullptr) (void)(*nvml_)->nvmlEventSetFree(set_);
}

void XidWatch::look() {
  const auto log = kernelLog_();
  logProblem_ = log.ok() ? "" : log.error().text();
  logged_ = log.ok() ? xidsInLog(*log) : std::map<std::string, XidCount>{};
  if (!looked_) before_ = logged_;
  looked_ = true;
  takeEvents();
}

void XidWatch::takeEvents() {
  constexpr int kMost = 10000;  // a GPU that floods us with events is not to hold us here
  for (int i = 0; set_ != nullptr && i < kMost; ++i) {
    nvmlEventData_t event{};
    if ((*nvml_)->nvmlEventSetWait_v2(set_, &event, 0) != NVML_SUCCESS) return;
    if (event.eventType == nvmlEventTypeXidCriticalError)
      events_[event.device].add(static_cast<int>(event.eventData));
  }
}

void XidWatch::count(GpuCollector& collector) const {
  const std::string& address = collector.gpu().pciAddress;
  const auto problem = problems_.find(collector.device());
  const bool noEvents = set_ == nullptr || problem != problems_.end();
  if (noEvents && !logProblem_.empty())
    return collector.unreadable(
        "XID errors", "events: " + (set_ == nullptr ? setProblem_ : problem->second) + "; " + logProblem_);
  const auto event = events_.find(collector.device());
  const std::string key = address.substr(0, address.rfind('.'));
  const XidCount sum =
      together(of(before_, key), event == events_.end() ? XidCount{} : event->second, of(logged_, key));
  collector.put(reading::kXidFatal, "count", sum.fatal, sum.fatal > 0 ? xidText(sum.lastFatal) : "");
  collector.put(reading::kXidApplication, "count", sum.application,
                sum.application > 0 ? xidText(sum.lastApplication) : "");
}

}  // namespace muster::cuda
