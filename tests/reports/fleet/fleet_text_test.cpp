// SPDX-License-Identifier: Apache-2.0
// A fleet with hostile text in every field: its page, its JSON and its summary show it as text.
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/fleet/render/fleet_html.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "runner/core/text.h"
#include "tests/reports/formats/sample_records.h"

namespace muster::fleet {
namespace {

using testing::elementsOf;
using testing::expectVisible;

/// Every list has an entry, every text is `text`.
Fleet fleetWithText(const std::string& text) {
  Fleet fleet;
  fleet.acceptance = Acceptance::kRejected;
  fleet.exitCode = 1;
  fleet.planName = fleet.planSha256 = fleet.fleetId = fleet.expectedFrom = fleet.topologyFrom = text;
  fleet.waiversFrom = fleet.waiversSha256 = fleet.recordsSha256 = text;
  fleet.overrides = fleet.reasons = fleet.notes = {text};
  for (int state = 0; state < kNodeStateCount; ++state) {
    FleetNode node;
    node.name = node.reason = node.sku = node.expectedSku = node.rack = node.worstFigure = text;
    node.state = static_cast<NodeState>(state);
    node.worstShare = 0.9;
    node.keyValues = node.keyShares = {1, 1, 1, 1};
    fleet.nodes.push_back(node);
    ++fleet.states[static_cast<size_t>(state)];
  }
  for (KeyFigure& figure : fleet.keyFigures) {
    figure.name = figure.sku = figure.unit = text;
    figure.limit = figure.median = 2;
    figure.points = {{1, 0, text}, {2, 1, text}};
  }
  Incident& incident = fleet.incidents.emplace_back();
  incident.kind = incident.part = incident.serial = incident.place = incident.cause = incident.limitSource =
      incident.action = incident.command = text;
  incident.nodes = incident.beneath = {text};
  incident.nodeCount = 3;
  fleet.findings.push_back({FindingKind::kIdentity, {text}, {text}, text, text});
  fleet.drift.push_back({text, text, true, text, 1, 2, {{text, 1, {text}}}, text});
  const LeftOut out{text, text, text, text};
  fleet.duplicates = fleet.stale = fleet.foreign = fleet.withoutRecord = {out};
  fleet.quarantined.push_back({text, text, text});
  fleet.groups.push_back({text, 1, 1, 1, Outcome::kFail, text});
  fleet.deferredCount = 1;
  fleet.deferred.push_back({text, text, 0, Outcome::kFail, text});
  FleetWaiver waiver;
  waiver.waiver = {text, text, {{text, text}}, text, text, text, text, text, text, text};
  waiver.detail = text;
  fleet.waivers = {waiver};
  Suspect& suspect = fleet.suspects.emplace_back();
  suspect.node = suspect.what = suspect.serial = suspect.next = text;
  suspect.evidence = suspect.beneath = {text};
  Distribution& figure = fleet.distributions.emplace_back();
  figure.name = figure.sku = figure.unit = text;
  figure.bins = {1, 2};
  fleet.delta = FleetDelta{text, text, 0, 1, {{text, {{text, text, 0}}, {text}}}};
  return fleet;
}

PageExtras extrasWithText(const std::string& text) {
  PageExtras extras;
  extras.recordsAt = text;
  AcceptanceDocument& document = extras.document;
  for (auto* field :
       {&document.sha256, &document.number, &document.revision, &document.contract, &document.site,
        &document.supplier, &document.customer, &document.witness, &document.scope})
    *field = text;
  document.exclusions = {text};
  document.ordered = {{text, 1, text}};
  document.owners = {{"", "", "", "", text, text}};
  document.requirements = Requirements{text, {{text, text, text, {text}, {text}, {}}}, text, text};
  extras.clauses = FleetClauses(*document.requirements);
  extras.clauses.add(text, {testing::recordWithText(text)});
  extras.clauses.add(text + text, {});
  return extras;
}

/// With one deferred key, to which the fleet refers.
FleetRecords recordsWithText(const std::string& text) {
  FleetRecords records;
  DeferredKey key;
  key.stage = key.metric = key.caseId = key.expectation.remedy = text;
  key.labels = {{text, text}};
  records.names->deferred.number("key", [&] { return key; });
  return records;
}

std::string pageOf(const std::string& text) {
  const testing::TemplatesFolder templates;
  auto html = renderFleetHtml(fleetWithText(text), recordsWithText(text), std::string(64, 'a'),
                              templates.path(), extrasWithText(text));
  return html.ok() ? *std::move(html) : html.error().text();
}

TEST(FleetText, HostileTextIsTextInThePage) {
  std::set<std::string> plain = elementsOf(pageOf("x"));
  ASSERT_GT(plain.size(), 20U) << pageOf("x").substr(0, 400);
  plain.merge(elementsOf(pageOf("")));
  for (const std::string& text : testing::hostileTexts()) {
    SCOPED_TRACE(printable(text, 60));
    const std::string html = pageOf(text);
    expectVisible(html, true);
    for (const std::string& element : elementsOf(html)) EXPECT_TRUE(plain.count(element) > 0) << element;
  }
}

TEST(FleetText, HostileTextIsTextInFleetJsonAndInTheSummary) {
  for (const std::string& text : testing::hostileTexts()) {
    SCOPED_TRACE(printable(text, 60));
    const std::string json =
        fleetText(fleetWithText(text), recordsWithText(text), extrasWithText(text).clauses);
    const auto read = parseJson(json);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ((*read)["nodes"].size(), static_cast<size_t>(kNodeStateCount));
    EXPECT_EQ((*read)["clauses"].size(), 1U);
    expectVisible(renderFleetSummary(fleetWithText(text), 100), false);
  }
}

}  // namespace
}  // namespace muster::fleet
