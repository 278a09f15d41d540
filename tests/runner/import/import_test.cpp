// SPDX-License-Identifier: Apache-2.0
// What is read from files of other tools, and which files are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Import, NamesTheFormatsItKnows) {
  EXPECT_THAT(refusal("hello\n"), HasSubstr("its format is not known; Muster imports nccl-tests, "));
  EXPECT_THAT(refusal(""), HasSubstr("file: the file is empty"));
  EXPECT_THAT(refusal("{}"), HasSubstr("its format is not known"));
  EXPECT_THAT(refusal(NcclTable().text(), "nvbandwidth"), HasSubstr("it is not output of nvbandwidth"));
  EXPECT_THAT(refusal("x", "nvbandwith"), HasSubstr("did you mean \"nvbandwidth\"?"));
}

TEST(Import, AFileOfTwoFormatsIsAmbiguous) {
  const std::string both = changed(ncclJson(), "{\"version\"", R"({"nvbandwidth": {}, "version")");
  EXPECT_THAT(refusal(both), HasSubstr("it could be nccl-tests-json or nvbandwidth"));
  EXPECT_TRUE(importText(both, "file", "nccl-tests-json").ok());
}

TEST(Import, NamesAreShortAndEachResultIsThereOnce) {
  const std::string test = nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3");
  EXPECT_THAT(refusal(nvbandwidthJson(test + "," + test)),
              HasSubstr("two results of host_to_device_memcpy_ce"));
  EXPECT_THAT(refusal(changed(ncclJson(), "\"float\"", "\"" + std::string(5000, 'f') + "\"")),
              HasSubstr("a name longer than 200 bytes"));
  EXPECT_LE(
      imported(changed(NcclTable().text(), "525.000 ", "525.000 " + std::string(5000, 'x'))).said.size(),
      410u);
}

/// As long as a file may be, and nothing in it twice: what is looked up in lists is bounded.
TEST(Import, HugeFilesAreRefusedSoon) {
  const NcclTable table;
  std::string ranks, rows, tests;
  for (int i = 0; i < 200'000; ++i) {
    ranks += fmt::format("#  Rank {} Group 0 Pid 1 on host{} device 0 [0000:10:00] GPU {}\n", i, i, i);
    rows += fmt::format("1 1 t{} sum -1 N/A N/A N/A N/A N/A N/A N/A N/A\n", i);
    tests += fmt::format(R"({}{{"name": "t{}", "results": []}})", i > 0 ? "," : "", i);
  }
  EXPECT_THAT(refusal(table.head() + ranks + table.row(1 << 20) + table.foot()), HasSubstr("20000 ranks"));
  EXPECT_THAT(refusal(table.head() + rows + table.foot()), HasSubstr("more than 20000 rows"));
  EXPECT_THAT(
      refusal(R"({"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": [)" + tests + "]}]}}"),
      HasSubstr("one of too many tests"));
  const std::string job = R"({"jobname": "j", "error": 0})";
  std::string jobs = job, devices = "0";
  for (int i = 1; i < 1001; ++i) jobs += "," + job;
  EXPECT_THAT(refusal(R"({"fio version": "fio-3.33", "jobs": [)" + jobs + "]}"),
              HasSubstr("jobs[1000]: is one of more than 1000 jobs"));
  for (int i = 1; i < 1025; ++i) devices += fmt::format(R"(", "status": "Skip"}}, {{"gpu_id": "{})", i);
  EXPECT_THAT(refusal(dcgmJson(R"({"gpu_id": ")" + devices + R"(", "status": "Skip"})")),
              HasSubstr("results[1024]: is of more than 1024 devices"));
}

