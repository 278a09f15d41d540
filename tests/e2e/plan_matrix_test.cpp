// SPDX-License-Identifier: Apache-2.0
// All shipped plans on all shipped profiles, on 1, 2 and 8 simulated nodes: healthy ones are accepted. And
// all shipped scenarios: what each has planted is found, and named.
//   MUSTER_PLAN_MATRIX=all e2e-plan-matrix-test      all of them instead of a sample; =8: those on eight
//   nodes
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "kernels/sim/scenario/scenario.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

fs::path plansDir() {
  return fs::path(plan("node-quick.toml")).parent_path();
}

/// Stems of the files of a folder, in order.
std::vector<std::string> stemsIn(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> stems;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) stems.push_back(entry.path().stem().string());
  std::sort(stems.begin(), stems.end());
  return stems;
}

/// The first group of the first match; empty without one.
std::string firstIn(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

std::string profileText(const std::string& sku) {
  return readWhole(plansDir() / "skus" / (sku + ".toml"));
}

std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> names;
  const std::regex name("`([a-z0-9-]+)`");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    names.push_back((*at)[1]);
  return names;
}

bool isCard(const std::string& sku) {
  return profileText(sku).find("PCIe cards") != std::string::npos;
}

bool onlyByName(const std::string& sku) {
  return profileText(sku).find("\nonly_by_name = true") != std::string::npos;
}

/// Which plan is not for which profile, and why, from the table of plans/README.md.
std::map<std::pair<std::string, std::string>, std::string> notMeant(const std::vector<std::string>& skus) {
  const std::string readme = readWhole(sourceDir() / "plans/README.md");
  const size_t begin = readme.find("| plans | not for | why |");
  EXPECT_NE(begin, std::string::npos);
  std::map<std::pair<std::string, std::string>, std::string> cells;
  size_t at = readme.find("\n", readme.find("\n", begin) + 1) + 1;
  for (; at < readme.size() && readme[at] == '|'; at = readme.find('\n', at) + 1) {
    const std::string row = readme.substr(at, readme.find('\n', at) - at);
    const size_t second = row.find('|', 1), third = row.find('|', second + 1);
    const std::string whom = row.substr(second + 1, third - second - 1);
    const std::vector<std::string> named = quoted(whom);
    for (const std::string& name : quoted(row.substr(0, second)))
      for (const std::string& sku : skus) {
        const bool isNamed = std::count(named.begin(), named.end(), sku) > 0;
        const bool isOther = whom.find("other models than") != std::string::npos ? !isNamed : isNamed;
        if (isOther || (whom.find("cards") != std::string::npos && isCard(sku)))
          cells[{name, sku}] = row.substr(third + 1);
      }
  }
  return cells;
}

/// The healthy scenario of a profile: of several the one with HCAs, and A4 nodes for their plan.
std::string healthyScenario(const std::string& plan, const std::string& sku) {
  std::string best;
  for (const std::string& name : stemsIn(plansDir() / "scenarios", ".toml")) {
    if (name.find("healthy") == std::string::npos) continue;
    const sim::Scenario shown = sim::loadScenario(scenario(name)).value();
    const std::string ids = firstIn(profileText(sku), "pci_ids = (\\[[^\\]]*\\])");
    if (ids.find('"' + shown.model.pciId + '"') == std::string::npos) continue;
    if ((name.substr(0, 2) == "a4") != (plan == "a4-gke")) continue;
    if (best.empty() || shown.rdma.count > 0) best = name;
  }
  return best;
}

/// Stress tests last a minute, as their 22 hours are one parameter.
std::vector<std::string> shorter(const std::string& plan) {
  if (plan == "node-full") return {"--set", "sustained.duration=1m"};
  if (plan == "burn-in") return {"--set", "sustained.duration=5m", "--set", "pattern.passes=4"};
  if (plan != "idle-hourly") return {};
  std::vector<std::string> words;
  for (const char* stage : {"sustained-1", "sustained-2", "sustained-3"})
    words.insert(words.end(), {"--set", std::string(stage) + ".duration=1m"});
  return words;
}

