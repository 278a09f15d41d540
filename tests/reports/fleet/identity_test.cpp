// SPDX-License-Identifier: Apache-2.0
// A fleet counts each machine once, by one SKU and one set of limits, and takes what a run found.
#include "reports/fleet/check/identity.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runner/core/text.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::Fleet;
using fleet::FleetOptions;
using fleet::NodeState;
using testing::FleetFolder;
using testing::giveParts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::nodeOf;
using testing::nodeRecord;
using ::testing::Not;

std::string digits(const std::string& seed) {
  return sha256Hex(seed).substr(0, 12);
}

/// A record of hardware, with every identity of its own.
Record machineRecord(const std::string& name) {
  Record record = nodeRecord(name);
  record.simulated = false;
  record.scenario.clear();
  record.backend = "cuda";
  record.bootId = "b007-" + digits("boot" + name);
  Json& host = record.inventory["host"];
  host["machine_id"] = digits("machine" + name);
  host["board_serial"] = "B" + digits("board" + name);
  host["product_serial"] = "P" + digits("product" + name);
  host["product_uuid"] = digits("uuid" + name);
  return record;
}

FleetOptions expecting(const std::vector<std::string>& names) {
  FleetOptions options;
  for (const std::string& name : names) options.expected.push_back({name, "", false});
  return options;
}

std::string findingsOf(const Fleet& fleet) {
  std::vector<std::string> lines;
  for (const auto& finding : fleet.findings)
    lines.push_back(std::string(findingKindName(finding.kind)) + ": " + finding.text);
  return join(lines, "\n");
}

/// n1 is a machine of its own; `change` makes n2 out of a record with identities of its own.
template <typename F>
Fleet pairOf(F change, FleetOptions options = expecting({"n1", "n2", "n3"})) {
  FleetFolder folder;
  Record second = machineRecord("n2");
  change(second);
  folder.add(machineRecord("n1"));
  folder.add(second);
  folder.add(machineRecord("n3"));
  return folder.assess(options);
}

void expectBothNamed(const Fleet& fleet) {
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(join(fleet.reasons, "; "), HasSubstr("with two names"));
  for (const char* name : {"n1", "n2"}) {
    EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kIncomplete) << "either record may be the forged one";
    EXPECT_THAT(nodeOf(fleet, name).claim, AllOf(HasSubstr("n1"), HasSubstr("n2")));
  }
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kAccepted);
  EXPECT_THAT(findingsOf(fleet), AllOf(HasSubstr("n1"), HasSubstr("n2"), Not(HasSubstr("n3"))));
  EXPECT_THAT(findingsOf(fleet), AllOf(HasSubstr("n1/record.json"), HasSubstr("n2/record.json")));
}

TEST(Identity, OfDifferentMachinesIsNotAFinding) {
  const Fleet fleet = pairOf([](Record&) {});
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  EXPECT_THAT(fleet.findings, IsEmpty());
}

TEST(Identity, SharedByTwoNamesIsAFailureThatNamesBoth) {
  expectBothNamed(pairOf([](Record& r) { giveParts(r, "n1"); }));
  expectBothNamed(
      pairOf([](Record& r) { r.inventory["devices"][3] = nodeRecord("n1").inventory["devices"][3]; }));
  expectBothNamed(pairOf([](Record& r) {
    r.inventory["devices"][3]["serial"] = nodeRecord("n1").inventory["devices"][5]["serial"];
  }));
  expectBothNamed(pairOf([](Record& r) { r.bootId = machineRecord("n1").bootId; }));
  expectBothNamed(pairOf([](Record& r) {
    for (const char* key : {"board_serial", "product_serial", "product_uuid"})
      r.inventory["host"][key] = machineRecord("n1").inventory["host"][key];
  }));
  expectBothNamed(pairOf([](Record& r) {
    r = machineRecord("n1");
    r.node = "n2";
  }));
}

