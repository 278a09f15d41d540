// SPDX-License-Identifier: Apache-2.0
// The HTML report: self-contained, escaped, complete, and honest about simulation.
#include "reports/html/html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>

#include "reports/html/page/csp.h"
#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::manyFaults;
using testing::settle;
using testing::sickRecord;
using testing::TemplatesFolder;

std::string render(const Record& record) {
  const TemplatesFolder templates;
  auto html = renderHtml(record, sha256Hex(recordText(record)), templates.path());
  EXPECT_TRUE(html.ok()) << html.error().text();
  return html.ok() ? *html : "";
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t start = text.find(from);
  if (start == std::string::npos) return "";
  const size_t end = text.find(to, start + from.size());
  return text.substr(start + from.size(), end - start - from.size());
}

void expectHas(const std::string& html, const std::string& part) {
  EXPECT_NE(html.find(part), std::string::npos) << "missing: " << part;
}

TEST(Html, SaysTheVerdictFirst) {
  const std::string html = render(sickRecord());
  expectHas(html, "<p class=\"verdict-word\">REJECTED</p>");
  EXPECT_LT(html.find("verdict-word"), html.find("id=\"deviations\""));
  EXPECT_LT(html.find("id=\"deviations\""), html.find("id=\"stages\""));
  expectHas(render(healthyRecord()), "<p class=\"verdict-word\">ACCEPTED</p>");
}

TEST(Html, SaysThatARecordWasRejudged) {
  const std::string html = render(testing::rejudgedRecord());
  expectHas(html, "<title>SIMULATED · RE-JUDGED · ");
  expectHas(html, "by Muster 0.2.0-abcdef012345 with profile ours (sha256 ");
  EXPECT_EQ(render(healthyRecord()).find("RE-JUDGED"), std::string::npos);
}

TEST(Html, NamesWhatBlocksBesideTheVerdict) {
  const std::string html = render(sickRecord());
  const std::string head = between(html, "id=\"verdict\"", "id=\"deviations\"");
  const std::string lead = between(head, "<p class=\"lead-finding\">", "</p>");
  for (const char* part : {"<b>gpu3</b> (serial 1652324041121, 0000:4b:00.0): gemm throughput (dtype=",
                           "TFLOP/s</b>, required at least ", "below its 7 peers (median ", "its clock was ",
                           "Check clocks, power cap and cooling"})
    expectHas(lead, part);
  expectHas(head, "<a href=\"#finding-1\">1</a>");
  expectHas(head, "S/N 1652324041121");
  for (const char* id : {"finding-1", "finding-2", "finding-3", "finding-4"})
    expectHas(html, std::string("id=\"") + id + "\"");
  expectHas(render(healthyRecord()), "Nothing to do.");
}

TEST(Html, DoesNotCallJudgedFiguresUnjudged) {
  Record record = healthyRecord();
  for (Measurement& m : record.stages[1].measurements) m.informational = true;
  const auto reported = [](const Record& r) {
    const std::string stage = between(render(r), "id=\"stage-2\"", "id=\"stage-3\"");
    return stage.find("Informational (no limit)");
  };
  EXPECT_EQ(reported(record), std::string::npos);
  record.stages[1].measurements.front().metric = "compute.only_reported";
  EXPECT_NE(reported(record), std::string::npos);
}

TEST(Html, SaysHowAnInterruptedRunGoesOnAndHowOftenItDid) {
  Record record = healthyRecord();
  record.acceptance = Acceptance::kInterrupted;
  record.resumed = 1;
  const std::string html = render(record);
  expectHas(html, "muster run --resume");
  expectHas(html, "<dd>1 time</dd>");
}

TEST(Html, NamesEachAcceptance) {
  for (const auto& [acceptance, word] : {std::pair{Acceptance::kIncomplete, "INCOMPLETE"},
                                         {Acceptance::kInterrupted, "INTERRUPTED"},
                                         {Acceptance::kNoGpu, "NO GPU"},
                                         {Acceptance::kRejected, "REJECTED"}}) {
    Record record = healthyRecord();
    record.acceptance = acceptance;
    expectHas(render(record), std::string("verdict-word\">") + word);
  }
}

