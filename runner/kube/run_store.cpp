// SPDX-License-Identifier: Apache-2.0
// Reads and writes the folder of a run on Kubernetes.
#include "runner/kube/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/system/run_store.h"
#include "runner/system/trust.h"

namespace muster::kube {
namespace fs = std::filesystem;
namespace {

constexpr int kSchema = 1;
constexpr const char* kManifest = "k8s.json";

Json toJson(const Submission& s) {
  return {{"schema", kSchema},
          {"id", s.id},
          {"release", s.release},
          {"created", s.created},
          {"context", s.cluster.context},
          {"namespace", s.cluster.space},
          {"plan_name", s.planName},
          {"plan_file", s.planFile},
          {"simulated", s.simulated},
          {"together", s.together},
          {"gpu_resource", s.gpus.resource},
          {"gpus", s.gpus.count},
          {"nodes", s.nodes},
          {"fleet_options", s.fleetOptions},
          {"value_files", s.valueFiles}};
}

Result<Submission> submissionFrom(const Json& json, const std::string& path) {
  Submission s;
  int schema = 0;
  JsonReader reader(json, path);
  reader.read("schema", schema);
  if (reader.ok() && schema != kSchema)
    reader.fail("schema",
                fmt::format("is {}, expected {}; another version of Muster wrote it", schema, kSchema));
  reader.read("id", s.id);
  reader.read("release", s.release);
  reader.read("created", s.created);
  reader.read("context", s.cluster.context);
  reader.read("namespace", s.cluster.space);
  reader.read("plan_name", s.planName);
  reader.read("plan_file", s.planFile);
  reader.read("simulated", s.simulated);
  reader.read("together", s.together);
  reader.optional("gpu_resource", s.gpus.resource);
  reader.optional("gpus", s.gpus.count);
  reader.read("nodes", s.nodes);
  reader.read("fleet_options", s.fleetOptions);
  reader.read("value_files", s.valueFiles);
  // Names become parts of paths and of kubectl's arguments.
  for (const std::string& name : s.nodes)
    if (reader.ok() && !isPlainName(name)) reader.fail("nodes", "hold a name that no node has");
  for (const auto* name : {&s.id, &s.release, &s.planFile})
    if (reader.ok() && !isPlainName(*name)) reader.fail("id", "or a name beside it is no plain name");
  MUSTER_CHECK_OK(reader.status());
  return s;
}

fs::path roundFile(const fs::path& folder, int round) {
  return folder / "rounds" / fmt::format("{}.json", round);
}

}  // namespace

Result<RunStore> RunStore::create(const fs::path& folder, const Submission& submission) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  MUSTER_CHECK_OK(requireEmpty(path));
  MUSTER_CHECK_OK(makeOutputFolder(path, "--out"));
  MUSTER_TRY(const fs::path own, ownFolder(path));
  MUSTER_CHECK_OK(claimEmpty(own));
  for (const char* name : {"rounds", "records", "results", "attempts"})
    MUSTER_CHECK_OK(makeOutputFolder(own / name, "--out"));
  MUSTER_CHECK_OK(writeJson(own / kManifest, toJson(submission)));
  return RunStore(own, submission);
}

Result<RunStore> RunStore::open(const fs::path& folder) {
  MUSTER_TRY(const fs::path path, ownFolder(folder));
  std::error_code error;
  if (!fs::is_regular_file(path / kManifest, error))
    return Error{ErrorCode::kUsage,
                 "this is not a run on Kubernetes (it has no k8s.json); give the directory that `muster k8s "
                 "submit` printed",
                 path.string()};
  MUSTER_TRY(const Json json, readOwnJson(path / kManifest));
  MUSTER_TRY(Submission submission, submissionFrom(json, (path / kManifest).string()));
  return RunStore(path, std::move(submission));
}

Result<Fd> RunStore::lock() const {
  return lockRun(folder_);
}

int RunStore::lastRound() const {
  int round = 0;
  std::error_code error;
  while (fs::exists(roundFile(folder_, round + 1), error)) ++round;
  return round;
}

Result<Json> RunStore::values(int round) const {
  return readOwnJson(roundFile(folder_, round));
}

Status RunStore::keepValues(int round, const Json& values) const {
  return writeJson(roundFile(folder_, round), values);
}

void RunStore::dropRound(int round) const {
  std::error_code error;
  fs::remove(roundFile(folder_, round), error);
}

Result<NodeResult> RunStore::result(const std::string& node) const {
  NodeResult result;
  std::error_code error;
  if (!fs::exists(resultFile(node), error)) return result;
  MUSTER_TRY(const Json json, readOwnJson(resultFile(node)));
  JsonReader reader(json, resultFile(node).string());
  reader.read("pod", result.pod);
  reader.read("round", result.round);
  reader.read("exit_code", result.exitCode);
  reader.read("problem", result.problem);
  MUSTER_CHECK_OK(reader.status());
  if (result.problem.empty() && !result.pod.empty() && !fs::is_regular_file(record(node), error))
    result.problem = fmt::format("records/{}/record.json is missing", node);
  return result;
}

Status RunStore::keep(const std::string& node, const NodeResult& result, const std::string& record) const {
  std::error_code error;
  fs::remove_all(this->record(node).parent_path(), error);  // with the pages that were made of it
  if (!record.empty()) {
    MUSTER_CHECK_OK(makeOutputFolder(this->record(node).parent_path(), "--out"));
    MUSTER_CHECK_OK(writeFileAtomically(this->record(node), record));
  }
  const Json json = {{"pod", result.pod},
                     {"round", result.round},
                     {"exit_code", result.exitCode},
                     {"problem", result.problem}};
  return writeJson(resultFile(node), json);
}

Status RunStore::setAside(const std::string& node, int round) const {
  const std::string name = fmt::format("{}.{}", node, round);
  fs::path to = folder_ / "attempts" / name;
  std::error_code none;
  // Of several pods of a round each is kept.
  for (int n = 2; fs::exists(to / "result.json", none); ++n)
    to = folder_ / "attempts" / fmt::format("{}-{}", name, n);
  MUSTER_CHECK_OK(makeOutputFolder(to, "--out"));
  MUSTER_CHECK_OK(moveInto(to, {{record(node), "record.json"}, {resultFile(node), "result.json"}}));
  return keep(node, {"", round, -1, ""}, "");
}

}  // namespace muster::kube
