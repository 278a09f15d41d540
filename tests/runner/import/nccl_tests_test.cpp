// SPDX-License-Identifier: Apache-2.0
// The table and the JSON of nccl-tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ImportNccl, TheTableGivesMustersMetrics) {
  const ImportedFile file = imported(NcclTable().text());
  EXPECT_EQ(file.format, "nccl-tests");
  EXPECT_EQ(file.tool, "nccl-tests 2.17.6, NCCL 2.28.9");
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_EQ(file.ranks, 8);
  EXPECT_THAT(file.hosts, ElementsAre("node1"));
  EXPECT_THAT(file.deviceNames, ElementsAre("NVIDIA H100 80GB HBM3"));
  const auto large = valuesOf(file, "collective.large_message_bus_bandwidth");
  ASSERT_EQ(large.size(), 2u);
  EXPECT_EQ(large[0].labels, (Labels{{"op", "all_reduce"},
                                     {"dtype", "f32"},
                                     {"bytes", "4194304"},
                                     {"placement", "out_of_place"},
                                     {"ranks", "8"},
                                     {"nodes", "1"}}));
  EXPECT_THAT(large[0].samples, ElementsAre(525e9));
  EXPECT_EQ(valuesOf(file, "collective.bus_bandwidth").size(), 6u);
  EXPECT_THAT(valuesOf(file, "collective.collective_wrong_elements").at(0).samples, ElementsAre(0));
}

TEST(ImportNccl, TheJsonGivesTheSame) {
  const ImportedFile file = imported(ncclJson());
  EXPECT_EQ(file.format, "nccl-tests-json");
  EXPECT_EQ(file.ranks, 8);
  EXPECT_THAT(valuesOf(file, "collective.large_message_bus_bandwidth").at(0).samples,
              ElementsAre(183.5008e9));
  EXPECT_THAT(valuesOf(file, "collective.collective_time").at(0).samples, ElementsAre(10e-6));
}

/// Cycles of nccl-tests' option -N: a table whose sizes come again and again. No median hides a slow one.
TEST(ImportNccl, EachCycleIsACaseOfItsOwn) {
  NcclTable table;
  std::string rows;
  for (const double rate : {300.0, 60.0, 300.0}) {
    table.rate = rate;
    for (const long size : {1, 2, 4}) rows += table.row(size * table.fewest);
  }
  const ImportedFile file = imported(table.head() + rows + table.foot());
  ASSERT_EQ(file.cases.size(), 3u);
  EXPECT_EQ(file.cases[1].id, "all_reduce[dtype=f32,reduction=sum,cycle=2]");
  EXPECT_EQ(file.cases[1].metrics, file.cases[0].metrics);
  for (const Measurement& value : valuesOf(file, "collective.large_message_bus_bandwidth"))
    EXPECT_THAT(value.samples, ElementsAre(value.caseId == file.cases[1].id ? 105e9 : 525e9));
}

/// Of three sizes, in two cycles, only the order asked for is complete; and sizes may grow by bytes.
TEST(ImportNccl, EachSizeIsThereOnceInEachCycle) {
  const NcclTable table;
  const auto withRows = [&](const std::vector<long>& sizes, std::string head) {
    for (const long size : sizes) head += table.row(size * table.fewest);
    return importText(head + table.foot(), "file", "");
  };
  const std::string linear = changed(table.head(), "2(factor)", "1048576(bytes)");
  EXPECT_TRUE(withRows({1, 2, 4, 1, 2, 4}, table.head()).ok());
  EXPECT_TRUE(withRows({1, 2, 3, 4}, linear).ok());
  for (const std::vector<long>& sizes : std::vector<std::vector<long>>{
           {1, 4, 4}, {4, 4, 4}, {1, 2, 2}, {1, 1, 2, 2, 4, 4}, {1, 2, 4, 1, 4, 4}, {2, 4, 1}}) {
    const auto file = withRows(sizes, table.head());
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error().text(), HasSubstr("were asked for: rows are missing, or there twice"));
  }
  EXPECT_FALSE(withRows({1, 2, 3}, linear).ok());
  EXPECT_FALSE(withRows({1, 2, 4, 4}, linear).ok());
  EXPECT_FALSE(withRows({1, 2, 4}, changed(table.head(), "maxBytes 4194304", "maxBytes 4")).ok());
}

