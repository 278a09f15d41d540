// SPDX-License-Identifier: Apache-2.0
// The options of `muster judge` and `import`.
#include <CLI/CLI.hpp>

#include "runner/app/input/shared_options.h"
#include "runner/app/judge/judge_options.h"

namespace muster {
namespace {

constexpr const char* kJudgeExamples = R"(
Writes a new record; the old one is not changed. The new record states its source record, the time and the tool version.
`muster fleet` accepts it only with --allow-rejudged. Exit code: that of the new verdict, see `muster --help`.

Examples:
  muster judge runs/n17/record.json                                   re-evaluate with the same limits
  muster judge runs/n17/record.json --sku ours.toml --out runs/n17-again
  muster judge runs/n17/record.json --waivers known.toml)";

constexpr const char* kImportExamples = R"(
Formats (--format): nccl-tests (the table on standard output, 2.17 or newer), nccl-tests-json (-J FILE), nvbandwidth
(--json), dcgm-diag (`dcgmi diag -j`), fio (--output-format=json), gpu-burn and gpu-fryer (standard output), superbench
(results-summary.jsonl), ocp (OCP Test & Validation 2.0, also Muster's own) and mllog (lines ":::MLLOG" of MLPerf training).
Values are compared with the limits of the SKU profile and the plan; the summary shows the tool's own result beside
Muster's. A value without a limit blocks acceptance: the shipped GPU profiles limit all_reduce at 8 GiB, and
all_gather, reduce_scatter and alltoall at 1 GiB, as the largest size and on all 8 GPUs of a node. The record is marked
IMPORTED and never counts as a run of a node: `fleet`, `history` and `baseline` do not accept it.

Exit code: as of a run, see `muster --help`; 2 also for a file that is damaged, ambiguous or of an unknown format.

Examples:
  muster import all_reduce.txt --sku h100-sxm5-80gb
  muster import nccl/*.json --sku h100-sxm5-80gb --out evidence
  muster import fio.json --sku host --plan storage-limits.toml)";

}  // namespace

CLI::App* addJudge(CLI::App& app, JudgeOptions& o) {
  CLI::App* judge = app.add_subcommand("judge", "re-evaluate stored samples; no hardware needed");
  judge->add_option("record", o.record, "record.json")->required();
  judge->add_option("--sku", o.profile, "profile file; its limits replace those in the record")
      ->type_name("FILE");
  addWaivers(judge, o.waivers);
  judge->add_option("--out", o.out, "directory for the new record and reports")->type_name("DIR");
  judge->add_flag("--strict", o.strict, "measurements without a limit block acceptance");
  judge->footer(kJudgeExamples);
  return judge;
}

CLI::App* addImport(CLI::App& app, ImportOptions& o) {
  CLI::App* import = app.add_subcommand("import", "judge results of other tools; Muster measures nothing");
  import->add_option("files", o.files, "files that other tools wrote")->required();
  import->add_option("--format", o.format, "their format (default: found from the content)")
      ->type_name("NAME");
  import->add_option("--sku", o.sku, "name or file of the SKU profile whose limits apply");
  import
      ->add_option("--plan", o.plan,
                   "plan whose limits apply too; limits that no file covers block acceptance")
      ->type_name("FILE");
  import->add_option("--out", o.out, "directory for the record and reports, marked IMPORTED")
      ->type_name("DIR");
  import->footer(kImportExamples);
  return import;
}

}  // namespace muster
