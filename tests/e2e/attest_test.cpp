// SPDX-License-Identifier: Apache-2.0
// `muster sign` and `muster verify`: what is verified, what is refuted, and by which of signature, samples,
// plan and profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "runner/core/text.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Small, so that it is verified in a moment.
constexpr const char* kPlan = R"(schema = 1
name = "small"
[[stage]]
name = "gemm"
test = "compute.gemm"
timeout = "4m"
params = { size = 8192, dtype = "bf16" }
expect = [{ metric = "compute.gemm_throughput", within = "10%", of = "node", source = "test" }]
)";

/// A healthy run, one with a slow gpu5, and two key pairs, made once. Each test works on copies.
class Attest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new TempDir;
    made_->write("plan.toml", kPlan);
    ASSERT_EQ(simulate("h100x8-healthy", "healthy", {}).exitCode, 0);
    ASSERT_EQ(simulate("h100x8-one-slow-gpu", "slow", {}).exitCode, 1);
    for (const char* name : {"supplier", "other"})
      ASSERT_EQ(runMuster({"sign", "--new-key", made(name)}).exitCode, 0);
  }
  static void TearDownTestSuite() { delete made_; }

  static std::string made(const std::string& name) { return (made_->path() / name).string(); }
  static std::string planFile() { return made("plan.toml"); }
  static ProcessResult simulate(const std::string& scene, const std::string& out,
                                const std::vector<std::string>& more, const std::string& file = planFile()) {
    return runMuster(
        std::vector<std::string>{"run", file, "--simulate", scenario(scene), "--out", made(out)} + more);
  }
  /// A copy of a run to change.
  std::string copyOf(const std::string& name) {
    const fs::path to = dir_.path() / (name + std::to_string(copies_++));
    fs::copy(made(name), to, fs::copy_options::recursive);
    return to.string();
  }
  static ProcessResult sign(const std::string& run, const std::string& key = "supplier") {
    return runMuster({"sign", run, "--key", made(key)});
  }
  static ProcessResult verify(const std::string& run, const std::vector<std::string>& more = {}) {
    return runMuster(std::vector<std::string>{"verify", run} + more);
  }
  static std::vector<std::string> byKey() { return {"--key", made("supplier.pub")}; }
  static void expectRefuted(const ProcessResult& result, const std::string& why) {
    EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("REFUTED: "));
    EXPECT_THAT(result.out, HasSubstr(why));
  }

  /// Changes the record of a run, counts and reports with it, so that all of it agrees.
  void edit(const std::string& run, const std::function<void(Record&)>& change) {
    Record record = recordIn(run);
    change(record);
    record.accounting = {};
    for (const StageRecord& stage : record.stages)
      for (const Verdict& verdict : stage.verdicts) record.accounting.add(verdict);
    record.accounting.expected = record.accounting.total();
    std::ofstream(fs::path(run) / "record.json") << recordText(record);
  }
  /// Judges an edited record again and takes the result for the run's own record, with its reports.
  void settle(const std::string& run) {
    const std::string again = run + "-again";
    runMuster({"judge", run + "/record.json", "--out", again});
    edit(again, [](Record& record) { record.rejudged.clear(); });
    fs::copy(again + "/record.json", run + "/record.json", fs::copy_options::overwrite_existing);
    fs::remove(run + "/journal.jsonl");
    runMuster({"report", run + "/record.json", "--out", run});
  }

  /// A fleet of one run, and its file of expected nodes.
  std::string fleetOf(const std::string& name, const std::vector<std::string>& more = {}) {
    const fs::path fleet = dir_.path() / ("fleet" + std::to_string(copies_++));
    fs::create_directories(fleet);
    fs::copy(made(name), fleet / "n0", fs::copy_options::recursive);
    const auto nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
    runMuster(std::vector<std::string>{"fleet", fleet.string(), "--expect", nodes} + more);
    return fleet.string();
  }

  TempDir dir_;
  int copies_ = 0;
  static TempDir* made_;
};
TempDir* Attest::made_ = nullptr;

TEST_F(Attest, VerifiesASignedRun) {
  const std::string run = copyOf("healthy");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run, byKey() + std::vector<std::string>{"--plan", planFile(), "--sku",
                                                                     plan("skus/h100-sxm5-80gb.toml")});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("VERIFIED: accepted, SIMULATED"));
  EXPECT_THAT(result.out, HasSubstr("derived again from the stored samples"));
  EXPECT_THAT(result.out, HasSubstr("2 reports rendered again, byte for byte"));
}

TEST_F(Attest, PrintsTheSameAsJson) {
  const std::string run = copyOf("slow");
  ASSERT_EQ(sign(run).exitCode, 0);
  std::fstream(run + "/report.html").seekp(1000).put('\1');
  const auto result = verify(run, byKey() + std::vector<std::string>{"--json"});
  EXPECT_EQ(result.exitCode, 1);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["verification"], "refuted");
  EXPECT_EQ(json["acceptance"], "rejected");
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_THAT(json["checks"]["files"]["refuted"][0].get<std::string>(), HasSubstr("report.html: byte 1000"));
  EXPECT_EQ(json["checks"]["signature"]["refuted"], Json::array());
  EXPECT_EQ(json["checks"]["signature"]["confirmed"].size(), 1U);
}