TEST(Identity, OfSeveralInOneRecordIsThatRecordsAlone) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(fmt::format("n{}", i));
  for (const std::string& name : names) {
    Record record = machineRecord(name);
    for (int i = 1; name == "n0" && i < 5; ++i)
      record.inventory["devices"][static_cast<size_t>(i)]["serial"] =
          machineRecord(names[static_cast<size_t>(i)]).inventory["devices"][0]["serial"];
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete);
  for (const char* name : {"n1", "n2", "n3", "n4"})
    EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kAccepted) << nodeOf(fleet, name).reason;
  ASSERT_EQ(fleet.findings.size(), 1u);
  EXPECT_THAT(fleet.findings[0].text, HasSubstr("names hardware of n1, n2, n3, n4 as its own"));
}

TEST(Identity, OfOneRunUnderTwoNamesIsAFailureEvenOnOneMachine) {
  FleetFolder folder;
  Record record = machineRecord("n1");
  record.runId = "2026-11-21T03:10:00Z-5ac1";
  folder.add(record);
  record.node = "n2";
  folder.add(record);
  FleetOptions options = expecting({"n1", "n2"});
  options.sameMachine = true;
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(findingsOf(fleet),
              AllOf(HasSubstr("one run appears under 2 names"), HasSubstr("n1"), HasSubstr("n2")));
}

/// Redacted by two maps, it has other names and serials in each copy.
TEST(Identity, OfOneRedactedRecordUnderTwoNamesIsAFailure) {
  FleetFolder folder;
  for (const char* name : {"host0001", "host0002"}) {
    Record record = machineRecord(name);
    record.redacted = {sha256Hex("original"), {"host", "serial"}};
    folder.add(record);
  }
  const Fleet fleet = folder.assess(expecting({"host0001", "host0002"}));
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("one run appears under 2 names"));
}

/// Of records that say they are redacted from those of several nodes, only they are in question.
TEST(Identity, OfRecordsThatNameTheRunsOfSeveralIsTheirs) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(fmt::format("host{}", i));
    Record record = machineRecord(names.back());
    record.redacted = {sha256Hex(names.back()), {"host", "serial"}};
    folder.add(record);
  }
  for (int i = 0; i < 4; ++i) {
    Record record = machineRecord("host4");
    record.redacted = {sha256Hex(names[static_cast<size_t>(i)]), {"host", "serial"}};
    folder.add(record, fmt::format("more/{}", i));
  }
  const Fleet fleet = folder.assess(expecting(names));
  EXPECT_EQ(nodeOf(fleet, "host4").state, NodeState::kIncomplete);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(nodeOf(fleet, names[static_cast<size_t>(i)]).state, NodeState::kAccepted) << findingsOf(fleet);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("names runs of host0, host1, host2, host3 as its own"));
}

TEST(Identity, SharedOnPurposeIsANote) {
  FleetOptions options = expecting({"n1", "n2", "n3"});
  options.sameMachine = true;
  const Fleet fleet = pairOf([](Record& r) { r.bootId = machineRecord("n1").bootId; }, options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  EXPECT_TRUE(fleet.sameMachine);
  EXPECT_THAT(join(fleet.notes, "\n"), AllOf(HasSubstr("--same-machine"), HasSubstr("n1"), HasSubstr("n2")));
}

TEST(Identity, OfAnImageOrAVendorsTextIsNone) {
  const Fleet fleet = pairOf([](Record& r) {
    Json& host = r.inventory["host"];
    host["machine_id"] = machineRecord("n1").inventory["host"]["machine_id"];
    host["product_serial"] =
        machineRecord("n1").inventory["host"]["product_serial"];  // of a chassis of two nodes
  });
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  EXPECT_THAT(join(fleet.notes, "\n"), HasSubstr("the same /etc/machine-id"));

  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) {
    Record record = machineRecord(name);
    record.inventory["host"]["board_serial"] = "To be filled by O.E.M.";
    record.inventory["host"]["product_serial"] = "an unknown vendor's text";
    record.inventory["host"]["product_uuid"] = "00000000-0000-0000-0000-000000000000";
    for (Json& device : record.inventory["devices"]) device["serial"] = "0";
    folder.add(record);
  }
  const Fleet vendor = folder.assess({"n1", "n2", "n3"});
  EXPECT_EQ(vendor.acceptance, Acceptance::kAccepted) << findingsOf(vendor);
}

