// SPDX-License-Identifier: Apache-2.0
// Reads and checks one stage of a plan.
#include "runner/plan/stage_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/duration.h"
#include "runner/core/text.h"
#include "runner/plan/node_groups.h"
#include "runner/plan/stage_expectations.h"

namespace muster {
namespace {

const std::vector<Key> kStageKeys = {
    {"name", "unique name of the stage"},
    {"plugin", "plugin that has the test; not needed if `test` is plugin.test"},
    {"test", "test to run: plugin.test, or its name alone beside `plugin`"},
    {"needs", "stages that must pass first; else this one is skipped"},
    {"scope",
     "what is tested at a time: each device, the node, or all nodes together (cluster); default: the first "
     "scope of the test"},
    {"timeout", "time after which one attempt is ended and fails: \"5m\"; default 10m"},
    {"repeat", "how often each case is measured; a verdict uses all samples; default 1"},
    {"attempts", "attempts in all; a failure that passes later is flaky; default 1"},
    {"ranks", "processes per node; default: one per device, or 1 for a test of the whole node"},
    {"nodes",
     "numbers of nodes, or \"all\": one stage for each, on the run's first nodes; needs scope cluster"},
    {"required", "whether a skip of the stage blocks acceptance; default true"},
    {"allow_flaky", "whether a flaky result may be accepted; default false"},
    {"params", "parameters of the test; a missing one has its default"},
    {"matrix", "parameters with a list of values each: one case for each combination"},
    {"expect", "limits of the stage's measurements"}};
constexpr int kMostRepeats = 1000;
constexpr int kMostAttempts = 10;
constexpr int kMostRanks = 4096;
constexpr DurationRange kTimeouts = {1e-9, 30 * 86400.0, "a duration above 0s and up to 30d, for example 5m"};

bool readScopeName(TableReader& table, std::string& scope) {
  return table.choice("scope", scope, {"device", "node", "cluster"});
}

void readCounts(TableReader& table, Stage& stage) {
  table.whole("repeat", stage.repeat, 1, kMostRepeats);
  table.whole("attempts", stage.attempts, 1, kMostAttempts);
  table.whole("ranks", stage.ranks, 1, kMostRanks);
  table.flag("required", stage.required);
  table.flag("allow_flaky", stage.allowFlaky);
}

class StageReader {
 public:
  StageReader(const PlanDocument& document, const std::string& pointer, size_t number, StageContext& context,
              Diagnostics& diagnostics)
      : document_(document),
        pointer_(pointer),
        context_(context),
        diagnostics_(diagnostics),
        table_(document, pointer, title(document, pointer, number), diagnostics) {}

  Stage read() {
    stage_.at = document_.at(pointer_);
    if (!table_.isTable()) return stage_;
    if (!table_.name("name", stage_.name)) stage_.name = printable(stage_.name, 64);
    readTest();
    table_.refuseUnknown(kStageKeys, [this](const std::string& key) { return paramHint(key); });
    readNeeds();
    readScopeAndRanks();
    readSweep(table_, stage_);
    readTimeout();
    readCounts(table_, stage_);
    if (test_ != nullptr)
      stage_.cases = readCases(document_, pointer_, stage_.name, *test_, context_.budget, diagnostics_);
    readStageExpectations(document_, pointer_, context_, test_, stage_, diagnostics_);
    return std::move(stage_);
  }

 private:
  static std::string title(const PlanDocument& document, const std::string& pointer, size_t number) {
    const Json* name = valueAt(document.root, pointerTo(pointer, "name"));
    if (name == nullptr || !name->is_string()) return fmt::format("stage {}", number);
    return fmt::format("stage \"{}\"", printable(name->get<std::string>(), 64));
  }

  /// A parameter of the test that was written beside `params`.
  [[nodiscard]] std::string paramHint(const std::string& key) const {
    if (test_ == nullptr || test_->param(key) == nullptr) return "";
    return fmt::format("; it is a parameter of {}.{}; write it in params", stage_.plugin, test_->name);
  }

  void readTest() {
    const bool named = table_.name("plugin", stage_.plugin);
    const bool testNamed = table_.name("test", stage_.test);
    if (!named) return;
    const PluginSpec* plugin = context_.catalog.plugin(stage_.plugin);
    if (plugin == nullptr) return table_.fail("plugin", missingPlugin());
    if (!testNamed) return;
    test_ = plugin->test(stage_.test);
    if (test_ != nullptr) return checkBackend();
    std::vector<std::string> tests;
    for (const TestSpec& test : plugin->tests) tests.push_back(test.name);
    table_.fail("test",
                Mistake::name(fmt::format("plugin \"{}\" has no test \"{}\"", stage_.plugin, stage_.test),
                              stage_.test, tests)
                    .then("; it has " + join(tests, ", ")));
  }