struct Cell {
  std::string plan, sku;
  int nodes = 1;
};

class Matrix {
 public:
  Matrix() : plans_(stemsIn(plansDir(), ".toml")), skus_(stemsIn(plansDir() / "skus", ".toml")) {
    std::erase(skus_, "host");
    std::erase_if(skus_, onlyByName);
    std::erase_if(plans_, [](const std::string& name) {
      return readWhole(plan(name + ".toml")).find("\nbackend = \"host\"") != std::string::npos;
    });
    notMeant_ = notMeant(skus_);
  }

  [[nodiscard]] std::vector<Cell> cells(bool meant) const {
    std::vector<Cell> cells;
    for (const int nodes : {1, 2, 8})
      for (const std::string& name : plans_)
        for (const std::string& sku : skus_)
          if ((notMeant_.count({name, sku}) == 0) == meant) cells.push_back({name, sku, nodes});
    return cells;
  }

  [[nodiscard]] std::string whyNot(const Cell& cell) const { return notMeant_.at({cell.plan, cell.sku}); }
  [[nodiscard]] const std::vector<std::string>& plans() const { return plans_; }
  [[nodiscard]] const std::vector<std::string>& skus() const { return skus_; }

 private:
  std::vector<std::string> plans_, skus_;
  std::map<std::pair<std::string, std::string>, std::string> notMeant_;
};

/// What MUSTER_PLAN_MATRIX asks for: "all" cells, or those of so many nodes; empty: a sample.
std::string asked() {
  const char* value = std::getenv("MUSTER_PLAN_MATRIX");
  return value == nullptr ? "" : value;
}

/// Every plan and every profile, most of them on one node.
std::vector<Cell> sampled(const std::vector<Cell>& cells) {
  std::vector<Cell> chosen;
  if (!asked().empty()) {
    for (const Cell& cell : cells)
      if (asked() == "all" || asked() == std::to_string(cell.nodes)) chosen.push_back(cell);
    return chosen;
  }
  std::set<std::string> seen;
  const std::set<std::string> large = {"node-full", "burn-in", "idle-hourly"};
  const std::map<std::string, int> several = {{"node-quick", 2}, {"kuberay-smoke", 2}, {"cluster", 8}};
  for (const Cell& cell : cells) {
    const auto many = several.find(cell.plan);
    const bool isNew = cell.nodes == 1 ? seen.insert(cell.plan).second ||
                                             (large.count(cell.plan) == 0 && seen.count(cell.sku) == 0)
                                       : many != several.end() && cell.nodes == many->second &&
                                             seen.insert("several " + cell.plan).second;
    if (!isNew) continue;
    seen.insert(cell.sku);
    chosen.push_back(cell);
  }
  return chosen;
}

/// The scenario, with the storage of another one where it has none.
std::string withStorage(const std::string& name, const fs::path& folder) {
  constexpr const char* kTable = "\n[storage]\n";
  if (sim::loadScenario(scenario(name)).value().storage.readBandwidth > 0) return scenario(name);
  const std::string other = readWhole(scenario("h100x8-hca-healthy"));
  const size_t begin = other.find(kTable);
  EXPECT_NE(begin, std::string::npos);
  return writeScenario(
             folder / "scenario.toml",
             readWhole(scenario(name)) + other.substr(begin, other.find("\n[", begin + 1) - begin) + "\n")
      .string();
}

ProcessResult simulate(const Cell& cell, const fs::path& out) {
  const std::string name = healthyScenario(cell.plan, cell.sku);
  const std::string file = cell.plan == "storage" ? withStorage(name, out.parent_path()) : scenario(name);
  return runMuster(std::vector<std::string>{"run", plan(cell.plan + ".toml"), "--simulate", file, "--nodes",
                                            std::to_string(cell.nodes), "--plain", "--out", out.string()} +
                   shorter(cell.plan));
}

