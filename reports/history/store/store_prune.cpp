// SPDX-License-Identifier: Apache-2.0
// See store.h: removing runs.
#include <algorithm>

#include "reports/history/store/store.h"

namespace muster::history {
namespace {

constexpr size_t kRunsAtOnce = 200;  ///< in one transaction: others add in between

Status removeRun(std::vector<Statement>& statements, int64_t run) {
  for (Statement& statement : statements) MUSTER_CHECK_OK(statement.bind(run).run());
  return {};
}

}  // namespace

Result<std::vector<RunSummary>> Store::summaries() {
  MUSTER_TRY(
      Statement select,
      database_.prepare("SELECT number, node, started, simulated, acceptance FROM run ORDER BY number"));
  std::vector<RunSummary> found;
  for (;;) {
    MUSTER_TRY(const bool more, select.row());
    if (!more) return found;
    found.push_back({select.integer(0), select.text(1), select.number(2), select.integer(3) != 0,
                     select.named(4, Acceptance::kIncomplete)});
  }
}

Status Store::remove(const std::vector<int64_t>& runs, const std::function<void(size_t)>& progress) {
  std::vector<Statement> statements;
  for (const char* sql : {"INSERT OR IGNORE INTO pruned SELECT sha256 FROM run WHERE number = ?",
                          "DELETE FROM figures WHERE run = ?", "DELETE FROM device WHERE run = ?",
                          "DELETE FROM fact WHERE run = ?", "DELETE FROM deviation WHERE run = ?",
                          "DELETE FROM run_parameters WHERE run = ?", "DELETE FROM run WHERE number = ?"}) {
    MUSTER_TRY(Statement statement, database_.prepare(sql));
    statements.push_back(std::move(statement));
  }
  for (size_t begin = 0; begin < runs.size(); begin += kRunsAtOnce) {
    const size_t end = std::min(begin + kRunsAtOnce, runs.size());
    MUSTER_TRY(Transaction transaction, Transaction::begin(database_));
    for (size_t i = begin; i < end; ++i) MUSTER_CHECK_OK(removeRun(statements, runs[i]));
    MUSTER_CHECK_OK(transaction.commit());
    progress(end);
  }
  return database_.execute(
      "DELETE FROM layout WHERE number NOT IN (SELECT layout FROM figures);"
      "DELETE FROM parameters WHERE number NOT IN (SELECT parameters FROM run_parameters)");
}

Status Store::compact() {
  return database_.execute("VACUUM");
}

Result<uint64_t> Store::size() {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"));
  MUSTER_TRY(const bool found, select.row());
  return found ? static_cast<uint64_t>(select.integer(0)) : 0;
}

}  // namespace muster::history