  [[nodiscard]] Mistake missingPlugin() const {
    for (const auto& [library, why] : context_.catalog.refused)
      if (library == stage_.plugin || library == stage_.plugin + ".so")
        return fmt::format("plugin \"{}\" was found but rejected: {}", stage_.plugin, why.text());
    std::vector<std::string> names;
    for (const auto& [name, spec] : context_.catalog.plugins) names.push_back(name);
    return Mistake::name(fmt::format("no plugin \"{}\" is installed", stage_.plugin), stage_.plugin, names)
        .then(fmt::format("; installed are {}; --plugins DIR adds more",
                          names.empty() ? "none" : join(names, ", ")));
  }

  void checkBackend() {
    const std::string& backend = context_.backend;
    if (backend.empty() || contains(test_->backends, backend)) return;
    const std::string problem = fmt::format("{}.{} does not run on backend \"{}\"; it runs on {}",
                                            stage_.plugin, test_->name, backend, join(test_->backends, ", "));
    // A GPU plan may be meant for --simulate on this machine; without it the run ends with the same reason.
    if (backend == "cuda" && contains(test_->backends, "sim"))
      diagnostics_.warning(document_.at(pointerTo(pointer_, "test")),
                           fmt::format("stage \"{}\": {}", stage_.name, problem));
    else
      table_.fail("test", problem);
  }

  void readNeeds() {
    const Json* needs = table_.list("needs", "a list of stage names");
    if (needs == nullptr) return;
    for (size_t i = 0; i < needs->size() && !diagnostics_.full(); ++i) {
      const Json& need = (*needs)[i];
      // A place is kept for what is no name, so that each name stands at its own index.
      stage_.needs.push_back(need.is_string() ? need.get<std::string>() : "");
      if (stage_.needs.back().empty())
        diagnostics_.error(document_.at(pointerTo(table_.pointer("needs"), std::to_string(i))),
                           Mistake::value(shown(need), "the name of a stage")
                               .within(fmt::format("stage \"{}\": needs: ", stage_.name)));
    }
  }

  void readScopeAndRanks() {
    std::string scope = test_ != nullptr ? test_->scopes.front() : nameOf(stage_.scope);
    const bool written = table_.find("scope") != nullptr;
    if (!readScopeName(table_, scope) && written) return;
    stage_.scope = *fromName<Scope>(scope);
    if (test_ != nullptr && stage_.scope != Scope::kDevice) stage_.ranks = test_->ranks;
    if (test_ == nullptr || contains(test_->scopes, scope)) return;
    table_.fail("scope", fmt::format("{}.{} does not run in scope \"{}\"; expected {}", stage_.plugin,
                                     test_->name, scope, join(test_->scopes, " or ")));
  }

  void readTimeout() {
    const Json* value = table_.find("timeout");
    if (value == nullptr) return;
    if (value->is_string()) {
      const auto parsed = parseDuration(value->get<std::string>(), kTimeouts);
      if (!parsed.ok()) return table_.fail("timeout", parsed.error().message);
      stage_.timeout = *parsed;
      return;
    }
    const double seconds = value->is_number() ? value->get<double>() : 0;
    if (seconds >= kTimeouts.least && seconds <= kTimeouts.most)
      stage_.timeout = seconds;
    else
      table_.fail("timeout", Mistake::value(shown(*value), std::string(kTimeouts.text)));
  }

  const PlanDocument& document_;
  const std::string& pointer_;
  StageContext& context_;
  Diagnostics& diagnostics_;
  TableReader table_;
  const TestSpec* test_ = nullptr;
  Stage stage_;
};

}  // namespace

void describeStage(TableSchema& schema) {
  TableReader table(schema);
  Stage ignored;
  table.name("name", ignored.name);
  table.name("test", ignored.test);
  table.describe("needs", schema::list({{"type", "string"}, {"minLength", 1}}, 0));
  std::string scope;
  readScopeName(table, scope);
  readSweep(table, ignored);
  table.describe("timeout", schema::quantity("s", {kTimeouts.least, kTimeouts.most}));
  readCounts(table, ignored);
  table.refuseUnknown(kStageKeys);
}

Stage readStage(const PlanDocument& document, const std::string& pointer, size_t number,
                StageContext& context, Diagnostics& diagnostics) {
  return StageReader(document, pointer, number, context, diagnostics).read();
}

}  // namespace muster
