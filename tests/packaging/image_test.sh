#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image with buildah on a base that debootstrap made, and runs it as a user without rights in a root that
# nobody can write. ./dev image starts it; MUSTER_IMAGE_CUDA=1: target cuda too, with this machine's toolkit;
# MUSTER_IMAGE_FROM_SOURCE=1: compile inside the image instead of taking the distribution that is built already.
set -euo pipefail
dist=${MUSTER_DIST:?set by ./dev image}
here=$(dirname "$(readlink -f "$0")")
sources=$(dirname "$(dirname "$here")")
# shellcheck source=tests/support/bare_root.sh
. "$here/../support/bare_root.sh"
isolate
work=$(mktemp -d -p "$MUSTER_BUILD") # not /tmp, which may be small: a cuda image takes several gigabytes while it is built
trap 'umount --recursive --lazy "$work/run" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
context=$work/context
export BUILDAH_ISOLATION=chroot

bud() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/storage-run" "$@"; }

# What Debian's slim images leave out of theirs, so that the size is that of an image on such a base.
make_base() {
  local container
  own_copy "$work/base"
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  rm -rf "$root"/usr/share/{man,info,locale,groff,lintian,linda}/*
  container=$(bud from scratch)
  bud copy --quiet "$container" "$root" / >/dev/null
  bud commit --quiet --rm "$container" base >/dev/null
  umount "$work/base/root" "$work/base"
}

# The context is an archive and the files that the Dockerfile copies: no compiler is needed.
make_context() {
  mkdir -p "$context/packaging"
  cp -r "$sources/docker" "$context"
  cp "$sources/packaging/sbom.sh" "$context/packaging"
  SOURCE_DATE_EPOCH=1700000000 "$sources/packaging/package.sh" "$dist" "$context/archive" >/dev/null
  archive=archive/$(basename "$context"/archive/*.tar.gz)
}

# Of a checkout: what git knows, as a fresh clone has it. Its packages come from the network.
make_source_context() {
  git -C "$sources" archive --format=tar HEAD | (mkdir -p "$context" && tar -C "$context" -xf -)
  archive=
}

# build TARGET ARG...
build() {
  local target=$1 begin=$SECONDS
  shift
  bud build --layers=false --quiet --target "$target" --tag "$target" --file "$context/docker/Dockerfile" --build-arg BASE=localhost/base \
    --build-arg BUILD_BASE=localhost/base --build-arg CUDA_BASE=localhost/base --build-arg PLUGIN_BASE=localhost/base \
    --build-arg ARCHIVE="$archive" --build-arg VERSION=1.2.3 --build-arg REVISION=abcdef --build-arg CREATED=2026-01-02T03:04:05Z \
    "$@" "$context" >"$work/log" 2>&1 || { tail -n 40 "$work/log" && fail "the target $target cannot be built"; }
  image=$(bud mount "$(bud from --pull-never "localhost/$target")")
  size=$(($(du --apparent-size --block-size=1 --summarize "$image" | cut -f1) / 1000000))
  echo "ok: built $target in $((SECONDS - begin)) s: $size MB"
}

config() { bud inspect --type image --format "{{.OCIv1.Config.$1}}" "localhost/$2"; }

check_contents() {
  local found
  found=$(find "$image" -xdev \( -name 'python3*' -o -name 'gcc*' -o -name 'g++*' -o -name cc -o -name 'c++*' -o -name ld -o -name 'id_rsa*' -o -name '*.pem' \) \
    -type f -perm /111 -o -xdev -path '*/.ssh/*' | head -n 5)
  [ -z "$found" ] || fail "in the image: $found"
  [ ! -e "$image/src" ] || fail "the sources are in the image"
  for label in title licenses version:1.2.3 revision:abcdef created:2026-01-02; do
    [[ $(config Labels cpu) == *"org.opencontainers.image.$label"* ]] || fail "no label $label: $(config Labels cpu)"
  done
  [ "$(config User cpu)" = 10001:10001 ] || fail "the user is $(config User cpu)"
  /usr/bin/python3 -B - "$image" <<'PYTHON' || fail "the SBOM of the image is wrong"
import json, pathlib, re, sys

root = pathlib.Path(sys.argv[1])
sbom = json.loads((root / "opt/muster/share/muster/image.spdx.json").read_text())
installed = set(re.findall(r"^Package: (.*)$", (root / "var/lib/dpkg/status").read_text(), re.MULTILINE))
listed = {entry["name"] for entry in sbom["packages"]} - {"muster-image"}
assert installed and listed == installed, listed ^ installed
PYTHON
  echo "ok: labels, user, SBOM; no compiler, no Python, no sources"
}

# The image's root, read-only, with what a container runtime mounts.
mount_image() {
  mkdir -p "$work/run"
  mount --bind "$image" "$work/run"
  mkdir -p "$image/runs"
  mount -t proc proc "$work/run/proc"
  mount --rbind /sys "$work/run/sys"
  mount --rbind /dev "$work/run/dev"
  for folder in tmp runs dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$work/run/$folder"; done
  mount -o remount,bind,ro "$work/run"
}

# run_image ENVIRONMENT... -- ARGUMENT...: as a container runtime starts it: by its entrypoint, as its user, without capabilities.
run_image() {
  local variables=()
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  chroot "$work/run" /usr/bin/env -i -C /opt/muster/share/muster PATH=/opt/muster/bin:/usr/bin:/bin "${variables[@]}" \
    setpriv --reuid 10001 --regid 10001 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
    /usr/bin/tini -- /usr/local/bin/muster-entrypoint "$@"
}

# check_entrypoint TARGET LIBRARIES: what the entrypoint must say of NVIDIA's libraries.
check_entrypoint() {
  local said code=0
  [[ $(config Entrypoint "$1") == *"/usr/bin/tini -- /usr/local/bin/muster-entrypoint"* ]] || fail "the entrypoint is $(config Entrypoint "$1")"
  if chroot "$work/run" touch /opt/muster/new 2>/dev/null; then fail "the root can be written"; fi
  said=$(run_image -- run plans/quickstart.toml --plain --out /runs/here 2>&1) || code=$?
  # How fast this machine is (1), and who else uses it (3), does not matter here; any other error does.
  [[ " 0 1 3 " == *" $code "* && $said == *report.html* ]] || fail "quickstart ended with $code: $said"
  grep -q '"simulated": *false' "$work/run/runs/here/record.json" || fail "quickstart left no record"
  if [ "$code" = 3 ]; then grep -q 'external load' "$work/run/runs/here/record.json" || fail "quickstart ended with 3, and no other load explains it: $said"; fi
  for line in "launcher   none: this node alone" "GPUs       none" "driver     none" "libraries  libcuda=missing $2" "user 10001"; do
    [[ $said == *"entrypoint: "*"$line"* ]] || fail "the entrypoint did not say '$line': $said"
  done
  grep '^entrypoint: ' <<<"$said"
  echo "ok: $1: quickstart as user 10001, without capabilities, in a read-only root (exit code $code)"
}

# The entrypoint names the launcher that `muster run` finds.
check_launchers() {
  check_launcher "Slurm: job 12, node 0 of 1" slurm SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_LOCALID=0 SLURM_STEP_NODELIST=n1
  check_launcher "Open MPI: rank 0 of 1" open-mpi OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
  check_launcher "Kubernetes: index 0 of a Job" kubernetes JOB_COMPLETION_INDEX=0 MUSTER_NNODES=1
  check_launcher "options: node 0 of 1" flags MUSTER_NNODES=1 MUSTER_NODE_RANK=0
  echo "ok: launchers"
}

check_launcher() {
  local what=$1 kind=$2 said
  shift 2
  rm -rf "$work/run/runs/launcher"
  said=$(run_image "$@" -- run plans/environment.toml --plain --out /runs/launcher 2>&1) || true
  [[ $said == *"launcher   $what"* ]] || fail "the entrypoint did not say '$what': $said"
  grep -rq "\"kind\": *\"$kind\"" "$work/run/runs/launcher" --include=record.json || fail "muster found another launcher than $kind: $said"
}

# Every library is found in the image, none outside of it is needed but the driver's.
check_cuda() {
  local file said
  for file in "$image"/opt/muster/nvidia/* "$image"/opt/muster/lib/muster/backends/*cuda*.so; do
    said=$(chroot "$image" /lib64/ld-linux-x86-64.so.2 --list "${file#"$image"}" 2>&1) || fail "$file: $said"
    [[ $said != *"not found"* ]] || fail "$file: $said"
  done
  find "$image/opt/muster/nvidia" -type f -printf '  %f %s\n' | sort
  [ -z "$(find "$image/opt/muster/nvidia" ! -regex '.*/\(nvidia\|lib\(cublasLt\|cudnn[a-z_]*\|nccl\|nvrtc\|nvrtc-builtins\)\.so\.[0-9.]*\)')" ] ||
    fail "more of CUDA than required is in the image"
}

command -v buildah >/dev/null || fail "buildah is not installed; ./dev image installs it"
bare_root
make_base
if [ -n "${MUSTER_IMAGE_FROM_SOURCE:-}" ]; then make_source_context; else make_context; fi
build cpu
[ "$size" -le 200 ] || fail "the cpu image has $size MB, at most 200 are allowed"
check_contents
mount_image
check_entrypoint cpu libcublasLt=missing
check_launchers
if [ -n "${MUSTER_IMAGE_CUDA:-}" ]; then
  umount --recursive "$work/run"
  build cuda --volume /usr/local/cuda:/usr/local/cuda:ro
  [ "$size" -le 2500 ] || fail "the cuda image has $size MB, at most 2500 are allowed"
  check_cuda
  mount_image
  check_entrypoint cuda libcublasLt=/opt/muster/nvidia/libcublasLt.so.
fi
