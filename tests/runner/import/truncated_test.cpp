// SPDX-License-Identifier: Apache-2.0
// Files that end before their tool did, at any byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/text.h"
#include "tests/runner/import/import_samples.h"
#include "tests/runner/import/imported_values.h"

namespace muster::testing {
namespace {

struct Sample {
  const char* name;
  std::string text;
  std::string mayMiss = "\n";  ///< with this begins what says no more about the result
};

class ImportTruncated : public ::testing::TestWithParam<Sample> {};

TEST_P(ImportTruncated, IsRefusedOrAnErrorWhereverItEnds) {
  const std::string& whole = GetParam().text;
  ASSERT_TRUE(importText(whole, "file", "").ok()) << whole;
  for (size_t size = 0; size < whole.rfind(GetParam().mayMiss); ++size) {
    const auto file = importText(std::string_view(whole).substr(0, size), "file", "");
    if (!file.ok()) continue;
    const bool open = std::any_of(file->cases.begin(), file->cases.end(),
                                  [](const ImportedCase& one) { return !one.error.empty(); });
    EXPECT_TRUE(open || file->failures > 0)
        << size << " of " << whole.size() << ": " << whole.substr(size - std::min<size_t>(size, 120), 120);
  }
}

std::string failingAverage() {
  const std::string whole = NcclTable().text();
  const size_t end = whole.find('\n', whole.find("# Avg"));
  return whole.substr(0, end) + " FAILED" + whole.substr(end);
}

INSTANTIATE_TEST_SUITE_P(
    Samples, ImportTruncated,
    ::testing::Values(
        Sample{"nccl_tests", NcclTable().text(), "#\n# Collective"},
        Sample{"nccl_tests_failed", failingAverage(), "#\n# Collective"},
        Sample{"nccl_tests_json", ncclJson(), "}"},
        Sample{"nvbandwidth",
               nvbandwidthJson(nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3")),
               "}"},
        Sample{"dcgm", dcgmJson(dcgmResult(0, "Pass")), "}"}, Sample{"fio", fioJson(), "}"},
        Sample{"fio_note", "note: queue depth will be capped at 1\n" + fioJson(), "}"},
        Sample{"gpu_burn", gpuBurn()}, Sample{"gpu_fryer", gpuFryer(), "\nFreeing"}, Sample{"mllog", mllog()},
        Sample{"superbench", superBench()}, Sample{"ocp", ocpStream(ocpArtifacts(ocpSeries()))}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster::testing
