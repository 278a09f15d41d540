// SPDX-License-Identifier: Apache-2.0
// Streams of OCP Test & Validation: Muster's own give its measurements again, others can only reject.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> with(std::vector<std::string> inner, const std::string& more) {
  inner.push_back(more);
  return inner;
}

TEST(ImportOcp, ValuesWithMustersMetadataAreItsMeasurements) {
  const ImportedFile file = imported(ocpStream(ocpArtifacts(with(ocpSeries(), ocpDiagnosis("PASS")))));
  EXPECT_EQ(file.format, "ocp");
  EXPECT_EQ(file.tool, "diag 1.2");
  EXPECT_EQ(file.said, "COMPLETE, PASS");
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_THAT(file.hosts, ElementsAre("node1"));
  EXPECT_THAT(file.deviceNames, ElementsAre("NVIDIA H100 80GB HBM3"));
  ASSERT_EQ(file.cases.size(), 1u);
  EXPECT_EQ(file.cases[0].error, "");
  EXPECT_THAT(file.cases[0].devices, ElementsAre("gpu0"));
  ASSERT_EQ(file.measurements.size(), 1u);
  const Measurement& m = file.measurements[0];
  EXPECT_EQ(m.metric, "compute.gemm_throughput");
  EXPECT_EQ(m.unit, "FLOP/s");
  EXPECT_EQ(m.caseId, "1:gemm/gemm[dtype=bf16]");
  EXPECT_EQ(m.labels, (Labels{{"dtype", "bf16"}, {"size", "8192"}, {"device", "gpu0"}}));
  EXPECT_THAT(m.samples, ElementsAre(600e12, 610e12));
}

TEST(ImportOcp, StepsOfOtherProgramsCountByTheirDiagnoses) {
  const ImportedFile file = imported(
      ocpStream(ocpArtifacts({ocpStep(R"("measurement": {"name": "gflops", "value": 3, "unit": "GFLOP/s"})"),
                              ocpDiagnosis("PASS"), ocpDiagnosis("FAIL", "gpu1")})));
  EXPECT_EQ(file.failures, 1);
  const auto passed = valuesOf(file, "imported.test_passed");
  ASSERT_EQ(passed.size(), 2u);
  EXPECT_THAT(passed[0].samples, ElementsAre(1));
  EXPECT_THAT(passed[1].samples, ElementsAre(0));
  EXPECT_THAT(file.notes, ElementsAre("1:gemm: 1 values without Muster's metadata were left out"));
}

TEST(ImportOcp, ARunThatFailedIsAFailureWhateverItsDiagnosesSay) {
  const std::string failed = ocpRun(R"("testRunEnd": {"status": "COMPLETE", "result": "FAIL"})");
  for (const std::vector<std::string>& inner : {ocpSeries(), with(ocpSeries(), ocpDiagnosis("PASS"))}) {
    const ImportedFile file = imported(ocpStream(ocpArtifacts(inner, failed)));
    EXPECT_EQ(file.failures, 1);
    EXPECT_EQ(file.verdict, ToolVerdict::kFailed);
  }
  const auto both = imported(ocpStream(ocpArtifacts(with(ocpSeries(), ocpDiagnosis("FAIL")), failed)));
  EXPECT_EQ(both.failures, 1) << "its diagnosis says already what failed";
  EXPECT_EQ(imported(ocpStream(ocpArtifacts(ocpSeries()))).failures, 0);
}

std::string errorOf(const std::vector<std::string>& artifacts) {
  const ImportedFile file = imported(ocpStream(artifacts));
  for (const ImportedCase& one : file.cases)
    if (!one.error.empty()) return one.error;
  return "";
}

