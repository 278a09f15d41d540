// SPDX-License-Identifier: Apache-2.0
// The fleet's report in a real browser: quiet, within its borders, the node under the pointer named, tables
// sorted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reports/fleet/render/fleet_html.h"
#include "tests/browser/browser.h"
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
    if (i % 20 == 0)
      fleet.suspects.push_back(
          {fleet::SuspectKind::kDevice, node.name, "gpu1", "123", true, {"slow"}, "swap it"});
  }
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
  EXPECT_LE(browser_.evaluate("document.querySelectorAll('#suspects tbody tr').length").get<int>(), 200);
  const auto text = browser_.evaluate("document.querySelector('#suspects').innerText").get<std::string>();
  EXPECT_NE(text.find("300 more are in fleet.json"), std::string::npos) << text.substr(0, 200);
}

TEST_F(FleetReport, NamesTheNodeUnderThePointer) {
  browser_.evaluate("document.querySelector('#state-map').scrollIntoView()");
  const Json box = browser_.evaluate(
      "(r => [r.x, r.y + 60, r.width / 100])(document.querySelector('#state-map').getBoundingClientRect())");
  browser_.moveMouse(box[0].get<double>() + 2.5 * box[2].get<double>(), box[1]);
  const auto tip =
      browser_
          .evaluate("document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent")
          .get<std::string>();
  EXPECT_EQ(tip.rfind("n", 0), 0u) << tip;
  EXPECT_EQ(tip.substr(0, tip.find(' ')).substr(tip.find(' ') - 1), "2") << tip;
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
  EXPECT_LT(lines("#suspects thead th:first-child"), 2);
  EXPECT_GT(
      browser_.evaluate("document.querySelector('#figures td:last-child').getBoundingClientRect().width")
          .get<double>(),
      50)
      << "the SKU's name";
  EXPECT_LT(lines("#figures tbody th"), 6) << "the figure's name";
}

TEST_F(FleetReport, SortsATableByClick) {
  browser_.evaluate("document.querySelector('#suspects th:nth-child(2)').click()");
  browser_.evaluate("document.querySelector('#suspects th:nth-child(2)').click()");
  const auto first =
      browser_.evaluate("document.querySelector('#suspects tbody tr th').innerText").get<std::string>();
  EXPECT_NE(first, "n0");
}

}  // namespace
}  // namespace muster
