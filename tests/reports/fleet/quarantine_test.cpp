// SPDX-License-Identifier: Apache-2.0
// Torn and hostile records: each is set aside with a reason, and never stops the rest.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <new>

#include "reports/fleet/read/interrupted_run.h"
#include "runner/system/trust.h"
#include "tests/reports/fleet/fleet_folder.h"

namespace muster {
namespace {

using testing::failedRecord;
using testing::FleetFolder;
using ::testing::HasSubstr;
using testing::nodeRecord;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A good node beside one whose record has this text: the reason why that one is quarantined.
std::string reasonFor(const std::string& text) {
  FleetFolder folder;
  folder.add(nodeRecord("good"));
  folder.write("bad/record.json", text);
  const fleet::Fleet fleet = folder.assess({"good", "bad"});
  EXPECT_EQ(testing::nodeOf(fleet, "good").state, fleet::NodeState::kAccepted);
  EXPECT_NE(testing::nodeOf(fleet, "bad").state, fleet::NodeState::kAccepted);
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_EQ(fleet.quarantined.size(), 1u);
  return fleet.quarantined.size() == 1 ? fleet.quarantined[0].path + ": " + fleet.quarantined[0].reason
                                       : "none";
}

const std::string& goodText() {
  static const std::string text = recordText(nodeRecord("bad"));
  return text;
}

/// Wherever it is cut: after a closing brace, and a little before.
TEST(Quarantine, NamesARecordTruncatedAnywhere) {
  const std::string& text = goodText();
  fleet::FleetNames names;
  fleet::RecordReader reader(names);
  size_t cuts = 0;
  for (size_t brace = text.rfind('}') - 1; brace > 300; brace -= 200) {
    brace = text.rfind('}', brace);
    if (brace == std::string::npos || brace <= 300) break;
    for (const size_t size : {brace + 1, brace - 2}) {
      const auto read = reader.parse(text.substr(0, size));
      ASSERT_FALSE(read.ok()) << size;
      ASSERT_THAT(read.error().message, HasSubstr("truncated: the JSON ends after")) << size;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 20u);
}

TEST(Quarantine, NamesATruncatedRecord) {
  EXPECT_THAT(reasonFor(goodText().substr(0, goodText().size() / 2)),
              HasSubstr("bad/record.json: truncated: the JSON ends after"));
  EXPECT_THAT(reasonFor(""), HasSubstr("truncated: the file is empty"));
}

TEST(Quarantine, NamesOneThatIsFourGigabytesLong) {
  FleetFolder folder;
  folder.add(nodeRecord("good"));
  folder.write("bad/record.json", "{");
  std::filesystem::resize_file(folder.path() / "bad/record.json", 4ull << 30);  // sparse
  const fleet::Fleet fleet = folder.assess({"good", "bad"});
  ASSERT_EQ(fleet.quarantined.size(), 1u);
  EXPECT_THAT(fleet.quarantined[0].reason, HasSubstr("4 GiB long"));
  EXPECT_EQ(testing::nodeOf(fleet, "good").state, fleet::NodeState::kAccepted);
}

TEST(Quarantine, NamesAnotherSchema) {
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"schema\": 2", "\"schema\": 99")), HasSubstr("schema 99"));
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"schema\": 2", "\"schema\": 1")),
              HasSubstr("a record of schema 1, written by an older Muster; this one reads schema 2"));
  EXPECT_THAT(reasonFor("{\"a\": 1}"), HasSubstr("no schema version"));
  EXPECT_THAT(reasonFor("[1, 2]"), HasSubstr("not a record"));
}