TEST(Import, DamagedJsonIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("{\"nvbandwidth\":\n{\"version\": }"), HasSubstr("line 2"));
  EXPECT_THAT(refusal(ncclJson().substr(0, 300)), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(changed(ncclJson(), "\"version\": 3", "\"version\": 3, \"version\": 4")),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(std::string(200'000, '[')), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(ncclJson(R"({"time": 10.0, "alg_bw": NaN, "bus_bw": 1, "nwrong": 0})")),
              HasSubstr("not valid JSON"));
}

TEST(Import, NotesBeforeTheJsonAreKept) {
  const std::string note = "note: queue depth will be capped at 1";
  const ImportedFile file = imported(note + "\n\n" + fioJson() + "\n");
  EXPECT_EQ(file.format, "fio");
  EXPECT_EQ(file.cases.at(0).error, "");
  EXPECT_EQ(valuesOf(file, "imported.bandwidth").size(), 1u);
  EXPECT_THAT(file.notes, ElementsAre("line 1: " + note));
  EXPECT_TRUE(importText(note + "\n" + fioJson(), "file", "fio").ok());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += note + "\n";
  EXPECT_EQ(imported(many + fioJson()).notes.back(), "further notes were left out");
}

TEST(Import, AnyOtherLineBeforeTheJsonIsAnError) {
  for (const char* line : {"fio: first direct IO errored.", "note: Killed", "seq: Laying out IO file"}) {
    const ImportedFile file = imported("note: x\n" + std::string(line) + "\n" + fioJson());
    EXPECT_EQ(file.cases.at(0).error, std::string("line 2, before the JSON, reports an error: ") + line);
  }
  const std::string copies =
      nvbandwidthJson(nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3"));
  EXPECT_THAT(imported("srun: error: x\n" + copies).cases.at(0).error, HasSubstr("line 1, before the JSON"));
}

TEST(Import, LinesBehindTheJsonOrDamageInItAreRefused) {
  const std::string text = "note: x\n" + fioJson();
  for (const std::string& other : std::vector<std::string>{
           text + "\nKilled\n", text.substr(0, text.size() - 2), "note: x\n" + text + text,
           "{\"a\": 1}\n" + fioJson(), "note: x\n{\"a\": 1}\n"})
    EXPECT_THAT(refusal(other), HasSubstr("its format is not known"));
}

TEST(Import, ATextIsReadAsBeforeWhereJsonEndsIt) {
  const ImportedFile file = imported(NcclTable().text() + fioJson());
  EXPECT_EQ(file.format, "nccl-tests");
  EXPECT_NE(file.cases.at(0).error, "");
}

const std::string kPeers =
    nvbandwidthTest("device_to_device_memcpy_write_ce", R"([["N/A", "380.5"], ["379.5", "N/A"]])", "760.0");

TEST(ImportNvbandwidth, CopiesGetMustersMetrics) {
  const ImportedFile file = imported(nvbandwidthJson(
      nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3") + "," + kPeers + "," +
      nvbandwidthTest("device_to_device_memcpy_read_sm", R"([["N/A", "301.0"], ["302.0", "N/A"]])", "603") +
      "," + nvbandwidthTest("device_local_copy", R"([["1400", "1401"]])", "2801")));
  EXPECT_EQ(file.tool, "nvbandwidth 0.8, driver 580.95.05");
  EXPECT_EQ(file.ranks, 2);
  const auto host = valuesOf(file, "memory.host_to_device_bandwidth");
  ASSERT_EQ(host.size(), 2u);
  EXPECT_EQ(host[1].labels, (Labels{{"device", "gpu1"}, {"engine", "copy_engine"}, {"numa", "near"}}));
  EXPECT_THAT(host[1].samples, ElementsAre(55.2e9));
  const auto peers = valuesOf(file, "memory.peer_bandwidth");
  ASSERT_EQ(peers.size(), 4u);
  EXPECT_EQ(peers[0].labels.at("device"), "gpu0");
  EXPECT_EQ(peers[0].labels.at("peer"), "gpu1");
  EXPECT_THAT(peers[0].samples, ElementsAre(380.5e9));
  // A read moves data from the column's GPU to the row's.
  EXPECT_EQ(peers[2].labels.at("engine"), "kernel");
  EXPECT_EQ(peers[2].labels.at("device"), "gpu1");
  EXPECT_EQ(peers[2].labels.at("peer"), "gpu0");
  EXPECT_THAT(file.notes.at(0), StartsWith("device_local_copy is not imported"));
}

/// nvbandwidth 0.5 to 0.7.
std::string withoutDevices(const std::string& tests) {
  const std::string text = nvbandwidthJson(tests);
  const size_t begin = text.find("\"GPU Device list\""), end = text.find("\"testcases\"");
  return text.substr(0, begin) + text.substr(end);
}

TEST(ImportNvbandwidth, WithoutAListTheMatricesTellTheDevices) {
  const std::string copies =
      nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3") + ",";
  const std::string unknown = nvbandwidthTest("host_device_latency_sm", R"([["1", "1", "1"]])", "3") + ",";
  const ImportedFile file = imported(withoutDevices(
      R"({"name": "device_to_host_memcpy_ce", "status": "Error"},)" + unknown + copies + kPeers));
  EXPECT_EQ(file.ranks, 2);
  EXPECT_THAT(file.deviceNames, IsEmpty());
  EXPECT_THAT(file.notes.at(0), HasSubstr("they are the 2 columns of its matrices"));
  EXPECT_THAT(file.cases.at(0).devices, ElementsAre("gpu0", "gpu1"));
  EXPECT_EQ(valuesOf(file, "memory.host_to_device_bandwidth").size(), 2u);
  const auto peers = valuesOf(file, "memory.peer_bandwidth");
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[0].labels.at("peer"), "gpu1");
  EXPECT_EQ(imported(withoutDevices(kPeers)).ranks, 2);
  EXPECT_EQ(imported(withoutDevices(R"({"name": "device_to_host_memcpy_ce", "status": "Error"})")).ranks, 0);
}

TEST(ImportNvbandwidth, WithoutAListTheMatricesMustAgree) {
  const auto refused = [](const std::string& name, const std::string& matrix, const std::string& sum) {
    return refusal(withoutDevices(kPeers + "," + nvbandwidthTest(name, matrix, sum)));
  };
  EXPECT_THAT(refused("host_to_device_memcpy_ce", R"([["55.1"]])", "55.1"),
              HasSubstr("testcases[1].bandwidth_matrix[0]: is no row of 2 values"));
  EXPECT_THAT(refused("device_to_device_memcpy_read_ce", R"([["N/A", "1"]])", "1"),
              HasSubstr("has 1 rows; 2 devices need 2"));
  for (const char* matrix : {"[]", "[[]]", "[7]", "7"})
    EXPECT_THAT(refusal(withoutDevices(nvbandwidthTest("device_to_host_memcpy_ce", matrix, "0"))),
                HasSubstr("the file lists no device and has no row of values"));
  std::string row = "0";
  for (int i = 0; i < 1024; ++i) row += ",0";
  EXPECT_THAT(refusal(withoutDevices(nvbandwidthTest("device_to_host_memcpy_ce", "[[" + row + "]]", "0"))),
              HasSubstr("a matrix of more than 1024 columns"));
}

/// All NVLinks down: no pair has a value, and nvbandwidth says Passed.
TEST(ImportNvbandwidth, PairsWithoutAValueAreAnError) {
  const ImportedFile file = imported(nvbandwidthJson(
      nvbandwidthTest("device_to_device_memcpy_write_ce", R"([["N/A", "N/A"], ["N/A", "N/A"]])", "0.0")));
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_THAT(file.cases.at(0).error, HasSubstr("no value between gpu0 and gpu1"));
}

TEST(ImportNvbandwidth, WhatDidNotEndIsAnError) {
  for (const char* status : {"Error", "Running", "Waived", "Not Found"}) {
    const ImportedFile file = imported(
        nvbandwidthJson(std::string(R"({"name": "host_to_device_memcpy_ce", "status": ")") + status + "\"}"));
    EXPECT_THAT(file.cases.at(0).error, HasSubstr(status));
  }
  EXPECT_THAT(imported(nvbandwidthJson("", R"(, "error": "cuMemAlloc: out of memory")")).cases.at(0).error,
              HasSubstr("out of memory"));
  EXPECT_THAT(imported(nvbandwidthJson("")).cases.at(0).error, HasSubstr("no result"));
}

TEST(ImportNvbandwidth, DamageIsRefusedWithItsPlace) {
  const auto refused = [](const std::string& matrix, const std::string& sum) {
    return refusal(nvbandwidthJson(nvbandwidthTest("host_to_device_memcpy_ce", matrix, sum)));
  };
  EXPECT_THAT(refused(R"([["55.1", "nan"]])", "55.1"),
              HasSubstr("testcases[0].bandwidth_matrix[0][1]: is no finite rate"));
  EXPECT_THAT(refused(R"([["55.1", "-1"]])", "54.1"), HasSubstr("no finite rate"));
  EXPECT_THAT(refused(R"([["55.1"]])", "55.1"), HasSubstr("is no row of 2 values"));
  EXPECT_THAT(refused(R"([["55.1", "55.2"], ["1", "1"]])", "112.3"),
              HasSubstr("has 2 rows; 2 devices need 1"));
  EXPECT_THAT(refused(R"([["55.1", "55.2"]])", "500"), HasSubstr("sum: is 500; its values add up to 110.3"));
  EXPECT_THAT(refused("7", "7"), HasSubstr("bandwidth_matrix"));
  EXPECT_THAT(
      refusal(nvbandwidthJson(nvbandwidthTest("multinode_device_to_device_memcpy_read_ce", "[]", "0"))),
      HasSubstr("lists the devices of its first process alone"));
  EXPECT_THAT(
      refusal(changed(nvbandwidthJson(kPeers), "(00000000:3b:00): (node1)", "(00000000:3b:00): (node2)")),
      HasSubstr("names several hosts"));
}

TEST(ImportDcgm, EachTestOfEachGpuIsAResult) {
  const ImportedFile file = imported(
      dcgmJson(dcgmResult(0, "Pass") + "," +
                   dcgmResult(1, "Fail", R"(, "warnings": [{"warning": "link width 8", "error_id": 1}])"),
               "Fail"));
  EXPECT_EQ(file.tool, "DCGM 4.4.1");
  EXPECT_EQ(file.verdict, ToolVerdict::kFailed);
  EXPECT_EQ(file.failures, 1);
  const auto results = valuesOf(file, "imported.test_passed");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(results[1].samples, ElementsAre(0));
  EXPECT_EQ(results[1].device, "gpu1");
  EXPECT_THAT(file.notes.at(0), HasSubstr("link width 8"));
}

TEST(ImportDcgm, OlderVersionsAreRead) {
  const ImportedFile file = imported(
      R"({"DCGM GPU Diagnostic": {"version": "3.3.5", "test_categories": [{"category": "Deployment", "tests":
         [{"name": "Denylist", "results": [{"status": "PASS"}]},
          {"name": "Memory", "results": [{"gpu_id": "0", "status": "Pass"}, {"gpu_ids": "1,2", "status": "Pass"}]}]}]}})");
  EXPECT_EQ(file.tool, "DCGM 3.3.5");
  const auto results = valuesOf(file, "imported.test_passed");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].device, "");
  EXPECT_EQ(results[3].device, "gpu2");
  EXPECT_EQ(file.ranks, 3);
}

