#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the installed tree into a bare Debian root that has none of our packages, under another path, and runs it there.
set -euo pipefail
dist=${MUSTER_DIST:?set by tests/meson.build}
root=${MUSTER_BUILD:?set by tests/meson.build}/bare-root # made once, kept between runs
place='/opt/another place/muster'
here=$(dirname "$(readlink -f "$0")")

fail() {
  echo "FAIL: $*"
  exit 1
}

# A chroot needs root. Without it the test is skipped with its reason, except in CI, where nothing may be left out.
if [ "$(id -u)" != 0 ]; then
  if sudo -n true 2>/dev/null; then exec sudo --preserve-env=MUSTER_DIST,MUSTER_BUILD,CI "$0"; fi
  [ -z "${CI:-}" ] || fail "the bare root needs root rights"
  echo "the bare root needs root rights: run ./dev test as root, or allow sudo without a password"
  exit 77
fi
# Mounts and processes of the test live in namespaces of their own and end with it.
if [ "${1:-}" != inside ]; then exec unshare --mount --pid --fork --kill-child --propagation private "$0" inside; fi

make_root() {
  local mirror proxy=''
  # shellcheck disable=SC2016  # $(SITE) is a word of apt's
  mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 'Created-By: Packages' 2>/dev/null | head -n 1)
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  rm -rf "$root.new"
  http_proxy=${proxy:-${http_proxy:-}} debootstrap --variant=minbase bookworm "$root.new" \
    "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || { tail -n 20 "$root.log" && fail "debootstrap could not make a bare root"; }
  rm -rf "$root.new"/var/lib/apt/lists/* "$root.new"/var/cache/apt/*
  mv "$root.new" "$root"
}

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root "$place/bin/muster" "$@"; }

# expect CODES WHAT ARG...: runs muster with ARG in the root; it must end with one of CODES and print WHAT.
expect() {
  local expected=$1 what=$2 code=0 said
  shift 2
  said=$(inside "$@" 2>&1) || code=$?
  [[ " $expected " == *" $code "* ]] || fail "muster $* ended with $code, expected $expected: $said"
  [[ $said == *"$what"* ]] || fail "muster $* did not print '$what': $said"
  echo "ok: muster $*"
}

[ -d "$root" ] || make_root
for name in libdnnl libopenblas libfmt libgomp; do
  [ -z "$(find "$root/usr" -name "$name.so*")" ] || fail "the root is not bare: it has $name"
done
rm -rf "$root/opt/another place" "$root/tmp/out"
mkdir -p "$root$place"
cp -r "$dist/." "$root$place"
cp "$here/gemm.toml" "$root/tmp/gemm.toml"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" # with its control groups: a limit that cannot be read is an error
mount -t tmpfs tmpfs "$root/dev/shm"

expect 0 muster --version
expect 0 h100-sxm5-80gb skus
expect 0 compute plugins
expect 0 report.html run "$place/share/muster/plans/environment.toml" --out /tmp/out/environment
# How fast it is depends on what else runs here (1: rejected, 3: other load explains a miss); that both libraries compute
# does not (3: an error).
expect '0 1 3' report.html run /tmp/gemm.toml --out /tmp/out/gemm
if grep -q '"exit_code": 3' "$root/tmp/out/gemm/record.json"; then
  grep -q 'external load' "$root/tmp/out/gemm/record.json" || fail "gemm ended with 3, and no other load explains it"
fi
for file in record.json report.html junit.xml; do
  [ -s "$root/tmp/out/gemm/$file" ] || fail "the run left no $file"
done
for library in onednn openblas; do
  grep -q "\"text\": *\"$library" "$root/tmp/out/gemm/record.json" || fail "$library did not do the work it was asked for"
done
rm -rf "$root/opt/another place" "$root/tmp/out"
