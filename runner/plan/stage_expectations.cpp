// SPDX-License-Identifier: Apache-2.0
// See stage_expectations.h. The syntax of one expectation is shared with the profiles:
// runner/metrics/expectation_reader.h.
#include "runner/plan/stage_expectations.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/inputs/expectation_sets.h"
#include "runner/metrics/expectation_reader.h"
#include "runner/plan/cases.h"
#include "runner/plan/node_groups.h"

namespace muster {
namespace {

class ExpectReader {
 public:
  ExpectReader(const PlanDocument& document, StageContext& context, const TestSpec* test, Stage& stage,
               Diagnostics& diagnostics)
      : document_(document),
        budget_(context.expectations),
        catalog_(context.catalog),
        backend_(context.backend),
        test_(test),
        stage_(stage),
        diagnostics_(diagnostics) {}

  /// Reads what one item of the list asks for, of a set or by itself. False where the stage has too many
  /// then.
  bool read(const ExpectationTable& item) {
    item_ = &item;
    what_ = fmt::format("stage \"{}\", expect {}", stage_.name, item.number);
    ExpectationFrame frame;
    frame.catalog = &catalog_;
    frame.origin = "plan";
    frame.at = place();
    frame.predicates = document_.lua;
    frame.copies = std::max<size_t>(stage_.sweep.size(), 1);
    for (Expectation& expectation :
         readExpectation(item.table, frame, budget_,
                         [&](const std::string&key, const Mistake&mistake) { complain(key, mistake); })) {
      for (auto& [label, value] : expectation.where) settleLabel(expectation, label, value);
      stage_.expectations.push_back(std::move(expectation));
    }
    if (item.table.contains("metric") && item.table["metric"].is_string())
      checkMetric(item.table["metric"].get<std::string>());
    checkPredicate(item.table);
    if (stage_.expectations.size() <= kMostExpectations) return true;
    complain("", fmt::format(
                     "found {} expectations, one for each value in `where`; expected at most {} in a stage",
                     stage_.expectations.size(), kMostExpectations));
    return false;
  }

 private:
  void complain(const std::string& key, const Mistake& mistake) {
    diagnostics_.error(document_.at(item_->placeOf(key)), mistake.within(what_ + ": "));
  }

  /// file:line of the limit, as verdicts quote it.
  [[nodiscard]] std::string place() const {
    SourcePosition at = document_.at(item_->limitPlace());
    at.column = 0;
    return at.text();
  }

  void checkPredicate(const Json& table) {
    if (!document_.lua || !table.contains("predicate")) return;
    if (document_.functions.count(item_->placeOf("predicate")) > 0) return;
    complain("predicate",
             fmt::format("predicate: found {}; expected a function, for example function(m) return m.cv < "
                         "0.02 end",
                         shown(table["predicate"])));
  }

  /// The metric must be one that this stage's test reports on the plan's backend.
  void checkMetric(const std::string& qualified) {
    if (test_ == nullptr || catalog_.metric(qualified) == nullptr) return;  // told elsewhere
    std::vector<std::string> measured;
    const MetricSpec* spec = nullptr;
    for (const MetricSpec& metric : test_->metrics) {
      measured.push_back(stage_.plugin + "." + metric.name);
      if (measured.back() == qualified) spec = &metric;
    }
    if (spec == nullptr)
      return complain("metric",
                      Mistake::name(fmt::format("metric: \"{}\" is not measured by {}.{}",
                                                printable(qualified, 80), stage_.plugin, test_->name),
                                    qualified, measured)
                          .then("; it measures " + (measured.empty() ? "nothing" : join(measured, ", "))));
    const bool cudaToCome = backend_ == "cuda";  // simulated runs of a GPU plan report what `sim` reports
    const auto& on = spec->backends;
    if (!on.empty() && !cudaToCome && std::find(on.begin(), on.end(), backend_) == on.end())
      complain("metric", fmt::format("metric: \"{}\" is not measured on backend \"{}\"; only on {}",
                                     qualified, backend_, join(on, ", ")));
  }

  /// A label that is a parameter must stand for at least one case, else the expectation would never be
  /// judged. The value is written as that case writes it. Parameters that a profile may still fix are left to
  /// the run.
  void settleLabel(const Expectation& expectation, const std::string& label, std::string& value) {
    if (label == kNodesLabel && !canHaveNodes(stage_, value))
      return complain("where.nodes",
                      fmt::format("where: no group of this stage has nodes = \"{}\", so `{}` would "
                                  "never be judged; see its nodes",
                                  printable(value, 80), expectation.metric));
    const ParamSpec* spec = test_ == nullptr ? nullptr : test_->param(label);
    if (spec == nullptr || spec->type == ParamType::kList || stage_.cases.empty()) return;
    const auto wanted = convertParam(*spec, asWritten(*spec, value));
    std::vector<std::string> present;
    for (const Case& c : stage_.cases) {
      if (c.written.count(label) == 0) return;
      const auto inMatrix = c.matrix.find(label);
      const std::string text = inMatrix == c.matrix.end() ? paramText(c.params[label]) : inMatrix->second;
      if (text == value || (wanted.ok() && c.params[label] == *wanted)) {
        value = text;
        return;
      }
      if (present.size() < 8 && std::find(present.begin(), present.end(), text) == present.end())
        present.push_back(text);
    }
    complain("where." + label,
             fmt::format(
                 "where: no case of this stage has {} = \"{}\", so `{}` would never be judged; cases have {}",
                 label, printable(value, 80), expectation.metric, join(present, ", ")));
  }

  /// `where` holds texts; a number or truth value is meant as the parameter's own type.
  static Json asWritten(const ParamSpec& spec, const std::string& text) {
    if (spec.type == ParamType::kInt || spec.type == ParamType::kFloat || spec.type == ParamType::kBool) {
      auto parsed = parseJson(text);
      if (parsed.ok()) return *parsed;
    }
    return text;
  }

  const PlanDocument& document_;
  ExpectationBudget& budget_;
  const Catalog& catalog_;
  const std::string& backend_;
  const TestSpec* test_;
  Stage& stage_;
  Diagnostics& diagnostics_;
  const ExpectationTable* item_ = nullptr;
  std::string what_;
};

}  // namespace

void readStageExpectations(const PlanDocument& document, const std::string& pointer, StageContext& context,
                           const TestSpec* test, Stage& stage, Diagnostics& diagnostics) {
  TableReader table(document, pointer, fmt::format("stage \"{}\"", stage.name), diagnostics);
  const Json* list = table.list("expect", "a list of tables: [[stage.expect]]");
  if (list == nullptr) return;
  if (list->size() > kMostExpectations)
    return table.fail(
        "expect", fmt::format("found {} expectations; expected at most {}", list->size(), kMostExpectations));
  ExpectationUser user;
  user.complain = [&](const std::string& at, const Mistake& mistake) {
    diagnostics.error(document.at(at), mistake.within(fmt::format("stage \"{}\": expect: ", stage.name)));
  };
  if (test != nullptr) {
    user.name = stage.plugin + "." + test->name;
    user.measures = [&](const std::string& metric) {
      return metric.starts_with(stage.plugin + ".") &&
             test->metric(std::string_view(metric).substr(stage.plugin.size() + 1)) != nullptr;
    };
  }
  const auto items = expandExpectations(document.root, pointerTo(pointer, "expect"), user);
  ExpectReader reader(document, context, test, stage, diagnostics);
  for (const ExpectationTable& item : items) {
    if (diagnostics.full() || !reader.read(item)) return;
  }
}

}  // namespace muster
