// SPDX-License-Identifier: Apache-2.0
// `muster sign` and `muster verify`.
#include <fmt/format.h>

#include "reports/acceptance/requirements.h"
#include "runner/app/attest/attest_options.h"
#include "runner/app/attest/folder_verification.h"
#include "runner/app/input/plan_input.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/plan/plan.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

using attest::Envelope;
using attest::Folder;
using attest::FolderList;
using attest::PublicKey;
using attest::SecretKey;

Result<Promise> promiseOf(const VerifyOptions& options) {
  Promise promise;
  if (!options.plan.empty()) {
    MUSTER_TRY(const std::string text, frozenPlanText(options.plan));
    promise.planSha256 = sha256Hex(text);
  }
  MUSTER_TRY(const Tree tree, findTree());
  for (const fs::path& path : options.profiles) {
    MUSTER_TRY(const Profile profile, loadProfile(path, nullptr, {tree.plans / "skus"}));
    promise.profileSha256[profile.name] = profile.sha256;
  }
  for (const fs::path& path : options.waivers) {
    MUSTER_TRY(const std::string text, readFile(path));
    promise.waiversSha256.insert(sha256Hex(text));
  }
  if (!options.requirements.empty()) {
    MUSTER_TRY(const Requirements requirements, readRequirements(options.requirements));
    promise.requirementsSha256 = sha256Hex(requirements.text);
  }
  return promise;
}

std::string closingText(const Verification& found, const FolderResult& result) {
  std::string marks = result.concessions ? " with concessions" : "";
  if (result.simulated) marks += ", SIMULATED: no hardware was measured";
  if (found.isRefuted()) return "REFUTED: this directory is not what it says to be";
  if (found.isOpen())
    return fmt::format("NOT VERIFIED: nothing contradicts the result ({}{}), but see OPEN", result.acceptance,
                       marks);
  return fmt::format("VERIFIED: {}{}", result.acceptance, marks);
}

int exitCodeOf(const Verification& found, const FolderResult& result) {
  if (found.isRefuted()) return kExitRejected;
  return found.isOpen() && result.exitCode == kExitAccepted ? kExitIncomplete : result.exitCode;
}

Json verifyJson(const Verification& found, const FolderResult& result) {
  return {{"verification", found.isRefuted() ? "refuted"
                           : found.isOpen()  ? "open"
                                             : "verified"},
          {"acceptance", result.acceptance},
          {"simulated", result.simulated},
          {"exit_code", exitCodeOf(found, result)},
          {"checks", found.json()},
          {"results", result.results}};
}

Result<int> makeKey(const fs::path& path) {
  MUSTER_TRY(const PublicKey key, attest::makeKeyPair(path));
  printText("private key {}: keep it secret\npublic key {}.pub: give it to whoever verifies\nkey id {}\n",
            path.string(), path.string(), key.id());
  return kExitAccepted;
}

/// What is signed must stand a verification without trust.
Status requireSound(const Verification& found, const fs::path& folder) {
  if (!found.isRefuted()) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("is not signed, as `muster verify` would refute it: {}", join(found.refutations(), "; ")),
      folder.string()};
}

/// The envelope to add a signature to: a new one, or that of others who signed the same.
Result<Envelope> envelopeFor(const Folder& folder, const std::string& payload) {
  auto kept = attest::kEnvelopeName;
  auto envelope = envelopeOf(folder);
  if (!envelope.ok() && envelope.error().code == ErrorCode::kNotFound) return Envelope{payload, {}};
  if (!envelope.ok()) return std::move(envelope).error();
  if (envelope->payload == payload) return envelope;
  return Error{ErrorCode::kUsage,
               fmt::format("the directory was changed since {} was written (`muster verify` says how); "
                           "remove that file to sign anew",
                           kept),
               folder.path().string()};
}

/// Whoever is given a directory that holds its key could sign as its owner.
Status requireOutside(const fs::path& folder, const fs::path& key) {
  std::error_code error;
  const fs::path within = fs::weakly_canonical(key, error).lexically_relative(fs::canonical(folder, error));
  if (error || within.empty() || *within.begin() == "..") return {};
  return Error{ErrorCode::kUsage, "the key lies in the directory that it is to sign; move it elsewhere",
               key.string()};
}

}  // namespace

Result<int> signCommand(const SignOptions& options) {
  if (!options.newKey.empty()) return makeKey(options.newKey);
  if (options.folder.empty() || options.key.empty())
    return Error{ErrorCode::kUsage, "give a directory and --key FILE, or --new-key FILE", "muster sign"};
  MUSTER_TRY(const SecretKey key, attest::readSecretKey(options.key));
  MUSTER_CHECK_OK(requireOutside(options.folder, options.key));
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, {}, {}));
  MUSTER_TRY(const Folder folder, Folder::open(options.folder));
  MUSTER_TRY(const FolderList files, folder.list());
  Verification found;
  MUSTER_TRY(const auto profiles, allProfiles(tree, {}, &catalog));
  PredicateTime lua{PredicateTime::kOfCall};
  const FolderResult result = verifyContent({folder, files, tree, catalog, {}, profiles, lua}, found);
  MUSTER_CHECK_OK(requireSound(found, options.folder));
  MUSTER_TRY(const attest::Statement statement, attest::statementOf(folder, files, result.results));
  if (const std::string changed = folder.changedSince(files); !changed.empty())
    return Error{ErrorCode::kUsage, "changed while it was signed; sign it when nothing writes to it any more",
                 changed};
  MUSTER_TRY(Envelope envelope, envelopeFor(folder, attest::statementText(statement)));
  MUSTER_CHECK_OK(envelope.sign(key).context(attest::kEnvelopeName));
  const fs::path path = options.folder / attest::kEnvelopeName;
  MUSTER_CHECK_OK(writeFileAtomically(path, attest::envelopeText(envelope)));
  printText("signed {} files, result {}\nkey id {}\nsignature {}\n", statement.files.size(),
            result.acceptance, key.publicKey().id(), path.string());
  return kExitAccepted;
}

Result<int> verifyCommand(const VerifyOptions& options) {
  std::vector<PublicKey> keys;
  for (const fs::path& path : options.keys) {
    MUSTER_TRY(PublicKey key, attest::readPublicKey(path));
    keys.push_back(key);
  }
  MUSTER_TRY(const Promise promise, promiseOf(options));
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  MUSTER_TRY(const Folder folder, Folder::open(options.folder));
  MUSTER_TRY(const FolderList files, folder.list());
  Verification found;
  MUSTER_TRY(const auto profiles, allProfiles(tree, {}, &catalog));
  PredicateTime lua{PredicateTime::kOfCall};
  const VerifyTools tools{folder, files, tree, catalog, promise, profiles, lua};
  const FolderResult result = verifyContent(tools, found);
  verifySignature(tools, keys, result.results, found);
  if (const std::string changed = folder.changedSince(files); !changed.empty())
    found.leaveOpen(VerifyCheck::kFiles, changed + " was changed while it was verified: verify again");
  if (options.json) {
    printJson(verifyJson(found, result));
    return exitCodeOf(found, result);
  }
  printLines(found.text());
  printText("{}\n", closingText(found, result));
  return exitCodeOf(found, result);
}

}  // namespace muster
