// SPDX-License-Identifier: Apache-2.0
// gpu-fryer, SuperBench and MLPerf logs: what is read of them, which files are refused, and what their tools
// let pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Every beginning of a text that ends with a line is refused, or its case is an error: an interrupted file
/// never passes. `whole` such beginnings lack nothing that counts.
void expectTruncationIsNoticed(const std::string& text, size_t needed) {
  for (size_t end = text.find('\n'); end != std::string::npos && end + 1 < needed;
       end = text.find('\n', end + 1)) {
    const auto file = importText(text.substr(0, end + 1), "file", "");
    if (!file.ok()) continue;
    const bool open = std::any_of(file->cases.begin(), file->cases.end(),
                                  [](const ImportedCase& one) { return !one.error.empty(); });
    EXPECT_TRUE(open) << text.substr(0, end + 1);
  }
}

std::string firstError(const ImportedFile& file) {
  for (const ImportedCase& one : file.cases)
    if (!one.error.empty()) return one.id + ": " + one.error;
  return "";
}

/// Without an id where the file has no such case.
ImportedCase caseOf(const ImportedFile& file, const std::string& id) {
  for (const ImportedCase& one : file.cases)
    if (one.id == id) return one;
  return {};
}

TEST(ImportGpuFryer, RatesAreThoseOfMustersStressTest) {
  const ImportedFile file = imported(gpuFryer());
  EXPECT_EQ(file.format, "gpu-fryer");
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_EQ(file.ranks, 2);
  EXPECT_THAT(file.deviceNames, ElementsAre("NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(file.cases.at(0).error, "");
  const auto rates = valuesOf(file, "compute.sustained_throughput");
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[1].labels, (Labels{{"dtype", "bf16"}, {"device", "gpu1"}}));
  EXPECT_THAT(rates[1].samples, ElementsAre(705e12));
}

/// It has no absolute limit, tolerates throttling by an option, and calls GPUs healthy that did nothing.
TEST(ImportGpuFryer, WhatItLetsPassDoesNotPassHere) {
  EXPECT_EQ(imported(gpuFryer("0")).cases.at(0).error, "gpu1 computed nothing");
  EXPECT_THAT(valuesOf(imported(gpuFryer("705000", "true")), "imported.test_passed").at(1).samples,
              ElementsAre(0));
  EXPECT_EQ(
      imported(gpuFryer("705000", "false", "Some GPUs are not healthy. Reasons:\n  - GPU 1 - slow")).failures,
      1);
  EXPECT_THAT(
      imported(gpuFryer("705000", "false", "All GPUs seem healthy", "thread 'tokio' panicked at main.rs:9\n"))
          .cases.at(0)
          .error,
      HasSubstr("panicked"));
}

/// A driver's fault, or what the shell says of a process, in the output of any tool.
TEST(Import, AnErrorLineIsAnErrorInEachTextFormat) {
  for (const std::string& text : {gpuFryer(), gpuBurn(), mllog()})
    for (const std::string line : {"NVRM: Xid (PCI:0000:19:00): 79", "Killed", "Bus error (core dumped)"})
      for (const std::string& damaged : {line + "\n" + text, text + line + "\n"})
        EXPECT_THAT(imported(damaged).cases.at(0).error, HasSubstr(line)) << damaged;
  EXPECT_EQ(imported(gpuBurn()).cases.at(0).error, "");
  EXPECT_THAT(imported(gpuFryer() + "bye\n").cases.at(0).error, HasSubstr("end with the line: bye"));
  EXPECT_EQ(imported(gpuFryer() + "+ exit 0\ndone\n").cases.at(0).error, "");
}

/// A device that is listed twice was measured twice, and another one not at all.
TEST(Import, NoDeviceIsListedTwiceOrLeftOut) {
  EXPECT_THAT(refusal(changed(gpuFryer(), "(0a-2)", "(0a-1)")), HasSubstr("file:2: it lists this GPU twice"));
  EXPECT_THAT(refusal(changed(nvbandwidthJson(""), "3b:00", "19:00")),
              HasSubstr("GPU Device list[1]: is a device that the list holds already"));
  const std::string device = R"({"rank": 0, "hostname": "node1", "device_hex": "0000:19:00"})";
  EXPECT_THAT(
      refusal(changed(ncclJson(), "\"devices\": [", "\"devices\": [" + device + ", " + device + ", ")),
      HasSubstr("config.devices[1]: is a device that the list holds already"));
  EXPECT_THAT(firstError(imported(superBench("node1", "1", "0", R"(, "gemm-flops/bf16_tc_flops:3": 1)"))),
              HasSubstr("values of GPU 3, but of 3 GPUs in all"));
}

TEST(ImportGpuFryer, DamagedFilesAreRefusedWithTheirLine) {
  const std::string text = gpuFryer();
  expectTruncationIsNoticed(text, text.find("Freeing"));
  EXPECT_THAT(refusal(changed(text, "705000 Gflops", "nan Gflops")), HasSubstr("file:12: no result"));
  EXPECT_THAT(refusal(changed(text, "GPU #1: 7", "GPU #0: 7")),
              HasSubstr("file:12: a second result of GPU 0"));
  EXPECT_THAT(refusal(changed(text, "Detected GPU #1", "Detected GPU #2")), HasSubstr("file:2: no GPU"));
  EXPECT_THAT(refusal(changed(text, "BF16", "FP3")), HasSubstr("file:3: unknown precision FP3"));
}

TEST(ImportSuperBench, ValuesOfKnownBenchmarksAreMusters) {
  const ImportedFile file = imported(superBench());
  EXPECT_EQ(file.format, "superbench");
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_EQ(file.ranks, 2);
  EXPECT_THAT(file.hosts, ElementsAre("node1"));
  for (const ImportedCase& one : file.cases) EXPECT_EQ(one.error, "") << one.id;
  const auto gemm = valuesOf(file, "compute.gemm_throughput");
  ASSERT_EQ(gemm.size(), 2u);
  EXPECT_EQ(gemm[1].labels, (Labels{{"dtype", "bf16"}, {"device", "gpu1"}}));
  EXPECT_THAT(gemm[1].samples, ElementsAre(650000.5e9));
  EXPECT_THAT(valuesOf(file, "memory.host_to_device_bandwidth").at(0).samples, ElementsAre(51.5e9));
  EXPECT_EQ(valuesOf(file, "collective.bus_bandwidth").at(0).labels,
            (Labels{{"op", "all_reduce"}, {"bytes", "8589934592"}}));
  EXPECT_THAT(file.notes, Contains("node1: 1 values have no metric of Muster's"));
  EXPECT_EQ(caseOf(file, "gemm-flops").labels, (Labels{{"size", "unknown"}}));
  EXPECT_EQ(caseOf(file, "nccl-bw:nvlink").labels, (Labels{{"nodes", "unknown"}, {"ranks", "unknown"}}));
}

/// Benchmarks that Muster has no metric for are in the log; what failed of them is in the result.
TEST(ImportSuperBench, BenchmarksWithoutAMetricAreNotesUnlessTheyFailed) {
  const ImportedFile good =
      imported(superBench("n", "1", "0", R"(, "bert_models/large/return_code:0": 0, "a/b:0": 1)"));
  for (const char* id : {"kernel-launch", "bert_models/large", "a"}) EXPECT_EQ(caseOf(good, id).id, "") << id;
  EXPECT_THAT(good.notes,
              Contains("n: Muster has no metric for a (no return code), bert_models/large (return "
                       "code 0 of 1 ranks), kernel-launch (return code 0 of 1 ranks)"));
  const auto failed = [](const std::string& id, const std::string& more) {
    const ImportedFile file = imported(superBench("n", "1", "0", more));
    EXPECT_EQ(file.verdict, ToolVerdict::kFailed) << more;
    return caseOf(file, id).error;
  };
  EXPECT_EQ(failed("ib-loopback", R"(, "ib-loopback/return_code:0": 0, "ib-loopback/return_code:1": 9)"),
            "its return code is 9");
  EXPECT_EQ(failed("bert_models/large", R"(, "bert_models/large/return_code:0": 3)"), "its return code is 3");
  EXPECT_EQ(failed("x", R"(, "x/0/return_code:0": 4, "x/1/return_code:0": 0)"), "its return code is 4");
  const auto errorOf = [](const std::string& id, const std::string& more) {
    return caseOf(imported(superBench("n", "1", "0", more)), id).error;
  };
  EXPECT_EQ(errorOf("x", R"(, "x/return_code:0": 0, "x/return_code:2": 0)"),
            "it has a return code of rank 2, but of 2 ranks in all");
  EXPECT_THAT(errorOf("x", R"(, "x/return_code:0": 0, "x/time:0": null)"), HasSubstr("is null, no number"));
  EXPECT_EQ(errorOf("mem-bw:far", R"(, "mem-bw:far/return_code:0": 0)"), "n has no value of it");
  EXPECT_EQ(errorOf("cublas", R"(, "cublas/return_code:0": 0, "cublas/f32_correctness:0": 0)"),
            "Muster does not know what its f32_correctness must be");
  const std::string rates = R"(, "nccl-bw/return_code:0": 0, "nccl-bw/allreduce_8589934592_busbw:0": 478)";
  EXPECT_EQ(errorOf("nccl-bw", rates + R"(, "nccl-bw/allreduce_8_busbw:0": 0.0)"), "");
  EXPECT_THAT(errorOf("nccl-bw", rates + R"(, "nccl-bw/allreduce_1048576_busbw:0": 0.0)"), HasSubstr("is 0"));
}

/// "mode: mpi": the first rank tells the rates, of a traffic pattern that of each group of nodes.
TEST(ImportSuperBench, ACollectiveOfSeveralNodesIsToldByItsFirstRanks) {
  const auto nodes = [](const std::vector<std::string>& entries) {
    std::string text;
    for (size_t i = 0; i < entries.size(); ++i)
      text += "{\"node\": \"n" + std::to_string(i) + "\", \"nccl-bw/return_code:0\": 0" + entries[i] + "}\n";
    return imported(text);
  };
  const std::string rate = R"(, "nccl-bw/allreduce_8589934592_busbw:0": 190)";
  const ImportedFile whole = nodes({rate, "", ""});
  EXPECT_EQ(firstError(whole), "");
  ASSERT_EQ(whole.cases.size(), 1u);
  EXPECT_EQ(whole.cases[0].id, "n0/nccl-bw");
  EXPECT_THAT(whole.notes,
              Contains("n2: the rates of nccl-bw (return code 0 of 1 ranks) are in the lines of the "
                       "groups' first ranks"));
  EXPECT_EQ(firstError(nodes({rate, rate, ""})), "n2/nccl-bw: n2 has no value of it");
  EXPECT_EQ(firstError(nodes({rate, R"(, "nccl-bw/return_code:1": 5)"})), "n1/nccl-bw: its return code is 5");
  EXPECT_EQ(firstError(nodes({"", ""})), "n0/nccl-bw: n0 has no value of it");

  const ImportedFile pairs = nodes({R"(, "nccl-bw/allreduce_0_0:8589934592_busbw:0": 47)", "",
                                    R"(, "nccl-bw/allreduce_0_1:8589934592_busbw:0": 12)", ""});
  EXPECT_EQ(firstError(pairs), "");
  const auto rates = valuesOf(pairs, "collective.bus_bandwidth");
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[1].labels, (Labels{{"op", "all_reduce"}, {"bytes", "8589934592"}, {"group", "0_1"}}));
  EXPECT_EQ(rates[1].caseId, "n2/nccl-bw");

  // A group that hung in one round leaves neither a rate nor a return code.
  const auto group = [](const std::string& name) {
    return ", \"nccl-bw/allreduce_" + name + ":8589934592_busbw:0\": 47";
  };
  EXPECT_EQ(firstError(nodes({group("0_0") + group("1_0"), "", group("0_1") + group("1_1"), ""})), "");
  for (const std::string& second : {group("0_2"), group("0_1") + group("1_0"), group("1_1"),
                                    group("0_1") + R"(, "nccl-bw/allgather_0_1:8589934592_busbw:0": 47)"})
    EXPECT_THAT(firstError(nodes({group("0_0"), "", second, ""})), HasSubstr("has no value of it")) << second;
  const std::string more = R"(, "nccl-bw/return_code:1": 0)";
  EXPECT_THAT(firstError(nodes({group("0_0") + more, more, group("0_1") + more, ""})), HasSubstr("no value"));
}

