// SPDX-License-Identifier: Apache-2.0
// See forged_run.h.
#include "tests/slurm/forged_run.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>

#include "runner/app/slurm/slurm_fleet.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"
#include "runner/record/record_mac.h"
#include "runner/system/files.h"
#include "runner/system/secret.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using Random = std::mt19937_64;

constexpr const char* kId = "node-full-20261121T031026Z-1f2e";
constexpr int64_t kBegan = 1795230000;  // when the sample records did
constexpr int64_t kDay = 86400;
constexpr const char* kPlan = "schema = 1\nname = \"node-full\"\n";
const std::vector<std::string> kNodes = {"n1", "n2", "n3", "n4", "n5"};

size_t upTo(Random& random, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(random);
}
template <typename T>
const T& oneOf(Random& random, const std::vector<T>& list) {
  return list[upTo(random, list.size())];
}

void put(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (fs::is_symlink(path, error) || fs::exists(path, error)) fs::remove_all(path, error);
  std::ofstream(path, std::ios::binary) << text;
}

/// What lies in a file of usual size; what another forgery made of it may have none.
std::string take(const fs::path& path) {
  if (!fs::is_regular_file(path) || fs::file_size(path) > (1u << 24))
    throw std::runtime_error("no usual file");
  return readWhole(path);
}

std::string taskOf(const std::string& node) {
  return "10" + node.substr(1);
}

/// The record of a healthy node, or of one that missed a limit, as its task writes it.
Record recordOf(const std::string& node, bool rejected, const std::string& job) {
  Record record = rejected ? failedRecord(node) : nodeRecord(node);
  record.simulated = false;
  record.scenario.clear();
  record.backend = "cuda";
  record.plan.sha256 = sha256Hex(kPlan);
  record.plan.text = kPlan;
  record.launcher["fleet_id"] = kId;
  record.environment["SLURM_JOB_ID"] = job;
  record.bootId = "boot-of-" + node;
  record.runId = runIdOf(node, record.started);
  for (StageRecord& stage : record.stages) keepEvidence(stage);
  measureInventory(record);
  return record;
}

/// One forger at work in a copy of the run.
class Forger {
 public:
  Forger(fs::path run, Random& random) : run_(std::move(run)), random_(random) {}

  Random& random() { return random_; }
  [[nodiscard]] fs::path at(const std::string& path) const { return run_ / path; }
  [[nodiscard]] static std::string recordPath(const std::string& node) {
    return "records/nodes/" + node + "/record.json";
  }
  /// One that is honest and accepted.
  std::string good() { return oneOf<std::string>(random_, {"n1", "n2", "n5"}); }
  std::string goodBut(const std::string& other) {
    for (;;)
      if (std::string node = good(); node != other) return node;
  }

  /// Writes a record with the MAC of its node's key, which a job of the same user can read.
  void write(const std::string& path, Record record, const std::string& keyOf = "") {
    record.mac.clear();
    record.mac = macOf(record, *readKey(run_ / "keys" / (keyOf.empty() ? record.node : keyOf)));
    put(at(path), recordText(record));
  }
  void exitOf(const std::string& node, int code) { put(at("exits/" + node), fmt::format("{}\n", code)); }
  void claim(const std::string& node, const std::string& job) {
    put(at("claims/" + node), job + " 2026-11-21T03:10:26Z\n");
  }
  /// What fleet.json says of a node.
  void tell(const std::string& node, const std::string& state, bool suspect) {
    Json fleet = Json::parse(take(at("fleet/fleet.json")));
    for (Json& one : fleet["nodes"])
      if (one["node"] == node) {
        one["state"] = state;
        one["reason"] = "as somebody says";
        one["suspect"] = suspect;
      }
    put(at("fleet/fleet.json"), fleet.dump());
  }
  void name(const std::string& text) { names_.push_back(text); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  fs::path run_;
  Random& random_;
  std::vector<std::string> names_;
};

void makeSocket(const fs::path& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Paths of sockets are short: made where we stand, then moved.
  const std::string name = fmt::format("/tmp/.forged-{}", getpid());
  std::copy(name.begin(), name.end(), address.sun_path);
  unlink(name.c_str());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no socket");
  close(fd);
  std::error_code error;
  fs::remove_all(path, error);
  if (mknod(path.c_str(), S_IFSOCK | 0644, 0) != 0) throw std::runtime_error("no socket");
  unlink(name.c_str());
}

struct Forgery {
  const char* kind;
  std::function<void(Forger&)> apply;
};

/// A node of the same stage that its own record blames another for.
void blame(Record& record, const std::string& culprit, const std::string& kind) {
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kFail) {
        stage.scope = Scope::kNode;
        verdict.labels = {{"culprit", culprit}, {"kind", kind}};
      }
}

