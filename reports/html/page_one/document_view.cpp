// SPDX-License-Identifier: Apache-2.0
// The document line and the signatures.
#include <fmt/format.h>

#include <map>

#include "reports/html/page_one/page_one.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

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
                         fieldView("Tested", windowText(record.started, record.finished)),
                         fieldView("Plan, profile", pairText(record.plan.name, profile)),
                         fieldView("Scope", document.scope.empty() ? devicesText(record) : document.scope)});
  addSigners(page, document);
}

}  // namespace muster