/// `run_count: 2`: a rate of the second run says nothing of the first.
TEST(ImportSuperBench, EachRunIsACase) {
  const std::string runs = changed(
      superBench("n",
                 R"(650000, "gemm-flops/1/bf16_tc_flops:0": 655001, "gemm-flops/1/bf16_tc_flops:1": 210000)"),
      R"("gemm-flops/bf16_tc_flops:0": 655000, "gemm-flops/bf16)",
      R"("gemm-flops/0/bf16_tc_flops:0": 655000, "gemm-flops/0/bf16)");
  const ImportedFile file = imported(runs);
  EXPECT_EQ(firstError(file), "");
  EXPECT_EQ(caseOf(file, "gemm-flops").id, "");
  const auto rates = valuesOf(file, "compute.gemm_throughput");
  ASSERT_EQ(rates.size(), 4u);
  EXPECT_EQ(rates[0].caseId, "gemm-flops/0");
  EXPECT_EQ(rates[3].caseId, "gemm-flops/1");
  EXPECT_EQ(rates[3].device, "gpu1");
  EXPECT_THAT(rates[3].samples, ElementsAre(210000e9));
  EXPECT_EQ(firstError(imported(changed(runs, R"("gemm-flops/1/bf16_tc_flops:0": 655001, )", ""))),
            "gemm-flops/1: bf16_tc_flops has a value on 1 of 2 GPUs");
  EXPECT_EQ(firstError(imported(runs + superBench("b"))), "n/gemm-flops: n has no value of it");
  const ImportedFile failed = imported(changed(runs, R"(flops/return_code": 0)", R"(flops/return_code": 5)"));
  for (const char* id : {"gemm-flops/0", "gemm-flops/1"})
    EXPECT_EQ(caseOf(failed, id).error, "its return code is 5");
}

