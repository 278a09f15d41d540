// SPDX-License-Identifier: Apache-2.0
// See view.h: plain lines and the live terminal view; JSON events are in view_json.cpp.
#include "runner/app/view/view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "reports/terminal/terminal.h"
#include "runner/app/process/interrupt.h"
#include "runner/app/view/resume_command.h"
#include "runner/app/view/view_json.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr int kWidestBar = 24;
constexpr int kDefaultColumns = 100;
constexpr int kNarrowestSummary = 40;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool dumbTerminal() {
  return variable("TERM").empty() || variable("TERM") == "dumb";
}

bool useColour() {
  return isatty(1) != 0 && variable("NO_COLOR").empty() && !dumbTerminal();
}

/// Whether the locale lets a terminal be sent more than ASCII.
bool speaksUtf8() {
  std::string_view locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = variable(name);
  return locale.ends_with("UTF-8") || locale.ends_with("utf8");
}

int columns() {
  winsize size{};
  if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultColumns;
}

std::string coloured(Outcome outcome, const std::string& text, bool colour) {
  if (!colour) return text;
  const char* code = "32";
  if (outcome == Outcome::kFail || outcome == Outcome::kError || outcome == Outcome::kFlaky) code = "1;31";
  if (outcome == Outcome::kWarn || outcome == Outcome::kUnjudged) code = "33";
  if (outcome == Outcome::kSkipped || outcome == Outcome::kElsewhere || outcome == Outcome::kDeferred)
    code = "36";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string countsText(const StageRecord& stage) {
  Accounting accounting;
  for (const Verdict& verdict : stage.verdicts) accounting.add(verdict);
  std::vector<std::string> parts;
  for (int i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (accounting.of(outcome) > 0)
      parts.push_back(fmt::format("{} {}", accounting.of(outcome), outcomeName(outcome)));
  }
  return parts.empty() ? "nothing judged" : join(parts, ", ");
}

/// One line for each blocking verdict, so that a long run shows its trouble at once.
std::vector<std::string> troubleLines(const StageRecord& stage) {
  constexpr size_t kMost = 4;
  std::vector<std::string> lines;
  size_t more = 0;
  for (const Verdict& verdict : stage.verdicts) {
    if (verdict.outcome != Outcome::kFail && verdict.outcome != Outcome::kError &&
        verdict.outcome != Outcome::kFlaky && verdict.outcome != Outcome::kWarn)
      continue;
    const std::string metric = verdict.metric.empty() ? "" : verdict.metric + " of ";
    std::string line =
        fmt::format("      {}: {}{}", outcomeName(verdict.outcome), metric, printable(verdict.detail));
    if (std::find(lines.begin(), lines.end(), line) != lines.end()) continue;
    if (lines.size() < kMost)
      lines.push_back(std::move(line));
    else
      ++more;
  }
  if (more > 0) lines.push_back(fmt::format("      and {} more", more));
  return lines;
}

std::string stageText(const StageRecord& stage, bool colour) {
  if (stage.state != StageState::kRan)
    return fmt::format("{}: {}", coloured(stage.outcome, nameOf(stage.state), colour),
                       printable(stage.reason));
  std::set<std::string> devices;
  for (const RankRecord& rank : stage.ranks)
    if (!rank.device.empty()) devices.insert(rank.device);
  const std::string where = devices.empty()
                                ? "this node"
                                : fmt::format("{} device{}", devices.size(), devices.size() == 1 ? "" : "s");
  return fmt::format("{}: {}, {}, {}", coloured(stage.outcome, outcomeName(stage.outcome), colour),
                     countsText(stage), where, formatQuantity(stage.duration, "s", 3));
}

/// Lines without control sequences but colours, where these are asked for: files, pipes, --plain.
class PlainView : public RunView {
 public:
  PlainView(bool colour, std::vector<std::filesystem::path> pluginFolders)
      : colour_(colour), pluginFolders_(std::move(pluginFolders)) {}
  void runStarted(const Record& record, const std::filesystem::path& folder) override {
    const std::string sku = record.profile.name.empty() ? record.skuHow : record.profile.name;
    line(fmt::format("{}muster {}: plan {} on {} ({}), {}", record.simulated ? "SIMULATED " : "",
                     record.toolVersion, record.plan.name, printable(record.node), record.backend,
                     printable(sku)));
    line(fmt::format("run folder {}", printable(folder.string())));
  }
  void stageStarted(const StageStart& stage) override {
    line(fmt::format("[{}/{}] {}: {} (timeout {})", stage.index + 1, stage.count, stage.name, stage.what,
                     formatQuantity(stage.timeout, "s")));
    nextReport_ = kReportEvery;
  }
  void stageProgress(const StageProgress& progress) override {
    if (progress.elapsed < nextReport_) return;
    nextReport_ = progress.elapsed + kReportEvery;
    line("      " + progressText(progress));
  }
  void stageEnded(const StageRecord& stage) override {
    line("      " + stageText(stage, colour_));
    for (const std::string& trouble : troubleLines(stage)) line(trouble);
  }
  void note(const std::string& text) override { line(printable(text)); }
  void runEnded(const Record& record, const std::filesystem::path& folder) override {
    std::fputs(renderSummary(record, colour_, std::max(columns(), kNarrowestSummary)).c_str(), stdout);
    line(fmt::format("report {}", printable((folder / "report.html").string())));
    const bool rejected = record.acceptance == Acceptance::kRejected && interrupted().load();
    if (record.acceptance != Acceptance::kInterrupted && !rejected) return;
    if (const std::string why = interruptionText(); !why.empty()) line("interrupted: " + why);
    const bool together = record.nodeCount > 1 && !record.simulated &&
                          std::any_of(record.stages.begin(), record.stages.end(),
                                      [](const StageRecord& s) { return s.scope == Scope::kCluster; });
    line(fmt::format("resume {}with {}", together ? "the runs of all nodes together, here " : "",
                     resumeCommand(record, folder, pluginFolders_)));
  }

 protected:
  static constexpr double kReportEvery = 30;
  static std::string progressText(const StageProgress& progress) {
    std::string text = formatQuantity(progress.elapsed, "s", 3);
    if (progress.fraction > 0)
      text +=
          fmt::format(" of about {}, {:.0f}%", formatQuantity(progress.elapsed / progress.fraction, "s", 2),
                      progress.fraction * 100);
    if (!progress.text.empty()) text += ": " + printable(progress.text);
    return text;
  }
  virtual void line(const std::string& text) {
    std::fputs((text + "\n").c_str(), stdout);
    std::fflush(stdout);
  }

 private:
  bool colour_;
  std::vector<std::filesystem::path> pluginFolders_;
  double nextReport_ = kReportEvery;
};

/// The live view: a progress bar that is redrawn in place under the lines of PlainView.
class LiveView : public PlainView {
 public:
  explicit LiveView(const std::vector<std::filesystem::path>& pluginFolders)
      : PlainView(useColour(), pluginFolders) {}
  ~LiveView() override { erase(); }
  void stageStarted(const StageStart& stage) override {
    PlainView::stageStarted(stage);
    timeout_ = stage.timeout;
  }
  void stageProgress(const StageProgress& progress) override {
    std::string text = progressText(progress);
    if (progress.fraction <= 0) text += fmt::format(" (timeout {})", formatQuantity(timeout_, "s"));
    std::fputs(("\r\x1b[2K" + liveLine(progress.fraction, text, columns(), speaksUtf8())).c_str(), stdout);
    std::fflush(stdout);
    drawn_ = true;
  }

 protected:
  void line(const std::string& text) override {
    erase();
    PlainView::line(text);
  }

 private:
  void erase() {
    if (drawn_) std::fputs("\r\x1b[2K", stdout);
    drawn_ = false;
  }
  bool drawn_ = false;
  double timeout_ = 0;
};

}  // namespace

std::string liveLine(double fraction, const std::string& text, int columns, bool utf8) {
  // A line that fills the last column wraps, and what wrapped is not erased: one stays free.
  const std::string indent(columns < kNarrowestSummary ? 0 : 6, ' ');
  const int width = std::min(kWidestBar, columns / 4);
  const int filled = std::clamp(static_cast<int>(fraction * width), 0, width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : ".");
  const auto room = static_cast<size_t>(std::max(0, columns - static_cast<int>(indent.size()) - width - 3));
  return indent + bar + "  " + printable(text, room);
}

std::string stageLine(const StageRecord& stage) {
  return stageText(stage, useColour());
}

std::unique_ptr<RunView> makeView(ViewKind kind, const std::vector<std::filesystem::path>& pluginFolders) {
  if (kind == ViewKind::kJson) return makeJsonView();
  if (kind == ViewKind::kAuto && isatty(1) != 0 && !dumbTerminal())
    return std::make_unique<LiveView>(pluginFolders);
  return std::make_unique<PlainView>(false, pluginFolders);
}

}  // namespace muster
