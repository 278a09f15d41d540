#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One pod's part of a run: runs the plan and prints its record for `muster k8s collect`. Its arguments are those of `muster run`.
set -u
umask 077
node=${MUSTER_NODE_NAME:?is not set: start this pod from the Helm chart}
name=${MUSTER_RUN_NAME:?is not set: start this pod from the Helm chart}
runs=/muster/run/$node run=/muster/run/$node/$name
if [ -s /muster/secret/token ]; then
  MUSTER_TOKEN=$(cat /muster/secret/token)
  export MUSTER_TOKEN
fi
# A Secret's files are readable by the pod's group; muster takes a key only if its owner alone can read it.
for key in /muster/secret/key "/muster/secret/keys/$node"; do
  [ -s "$key" ] || continue
  cat "$key" >/tmp/record.key || exit 4
  set -- "$@" --record-key /tmp/record.key
done
command -v muster-entrypoint >/dev/null 2>&1 && start=muster-entrypoint || start=muster

# On a volume only the newest run of a node counts: `muster fleet` does not read attempts/. A run in use stays, and then the worse one counts.
set_others_aside() {
  mkdir -p "$runs/attempts" || return
  for other in "$runs"/*; do
    [ "$other" != "$runs/attempts" ] || continue
    for lock in "$other/.lock" "$other"/node-*/.lock; do
      [ ! -e "$lock" ] || flock --nonblock "$lock" true || continue 2
    done
    mv "$other" "$runs/attempts/" || echo "muster: $other cannot be set aside, so it counts too" >&2
  done
}
if [ -e "$runs/attempts/$name" ]; then
  run=$runs/attempts/$name # a newer pod has set this one's run aside
elif [ ! -e "$run" ]; then
  set_others_aside || exit 4
fi

# --resume starts a run where there is none. A container that is started again resumes its run and keeps its verdict.
"$start" run "$@" --plain --node-name "$node" --resume "$run" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do
  wait "$child"
  code=$?
done

# The log is the only way out of a pod that has ended. The record is its last part, so rotation keeps it.
for record in "$run/record.json" "$run"/node-*/record.json; do
  [ -f "$record" ] || continue
  sum=$(sha256sum <"$record") || exit 4
  printf '\n#muster-record %s %s %s\n' "$node" "$code" "${sum%% *}"
  gzip -c "$record" | base64 -w 1000 || exit 4
  printf '#muster-record-end\n'
done
exit "$code"
