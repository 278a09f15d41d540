// SPDX-License-Identifier: Apache-2.0
// Results of other tools: whatever a file holds, what is read from it is finite and complete, or refused.
#include <algorithm>
#include <cmath>

#include "runner/import/imported.h"
#include "tests/fuzz/targets.h"
#include "tests/runner/import/import_samples.h"

namespace muster::testing {
namespace {

bool isMeasured(const ImportedFile& file, const ImportedCase& one, const std::string& metric) {
  return std::any_of(file.measurements.begin(), file.measurements.end(), [&](const Measurement& m) {
    return m.caseId == one.id && (m.metric == metric || one.metrics.contains(m.metric));
  });
}

}  // namespace

std::string checkImport(const std::string& text) {
  const auto file = importText(text, "file", "");
  if (!file.ok()) {
    if (file.error().message.empty()) return "an error says nothing";
    return file.error().code == ErrorCode::kInternal ? "it is taken for a fault of Muster" : "";
  }
  if (file->cases.empty()) return "a file without a case: nothing would be judged";
  for (const Measurement& m : file->measurements) {
    const auto finite = [](double sample) { return std::isfinite(sample); };
    if (m.samples.empty() || !std::all_of(m.samples.begin(), m.samples.end(), finite))
      return m.metric + " is no finite value";
    const auto at = std::find_if(file->cases.begin(), file->cases.end(),
                                 [&](const ImportedCase& one) { return one.id == m.caseId; });
    if (at == file->cases.end()) return m.metric + " belongs to no case";
    const size_t ranks = std::max<size_t>(1, at->devices.size());
    if (m.rank < 0 || static_cast<size_t>(m.rank) >= ranks) return m.metric + " belongs to no rank";
  }
  for (const ImportedCase& one : file->cases)
    if (one.error.empty() && !one.metrics.empty() && !isMeasured(*file, one, *one.metrics.begin()))
      return "case " + one.id + " has neither a value nor an error";
  return "";
}

Samples importTextSamples() {
  NcclTable unchecked;
  unchecked.wrong = "N/A";
  return {{NcclTable().text(), unchecked.text(), gpuBurn(), gpuFryer(), mllog(),
           superBench("a") + superBench("b"), ocpStream(ocpArtifacts(ocpSeries())),
           ocpStream(ocpArtifacts({ocpDiagnosis("PASS")}))},
          {"nan",
           "inf",
           "1e400",
           "-0",
           "N/A",
           "\n",
           "\r",
           "#",
           "0 OK",
           "FAILED",
           "step: 1(factor)",
           "maxBytes 1",
           "Rank",
           "] ",
           "Test CUDA failure",
           "proc'd: ",
           "  errors: ",
           "  temps: ",
           " - ",
           "Tested 0 GPUs:",
           "proc'd: ",
           "  errors: ",
           "  temps: ",
           " - ",
           "Tested 0 GPUs:",
           "# error: x\n",
           "all_gather_perf",
           "GPU #0: ",
           " Gflops/s",
           ": true",
           "panicked at",
           ":::MLLOG ",
           "\"run_stop\"",
           "return_code",
           ":1000",
           "\"measurementSeriesEnd\"",
           "\"sequenceNumber\": 1",
           "null",
           "18446744073709551615"}};
}

Samples importJsonSamples() {
  std::vector<Json> documents;
  for (const std::string& text :
       {ncclJson(), fioJson(), superBench(),
        dcgmJson(dcgmResult(0, "Pass") + "," +
                 dcgmResult(1, "Fail", ", \"warnings\": [{\"warning\": \"x\"}]")),
        nvbandwidthJson(
            nvbandwidthTest("host_to_device_memcpy_ce", R"([["55.1", "55.2"]])", "110.3") + "," +
            nvbandwidthTest("device_to_device_memcpy_read_sm", R"([["N/A", "1"], ["2", "N/A"]])", "3"))})
    documents.push_back(parseJson(text).value());
  return {{}, {}, documents};
}

}  // namespace muster::testing
