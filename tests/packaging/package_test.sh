#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the distribution, then installs, upgrades and removes it in a bare Debian 12 root that has no network.
set -euo pipefail
dist=${MUSTER_DIST:?set by tests/meson.build}
here=$(dirname "$(readlink -f "$0")")
sources=$(dirname "$(dirname "$here")")
# shellcheck source=tests/support/bare_root.sh
. "$here/../support/bare_root.sh"
isolate
work=$(mktemp -d)
trap 'umount --recursive --lazy "$work/root" && rm -rf --one-file-system "$work"' EXIT
# The time of the commit where git knows it; from sources without git, any.
export SOURCE_DATE_EPOCH=1700000000

pack() { "$sources/packaging/package.sh" "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "package.sh $*"; }; }

# in_root COMMAND...: in the root, without network and without anything of this machine's environment.
in_root() { unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp DEBIAN_FRONTEND=noninteractive "$@"; }

# expect WHAT COMMAND...: it must end with 0 and print WHAT.
expect() {
  local what=$1 said
  shift
  said=$(in_root "$@" 2>&1) || fail "$* ended with $?: $said"
  [[ $said == *"$what"* ]] || fail "$* did not print '$what': $said"
  echo "ok: $*"
}

# run_plan MUSTER PLANS FOLDER: a plan ends with a report.
run_plan() {
  expect report.html "$1" run "$2/environment.toml" --out "$3"
}

# Of everything in the root, names, modes, types and sizes; not what dpkg itself keeps of its work.
state_of_root() {
  (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \) -prune -o -type d -printf '%p %m %y\n' -o -printf '%p %m %y %s\n' | sort)
}

check_same_bytes() {
  (umask 077 && cd / && TZ=Asia/Tokyo LC_ALL=C.UTF-8 pack "$dist" "$work/second folder" --data "$work/data")
  diff -r --exclude='*.asc' "$work/first" "$work/second folder" || fail "the same distribution gave other bytes"
  echo "ok: the same bytes from another folder, umask, time zone and locale"
}

# A signature of the checksums, by a key made for this test; a changed list of checksums is found.
make_key() {
  export GNUPGHOME=$work/gnupg
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key packer@packages.invalid ed25519 sign never
}