TEST_F(Attest, ReturnsTheResultOfARejectedRun) {
  const std::string run = copyOf("slow");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run, byKey());
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.out, HasSubstr("VERIFIED: rejected"));
}

TEST_F(Attest, SaysThatTheSignerIsNotVerified) {
  const std::string run = copyOf("healthy");
  EXPECT_EQ(verify(run).exitCode, 3);
  EXPECT_THAT(verify(run).out, HasSubstr("not signed"));
  expectRefuted(verify(run, byKey()), "not signed");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run);
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("NOT VERIFIED"));
  EXPECT_THAT(result.out, HasSubstr("it was not verified: give the signer's public key with --key"));
  expectRefuted(verify(run, {"--key", made("other.pub")}), "no valid signature by key");
}

TEST_F(Attest, TakesSeveralSignaturesOfTheSameFilesAlone) {
  const std::string run = copyOf("healthy");
  ASSERT_EQ(sign(run).exitCode, 0);
  ASSERT_EQ(sign(run, "other").exitCode, 0);
  EXPECT_EQ(verify(run, byKey() + std::vector<std::string>{"--key", made("other.pub")}).exitCode, 0);
  std::ofstream(run + "/note.txt") << "added";
  EXPECT_EQ(sign(run).exitCode, 2);
  expectRefuted(verify(run, byKey()), "note.txt: is not signed: it was added");
}

TEST_F(Attest, NamesTheByteOrTheFileThatDiffers) {
  const std::string run = copyOf("healthy");
  ASSERT_EQ(sign(run).exitCode, 0);
  std::fstream(run + "/report.html").seekp(1000).put('\1');
  const auto result = verify(run, byKey());
  expectRefuted(result, "report.html: byte 1000 is 0x01, signed was 0x");
  EXPECT_THAT(result.out, HasSubstr("report.html: byte 1000 is 0x01, derived is 0x"));
  fs::remove(run + "/junit.xml");
  expectRefuted(verify(run, byKey()), "junit.xml: is missing");
  fs::create_symlink("report.html", run + "/junit.xml");
  expectRefuted(verify(run, byKey()), "junit.xml is a symbolic link");
}

/// The failures of gpu5, as passes.
void launder(Record& record) {
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kFail) verdict.outcome = Outcome::kPass;
}

TEST_F(Attest, RefutesAnEditedVerdictWithoutAnyKey) {
  const std::string run = copyOf("slow");
  edit(run, launder);
  const auto result = verify(run);
  expectRefuted(result,
                "stage gemm, compute.gemm_throughput gpu5 (dtype=bf16 size=8192): stored pass, derived fail");
  EXPECT_EQ(sign(run).exitCode, 2) << "it is not signed either";
}

/// A later build may warn of other figures: that makes no honest directory a forgery.
TEST_F(Attest, LeavesOpenWhatOnlyWarnsInAnotherBuild) {
  for (const char* build : {"", "0.0.1+0123456789ab"}) {
    const std::string run = copyOf("healthy");
    edit(run, [build](Record& record) {
      if (build[0] != 0) record.buildId = build;
      StageRecord& stage = record.stages.back();
      const auto passed = std::find_if(stage.verdicts.begin(), stage.verdicts.end(), [](const Verdict& v) {
        return v.outcome == Outcome::kPass && v.expectation && v.expectation->kind == CheckKind::kDropMax;
      });
      passed->outcome = stage.outcome = Outcome::kWarn;
    });
    fs::remove(run + "/journal.jsonl");  // it tells how the stage had ended
    const auto result = verify(run);
    if (build[0] == 0) {
      expectRefuted(result, "stored warn, derived pass");
      continue;
    }
    EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("stored warn, derived pass"));
    EXPECT_THAT(result.out, HasSubstr("verify with that one"));
    EXPECT_THAT(result.out, Not(HasSubstr("REFUTED")));
  }
}

TEST_F(Attest, RefutesEditedLimitsWithoutAnyKey) {
  const std::string run = copyOf("slow");
  edit(run, [](Record& record) {
    for (StageRecord& stage : record.stages)
      for (Json& limit : stage.evidence["expectations"])
        if (limit.contains("tolerance")) limit["tolerance"] = 0.5;
  });
  settle(run);
  const auto result = verify(run);
  expectRefuted(result, "stage gemm: limit compute.gemm_throughput");
  EXPECT_THAT(result.out, HasSubstr("ok       verdict"));
}

TEST_F(Attest, RefutesARecordThatLacksADevice) {
  const std::string run = copyOf("slow");
  edit(run, [](Record& record) {
    for (StageRecord& stage : record.stages) {
      if (stage.name != "gemm") continue;
      std::erase_if(stage.measurements, [](const Measurement& m) { return m.device == "gpu5"; });
      Json ends = Json::array();
      for (const Json& end : stage.evidence["ends"])
        if (end.value("device", "") != "gpu5") ends.push_back(end);
      stage.evidence["ends"] = ends;
    }
  });
  settle(run);
  expectRefuted(verify(run), "stage gemm: case gemm has no result of rank 5 (gpu5)");
}

StageRecord& inventoryOf(Record& record) {
  return *std::find_if(record.stages.begin(), record.stages.end(),
                       [](const StageRecord& stage) { return stage.name == "muster:inventory"; });
}

