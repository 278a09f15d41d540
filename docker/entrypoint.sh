#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Entry of the container image: says on standard error what it found, changes nothing, and becomes `muster` with its
# arguments. exec, so that signals reach it (Ctrl-C, docker stop).
set -u
muster=${MUSTER_BINARY:-/opt/muster/bin/muster}

say() { printf 'entrypoint: %-10s %s\n' "$1" "$2" >&2; }

# Prints the text if the launcher's variables, joined in the first argument, are set.
found() { [ -n "$1" ] && echo "$2"; }

# In the order in which `muster run` looks (runner/launcher/launcher.cpp); it decides, and its record has the result.
launcher() {
  found "${MUSTER_NNODES:+${MUSTER_NODE_RANK:-}}" "options: node ${MUSTER_NODE_RANK:-} of ${MUSTER_NNODES:-} (MUSTER_NODE_RANK, MUSTER_NNODES)" ||
  found "${OMPI_COMM_WORLD_SIZE:-}${OMPI_COMM_WORLD_RANK:-}" "Open MPI: rank ${OMPI_COMM_WORLD_RANK:-?} of ${OMPI_COMM_WORLD_SIZE:-?}" ||
  found "${GROUP_RANK:-}${TORCHELASTIC_RUN_ID:-}" "torchrun: node ${GROUP_RANK:-?} of ${GROUP_WORLD_SIZE:-?}" ||
  found "${SLURM_STEP_ID:-${SLURM_STEPID:-}}" "Slurm: job ${SLURM_JOB_ID:-?}, node ${SLURM_NODEID:-?} of ${SLURM_STEP_NUM_NODES:-?}" ||
  found "${JOB_COMPLETION_INDEX:-}" "Kubernetes: index ${JOB_COMPLETION_INDEX:-} of a Job" ||
  found "${RANK:-}${WORLD_SIZE:-}" "RANK and WORLD_SIZE: rank ${RANK:-?} of ${WORLD_SIZE:-?}" ||
  found "${SLURM_JOB_ID:-}" "none: Slurm job ${SLURM_JOB_ID:-} without a step; start one with srun" ||
  found "${KUBERNETES_SERVICE_HOST:-}" "none: a Kubernetes pod without JOB_COMPLETION_INDEX; a StatefulSet needs MUSTER_NNODES" ||
  echo "none: this node alone"
}

gpus() {
  set -- /dev/nvidia[0-9]*
  if [ -e "$1" ]; then echo "$#: $*"; else echo "none (no /dev/nvidia0); for GPU plans start the container with the NVIDIA Container Toolkit"; fi
}

driver() {
  if [ -r /proc/driver/nvidia/version ]; then
    sed -n 's/^NVRM version: *//p' /proc/driver/nvidia/version
  else
    echo "none (no /proc/driver/nvidia/version)"
  fi
}

# Where the loader or the backends would find a library.
find_library() {
  /sbin/ldconfig -p 2>/dev/null | sed -n "s/^.*[[:space:]]\($1[^ ]*\) .*=> \(.*\)$/\2/p"
  for folder in /usr/local/cuda/lib64 $(echo "${LD_LIBRARY_PATH:-}" | tr ':' ' '); do
    for file in "$folder/$1"*; do if [ -e "$file" ]; then echo "$file"; fi; done
  done
}

libraries() {
  for name in libcuda libcublasLt libcudnn libnvrtc libnccl; do
    path=$(find_library "$name.so." | head -n 1)
    printf '%s ' "$name=${path:-missing}"
  done
}

adapters() {
  set -- /sys/class/infiniband/*
  if [ -e "$1" ]; then echo "$# RDMA devices: $(echo "$*" | sed 's#/sys/class/infiniband/##g')"; else echo "no RDMA devices"; fi
}

say muster "$("$muster" --version 2>&1)"
say launcher "$(launcher)"
say GPUs "$(gpus)"
say driver "$(driver)"
say libraries "$(libraries)"
say network "$(adapters)"
say limits "shared memory $(df -h /dev/shm 2>/dev/null | awk 'NR == 2 { print $2 }'), locked memory $(awk '/^Max locked memory/ { print $4 }' /proc/self/limits), user $(id -u)"
exec "$muster" "$@"
