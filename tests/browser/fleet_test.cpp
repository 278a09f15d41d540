// SPDX-License-Identifier: Apache-2.0
// The fleet's report in a real browser: quiet, within its borders, tables
// sorted and searched, also without a script.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/fleet/render/fleet_html.h"
#include "tests/browser/browser.h"
#include "tests/reports/fleet/faulty_fleet.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::Browser;

/// Ten thousand nodes, some in each state, with names that try to break out.
fleet::Fleet largeFleet() {
  fleet::Fleet fleet;
  fleet.acceptance = Acceptance::kRejected;
  fleet.exitCode = 1;
  fleet.simulated = true;
  fleet.planName = testing::kHostileName;
  fleet.expectedFrom = "nodes.txt";
  for (size_t i = 0; i < 10'000; ++i) {
    fleet::FleetNode node;
    node.name = fmt::format("n{}", i);
    node.state = i % 50 == 0 ? static_cast<fleet::NodeState>(i / 50 % fleet::kNodeStateCount)
                             : fleet::NodeState::kAccepted;
    node.reason = node.state == fleet::NodeState::kAccepted ? "" : testing::kHostileName;
    node.worstShare = 1 - static_cast<double>(i % 7) / 30;
    node.worstFigure = "gpu3, gemm";
    ++fleet.states[static_cast<size_t>(node.state)];
    fleet.nodes.push_back(node);
    if (i % 20 == 0) {
      fleet::Incident& incident = fleet.incidents.emplace_back();
      incident.kind = "device";
      incident.nodes = {node.name};
      incident.nodeCount = 1;
      incident.part = "gpu1";
      incident.cause = incident.action = incident.command = incident.place = testing::kHostileName;
      incident.beneath = {testing::kHostileName};
    }
  }
  fleet::KeyFigure& key = fleet.keyFigures[0];
  key.name = testing::kHostileName;
  key.unit = "FLOP/s";
  key.limit = 7e14;
  key.median = 7.2e14;
  for (size_t i = 0; i < 80'000; ++i)
    key.points.push_back({6.9e14 + 5e9 * static_cast<double>(i), i / 8, testing::kHostileName});
  fleet::Distribution figure;
  figure.name = "host-copy: memory.host_to_device_bandwidth (engine=copy_engine numa=near)";
  figure.sku = "h100-sxm5-80gb";
  figure.unit = "FLOP/s";
  figure.n = 80'000;
  figure.low = figure.q05 = figure.median = figure.q95 = figure.high = 7.266e14;
  figure.bins.assign(40, 7);
  fleet.distributions.push_back(figure);
  return fleet;
}

class FleetReport : public ::testing::Test {
 protected:
  FleetReport() {
    const testing::TemplatesFolder templates;
    const auto html =
        renderFleetHtml(largeFleet(), fleet::FleetRecords(), std::string(64, 'd'), templates.path());
    if (!html.ok()) throw std::runtime_error(html.error().text());
    bytes_ = html->size();
    browser_.open(folder_.write("fleet.html", *html));
  }
  testing::TempDir folder_;
  size_t bytes_ = 0;
  Browser browser_;
};

TEST_F(FleetReport, IsQuietAndNothingHostileRuns) {
  const auto activity = browser_.activity();
  EXPECT_TRUE(activity.requests.empty()) << activity.requests.front();
  EXPECT_TRUE(activity.messages.empty()) << activity.messages.front();
  EXPECT_TRUE(activity.dialogs.empty()) << activity.dialogs.front();
}

TEST_F(FleetReport, StaysBelowFiveMegabytesAndSaysWhatItLeftOut) {
  EXPECT_LT(bytes_, 5'000'000u);
  EXPECT_LE(browser_.evaluate("document.querySelectorAll('#findings tbody tr').length").get<int>(), 200);
  const auto text = browser_.evaluate("document.querySelector('#findings').innerText").get<std::string>();
  EXPECT_NE(text.find("300 more are in fleet.json"), std::string::npos) << text.substr(0, 200);
}

TEST_F(FleetReport, LinksEachCellOfTheMapToItsNode) {
  EXPECT_EQ(browser_.evaluate("document.querySelectorAll('.rack > a').length").get<int>(), 10'000);
  browser_.evaluate("document.querySelector('.rack > a[href=\"#n4321\"]').click()");
  EXPECT_EQ(
      browser_.evaluate("document.querySelector('.all-nodes tr:target th').innerText").get<std::string>(),
      "n4321");
}

TEST_F(FleetReport, SearchesNodesAndKeepsTheSearchInTheAddress) {
  const char* const kShown =
      "Array.from(document.querySelectorAll('.all-nodes tbody tr')).filter(r => "
      "!r.classList.contains('filtered')).length";
  browser_.evaluate("location.hash = '#q=n4321'");
  browser_.evaluate("window.dispatchEvent(new Event('hashchange'))");
  EXPECT_EQ(browser_.evaluate(kShown).get<int>(), 1);
  browser_.evaluate("location.hash = '#q=%'");
  browser_.evaluate("window.dispatchEvent(new Event('hashchange'))");
  EXPECT_EQ(browser_.evaluate("document.getElementById('q').value").get<std::string>(), "%");
}

TEST_F(FleetReport, ShowsNodesOfOneStateByATab) {
  browser_.evaluate("document.getElementById('t-rejected').click()");
  const auto shown = browser_.evaluate(
      "Array.from(document.querySelectorAll('.all-nodes tbody tr')).filter(r => "
      "getComputedStyle(r).display !== 'none').every(r => "
      "r.classList.contains('s-rejected'))");
  EXPECT_TRUE(shown.get<bool>());
}

TEST_F(FleetReport, HasLegendsInTheColoursOfTheMapAlsoInTheDark) {
  for (const char* scheme : {"light", "dark"}) {
    browser_.command("Emulation.setEmulatedMedia",
                     {{"features", Json::array({{{"name", "prefers-color-scheme"}, {"value", scheme}}})}});
    for (const char* state : {"rejected", "incomplete", "missing"}) {
      const auto colours = [&](const std::string& selector) {
        return browser_
            .evaluate("(s => s.backgroundColor + s.borderColor)(getComputedStyle(document.querySelector('" +
                      selector + "')))")
            .get<std::string>();
      };
      EXPECT_EQ(colours(std::string(".rack .s-") + state), colours(std::string(".legend .s-") + state))
          << scheme << " " << state;
    }
  }
}

TEST_F(FleetReport, DoesNotScrollSideways) {
  EXPECT_LE(browser_.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                .get<int>(),
            0);
}

TEST_F(FleetReport, PrintsWordsThatAreNotBrokenIntoLetters) {
  browser_.command("Emulation.setEmulatedMedia", {{"media", "print"}});
  browser_.command("Emulation.setDeviceMetricsOverride",
                   {{"width", 690}, {"height", 1000}, {"deviceScaleFactor", 1}, {"mobile", false}});
  const auto lines = [&](const std::string& selector) {
    return browser_
        .evaluate(
            "(c => c.getBoundingClientRect().height / parseFloat(getComputedStyle(c).lineHeight))("
            "document.querySelector('" +
            selector + "'))")
        .get<double>();
  };
  EXPECT_LT(lines("#findings thead th:first-child"), 2);
  EXPECT_GT(
      browser_.evaluate("document.querySelector('#figures td:last-child').getBoundingClientRect().width")
          .get<double>(),
      50)
      << "the SKU's name";
  EXPECT_LT(lines("#figures tbody th"), 6) << "the figure's name";
}

TEST_F(FleetReport, SortsATableByClick) {
  browser_.evaluate("document.querySelector('#findings th:nth-child(2)').click()");
  browser_.evaluate("document.querySelector('#findings th:nth-child(2)').click()");
  const auto first =
      browser_.evaluate("document.querySelector('#findings tbody tr th').innerText").get<std::string>();
  EXPECT_NE(first, "n0");
}

/// From a failing fleet of 300 nodes to all that a technician needs of each fault: no click, at most.
TEST(FaultyFleetReport, NamesEachFaultWithoutAClick) {
  testing::FaultyFleet made(5);
  const testing::Faults faults = made.someOfEachKind();
  const fleet::Fleet fleet = made.assess(faults, {});
  const testing::TemplatesFolder templates;
  fleet::PageExtras extras;
  extras.recordsAt = ".";
  const auto html = renderFleetHtml(fleet, made.records(), std::string(64, 'd'), templates.path(), extras);
  ASSERT_TRUE(html.ok()) << html.error().text();
  testing::TempDir folder;
  Browser browser;
  browser.open(folder.write("fleet.html", *html));
  // What is folded up is not in innerText.
  const Json rows = browser.evaluate(
      "Array.from(document.querySelectorAll('#findings tbody tr'), r => [r.innerText, "
      "(r.querySelector('th a') || {}).href || '', r.checkVisibility()])");
  EXPECT_EQ(rows.size(), faults.size());
  for (const auto& [node, fault] : faults) {
    const std::string name = testing::FaultyFleet::nameOf(node);
    SCOPED_TRACE(std::string(fault.first->name) + " on " + name);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Json& one) {
      return one[0].get<std::string>().find(name) != std::string::npos;
    });
    ASSERT_NE(row, rows.end());
    const auto at = std::find_if(fleet.incidents.begin(), fleet.incidents.end(), [&](const auto& one) {
      return one.nodes == std::vector<std::string>{name};
    });
    ASSERT_NE(at, fleet.incidents.end());
    std::vector<std::string> needed = {testing::FaultyFleet::placeOf(node), at->cause, at->action,
                                       at->command};
    if (fault.first->device) needed.insert(needed.end(), {fault.second, at->serial});
    if (fault.first->limit) needed.push_back(at->limitSource);
    for (std::string text : needed) {
      if (const size_t gap = text.find("  # on "); gap != std::string::npos)
        text.erase(gap, 1);  // as HTML does
      EXPECT_FALSE(text.empty());
      EXPECT_NE((*row)[0].get<std::string>().find(text), std::string::npos) << text << "\n" << (*row)[0];
    }
    EXPECT_TRUE((*row)[2].get<bool>());
    EXPECT_TRUE((*row)[1].get<std::string>().ends_with(name + "/report.html")) << (*row)[1];
  }
}

}  // namespace
}  // namespace muster