/// The node of the scenario has 7 GPUs, and its profile wants 8.
TEST_F(Attest, RefutesACountThatTheInventoryDoesNotHave) {
  ASSERT_EQ(simulate("h100x8-missing-gpu", "missing", {}).exitCode, 1);
  const auto honest = verify(made("missing"));
  EXPECT_THAT(honest.out, Not(HasSubstr("REFUTED")));
  const std::string run = copyOf("missing");
  edit(run, [](Record& record) {
    for (Measurement& m : inventoryOf(record).measurements)
      if (m.metric == "env.device_count") m.samples = {8};
  });
  settle(run);
  expectRefuted(verify(run), "env.device_count is 8, and the record's inventory lists 7 devices");
}

TEST_F(Attest, RefutesAnInventoryThatItsStageDidNotMeasure) {
  const std::string run = copyOf("missing");
  edit(run, [](Record& record) {
    Json& devices = record.inventory["devices"];
    devices.push_back(devices.back());
    devices.back()["id"] = "gpu7";
    for (Measurement& m : inventoryOf(record).measurements)
      if (m.metric == "env.device_count") m.samples = {8};
  });
  settle(run);
  const auto result = verify(run);
  expectRefuted(result, "the record's inventory has gpu7 with env.device_name");
  EXPECT_THAT(result.out, HasSubstr("has gpu7 with env.device_memory"));
  EXPECT_THAT(result.out, HasSubstr("its inventory is not that of artifacts/muster:inventory/rank0.case0"));
}

/// The artifact is named by its digest, so an edit of both is left to the journal.
/// Lines that are missing would tell of earlier attempts.
TEST_F(Attest, LeavesOpenWhatAJournalWithoutItsStagesWouldTell) {
  const std::string run = copyOf("healthy");
  std::string journal = readWhole(run + "/journal.jsonl");
  std::ofstream(run + "/journal.jsonl") << journal.substr(0, journal.find('\n') + 1);
  const auto result = verify(run);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("journal.jsonl has no line of stage muster:inventory: whether"));
  EXPECT_THAT(result.out, Not(HasSubstr("\nVERIFIED")));
}

TEST_F(Attest, RefutesAnInventoryThatTheJournalDoesNotHave) {
  const std::string run = copyOf("healthy");
  edit(run, [&](Record& record) {
    record.inventory["devices"][3]["serial"] = "1320000000000";
    ArtifactRecord& artifact = inventoryOf(record).artifacts.front();
    const std::string text = record.inventory.dump(1);
    std::ofstream(run + "/" + artifact.path) << text;
    artifact.bytes = text.size();
    artifact.sha256 = sha256Hex(text);
  });
  std::string journal = readWhole(run + "/journal.jsonl");
  const Record record = recordIn(run);
  std::vector<std::string> lines = split(journal, '\n');
  for (std::string& line : lines) {
    if (line.empty()) continue;
    Json json = Json::parse(line);
    if (json["type"] != "stage" || json["stage"]["name"] != "muster:inventory") continue;
    json["stage"]["artifacts"] = Json::parse(recordText(record))["stages"][0]["artifacts"];
    line = json.dump();
  }
  std::ofstream(run + "/journal.jsonl") << join(lines, "\n");
  const auto result = verify(run);
  expectRefuted(result, "journal.jsonl: the inventory was another one: /devices/3/serial is");
  EXPECT_THAT(result.out, HasSubstr("in the record \"1320000000000\""));
  EXPECT_THAT(result.out, Not(HasSubstr("ended otherwise"))) << "nothing else tells it";
}

TEST_F(Attest, RefutesDevicesOfAnotherModelThanTheProfiles) {
  const std::string run = copyOf("healthy");
  edit(run, [](Record& record) {
    for (Json& device : record.inventory["devices"]) {
      device["name"] = "Tesla T4";
      device["pci_id"] = "10de:1eb8";
    }
    for (Measurement& m : inventoryOf(record).measurements)
      if (m.metric == "env.device_name") m.text = "Tesla T4";
  });
  settle(run);
  expectRefuted(verify(run), "env.sku_mismatches is 0, and the record's inventory and profile give 8");
}

/// What the inventory is compared with differs in none of these.
TEST_F(Attest, RefutesNoHealthyKindOfRun) {
  ASSERT_EQ(simulate("h100x8-healthy", "device", {"--device", "gpu3"}).exitCode, 3);
  ASSERT_EQ(simulate("h100x8-healthy", "only", {"--only", "gemm"}).exitCode, 3);
  const auto unknown = dir_.write("unknown.toml", std::string("allow_unknown_sku = true\n") + kPlan).string();
  ASSERT_EQ(simulate("h100x8-unknown-sku", "unknown", {}, unknown).exitCode, 0);
  copyIncluded("skus", dir_.path());
  std::string site = readWhole(plan("skus/h100-sxm5-80gb.toml"));
  site.replace(site.find("\"h100-sxm5-80gb\""), 16, "\"site\"");
  ASSERT_EQ(runMuster({"judge", made("healthy") + "/record.json", "--out", made("judged"), "--sku",
                       dir_.write("site.toml", site).string()})
                .exitCode,
            0);
  ASSERT_EQ(runMuster({"redact", made("healthy") + "/record.json", "--out", made("redacted"), "--map",
                       made("map.json")})
                .exitCode,
            0);
  std::string second = kPlan;
  second.erase(0, second.find("[[stage]]"));
  second.replace(second.find("\"gemm\""), 6, "\"again\"");
  second.replace(second.find("\"4m\""), 4, "\"9m\"");
  const auto two = dir_.write("two.toml", kPlan + second).string();
  ASSERT_EQ(simulate("h100x8-healthy", "resumed", {"--budget", "4m30s"}, two).exitCode, 3);
  ASSERT_EQ(runMuster({"run", "--resume", made("resumed")}).exitCode, 0);
  ASSERT_EQ(recordIn(made("resumed")).resumed, 1);
  for (const char* name : {"resumed", "device", "only", "unknown", "judged", "redacted"}) {
    const auto result = verify(made(name));
    EXPECT_EQ(result.exitCode == 2 || result.exitCode > 3, false) << name << "\n" << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr("REFUTED"))) << name;
  }
  ASSERT_EQ(sign(made("resumed")).exitCode, 0);
  const auto resumed = verify(made("resumed"), byKey());
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out;
  const std::string hidden = copyOf("resumed");
  edit(hidden, [](Record& record) {
    std::erase_if(record.stages, [](const StageRecord& stage) { return stage.name == "muster:run"; });
  });
  EXPECT_THAT(verify(hidden).out, HasSubstr("whether the node rebooted between its starts is not what"));
}

