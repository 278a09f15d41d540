// SPDX-License-Identifier: Apache-2.0
// All formats: hostile text comes out as text, marks are shown, values survive.
#include "reports/formats/formats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "reports/html/html.h"
#include "runner/core/text.h"
#include "tests/reports/formats/sample_records.h"

namespace muster {
namespace {

using testing::elementsOf;
using testing::everyKindOfRecord;
using testing::expectVisible;
using testing::hostileTexts;
using testing::recordWithText;

const Format& format(const std::string& name) {
  for (const Format& one : formats())
    if (one.name == name) return one;
  throw std::runtime_error("no format " + name);
}

/// The rows and cells of a CSV file, by RFC 4180.
std::vector<std::vector<std::string>> cellsOf(const std::string& csv) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    if (quoted && c == '"' && i + 1 < csv.size() && csv[i + 1] == '"')
      rows.back().back() += csv[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\n')
      rows.push_back({""});
    else
      rows.back().back() += c;
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(rows.back(), std::vector<std::string>{""}) << "the last line must end";
  rows.pop_back();
  return rows;
}

/// A document without its values: what is left must not depend on any text of the record.
Json shapeOf(const Json& value) {
  if (!value.is_structured()) return value.type_name();
  Json shape = value.is_object() ? Json::object() : Json::array();
  for (const auto& [key, item] : value.items())
    value.is_object() ? void(shape[key] = shapeOf(item)) : shape.push_back(shapeOf(item));
  return shape;
}

std::string jsonShape(const std::string& text) {
  std::string shape;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const auto json = parseJson(line);
    EXPECT_TRUE(json.ok()) << line.substr(0, 200);
    if (json.ok()) shape += shapeOf(*json).dump() + "\n";
  }
  return shape;
}

/// Markdown without its code spans and blocks, by CommonMark: a fence of n backticks ends at the next n.
std::string markdownShape(const std::string& text) {
  std::string shape;
  for (size_t at = 0; at < text.size();) {
    const size_t ticks = std::min(text.find_first_not_of('`', at), text.size()) - at;
    if (ticks == 0) {
      shape += text[at++];
      continue;
    }
    size_t end = at + ticks;
    for (size_t run = 0; end < text.size(); end += std::max<size_t>(run, 1)) {
      run = std::min(text.find_first_not_of('`', end), text.size()) - end;
      if (run == ticks) break;
    }
    EXPECT_LT(end, text.size()) << "a code span does not end";
    EXPECT_TRUE(ticks >= 3 || text.substr(at, end - at).find('\n') == std::string::npos);
    shape += "`";
    at = end + ticks;
  }
  return shape;
}

std::string csvShape(const std::string& text) {
  std::string shape;
  for (const auto& row : cellsOf(text)) shape += std::to_string(row.size()) + "\n";
  return shape;
}

/// Prometheus text without the values of labels.
std::string prometheusShape(const std::string& text) {
  static const std::regex label("\"(\\\\[\\\\\"n]|[^\\\\\"\n])*\"");
  return std::regex_replace(text, label, "\"\"");
}

std::string junitShape(const std::string& text) {
  static const std::regex values("\"[^\"<]*\"|>[^<>]*<");
  return std::regex_replace(text, values, "");
}

std::string shapeOf(const Format& format, const std::string& text) {
  const std::string name = format.name;
  if (name == "csv") return csvShape(text);
  if (name == "prometheus") return prometheusShape(text);
  if (name == "markdown") return markdownShape(text);
  if (name == "junit") return junitShape(text);
  return name == "ocp" ? jsonShape(text) : shapeOf(parseJson(text).value()).dump();
}

TEST(Formats, ShowHostileTextAsText) {
  for (const Format& format : formats()) {
    const std::string plain = shapeOf(format, format.render(recordWithText("x")));
    for (const std::string& text : hostileTexts()) {
      SCOPED_TRACE(std::string(format.name) + ": " + printable(text, 60));
      const std::string out = format.render(recordWithText(text));
      expectVisible(out, format.name == std::string("junit"));  // XML may hold tabs
      EXPECT_EQ(shapeOf(format, out), plain);
    }
  }
}

TEST(Formats, ShowHostileTextAsTextInThePageToo) {
  const testing::TemplatesFolder templates;
  const auto page = [&](const std::string& text) {
    return renderHtml(recordWithText(text), std::string(64, 'a'), templates.path()).value();
  };
  std::set<std::string> plain = elementsOf(page("x"));
  plain.merge(elementsOf(page("")));
  for (const std::string& text : hostileTexts()) {
    SCOPED_TRACE(printable(text, 60));
    const std::string html = page(text);
    expectVisible(html, true);
    for (const std::string& element : elementsOf(html)) EXPECT_TRUE(plain.count(element) > 0) << element;
  }
}

TEST(Formats, LeaveNothingToASpreadsheetToCompute) {
  for (const std::string& text : hostileTexts())
    for (const auto& row : cellsOf(format("csv").render(recordWithText(text))))
      for (const std::string& cell : row) {
        char* end = nullptr;
        std::strtod(cell.c_str(), &end);
        const bool number = !cell.empty() && *end == '\0';
        EXPECT_TRUE(number || cell.empty() || std::string("=+-@\t\r").find(cell[0]) == std::string::npos)
            << cell;
      }
}

/// The cells of a file where ';' separates, as spreadsheets read it: only a quote at its begin quotes a cell.
std::vector<std::string> semicolonCells(const std::string& csv) {
  std::vector<std::string> cells(1);
  bool begins = true, quoted = false;
  for (size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    if (quoted && c == '"' && csv.substr(i + 1, 1) == "\"") {
      cells.back() += csv[i++];
    } else if (c == '"' && (begins || quoted)) {
      quoted = !quoted;
    } else if (!quoted && (c == ';' || c == '\n')) {
      cells.emplace_back();
      begins = true;
      continue;
    } else {
      cells.back() += c;
    }
    begins = false;
  }
  return cells;
}

TEST(Formats, LeaveNothingToASpreadsheetWithAnotherSeparator) {
  for (const std::string sign : {"=", "+", "-", "@", "＝", "＋", "－", "＠"})
    for (const std::string before : {"", ";", "a;", "a;;", ";\"", "a;\"\"", "\";", "a,\";", "a\";\"\"\""})
      for (const std::string after : {"1+1", "1\"", "1;b", "1,\"b"}) {
        const std::string text = before + sign + after;
        const std::string csv = format("csv").render(recordWithText(text));
        SCOPED_TRACE(text);
        for (const std::string& cell : semicolonCells(csv)) EXPECT_NE(cell.rfind(sign, 0), 0u) << cell;
        for (const auto& row : cellsOf(csv))
          for (const std::string& cell : row)
            EXPECT_TRUE(cell.rfind(sign, 0) != 0 || cell.find("1+1") == std::string::npos) << cell;
      }
}

TEST(Formats, KeepTheTextItself) {
  for (const std::string text : {"a|b`c", "=cmd()", "say \"no\", twice"}) {
    const Record record = recordWithText(text);
    EXPECT_NE(format("markdown").render(record).find(text), std::string::npos);
    const auto ocp = parseJson(split(format("ocp").render(record), '\n')[1]);
    ASSERT_TRUE(ocp.ok());
    EXPECT_EQ((*ocp)["testRunArtifact"]["testRunStart"]["dutInfo"]["name"], text);
  }
}

TEST(Formats, MarkEveryRecordThatIsNoPlainRun) {
  for (const auto& [kind, record] : everyKindOfRecord())
    for (const Format& format : formats()) {
      SCOPED_TRACE(kind + ", " + format.name);
      if (record.stages.empty()) continue;
      const std::string text = format.render(record);
      for (const char* word : {"SIMULATED", "IMPORTED", "RE-JUDGED", "REDACTED", "PARTIAL"}) {
        const std::string marked = word;
        const bool wanted = (marked == "SIMULATED" && record.simulated) ||
                            (marked == "IMPORTED" && !record.imported.empty()) ||
                            (marked == "RE-JUDGED" && !record.rejudged.empty()) ||
                            (marked == "REDACTED" && !record.redacted.fromSha256.empty()) ||
                            (marked == "PARTIAL" && record.selection.partial());
        EXPECT_EQ(text.find(marked) != std::string::npos, wanted) << word;
      }
    }
}

TEST(Formats, GiveTheSameBytesForTheSameRecord) {
  for (const Format& format : formats())
    EXPECT_EQ(format.render(testing::sickRecord()), format.render(testing::sickRecord())) << format.name;
}

size_t countOf(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// The lines, rows or tests of a text that no note stands in.
size_t entriesOf(const Format& format, const std::string& text) {
  const std::string name = format.name;
  const std::string entry = name == "ctrf" ? "\"rawStatus\"" : name == "junit" ? "<testcase " : "\n";
  return countOf(text, entry) - countOf(text, "entries are left out");
}

TEST(Formats, AreWrittenWithinALimitAndSayWhatItLeavesOut) {
  const Record record = testing::sickRecord();
  for (const Format& format : formats()) {
    const std::string name = format.name;
    const std::string full = format.render(record);
    TextLimit nothing(0);
    const size_t frames = format.renderWithin(record, nothing).size();
    EXPECT_EQ(nothing.leftOut() > 0, name != "prometheus") << name;
    for (const size_t bytes :
         {size_t{1000}, full.size() / 4, full.size() / 2, full.size() - 1, 2 * full.size()}) {
      SCOPED_TRACE(fmt::format("{} within {} of {} bytes", name, bytes, full.size()));
      TextLimit limit(bytes);
      const std::string text = format.renderWithin(record, limit);
      EXPECT_LE(text.size(), bytes + frames + 1000);
      shapeOf(format, text);  // reads it
      if (limit.leftOut() == 0) {
        EXPECT_EQ(text, full);
        continue;
      }
      EXPECT_LT(bytes, full.size());
      EXPECT_NE(text.find(limit.note()), std::string::npos);
      if (name == "markdown" || name == "junit")
        continue;  // an entry has many lines; whole stages are left out
      EXPECT_EQ(entriesOf(format, text) + limit.leftOut(), entriesOf(format, full));
    }
  }
}

TEST(Formats, LeaveSamplesOutBeforeFindings) {
  const Record record = testing::sickRecord();
  const std::string full = format("ocp").render(record);
  TextLimit limit(full.size() / 2);
  const std::string text = format("ocp").renderWithin(record, limit);
  EXPECT_GT(limit.leftOut(), 1000u);
  EXPECT_GT(countOf(full, "\"FAIL\""), 1u);
  for (const char* word : {"\"FAIL\"", "\"extension\"", "\"error\"", "\"testStepEnd\""})
    EXPECT_EQ(countOf(text, word), countOf(full, word)) << word;
}

TEST(Formats, TakeTheTimeOfWhatTheyWrite) {
  Record record = testing::healthyRecord();
  record.stages[1].measurements[0].samples.assign(20'000'000, 0);
  for (const Format& format : formats()) {
    TextLimit limit(4u << 20);
    EXPECT_LT(format.renderWithin(record, limit).size(), 5u << 20) << format.name;
  }
}

TEST(Csv, GivesEverySampleBackBitForBit) {
  Record record = testing::sickRecord();
  record.node = "'=node";
  record.stages[1].measurements[0].samples = {-0.1, 1e-300, 1.0 / 3, 6.02214076e23};
  const auto rows = cellsOf(format("csv").render(record));
  size_t row = 1;
  for (const StageRecord& stage : record.stages)
    for (const Measurement& m : stage.measurements) {
      const size_t values = m.isText() ? 1 : m.samples.size();
      for (size_t i = 0; i < values; ++i, ++row) {
        ASSERT_LT(row, rows.size());
        ASSERT_EQ(rows[row].size(), rows[0].size());
        EXPECT_EQ(rows[row][1], "''=node");
        EXPECT_EQ(rows[row][2], stage.name);
        EXPECT_EQ(rows[row][4], m.metric);
        EXPECT_EQ(rows[row][12], std::to_string(i));
        if (m.isText())
          EXPECT_EQ(rows[row][13], m.text);
        else
          EXPECT_EQ(std::stod(rows[row][13]), m.samples[i]);
      }
    }
  EXPECT_EQ(row, rows.size());
}

TEST(Csv, MergesUnderOneHeader) {
  const std::string one = format("csv").render(testing::healthyRecord());
  const auto rows = cellsOf(format("csv").merge({one, one}));
  EXPECT_EQ(rows.size(), 2 * cellsOf(one).size() - 1);
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_NE(rows[i], rows[0]);
}

TEST(Prometheus, KeepsAllSeriesOfAMetricTogether) {
  Record other = testing::sickRecord();
  other.node = "n2";
  const std::string a = format("prometheus").render(testing::healthyRecord()),
                    b = format("prometheus").render(other);
  const std::string merged = format("prometheus").merge({a, b});
  EXPECT_EQ(
      merged.size() +
          [&] {
            size_t heads = 0;
            for (const std::string& line : split(a, '\n'))
              heads += line.starts_with("#") ? line.size() + 1 : 0;
            return heads;
          }(),
      a.size() + b.size());
  std::string last;
  std::set<std::string> seen;
  for (const std::string& line : split(merged, '\n')) {
    if (line.empty() || line.starts_with("#")) continue;
    const std::string name = line.substr(0, line.find('{'));
    EXPECT_TRUE(name == last || seen.insert(name).second) << name;
    last = name;
  }
}

TEST(Prometheus, BoundsLabelsAndSeries) {
  Record record = testing::healthyRecord();
  for (int i = 0; i < 300; ++i) {
    record.stages.push_back(record.stages[1]);
    record.stages.back().name = std::string(1000, 'a') + std::to_string(i);
  }
  const auto lines = split(format("prometheus").render(record), '\n');
  EXPECT_LT(lines.size(), 300u);
  for (const std::string& line : lines) EXPECT_LT(line.size(), 1000u);
}

/// All measurements of a stream that have a number and a validator, by whether it holds.
TEST(Ocp, ValidatorsHoldExactlyWhereRequirementsAreMet) {
  for (const auto& [kind, record] : everyKindOfRecord()) {
    size_t compared = 0;
    bool holds = false, validated = false;
    for (const std::string& line : split(format("ocp").render(record), '\n')) {
      if (line.empty()) continue;
      const Json json = parseJson(line).value();
      if (!json.contains("testStepArtifact")) continue;
      const Json& step = json["testStepArtifact"];
      if (step.contains("measurement") && step["measurement"]["value"].is_number()) {
        const Json& m = step["measurement"];
        validated = m.contains("validators");
        if (!validated) continue;
        const double value = m["value"], limit = m["validators"][0]["value"];
        const std::string type = m["validators"][0]["type"];
        holds = type == "EQUAL"                   ? value == limit
                : type == "GREATER_THAN_OR_EQUAL" ? value >= limit
                                                  : value <= limit;
      } else if (step.contains("diagnosis")) {
        const std::string verdict = step["diagnosis"]["verdict"];
        const bool passes = verdict.ends_with(" pass"), fails = verdict.ends_with(" fail");
        EXPECT_FALSE(validated && (holds ? fails : passes)) << line;
        compared += validated ? 1 : 0;
        validated = false;
      }
    }
    EXPECT_TRUE(record.stages.empty() || compared > 50) << kind;
  }
}

TEST(Ocp, HasEverySampleOfTheRecord) {
  const Record record = testing::sickRecord();
  size_t samples = 0, elements = 0;
  for (const StageRecord& stage : record.stages) {
    for (const Measurement& m : stage.measurements) samples += m.samples.size();
    for (const TelemetrySeries& series : stage.telemetry) samples += series.value.size();
  }
  for (const std::string& line : split(format("ocp").render(record), '\n'))
    elements += line.find("\"measurementSeriesElement\"") != std::string::npos ? 1 : 0;
  EXPECT_EQ(elements, samples);
}

TEST(Ocp, NamesThePartAndTheOutcomesItHasNoWordFor) {
  const std::string text = format("ocp").render(testing::sickRecord());
  for (const char* part :
       {"\"muster.waived\"", "\"muster.flaky\"", "\"muster.unjudged\"", "\"muster.skipped\"",
        "\"symptom\":\"rank-error\"", "\"result\":\"FAIL\"", "\"hardwareInfoId\":\"gpu3\""})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Ctrf, IsGreenOnlyWhenAccepted) {
  for (const auto& [kind, record] : everyKindOfRecord()) {
    const Json json = parseJson(format("ctrf").render(record)).value();
    const bool green =
        json["results"]["summary"]["failed"] == 0 && json["results"]["tests"][0]["status"] == "passed";
    EXPECT_EQ(green, record.acceptance == Acceptance::kAccepted) << kind;
  }
}

TEST(NodeLists, HoldEachNodeInOneOfThem) {
  const std::vector<NodeStanding> nodes = {{"n1", true}, {"n2", false}, {"n3", true}, {"n4", false}};
  EXPECT_EQ(nodeListFormats()[0].render(nodes), "n2,n4\n");
  EXPECT_EQ(nodeListFormats()[1].render(nodes), "n1\nn3\n");
  EXPECT_EQ(nodeListFormats()[0].render({}), "\n");
}

TEST(Ocp, HasTheLimitsOfThousandsOfTextsInTime) {
  Record record = testing::healthyRecord();
  record.stages.resize(2);
  StageRecord& stage = record.stages[1];
  Measurement text = stage.measurements[0];
  text.samples.clear();
  text.unit = text.text = "text";
  Verdict verdict = stage.verdicts[0];
  verdict.metric = text.metric;
  verdict.expectation->kind = CheckKind::kEquals;
  verdict.expectation->allowed = {"expected"};
  stage.measurements.clear();
  stage.verdicts.clear();
  record.inventory["devices"] = Json::array();
  for (int i = 0; i < 20'000; ++i) {
    text.device = verdict.device = "g" + std::to_string(i);
    text.labels = verdict.labels = {};
    stage.measurements.push_back(text);
    stage.verdicts.push_back(verdict);
    record.inventory["devices"].push_back({{"id", text.device}});
  }
  const std::string out = format("ocp").render(record);
  size_t limits = 0;
  for (size_t at = out.find("^(expected)$"); at != std::string::npos; at = out.find("^(expected)$", at + 1))
    ++limits;
  EXPECT_EQ(limits, 20'000u);

  // Of all ranks of one case, which share a requirement, each has it once; many requirements are bounded.
  for (Measurement& m : stage.measurements) m.device = "";
  for (size_t i = 0; i < stage.verdicts.size(); ++i) {
    stage.verdicts[i].device = "";
    if (i % 2 == 0) stage.verdicts[i].expectation->allowed = {std::string(90, 'x') + std::to_string(i)};
  }
  record.inventory["devices"] = Json::array();
  EXPECT_LT(format("ocp").render(record).size(), 100u << 20);
}

}  // namespace
}  // namespace muster
