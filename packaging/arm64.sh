#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cross-builds the distribution for arm64 in a Debian root of its own and runs tests under qemu-user. ./dev arm64 starts it.
# A root of its own, because some of Debian's -dev packages exist for one architecture at a time.
# Usage: arm64.sh FOLDER build [TARGET...] | test [NAME...] | package
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: arm64.sh FOLDER build [TARGET...] | test [NAME...] | package" >&2; exit 2; }
folder=$(realpath -m "$1") action=$2
shift 2
sources=$(dirname "$(dirname "$(readlink -f "$0")")")
root=$folder/root bare=$folder/bare-root
# Debian 12's own qemu-user (7.2) refuses PR_SET_CHILD_SUBREAPER, without which muster-host starts no rank.
native=(g++ g++-aarch64-linux-gnu qemu-user/bookworm-backports pkg-config meson ninja-build patchelf python3 git ccache gnupg groff-base systemd dataset-fashion-mnist
  nlohmann-json3-dev libcli11-dev libkainjow-mustache-dev libvalijson-dev)
foreign=(libc6-dev libstdc++-12-dev nettle-dev libsodium-dev zlib1g-dev libtomlplusplus-dev liblua5.4-dev libseccomp-dev libsimdjson-dev libsqlite3-dev
  libfmt-dev libdnnl-dev libgloo-dev libopenblas-pthread-dev libhwloc-dev libjpeg62-turbo-dev libre2-dev libcurl4-openssl-dev libssl-dev
  libgtest-dev libgmock-dev libbenchmark-dev)
# Programs that tests start; those of this machine do as well as arm64's.
tools=(shellcheck libxml2-utils openssl fio iproute2 python3-pip python3-venv)
# What no test shows under qemu-user: its vfork is a fork, so that posix_spawn does not tell why a program did not start; it bounds no
# address space, has no seccomp and no ptrace, counts no CPU time in its /proc/self/stat, and is so slow that a loop meets the limit of seconds before
# that of steps.
impossible=(ProcessState.CountsOwnCpuTime Abandoned.ARankThatSurvivesKillIsAbandonedAndNamed StartHost.NamesWhatCannotBeStarted
  Supervisor.FailsWhenMusterHostCannotBeStarted ChildProcess.NamesAMissingProgram ChildProcess.WorksInItsFolder LuaSandbox.BoundsTheMemoryOfTheChild
  LuaSandbox.LeavesTheChildNoFileProcessOrSocket LuaSandbox.EndsALoopWithoutAnEndAtItsLine Predicate.IsEndedWhenItDoesNotEnd)

die() {
  echo "arm64: $*" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || die "making the Debian root needs root rights"

# strap FOLDER ARG...: debootstrap from the mirror that apt uses here.
strap() {
  local target=$1 mirror
  shift
  # shellcheck disable=SC2016  # $(SITE) is a word of apt's
  mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 'Created-By: Packages' 2>/dev/null | head -n 1)
  rm -rf "$target"
  mkdir -p "$folder"
  debootstrap --variant=minbase "$@" bookworm "$target" "${mirror:-http://deb.debian.org/debian}" >>"$folder/root.log" 2>&1 ||
    die "debootstrap failed, see $folder/root.log"
}

make_root() {
  strap "$root.new"
  sed 's/ bookworm / bookworm-backports /' "$root.new/etc/apt/sources.list" >"$root.new/etc/apt/sources.list.d/backports.list"
  cp /etc/resolv.conf "$root.new/etc/resolv.conf"
  apt-config dump Acquire >"$root.new/etc/apt/apt.conf.d/90network"
  echo force-unsafe-io >"$root.new/etc/dpkg/dpkg.cfg.d/unsafe-io" # a root that was interrupted is made again
  chroot "$root.new" dpkg --add-architecture arm64
  chroot "$root.new" apt-get -q update >>"$folder/root.log" 2>&1 || die "apt-get update failed, see $folder/root.log"
  DEBIAN_FRONTEND=noninteractive chroot "$root.new" apt-get -q install --yes --no-install-recommends "${native[@]}" "${foreign[@]/%/:arm64}" \
    >>"$folder/root.log" 2>&1 || die "apt-get install failed, see $folder/root.log"
  rm -rf "$root"
  mv "$root.new" "$root"
}

install_tools() {
  chroot "$root" dpkg-query --show "${tools[@]}" >/dev/null 2>&1 && return 0
  chroot "$root" apt-get -q update >>"$folder/root.log" 2>&1 || die "apt-get update failed, see $folder/root.log"
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -q install --yes --no-install-recommends "${tools[@]}" >>"$folder/root.log" 2>&1 ||
    die "apt-get install failed, see $folder/root.log"
}

# The root in which the package is installed, of arm64. finish_bare_root does the rest, where arm64 programs run.
begin_bare_root() {
  local device
  strap "$bare.new" --arch=arm64 --foreign --include=tini
  # A user namespace cannot make devices.
  for device in null zero full random urandom tty console ptmx; do cp -a "/dev/$device" "$bare.new/dev/"; done
}