TEST_F(Attest, RefutesReportsWithoutTheirRecord) {
  const std::string run = copyOf("healthy");
  fs::create_directories(fs::path(run) / "summary");
  for (const char* name : {"report.html", "junit.xml", "fleet.html", "fleet-inputs.json"})
    std::ofstream(fs::path(run) / "summary" / name) << "all nodes accepted";
  const auto result = verify(run);
  expectRefuted(result, "summary/report.html: there is no record.json beside it");
  EXPECT_THAT(result.out, HasSubstr("summary/junit.xml: there is no record.json beside it"));
  EXPECT_THAT(result.out, HasSubstr("summary/fleet.html: there is no fleet.json beside it"));
  EXPECT_THAT(result.out, HasSubstr("summary/fleet-inputs.json: there is no fleet.json beside it"));
  EXPECT_EQ(sign(run).exitCode, 2);
}

TEST_F(Attest, LeavesOpenDocumentsThatComeFromNoRecord) {
  const std::string run = copyOf("healthy");
  for (const char* name :
       {"Summary.HTML", "certificate.pdf", "results.xml", "plot.svg ", "output/report.html", "notes.txt"})
    std::ofstream(fs::path(run) / name) << "accepted";
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run, byKey());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  for (const char* name :
       {"Summary.HTML", "certificate.pdf", "results.xml", "plot.svg ", "output/report.html"})
    EXPECT_THAT(result.out, HasSubstr(std::string(name) + ": was not verified: it comes from no record"));
  EXPECT_THAT(result.out, HasSubstr("not read, as no result depends on them: 1 file (notes.txt)"));
  for (const char* name : {"Summary.HTML", "certificate.pdf", "results.xml", "plot.svg ",
                           "output/report.html", "signature.dsse.json"})
    fs::remove(fs::path(run) / name);
  ASSERT_EQ(sign(run).exitCode, 0);
  EXPECT_EQ(verify(run, byKey()).exitCode, 0) << "a text is only told";
}

/// The time at which a fleet was judged decides which waivers had expired.
TEST_F(Attest, RefutesAFleetThatWasJudgedBeforeItsRunsEnded) {
  const std::string fleet = fleetOf("healthy"), inputs = fleet + "/fleet-inputs.json";
  Json json = Json::parse(readWhole(inputs));
  const double end = recordIn(fleet + "/n0").finished;
  json["at"] = end - 200;
  std::ofstream(inputs) << json.dump(1) << "\n";
  EXPECT_THAT(verify(fleet).out, Not(HasSubstr("REFUTED"))) << "clocks differ a little";
  json["at"] = end - 400;
  std::ofstream(inputs) << json.dump(1) << "\n";
  expectRefuted(verify(fleet), "fleet.json: byte ");
  json["at"] = "nan";
  std::ofstream(inputs) << json.dump(1) << "\n";
  EXPECT_EQ(verify(fleet).exitCode, 1);
}

TEST_F(Attest, RefutesAFleetWithAnotherWordForItsResult) {
  const std::string fleet = fleetOf("slow");
  Json json = Json::parse(readWhole(fleet + "/fleet.json"));
  json["acceptance"] = "accepted, see summary";
  std::ofstream(fleet + "/fleet.json") << json.dump(1) << "\n";
  const auto result = verify(fleet);
  expectRefuted(result, "fleet.json.acceptance");
  EXPECT_THAT(result.out, Not(HasSubstr("see summary)")));
}

TEST_F(Attest, AsksForThePromisedRequirements) {
  const std::string text =
      "schema = 1\nname = \"r\"\n[[clause]]\nid = \"gemm\"\nrequirement = \"GEMM\"\nsource = \"test\"\n"
      "metrics = [\"compute.gemm_throughput\"]\n";
  const auto own = dir_.write("own.toml", text).string();
  const auto other = dir_.write("other.toml", text + "# other\n").string();
  const std::string run = copyOf("healthy"), fleet = fleetOf("healthy", {"--requirements", own});
  expectRefuted(verify(run, {"--requirements", own}), "requirements.toml is missing, which was promised");
  ASSERT_EQ(runMuster({"report", run + "/record.json", "--out", run, "--requirements", own}).exitCode, 0);
  for (const std::string& folder : {run, fleet}) {
    ASSERT_EQ(sign(folder).exitCode, 0);
    const auto result = verify(folder, byKey() + std::vector<std::string>{"--requirements", own});
    EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("under the promised requirements"));
    expectRefuted(verify(folder, {"--requirements", other}), "promised was sha256");
  }
}

