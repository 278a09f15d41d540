// SPDX-License-Identifier: Apache-2.0
// Deviations: what was found, what was wanted, where that comes from, what to do and how to run it again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/html/page/symbols.h"
#include "reports/html/plots/stage_plots.h"
#include "reports/html/plots/stage_table.h"
#include "reports/html/sections.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/peer_distance.h"
#include "runner/record/findings/rerun.h"

namespace muster {
namespace {

std::string attemptsText(const Verdict& verdict) {
  std::vector<std::string> parts;
  for (const auto& attempt : verdict.attempts)
    parts.push_back(fmt::format("attempt {}: {}", attempt.attempt, outcomeName(attempt.outcome)));
  return parts.size() > 1 ? join(parts, ", ") : "";
}

std::string citeOf(const Expectation& expectation, Sources& sources) {
  const int cited = sources.number(expectation.source);
  return cited > 0 ? std::to_string(cited) : "";
}

/// What all findings share: the record, and what is made once of each of its stages.
struct Findings {
  const Record& record;
  Sources& sources;
  MeasuredTexts measured = {};
  PeerDistances peers = {};
  StageSamples samples = {};
  std::map<const StageRecord*, StageTable> tables = {};

  const StageTable& tableOf(const StageRecord& stage) {
    const auto [table, isNew] = tables.try_emplace(&stage);
    if (isNew) table->second = stageTable(stage);
    return table->second;
  }
};

View itemView(const DeviationItem& item, Findings& all) {
  const Verdict& verdict = *item.verdict;
  View view;
  view.text("device", verdict.device.empty() ? "node" : verdict.device);
  view.text("rank", verdict.rank >= 0 ? std::to_string(verdict.rank) : "");
  view.text("case", caseText(verdict)).text("wanted", wantedText(verdict));
  view.text("observed", all.measured.of(*item.stage, verdict)).text("margin", marginText(verdict));
  view.text("peers", all.peers.of(*item.stage, verdict).text());
  view.text("samples", samplesText(all.samples.of(*item.stage, verdict), unitOf(verdict)));
  view.text("stage", item.stage->name);
  view.text("cite", verdict.expectation ? citeOf(*verdict.expectation, all.sources) : "");
  view.text("attempts", attemptsText(verdict)).text("detail", verdict.detail);
  return view;
}

/// How the rank ended, where that is the cause. What `told` says already is left out.
View rankView(const RankRecord& rank, const std::string& told) {
  View view;
  view.text("rank", std::to_string(rank.rank)).text("device", rank.device).text("state", nameOf(rank.state));
  view.text("signal", rank.signal).text("exit_code", std::to_string(rank.exitCode));
  view.text("error", holdsText(told, rank.error) ? "" : rank.error)
      .text("last_progress", rank.lastProgress)
      .text("output", rank.outputTail);
  return view;
}

std::vector<View> ranksOf(const Deviation& deviation) {
  std::vector<const RankRecord*> ranks;
  std::set<const RankRecord*> known;
  for (const auto& item : deviation.items)
    if (item.rank != nullptr && item.rank->state != RankOutcome::kOk && known.insert(item.rank).second)
      ranks.push_back(item.rank);
  const std::string told = deviation.commonDetail().substr(0, kMostTold);
  return viewsOf(ranks, [&](const RankRecord* rank) { return rankView(*rank, told); });
}

std::vector<View> rerunsOf(const Record& record, const Deviation& deviation) {
  return viewsOf(rerunCommands(record, deviation), [](const std::string& command) {
    View view;
    view.text("command", command);
    return view;
  });
}

constexpr size_t kMaxItems = 24;
constexpr size_t kMostFindings = 200;  ///< on the page; the record holds all

/// At most kMaxItems; of more, the worst.
std::vector<DeviationItem> shownItems(const Deviation& deviation) {
  std::vector<DeviationItem> items = deviation.items;
  if (items.size() <= kMaxItems) return items;
  const auto rank = [](const DeviationItem& item) {
    return std::isfinite(item.verdict->margin) ? item.verdict->margin : 0;
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  items.resize(kMaxItems);
  return items;
}

void addItems(View& view, const Deviation& deviation, Findings& all) {
  const auto items = shownItems(deviation);
  view.list("items", viewsOf(items, [&](const auto& item) { return itemView(item, all); }));
  const size_t left = deviation.items.size() - items.size();
  view.text("items_left", left > 0 ? std::to_string(left) : "");
  view.flag("stages_differ", deviation.stages().size() > 1);
  view.flag("cases_differ", deviation.commonCase().empty() && !deviation.first().metric.empty());
  view.flag("wanted_differs", deviation.commonWanted().empty() && !wantedText(deviation.first()).empty());
  const bool told = !deviation.commonDetail().empty();
  // Where figures speak, a detail line for each would only repeat them.
  view.flag("details_differ", !told && deviation.first().observedText.empty());
}

View originView(const Expectation& expectation, Sources& sources) {
  View view;
  view.text("source", expectation.source).text("cite", citeOf(expectation, sources));
  view.text("origin", expectation.origin).text("at", expectation.at);
  return view;
}

/// Where the limits come from, what to do, and how to run it again.
void addNext(View& view, const Deviation& deviation, Findings& all) {
  const auto origins = deviation.origins();
  const auto remedies = deviation.remedies();
  auto reruns = rerunsOf(all.record, deviation);
  view.flag("has_next", !origins.empty() || !remedies.empty() || !reruns.empty());
  view.list("origins",
            viewsOf(origins, [&](const auto* origin) { return originView(*origin, all.sources); }));
  view.list("remedies", viewsOf(remedies, [](const std::string& remedy) {
              View line;
              line.text("remedy", remedy);
              return line;
            }));
  view.list("reruns", std::move(reruns));
}

/// "stage gemm"; "stages peer, gemm"; of many how many.
std::string stageList(const std::vector<std::string>& stages) {
  if (stages.size() > 4) return fmt::format("{} stages", stages.size());
  return (stages.size() == 1 ? "stage " : "stages ") + join(stages, ", ");
}

std::string whereText(const Deviation& deviation) {
  if (!deviation.commonCase().empty()) return deviation.commonCase();
  std::set<std::string> cases;
  for (const auto& item : deviation.items) cases.insert(caseText(*item.verdict));
  return cases.size() > 1 ? plural(cases.size(), "case") : "";
}

View deviationView(const Deviation& deviation, Findings& all) {
  const Verdict& first = deviation.first();
  View view;
  view.text("outcome", outcomeName(deviation.outcome)).text("symbol", outcomeSymbol(deviation.outcome));
  const auto stages = deviation.stages();
  view.flag("blocks", deviation.blocks).text("stages", stageList(stages)).text("stage", stages.front());
  const std::string who = deviation.who();
  view.text("who", who.empty() ? "the whole node" : who).text("first_fault", deviation.firstFault());
  view.text("metric", first.metric).text("case", whereText(deviation));
  view.text("wanted", deviation.commonWanted());
  const StageRecord& stage = *deviation.items.front().stage;
  view.text("observed", all.measured.of(stage, first)).text("margin", marginText(first));
  view.text("peers", all.peers.of(stage, first).text()).text("not_run", "");
  view.flag("single", deviation.items.size() == 1).flag("several", deviation.items.size() > 1);
  view.text("samples", samplesText(all.samples.of(stage, first), unitOf(first)));
  view.text("attempts", attemptsText(first));
  view.text("detail", deviation.commonDetail());
  addItems(view, deviation, all);
  addNext(view, deviation, all);
  view.list("ranks", ranksOf(deviation));
  const DeviationItem& worst = deviation.worst();
  view.markup("plot", plotAround(all.tableOf(*worst.stage), *worst.verdict));
  return view;
}

/// One line of a plain list.
View lineView(const Deviation& deviation, Sources& sources) {
  const Verdict& first = deviation.first();
  View view;
  view.text("outcome", outcomeName(deviation.outcome)).text("symbol", outcomeSymbol(deviation.outcome));
  view.text("stage", join(deviation.stages(), ", ")).text("metric", first.metric);
  view.text("case", whereText(deviation));
  view.text("devices", devicesText(deviation.devices()))
      .text("count", std::to_string(deviation.items.size()));
  view.text("observed", deviation.items.size() == 1 ? first.observedText : "");
  view.text("wanted", deviation.commonWanted()).text("detail", deviation.commonDetail());
  view.text("cite", first.expectation ? citeOf(*first.expectation, sources) : "");
  return view;
}

}  // namespace

void addDeviations(View& page, const Record& record, Sources& sources) {
  size_t checks = 0;
  size_t blocking = 0;
  size_t count = 0;
  std::vector<View> views;
  Findings all{record, sources};
  const auto found = incidents(record);
  for (size_t i = 0; i < found.size(); ++i) {
    blocking += found[i].blocks() ? 1 : 0;
    for (const Deviation& deviation : found[i].findings) {
      checks += deviation.items.size();
      if (++count > kMostFindings) continue;
      views.push_back(deviationView(deviation, all));
      const bool leads = &deviation == &found[i].main();
      views.back().text("number", leads ? std::to_string(i + 1) : "");
    }
    if (count <= kMostFindings) views.back().text("not_run", found[i].notRunText());
  }
  page.text("deviation_text",
            fmt::format("{} from {}{}", plural(found.size(), "finding"), plural(checks, "check result"),
                        count <= kMostFindings
                            ? ""
                            : fmt::format(", of which the first {} are shown and all are in record.json",
                                          kMostFindings)));
  page.text("blocking_text",
            fmt::format("{} of them {} acceptance", blocking, blocking == 1 ? "blocks" : "block"));
  page.list("deviations", std::move(views));
}

void addNotJudged(View& page, const Record& record, Sources& sources) {
  page.list("not_judged",
            viewsOf(notJudged(record), [&](const auto& item) { return lineView(item, sources); }));
}

namespace {

View waiverView(const WaiverRecord& waiver) {
  View view;
  view.text("state", nameOf(waiver.state)).text("stage", waiver.stage).text("metric", waiver.metric);
  view.text("case", labelsText(waiver.where)).text("node", waiver.node);
  view.text("device", waiver.device).text("serial", waiver.serial);
  view.text("reason", waiver.reason).text("approver", waiver.approver).text("expires", waiver.expires);
  view.text("at", waiver.at).text("detail", waiver.detail);
  return view;
}

}  // namespace

void addWaivers(View& page, const Record& record, Sources& sources) {
  page.text("waiver_path", record.waiverFile.path).text("waiver_text", record.waiverFile.text);
  page.list("waiver_file", viewsOf(record.waivers, waiverView));
  page.list("waivers", viewsOf(waived(record), [&](const auto& item) { return lineView(item, sources); }));
}

}  // namespace muster
