// SPDX-License-Identifier: Apache-2.0
// Reads and writes slurm.json.
#include "runner/slurm/submission.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <string_view>

#include "runner/core/text.h"
#include "runner/system/run_store.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

constexpr int kSchema = 1;
constexpr const char* kManifest = "slurm.json";

Json toJson(const JobSettings& jobs) {
  return {{"name", jobs.name},
          {"partition", jobs.partition},
          {"account", jobs.account},
          {"reservation", jobs.reservation},
          {"qos", jobs.qos},
          {"constraint", jobs.constraint},
          {"runtime", jobs.runtime},
          {"image", jobs.image},
          {"mounts", jobs.mounts},
          {"container_muster", jobs.containerMuster},
          {"muster", jobs.muster},
          {"minutes", jobs.minutes},
          {"gap_minutes", jobs.gapMinutes},
          {"at_once", jobs.atOnce},
          {"most_jobs", jobs.mostJobs},
          {"nvidia", jobs.nvidia},
          {"gpus", jobs.gpus}};
}

Json toJson(const Submission& submission) {
  return {{"schema", kSchema},
          {"id", submission.id},
          {"folder", submission.folder},
          {"created", submission.created},
          {"plan_name", submission.planName},
          {"plan_file", submission.planFile},
          {"plan_sha256", submission.planSha256},
          {"scenario_file", submission.scenarioFile},
          {"nodes", submission.nodes},
          {"options", submission.options},
          {"fleet_options", submission.fleetOptions},
          {"node_stages", submission.nodeStages},
          {"cluster_stages", submission.clusterStages},
          {"record_keys", submission.recordKeys},
          {"jobs", toJson(submission.jobs)}};
}

Result<JobSettings> jobSettings(const Json& json, const std::string& path) {
  JobSettings jobs;
  JsonReader reader(json, path);
  reader.read("name", jobs.name);
  reader.read("partition", jobs.partition);
  reader.read("account", jobs.account);
  reader.read("reservation", jobs.reservation);
  reader.read("qos", jobs.qos);
  reader.read("constraint", jobs.constraint);
  reader.read("runtime", jobs.runtime);
  reader.read("image", jobs.image);
  reader.read("mounts", jobs.mounts);
  reader.read("container_muster", jobs.containerMuster);
  reader.read("muster", jobs.muster);
  reader.read("minutes", jobs.minutes);
  reader.read("gap_minutes", jobs.gapMinutes);
  reader.read("at_once", jobs.atOnce);
  reader.optional("most_jobs", jobs.mostJobs);
  reader.optional("nvidia", jobs.nvidia);
  reader.read("gpus", jobs.gpus);
  MUSTER_CHECK_OK(reader.status());
  return jobs;
}

Result<Submission> submissionFromJson(const Json& json, const std::string& path) {
  Submission submission;
  int schema = 0;
  JsonReader reader(json, path);
  reader.read("schema", schema);
  reader.read("id", submission.id);
  reader.optional("folder", submission.folder);
  reader.read("created", submission.created);
  reader.read("plan_name", submission.planName);
  reader.read("plan_file", submission.planFile);
  reader.read("plan_sha256", submission.planSha256);
  reader.read("scenario_file", submission.scenarioFile);
  reader.read("nodes", submission.nodes);
  reader.read("options", submission.options);
  reader.read("fleet_options", submission.fleetOptions);
  reader.read("node_stages", submission.nodeStages);
  reader.read("cluster_stages", submission.clusterStages);
  reader.optional("record_keys", submission.recordKeys);
  const Json* jobs = reader.object("jobs");
  MUSTER_CHECK_OK(reader.status());
  if (schema != kSchema)
    return Error{ErrorCode::kUsage,
                 fmt::format("schema {}, expected {}: another version of muster wrote it", schema, kSchema),
                 path};
  // These become file names and script text, and the file may have been changed.
  std::set<std::string_view> seen;
  for (const std::string& node : submission.nodes)
    if (!isPlainName(node) || !seen.insert(node).second)
      return Error{ErrorCode::kUsage,
                   fmt::format("\"{}\" is {}", printable(node, 80),
                               isPlainName(node) ? "named twice" : "not a node name"),
                   path};
  if (!isPlainName(submission.planFile) ||
      (!submission.scenarioFile.empty() && !isPlainName(submission.scenarioFile)) ||
      !isPlainName(submission.id))
    return Error{ErrorCode::kUsage, "plan_file, scenario_file and id must be plain names", path};
  MUSTER_TRY(submission.jobs, jobSettings(*jobs, path + ".jobs"));
  return submission;
}

/// Slurm replaces % in the names of output files, and knows no way to write a line break.
Status checkPath(const fs::path& folder) {
  const std::string text = folder.string();
  const bool control =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!control && text.find_first_of("%\\") == std::string::npos) return {};
  return Error{ErrorCode::kUsage,
               "Slurm cannot write job outputs below a path with '%', '\\' or control characters; choose "
               "another --out",
               printable(text)};
}

Error folderError(const fs::path& path, const std::error_code& error) {
  return Error{ErrorCode::kUsage,
               "cannot make it: " + error.message() + "; choose a writable shared directory", path.string()};
}