TEST(Html, TellsDeviceMeasurementExpectationSourceRemedyAndRerun) {
  const std::string card = between(render(sickRecord()), "class=\"deviation fail\">", "</article>");
  for (const char* part : {"gpu3", "compute.gemm_throughput", "at least 672 TFLOP/s", "huggingface/gpu-fryer",
                           "Check clocks, power cap and cooling", "muster-host --request", "dtype=bf16"})
    expectHas(card, part);
}

TEST(Html, TellsHowARankDied) {
  const std::string card = between(render(sickRecord()), "class=\"deviation error\">", "</article>");
  for (const char* part : {"rank 5", "gpu5", "SIGSEGV", "pass 3 of 8", "\\x1b[31m"}) expectHas(card, part);
}

TEST(Html, BalancesTheAccounting) {
  const Record record = sickRecord();
  expectHas(render(record), "209 checks: 3 fail, 1 error, 1 flaky, 1 warn, 1 unjudged, 1 skipped, 1 waived");
  Record torn = record;
  torn.accounting.expected = 500;
  expectHas(render(torn), "do not agree");
}

TEST(Html, MarksSimulationEverywhere) {
  const std::string html = render(sickRecord());
  EXPECT_EQ(between(html, "<title>", "</title>").rfind("SIMULATED", 0), 0u);
  expectHas(html, "is-simulated");
  expectHas(between(html, "class=\"strip\"", "</div>"), "SIMULATED by scenario h100x8-one-slow-gpu");
  expectHas(between(html, "<style>", "</style>"),
            "@top-left { content: \"SIMULATED: no hardware was measured");
  expectHas(html, "must not be signed as an acceptance");
  expectHas(html, "h100x8-one-slow-gpu");
}

TEST(Html, DoesNotCallRealRunsSimulated) {
  Record record = healthyRecord();
  record.simulated = false;
  record.scenario.clear();
  const std::string html = render(record);
  const std::string body = between(html, "<body", "<script>");
  EXPECT_EQ(body.find("SIMULATED"), std::string::npos);
  EXPECT_EQ(body.find("is-simulated"), std::string::npos);
}

TEST(Html, EscapesAHostileHostName) {
  const std::string html = render(sickRecord());
  EXPECT_EQ(html.find(testing::kHostileName), std::string::npos);
  expectHas(html, "<h1>Node acceptance <small>&lt;script&gt;alert(1)&lt;/script&gt;</small></h1>");
}

/// Puts hostile text into every string that a record has, whatever it is for.
void poison(Json& json) {
  if (json.is_string()) json = "x\"'><img src=x onerror=alert(1)>{{#facts}}{{{style}}}</style></script>&";
  if (json.is_structured())
    for (auto& item : json) poison(item);
}

TEST(Html, EscapesEveryTextOfARecord) {
  Record record = sickRecord();
  Json json = toJson(record);
  const auto text = [](std::string& out) {
    out = "\"'><img src=x onerror=alert(1)>{{#facts}}{{{style}}}</style></script>";
  };
  for (auto* field :
       {&record.node, &record.runId, &record.scenario, &record.backend, &record.skuHow, &record.toolVersion,
        &record.buildId, &record.bootId, &record.peaksFrom, &record.plan.name, &record.plan.path,
        &record.plan.text, &record.profile.name, &record.profile.text})
    text(*field);
  for (auto* list : {&record.overrides, &record.command, &record.reasons})
    for (auto& item : *list) text(item);
  poison(record.inventory);
  poison(record.launcher);
  record.environment = {{"<img src=x>", "<img src=x>"}};
  for (auto& stage : record.stages) {
    for (auto* field : {&stage.name, &stage.plugin, &stage.test, &stage.reason, &stage.pluginVersion})
      text(*field);
    for (auto& item : stage.log) text(item);
    for (auto& item : stage.cases) poison(item.params), text(item.id);
    for (auto& artifact : stage.artifacts) text(artifact.name), text(artifact.path);
    for (auto& rank : stage.ranks)
      for (auto* field :
           {&rank.device, &rank.signal, &rank.error, &rank.lastProgress, &rank.outputTail, &rank.rerun})
        text(*field);
    for (auto& series : stage.telemetry) text(series.metric), text(series.device), text(series.unit);
    for (auto& m : stage.measurements) text(m.metric), text(m.device), text(m.text);
    for (auto& verdict : stage.verdicts) {
      for (auto* field : {&verdict.metric, &verdict.device, &verdict.detail, &verdict.remedy,
                          &verdict.limitText, &verdict.observedText, &verdict.caseId})
        text(*field);
      if (!verdict.expectation) continue;
      for (auto* field :
           {&verdict.expectation->source, &verdict.expectation->origin, &verdict.expectation->at})
        text(*field);
    }
  }
  const std::string html = render(record);
  const std::string body = between(html, "<body", "<script>");
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(body.find("</style"), std::string::npos);
  EXPECT_EQ(body.find("</script"), std::string::npos);
  EXPECT_EQ(body.find("alert(1)\""), std::string::npos);
  expectHas(body, "{{#facts}}");
}

