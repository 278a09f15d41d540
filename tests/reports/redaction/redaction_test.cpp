// SPDX-License-Identifier: Apache-2.0
// No redacted value is left, anywhere; the same name has the same pseudonym; the record stays a record.
#include "reports/redaction/redaction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "reports/formats/formats.h"
#include "reports/html/html.h"
#include "reports/terminal/terminal.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;

const std::set<Secret> kAll = {Secret::kHost, Secret::kSerial, Secret::kAddress, Secret::kUser};

/// Names as clusters have them; the same seed gives the same ones.
class Names {
 public:
  explicit Names(unsigned seed) : random_(seed) {}
  std::string host() {
    static const char* const kStyles[] = {"dgx{}", "gpu-a{}",  "rack7-n{}",
                                          "h{}x",  "ip-{}-eu", "node{}.dc2.acme.example"};
    return fmt::format(fmt::runtime(kStyles[number(6)]), 10 + number(9000));
  }
  std::string serial() {
    return number(2) == 0 ? fmt::format("16{:011}", number(1'000'000'000))
                          : fmt::format("SN{:X}{:X}", 4096 + number(60000), 4096 + number(60000));
  }
  std::string uuid() {
    return fmt::format("GPU-{:08x}-77aa-4e0d-9c11-{:012x}", number(1'000'000'000), number(1'000'000'000));
  }
  std::string address() {
    switch (number(5)) {
      case 0:
        return fmt::format("fd00:{:x}:{:x}::{:x}", 1 + number(65000), 1 + number(65000), 1 + number(65000));
      case 1:
        return fmt::format("{}::{:x}", number(2) == 0 ? "fe80" : "FD07", 1 + number(65000));
      case 2:
        return fmt::format("b8:3f:d2:{:02x}:{:02x}:{:02x}", number(256), number(256), number(256));
      case 3:
        return fmt::format("b8-3f-d2-{:02x}-{:02x}-{:02x}", number(256), number(256), number(256));
      default:
        return fmt::format("10.{}.{}.{}", number(256), number(256), 1 + number(254));
    }
  }
  std::string user() {
    return fmt::format("{}{}", std::vector<std::string>{"mueller", "jdoe", "ops"}[number(3)], number(900));
  }
  size_t number(size_t below) { return random_() % below; }

 private:
  std::mt19937 random_;
};

/// A fleet whose records name its hosts, parts, addresses and users in fields and in free texts.
struct NamedFleet {
  std::vector<Record> records;
  std::set<std::string> values;
};

/// The value as it is, in capitals, in small letters, or a hardware address with other separators.
std::string otherWay(std::string value, Names& names) {
  const size_t way = names.number(5);
  if (way < 2) return way == 0 ? upperCase(value) : lowerCase(value);
  if (const bool mac = value.size() == 17 && value.starts_with("b8"); way < 4 && mac)
    for (char& c : value) c = c == '-' || c == ':' ? (way == 2 ? '-' : ':') : c;
  return value;
}

/// Healthy text that looks like addresses, which must stay.
constexpr const char* kHealthy =
    "12:34:56 std::abs ns::name c10::add v1.2.3.4 libcudnn.so.9.1.0.70 25-11-26-12-34-56 x[1::2] "
    "0000:17:00.0";

std::string sentence(const NamedFleet& fleet, Names& names) {
  static const char* const kForms[] = {
      "lost {} after 3 s", "[{}]", "x={};", "\"{}\" says no", "see /data/{}/log.txt",
      "{}:29400 refused",  "({})"};
  auto at = fleet.values.begin();
  std::advance(at, names.number(fleet.values.size()));
  return fmt::format(fmt::runtime(kForms[names.number(7)]), otherWay(*at, names));
}

/// The healthy record with few checks, samples and readings of each stage.
Record smallRecord() {
  Record record = healthyRecord();
  for (StageRecord& stage : record.stages) {
    stage.measurements.resize(3);
    stage.verdicts.resize(3);
    stage.telemetry.clear();
  }
  testing::settle(record);
  return record;
}

NamedFleet namedFleet(unsigned seed) {
  Names names(seed);
  NamedFleet fleet;
  const auto noted = [&](std::string value) { return *fleet.values.insert(std::move(value)).first; };
  for (size_t n = 0; n < 2 + names.number(3); ++n) {
    Record record = smallRecord();
    record.node = noted(names.host());
    record.runId = runIdOf(record.node, record.started);
    record.bootId = noted(names.uuid());
    record.inventory["host"]["name"] = record.node;
    record.inventory["host"]["board_serial"] = noted(names.serial());
    for (Json& device : record.inventory["devices"]) {
      device["serial"] = noted(names.serial());
      device["uuid"] = noted(names.uuid());
    }
    record.inventory["nics"][0]["address"] = noted(names.address());
    record.launcher["rendezvous"] = record.node + ":29400";
    record.stages.back().group["around"] = {{{"node_rank", 0}, {"node", record.node}},
                                            {{"node_rank", 1}, {"node", noted(names.host())}}};
    record.command = {"muster", "run", "/home/" + noted(names.user()) + "/plan.toml",
                      fmt::format("ssh://{}:{}@login/x", noted(names.user()), noted(names.user()))};
    fleet.records.push_back(std::move(record));
  }
  for (Record& record : fleet.records) {
    record.reasons = {sentence(fleet, names), sentence(fleet, names)};
    record.environment["NOTE"] = sentence(fleet, names);
    record.plan.text += "# " + sentence(fleet, names) + "\n";
    record.plan.sha256 = sha256Hex(record.plan.text);
    for (StageRecord& stage : record.stages) {
      stage.log = {sentence(fleet, names), kHealthy};
      stage.ranks[0].outputTail = sentence(fleet, names);
      stage.verdicts[0].detail = sentence(fleet, names);
      stage.cases[0].params["note"] = {{sentence(fleet, names), sentence(fleet, names)}};
      stage.measurements[0].labels["part"] = stage.verdicts[0].labels["part"] = sentence(fleet, names);
    }
  }
  return fleet;
}

/// The value in small letters, also with the other separators of hardware addresses.
std::vector<std::string> writingsOf(const std::string& value) {
  std::vector<std::string> all = {lowerCase(value)};
  if (value.size() != 17 || !value.starts_with("b8")) return all;
  for (const char separator : {'-', ':'}) {
    std::string other = all.front();
    for (const size_t at : {2, 5, 8, 11, 14}) other[at] = separator;
    all.push_back(other);
  }
  return all;
}

/// Where `value` stands in `text`: as a word, or if it is long anywhere. Written apart from the redaction's
/// own.
bool standsIn(const std::string& text, const std::string& value) {
  const auto word = [&](size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at + 1)) {
    const bool inWord = (at > 0 && word(at - 1)) || word(at + value.size());
    if (value.size() >= 8 || !inWord) return true;
  }
  return false;
}

std::vector<Record> redact(const NamedFleet& fleet, Redaction& redaction) {
  for (const Record& record : fleet.records) redaction.collect(record);
  const Status named = redaction.name();
  EXPECT_TRUE(named.ok()) << (named.ok() ? "" : named.error().text());
  std::vector<Record> out;
  for (const Record& record : fleet.records) {
    auto redacted = redaction.apply(record, sha256Hex(recordText(record)));
    EXPECT_TRUE(redacted.ok()) << (redacted.ok() ? "" : redacted.error().text());
    if (redacted.ok()) out.push_back(std::move(*redacted));
  }
  return out;
}

TEST(Redaction, LeavesNoValueInAnyOutput) {
  const testing::TemplatesFolder templates;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const NamedFleet fleet = namedFleet(seed);
    Redaction redaction(kAll);
    for (const Record& record : redact(fleet, redaction)) {
      std::vector<std::string> outputs = {recordText(record), renderSummary(record, false, 100)};
      for (const Format& format : formats()) outputs.push_back(format.render(record));
      const auto html = renderHtml(record, sha256Hex(outputs[0]), templates.path());
      ASSERT_TRUE(html.ok());
      outputs.push_back(*html);
      EXPECT_NE(outputs[0].find(kHealthy), std::string::npos);
      for (const std::string& output : outputs) {
        const std::string small = lowerCase(output);
        EXPECT_NE(small.find("redacted"), std::string::npos) << output.substr(0, 80);
        for (const std::string& value : fleet.values)
          for (const std::string& writing : writingsOf(value))
            EXPECT_FALSE(standsIn(small, writing)) << writing << " in " << output.substr(0, 40);
      }
    }
  }
}

