// SPDX-License-Identifier: Apache-2.0
// The JSON Schemas of plans, profiles, scenarios, waivers and requirements say what the readers of these
// files say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "kernels/sim/scenario/scenario.h"
#include "reports/acceptance/requirements.h"
#include "runner/core/json_schema.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/inputs/toml_input.h"
#include "runner/judge/waivers.h"
#include "tests/plans/shipped_catalog.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Plain = nlohmann::json;  // the adapter knows no ordered_json

class Schema {
 public:
  explicit Schema(const Json& json) : text_(Plain::parse(json.dump())) {
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text_), schema_);
  }
  [[nodiscard]] bool accepts(const Json& document) const {
    const Plain plain = Plain::parse(document.dump());
    valijson::Validator validator;
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(plain), nullptr);
  }

 private:
  Plain text_;
  valijson::Schema schema_;
};

/// A value as TOML. Tables stand inline.
std::string toml(const Json& value) {
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& item : value) parts.push_back(toml(item));
    return "[" + join(parts, ", ") + "]";
  }
  if (!value.is_object()) return value.dump();
  for (const auto& [key, item] : value.items()) parts.push_back(Json(key).dump() + " = " + toml(item));
  return "{" + join(parts, ", ") + "}";
}

std::string tomlFile(const Json& document) {
  std::string text;
  for (const auto& [key, value] : document.items()) text += Json(key).dump() + " = " + toml(value) + "\n";
  return text;
}

/// One kind of file: its schema, and what its reader says of a document ("" if nothing).
struct Kind {
  std::string name;
  Json schema;
  std::function<std::string(const std::string& text)> problems;
};

std::string planProblems(const std::string& text) {
  std::string all;
  const PlanOutcome outcome =
      parsePlan(text, "p.toml", testing::shippedCatalog(), {{}, testing::shippedSkus()});
  for (const Diagnostic& diagnostic : outcome.diagnostics)
    if (!diagnostic.warning) all += diagnostic.text() + "\n";
  return all;
}

template <typename T>
std::string problemsOf(const Result<T>& result) {
  return result.ok() ? "" : result.error().text();
}

const Kind& kind(const std::string& name) {
  static const std::vector<Kind> kKinds = {
      {"plan", planSchema(testing::shippedCatalog(), testing::shippedSkus()), planProblems},
      {"profile", profileSchema(testing::shippedCatalog()),
       [](const std::string& text) {
         return problemsOf(parseProfile(text, "p.toml", &testing::shippedCatalog()));
       }},
      {"scenario", sim::scenarioSchema(),
       [](const std::string& text) { return problemsOf(sim::parseScenario(text, "s.toml")); }},
      {"waivers", waiversSchema(),
       [](const std::string& text) { return problemsOf(parseWaivers(text, "w.toml", 0)); }},
      {"requirements", requirementsSchema(),
       [](const std::string& text) { return problemsOf(parseRequirements(text, "r.toml")); }}};
  for (const Kind& each : kKinds)
    if (each.name == name) return each;
  throw std::logic_error(name);
}

Schema& schemaOf(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Schema>> made;
  auto& schema = made[name];
  if (!schema) schema = std::make_unique<Schema>(kind(name).schema);
  return *schema;
}

struct File {
  fs::path path;
  std::string kind;
};

std::vector<File> shippedFiles() {
  std::vector<File> files;
  for (const auto& [folder, name] : {std::pair{"plans", "plan"},
                                     {"plans/skus", "profile"},
                                     {"plans/scenarios", "scenario"},
                                     {"plans/requirements", "requirements"}})
    for (const auto& entry : fs::directory_iterator(testing::sourceDir() / folder))
      if (entry.path().extension() == ".toml") files.push_back({entry.path(), name});
  return files;
}

Json documentOf(const std::string& text) {
  const auto document = TomlDocument::parse(text, "f.toml");
  EXPECT_TRUE(document.ok()) << document.error().text();
  return document.ok() ? document->root() : Json();
}

/// The document with what it includes.
Json wholeDocument(const fs::path& path) {
  auto input = InputText::of(testing::readWhole(path), path, kLargestPlan, InputText::From::kDisk);
  auto document = readTomlInput(*input);
  EXPECT_TRUE(document.ok()) << document.error().text();
  return document->root();
}

const char* const kWaivers = R"(schema = 1
[[waiver]]
stage = "gemm"
metric = "compute.gemm_throughput"
where = { dtype = "bf16" }
node = "n17"
device = "gpu3"
serial = "1650523012345"
reason = "riser on order"
approver = "J. Doe"
expires = "2026-12-31"
)";

