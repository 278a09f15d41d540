// SPDX-License-Identifier: Apache-2.0
// collective.sweep over the C border on simulated devices, and on real ranks of this CPU.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <optional>

#include "plugins/collective/local_compute_time.h"
#include "plugins/collective/tests.h"
#include "tests/kernels/host_gloo/ranks.h"
#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

const std::string kNetwork = R"([network]
intra_bandwidth = "400 GB/s"
intra_latency = "10us"
rail_bandwidth = "50 GB/s"
noise = "0.5%"
)";

/// The sample of all labels in `wanted`, or an empty one.
Told find(const RecordingHost& host, const std::string& metric,
          const std::map<std::string, std::string>& wanted) {
  for (const Told& told : host.told(metric))
    if (std::includes(told.labels.begin(), told.labels.end(), wanted.begin(), wanted.end())) return told;
  return {};
}

double meanOf(const Told& told) {
  return told.samples.empty() ? std::nan("")
                              : std::accumulate(told.samples.begin(), told.samples.end(), 0.0) /
                                    static_cast<double>(told.samples.size());
}

class CollectiveSweep : public ::testing::Test {
 protected:
  CaseResult onSim(const std::string& more, const Json& params, int rank = 0, int size = 2) {
    const auto path = folder_.write("scenario.toml", scenarioText(more));
    Json context = contextFor("sim", "gpu" + std::to_string(rank), path.string());
    context.update({{"scope", "node"}, {"rank", rank}, {"world_size", size}});
    return plugin_.run(host_, "sweep", params, context);
  }
  TempDir folder_;
  PluginLibrary plugin_{"collective"};
  RecordingHost host_;
};

TEST_F(CollectiveSweep, TimesRunsThatWereRecordedAsAGraph) {
  ASSERT_EQ(onSim(kNetwork, {{"from", "1 GiB"}, {"to", "1 GiB"}, {"graph", true}}).ran, MUSTER_OK)
      << host_.error;
  const Told large = find(host_, "bus_bandwidth", {{"placement", "in_place"}});
  EXPECT_NEAR(meanOf(large), 400e9, 8e9);
}

TEST_F(CollectiveSweep, NamesSettingsThatTheLibraryDoesNotConfirm) {
  ASSERT_EQ(onSim(kNetwork, {{"from", "1 MiB"},
                             {"to", "1 MiB"},
                             {"fabric", "ib"},
                             {"settings", "NCCL_ALGO=Ring NCCL_IB_TIMEOUT=22"}})
                .ran,
            MUSTER_OK)
      << host_.error;
  plugin_.expectDeclared(host_, "sweep");
  const std::string names = host_.told("unconfirmed_settings").at(0).text;
  EXPECT_EQ(std::count(names.begin(), names.end(), ' '), 3)
      << names;  // the plan's timeout wins over the fabric's
}

TEST_F(CollectiveSweep, MeasuresASimulatedGroup) {
  ASSERT_EQ(onSim(kNetwork, {{"from", "8 B"}, {"to", "1 GiB"}, {"factor", 2}}).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "sweep");
  const Told large = find(host_, "bus_bandwidth", {{"bytes", "1073741824"}, {"placement", "in_place"}});
  EXPECT_EQ(large.samples.size(), 20u);
  EXPECT_NEAR(meanOf(large), 400e9, 8e9);
  EXPECT_NEAR(meanOf(find(host_, "latency", {{"bytes", "8"}, {"placement", "out_of_place"}})), 20e-6, 2e-6);
  EXPECT_TRUE(find(host_, "latency", {{"bytes", "2048"}}).samples.empty());
  const auto judged = host_.told("large_message_bus_bandwidth");
  ASSERT_EQ(judged.size(), 2u);
  EXPECT_EQ(judged[0].labels.at("bytes"), "1073741824");
  EXPECT_EQ(judged[0].labels.at("ranks"), "2");
  EXPECT_EQ(judged[0].labels.at("nodes"), "1");
  EXPECT_EQ(host_.value("collective_wrong_elements"), 0);
  EXPECT_EQ(host_.value("collective_ranks"), 2);
  EXPECT_EQ(host_.told("transport").at(0).text, "nvlink");
  EXPECT_EQ(host_.told("unconfirmed_settings").at(0).text, "none");
  EXPECT_EQ(host_.told("bus_bandwidth").size(), 56u);  // 28 sizes, two placements
}