TEST(Redaction, GivesOneNameOnePseudonymInAllRecords) {
  const NamedFleet fleet = namedFleet(99);
  Redaction redaction(kAll);
  const auto records = redact(fleet, redaction);
  ASSERT_EQ(records.size(), fleet.records.size());
  std::map<std::string, std::string> before;
  for (size_t i = 0; i < records.size(); ++i)
    for (size_t d = 0; d < 8; ++d)
      for (const char* key : {"serial", "uuid"}) {
        const std::string was = fleet.records[i].inventory["devices"][d][key],
                          is = records[i].inventory["devices"][d][key];
        EXPECT_EQ(before.try_emplace(is, was).first->second, was);
        EXPECT_NE(is, was);
      }
}

TEST(Redaction, GoesOnWithAnEarlierMap) {
  const NamedFleet fleet = namedFleet(7);
  Redaction first(kAll), second(kAll);
  const auto before = redact(fleet, first);
  ASSERT_TRUE(second.take(first.toJson()).ok());
  NamedFleet larger = namedFleet(8);
  larger.records.insert(larger.records.begin(), fleet.records.begin(), fleet.records.end());
  const auto after = redact(larger, second);
  ASSERT_GE(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(recordText(after[i]), recordText(before[i]));
}

TEST(Redaction, KeepsEverySampleAndTheVerdict) {
  const NamedFleet fleet = namedFleet(3);
  Redaction redaction(kAll);
  const auto records = redact(fleet, redaction);
  ASSERT_EQ(records.size(), fleet.records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const Record &was = fleet.records[i], &is = records[i];
    EXPECT_TRUE(checkRecord(is).ok());
    EXPECT_EQ(is.acceptance, was.acceptance);
    EXPECT_EQ(is.redacted.fromSha256, sha256Hex(recordText(was)));
    for (size_t s = 0; s < was.stages.size(); ++s)
      for (size_t m = 0; m < was.stages[s].measurements.size(); ++m)
        EXPECT_EQ(is.stages[s].measurements[m].samples, was.stages[s].measurements[m].samples);
  }
}

TEST(Redaction, KnowsAValueInEveryWriting) {
  Record record = smallRecord();
  const std::string uuid = record.inventory["devices"][0]["uuid"];
  record.inventory["nics"][0]["address"] = "0c:42:a1:12:34:56";
  record.stages[0].log = {"host " + upperCase(record.node) + ", " + upperCase(uuid),
                          "uuid " + uuid.substr(4) + " at [fd00::17]:29400 and fe80::1%eth0",
                          "mac 0C-42-A1-12-34-56, 0c42.a112.3456", "ssh://jdoe@n1:22; /scratch/jdoe/run"};
  Redaction redaction(kAll);
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  for (const std::string& line : record.stages[0].log) EXPECT_NE(redaction.leftIn(line), "") << line;
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok()) << redacted.error().text();
  const std::string gpu = redacted->inventory["devices"][0]["uuid"];
  const std::string mac = redacted->inventory["nics"][0]["address"];
  EXPECT_EQ(redacted->stages[0].log[0], "host " + redacted->node + ", " + gpu);
  EXPECT_EQ(redacted->stages[0].log[1].find("uuid " + gpu + " at [address"), 0U);
  EXPECT_EQ(redacted->stages[0].log[2], "mac " + mac + ", " + mac);
  EXPECT_EQ(redacted->stages[0].log[3], "ssh://user0001@n1:22; /scratch/user0001/run");
  for (const std::string& line : redacted->stages[0].log) EXPECT_EQ(redaction.leftIn(line), "") << line;
}