TEST_F(Attest, RefutesConsistentSamplesOfAnotherSignerByTheKeyAlone) {
  const std::string run = copyOf("slow");
  edit(run, [](Record& record) {
    for (StageRecord& stage : record.stages)
      for (Measurement& m : stage.measurements)
        if (m.device == "gpu5" && m.unit == "FLOP/s")
          for (double& sample : m.samples) sample *= 1.25;
  });
  settle(run);
  ASSERT_EQ(sign(run, "other").exitCode, 0);
  EXPECT_EQ(verify(run).exitCode, 3) << "nothing contradicts invented samples";
  expectRefuted(verify(run, byKey()), "no valid signature by key");
}

TEST_F(Attest, RefutesAnotherPlanOrProfileOfTheSameSupplier) {
  const TempDir softer;
  const auto softened = softer.write("plan.toml", std::string(kPlan) + "# softer\n");
  ASSERT_EQ(simulate("h100x8-healthy", "softened", {}, softened.string()).exitCode, 0);
  ASSERT_EQ(sign(made("softened")).exitCode, 0);
  EXPECT_EQ(verify(made("softened"), byKey()).exitCode, 0);
  expectRefuted(verify(made("softened"), byKey() + std::vector<std::string>{"--plan", planFile()}),
                "promised was sha256");
  const auto profile =
      softer.write("h100.toml", readWhole(plan("skus/h100-sxm5-80gb.toml")) + "\n# softer\n");
  copyIncluded("skus", softer.path());
  expectRefuted(verify(made("softened"), byKey() + std::vector<std::string>{"--sku", profile.string()}),
                "used another profile");
  ASSERT_EQ(simulate("h100x8-healthy", "set", {"--set", "gemm.repeat=2"}).exitCode, 0);
  ASSERT_EQ(sign(made("set")).exitCode, 0);
  expectRefuted(verify(made("set"), byKey() + std::vector<std::string>{"--plan", planFile()}),
                "--set gemm.repeat=2");
}

TEST_F(Attest, RefutesARecordOfAnotherAttempt) {
  const std::string run = copyOf("slow");
  for (const char* name : {"record.json", "report.html", "junit.xml"})
    fs::copy(made("healthy") + "/" + name, run + "/" + name, fs::copy_options::overwrite_existing);
  expectRefuted(verify(run), "journal.jsonl: it is of another run than the record");
}

TEST_F(Attest, CoversTheAcceptanceDocument) {
  const std::string run = copyOf("healthy");
  const auto document = dir_.write("a.toml", "schema = 1\n[document]\nnumber = \"ATR-1\"\n");
  ASSERT_EQ(
      runMuster({"report", run + "/record.json", "--out", run, "--acceptance", document.string()}).exitCode,
      0);
  ASSERT_EQ(sign(run).exitCode, 0);
  EXPECT_EQ(verify(run, byKey()).exitCode, 0);
  std::ofstream(run + "/acceptance.toml") << "schema = 1\n[document]\nnumber = \"ATR-2\"\n";
  const auto result = verify(run);
  expectRefuted(result, "report.html: byte ");
  EXPECT_THAT(result.out, HasSubstr("acceptance.toml: byte 36 is 0x32, signed was 0x31"));
}

TEST_F(Attest, DerivesAFleetAgainWhereverItLies) {
  const fs::path fleet = dir_.path() / "fleet", moved = dir_.path() / "moved" / "fleet";
  ASSERT_EQ(runMuster({"run", planFile(), "--simulate", scenario("h100x8-one-slow-gpu"), "--nodes", "2",
                       "--out", fleet.string()})
                .exitCode,
            1);
  const auto nodes = dir_.write("nodes.txt", "sim-node-[0000-0001]\n").string();
  ASSERT_EQ(runMuster({"fleet", fleet.string(), "--expect", nodes}).exitCode, 1);
  ASSERT_EQ(sign(fleet.string()).exitCode, 0);
  fs::create_directories(moved.parent_path());
  fs::rename(fleet, moved);
  fs::remove(nodes);
  const auto result = verify(moved.string(), byKey());
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("fleet.json and fleet.html derived again from 2 records, byte for byte"));
  EXPECT_THAT(result.out, HasSubstr("VERIFIED: rejected"));
  std::string text = readWhole(moved / "fleet.json");
  text.replace(text.find("\"rejected\""), 10, "\"accepted\"");
  std::ofstream(moved / "fleet.json") << text;
  fs::remove(moved / "signature.dsse.json");
  expectRefuted(verify(moved.string()), "fleet.json: byte ");
}

