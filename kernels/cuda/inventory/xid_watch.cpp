// SPDX-License-Identifier: Apache-2.0
// Counts XIDs of each GPU, and SXids.
#include "kernels/cuda/inventory/xid_watch.h"

#include <algorithm>

#include "kernels/checks/log_line.h"
#include "kernels/checks/xid.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Log and events may both hold an XID; what the log held before the events began is counted by it alone.
XidTally together(const XidTally& before, const XidTally& events, const XidTally& now) {
  XidTally sum{std::max(before.count + events.count, now.count), events.last};
  if (sum.last == 0) sum.last = now.last != 0 ? now.last : before.last;
  return sum;
}

XidCount of(const std::map<std::string, XidCount>& counts, const std::string& address) {
  const auto found = counts.find(address);
  return found == counts.end() ? XidCount{} : found->second;
}

/// The driver often reports the loss of a GPU twice: as XID 79, and in words.
class FallenOff {
 public:
  /// Whether this report of `address` is another one than all before.
  bool isNew(const std::string& address, LogKind kind) {
    auto& [xids, words] = seen_[address];
    const bool paired = kind == LogKind::kXid ? xids < words : words < xids;
    ++(kind == LogKind::kXid ? xids : words);
    // Several lines of words may follow each other; it is lost once.
    return !paired && (kind == LogKind::kXid || words == 1);
  }

 private:
  std::map<std::string, std::pair<int, int>> seen_;
};

void addSxid(const LogLine& found, std::string_view line, SxidCount& out) {
  const size_t words = line.find("SXid (");
  std::string text = printable(line.substr(words), 150);
  ++(found.fatal ? out.fatal : out.nonfatal);
  (found.fatal ? out.lastFatal : out.lastNonfatal) = std::move(text);
}

}  // namespace

void XidCount::add(int xid, bool fatalByText) {
  XidClass kind = xidClass(xid);
  if (kind == XidClass::kByText) kind = fatalByText ? XidClass::kFatal : XidClass::kInformation;
  if (kind == XidClass::kIgnored) return;
  XidTally& tally = kind == XidClass::kFatal         ? fatal
                    : kind == XidClass::kApplication ? application
                                                     : information;
  ++tally.count;
  tally.last = xid;
}

GpuLog readGpuLog(std::string_view log) {
  GpuLog found;
  FallenOff fallenOff;
  for (const std::string& line : split(log, '\n')) {
    const LogLine one = readLogLine(line);
    if (one.kind == LogKind::kSxid) addSxid(one, line, found.sxids);
    if (one.kind != LogKind::kXid && one.kind != LogKind::kFallenOffBus) continue;
    if (one.code == kXidFallenOffTheBus && !fallenOff.isNew(one.address, one.kind)) continue;
    found.xids[one.address].add(one.code, one.fatal);
  }
  return found;
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
  logged_ = log.ok() ? readGpuLog(*log) : GpuLog{};
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
      events_[event.device].push_back(static_cast<int>(event.eventData));
  }
}

void XidWatch::count(GpuCollector& collector) const {
  const std::string& address = collector.gpu().pciAddress;
  const auto problem = problems_.find(collector.device());
  const bool noEvents = set_ == nullptr || problem != problems_.end();
  if (noEvents && !logProblem_.empty())
    return collector.unreadable(
        "XID errors", "events: " + (set_ == nullptr ? setProblem_ : problem->second) + "; " + logProblem_);
  const std::string key = address.substr(0, address.rfind('.'));
  const XidCount before = of(before_.xids, key);
  const XidCount events = eventsOf(collector.device());
  const XidCount now = of(logged_.xids, key);
  for (const auto& [name, kind] : {std::pair{reading::kXidFatal, &XidCount::fatal},
                                   {reading::kXidApplication, &XidCount::application},
                                   {reading::kXidInformation, &XidCount::information}}) {
    const XidTally sum = together(before.*kind, events.*kind, now.*kind);
    collector.put(name, "count", sum.count, sum.count > 0 ? xidText(sum.last) : "");
  }
}

/// An event says no more than its number. Where that is not enough the log tells, if it can be read; else the
/// event counts as a fault.
XidCount XidWatch::eventsOf(nvmlDevice_t device) const {
  XidCount counted;
  const auto events = events_.find(device);
  if (events == events_.end()) return counted;
  for (const int xid : events->second)
    if (xidClass(xid) != XidClass::kByText || !logProblem_.empty()) counted.add(xid);
  return counted;
}

void XidWatch::countSwitches(Readings& out) const {
  if (!logProblem_.empty()) return;
  const SxidCount& sxids = logged_.sxids;
  out.values.push_back({reading::kSxidFatal, "count", "", double(sxids.fatal), sxids.lastFatal, {}});
  out.values.push_back({reading::kSxidNonfatal, "count", "", double(sxids.nonfatal), sxids.lastNonfatal, {}});
}

}  // namespace muster::cuda
