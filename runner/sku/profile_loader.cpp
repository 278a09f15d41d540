// SPDX-License-Identifier: Apache-2.0
// Reads SKU profiles from TOML. The format is described in plans/README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "runner/core/text.h"
#include "runner/core/toml/toml_table.h"
#include "runner/core/units.h"
#include "runner/inputs/expectation_sets.h"
#include "runner/inputs/toml_input.h"
#include "runner/metrics/expectation_reader.h"
#include "runner/metrics/expectation_schema.h"
#include "runner/metrics/params.h"
#include "runner/sku/profile.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr uint64_t kMaxProfileBytes = 1ull << 20;
constexpr double kMaxMemory = 1e15;

/// A sentence that has both parts in it.
Mistake mistakeOf(const std::string& sentence, const std::string& found, const std::string& required) {
  Mistake mistake(sentence);
  mistake.found = found;
  mistake.required = required;
  return mistake;
}

/// "`key` must be REQUIRED, found VALUE"
Mistake mustBe(const std::string& key, const std::string& required, const Json& value) {
  const std::string found = printable(dumpJson(value), 80);
  return mistakeOf(fmt::format("`{}` must be {}, found {}", key, required, found), found, required);
}

/// Reads, or describes, one document as a profile.
class Loader {
 public:
  Loader(const TomlDocument& document, const Catalog* catalog, TomlTable& root, ExpectationBudget& budget)
      : document_(document), catalog_(catalog), root_(root), budget_(budget) {}

  Profile load() {
    readHead();
    readMatch();
    readPeaks();
    readFacts();
    readStageParams();
    readExpectations();
    root_.finish();
    return std::move(profile_);
  }

 private:
  void readHead() {
    root_.schemaVersion("profiles");
    root_.require("name");
    if (root_.text("name", profile_.name) && (!isPlainName(profile_.name) || profile_.name == "auto"))
      root_.complain("name",
                     mustBe("name", "letters, digits, '-', '_' and '.', and not \"auto\"", profile_.name));
    root_.describe("name", {{"allOf", {schema::plainName(), {{"not", {{"const", "auto"}}}}}}});
    root_.text("description", profile_.description);
    root_.require("device_count");
    root_.integer("device_count", {0, 1024}, profile_.deviceCount);
  }

  void readMatch() {
    root_.require("match");
    TomlTable match = root_.table("match");
    SkuMatch& m = profile_.match;
    match.texts("pci_ids", m.pciIds);
    match.describe("pci_ids", schema::list({{"type", "string"}, {"pattern", "^[0-9a-f]{4}:[0-9a-f]{4}$"}}));
    match.texts("names", m.names);
    match.texts("vendors", m.vendors);
    match.texts("products", m.products);
    match.quantity("memory_min", "B", {1, kMaxMemory}, m.memoryMin);
    match.quantity("memory_max", "B", {1, kMaxMemory}, m.memoryMax);
    match.require("kind");
    match.choice("kind", {"gpu", "cpu"}, m.kind);
    match.flag("only_by_name", m.onlyByName);
    checkMatch(match);
    match.finish();
  }

  /// A GPU profile that leaves one of the three open would also take in another SKU.
  void checkMatch(TomlTable& match) {
    const SkuMatch& m = profile_.match;
    const std::vector<std::string> ofGpus = {"pci_ids", "names", "memory_min", "memory_max"};
    match.describeRule(schema::when(schema::has("kind", {{"const", "gpu"}}), {{"required", ofGpus}}));
    if (m.kind == "gpu")
      for (const std::string& key : ofGpus) match.requireHere(key.c_str());
    if (m.memoryMax > 0 && m.memoryMax < m.memoryMin)
      match.complain("memory_max",
                     mistakeOf("`memory_max` is below `memory_min`", dumpJson(*match.raw("memory_max")),
                               "at least " + dumpJson(*match.raw("memory_min"))));
    for (const std::string& id : m.pciIds) {
      if (!isPciId(id))
        match.complain(
            "pci_ids",
            mustBe("pci_ids", "vendor:device in lower-case hexadecimal, such as \"10de:2330\"", id));
    }
  }

  static bool isPciId(const std::string& id) {
    if (id.size() != 9 || id[4] != ':') return false;
    return std::all_of(id.begin(), id.end(), [](char c) {
      return c == ':' || std::string_view("0123456789abcdef").find(c) != std::string_view::npos;
    });
  }

