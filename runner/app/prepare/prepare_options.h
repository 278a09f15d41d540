// SPDX-License-Identifier: Apache-2.0
// The commands before a run: `muster check`, `explain`, `init`, `plugins` and `skus`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

struct CheckOptions {
  std::vector<std::filesystem::path> plans;
  std::vector<std::string> sets;
  bool json = false;  ///< one JSON object, also for an error that stops the command
  std::string
      schema;  ///< prints the JSON Schema of such files and checks nothing: plan, profile, scenario, waivers
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
};
/// Prints every error of each plan; 2 if there is any.
Result<int> checkCommand(const CheckOptions& options);

struct ExplainOptions {
  std::filesystem::path plan;
  std::vector<std::string> sets;
  std::string sku;  ///< empty: the plan's
  int nodes = 1;
  int devices = 0;         ///< of a node; 0: as many as the profile has
  bool simulated = false;  ///< metrics that only real devices have are left out
  bool json = false;
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
};
/// Shows the stages, cases, parameters and limits that a plan comes to. Needs no device.
Result<int> explainCommand(const ExplainOptions& options);

struct InitOptions {
  std::filesystem::path folder = ".";
  std::string name = "acceptance";    ///< of the plan
  std::string sku;                    ///< empty: the GPU model of this machine
  std::vector<std::string> min, max;  ///< "METRIC{LABEL=VALUE}=VALUE"
  std::string source = "contract";    ///< of these limits
  std::vector<std::filesystem::path> skuFolders;
};
/// Writes plan.toml and site.toml for this machine; never over a file that is there.
Result<int> initCommand(const InitOptions& options);

struct PluginsOptions {
  std::string name;  ///< empty: one line per plugin
  std::vector<std::filesystem::path> folders;
  bool json = false;
  bool reference = false;  ///< one Markdown page
};
/// Lists plugins, their tests, parameters and metrics.
Result<int> pluginsCommand(const PluginsOptions& options);

struct SkusOptions {
  std::string name;  ///< empty: one line per profile
  std::vector<std::filesystem::path> folders;
};
/// Lists SKU profiles, or the limits of one.
Result<int> skusCommand(const SkusOptions& options);

CLI::App* addCheck(CLI::App& app, CheckOptions& options);
CLI::App* addExplain(CLI::App& app, ExplainOptions& options);
CLI::App* addInit(CLI::App& app, InitOptions& options);
CLI::App* addPlugins(CLI::App& app, PluginsOptions& options);
CLI::App* addSkus(CLI::App& app, SkusOptions& options);

}  // namespace muster