/// One record among them that has a part of another does not make all of them one machine.
TEST(Identity, OfAnImageIsNoneThoughOneRecordHasAPartOfAnother) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(fmt::format("n{}", i));
  for (const std::string& name : names) {
    Record record = machineRecord(name);
    for (const char* key : {"board_serial", "product_serial", "product_uuid"})
      record.inventory["host"][key] = machineRecord("n1").inventory["host"][key];
    if (name == "n4")
      record.inventory["devices"][3]["serial"] = machineRecord("n3").inventory["devices"][3]["serial"];
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  for (const char* name : {"n0", "n1", "n2"})
    EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kAccepted) << nodeOf(fleet, name).reason;
  for (const char* name : {"n3", "n4"}) EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kIncomplete) << name;
}

TEST(Identity, KnowsWhatIsNotASerial) {
  for (const char* none :
       {"", "0", "None", "N/A", "To be filled by O.E.M.", "Default string", "0123456789", "123456789",
        "xxxxxxxx", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "00000000-0000-0000-0000-000000000000",
        "GPU-00000000-0000-0000-0000-000000000000", " Not Specified "})
    EXPECT_FALSE(fleet::identifies(none)) << none;
  for (const char* serial : {"1652324041100", "S3CR", "4c4c4544-0036-4710-8052-b4c04f565032"})
    EXPECT_TRUE(fleet::identifies(serial)) << serial;
}

TEST(Identity, OfASimulatedNodeIsThatOfTheScenario) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2"}) folder.add(nodeRecord(name));  // one host simulated both
  EXPECT_EQ(folder.assess({"n1", "n2"}).acceptance, Acceptance::kAccepted);
  Record copy = nodeRecord("n2");
  giveParts(copy, "n1");
  folder.add(copy);
  const Fleet fleet = folder.assess({"n1", "n2"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("GPU UUID"));
}

TEST(Identity, OfTwoJobsOfANodeIsOne) {
  FleetFolder folder;
  Record array = machineRecord("n1"), cluster = machineRecord("n1");
  testing::leaveElsewhere(array, "gemm");
  for (const char* stage : {"env", "memory-bandwidth", "host-copy"}) testing::leaveElsewhere(cluster, stage);
  folder.add(array, "array/n1");
  folder.add(cluster, "cluster/n1");
  EXPECT_EQ(folder.assess({"n1"}).acceptance, Acceptance::kAccepted);
  giveParts(cluster, "another machine");
  folder.add(cluster, "cluster/n1");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kIncomplete) << "either may have been written in its name";
  EXPECT_THAT(findingsOf(fleet), AllOf(HasSubstr("the records of n1 come from two machines"),
                                       HasSubstr("array/n1"), HasSubstr("cluster/n1")));
}

TEST(Identity, OfAnUnexpectedNodeCountsTooInTheSameRun) {
  FleetFolder folder;
  Record real = machineRecord("spare");
  folder.add(real);
  Record copy = machineRecord("n1");
  copy.inventory = real.inventory;
  folder.add(copy);
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(findingsOf(fleet), AllOf(HasSubstr("spare"), HasSubstr("n1")));
}

TEST(RunId, IsBoundToItsNodeAndStart) {
  Record record = machineRecord("n1");
  record.runId = runIdOf("n1", record.started);
  EXPECT_TRUE(checkRecord(record).ok());
  FleetFolder folder;
  folder.add(record);
  EXPECT_EQ(folder.assess({"n1"}).acceptance, Acceptance::kAccepted);
  record.node = "n2";
  EXPECT_THAT(checkRecord(record).error().message, HasSubstr("is not of a run of n2"));
  folder.add(record);
  const Fleet fleet = folder.assess({"n1", "n2"});
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kQuarantined);
  EXPECT_THAT(nodeOf(fleet, "n2").reason, HasSubstr("is not of a run of n2"));
}