finish_bare_root() {
  [ -d "$bare" ] && return 0
  # As in a container that cannot make devices: they are there.
  chroot "$bare.new" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=lxc /debootstrap/debootstrap --second-stage >>"$folder/root.log" 2>&1 ||
    die "the second stage of debootstrap failed, see $folder/root.log"
  rm -rf "$bare.new"/var/lib/apt/lists/* "$bare.new"/var/cache/apt/*
  mv "$bare.new" "$bare"
}

# The kernel runs arm64 programs by qemu, in these namespaces only: Muster starts children, which no wrapper sees.
register_qemu() {
  local magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || die "user namespaces cannot have emulators of their own here; Linux 6.7 or newer is required"
  echo ":qemu-aarch64:M::$magic:$mask:$root/usr/bin/qemu-aarch64:F" >/proc/sys/fs/binfmt_misc/register
}

# A user namespace in which every user and group is itself: packages give files to several.
all_users() {
  local holder
  unshare --user sleep infinity &
  holder=$!
  until [ "$(readlink "/proc/$holder/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
  for map in uid_map gid_map; do echo '0 0 4294967295' >"/proc/$holder/$map"; done
  exec 9<"/proc/$holder/ns/user"
  kill "$holder"
}

enter() {
  if [ -z "${MUSTER_ARM64_INSIDE:-}" ]; then
    all_users
    MUSTER_ARM64_INSIDE=1 exec nsenter --user=/proc/self/fd/9 unshare --mount --pid --fork --kill-child --mount-proc --propagation private "$0" "$folder" "$action" "$@"
  fi
  register_qemu
  mkdir -p "$root/src" "$root/build"
  grep -qs localhost "$root/etc/hosts" || echo '127.0.0.1 localhost' >>"$root/etc/hosts"
  mount --bind "$root" "$root" # tests make mount namespaces of their own, whose root must be a mount
  mount --rbind "$sources" "$root/src"
  mount --bind "$folder" "$root/build"
  for mounted in proc sys dev; do mount --rbind "/$mounted" "$root/$mounted"; done
}

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp CI="${CI:-}" CCACHE_DIR=/build/ccache OMP_NUM_THREADS=1 "$@"; }

targets() {
  inside meson introspect /build/tree --targets | /usr/bin/python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    if target["installed"]:
        print("\n".join(os.path.relpath(name, "/build/tree") for name in target["filename"]))'
}

# build [TARGET...]: without targets the distribution, and installs it.
build() {
  local names=("$@") commit
  commit=$(git -C "$sources" describe --always --exclude='*' --abbrev=12 --dirty 2>/dev/null || true)
  if [ ! -f "$folder/tree/build.ninja" ]; then
    inside meson setup /build/tree /src --cross-file /src/packaging/arm64.cross --prefix=/ -Dunity=on -Dunity_size=12 -Dcuda=disabled \
      -Dbenchmarks=false -Dcommit="$commit"
  elif ! grep -qxF "commit = $commit" "$folder/tree/meson-private/cmd_line.txt"; then
    inside meson configure /build/tree -Dcommit="$commit"
  fi
  [ $# -gt 0 ] || mapfile -t names < <(targets)
  inside ninja -j "$(nproc)" -C /build/tree "${names[@]}"
  [ $# -gt 0 ] || inside env DESTDIR=/build/tree/dist meson install -C /build/tree --no-rebuild --quiet
}

package() {
  build
  rm -rf "$folder/package"
  mkdir "$folder/package"
  set -- env DEB_ARCH=arm64 STRIP=aarch64-linux-gnu-strip
  inside "$@" SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$sources" log -1 --format=%ct)}" /src/packaging/package.sh /build/tree/dist /build/package
  finish_bare_root
  inside "$@" MUSTER_DIST=/build/tree/dist MUSTER_BUILD=/build NO_OVERLAY=1 /src/tests/packaging/package_test.sh
}

[ -x "$root/usr/bin/qemu-aarch64" ] || make_root
[ "$action" != test ] || [ -n "${MUSTER_ARM64_INSIDE:-}" ] || install_tools
[ "$action" != package ] || [ -d "$bare" ] || [ -n "${MUSTER_ARM64_INSIDE:-}" ] || begin_bare_root
enter "$@"
case $action in
  build) build "$@" ;;
  test)
    inside ninja -j "$(nproc)" -C /build/tree # what tests start is no dependency of theirs
    ln -sf /usr/bin/aarch64-linux-gnu-gcc "$root/usr/local/bin/cc" # tests compile plugins
    # The standard library's regular expressions recurse deeper than qemu's stack.
    inside env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin QEMU_STACK_SIZE=67108864 GTEST_FILTER="-$(IFS=: && echo "${impossible[*]}")" \
      meson test -C /build/tree --print-errorlogs --no-rebuild --timeout-multiplier 10 "$@"
    ;;
  package) package ;;
  *) die "unknown action: $action" ;;
esac