  void readPeaks() {
    if (!root_.has("peaks")) return;
    TomlTable peaks = root_.table("peaks");
    peaks.require("source");
    std::string source;
    peaks.text("source", source);
    constexpr Range kRates = {1, 1e21};
    const auto keys = peaks.keys(
        {{"^flops\\.", schema::quantity("FLOP/s", kRates)}, {"bandwidth", schema::quantity("B/s", kRates)}});
    peaks.finish();
    for (const std::string& name : keys) {
      if (name == "source") continue;
      double value = 0;
      const char* unit = name.rfind("flops.", 0) == 0                  ? "FLOP/s"
                         : name.find("bandwidth") != std::string::npos ? "B/s"
                                                                       : nullptr;
      if (unit == nullptr)
        peaks.complain(name, mustBe("peaks", "\"flops.<dtype>\" or a bandwidth", name));
      else if (peaks.quantity(name.c_str(), unit, kRates, value))
        profile_.peaks[name] = value;
    }
    if (!source.empty()) profile_.facts["peaks_source"] = source;
  }

  void readFacts() {
    if (!root_.has("facts")) return;
    TomlTable facts = root_.table("facts");
    for (const std::string& name : facts.keys({{"", schema::text()}}))
      facts.text(name.c_str(), profile_.facts[name]);
  }

  void readStageParams() {
    if (!root_.has("params")) return;
    TomlTable params = root_.table("params");
    if (params.describing()) describeStageParams(params);
    for (const std::string& test : params.keys({})) {
      TomlTable values = params.table(test.c_str());
      const TestSpec* spec = testSpec(params, test);
      for (const std::string& name : values.keys({})) checkParam(values, spec, test, name);
      profile_.stageParams[test] = values.json();
    }
  }

  void describeStageParams(TomlTable& params) {
    for (const auto& [plugin, spec] : catalog_->plugins)
      for (const TestSpec& test : spec.tests) {
        TomlTable values = params.table((plugin + "." + test.name).c_str());
        for (const ParamSpec& param : test.params) values.describe(param.name.c_str(), paramSchema(param));
        values.finish();
      }
    params.finish();
  }

  const TestSpec* testSpec(TomlTable& params, const std::string& qualified) {
    size_t dot = qualified.find('.');
    if (dot == std::string::npos) {
      params.complain(qualified, mustBe("params", "of a test, [params.\"plugin.test\"]", qualified));
      return nullptr;
    }
    if (catalog_ == nullptr) return nullptr;
    const PluginSpec* plugin = catalog_->plugin(qualified.substr(0, dot));
    const TestSpec* test = plugin == nullptr ? nullptr : plugin->test(qualified.substr(dot + 1));
    if (test == nullptr)
      params.complain(qualified,
                      Mistake::name(fmt::format("no plugin offers test \"{}\"", printable(qualified)),
                                    qualified, testNames()));
    return test;
  }

  [[nodiscard]] std::vector<std::string> testNames() const {
    std::vector<std::string> names;
    for (const auto& [pluginName, plugin] : catalog_->plugins)
      for (const TestSpec& test : plugin.tests) names.push_back(pluginName + "." + test.name);
    return names;
  }

  static void checkParam(TomlTable& values, const TestSpec* spec, const std::string& test,
                         const std::string& name) {
    const Json& value = *values.raw(name.c_str());
    const auto isPlain = [](const Json& item) {
      return !item.is_structured() && (!item.is_number_float() || std::isfinite(item.get<double>()));
    };
    if (value.is_array() ? !std::all_of(value.begin(), value.end(), isPlain) : !isPlain(value))
      return values.complain(name, mustBe(name, "a value or a list of values", value));
    if (spec == nullptr) return;
    const ParamSpec* param = spec->param(name);
    if (param == nullptr) {
      std::vector<std::string> known;
      for (const ParamSpec& p : spec->params) known.push_back(p.name);
      values.complain(
          name,
          Mistake::name(fmt::format("test {} has no parameter \"{}\"", test, printable(name)), name, known));
      return;
    }
    auto converted = convertParam(*param, value);
    if (converted.ok()) return;
    values.complain(name, mistakeOf(fmt::format("parameter `{}`: {}", name, converted.error().message),
                                    printable(dumpJson(value), 80), requiredText(*param)));
  }

  void readExpectations() {
    ExpectationFrame frame;
    frame.catalog = catalog_;
    frame.origin = "profile " + profile_.name;
    frame.provenance = true;
    const auto complain = [&](const std::string& pointer, const Mistake& mistake) {
      root_.complainAt(pointer, mistake);
    };
    root_.raw("expectations");
    if (root_.describing()) {
      root_.describe("expectations", expectationSetsSchema());
      root_.describe("expect", expectListSchema(true));
    }
    checkExpectationSets(root_.json(), complain);
    const Json* list = root_.raw("expect");
    if (list == nullptr) return;
    if (!list->is_array())
      return root_.complain("expect",
                            mustBe("expect", "a list of tables ([[expect]]) and names of sets", *list));
    for (const ExpectationTable& item : expandExpectations(root_.json(), "/expect", {{}, "", complain})) {
      const std::string place = item.limitPlace();
      frame.at = fmt::format("{}:{}", document_.fileAt(place), document_.position(place).line);
      std::vector<Expectation> found = readExpectation(
          item.table, frame, budget_,
          [&](const std::string& key, const Mistake& mistake) { complain(item.placeOf(key), mistake); });
      profile_.expectations.insert(profile_.expectations.end(), found.begin(), found.end());
    }
  }