/// Of two nodes: what NCCL calls the network between them, and whether that is GPUDirect RDMA; -1: not told.
TEST_F(CollectiveSweep, TellsWhetherHcasReachTheMemoryOfGpus) {
  for (const auto& [transport, direct] : std::map<std::string, double>{{"ib+gdr", 1},
                                                                       {"roce+gdr", 1},
                                                                       {"roce", 0},
                                                                       {"collnet-sharp", 0},
                                                                       {"socket", 0},
                                                                       {"aws libfabric", -1},
                                                                       {"gib+gdr", 1}}) {
    for (const int nodes : {1, 2}) {
      RecordingHost host;
      const auto path = folder_.write("scenario.toml",
                                      scenarioText(kNetwork + "inter_transport = \"" + transport + "\"\n"));
      Json context = contextFor("sim", "gpu0", path.string());
      context.update({{"scope", "cluster"},
                      {"rank", 0},
                      {"world_size", 2 * nodes},
                      {"node", {{"rank", 0}, {"count", nodes}}}});
      ASSERT_EQ(plugin_.run(host, "sweep", {{"from", "1 MiB"}, {"to", "1 MiB"}}, context).ran, MUSTER_OK)
          << host.error;
      const auto told = host.told("gpudirect_rdma");
      EXPECT_EQ(told.empty() ? -1 : told[0].samples.at(0), nodes == 1 ? -1 : direct) << transport << nodes;
    }
  }
}

TEST_F(CollectiveSweep, LeavesTheGroupsFiguresToRankZero) {
  ASSERT_EQ(onSim(kNetwork, {{"to", "1 MiB"}}, 1).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("collective_wrong_elements"), 0);
  EXPECT_GT(host_.value("local_compute_time"), 0);
  EXPECT_EQ(host_.measurements.size(), 2u);
  EXPECT_TRUE(host_.artifacts.empty());
}

TEST_F(CollectiveSweep, NamesTheRankThatCorruptsASum) {
  const std::string fault =
      "[[fault]]\nkind = \"corruption\"\ndevice = 1\nops = [\"collective\"]\nevery = 1\noffset = 4\n";
  for (int rank : {0, 1}) {
    RecordingHost host;
    const auto path = folder_.write("scenario.toml", scenarioText(kNetwork + fault));
    Json context = contextFor("sim", "gpu" + std::to_string(rank), path.string());
    context.update({{"scope", "node"}, {"rank", rank}, {"world_size", 2}});
    ASSERT_EQ(plugin_.run(host, "sweep", {{"from", "1 KiB"}, {"to", "1 KiB"}}, context).ran, MUSTER_OK);
    EXPECT_GT(host.value("collective_wrong_elements"), 0);
    EXPECT_NE(
        host.told("collective_first_fault").at(0).text.find(" wrong elements, the first at 1, from rank 1"),
        std::string::npos)
        << host.told("collective_first_fault").at(0).text;
  }
}

/// A sample of one run is checked as that run, so what is wrong between two samples' checks cannot be.
TEST_F(CollectiveSweep, ChecksEachRunOfLargeMessages) {
  const std::string fault =
      "[[fault]]\nkind = \"corruption\"\ndevice = 1\nops = [\"collective\"]\nevery = 29\n";
  for (const char* placement : {"in_place", "out_of_place"}) {
    RecordingHost host;
    const auto path = folder_.write("scenario.toml", scenarioText(kNetwork + fault));
    Json context = contextFor("sim", "gpu0", path.string());
    context.update({{"scope", "node"}, {"rank", 0}, {"world_size", 2}});
    const Json params = {{"from", "4 GiB"}, {"to", "4 GiB"}, {"placements", {placement}}, {"iterations", 40}};
    ASSERT_EQ(plugin_.run(host, "sweep", params, context).ran, MUSTER_OK) << host.error;
    EXPECT_GT(host.value("collective_wrong_elements"), 0) << placement;
  }
}

TEST_F(CollectiveSweep, FindsARareFaultByMoreChecks) {
  const std::string fault =
      "[[fault]]\nkind = \"corruption\"\ndevice = 1\nops = [\"collective\"]\nevery = 10\n";
  const Json once = {{"from", "1 KiB"}, {"to", "1 KiB"}, {"placements", {"in_place"}}};
  ASSERT_EQ(onSim(kNetwork + fault, once).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("collective_wrong_elements"), 0);  // that is why
  RecordingHost host;
  Json often = once;
  often["checks"] = 25;
  Json context = contextFor("sim", "gpu0", folder_.path() / "scenario.toml");
  context.update({{"scope", "node"}, {"rank", 0}, {"world_size", 2}});
  ASSERT_EQ(plugin_.run(host, "sweep", often, context).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.value("collective_wrong_elements"), 2);
}

