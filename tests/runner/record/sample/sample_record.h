// SPDX-License-Identifier: Apache-2.0
// Records as real runs write them, for the tests of all reports.
#pragma once

#include <filesystem>

#include "runner/record/record.h"
#include "tests/support/process.h"

namespace muster::testing {

/// What a hostile node calls itself.
inline constexpr const char* kHostileName = "<script>alert(1)</script>";

/// A simulated 8-GPU node on which everything was met.
Record healthyRecord();

/// The same node, rejected: gpu3 is slow and hot, gpu5 crashed in one case, one stage was skipped, one figure
/// is flaky, one is waived, one has no expectation. The host is named kHostileName.
Record sickRecord();

/// The healthy one as `muster judge --sku` makes it.
Record rejudgedRecord();

/// The healthy one as a partial run of gemm on gpu5.
Record partialRecord();

/// The healthy one, with a memory fault of its own on each of `count` devices.
Record manyFaults(int count);

/// Recounts the accounting and settles stage outcomes after verdicts were changed.
void settle(Record& record);

/// A folder laid out like share/muster/templates of an installed tree, made from the sources.
class TemplatesFolder {
 public:
  TemplatesFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_;
};

}  // namespace muster::testing
