// SPDX-License-Identifier: Apache-2.0
// Options of `muster slurm submit` and `muster k8s submit` that say what each node runs.
#include <CLI/CLI.hpp>

#include "runner/app/submit/submit_input.h"

namespace muster {

void addSubmitInput(CLI::App* submit, SubmitInput& o) {
  submit->add_option("plan", o.plan, "plan file (.toml or .lua)")->required();
  submit
      ->add_option("--set", o.sets,
                   "override a plan value: STAGE.PARAM=VALUE, STAGE.timeout=VALUE, sku=NAME ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  submit->add_option("--sku", o.sku, "SKU profile to use instead of the plan's");
  submit->add_option("--skus", o.skuFolders, "directory with additional SKU profiles")
      ->type_name("DIR")
      ->allow_extra_args(false);
  submit->add_option("--plugins", o.pluginFolders, "directory with additional plugins")
      ->type_name("DIR")
      ->allow_extra_args(false);
  submit->add_option("--simulate", o.scenario, "use the simulated devices of this scenario")
      ->type_name("SCENARIO");
  submit->add_option("--seed", o.seed, "seed for all generated data")->capture_default_str();
  submit->add_flag("--strict", o.strict, "measurements without a limit block acceptance");
  submit->add_option("--waivers", o.waivers, "approved, time-limited waivers")->type_name("FILE");
  submit->add_option("--topology", o.topology, "nodes per switch or rack, for the fleet report")
      ->type_name("FILE");
  addNodeSkus(submit, o.nodeSkus);
  addSameMachine(submit, o.sameMachine);
  submit->add_flag("--reject-outliers", o.rejectOutliers,
                   "also reject statistical outliers within limits (default: flag only)");
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

}  // namespace muster
