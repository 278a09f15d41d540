// SPDX-License-Identifier: Apache-2.0
// The command line of `muster sign` and `muster verify`: options, help by example.
#include <CLI/CLI.hpp>

#include "runner/app/attest/attest_options.h"

namespace muster {
namespace {

constexpr const char* kSignExamples = R"(
Writes signature.dsse.json into the directory: an in-toto statement with the SHA-256 of every file in it (record,
journal, profile, waivers, acceptance.toml, reports, artifacts) in a DSSE envelope, signed with Ed25519. A second
signer adds a signature to the same file. Working files of a run (.lock, requests/, output/) and its keys (run.key,
keys/) are not signed and need not be delivered. A directory that `muster verify` would refute is not signed.

A key is a PEM file that only its owner can read; `openssl genpkey -algorithm ed25519` makes such keys too.
acceptance.toml must be in the directory before it is signed:
  muster report runs/n17/record.json --out runs/n17 --acceptance acceptance.toml

Examples:
  muster sign --new-key supplier.key             makes supplier.key and supplier.key.pub
  muster sign runs/n17 --key supplier.key        one node
  muster sign runs/monday --key supplier.key     a fleet with all its runs)";

constexpr const char* kVerifyExamples = R"(
Needs no network, no hardware and no trust in the signer. It checks
  signature  all keys of --key signed this directory
  files      every file is the one that was signed: names the byte that differs, files that are missing or were added
  record     the record agrees with itself
  verdict    every check result derived again from the stored samples: names the one that was changed
  limits     tests, parameters and limits derived again from the plan and profile in the record, and its devices
  promise    plan, profile, waivers and requirements are your copies (--plan, --sku, --waivers, --requirements),
             without --set
  attempts   the record tells every attempt that the journal holds
  reports    report.html and junit.xml rendered again, byte for byte
The worst result counts: of all fleets, and of runs that are in none. A run accepted under waivers stays open without
--waivers, one with another profile than its plan and devices call for without --sku, and one whose other stages ran in
another job, unless a fleet joins both.
Without --key, whoever made up all samples could have made the directory: the signer is not verified (exit code 3).

Exit code: that of the verified result (0 accepted, 1 rejected, ...), 1 if anything is refuted, 2 invalid usage,
3 if something could not be verified.

Examples:
  muster verify runs/n17 --key supplier.key.pub
  muster verify runs/n17 --key supplier.key.pub --plan my-plan.toml --sku my-h100.toml
  muster verify runs/n17                         all but the signer)";

}  // namespace

CLI::App* addSign(CLI::App& app, SignOptions& o) {
  CLI::App* sign = app.add_subcommand("sign", "sign a run or fleet directory");
  sign->add_option("directory", o.folder, "run or fleet directory");
  CLI::Option* key = sign->add_option("--key", o.key, "private key (PEM, Ed25519)")->type_name("FILE");
  sign->add_option("--new-key", o.newKey, "make a key pair: FILE and FILE.pub")
      ->type_name("FILE")
      ->excludes(key)
      ->excludes("directory");
  sign->footer(kSignExamples);
  return sign;
}

CLI::App* addVerify(CLI::App& app, VerifyOptions& o) {
  CLI::App* verify =
      app.add_subcommand("verify", "verify a run or fleet directory without trust in who made it");
  verify->add_option("directory", o.folder, "run or fleet directory")->required();
  verify->add_option("--key", o.keys, "public key that must have signed; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verify->add_option("--plan", o.plan, "your copy of the plan that was promised")->type_name("FILE");
  verify->add_option("--sku", o.profiles, "your copy of the SKU profile that was promised; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verify->add_option("--waivers", o.waivers, "your copy of waivers that you agreed to; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verify
      ->add_option("--requirements", o.requirements,
                   "your copy of the requirements that were promised; each result must be judged by them")
      ->type_name("FILE");
  verify->add_option("--plugins", o.pluginFolders, "directory with additional plugins of the plan")
      ->type_name("DIR")
      ->allow_extra_args(false);
  verify->add_flag("--json", o.json, "print one JSON object: result, exit code, and what each check found");
  verify->footer(kVerifyExamples);
  return verify;
}

}  // namespace muster
