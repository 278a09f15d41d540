// SPDX-License-Identifier: Apache-2.0
// Reads the request file.
#include "runner/host/request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "runner/system/files.h"

namespace muster {
namespace {

Status readCase(const Json& item, const std::string& path, HostRequest& request) {
  HostCase entry;
  JsonReader reader(item, path);
  reader.read("index", entry.index);
  reader.optional("repeat", entry.repeat);
  reader.optional("attempt", entry.attempt);
  if (reader.object("params") == nullptr || !reader.ok()) return reader.status();
  if (entry.index < 0) reader.fail("index", "is negative, expected 0 or more");
  entry.json = dumpJson(item);
  request.cases.push_back(std::move(entry));
  return reader.status();
}

Status readContext(const Json& context, HostRequest& request) {
  JsonReader reader(context, "request.context");
  std::string scenario, scope;
  reader.optional("scope", scope);
  reader.optional("rank", request.rank);
  reader.optional("world_size", request.worldSize);
  reader.optional("scenario", scenario);
  reader.optional("virtual_start", request.virtualStart);
  if (context.contains("device") && context["device"].is_object())
    JsonReader(context["device"], "request.context.device").optional("id", request.device);
  if (request.worldSize < 1)
    reader.fail("world_size", fmt::format("is {}, expected 1 or more", request.worldSize));
  const bool alone = scope == "device" || request.worldSize == 1;
  request.groupRank = alone ? 0 : request.rank;
  request.groupSize = alone ? 1 : request.worldSize;
  if (request.groupRank < 0 || request.groupRank >= request.groupSize)
    reader.fail("rank", fmt::format("is {} of {}", request.groupRank, request.groupSize));
  request.simulated = !scenario.empty();
  Json full = context;
  full["test"] = request.test;
  full["artifact_dir"] = request.artifactDir.string();
  request.contextJson = dumpJson(full);
  return reader.status();
}

Status checkIndices(const HostRequest& request) {
  std::set<int> seen;
  for (const HostCase& entry : request.cases)
    if (!seen.insert(entry.index).second)
      return Error{ErrorCode::kProtocol, fmt::format("request.cases: index {} is listed twice", entry.index),
                   ""};
  return {};
}

Status readAffinity(JsonReader& reader, HostRequest& request) {
  if (!reader.has("affinity")) return {};
  std::vector<double> cpus;
  reader.read("affinity", cpus);
  for (const double cpu : cpus) {
    if (cpu >= 0 && cpu < 1e6)
      request.affinity.push_back(static_cast<int>(cpu));
    else
      reader.fail("affinity", fmt::format("holds {}, expected CPU numbers", cpu));
  }
  return reader.status();
}

}  // namespace

Result<HostRequest> requestFromJson(const Json& json) {
  HostRequest request;
  if (!json.is_object()) return Error{ErrorCode::kProtocol, "request: expected a JSON object", ""};
  JsonReader reader(json, "request");
  int schema = 0;
  reader.read("schema", schema);
  if (reader.ok() && schema != 1)
    reader.fail("schema", fmt::format("is {}, this muster-host reads 1", schema));
  reader.read("plugin", request.plugin);
  reader.read("test", request.test);
  std::string artifactDir;
  reader.optional("artifact_dir", artifactDir);
  request.artifactDir = artifactDir;
  reader.optional("grace", request.grace);
  reader.optional("abandon_after", request.abandonAfter);
  if (!(request.grace >= 0 && request.grace <= 3600)) reader.fail("grace", "expected 0 to 3600 seconds");
  if (!(request.abandonAfter >= 0 && request.abandonAfter <= 3600))
    reader.fail("abandon_after", "expected 0 to 3600 seconds");
  MUSTER_CHECK_OK(readAffinity(reader, request));
  const Json* context = reader.object("context");
  if (context == nullptr) return reader.status().error();
  MUSTER_CHECK_OK(readContext(*context, request));
  reader.each("cases",
              [&](const Json& item, const std::string& path) { return readCase(item, path, request); });
  MUSTER_CHECK_OK(reader.status());
  MUSTER_CHECK_OK(checkIndices(request));
  return request;
}

Result<HostRequest> readRequest(const std::filesystem::path& path) {
  MUSTER_TRY(const std::string text, readFile(path));
  MUSTER_TRY(const Json json, parseJson(text).context("reading request " + path.string()));
  return requestFromJson(json).context("reading request " + path.string());
}

}  // namespace muster