/// A part of the verdict is none: DCGM counts what it skipped as no failure.
TEST(ImportDcgm, WhatWasSkippedOrIsMissingIsAnError) {
  const auto errorOf = [](const std::string& results, const std::string& summary = "Pass") {
    return imported(dcgmJson(results, summary)).cases.at(0).error;
  };
  EXPECT_THAT(errorOf(dcgmResult(0, "Pass") + "," + dcgmResult(1, "Skip")),
              HasSubstr("gives gpu1 the status \"Skip\""));
  EXPECT_THAT(errorOf(dcgmResult(0, "Pass") + "," + dcgmResult(1, "Warn")), HasSubstr("\"Warn\""));
  EXPECT_THAT(errorOf(dcgmResult(0, "Pass")), HasSubstr("it has no result of gpu1"));
  EXPECT_THAT(errorOf("", "Skip"), HasSubstr("sums it up as \"Skip\""));
  EXPECT_THAT(errorOf(""), HasSubstr("it has no result"));
  EXPECT_THAT(imported(R"({"DCGM Diagnostic": {}})").cases.at(0).error, HasSubstr("holds no test"));
  EXPECT_THAT(imported(R"({"DCGM Diagnostic": {"runtime_error": "host engine lost"}})").cases.at(0).error,
              HasSubstr("host engine lost"));
}