const std::vector<Forgery>& forgeries() {
  static const std::vector<Forgery> all = {
      {"a good node's record says rejected",
       [](Forger& f) {
         const std::string node = f.good();
         f.write(f.recordPath(node), recordOf(node, true, taskOf(node)));
         f.name(node);
       }},
      {"... and its exit file too",
       [](Forger& f) {
         const std::string node = f.good();
         f.write(f.recordPath(node), recordOf(node, true, taskOf(node)));
         f.exitOf(node, 1);
         f.name(node);
       }},
      {"... and the fleet's report",
       [](Forger& f) {
         const std::string node = f.good();
         f.write(f.recordPath(node), recordOf(node, true, taskOf(node)));
         f.exitOf(node, 1);
         f.tell(node, "rejected", true);
         f.name(node);
       }},
      {"the fleet's report alone rejects a good node",
       [](Forger& f) {
         const std::string node = f.good();
         f.tell(node, oneOf<std::string>(f.random(), {"rejected", "affected"}), true);
         f.name(node);
       }},
      {"the fleet's report spares the rejected node",
       [](Forger& f) {
         f.tell("n3", oneOf<std::string>(f.random(), {"accepted", "affected", "incomplete"}), false);
         f.name("n3");
       }},
      {"the rejected node's record says accepted",
       [](Forger& f) {
         f.write(f.recordPath("n3"), recordOf("n3", false, taskOf("n3")));
         f.name("n3");
       }},
      {"... and its exit file too",
       [](Forger& f) {
         f.write(f.recordPath("n3"), recordOf("n3", false, taskOf("n3")));
         f.exitOf("n3", 0);
         f.name("n3");
       }},
      {"... and its claim is another node's",
       [](Forger& f) {
         const std::string job = taskOf(f.good());
         f.write(f.recordPath("n3"), recordOf("n3", false, job));
         f.exitOf("n3", 0);
         f.claim("n3", job);
         f.name("n3");
       }},
      {"a record of the node that never ran, without a claim",
       [](Forger& f) {
         f.write(f.recordPath("n4"), recordOf("n4", false, "104"));
         f.exitOf("n4", 0);
         f.name("n4");
       }},
      {"... with another task's claim",
       [](Forger& f) {
         const std::string job = taskOf(f.good());
         f.write(f.recordPath("n4"), recordOf("n4", false, job));
         f.exitOf("n4", 0);
         f.claim("n4", job);
         f.name("n4");
       }},
      {"... with a job of another run, of another user, that failed there or that nobody knows",
       [](Forger& f) {
         const std::string job = oneOf<std::string>(f.random(), {"90", "91", "92", "93", "94", "96"});
         f.write(f.recordPath("n4"), recordOf("n4", false, job));
         f.exitOf("n4", 0);
         f.claim("n4", job);
         (void)take(f.at("jobs.jsonl"));  // a pipe would never be opened
         std::ofstream(f.at("jobs.jsonl"), std::ios::app) << fmt::format(
             "{{\"kind\":\"array\",\"job\":\"{}\",\"round\":0,\"nodes\":[],\"tasks\":1}}\n", job);
         f.name("n4");
       }},
      {"a record that rejects the node that never ran",
       [](Forger& f) {
         const std::string job = oneOf<std::string>(f.random(), {"91", "92", "93", "95", "97", "103"});
         (void)take(f.at("jobs.jsonl"));
         std::ofstream(f.at("jobs.jsonl"), std::ios::app) << fmt::format(
             "{{\"kind\":\"pinned\",\"job\":\"{}\",\"round\":0,\"nodes\":[\"n4\"],\"tasks\":1}}\n", job);
         f.write(f.recordPath("n4"), recordOf("n4", true, job));
         f.exitOf("n4", 1);
         f.claim("n4", job);
         f.name("n4");
       }},
      {"an exit file alone",
       [](Forger& f) {
         const std::string node = f.good();
         f.exitOf(node, oneOf<int>(f.random(), {1, 3, 130, 255}));
         f.name(node);
       }},
      {"a record in another node's place",
       [](Forger& f) {
         const std::string node = f.good(), other = f.goodBut(node);
         f.write(f.recordPath(node), recordOf(other, upTo(f.random(), 2) == 0, taskOf(other)));
         f.name(node);
       }},
      {"a record where no job writes one",
       [](Forger& f) {
         const std::string path = oneOf<std::string>(
             f.random(),
             {"records/more.json", "records/nodes/more.json", "records/nodes/x/record.json",
              "records/nodes/n4/more/record.json", "records/cluster/record.json", "records/n2.json"});
         const std::string node = oneOf(f.random(), kNodes);
         f.write(path, recordOf(node, true, taskOf(node)));
         f.name(path.substr(8));
       }},
      {"a part in stages of all nodes that nobody ran",
       [](Forger& f) {
         const std::string node = oneOf(f.random(), kNodes);
         const std::string path = "records/cluster/" + node + "/record.json";
         f.write(path, recordOf(node, true, taskOf(node)));
         put(f.at("cluster_exits/" + node), "1\n");
         f.name(path.substr(8));
       }},
      {"a cut run of another node",
       [](Forger& f) {
         const std::string node = f.good();
         fs::remove_all(f.at("records/nodes/n4"));
         put(f.at("records/nodes/n4/journal.jsonl"),
             fmt::format("{{\"type\":\"start\",\"node\":\"{}\",\"plan_sha256\":\"{}\",\"plan_path\":\"plan."
                         "toml\",\"sets\":[],"
                         "\"started\":1,\"scenario\":\"\",\"fleet_id\":\"{}\"}}\n",
                         node, sha256Hex(kPlan), kId));
         f.name("n4");
       }},
      {"a record without a MAC",
       [](Forger& f) {
         const std::string node = f.good();
         put(f.at(f.recordPath(node)), recordText(recordOf(node, false, taskOf(node))));
         f.name(node);
       }},
      {"a record by another node's key",
       [](Forger& f) {
         const std::string node = f.good();
         f.write(f.recordPath(node), recordOf(node, false, taskOf(node)), f.goodBut(node));
         f.name(node);
       }},
      {"a figure that was changed",
       [](Forger& f) {
         const std::string node = f.good();
         std::string text = take(f.at(f.recordPath(node)));
         const size_t at = text.find("boot-of-");
         text.replace(at, 4, "b00t");
         put(f.at(f.recordPath(node)), text);
         f.name(node);
       }},
      {"a link in a record's place",
       [](Forger& f) {
         const std::string node = f.good();
         fs::remove(f.at(f.recordPath(node)));
         fs::create_symlink(f.at(f.recordPath(oneOf<std::string>(f.random(), {"n3", "n1", "n5"}))),
                            f.at(f.recordPath(node)));
         f.name(node);
       }},
      {"a link in a node's place",
       [](Forger& f) {
         const std::string node = f.good();
         fs::remove_all(f.at("records/nodes/" + node));
         fs::create_directory_symlink(f.at("records/nodes/n3"), f.at("records/nodes/" + node));
         f.name(node);
       }},
      {"a link in an exit file's or claim's place",
       [](Forger& f) {
         const std::string node = f.good();
         const std::string part = oneOf<std::string>(f.random(), {"exits/", "claims/"});
         fs::remove(f.at(part + node));
         fs::create_symlink(f.at(part + "n3"), f.at(part + node));
         f.name(node);
       }},
      {"a hard link in a record's place",
       [](Forger& f) {
         const std::string node = f.good();
         fs::remove(f.at(f.recordPath(node)));
         fs::create_hard_link(f.at(f.recordPath("n3")), f.at(f.recordPath(node)));
         f.name(node);
       }},
      {"a pipe or socket",
       [](Forger& f) {
         const std::string node = f.good();
         const fs::path path =
             f.at(oneOf<std::string>(f.random(), {f.recordPath(node), "exits/" + node, "claims/" + node}));
         fs::remove(path);
         if (upTo(f.random(), 2) == 0)
           makeSocket(path);
         else if (mkfifo(path.c_str(), 0644) != 0)
           throw std::runtime_error("no pipe");
         f.name(node);
       }},
      {"a huge file",
       [](Forger& f) {
         const std::string node = f.good();
         const fs::path path =
             f.at(oneOf<std::string>(f.random(), {f.recordPath(node), "exits/" + node, "claims/" + node}));
         fs::resize_file(path, 1ull << 36);  // sparse
         f.name(node);
       }},
      {"a pipe in the place of a list of the run",
       [](Forger& f) {
         const std::string name =
             oneOf<std::string>(f.random(), {"jobs.jsonl", "fleet/fleet.json", "run.key"});
         fs::remove(f.at(name));
         if (mkfifo(f.at(name).c_str(), 0600) != 0) throw std::runtime_error("no pipe");
         f.name(name);
       }},
      {"a node's claim is another's",
       [](Forger& f) {
         const std::string node = f.good();
         f.claim(node, oneOf<std::string>(f.random(), {taskOf("n3"), taskOf(f.goodBut(node)), "93", "0"}));
         f.name(node);
       }},
      {"a stage of one node blames another",
       [](Forger& f) {
         Record record = recordOf("n3", true, taskOf("n3"));
         const std::string other = f.good();
         if (upTo(f.random(), 2) == 0)
           blame(record, "node " + other, "node");
         else
           blame(record, "link " + other + " - " + f.goodBut(other), "link");
         f.write(f.recordPath("n3"), record);
         f.name("n3");
       }},
      {"a stage of all nodes in one node's record",
       [](Forger& f) {
         Record record = recordOf("n3", true, taskOf("n3"));
         blame(record, "node " + f.good(), "node");
         for (StageRecord& stage : record.stages) {
           if (stage.scope != Scope::kNode) continue;
           stage.scope = Scope::kCluster;
           stage.group = {{"world_size", 40}, {"first_rank", 0}, {"nodes", 5}, {"culprit", ""}};
         }
         record.nodeCount = 5;
         f.write(f.recordPath("n3"), record);
         f.name("n3");
       }},
      {"a record of another time than its job's",
       [](Forger& f) {
         const std::string node = f.good();
         Record record = recordOf(node, false, taskOf(node));
         const double shift = static_cast<double>(upTo(f.random(), 2) == 0 ? -kDay : kDay);
         record.started += shift;
         record.finished += shift;
         for (StageRecord& stage : record.stages) stage.started += shift;
         record.runId = runIdOf(node, record.started);
         f.write(f.recordPath(node), record);
         f.name(node);
       }},
      {"a record that says it is simulated",
       [](Forger& f) {
         const std::string node = oneOf<std::string>(f.random(), {"n1", "n2", "n4", "n5"});
         Record record = recordOf(node, false, taskOf(node));
         record.simulated = true;
         record.scenario = "h100x8-healthy";
         f.write(f.recordPath(node), record);
         f.name(node);
       }},
      {"a fleet's report that says it is simulated",
       [](Forger& f) {
         Json fleet = Json::parse(take(f.at("fleet/fleet.json")));
         fleet["simulated"] = true;
         put(f.at("fleet/fleet.json"), fleet.dump());
       }},
      {"a record with the boot id of another node",
       [](Forger& f) {
         const std::string node = f.good(), other = f.goodBut(node);
         Record record = recordOf(node, false, taskOf(node));
         record.bootId = recordOf(other, false, taskOf(other)).bootId;
         f.write(f.recordPath(node), record);  // nobody is to be named where `other` is forged after it
       }},
      {"a record with the parts of all other nodes",
       [](Forger& f) {
         const std::string node = f.good();
         Record record = recordOf(node, false, taskOf(node));
         for (const std::string& other : kNodes) {
           if (other == node) continue;
           const Record theirs = recordOf(other, false, "");
           for (Json part : theirs.inventory["devices"]) {
             part["id"] = other + "-" + part.value("id", "");
             record.inventory["devices"].push_back(part);
           }
         }
         f.write(f.recordPath(node), record);
         f.name(node);
       }},
      {"a record of another SKU",
       [](Forger& f) {
         const std::string node = f.good();
         Record record = recordOf(node, false, taskOf(node));
         record.profile.name = "h200-sxm";
         f.write(f.recordPath(node), record);
         f.name(node);
       }},
      {"a record whose GPUs have other memory",
       [](Forger& f) {
         const std::string node = f.good();
         Record record = recordOf(node, false, taskOf(node));
         for (Json& part : record.inventory["devices"])
           part["memory_bytes"] = oneOf<uint64_t>(f.random(), {42'949'672'960ull, 1ull << 50});
         f.write(f.recordPath(node), record);
         f.name(node);
       }},
      {"a node is no longer expected",
       [](Forger& f) {
         std::string text = take(f.at("expect.txt"));
         const std::string line = "n4 drained bad DIMM\n";
         text.erase(text.find(line), line.size());
         put(f.at("expect.txt"), text);
         f.name("n4");
       }},
  };
  return all;
}

}  // namespace

ForgedRuns::ForgedRuns() : run_(folder_.path() / "run") {
  slurm::Submission submission;
  submission.id = kId;
  submission.created = kBegan - 60;
  submission.planName = "node-full";
  submission.planFile = "plan.toml";
  submission.planSha256 = sha256Hex(kPlan);
  submission.nodes = kNodes;
  submission.fleetOptions = {"--fleet-id", kId};
  submission.recordKeys = true;
  const auto run = slurm::RunStore::create(run_, submission);
  if (!run.ok()) throw std::runtime_error(run.error().text());
  put(run_ / "inputs" / "plan.toml", kPlan);
  put(run_ / "expect.txt", "n1\nn2\nn3\nn4 drained bad DIMM\nn5\n");
  const std::string key = *randomSecret();
  fs::create_directories(run_ / "keys");
  const auto putKey = [&](const fs::path& path, const std::string& text) {
    put(path, text + "\n");
    fs::permissions(path, fs::perms(0600));
  };
  putKey(run->runKey(), key);
  for (const std::string& node : kNodes) putKey(run->nodeKey(node), nodeKeyOf(key, node));
  const auto user = static_cast<int64_t>(geteuid());
  const bool appended = run->append({slurm::JobKind::kArray, "100", 0, {}, 4}).ok() &&
                        run->append({slurm::JobKind::kFleet, "110", 0, {}, 1}).ok();
  if (!appended) throw std::runtime_error("jobs.jsonl");
  Random random(1);
  Forger honest(run_, random);
  int task = 0;
  for (const std::string& node : kNodes) {
    if (node == "n4") continue;
    const bool rejected = node == "n3";
    jobs_.push_back({"100", taskOf(node), fmt::format("100_{}", task++), rejected ? "FAILED" : "COMPLETED",
                     node, kId, rejected ? 1 : 0, user, kBegan - 2, kBegan + 100});
    honest.claim(node, taskOf(node));
    honest.exitOf(node, rejected ? 1 : 0);
    honest.write(honest.recordPath(node), recordOf(node, rejected, taskOf(node)));
  }
  // On n4 ran a job of another run, one of another user, one of this run's user that failed, one that runs,
  // one that has no comment, and long ago one of which the accounting kept none.
  const auto end = [&](const char* number, const char* state, const char* node, const char* comment, int code,
                       int64_t who) {
    jobs_.push_back({number, number, number, state, node, comment, code, who, kBegan - 2, kBegan + 100});
  };
  end("110", "FAILED", "n1", kId, 1, user);
  end("90", "COMPLETED", "n4", "another-run", 0, user);
  end("91", "FAILED", "n4", kId, 1, user + 1);
  end("92", "TIMEOUT", "n4", kId, 0, user);
  end("93", "RUNNING", "n4", kId, 0, user);
  end("95", "FAILED", "n4", "", 1, user);
  end("96", "COMPLETED", "n4", "", 0, user);
  jobs_.push_back({"97", "97", "97", "FAILED", "n4", "", 1, user, kBegan - kDay, kBegan - kDay + 100, true});
  put(run_ / "fleet.exit", "1\n");
  const slurm::Witness witness(*run, *run->jobs(), jobs_, geteuid());
  const auto judged = judgeRun(*run, witness, false);
  if (!judged.ok()) throw std::runtime_error(judged.error().text());
  put(run_ / "fleet" / "fleet.json", fleetText(judged->fleet, judged->records));
  told_ = judge(run_).lines;
}

size_t ForgedRuns::kinds() {
  return forgeries().size();
}

ForgedRuns::Verdicts ForgedRuns::judge(const fs::path& folder) const {
  Verdicts verdicts;
  const auto refuse = [&](const Error& error) {
    verdicts.refused = error.text();
    return verdicts;
  };
  const auto run = slurm::RunStore::open(folder);
  if (!run.ok()) return refuse(run.error());
  const auto submitted = run->jobs();
  if (!submitted.ok()) return refuse(submitted.error());
  const slurm::Witness witness(*run, *submitted, jobs_, geteuid());
  const auto judged = judgeRun(*run, witness, false);
  if (!judged.ok()) return refuse(judged.error());
  for (const auto& node : judged->fleet.nodes) {
    if (node.state == fleet::NodeState::kAccepted) verdicts.accepted.insert(node.name);
    // Whose record claims to be what it is not is rejected, and never drained for that.
    if (node.state == fleet::NodeState::kRejected && node.claim.empty()) verdicts.rejected.insert(node.name);
    if (node.state != fleet::NodeState::kAccepted)
      verdicts.lines.insert(fmt::format("{} {}: {}", node.name, nameOf(node.state), node.reason));
  }
  for (const auto& bad : judged->fleet.quarantined)
    verdicts.lines.insert(fmt::format("{} {}: {}", bad.path, bad.node, bad.reason));
  for (const auto* list : {&judged->fleet.duplicates, &judged->fleet.stale, &judged->fleet.foreign,
                           &judged->fleet.withoutRecord})
    for (const auto& out : *list)
      verdicts.lines.insert(fmt::format("{} {}: {}", out.path, out.node, out.reason));
  for (const auto& finding : judged->fleet.findings) verdicts.lines.insert(finding.text);
  // Nobody but who submitted it makes a whole run simulated.
  if (const Status measured = requireMeasured(*run, "drain nodes"); !measured.ok())
    return refuse({ErrorCode::kUsage, measured.error().message, ""});
  const auto rejected = rejectedNodes(*run, witness, false);
  if (!rejected.ok()) return refuse(rejected.error());
  slurm::Nodes known;
  for (const std::string& node : kNodes) known[node] = {node, node == "n4" ? "drained" : "idle", "", "", 0};
  for (const auto& action : slurm::planDrain(kId, *rejected, known)) {
    if (!action.reason.empty()) verdicts.drained.insert(action.node);
    verdicts.lines.insert(fmt::format("{}: {} {}", action.node, action.reason, action.why));
  }
  return verdicts;
}

std::string ForgedRuns::honest() const {
  const Verdicts found = judge(run_);
  if (!found.refused.empty()) return found.refused;
  if (found.drained != std::set<std::string>{"n3"})
    return "drained: " + join({found.drained.begin(), found.drained.end()}, " ");
  if (found.accepted != std::set<std::string>{"n1", "n2", "n5"})
    return "told: " + join({found.lines.begin(), found.lines.end()}, "; ");
  return "";
}

ForgedRuns::Trial ForgedRuns::forge(uint64_t seed) const {
  Random random(seed);
  const fs::path folder = folder_.path() / fmt::format("forged-{}", seed);
  fs::copy(run_, folder, fs::copy_options::recursive);
  Forger forger(folder, random);
  Trial trial;
  for (size_t i = 0, ways = 1 + upTo(random, 3); i < ways; ++i) {
    const Forgery& forgery = forgeries()[i == 0 ? seed % kinds() : upTo(random, kinds())];
    try {
      forgery.apply(forger);
      trial.kind += (trial.kind.empty() ? "" : " + ") + std::string(forgery.kind);
    } catch (const std::exception&) {
      if (i == 0) throw;  // what was forged before may leave the next nothing to forge
    }
  }
  const Verdicts found = judge(folder);
  fs::remove_all(folder);
  if (!found.refused.empty()) {
    trial.problem = found.refused.find(folder.string()) == std::string::npos &&
                            found.refused.find("n4") == std::string::npos
                        ? "refused without a name: " + found.refused
                        : "";
    return trial;
  }
  std::string news;
  for (const std::string& line : found.lines)
    if (!told_.contains(line)) news += line + "\n";
  for (const std::string& node : found.drained)
    if (node != "n3") trial.problem += node + " would be drained; ";
  for (const std::string& node : found.rejected)
    if (node != "n3") trial.problem += node + " is rejected; ";
  for (const char* node : {"n3", "n4"})
    if (found.accepted.contains(node)) trial.problem += std::string(node) + " is accepted; ";
  if (!found.drained.contains("n3") && news.find("n3") == std::string::npos)
    trial.problem += "n3 is spared; ";
  for (const std::string& name : forger.names())
    if (news.find(name) == std::string::npos) trial.problem += name + " is not named; ";
  if (!trial.problem.empty()) trial.problem += "told:\n" + news;
  return trial;
}

}  // namespace muster::testing
