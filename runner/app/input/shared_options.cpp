// SPDX-License-Identifier: Apache-2.0
// See shared_options.h.
#include "runner/app/input/shared_options.h"

#include <CLI/CLI.hpp>

#include "runner/core/text.h"

namespace muster {

void addSets(CLI::App* app, std::vector<std::string>& sets) {
  app->add_option("--set", sets,
                  "override a plan value: STAGE.PARAM=VALUE, STAGE.timeout=VALUE, sku=NAME ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void addPluginFolders(CLI::App* app, std::vector<std::filesystem::path>& folders) {
  app->add_option("--plugins", folders, "directory with additional plugins")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

void addSkuFolders(CLI::App* app, std::vector<std::filesystem::path>& folders) {
  app->add_option("--skus", folders, "directory with additional SKU profiles")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

void addWaivers(CLI::App* app, std::filesystem::path& waivers) {
  app->add_option("--waivers", waivers,
                  "approved, time-limited waivers; format: share/muster/plans/README.md")
      ->type_name("FILE");
}

void addFleetId(CLI::App* app, std::string& id, const char* help) {
  app->add_option("--fleet-id", id, help)
      ->type_name("ID")
      ->envname("MUSTER_FLEET_ID")
      ->check([](const std::string& text) {
        return isPlainName(text) ? std::string()
                                 : "expected letters, digits, '-', '_' and '.', found " + printable(text, 80);
      });
}

void addNodeSkus(CLI::App* app, std::vector<std::string>& skus) {
  app->add_option("--node-sku", skus, "SKU required of these nodes (default: the SKU of most nodes)")
      ->type_name("NODES=SKU")
      ->allow_extra_args(false);
}

void addSameMachine(CLI::App* app, bool& sameMachine) {
  app->add_flag("--same-machine", sameMachine,
                "allow several nodes on one machine, for tests and demos (default: a shared machine fails)");
}

void addRejectOutliers(CLI::App* app, bool& reject) {
  app->add_flag("--reject-outliers", reject,
                "also reject statistical outliers within limits (default: flag only)");
}

}  // namespace muster