/// As `cpu_eud` on Grace.
TEST(ImportDcgm, ATestOfCpusHasNoResultOfGpus) {
  const auto both = [](const std::string& results) {
    const std::string groups =
        R"("entity_groups": [{"entity_group": "CPU", "entities": [{"entity_id": 0}, {"entity_id": 1}]}, )";
    return imported(changed(dcgmJson(results), "\"entity_groups\": [", groups));
  };
  const auto cpu = [](int id, const char* status) {
    return changed(dcgmResult(id, status), "\"GPU\"", "\"CPU\"");
  };
  const ImportedFile good = both(cpu(0, "Pass") + "," + cpu(1, "Pass"));
  EXPECT_EQ(good.cases.at(0).error, "");
  EXPECT_THAT(good.cases.at(0).devices, ElementsAre("cpu0", "cpu1"));
  EXPECT_EQ(good.ranks, 2) << "the GPUs";
  const ImportedFile failed = both(cpu(0, "Pass") + "," + cpu(1, "Fail"));
  EXPECT_EQ(failed.failures, 1);
  EXPECT_EQ(failed.verdict, ToolVerdict::kFailed);
  EXPECT_THAT(valuesOf(failed, "imported.test_passed").at(1).samples, ElementsAre(0));
  EXPECT_EQ(both(cpu(0, "Pass")).cases.at(0).error, "it has no result of cpu1");
  EXPECT_EQ(both(cpu(0, "Pass") + "," + cpu(1, "Pass") + "," + dcgmResult(1, "Pass")).cases.at(0).error,
            "it has no result of gpu0");
}

