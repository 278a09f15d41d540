// SPDX-License-Identifier: Apache-2.0
// The exec plugin: runs a program of the operator's and reads measurements from its output.
#include <fmt/format.h>

#include <filesystem>

#include "plugins/exec/describe.h"
#include "plugins/exec/program.h"
#include "plugins/sdk/test_case.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::exec {
namespace fs = std::filesystem;
namespace {

/// What a program is told of its rank.
struct Place {
  int rank = 0, worldSize = 1;
  std::string device, uuid, pciAddress;
  fs::path folder;  ///< of the stage's artifacts
};

Result<Place> readPlace(const Json& context) {
  Place place;
  std::string folder;
  JsonReader reader(context, "context");
  reader.optional("rank", place.rank);
  reader.optional("world_size", place.worldSize);
  reader.read("artifact_dir", folder);
  if (context.contains("device") && context["device"].is_object()) {
    JsonReader device(context["device"], "context.device");
    device.optional("id", place.device);
    device.optional("uuid", place.uuid);
    device.optional("pci_address", place.pciAddress);
    MUSTER_CHECK_OK(device.status());
  }
  MUSTER_CHECK_OK(reader.status());
  place.folder = fs::absolute(folder) / fmt::format("rank{}.work", place.rank);
  return place;
}

class CommandSession : public sdk::Session {
 public:
  CommandSession(const sdk::Host& host, Place place) : host_(host), place_(std::move(place)) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const CommandParams params, sdk::readParams<CommandParams>(*input.params));
    MUSTER_TRY(const std::string program, allowedProgram(params.program));
    MUSTER_TRY(std::vector<std::string> environment, allowedEnvironment(params.environment));
    tellPlace(environment);
    MUSTER_CHECK_OK(reportProgram(program));
    MUSTER_CHECK_OK(makeOwnSubfolder(place_.folder.parent_path(), "stage's artifacts folder"));
    MUSTER_CHECK_OK(makeOwnSubfolder(place_.folder, "program's work folder"));
    std::error_code error;
    const ProgramRun ended =
        runToEnd(params, program, environment, place_.folder, [this] { return host_.cancelled(); });
    fs::remove(place_.folder, error);  // stays if the program left files there
    // Kept also of a program that failed: they say why.
    MUSTER_CHECK_OK(host_.artifact("stdout.txt", "text/plain", ended.out));
    MUSTER_CHECK_OK(host_.artifact("stderr.txt", "text/plain", ended.err));
    MUSTER_CHECK_OK(ended.status);
    return report(params, ended);
  }

 private:
  void tellPlace(std::vector<std::string>& environment) const {
    environment.push_back(fmt::format("MUSTER_RANK={}", place_.rank));
    environment.push_back(fmt::format("MUSTER_WORLD_SIZE={}", place_.worldSize));
    environment.push_back("MUSTER_DEVICE=" + place_.device);
    environment.push_back("MUSTER_DEVICE_UUID=" + place_.uuid);
    environment.push_back("MUSTER_PCI_ADDRESS=" + place_.pciAddress);
  }

  [[nodiscard]] Status reportProgram(const std::string& program) const {
    MUSTER_TRY(const std::string bytes, readFile(program, kLargestProgram));
    return host_.fact("program", fmt::format("{} (sha256 {})", program, sha256Hex(bytes)));
  }

  [[nodiscard]] Status report(const CommandParams& params, const ProgramRun& ended) const {
    std::vector<Value> values;
    if (params.parser == "json") {
      MUSTER_TRY(values, valuesOfJson(ended.out, params.rules));
    } else if (params.parser == "regex") {
      MUSTER_TRY(values, valuesByRegex(ended.out, params.rules));
    } else if (params.parser != "none") {
      MUSTER_TRY(values, valuesOfTool(ended.out, params.parser));
    }
    for (const Value& value : values) {
      sdk::Host::LabelList labels = {{"name", value.name}};
      labels.insert(labels.end(), value.labels.begin(), value.labels.end());
      const UnitMetric& metric = *value.metric;
      MUSTER_CHECK_OK(value.samples.empty()
                          ? host_.fact(metric.metric, value.text, labels)
                          : host_.measurement(metric.metric, metric.unit, value.samples, labels));
    }
    MUSTER_CHECK_OK(host_.measurement("duration", "s", {ended.seconds}));
    return host_.measurement("completed", "bool", {1});
  }

  static constexpr uint64_t kLargestProgram = 512u << 20;
  sdk::Host host_;
  Place place_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(const bool known, sdk::chooseTest<bool>(context, "exec", {{"command", true}}));
  (void)known;
  MUSTER_TRY(Place place, readPlace(context));
  return std::unique_ptr<sdk::Session>(std::make_unique<CommandSession>(host, std::move(place)));
}

}  // namespace
}  // namespace muster::exec

MUSTER_DEFINE_PLUGIN("exec", "1.0.0", muster::exec::describe(), muster::exec::openSession)
