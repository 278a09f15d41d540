// SPDX-License-Identifier: Apache-2.0
// One test of the rdma plugin over the C border, on made-up HCAs and on simulated ones.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"
#include "tests/support/fake_hcas.h"

namespace muster::testing {

class RdmaRun : public ::testing::Test {
 protected:
  /// On the made-up machine.
  CaseResult onHost(const std::string& test, const Json& params = Json::object(),
                    const std::string& scope = "node") {
    for (const auto& [name, value] : hcas_.environment()) setenv(name.c_str(), value.c_str(), 1);
    return plugin_.run(host_, test, params, context("host", scope, ""));
  }
  /// On the made-up machine by the backend for GPUs, which needs none for its HCAs.
  CaseResult onCuda(const std::string& test, const Json& params = Json::object()) {
    for (const auto& [name, value] : hcas_.environment()) setenv(name.c_str(), value.c_str(), 1);
    return plugin_.run(host_, test, params, context("cuda", "node", ""));
  }
  /// On a simulated node with four HCAs of 400 Gb/s and `faults` planted.
  CaseResult onSim(const std::string& test, const std::string& faults, const Json& params = Json::object(),
                   const std::string& scope = "node", int nodeRank = 0, int nodeCount = 1) {
    const std::string rdma =
        "[rdma]\ncount = 4\nline_rate = \"50 GB/s\"\nbandwidth = \"48 GB/s\"\nlatency = \"2us\"\n";
    const auto path = folder_.write("scenario.toml", scenarioText(rdma + faults));
    return plugin_.run(host_, test, params, context("sim", scope, path.string(), nodeRank, nodeCount));
  }
  static Json context(const std::string& backend, const std::string& scope, const std::string& scenario,
                      int nodeRank = 0, int nodeCount = 1) {
    Json context = contextFor(backend, "", scenario);
    context["scope"] = scope;
    context["device"] = nullptr;
    context["virtual_start"] = 0.0;
    context["node"] = {{"rank", nodeRank}, {"count", nodeCount}, {"name", "n"}};
    return context;
  }
  /// The only measurement of `metric` with this port; its first sample, or NaN.
  [[nodiscard]] double of(const std::string& metric, const std::string& port) const {
    for (const Told& told : host_.told(metric))
      if (told.labels.count("port") > 0 && told.labels.at("port") == port) return told.samples.at(0);
    return std::numeric_limits<double>::quiet_NaN();
  }

  FakeHcas hcas_;
  TempDir folder_;
  PluginLibrary plugin_{"rdma"};
  RecordingHost host_;
};

}  // namespace muster::testing
