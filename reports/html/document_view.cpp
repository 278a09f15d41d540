// SPDX-License-Identifier: Apache-2.0
// The document line and the signatures.
#include <fmt/format.h>

#include <map>

#include "reports/html/page_one.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/deviations.h"
#include "runner/record/parts.h"

namespace muster {
namespace {

/// An empty value is a blank to be filled in by hand.
View fieldView(const std::string& name, const std::string& value) {
  View view;
  view.text("name", name).text("value", printable(value, kLongestText)).flag("blank", value.empty());
  return view;
}

/// "ATR-2026-0117, rev. 1".
std::string numberText(const AcceptanceDocument& document) {
  if (document.revision.empty()) return document.number;
  return document.number + (document.number.empty() ? "rev. " : ", rev. ") + document.revision;
}

std::string pairText(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

/// "2026-11-22 02:17 to 02:22 UTC"; both dates where they differ.
std::string windowText(const Record& record) {
  const auto minutes = [](double time) {
    std::string text = formatUtc(time).substr(0, 16);
    if (text.size() > 10) text[10] = ' ';
    return text;
  };
  const std::string begin = minutes(record.started), end = minutes(record.finished);
  const bool sameDay = begin.substr(0, 10) == end.substr(0, 10) && end.size() > 11;
  return fmt::format("{} to {} UTC", begin, sameDay ? end.substr(11) : end);
}

/// "8 × NVIDIA H100 80GB HBM3".
std::string devicesText(const Record& record) {
  std::map<std::string, size_t> counts;
  for (const DevicePart& part : devicesOf(record)) ++counts[part.name.empty() ? "unnamed device" : part.name];
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) texts.push_back(fmt::format("{} × {}", count, name));
  return texts.empty() ? "no devices" : join(texts, ", ");
}

std::string nodeText(const Record& record) {
  if (record.nodeCount <= 1) return record.node;
  return fmt::format("{} (node {} of {})", record.node, record.nodeRank, record.nodeCount);
}

}  // namespace

void addDocument(View& page, const Record& record, const AcceptanceDocument& document) {
  page.text("node", nodeText(record)).text("run_id", record.runId).text("plan_name", record.plan.name);
  page.text("started", formatUtc(record.started)).text("version", record.toolVersion);
  const std::string profile = record.profile.name.empty() ? "unknown SKU" : record.profile.name;
  page.list("document", {fieldView("Document", numberText(document)),
                         fieldView("Contract, site", pairText(document.contract, document.site)),
                         fieldView("Supplier", document.supplier), fieldView("Customer", document.customer),
                         fieldView("Node, run", pairText(record.node, record.runId)),
                         fieldView("Tested", windowText(record)),
                         fieldView("Plan, profile", pairText(record.plan.name, profile)),
                         fieldView("Scope", document.scope.empty() ? devicesText(record) : document.scope)});
  page.text("exclusions", join(document.exclusions, "; "));
  page.list("signers", {fieldView("Supplier", document.supplier), fieldView("Customer", document.customer),
                        fieldView("Witness", document.witness)});
  page.text("document_sha256", document.sha256);
}

}  // namespace muster
