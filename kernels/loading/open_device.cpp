// SPDX-License-Identifier: Apache-2.0
// Opens the device of a session's context.
#include "kernels/loading/open_device.h"

namespace muster {
namespace {

Result<std::string> deviceId(const Json& context) {
  if (!context.contains("device") || !context["device"].is_object())
    return Error{ErrorCode::kUsage,
                 "this test works on one device, and the stage gives it none; use scope \"device\"",
                 "context.device"};
  std::string id;
  JsonReader reader(context["device"], "context.device");
  reader.read("id", id);
  MUSTER_CHECK_OK(reader.status());
  return id;
}

}  // namespace

Result<std::unique_ptr<Backend>> openBackend(const Json& context) {
  std::string name;
  BackendOptions options;
  JsonReader reader(context, "context");
  reader.read("backend", name);
  reader.read("backend_dir", options.folder);
  reader.optional("scenario", options.scenario);
  reader.optional("virtual_start", options.virtualStart);
  reader.optional("seed", options.seed);
  if (const Json* node = reader.object("node"); node != nullptr) {
    JsonReader inner(*node, "context.node");
    inner.read("rank", options.nodeRank);
    inner.read("count", options.nodeCount);
    inner.optional("run_count", options.nodeCount);
    MUSTER_CHECK_OK(inner.status());
  }
  MUSTER_CHECK_OK(reader.status());
  return loadBackend(name, options);
}

Result<OpenDevice> openDevice(const Json& context) {
  MUSTER_TRY(std::string id, deviceId(context));
  OpenDevice open;
  MUSTER_TRY(open.backend, openBackend(context));
  MUSTER_TRY(open.device, open.backend->open(id));
  return open;
}

}  // namespace muster
