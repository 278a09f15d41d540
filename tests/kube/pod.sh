#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts one container of a pod: pod.sh ROOT HOSTNAME UID GROUP WORKDIR SOURCE:TARGET[:ro]... -- COMMAND...
# It runs in its own mount, UTS and process namespaces. Its root holds this machine's programs, and of the rest only its volumes.
set -eu
root=$1 name=$2 uid=$3 group=$4 work=$5
shift 5
hostname "$name"
mount -t tmpfs -o mode=0755 root "$root"
for entry in bin sbin lib lib64 usr etc dev; do
  if [ -L "/$entry" ]; then
    cp -P "/$entry" "$root/$entry"
  elif [ -d "/$entry" ]; then
    mkdir "$root/$entry"
    mount --rbind "/$entry" "$root/$entry"
  fi
done
mkdir "$root/proc"
mount -t proc proc "$root/proc"
# As in a container: the network's part of sysfs is that of the pod's namespace.
mkdir "$root/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
while [ "$1" != -- ]; do
  source=${1%%:*} target=${1#*:}
  shift
  if [ -d "$source" ]; then mkdir -p "$root${target%:ro}"; else [ -e "$root${target%:ro}" ] || { mkdir -p "$(dirname "$root$target")"; : >"$root${target%:ro}"; }; fi
  mount --bind "$source" "$root${target%:ro}"
  [ "$target" = "${target%:ro}" ] || mount -o remount,ro,bind "$root${target%:ro}"
done
shift
mount -o remount,ro "$root"
# shellcheck disable=SC2016 # the shell inside expands these
exec chroot "$root" setpriv --reuid="$uid" --regid="$group" --groups="$group" --no-new-privs --bounding-set=-all --inh-caps=-all \
  /bin/sh -c 'cd "$0" && exec "$@"' "$work" "$@"
