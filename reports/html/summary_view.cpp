// SPDX-License-Identifier: Apache-2.0
// The first page: verdict, reasons, the facts of the run and the accounting.
#include <fmt/format.h>

#include <map>

#include "reports/html/sections.h"
#include "reports/html/symbols.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/deviations.h"
#include "runner/record/markup.h"

namespace muster {
namespace {

/// "8 x NVIDIA H100 80GB HBM3"; several models are listed one by one.
std::string devicesSummary(const Record& record) {
  std::vector<std::string> order;
  std::map<std::string, int> counts;
  if (record.inventory.is_object() && record.inventory.contains("devices") &&
      record.inventory["devices"].is_array()) {
    for (const auto& device : record.inventory["devices"]) {
      std::string name = "unnamed device";
      if (device.is_object() && device.contains("name") && device["name"].is_string()) name = device["name"];
      if (counts[name]++ == 0) order.push_back(name);
    }
  }
  std::vector<std::string> parts;
  parts.reserve(order.size());
  for (const auto& name : order) parts.push_back(fmt::format("{} × {}", counts[name], name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string nodeText(const Record& record) {
  if (record.nodeCount <= 1) return record.node;
  return fmt::format("{} (node {} of {})", record.node, record.nodeRank, record.nodeCount);
}

View fact(const std::string& name, const std::string& value, const std::string& note = "") {
  View view;
  view.text("name", name).text("value", value).text("note", note);
  return view;
}

std::vector<View> factsOf(const Record& record) {
  std::vector<View> facts = {
      fact("Devices", devicesSummary(record)),
      fact("SKU profile", record.profile.name.empty() ? "unknown SKU" : record.profile.name, skuNote(record)),
      fact("Plan", record.plan.name),
      fact("Backend", record.backend),
      fact("Started", formatUtc(record.started)),
      fact("Duration", formatQuantity(record.finished - record.started, "s", 3),
           record.simulated ? "wall time; stage times are simulated" : ""),
      fact("Run", record.runId),
      fact("Tool", "Muster " + record.toolVersion),
  };
  if (record.resumed > 0)
    facts.push_back(fact("Resumed", plural(static_cast<size_t>(record.resumed), "time")));
  if (!record.overrides.empty()) facts.push_back(fact("Overrides", join(record.overrides, ", ")));
  return facts;
}

std::vector<View> countsOf(const Accounting& accounting) {
  std::vector<View> counts;
  for (int i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (accounting.of(outcome) == 0) continue;
    View view;
    view.text("outcome", outcomeName(outcome)).text("symbol", outcomeSymbol(outcome));
    view.text("count", std::to_string(accounting.of(outcome)));
    counts.push_back(std::move(view));
  }
  return counts;
}

/// One bar whose parts are as wide as the outcomes are many; every part stays visible.
std::string accountingBar(const Accounting& accounting) {
  constexpr double kWidth = 1000;
  constexpr double kLeast = 10;
  int kinds = 0;
  for (const size_t count : accounting.counts) kinds += count > 0 ? 1 : 0;
  if (accounting.total() == 0) return "";
  const double spare = kWidth - kLeast * kinds;
  std::string svg =
      "<svg class=\"balance\" viewBox=\"0 0 1000 14\" preserveAspectRatio=\"none\" aria-hidden=\"true\">";
  double x = 0;
  for (int i = 0; i < kOutcomeCount; ++i) {
    const size_t count = accounting.counts[i];
    if (count == 0) continue;
    const double width =
        kLeast + spare * static_cast<double>(count) / static_cast<double>(accounting.total());
    svg += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"14\"/>",
                       outcomeName(static_cast<Outcome>(i)), x, width - 2);
    x += width;
  }
  return svg + "</svg>";
}

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

}  // namespace

void addSummary(View& page, const Record& record) {
  page.text("acceptance", nameOf(record.acceptance)).text("verdict", acceptanceText(record.acceptance));
  page.text("verdict_symbol", acceptanceSymbol(record.acceptance));
  page.text("verdict_meaning", acceptanceMeaning(record.acceptance, record.accounting.of(Outcome::kWaived)));
  page.text("exit_code", std::to_string(record.exitCode));
  page.flag("simulated", record.simulated).text("scenario", record.scenario);
  page.text("node", nodeText(record)).text("plan_name", record.plan.name).text("run_id", record.runId);
  page.text("version", record.toolVersion).text("started", formatUtc(record.started));
  page.flag("unknown_sku", record.profile.name.empty());
  page.flag("unknown_sku_allowed", record.profile.name.empty() && record.allowUnknownSku);
  page.text("rejudged", rejudgedText(record)).text("partial", record.selection.text());
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
  page.list("facts", factsOf(record));
  page.list("counts", countsOf(record.accounting));
  page.text("balance", balanceText(record.accounting))
      .markup("balance_bar", accountingBar(record.accounting));
}

}  // namespace muster
