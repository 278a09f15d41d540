// SPDX-License-Identifier: Apache-2.0
// The punch list: what is left to do, a line for each incident.
#include <fmt/format.h>

#include <algorithm>

#include "reports/html/page/symbols.h"
#include "reports/html/page_one/categories.h"
#include "reports/html/page_one/page_one.h"
#include "runner/core/text.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

constexpr size_t kMostLines = 4;

/// "gemm throughput dtype=bf16 and 4 more", or the detail line.
std::string faultText(const Incident& incident) {
  const Deviation& main = incident.main();
  const Verdict& worst = *main.worst().verdict;
  if (worst.metric.empty()) return worst.detail;
  std::string text = metricWords(worst.metric);
  if (const std::string where = caseText(worst); !where.empty() && where != "telemetry") text += " " + where;
  for (size_t i = 1; i < incident.findings.size(); ++i)
    text += ", " + metricWords(incident.findings[i].first().metric);
  return text;
}

std::string partName(const Deviation& deviation) {
  const auto devices = deviation.devices();
  if (devices.size() > 2) return plural(devices.size(), "device");
  const std::string who = deviation.who();
  return who.empty() ? "node" : who;
}

View lineView(const Record& record, const Incident& incident, const AcceptanceDocument& document) {
  const Deviation& main = incident.main();
  const DeviationItem& worst = main.worst();
  const auto devices = main.devices();
  const DevicePart part = devices.size() == 1 ? deviceOf(record, devices.front()) : DevicePart{};
  const FindingOwner* owner = document.ownerOf({record.node, part.id, part.serial, worst.verdict->metric});
  View view;
  const auto put = [&](const char* name, const std::string& text) {
    view.text(name, printable(text, kLongestCell));
  };
  put("part", partName(main));
  put("serial", part.serial);
  put("fault", faultText(incident));
  view.text("outcome", outcomeName(main.outcome)).text("symbol", outcomeSymbol(main.outcome));
  view.text("severity", incident.blocks() ? "blocking" : "minor");
  put("measured", measuredText(*worst.stage, *worst.verdict));
  const std::string required = wantedText(*worst.verdict);
  put("required", required.substr(0, required.find(" (")));
  put("margin", marginText(*worst.verdict));
  std::string action = incident.action();
  if (action.size() > kLongestCell) action.resize(std::min(action.find(" ("), action.size()));  // the command
  put("action", action);
  put("owner", owner == nullptr ? "" : owner->name);
  put("due", owner == nullptr ? "" : owner->due);
  return view;
}

}  // namespace

void addPunchList(View& page, const Record& record, const AcceptanceDocument& document) {
  const auto found = incidents(record);
  std::vector<View> lines;
  for (size_t i = 0; i < found.size() && i < kMostLines; ++i) {
    lines.push_back(lineView(record, found[i], document));
    lines.back().text("number", std::to_string(i + 1));
  }
  page.list("punch", std::move(lines));
  page.text("punch_left", found.size() > kMostLines ? std::to_string(found.size() - kMostLines) : "");
}

}  // namespace muster
