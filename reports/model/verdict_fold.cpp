// SPDX-License-Identifier: Apache-2.0
// See verdict_fold.h.
#include "reports/model/verdict_fold.h"

#include <map>

namespace muster {

Json foldedVerdicts(const StageRecord& stage) {
  std::map<std::string, size_t> known;
  if (stage.evidence.is_object() && stage.evidence.contains("expectations"))
    for (size_t i = 0; i < stage.evidence["expectations"].size(); ++i)
      known.emplace(dumpJson(stage.evidence["expectations"][i]), i);
  Json list = Json::array();
  for (const Verdict& verdict : stage.verdicts) {
    Json folded = toJson(verdict);
    if (verdict.stage == stage.name) folded.erase("stage");
    if (verdict.expectation) {
      folded["remedy"] = verdict.remedy;
      if (verdict.remedy == verdict.expectation->remedy) folded.erase("remedy");
      const auto it = known.find(dumpJson(folded["expectation"]));
      if (it != known.end()) folded["expectation"] = it->second;
    }
    list.push_back(std::move(folded));
  }
  return list;
}

Result<Verdict> unfoldedVerdict(const Json& folded, const std::string& stage, const Json& expectations,
                                const std::string& path) {
  if (!folded.is_object()) return Error{ErrorCode::kProtocol, "found no object, wanted a verdict", path};
  Json whole = folded;
  if (!whole.contains("stage")) whole["stage"] = stage;
  if (whole.contains("expectation") && whole["expectation"].is_number()) {
    const Json index = whole["expectation"];
    if (!index.is_number_unsigned() || !expectations.is_array() ||
        index.get<uint64_t>() >= expectations.size())
      return Error{ErrorCode::kProtocol,
                   "expectation " + dumpJson(index) + " is none of the stage's evidence.expectations",
                   path + ".expectation"};
    whole["expectation"] = expectations[index.get<size_t>()];
  }
  MUSTER_TRY(Verdict verdict, verdictFromJson(whole, path));
  if (verdict.expectation && !folded.contains("remedy")) verdict.remedy = verdict.expectation->remedy;
  return verdict;
}

}  // namespace muster
