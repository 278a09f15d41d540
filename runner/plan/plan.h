// SPDX-License-Identifier: Apache-2.0
// The typed plan: what a TOML or Lua plan file says, after validation. One model for both languages.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/mistake.h"
#include "runner/metrics/catalog.h"
#include "runner/metrics/expectation.h"
#include "runner/metrics/states.h"

namespace muster {

/// Where something stands in a plan file. Column 0: unknown (Lua knows lines only).
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
  [[nodiscard]] std::string text() const;  ///< "plan.toml:12:3"
};

/// One error in a plan, or a warning, and its location.
struct Diagnostic {
  SourcePosition at;
  Mistake mistake;
  bool warning = false;
  [[nodiscard]] std::string text() const;
};

/// One combination of a stage's parameters and matrix.
struct Case {
  std::string id;  ///< "gemm[dtype=bf16,size=8192]": the stage's name and the matrix values; just the name
                   ///< without matrix
  Json params;     ///< every parameter of the test, converted (quantities in base units), defaults filled in
  Labels matrix;   ///< the matrix values as text
  std::set<std::string> written;  ///< parameters that the plan wrote itself; the profile may fix the others
};

/// One step of a plan.
struct Stage {
  std::string name;
  std::string plugin;
  std::string test;
  std::vector<std::string> needs;
  Scope scope = Scope::kDevice;
  double timeout = 600;    ///< seconds, for one attempt of all cases
  int repeat = 1;          ///< runs of each case; a verdict rests on all samples
  int attempts = 1;        ///< tries of a failed case
  int ranks = 0;           ///< 0: one per device
  int nodes = 0;           ///< cluster scope: its group has so many nodes, the run's first; 0: all of them
  std::vector<int> sweep;  ///< `nodes` of all stages that the plan wrote as one (0: all); empty: it is one
  bool required = true;    ///< a skip blocks acceptance
  bool allowFlaky = false;
  std::vector<Case> cases;                ///< at least one
  std::vector<Expectation> expectations;  ///< the plan's own; profile and standing ones join at run time
  SourcePosition at;
};

/// The network between nodes as a plan states it, where it is not the profile's reference design. 0: not
/// stated.
struct PlanNetwork {
  int rails = 0;             ///< NICs of a node
  double railBandwidth = 0;  ///< B/s of each, one way
};

constexpr size_t kMostStages = 1000;  ///< of a plan
/// At most so many bytes, with what is included.
constexpr size_t kLargestPlan = size_t{4} << 20;

/// A whole plan. `text` is what was read, with the files that the plan includes: frozen into the run folder,
/// the record and the job's inputs.
struct Plan {
  std::string name;
  std::string description;
  std::string sku = "auto";
  std::string backend = "cuda";
  bool allowUnknownSku = false;
  PlanNetwork network;
  std::vector<Stage> stages;           ///< in file order; needs point backwards or forwards, without cycles
  std::vector<std::string> overrides;  ///< the --set arguments that were applied

  std::filesystem::path path;
  std::string text;
  std::string sha256;                           ///< of text
  std::map<std::string, std::string> includes;  ///< path below the plan's folder -> SHA-256
};

/// `--set stage.param=value` and `--set key=value` (name, sku, backend).
struct Override {
  std::string key;
  std::string value;
};
Result<Override> parseOverride(const std::string& argument);

struct PlanOptions {
  std::vector<Override> overrides;
  std::vector<std::string> skus;  ///< profiles that `sku` may name beside "auto"; empty: any name passes
};

/// Result of loading: a plan if there is no error among the diagnostics.
struct PlanOutcome {
  std::optional<Plan> plan;
  std::vector<Diagnostic> diagnostics;  ///< in file order
};

/// Reads and validates a plan file (.toml or .lua by its extension) against the catalogue. Reports every
/// mistake in one go. The file must be a regular file of at most 4 MiB and valid UTF-8.
PlanOutcome loadPlan(const std::filesystem::path& path, const Catalog& catalog, const PlanOptions& options);

/// The same from text, `path` only names it; for tests, fuzzers and resumed runs. Only a frozen text includes
/// others: nothing is read from disk.
PlanOutcome parsePlan(const std::string& text, const std::filesystem::path& path, const Catalog& catalog,
                      const PlanOptions& options);

/// A plan's file with what it includes, as the record of a run holds it: its SHA-256 is the plan's.
Result<std::string> frozenPlanText(const std::filesystem::path& path);

/// The JSON Schema of TOML plans, with the tests, parameters and metrics of the catalog, and these profiles
/// for `sku`.
Json planSchema(const Catalog& catalog, const std::vector<std::string>& skus);

/// The order in which stages run: needs first, else file order.
std::vector<size_t> executionOrder(const Plan& plan);

}  // namespace muster
