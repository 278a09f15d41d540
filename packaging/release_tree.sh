#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what is shipped from the installed distribution: stripped, with man pages, completion, units, licences and SBOM.
# Usage: release_tree.sh DIST OUT VERSION SECONDS [MUSTER...]; MUSTER: the command that runs OUT/bin/muster (an emulator)
# STRIP and DEB_ARCH replace strip and this machine's architecture in a cross build.
set -euo pipefail
shopt -s inherit_errexit
umask 022
[ $# -ge 4 ] || { echo "usage: release_tree.sh DIST OUT VERSION SECONDS [MUSTER...]" >&2; exit 2; }
dist=$1 out=$2 version=$3 seconds=$4
shift 4
sources=$(dirname "$(dirname "$(readlink -f "$0")")")
architecture=${DEB_ARCH:-$(dpkg --print-architecture)}
bundled=lib/muster/lib
# Compiled into our files: headers, and the one library that is linked statically.
inlined=(libssl-dev libcli11-dev libkainjow-mustache-dev libtomlplusplus-dev nlohmann-json3-dev)

die() {
  echo "release_tree: $*" >&2
  exit 1
}

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

# Debian has stripped its libraries; ours keep their symbols in the build folder.
strip_own_files() {
  local file
  while IFS= read -r -d '' file; do
    if is_elf "$file"; then "${STRIP:-strip}" --strip-unneeded --enable-deterministic-archives "$file"; fi
  done < <(find "$out/bin" "$out/lib/muster" -type f ! -path "$out/$bundled/*" -print0)
  "${STRIP:-strip}" --strip-unneeded "$out/$bundled/muster-tls.so"
}

# package_of SONAME: the Debian package that a bundled library was copied from.
package_of() {
  local package
  package=$(dpkg-query --search "*/$1" 2>/dev/null | sed -n "s/^\([^ :,]*\)\(:$architecture\)\{0,1\}: .*/\1/p" | sort -u | head -n 1)
  [ -n "$package" ] || die "no Debian package of $architecture owns $1, so the SBOM would not be complete"
  echo "$package"
}

# component RELATION PACKAGE SHA-256 FILE: a line for sbom.sh.
component() {
  local release
  release=$(dpkg-query --show --showformat '${Version}' "$2:$architecture" 2>/dev/null || dpkg-query --show --showformat '${Version}' "$2") ||
    die "package $2 is not installed"
  printf '%s\tdeb\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$release" "$architecture" "$3" "$4"
}

keep_licence() {
  local from=/usr/share/doc/$1/copyright
  [ -f "$from" ] || die "$from is missing, and its library may not be shipped without it"
  install -m 644 "$from" "$out/share/doc/muster/bundled/$1.copyright"
}

list_components() {
  local file name package
  for file in "$out/$bundled"/*; do
    name=${file##*/}
    [ "$name" != muster-tls.so ] || continue
    package=$(package_of "$name")
    keep_licence "$package"
    component CONTAINS "$package" "$(sha256sum "$file" | cut -d' ' -f1)" "$bundled/$name"
  done
  for package in "${inlined[@]}"; do
    keep_licence "$package"
    component STATIC_LINK "$package" - -
  done
}

rm -rf "$out"
mkdir -p "$out/share/doc/muster/bundled" "$out/share/man/man1" "$out/share/bash-completion/completions" "$out/share/muster/systemd"
cp -r "$dist/bin" "$dist/lib" "$out"
cp -r "$dist/share/muster" "$out/share"
strip_own_files
[ $# -gt 0 ] || set -- "$out/bin/muster"
"$@" completion bash >"$out/share/bash-completion/completions/muster"
/usr/bin/python3 -B "$sources/packaging/manual.py" "$out/share/man/man1" "$(date -u -d "@$seconds" +%F)" "$@"
gzip -9n "$out/share/man/man1"/*.1
install -m 644 "$sources"/packaging/systemd/muster-reverify.* "$sources/packaging/systemd/muster.default" "$out/share/muster/systemd"
install -m 755 "$sources/packaging/reverify.sh" "$out/lib/muster/reverify"
install -m 644 "$sources/LICENSE" "$out/share/doc/muster"
components=$(list_components)
"$sources/packaging/sbom.sh" muster "$version-$architecture" "$seconds" <<<"$components" >"$out/share/muster/sbom.spdx.json"
find "$out" -exec touch --no-dereference --date="@$seconds" {} +
