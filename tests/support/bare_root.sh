# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A bare Debian 12 root that has none of our packages, and namespaces to work in it. Sourced by tests.
set -euo pipefail
root=${MUSTER_BUILD:?set by tests/meson.build}/bare-root # made once, kept between runs

fail() {
  echo "FAIL: $*"
  exit 1
}

# isolate: runs this test again as root in namespaces of its own, with which its mounts and processes end. Without root
# rights the test is skipped with its reason, except in CI, where nothing may be left out.
isolate() {
  [ "${MUSTER_ISOLATED:-}" != "$$" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then exec sudo --preserve-env=MUSTER_DIST,MUSTER_BUILD,MUSTER_SOURCE,CI "$0"; fi
    [ -z "${CI:-}" ] || fail "the bare root needs root rights"
    echo "the bare root needs root rights: run ./dev test as root, or allow sudo without a password"
    exit 77
  fi
  # In the new process namespace this test has the number 1.
  MUSTER_ISOLATED=1 exec unshare --mount --mount-proc --pid --fork --kill-child --propagation private "$0"
}

# The mirror that apt itself uses here, through apt's own proxy. tini: the image needs it, and is built without network.
make_root() {
  local mirror proxy=''
  # shellcheck disable=SC2016  # $(SITE) is a word of apt's
  mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 'Created-By: Packages' 2>/dev/null | head -n 1)
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  rm -rf "$root.new"
  http_proxy=${proxy:-${http_proxy:-}} debootstrap --variant=minbase --include=tini bookworm "$root.new" \
    "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || { tail -n 20 "$root.log" && fail "debootstrap could not make a bare root"; }
  rm -rf "$root.new"/var/lib/apt/lists/* "$root.new"/var/cache/apt/*
  mv "$root.new" "$root"
}

# bare_root: makes $root unless it is there; the first of several tests that need it does so, the others wait.
bare_root() {
  exec 8>"$root.lock"
  flock 8
  [ -x "$root/usr/bin/tini" ] || { rm -rf "$root" && make_root; }
  flock --unlock 8
  for name in libdnnl libopenblas libfmt libgomp; do
    [ -z "$(find "$root/usr" -name "$name.so*" -not -path '*/muster/*')" ] || fail "the root is not bare: it has $name"
  done
}

# own_copy FOLDER: $root becomes a view of the bare root that the test can change as it likes. NO_OVERLAY: a copy, as a user
# namespace can neither rename folders in an overlay nor make devices.
own_copy() {
  mkdir -p "$1"
  mount -t tmpfs tmpfs "$1"
  mkdir "$1/upper" "$1/work" "$1/root"
  if [ -n "${NO_OVERLAY:-}" ] || ! mount -t overlay overlay -o "lowerdir=$root,upperdir=$1/upper,workdir=$1/work" "$1/root"; then
    tar --directory "$root" --exclude=./dev --create . | tar --directory "$1/root" --extract
    mkdir -p "$1/root/dev/shm"
    touch "$1"/root/dev/{null,zero,full,random,urandom}
  fi
  root=$1/root
}

# system_mounts: what programs in $root expect of the system. /sys with its control groups: a limit that cannot be read is an error.
system_mounts() {
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/dev/shm"
  # Nodes of an overlay that a user namespace has mounted cannot be opened.
  for device in null zero full random urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
}
