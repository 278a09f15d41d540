// SPDX-License-Identifier: Apache-2.0
// `muster init`: a plan and a site file for this machine, ready to run and to edit.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "runner/app/input/plan_input.h"
#include "runner/app/prepare/pci_devices.h"
#include "runner/app/prepare/prepare_options.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/sku/profile_writer.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// A stage of the plan that is written.
struct Draft {
  const char* name;
  const char* test;
  const char* lines;                   ///< besides name and test
  std::vector<std::string> sets = {};  ///< its `expect`
};

std::vector<Draft> draftsFor(bool host, int devices) {
  if (host)
    return {{"health", "env.health", "scope = \"node\"\nranks = 1"},
            {"memory", "memory.bandwidth", ""},
            {"gemm", "compute.gemm", "params = { size = 1024, dtype = \"f32\" }"}};
  std::vector<Draft> drafts = {
      {"health", "env.health", "scope = \"node\"\nranks = 1"},
      {"memory", "memory.bandwidth", "", {"peers"}},
      {"gemm", "compute.gemm", "params = { size = 8192, dtype = \"bf16\" }", {"peers"}},
      {"sustained",
       "compute.sustained",
       "needs = [\"gemm\"]\ntimeout = \"15m\"\nparams = { size = 8192, dtype = \"bf16\", duration = \"10m\" "
       "}",
       {"peers"}}};
  if (devices == 1)
    for (Draft& draft : drafts) draft.sets.clear();
  return drafts;
}

constexpr const char* kPeers =
    "[expectations.peers]\n"
    "metric = [\"memory.bandwidth\", \"compute.gemm_throughput\", \"compute.sustained_throughput\"]\n"
    "within = \"10%\"\nof = \"node\"\nsource = \"a device 10% below its peers is a fault\"\n";

/// "compute.gemm_throughput{dtype=bf16}=620 TFLOP/s" of --min or --max.
struct SiteLimit {
  std::string metric;
  std::string where;  ///< as TOML: "dtype = \"bf16\""
  std::string value;
  const char* bound;
};

Error badLimit(const char* bound, const std::string& text, const std::string& why) {
  return {
      ErrorCode::kUsage,
      fmt::format("--{} \"{}\": {}; expected METRIC=VALUE or METRIC{{LABEL=VALUE,...}}=VALUE, for example "
                  "'compute.gemm_throughput{{dtype=bf16}}=620 TFLOP/s'",
                  bound, printable(text, 200), why),
      ""};
}

Result<SiteLimit> parseLimit(const std::string& text, const char* bound) {
  SiteLimit limit{"", "", "", bound};
  const size_t brace = text.find('{'), equals = text.find('=');
  const bool labelled = brace < equals;
  const size_t end = labelled ? text.find("}=") : equals;
  if (end == std::string::npos) return badLimit(bound, text, "no value was given");
  limit.metric = std::string(trim(text.substr(0, labelled ? brace : end)));
  limit.value = std::string(trim(text.substr(end + (labelled ? 2 : 1))));
  std::vector<std::string> labels;
  if (labelled)
    for (const std::string& part : split(text.substr(brace + 1, end - brace - 1), ',')) {
      const size_t at = part.find('=');
      const std::string name(trim(part.substr(0, at)));
      if (at == std::string::npos || !isPlainName(name)) return badLimit(bound, text, "a label has no value");
      labels.push_back(
          fmt::format("{} = {}", tomlText(name), tomlText(std::string(trim(part.substr(at + 1))))));
    }
  limit.where = join(labels, ", ");
  for (const std::string& part : {limit.metric, limit.where, limit.value})
    if (printable(part, part.size() + 1) != part) return badLimit(bound, text, "it holds control characters");
  if (limit.metric.empty() || limit.value.empty()) return badLimit(bound, text, "metric or value is missing");
  return limit;
}

/// The stage whose test reports the metric.
Result<Draft*> draftOf(const SiteLimit& limit, std::vector<Draft>& drafts, const Catalog& catalog) {
  std::vector<std::string> known;
  for (Draft& draft : drafts) {
    const std::string test = draft.test, plugin = test.substr(0, test.find('.'));
    for (const MetricSpec& metric : catalog.plugin(plugin)->test(test.substr(plugin.size() + 1))->metrics) {
      known.push_back(plugin + "." + metric.name);
      if (known.back() == limit.metric) return &draft;
    }
  }
  return Error{ErrorCode::kUsage,
               fmt::format("--{}: no stage of this plan measures \"{}\"{}; write the stage by hand, or see "
                           "`muster plugins`",
                           limit.bound, printable(limit.metric, 80), didYouMean(limit.metric, known)),
               ""};
}

/// The limits of each stage as a set of its own, one line each; the drafts use them.
Result<std::string> siteText(const InitOptions& options, std::vector<Draft>& drafts, const Catalog& catalog) {
  std::map<std::string, std::vector<std::string>> sets;
  for (const auto& [texts, bound] : {std::pair(&options.min, "min"), std::pair(&options.max, "max")})
    for (const std::string& text : *texts) {
      MUSTER_TRY(const SiteLimit limit, parseLimit(text, bound));
      MUSTER_TRY(Draft* const draft, draftOf(limit, drafts, catalog));
      const std::string set = std::string("contract-") + draft->name;
      if (!contains(draft->sets, set)) draft->sets.push_back(set);
      sets[set].push_back(fmt::format("{{ metric = {}, {}{} = {}, source = {} }}", tomlText(limit.metric),
                                      limit.where.empty() ? "" : "where = { " + limit.where + " }, ", bound,
                                      tomlText(limit.value), tomlText(options.source)));
    }
  std::string text =
      "# Limits of this site, beside those of the SKU profile. Format: share/muster/plans/README.md\n";
  const bool peers = std::any_of(drafts.begin(), drafts.end(),
                                 [](const Draft& draft) { return contains(draft.sets, "peers"); });
  if (!sets.empty()) text += "[expectations]\n";
  for (const auto& [name, limits] : sets) {
    const bool one = limits.size() == 1;
    text += fmt::format("{} = [{}{}{}]\n", name, one ? "" : "\n  ", join(limits, ",\n  "), one ? "" : ",\n");
  }
  return text + (peers ? kPeers : "");
}

