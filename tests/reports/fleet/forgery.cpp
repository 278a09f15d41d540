// SPDX-License-Identifier: Apache-2.0
// See forgery.h.
#include "tests/reports/fleet/forgery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "reports/fleet/read/stage_check.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {
namespace {

constexpr double kDay = 86400;
constexpr const char* kSku = "h100-sxm5-80gb";
constexpr const char* kOtherSku = "h200-sxm";

using Random = std::mt19937_64;

size_t upTo(Random& random, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(random);
}
bool oneIn(Random& random, size_t count) {
  return upTo(random, count) == 0;
}
std::string digits(Random& random, size_t count = 12) {
  return fmt::format("{:016x}", random()).substr(0, count);
}

/// Two GPUs and two stages of a real node, one of each job.
Record smallRecord() {
  constexpr int kDevices = 2;
  Record record = healthyRecord();
  record.simulated = false;
  record.scenario.clear();
  record.backend = "cuda";
  record.stages = {record.stages[0], record.stages[1]};
  record.inventory["devices"].erase(record.inventory["devices"].begin() + kDevices,
                                    record.inventory["devices"].end());
  for (StageRecord& stage : record.stages) {
    stage.telemetry.clear();
    const auto surplus = [](const auto& item) { return item.rank >= kDevices; };
    std::erase_if(stage.ranks, surplus);
    std::erase_if(stage.measurements, surplus);
    std::erase_if(stage.verdicts, surplus);
    keepEvidence(stage);
  }
  measureInventory(record);
  settle(record);
  return record;
}

/// Identities of a machine of its own.
void giveMachine(Record& record, Random& random) {
  giveParts(record, digits(random));
  record.bootId = "b007" + digits(random);
  Json& host = record.inventory["host"];
  host["machine_id"] = digits(random);
  host["board_serial"] = "B" + digits(random);
  host["product_serial"] = "P" + digits(random);
  host["product_uuid"] = digits(random);
}

void bindRun(Record& record) {
  record.runId = runIdOf(record.node, record.started);
}

struct Entry {
  std::string path;
  Record record;
};

struct Draft {
  std::string kind;
  std::vector<Entry> entries;
  std::vector<fleet::ExpectedNode> expected;
  fleet::FleetOptions options;
  std::vector<std::string> arguments;
  std::vector<std::string> toName;