TEST_F(CollectiveSweep, SaysInItsArtifactsThatAResultWasWrong) {
  const std::string fault =
      "[[fault]]\nkind = \"corruption\"\ndevice = 1\nops = [\"collective\"]\nevery = 1\n";
  ASSERT_EQ(onSim(kNetwork + fault, {{"from", "1 KiB"}, {"to", "1 KiB"}}).ran, MUSTER_OK) << host_.error;
  EXPECT_NE(host_.artifacts.at("all_reduce-f32.txt").find("# Out of bounds values : 2 FAILED"),
            std::string::npos);
  const auto json = parseJson(host_.artifacts.at("all_reduce-f32.json"));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["out_of_bounds"]["okay"], false);
}

TEST_F(CollectiveSweep, SeesASlowLink) {
  const std::string fault = "[[fault]]\nkind = \"slow_link\"\ndevice = 0\npeer_device = 1\nfactor = 0.25\n";
  ASSERT_EQ(onSim(kNetwork + fault, {{"from", "1 GiB"}, {"to", "1 GiB"}}).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(meanOf(find(host_, "bus_bandwidth", {{"placement", "out_of_place"}})), 100e9, 2e9);
}

TEST_F(CollectiveSweep, TellsAStragglerFromThoseWhoWaitForIt) {
  const auto path = folder_.write(
      "scenario.toml",
      scenarioText(kNetwork +
                   "[[fault]]\nkind = \"slow\"\ndevice = 1\nfactor = 0.5\nops = [\"collective\"]\n"));
  std::vector<double> own;
  for (int rank : {0, 1}) {
    RecordingHost host;
    Json context = contextFor("sim", "gpu" + std::to_string(rank), path.string());
    context.update({{"scope", "node"}, {"rank", rank}, {"world_size", 2}});
    ASSERT_EQ(plugin_.run(host, "sweep", {{"from", "1 MiB"}, {"to", "1 MiB"}}, context).ran, MUSTER_OK);
    own.push_back(host.value("local_compute_time"));
  }
  EXPECT_NEAR(own[1] / own[0], 2, 0.1);
}

TEST_F(CollectiveSweep, TakesNoLocalComputeTimeUnlessRequested) {
  ASSERT_EQ(onSim(kNetwork, {{"to", "1 KiB"}, {"local_compute_probes", 0}}).ran, MUSTER_OK) << host_.error;
  EXPECT_TRUE(host_.told("local_compute_time").empty());
}

TEST_F(CollectiveSweep, RunsEveryOp) {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
                         "gather", "scatter", "sendrecv"}) {
    RecordingHost host;
    const auto path = folder_.write("scenario.toml", scenarioText(kNetwork));
    Json context = contextFor("sim", "gpu0", path.string());
    context.update({{"scope", "node"}, {"rank", 0}, {"world_size", 2}});
    const Json params = {{"op", op}, {"from", "1 MiB"}, {"to", "1 MiB"}, {"dtype", "bf16"}};
    ASSERT_EQ(plugin_.run(host, "sweep", params, context).ran, MUSTER_OK) << op << ": " << host.error;
    plugin_.expectDeclared(host, "sweep");
  }
}

