// SPDX-License-Identifier: Apache-2.0
// Options of `muster slurm submit` and `muster k8s submit` that say what each node runs.
#include <CLI/CLI.hpp>

#include "runner/app/input/shared_options.h"
#include "runner/app/submit/submit_input.h"

namespace muster {

void addSubmitInput(CLI::App* submit, SubmitInput& o) {
  submit->add_option("plan", o.plan, "plan file (.toml or .lua)")->required();
  addSets(submit, o.sets);
  submit->add_option("--sku", o.sku, "SKU profile to use instead of the plan's");
  addSkuFolders(submit, o.skuFolders);
  addPluginFolders(submit, o.pluginFolders);
  submit->add_option("--simulate", o.scenario, "use the simulated devices of this scenario")
      ->type_name("SCENARIO");
  submit->add_option("--seed", o.seed, "seed for all generated data")->capture_default_str();
  submit->add_flag("--strict", o.strict, "measurements without a limit block acceptance");
  submit->add_option("--waivers", o.waivers, "approved, time-limited waivers")->type_name("FILE");
  submit->add_option("--topology", o.topology, "nodes per switch or rack, for the fleet report")
      ->type_name("FILE");
  addNodeSkus(submit, o.nodeSkus);
  addSameMachine(submit, o.sameMachine);
  addRejectOutliers(submit, o.rejectOutliers);
}

}  // namespace muster
