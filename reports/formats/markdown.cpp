// SPDX-License-Identifier: Apache-2.0
// Writes the findings of a record for a ticket. All foreign text stands in code spans and blocks, where
// nothing is markup, a link or a mention.
#include <fmt/format.h>

#include <algorithm>

#include "reports/formats/formats.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/parts.h"
#include "runner/record/findings/peer_distance.h"
#include "runner/record/findings/rerun.h"

namespace muster {
namespace {

constexpr size_t kMostIncidents = 20;
constexpr size_t kLongestText = 600;  ///< bytes

/// The longest run of backticks in `text`.
size_t longestTicks(const std::string& text) {
  size_t longest = 0, now = 0;
  for (const char c : text) longest = std::max(longest, now = c == '`' ? now + 1 : 0);
  return longest;
}

/// `text` as a code span of one line.
std::string code(const std::string& text) {
  std::string shown = printable(text, kLongestText);
  if (trim(shown).empty()) return "-";
  const std::string fence(longestTicks(shown) + 1, '`');
  const bool padded =
      shown.front() == '`' || shown.back() == '`' || shown.front() == ' ' || shown.back() == ' ';
  return padded ? fmt::format("{0} {1} {0}", fence, shown) : fence + shown + fence;
}

/// A line "- name: value"; nothing for an empty text.
std::string item(const char* name, const std::string& text) {
  return text.empty() ? "" : fmt::format("- {}: {}\n", name, code(text));
}

std::string block(const std::vector<std::string>& commands) {
  std::string text;
  for (const std::string& command : commands) text += printable(command, 2000) + "\n";
  if (text.empty()) return "";
  const std::string fence(std::max<size_t>(3, longestTicks(text) + 1), '`');
  return fmt::format("\n{0}sh\n{1}{0}\n", fence, text);
}

/// "gpu3 (serial 1650523012345, 0000:5d:00.0)", or the node.
std::string partText(const Record& record, const Deviation& finding) {
  const auto devices = finding.devices();
  if (devices.size() == 1) return deviceOf(record, devices.front()).text();
  return finding.who().empty() ? "node" : finding.who();
}

bool isAbout(const Incident& incident, const std::string& device) {
  return std::any_of(incident.findings.begin(), incident.findings.end(),
                     [&](const Deviation& finding) { return contains(finding.devices(), device); });
}

std::string incidentText(const Record& record, const Incident& incident, size_t number,
                         PeerDistances& distances) {
  const Deviation& finding = incident.main();
  const DeviationItem& worst = finding.worst();
  const Verdict& verdict = *worst.verdict;
  std::string out = fmt::format("\n### {}. {}: {}\n\n", number, upperCase(outcomeName(finding.outcome)),
                                code(verdict.metric.empty() ? "stage " + worst.stage->name : verdict.metric));
  out += item("part", partText(record, finding)) + item("stage", join(finding.stages(), ", ")) +
         item("case", caseText(verdict)) +
         item("measured", verdict.observedText.empty() ? "" : measuredText(*worst.stage, verdict)) +
         item("required", wantedText(verdict)) + item("margin", marginText(verdict)) +
         item("peers", distances.of(*worst.stage, verdict).text()) + item("detail", finding.commonDetail());
  if (verdict.expectation) out += item("source of the limit", verdict.expectation->source);
  for (const std::string& remedy : finding.remedies()) out += item("action", remedy);
  for (size_t i = 1; i < incident.findings.size(); ++i) {
    const Verdict& also = *incident.findings[i].worst().verdict;
    out += item("also", also.metric.empty() ? also.detail : also.metric + " " + also.observedText);
  }
  return out + item("not run because of it", join(incident.notRun, ", ")) +
         block(rerunCommands(record, finding));
}

}  // namespace

std::string renderMarkdown(const Record& record, TextLimit& limit) {
  return renderMarkdownOf(record, "", limit);
}

std::string renderMarkdownOf(const Record& record, const std::string& device, TextLimit& limit) {
  std::string out =
      fmt::format("## {}{}: {}\n\n", markPrefix(record), verdictText(record), code(record.node));
  for (const Mark& mark : marksOf(record)) out += item(mark.word.c_str(), mark.text);
  out += item("plan", record.plan.name) +
         item("SKU profile", record.profile.name.empty() ? "unknown SKU" : record.profile.name) +
         item("run", record.runId) + item("ended", formatUtc(record.finished));
  const auto add = [&](const auto& render) { limit.add(out, Weight::kFinding, render); };
  for (const std::string& reason : record.reasons) add([&] { return item("reason", reason); });
  for (const Concession& concession : concessionsOf(record))
    add([&] { return item("concession", concession.text()); });
  std::vector<Incident> found = incidents(record);
  if (!device.empty())
    std::erase_if(found, [&](const Incident& incident) { return !isAbout(incident, device); });
  PeerDistances distances;
  for (size_t i = 0; i < std::min(found.size(), kMostIncidents); ++i)
    add([&] { return incidentText(record, found[i], i + 1, distances); });
  if (found.size() > kMostIncidents)
    out += fmt::format("\nand {} more findings in report.html\n", found.size() - kMostIncidents);
  if (limit.leftOut() > 0) out += fmt::format("\n{}\n", limit.note());
  return out;
}

std::string mergeMarkdown(const std::vector<std::string>& texts) {
  return join(texts, "\n");
}

}  // namespace muster
