// SPDX-License-Identifier: Apache-2.0
// Verifies all runs and fleets of a directory, and the statement about it.
#pragma once

#include <vector>

#include "runner/app/attest/record_verification.h"
#include "runner/attest/envelope.h"
#include "runner/attest/statement.h"

namespace muster {

/// What a directory comes to.
struct FolderResult {
  Json results = Json::array();  ///< of each run and fleet, as the statement holds them
  int exitCode = 0;              ///< of the fleet, else the worst of the runs
  bool simulated = false;
  std::string acceptance;  ///< in one word, of the same
};

/// Verifies every run and fleet in the directory, without any signature.
FolderResult verifyContent(const VerifyTools& tools, Verification& out);

/// Verifies the envelope in the directory, if there is one: who signed, and whether all files are still those
/// that were signed.
void verifySignature(const VerifyTools& tools, const std::vector<attest::PublicKey>& keys,
                     const Json& results, Verification& out);

/// The envelope of the directory; kNotFound where there is none.
Result<attest::Envelope> envelopeOf(const attest::Folder& folder);

}  // namespace muster