/// Each list and object of a record, in place of which is nothing, or something else.
TEST(Quarantine, NamesAFieldThatIsMissingOrOfAnotherType) {
  const auto reason = [](const Json& record) {
    fleet::FleetNames names;
    const auto read = fleet::RecordReader(names).parse(dumpJson(record));
    return read.ok() ? "none" : read.error().message;
  };
  const Json good = parseJson(goodText()).value();
  for (const char* field :
       {"/stages", "/reasons", "/accounting", "/accounting/counts", "/run", "/run/overrides", "/plan",
        "/profile", "/tool", "/launcher", "/inventory", "/stages/1/verdicts", "/stages/1/measurements",
        "/stages/1/artifacts", "/stages/1/ranks", "/stages/1/evidence"}) {
    const Json::json_pointer at(field);
    Json without = good;
    without[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(reason(without), HasSubstr(at.back() + ": is missing"));
    for (const Json& other : {Json(), Json(1), Json("x"), Json(true)}) {
      Json odd = good;
      odd[at] = other;
      EXPECT_THAT(reason(odd), HasSubstr(at.back() + ": must be ")) << field;
    }
  }
  Json odd = good;
  odd["stages"][1]["evidence"]["expectations"] = 1;
  EXPECT_THAT(reason(odd), HasSubstr("evidence.expectations"));
  odd["stages"][1]["evidence"].erase("expectations");
  for (Json& verdict : odd["stages"][1]["verdicts"]) verdict["expectation"] = 0;
  EXPECT_THAT(reason(odd), HasSubstr("is not in the stage's evidence.expectations"));
  odd = good;
  for (Json& measurement : odd["stages"][1]["measurements"]) {
    measurement.erase("rank");
    if (measurement.contains("rows")) measurement["rows"].erase("rank");
  }
  EXPECT_THAT(reason(odd), HasSubstr("rank: a measurement has none"));
}

/// One reader takes the first of two, the next the last.
TEST(Quarantine, NamesAFieldThatStandsTwice) {
  EXPECT_THAT(
      reasonFor(replaced(goodText(), "\"acceptance\":", "\"acceptance\": \"rejected\", \"acceptance\":")),
      HasSubstr("acceptance: is defined twice in one object"));
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"outcome\":", "\"outcome\": \"pass\", \"outcome\":")),
              HasSubstr("outcome: is defined twice in one object"));
}

TEST(Quarantine, NamesAMillionMeasurements) {
  std::string many;
  for (int i = 0; i < 250'000; ++i) many += "{\"metric\":\"a.b\",\"unit\":\"s\",\"case\":\"\",\"rank\":0},";
  const std::string text = replaced(goodText(), "\"measurements\": [", "\"measurements\": [" + many);
  EXPECT_THAT(reasonFor(text), HasSubstr("more than 50000 measurements"));
  many += many + many + many;
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"measurements\": [", "\"measurements\": [" + many)),
              HasSubstr("long"));
}

TEST(Quarantine, NamesRowsThatAreTooMany) {
  const std::string group = R"({"metric":"a.b","unit":"s","direction":"lower","case":"","rows":{"rank":[)";
  std::string ranks, samples;
  for (int i = 0; i < 49'000; ++i) {
    ranks += (i == 0 ? "" : ",") + std::to_string(i);
    samples += i == 0 ? R"({"n":1000,"value":1})" : R"(,{"n":1000,"value":1})";
  }
  const auto with = [&](const std::string& columns) {
    return replaced(goodText(), "\"measurements\": [", "\"measurements\": [" + group + columns + "}},");
  };
  EXPECT_THAT(reasonFor(with(ranks + "],\"samples\":[" + samples + "]")),
              HasSubstr("more than 4000000 samples"));
  EXPECT_THAT(reasonFor(with(ranks + "," + ranks + "]")), HasSubstr("more than 50000 measurements"));
  EXPECT_THAT(reasonFor(with("0,1],\"device\":[\"gpu0\"]")), HasSubstr("columns of unequal length"));
  EXPECT_THAT(reasonFor(with("]")), HasSubstr("at least one row"));
  EXPECT_THAT(reasonFor(with("0],\"samples\":[{\"n\":1001,\"value\":1}]")),
              HasSubstr("not a list of numbers"));
}