  Entry& named(const std::string& node) {
    return *std::find_if(entries.begin(), entries.end(),
                         [&](const Entry& e) { return e.record.node == node; });
  }
};

/// A healthy fleet of one SKU, one record a node.
Draft healthyDraft(Random& random) {
  static const Record base = smallRecord();
  Draft draft;
  const size_t count = 3 + upTo(random, 6);
  const std::string id = oneIn(random, 2) ? "run-" + digits(random, 6) : "";
  for (size_t n = 0; n < count; ++n) {
    Record record = base;
    record.node = fmt::format("node{}", n + 1);
    record.started += 60.0 * static_cast<double>(upTo(random, 600));
    record.finished = record.started + 96;
    if (!id.empty()) record.launcher["fleet_id"] = id;
    giveMachine(record, random);
    bindRun(record);
    draft.expected.push_back({record.node, "", false});
    draft.entries.push_back({record.node + "/record.json", std::move(record)});
  }
  return draft;
}

Entry& anyOf(Draft& draft, Random& random) {
  return draft.entries[upTo(random, draft.entries.size())];
}

/// Another entry than `one`.
Entry& otherThan(Draft& draft, const Entry& one, Random& random) {
  for (;;)
    if (Entry& other = anyOf(draft, random); &other != &one) return other;
}

void toH200(Record& record) {
  record.profile = {kOtherSku, "skus/h200-sxm.toml", sha256Hex("h200"), "name = \"h200-sxm\"\n"};
  for (Json& device : record.inventory["devices"]) {
    device["name"] = "NVIDIA H200";
    device["memory_bytes"] = 150'754'820'096ull;
  }
}

void failSomewhere(Record& record, Random& random) {
  StageRecord& stage = record.stages[1];
  Verdict& verdict =
      stage.verdicts[upTo(random, stage.verdicts.size() - 2)];  // the last two have a limit of 0
  verdict.observed = 0.7 * verdict.limit;
  verdict.margin = -0.3;
}

/// Another outcome for a verdict that missed its limit.
void giveOutcome(Record& record, Outcome outcome, Random& random) {
  failSomewhere(record, random);
  for (Verdict& verdict : record.stages[1].verdicts)
    if (verdict.margin < 0) verdict.outcome = outcome;
  settle(record);
}

std::vector<Verdict>::iterator firstDeferred(StageRecord& stage) {
  return std::find_if(stage.verdicts.begin(), stage.verdicts.end(),
                      [](const Verdict& v) { return v.outcome == Outcome::kDeferred; });
}

/// One requirement of the second stage is relative to the fleet.
void deferFirst(Record& record) {
  StageRecord& stage = record.stages[1];
  const auto at = std::find_if(stage.verdicts.begin(), stage.verdicts.end(), [](const Verdict& v) {
    return v.metric == "compute.gemm_throughput" && v.expectation;
  });
  if (at == stage.verdicts.end()) throw std::logic_error("no such verdict");
  const std::string caseId = at->caseId;
  const Json before = toJson(*at->expectation);
  for (Verdict& verdict : stage.verdicts) {
    if (!verdict.expectation || toJson(*verdict.expectation) != before) continue;
    verdict.outcome = Outcome::kDeferred;
    verdict.expectation->kind = CheckKind::kWithin;
    verdict.expectation->peers = PeerGroup::kFleet;
    verdict.expectation->tolerance = 0.1;
    verdict.limit = verdict.margin = std::nan("");
  }
  keepEvidence(stage);
  settle(record);
}

void judgeAgain(Record& record) {
  record.rejudged.push_back({sha256Hex(recordText(record)), record.finished + 3600, "0.1.0",
                             "0.1.0-1ee5e15b0a42", "", "", "", false});
}

/// One way to spoil a fleet: a name, and what it does to a healthy one. It says whom to name.
struct Attack {
  const char* kind;
  std::function<void(Draft&, Random&)> apply;
};

Entry& spoil(Draft& draft, Random& random) {
  Entry& entry = anyOf(draft, random);
  draft.toName = {entry.record.node, entry.path};
  return entry;
}

/// The record of one node in the place of another's, under its name, but for what `change` makes of it.
template <typename F>
void copyOver(Draft& draft, Random& random, F change) {
  Entry& from = anyOf(draft, random);
  Entry& to = otherThan(draft, from, random);
  const Record own = to.record;
  to.record = from.record;
  to.record.node = own.node;
  to.record.started += 1;
  to.record.finished += 1;
  bindRun(to.record);
  change(to.record, own, from.record);
  draft.toName = {to.record.node, to.path};
}

/// Everything of its own but what `keep` copies.
template <typename F>
void keepOnly(Draft& draft, Random& random, F keep) {
  copyOver(draft, random, [&](Record& copy, const Record& own, const Record& from) {
    copy.inventory = own.inventory;
    copy.bootId = own.bootId;
    keep(copy, from);
  });
}

const std::vector<Attack>& attacks() {
  static const std::vector<Attack> all = {
      {"forged: a verdict passes below its limit",
       [](Draft& d, Random& r) { failSomewhere(spoil(d, r).record, r); }},
      {"forged: a limit was lowered in the record",
       [](Draft& d, Random& r) {
         StageRecord& stage = spoil(d, r).record.stages[1];
         const size_t which = upTo(r, stage.verdicts.size() - 2);
         const Expectation before = *stage.verdicts[which].expectation;
         for (Verdict& verdict : stage.verdicts)
           if (verdict.expectation && toJson(*verdict.expectation) == toJson(before)) {
             verdict.expectation->limit *= 0.5;
             verdict.limit *= 0.5;
           }
         keepEvidence(stage);
       }},
      {"forged: a requirement was removed",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         StageRecord& stage = record.stages[1];
         const std::string id = stage.verdicts[upTo(r, stage.verdicts.size())].caseId;
         std::erase_if(stage.verdicts, [&](const Verdict& v) { return v.caseId == id; });
         keepEvidence(stage);
         settle(record);
       }},
      {"forged: a stage was removed",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.stages.erase(record.stages.begin() + static_cast<long>(upTo(r, 2)));
         settle(record);
       }},
      {"forged: all stages but its own were removed",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         StageRecord& own = record.stages[2];
         own.verdicts = record.stages[0].verdicts;
         for (Verdict& verdict : own.verdicts) verdict.stage = own.name;
         own.evidence = record.stages[0].evidence;
         record.stages.erase(record.stages.begin(), record.stages.begin() + 2);
         settle(record);
       }},
      {"forged: another text of the plan under its digest",
       [](Draft& d, Random& r) { spoil(d, r).record.plan.text += "\n"; }},
      {"forged: a failure is waived without a waiver",
       [](Draft& d, Random& r) { giveOutcome(spoil(d, r).record, Outcome::kWaived, r); }},
      {"forged: a miss only warns",
       [](Draft& d, Random& r) { giveOutcome(spoil(d, r).record, Outcome::kWarn, r); }},
      {"forged: a failure is left elsewhere",
       [](Draft& d, Random& r) { giveOutcome(spoil(d, r).record, Outcome::kElsewhere, r); }},
      {"forged: the counts are others than the verdicts'",
       [](Draft& d, Random& r) {
         Accounting& accounting = spoil(d, r).record.accounting;
         ++accounting.expected;
         ++accounting.counts[static_cast<size_t>(Outcome::kPass)];
       }},
      {"forged: accepted over a failure",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.stages[1].verdicts[upTo(r, record.stages[1].verdicts.size())].outcome = Outcome::kFail;
         settle(record);
       }},
      {"forged: two versions of one run",
       [](Draft& d, Random& r) {
         const Entry& entry = spoil(d, r);
         Entry edited = entry;
         edited.path = "more/" + entry.path;
         edited.record.stages[1].measurements[0].samples[0] *= 0.9;
         d.entries.push_back(edited);
       }},
      {"forged: one part in two places of a node",
       [](Draft& d, Random& r) {
         Json& devices = spoil(d, r).record.inventory["devices"];
         devices[1]["uuid"] = devices[0]["uuid"];
         devices[1]["serial"] = devices[0]["serial"];
       }},
      {"copied: with its name replaced",
       [](Draft& d, Random& r) { copyOver(d, r, [](Record&, const Record&, const Record&) {}); }},
      {"copied: with its run id",
       [](Draft& d, Random& r) {
         copyOver(d, r, [](Record& copy, const Record&, const Record& from) { copy.runId = from.runId; });
       }},
      {"copied: with another boot id",
       [](Draft& d, Random& r) {
         copyOver(d, r, [](Record& copy, const Record& own, const Record&) { copy.bootId = own.bootId; });
       }},
      {"copied: boot id",
       [](Draft& d, Random& r) {
         keepOnly(d, r, [](Record& copy, const Record& from) { copy.bootId = from.bootId; });
       }},
      {"copied: one GPU",
       [](Draft& d, Random& r) {
         const size_t at = upTo(r, 2);
         keepOnly(d, r, [&](Record& copy, const Record& from) {
           copy.inventory["devices"][at] = from.inventory["devices"][at];
         });
       }},
      {"forged: lists the parts of another node beside its own",
       [](Draft& d, Random& r) {
         Entry& entry = spoil(d, r);
         const Json theirs = otherThan(d, entry, r).record.inventory["devices"];
         for (const Json& part : theirs) {
           entry.record.inventory["devices"].push_back(part);
           entry.record.inventory["devices"].back()["id"] = "x" + part.value("id", "");
         }
       }},
      {"forged: the boot id of another node",
       [](Draft& d, Random& r) {
         Entry& entry = spoil(d, r);
         entry.record.bootId = otherThan(d, entry, r).record.bootId;
       }},
      {"forged: figures beside the fleet of devices that it has not",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries) deferFirst(entry.record);
         Record& record = spoil(d, r).record;
         StageRecord& stage = record.stages[1];
         const Verdict real = *firstDeferred(stage);
         for (int ghost = 0; ghost < 20; ++ghost) {
           stage.verdicts.push_back(real);
           stage.verdicts.back().device = fmt::format("ghost{}", ghost);
           stage.verdicts.back().observed = oneIn(r, 2) ? 9e14 : 1;
         }
         settle(record);
       }},
      {"forged: a figure beside the fleet that no sample has",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries) deferFirst(entry.record);
         firstDeferred(spoil(d, r).record.stages[1])->observed = oneIn(r, 2) ? 9e300 : 1;
       }},
      {"copied: one GPU in another place",
       [](Draft& d, Random& r) {
         keepOnly(d, r, [&](Record& copy, const Record& from) {
           copy.inventory["devices"][0]["serial"] = from.inventory["devices"][1]["serial"];
         });
       }},
      {"copied: UUIDs",
       [](Draft& d, Random& r) {
         keepOnly(d, r, [&](Record& copy, const Record& from) {
           for (size_t i = 0; i < 2; ++i)
             copy.inventory["devices"][i]["uuid"] = from.inventory["devices"][i]["uuid"];
         });
       }},
      {"copied: board and product",
       [](Draft& d, Random& r) {
         keepOnly(d, r, [&](Record& copy, const Record& from) {
           for (const char* key : {"board_serial", "product_serial", "product_uuid"})
             copy.inventory["host"][key] = from.inventory["host"][key];
         });
       }},
      {"copied: run id alone",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries) entry.record.runId = "id-" + digits(r);
         keepOnly(d, r, [&](Record& copy, const Record& from) { copy.runId = from.runId; });
       }},
      {"copied: one machine on purpose, one run under two names",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries) entry.record.runId = "id-" + digits(r);
         copyOver(d, r, [](Record& copy, const Record&, const Record& from) { copy.runId = from.runId; });
         d.options.sameMachine = true;
         d.arguments.emplace_back("--same-machine");
       }},
      {"renamed: the name alone",
       [](Draft& d, Random& r) {
         Entry& from = anyOf(d, r);
         Entry& to = otherThan(d, from, r);
         d.toName = {from.record.node, to.record.node, from.path};
         from.record.node = to.record.node;
         d.entries.erase(d.entries.begin() + (&to - d.entries.data()));
       }},
      {"renamed: in place of a missing one",
       [](Draft& d, Random& r) {
         Entry& from = anyOf(d, r);
         Entry& to = otherThan(d, from, r);
         d.toName = {from.record.node, to.record.node};
         from.record.node = to.record.node;
         bindRun(from.record);
         d.entries.erase(d.entries.begin() + (&to - d.entries.data()));
       }},
      {"re-judged", [](Draft& d, Random& r) { judgeAgain(spoil(d, r).record); }},
      {"re-judged: beside the record of the run",
       [](Draft& d, Random& r) {
         const Entry& entry = spoil(d, r);
         Entry again = entry;
         again.path = "again/" + entry.path;
         judgeAgain(again.record);
         d.toName.push_back(again.path);
         d.entries.push_back(again);
       }},
      {"re-judged: an edited sample, allowed, beside the record of the run",
       [](Draft& d, Random& r) {
         const Entry& entry = spoil(d, r);
         Entry again = entry;
         again.path = "again/" + entry.path;
         again.record.stages[1].measurements[upTo(r, 4)].samples[upTo(r, 10)] *= 1.02;
         judgeAgain(again.record);
         d.entries.push_back(again);
         d.options.allowRejudged = true;
         d.arguments.emplace_back("--allow-rejudged");
       }},
      {"looser: profile of the same name",
       [](Draft& d, Random& r) { spoil(d, r).record.profile.sha256 = sha256Hex("lax" + digits(r)); }},
      {"looser: profile of another name",
       [](Draft& d, Random& r) {
         spoil(d, r).record.profile = {"h100-lax", "h100-lax.toml", sha256Hex("lax"),
                                       "name = \"h100-lax\"\n"};
       }},
      {"looser: no profile",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.profile = {};
         record.allowUnknownSku = true;
       }},
      {"looser: another build",
       [](Draft& d, Random& r) { spoil(d, r).record.buildId = "0.1.0-" + digits(r); }},
      {"looser: another plugin version",
       [](Draft& d, Random& r) { spoil(d, r).record.stages[upTo(r, 2)].pluginVersion = "0.0.9"; }},
      {"looser: another plugin library",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries)
           for (StageRecord& stage : entry.record.stages) stage.pluginSha256 = sha256Hex(stage.plugin);
         spoil(d, r).record.stages[upTo(r, 2)].pluginSha256 = sha256Hex("lax");
       }},
      {"looser: another muster-host or backend",
       [](Draft& d, Random& r) {
         spoil(d, r).record.binaries[upTo(r, 2) == 0 ? "muster-host" : "backend_cuda.so"] = sha256Hex("lax");
       }},
      {"looser: not strict",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries) entry.record.strict = true;
         spoil(d, r).record.strict = false;
       }},
      {"stale: another plan", [](Draft& d, Random& r) { givePlan(spoil(d, r).record, "plan" + digits(r)); }},
      {"stale: another fleet run",
       [](Draft& d, Random& r) { spoil(d, r).record.launcher["fleet_id"] = "run-" + digits(r); }},
      {"stale: other overrides",
       [](Draft& d, Random& r) { spoil(d, r).record.overrides = {"gemm.size=256"}; }},
      {"stale: simulated",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.simulated = true;
         record.backend = "sim";
       }},
      {"stale: much older",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         const double age = kDay * static_cast<double>(45 + upTo(r, 400));
         record.started -= age;
         record.finished -= age;
         bindRun(record);
       }},
      {"foreign: in place of an expected node",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.node = "stranger" + digits(r, 4);
         giveMachine(record, r);
         bindRun(record);
       }},
      {"foreign: an expected node has the hardware of an unexpected one",
       [](Draft& d, Random& r) {
         const Entry& entry = spoil(d, r);
         Entry real = entry;
         real.record.node = "spare" + digits(r, 4);
         real.path = real.record.node + "/record.json";
         bindRun(real.record);
         d.entries.push_back(real);
       }},
      {"wrong SKU", [](Draft& d, Random& r) { toH200(spoil(d, r).record); }},
      {"wrong SKU: among nodes that are listed",
       [](Draft& d, Random& r) {
         for (auto& node : d.expected) node.sku = kSku;
         toH200(spoil(d, r).record);
       }},
      {"wrong SKU: another model under the same profile",
       [](Draft& d, Random& r) {
         spoil(d, r).record.inventory["devices"][upTo(r, 2)]["name"] = "NVIDIA H200";
       }},
      {"wrong SKU: a GPU less",
       [](Draft& d, Random& r) {
         Record& record = spoil(d, r).record;
         record.inventory["devices"].erase(1);
       }},
      {"wrong SKU: less memory",
       [](Draft& d, Random& r) {
         for (Json& device : spoil(d, r).record.inventory["devices"])
           device["memory_bytes"] = 42'949'672'960ull;
       }},
  };
  return all;
}

