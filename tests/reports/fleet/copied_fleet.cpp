// SPDX-License-Identifier: Apache-2.0
// See copied_fleet.h.
#include "tests/reports/fleet/copied_fleet.h"

#include <fmt/format.h>

#include "reports/fleet/read/record_stream.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster::testing {

std::string CopiedFleet::nodeName(size_t i) {
  return fmt::format("sim-node-{:04}", i);
}

Result<CopiedFleet> CopiedFleet::from(const std::vector<std::string>& records) {
  CopiedFleet fleet;
  for (const std::string& path : records) {
    Base base;
    MUSTER_TRY(base.text, readFile(path));
    fleet::FleetNames names;
    auto summary = fleet::RecordReader(names).parse(base.text);
    if (!summary.ok()) return std::move(summary).error().context(path);
    const std::string& name = summary->node;
    if (name.size() != nodeName(0).size())
      return Error{ErrorCode::kUsage, "is not of a simulated node", path};
    base.started = summary->started;
    base.find(Own::kName, 0, name);
    base.find(Own::kRun, 0, summary->runId);
    for (size_t d = 0; d < summary->devices.size(); ++d) {
      base.find(Own::kPart, d, summary->devices[d].serial);
      base.find(Own::kPart, d, summary->devices[d].uuid);
    }
    fleet.bases_.push_back(std::move(base));
  }
  if (fleet.bases_.empty()) return Error{ErrorCode::kUsage, "expected at least one record to copy", ""};
  return fleet;
}

void CopiedFleet::make(size_t i, std::string& out) const {
  const Base& base = bases_[i % bases_.size()];
  out = base.text;
  const std::string name = nodeName(i), run = runIdOf(name, base.started);
  for (const Place& place : base.places) {
    const std::string value = place.own == Own::kName  ? name
                              : place.own == Own::kRun ? run
                                                       : fmt::format("{:08}", 100 * i + place.device);
    // Of a serial or UUID only the end is another.
    const size_t size = std::min(value.size(), place.size);
    out.replace(place.at + place.size - size, size, value, value.size() - size, size);
  }
}

void CopiedFleet::Base::find(Own own, size_t device, const std::string& value) {
  if (value.empty()) return;
  for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at + 1))
    places.push_back({own, device, at, value.size()});
}

Status CopiedFleet::write(const std::filesystem::path& folder, size_t count) const {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    make(i, text);
    std::filesystem::create_directories(folder / nodeName(i));
    MUSTER_CHECK_OK(writeFileAtomically(folder / nodeName(i) / "record.json", text, Durable::kNo));
  }
  return {};
}

}  // namespace muster::testing