TEST(PlanMatrix, HealthyNodesOfEveryProfileAreAccepted) {
  const Matrix matrix;
  const std::vector<Cell> cells = sampled(matrix.cells(true));
  std::set<std::string> plans, skus;
  for (const Cell& cell : cells) {
    plans.insert(cell.plan);
    skus.insert(cell.sku);
    const std::string what = cell.plan + " on " + cell.sku + ", nodes: " + std::to_string(cell.nodes);
    ASSERT_NE(healthyScenario(cell.plan, cell.sku), "") << what;
    const auto told = runMuster({"explain", plan(cell.plan + ".toml"), "--sku", cell.sku, "--nodes",
                                 std::to_string(cell.nodes), "--json"});
    EXPECT_EQ(told.exitCode, 0) << what << told.err;
    const TempDir dir;
    const fs::path out = dir.path() / "run";
    const auto result = simulate(cell, out);
    EXPECT_EQ(result.exitCode, 0) << what << "\n" << result.out << result.err;
    if (result.exitCode != 0) continue;
    for (int node = 0; node < cell.nodes; ++node) {
      char name[32];
      (void)std::snprintf(name, sizeof name, "sim-node-%04d", node);
      const Record record = recordIn(cell.nodes == 1 ? out : out / name);
      EXPECT_EQ(record.profile.name, cell.sku) << what;
      EXPECT_TRUE(verdictsOf(record, Outcome::kUnjudged).empty()) << what;
    }
  }
  EXPECT_EQ(plans.size(), matrix.plans().size()) << "a plan without a run";
  EXPECT_EQ(skus.size(), matrix.skus().size()) << "a profile without a run";
}

/// One GPU of a board in a virtual machine: accepted under the profile that was named, and by no other way.
TEST(PlanMatrix, OneGpuOfABoardIsAcceptedByNameAlone) {
  for (const std::string& sku : stemsIn(plansDir() / "skus", ".toml")) {
    if (!onlyByName(sku)) continue;
    const TempDir dir;
    const fs::path alone =
        writeScenario(dir.path() / "alone.toml", "schema = 1\nname = \"alone\"\ninclude = [\"" +
                                                     healthyScenario("node-quick", sku) +
                                                     ".toml\"]\n\n[devices]\ncount = 1\n");
    for (const char* name : {"node-quick", "node-full"}) {
      std::vector<std::string> command = {"run",        plan(std::string(name) + ".toml"),
                                          "--simulate", alone.string(),
                                          "--out",      (dir.path() / name).string()};
      const auto named = runMuster(command + std::vector<std::string>{"--sku", sku} + shorter(name));
      EXPECT_EQ(named.exitCode, 0) << sku << " " << name << named.out << named.err;
      command.back() += "-auto";
      const auto found = runMuster(command + shorter(name));
      EXPECT_EQ(found.exitCode, 1) << sku << " " << name;
      EXPECT_NE(found.out.find("env.device_count of node: 1, required 8"), std::string::npos) << found.out;
    }
  }
}

/// What the table of plans/README.md excludes is excluded for a reason: it is not accepted. A4's scenario is
/// of its own model, and what depends on the server may be.
TEST(PlanMatrix, WhatIsNotMeantIsNotAccepted) {
  const Matrix matrix;
  std::set<std::string> seen;
  for (const Cell& cell : matrix.cells(false)) {
    if (cell.nodes > 1 || cell.plan == "a4-gke" ||
        matrix.whyNot(cell).find("depends on the server") != std::string::npos ||
        (asked().empty() && !seen.insert(cell.sku).second))
      continue;
    const TempDir dir;
    const auto result = simulate(cell, dir.path() / "run");
    EXPECT_NE(result.exitCode, 0) << cell.plan << " on " << cell.sku
                                  << ": remove it from the table of plans/README.md\n"
                                  << result.out;
  }
}

struct Planted {
  const char* scenario;
  const char* plan;
  int nodes;
  int exitCode;
  const char* metric;  ///< that fails or tells of it; of exit code 3: part of the error
  const char* name;    ///< of the faulty part, in the verdict's device, labels or text
};

