// SPDX-License-Identifier: Apache-2.0
// Files as other tools write them, made from their documented formats with values of our own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace muster::testing {

/// nccl-tests' table: all_reduce of floats over `ranks` GPUs of one host, in three sizes.
struct NcclTable {
  std::string program = "all_reduce_perf";
  int ranks = 8;
  long fewest = 1 << 20;  ///< bytes
  double rate = 300;      ///< algbw in GB/s
  std::string wrong = "0";
  std::string bounds = "0 OK";
  std::string average = "525.000 ";

  [[nodiscard]] double factor() const { return 2.0 * (ranks - 1) / ranks; }
  [[nodiscard]] std::string row(long bytes, int root = -1) const {
    const double micros = static_cast<double>(bytes) / (rate * 1e3);
    const std::string half =
        fmt::format("  {:7.2f}  {:6.2f}  {:6.2f}  {:>6}", micros, rate, rate * factor(), wrong);
    return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}{}{}\n", bytes, bytes / 4, "float", "sum", root,
                       half, half);
  }
  [[nodiscard]] std::string head() const {
    std::string text =
        "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: " +
        program +
        fmt::format(
            "\n# nThread 1 nGpus 8 minBytes {} maxBytes {} step: 2(factor) warmup iters: 1 iters: 20 agg "
            "iters: 1 validation: 1 graph: 0\n#\n# Using devices\n",
            fewest, 4 * fewest);
    for (int i = 0; i < ranks; ++i)
      text += fmt::format(
          "#  Rank {:2} Group  0 Pid   4711 on      node1 device {:2} [0000:{:02x}:00] NVIDIA H100 80GB "
          "HBM3\n",
          i, i, i + 16);
    return text +
           "#\n#                                                              out-of-place                   "
           "    in-place\n"
           "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   "
           "algbw   busbw  #wrong\n"
           "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  "
           "(GB/s)  (GB/s)\n";
  }
  [[nodiscard]] std::string foot() const {
    return "# Out of bounds values : " + bounds + "\n# Avg bus bandwidth    : " + average +
           "\n#\n# Collective test concluded: " + program + "\n";
  }
  [[nodiscard]] std::string text() const {
    return head() + row(fewest) + row(2 * fewest) + row(4 * fewest) + foot();
  }
};

/// The JSON of nccl-tests' -J with one row; `half` replaces the values out of place.
inline std::string ncclJson(
    const std::string& half = R"({"time": 10.0, "alg_bw": 104.8576, "bus_bw": 183.5008, "nwrong": 0})",
    const std::string& okay = "\"true\"", const std::string& more = "") {
  return R"({"version": 3, "args": ["./build/all_reduce_perf", "-g", "8"], "nccl_version": 22809,
 "config": {"nthreads": 1, "ngpus": 8, "minimum_bytes": 1048576, "maximum_bytes": 1048576, "step_factor": 2,
            "validation": 1, "devices": [{"rank": 0, "hostname": "node1", "device_info": "NVIDIA H100 80GB HBM3"}]},
 "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1",
              "out_of_place": )" +
         half + R"(, "in_place": null}],
 "out_of_bounds": {"count": 0, "okay": )" +
         okay + R"(}, "average_bus_bandwidth": {"bandwidth": 183.5, "okay": "unchecked"})" + more + "}";
}

/// nvbandwidth's JSON with these test cases, on two GPUs.
inline std::string nvbandwidthJson(const std::string& tests, const std::string& more = "") {
  return R"j({"nvbandwidth": {"CUDA Runtime Version": 13000, "Driver Version": "580.95.05", "version": "0.8",
 "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:19:00): (node1)", "1: NVIDIA H100 80GB HBM3 (00000000:3b:00): (node1)"],
 "testcases": [)j" +
         tests + "]" + more + "}}";
}
inline std::string nvbandwidthTest(const std::string& name, const std::string& matrix, const std::string& sum,
                                   const std::string& status = "Passed") {
  return R"({"name": ")" + name + R"(", "status": ")" + status +
         R"(", "bandwidth_description": "GB/s", "bandwidth_matrix": )" + matrix + R"(, "sum": )" + sum + "}";
}

