// SPDX-License-Identifier: Apache-2.0
// Describes a selection, and reads and writes it.
#include "runner/record/selection.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMostText = 200;

std::string listed(const std::vector<std::string>& names, const char* separator) {
  return printable(join(names, separator), kMostText);
}

}  // namespace

std::string Selection::text() const {
  if (!partial()) return "";
  const std::string what = stages.empty()       ? "stages of scope device"
                           : stages.size() == 1 ? "stage " + listed(stages, ", ")
                                                : "stages " + listed(stages, ", ");
  const std::string where = devices.empty() ? "" : " on " + listed(devices, ", ");
  const char* by = stages.empty() ? "--device" : devices.empty() ? "--only" : "--only, --device";
  return fmt::format("partial run: only {}{} ({})", what, where, by);
}

std::string Selection::whyLeftOut(const std::string& stage, Scope scope) const {
  if (!stages.empty() && !contains(stages, stage)) return "left out by --only " + listed(stages, ",");
  if (!devices.empty() && scope != Scope::kDevice)
    return fmt::format("left out by --device {}: a stage of scope {} needs all devices", listed(devices, ","),
                       nameOf(scope));
  return "";
}

Json toJson(const Selection& selection) {
  return {{"stages", selection.stages}, {"devices", selection.devices}};
}

Result<Selection> selectionFromJson(const Json& json, const std::string& path) {
  Selection selection;
  JsonReader reader(json, path);
  reader.read("stages", selection.stages);
  reader.read("devices", selection.devices);
  MUSTER_CHECK_OK(reader.status());
  if (!selection.partial()) return Error{ErrorCode::kProtocol, "names neither stages nor devices", path};
  return selection;
}

}  // namespace muster
