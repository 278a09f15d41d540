// SPDX-License-Identifier: Apache-2.0
// Prints the summary of a run.
#include "reports/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/terminal/wrap.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/attempts.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/peer_distance.h"
#include "runner/record/findings/rerun.h"

namespace muster {
namespace {

constexpr size_t kMaxItems = 8;        ///< values listed for one finding; the record and the HTML hold all
constexpr size_t kMostFindings = 200;  ///< incidents, and further findings of one; the record holds all

/// Colours text, or returns it unchanged.
class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string operator()(const char* code, const std::string& text) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

 private:
  bool colour_;
};

const char* acceptanceColour(Acceptance acceptance) {
  if (acceptance == Acceptance::kAccepted) return "1;37;42";
  return acceptance == Acceptance::kRejected ? "1;37;41" : "1;30;43";
}

const char* outcomeColour(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "32";
    case Outcome::kFail:
      return "1;31";
    case Outcome::kError:
      return "1;35";
    case Outcome::kFlaky:
    case Outcome::kWarn:
      return "33";
    default:
      return "2";
  }
}

/// Where everything is written.
struct Page {
  Paint paint;
  int width;
  std::string out;
  PeerDistances peers = {};
  MeasuredTexts measured = {};

  /// A line with a name on the left; the value is wrapped beside it.
  void field(const std::string& name, const std::string& value) {
    if (value.empty()) return;
    const std::string lead = fmt::format("    {:<10}", name);
    bool first = true;
    for (const auto& line : wrapText(printable(value, 2000), width - 14)) {
      out += (first ? paint("2", lead) : std::string(14, ' ')) + line + "\n";
      first = false;
    }
  }
  /// A command is never wrapped, so that it can be copied.
  void command(const std::string& name, const std::string& value) {
    if (!value.empty()) out += paint("2", fmt::format("    {:<10}", name)) + printable(value, 2000) + "\n";
  }
  void line(const std::string& text, int indent) {
    for (const auto& part : wrapText(printable(text, 2000), width - indent))
      out += std::string(indent, ' ') + part + "\n";
  }
};

std::string countsText(const Accounting& accounting, const Paint& paint) {
  std::vector<std::string> parts;
  for (int i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (accounting.of(outcome) > 0)
      parts.push_back(
          paint(outcomeColour(outcome), fmt::format("{} {}", accounting.of(outcome), outcomeName(outcome))));
  }
  const std::string sum = parts.empty() ? "no checks" : join(parts, ", ");
  return fmt::format("{} checks: {}{}", accounting.expected, sum,
                     accounting.balanced() ? "" : "; the counts do NOT agree");
}

void addVerdict(Page& page, const Record& record) {
  page.out +=
      "\n" + page.paint(acceptanceColour(record.acceptance), fmt::format(" {} ", verdictText(record)));
  if (record.simulated) page.out += " " + page.paint("1;30;43", " SIMULATED ");
  if (!record.imported.empty()) page.out += " " + page.paint("1;30;43", " IMPORTED ");
  if (record.selection.partial() && record.acceptance != Acceptance::kPartial)
    page.out += " " + page.paint("1;30;43", " PARTIAL ");
  page.out += fmt::format("  exit code {}\n", record.exitCode);
  if (record.simulated)
    page.line(fmt::format("SIMULATED by scenario {}: no hardware was measured.", record.scenario), 1);
  for (const std::string& text : importedTexts(record)) page.line("IMPORTED " + text, 1);
  if (!record.rejudged.empty()) page.line("RE-JUDGED: " + rejudgedText(record), 1);
  for (const Mark& mark : marksOf(record))
    if (mark.word == "REDACTED") page.line("REDACTED: " + mark.text, 1);
  for (const auto& reason : record.reasons) page.line("- " + reason, 1);
  for (const Concession& concession : concessionsOf(record))
    page.line("- concession: " + concession.text(), 1);
  page.out += "\n";
}

