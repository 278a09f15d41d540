// SPDX-License-Identifier: Apache-2.0
// The first page: what the record knows, what acceptance.toml adds, and blanks for the rest.
#include "reports/html/page_one/page_one.h"

#include <gtest/gtest.h>

#include "reports/html/html.h"
#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::settle;
using testing::sickRecord;

std::string renderWith(const Record& record, const AcceptanceDocument& document = {}) {
  const testing::TemplatesFolder templates;
  auto html = renderHtml(record, sha256Hex(recordText(record)), templates.path(), document);
  EXPECT_TRUE(html.ok()) << html.error().text();
  return html.ok() ? *html : "";
}

/// The markup of the first page.
std::string pageOne(const Record& record, const AcceptanceDocument& document = {}) {
  const std::string html = renderWith(record, document);
  const size_t begin = html.find("<section class=\"sheet\"");
  return html.substr(begin, html.find("<section id=\"deviations\"") - begin);
}

void expectPart(const std::string& html, const std::string& part) {
  EXPECT_NE(html.find(part), std::string::npos) << "missing: " << part;
}

AcceptanceDocument fullDocument() {
  AcceptanceDocument document;
  document.sha256 = sha256Hex("document");
  document.number = "ATR-7";
  document.revision = "2";
  document.contract = "C-4711";
  document.site = "Hall 2";
  document.supplier = "Supplier Ltd";
  document.customer = "Customer Ltd";
  document.witness = "Witness Ltd";
  document.scope = "one node";
  document.exclusions = {"storage"};
  document.ordered = {{"NVIDIA H100 80GB HBM3", 8, ""}, {"driver", 0, "550.54.15"}, {"spare fan", 2, ""}};
  document.owners = {{"", "gpu3", "", "", "field service", "2026-12-05"}};
  return document;
}

TEST(PageOne, PrintsWhatOnlyPeopleKnow) {
  const AcceptanceDocument document = fullDocument();
  const std::string page = pageOne(sickRecord(), document);
  for (const char* part : {"ATR-7, rev. 2", "C-4711, Hall 2", "Supplier Ltd", "Customer Ltd", "Witness Ltd",
                           "one node", "storage", "field service", "2026-12-05"})
    expectPart(page, part);
  expectPart(page, document.sha256);
}

TEST(PageOne, LeavesBlanksForWhatNobodySaid) {
  const std::string page = pageOne(healthyRecord());
  expectPart(page, "<dt>Supplier</dt><dd class=\"blank\"></dd>");
  expectPart(page, "8 × NVIDIA H100 80GB HBM3");
}

TEST(PageOne, CountsPartsOrderedFoundAndAccepted) {
  const std::string page = pageOne(sickRecord(), fullDocument());
  // gpu3 is slow, gpu5 crashed; a flaky value of another device blocks, too.
  expectPart(
      page,
      "NVIDIA H100 80GB HBM3</th><td class=\"num\">8</td><td class=\"num\">8</td><td class=\"num\">5</td>");
  expectPart(page,
             "driver</th><td class=\"num\">550.54.15</td><td class=\"num\">550.54.15</td><td "
             "class=\"num\">yes</td>");
  expectPart(page, "spare fan</th><td class=\"num\">2</td><td class=\"num\">0</td><td class=\"num\">0</td>");
}

TEST(PageOne, AcceptsNoPartOfAnUndecidedNode) {
  Record record = healthyRecord();
  record.acceptance = Acceptance::kInterrupted;
  expectPart(pageOne(record), "<td class=\"num\">8</td><td class=\"num\">undecided</td>");
}

TEST(PageOne, SaysWhoConcededWhat) {
  Record record = healthyRecord();
  record.stages[1].verdicts[3].outcome = Outcome::kWaived;
  settle(record);
  WaiverRecord waiver;
  waiver.stage = "gemm";
  waiver.metric = "compute.gemm_throughput";
  waiver.device = "gpu3";
  waiver.approver = "J. Doe";
  waiver.expires = "2026-12-31";
  waiver.covered = 1;
  record.waivers = {waiver};
  const std::string page = pageOne(record);
  expectPart(page, "<p class=\"verdict-word\">ACCEPTED WITH CONCESSIONS</p>");
  expectPart(page,
             "gpu3 (serial 1652324041121, 0000:4b:00.0), gemm compute.gemm_throughput: approved by J. Doe, "
             "until 2026-12-31");
}

TEST(PageOne, SaysSimulatedInTheStripAndAboveTheSignatures) {
  const std::string page = pageOne(sickRecord());
  const std::string strip = page.substr(page.find("class=\"strip\""), 400);
  expectPart(strip, "SIMULATED");
  expectPart(page.substr(page.find("id=\"signatures\"")), "SIMULATED");
}

TEST(PageOne, HasOneTileForEachCategory) {
  const std::string page = pageOne(sickRecord());
  for (const char* name : {"Health", "Compute", "Memory", "Links", "Stability"})
    expectPart(page, std::string("<b>") + name + "</b>");
  expectPart(page, "worst gpu3: ");
}

TEST(PageOne, EscapesEveryTextOfTheAcceptanceDocument) {
  AcceptanceDocument document = fullDocument();
  const std::string hostile = "\"'><img src=x onerror=alert(1)>{{{style}}}</style></script>";
  for (auto* text : {&document.number, &document.revision, &document.contract, &document.site,
                     &document.supplier, &document.customer, &document.witness, &document.scope})
    *text = hostile;
  document.exclusions = {hostile};
  for (OrderedPart& part : document.ordered) part.part = part.version = hostile;
  for (FindingOwner& owner : document.owners) owner.name = owner.due = hostile;
  const std::string html = renderWith(sickRecord(), document);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("</script>"), html.rfind("</script>"));
}

TEST(PrintHead, StaysOneCssStringWhateverTheNodeIsCalled) {
  Record record = healthyRecord();
  record.node = "n\"; } body { display: none; } @import url(x) </style> \\";
  const std::string css = printHead(record, "0123456789abcdef0123");
  for (const char* part : {"</", "url(", "body {", "\\\"", "; } b"})
    EXPECT_EQ(css.find(part), std::string::npos) << part << " in " << css;
  expectPart(css, "record 0123456789abcdef");
}

TEST(TelemetryHint, NamesTheReadingThatStandsOut) {
  const Record record = sickRecord();
  EXPECT_EQ(telemetryHint(record.stages[1], "gpu3").substr(0, 14), "its clock was ");
  EXPECT_EQ(telemetryHint(record.stages[1], "gpu2"), "");
  EXPECT_EQ(telemetryHint(record.stages[1], ""), "");
}

}  // namespace
}  // namespace muster
