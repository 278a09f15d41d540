// SPDX-License-Identifier: Apache-2.0
// The options of `muster report`, `redact`, `rma` and `capture`.
#include <CLI/CLI.hpp>

#include "runner/app/report/report_options.h"

namespace muster {
namespace {

constexpr const char* kReportExamples = R"(
Every format marks what is not a plain run: SIMULATED, IMPORTED, RE-JUDGED, REDACTED, PARTIAL. Lists of nodes are not made of a
simulated fleet. In CSV, a text that a spreadsheet would compute begins with an apostrophe.

Exit code: the one stored in the record, of several the worst, see `muster --help`; of a list of nodes 0; 3 if the record is accepted
and a clause of --requirements has no evidence or is not met: a limit that was missed counts, also one that only warns, unless it
is waived. Copies of both files are kept in --out; reports rendered there again show them too. A requirements.toml beside a record
holds for all that is made of it, also without the option.

Examples:
  muster report runs/n17/record.json                   show the summary
  muster report runs/n17/record.json --out for-customer
  muster report runs/n17/record.json --format markdown
  muster report runs/monday --format ocp --out ocp/    a stream for each node: ocp/n17.ocp.jsonl
  muster report runs/monday --format csv --out monday.csv
  muster report runs/n17/record.json --format prometheus --out /var/lib/node_exporter/muster.prom
  srun --exclude=$(muster report runs/monday/fleet.json --format exclude) ...
  muster report runs/n17/record.json --out for-customer --acceptance acceptance.toml

  muster report runs/n17/record.json --requirements plans/requirements/public-node-checks.toml

requirements.toml (a clause needs check results of each of its metrics, or of each of its stages; `where` is optional):
  schema = 1
  name = "contract C-4711, annex B"
  [[clause]]
  id = "B.2"
  requirement = "dense BF16 matrix products at the contracted rate"
  metrics = ["compute.gemm_throughput"]
  where = { dtype = "bf16" }

acceptance.toml (every key but `schema` is optional; what is missing is a blank to fill in by hand):
  schema = 1
  [document]
  number = "ATR-2026-0117"
  contract = "C-4711"
  site = "Hall 2, rack A17"
  [parties]
  supplier = "..."
  customer = "..."
  [[ordered]]
  part = "NVIDIA H100 80GB HBM3"      # as report.html names it
  count = 8
  [[owner]]                           # of findings; selectors: node, device, serial, metric
  name = "field service"
  due = "2026-12-05")";

constexpr const char* kRedactExamples = R"(
Writes each record with its report.html and junit.xml into a directory of its own in --out, marked REDACTED, and nodes.txt,
the pseudonyms of the nodes for `muster fleet --expect` (add those that are missing from the fleet by hand). The same name
has the same pseudonym ("host0001") in all records, and later with the same --map. The samples are as they were, so the
verdict can be derived again with `muster judge`. Nothing is written if a name would be left. Give all records of a fleet at
once: a node is named in the records of others. Names that no field holds are replaced with --word. Artifacts are not copied.
`muster fleet` counts redacted records, but none whose original it reads as well; with --record-key none, as they have no MAC.

Exit code: 0, or 2 if something cannot be redacted.

Examples:
  muster redact runs/monday --out for-vendor --map ~/monday.map
  muster redact runs/n17/record.json --out for-vendor --map ~/n17.map --rules host,address --word acme.com)";

constexpr const char* kRmaExamples = R"(
Writes findings.md (for the ticket, with the command that measures the findings again), device.json (identity), checks.csv
(each check of the device beside the median of its peers), samples.csv and telemetry.csv (all devices, in the stages with a
finding about this one), output.txt, and the artifacts of these stages whose digests still fit. Names of hosts and users are
in them: redact the record first if the vendor must not know them.

Examples:
  muster rma runs/n17/record.json --device gpu3 --out rma-n17-gpu3)";

constexpr const char* kCaptureExamples = R"(
The scenario has the node's inventory without serial numbers, the rates of its best device, and how much slower each
other one was. Failures that a scenario cannot show are listed.

Examples:
  muster capture runs/n17/record.json --out n17.toml                  record what this node reached
  muster run plans/node-full.toml --simulate n17.toml                 try other limits on it, without the node)";

}  // namespace

CLI::App* addReport(CLI::App& app, ReportOptions& o) {
  CLI::App* report = app.add_subcommand(
      "report", "show a record's summary, render its reports again, or write other formats");
  report->add_option("records", o.records, "record.json; with --format several, or directories with runs")
      ->required();
  report->add_option("--format", o.format, "write this format (below)")
      ->type_name("NAME")
      ->check(CLI::IsMember(reportFormats()));
  report
      ->add_option("--out", o.out,
                   "directory for report.html and junit.xml; with --format the file, or the directory for "
                   "one file per node (default: standard output)")
      ->type_name("FILE");
  report
      ->add_option("--acceptance", o.acceptance,
                   "document number, parties, ordered parts, owners for the first page; format: below")
      ->type_name("FILE");
  report
      ->add_option("--requirements", o.requirements,
                   "clauses of a contract; one that is not met blocks acceptance; format: below")
      ->type_name("FILE");
  report->footer(reportFormatsText() + kReportExamples);
  return report;
}

CLI::App* addRedact(CLI::App& app, RedactOptions& o) {
  CLI::App* redact =
      app.add_subcommand("redact", "replace names of hosts, parts, addresses and users by pseudonyms");
  redact->add_option("records", o.records, "record.json files, or directories with runs")->required();
  redact->add_option("--out", o.out, "new directory for the redacted records and their reports")
      ->type_name("DIR")
      ->required();
  redact
      ->add_option("--map", o.map,
                   "file that tells who is who, readable by you alone; an existing one is continued")
      ->type_name("FILE")
      ->required();
  redact->add_option("--rules", o.rules, "what is replaced: host, serial, address, user (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"host", "serial", "address", "user"}));
  redact->add_option("--word", o.words, "replace this word, too; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  redact->footer(kRedactExamples);
  return redact;
}

CLI::App* addRma(CLI::App& app, RmaOptions& o) {
  CLI::App* rma = app.add_subcommand("rma", "write what a vendor needs to take a device back");
  rma->add_option("record", o.record, "record.json in its run directory")->required();
  rma->add_option("--device", o.device, "the device, for example gpu3")->required();
  rma->add_option("--out", o.out, "new directory for the files")->type_name("DIR")->required();
  rma->footer(kRmaExamples);
  return rma;
}

CLI::App* addCapture(CLI::App& app, CaptureOptions& o) {
  CLI::App* capture = app.add_subcommand("capture", "write a record's values as a scenario for --simulate");
  capture->add_option("record", o.record, "record.json")->required();
  capture->add_option("--out", o.out, "the scenario's file")->type_name("FILE")->capture_default_str();
  capture->add_option("--name", o.name, "name of the scenario (default: that of the file)");
  capture->footer(kCaptureExamples);
  return capture;
}

}  // namespace muster