/// Every kind of fault, and keys that no shipped scenario has.
const char* const kScenario = R"(
[climate]
idle_temperature = 30
load_clock = "1755 MHz"
[[fault]]
kind = "slow"
device = 1
factor = 0.5
from = "1s"
until = "2s"
ops = ["gemm", "memory"]
[[fault]]
kind = "throttle"
device = 1
factor = "50%"
reason = "power_cap"
[[fault]]
kind = "ecc"
device = 1
corrected = 4
memory = "sram"
remap_pending = true
[[fault]]
kind = "corruption"
device = 1
every = 3
offset = "4 KiB"
bit = 7
[[fault]]
kind = "hang"
device = 0
at = 3
[[fault]]
kind = "crash"
device = 0
[[fault]]
kind = "missing"
device = 0
[[fault]]
kind = "xid"
device = 0
xid = 79
[[fault]]
kind = "fabric"
device = 0
mask = 1
[[fault]]
kind = "slow_link"
device = 0
peer_device = 1
factor = 0.2
[[fault]]
kind = "slow_link"
node = 0
peer_node = 1
factor = 0.2
[[fault]]
kind = "slow_nic"
node = 0
rail = 1
factor = 0.2
[[fault]]
kind = "flapping_nic"
node = 0
period = "1s"
down = "100ms"
[[fault]]
kind = "slow_uplink"
leaf = 0
factor = 0.5
[[fault]]
kind = "sxid"
node = 0
sxid = 12028
fatal = true
[[rdma.fault]]
kind = "slow"
hca = 0
factor = 0.5
[[rdma.fault]]
kind = "link_down"
hca = 0
from = 1
until = 2
[[rdma.fault]]
kind = "errors"
hca = 1
at = "1s"
symbol_errors = 3
[[rdma.fault]]
kind = "pcie"
hca = 1
lanes = 8
[[storage.fault]]
kind = "slow"
factor = 0.5
from = 1
until = 2
[[storage.fault]]
kind = "apart"
node = 1
)";

/// A plan whose only stage runs `test` with these parameters.
Json planOf(const std::string& plugin, const TestSpec& test, const Json& params) {
  const bool onHost = contains(test.backends, "host");
  return {{"schema", 1},
          {"name", "p"},
          {"backend", onHost ? "host" : "cuda"},
          {"stage", Json::array({{{"name", "s"},
                                  {"test", plugin + "." + test.name},
                                  {"scope", test.scopes.front()},
                                  {"params", params}}})}};
}

struct Document {
  std::string name;
  std::string kind;
  Json json;
};

std::vector<Document> validDocuments() {
  std::vector<Document> all;
  for (const File& file : shippedFiles())
    all.push_back({file.path.filename(), file.kind, wholeDocument(file.path)});
  all.push_back({"waivers", "waivers", documentOf(kWaivers)});
  const auto whole = [](const char* name) {
    return wholeDocument(testing::sourceDir() / "plans/scenarios" / name);
  };
  Json scenario = whole("h100x8-hca-healthy.toml");
  scenario.merge_patch(documentOf(kScenario));
  scenario["network"] = whole("h100x8-cluster-healthy.toml")["network"];
  all.push_back({"every fault", "scenario", scenario});
  for (const auto& [name, plugin] : testing::shippedCatalog().plugins)
    for (const TestSpec& test : plugin.tests) {
      Json params = Json::object();
      for (const ParamSpec& param : test.params) params[param.name] = param.defaultValue;
      all.push_back({name + "." + test.name, "plan", planOf(name, test, params)});
    }
  return all;
}

/// The pointers of every value below `json`.
void collectPointers(const Json& json, const std::string& at, std::vector<std::string>& out) {
  if (!json.is_structured()) return;
  size_t index = 0;
  for (const auto& item : json.items()) {
    const std::string child = pointerTo(at, json.is_array() ? std::to_string(index++) : item.key());
    out.push_back(child);
    collectPointers(item.value(), child, out);
  }
}

const char* const kChanges[] = {"renamed", "deleted", "retyped", "out of range", "blank"};