TEST(ImportDcgm, ContradictionsAreRefused) {
  EXPECT_THAT(refusal(dcgmJson(dcgmResult(0, "Pass") + "," + dcgmResult(0, "Fail"))),
              HasSubstr("a second result of gpu0"));
  EXPECT_THAT(refusal(dcgmJson("7")), HasSubstr("results[0]"));
  EXPECT_THAT(refusal(dcgmJson(dcgmResult(0, std::string(200, 'p')))), HasSubstr("is longer than a status"));
  std::string ids = "0";
  for (int i = 1; i < 2000; ++i) ids += "," + std::to_string(i);
  EXPECT_THAT(refusal(dcgmJson(R"({"status": "Pass", "gpu_ids": ")" + ids + "\"}")),
              HasSubstr("names more than 1024 devices"));
  EXPECT_THAT(refusal(R"({"DCGM Diagnostic": {"test_categories": {}}})"), HasSubstr("test_categories"));
}

TEST(ImportFio, EachJobAndDirectionHasItsValues) {
  const ImportedFile file = imported(fioJson());
  EXPECT_EQ(file.tool, "fio-3.33");
  const auto rates = valuesOf(file, "imported.bandwidth");
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].labels, (Labels{{"name", "seq"}, {"op", "read"}}));
  EXPECT_THAT(rates[0].samples, ElementsAre(3.5e9));
  const auto times = valuesOf(file, "imported.time");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].labels.at("statistic"), "p99");
  EXPECT_THAT(times[0].samples, ElementsAre(4e-4));
}

/// percentile_list=50:95
TEST(ImportFio, WithoutItsPercentileAJobHasNoSuchTime) {
  const ImportedFile file = imported(changed(fioJson(), "99.000000", "95.000000"));
  EXPECT_EQ(file.cases.at(0).error, "");
  const auto times = valuesOf(file, "imported.time");
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].labels.at("statistic"), "mean");
  EXPECT_THAT(file.notes,
              ElementsAre("seq[job=1]: fio reports no 99th percentile of read latency (percentile_list)"));
  EXPECT_THAT(imported(fioJson()).notes, IsEmpty());
}

