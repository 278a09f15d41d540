// SPDX-License-Identifier: Apache-2.0
// Describes plugins side by side; see plugins.h.
#include "runner/dispatch/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/core/text.h"
#include "runner/dispatch/host_process.h"

namespace muster {
namespace {
namespace fs = std::filesystem;

using Libraries =
    std::map<std::string, std::vector<fs::path>>;  // by file name, because that is the plugin's name

/// Adds the `*.so` files of `folder` whose plugin is asked for.
Status findLibraries(const fs::path& folder, const std::vector<std::string>& only, Libraries& found) {
  std::error_code failure;
  fs::directory_iterator items(folder, failure);
  if (failure)
    return Error{
        ErrorCode::kUsage,
        "cannot read the plugin folder: " + failure.message() +
            (failure == std::errc::not_a_directory ? "; give the folder that holds the library" : ""),
        folder};
  for (const fs::directory_entry& item : items) {
    const fs::path& path = item.path();
    if (path.extension() != ".so") continue;
    if (!only.empty() && std::find(only.begin(), only.end(), path.stem().string()) == only.end()) continue;
    std::vector<fs::path>& paths = found[path.filename()];
    fs::path real = fs::canonical(path, failure);
    if (failure) real = path;
    if (std::find(paths.begin(), paths.end(), real) == paths.end()) paths.push_back(real);
  }
  return {};
}

/// What a host said about one library.
struct Answer {
  std::string fatal;
  Json describe;
};

Result<PluginSpec> specOf(const fs::path& path, const Answer& answer, const HostProcess& host) {
  if (!answer.fatal.empty()) return Error{ErrorCode::kUnsupported, answer.fatal, ""};
  const RankEnd end = host.end();
  if (end.state != RankEnd::State::kOk) return Error{ErrorCode::kUnsupported, end.error, ""};
  const std::string name = answer.describe.value("name", "");
  if (name != path.stem())
    return Error{ErrorCode::kUsage, fmt::format("holds plugin \"{0}\"; name the file {0}.so", name), path};
  Result<PluginSpec> read = pluginSpecFromDescribe(name, answer.describe["description"]);
  if (!read.ok()) {
    Error error = std::move(read).error();
    error.where = fmt::format("{}: describe(): {}", path.string(), error.where);
    return error;
  }
  PluginSpec spec = std::move(read).value();
  spec.name = name;
  spec.version = answer.describe.value("version", "");
  spec.path = path;
  return spec;
}

HostJob describeJob(const Tree& tree, const fs::path& path, int index) {
  HostJob job;
  job.spec.rank = index;
  job.who = path.filename();
  job.command = {tree.hostExecutable, "--describe", path};
  job.cases = -1;
  return job;
}

}  // namespace

Result<Catalog> describePlugins(const Tree& tree, const std::vector<fs::path>& extraFolders,
                                const std::vector<std::string>& only, double timeout) {
  Libraries libraries;
  MUSTER_CHECK_OK(findLibraries(tree.plugins, only, libraries));
  for (const fs::path& folder : extraFolders) MUSTER_CHECK_OK(findLibraries(folder, only, libraries));

  Catalog catalog;
  std::vector<HostJob> jobs;
  std::vector<fs::path> paths;
  for (const auto& [file, found] : libraries) {
    if (found.size() > 1) {
      catalog.refused[file] = {ErrorCode::kUsage,
                               fmt::format("found twice, in {} and in {}; remove one",
                                           found[0].parent_path().string(), found[1].parent_path().string()),
                               file};
      continue;
    }
    jobs.push_back(describeJob(tree, found[0], static_cast<int>(jobs.size())));
    paths.push_back(found[0]);
  }
  std::vector<Answer> answers(jobs.size());
  GroupOptions options;
  options.timeout = timeout;
  options.grace = 0.2;  // describe() holds no device that would need time to be let go
  options.onFrame = [&](const RankSpec& spec, const Json& frame) {
    Answer& answer = answers[static_cast<size_t>(spec.rank)];
    if (frame["type"] == "fatal") answer.fatal = frame["message"];
    if (frame["type"] == "describe") answer.describe = frame;
  };
  MUSTER_TRY(const auto hosts, superviseHosts(std::move(jobs), options));
  for (size_t i = 0; i < hosts.size(); ++i) {
    Result<PluginSpec> spec = specOf(paths[i], answers[i], *hosts[i]);
    if (spec.ok()) {
      catalog.plugins[spec->name] = std::move(*spec);
    } else {
      catalog.refused[paths[i].filename()] = spec.error();
    }
  }
  return catalog;
}

}  // namespace muster
