// SPDX-License-Identifier: Apache-2.0
// Validates a plan document and builds the typed plan.
#include "runner/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/inputs/expectation_sets.h"
#include "runner/plan/needs.h"
#include "runner/plan/stage_reader.h"

namespace muster {
namespace {

const std::vector<std::string> kKeysOfPlan = {
    "schema",  "include",           "name",    "description",  "sku",
    "backend", "allow_unknown_sku", "network", "expectations", "stage"};
const std::vector<std::string> kKeysOfNetwork = {"rails", "rail_bandwidth"};
constexpr int kMostRails = 64;
constexpr size_t kMostStages = 1000;

void readSchema(TableReader& table) {
  const Json* schema = table.find("schema");
  if (schema == nullptr) return table.missing("schema", "schema = 1, the version of the plan format");
  if (!schema->is_number() || schema->get<double>() != 1)
    table.fail("schema",
               fmt::format("found {}; expected 1, the only version of the plan format", shown(*schema)));
}

/// True when the plan names a backend that plans may name.
bool readBackend(TableReader& table, std::string& backend) {
  const Json* value = table.find("backend");
  if (value == nullptr) return true;
  if (*value == "sim") {
    table.fail("backend",
               "found \"sim\"; expected cuda or host; select simulated devices on the command line with "
               "--simulate SCENARIO");
    return false;
  }
  return table.choice("backend", backend, {"cuda", "host"});
}

void readSku(TableReader& table, const std::vector<std::string>& known, std::string& sku) {
  if (table.find("sku") == nullptr || !table.name("sku", sku) || sku == "auto" || known.empty()) return;
  if (std::find(known.begin(), known.end(), sku) == known.end())
    table.fail("sku", fmt::format("no SKU profile \"{}\"{}; available: auto, {}; --skus DIR adds more", sku,
                                  didYouMean(sku, known), join(known, ", ")));
}

void readNetwork(const PlanDocument& document, TableReader& root, PlanNetwork& network,
                 Diagnostics& diagnostics) {
  if (root.find("network") == nullptr) return;
  TableReader table(document, "/network", "network", diagnostics);
  if (!table.isTable()) return;
  table.refuseUnknown(kKeysOfNetwork);
  table.whole("rails", network.rails, 1, kMostRails);
  std::string rate;
  if (table.find("rail_bandwidth") == nullptr) return;
  table.text("rail_bandwidth", rate);
  if (rate.empty()) return;
  const auto value = parseAs(rate, "B/s");
  if (!value.ok() || !(*value >= 1e6))
    return table.fail(
        "rail_bandwidth",
        fmt::format("found \"{}\"; expected the rate of one NIC, one way, such as \"50 GB/s\" (400 Gb/s)",
                    printable(rate, 80)));
  network.railBandwidth = *value;
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
}

}  // namespace

Plan validatePlan(const PlanDocument& document, const Catalog& catalog, const std::vector<std::string>& skus,
                  Diagnostics& diagnostics) {
  Plan plan;
  TableReader table(document, "", "", diagnostics);
  if (!table.isTable()) return plan;
  table.refuseUnknown(kKeysOfPlan);
  // The loader of TOML has taken it out.
  if (table.find("include") != nullptr)
    table.fail("include", "a Lua plan includes by a statement of its own: include \"site.toml\"");
  readSchema(table);
  table.name("name", plan.name);
  table.text("description", plan.description);
  readSku(table, skus, plan.sku);
  const bool backendKnown = readBackend(table, plan.backend);
  table.flag("allow_unknown_sku", plan.allowUnknownSku);
  readNetwork(document, table, plan.network, diagnostics);
  checkExpectationSets(document.root, [&](const std::string& at, const std::string& message) {
    diagnostics.error(document.at(at), message);
  });
  StageContext context{catalog, backendKnown ? plan.backend : "", {}};
  readStages(document, table, context, plan, diagnostics);
  return plan;
}

}  // namespace muster