TEST(Html, LoadsNothing) {
  const std::string html = render(sickRecord());
  const std::string page = html.substr(0, html.find("<style>")) + between(html, "<body", "<script>");
  EXPECT_FALSE(
      std::regex_search(page, std::regex(R"((src|action|background|poster|srcset|xlink:href)\s*=)")));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(href="(?!#|data:,"))")));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(\sstyle=|\son[a-z]+=)")));
  const std::string style = between(html, "<style>", "</style>");
  EXPECT_EQ(style.find("url("), std::string::npos);
  EXPECT_EQ(style.find("@import"), std::string::npos);
}

TEST(Html, DigestsTheStyleAndScriptThatItHolds) {
  const std::string html = render(sickRecord());
  const std::string policy = between(html, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_EQ(policy, contentSecurityPolicy(between(html, "<style>", "</style>"),
                                          between(html, "<script>", "</script>")));
  EXPECT_EQ(policy.find("default-src 'none'"), 0u);
}

TEST(Html, PutsRawMarkupOnlyWhereItIsOurs) {
  const std::string page = testing::readWhole(testing::sourceDir() / "templates/report/report.mustache");
  const std::regex raw(R"(\{\{(\{|&)\s*([a-z_]+))");
  for (std::sregex_iterator it(page.begin(), page.end(), raw), end; it != end; ++it) {
    const std::string name = (*it)[2];
    EXPECT_TRUE(name == "csp" || name == "style" || name == "script" || name == "key_plot" ||
                name == "scorecard" || name == "plot" || name == "svg")
        << name;
  }
}

TEST(Html, PrintsTheDigestOfTheRecordBesideIt) {
  const Record record = sickRecord();
  const std::string html = render(record);
  expectHas(html, sha256Hex(recordText(record)));
  expectHas(html, record.plan.sha256);
  expectHas(html, record.profile.sha256);
  expectHas(html, sha256Hex(testing::readWhole(testing::sourceDir() / "runner/record/record.schema.json")));
  expectHas(html, record.buildId);
}

TEST(Html, SaysThatThereAreNoDeviationsAndNoWaivers) {
  const std::string html = render(healthyRecord());
  expectHas(html, "All checked requirements were met");
  expectHas(html, "<p class=\"empty\">None.</p>");
  EXPECT_EQ(html.find("<article"), std::string::npos);
}

TEST(Html, ListsWaiversWithTheirReason) {
  const std::string section = between(render(sickRecord()), "<details id=\"waivers\" open>", "</details>");
  expectHas(section, "approved by J. Doe, until 2026-12-31");
}

TEST(Html, DoesNotCallWaivedFailuresMet) {
  Record record = healthyRecord();
  expectHas(render(record), "All requirements were met.");
  record.stages[1].verdicts[0].outcome = Outcome::kWaived;
  settle(record);
  const std::string html = render(record);
  expectHas(html, "All requirements were met or waived; see the concessions.");
  expectHas(html, "All checked requirements were met or <a href=\"#waivers\">waived</a>.");
}

TEST(Html, ListsWhatWasNotJudged) {
  const std::string section = between(render(sickRecord()), "<section id=\"not-judged\">", "</section>");
  expectHas(section, "no limit");
  expectHas(section, "no local NVMe device was found");
}

TEST(Html, SaysWhenTheSkuIsUnknownAndAllowed) {
  Record record = healthyRecord();
  record.profile = {};
  record.allowUnknownSku = true;
  expectHas(render(record), "Unknown SKU.");
}

TEST(Html, NumbersSourcesAndLinksThem) {
  const std::string html = render(sickRecord());
  for (int i = 1; i <= 3; ++i) {
    expectHas(html, "<li id=\"source-" + std::to_string(i) + "\">");
    expectHas(html, "href=\"#source-" + std::to_string(i) + "\"");
  }
}

TEST(Html, TellsSharedDevicePropertiesOnce) {
  const std::string section = between(render(healthyRecord()), "<details id=\"inventory\">", "</details>");
  EXPECT_EQ(section.find("550.54.15"), section.rfind("550.54.15"));
  expectHas(section, "GPU-5f0c1b2a-77aa-4e0d-9c11-000000000007");
  expectHas(section, "79.65 GiB");
}

TEST(Html, RendersAnEmptyRecord) {
  Record record;
  record.acceptance = Acceptance::kInterrupted;
  record.exitCode = 130;
  const std::string html = render(record);
  expectHas(html, "INTERRUPTED");
  expectHas(html, "0 checks: no results");
}

TEST(Html, RendersNumbersThatAreNotFinite) {
  Record record = sickRecord();
  for (auto& verdict : record.stages[1].verdicts)
    verdict.observed = verdict.limit = verdict.margin = std::numeric_limits<double>::quiet_NaN();
  for (auto& series : record.stages[1].telemetry)
    for (auto& value : series.value) value = std::numeric_limits<double>::infinity();
  const std::string html = render(record);
  expectHas(html, "REJECTED");
  EXPECT_EQ(between(html, "<body", "<script>").find("d=\"Mnan"), std::string::npos);
}

TEST(Html, StaysReadableWithHundredsOfCases) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  const auto verdicts = stage.verdicts;
  for (int i = 0; i < 100; ++i)
    for (auto verdict : verdicts) {
      verdict.labels["size"] = std::to_string(i);
      stage.verdicts.push_back(verdict);
    }
  settle(record);
  const std::string html = render(record);
  expectHas(html, "more plots are omitted");
  EXPECT_LT(html.size(), 8u << 20);
}