TEST(Redaction, RefusesAMapWithTwoPseudonymsForOneName) {
  Redaction redaction(kAll);
  const Status taken =
      redaction.take({{"redaction_schema", 1}, {"host", {{"N1", "host0001"}, {"n1", "host0002"}}}});
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().text().find("two pseudonyms"), std::string::npos);
}

TEST(Redaction, WritesHostListsOut) {
  Record record = healthyRecord();
  record.node = "rack7-n17";
  record.runId = "x";
  record.inventory["host"]["name"] = record.node;
  record.plan.text += "# rack7-n[17,18]\n";
  record.plan.sha256 = sha256Hex(record.plan.text);
  record.environment["SLURM_JOB_NODELIST"] = "rack7-n[16-18]";
  Redaction redaction(kAll);
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok());
  EXPECT_EQ(redacted->environment.at("SLURM_JOB_NODELIST"), "host0001,host0002,host0003");
  EXPECT_TRUE(redacted->plan.text.ends_with("# host0002,host0003\n"));
}

/// What is replaced may be what made the quotes necessary.
TEST(Redaction, KeepsACommandToRunAgain) {
  Record record = healthyRecord();
  record.node = "n17";
  record.inventory["host"]["name"] = record.node;
  record.stages[1].ranks[0].rerun = "'/runs/n[16-17]/muster-host' --request '/runs/n[16-17]/r.json'";
  Redaction redaction(kAll);
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok()) << redacted.error().text();
  EXPECT_EQ(redacted->stages[1].ranks[0].rerun.find("n17"), std::string::npos);
}

