// SPDX-License-Identifier: Apache-2.0
// Files as other tools write them, made from their documented formats with values of our own.
#pragma once

#include <fmt/format.h>

#include <string>

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
    const std::string& okay = "true", const std::string& more = "") {
  return R"({"version": 3, "args": ["./build/all_reduce_perf", "-g", "8"], "nccl_version": 22809,
 "config": {"nthreads": 1, "ngpus": 8, "minimum_bytes": 1048576, "maximum_bytes": 1048576, "step_factor": 2,
            "validation": 1, "devices": [{"rank": 0, "hostname": "node1", "device_info": "NVIDIA H100 80GB HBM3"}]},
 "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "-1",
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

}  // namespace muster::testing