/// dcgmi diag -j of DCGM 4 with one test on GPUs 0 and 1, of which each has this result.
inline std::string dcgmJson(const std::string& results, const std::string& summary = "Pass") {
  return R"({"DCGM Diagnostic": {"test_categories": [{"category": "Integration", "tests": [{"name": "pcie", "results": [)" +
         results + R"(], "test_summary": {"status": ")" + summary + R"("}}]}]},
 "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1,
                    "entities": [{"entity_id": 0, "device_id": "2330"}, {"entity_id": 1, "device_id": "2330"}]}],
 "metadata": {"version": "4.4.1", "Driver Version Detected": "580.95.05"}})";
}
inline std::string dcgmResult(int gpu, const std::string& status, const std::string& more = "") {
  return fmt::format(R"({{"entity_group": "GPU", "entity_group_id": 1, "entity_id": {}, "status": "{}"{}}})",
                     gpu, status, more);
}

/// fio's JSON with one job that only reads.
inline std::string fioJson(const std::string& rate = "3500000000", const std::string& error = "0",
                           const std::string& operations = "1000") {
  return R"({"fio version": "fio-3.33", "jobs": [{"jobname": "seq", "groupid": 0, "error": )" + error +
         R"(, "job options": {"rw": "read", "bs": "1M"},
  "read": {"io_bytes": 1048576000, "bw_bytes": )" +
         rate + R"(, "iops": 3337.5, "runtime": 300, "total_ios": )" + operations +
         R"(, "short_ios": 0, "drop_ios": 0, "clat_ns": {"min": 1, "max": 9, "mean": 250000.5, "N": 1000, "percentile": {"99.000000": 400000}}},
  "write": {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "short_ios": 0, "drop_ios": 0}}]})";
}

/// gpu-burn's output of two GPUs: what the last line of progress says of the second, and its result.
inline std::string gpuBurn(const std::string& products = "1234", const std::string& errors = "0",
                           const std::string& result = "OK", const std::string& percent = "100.0") {
  const auto progress = [](const std::string& share, const std::string& second, const std::string& wrong) {
    return "\r" + share + "%  proc'd: 1300 (45000 Gflop/s) - " + second + " (44000 Gflop/s)   errors: 0 - " +
           wrong + "   temps: 61 C - 62 C ";
  };
  return "Using compare file: compare.ptx\nBurning for 60 seconds.\n" + progress("10.0", "1", "0") +
         "\n\tSummary at:   now\n\n" + progress(percent, products, errors) +
         "\nKilling processes with SIGTERM (soft kill)\ndone\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: " +
         result + "\n";
}

/// gpu-fryer's output of two H100 in bf16: what it prints of the second.
inline std::string gpuFryer(const std::string& rate = "705000", const std::string& throttled = "false",
                            const std::string& verdict = "All GPUs seem healthy",
                            const std::string& more = "") {
  const auto result = [](int gpu, const std::string& mean, const std::string& thermal) {
    return fmt::format(
        "GPU #{}: {} Gflops/s (min: 1.00, max: 2.00, dev: 3.00)\n         Temperature: 61.00°C (min: 60.00, "
        "max: 62.00)\n         Throttling HW: false, Thermal SW: {}, Thermal HW: false\n",
        gpu, mean, thermal);
  };
  return "Detected GPU #0: \"NVIDIA H100 80GB HBM3\" (0a-1)\nDetected GPU #1: \"NVIDIA H100 80GB HBM3\" "
         "(0a-2)\n"
         "Using precision(s):  BF16 \nCreating random matrices\nMatrices created\n"
         "GPU #0: Using 24576 MB out of 81000 MB\nGPU #1: Using 24576 MB out of 81000 MB\n"
         "640 (703687 Gflops/s) - 641 (704786 Gflops/s) | Temperatures: 61°C - 60°C | Throttling: None - "
         "None\n" +
         more + result(0, "710000", "false") + result(1, rate, throttled) + verdict + "\nFreeing GPUs...\n";
}

/// One line of SuperBench's results-summary.jsonl: a node with two GPUs. `more` begins with a comma.
inline std::string superBench(const std::string& node = "node1", const std::string& second = "650000.5",
                              const std::string& code = "0", const std::string& more = "") {
  return R"({"node": ")" + node + R"(", "gemm-flops/return_code": )" + code +
         R"(, "gemm-flops/bf16_tc_flops:0": 655000, "gemm-flops/bf16_tc_flops:1": )" + second +
         R"(, "mem-bw:near/return_code": 0, "mem-bw:near/h2d_bw:0": 51.5, "mem-bw:near/h2d_bw:1": 51.0, "nccl-bw:nvlink/return_code": 0, "nccl-bw:nvlink/allreduce_8589934592_busbw:0": 478.5, "kernel-launch/return_code": 0, "kernel-launch/event_time:0": 0.005, "monitor/gpu_temperature:0": 61)" +
         more + "}\n";
}