/// nccl-tests rounds sizes down for each rank; one that is too small for all of them moves nothing.
TEST(ImportNccl, SizesMayBeRoundedDown) {
  NcclTable table;
  table.rate = 0.02;
  std::string head = changed(table.head(), "minBytes 1048576 maxBytes 4194304", "minBytes 64 maxBytes 1024");
  for (const long bytes : {0, 128, 128, 512, 1024})
    head += bytes > 0 ? table.row(bytes) : "0 0 float sum -1 5.00 0.00 0.00 0 5.00 0.00 0.00 0\n";
  const ImportedFile file = imported(head + table.foot());
  ASSERT_EQ(file.cases.size(), 1u);
  EXPECT_EQ(valuesOf(file, "collective.bus_bandwidth").size(), 6u);
}

TEST(ImportNccl, EachRootIsACaseOfItsOwn) {
  NcclTable table;
  std::string rows;
  for (const int root : {0, 1}) {
    table.rate = root == 0 ? 300 : 60;
    for (const long size : {1, 2, 4}) rows += table.row(size * table.fewest, root);
  }
  const ImportedFile file = imported(table.head() + rows + table.foot());
  ASSERT_EQ(file.cases.size(), 2u);
  EXPECT_EQ(file.cases[1].id, "all_reduce[dtype=f32,reduction=sum,root=1]");
  for (const Measurement& value : valuesOf(file, "collective.large_message_bus_bandwidth"))
    EXPECT_THAT(value.samples, ElementsAre(value.caseId == file.cases[1].id ? 105e9 : 525e9));
}

/// The JSON pads a root to six characters.
TEST(ImportNccl, TheJsonNamesARootAsTheTableDoes) {
  const std::string row =
      R"({"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "     1",
  "out_of_place": {"time": 10.0, "alg_bw": 104.8576, "bus_bw": 183.5008, "nwrong": 0}, "in_place": null}, )";
  const ImportedFile file = imported(changed(ncclJson(), "\"results\": [", "\"results\": [" + row));
  ASSERT_EQ(file.cases.size(), 2u);
  EXPECT_EQ(file.cases[1].id, "all_reduce[dtype=f32,reduction=sum,root=1]");
}

TEST(ImportNccl, TwoRanksOnOneDeviceAreRefused) {
  EXPECT_THAT(refusal(changed(NcclTable().text(), "[0000:11:00]", "[0000:10:00]")),
              HasSubstr("two ranks have one device, [0000:10:00] on node1"));
}

TEST(ImportNccl, WrongResultsAndOwnFailuresAreKept) {
  NcclTable table;
  table.wrong = "3";
  table.bounds = "6 FAILED";
  const ImportedFile file = imported(table.text());
  EXPECT_EQ(file.verdict, ToolVerdict::kFailed);
  EXPECT_EQ(file.failures, 1);
  EXPECT_THAT(valuesOf(file, "collective.collective_wrong_elements").at(0).samples, ElementsAre(18));
  EXPECT_EQ(imported(ncclJson(R"({"time": 10.0, "alg_bw": 104.8576, "bus_bw": 183.5008, "nwrong": 0})",
                              "\"false\""))
                .verdict,
            ToolVerdict::kFailed);
}

TEST(ImportNccl, ErrorsUncheckedAndEmptyResultsAreErrors) {
  const NcclTable table;
  const ImportedFile died = imported(table.head() + table.row(1 << 20) +
                                     "node1: Test CUDA failure common.cu:954 'out of memory'\n");
  EXPECT_THAT(died.cases.at(0).error, HasSubstr("out of memory"));
  EXPECT_THAT(imported(table.head() + table.foot()).cases.at(0).error, HasSubstr("the file holds no result"));
  NcclTable unchecked;
  unchecked.wrong = "N/A";
  EXPECT_THAT(imported(unchecked.text()).cases.at(0).error, HasSubstr("its results were not checked"));
  EXPECT_THAT(imported(ncclJson(R"({"time": 10.0, "alg_bw": 104.8576, "bus_bw": 183.5008, "nwrong": 0})",
                                "\"true\"", R"(, "errors": ["unhandled cuda error"])"))
                  .cases.at(0)
                  .error,
              HasSubstr("unhandled cuda error"));
}