void addRun(Page& page, const Record& record) {
  page.field("node", record.node);
  page.field("plan", record.plan.name);
  page.field("profile", fmt::format("{}{}", record.profile.name.empty() ? "unknown SKU" : record.profile.name,
                                    record.skuHow.empty() ? "" : ", " + skuNote(record)));
  page.field("took", formatQuantity(record.finished - record.started, "s", 3) +
                         (record.simulated ? " wall time; stage times are simulated" : ""));
  page.field("attempts", attemptsText(record));
  page.out += page.paint("2", "    checks    ") + countsText(record.accounting, page.paint) + "\n";
}

void addStages(Page& page, const Record& record) {
  size_t widest = 5;
  for (const auto& stage : record.stages) widest = std::max(widest, std::min<size_t>(stage.name.size(), 28));
  page.out += "\n";
  for (const auto& stage : record.stages) {
    const std::string name = printable(stage.name, 28);
    const std::string outcome =
        page.paint(outcomeColour(stage.outcome), fmt::format("{:<9}", outcomeName(stage.outcome)));
    const std::string time =
        stage.state == StageState::kRan ? formatQuantity(stage.duration, "s", 3) : nameOf(stage.state);
    page.out +=
        fmt::format("    {:<{}}  {} {:>4} checks  {}\n", name, widest, outcome, stage.verdicts.size(), time);
  }
}

std::string itemText(Page& page, const DeviationItem& item, bool withStage, bool withCase, bool withWanted) {
  const Verdict& verdict = *item.verdict;
  std::vector<std::string> parts;
  if (withStage) parts.push_back(item.stage->name);
  if (!verdict.device.empty()) parts.push_back(verdict.device);
  if (withCase && !caseText(verdict).empty()) parts.push_back(caseText(verdict));
  std::string text = join(parts, " ");
  text += (text.empty() ? "" : ": ") +
          (verdict.observedText.empty() ? std::string("nothing") : page.measured.of(*item.stage, verdict));
  if (withWanted) text += ", required " + wantedText(verdict);
  std::vector<std::string> distances;
  for (const std::string& distance : {marginText(verdict), page.peers.of(*item.stage, verdict).text()})
    if (!distance.empty()) distances.push_back(distance);
  return distances.empty() ? text : text + " (" + join(distances, "; ") + ")";
}

void addFigures(Page& page, const Deviation& deviation) {
  const bool casesDiffer = deviation.commonCase().empty();
  const bool wantedDiffers = deviation.commonWanted().empty();
  const bool stagesDiffer = deviation.stages().size() > 1;
  size_t listed = 0;
  for (const auto& item : deviation.items) {
    if (++listed > kMaxItems) break;
    page.field(listed == 1 ? "measured" : "", itemText(page, item, stagesDiffer, casesDiffer, wantedDiffers));
  }
  if (deviation.items.size() > kMaxItems)
    page.field("", fmt::format("and {} more in report.html", deviation.items.size() - kMaxItems));
  page.field("required", deviation.commonWanted());
}

void addDeviation(Page& page, const Record& record, const Deviation& deviation) {
  const Verdict& first = deviation.first();
  const std::string who = deviation.who();
  const std::string title =
      fmt::format("{}  {}", who.empty() ? "node" : who,
                  first.metric.empty() ? "stage " + deviation.stages().front() : first.metric);
  const std::string outcome = upperCase(outcomeName(deviation.outcome));
  const int indent = static_cast<int>(outcome.size()) + 4;
  std::string lead = "\n  " + page.paint(outcomeColour(deviation.outcome), outcome) + "  ";
  for (const auto& line : wrapText(printable(title, 300), page.width - indent)) {
    page.out += lead + page.paint("1", line) + "\n";
    lead = std::string(indent, ' ');
  }
  if (first.metric.empty()) page.field("case", deviation.commonCase());
  if (!first.metric.empty()) {
    const auto stages = deviation.stages();
    page.field(stages.size() == 1 ? "stage" : "stages", join(stages, ", "));
    page.field("case", deviation.commonCase());
    addFigures(page, deviation);
  }
  page.field("detail", deviation.commonDetail());
  page.field("fault", deviation.firstFault());
  for (const auto* origin : deviation.origins()) page.field("source", origin->source);
  for (const auto& remedy : deviation.remedies()) page.field("remedy", remedy);
  for (const std::string& command : rerunCommands(record, deviation)) page.command("rerun", command);
}