/// Each fleet is judged again, which must not cost hours because many name the same records.
TEST_F(Attest, LeavesFleetsOpenThatReadTheSameRecordsAgainAndAgain) {
  const fs::path all = fleetOf("healthy");
  EXPECT_THAT(verify(all.string()).out, Not(HasSubstr("more than 16 times")));
  for (int i = 0; i < 12; ++i) {
    const fs::path more = all / ("fleet" + std::to_string(i));
    fs::create_directories(more);
    for (const char* file : {"fleet.json", "fleet.html"}) fs::copy(all / file, more / file);
    std::string inputs = readWhole(all / "fleet-inputs.json");
    const std::string here = "\"records_at\": \".\"";
    ASSERT_NE(inputs.find(here), std::string::npos) << inputs;
    std::ofstream(more / "fleet-inputs.json")
        << inputs.replace(inputs.find(here), here.size(), "\"records_at\": \"..\"");
  }
  const auto result = verify(all.string());
  EXPECT_NE(result.exitCode, 0);
  EXPECT_THAT(result.out, HasSubstr("were not verified: together they read each record more than 16 times"));
}

TEST_F(Attest, RefutesAFleetOfRecordsThatWereNotVerified) {
  const fs::path fleet = dir_.path() / "fleet";
  fs::create_directories(fleet / "attempts");
  fs::copy(made("healthy"), fleet / "attempts" / "first", fs::copy_options::recursive);
  fs::copy(made("slow") + "/record.json", fleet / "sim-node-0000.json");
  const auto nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
  ASSERT_EQ(runMuster({"fleet", fleet.string(), "--expect", nodes}).exitCode, 1);
  expectRefuted(verify(fleet.string()), "counts sim-node-0000.json, which was not verified");
}

/// The fleet reads less of a record, such as no telemetry.
TEST_F(Attest, SaysThatARecordOfAFleetCannotBeReadAsAWhole) {
  const std::string fleet = fleetOf("healthy"), file = fleet + "/n0/record.json";
  Json record = Json::parse(readWhole(file));
  record["stages"][1]["telemetry"] = "none";
  std::ofstream(file) << record.dump();
  expectRefuted(verify(fleet), "counts n0/record.json, which was not verified: it cannot be read as a whole");
}

TEST_F(Attest, TellsOfRejectedRunsThatWereSetAsideWhereverTheFleetLies) {
  const fs::path all = dir_.path() / "all", part = all / "part";
  fs::create_directories(part);
  fs::create_directories(all / "attempts");
  fs::copy(made("healthy"), part / "good", fs::copy_options::recursive);
  for (const char* run : {"healthy", "slow"})
    fs::copy(made(run), all / "attempts" / run, fs::copy_options::recursive);
  fs::copy(made("slow"), all / "attempts" / "killed", fs::copy_options::recursive);
  for (const char* file : {"record.json", "report.html", "junit.xml"})
    fs::remove(all / "attempts" / "killed" / file);
  const auto nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
  ASSERT_EQ(runMuster({"fleet", part.string(), "--expect", nodes}).exitCode, 0);
  ASSERT_EQ(sign(all.string()).exitCode, 0);
  EXPECT_THAT(
      verify(all.string(), byKey()).out,
      HasSubstr(
          "3 earlier runs set aside in attempts/, which no result counts: 1 rejected, 1 without a record"));
}

TEST_F(Attest, TakesTheWorstOfAllFleetsAndOfRunsThatAreInNone) {
  const fs::path all = dir_.path() / "all", part = all / "part";
  fs::create_directories(part);
  fs::copy(made("healthy"), part / "good", fs::copy_options::recursive);
  const auto nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
  ASSERT_EQ(runMuster({"fleet", part.string(), "--expect", nodes}).exitCode, 0);
  ASSERT_EQ(sign(all.string()).exitCode, 0);
  EXPECT_THAT(verify(all.string(), byKey()).out, HasSubstr("VERIFIED: accepted, SIMULATED"));
  fs::remove(all / "signature.dsse.json");
  fs::copy(made("slow"), all / "bad", fs::copy_options::recursive);
  ASSERT_EQ(sign(all.string()).exitCode, 0);
  EXPECT_EQ(verify(all.string(), byKey()).exitCode, 1) << "beside the fleet lies a rejected run";
  ASSERT_EQ(runMuster({"fleet", all.string(), "--expect", nodes}).exitCode, 1);
  fs::remove(all / "signature.dsse.json");
  ASSERT_EQ(sign(all.string()).exitCode, 0);
  const auto result = verify(all.string(), byKey());
  EXPECT_EQ(result.exitCode, 1) << "of two fleets the one above is rejected";
  EXPECT_THAT(result.out, HasSubstr("(rejected, SIMULATED"));
}

TEST_F(Attest, LeavesOpenAFleetWhoseNodesMayBeOneMachine) {
  const fs::path all = dir_.path() / "one";
  fs::create_directories(all);
  for (const char* node : {"c0", "c1"})
    ASSERT_EQ(runMuster({"run", planFile(), "--simulate", scenario("h100x8-healthy"), "--out",
                         (all / node).string(), "--node-name", node})
                  .exitCode,
              0);
  const auto nodes = dir_.write("one.txt", "c[0-1]\n").string();
  ASSERT_EQ(runMuster({"fleet", all.string(), "--expect", nodes}).exitCode, 1);
  ASSERT_EQ(runMuster({"fleet", all.string(), "--expect", nodes, "--same-machine"}).exitCode, 0);
  ASSERT_EQ(sign(all.string()).exitCode, 0);
  const auto result = verify(all.string(), byKey());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("may be one machine under several names"));
}

