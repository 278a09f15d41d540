// SPDX-License-Identifier: Apache-2.0
// Describes plugins side by side; see plugins.h.
#include "runner/dispatch/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/core/text.h"
#include "runner/dispatch/description_cache.h"
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

/// Why the host of a library did not answer as it should; ok where it did.
Status endOf(const Answer& answer, const HostProcess& host) {
  if (!answer.fatal.empty()) return Error{ErrorCode::kUnsupported, answer.fatal, ""};
  const RankEnd end = host.end();
  if (end.state != RankEnd::State::kOk) return Error{ErrorCode::kUnsupported, end.error, ""};
  return {};
}

Result<PluginSpec> specOf(const fs::path& path, const Json& described) {
  const std::string name = described.value("name", "");
  if (name != path.stem())
    return Error{ErrorCode::kUsage, fmt::format("holds plugin \"{0}\"; name the file {0}.so", name), path};
  static const Json kNone;
  const auto description = described.find("description");
  Result<PluginSpec> read =
      pluginSpecFromDescribe(name, description == described.end() ? kNone : *description);
  if (!read.ok()) {
    Error error = std::move(read).error();
    error.where = fmt::format("{}: describe(): {}", path.string(), error.where);
    return error;
  }
  PluginSpec spec = std::move(read).value();
  spec.name = name;
  spec.version = described.value("version", "");
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

/// Asks the hosts of the libraries, side by side; adds each answer to the catalogue and the good ones to the
/// cache.
Status describeAnew(const Tree& tree, const std::vector<fs::path>& paths, double timeout,
                    DescriptionCache& cache, Catalog& catalog) {
  if (paths.empty()) return {};
  std::vector<HostJob> jobs;
  for (const fs::path& path : paths) jobs.push_back(describeJob(tree, path, static_cast<int>(jobs.size())));
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
    const Status end = endOf(answers[i], *hosts[i]);
    Result<PluginSpec> spec = end.ok() ? specOf(paths[i], answers[i].describe) : end.error();
    if (!spec.ok()) {
      catalog.refused[paths[i].filename()] = spec.error();
      continue;
    }
    cache.keep(paths[i], answers[i].describe);
    catalog.plugins[spec->name] = std::move(*spec);
  }
  cache.save();
  return {};
}

}  // namespace

Result<Catalog> describePlugins(const Tree& tree, const std::vector<fs::path>& extraFolders,
                                const std::vector<std::string>& only, double timeout) {
  Libraries libraries;
  MUSTER_CHECK_OK(findLibraries(tree.plugins, only, libraries));
  for (const fs::path& folder : extraFolders) MUSTER_CHECK_OK(findLibraries(folder, only, libraries));

  Catalog catalog;
  DescriptionCache cache(tree.hostExecutable);
  std::vector<fs::path> unknown;
  for (const auto& [file, found] : libraries) {
    if (found.size() > 1) {
      catalog.refused[file] = {ErrorCode::kUsage,
                               fmt::format("found twice, in {} and in {}; remove one",
                                           found[0].parent_path().string(), found[1].parent_path().string()),
                               file};
      continue;
    }
    const Json* described = cache.find(found[0]);
    Result<PluginSpec> spec =
        described == nullptr ? Error{ErrorCode::kNotFound, "", ""} : specOf(found[0], *described);
    if (spec.ok())
      catalog.plugins[spec->name] = std::move(*spec);
    else
      unknown.push_back(found[0]);
  }
  MUSTER_CHECK_OK(describeAnew(tree, unknown, timeout, cache, catalog));
  return catalog;
}

}  // namespace muster
