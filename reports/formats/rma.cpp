// SPDX-License-Identifier: Apache-2.0
// Collects what a record says of one device.
#include "reports/formats/rma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/formats/formats.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/parts.h"
#include "runner/record/findings/peer_distance.h"

namespace muster {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

/// Every check of the device, with the median of its peers.
std::string checksCsv(const Record& record, const std::string& device, TextLimit& limit) {
  const std::string header =
      "stage,case,metric,unit,outcome,measured,limit,required,peers,peers_median,detail\n";
  std::string out = header;
  PeerDistances distances;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts) {
      if (verdict.device != device) continue;
      limit.add(out, weightOf(verdict.outcome), [&] {
        const PeerDistance peers = distances.of(stage, verdict);
        return fmt::format(
            "{},{},{},{},{},{},{},{},{},{},{}\n", csvCell(stage.name), csvCell(caseText(verdict)),
            csvCell(verdict.metric), csvCell(verdict.expectation ? verdict.expectation->unit : ""),
            outcomeName(verdict.outcome), number(verdict.observed), number(verdict.limit),
            csvCell(wantedText(verdict)), peers.peers, number(peers.median), csvCell(verdict.detail));
      });
    }
  return out + csvNote(header, limit);
}

/// Readings of the device and its peers, one per row.
std::string telemetryCsv(const Record& record, const std::set<std::string>& stages, TextLimit& limit) {
  const std::string header = "stage,metric,unit,device,seconds,value\n";
  std::string out = header;
  for (const StageRecord& stage : record.stages) {
    if (stages.count(stage.name) == 0) continue;
    for (const TelemetrySeries& series : stage.telemetry)
      for (size_t i = 0; i < std::min(series.time.size(), series.value.size()); ++i)
        limit.add(out, Weight::kBulk, [&] {
          return fmt::format("{},{},{},{},{},{}\n", csvCell(stage.name), csvCell(series.metric),
                             csvCell(series.unit), csvCell(series.device), series.time[i], series.value[i]);
        });
  }
  return out + csvNote(header, limit);
}

std::string samplesCsv(Record record, const std::set<std::string>& stages, TextLimit& limit) {
  std::erase_if(record.stages, [&](const StageRecord& stage) { return stages.count(stage.name) == 0; });
  return renderCsv(record, limit);
}

/// What the device's processes printed last, and what plugins logged.
std::string outputText(const Record& record, const std::string& device, const std::set<std::string>& stages,
                       TextLimit& limit) {
  std::string out;
  const auto add = [&](const auto& render) { limit.add(out, Weight::kFinding, render); };
  for (const StageRecord& stage : record.stages) {
    if (stages.count(stage.name) == 0) continue;
    for (const std::string& line : stage.log)
      add([&] { return fmt::format("{}: {}\n", printable(stage.name), printable(line, 2000)); });
    for (const RankRecord& rank : stage.ranks) {
      if (rank.device != device) continue;
      add([&] {
        return fmt::format("{}: rank {}, attempt {}: {}{}{}\n", printable(stage.name), rank.rank,
                           rank.attempt, nameOf(rank.state), rank.error.empty() ? "" : ": ",
                           printable(rank.error, 2000));
      });
      for (const std::string& line : split(rank.outputTail, '\n'))
        if (!line.empty()) add([&] { return "  " + printable(line, 2000) + "\n"; });
    }
  }
  return limit.leftOut() == 0 ? out : out + limit.note() + "\n";
}

/// The device as the inventory has it, and where it was.
std::string deviceJson(const Record& record, const std::string& device, const std::string& sha256) {
  Json part;
  for (const Json& one : inventoryPart(record, "devices"))
    if (textAt(one, "id") == device) part = one;
  Json marks = Json::array();
  for (const Mark& mark : marksOf(record)) marks.push_back(mark.word + " " + mark.text);
  const Json json = {{"marks", marks},
                     {"device", part},
                     {"node", record.node},
                     {"run", record.runId},
                     {"started", record.started},
                     {"software", inventoryPart(record, "software")},
                     {"record_sha256", sha256}};
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

bool isAbout(const Deviation& finding, const std::string& device) {
  return std::any_of(finding.items.begin(), finding.items.end(),
                     [&](const DeviationItem& item) { return item.verdict->device == device; });
}

/// The result is the node's: of a part without findings it says nothing.
std::string healthyText(const Record& record, const std::string& device) {
  const auto found = deviations(record);
  if (std::any_of(found.begin(), found.end(), [&](const Deviation& one) { return isAbout(one, device); }))
    return "";
  return fmt::format("**No check of {} failed.** The result below is that of the whole node.\n\n", device);
}

std::string findingsText(const Record& record, const std::string& device, TextLimit& limit) {
  return healthyText(record, device) + renderMarkdownOf(record, device, limit) +
         "\nOther files: device.json (identity), checks.csv (each check beside the median of the peers), "
         "samples.csv and "
         "telemetry.csv (all devices in the stages concerned), output.txt, artifacts/.\n";
}

}  // namespace

std::set<std::string> stagesAbout(const Record& record, const std::string& device) {
  std::set<std::string> found, all;
  for (const Deviation& finding : deviations(record))
    for (const DeviationItem& item : finding.items)
      if (item.verdict->device == device) found.insert(item.stage->name);
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.device == device) all.insert(stage.name);
  return found.empty() ? all : found;
}

std::vector<BundleFile> rmaBundle(const Record& record, const std::string& device,
                                  const std::string& sha256) {
  const std::set<std::string> stages = stagesAbout(record, device);
  std::vector<BundleFile> files = {{"device.json", deviceJson(record, device, sha256)}};
  const auto add = [&](const char* name, const auto& render) {
    TextLimit limit;
    std::string text = render(limit);
    files.push_back({name, std::move(text), limit.note()});
  };
  add("findings.md", [&](TextLimit& limit) { return findingsText(record, device, limit); });
  add("checks.csv", [&](TextLimit& limit) { return checksCsv(record, device, limit); });
  add("samples.csv", [&](TextLimit& limit) { return samplesCsv(record, stages, limit); });
  add("telemetry.csv", [&](TextLimit& limit) { return telemetryCsv(record, stages, limit); });
  add("output.txt", [&](TextLimit& limit) { return outputText(record, device, stages, limit); });
  return files;
}

}  // namespace muster