TEST_F(Attest, LeavesOpenWhatRanInAnotherJob) {
  const auto two = dir_.write("two.toml", std::string(kPlan) + R"([[stage]]
name = "peer"
test = "memory.peer"
scope = "node"
expect = [{ metric = "memory.peer_wrong_bytes", max = 0, source = "test" }]
)")
                       .string();
  ASSERT_EQ(simulate("h100x8-slow-peer", "part", {"--scope", "device"}, two).exitCode, 0);
  const std::string run = made("part");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run, byKey());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("(ran in another job: peer): ask for fleet.json"));
}

TEST_F(Attest, AsksForTheWaiversThatTheCustomerAgreedTo) {
  const auto waivers = dir_.write("waivers.toml", R"(schema = 1
[[waiver]]
node = "sim-node-0000"
stage = "gemm"
metric = "compute.gemm_throughput"
device = "gpu5"
reason = "agreed"
approver = "the supplier"
expires = "2099-12-31"
)")
                           .string();
  ASSERT_EQ(simulate("h100x8-one-slow-gpu", "waived", {"--waivers", waivers}).exitCode, 0);
  const std::string run = made("waived");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto alone = verify(run, byKey());
  EXPECT_EQ(alone.exitCode, 3) << alone.out << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("accepted under the waivers of"));
  const auto agreed = verify(run, byKey() + std::vector<std::string>{"--waivers", waivers});
  EXPECT_EQ(agreed.exitCode, 0) << agreed.out << agreed.err;
  EXPECT_THAT(agreed.out, HasSubstr("VERIFIED: accepted with concessions, SIMULATED"));
  expectRefuted(verify(run, byKey() + std::vector<std::string>{"--waivers", planFile()}),
                "agreed was sha256");
  EXPECT_EQ(
      verify(run, byKey() + std::vector<std::string>{"--waivers", planFile(), "--waivers", waivers}).exitCode,
      0)
      << "one of several";
}

/// A board that lost seven GPUs would pass for one of the nodes that have one.
TEST_F(Attest, LeavesOpenWhichOfTwoPromisedProfilesANodeIsOf) {
  const std::vector<std::string> both = {"--sku", plan("skus/h100-sxm5-80gb.toml"), "--sku",
                                         plan("skus/h100-sxm5-80gb-1x.toml")};
  ASSERT_NE(simulate("h100x8-healthy", "one", {"--sku", "h100-sxm5-80gb-1x"}).exitCode, 2);
  ASSERT_EQ(sign(made("one")).exitCode, 0);
  const auto result = verify(made("one"), byKey() + both);
  EXPECT_THAT(result.out, HasSubstr("NOT VERIFIED"));
  EXPECT_THAT(result.out, HasSubstr("of several promised profiles the run chose h100-sxm5-80gb-1x"));
  const auto alone = verify(made("one"), byKey() + std::vector<std::string>{both[2], both[3]});
  EXPECT_THAT(alone.out, Not(HasSubstr("of several promised profiles")));
}

TEST_F(Attest, LeavesOpenAProfileThatTheSupplierChose) {
  std::string own = readWhole(plan("skus/h100-sxm5-80gb.toml"));
  own.replace(own.find("h100-sxm5-80gb"), 14, "mine");
  copyIncluded("skus", dir_.path() / "skus");
  const std::string profile = dir_.write("skus/mine.toml", own).string();
  ASSERT_EQ(simulate("h100x8-healthy", "mine", {"--skus", (dir_.path() / "skus").string(), "--sku", "mine"})
                .exitCode,
            0);
  const std::string run = made("mine");
  ASSERT_EQ(sign(run).exitCode, 0);
  const auto result = verify(run, byKey() + std::vector<std::string>{"--plan", planFile()});
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("the run used profile mine (sha256 "));
  EXPECT_THAT(result.out, HasSubstr("call for h100-sxm5-80gb: give the promised one with --sku"));
  EXPECT_EQ(verify(run, byKey() + std::vector<std::string>{"--sku", profile}).exitCode, 0) << "it was agreed";
}

/// Its pages have the commands that resume the run, with the path that the folder had.
TEST_F(Attest, LeavesOpenAFleetWithAnInterruptedRun) {
  const std::string fleet = fleetOf("healthy");
  const fs::path interrupted = fs::path(fleet) / "n1";
  fs::create_directories(interrupted);
  fs::copy(made("healthy") + "/journal.jsonl", interrupted / "journal.jsonl");
  const auto nodes = dir_.write("two.txt", "sim-node-[0000-0001]\n").string();
  ASSERT_EQ(runMuster({"fleet", fleet, "--expect", nodes}).exitCode, 3);
  ASSERT_EQ(sign(fleet).exitCode, 0);
  const std::string moved = (dir_.path() / "moved").string();
  fs::rename(fleet, moved);
  const auto result = verify(moved, byKey());
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, Not(HasSubstr("REFUTED")));
}

TEST_F(Attest, DerivesASweepOverNodesAgain) {
  ASSERT_EQ(simulate("h100x8-cluster-healthy", "sweep", {"--nodes", "3"}, plan("scaling.toml")).exitCode, 0);
  const auto result = verify(made("sweep"));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;  // the signer is not known
  EXPECT_THAT(result.out, Not(HasSubstr("REFUTED")));
}