TEST(Record, OfOneRunInTwoVersionsWasEdited) {
  FleetFolder folder;
  Record record = machineRecord("n1");
  record.runId = "one-run";
  folder.add(record, "a");
  folder.add(record, "copy");
  EXPECT_EQ(folder.assess({"n1"}).acceptance, Acceptance::kAccepted) << "an exact copy changes nothing";
  record.seed += 1;
  folder.add(record, "edited");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kIncomplete) << "either may be the edited one";
  EXPECT_THAT(findingsOf(fleet), HasSubstr("n1 has two different records of one run"));
}

Record h200Record(const std::string& name) {
  Record record = machineRecord(name);
  record.profile = {"h200-sxm", "skus/h200-sxm.toml", sha256Hex("h200"), "name = \"h200-sxm\"\n"};
  for (Json& device : record.inventory["devices"]) {
    device["name"] = "NVIDIA H200";
    device["memory_bytes"] = 150'754'820'096ull;
  }
  return record;
}

TEST(Sku, ThatMostNodesAreOfIsExpectedOfAll) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) folder.add(machineRecord(name));
  folder.add(h200Record("n4"));
  Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kRejected);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
  EXPECT_THAT(findingsOf(fleet),
              HasSubstr("wrong SKU: n4 is of h200-sxm, expected h100-sxm5-80gb, as 3 of 4 nodes are"));
  EXPECT_THAT(fleet.drift, Not(IsEmpty())) << "model and memory are compared over all nodes";

  FleetOptions options = expecting({"n1", "n2", "n3", "n4"});
  options.expected[3].sku = "h200-sxm";
  fleet = folder.assess(options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  options.expected[0].sku = "h200-sxm";
  EXPECT_EQ(nodeOf(folder.assess(options), "n1").state, NodeState::kRejected);
}

TEST(Sku, WithoutAMajorityIsSaidOrNothingIsAccepted) {
  FleetFolder folder;
  folder.add(machineRecord("n1"));
  folder.add(h200Record("n2"));
  const Fleet fleet = folder.assess({"n1", "n2"});
  EXPECT_EQ(fleet.exitCode, 3);
  for (const char* name : {"n1", "n2"}) EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kIncomplete);
  EXPECT_THAT(findingsOf(fleet), AllOf(HasSubstr("without a majority"), HasSubstr("n1"), HasSubstr("n2")));
}

TEST(Sku, IsNotWrongWhereARunEndedBeforeItsInventory) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) folder.add(machineRecord(name));
  Record record = machineRecord("n4");
  record.acceptance = Acceptance::kInterrupted;
  record.exitCode = 130;
  record.profile = {};
  record.inventory = Json::object();
  folder.add(record);
  const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kIncomplete) << nodeOf(fleet, "n4").reason;
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("unknown SKU: no device found on n4"));
}

TEST(Sku, IsThatOfThePlanWhereItNamesOne) {
  FleetFolder folder;
  folder.add(machineRecord("n1"));
  folder.add(h200Record("n2"));
  folder.add(h200Record("n3"));
  FleetOptions options = expecting({"n1", "n2", "n3"});
  options.planSkus[nodeRecord("n1").plan.sha256] = "h100-sxm5-80gb";
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
  for (const char* name : {"n2", "n3"}) EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kRejected);
}

