// SPDX-License-Identifier: Apache-2.0
// The verdict strip and the sentence below it.
#include <fmt/format.h>

#include "reports/html/page/symbols.h"
#include "reports/html/page_one/categories.h"
#include "reports/html/page_one/page_one.h"
#include "reports/html/plots/stage_plots.h"
#include "runner/core/text.h"
#include "runner/record/findings/attempts.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/parts.h"
#include "runner/record/findings/peer_distance.h"

namespace muster {
namespace {

/// "142 checks: 2 fail, 140 pass", or that the counts disagree.
std::string balanceText(const Accounting& accounting) {
  std::vector<std::string> parts;
  for (int i = 0; i < kOutcomeCount; ++i)
    if (accounting.counts[i] > 0)
      parts.push_back(fmt::format("{} {}", accounting.counts[i], outcomeName(static_cast<Outcome>(i))));
  const std::string sum = parts.empty() ? "no results" : join(parts, ", ");
  if (accounting.balanced()) return fmt::format("{} checks: {}", accounting.expected, sum);
  return fmt::format("{} checks required, but {} results counted ({}): the counts do not agree",
                     accounting.expected, accounting.total(), sum);
}

/// "1 finding blocks acceptance · 1721 of 1730 checks passed".
std::string summaryText(const Record& record, const std::vector<Incident>& incidents) {
  size_t blocking = 0;
  for (const Incident& incident : incidents) blocking += incident.blocks() ? 1 : 0;
  std::vector<std::string> parts;
  if (blocking > 0)
    parts.push_back(
        fmt::format("{} {} acceptance", plural(blocking, "finding"), blocking == 1 ? "blocks" : "block"));
  parts.push_back(fmt::format("{} of {} checks passed", record.accounting.of(Outcome::kPass),
                              record.accounting.expected));
  if (const size_t waived = record.accounting.of(Outcome::kWaived); waived > 0)
    parts.push_back(fmt::format("{} waived", waived));
  if (const size_t skipped = record.accounting.of(Outcome::kSkipped); skipped > 0)
    parts.push_back(fmt::format("{} not run", skipped));
  if (const std::string attempts = attemptsText(record); !attempts.empty()) parts.push_back(attempts);
  return join(parts, " · ");
}

/// The sentence about the worst finding, in the pieces that the template sets apart.
View leadOf(const Record& record, const Incident& incident) {
  const DeviationItem& worst = incident.main().worst();
  const Verdict& verdict = *worst.verdict;
  const std::string who = incident.main().who();
  View view;
  view.text("who", printable(who.empty() ? "The whole node" : who, kLongestText));
  const auto devices = incident.main().devices();
  const DevicePart part =
      devices.size() == 1 && who == devices.front() ? deviceOf(record, devices.front()) : DevicePart{};
  std::vector<std::string> known;
  if (!part.serial.empty()) known.push_back("serial " + part.serial);
  if (!part.address.empty()) known.push_back(part.address);
  view.text("part", printable(join(known, ", "), kLongestText));
  const bool hasValue = !verdict.metric.empty() && !verdict.observedText.empty();
  const std::string where = caseText(verdict).empty() ? "" : " (" + caseText(verdict) + ")";
  view.text("fault", hasValue ? printable(metricWords(verdict.metric) + where, kLongestText)
                              : printable(verdict.detail, 2 * kLongestText));
  view.text("measured", hasValue ? printable(measuredText(*worst.stage, verdict), kLongestText) : "");
  view.text("required", hasValue ? printable(wantedText(verdict), kLongestText) : "");
  view.text("peers", peerDistance(*worst.stage, verdict).text());
  view.text("telemetry", telemetryHint(*worst.stage, part.id));
  view.text("action", printable(incident.action(), kLongestText));
  return view;
}

/// What an accepted node's sentence says: the check that came nearest to its limit.
std::string nearestText(const Record& record) {
  const auto checks = nearestChecks(record);
  if (checks.empty()) return "";
  const Verdict& verdict = *checks.front().verdict;
  const std::string who = verdict.device.empty() ? "" : " of " + verdict.device;
  return fmt::format("Nearest to its limit: {}{}, {}, {} ({}).", metricWords(verdict.metric),
                     printable(who, kLongestText), printable(verdict.observedText, kLongestText),
                     printable(wantedText(verdict), kLongestText), marginText(verdict));
}

}  // namespace

void addVerdict(View& page, const Record& record) {
  const auto found = incidents(record);
  page.text("acceptance", nameOf(record.acceptance)).text("verdict", verdictText(record));
  page.text("verdict_symbol", acceptanceSymbol(record.acceptance));
  page.text("verdict_meaning", acceptanceMeaning(record.acceptance, record.accounting.of(Outcome::kWaived)));
  page.text("exit_code", std::to_string(record.exitCode)).text("summary", summaryText(record, found));
  page.text("balance", balanceText(record.accounting));
  page.flag("simulated", record.simulated).text("scenario", record.scenario);
  page.flag("unknown_sku_allowed", record.profile.name.empty() && record.allowUnknownSku);
  page.text("rejudged", rejudgedText(record)).text("partial", record.selection.text());
  for (const Mark& mark : marksOf(record))
    if (mark.word == "REDACTED") page.text("redacted", mark.text);
  page.flag("imported", !record.imported.empty());
  page.list("imports", viewsOf(importedTexts(record), [](const std::string& text) {
              View view;
              view.text("text", text);
              return view;
            }));
  page.list("reasons", viewsOf(record.reasons, [](const std::string& reason) {
              View view;
              view.text("reason", reason);
              return view;
            }));
  const bool blocks = !found.empty() && found.front().blocks();
  const DeviationItem* worst = blocks ? &found.front().main().worst() : nullptr;
  page.markup("key_plot", blocks ? plotAround(stageTable(*worst->stage), *worst->verdict) : std::string());
  page.list("lead", blocks ? std::vector<View>{leadOf(record, found.front())} : std::vector<View>{});
  page.text("nearest_text", blocks ? "" : nearestText(record));
}

}  // namespace muster