/// The document with one change at `pointer`; null where the change means nothing there.
Json changed(Json json, const std::string& pointer, const std::string& change) {
  const Json::json_pointer at(pointer);
  Json& parent = json.at(at.parent_pointer());
  Json& value = json.at(at);
  if (change == "renamed" && parent.is_object()) {
    parent[at.back() + "_"] = Json(value);
    parent.erase(at.back());
    return json;
  }
  if (change == "deleted" && parent.is_object()) {
    parent.erase(at.back());
    return json;
  }
  if (change == "retyped") {
    value = value.is_string() || value.is_number() ? Json::array({Json::object()})
            : value.is_boolean()                   ? Json(3)
            : value.is_array()                     ? Json(true)
                                                   : Json("x");
    return json;
  }
  if (change == "out of range" && value.is_number()) {
    value = value.get<double>() < 0 ? 1e300 : -1e300;
    return json;
  }
  if (change == "blank" && value.is_string()) {
    value = " ";
    return json;
  }
  return nullptr;
}

/// What a schema cannot say; plans/schemas/README.md explains each. Parts of the readers' messages.
const char* const kBeyondSchemas[] = {
    // names that another part of the file must have
    "which is not a stage of this plan", "no set \"", "uses itself", "the name is already used",
    // values that depend on other values
    "would never be judged", "no metric of this set is measured", "a waiver of", "is not measured on backend",
    "does not run on backend", "come together", "must be later than", "is below `memory_min`",
    "`down` must be", "needs `nodes_per_leaf`", "comes with both", "a link has two ends",
    "a pcie fault needs", "an ecc fault needs",
    // one number of a text with a unit
    "can never fail", "`min = "};

bool beyondSchemas(const std::string& problems) {
  for (const std::string& line : split(std::string(trim(problems)), '\n')) {
    const auto is = [&](const char* part) { return line.find(part) != std::string::npos; };
    if (std::none_of(std::begin(kBeyondSchemas), std::end(kBeyondSchemas), is)) return false;
  }
  return true;
}

/// What a set leaves out may be given where it is used, and the other way round.
bool isPartOfASet(const Json& json, const std::string& pointer) {
  if (pointer.starts_with("/expectations/")) return true;
  Json::json_pointer above(pointer);
  do {
    above = above.parent_pointer();
    if (json.at(above).is_object() && json.at(above).contains("set")) return true;
  } while (!above.empty());
  return false;
}

TEST(Schemas, AcceptEveryShippedFile) {
  ASSERT_GE(shippedFiles().size(), 30u);
  for (const File& file : shippedFiles())
    EXPECT_TRUE(schemaOf(file.kind).accepts(documentOf(testing::readWhole(file.path)))) << file.path;
}

TEST(Schemas, AcceptWhatTheReadersAccept) {
  for (const Document& document : validDocuments()) {
    EXPECT_EQ(kind(document.kind).problems(tomlFile(document.json)), "") << document.name;
    EXPECT_TRUE(schemaOf(document.kind).accepts(document.json)) << document.name;
  }
}

/// One change to one key: a seeded sample of all changes of all documents.
TEST(Schemas, AgreeWithTheReadersOnOneWrongKey) {
  std::mt19937 random(20261125);
  size_t refusedByBoth = 0, refusedByReader = 0;
  for (const Document& document : validDocuments()) {
    std::vector<std::string> pointers;
    collectPointers(document.json, "", pointers);
    std::shuffle(pointers.begin(), pointers.end(), random);
    pointers.resize(std::min<size_t>(pointers.size(), 9));
    for (const std::string& pointer : pointers)
      for (const char* change : kChanges) {
        const Json json = changed(document.json, pointer, change);
        if (json.is_null()) continue;
        const std::string problems = kind(document.kind).problems(tomlFile(json));
        const bool accepted = schemaOf(document.kind).accepts(json);
        const std::string what = document.name + " " + pointer + " " + change + ": " + problems;
        if (problems.empty()) {
          EXPECT_TRUE(accepted || pointer.starts_with("/expectations/")) << what;
          continue;
        }
        ++refusedByReader;
        refusedByBoth += accepted ? 0 : 1;
        EXPECT_TRUE(!accepted || beyondSchemas(problems) || isPartOfASet(json, pointer)) << what;
      }
  }
  EXPECT_GE(refusedByBoth, 1000u);
  EXPECT_GE(refusedByBoth, refusedByReader * 9 / 10) << "the schemas miss more than they should";
}

TEST(Schemas, AgreeWithTheReaderOnTheFuzzersPlans) {
  size_t refused = 0;
  for (const auto& entry : fs::directory_iterator(testing::sourceDir() / "tests/fuzz/corpus/plan")) {
    const std::string text = testing::readWhole(entry.path());
    const auto document = TomlDocument::parse(text, "p.toml");
    if (entry.path().extension() != ".toml" || !document.ok()) continue;
    const std::string problems = planProblems(text);
    refused += problems.empty() ? 0 : 1;
    EXPECT_EQ(schemaOf("plan").accepts(document->root()), problems.empty()) << entry.path() << "\n"
                                                                            << problems;
  }
  EXPECT_GE(refused, 2u);
}