  const TomlDocument& document_;
  const Catalog* catalog_;
  TomlTable& root_;
  ExpectationBudget& budget_;
  Profile profile_;
};

}  // namespace

namespace {

namespace fs = std::filesystem;

constexpr size_t kDeepestBase = 8;

/// A profile, and its document for those that extend it.
struct Parsed {
  Profile profile;
  TomlDocument document;
};

/// What stands in the way of each other: a site's limit replaces the base's. What values are, how they spread
/// and how they compare with peers are questions of their own.
std::string questionOf(const Expectation& e) {
  const bool own = e.kind == CheckKind::kWithin || e.kind == CheckKind::kCvMax ||
                   e.kind == CheckKind::kDropMax || e.kind == CheckKind::kContains ||
                   e.kind == CheckKind::kExcludes;
  std::string text = e.metric + "\n" + e.statistic + "\n" + (own ? checkKindName(e.kind) : "value");
  if (e.kind == CheckKind::kWithin) text += e.peers == PeerGroup::kFleet ? " of fleet" : " of node";
  for (const auto& [label, value] : e.where) text += "\n" + label + "\n" + value;
  for (const auto& [name, value] : e.params) text += "\nwith " + name + "\n" + value;
  return text;
}

std::vector<Expectation> replaced(const std::vector<Expectation>& base, std::vector<Expectation> own) {
  std::set<std::string> asked;
  for (const Expectation& e : own) asked.insert(questionOf(e));
  std::vector<Expectation> all;
  for (const Expectation& e : base)
    if (asked.count(questionOf(e)) == 0) all.push_back(e);
  std::move(own.begin(), own.end(), std::back_inserter(all));
  return all;
}

/// Reads a profile and those that it extends.
class Chain {
 public:
  Chain(const Catalog* catalog, const ProfileFolders& folders, ExpectationBudget& budget,
        std::vector<Complaint>* found)
      : catalog_(catalog), folders_(folders), budget_(budget), found_(found) {}

  Result<Parsed> parse(const std::string& text, const fs::path& path, InputText::From from) {
    MUSTER_TRY(InputText input, InputText::of(text, path, kMaxProfileBytes, from));
    MUSTER_TRY(TomlDocument document, readTomlInput(input));
    std::optional<Parsed> base;
    if (document.root().contains("extends")) {
      MUSTER_TRY(base, baseOf(document, path, input));
      base->document.drop("expect");
      document.drop("extends");
      base->document.drop("name");
      MUSTER_TRY(document, document.over(base->document));
    }
    Complaints complaints(document);
    TomlTable root(document, "", complaints);
    Profile profile = Loader(document, catalog_, root, budget_).load();
    if (found_ != nullptr) *found_ = complaints.sorted();
    MUSTER_CHECK_OK(complaints.status());
    if (base) {
      profile.base = base->profile.name;
      profile.expectations = replaced(base->profile.expectations, std::move(profile.expectations));
    }
    profile.path = path;
    profile.text = input.frozen();
    profile.sha256 = sha256Hex(profile.text);
    for (const IncludedFile& file : input.files()) profile.includes[file.path] = file.sha256;
    return Parsed{std::move(profile), std::move(document)};
  }