TEST(Sku, ComparesModelNumberAndMemoryUnderOneProfile) {
  const auto odd = [](auto change) {
    FleetFolder folder;
    for (const char* name : {"n1", "n2", "n3"}) folder.add(machineRecord(name));
    Record record = machineRecord("n4");
    change(record);
    folder.add(record);
    const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
    EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kRejected) << findingsOf(fleet);
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
    return findingsOf(fleet);
  };
  EXPECT_THAT(odd([](Record& r) { r.inventory["devices"][2]["name"] = "NVIDIA H200"; }),
              HasSubstr("+ 1 × NVIDIA H200, but 3 of 4 nodes"));
  EXPECT_THAT(odd([](Record& r) { r.inventory["devices"].erase(7); }), HasSubstr("n4 has 7 × "));
  EXPECT_THAT(odd([](Record& r) { r.inventory["devices"][2]["memory_bytes"] = 42'000'000'000ull; }),
              HasSubstr("n4: a GPU has "));
}

TEST(Sku, OneRecordAloneRejectsNoOtherNode) {
  const auto less = [](Record& r) {
    for (Json& device : r.inventory["devices"]) device["memory_bytes"] = 42'949'672'960ull;
  };
  const auto other = [](Record& r) { r = h200Record(r.node); };
  const auto fewer = [](Record& r) { r.inventory["devices"].erase(7); };
  for (const std::function<void(Record&)>& change : {std::function<void(Record&)>(less), {other}, {fewer}})
    for (const int count : {2, 3, 4}) {
      FleetFolder folder;
      std::vector<std::string> names;
      for (int i = 1; i <= count; ++i) {
        Record record = machineRecord("n" + std::to_string(i));
        if (i == 1) change(record);
        names.push_back(record.node);
        folder.add(record);
      }
      const Fleet fleet = folder.assess(names);
      EXPECT_EQ(nodeOf(fleet, "n1").state, count > 2 ? NodeState::kRejected : NodeState::kIncomplete);
      EXPECT_FALSE(nodeOf(fleet, "n1").claim.empty());
      EXPECT_EQ(nodeOf(fleet, "n2").state, count == 2 ? NodeState::kIncomplete : NodeState::kAccepted)
          << count << " nodes: " << findingsOf(fleet);
    }
}

TEST(Limits, OfMostNodesAreThoseOfAll) {
  const auto odd = [](auto change, const std::string& name = "n4") {
    FleetFolder folder;
    for (const char* other : {"n1", "n2", "n3"}) folder.add(machineRecord(other));
    Record record = machineRecord(name);
    change(record);
    folder.add(record);
    const Fleet fleet = folder.assess({"n1", "n2", "n3", name});
    EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kIncomplete) << findingsOf(fleet);
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << findingsOf(fleet);
    EXPECT_THAT(findingsOf(fleet), HasSubstr("other limits: " + name));
    return findingsOf(fleet);
  };
  EXPECT_THAT(odd([](Record& r) { r.profile.sha256 = sha256Hex("lax"); }),
              HasSubstr("profile h100-sxm5-80gb (sha256"));
  EXPECT_THAT(odd([](Record& r) { r.buildId = "0.1.0-another"; }), HasSubstr("Muster build 0.1.0-another"));
  EXPECT_THAT(odd([](Record& r) { r.binaries["muster-host"] = sha256Hex("lax"); }),
              HasSubstr("other limits: n4: muster-host sha256"));
  EXPECT_THAT(odd([](Record& r) { r.binaries["backend_cuda.so"] = sha256Hex("lax"); }),
              HasSubstr("backend_cuda.so sha256"));
  EXPECT_THAT(odd([](Record& r) { r.stages[1].pluginVersion = "0.0.9"; }), HasSubstr("plugin compute 0.0.9"));
  EXPECT_THAT(odd([](Record& r) {
                for (StageRecord& stage : r.stages) stage.pluginSha256 = sha256Hex("another");
              }),
              HasSubstr("plugin compute 0.1.0 (sha256"));
}