TEST(ImportSuperBench, NodesAreCasesOfTheirOwn) {
  const ImportedFile file = imported(superBench("a") + superBench("b"));
  EXPECT_THAT(file.hosts, ElementsAre("a", "b"));
  EXPECT_EQ(file.ranks, 4);
  EXPECT_EQ(valuesOf(file, "compute.gemm_throughput").at(3).device, "b:gpu1");
}

/// It exits with 0 whatever its benchmarks returned.
TEST(ImportSuperBench, WhatItLetsPassDoesNotPassHere) {
  const ImportedFile failed = imported(superBench("node1", "1", "33"));
  EXPECT_EQ(failed.failures, 1);
  EXPECT_EQ(firstError(failed), "gemm-flops: its return code is 33");
  EXPECT_THAT(firstError(imported(superBench("node1", "null"))),
              HasSubstr("gemm-flops/bf16_tc_flops:1 is null, no number"));
  EXPECT_THAT(firstError(imported(superBench("node1", "0"))), HasSubstr("bf16_tc_flops:1 is 0"));
  EXPECT_EQ(firstError(imported(superBench("node1", "1", "0", R"(, "mem-bw:near/d2h_bw:0": 52)"))),
            "mem-bw:near: d2h_bw has a value on 1 of 2 GPUs");
  EXPECT_EQ(imported(superBench("n", "1", "0", R"(, "gpu-burn/return_code": 0, "gpu-burn/gpu_1_pass": 0)"))
                .failures,
            1);
  EXPECT_EQ(
      firstError(imported(superBench("a") + superBench("b", "1", "0", R"(, "ib-loopback/return_code": 0)"))),
      "a/ib-loopback: a has no result of it");
}

