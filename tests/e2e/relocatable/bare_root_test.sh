#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the installed tree into a bare Debian root that has none of our packages, under another path, and runs it there.
set -euo pipefail
dist=${MUSTER_DIST:?set by tests/meson.build}
place='/opt/another place/muster'
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/support/bare_root.sh
. "$here/../../support/bare_root.sh"
isolate

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

bare_root
rm -rf "$root/opt/another place" "$root/tmp/out"
mkdir -p "$root$place"
cp -r "$dist/." "$root$place"
cp "$here/gemm.toml" "$root/tmp/gemm.toml"
system_mounts

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