/// gtod_reduce=1 or disable_clat=1
TEST(ImportFio, WithoutMeasuredLatenciesAJobHasNoTime) {
  for (const char* none : {R"("mean": 0.000000, "N": 0)", R"("mean": 0.0)", R"("mean": 0.0, "N": 1000)"}) {
    const ImportedFile file = imported(changed(fioJson(), R"("mean": 250000.5, "N": 1000)", none));
    EXPECT_THAT(valuesOf(file, "imported.time"), IsEmpty()) << none;
    EXPECT_EQ(valuesOf(file, "imported.bandwidth").size(), 1u);
    EXPECT_TRUE(file.cases.at(0).metrics.contains("imported.time")) << "a limit on it has no value";
    EXPECT_THAT(file.limits, HasSubstr("; 1 of 1 jobs measured no latency"));
    EXPECT_THAT(file.notes,
                ElementsAre("seq[job=1]: the job measured no read latency (gtod_reduce, disable_clat)"));
  }
  EXPECT_THAT(refusal(changed(fioJson(), "\"N\": 1000", "\"N\": -1")), HasSubstr("jobs[0].read.clat_ns.N"));
}

/// unified_rw_reporting=1
TEST(ImportFio, MixedReadsAndWritesAreOneDirection) {
  std::string text = changed(fioJson(), "\"read\": {", "\"mixed\": {");
  const ImportedFile file = imported(text.substr(0, text.find(",\n  \"write\"")) + "}]}");
  EXPECT_EQ(file.cases.at(0).error, "");
  const auto rates = valuesOf(file, "imported.bandwidth");
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].labels, (Labels{{"name", "seq"}, {"op", "mixed"}}));
  EXPECT_EQ(valuesOf(file, "imported.time").size(), 2u);
}

/// unified_rw_reporting=both: it moved 1000 of 2000 MiB.
TEST(ImportFio, MixedBesideTheOthersIsNotCountedTwice) {
  std::string text = fioJson();
  const size_t begin = text.find("\"read\": {"), end = text.find("\"write\": {");
  text.insert(end, changed(text.substr(begin, end - begin), "\"read\"", "\"mixed\""));
  const auto errorOf = [&](const std::string& size) {
    const ImportedFile file =
        imported(changed(text, "\"bs\"", "\"runtime\": \"60\", \"size\": \"" + size + "\", \"bs\""));
    EXPECT_EQ(valuesOf(file, "imported.bandwidth").size(), 2u);
    return file.cases.at(0).error;
  };
  EXPECT_EQ(errorOf("1000M"), "");
  EXPECT_THAT(errorOf("2000M"), HasSubstr("fio ended early"));
}

TEST(ImportFio, FailedAndEmptyJobsAreErrors) {
  EXPECT_THAT(imported(fioJson("0", "5")).cases.at(0).error, HasSubstr("ended it with error 5"));
  EXPECT_EQ(imported(fioJson("0", "5")).verdict, ToolVerdict::kFailed);
  EXPECT_THAT(imported(fioJson("0", "0", "0")).cases.at(0).error, HasSubstr("the job moved nothing"));
  EXPECT_THAT(imported(R"({"fio version": "fio-3.33", "jobs": []})").cases.at(0).error,
              HasSubstr("holds no job"));
  EXPECT_THAT(imported(changed(fioJson(), "\"drop_ios\": 0", "\"drop_ios\": 3")).cases.at(0).error,
              HasSubstr("3 were dropped"));
}

TEST(ImportFio, OperationsThatFailedInAJobThatWentOnAreAnError) {
  const std::string text = changed(fioJson(), "\"error\": 0", "\"error\": 0, \"total_err\": 37");
  const ImportedFile file = imported(text);
  EXPECT_EQ(file.cases.at(0).error, "37 of its operations failed");
  EXPECT_EQ(file.failures, 1);
  EXPECT_EQ(file.verdict, ToolVerdict::kFailed);
  EXPECT_EQ(file.said, "1 of 1 jobs had errors");
  EXPECT_EQ(imported(fioJson()).failures, 0);
}