/// What honest fleets may have; each may be combined with each.
const std::vector<Attack>& habits() {
  static const std::vector<Attack> all = {
      {"two SKUs, listed",
       [](Draft& d, Random& r) {
         for (auto& node : d.expected) {
           node.sku = oneIn(r, 2) ? kOtherSku : kSku;
           for (Entry& entry : d.entries)
             if (entry.record.node == node.name && node.sku == kOtherSku) toH200(entry.record);
         }
       }},
      {"records of two jobs",
       [](Draft& d, Random& r) {
         const std::vector<Entry> whole = d.entries;
         d.entries.clear();
         for (const Entry& entry : whole) {
           Entry array = entry, cluster = entry;
           array.path = "array/" + entry.path;
           cluster.path = "cluster/" + entry.path;
           leaveElsewhere(array.record, "gemm");
           leaveElsewhere(cluster.record, "env");
           cluster.record.started += 600;
           cluster.record.finished += 600;
           if (oneIn(r, 3)) cluster.record.bootId = "b007" + digits(r);  // it was restarted between the jobs
           bindRun(cluster.record);
           d.entries.push_back(array);
           d.entries.push_back(cluster);
         }
       }},
      {"no DMI serials, as for users other than root",
       [](Draft& d, Random&) {
         for (Entry& entry : d.entries)
           for (const char* key : {"board_serial", "product_serial", "product_uuid"})
             entry.record.inventory["host"][key] = "";
       }},
      {"a vendor's texts",
       [](Draft& d, Random& r) {
         const std::vector<std::string> texts = {"To be filled by O.E.M.", "Default string", "0", "None",
                                                 "0123456789"};
         const std::string text = texts[upTo(r, texts.size())];
         for (Entry& entry : d.entries) {
           entry.record.inventory["host"]["board_serial"] = text;
           entry.record.inventory["host"]["product_serial"] = text;
           entry.record.inventory["host"]["product_uuid"] = "00000000-0000-0000-0000-000000000000";
         }
       }},
      {"a vendor's unknown text",
       [](Draft& d, Random& r) {
         const std::string text = "vendor text " + digits(r, 4);
         for (Entry& entry : d.entries) {
           entry.record.inventory["host"]["board_serial"] = text;
           entry.record.inventory["host"].erase("product_serial");
           entry.record.inventory["host"].erase("product_uuid");
         }
       }},
      {"chassis of several nodes",
       [](Draft& d, Random& r) {
         const std::string serial = "C" + digits(r);
         for (Entry& entry : d.entries) entry.record.inventory["host"]["product_serial"] = serial;
       }},
      {"one image",
       [](Draft& d, Random& r) {
         const std::string id = digits(r);
         for (Entry& entry : d.entries) entry.record.inventory["host"]["machine_id"] = id;
       }},
      {"GPUs without serials",
       [](Draft& d, Random& r) {
         const char* none = oneIn(r, 2) ? "" : "[N/A]";
         for (Entry& entry : d.entries)
           for (Json& device : entry.record.inventory["devices"]) device["serial"] = none;
       }},
      {"boards of two GPUs",
       [](Draft& d, Random&) {
         for (Entry& entry : d.entries) {
           Json& devices = entry.record.inventory["devices"];
           devices[1]["serial"] = devices[0]["serial"];
         }
       }},
      {"resumed runs",
       [](Draft& d, Random& r) {
         for (Entry& entry : d.entries)
           if (oneIn(r, 3)) {
             entry.record.resumed = 1;
             entry.record.finished += 3600.0 * static_cast<double>(upTo(r, 20));
           }
       }},
      {"an unexpected node",
       [](Draft& d, Random& r) {
         Entry other = d.entries.front();
         other.record.node = "spare" + digits(r, 4);
         other.path = other.record.node + "/record.json";
         giveMachine(other.record, r);
         bindRun(other.record);
         d.entries.push_back(other);
       }},
      {"an earlier run of all nodes beside it",
       [](Draft& d, Random& r) {
         const std::vector<Entry> now = d.entries;
         const bool otherNames = oneIn(r, 3);
         for (const Entry& entry : now) {
           if (entry.record.node.starts_with("spare")) continue;
           Entry before = entry;
           before.path = "before/" + entry.path;
           before.record.launcher["fleet_id"] = "run-before";
           before.record.started -= 20 * kDay;
           before.record.finished -= 20 * kDay;
           givePlan(before.record, "plan before");
           if (otherNames) before.record.node = "old-" + before.record.node;
           bindRun(before.record);
           d.entries.push_back(before);
         }
       }},
      {"strict nodes among others",
       [](Draft& d, Random&) { d.entries.front().record.strict = d.expected.front().sku.empty(); }},
      {"driver and VBIOS that differ",
       [](Draft& d, Random& r) {
         for (Json& device : anyOf(d, r).record.inventory["devices"])
           device["facts"]["vbios"] = "96.00.74.00.02";
       }},
      {"memory that drivers keep",
       [](Draft& d, Random& r) {
         for (Json& device : anyOf(d, r).record.inventory["devices"])
           device["memory_bytes"] = device["memory_bytes"].get<uint64_t>() / 1000 * 996;
       }},
      {"re-judged records, allowed",
       [](Draft& d, Random& r) {
         const bool beside = oneIn(r, 2);
         const std::vector<Entry> now = d.entries;
         for (size_t i = 0; i < now.size(); ++i) {
           Entry again = now[i];
           again.path = "again/" + again.path;
           judgeAgain(again.record);
           if (beside)
             d.entries.push_back(again);
           else
             d.entries[i] = again;
         }
         d.options.allowRejudged = true;
         d.arguments.emplace_back("--allow-rejudged");
       }},
      {"one machine on purpose",
       [](Draft& d, Random&) {
         for (Entry& entry : d.entries) {
           entry.record.inventory = d.entries.front().record.inventory;
           entry.record.bootId = d.entries.front().record.bootId;
         }
         d.options.sameMachine = true;
         d.arguments.emplace_back("--same-machine");
       }},
      {"simulated nodes on one host",
       [](Draft& d, Random&) {
         for (Entry& entry : d.entries) {
           entry.record.simulated = true;
           entry.record.backend = "sim";
           entry.record.bootId = "one host";
         }
       }},
      {"an exact copy beside it",
       [](Draft& d, Random& r) {
         Entry copy = anyOf(d, r);
         copy.path = "copy/" + copy.path;
         d.entries.push_back(copy);
       }},
  };
  return all;
}

