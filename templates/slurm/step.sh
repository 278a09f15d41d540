#!/bin/bash
# Muster run {{{id}}}: one node's part in the stages of scope cluster; cluster.sbatch starts it by srun.
set -uo pipefail
run={{run}}
launch=({{#step_launch}}{{.}} {{/step_launch}})
options=({{#options}}{{.}} {{/options}}{{#both_scopes}}--scope cluster {{/both_scopes}}"$@")
out=$run/records/cluster
{{#simulated}}
options=({{#options}}{{.}} {{/options}}{{#both_scopes}}--scope cluster {{/both_scopes}}--simulate "$run/inputs/"{{scenario}} --nnodes "$SLURM_STEP_NUM_NODES" --node-rank "$SLURM_NODEID")
out=$run/records/cluster/$(printf 'node-%04d' "$SLURM_NODEID")
{{/simulated}}
exec "${launch[@]}" run "$run/inputs/"{{plan}} --plain --out "$out" --node-name "$SLURMD_NODENAME" "${options[@]}"
