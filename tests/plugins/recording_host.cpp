// SPDX-License-Identifier: Apache-2.0
// The recording host and the plugin library under test.
#include "tests/plugins/recording_host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/process.h"

namespace muster::testing {
namespace {

RecordingHost& self(void* context) {
  return *static_cast<RecordingHost*>(context);
}

muster_status keepMeasurement(void* context, const muster_measurement* m) {
  Told told{m->metric, m->unit, {}, {}, m->text == nullptr ? "" : m->text, m->time};
  for (uint32_t i = 0; i < m->label_count; ++i) told.labels[m->labels[i].key] = m->labels[i].value;
  told.samples.assign(m->samples, m->samples + m->sample_count);
  self(context).measurements.push_back(std::move(told));
  return MUSTER_OK;
}

muster_status keepProgress(void* context, double fraction, const char* text) {
  self(context).fractions.push_back(fraction);
  self(context).lastProgress = text;
  return MUSTER_OK;
}

muster_status keepLog(void* context, muster_log_level, const char* text) {
  self(context).logs.emplace_back(text);
  return MUSTER_OK;
}

muster_status keepArtifact(void* context, const char* name, const char*, const void* data, uint64_t size) {
  self(context).artifacts[name] = std::string(static_cast<const char*>(data), size);
  return MUSTER_OK;
}

int askCancelled(void* context) {
  RecordingHost& host = self(context);
  return host.cancelAfter >= 0 && host.cancelAsked++ >= host.cancelAfter ? 1 : 0;
}

}  // namespace

RecordingHost::RecordingHost() {
  table_.struct_size = sizeof table_;
  table_.abi_minor = MUSTER_ABI_MINOR;
  table_.context = this;
  table_.measurement = keepMeasurement;
  table_.progress = keepProgress;
  table_.log = keepLog;
  table_.artifact = keepArtifact;
  table_.error = [](void* context, const char* message, const char*) { self(context).error = message; };
  table_.cancelled = askCancelled;
}

std::vector<Told> RecordingHost::told(const std::string& metric) const {
  std::vector<Told> found;
  std::copy_if(measurements.begin(), measurements.end(), std::back_inserter(found),
               [&](const Told& told) { return told.metric == metric; });
  return found;
}

double RecordingHost::value(const std::string& metric) const {
  const auto found = told(metric);
  return found.size() == 1 && found[0].samples.size() == 1 ? found[0].samples[0] : std::nan("");
}

PluginLibrary::PluginLibrary(const std::string& name) {
  const std::string path = (buildDir() / "plugins" / name / (name + ".so")).string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  const auto entry = reinterpret_cast<decltype(&muster_plugin_entry)>(dlsym(library, "muster_plugin_entry"));
  ops_ = entry(MUSTER_ABI_MINOR);
  const auto json = parseJson(ops_->describe());
  EXPECT_TRUE(json.ok()) << (json.ok() ? "" : json.error().text());
  auto spec = pluginSpecFromDescribe(name, *json);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().text());
  spec_ = std::move(*spec);
}

CaseResult PluginLibrary::run(RecordingHost& host, const std::string& test, const Json& params,
                              const Json& context) const {
  Json filled = Json::object();
  for (const ParamSpec& param : spec_.test(test)->params) {
    auto value = params.contains(param.name) ? convertParam(param, params[param.name]) : param.defaultValue;
    EXPECT_TRUE(value.ok()) << param.name;
    filled[param.name] = *value;
  }
  Json fullContext = context;
  fullContext["test"] = test;
  const Json caseJson = {{"params", filled}, {"case", test}, {"repeat", 0}, {"attempt", 1}, {"seed", 42}};

  CaseResult result;
  void* session = nullptr;
  result.opened = ops_->open(host.table(), dumpJson(fullContext).c_str(), &session);
  if (result.opened != MUSTER_OK) return result;
  result.ran = ops_->run(session, dumpJson(caseJson).c_str());
  ops_->close(session);
  return result;
}

void PluginLibrary::expectDeclared(const RecordingHost& host, const std::string& test) const {
  const TestSpec& spec = *spec_.test(test);
  std::set<std::string> seen;
  for (const Told& told : host.measurements) {
    seen.insert(told.metric);
    const MetricSpec* metric = spec.metric(told.metric);
    ASSERT_NE(metric, nullptr) << told.metric << " is not declared";
    EXPECT_EQ(told.unit, metric->unit) << told.metric;
    for (const auto& [label, value] : told.labels)
      EXPECT_NE(std::find(metric->labels.begin(), metric->labels.end(), label), metric->labels.end())
          << told.metric << " has label " << label;
  }
  for (const MetricSpec& metric : spec.metrics)
    EXPECT_TRUE(metric.optional || seen.count(metric.name) == 1) << metric.name << " was not told";
}

Json contextFor(const std::string& backend, const std::string& device, const std::string& scenario) {
  return Json{{"backend", backend},
              {"scope", "device"},
              {"device", {{"id", device}}},
              {"devices", {"gpu0", "gpu1"}},
              {"rank", 0},
              {"world_size", 1},
              {"node", {{"rank", 0}, {"count", 1}, {"name", "n"}}},
              {"seed", 42},
              {"backend_dir", (buildDir() / "kernels" / backend).string()},
              {"scenario", scenario},
              {"virtual_start", 100.0}};
}

}  // namespace muster::testing