check_signature() {
  gpg --batch --quiet --verify "$work"/first/*.asc "$work"/first/*.sha256 2>/dev/null || fail "the signature is not good"
  sed 's/^[0-9a-f]/x/' "$work"/first/*.sha256 >"$work/changed"
  if gpg --batch --quiet --verify "$work"/first/*.asc "$work/changed" 2>/dev/null; then fail "the signature fits other checksums"; fi
  gpgconf --kill all
  echo "ok: signature"
}

check_archive() {
  local name
  (cd "$work/first" && sha256sum --quiet --check ./*.sha256) || fail "a checksum is wrong"
  mkdir "$root/opt/muster"
  tar -xzf "$work"/first/*.tar.gz --strip-components=1 -C "$root/opt/muster"
  expect "muster 0." /opt/muster/bin/muster --version
  run_plan /opt/muster/bin/muster /opt/muster/share/muster/plans /tmp/unpacked
  for name in share/muster/plans/skus/h100-sxm5-80gb.toml share/man/man1/muster-slurm-submit.1.gz share/doc/muster/LICENSE share/muster/data/set lib/muster/reverify; do
    [ -s "$root/opt/muster/$name" ] || fail "the archive lacks $name"
  done
  [ -z "$(find "$root/opt/muster" -perm /022)" ] || fail "writable by others: $(find "$root/opt/muster" -perm /022 | head -n 3)"
  check_sbom "$root/opt/muster"
  rm -r "$root/opt/muster"
}

# check_sbom TREE: it names every bundled library, with its true digest, and its package.
check_sbom() {
  /usr/bin/python3 -B - "$1" <<'PYTHON' || fail "the SBOM is wrong"
import hashlib, json, pathlib, sys

tree = pathlib.Path(sys.argv[1])
sbom = json.loads((tree / "share/muster/sbom.spdx.json").read_text())
listed = {entry["packageFileName"]: entry for entry in sbom["packages"] if "packageFileName" in entry}
bundled = {f"lib/muster/lib/{file.name}" for file in (tree / "lib/muster/lib").iterdir()} - {"lib/muster/lib/muster-tls.so"}
assert bundled and set(listed) == bundled, set(listed) ^ bundled
for name, entry in listed.items():
    assert entry["checksums"][0]["checksumValue"] == hashlib.sha256((tree / name).read_bytes()).hexdigest(), name
    assert entry["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/"), name
    assert (tree / "share/doc/muster/bundled" / f"{entry['name']}.copyright").is_file(), name
assert any(entry["name"] == "libssl-dev" for entry in sbom["packages"])
ids = {entry["SPDXID"] for entry in sbom["packages"]}
assert all(relation["relatedSpdxElement"] in ids for relation in sbom["relationships"])
PYTHON
  echo "ok: the SBOM names every bundled library"
}

# An old version of the package: the same files, one of them later gone.
make_old_version() {
  dpkg-deb --raw-extract "$work"/first/*.deb "$work/old"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$work/old/DEBIAN/control"
  echo old >"$work/old/usr/share/muster/gone-in-the-next-version"
  dpkg-deb --root-owner-group -Znone --build "$work/old" "$root/tmp/old.deb" >/dev/null
}

# The units of the extracted package, beside this machine's targets. A key that systemd ignores is only a warning of its: it must print nothing.
check_units() {
  local said
  cp /usr/lib/systemd/system/*.target "$work/old/lib/systemd/system"
  said=$(systemd-analyze verify --man=no --root="$work/old" muster-reverify.service muster-reverify.timer 2>&1) || fail "systemd-analyze: $said"
  [ -z "$said" ] || fail "systemd-analyze: $said"
  echo "ok: systemd knows all that the units say"
}

check_package() {
  local before
  before=$(state_of_root)
  make_old_version
  check_units
  cp "$work"/first/*.deb "$root/tmp/new.deb"
  expect "" dpkg --install /tmp/old.deb
  [ -e "$root/usr/share/muster/gone-in-the-next-version" ] || fail "the old version is not installed"
  echo 'MUSTER_KEEP=3' >>"$root/etc/default/muster"
  expect "Preparing to unpack" dpkg --force-confold --install /tmp/new.deb
  [ ! -e "$root/usr/share/muster/gone-in-the-next-version" ] || fail "the upgrade left a file of the old version"
  grep -q '^MUSTER_KEEP=3$' "$root/etc/default/muster" || fail "the upgrade overwrote the settings"
  expect "muster 0." muster --version
  run_plan muster /usr/share/muster/plans /tmp/installed
  if in_root dpkg --verify muster | grep -v ' c /etc/default/muster$'; then fail "dpkg --verify finds changed files (above)"; fi
  # shellcheck disable=SC2016  # for the shell in the root
  expect judge bash -c 'source /usr/share/bash-completion/completions/muster; COMP_WORDS=(muster ju); COMP_CWORD=1; _muster; echo "${COMPREPLY[@]}"'
  gzip -dc "$root/usr/share/man/man1/muster-run.1.gz" | groff -man -ww -Tutf8 >"$work/page" 2>"$work/warnings"
  [ ! -s "$work/warnings" ] || fail "the man page: $(cat "$work/warnings")"
  grep -q -- '--resume' "$work/page" || fail "the man page of muster run lacks --resume"
  [ -z "$(find "$root/etc/systemd" -name 'muster-reverify*')" ] || fail "the timer is enabled"
  check_reverify
  mkdir -p "$root/etc/systemd/system/timers.target.wants"
  ln -s /lib/systemd/system/muster-reverify.timer "$root/etc/systemd/system/timers.target.wants"
  expect "" dpkg --purge muster
  rmdir --ignore-fail-on-non-empty -p "$root/etc/systemd/system/timers.target.wants" 2>/dev/null || true
  diff <(echo "$before") <(state_of_root) || fail "the purge left traces"
  echo "ok: purged without a trace"
}

# reverify CODE WHAT [SETTING...]: runs what the timer runs; nvidia-smi is a script that says what $smi holds.
reverify() {
  local code=0 expected=$1 what=$2 said
  shift 2
  printf '#!/bin/sh\n%s\n' "$smi" >"$root/usr/local/bin/nvidia-smi"
  chmod 755 "$root/usr/local/bin/nvidia-smi"
  said=$(in_root env PATH=/usr/local/bin:/usr/bin:/bin MUSTER_KEEP=1 MUSTER_PLAN=/usr/share/muster/plans/environment.toml "$@" /usr/lib/muster/reverify 2>&1) || code=$?
  [[ $code = "$expected" && $said == *"$what"* ]] || fail "reverify ended with $code, expected $expected and '$what': $said"
  echo "ok: reverify: $what"
}

check_reverify() {
  local smi runs=$root/var/lib/muster/runs
  smi='echo 4711' && reverify 0 "GPUs are in use by process 4711; nothing was run"
  smi='echo "no driver"; exit 9' && reverify 3 "nvidia-smi failed; nothing was run"
  [ ! -e "$runs" ] || fail "reverify ran although the node was not idle"
  smi=true && reverify 0 "report.html"
  sleep 1 # runs are named by the second
  reverify 0 "report.html"
  [ "$(find "$runs" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || fail "MUSTER_KEEP=1 keeps $(ls "$runs")"
  sleep 1
  # Idle at first, and used by a job at the end of a run that is rejected.
  smi='[ -e /tmp/asked ] && echo 4711; touch /tmp/asked'
  reverify 3 "no verdict" MUSTER_PLAN=/usr/share/muster/plans/node-quick.toml MUSTER_OPTIONS="--simulate /usr/share/muster/plans/scenarios/h100x8-one-slow-gpu.toml"
  [ "$(in_root muster history list --db /var/lib/muster/history.sqlite | grep -c environment)" = 2 ] || fail "the history does not have both runs and no other"
  rm "$root/usr/local/bin/nvidia-smi"
}

bare_root
own_copy "$work/root"
system_mounts
make_key
mkdir "$work/data" && echo images >"$work/data/set"
pack "$dist" "$work/first" --key packer@packages.invalid --data "$work/data"
check_same_bytes
check_signature
check_archive
check_package
