#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Verifies this node again while nobody uses its GPUs. Started by muster-reverify.service; settings: /etc/default/muster
# Its exit code is that of `muster run`, so a node that is not accepted shows in `systemctl --failed`.
set -eu
state=${STATE_DIRECTORY:-/var/lib/muster}
here=$(dirname "$(readlink -f "$0")")
muster=$(readlink -f "$here/../../bin/muster")
plan=${MUSTER_PLAN:-$(readlink -f "$here/../../share/muster/plans/node-quick.toml")}
keep=${MUSTER_KEEP:-14}

say() { echo "reverify: $*" >&2; }

# Processes on the GPUs. A query that fails does not prove that the node is idle.
users() {
  command -v nvidia-smi >/dev/null || return 0
  pids=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader) || return
  echo "$pids" | xargs
}

case $keep in '' | *[!0-9]* | 0*) say "MUSTER_KEEP=$keep, expected a whole number, 1 or more; nothing was run" && exit 2 ;; esac
busy=$(users) || { say "nvidia-smi failed; nothing was run"; exit 3; }
[ -z "$busy" ] || { say "GPUs are in use by process $busy; nothing was run"; exit 0; }

umask 022
mkdir -p "$state/runs"
out=$state/runs/$(date -u +%Y%m%dT%H%M%SZ)
code=0
disturbed=
# shellcheck disable=SC2086  # several options are several words
"$muster" run "$plan" --out "$out" --plain ${MUSTER_OPTIONS:-} || code=$?
# A job that began meanwhile slows the GPUs down through no fault of theirs.
busy=$(users) || busy=unknown
if [ "$code" = 1 ] && [ -n "$busy" ]; then
  say "rejected, but GPUs are now in use by process $busy: no verdict, see $out/report.html"
  code=3
  disturbed=yes
fi
# What a job disturbed is no part of the node's history.
if [ -f "$out/record.json" ] && [ -z "$disturbed" ]; then
  "$muster" history add "$out" --db "$state/history.sqlite" || say "$out was not added to the history (exit code $?)"
fi
# The names are dates: all but the newest go. The history keeps their values.
find "$state/runs" -mindepth 1 -maxdepth 1 -type d | sort -r | tail -n "+$((keep + 1))" | while IFS= read -r old; do rm -rf "$old"; done
exit "$code"
