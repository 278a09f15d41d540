// SPDX-License-Identifier: Apache-2.0
// One test of the installed env plugin, run by the installed muster-host.
#include "tests/plugins/env/env_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/env/describe.h"
#include "runner/core/text.h"
#include "runner/metrics/catalog.h"

namespace muster::testing {

namespace {

/// Every parameter as the runner would pass it.
Json filledParams(const std::string& test, const Json& given) {
  const auto spec = pluginSpecFromDescribe("env", *parseJson(env::describeText()));
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().text());
  Json params = Json::object();
  if (!spec.ok() || spec->test(test) == nullptr) return params;
  for (const ParamSpec& param : spec->test(test)->params) {
    const auto value =
        given.contains(param.name) ? convertParam(param, given[param.name]) : param.defaultValue;
    EXPECT_TRUE(value.ok()) << param.name;
    params[param.name] = *value;
  }
  return params;
}

Json requestFor(const std::string& test, const EnvOptions& options, const std::filesystem::path& artifacts) {
  const auto tree = distDir() / "lib" / "muster";
  const Json context = {{"test", test},
                        {"backend", options.backend},
                        {"scope", "node"},
                        {"device", options.device},
                        {"rank", 0},
                        {"world_size", options.worldSize},
                        {"local_rank", 0},
                        {"local_size", options.worldSize},
                        {"node", {{"rank", 0}, {"count", 1}, {"name", "n1"}}},
                        {"seed", 42},
                        {"backend_dir", (tree / "backends").string()},
                        {"scenario", options.scenario},
                        {"virtual_start", 0},
                        {"counters", options.counters},
                        {"run_id", "test"},
                        {"stage", test}};
  const Json oneCase = {{"index", 0},  {"case", test}, {"params", filledParams(test, options.params)},
                        {"repeat", 0}, {"attempt", 1}, {"seed", 42}};
  return {{"schema", 1},
          {"plugin", (tree / "plugins" / "env.so").string()},
          {"test", test},
          {"cases", Json::array({oneCase})},
          {"context", context},
          {"artifact_dir", artifacts.string()},
          {"affinity", Json::array()}};
}

void take(const Json& frame, EnvResult& result) {
  const std::string type = frame.value("type", "");
  if (type == "done") result.done = true;
  if (type == "case" && frame.value("event", "") == "end") {
    result.state = frame.value("state", "");
    result.message = frame.value("message", "");
  }
  if (type == "artifact") result.artifacts[frame["name"]] = readWhole(frame["path"].get<std::string>());
  if (type != "measurement") return;
  EnvMeasurement m{frame["metric"], {}, 0, frame.value("text", ""), frame.value("time", -1.0)};
  for (const auto& [key, value] : frame["labels"].items()) m.labels[key] = value;
  const Json samples = frame.value("samples", Json::array({0}));
  for (size_t i = 0; i < samples.size(); ++i) {
    m.value = samples[i];
    if (frame.contains("times")) m.time = frame["times"].at(i);
    result.measurements.push_back(m);
  }
}

}  // namespace

std::vector<EnvMeasurement> EnvResult::of(const std::string& metric) const {
  std::vector<EnvMeasurement> found;
  std::copy_if(measurements.begin(), measurements.end(), std::back_inserter(found),
               [&](const EnvMeasurement& m) { return m.metric == metric; });
  return found;
}

EnvMeasurement EnvResult::one(const std::string& metric) const {
  const auto found = of(metric);
  EXPECT_EQ(found.size(), 1u) << metric << " in\n" << output;
  return found.size() == 1 ? found[0] : EnvMeasurement{};
}

EnvResult runEnv(const std::string& test, const EnvOptions& options) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() / "artifacts");
  const auto request =
      dir.write("request.json", dumpJson(requestFor(test, options, dir.path() / "artifacts")));
  std::vector<std::string> command = options.wrapper;
  command.push_back((distDir() / "lib" / "muster" / "host" / "muster-host").string());
  command.insert(command.end(), {"--request", request.string()});
  const ProcessResult process = runProcess(command);
  EnvResult result;
  result.output = process.out + process.err;
  for (const std::string& line : split(process.out, '\n'))
    if (const auto frame = parseJson(line); frame.ok()) take(*frame, result);
  return result;
}

}  // namespace muster::testing
