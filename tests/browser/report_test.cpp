// SPDX-License-Identifier: Apache-2.0
// The report in a real browser: nothing is requested, nothing is logged, nothing hostile runs, and it reads
// well.
#include <gtest/gtest.h>

#include "reports/html/html.h"
#include "tests/browser/browser.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::Browser;
using testing::healthyRecord;
using testing::kHostileName;
using testing::sickRecord;
using testing::TempDir;
using testing::TemplatesFolder;

/// A rendered report on disk.
class ReportFile {
 public:
  explicit ReportFile(const Record& record, const AcceptanceDocument& document = {}) {
    const TemplatesFolder templates;
    const auto html = renderHtml(record, sha256Hex(recordText(record)), templates.path(), document);
    if (!html.ok()) throw std::runtime_error(html.error().text());
    path_ = folder_.write("report.html", *html);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const TempDir& folder() const { return folder_; }

 private:
  TempDir folder_;
  std::filesystem::path path_;
};

/// Opens the report of a simulated, rejected node with a hostile name.
class SickReport : public ::testing::Test {
 protected:
  SickReport() : report_(sickRecord()) { browser_.open(report_.path()); }

  void expectQuiet() {
    const auto activity = browser_.activity();
    EXPECT_TRUE(activity.requests.empty()) << activity.requests.front();
    EXPECT_TRUE(activity.messages.empty()) << activity.messages.front();
    EXPECT_TRUE(activity.dialogs.empty()) << activity.dialogs.front();
  }
  std::string text(const std::string& selector) {
    return browser_.evaluate("document.querySelector('" + selector + "').innerText").get<std::string>();
  }
  double number(const std::string& expression) { return browser_.evaluate(expression).get<double>(); }
  /// Unfolds everything.
  void unfold() {
    browser_.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })");
  }
  /// Moves the mouse onto the middle of an element.
  void hover(const std::string& selector) {
    const std::string element = "document.querySelector('" + selector + "')";
    browser_.evaluate(element + ".scrollIntoView({block: 'center'})");
    const Json box = browser_.evaluate("(r => [r.x + r.width / 2, r.y + r.height / 2])(" + element +
                                       ".getBoundingClientRect())");
    browser_.moveMouse(box[0], box[1]);
  }

  ReportFile report_;
  Browser browser_;
};

TEST(BrowserProbe, SeesRequestsMessagesAndDialogs) {
  // The probe itself: without this, quiet pages would prove nothing.
  const TempDir folder;
  Browser browser;
  browser.open(
      folder.write("loud.html",
                   "<!doctype html><img src=\"http://127.0.0.1:9/x.png\"><script>console.log('hello');"
                   "alert('dialog');nowhere();</script>"));
  const auto activity = browser.activity();
  ASSERT_EQ(activity.requests.size(), 1u);
  EXPECT_EQ(activity.requests[0], "http://127.0.0.1:9/x.png");
  EXPECT_GE(activity.messages.size(), 2u);
  ASSERT_EQ(activity.dialogs.size(), 1u);
  EXPECT_EQ(activity.dialogs[0], "dialog");
}

TEST_F(SickReport, RequestsNothingAndLogsNothing) {
  expectQuiet();
  EXPECT_EQ(number("performance.getEntriesByType('resource').length"), 0);
}

TEST_F(SickReport, ShowsTheVerdictOnTheFirstScreen) {
  EXPECT_EQ(text(".verdict-word"), "REJECTED");
  EXPECT_TRUE(
      browser_.evaluate("(r => r.top >= 0 && r.bottom <= innerHeight && r.height > 20)("
                        "document.querySelector('.verdict-word').getBoundingClientRect())"));
  EXPECT_NE(text(".strip").find("SIMULATED"), std::string::npos);
}

TEST_F(SickReport, ShowsAHostileHostNameAsText) {
  EXPECT_EQ(text("h1 small"), kHostileName);
  EXPECT_EQ(number("document.scripts.length"), 1);
  EXPECT_NE(browser_.evaluate("document.title").get<std::string>().find(kHostileName), std::string::npos);
  expectQuiet();
}

