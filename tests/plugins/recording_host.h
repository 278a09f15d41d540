// SPDX-License-Identifier: Apache-2.0
// A host in C's terms that keeps what a plugin tells it, and a plugin library under test on top of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/abi/muster_plugin.h"
#include "runner/metrics/catalog.h"

namespace muster::testing {

/// One measurement as it came over the border.
struct Told {
  std::string metric;
  std::string unit;
  std::map<std::string, std::string> labels;
  std::vector<double> samples;
  std::string text;
  double time = 0;
};

/// Implements muster_host; each callback keeps its arguments.
class RecordingHost {
 public:
  RecordingHost();
  RecordingHost(const RecordingHost&) = delete;
  RecordingHost& operator=(const RecordingHost&) = delete;

  [[nodiscard]] const muster_host* table() const { return &table_; }
  /// All measurements of a metric, in order.
  [[nodiscard]] std::vector<Told> told(const std::string& metric) const;
  /// The single sample of the single measurement of a metric; NaN when that is not what there is.
  [[nodiscard]] double value(const std::string& metric) const;

  std::vector<Told> measurements;
  std::vector<std::string> logs;
  std::map<std::string, std::string> artifacts;  ///< by name
  std::vector<double> fractions;
  std::string lastProgress;
  std::string error;
  int cancelAfter = -1;  ///< so many times cancelled() says no, then yes; negative: always no
  int cancelAsked = 0;

 private:
  muster_host table_{};
};

/// How a case ended.
struct CaseResult {
  muster_status opened = MUSTER_ERROR;
  muster_status ran = MUSTER_ERROR;
};

/// A plugin of the build folder, its parameters filled from its own describe() as the runner does.
class PluginLibrary {
 public:
  explicit PluginLibrary(const std::string& name);

  [[nodiscard]] const PluginSpec& spec() const { return spec_; }
  /// Opens a session of `test`, runs one case with `params` over the defaults, and closes it.
  CaseResult run(RecordingHost& host, const std::string& test, const Json& params, const Json& context) const;
  /// Expects that every measurement is declared by `test`, in its unit, with no other labels, and that each
  /// metric which is not optional was told.
  void expectDeclared(const RecordingHost& host, const std::string& test) const;

 private:
  PluginSpec spec_;
  const muster_plugin_ops* ops_ = nullptr;
};

/// The context of one rank on a backend of the build folder.
Json contextFor(const std::string& backend, const std::string& device, const std::string& scenario = "");

}  // namespace muster::testing
