// SPDX-License-Identifier: Apache-2.0
// Writes record.json, report.html and junit.xml.
#include "runner/app/node/outputs.h"

#include <future>

#include "reports/acceptance/clause_matrix.h"
#include "reports/html/html.h"
#include "reports/junit/junit.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster {

Status keepDocuments(AcceptanceDocument& document, const std::filesystem::path& folder) {
  const std::filesystem::path acceptance = folder / kAcceptanceFile,
                              requirements = folder / kRequirementsFile;
  std::optional<Requirements> clauses = std::move(document.requirements);
  if (!document.text.empty()) {
    MUSTER_CHECK_OK(writeFileAtomically(acceptance, document.text));
  } else {
    MUSTER_TRY(const bool kept, isKept(acceptance));
    if (kept) {
      MUSTER_TRY(document, readAcceptanceDocument(acceptance));
    }
  }
  if (clauses) {
    MUSTER_CHECK_OK(writeFileAtomically(requirements, clauses->text));
  } else {
    MUSTER_TRY(const bool kept, isKept(requirements));
    if (kept) {
      MUSTER_TRY(clauses, readRequirements(requirements));
    }
  }
  document.requirements = std::move(clauses);
  return {};
}

Status writeReports(const Record& original, const std::string& digest, const std::filesystem::path& folder,
                    const std::filesystem::path& templates, const AcceptanceDocument& document) {
  const Record record = underRequirements(original, document.requirements);
  MUSTER_CHECK_OK(writeFileAtomically(folder / "junit.xml", renderJunit(record), Durable::kNo));
  MUSTER_TRY(const std::string html, renderHtml(record, digest, templates, document));
  return writeFileAtomically(folder / "report.html", html, Durable::kNo);
}

Status writeOutputs(const Record& record, const std::filesystem::path& folder,
                    const std::filesystem::path& templates) {
  // What nobody may read must not be written, nor its exit code returned.
  MUSTER_CHECK_OK(checkRecord(record).context("before it was written"));
  const std::string text = recordText(record);
  // The reports are rendered while the disk takes the record.
  auto reports = std::async(std::launch::async, writeReports, std::cref(record), sha256Hex(text),
                            std::cref(folder), std::cref(templates), AcceptanceDocument{});
  const Status written = writeRecord(text, folder / "record.json");
  const Status reported = reports.get();
  return written.ok() ? reported : written;
}

}  // namespace muster