constexpr Planted kPlanted[] = {
    {"a4x8-cluster-no-gib", "a4-gke", 2, 1, "collective.unconfirmed_settings", "NCCL_NET"},
    {"h100x8-cluster-flapping-nic", "cluster", 2, 1, "env.rdma_link_downed", "mlx5_2/1"},
    {"h100x8-cluster-slow-link", "cluster", 8, 1, "ring.culprits", "link sim-node-0002 - sim-node-0003"},
    {"h100x8-cluster-slow-node", "cluster", 8, 1, "ring.culprits", "node sim-node-0005"},
    {"h100x8-cluster-slow-rail", "cluster", 8, 1, "ring.culprits", "node sim-node-0004, rail 6"},
    {"h100x8-cluster-slow-uplink", "cluster", 8, 1, "ring.culprits", "link sim-node-0003 - sim-node-0004"},
    {"h100x8-corrupt-sum", "compact", 1, 1, "collective.collective_first_fault", "from rank 6"},
    {"h100x8-corrupt-sum", "node-full", 1, 1, "collective.collective_first_fault", "from rank 6"},
    {"h100x8-ecc-burst", "node-quick", 1, 1, "env.ecc_uncorrected", "gpu2"},
    {"h100x8-hang", "node-quick", 1, 3, "rank 3", "gpu3"},
    {"h100x8-hca-slow", "node-full", 1, 1, "rdma.line_rate_share", "mlx5_5/1"},
    {"h100x8-hca-slow", "rdma", 1, 1, "rdma.line_rate_share", "mlx5_5/1"},
    {"h100x8-link-down", "node-quick", 1, 1, "env.rdma_link_downed", "mlx5_3/1"},
    {"h100x8-missing-gpu", "node-quick", 1, 1, "env.device_count", "7"},
    {"h100x8-one-slow-gpu", "node-quick", 1, 1, "compute.gemm_throughput", "gpu5"},
    {"h100x8-pcie-x8", "idle-hourly", 1, 1, "memory.host_to_device_bandwidth", "gpu3"},
    {"h100x8-pcie-x8", "node-quick", 1, 1, "memory.host_to_device_bandwidth", "gpu3"},
    {"h100x8-silent-corruption", "node-quick", 1, 1, "compute.gemm_repeat_mismatches", "gpu4"},
    {"h100x8-slow-peer", "node-quick", 1, 1, "memory.peer_bandwidth", "gpu5"},
    {"h100x8-straggler", "nccl", 1, 1, "collective.local_compute_time", "gpu3"},
    {"h100x8-symbol-errors", "rdma", 1, 1, "env.rdma_symbol_errors", "mlx5_2/1"},
    {"h100x8-throttling", "node-quick", 1, 1, "env.throttle_thermal", "gpu6"},
    {"h100x8-unknown-sku", "node-quick", 1, 3, "unknown: no profile matches", "NVIDIA H100 96GB Prototype"},
    {"l40sx8-pcie-x8", "node-quick", 1, 1, "memory.host_to_device_bandwidth", "gpu6"},
};

/// All that a verdict says of itself.
std::string textOf(const Verdict& verdict) {
  std::string text = verdict.metric + " " + verdict.device + " " + verdict.caseId + " " + verdict.detail;
  for (const auto& [label, value] : verdict.labels) text += " " + label + "=" + value;
  return text;
}