TEST_F(CollectiveSweep, IsSkippedByAGroupOfOne) {
  EXPECT_EQ(onSim(kNetwork, Json::object(), 0, 1).ran, MUSTER_UNSUPPORTED);
  EXPECT_NE(host_.error.find("needs two ranks"), std::string::npos) << host_.error;
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(CollectiveSweep, IsSkippedWhereTheScenarioHasNoNetwork) {
  EXPECT_EQ(onSim("", Json::object()).ran, MUSTER_UNSUPPORTED);
  EXPECT_NE(host_.error.find("has no [network]"), std::string::npos) << host_.error;
}

TEST_F(CollectiveSweep, CallsWhatCannotBeABadParameter) {
  EXPECT_EQ(onSim(kNetwork, {{"root", 2}, {"op", "broadcast"}}).ran, MUSTER_BAD_PARAMETER);
  EXPECT_NE(host_.error.find("no root 2 in a group of 2"), std::string::npos) << host_.error;
  EXPECT_EQ(onSim(kNetwork, {{"op", "alltoall"}, {"placements", {"in_place"}}}).ran, MUSTER_BAD_PARAMETER);
  EXPECT_EQ(onSim(kNetwork, {{"from", "2 KiB"}, {"to", "1 KiB"}}).ran, MUSTER_BAD_PARAMETER);
  EXPECT_EQ(onSim(kNetwork, {{"settings", "NCCL_ALGO"}}).ran, MUSTER_BAD_PARAMETER);
}

TEST_F(CollectiveSweep, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 3;
  EXPECT_EQ(onSim(kNetwork, Json::object()).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.told("collective_wrong_elements").empty()) << "it did not see all";
}

TEST_F(CollectiveSweep, TellsWhatWasWrongBeforeItEnded) {
  host_.cancelAfter = 3;
  const std::string fault =
      "[[fault]]\nkind = \"corruption\"\ndevice = 1\nops = [\"collective\"]\nevery = 1\n";
  EXPECT_EQ(onSim(kNetwork + fault, Json::object()).ran, MUSTER_CANCELLED);
  EXPECT_GT(host_.value("collective_wrong_elements"), 0);
  EXPECT_EQ(host_.told("collective_first_fault").size(), 1u);
}

/// Parameters as the runner would pass them.
Json filled(const PluginLibrary& plugin, const Json& params) {
  Json all = Json::object();
  for (const ParamSpec& param : plugin.spec().test("sweep")->params) {
    auto value = params.contains(param.name) ? convertParam(param, params[param.name]) : param.defaultValue;
    EXPECT_TRUE(value.ok()) << param.name;
    all[param.name] = *value;
  }
  return all;
}

TEST(CollectiveSweepOnThisCpu, MovesRealBytesBetweenRanks) {
  const PluginLibrary plugin("collective");
  const Json params = filled(plugin, {{"from", "64 B"},
                                      {"to", "64 KiB"},
                                      {"factor", 32},
                                      {"iterations", 3},
                                      {"sample_time", "0s"},
                                      {"dtype", "bf16"}});
  const auto words = runRanks(3, [&](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    RecordingHost host;
    const sdk::Host sdkHost(host.table());
    const Status ran = collective::runSweep({sdkHost, *rank.device, **group}, params, 1);
    if (!ran.ok()) return ran.error().text();
    if (host.value("collective_wrong_elements") != 0) return "wrong elements";
    if (rank.spec.rank != 0) return host.measurements.size() == 2 ? "" : "tells of the group";
    for (const Told& told : host.told("bus_bandwidth"))
      for (double sample : told.samples)
        if (!(sample > 0)) return "a bandwidth that is not positive";
    if (host.told("bus_bandwidth").size() != 6) return "not three sizes in two placements";
    if (host.told("transport").at(0).text != "socket") return host.told("transport").at(0).text;
    return host.artifacts.size() == 2 ? "" : "no artifacts";
  });
  for (const std::string& said : words) EXPECT_EQ(said, "");
}

/// Stops `process` for most of the time, as a control group's quota does, until it is destroyed.
class Pulses {
 public:
  explicit Pulses(pid_t process) : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      kill(process, SIGSTOP);
      usleep(45000);
      kill(process, SIGCONT);
      usleep(5000);
    }
  }
  Pulses(const Pulses&) = delete;
  Pulses& operator=(const Pulses&) = delete;
  ~Pulses() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    kill(getpid(), SIGCONT);
  }

 private:
  pid_t child_;
};

TEST(CollectiveSweepOnThisCpu, TellsARealStragglerFromThoseWhoWaitForIt) {
  constexpr int kStraggler = 1;
  const auto words = runRanks(3, [&](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    RecordingHost host;
    const sdk::Host sdkHost(host.table());
    std::optional<Pulses> pulses;
    if (rank.spec.rank == kStraggler) pulses.emplace(getpid());
    const auto own = collective::measureLocalComputeTime({sdkHost, *rank.device, **group}, 40);
    pulses.reset();
    if (!own.ok()) return own.error().text();
    std::vector<double> all(3);
    all[static_cast<size_t>(rank.spec.rank)] = *own;
    const auto known = (*group)->maxOverRanks(all);
    if (!known.ok()) return known.error().text();
    for (int other : {0, 2})
      if (known->at(kStraggler) < 1.5 * known->at(static_cast<size_t>(other)))
        return std::to_string(known->at(kStraggler)) + " s against " +
               std::to_string(known->at(static_cast<size_t>(other))) + " s of rank " + std::to_string(other);
    return "";
  });
  for (const std::string& said : words) EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace muster::testing