/// A further finding of one incident, in a line.
void addAlso(Page& page, const Deviation& deviation) {
  const DeviationItem& worst = deviation.worst();
  const std::string where = deviation.stages().size() > 1 ? "stages " + join(deviation.stages(), ", ")
                                                          : "stage " + deviation.stages().front();
  const Verdict& verdict = *worst.verdict;
  if (verdict.metric.empty())
    page.field("also", fmt::format("{}: {}", where, verdict.detail));
  else
    page.field("also", fmt::format("{} in {}: {}, required {}", verdict.metric, where,
                                   itemText(page, worst, false, true, false), wantedText(verdict)));
}

void addIncident(Page& page, const Record& record, const Incident& incident) {
  addDeviation(page, record, incident.main());
  const size_t also = incident.findings.size() - 1;
  for (size_t i = 1; i <= std::min(also, kMostFindings); ++i) addAlso(page, incident.findings[i]);
  if (also > kMostFindings)
    page.field("also", fmt::format("{} more findings in record.json", also - kMostFindings));
  if (!incident.notRun.empty()) page.line(incident.notRunText(), 4);
}

void addNotJudged(Page& page, const Record& record) {
  const auto groups = notJudged(record);
  if (groups.empty()) return;
  page.out += "\n  Not checked in this run (does not block):\n";
  for (const auto& group : groups) {
    const std::string what =
        group.first().metric.empty() ? "stage " + group.stages().front() : group.first().metric;
    std::string text = fmt::format("{}: {}", outcomeName(group.outcome), what);
    if (group.items.size() > 1) text += fmt::format(" ({} checks)", group.items.size());
    if (!group.commonDetail().empty()) text += ": " + group.commonDetail();
    page.line(text, 4);
  }
}

void addWaived(Page& page, const Record& record) {
  const auto groups = waived(record);
  if (!groups.empty()) page.out += "\n  Waived (does not block):\n";
  for (const auto& group : groups)
    page.line(fmt::format("waived: {} {}: {}", devicesText(group.devices()), group.first().metric,
                          group.first().detail),
              4);
}

/// The waivers that apply to this node, with their state.
void addWaiverFile(Page& page, const Record& record) {
  if (record.waiverFile.sha256.empty()) return;
  size_t elsewhere = 0;
  page.out += fmt::format("\n  Waivers of {}:\n", printable(record.waiverFile.path, 300));
  for (const WaiverRecord& waiver : record.waivers) {
    if (waiver.state == WaiverState::kElsewhere) {
      ++elsewhere;
      continue;
    }
    std::string what = waiver.stage + (waiver.stage.empty() ? "" : " ") + waiver.metric;
    if (!waiver.device.empty()) what += " " + waiver.device;
    if (!waiver.serial.empty()) what += " serial " + waiver.serial;
    page.line(fmt::format("{}: {} (until {}, approved by {}; {}): {}", nameOf(waiver.state), what,
                          waiver.expires, waiver.approver, waiver.at, waiver.detail),
              4);
  }
  if (elsewhere > 0) page.line(fmt::format("{} for other nodes", plural(elsewhere, "waiver")), 4);
}

}  // namespace

std::string renderSummary(const Record& record, bool colour, int width) {
  Page page{Paint(colour), std::max(width, 60), ""};
  addVerdict(page, record);
  addRun(page, record);
  addStages(page, record);
  const auto found = incidents(record);
  for (size_t i = 0; i < std::min(found.size(), kMostFindings); ++i) addIncident(page, record, found[i]);
  if (found.size() > kMostFindings)
    page.out += fmt::format("\n  ... and {} more findings in record.json\n", found.size() - kMostFindings);
  addNotJudged(page, record);
  addWaived(page, record);
  addWaiverFile(page, record);
  page.out += "\n";
  return page.out;
}

}  // namespace muster
