// SPDX-License-Identifier: Apache-2.0
// Verifies all runs and fleets of a directory, and the statement about it.
#pragma once

#include <set>
#include <vector>

#include "runner/app/attest/record_verification.h"
#include "runner/attest/envelope.h"
#include "runner/attest/statement.h"

namespace muster {

/// What one run or fleet of a directory comes to.
struct VerifiedResult {
  std::string path;  ///< of its record.json or fleet.json in the directory
  int exitCode = 0;
  std::string acceptance;
  bool inFleet = false;  ///< of a run: a fleet counts it together with others, and the fleet's result counts

  // Of a run.
  std::string node;                 ///< empty: this is a fleet
  std::string sha256;               ///< of the record
  int nodeCount = 1;                ///< nodes that the run had
  std::vector<std::string> undone;  ///< what only a fleet judges, a line each
  bool compares = false;            ///< it has stages of scope cluster, or limits relative to the fleet

  // Of a fleet.
  std::set<std::string> members;  ///< nodes with a record that counts
  std::set<std::string> counted;  ///< digests of the records that count
};

/// What a directory comes to.
struct FolderResult {
  Json results = Json::array();  ///< of each run and fleet, as the statement holds them
  std::vector<VerifiedResult> verified;
  int exitCode = 0;  ///< of the worst: fleets, and runs of which no fleet tells
  bool simulated = false;
  bool concessions = false;  ///< waivers have a part in it
  std::string acceptance;    ///< in one word, of the same
};

/// Whether the file or folder at `path` ("attempts/2/n17/") is of a run that a resume set aside.
bool isSetAside(const std::string& path);

/// Verifies every run and fleet in the directory, without any signature.
FolderResult verifyContent(const VerifyTools& tools, Verification& out);

/// Verifies the envelope in the directory, if there is one: who signed, and whether all files are still those
/// that were signed.
void verifySignature(const VerifyTools& tools, const std::vector<attest::PublicKey>& keys,
                     const Json& results, Verification& out);

/// The envelope of the directory; kNotFound where there is none.
Result<attest::Envelope> envelopeOf(const attest::Folder& folder);

}  // namespace muster
