// SPDX-License-Identifier: Apache-2.0
// Loading a plan: the file, its language, the command line's overrides, validation.
#include "runner/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/encoding.h"
#include "runner/core/text.h"
#include "runner/core/toml/toml_document.h"
#include "runner/core/units.h"
#include "runner/plan/loader.h"
#include "runner/plan/overrides.h"
#include "runner/plan/validate.h"
#include "runner/system/files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

PlanOutcome refused(SourcePosition at, std::string message) {
  return {std::nullopt, {{std::move(at), std::move(message), false}}};
}

/// Names of the plans that lie beside a file that is missing.
std::vector<std::string> neighbours(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, error), end; !error && it != end && names.size() < 1000;
       it.increment(error))
    if (it->path().extension() == ".toml" || it->path().extension() == ".lua")
      names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Where a link leads whose end cannot be read.
std::string linkAdvice(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? "" : fmt::format("; it is a link to {}", printable(target.string(), 200));
}

/// Why `text` is no text at all, if it is not.
std::optional<Diagnostic> notText(const std::string& file, const std::string& text) {
  const auto fault = findEncodingFault(text, file);
  if (!fault) return std::nullopt;
  const TextPosition at = positionAt(text, fault->offset);
  return Diagnostic{{file, at.line, at.column}, fault->message, false};
}

/// `test = "compute.gemm"` is short for plugin and test.
void splitTestNames(PlanDocument& document) {
  const auto stages = document.root.find("stage");
  if (stages == document.root.end() || !stages->is_array()) return;
  for (size_t i = 0; i < stages->size(); ++i) {
    Json& stage = (*stages)[i];
    if (!stage.is_object() || stage.contains("plugin") || !stage.contains("test") ||
        !stage["test"].is_string())
      continue;
    const auto name = stage["test"].get<std::string>();
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0) continue;
    stage["plugin"] = name.substr(0, dot);
    stage["test"] = name.substr(dot + 1);
    const std::string pointer = pointerTo("/stage", std::to_string(i));
    document.places[pointerTo(pointer, "plugin")] = document.at(pointerTo(pointer, "test"));
  }
}

PlanOutcome parse(const std::string& text, const fs::path& path, InputText::From from, const Catalog& catalog,
                  const PlanOptions& options) {
  const std::string file = path.string();
  if (path.extension() != ".toml" && path.extension() != ".lua")
    return refused({file, 0, 0}, fmt::format("found the extension \"{}\"; expected a plan, .toml or .lua",
                                             printable(path.extension().string(), 40)));
  if (text.size() > kLargestPlan)
    return refused({file, 0, 0}, fmt::format("found {} bytes; expected a plan of at most {}", text.size(),
                                             formatQuantity(static_cast<double>(kLargestPlan), "B")));
  if (auto problem = notText(file, text)) return {std::nullopt, {std::move(*problem)}};
  auto input = InputText::of(text, path, kLargestPlan, from);
  if (!input.ok()) return refused({file, 0, 0}, input.error().message);

  Diagnostics diagnostics;
  PlanOutcome outcome;
  auto document =
      path.extension() == ".toml" ? loadToml(*input, diagnostics) : loadLua(*input, LuaLimits{}, diagnostics);
  if (document) {
    splitTestNames(*document);
    std::vector<std::string> applied = applyOverrides(options.overrides, catalog, *document, diagnostics);
    Plan plan = validatePlan(*document, catalog, options.skus, diagnostics);
    plan.overrides = std::move(applied);
    plan.path = path;
    plan.text = input->frozen();
    plan.sha256 = sha256Hex(plan.text);
    for (const IncludedFile& included : input->files()) plan.includes[included.path] = included.sha256;
    if (!diagnostics.hasErrors()) outcome.plan = std::move(plan);
  }
  outcome.diagnostics = diagnostics.sorted();
  return outcome;
}

}  // namespace

PlanOutcome parsePlan(const std::string& text, const fs::path& path, const Catalog& catalog,
                      const PlanOptions& options) {
  return parse(text, path, InputText::From::kFrozen, catalog, options);
}

Result<std::string> frozenPlanText(const fs::path& path) {
  MUSTER_TRY(const std::string text, readFile(path, kLargestPlan));
  MUSTER_TRY(InputText input, InputText::of(text, path, kLargestPlan, InputText::From::kDisk));
  if (path.extension() == ".lua") {
    MUSTER_CHECK_OK(readLuaIncludes(input));
  } else {
    MUSTER_TRY(const TomlDocument document, readTomlInput(input));
  }
  return input.frozen();
}

PlanOutcome loadPlan(const fs::path& path, const Catalog& catalog, const PlanOptions& options) {
  if (path.empty()) return refused({"plan", 0, 0}, "found an empty name; expected a plan, .toml or .lua");
  if (path == "-")
    return refused(
        {"-", 0, 0},
        "expected a plan file, .toml or .lua; only `muster check` reads a plan from standard input");
  auto text = readFile(path, kLargestPlan);
  if (text.ok()) return parse(*text, path, InputText::From::kDisk, catalog, options);
  std::string message = text.error().message;
  std::error_code error;
  if (fs::is_symlink(path, error))
    message += linkAdvice(path);
  else if (text.error().code == ErrorCode::kNotFound)
    message += didYouMean(path.filename().string(), neighbours(path));
  return refused({path.string(), 0, 0}, message);
}

}  // namespace muster