MadeFleet finish(Draft draft, bool forged) {
  MadeFleet made;
  made.kind = std::move(draft.kind);
  made.forged = forged;
  made.toName = std::move(draft.toName);
  made.arguments = std::move(draft.arguments);
  made.options = std::move(draft.options);
  made.options.expected = draft.expected;
  for (const auto& node : draft.expected)
    made.expectText += node.name + (node.sku.empty() ? "" : " sku=" + node.sku) + "\n";
  std::sort(draft.entries.begin(), draft.entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  for (Entry& entry : draft.entries) {
    measureInventory(entry.record);
    made.files.emplace_back(entry.path, recordText(entry.record));
  }
  return made;
}

bool holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Whether the fleet tells of one of these nodes or paths: in a finding, as a node that is not accepted, or
/// as a record that does not count.
bool names(const fleet::Fleet& fleet, const std::vector<std::string>& toName) {
  const auto any = [&](const auto& list, auto of) {
    return std::any_of(list.begin(), list.end(), [&](const auto& item) { return holds(toName, of(item)); });
  };
  for (const auto& finding : fleet.findings)
    if (any(finding.nodes, [](const std::string& name) { return name; }) ||
        any(finding.records, [](const std::string& path) { return path; }))
      return true;
  return std::any_of(fleet.nodes.begin(), fleet.nodes.end(),
                     [&](const auto& node) {
                       return node.state != fleet::NodeState::kAccepted && !node.reason.empty() &&
                              holds(toName, node.name);
                     }) ||
         any(fleet.quarantined, [](const auto& q) { return q.path; }) ||
         any(fleet.stale, [](const auto& out) { return out.path; });
}

}  // namespace