/// Rates of small sizes are mostly rounding.
TEST(ImportNccl, TwoDecimalsAreNoContradiction) {
  for (int ranks : {2, 8, 64})
    for (long bytes = 8; bytes <= 4096; bytes *= 2)
      for (double micros = 8; micros < 40; micros += 0.37) {
        NcclTable table;
        table.ranks = ranks;
        table.fewest = bytes;
        table.rate = static_cast<double>(bytes) / (micros * 1e3);
        const auto file = importText(table.text(), "file", "");
        ASSERT_TRUE(file.ok()) << file.error().text() << "\n" << table.text();
      }
}

TEST(ImportNccl, LinesBesideTheTableAreKeptAndALostProcessIsAnError) {
  const std::string whole = NcclTable().text();
  const ImportedFile chatty = imported("node1:77:77 [0] NCCL INFO Using network IB\n" + whole);
  EXPECT_THAT(chatty.notes, ElementsAre("line 1: node1:77:77 [0] NCCL INFO Using network IB"));
  EXPECT_EQ(chatty.cases.at(0).error, "");
  for (const std::string line :
       {"mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).",
        "srun: error: node1: task 3: Exited with exit code 1",
        "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED ***",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "[ 1234.5] NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.",
        "bash: line 1: 4711 Bus error (core dumped) ./all_reduce_perf -b 2G", "Killed", "Aborted by rank 3",
        "./job.sh: line 3:  4711 Killed                  ./all_reduce_perf", "node1: Terminated", "Killed: 9",
        "Memory cgroup out of memory: Killed process 4711 (all_reduce_perf)", "srun: Force Terminated job 4",
        "RuntimeError: NCCL error in: Work.cpp:1", "n1:7:7 [0] NCCL WARN Cuda failure 'unspecified launch'",
        "n1:7:7 [0] net.cc:9 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
        "timeout: sending signal TERM to command './all_reduce_perf'"})
    for (const std::string& text :
         {whole + line + "\n", "{}\n" + whole + line + "\n", changed(whole, "# Out of", line + "\n# Out of")})
      EXPECT_THAT(imported(text).cases.at(0).error, EndsWith(" reports an error: " + line));
}

/// The devices of a run that printed nothing more would count as measured.
TEST(ImportNccl, RefusesASecondRunInOneFile) {
  const NcclTable table;
  const std::string whole = table.text();
  for (const std::string& text : {whole + table.head(), table.head() + whole, whole + whole})
    EXPECT_THAT(refusal(text), HasSubstr("another run begins here"));
}

TEST(ImportNccl, ACheckThatIsNotKnownFailsToo) {
  const std::string whole = NcclTable().text();
  const std::string more = "# Bitwise mismatches   : 3 FAILED\n# Out of";
  EXPECT_NE(imported(changed(whole, "# Out of", more)).cases.at(0).error, "");
}

/// What others said before a healthy run is not about it.
TEST(ImportNccl, LinesThatOnlyLookLikeErrorsAreNone) {
  for (const std::string line :
       {"Killed old processes of user", "n1:7:7 [0] NCCL INFO [Proxy Progress] Terminated",
        "n1:7:7 [0] NCCL INFO TORCH_NCCL error handling", "n1:7:7 [0] NCCL WARN NET/IB : no device found"})
    EXPECT_EQ(imported(line + "\n" + NcclTable().text()).cases.at(0).error, "") << line;
}

