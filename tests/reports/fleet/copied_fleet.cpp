// SPDX-License-Identifier: Apache-2.0
// See copied_fleet.h.
#include "tests/reports/fleet/copied_fleet.h"

#include <fmt/format.h>

#include "reports/fleet/record_stream.h"
#include "runner/core/files.h"

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
    for (size_t at = base.text.find(name); at != std::string::npos; at = base.text.find(name, at + 1))
      base.places.push_back(at);
    fleet.bases_.push_back(std::move(base));
  }
  if (fleet.bases_.empty()) return Error{ErrorCode::kUsage, "wanted at least one record to copy", ""};
  return fleet;
}

void CopiedFleet::make(size_t i, std::string& out) const {
  const Base& base = bases_[i % bases_.size()];
  out = base.text;
  const std::string name = nodeName(i);
  for (const size_t at : base.places) out.replace(at, name.size(), name);
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