/// One event of an MLPerf log.
inline std::string mllogLine(const std::string& key, long millis, const std::string& value = "null",
                             const std::string& metadata = "") {
  return fmt::format(
      ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": \"POINT_IN_TIME\", \"key\": \"{}\", "
      "\"value\": {}, "
      "\"metadata\": {{\"file\": \"train.py\", \"lineno\": 7{}}}}}\n",
      millis, key, value, metadata);
}
inline std::string mllogEnd(const std::string& status = "success") {
  return mllogLine("eval_accuracy", 1'700'000'590'000, "0.7591") +
         mllogLine("run_stop", 1'700'000'600'500, "null", ", \"status\": \"" + status + "\"");
}
/// A run of ten minutes.
inline std::string mllog(const std::string& end = mllogEnd()) {
  return "0: starting\n" + mllogLine("submission_benchmark", 1'700'000'000'000, "\"resnet\"") +
         "0: " + mllogLine("run_start", 1'700'000'000'500) + end;
}

/// A stream of OCP Test & Validation 2.0 with numbered lines.
inline std::string ocpStream(const std::vector<std::string>& artifacts) {
  std::string text =
      R"({"schemaVersion": {"major": 2, "minor": 0}, "sequenceNumber": 0, "timestamp": "2026-01-01T00:00:00.000Z"})";
  for (size_t i = 0; i < artifacts.size(); ++i)
    text += fmt::format("\n{{{}, \"sequenceNumber\": {}, \"timestamp\": \"2026-01-01T00:00:00.000Z\"}}",
                        artifacts[i], i + 1);
  return text + "\n";
}
inline std::string ocpRun(const std::string& artifact) {
  return R"("testRunArtifact": {)" + artifact + "}";
}
inline std::string ocpStep(const std::string& artifact) {
  return R"("testStepArtifact": {"testStepId": "1", )" + artifact + "}";
}
inline const std::string kOcpStart = ocpRun(
    R"("testRunStart": {"name": "diag", "version": "1.2", "dutInfo": {"dutInfoId": "node", "name": "node1", "hardwareInfos": [{"hardwareInfoId": "gpu0", "name": "NVIDIA H100 80GB HBM3"}]}})");
inline const std::string kOcpEnd = ocpRun(R"("testRunEnd": {"status": "COMPLETE", "result": "PASS"})");
/// The artifacts of a run with one step. `inner` lies between the step's start and its end.
inline std::vector<std::string> ocpArtifacts(const std::vector<std::string>& inner,
                                             const std::string& last = kOcpEnd) {
  std::vector<std::string> all = {kOcpStart, ocpStep(R"("testStepStart": {"name": "gemm"})")};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(ocpStep(R"("testStepEnd": {"status": "COMPLETE"})"));
  if (!last.empty()) all.push_back(last);
  return all;
}
/// A series of two samples with Muster's metadata.
inline std::vector<std::string> ocpSeries(const std::string& value = "600e12",
                                          const std::string& count = "2") {
  return {
      ocpStep(
          R"("measurementSeriesStart": {"measurementSeriesId": "s0", "name": "compute.gemm_throughput", "unit": "FLOP/s", "hardwareInfoId": "gpu0", "metadata": {"case": "gemm[dtype=bf16]", "labels": {"dtype": "bf16", "size": "8192", "device": "gpu0"}, "rank": 0, "attempt": 1, "repeat": 0}})"),
      ocpStep(R"("measurementSeriesElement": {"measurementSeriesId": "s0", "index": 0, "value": )" + value +
              R"(, "timestamp": "2026-01-01T00:00:00.000Z"})"),
      ocpStep(
          R"("measurementSeriesElement": {"measurementSeriesId": "s0", "index": 1, "value": 610e12, "timestamp": "2026-01-01T00:00:00.000Z"})"),
      ocpStep(R"("measurementSeriesEnd": {"measurementSeriesId": "s0", "totalCount": )" + count + "}")};
}
inline std::string ocpDiagnosis(const std::string& type, const std::string& device = "gpu0") {
  return ocpStep(R"("diagnosis": {"verdict": "gemm", "type": ")" + type + R"(", "hardwareInfoId": ")" +
                 device + R"("})");
}

}  // namespace muster::testing