/// What costs two bytes per row in the file costs a name or an expectation when it is read.
TEST(Quarantine, NamesTextsThatRowsUnfoldWithoutBound) {
  const auto with = [&](const std::string& name, const std::string& text, size_t rows) {
    std::string cases, samples;
    for (size_t i = 0; i < rows; ++i) {
      cases += fmt::format("{}\"{}\"", i == 0 ? "" : ",", i);
      samples += i == 0 ? "[1]" : ",[1]";
    }
    const std::string fields = name == "metric" ? "" : R"("metric":"a.b",)";
    return replaced(goodText(), "\"measurements\": [",
                    fmt::format("\"measurements\": [{{{}\"{}\":\"{}\",\"unit\":\"s\",\"direction\":\"lower\","
                                "\"rank\":0,\"rows\":{{\"case\":[{}],\"samples\":[{}]}}}},",
                                fields, name, text, cases, samples));
  };
  EXPECT_THAT(reasonFor(with("metric", std::string(1u << 20, 'M'), 2)), HasSubstr("longer than 1000 bytes"));
  EXPECT_THAT(reasonFor(with("device", std::string(1u << 20, 'D'), 20)), HasSubstr("unfold to more than"));
  EXPECT_THAT(reasonFor(with("text", std::string(1u << 20, 'T'), 20)), HasSubstr("unfold to more than"));
  Json record = Json::parse(goodText());
  Json& expectations = record["stages"][1]["evidence"]["expectations"];
  for (int i = 0; i < 1'001; ++i) expectations.push_back({{"metric", "a.b"}, {"kind", "min"}});
  EXPECT_THAT(reasonFor(record.dump()), HasSubstr("evidence.expectations: the stage has more than 1000"));
}

/// What rows share costs nothing per row in the file, and 6 KB in the name of each figure.
TEST(Quarantine, NamesFiguresWhoseNamesAreTooManyOrTooLarge) {
  const auto with = [](size_t rows, int labelCount) {
    Json labels = Json::object(), cases = Json::array();
    for (int i = 0; i < labelCount; ++i) labels[fmt::format("l{}", i)] = "";
    for (size_t i = 0; i < rows; ++i) cases.push_back(std::to_string(i));
    Json record = parseJson(goodText()).value();
    record["stages"].back()["measurements"].push_back({{"metric", "a.b"},
                                                       {"unit", "s"},
                                                       {"direction", "lower"},
                                                       {"labels", labels},
                                                       {"samples", {1}},
                                                       {"rank", 0},
                                                       {"rows", {{"case", cases}}}});
    return dumpJson(record);
  };
  EXPECT_THAT(reasonFor(with(5'000, 62)), HasSubstr("expand to more than"));
  FleetFolder folder;
  folder.write("bad/record.json", with(25'000, 3));
  EXPECT_EQ(folder.assess({"bad"}).quarantined.size(), 0u)
      << "as many as the links of a ring of 1,000 nodes on eight rails";
  EXPECT_GE(folder.records().names->figures.size(), 5'000u);
}

/// 300 expectations of 60 labels each, beside 100 rows of as many: minutes of comparing in a larger record.
TEST(Quarantine, NamesLabelsThatAreTooManyToCompare) {
  Json labels = Json::object();
  for (int i = 0; i < 60; ++i) labels["label" + std::to_string(i)] = "x";
  Json record = parseJson(goodText()).value();
  for (Json& stage : record["stages"]) {
    if (stage["name"] != "gemm") continue;
    Json& expectations = stage["evidence"]["expectations"];
    for (int i = 0; i < 300; ++i) {
      expectations.push_back({{"metric", "compute.gemm_throughput"},
                              {"kind", "min"},
                              {"limit", i},
                              {"unit", "FLOP/s"},
                              {"source", "a test"},
                              {"remedy", "none"},
                              {"where", labels}});
    }
    stage["measurements"].push_back({{"metric", "compute.gemm_throughput"},
                                     {"unit", "FLOP/s"},
                                     {"case", "gemm"},
                                     {"device", "gpu0"},
                                     {"direction", "higher"},
                                     {"labels", labels},
                                     {"samples", {1}},
                                     {"rows", {{"rank", std::vector<int>(100, 0)}}}});
  }
  EXPECT_THAT(reasonFor(dumpJson(record)), HasSubstr("too many labels to compare"));
}

TEST(Quarantine, NamesTheRecordThatThereIsNoMemoryFor) {
  const std::string text = goodText();
  const auto records =
      fleet::readEach({2,
                       [&](fleet::RecordReader& reader, size_t i) {
                         if (i == 0) throw std::bad_alloc();
                         return reader.parse(text);
                       },
                       [](size_t i) { return i == 0 ? "bomb/record.json" : "good/record.json"; }},
                      1);
  ASSERT_EQ(records.quarantined.size(), 1u);
  EXPECT_EQ(records.quarantined[0].path, "bomb/record.json");
  EXPECT_THAT(records.quarantined[0].reason, HasSubstr("not enough memory"));
  EXPECT_EQ(records.nodes.size(), 1u);
}

TEST(Quarantine, ListsTheFirstThousandsAndCountsTheRest) {
  FleetFolder folder;
  std::string deep;
  for (int i = 0; i < 12; ++i) deep += std::string(150, 'd') + "/";
  folder.write(deep + "n1/record.json", "");
  for (int i = 0; i < 2'004; ++i) folder.write(fmt::format("x{}/record.json", i), "");
  const fleet::Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(testing::nodeOf(fleet, "n1").state, fleet::NodeState::kQuarantined)
      << "the end of its path says whose it is";
  ASSERT_EQ(fleet.quarantined.size(), 2'000u);
  EXPECT_THAT(fleet.quarantined[0].path, ::testing::EndsWith("/n1/record.json"));
  EXPECT_LT(fleet.quarantined[0].path.size(), 310u);
  EXPECT_THAT(fleet.notes,
              ::testing::Contains(HasSubstr("2005 records could not be used; the first 2000 are listed")));
}

TEST(Quarantine, NamesJournalsThatAreNone) {
  FleetFolder folder;
  folder.add(nodeRecord("good"));
  for (const char* name : {"pipe", "huge", "link"}) std::filesystem::create_directory(folder.path() / name);
  ASSERT_EQ(mkfifo((folder.path() / "pipe/journal.jsonl").c_str(), 0600), 0);
  folder.write("huge/journal.jsonl", "{}\n");
  std::filesystem::resize_file(folder.path() / "huge/journal.jsonl", 10ull << 40);  // sparse
  std::filesystem::create_symlink("/dev/zero", folder.path() / "link/journal.jsonl");
  const fleet::Fleet fleet = folder.assess({"good"});
  ASSERT_EQ(fleet.quarantined.size(), 3u);
  EXPECT_THAT(fleet.quarantined[0].reason, HasSubstr("exceeds the maximum"));
  for (const size_t i : {1u, 2u}) EXPECT_THAT(fleet.quarantined[i].reason, HasSubstr("not a regular file"));
  EXPECT_EQ(fleet.exitCode, 0);
}

TEST(Quarantine, NamesNamesThatLeadOutOfTheFolder) {
  Record record = nodeRecord("bad");
  record.node = "../../etc";
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("is not a node name"));
  record = nodeRecord("bad");
  record.stages.front().artifacts = {{"log", "../../etc/passwd", "text/plain", 1, std::string(64, 'b')}};
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("leaves the record's folder"));
  record = nodeRecord("bad");
  record.stages.front().name = "../../x";
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("is not a stage name"));
}

TEST(Quarantine, NamesNaN) {
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"started\": ", "\"started\": NaN, \"x\": ")),
              HasSubstr("invalid JSON"));
  EXPECT_THAT(reasonFor(replaced(goodText(), "\"started\": ", "\"started\": \"nan\", \"x\": ")),
              HasSubstr("started: is not a number of zero or more"));
  Record record = nodeRecord("bad");
  for (StageRecord& stage : record.stages)
    for (Measurement& m : stage.measurements)
      if (!m.informational && m.direction != Direction::kNone && m.unit == "FLOP/s")
        m.samples[0] = std::nan("");
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("holds NaN, yet the record says accepted"));
}

TEST(Quarantine, NamesEditedRecords) {
  EXPECT_THAT(reasonFor(replaced(recordText(failedRecord("bad")), "\"rejected\"", "\"accepted\"")),
              HasSubstr("edited"));
  Record record = failedRecord("bad");
  record.acceptance = Acceptance::kAccepted;
  record.exitCode = 0;
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("block acceptance"));
  --record.accounting.counts[0];
  EXPECT_THAT(reasonFor(recordText(record)), HasSubstr("accounting says"));
}

/// As a run before this rule wrote it: two of three nodes accepted a stage in which the third died.
TEST(Quarantine, NamesAStageThatPassedDespiteAFaultyComponent) {
  Record record = nodeRecord("bad");
  StageRecord& stage = record.stages.back();
  stage.scope = Scope::kCluster;
  stage.group = {{"world_size", 3}, {"first_rank", 0}, {"nodes", 3}, {"culprit", ""}};
  FleetFolder folder;
  folder.add(record);
  EXPECT_EQ(testing::nodeOf(folder.assess({"bad"}), "bad").state, fleet::NodeState::kAccepted);
  stage.group["culprit"] = "node 1 (n1) was lost: no heartbeat for 10 s";
  EXPECT_THAT(reasonFor(recordText(record)),
              HasSubstr("a faulty component is named, but the stage has no error"));
}

TEST(Quarantine, NamesWhatCannotBeTheNodesAroundIt) {
  Record record = nodeRecord("bad");
  StageRecord& stage = record.stages.back();
  stage.scope = Scope::kCluster;
  const auto around = [&](const Json& list) {
    stage.group = {{"world_size", 3}, {"first_rank", 0}, {"nodes", 3},
                   {"id", "a"},       {"around", list},  {"culprit", ""}};
    return recordText(record);
  };
  const Json one = {{"node_rank", 1}, {"node", "n1"}, {"first_rank", 0}, {"ranks", 1}};
  FleetFolder folder;
  folder.write("bad/record.json",
               around({one, {{"node_rank", 2}, {"node", "n2"}, {"first_rank", 0}, {"ranks", 1}}}));
  EXPECT_EQ(testing::nodeOf(folder.assess({"bad"}), "bad").state, fleet::NodeState::kAccepted);
  EXPECT_THAT(reasonFor(around({one, one})), HasSubstr("group.around: names node 1 twice"));
  EXPECT_THAT(reasonFor(around({{{"node_rank", 1}, {"node", "../n1"}, {"first_rank", 0}, {"ranks", 1}}})),
              HasSubstr("is not a node name"));
  EXPECT_THAT(reasonFor(around({{{"node_rank", -1}, {"node", "n1"}, {"first_rank", 0}, {"ranks", 1}}})),
              HasSubstr("out of range"));
  EXPECT_THAT(reasonFor(around({"n1"})), HasSubstr("has an entry that is not an object"));
  EXPECT_THAT(reasonFor(around("n1")), HasSubstr("around: must be a list"));
  Json many = Json::array();
  for (int number = 0; number < 40; ++number)
    many.push_back({{"node_rank", number}, {"node", "n"}, {"first_rank", 0}, {"ranks", 1}});
  EXPECT_THAT(reasonFor(around(many)), HasSubstr("lists more than 32 nodes"));
}

TEST(Quarantine, NamesWhatIsNotAFile) {
  FleetFolder folder;
  folder.add(nodeRecord("good"));
  std::filesystem::create_directory(folder.path() / "pipe");
  ASSERT_EQ(mkfifo((folder.path() / "pipe/record.json").c_str(), 0600), 0);
  std::filesystem::create_directory(folder.path() / "link");
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "link/record.json");
  const fleet::Fleet fleet = folder.assess({"good"});
  ASSERT_EQ(fleet.quarantined.size(), 2u);
  EXPECT_THAT(fleet.quarantined[0].reason, HasSubstr("cannot read it"));
  EXPECT_THAT(fleet.quarantined[1].reason, HasSubstr("expected a regular file"));
  EXPECT_EQ(fleet.exitCode, 0) << "nothing that is expected depends on them";
}