TEST(ImportSuperBench, DamagedFilesAreRefusedWithTheirLine) {
  const std::string two = superBench("a") + superBench("b");
  EXPECT_THAT(refusal(two.substr(0, two.size() - 20)), HasSubstr("file:2"));
  EXPECT_THAT(refusal(superBench("a") + superBench("a")),
              HasSubstr("file:2: a second result of a, after that in line 1"));
  EXPECT_THAT(refusal(superBench("a") + "[1]\n"), HasSubstr("file:2: it is no JSON object"));
  EXPECT_THAT(refusal(superBench("a") + superBench("b", "NaN")), HasSubstr("file:2"));
  EXPECT_THAT(refusal(superBench("a", "1", "0", R"(, "mem-bw/h2d_bw:5000": 1)")),
              HasSubstr("file:1: a rank that is none"));
}

TEST(ImportMllog, EachRunIsACase) {
  const ImportedFile file =
      imported(mllog() + mllogLine("run_start", 1'700'000'590'000) + mllogEnd("aborted"));
  EXPECT_EQ(file.format, "mllog");
  ASSERT_EQ(file.cases.size(), 2u);
  EXPECT_EQ(file.cases[1].id, "resnet[run=1]");
  EXPECT_EQ(file.verdict, ToolVerdict::kFailed);
}