/// The same artifact a hundred thousand times is read once, and by one digest.
TEST_F(Attest, ReadsAnArtifactOnce) {
  const std::string run = copyOf("healthy");
  std::string path;
  edit(run, [&](Record& record) {
    for (StageRecord& stage : record.stages)
      for (size_t i = 0; i < stage.artifacts.size() && path.empty(); ++i) {
        if (stage.artifacts[i].sha256.empty()) continue;
        path = stage.artifacts[i].path;
        stage.artifacts.push_back(stage.artifacts[i]);
        stage.artifacts.back().sha256 = std::string(64, '0');
      }
  });
  ASSERT_FALSE(path.empty());
  expectRefuted(verify(run), path + ": the record names it twice, with two SHA-256");
}

/// A record may claim any size, and a file with holes have it.
TEST_F(Attest, ReadsNoArtifactThatIsLargerThanAny) {
  constexpr uint64_t kHuge = uint64_t{1} << 40;
  const std::string run = copyOf("healthy");
  std::string huge;
  edit(run, [&](Record& record) {
    for (StageRecord& stage : record.stages)
      for (ArtifactRecord& artifact : stage.artifacts)
        if (huge.empty() && !artifact.sha256.empty()) {
          huge = artifact.path;
          artifact.bytes = kHuge;
        }
  });
  ASSERT_FALSE(huge.empty());
  fs::resize_file(run + "/" + huge, kHuge);
  expectRefuted(verify(run), huge + ": it has 1099511627776 bytes");
}

TEST_F(Attest, RendersClausesAgain) {
  const std::string run = copyOf("healthy");
  const std::string requirements = plan("requirements/public-node-checks.toml");
  const auto summary = runMuster({"report", run + "/record.json", "--requirements", requirements});
  EXPECT_EQ(summary.exitCode, 3);
  EXPECT_THAT(summary.out, HasSubstr("clause training has no evidence: train.model_flops, train.loss_fell"));
  EXPECT_EQ(
      runMuster({"report", run + "/record.json", "--out", run, "--requirements", requirements}).exitCode, 3);
  EXPECT_THAT(readWhole(run + "/report.html"), HasSubstr("<h2>Clauses"));
  ASSERT_EQ(sign(run).exitCode, 0);
  EXPECT_EQ(verify(run, byKey()).exitCode, 3) << "the record is accepted, and the clauses are not";
  std::ofstream(run + "/requirements.toml", std::ios::app) << "# changed\n";
  expectRefuted(verify(run, byKey()), "requirements.toml: is longer than");
}

TEST_F(Attest, AcceptsANodeThatShowsEachClause) {
  ASSERT_EQ(simulate("h100x8-healthy", "full", {}, plan("node-full.toml")).exitCode, 0);
  const auto result = runMuster({"report", made("full") + "/record.json", "--requirements",
                                 plan("requirements/public-node-checks.toml")});
  EXPECT_EQ(result.exitCode, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("stages that are evidence for no clause: "));
}

TEST_F(Attest, KeepsAFleetWithoutEvidenceFromBeingAccepted) {
  const fs::path fleet = dir_.path() / "fleet";
  fs::create_directories(fleet);
  fs::copy(made("healthy"), fleet / "n0", fs::copy_options::recursive);
  const std::vector<std::string> judge = {"fleet", fleet.string(), "--expect",
                                          dir_.write("nodes.txt", "sim-node-0000\n").string()};
  ASSERT_EQ(runMuster(judge).exitCode, 0);
  const auto result = runMuster(
      judge + std::vector<std::string>{"--requirements", plan("requirements/public-node-checks.toml")});
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("clause training has no evidence on 1 of 1 nodes: sim-node-0000"));
  EXPECT_THAT(readWhole(fleet / "fleet.html"), HasSubstr("<h2>Clauses"));
  const Json clauses = Json::parse(readWhole(fleet / "fleet.json"))["clauses"];
  const auto training = std::find_if(clauses.begin(), clauses.end(),
                                     [](const Json& clause) { return clause["id"] == "training"; });
  ASSERT_NE(training, clauses.end());
  EXPECT_EQ((*training)["without"], Json::array({"sim-node-0000"}));
  EXPECT_FALSE(training->contains("worst"));
  ASSERT_EQ(sign(fleet.string()).exitCode, 0);
  EXPECT_EQ(verify(fleet.string(), byKey()).exitCode, 3);
}

TEST_F(Attest, RefusesWhatItCannotUse) {
  EXPECT_EQ(verify(dir_.path() / "nowhere").exitCode, 2);
  EXPECT_EQ(verify(made("healthy"), {"--key", made("supplier")}).exitCode, 2) << "a private key";
  EXPECT_EQ(runMuster({"sign", made("healthy")}).exitCode, 2) << "no key";
  EXPECT_EQ(runMuster({"sign", "--new-key", made("supplier")}).exitCode, 2) << "it exists";
  const std::string within = made("healthy") + "/own.key";
  ASSERT_EQ(runMuster({"sign", "--new-key", within}).exitCode, 0);
  const auto delivered = runMuster({"sign", made("healthy"), "--key", within});
  EXPECT_EQ(delivered.exitCode, 2);
  EXPECT_THAT(delivered.err, HasSubstr("the key lies in the directory that it is to sign"));
  for (const char* end : {"", ".pub"}) fs::remove(within + end);
  expectRefuted(verify(dir_.path()), "there is no record.json");
}

}  // namespace
}  // namespace muster::testing
