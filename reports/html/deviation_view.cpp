// SPDX-License-Identifier: Apache-2.0
// Deviations: what was found, what was wanted, where that comes from, what to do and how to run it again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/sections.h"
#include "reports/html/stage_plots.h"
#include "reports/html/stage_table.h"
#include "reports/html/symbols.h"
#include "reports/model/deviations.h"
#include "runner/core/text.h"

namespace muster {
namespace {

std::string attemptsText(const Verdict& verdict) {
  std::vector<std::string> parts;
  for (const auto& attempt : verdict.attempts)
    parts.push_back(fmt::format("attempt {}: {}", attempt.attempt, outcomeName(attempt.outcome)));
  return parts.size() > 1 ? join(parts, ", ") : "";
}

std::string wantedText(const Verdict& verdict) {
  if (!verdict.limitText.empty()) return verdict.limitText;
  return verdict.expectation ? verdict.expectation->text() : "";
}

View itemView(const Deviation& deviation, const DeviationItem& item) {
  const Verdict& verdict = *item.verdict;
  View view;
  view.text("device", verdict.device.empty() ? "node" : verdict.device);
  view.text("rank", verdict.rank >= 0 ? std::to_string(verdict.rank) : "");
  view.text("case", verdict.metric.empty() ? verdict.caseId : "");
  view.text("observed", verdict.observedText).text("margin", marginText(verdict.margin));
  view.text("samples", samplesText(samplesOf(*deviation.stage, verdict)));
  view.text("attempts", attemptsText(verdict)).text("detail", verdict.detail);
  return view;
}

/// How the rank ended, where that is the cause.
View rankView(const RankRecord& rank) {
  View view;
  view.text("rank", std::to_string(rank.rank)).text("device", rank.device).text("state", rank.state);
  view.text("signal", rank.signal).text("exit_code", std::to_string(rank.exitCode));
  view.text("error", rank.error).text("last_progress", rank.lastProgress).text("output", rank.outputTail);
  return view;
}

std::vector<View> ranksOf(const Deviation& deviation) {
  std::vector<const RankRecord*> ranks;
  for (const auto& item : deviation.items)
    if (item.rank != nullptr && item.rank->state != "ok" &&
        std::find(ranks.begin(), ranks.end(), item.rank) == ranks.end())
      ranks.push_back(item.rank);
  return viewsOf(ranks, [](const RankRecord* rank) { return rankView(*rank); });
}

std::vector<View> rerunsOf(const Deviation& deviation) {
  std::vector<std::string> commands;
  for (const auto& item : deviation.items)
    if (item.rank != nullptr && !item.rank->rerun.empty() &&
        std::find(commands.begin(), commands.end(), item.rank->rerun) == commands.end())
      commands.push_back(item.rank->rerun);
  return viewsOf(commands, [](const std::string& command) {
    View view;
    view.text("command", command);
    return view;
  });
}

/// Details that say the same of every item are told once.
std::string commonDetail(const Deviation& deviation) {
  const std::string& detail = deviation.first().detail;
  for (const auto& item : deviation.items)
    if (item.verdict->detail != detail) return "";
  return detail;
}

View deviationView(const Deviation& deviation, Sources& sources) {
  const Verdict& first = deviation.first();
  View view;
  view.text("outcome", outcomeName(deviation.outcome)).text("symbol", outcomeSymbol(deviation.outcome));
  view.flag("blocks", deviation.blocks).text("stage", deviation.stage->name);
  const std::string devices = devicesText(deviation.devices());
  view.text("devices", devices.empty() ? "the whole node" : devices);
  view.text("metric", first.metric).text("case", caseText(first)).text("wanted", wantedText(first));
  view.text("observed", first.observedText).text("margin", marginText(first.margin));
  view.flag("single", deviation.items.size() == 1).flag("several", deviation.items.size() > 1);
  view.text("samples", samplesText(samplesOf(*deviation.stage, first))).text("attempts", attemptsText(first));
  view.text("detail", commonDetail(deviation));
  view.flag("details_differ", commonDetail(deviation).empty());
  view.list("items", viewsOf(deviation.items, [&](const auto& item) { return itemView(deviation, item); }));
  view.text("source", deviation.source()).text("remedy", deviation.remedy());
  view.text("origin", first.expectation ? first.expectation->origin : "");
  view.text("at", first.expectation ? first.expectation->at : "");
  const int cited = sources.number(deviation.source());
  view.text("cite", cited > 0 ? std::to_string(cited) : "");
  view.list("reruns", rerunsOf(deviation)).list("ranks", ranksOf(deviation));
  view.markup("plot", plotAround(stageTable(*deviation.stage), first));
  return view;
}

/// One line of a plain list.
View lineView(const Deviation& deviation, Sources& sources) {
  const Verdict& first = deviation.first();
  View view;
  view.text("outcome", outcomeName(deviation.outcome)).text("symbol", outcomeSymbol(deviation.outcome));
  view.text("stage", deviation.stage->name).text("metric", first.metric).text("case", caseText(first));
  view.text("devices", devicesText(deviation.devices()))
      .text("count", std::to_string(deviation.items.size()));
  view.text("observed", deviation.items.size() == 1 ? first.observedText : "");
  view.text("wanted", wantedText(first))
      .text("detail", commonDetail(deviation))
      .text("remedy", deviation.remedy());
  const int cited = sources.number(deviation.source());
  view.text("cite", cited > 0 ? std::to_string(cited) : "");
  return view;
}

}  // namespace

void addDeviations(View& page, const Record& record, Sources& sources) {
  const auto found = deviations(record);
  const auto blocking = std::count_if(found.begin(), found.end(), [](const auto& d) { return d.blocks; });
  page.text("deviation_count", std::to_string(found.size())).text("blocking_count", std::to_string(blocking));
  page.list("deviations",
            viewsOf(found, [&](const auto& deviation) { return deviationView(deviation, sources); }));
}

void addNotJudged(View& page, const Record& record, Sources& sources) {
  page.list("not_judged",
            viewsOf(notJudged(record), [&](const auto& item) { return lineView(item, sources); }));
}

void addWaivers(View& page, const Record& record, Sources& sources) {
  page.list("waivers", viewsOf(waived(record), [&](const auto& item) { return lineView(item, sources); }));
}

}  // namespace muster