TEST(ImportNccl, NothingUnknownStandsBehindTheTable) {
  const std::string whole = NcclTable().text();
  for (const std::string line :
       {"",
        "#",
        "node1:77:77 [0] NCCL INFO comm 0x55 rank 0 nranks 8 - Destroy COMPLETE",
        "real\t0m12.3s",
        "[n1:8] 7 more processes have sent help message help-mpi-btl-openib.txt / no device params found",
        "[n1:8] Set MCA parameter \"prte_base_help_aggregate\" to 0 to see all help / error messages",
        "done",
        "Job 4711 finished.",
        "Sat Nov 28 13:33:41 UTC 2026",
        "Sun Nov  8 01:33:41 PM CEST 2026",
        "Mon Nov  9 13:33:41 +08 2026",
        "2026-11-28T13:33:41+00:00",
        "2026-11-28 13:33:41",
        "+ exit 0",
        "++ date",
        "+ echo 'Job 4711 finished'",
        "12.31user 8.10system 0:31.20elapsed 65%CPU (0avgtext+0avgdata 1234maxresident)k",
        "12.31user 8.10system 1:02:03elapsed ?%CPU (0avgtext+0avgdata 1234maxresident)k",
        "0inputs+0outputs (0major+1234minor)pagefaults 0swaps",
        "slurmstepd: pyxis: removing container filesystem"})
    EXPECT_EQ(imported(whole + line + "\n").cases.at(0).error, "");
  for (const std::string line :
       {"the connection was lost", "+ exit 139", "+ echo failed", "+ rc=1",
        "slurmstepd: pyxis: failed to stop the container", "2026-11-28 13:33:41 ERROR",
        "Sat 28 Nov 2026 13:33:41 failed", "job failed, done", "done: 7 of 8 ranks"})
    EXPECT_THAT(imported(whole + line + "\n").cases.at(0).error,
                StartsWith("a line behind the table is not one of a run that ended well: line 25: "));
  EXPECT_THAT(refusal(whole + NcclTable().row(4 << 20)), HasSubstr("rows are missing, or there twice"));
}

/// A job script says "done" whatever came of its commands.
TEST(ImportNccl, AUsualEndDoesNotCompleteATable) {
  const std::string whole = NcclTable().text();
  const size_t average = whole.find("# Avg");
  for (size_t end = whole.find('\n'); end < average; end = whole.find('\n', end + 1))
    EXPECT_FALSE(importText(whole.substr(0, end + 1) + "done\n+ exit 0\n", "file", "").ok()) << end;
}

TEST(ImportNccl, DamageIsRefusedWithItsPlace) {
  const NcclTable table;
  const std::string whole = table.text();
  EXPECT_THAT(refusal(table.head() + table.row(1 << 20)), HasSubstr("it is truncated"));
  EXPECT_THAT(refusal(table.head() + table.row(1 << 20) + table.row(2 << 20) + table.foot()),
              HasSubstr("2 rows; 3 sizes were asked for"));
  EXPECT_THAT(refusal(changed(whole, "300.00", "nan")), HasSubstr("file:18: a row with a value"));
  EXPECT_THAT(refusal(changed(whole, "300.00", "inf")), HasSubstr("no finite number"));
  EXPECT_THAT(refusal(changed(whole, "300.00", "310.00")),
              HasSubstr("file:18: the row contradicts itself: algbw"));
  EXPECT_THAT(refusal(changed(whole, "525.00  ", "725.00  ")), HasSubstr("busbw is 725"));
  EXPECT_THAT(refusal(changed(whole, "  525.00", "")), HasSubstr("a row of 12 columns; expected 13"));
  EXPECT_THAT(refusal(changed(whole, "    : 525.000", "    : -nan")),
              HasSubstr("the average is no finite number"));
  EXPECT_THAT(refusal(changed(whole, "    : 525.000", "    :")),
              HasSubstr("the average is no finite number"));
  EXPECT_THAT(refusal(changed(whole, "# Collective test starting: all_reduce_perf\n", "")),
              HasSubstr("it does not name its collective"));
  EXPECT_THAT(refusal(changed(whole, "all_reduce_perf", "hypercube_perf")),
              HasSubstr("has no metric of Muster's"));
  EXPECT_THAT(refusal(changed(whole, "all_reduce_perf", "all_gather_perf")),
              HasSubstr("contradicts itself: busbw"));
  EXPECT_THAT(refusal(ncclJson(R"({"time": 0, "alg_bw": 1, "bus_bw": 1, "nwrong": 0})")),
              HasSubstr("results[0]: the row contradicts itself: a time of 0 us"));
  EXPECT_THAT(refusal(ncclJson(R"({"time": "10", "alg_bw": 1, "bus_bw": 1, "nwrong": 0})")),
              HasSubstr("results[0].out_of_place.time"));
}