std::string draftPlan(const InitOptions& options, const Profile& profile, bool host,
                      const std::vector<Draft>& drafts) {
  std::string text =
      fmt::format("schema = 1\nname = {}\nsku = {}\n{}include = [\"site.toml\"]\n", tomlText(options.name),
                  tomlText(profile.name), host ? "backend = \"host\"\n" : "");
  for (const Draft& draft : drafts) {
    text += fmt::format("\n[[stage]]\nname = \"{}\"\ntest = \"{}\"\n", draft.name, draft.test);
    if (*draft.lines != '\0') text += draft.lines + std::string("\n");
    std::vector<std::string> sets;
    for (const std::string& set : draft.sets) sets.push_back(tomlText(set));
    if (!sets.empty()) text += fmt::format("expect = [{}]\n", join(sets, ", "));
  }
  return text;
}

/// The profile that --sku names, else the one GPU model whose PCI id this machine has.
Result<const Profile*> chooseProfile(const std::string& sku, const std::map<std::string, Profile>& profiles) {
  if (!sku.empty()) {
    MUSTER_CHECK_OK(checkSkuName(sku, profiles));
    const auto named = profiles.find(sku);
    if (named != profiles.end()) return &named->second;
    return Error{ErrorCode::kUsage, "--sku auto is what `muster init` does without --sku", ""};
  }
  const char* sysfs = std::getenv("MUSTER_SYSFS");  // of the host, in a container
  const std::map<std::string, int> present =
      pciDevices(fs::path(sysfs == nullptr ? "/sys" : sysfs) / "bus/pci/devices");
  std::vector<const Profile*> found;
  std::vector<std::string> names;
  for (const auto& [name, profile] : profiles)
    if (!profile.match.onlyByName &&
        std::any_of(profile.match.pciIds.begin(), profile.match.pciIds.end(),
                    [&](const std::string& id) { return present.count(id) > 0; })) {
      found.push_back(&profile);
      names.push_back(name);
    }
  if (found.size() == 1) return found.front();
  return Error{
      ErrorCode::kUsage,
      found.empty()
          ? "no GPU of a known model was found; name the profile with --sku (`muster skus` lists "
            "them; --sku host tests the CPU)"
          : fmt::format("several profiles fit this machine: {}; choose one with --sku", join(names, ", ")),
      ""};
}

bool hasProgram(const char* name) {
  const char* path = std::getenv("PATH");
  std::error_code error;
  for (const std::string& folder : split(path == nullptr ? "" : path, ':'))
    if (!folder.empty() && fs::exists(fs::path(folder) / name, error)) return true;
  return false;
}

/// Both or none: a plan whose site file is missing would be another plan.
Status writeFiles(const fs::path& folder, const std::string& plan, const std::string& site) {
  for (const char* name : {"plan.toml", "site.toml"}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder / name, error)))
      return Error{ErrorCode::kUsage, "is there already; choose another directory, or edit it",
                   (folder / name).string()};
  }
  MUSTER_CHECK_OK(writeFileAtomically(folder / "site.toml", site, Durable::kNo));
  Status written = writeFileAtomically(folder / "plan.toml", plan, Durable::kNo);
  std::error_code error;
  if (!written.ok()) fs::remove(folder / "site.toml", error);
  return written;
}

void printNextCommands(const fs::path& plan) {
  const std::string file = plan.string();
  printText("wrote {} and site.toml beside it\n", file);
  printText("next: {}\n", shellCommand({"muster", "explain", file}));
  if (hasProgram("sbatch"))
    printText("      {}\n",
              shellCommand({"muster", "slurm", "submit", file, "--nodes", "all", "--out", "DIR"}));
  else
    printText("      {}\n", shellCommand({"muster", "run", file}));
}

}  // namespace

Result<int> initCommand(const InitOptions& options) {
  if (!isPlainName(options.name))
    return Error{
        ErrorCode::kUsage,
        fmt::format("--name \"{}\": expected letters, digits, '-', '_' and '.'", printable(options.name, 80)),
        ""};
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, {}, {}));
  MUSTER_TRY(const auto profiles, allProfiles(tree, options.skuFolders, &catalog));
  MUSTER_TRY(const Profile* const profile, chooseProfile(options.sku, profiles));
  const bool host = profile->match.kind == "cpu";
  std::vector<Draft> drafts = draftsFor(host, profile->deviceCount);
  MUSTER_TRY(const std::string site, siteText(options, drafts, catalog));
  const std::string plan = draftPlan(options, *profile, host, drafts);
  MUSTER_TRY(const fs::path folder, makeOutputFolder(options.folder, "DIR"));
  MUSTER_CHECK_OK(writeFiles(folder, plan, site));
  // A limit with a unit or label that its metric lacks: what cannot be run must not be left.
  MUSTER_TRY(const PlanOptions planOptions, planOptionsFrom({}, profiles));
  if (auto sound = requirePlan(loadPlan(folder / "plan.toml", catalog, planOptions)); !sound.ok()) {
    std::error_code error;
    for (const char* name : {"plan.toml", "site.toml"}) fs::remove(folder / name, error);
    return std::move(sound).error();
  }
  printNextCommands(options.folder / "plan.toml");
  return kExitAccepted;
}

}  // namespace muster
