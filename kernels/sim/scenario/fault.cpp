// SPDX-License-Identifier: Apache-2.0
// What planted faults do.
#include "kernels/sim/scenario/fault.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace muster::sim {

const std::vector<std::string>& workNames() {
  static const std::vector<std::string> names = {
      "gemm", "memory", "pattern", "health", "inventory", "training", "collective", "host_copy", "peer_copy"};
  return names;
}

bool Fault::concerns(Work work) const {
  return ops.empty() || std::find(ops.begin(), ops.end(), work) != ops.end();
}

FaultList::FaultList(const std::vector<Fault>& all, int device, int nodeRank) {
  std::copy_if(all.begin(), all.end(), std::back_inserter(faults_), [&](const Fault& fault) {
    return !fault.isOfNetwork() && fault.device == device && (fault.node < 0 || fault.node == nodeRank);
  });
}

bool FaultList::missing() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const Fault& f) { return f.kind == FaultKind::kMissing && f.from <= 0; });
}

bool FaultList::lost(double at) const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](const Fault& f) { return f.kind == FaultKind::kMissing && at >= f.from; });
}

double FaultList::speed(Work work, double at) const {
  double speed = 1;
  for (const Fault& f : faults_) {
    bool slows = f.kind == FaultKind::kSlow || f.kind == FaultKind::kThrottle;
    if (slows && f.concerns(work) && f.isOn(at)) speed *= f.factor;
  }
  return speed;
}

Status FaultList::strike(Work work, double at) const {
  for (const Fault& f : faults_) {
    if (!f.concerns(work) || at < f.from) continue;
    if (f.kind == FaultKind::kCrash) raise(SIGABRT);
    // A truly stuck device: no cancel flag is looked at, only a signal that kills ends it.
    while (f.kind == FaultKind::kHang) pause();
  }
  if (lost(at)) return Error{ErrorCode::kIo, "the simulated device fell off the bus", ""};
  return {};
}

const Fault* FaultList::corruption(Work work, uint64_t run, double at) const {
  for (const Fault& f : faults_) {
    if (f.kind == FaultKind::kCorruption && f.concerns(work) && f.isOn(at) &&
        run % static_cast<uint64_t>(f.every) == 0)
      return &f;
  }
  return nullptr;
}

double FaultList::throttled(const std::string& reason, double at) const {
  double seconds = 0;
  for (const Fault& f : faults_) {
    if (f.kind == FaultKind::kThrottle && f.reason == reason)
      seconds += std::max(0.0, std::min(at, f.until) - f.from);
  }
  return seconds;
}

bool FaultList::throttlesNow(const std::string& reason, double at) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& f) {
    return f.kind == FaultKind::kThrottle && f.reason == reason && f.isOn(at);
  });
}

}  // namespace muster::sim