TEST(Quarantine, SaysWhichNodeItWas) {
  FleetFolder folder;
  folder.write("x/record.json", replaced(goodText(), "\"scope\": \"", "\"scope\": 1, \"y\": \""));
  const fleet::Fleet fleet = folder.assess({"bad"});
  EXPECT_EQ(testing::nodeOf(fleet, "bad").state, fleet::NodeState::kQuarantined);
  EXPECT_THAT(testing::nodeOf(fleet, "bad").reason, HasSubstr("scope: must be a text"));
}

TEST(InterruptedRun, IsToldFromOneThatGoesOnByItsLock) {
  FleetFolder folder;
  folder.write("run/journal.jsonl",
               R"({"node":"n1","plan_path":"p.toml","plan_sha256":"x","sets":[],"started":1,"scenario":""})"
               "\n");
  const auto running = [&] {
    return fleet::readInterruptedRun(folder.path() / "run", "run").value().running;
  };
  EXPECT_EQ(running(), false);
  const Fd lock = openLockFile(folder.path() / "run/.lock").value();
  EXPECT_EQ(running(), false) << "nobody holds it";
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  EXPECT_EQ(running(), true);
  std::filesystem::rename(folder.path() / "run/.lock", folder.path() / "held");
  std::filesystem::create_symlink("../held", folder.path() / "run/.lock");
  EXPECT_EQ(running(), std::nullopt) << "a link may lead to anything";
  std::filesystem::rename(folder.path() / "held", folder.path() / "run/.lock");
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  ASSERT_EQ(seteuid(12345), 0);
  const std::optional<bool> asked = running();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(asked, std::nullopt) << "a lock that others can open they can hold";
}

}  // namespace
}  // namespace muster