/// Makes the directory `to` and moves what exists of `parts` into it.
Status moveIntoNew(const fs::path& to, const std::vector<std::pair<fs::path, const char*>>& parts) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return folderError(to, error);
  return moveInto(to, parts);
}

}  // namespace

bool RunStore::holdsRun(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kManifest, error) && !isPlanted(folder / kManifest);
}

Result<RunStore> RunStore::create(const fs::path& folder, const Submission& submission,
                                  const fs::path& named) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  MUSTER_CHECK_OK(checkPath(path));
  for (fs::path above = path.parent_path(); above.has_relative_path(); above = above.parent_path())
    if (holdsRun(above))
      return Error{
          ErrorCode::kUsage,
          fmt::format("it lies inside another run, {}, and would be removed with it; choose another --out",
                      above.string()),
          path.string()};
  MUSTER_CHECK_OK(requireEmpty(path));
  // The way that was named: whose link is on it does not show in `folder`.
  MUSTER_CHECK_OK(makeOutputFolder(named.empty() ? path : named, "--out"));
  // Root would have Slurm run whatever the owner of the folder, or of one above it, puts there.
  MUSTER_TRY(const fs::path own, ownFolder(path));
  if (own != path)
    return Error{ErrorCode::kUsage,
                 fmt::format("it contains a symbolic link and resolves to {}; use that path", own.string()),
                 path.string()};
  MUSTER_CHECK_OK(claimEmpty(path));
  for (const char* name : {"scripts", "logs", "claims", "exits", "records/nodes", "attempts"}) {
    MUSTER_CHECK_OK(makeOutputFolder(path / name, "--out"));
  }
  MUSTER_CHECK_OK(writeFileAtomically(path / "nodes.txt", join(submission.nodes, "\n") + "\n"));
  RunStore run(path, submission);
  run.submission_.folder = path.string();
  MUSTER_CHECK_OK(writeJson(path / kManifest, toJson(run.submission_)));
  return run;
}

Result<RunStore> RunStore::open(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  if (!holdsRun(path))
    return Error{ErrorCode::kUsage,
                 "this is not a Slurm run (it has no slurm.json); give the directory that `muster slurm "
                 "submit` printed",
                 path.string()};
  MUSTER_TRY(const Json json, readOwnJson(path / kManifest));
  auto submission = submissionFromJson(json, (path / kManifest).string());
  if (!submission.ok()) return std::move(submission).error();
  return RunStore(path, std::move(submission).value());
}

Status RunStore::checkPlace() const {
  std::error_code error;  // by another mount or link it is the same folder
  const std::string& home = submission_.folder;
  if (home.empty() || fs::equivalent(home, folder_, error)) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("this directory was copied or moved from {0}, where the run's jobs write; use {0}, "
                  "or move it back",
                  printable(home)),
      folder_.string()};
}

Result<uid_t> RunStore::owner() const {
  struct stat info {};
  if (stat(folder_.c_str(), &info) != 0) return Error{ErrorCode::kIo, errnoText(errno), folder_.string()};
  return info.st_uid;
}

Result<Fd> RunStore::lock() const {
  return lockRun(folder_);
}

fs::path RunStore::script(JobKind kind) const {
  const char* name = kind == JobKind::kCluster ? "cluster" : kind == JobKind::kFleet ? "fleet" : "node";
  return folder_ / "scripts" / (std::string(name) + ".sbatch");
}

Status RunStore::limitJobs(int mostJobs) {
  submission_.jobs.mostJobs = mostJobs;
  return writeJson(folder_ / kManifest, toJson(submission_));
}

Status RunStore::setAside(const std::string& node, int round) const {
  // The claim last: from then on another task may begin.
  return moveIntoNew(folder_ / "attempts" / "nodes" / fmt::format("{}.{}", node, round),
                     {{nodeFolder(node), "run"}, {exit(node), "exit"}, {claim(node), "claim"}});
}

Status RunStore::setClusterAside(int round) const {
  return moveIntoNew(folder_ / "attempts" / fmt::format("cluster.{}", round),
                     {{folder_ / "records" / "cluster", "run"},
                      {folder_ / "cluster_exits", "exits"},
                      {folder_ / "cluster.exit", "exit"}});
}

std::string whyRefused(const fs::path& file) {
  const auto text = readOwnFile(file, 256);
  return text.ok() || text.error().code == ErrorCode::kNotFound ? "" : ": " + text.error().text();
}

std::string readClaim(const fs::path& file) {
  const auto text = readOwnFile(file, 256);
  if (!text.ok()) return "";
  const std::string number(trim(text->substr(0, text->find(' '))));
  return number.find_first_not_of("0123456789") == std::string::npos ? number : "";
}

int readExit(const fs::path& file) {
  const auto text = readOwnFile(file, 64);
  if (!text.ok()) return -1;
  const std::string_view line = trim(*text);
  int code = -1;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), code);
  return failure == std::errc() && end == line.data() + line.size() && code >= 0 && code < 256 ? code : -1;
}

}  // namespace muster::slurm