/// One GPU where eight were meant: the rates themselves say how many took part.
TEST(ImportNccl, AnotherNumberOfRanksContradictsTheRates) {
  std::string text = NcclTable().text();
  for (int i = 1; i < 8; ++i) {
    const size_t at = text.find(fmt::format("#  Rank {:2} ", i));
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  EXPECT_THAT(refusal(text), HasSubstr("another op or number of ranks"));
}

/// As nccl-tests writes it: truth is text.
TEST(ImportNccl, TheJsonsOwnVerdictIsTextOrTruth) {
  const std::string row = R"({"time": 10.0, "alg_bw": 104.8576, "bus_bw": 183.5008, "nwrong": 0})";
  for (const char* okay : {"true", "\"true\"", "false", "\"false\""}) {
    const bool passed = std::string(okay).find("true") != std::string::npos;
    EXPECT_EQ(imported(ncclJson(row, okay)).verdict, passed ? ToolVerdict::kPassed : ToolVerdict::kFailed);
    const ImportedFile average = imported(changed(ncclJson(row), "\"unchecked\"", okay));
    EXPECT_EQ(average.verdict, passed ? ToolVerdict::kPassed : ToolVerdict::kFailed) << okay;
    EXPECT_THAT(average.limits, HasSubstr("the average busbw"));
  }
  for (const char* okay : {"1", "null", "\"yes\"", "\"unchecked\""})
    EXPECT_THAT(refusal(ncclJson(row, okay)), HasSubstr("out_of_bounds.okay"));
  EXPECT_THAT(refusal(changed(ncclJson(row), "\"unchecked\"", "\"no\"")),
              HasSubstr("average_bus_bandwidth.okay"));
}

/// Where the memory does not suffice, nccl-tests takes a smaller largest size and says so.
TEST(ImportNccl, ALargestSizeThatWasReducedIsTheOneAskedFor) {
  const NcclTable table;
  const auto reducedTo = [&](const char* bytes, const std::vector<long>& sizes) {
    std::string text = table.head();
    text.insert(text.find("#\n#  "),
                "#\n# Reducing maxBytes to " + std::string(bytes) + " due to memory limitation\n");
    for (const long size : sizes) text += table.row(size);
    return text + table.foot();
  };
  EXPECT_EQ(valuesOf(imported(reducedTo("3000000", {1 << 20, 2 << 20})), "collective.bus_bandwidth").size(),
            4u);
  EXPECT_EQ(valuesOf(imported(reducedTo("524288", {524288})), "collective.bus_bandwidth").size(), 2u);
  EXPECT_THAT(refusal(reducedTo("3000000", {1 << 20})), HasSubstr("rows; 2 sizes were asked for"));
  EXPECT_THAT(refusal(reducedTo("many", {1 << 20})), HasSubstr("a size that cannot be read"));
  const std::string json = changed(ncclJson(), "\"maximum_bytes\": 1048576", "\"maximum_bytes\": 2097152");
  EXPECT_THAT(refusal(json), HasSubstr("this file does not tell so: ask for less with -e"));
}

/// NCCL_TESTS_SPLIT: a rate is that of no group, since the times of all are averaged.
TEST(ImportNccl, RanksOfSeveralGroupsAreRefused) {
  const std::string whole = NcclTable().text();
  EXPECT_THAT(refusal(changed(whole, "#  Rank  1 Group  0", "#  Rank  1 Group  1")),
              HasSubstr("ranks of several groups (NCCL_TESTS_SPLIT)"));
  EXPECT_THAT(refusal(changed(whole, "Group  0", "Group  x")), HasSubstr("group is no number"));
  const std::string other = R"({"rank": 1, "group": 1, "hostname": "node2", "device_info": "H100"})";
  EXPECT_THAT(refusal(changed(ncclJson(), "HBM3\"}]", "HBM3\"}, " + other + "]")),
              HasSubstr("ranks of several groups (NCCL_TESTS_SPLIT)"));
}

TEST(ImportNccl, TimesOfTheCpuAreNoTimesOfACollective) {
  EXPECT_THAT(refusal(changed(NcclTable().text(), "   time ", "cputime ")), HasSubstr("without -C 1"));
  EXPECT_THAT(refusal(ncclJson(R"({"cpu_time": 10.0, "alg_bw": 104.8, "bus_bw": 183.5, "nwrong": 0})")),
              HasSubstr("without -C 1"));
}

}  // namespace
}  // namespace muster::testing