/// Both sides of every bound of every parameter.
TEST(Schemas, AgreeWithTheReaderOnTheRangeOfEveryParameter) {
  for (const auto& [name, plugin] : testing::shippedCatalog().plugins)
    for (const TestSpec& test : plugin.tests)
      for (const ParamSpec& param : test.params)
        for (const auto& [bound, beyond] : {std::pair{param.min, -1.0}, {param.max, 1.0}}) {
          if (!bound || param.type == ParamType::kList) continue;
          const bool whole = param.type == ParamType::kInt;
          for (const double value : {*bound, *bound + beyond * std::max(1.0, std::abs(*bound))}) {
            const Json plan = planOf(name, test, {{param.name, whole ? Json(int64_t(value)) : Json(value)}});
            EXPECT_EQ(planProblems(tomlFile(plan)).empty(), schemaOf("plan").accepts(plan)) << plan;
          }
        }
}

/// The texts that a pattern takes are those that the reader of quantities takes.
TEST(Schemas, QuantitiesAreThoseThatAreRead) {
  const std::vector<std::string> texts = {
      "5",       "5s",       "1.5 s",   "1h30m", "+2 ms", "-1s",    " 3 m ",  "5 GB",        "5 GiB",
      "5GB/s",   "400 Gb/s", "3%",      "0.5",   ".5",    "5.",     "1e3 kB", "650 TFLOP/s", "85 °C",
      "85 degC", "1 kW",     "7 count", "true",  "",      "x",      "5 x",    "5 sec",       "5 5",
      "s",       "1 KB",     "5 gb",    "0x10",  "1,5 s", "5 GB s", "inf",    "nan"};
  for (const char* unit : {"s", "B", "B/s", "FLOP/s", "OP/s", "Hz", "W", "degC", "ratio", "count", "count/s",
                           "samples/s", "bool"}) {
    const Schema schema(schema::quantity(unit));
    for (const std::string& text : texts)
      EXPECT_EQ(schema.accepts(text), parseAs(text, unit).ok()) << unit << " \"" << text << '"';
  }
}

/// Editors show these texts: one line for each key that a plan or one of its tables may have.
TEST(Schemas, ExplainEveryKeyOfAPlan) {
  size_t keys = 0;
  const std::function<void(const Json&)> look = [&](const Json& table) {
    if (table.contains("allOf")) look(table["allOf"][0]);
    const Json properties = table.value("properties", Json::object());
    for (const auto& [key, value] : properties.items()) {
      const std::string summary = value.is_object() ? value.value("description", "") : "";
      EXPECT_GE(summary.size(), 10u) << key;
      EXPECT_EQ(summary.find('\n'), std::string::npos) << key;
      ++keys;
      if (value.contains("properties") && key == "network") look(value);
      if (key == "stage") look(value["items"]);
    }
  };
  look(kind("plan").schema);
  EXPECT_GE(keys, 27u);
}

/// The committed schemas, which editors read, are those of this build. MUSTER_WRITE_GOLDEN=1 writes them.
TEST(Schemas, TheInstalledOnesAreUpToDate) {
  const char* write = std::getenv("MUSTER_WRITE_GOLDEN");
  for (const char* name : {"plan", "profile", "scenario", "waivers", "requirements"}) {
    const fs::path path = testing::sourceDir() / "plans" / "schemas" / (std::string(name) + ".json");
    const std::string text = kind(name).schema.dump(-1, ' ', true) + "\n";
    if (write != nullptr && *write == '1')
      std::ofstream(path) << text;
    else
      EXPECT_TRUE(testing::readWhole(path) == text)
          << path << " is out of date; run this test with MUSTER_WRITE_GOLDEN=1";
  }
  if (write != nullptr && *write == '1') GTEST_SKIP() << "wrote the schemas";
}

/// Editors find the schema by the first comments of a file, in the sources and in the distribution alike.
TEST(Schemas, ShippedFilesNameTheirSchema) {
  for (const File& file : shippedFiles()) {
    const std::string text = testing::readWhole(file.path);
    const std::string folder = file.kind == "plan" ? "schemas/" : "../schemas/";
    const size_t at = text.find("\n#:schema " + folder + file.kind + ".json\n");
    EXPECT_LT(at, text.find("\nschema = 1")) << file.path;
  }
}

}  // namespace
}  // namespace muster