TEST(Html, DrawsCurvesOverMessageSizeFromMeasurementsWithoutALimit) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[3];  // host-copy: eight sizes
  stage.verdicts.resize(1);
  settle(record);
  const std::string html = between(render(record), "id=\"stage-4\"", "</section>");
  expectHas(html, "host_copy_bandwidth, op=d2h over message size in ");
  expectHas(html, "<th scope=\"row\">64 KiB</th>");
}

TEST(Html, DrawsTheLossOverSteps) {
  Record record = healthyRecord();
  Measurement loss;
  loss.metric = "train.loss";
  loss.unit = "number";
  loss.informational = true;
  loss.device = "gpu0";
  for (int i = 0; i < 40; ++i) loss.samples.push_back(6.0 / (1 + i));
  record.stages[1].measurements.push_back(loss);
  const std::string html = render(record);
  expectHas(html, "loss over steps");
  EXPECT_EQ(html.find("600%"), std::string::npos) << "a loss is no percentage";
}

TEST(Html, ShadesWhatWasThrottled) {
  Record record = healthyRecord();
  TelemetrySeries throttle;
  throttle.metric = "env.throttle_thermal";
  throttle.unit = "s";
  throttle.device = "gpu3";
  throttle.time = {0, 10, 20, 30};
  throttle.value = {0, 0, 5, 5};
  throttle.summary = summarize(throttle.value);
  record.stages[1].telemetry.push_back(throttle);
  expectHas(render(record), "class=\"band\"");
  throttle.metric = "env.throttle_power_cap";  // normal under full load
  record.stages[1].telemetry.back() = throttle;
  EXPECT_EQ(between(render(record), "<body", "<script>").find("class=\"band\""), std::string::npos);
}