/// As where the process that samples telemetry was killed: its metrics are unmeasured, and not required.
TEST(Limits, ThatAnErrorKeptFromBeingMeasuredSayNothing) {
  for (const int broken : {1, 2})
    for (const int nodes : {2, 3, 5}) {
      FleetFolder folder;
      std::vector<std::string> names;
      for (int i = 0; i < nodes; ++i) {
        names.push_back(fmt::format("n{}", i));
        Record record = machineRecord(names.back());
        if (i < std::min(broken, nodes - 1)) {
          StageRecord& stage = record.stages[1];
          std::erase_if(stage.verdicts,
                        [](const Verdict& verdict) { return verdict.expectation.has_value(); });
          testing::keepEvidence(stage);
          Verdict error;
          error.outcome = Outcome::kError;
          error.caseId = stage.cases.front().id;
          error.detail = "telemetry: it did not answer";
          stage.verdicts.push_back(error);
          record.acceptance = Acceptance::kIncomplete;
          record.exitCode = 3;
          testing::settle(record);
        }
        folder.add(record);
      }
      const Fleet fleet = folder.assess(names);
      EXPECT_EQ(nodeOf(fleet, names.back()).state, NodeState::kAccepted) << findingsOf(fleet);
      EXPECT_NE(nodeOf(fleet, "n0").state, NodeState::kAccepted);
      EXPECT_THAT(findingsOf(fleet), Not(HasSubstr("other limits")));
    }
}

TEST(Limits, OfAnOperatorsProgramAreInTheProgram) {
  FleetFolder folder;
  for (const std::string name : {"n1", "n2", "n3"}) {
    Record record = machineRecord(name);
    Measurement program;
    program.metric = "exec.program";
    program.unit = "text";
    program.text = "/opt/checks/disk (sha256 " + sha256Hex(name == "n3" ? "edited" : "original") + ")";
    program.caseId = record.stages[1].cases.front().id;
    program.informational = true;
    record.stages[1].measurements.push_back(program);
    folder.add(record);
  }
  const Fleet fleet = folder.assess({"n1", "n2", "n3"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << findingsOf(fleet);
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kIncomplete) << findingsOf(fleet);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("program of stage"));
  EXPECT_THAT(findingsOf(fleet), HasSubstr(sha256Hex("edited")));
}

TEST(Limits, WithoutAMajorityNameAllAndAcceptNone) {
  FleetFolder folder;
  folder.add(machineRecord("n1"));
  Record lax = machineRecord("n2");
  lax.profile.sha256 = sha256Hex("lax");
  folder.add(lax);
  FleetOptions options = expecting({"n1", "n2"});
  Fleet fleet = folder.assess(options);
  for (const char* name : {"n1", "n2"}) EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kIncomplete);
  EXPECT_EQ(fleet.findings.size(), 2u);
  options.pinnedProfiles["h100-sxm5-80gb"] = nodeRecord("n1").profile.sha256;
  fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << findingsOf(fleet);
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kIncomplete);
}

TEST(Limits, OfOnlyOneNodeWithoutStrictAreLooser) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) {
    Record record = machineRecord(name);
    record.strict = std::string(name) != "n3";
    folder.add(record);
  }
  EXPECT_THAT(findingsOf(folder.assess({"n1", "n2", "n3"})), HasSubstr("n3: strictness without --strict"));
}

/// What `muster judge` makes of a record.
Record rejudged(Record record) {
  record.rejudged.push_back({sha256Hex(recordText(record)), record.finished + 60, "0.1.0",
                             "0.1.0-1ee5e15b0a42", "", "", "", false});
  return record;
}

TEST(Rejudged, DoesNotCountUnlessAllowed) {
  FleetFolder folder;
  folder.add(machineRecord("n1"));
  folder.add(rejudged(machineRecord("n2")));
  FleetOptions options = expecting({"n1", "n2"});
  Fleet fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kIncomplete);
  EXPECT_THAT(findingsOf(fleet),
              AllOf(HasSubstr("n2/record.json was re-evaluated on"), HasSubstr("are not accepted")));
  options.allowRejudged = true;
  fleet = folder.assess(options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  EXPECT_EQ(fleet.rejudged, 1u);
}