/// A matrix over a path gives case ids that hold the path: they are keys of the evidence, too.
TEST(Redaction, ReplacesCaseIdsThatAreKeys) {
  Record record = smallRecord();
  record.stages[1].log = {"/home/jdoe/data is full"};
  const std::string id = "loading[directory=/home/jdoe/data]";
  for (const char* map : {"case_metrics", "case_labels"}) record.stages[1].evidence[map][id] = Json::object();
  record.stages[1].evidence["case_metrics"][id] = Json::array({"storage.rate"});
  record.stages[1].evidence["case_labels"][id] = {{"directory", "/home/jdoe/data"}};
  Redaction redaction(kAll);
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok()) << redacted.error().text();
  EXPECT_EQ(recordText(*redacted).find("jdoe"), std::string::npos);
  const Json& evidence = redacted->stages[1].evidence;
  const std::string renamed = "loading[directory=/home/user0001/data]";
  EXPECT_EQ(evidence["case_metrics"][renamed], Json::array({"storage.rate"}));
  EXPECT_EQ(evidence["case_labels"][renamed]["directory"], "/home/user0001/data");
}

/// The record of the node n17 with this part in its inventory, redacted.
Result<Record> redactedWith(const std::string& key, const Json& part) {
  Record record = smallRecord();
  record.node = "n17";
  record.inventory["host"]["name"] = record.node;
  record.inventory["host"][key] = part;
  Redaction redaction(kAll);
  redaction.collect(record);
  const Status named = redaction.name();
  if (!named.ok()) return named.error();
  return redaction.apply(record, sha256Hex(""));
}

/// A few bytes of a list stand for 65,536 names: a record of a megabyte would become one of many gigabytes.
TEST(Redaction, RefusesListsBeyondABound) {
  for (const char* key : {"note", "x_nodelist"}) {
    EXPECT_TRUE(redactedWith(key, Json(3, "n[0-65535]")).ok()) << key;
    const auto many = redactedWith(key, Json(2000, "n[0-65535]"));
    ASSERT_FALSE(many.ok()) << key;
    EXPECT_NE(many.error().text().find("they take more than 64 MiB"), std::string::npos)
        << many.error().text();
  }
}

/// Bytes count, not hosts; also of text that is no list once its first hosts were written out.
TEST(Redaction, RefusesListsOfLongNames) {
  const std::string name(240, 'x');
  for (const std::string& list : {"n[1-65536]" + name, "n[1-65536]]" + name, std::string("n[1-65536-")}) {
    const auto many = redactedWith("note", Json(40, list));
    ASSERT_FALSE(many.ok()) << list;
    EXPECT_NE(many.error().text().find("name too many hosts"), std::string::npos) << many.error().text();
  }
  EXPECT_FALSE(redactedWith("nodelist", name + "n[1-65536]").ok());  // would be kept
}

TEST(Redaction, RefusesARecordThatWouldBeTooLarge) {
  const auto large = redactedWith("note", Json(1'500'000, "n17"));
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().text().find("a record has at most 16777216"), std::string::npos)
      << large.error().text();
}

TEST(Redaction, ReadsAListOnce) {
  for (const std::string& text : {std::string(5'000'000, '['), "n[17] " + std::string(5'000'000, '[')}) {
    const auto redacted = redactedWith("note", text);
    ASSERT_TRUE(redacted.ok()) << redacted.error().text();
    EXPECT_EQ(redacted->inventory["host"]["note"].get<std::string>().find("n17"), std::string::npos);
  }
}