TEST(ImportMllog, TimesAreSeconds) {
  const ImportedFile file = imported(mllog());
  EXPECT_EQ(file.verdict, ToolVerdict::kPassed);
  EXPECT_EQ(firstError(file), "");
  const auto times = valuesOf(file, "imported.time");
  ASSERT_EQ(times.size(), 1u);
  EXPECT_THAT(times[0].samples, ElementsAre(600));
  EXPECT_EQ(times[0].labels, (Labels{{"name", "resnet"}, {"op", "train"}, {"statistic", "run"}}));
}

TEST(ImportMllog, WhatItLetsPassDoesNotPassHere) {
  EXPECT_EQ(imported(mllog(mllogEnd("aborted"))).failures, 1);
  EXPECT_THAT(firstError(imported(mllog(""))), HasSubstr("has no end: it was interrupted"));
  const std::string stop = mllogLine("run_stop", 1'700'000'600'500, "null", R"(, "status": "success")");
  EXPECT_THAT(firstError(imported(mllog(stop))), HasSubstr("no accuracy was measured"));
  EXPECT_THAT(firstError(imported("RuntimeError: CUDA error: an illegal memory access\n" + mllog())),
              HasSubstr("line 1 reports an error: RuntimeError"));
  EXPECT_EQ(firstError(imported(mllogLine("init_start", 1))), "training: the log holds no run_start");
  expectTruncationIsNoticed(mllog(), mllog().size());
}

TEST(ImportMllog, DamagedFilesAreRefusedWithTheirLine) {
  EXPECT_THAT(refusal(mllog().substr(0, mllog().size() - 20)), HasSubstr("file:5"));
  EXPECT_THAT(refusal(mllogEnd()), HasSubstr("file:2: `run_stop` without a `run_start`"));
  EXPECT_THAT(refusal(mllog(mllogLine("run_stop", 5))),
              HasSubstr("file:4: a run that ends before it begins"));
  EXPECT_THAT(refusal(mllog(mllogLine("eval_accuracy", 1, "\"x\""))),
              HasSubstr("`eval_accuracy` is no finite number"));
}

}  // namespace
}  // namespace muster::testing
