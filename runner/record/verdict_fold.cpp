// SPDX-License-Identifier: Apache-2.0
// Writes and reads verdicts as columnar rows.
#include "runner/record/verdict_fold.h"

#include <map>

#include "runner/core/units.h"
#include "runner/record/fold/columnar_rows.h"
#include "runner/record/fold/device_label.h"

namespace muster {
namespace {

/// The JSON of expectations. Verdicts that follow each other mostly share theirs.
class ExpectationJson {
 public:
  struct Written {
    Expectation expectation;
    Json json;
    std::string text;
  };
  const Written& of(const Expectation& expectation) {
    if (!last_ || !(last_->expectation == expectation)) {
      last_.emplace(Written{expectation, toJson(expectation), ""});
      last_->text = dumpJson(last_->json);
    }
    return *last_;
  }

 private:
  std::optional<Written> last_;
};

std::string verdictKey(const Verdict& v, ExpectationJson& expectations) {
  std::string key = v.stage + '\x1d' + v.caseId + '\x1d' + v.metric + '\x1d';
  if (v.expectation) key += expectations.of(*v.expectation).text;
  return key + '\x1d' + sharedLabelsText(v.labels, v.device);
}

/// The unit of each metric that the stage measured.
using Units = std::map<std::string, std::string>;

Units unitsOf(const StageRecord& stage) {
  Units units;
  for (const Measurement& m : stage.measurements) units.emplace(m.metric, m.unit);
  return units;
}

/// What the texts of a pass are when nothing was to be said but its figures.
struct Texts {
  std::string observed;
  std::string detail;
};

Texts plainTexts(Verdict verdict, const Units& units) {
  const auto unit = units.find(verdict.metric);
  if (unit == units.end() || !verdict.expectation || std::isnan(verdict.observed)) return {};
  const bool spread = verdict.expectation->comparesStability();
  verdict.observedText = formatQuantity(verdict.observed, spread ? "ratio" : unit->second);
  return {verdict.observedText, comparisonText(verdict)};
}

/// Expectations by their text -> their place in the stage's evidence.
using Places = std::map<std::string, size_t>;

Json folded(const Verdict& verdict, const StageRecord& stage, const Units& units, const Places& places,
            ExpectationJson& expectations) {
  Json expectation;
  if (verdict.expectation) {
    const ExpectationJson::Written& written = expectations.of(*verdict.expectation);
    const auto place = places.find(written.text);
    expectation = place == places.end() ? written.json : Json(place->second);
  }
  Json json = toJson(verdict, std::move(expectation));
  if (verdict.stage == stage.name) json.erase("stage");
  if (verdict.expectation) {
    json["remedy"] = verdict.remedy;
    if (verdict.remedy == verdict.expectation->remedy) json.erase("remedy");
  }
  if (verdict.outcome == Outcome::kPass) {
    const Texts plain = plainTexts(verdict, units);
    json["observed_text"] = verdict.observedText;
    json["detail"] = verdict.detail;
    if (verdict.observedText == plain.observed) json.erase("observed_text");
    if (verdict.detail == plain.detail) json.erase("detail");
  }
  foldDeviceLabel(json);
  return json;
}

Status unfoldExpectation(Json& json, const Json& expectations, const std::string& path) {
  const auto index = json.find("expectation");
  if (index == json.end() || !index->is_number()) return {};
  if (!index->is_number_unsigned() || !expectations.is_array() ||
      index->get<uint64_t>() >= expectations.size())
    return Error{ErrorCode::kProtocol,
                 "expectation " + dumpJson(*index) + " is none of the stage's evidence.expectations",
                 path + ".expectation"};
  *index = Json(expectations[index->get<size_t>()]);
  return {};
}

Result<Verdict> unfolded(Json json, const std::string& stage, const Json& expectations, const Units& units,
                         const std::string& path) {
  if (!json.is_object()) return Error{ErrorCode::kProtocol, "found no object, expected a verdict", path};
  if (!json.contains("stage")) json["stage"] = stage;
  MUSTER_CHECK_OK(unfoldDeviceLabel(json, path));
  MUSTER_CHECK_OK(unfoldExpectation(json, expectations, path));
  MUSTER_TRY(Verdict verdict, verdictFromJson(json, path));
  if (verdict.expectation && !json.contains("remedy")) verdict.remedy = verdict.expectation->remedy;
  if (verdict.outcome != Outcome::kPass) return verdict;
  const Texts plain = plainTexts(verdict, units);
  if (!json.contains("observed_text")) verdict.observedText = plain.observed;
  if (!json.contains("detail")) verdict.detail = plain.detail;
  return verdict;
}

}  // namespace

Json foldedVerdicts(const StageRecord& stage) {
  Places places;
  if (stage.evidence.is_object() && stage.evidence.contains("expectations"))
    for (size_t i = 0; i < stage.evidence["expectations"].size(); ++i)
      places.emplace(dumpJson(stage.evidence["expectations"][i]), i);
  const Units units = unitsOf(stage);
  ExpectationJson expectations;
  std::vector<KeyedObject> objects;
  for (const Verdict& verdict : stage.verdicts)
    objects.push_back(
        {verdictKey(verdict, expectations), folded(verdict, stage, units, places, expectations)});
  return toColumnarRows(objects);
}

Result<std::vector<Verdict>> unfoldedVerdicts(const Json& list, const StageRecord& stage,
                                              const std::string& path) {
  const Json expectations =
      stage.evidence.is_object() ? stage.evidence.value("expectations", Json::array()) : Json::array();
  const Units units = unitsOf(stage);
  std::vector<Verdict> verdicts;
  MUSTER_CHECK_OK(eachRow(list, path, [&](const Json& object, const std::string& at) -> Status {
    MUSTER_TRY(Verdict verdict, unfolded(object, stage.name, expectations, units, at));
    verdicts.push_back(std::move(verdict));
    return {};
  }));
  verdicts.shrink_to_fit();
  return verdicts;
}

void groupVerdicts(std::vector<Verdict>& verdicts) {
  ExpectationJson expectations;
  groupRows(verdicts, [&](const Verdict& verdict) { return verdictKey(verdict, expectations); });
}

}  // namespace muster