MadeFleet forgedFleet(uint64_t seed) {
  Random random(seed);
  Draft draft = healthyDraft(random);
  const Attack& attack = attacks()[seed % attacks().size()];
  draft.kind = attack.kind;
  attack.apply(draft, random);
  return finish(std::move(draft), true);
}

MadeFleet honestFleet(uint64_t seed) {
  Random random(seed);
  Draft draft = healthyDraft(random);
  for (size_t i = 0; i < habits().size(); ++i) {
    if (i != seed % habits().size() && !oneIn(random, 8)) continue;
    habits()[i].apply(draft, random);
    draft.kind += (draft.kind.empty() ? "" : " + ") + std::string(habits()[i].kind);
  }
  return finish(std::move(draft), false);
}

std::string wrongVerdict(const MadeFleet& made) {
  fleet::FleetRecords records = fleet::readEach(
      {made.files.size(),
       [&](fleet::RecordReader& reader, size_t i) { return reader.parse(made.files[i].second); },
       [&](size_t i) { return made.files[i].first; }},
      1);
  fleet::setAsideIncomplete(records, {});
  const auto fleet = fleet::assess(records, made.options);
  if (!fleet.ok()) return "refused: " + fleet.error().text();
  if (made.forged) {
    if (fleet->acceptance == Acceptance::kAccepted) return "accepted";
    for (const auto& node : fleet->nodes)
      if (node.state == fleet::NodeState::kRejected && !holds(made.toName, node.name))
        return "rejects another node: " + node.name + ": " + node.reason;
    return names(*fleet, made.toName) ? "" : "not named: " + join(made.toName, " or ");
  }
  std::vector<std::string> blamed;
  for (const auto& finding : fleet->findings) blamed.push_back(finding.text);
  for (const auto& node : fleet->nodes)
    if (node.state != fleet::NodeState::kAccepted) blamed.push_back(node.name + ": " + node.reason);
  for (const auto& bad : fleet->quarantined) blamed.push_back(bad.path + ": " + bad.reason);
  return blamed.empty() ? "" : "blamed: " + join(blamed, "; ");
}

}  // namespace muster::testing