TEST(PlanMatrix, EveryScenarioComesToItsOutcomeAndNamesItsFault) {
  // The fleet names a slow disk, by the other nodes: storage_test.cpp.
  std::set<std::string> known = {"h100x8-slow-disk"};
  for (const Planted& planted : kPlanted) {
    known.insert(planted.scenario);
    const TempDir dir;
    const fs::path out = dir.path() / "run";
    // Of eight nodes the ring alone, which names the fault: the rest takes six times as long.
    const bool isPart = asked().empty() && planted.nodes == 8;
    const auto result =
        runMuster(std::vector<std::string>{"run", plan(std::string(planted.plan) + ".toml"), "--simulate",
                                           scenario(planted.scenario), "--nodes",
                                           std::to_string(planted.nodes), "--plain", "--out", out.string()} +
                  (isPart ? std::vector<std::string>{"--only", "ring"} : std::vector<std::string>{}));
    EXPECT_EQ(result.exitCode, planted.exitCode) << planted.scenario << "\n" << result.out << result.err;
    std::vector<std::string> said;
    for (const auto& entry : fs::recursive_directory_iterator(out)) {
      if (entry.path().filename() != "record.json") continue;
      const Record record = recordIn(entry.path().parent_path());
      said.push_back(record.skuHow);
      for (const Outcome outcome : {Outcome::kFail, Outcome::kError})
        for (const Verdict& verdict : verdictsOf(record, outcome)) said.push_back(textOf(verdict));
      for (const StageRecord& stage : record.stages)
        for (const Measurement& fact : stage.measurements)
          if (fact.isText()) said.push_back(fact.metric + " " + fact.text);
    }
    const auto names = [&](const std::string& text) {
      return text.find(planted.metric) != std::string::npos && text.find(planted.name) != std::string::npos;
    };
    std::string all;
    for (const std::string& text : said) all += text + "\n";
    EXPECT_TRUE(std::any_of(said.begin(), said.end(), names))
        << planted.scenario << ": " << planted.metric << ", " << planted.name << "\n"
        << all;
  }
  for (const std::string& name : stemsIn(plansDir() / "scenarios", ".toml"))
    EXPECT_EQ(known.count(name) > 0, name.find("healthy") == std::string::npos)
        << name << ": its outcome is not stated";
}

/// Every setting is named that NCCL did not take, and so are the sockets.
TEST(PlanMatrix, A4RejectsAnImageWithoutGib) {
  const TempDir dir;
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", plan("a4-gke.toml"), "--simulate", scenario("a4x8-cluster-no-gib"),
                                 "--nodes", "2", "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::set<std::string> failing;
  for (const Verdict& verdict : verdictsOf(recordIn(out / "sim-node-0000"), Outcome::kFail))
    failing.insert(verdict.metric);
  for (const char* metric : {"collective.unconfirmed_settings", "collective.transport",
                             "collective.large_message_bus_bandwidth", "collective.gpudirect_rdma"})
    EXPECT_EQ(failing.count(metric), 1u) << metric << result.out;
}

/// Neither the plan nor a profile's name makes it a tested GPU.
TEST(PlanMatrix, NeverAcceptsAGpuOfAnotherVendor) {
  const TempDir dir;
  std::string text = readWhole(scenario("h100x8-healthy"));
  text.replace(text.find("10de:2330"), 9, "1002:74a1");
  const auto file = dir.write("amd.toml", text).string();
  std::string allowing = readWhole(plan("node-quick.toml"));
  allowing.replace(allowing.find("name = "), 0, "allow_unknown_sku = true\n");
  copyIncluded(".", dir.path());
  for (const std::vector<std::string>& options : {std::vector<std::string>{plan("node-quick.toml")},
                                                  {plan("node-quick.toml"), "--sku", "h100-sxm5-80gb"},
                                                  {dir.write("allowing.toml", allowing).string()}}) {
    std::vector<std::string> words = {"run",   "--simulate",
                                      file,    "--plain",
                                      "--out", (dir.path() / std::to_string(options.size())).string()};
    words.insert(words.end(), options.begin(), options.end());
    const auto result = runMuster(words);
    EXPECT_TRUE(result.exitCode == 1 || result.exitCode == 3) << result.exitCode << result.out << result.err;
    EXPECT_NE(result.out.find("unknown vendor"), std::string::npos) << result.out;
    fs::remove_all(dir.path() / std::to_string(options.size()));
  }
}

}  // namespace
}  // namespace muster::testing
