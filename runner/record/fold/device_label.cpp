// SPDX-License-Identifier: Apache-2.0
// Omits and restores the label "device".
#include "runner/record/fold/device_label.h"

namespace muster {
namespace {

constexpr const char* kDevice = "device";
constexpr const char* kLabels = "labels";
constexpr const char* kFlag = "device_label";

}  // namespace

void foldDeviceLabel(Json& object) {
  const auto device = object.find(kDevice);
  if (device == object.end()) return;
  const auto labels = object.find(kLabels);
  if (labels == object.end() || !labels->contains(kDevice)) {
    object[kFlag] = false;
    return;
  }
  if (labels->at(kDevice) != *device) return;
  labels->erase(kDevice);
  if (labels->empty()) object.erase(kLabels);
}

Status unfoldDeviceLabel(Json& object, const std::string& path) {
  bool labelled = true;
  JsonReader reader(object, path);
  reader.optional(kFlag, labelled);
  MUSTER_CHECK_OK(reader.status());
  if (!labelled || !object.contains(kDevice)) return {};
  Json& labels = object[kLabels];
  if (labels.is_null()) labels = Json::object();
  if (!labels.is_object())
    return Error{ErrorCode::kProtocol, "found no object; expected labels", path + "." + kLabels};
  if (!labels.contains(kDevice)) labels[kDevice] = object[kDevice];
  return {};
}

std::string sharedLabelsText(const Labels& labels, const std::string& device) {
  std::string text;
  for (const auto& [key, value] : labels)
    if (key != kDevice || value != device) text += key + '\x1e' + value + '\x1f';
  return text;
}

}  // namespace muster