/// Texts made of names, lists and parts of them.
TEST(Redaction, LeavesNoNameOfAList) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Names names(seed);
    const std::vector<std::string> hosts = {names.host(), names.host(), names.host()};
    std::vector<std::string> parts = {"[", "]", ",", " ", "-", ":", "[1-3]", "x[", "[7,9-11]", "a"};
    for (const std::string& host : hosts) {
      const size_t digit = host.find_first_of("0123456789");
      const size_t end = std::min(host.find_first_not_of("0123456789", digit), host.size());
      parts.push_back(host);
      parts.push_back(" " + host.substr(0, digit) + "[" + host.substr(digit, end - digit) + ",3-5]" +
                      host.substr(end));
    }
    std::string text;
    for (int i = 0; i < 40; ++i) text += parts[names.number(parts.size())];
    const auto redacted = redactedWith("x", {{"nodelist", join(hosts, ",")}, {"note", text}});
    ASSERT_TRUE(redacted.ok()) << redacted.error().text();
    const std::string note = redacted->inventory["host"]["x"]["note"];
    for (const std::string& host : hosts) EXPECT_FALSE(standsIn(note, host)) << host << " in " << note;
  }
}

TEST(Redaction, ReplacesWordsOfAMapOnlyOnceTheyAreAddedAgain) {
  const Json map = {{"redaction_schema", 1}, {"word", {{"Falcon", "word0007"}, {"gemm", "pass"}}}};
  Record record = smallRecord();
  record.environment["NOTE"] = "falcon eagle";
  for (const bool again : {true, false}) {
    auto rules = kAll;
    rules.insert(Secret::kWord);
    Redaction redaction(rules);
    ASSERT_TRUE(redaction.take(map).ok());
    redaction.collect(record);
    if (again) redaction.addWord("falcon");
    redaction.addWord("eagle");
    ASSERT_TRUE(redaction.name().ok());
    const auto redacted = redaction.apply(record, sha256Hex(""));
    ASSERT_TRUE(redacted.ok()) << redacted.error().text();
    EXPECT_EQ(redacted->environment.at("NOTE"), again ? "word0007 word0001" : "falcon word0001");
    EXPECT_EQ(redaction.wordsLeftOut(), again ? 1U : 2U);
    EXPECT_EQ(redaction.toJson()["word"],
              Json({{"eagle", "word0001"}, {"Falcon", "word0007"}, {"gemm", "pass"}}));
  }
}

/// Time for each value, not for each pair of them.
TEST(Redaction, WritesAMapOfManyValues) {
  constexpr size_t kMany = 100'000;
  Redaction redaction({Secret::kWord});
  for (size_t i = 0; i < kMany; ++i) redaction.addWord("secret" + std::to_string(i));
  ASSERT_TRUE(redaction.name().ok());
  const std::clock_t before = std::clock();
  EXPECT_EQ(redaction.toJson()["word"].size(), kMany);
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 5);
}

TEST(Redaction, ReplacesOnlyWhatItsRulesName) {
  const Record record = healthyRecord();
  Redaction redaction({Secret::kHost});
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok());
  EXPECT_EQ(redacted->node, "host0001");
  EXPECT_EQ(redacted->inventory["devices"], record.inventory["devices"]);
}

TEST(Redaction, RefusesANameThatIsAWordOfTheFormat) {
  Record record = healthyRecord();
  record.node = "accepted";
  record.runId = "x";
  Redaction redaction(kAll);
  redaction.collect(record);
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_FALSE(redacted.ok());
  EXPECT_NE(redacted.error().text().find("also a word that the record needs"), std::string::npos);
}

TEST(Redaction, ChoosesPseudonymsThatAreNoNamesThemselves) {
  Record record = healthyRecord();
  record.node = "host0001";
  record.runId = "x";
  Redaction redaction(kAll);
  redaction.collect(record);
  redaction.addWord("host0002");  // not replaced: no rule for words
  ASSERT_TRUE(redaction.name().ok());
  const auto redacted = redaction.apply(record, sha256Hex(""));
  ASSERT_TRUE(redacted.ok());
  EXPECT_EQ(redacted->node, "host0002");
}

}  // namespace
}  // namespace muster
