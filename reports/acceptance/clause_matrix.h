// SPDX-License-Identifier: Apache-2.0
// Clauses beside the check results of a record: which are met, which are not, and which have no evidence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/acceptance/requirements.h"
#include "runner/record/record.h"

namespace muster {

/// What the record shows of one clause.
struct ClauseResult {
  const Clause* clause = nullptr;
  /// Metrics or stages without any check result, or of which a device supported no part; empty: it has
  /// evidence.
  std::vector<std::string> missing;
  std::string unsupported;         ///< "products: gpu3: this device has no fp8", of the last one; empty: none
  size_t results = 0;              ///< check results that are its evidence
  size_t met = 0;                  ///< of those, the ones that were met
  size_t waived = 0;               ///< and the ones that somebody answers for
  const Verdict* worst = nullptr;  ///< the worst of them: by outcome, then by margin
  std::vector<std::string> stages;  ///< in which they are, in the order of the record

  /// Whether a limit was missed and not waived, also one that only warns: a contract knows no warnings.
  [[nodiscard]] bool isMissed() const { return met + waived < results; }
  /// "pass: 8 of 8 check results met (gemm)", "no evidence: compute.gemm_throughput".
  [[nodiscard]] std::string text() const;
};

struct ClauseMatrix {
  std::vector<ClauseResult> clauses;
  std::vector<std::string> stagesWithout;  ///< whose own metrics are evidence for no clause

  /// "clause 4.2 has no evidence: compute.gemm_throughput", "clause 4.3 is not met: ...", a line each.
  [[nodiscard]] std::vector<std::string> gaps() const;
};

/// Whether a check result is worse evidence than `b` (nullptr: there is none yet): by outcome, then by
/// margin.
bool isWorseEvidence(const Verdict& a, const Verdict* b);

/// `requirements` and `record` must outlive the matrix.
ClauseMatrix clauseMatrix(const Requirements& requirements, const Record& record);

/// What one stage shows of a clause.
ClauseResult clauseResult(const Clause& clause, const StageRecord& stage);

/// The record under these requirements, if there are any: one that was accepted is incomplete where a clause
/// has no evidence or is not met.
Record underRequirements(Record record, const std::optional<Requirements>& requirements);

}  // namespace muster