TEST(Html, PrintsInventoryNumbersWithUnits) {
  Record record = healthyRecord();
  for (auto& device : record.inventory["devices"])
    device["peaks"] = {
        {"flops.bf16", 989400000000000.0}, {"memory_bandwidth", 3.35e12}, {"other", 0.1 + 0.2}};
  const std::string html = render(record);
  for (const char* text : {"989.4 TFLOP/s", "3.35 TB/s", "<dd>0.3</dd>"}) expectHas(html, text);
  EXPECT_EQ(html.find("989400000000000"), std::string::npos);
}

TEST(Html, NamesTheTemplateThatIsMissing) {
  for (const char* name : {"report/report.mustache", "report/report.css", "report/report.js",
                           "common/page.js", "record.schema.json"}) {
    const TemplatesFolder templates;
    std::filesystem::remove(templates.path() / name);
    const auto html = renderHtml(healthyRecord(), "", templates.path());
    ASSERT_FALSE(html.ok());
    EXPECT_NE(html.error().text().find(name), std::string::npos) << html.error().text();
  }
}

TEST(Html, RefusesADamagedTemplate) {
  const TemplatesFolder templates;
  std::ofstream(templates.path() / "report/report.mustache") << "{{#open}} never closed";
  const auto html = renderHtml(healthyRecord(), "", templates.path());
  ASSERT_FALSE(html.ok());
  EXPECT_NE(html.error().text().find("damaged"), std::string::npos) << html.error().text();
}

TEST(Html, RefusesAScriptThatWouldEndEarly) {
  const TemplatesFolder templates;
  std::ofstream(templates.path() / "report/report.js") << "const x = '</script>';";
  EXPECT_FALSE(renderHtml(healthyRecord(), "", templates.path()).ok());
}

