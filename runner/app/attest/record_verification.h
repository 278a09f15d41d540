// SPDX-License-Identifier: Apache-2.0
// Verifies one run directory from its own files: nothing in them is believed that follows from something
// else.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "reports/acceptance/acceptance_document.h"
#include "runner/app/attest/verification.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/attest/folder.h"
#include "runner/dispatch/plugins.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

inline constexpr const char* kRecordName = "record.json";

/// What the customer expects: digests of the plan and profiles as the records must hold them.
struct Promise {
  std::string planSha256;                            ///< empty: any
  std::map<std::string, std::string> profileSha256;  ///< by profile name; empty: any
  std::set<std::string> waiversSha256;               ///< of each agreed file; empty: none was agreed
  std::string requirementsSha256;                    ///< empty: any, or none
};

/// What runs are verified with.
struct VerifyTools {
  const attest::Folder& folder;
  const attest::FolderList& files;
  const Tree& tree;
  const Catalog& catalog;
  const Promise& promise;
  const std::map<std::string, Profile>& profiles;  ///< of this installation
  PredicateTime& lua;                              ///< of all records together
};

/// Verifies the run in the folder `prefix` ("", "n17/"). Returns its record if it can be read.
std::optional<Record> verifyRun(const VerifyTools& tools, const std::string& prefix, Verification& out);

/// `where` is accepted under the waivers of `file`: are they those that the customer agreed to?
void verifyPromisedWaivers(const Promise& promise, const std::string& where, const std::string& file,
                           const std::string& sha256, Verification& out);

/// Compares the text of a file with what it must be: "byte 17 is 0x31, derived is 0x30"; empty: equal.
std::string textDifference(std::string_view found, std::string_view expected);

/// acceptance.toml and requirements.toml of the folder `prefix`, where they are there.
Result<AcceptanceDocument> documentsIn(const VerifyTools& tools, const std::string& prefix);

/// Whether `name` is among the files.
bool hasFile(const attest::FolderList& files, const std::string& name);

}  // namespace muster
