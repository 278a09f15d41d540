// SPDX-License-Identifier: Apache-2.0
// Renders the job scripts and checks the values in them.
#include "runner/slurm/scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <kainjow/mustache.hpp>
#include <tuple>

#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

using kainjow::mustache::data;
using kainjow::mustache::mustache;

using Words = std::vector<std::string>;

/// Line breaks would end a #SBATCH line, whatever quotes are around them.
Status checkValue(const std::string& what, const std::string& value) {
  const bool control =
      std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!control) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("\"{}\" contains control characters, which a script cannot hold", printable(value, 120)),
      what};
}

/// Refuses what is not of `allowed` beside letters and digits. Slurm reads the words of a #SBATCH line by
/// rules of its own: a backslash escapes also within single quotes, so no quoting of a shell keeps a value
/// together.
Status checkCharacters(const std::string& what, const std::string& value, std::string_view allowed) {
  const auto bad = std::find_if(value.begin(), value.end(), [&](unsigned char c) {
    return std::isalnum(c) == 0 && allowed.find(static_cast<char>(c)) == std::string_view::npos;
  });
  if (bad == value.end()) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" holds {}; expected letters, digits and {}", printable(value, 120),
                           *bad == ' ' ? "a blank" : printable(std::string(1, *bad)), allowed),
               what};
}

Status checkValues(const Submission& submission, const fs::path& folder) {
  constexpr std::string_view kName = "_-.:,@+=/", kFeatures = "_-.:,@+=/&|*[]()!", kPath = "_-.:,@+=/#~%() ";
  const JobSettings& jobs = submission.jobs;
  const std::tuple<const char*, const std::string*, std::string_view> all[] = {
      {"--job-name", &jobs.name, kName},
      {"--partition", &jobs.partition, kName},
      {"--account", &jobs.account, kName},
      {"--reservation", &jobs.reservation, kName},
      {"--qos", &jobs.qos, kName},
      {"--constraint", &jobs.constraint, kFeatures},
      {"--container-image", &jobs.image, kPath},
      {"--container-muster", &jobs.containerMuster, kPath}};
  for (const auto& [what, value, allowed] : all) MUSTER_CHECK_OK(checkCharacters(what, *value, allowed));
  for (const std::string& mount : jobs.mounts)
    MUSTER_CHECK_OK(checkCharacters("--container-mounts", mount, kPath));
  // These stand in shell words alone.
  MUSTER_CHECK_OK(checkValue("path of muster", jobs.muster));
  for (const std::string& option : submission.options)
    MUSTER_CHECK_OK(checkValue("option of muster run", option));
  for (const std::string& option : submission.fleetOptions)
    MUSTER_CHECK_OK(checkValue("option of muster fleet", option));
  MUSTER_CHECK_OK(checkValue("--out", folder.string()));
  if (folder.string().find_first_of("'\"\\%") == std::string::npos) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("Slurm cannot use the path \"{}\": it holds a quote, '\\' or '%'; choose another",
                           printable(folder.string(), 200)),
               "--out"};
}

/// Mounts are FROM:TO[:FLAGS], several with commas between them; neither Pyxis nor Apptainer can quote these,
/// and Enroot, which Pyxis hands them to, keeps them in a table with blanks.
Status checkMounts(const JobSettings& jobs, const fs::path& folder) {
  if (jobs.runtime == "none") return {};
  const char* bad = jobs.runtime == "pyxis" ? ":, " : ":,";
  if (folder.string().find_first_of(bad) != std::string::npos)
    return Error{
        ErrorCode::kUsage,
        fmt::format(
            "{} cannot mount \"{}\": its path must not contain a comma, colon or blank; choose another --out",
            jobs.runtime, printable(folder.string(), 200)),
        "--out"};
  for (const std::string& mount : jobs.mounts) {
    const auto parts = split(mount, ':');
    const bool sound = (parts.size() == 2 || parts.size() == 3) && !parts[0].empty() && !parts[1].empty() &&
                       (jobs.runtime != "pyxis" || mount.find(' ') == std::string::npos);
    if (!sound)
      return Error{
          ErrorCode::kUsage,
          fmt::format("\"{}\" is not a mount; expected FROM:TO or FROM:TO:FLAGS", printable(mount, 200)),
          "--container-mounts"};
  }
  return {};
}

/// A container's options for srun, by Pyxis and Enroot. Where a site has entrypoints executed, that of our
/// image would put a second `muster` before ours.
Words pyxisOptions(const JobSettings& jobs, const std::string& run) {
  Words mounts = {run + ":" + run};
  mounts.insert(mounts.end(), jobs.mounts.begin(), jobs.mounts.end());
  return {"--container-image=" + jobs.image, "--container-mounts=" + join(mounts, ","),
          "--no-container-entrypoint"};
}

/// Apptainer, or what it was before it got this name: both take these options.
Words apptainer(const JobSettings& jobs, const std::string& run) {
  Words words = {jobs.runtime, "exec", "--bind", run + ":" + run};
  for (const std::string& mount : jobs.mounts) words.insert(words.end(), {"--bind", mount});
  if (jobs.nvidia) words.push_back("--nv");
  words.insert(words.end(), {jobs.image, jobs.containerMuster});
  return words;
}

/// What stands before `run` in a script that runs on the node itself.
Words launchWords(const JobSettings& jobs, const std::string& run) {
  if (jobs.runtime == "none") return {jobs.muster};
  if (jobs.runtime != "pyxis") return apptainer(jobs, run);
  Words words = {"srun", "--nodes=1", "--ntasks=1", "--whole", "--mem=0", "--cpu-bind=none"};
  const Words container = pyxisOptions(jobs, run);
  words.insert(words.end(), container.begin(), container.end());
  words.push_back(jobs.containerMuster);
  return words;
}

