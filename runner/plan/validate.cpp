// SPDX-License-Identifier: Apache-2.0
// Validates a plan document and builds the typed plan.
#include "runner/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/inputs/expectation_sets.h"
#include "runner/inputs/toml_input.h"
#include "runner/metrics/expectation_schema.h"
#include "runner/plan/needs.h"
#include "runner/plan/node_groups.h"
#include "runner/plan/stage_reader.h"
#include "runner/plan/stage_schema.h"

namespace muster {
namespace {

const std::vector<Key> kKeysOfPlan = {
    {"schema", "version of the plan format: 1"},
    {"include", "files laid beneath this plan: tables merge, and what the plan itself says wins"},
    {"name", "name of the plan, in reports and in the name of the run directory"},
    {"description", "what the plan tests, in one sentence"},
    {"sku", "SKU profile whose limits apply; auto: the one that matches the devices"},
    {"backend", "what the stages run on: cuda (GPUs, the default) or host (this machine's CPU)"},
    {"allow_unknown_sku", "accept devices that no profile matches; default false"},
    {"network", "network between the nodes; default: the reference design of the profile"},
    {"expectations", "named sets of expectation keys, which a limit takes over by `set`"},
    {"stage", "stages in the order in which they run; each runs one test of a plugin"}};
const std::vector<Key> kKeysOfNetwork = {
    {"rails", "number of NICs per node that carry traffic between nodes"},
    {"rail_bandwidth", "peak rate of one NIC in one direction: \"50 GB/s\" for 400 Gb/s"}};
const std::vector<std::string> kBackends = {"cuda", "host"};
constexpr int kMostRails = 64;

void readSchema(TableReader& table) {
  table.describe("schema", {{"const", 1}});
  const Json* schema = table.find("schema");
  if (schema == nullptr) return table.missing("schema", "schema = 1, the version of the plan format");
  if (!schema->is_number() || schema->get<double>() != 1)
    table.fail("schema", Mistake::value(shown(*schema), "1, the only version of the plan format"));
}

/// True when the plan names a backend that plans may name.
bool readBackend(TableReader& table, std::string& backend) {
  table.describe("backend", schema::choice(kBackends));
  const Json* value = table.find("backend");
  if (value == nullptr) return true;
  if (*value == "sim") {
    table.fail("backend",
               Mistake::value(shown(*value), "cuda or host")
                   .then("; select simulated devices on the command line with --simulate SCENARIO"));
    return false;
  }
  return table.choice("backend", backend, kBackends);
}

void readSku(TableReader& table, const std::vector<std::string>& known, std::string& sku) {
  std::vector<std::string> names = {"auto"};
  names.insert(names.end(), known.begin(), known.end());
  table.describe("sku", known.empty() ? schema::plainName() : schema::choice(names));
  if (table.find("sku") == nullptr || !table.name("sku", sku) || sku == "auto" || known.empty()) return;
  if (std::find(known.begin(), known.end(), sku) == known.end())
    table.fail("sku",
               Mistake::name(fmt::format("no SKU profile \"{}\"", sku), sku, known)
                   .then(fmt::format("; available: auto, {}; --skus DIR adds more", join(known, ", "))));
}

void readNetwork(TableReader& table, PlanNetwork& network) {
  table.refuseUnknown(kKeysOfNetwork);
  table.whole("rails", network.rails, 1, kMostRails);
  std::string rate;
  table.describe("rail_bandwidth", {{"type", "string"}, {"pattern", quantityPattern("B/s")}});
  if (table.find("rail_bandwidth") == nullptr) return;
  table.text("rail_bandwidth", rate);
  if (rate.empty()) return;
  const auto value = parseAs(rate, "B/s");
  if (!value.ok() || !(*value >= 1e6))
    return table.fail("rail_bandwidth",
                      Mistake::value('"' + printable(rate, 80) + '"',
                                     "the rate of one NIC, one way, such as \"50 GB/s\" (400 Gb/s)"));
  network.railBandwidth = *value;
}

/// What concerns the plan as a whole. False if the backend is wrong.
bool readHead(TableReader& table, const std::vector<std::string>& skus, Plan& plan) {
  table.refuseUnknown(kKeysOfPlan);
  readSchema(table);
  table.name("name", plan.name);
  table.text("description", plan.description);
  readSku(table, skus, plan.sku);
  const bool backendKnown = readBackend(table, plan.backend);
  table.flag("allow_unknown_sku", plan.allowUnknownSku);
  return backendKnown;
}

void readStages(const PlanDocument& document, TableReader& table, StageContext& context, Plan& plan,
                Diagnostics& diagnostics) {
  const Json* stages = table.list("stage", "a list of tables: [[stage]]");
  if (stages == nullptr && table.find("stage") != nullptr) return;
  if (stages == nullptr || stages->empty())
    return table.fail("the plan has no stage and would accept any machine; expected at least one [[stage]]");
  if (stages->size() > kMostStages)
    return table.fail("stage",
                      fmt::format("found {} stages; expected at most {}", stages->size(), kMostStages));
  std::vector<std::string> pointers;
  std::map<std::string, SourcePosition> names;
  for (size_t i = 0; i < stages->size() && !diagnostics.full(); ++i) {
    pointers.push_back(pointerTo("/stage", std::to_string(i)));
    Stage stage = readStage(document, pointers.back(), i + 1, context, diagnostics);
    const SourcePosition at = document.at(pointerTo(pointers.back(), "name"));
    const auto [first, fresh] = names.emplace(stage.name, at);
    if (!fresh && !stage.name.empty())
      diagnostics.error(at,
                        fmt::format("stage \"{}\": the name is already used at {}; expected a unique name",
                                    printable(stage.name, 64), first->second.text()));
    plan.stages.push_back(std::move(stage));
  }
  if (!diagnostics.full()) checkNeeds(document, plan.stages, pointers, diagnostics);
  if (!diagnostics.full()) checkSweeps(document, plan.stages, pointers, kMostStages, diagnostics);
  if (!diagnostics.hasErrors()) plan.stages = withSweeps(plan.stages);
}

}  // namespace

Plan validatePlan(const PlanDocument& document, const Catalog& catalog, const std::vector<std::string>& skus,
                  Diagnostics& diagnostics) {
  Plan plan;
  TableReader table(document, "", "", diagnostics);
  if (!table.isTable()) return plan;
  const bool backendKnown = readHead(table, skus, plan);
  // The loader of TOML has taken it out.
  if (table.find("include") != nullptr)
    table.fail("include", "a Lua plan includes by a statement of its own: include \"site.toml\"");
  if (table.find("network") != nullptr) {
    TableReader network(document, "/network", "network", diagnostics);
    if (network.isTable()) readNetwork(network, plan.network);
  }
  checkExpectationSets(document.root, [&](const std::string& at, const Mistake& mistake) {
    diagnostics.error(document.at(at), mistake);
  });
  StageContext context{catalog, backendKnown ? plan.backend : "", {}};
  readStages(document, table, context, plan, diagnostics);
  return plan;
}

Json planSchema(const Catalog& catalog, const std::vector<std::string>& skus) {
  TableSchema root;
  TableReader table(root);
  Plan ignored;
  readHead(table, skus, ignored);
  root.require("schema");
  root.require("stage");
  TableReader network(root.table("network"));
  readNetwork(network, ignored.network);
  root.add("expectations", expectationSetsSchema());
  root.add("include", includeSchema());
  Json stages = schema::list(stageSchema(catalog));
  stages["maxItems"] = kMostStages;
  root.add("stage", stages);
  Json document = schemaDocument("Muster plan", completeUnless(root.json(), {"include"}));
  document["definitions"] = expectationDefinitions(catalog, false);
  return document;
}

}  // namespace muster