/// A signal is no error to fio, whose options and numbers here are of fio 3.33.
TEST(ImportFio, AJobThatEndedBeforeItsRuntimeAndItsSizeIsAnError) {
  struct Run {
    const char* options;
    long mebibytes, millis;
    bool early;
  };
  for (const Run& run : {
           Run{R"("size": "64M", "runtime": "300")", 192, 3280, true},  // time_based
           Run{R"("size": "64M", "runtime": "5m")", 192, 3280, true},
           Run{R"("runtime": "300s")", 192, 3280, true},
           Run{R"("size": "64G", "runtime": "300")", 192, 3280, true},
           Run{R"("size": "64M", "runtime": "300", "numjobs": "4")", 900, 3280, true},
           Run{R"("size": "64M", "runtime": "300")", 192, 299'990, false},
           Run{R"("size": "64M", "runtime": "3")", 192, 2'800, false},
           Run{R"("size": "1G", "runtime": "300")", 1024, 3280, false},
           Run{R"("size": "1g", "runtime": "300", "loops": "4")", 4096, 3280, false},
           Run{R"("size": "1024m", "runtime": "300", "numjobs": "4")", 4096, 3280, false},
           Run{R"("size": "4G", "io_size": "1G", "runtime": "300")", 1024, 3280, false},
           Run{R"("size": "50%", "runtime": "300")", 1024, 3280, true},  // of what is not known
           Run{R"("size": "1KiB", "runtime": "300S")", 1024, 3280, true},
           Run{R"("size": "100GiB", "runtime": "5M")", 1024, 3280, true},
           Run{R"("size": "107374182400b", "runtime": "300")", 1024, 3280, true},
           Run{R"("size": "1P", "runtime": "300")", 1024, 3280, true},
           Run{R"("size": "1 thing", "runtime": "300")", 1024, 3280, true},
           Run{R"("size": "1GiB", "runtime": "300")", 1024, 3280, false},
           Run{R"("size": "64G", "runtime": "3000msec")", 64, 3280, false},
           Run{R"("size": "64G", "runtime": "300000000usec")", 64, 3280, true},
           Run{R"("size": "0x40000000", "runtime": "300")", 1024, 3280, false},
           Run{R"("filesize": "1G", "runtime": "300")", 1024, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "2", "runtime": "300")", 8, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "2", "runtime": "300")", 4, 3280, true},
           Run{R"("filesize": "4k", "nrfiles": "2k", "runtime": "300")", 8, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "some", "runtime": "300")", 4, 3280, true},
           Run{R"("filesize": "4M", "nrfiles": "4", "loops": "3", "runtime": "300")", 48, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "2", "size": "16M", "runtime": "300")", 8, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "4", "size": "8M", "runtime": "300")", 8, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "4", "size": "8M", "runtime": "300")", 16, 3280, true},
           Run{R"("filesize": "4M", "nrfiles": "2", "io_size": "16M", "runtime": "300")", 16, 3280, false},
           Run{R"("filesize": "4M", "nrfiles": "2", "io_size": "16M", "runtime": "300")", 8, 3280, true},
           Run{R"("filesize": "4M", "filename": "x:y\\:z", "nrfiles": "9", "runtime": "300")", 8, 3280,
               false},
           Run{R"("size": "8M", "nrfiles": "4", "runtime": "300")", 8, 3280, false},
           Run{R"("size": "1G", "verify": "crc32c", "runtime": "300")", 2048, 3280, false},
           Run{R"("size": "1024MB", "runtime": "300")", 1024, 3280, false},
           Run{R"("size": "0.001T", "runtime": "300")", 1024, 3280, false},
           Run{R"("size": "1073741824", "runtime": "300")", 1024, 3280, false},
           Run{R"("runtime": "300", "number_ios": "64")", 64, 3280, false},
           Run{R"("size": "1G")", 64, 3280, false},
       }) {
    std::string text = changed(fioJson(), "1048576000", std::to_string(run.mebibytes << 20));
    text = changed(text, "\"runtime\": 300", fmt::format("\"runtime\": {}", run.millis));
    text = changed(text, "\"bs\": \"1M\"", std::string("\"bs\": \"1M\", ") + run.options);
    const std::string error = imported(text).cases.at(0).error;
    EXPECT_EQ(error.empty(), !run.early) << run.options << ": " << error;
    EXPECT_THAT(error, HasSubstr(run.early ? "it ran 3.28 s of its runtime of 300 s" : ""));
  }
}

TEST(ImportFio, ARuntimeThatCannotBeReadIsAnError) {
  const std::string text = changed(fioJson(), "\"bs\": \"1M\"", "\"bs\": \"1M\", \"runtime\": \"soon\"");
  EXPECT_THAT(imported(text).cases.at(0).error, HasSubstr("its runtime of \"soon\" cannot be told"));
}