TEST(Rejudged, IsComparedWithTheRecordOfTheRun) {
  FleetFolder folder;
  Record original = machineRecord("n1");
  original.runId = "one-run";
  folder.add(original, "original");
  folder.add(rejudged(original), "again");
  FleetOptions options = expecting({"n1"});
  options.allowRejudged = true;
  Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << findingsOf(fleet);
  ASSERT_EQ(fleet.duplicates.size(), 1u);
  EXPECT_EQ(fleet.duplicates[0].path, "original/record.json");

  Record edited = original;
  edited.stages[1].measurements[3].samples[2] *= 1.01;
  folder.add(rejudged(edited), "again");
  fleet = folder.assess(options);
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_THAT(findingsOf(fleet), HasSubstr("its samples differ from those of original/record.json"));
}

TEST(Outdated, RecordsDoNotStandForTheirNodes) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2"}) folder.add(machineRecord(name));
  Record old = machineRecord("n3");
  old.started -= 30 * 86400.0;
  old.finished -= 30 * 86400.0;
  folder.add(old);
  FleetOptions options = expecting({"n1", "n2", "n3"});
  Fleet fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kStale);
  EXPECT_THAT(nodeOf(fleet, "n3").reason, HasSubstr("of an earlier run"));
  options.manyRuns = true;
  EXPECT_EQ(folder.assess(options).acceptance, Acceptance::kAccepted);
}

TEST(Outdated, IsAMinorityThatWasNotRunAgain) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) {
    folder.add(machineRecord(name), std::string(name) + "-first");
    if (std::string(name) == "n3") continue;
    Record again = machineRecord(name);
    again.started += 7200;
    again.finished += 7200;
    folder.add(again, std::string(name) + "-again");
  }
  const Fleet fleet = folder.assess({"n1", "n2", "n3"});
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kStale);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
}

/// One that ran twice does not choose by its times whose record is too old.
TEST(Outdated, IsNobodyBecauseOfOneNodesTimes) {
  FleetFolder folder;
  int number = 0;
  for (const char* name : {"n0", "n1", "n2", "n3", "n4"}) {
    Record record = machineRecord(name);
    record.started += 60.0 * number;
    record.finished += 60.0 * number++;
    folder.add(record, std::string(name) + "-first");
    if (std::string(name) != "n3" && std::string(name) != "n4") continue;
    Record again = machineRecord(name);
    const double later = std::string(name) == "n4" ? 7200 : again.finished - again.started + 1;
    again.started += later;
    again.finished += later;
    folder.add(again, std::string(name) + "-again");
  }
  const Fleet fleet = folder.assess({"n0", "n1", "n2", "n3", "n4"});
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAccepted) << nodeOf(fleet, "n0").reason;
}

TEST(Run, OfHalfOfTheNodesIsNotTakenForThatOfAll) {
  FleetFolder folder;
  folder.add(machineRecord("n1"));
  Record other = machineRecord("n2");
  testing::givePlan(other, "another");
  folder.add(other);
  FleetOptions options = expecting({"n1", "n2"});
  Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kAccepted)], 0u);
  options.planSha256 = nodeRecord("n1").plan.sha256;
  fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kStale);
}

TEST(Verdict, ThatPassesBelowItsLimitWasEdited) {
  FleetFolder folder;
  Record record = testing::failedRecord("n1");
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kFail) {
        verdict.outcome = Outcome::kPass;
        verdict.observed = 0.9 * verdict.limit;
        verdict.margin = -0.1;
      }
  testing::settle(record);
  record.acceptance = Acceptance::kAccepted;
  record.exitCode = 0;
  record.reasons.clear();
  folder.add(record);
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kQuarantined);
  EXPECT_THAT(nodeOf(fleet, "n1").reason, HasSubstr("edited: "));
}

}  // namespace
}  // namespace muster