TEST(ImportOcp, NothingPassesForLackOfEvidence) {
  EXPECT_THAT(errorOf(ocpArtifacts({})), HasSubstr("neither a value nor a diagnosis"));
  EXPECT_THAT(errorOf(ocpArtifacts(ocpSeries(), "")), HasSubstr("the stream ends before its run"));
  EXPECT_THAT(
      errorOf(ocpArtifacts(ocpSeries(), ocpRun(R"("testRunEnd": {"status": "ERROR", "result": "PASS"})"))),
      HasSubstr("the run ended as ERROR"));
  EXPECT_THAT(errorOf(ocpArtifacts(with(
                  ocpSeries(), ocpStep(R"("error": {"symptom": "xid", "message": "fell off the bus"})")))),
              HasSubstr("the stream holds an error: xid fell off the bus"));
  EXPECT_THAT(errorOf(ocpArtifacts(
                  with(ocpSeries(), ocpStep(R"("log": {"severity": "FATAL", "message": "out of memory"})")))),
              HasSubstr("the log holds an error: out of memory"));
  EXPECT_THAT(errorOf(ocpArtifacts(with(ocpSeries(), ocpDiagnosis("UNKNOWN")))), HasSubstr("is UNKNOWN"));
  std::vector<std::string> open = ocpSeries();
  open.pop_back();
  EXPECT_EQ(errorOf(ocpArtifacts(open)), "a series of values has no end");
  EXPECT_EQ(imported(ocpStream({})).cases.at(0).error, "the stream holds no step");
}

TEST(ImportOcp, SimulatedAndImportedValuesAreNoEvidence) {
  for (const char* mark : {"SIMULATED by scenario x", "IMPORTED from y"}) {
    std::vector<std::string> artifacts = ocpArtifacts(ocpSeries());
    artifacts[0] = changed(artifacts[0], R"("name": "node1")",
                           std::string(R"("name": "node1", "metadata": {"marks": [")") + mark + "\"]}");
    EXPECT_THAT(errorOf(artifacts), HasSubstr(std::string("no evidence of its own: ") + mark));
  }
}

/// Cut after any line it is refused, or no case of it has a result.
TEST(ImportOcp, EveryInterruptionIsNoticed) {
  const std::string text = ocpStream(ocpArtifacts(with(ocpSeries(), ocpDiagnosis("PASS"))));
  for (size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 1)) {
    const auto file = importText(text.substr(0, end + 1), "file", "");
    ASSERT_TRUE(file.ok()) << file.error().text();
    for (const ImportedCase& one : file->cases) EXPECT_NE(one.error, "") << text.substr(0, end + 1);
  }
}

TEST(ImportOcp, DamagedStreamsAreRefusedWithTheirLine) {
  const std::string text = ocpStream(ocpArtifacts(ocpSeries()));
  EXPECT_THAT(refusal(text.substr(0, text.size() - 30)), HasSubstr("file:9"));
  EXPECT_THAT(refusal(changed(text, R"("major": 2)", R"("major": 3)")),
              HasSubstr("file:1: schemaVersion.major"));
  EXPECT_THAT(refusal("\n" + changed(text, R"("major": 2)", R"("major": 3)")),
              HasSubstr("file:2: schemaVersion.major"));
  EXPECT_THAT(refusal(changed(text, R"("sequenceNumber": 4)", R"("sequenceNumber": 5)")),
              HasSubstr("file:5: sequenceNumber: is 5; expected 4"));
  EXPECT_THAT(refusal(ocpStream(ocpArtifacts(ocpSeries("\"x\"")))), HasSubstr("file:5: "));
  EXPECT_THAT(refusal(ocpStream(ocpArtifacts(ocpSeries("\"nan\"")))), HasSubstr("file:5: "));
  EXPECT_THAT(refusal(ocpStream(ocpArtifacts(ocpSeries("1", "3")))),
              HasSubstr("file:7: measurementSeriesEnd.totalCount: is 3; the series has 2"));
  const auto again = [](const std::string& from, const std::string& to) {
    std::vector<std::string> twice = ocpSeries();
    for (const std::string& artifact : ocpSeries("1"))
      twice.push_back(std::regex_replace(artifact, std::regex("s0"), "s1"));
    twice[4] = changed(twice[4], from, to);
    return ocpStream(ocpArtifacts(twice));
  };
  EXPECT_THAT(refusal(again("", "")),
              HasSubstr("file:11: measurementSeriesEnd: is a second value of compute."));
  EXPECT_EQ(imported(again(R"("repeat": 0)", R"("repeat": 1)")).measurements.size(), 2u);
  EXPECT_THAT(refusal(ocpStream({kOcpStart, kOcpEnd, kOcpStart})),
              HasSubstr("file:4: testRunStart: is outside of the one run"));
  EXPECT_THAT(refusal(ocpStream({kOcpStart, ocpDiagnosis("PASS")})),
              HasSubstr("file:3: testStepId: is of no step"));
}

}  // namespace
}  // namespace muster::testing