TEST(ImportFio, DamageIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal(fioJson("\"fast\"")), HasSubstr("jobs[0].read.bw_bytes"));
  EXPECT_THAT(refusal(fioJson("\"nan\"")), HasSubstr("jobs[0].read: holds a number that is none"));
  EXPECT_THAT(refusal(fioJson("-1")), HasSubstr("holds a number that is none"));
  EXPECT_THAT(refusal(R"({"fio version": "fio-3.33"})"), HasSubstr("jobs"));
}

/// It ran for 0.3 s.
TEST(ImportFio, AGlobalOptionHoldsUnlessTheJobHasItsOwn) {
  const auto errorOf = [](const std::string& global, const std::string& own) {
    return imported(changed(changed(fioJson(), "\"jobs\"", "\"global options\": {" + global + "}, \"jobs\""),
                            "\"bs\"", own + "\"bs\""))
        .cases.at(0)
        .error;
  };
  const std::string sixty = R"("runtime": "60")", brief = R"("runtime": "0.3s", )";
  EXPECT_THAT(errorOf(sixty, ""), HasSubstr("its runtime of 60 s: fio ended early"));
  EXPECT_EQ(errorOf(sixty, brief), "");
  EXPECT_EQ(errorOf(sixty, R"("exitall": "1", )"), "");
  EXPECT_EQ(errorOf(sixty + R"(, "size": "1000M")", ""), "");
}

TEST(ImportGpuBurn, EachGpuHasAResult) {
  const ImportedFile good = imported(gpuBurn());
  EXPECT_EQ(good.ranks, 2);
  EXPECT_EQ(good.said, "2 of 2 GPUs OK");
  EXPECT_EQ(good.cases.at(0).error, "");
  const ImportedFile faulty = imported(gpuBurn("1234", "7 (WARNING!)", "FAULTY"));
  EXPECT_EQ(faulty.verdict, ToolVerdict::kFailed);
  EXPECT_THAT(valuesOf(faulty, "imported.test_passed").at(1).samples, ElementsAre(0));
  EXPECT_THAT(valuesOf(faulty, "imported.test_passed").at(0).samples, ElementsAre(1));
}

/// A process that died, or never computed, has reported no error: gpu-burn calls its GPU OK.
TEST(ImportGpuBurn, NoProgressIsNoPass) {
  EXPECT_THAT(imported(gpuBurn("-1", "0  (DIED!)")).cases.at(0).error,
              HasSubstr("gpu1: its process died; gpu-burn calls it OK"));
  EXPECT_THAT(imported(gpuBurn("0")).cases.at(0).error, HasSubstr("gpu1: it computed nothing"));
  EXPECT_THAT(imported(gpuBurn("1234", "0", "OK", "41.5")).cases.at(0).error,
              HasSubstr("it ended at 41.5% of its time"));
  EXPECT_THAT(valuesOf(imported(gpuBurn("1234", "7 (WARNING!)", "OK")), "imported.test_passed").at(1).samples,
              ElementsAre(0));
  // Two runs in one file: the second does not make up for the first.
  const ImportedFile twice = imported(gpuBurn("1234", "0", "FAULTY") + gpuBurn());
  EXPECT_EQ(twice.verdict, ToolVerdict::kFailed);
}

TEST(ImportGpuBurn, DamageIsRefusedWithItsLine) {
  const std::string whole = gpuBurn();
  EXPECT_THAT(refusal(whole.substr(0, whole.find("Tested"))), HasSubstr("it is truncated"));
  EXPECT_THAT(refusal(whole.substr(0, whole.find("\tGPU 1"))), HasSubstr("it is truncated"));
  EXPECT_THAT(refusal(changed(whole, "1234 (", "nan (")), HasSubstr("file:6: a line of progress"));
  EXPECT_THAT(refusal(changed(whole, "GPU 1: OK", "GPU 1: FINE")), HasSubstr("a result that is damaged"));
  EXPECT_THAT(refusal(changed(whole, "Tested 2", "Tested 3")), HasSubstr("it is truncated"));
}

}  // namespace
}  // namespace muster::testing