 private:
  Result<Parsed> baseOf(const TomlDocument& document, const fs::path& path, InputText& input) {
    const Json& value = document.root()["extends"];
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    const auto fail = [&](const Mistake& mistake) {
      Complaints complaints(document);
      complaints.add("/extends", mistake.within("extends: "));
      if (found_ != nullptr) *found_ = complaints.sorted();
      return Error{ErrorCode::kUsage, "extends: " + mistake.message, document.place("/extends")};
    };
    if (!isPlainName(name))
      return fail(Mistake::value(printable(dumpJson(value), 80), "the name of a profile"));
    names_.push_back(path.stem().string());
    if (contains(names_, name)) {
      names_.push_back(name);
      return fail(mistakeOf(fmt::format("the profile extends itself: {}", join(names_, " -> ")), name,
                            "a profile that is not based on this one"));
    }
    if (names_.size() > kDeepestBase)
      return fail(mistakeOf(fmt::format("profiles extend each other more than {} levels deep", kDeepestBase),
                            fmt::format("{} levels", names_.size()),
                            fmt::format("at most {} levels", kDeepestBase)));
    const std::string file = "extends/" + name + ".toml";
    if (const std::string* text = input.find(file))
      return named(name, parse(*text, name + ".toml", InputText::From::kFrozen), fail);
    if (!input.readsDisk()) return fail(name + " is not part of this text");
    ProfileFolders places = {path.has_parent_path() ? path.parent_path() : fs::path(".")};
    places.insert(places.end(), folders_.begin(), folders_.end());
    std::vector<std::string> known;
    for (const fs::path& place : places) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(place, error))
        if (entry.path().extension() == ".toml") known.push_back(entry.path().stem().string());
      const fs::path candidate = place / (name + ".toml");
      if (!fs::exists(candidate, error)) continue;
      if (isPlanted(candidate))
        return fail(fmt::format("{} belongs to another user than root, you and the owner of its directory",
                                candidate.string()));
      MUSTER_TRY(const std::string text, readFile(candidate, kMaxProfileBytes));
      MUSTER_TRY(Parsed base, named(name, parse(text, candidate, InputText::From::kDisk), fail));
      MUSTER_CHECK_OK(input.hold(file, base.profile.text));
      return base;
    }
    std::erase(known, path.stem().string());
    return fail(Mistake::oneOf(fmt::format("there is no profile \"{}\"", name), name, known));
  }

  template <typename Fail>
  static Result<Parsed> named(const std::string& name, Result<Parsed> base, Fail fail) {
    if (base.ok() && base->profile.name != name)
      return fail(mistakeOf(fmt::format("{}.toml holds the profile \"{}\"", name, base->profile.name),
                            base->profile.name, name));
    return base;
  }

  const Catalog* catalog_;
  const ProfileFolders& folders_;
  ExpectationBudget& budget_;  ///< of all of them
  std::vector<Complaint>* found_;
  std::vector<std::string> names_;  ///< of the profiles that are being read
};

Result<Profile> parse(const std::string& text, const fs::path& path, InputText::From from,
                      const Catalog* catalog, const ProfileFolders& folders, ExpectationBudget& budget,
                      std::vector<Complaint>* found = nullptr) {
  MUSTER_TRY(Parsed parsed, Chain(catalog, folders, budget, found).parse(text, path, from));
  return std::move(parsed.profile);
}

}  // namespace

Result<Profile> loadProfile(const std::filesystem::path& path, const Catalog* catalog,
                            const ProfileFolders& folders, std::vector<Complaint>* found) {
  auto text = readFile(path, kMaxProfileBytes);
  if (!text.ok()) return std::move(text).error().context("reading SKU profile");
  ExpectationBudget budget;
  return parse(*text, path, InputText::From::kDisk, catalog, folders, budget, found);
}

Result<Profile> parseProfile(const std::string& text, const std::filesystem::path& path,
                             const Catalog* catalog, ExpectationBudget* budget) {
  ExpectationBudget own;
  return parse(text, path, InputText::From::kFrozen, catalog, {}, budget == nullptr ? own : *budget);
}

Result<std::map<std::string, Profile>> loadProfiles(const std::filesystem::path& folder,
                                                    const Catalog* catalog, const ProfileFolders& folders,
                                                    std::vector<Complaint>* found) {
  std::error_code failure;
  std::filesystem::directory_iterator entries(folder, failure);
  if (failure)
    return Error{ErrorCode::kNotFound, "cannot read the folder of SKU profiles: " + failure.message(),
                 folder.string()};
  std::map<std::string, Profile> profiles;
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".toml") continue;
    MUSTER_TRY(Profile profile, loadProfile(entry.path(), catalog, folders, found));
    std::string name = profile.name;
    auto [at, isNew] = profiles.emplace(name, std::move(profile));
    if (!isNew)
      return Error{
          ErrorCode::kUsage,
          fmt::format("SKU profile \"{}\" is defined twice, also in {}", name, at->second.path.string()),
          entry.path().string()};
  }
  if (profiles.empty())
    return Error{ErrorCode::kNotFound, "the folder holds no SKU profile (*.toml); reinstall Muster's plans",
                 folder.string()};
  return profiles;
}

Json profileSchema(const Catalog& catalog) {
  const TomlDocument none;
  Json root = describeTable([&](TomlTable& table) {
    ExpectationBudget budget;
    Loader(none, &catalog, table, budget).load();
    table.describe("include", includeSchema());
    table.describe("extends", schema::plainName());
  });
  Json document = schemaDocument("Muster SKU profile", completeUnless(root, {"include", "extends"}));
  document["definitions"] = expectationDefinitions(catalog, true);
  return document;
}

}  // namespace muster
