// SPDX-License-Identifier: Apache-2.0
// How much memory it takes to read a file of another tool that holds more than is imported.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

/// What `each` makes of the numbers below `count`, with `separator` between.
template <typename F>
std::string repeated(int count, const char* separator, F each) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? separator : "") + std::string(each(i));
  return text;
}

/// What reading `text` adds to the memory of a process that holds it.
int mibToImport(const std::string& text, const std::string& format) {
  malloc_trim(0);  // what is held and free would not be counted
  const pid_t child = fork();
  if (child == 0) {
    const auto peak = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss / 1024;
    };
    const long before = peak();
    const auto file = importText(text, "file", format);
    _exit(static_cast<int>(std::min(peak() - before, 250L)) + (file.ok() ? 0 : 1));
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/// Counts are bounded while a file is read, not at its end: each of these took some hundred MiB.
TEST(ImportMemory, NoFileTakesManyTimesItsSize) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer takes memory of its own";
#endif
  const std::string ids = repeated(1024, ",", [](int i) { return std::to_string(i); });
  const std::string job = R"({"jobname": "j", "error": 0})";
  const std::string row = "1 1 t sum -1 N/A N/A N/A N/A N/A N/A N/A N/A";
  const auto gpu = [](int i) { return fmt::format(R"j("{}: H100 (00000000:{:x}:00): (n1)")j", i, i); };
  const auto superBench = [](int node) {
    return fmt::format(R"({{"node": "n{}")", node) +
           repeated(19'000, "",
                    [](int i) { return fmt::format(R"(,"mem-bw:{}/h2d_bw:{}":1)", i / 1000, i % 1000); }) +
           "}";
  };
  const std::pair<const char*, std::string> files[] = {
      {"fio", R"({"fio version": "fio-3.33", "global options": {"a": ")" + std::string(300'000, 'x') +
                  R"("}, "jobs": [)" + repeated(900, ",", [&](int) { return job; }) + "]}"},
      {"dcgm-diag",
       R"({"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": [)" +
           repeated(300, ",",
                    [&](int i) {
                      return fmt::format(
                          R"({{"name": "t{}", "results": [{{"gpu_ids": "{}", "status": "Fail"}}]}})", i, ids);
                    }) +
           "]}]}}"},
      {"nvbandwidth",
       R"({"nvbandwidth": {"version": "0.8", "GPU Device list": [)" + repeated(1000, ",", gpu) +
           R"(], "testcases": [)" +
           repeated(10'000, ",",
                    [](int) { return R"({"name": "host_to_device_memcpy_ce", "status": "Error"})"; }) +
           "]}}"},
      {"superbench", repeated(25, "\n", superBench)},
      {"nccl-tests", NcclTable().head() + repeated(6'000'000, "\n", [](int) { return "a"; })},
      {"nccl-tests", NcclTable().head() + repeated(400'000, "\n", [&](int) { return row; })},
      {"gpu-burn", "Burning for 10\n" + std::string(8'000'000, '\r') + "proc'd: "},
      {"gpu-fryer", gpuFryer() + repeated(2'000'000, "\n", [](int) { return "  - GPU 1"; })},
  };
  for (const auto& [format, text] : files) {
    const int mib = static_cast<int>(text.size() >> 20), taken = mibToImport(text, format);
    EXPECT_LT(taken, 100) << format << " of " << mib << " MiB";
  }
}

}  // namespace
}  // namespace muster::testing
