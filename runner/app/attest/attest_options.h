// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster sign` and `muster verify`.
#pragma once

#include <filesystem>
#include <vector>

#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

struct SignOptions {
  std::filesystem::path folder;
  std::filesystem::path key;
  std::filesystem::path newKey;  ///< makes a key pair and signs nothing
};

struct VerifyOptions {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> keys;  ///< public keys that all must have signed; empty: none is known
  std::filesystem::path plan;               ///< the plan that was promised; empty: the record's own
  std::vector<std::filesystem::path> profiles;  ///< the profiles that were promised; empty: the records' own
  std::vector<std::filesystem::path> waivers;   ///< those that were agreed; empty: none
  std::filesystem::path requirements;           ///< the requirements that were promised; empty: any, or none
  std::vector<std::filesystem::path> pluginFolders;
  bool json = false;
};

CLI::App* addSign(CLI::App& app, SignOptions& options);
CLI::App* addVerify(CLI::App& app, VerifyOptions& options);

/// Signs a run or fleet directory, or adds a signature to it. Refuses one that `muster verify` would refute.
Result<int> signCommand(const SignOptions& options);
/// Returns kExitRejected for what is refuted, kExitIncomplete for what could not be verified, else the exit
/// code of the result that was verified.
Result<int> verifyCommand(const VerifyOptions& options);

}  // namespace muster
