// SPDX-License-Identifier: Apache-2.0
// Whether a node is fit: on this machine, in a real control group, beside a real neighbour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "plugins/env/describe.h"
#include "runner/metrics/catalog.h"
#include "tests/plugins/env/control_group.h"
#include "tests/plugins/env/env_run.h"

namespace muster {
namespace {

using testing::ControlGroup;
using testing::EnvMeasurement;
using testing::EnvOptions;
using testing::EnvResult;
using ::testing::HasSubstr;
using testing::runEnv;
using ::testing::StartsWith;
using testing::TempDir;

EnvOptions quickHealth() {
  EnvOptions options;
  options.params = {{"idle_window", "30ms"}, {"kernel_log", "optional"}, {"folder", "/tmp"}};
  return options;
}

TEST(EnvHealth, TellsEveryMetricOfTheHostAndNoOther) {
  const EnvResult result = runEnv("health", quickHealth());
  ASSERT_EQ(result.state, "ok") << result.output;
  const auto spec = pluginSpecFromDescribe("env", *parseJson(env::describeText()));
  const std::set<std::string> declared = env::metricNames("health", "host");
  for (const EnvMeasurement& m : result.measurements) {
    ASSERT_EQ(declared.count(m.metric), 1u) << m.metric;
    const std::vector<std::string>& labels = spec->test("health")->metric(m.metric)->labels;
    for (const auto& [label, value] : m.labels) EXPECT_THAT(labels, ::testing::Contains(label)) << m.metric;
  }
  for (const std::string& name : declared) {
    const bool optional = spec->test("health")->metric(name)->optional;
    EXPECT_TRUE(optional || result.of(name).size() == 1u) << name;
  }
}

TEST(EnvHealth, AQuotaOfHalfTheMachineIsMeasuredAndNamed) {
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const ControlGroup group(50 * cpus);
  if (!group.usable()) GTEST_SKIP() << group.why();
  EnvOptions options = quickHealth();
  options.wrapper = group.wrapper();
  const EnvResult result = runEnv("health", options);
  const EnvMeasurement ratio = result.one("cpu_quota_ratio");
  EXPECT_NEAR(ratio.value, 0.5, 1e-9) << result.output;
  EXPECT_EQ(ratio.labels.at("cgroup"), group.folder().string());
  EXPECT_THAT(result.one("cpu_quota_source").text, HasSubstr("cgroup cpu quota 50% of"));
  EXPECT_THAT(result.one("cpu_quota_source").text, HasSubstr(group.folder().string()));
}

/// A script that spins under its own name beside what runs in wrapper(). Both are in a process namespace of
/// their own: no process of a loaded machine can be busier than it.
class Spinner {
 public:
  Spinner() {
    script_ = dir_.write("spinner", "#!/bin/sh\nwhile :; do :; done\n").string();
    std::filesystem::permissions(script_, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::vector<std::string> wrapper() const {
    std::vector<std::string> words{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
    if (geteuid() != 0) words.emplace_back("--map-root-user");
    for (const char* word : {"sh", "-c", "taskset -c 0 \"$0\" & \"$@\""}) words.emplace_back(word);
    words.push_back(script_);
    return words;
  }

 private:
  TempDir dir_;
  std::string script_;
};

TEST(EnvHealth, ABusyNeighbourIsNamed) {
  const Spinner neighbour;
  EnvOptions options = quickHealth();
  options.params["idle_window"] = "100ms";
  options.wrapper = neighbour.wrapper();
  // On a full machine it may not get the 5 ms that are worth naming within one look.
  EnvResult result;
  for (int attempt = 0; attempt < 100; ++attempt) {
    result = runEnv("health", options);
    const EnvMeasurement busy = result.one("busy_share");
    if (busy.labels.count("process") == 0 || busy.labels.at("process") == "unseen") continue;
    EXPECT_THAT(busy.labels.at("process"), StartsWith("spinner("));
    EXPECT_GT(busy.value, 0);
    EXPECT_THAT(result.one("busiest_process").text, StartsWith("spinner (pid "));
    EXPECT_THAT(result.one("busiest_process").text, HasSubstr("on cpu 0"));
    return;
  }
  FAIL() << "the spinning neighbour was never seen: " << result.output;
}

TEST(EnvHealth, AFolderThatIsNotThereIsAnErrorAndTheRestIsStillTold) {
  EnvOptions options = quickHealth();
  options.params["folder"] = "/no/such/folder";
  const EnvResult result = runEnv("health", options);
  EXPECT_EQ(result.state, "error");
  EXPECT_THAT(result.message, HasSubstr("/no/such/folder"));
  EXPECT_TRUE(result.of("disk_free").empty());
  EXPECT_EQ(result.of("memory_total").size(), 1u);
}

TEST(EnvHealth, AKernelLogThatNobodyAskedForIsSaidSo) {
  EnvOptions options = quickHealth();
  options.params["kernel_log"] = "off";
  const EnvResult result = runEnv("health", options);
  EXPECT_EQ(result.state, "ok") << result.output;
  EXPECT_TRUE(result.of("hardware_errors").empty());
  EXPECT_THAT(result.one("kernel_log").text, HasSubstr("off"));
}

TEST(EnvHealth, AnUnreadableKernelLogIsAnErrorUnlessThePlanAllowsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can lose the right to read the log";
  EnvOptions options = quickHealth();
  options.wrapper = {"setpriv", "--bounding-set=-syslog,-sys_admin", "--inh-caps=-syslog,-sys_admin"};
  const std::string restricted = testing::readWhole("/proc/sys/kernel/dmesg_restrict");
  if (!restricted.starts_with("1"))
    GTEST_SKIP() << "kernel.dmesg_restrict is 0: everybody may read the log here";
  options.params["kernel_log"] = "required";
  const EnvResult required = runEnv("health", options);
  EXPECT_EQ(required.state, "error");
  EXPECT_THAT(required.message, HasSubstr("kernel log"));
  options.params["kernel_log"] = "optional";
  const EnvResult optional = runEnv("health", options);
  EXPECT_EQ(optional.state, "ok") << optional.output;
  EXPECT_THAT(optional.one("kernel_log").text, HasSubstr("not readable"));
}

}  // namespace
}  // namespace muster
