// SPDX-License-Identifier: Apache-2.0
// How it was measured, where the limits come from, and the digests that tie the report to its inputs.
#include <fmt/format.h>

#include "reports/html/sections.h"
#include "runner/core/clock.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/deviations.h"
#include "runner/system/files.h"

namespace muster {
namespace {

View pairView(const std::string& name, const std::string& value) {
  View view;
  view.text("name", name).text("value", value);
  return view;
}

std::string paramsText(const Json& params) {
  std::vector<std::string> parts;
  if (params.is_object())
    for (const auto& [key, value] : params.items())
      parts.push_back(key + "=" + (value.is_string() ? value.get<std::string>() : dumpJson(value)));
  return join(parts, " ");
}

std::vector<View> caseViews(const Record& record) {
  std::vector<View> views;
  for (const auto& stage : record.stages)
    for (const auto& item : stage.cases) {
      View view;
      view.text("case", item.id).text("test", stage.plugin + "." + stage.test);
      view.text("params", paramsText(item.params));
      views.push_back(std::move(view));
    }
  return views;
}

/// How the run came about, beside what the first page says.
std::vector<View> factsOf(const Record& record) {
  std::vector<View> facts = {
      pairView("Backend", record.backend), pairView("Started", formatUtc(record.started)),
      pairView("Duration", formatQuantity(record.finished - record.started, "s", 3) +
                               (record.simulated ? " wall time; stage times are simulated" : "")),
      pairView("Exit code", std::to_string(record.exitCode)), pairView("SKU profile", skuNote(record))};
  if (record.resumed > 0)
    facts.push_back(pairView("Resumed", plural(static_cast<size_t>(record.resumed), "time")));
  if (!record.overrides.empty()) facts.push_back(pairView("Overrides", join(record.overrides, ", ")));
  return facts;
}

View digestView(const std::string& what, const std::string& name, const std::string& sha256) {
  View view;
  view.text("what", what).text("name", name).text("sha256", sha256.empty() ? "none" : sha256);
  return view;
}

}  // namespace

std::string peakUnit(const std::string& name) {
  if (name.rfind("flops", 0) == 0) return "FLOP/s";
  return name.find("bandwidth") != std::string::npos ? "B/s" : "";
}

int Sources::number(const std::string& text) {
  if (text.empty()) return 0;
  const auto [at, isNew] = numbers_.try_emplace(text, static_cast<int>(texts_.size()) + 1);
  if (isNew) texts_.push_back(text);
  return at->second;
}

void addMethod(View& page, const Record& record) {
  page.text("command", shellCommand(record.command)).text("seed", std::to_string(record.seed));
  page.text("launcher", paramsText(record.launcher)).text("boot_id", record.bootId);
  page.text("peaks_from", record.peaksFrom).flag("strict", record.strict);
  page.list("facts", factsOf(record)).list("cases", caseViews(record));
  page.list("peaks", viewsOf(record.peaks, [](const auto& peak) {
              return pairView(peak.first, formatQuantity(peak.second, peakUnit(peak.first)));
            }));
  page.list("environment", viewsOf(record.environment,
                                   [](const auto& entry) { return pairView(entry.first, entry.second); }));
}

void addSources(View& page, const Sources& sources) {
  std::vector<View> views;
  for (size_t i = 0; i < sources.all().size(); ++i) {
    View view;
    view.text("number", std::to_string(i + 1)).text("source", sources.all()[i]);
    views.push_back(std::move(view));
  }
  page.list("sources", std::move(views));
}

/// The files that a plan or profile includes, behind it.
void addIncludes(const SourceRecord& source, std::vector<View>& views) {
  for (const auto& [file, sha256] : source.includes)
    views.push_back(digestView("Included in " + source.name, file, sha256));
}

void addProvenance(View& page, const Record& record, const std::string& digest, const std::string& schema) {
  std::vector<View> digests = {
      digestView("Plan", record.plan.path.empty() ? record.plan.name : record.plan.path, record.plan.sha256),
      digestView("SKU profile", record.profile.name.empty() ? "unknown SKU" : record.profile.name,
                 record.profile.sha256),
      digestView("Record schema", fmt::format("version {}", kRecordSchema), sha256Hex(schema)),
      digestView("Record", "record.json", digest),
  };
  addIncludes(record.plan, digests);
  addIncludes(record.profile, digests);
  if (!record.waiverFile.sha256.empty())
    digests.insert(digests.begin() + 2,
                   digestView("Waivers", record.waiverFile.path, record.waiverFile.sha256));
  page.list("digests", std::move(digests));
  page.text("build_id", record.buildId)
      .text("plan_text", record.plan.text)
      .text("profile_text", record.profile.text);
  page.text("plan_path", record.plan.path).text("profile_name", record.profile.name);
}

}  // namespace muster