TEST_F(SickReport, ForbidsScriptsAndRequestsThatAreNotItsOwn) {
  browser_.evaluate(
      "(s => { s.textContent = 'window.ran = true'; document.body.append(s); "
      "})(document.createElement('script'))");
  EXPECT_TRUE(browser_.evaluate("window.ran === undefined"));
  browser_.evaluate(
      "document.body.insertAdjacentHTML('beforeend', '<p id=\"styled\" style=\"color: red\">x</p>')");
  EXPECT_FALSE(
      browser_.evaluate("getComputedStyle(document.getElementById('styled')).color === 'rgb(255, 0, 0)'"));
  EXPECT_EQ(browser_.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"), "refused");
  EXPECT_TRUE(browser_.activity().requests.empty());
}

TEST_F(SickReport, SortsATableByAClickOnItsHead) {
  const std::string head = "document.querySelectorAll('table.overview thead th')[5]";
  const std::string ranks =
      "Array.from(document.querySelectorAll('table.overview tbody tr')).map(r => r.cells[5].innerText)";
  browser_.evaluate(head + ".click()");
  EXPECT_EQ(browser_.evaluate(ranks)[0], "0");
  EXPECT_EQ(browser_.evaluate(head + ".getAttribute('aria-sort')"), "ascending");
  browser_.evaluate(head + ".click()");
  EXPECT_EQ(browser_.evaluate(ranks)[5], "0");
  expectQuiet();
}

TEST_F(SickReport, FiltersToDeviationsAndByText) {
  const std::string shown = "document.querySelectorAll('table.heat tbody tr:not(.filtered)').length";
  const double all = number(shown);
  browser_.evaluate("document.querySelector('#controls input[type=checkbox]').click()");
  const double deviating = number(shown);
  EXPECT_GT(deviating, 0);
  EXPECT_LT(deviating, all);
  EXPECT_EQ(number("document.querySelectorAll('tr[data-outcome=pass]:not(.filtered)').length"), 0);
  browser_.evaluate(
      "(i => { i.value = 'GEMM_throughput'; i.dispatchEvent(new Event('input')); })("
      "document.querySelector('#controls input[type=search]'))");
  EXPECT_EQ(number(shown), 3);
  expectQuiet();
}

TEST_F(SickReport, ShowsValuesOnHover) {
  hover(".plot .bar.fail rect");
  EXPECT_EQ(text("#tip"), "gpu3: 959.1 TFLOP/s (fail)");
  unfold();
  hover("svg.plot.lines");
  EXPECT_NE(text("#tip").find("gpu3  ≈ "), std::string::npos) << text("#tip");
  browser_.moveMouse(2, 2);
  EXPECT_TRUE(browser_.evaluate("document.getElementById('tip').hidden"));
  expectQuiet();
}

TEST_F(SickReport, ReadsWithoutScript) {
  browser_.disableScripts();
  browser_.open(report_.path());
  EXPECT_EQ(text(".verdict-word"), "REJECTED");
  EXPECT_TRUE(browser_.evaluate("document.getElementById('controls').hidden"));
  const std::string page = browser_.evaluate("document.querySelector('main').textContent").get<std::string>();
  for (const char* part : {"compute.gemm_throughput", "at least 672 TFLOP/s", "Check clocks", "SIGSEGV",
                           "GPU-5f0c1b2a", "no hardware was measured", "Signatures"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_GT(number("document.querySelectorAll('svg.plot').length"), 10);
  expectQuiet();
}

TEST_F(SickReport, FitsAPhone) {
  browser_.command("Emulation.setDeviceMetricsOverride",
                   {{"width", 390}, {"height", 844}, {"deviceScaleFactor", 2}, {"mobile", true}});
  browser_.open(report_.path());
  EXPECT_LE(number("document.documentElement.scrollWidth"), 390);
  EXPECT_TRUE(
      browser_.evaluate("document.querySelector('.verdict-word').getBoundingClientRect().right <= 390"));
}

TEST_F(SickReport, ShowsEveryFindingOfATableOnAPhone) {
  browser_.command("Emulation.setDeviceMetricsOverride",
                   {{"width", 390}, {"height", 844}, {"deviceScaleFactor", 2}, {"mobile", true}});
  browser_.open(report_.path());
  ASSERT_GT(number("document.querySelectorAll('.items td').length"), 0);
  EXPECT_EQ(number("Array.from(document.querySelectorAll('.items th, .items td')).filter("
                   "c => c.getBoundingClientRect().right > 390).length"),
            0);
}

TEST_F(SickReport, SetsCasesBelowMeasurementsAndColumnsWideEnoughToRead) {
  unfold();
  ASSERT_GT(number("document.querySelectorAll('.heat tbody th small').length"), 0);
  for (const char* medium : {"screen", "print"}) {
    browser_.command("Emulation.setEmulatedMedia", {{"media", medium}});
    EXPECT_EQ(number("Array.from(document.querySelectorAll('.heat tbody th small')).filter("
                     "s => getComputedStyle(s).display !== 'block').length"),
              0)
        << medium;
    EXPECT_EQ(number("Array.from(document.querySelectorAll('.heat .wanted')).filter("
                     "c => c.getBoundingClientRect().width < 100).length"),
              0)
        << medium;
  }
}

TEST_F(SickReport, LinksOnlyIntoItself) {
  EXPECT_EQ(number("Array.from(document.links).filter(a => !a.getAttribute('href').startsWith('#') ||"
                   " !document.getElementById(a.getAttribute('href').slice(1))).length"),
            0);
}

/// The text of each page of the printed report.
std::vector<std::string> printedPages(Browser& browser, const TempDir& folder) {
  const Json pdf =
      browser.command("Page.printToPDF", {{"preferCSSPageSize", true}, {"printBackground", true}});
  const auto encoded = folder.write("report.pdf.b64", pdf["data"].get<std::string>());
  const auto file = folder.path() / "report.pdf";
  const auto decoded = testing::runProcess({"sh", "-c", "base64 -d \"$1\" > \"$2\"", "sh", encoded, file});
  const auto text = testing::runProcess({"pdftotext", "-layout", file, "-"});
  if (decoded.exitCode != 0 || text.exitCode != 0)
    throw std::runtime_error("pdftotext: " + decoded.err + text.err);
  std::vector<std::string> pages(1);
  for (const char c : text.out) {
    if (c == '\f')
      pages.emplace_back();
    else
      pages.back() += c;
  }
  pages.pop_back();
  return pages;
}

TEST_F(SickReport, PrintsSimulatedOnEveryPage) {
  const auto pages = printedPages(browser_, report_.folder());
  ASSERT_GT(pages.size(), 3u);
  for (size_t i = 0; i < pages.size(); ++i)
    EXPECT_NE(pages[i].find("SIMULATED: no hardware was measured"), std::string::npos) << "page " << i + 1;
  EXPECT_NE(pages.front().find("REJECTED"), std::string::npos);
  for (const char* part : {"REJECTED", "Punch list", "Bill of materials", "Supplier", "Customer", "Witness",
                           "SHA-256 of record.json"})
    EXPECT_NE(pages.front().find(part), std::string::npos) << part;
  EXPECT_EQ(pages.front().find("Findings"), std::string::npos) << "the first page holds one page";
  EXPECT_EQ(pages[1].find("Witness"), std::string::npos);
}

TEST(RealReport, PrintsNoSimulatedOnAnyPage) {
  Record record = healthyRecord();
  record.simulated = false;
  record.scenario.clear();
  record.backend = "cuda";
  record.command = {"muster", "run", "plans/node-quick.toml"};
  const ReportFile report(record);
  Browser browser;
  browser.open(report.path());
  const auto pages = printedPages(browser, report.folder());
  ASSERT_GE(pages.size(), 2u);
  EXPECT_LE(pages.size(), 10u);
  for (const auto& page : pages) EXPECT_EQ(page.find("SIMULATED"), std::string::npos);
  EXPECT_NE(pages.front().find("ACCEPTED"), std::string::npos);
  for (const char* part : {"Nothing to do.", "Witness", "node-17", "8 × NVIDIA H100 80GB HBM3"})
    EXPECT_NE(pages.front().find(part), std::string::npos) << part;
}

/// The longest first page that there can be: every list beyond its limit, every text at its longest.
TEST(FullReport, KeepsItsFirstPageOnOneSheet) {
  Record record = sickRecord();
  record.node = std::string(63, 'n');
  StageRecord& stage = record.stages[1];
  for (size_t i = 0; i < 8; ++i) {
    stage.verdicts[i].outcome = Outcome::kFail;
    stage.verdicts[i].metric = "compute.a_metric_with_a_long_name_" + std::to_string(i);
    stage.verdicts[i].remedy = std::string(30, 'r') + " " + std::string(200, 'x');
  }
  WaiverRecord waiver;
  waiver.stage = waiver.metric = waiver.approver = std::string(60, 'w');
  waiver.expires = "2026-12-31";
  waiver.covered = 1;
  record.waivers.assign(9, waiver);
  AcceptanceDocument document;
  std::string text;
  for (int i = 0; i < 8; ++i) text += "ninewords ";
  for (auto* field :
       {&document.number, &document.supplier, &document.customer, &document.witness, &document.scope})
    *field = text;
  document.contract = document.site = text.substr(0, 40);
  document.exclusions.assign(3, text);
  for (int i = 0; i < 6; ++i) document.ordered.push_back({std::string(39, 'a') + std::to_string(i), 1, ""});
  document.owners = {{"", "", "", "", text.substr(0, 40), text.substr(0, 20)}};
  const ReportFile report(record, document);
  Browser browser;
  browser.open(report.path());
  const auto pages = printedPages(browser, report.folder());
  for (const char* part : {"REJECTED", "Punch list", "SHA-256 of record.json"})
    EXPECT_NE(pages.front().find(part), std::string::npos) << part << " is not in\n" << pages.front();
}

TEST_F(SickReport, UnfoldsWhatAnAddressNames) {
  EXPECT_FALSE(browser_.evaluate("document.getElementById('inventory').open"));
  browser_.evaluate("location.hash = '#inventory'");
  EXPECT_TRUE(
      browser_.evaluate("new Promise(r => setTimeout(() => r(document.getElementById('inventory').open)))"));
  expectQuiet();
}

TEST_F(SickReport, KeepsItsFilterInTheAddress) {
  const std::string shown = "document.querySelectorAll('table.heat tbody tr:not(.filtered)').length";
  browser_.evaluate("location.hash = '#q=gemm_throughput'");
  EXPECT_EQ(number("new Promise(r => setTimeout(() => r(" + shown + ")))"), 3);
  EXPECT_FALSE(browser_.evaluate("document.getElementById('stage-2').classList.contains('filtered')"));
  EXPECT_TRUE(browser_.evaluate("document.getElementById('stage-3').classList.contains('filtered')"));
  browser_.evaluate(
      "(i => { i.value = 'tf32 %'; i.dispatchEvent(new Event('input')); })("
      "document.querySelector('#controls input[type=search]'))");
  EXPECT_EQ(browser_.evaluate("location.hash"), "#q=tf32%20%25");
  expectQuiet();
}

TEST_F(SickReport, SortsQuantitiesByTheirUnits) {
  const Json sorted = browser_.evaluate(
      "(table => { table.className = 'sortable'; const body = table.tBodies[0]; "
      "for (const row of Array.from(body.rows)) row.remove(); "
      "for (const text of ['2 GB/s', '900 MB/s', '1.5 TB/s', '3 kB/s']) { "
      "const row = body.insertRow(); row.insertCell().textContent = text; } "
      "table.tHead.rows[0].cells[0].click(); "
      "return Array.from(body.rows).map(row => row.cells[0].textContent); "
      "})(document.querySelector('.overview'))");
  EXPECT_EQ(sorted, Json::parse(R"(["3 kB/s", "900 MB/s", "2 GB/s", "1.5 TB/s"])"));
}

}  // namespace
}  // namespace muster
