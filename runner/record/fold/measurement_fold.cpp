// SPDX-License-Identifier: Apache-2.0
// Writes and reads measurements as columnar rows.
#include "runner/record/fold/measurement_fold.h"

#include "runner/record/fold/columnar_rows.h"
#include "runner/record/fold/device_label.h"
#include "runner/record/fold/sample_pack.h"

namespace muster {
namespace {

constexpr const char* kSamples = "samples";
constexpr const char* kExponent = "exponent";

std::string measurementKey(const Measurement& m) {
  std::string key;
  for (const std::string* part : {&m.metric, &m.unit, &m.caseId, &m.peak}) key += *part + '\x1d';
  key += directionName(m.direction);
  key += m.informational ? "i" : "";
  if (m.series != Series::kNone) key += std::string(seriesName(m.series)) + std::to_string(m.window);
  return key + sharedLabelsText(m.labels, m.device);
}

/// The lists of samples of each group, in the order of toColumnarRows.
std::vector<std::vector<const std::vector<double>*>> samplesByGroup(
    const std::vector<Measurement>& measurements) {
  std::map<std::string, size_t> places;
  std::vector<std::vector<const std::vector<double>*>> groups;
  for (const Measurement& m : measurements) {
    const size_t place = places.emplace(measurementKey(m), groups.size()).first->second;
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(&m.samples);
  }
  return groups;
}

/// Puts the samples of one group in, last: a reader of the file sees what they are of before they come.
void addSamples(Json& group, const std::vector<const std::vector<double>*>& lists) {
  const bool any = std::any_of(lists.begin(), lists.end(), [](const auto* list) { return !list->empty(); });
  if (!any) return;
  const int exponent = commonExponent(lists);
  if (exponent != 0) {
    const Json rows = group.value("rows", Json());
    group.erase("rows");
    group[kExponent] = exponent;
    if (!rows.is_null()) group["rows"] = rows;
  }
  if (!group.contains("rows")) {
    group[kSamples] = packedSamples(*lists.front(), exponent);
    return;
  }
  Json& column = group["rows"][kSamples] = Json::array();
  for (const auto* list : lists) column.push_back(packedSamples(*list, exponent));
}

Result<Measurement> unfolded(Json object, const std::string& path) {
  MUSTER_CHECK_OK(unfoldDeviceLabel(object, path));
  Json samples = Json::array();
  if (const auto at = object.find(kSamples); at != object.end()) {
    samples = std::move(*at);
    object.erase(kSamples);
  }
  int exponent = 0;
  JsonReader reader(object, path);
  reader.optional(kExponent, exponent);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_TRY(Measurement m, measurementFromJson(object, path));
  MUSTER_TRY(m.samples, unpackedSamples(samples, exponent, path + "." + kSamples));
  return m;
}

uint64_t packedCount(const Json& cell) {
  const auto n = cell.is_object() ? cell.find("n") : cell.end();
  return n != cell.end() && n->is_number_integer() && *n > 0 ? n->get<uint64_t>() : 0;
}

}  // namespace

Json foldedMeasurements(const std::vector<Measurement>& measurements) {
  std::vector<KeyedObject> objects;
  for (const Measurement& m : measurements) {
    Measurement bare = m;
    bare.samples.clear();
    KeyedObject keyed{measurementKey(m), toJson(bare)};
    foldDeviceLabel(keyed.object);
    objects.push_back(std::move(keyed));
  }
  Json list = toColumnarRows(objects);
  const auto samples = samplesByGroup(measurements);
  for (size_t i = 0; i < samples.size(); ++i) addSamples(list[i], samples[i]);
  return list;
}

Result<std::vector<Measurement>> unfoldedMeasurements(const Json& list, const std::string& path) {
  std::vector<Measurement> measurements;
  MUSTER_CHECK_OK(eachRow(list, path, [&](const Json& object, const std::string& at) -> Status {
    MUSTER_TRY(Measurement m, unfolded(object, at));
    measurements.push_back(std::move(m));
    return {};
  }));
  measurements.shrink_to_fit();
  return measurements;
}

void groupMeasurements(std::vector<Measurement>& measurements) {
  groupRows(measurements, measurementKey);
}

uint64_t packedSampleCount(const Json& list) {
  uint64_t count = 0;
  if (!list.is_array()) return count;
  for (const Json& group : list) {
    if (!group.is_object()) continue;
    if (group.contains(kSamples)) count += packedCount(group[kSamples]) * rowsOf(group);
    const auto rows = group.find("rows");
    if (rows == group.end() || !rows->is_object() || !rows->contains(kSamples)) continue;
    for (const Json& cell : (*rows)[kSamples]) count += packedCount(cell);
  }
  return count;
}

}  // namespace muster