/// The same for a task of the cluster job, which srun has brought into its container already.
Words stepWords(const JobSettings& jobs, const std::string& run) {
  return jobs.runtime == "pyxis" ? Words{jobs.containerMuster} : launchWords(jobs, run);
}

data list(const Words& words) {
  data all(data::type::list);
  for (const std::string& word : words) all.push_back(data(word));
  return all;
}

/// An empty value counts as absent, so that its section is left out.
void set(data& all, const std::string& name, const std::string& value) {
  if (value.empty())
    all.set(name, data(data::type::bool_false));
  else
    all.set(name, value);
}

data scriptData(const Submission& submission, const std::string& run, const std::string& common) {
  const JobSettings& jobs = submission.jobs;
  data all;
  all.set("common", data(kainjow::mustache::partial([common] { return common; })));
  all.set("id", submission.id);
  set(all, "job_name", jobs.name);
  set(all, "partition", jobs.partition);
  set(all, "account", jobs.account);
  set(all, "reservation", jobs.reservation);
  set(all, "qos", jobs.qos);
  set(all, "constraint", jobs.constraint);
  set(all, "gpus", jobs.gpus > 0 ? std::to_string(jobs.gpus) : "");
  all.set("minutes", std::to_string(jobs.minutes));
  all.set("run", run);
  all.set("plan", submission.planFile);
  all.set("muster", jobs.muster);
  all.set("again", std::to_string(kExitAgain));
  all.set("options", list(submission.options));
  all.set("fleet_options", list(submission.fleetOptions));
  all.set("launch", list(launchWords(jobs, run)));
  all.set("step_launch", list(stepWords(jobs, run)));
  all.set("step_options", list(jobs.runtime == "pyxis" ? pyxisOptions(jobs, run) : Words{}));
  const bool simulated = !submission.scenarioFile.empty();
  all.set("simulated", data(simulated ? data::type::bool_true : data::type::bool_false));
  all.set("scenario", submission.scenarioFile);
  const bool both = submission.nodeStages && submission.clusterStages;
  all.set("both_scopes", data(both ? data::type::bool_true : data::type::bool_false));
  // Without Slurm nobody knows which nodes "all" are (submit --print).
  all.set("node_count", submission.nodes.empty() ? "NODE_COUNT" : std::to_string(submission.nodes.size()));
  return all;
}

/// `text` without empty lines that follow empty ones: sections that were left out leave theirs behind.
std::string withoutGaps(const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (c != '\n' || kept.size() < 2 || kept.compare(kept.size() - 2, 2, "\n\n") != 0) kept += c;
  return kept;
}

Result<std::string> render(const fs::path& file, const std::string& text, const data& values) {
  mustache page(text);
  if (!page.is_valid())
    return Error{ErrorCode::kUnsupported, "this template cannot be read: " + page.error_message(),
                 file.string()};
  page.set_custom_escape(shellQuote);
  return withoutGaps(page.render(values));
}

/// A script becomes of it that runs as whoever submits it.
Result<std::string> readTemplate(const fs::path& file) {
  MUSTER_TRY(const fs::path trusted, trustedPath(file, "template"));
  return readFile(trusted);
}

}  // namespace

Result<std::vector<Script>> renderScripts(const Submission& submission, const fs::path& folder,
                                          const fs::path& templates) {
  MUSTER_CHECK_OK(checkValues(submission, folder));
  MUSTER_CHECK_OK(checkMounts(submission.jobs, folder));
  MUSTER_TRY(const std::string common, readTemplate(templates / "slurm" / "common.mustache"));
  const data values = scriptData(submission, folder.string(), common);
  std::vector<Script> scripts;
  const std::pair<const char*, const char*> files[] = {{"node.sbatch", "node.sbatch"},
                                                       {"cluster.sbatch", "cluster.sbatch"},
                                                       {"step.sh", "step.mustache"},
                                                       {"fleet.sbatch", "fleet.sbatch"}};
  for (const auto& [name, from] : files) {
    const fs::path file = templates / "slurm" / from;
    MUSTER_TRY(const std::string text, readTemplate(file));
    MUSTER_TRY(std::string script, render(file, text, values));
    scripts.push_back({name, std::move(script)});
  }
  return scripts;
}

Result<std::string> renderHook(const fs::path& templates, const Hook& hook) {
  const std::pair<const char*, std::string> values[] = {
      {"kind", hook.kind},
      {"muster", hook.muster},
      {"plan", hook.plan},
      {"folder", hook.folder},
      {"slurm_bin", hook.slurmBin},
      {"slurm_conf", hook.slurmConf},
      {"seconds", std::to_string(hook.seconds)},
      {"slurm_seconds", std::to_string(hook.seconds + kHookMargin)}};
  const fs::path file = templates / "slurm" / (hook.kind + ".mustache");
  MUSTER_TRY(const std::string text, readTemplate(file));
  MUSTER_TRY(const std::string verdict, readTemplate(templates / "slurm" / "verdict.mustache"));
  data all;
  all.set("verdict", data(kainjow::mustache::partial([verdict] { return verdict; })));
  for (const auto& [name, value] : values) {
    MUSTER_CHECK_OK(checkValue(name, value));
    set(all, name, value);
  }
  return render(file, text, all);
}

}  // namespace muster::slurm