TEST(Html, ShowsTheFirstOfThousandsOfFindings) {
  const std::string html = render(manyFaults(20'000));
  expectHas(html, "20000 findings from 20000 check results, of which the first 200 are shown and all are in");
  expectHas(html, "id=\"finding-200\"");
  EXPECT_EQ(html.find("id=\"finding-201\""), std::string::npos);
  expectHas(html, "table cut to the worst 1 of 1 rows and 1000 of 20000 columns; record.json has all");
}

TEST(Html, CutsATableThatIsMostlyBlank) {
  Record record = manyFaults(2'000);
  for (Verdict& verdict : record.stages[1].verdicts) verdict.metric += verdict.device;
  const std::string html = render(record);
  expectHas(html, "table cut to the worst 199 of 2000 rows and 1000 of 2000 columns; record.json has all");
  EXPECT_EQ(render(sickRecord()).find("table cut"), std::string::npos);
}

TEST(Html, CutsATableOfThousandsOfRows) {
  Record record = manyFaults(20'000);
  for (Verdict& verdict : record.stages[1].verdicts) {
    verdict.labels["case"] = verdict.device;
    verdict.device = "gpu0";
  }
  expectHas(render(record),
            "table cut to the worst 2000 of 20000 rows and 1 of 1 columns; record.json has all");
}

/// Of free-form parts, none may multiply: properties by devices, or a long name by what is below it.
TEST(Html, CutsAnInventoryOfManyPropertiesAndSaysSo) {
  const auto inventory = [](const std::function<void(Json&)>& edit) {
    Record record = healthyRecord();
    edit(record.inventory);
    const std::string html = render(record);
    EXPECT_LT(html.size(), 8u << 20);
    return between(html, "<details id=\"inventory\">", "</details>");
  };
  expectHas(inventory([](Json& own) {
              for (int i = 8; i < 1'100; ++i)
                own["devices"].push_back({{"id", fmt::format("d{}", i)}, {fmt::format("k{}", i), i}});
            }),
            "to the first 1024 of 1100 devices and 195 of 1027 properties; record.json has all");
  expectHas(inventory([](Json& own) {
              for (int i = 0; i < 2'000; ++i) own["devices"][0]["facts"][fmt::format("k{}", i)] = i;
            }),
            "to the first 8 of 8 devices and 1000 of 200");
  expectHas(inventory([](Json& own) {
              for (int i = 0; i < 5'000; ++i) own["host"][std::string(20'000, 'k')][fmt::format("{}", i)] = i;
            }),
            "to the first 2000 of 50");
  expectHas(inventory([](Json& own) {
              own["nics"] = std::vector<Json>(3'000, {{"name", "eth0"}});
            }),
            "to the first 2000 of 3000; record.json has all");
  EXPECT_EQ(inventory([](Json&) {}).find(" cut"), std::string::npos);
}

/// One rank's output stands under each of its findings.
TEST(Html, StaysOfASizeWhateverARecordMultipliesAndSaysSo) {
  Record record = sickRecord();
  StageRecord& stage = record.stages.front();
  stage.ranks.front().state = RankOutcome::kError;
  stage.ranks.front().outputTail = std::string(4u << 20, 'x');
  const Verdict verdict = record.stages.front().verdicts.front();
  for (int i = 0; i < 300; ++i) {
    stage.verdicts.push_back(verdict);
    stage.verdicts.back().metric = fmt::format("env.f{}", i);
    stage.verdicts.back().outcome = Outcome::kError;
    stage.verdicts.back().rank = stage.ranks.front().rank;
    stage.verdicts.back().device = stage.ranks.front().device;
    stage.verdicts.back().detail = "no result";
  }
  const std::string html = render(record);
  EXPECT_LT(html.size(), 100u << 20);
  EXPECT_GT(html.size(), 8u << 20) << "nothing was multiplied";
  EXPECT_NE(html.find("This page is cut where a … stands"), std::string::npos);
  EXPECT_EQ(render(sickRecord()).find("This page is cut"), std::string::npos);
}

TelemetrySeries rising(const std::string& metric, const std::string& device) {
  TelemetrySeries series;
  series.metric = metric;
  series.unit = "W";
  series.device = device;
  series.time = {0, 10};
  series.value = {1, 2};
  series.summary = summarize(series.value);
  return series;
}

TEST(Html, DrawsTheFirstTelemetryPlotsOfAStageAndSaysHowManyThereAre) {
  Record record = sickRecord();
  StageRecord& stage = record.stages[1];
  stage.telemetry.clear();
  for (int i = 0; i < 30; ++i) stage.telemetry.push_back(rising(fmt::format("env.m{}", i), "gpu0"));
  stage.telemetry.push_back(rising("env.z", "gpu0"));
  const auto verdict = std::find_if(stage.verdicts.begin(), stage.verdicts.end(),
                                    [](const Verdict& v) { return v.outcome == Outcome::kFail; });
  ASSERT_NE(verdict, stage.verdicts.end());
  verdict->metric = "env.z";
  std::string html = between(render(record), "id=\"stage-2\"", "id=\"stage-3\"");
  expectHas(html, " · 24 of 31 telemetry plots drawn; record.json has all");
  expectHas(html, "<caption>z</caption>");
  EXPECT_EQ(html.find("<caption>m9</caption>"), std::string::npos);
  stage.telemetry.resize(24);
  html = between(render(record), "id=\"stage-2\"", "id=\"stage-3\"");
  EXPECT_EQ(html.find("telemetry plots drawn"), std::string::npos);
}

TEST(Html, DrawsLinesAsFarAsAPageMayHoldThem) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  stage.telemetry = {rising("env.b", "gpu0")};
  for (int i = 0; i < 40'000; ++i) stage.telemetry.push_back(rising("env.a", fmt::format("gpu{}", i)));
  Measurement loss;
  loss.metric = "train.loss";
  loss.unit = "number";
  loss.informational = true;
  loss.samples.assign(3'000'000, 1);
  stage.measurements.push_back(loss);
  const std::string html = render(record);
  expectHas(html, "1 of 2 telemetry plots drawn");
  expectHas(html, "<caption>b</caption>");
  EXPECT_EQ(html.find("loss over steps"), std::string::npos);
  EXPECT_LT(html.size(), 8u << 20);
}

TEST(Html, ScoresTheWorstOfThousandsOfDevices) {
  Record record = manyFaults(5'000);
  for (Verdict& verdict : record.stages[1].verdicts) {
    verdict.expectation->unit = "FLOP/s";
    verdict.margin = -0.1;
  }
  const std::string html = render(record);
  const std::string dot = "<g class=\"dot fail\"";
  size_t dots = 0;
  for (size_t at = html.find(dot); at != std::string::npos; at = html.find(dot, at + 1)) ++dots;
  EXPECT_EQ(dots, 1'000u);
}

}  // namespace
}  // namespace muster
