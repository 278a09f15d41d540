// SPDX-License-Identifier: Apache-2.0
// `muster slurm hooks`: programs that Slurm calls on its nodes, each inside the time that Slurm gives it.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runner/app/input/plan_input.h"
#include "runner/app/slurm/slurm_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/scripts.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr int kHealthCheckSeconds = 60;  // slurm.conf(5): HealthCheckProgram is killed then
constexpr int kNoLimit = 65534;          // how PrologEpilogTimeout says that it is not set

/// What this Slurm gives a prolog and an epilog, in seconds; kNoLimit where it gives all the time, or where
/// there is no Slurm to ask: the script then names the limit that it needs.
int prologSeconds() {
  const auto configuration = slurm::readConfiguration();
  if (!configuration.ok()) {
    printText("note: cannot read PrologEpilogTimeout from Slurm: {}\n", configuration.error().message);
    return kNoLimit;
  }
  const auto found = configuration->find("PrologEpilogTimeout");
  int seconds = kNoLimit;
  if (found != configuration->end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), seconds);
  return seconds;
}

Status checkLimit(int seconds, const std::string& kind, int limit) {
  if (seconds >= 5 && seconds + slurm::kHookMargin <= limit) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("--time is {} s, but Slurm kills a {} after {} s; expected 5 s to {} s", seconds,
                           kind, limit, limit - slurm::kHookMargin),
               ""};
}

Status writeHook(const fs::path& templates, const fs::path& out, const slurm::Hook& hook) {
  MUSTER_TRY(const std::string text, slurm::renderHook(templates, hook));
  const fs::path file = out / (hook.kind + ".sh");
  MUSTER_CHECK_OK(writeFileAtomically(file, text));
  // Whoever may read it may execute it: who that is, the umask says.
  std::error_code error;
  const auto readable = static_cast<unsigned>(fs::status(file, error).permissions()) & 0444U;
  if (!error) fs::permissions(file, fs::perms(readable >> 2U), fs::perm_options::add, error);
  if (error) return Error{ErrorCode::kIo, "cannot make it executable: " + error.message(), file.string()};
  printText("wrote {}\n", file.string());
  return {};
}

/// What a hook runs, reads and writes, it does as root: its script names real paths that nobody else can
/// change.
Status trustHook(const Tree& tree, const std::map<std::string, std::string>& includes, slurm::Hook& hook) {
  MUSTER_TRY(const fs::path muster, trustedPath(hook.muster, "program", Above::kAll));
  MUSTER_TRY(const fs::path plan, trustedPath(hook.plan, "plan", Above::kAll));
  hook.muster = muster.string();
  hook.plan = plan.string();
  for (const auto& [file, sha256] : includes)
    MUSTER_CHECK_OK(trustedPath(plan.parent_path() / file, "file that the plan includes", Above::kAll));
  const fs::path programs = tree.hostExecutable.parent_path().parent_path();
  const std::pair<fs::path, const char*> all[] = {{programs, "part of the program"},
                                                  {tree.templates / "slurm", "template"},
                                                  {tree.plans / "skus", "profile"}};
  for (const auto& [folder, kind] : all) MUSTER_CHECK_OK(trustFolder(folder, kind, Above::kAll));
  return {};
}

/// What the scripts make, nobody else may write: the nearest folder that is there may have a default ACL.
Status trustNearest(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  MUSTER_CHECK_OK(ownFolder(folder, "folder of the hooks' results"));
  return {};
}

}  // namespace

Result<int> slurmHooks(const SlurmOptions& o) {
  MUSTER_TRY(const double wanted, parseDuration(o.hookTime).context("--time"));
  const int seconds = static_cast<int>(std::ceil(wanted));
  MUSTER_CHECK_OK(checkLimit(seconds, "HealthCheckProgram", kHealthCheckSeconds));
  MUSTER_CHECK_OK(checkLimit(seconds, "prolog or epilog", prologSeconds()));
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, o.pluginFolders, {}));
  MUSTER_TRY(const Plan plan, requirePlan(loadPlan(o.plan, catalog, {})));
  MUSTER_TRY(const fs::path bin, executableFolder());
  MUSTER_TRY(const fs::path made, makeOutputFolder(o.out, "--out"));
  slurm::Hook hook;
  hook.muster = (bin / "muster").string();
  hook.plan = fs::absolute(o.plan).lexically_normal().string();
  hook.slurmBin = "/opt/slurm/bin:/usr/local/slurm/bin";
  if (const char* configuration = std::getenv("SLURM_CONF")) hook.slurmConf = configuration;
  hook.seconds = seconds;
  MUSTER_CHECK_OK(trustHook(tree, plan.includes, hook));
  MUSTER_TRY(const fs::path out, trustedPath(made, "folder of the hooks", Above::kAll));
  MUSTER_TRY(const fs::path results,
             trustedTarget(o.hookFolder, "folder of the hooks' results", Above::kAll));
  hook.folder = (results / "").parent_path().string();  // it may end with a '/'
  MUSTER_CHECK_OK(trustNearest(hook.folder));
  for (const char* kind : {"health_check", "prolog", "epilog"}) {
    hook.kind = kind;
    MUSTER_CHECK_OK(writeHook(tree.templates, out, hook));
  }
  printText(
      "add them to slurm.conf as described at the top of each script, then run: scontrol reconfigure\n");
  return 0;
}

}  // namespace muster
