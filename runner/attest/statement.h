// SPDX-License-Identifier: Apache-2.0
// What is signed: an in-toto statement (v1) whose subjects are the files of a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/attest/folder.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::attest {

inline constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
/// What the predicate says. Another meaning of its fields needs another type.
inline constexpr const char* kPredicateType = "urn:muster:acceptance:v1";

struct SignedFile {
  std::string name;
  FileSums sums;
};

/// A pure function of the folder: two who sign the same folder sign the same bytes.
struct Statement {
  std::vector<SignedFile> files;  ///< sorted by name
  Json results = Json::array();   ///< of each run and fleet in the folder, for people and other programs
};

std::string statementText(const Statement& statement);

/// Refuses other types, names that leave the folder or stand twice, and whatever statementText() does not
/// give.
Result<Statement> parseStatement(std::string_view text);

/// The statement about the files of a folder as they are, with `results` as given.
Result<Statement> statementOf(const Folder& folder, const FolderList& list, Json results);

/// In what the files of a folder differ from the signed ones, a line each: changed, missing, not signed.
std::vector<std::string> fileDifferences(const Statement& statement, const Folder& folder,
                                         const FolderList& list);

}  // namespace muster::attest
