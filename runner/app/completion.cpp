// SPDX-License-Identifier: Apache-2.0
// See completion.h.
#include "runner/app/completion.h"

namespace muster {

std::string bashCompletion() {
  return R"bash(# bash completion for muster: source <(muster completion bash)
_muster() {
  local cur prev command words
  cur=${COMP_WORDS[COMP_CWORD]}
  prev=${COMP_WORDS[COMP_CWORD-1]}
  command=${COMP_WORDS[1]}
  case $prev in
    --plugins|--skus) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    --out|--resume) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    --simulate|--sku-file) COMPREPLY=($(compgen -f -X '!*.toml' -- "$cur") $(compgen -d -- "$cur")); return ;;
    --no-gpu) COMPREPLY=($(compgen -W "fail skip" -- "$cur")); return ;;
    --scope) COMPREPLY=($(compgen -W "device node cluster" -- "$cur")); return ;;
    --sku) COMPREPLY=($(compgen -W "auto $(muster skus 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return ;;
  esac
  if [[ $COMP_CWORD -eq 1 ]]; then
    words="run check judge report fleet history baseline plugins skus slurm completion --help --version"
  else
    case $command in
      run) words="--out --resume --set --sku --simulate --nodes --scope --seed --strict --no-gpu --plugins --skus --json --plain --help" ;;
      check) words="--set --plugins --help" ;;
      judge) words="--sku --out --strict --help" ;;
      report) words="--out --help" ;;
      plugins) words="--plugins --json --help $(muster plugins 2>/dev/null | sed '/^$/,$d' | cut -d' ' -f1)" ;;
      skus) words="--skus --help $(muster skus 2>/dev/null | cut -d' ' -f1)" ;;
      fleet) words="--expect --expect-slurm --partition --plan --topology --out --reject-outliers --help" ;;
      slurm) words="submit status resume wait drain undrain clean hooks --nodes --partition --account --reservation --container-image --out --set --simulate --print --wait --dry-run --apply --older-than --help" ;;
      history) words="add list show trend compare fleets delta --db --json --node --newest --since --survey --out --waivers --reject-outliers --help" ;;
      baseline) words="learn diff --base --name --force --allow-simulated --help" ;;
      completion) words="bash" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  case $command in
    run|check) COMPREPLY+=($(compgen -f -X '!*.@(toml|lua)' -- "$cur") $(compgen -d -S / -- "$cur")) ;;
    judge|report) COMPREPLY+=($(compgen -f -X '!*.json' -- "$cur") $(compgen -d -S / -- "$cur")) ;;
  esac
}
complete -o nospace -o bashdefault -F _muster muster
)bash";
}

}  // namespace muster
