#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LD_LIBRARY_PATH holds a foreign copy of every bundled library, as on sites with Conda or modules. Each copy notes that it
# was loaded. None may be: not by muster, muster-host, any plugin or backend, nor by one bundled library for another.
set -euo pipefail
dist=${MUSTER_DIST:?set by tests/meson.build}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
foreign=$work/foreign
export MUSTER_FOREIGN_NOTES=$work/notes
bad=0

fail() {
  echo "FAIL: $*"
  bad=$((bad + 1))
}

# One source, one library for each SONAME. A copy has none of the real symbols: a program that gets it would fail as well.
make_foreign() {
  local library name
  mkdir -p "$foreign" "$MUSTER_FOREIGN_NOTES"
  cat >"$work/foreign.c" <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  char path[4096] = "";
  const char *notes = getenv("MUSTER_FOREIGN_NOTES");
  if (notes != NULL && strlen(notes) + sizeof NAME + 2 < sizeof path) {
    strcat(strcat(strcat(path, notes), "/"), NAME);
    close(open(path, O_CREAT | O_WRONLY, 0644));
  }
}
C
  for library in "$1"/lib/muster/lib/*; do
    name=${library##*/}
    cc -shared -fPIC -O1 "-DNAME=\"$name\"" "-Wl,-soname,$name" -o "$foreign/$name" "$work/foreign.c"
  done
}

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

# Where the loader finds what each file needs, all of it in turn.
check_needs() {
  local file loader found count=0
  loader=$(readelf --program-headers "$1/bin/muster" | sed -n 's/.*program interpreter: \(.*\)\]$/\1/p')
  while read -r file; do
    is_elf "$file" || continue
    count=$((count + 1))
    found=$(LD_LIBRARY_PATH=$foreign "$loader" --list "$file" 2>&1 | grep -F "$foreign" || true)
    [ -z "$found" ] || fail "${file#"$1"/} takes $(awk '{print $1}' <<<"$found" | tr '\n' ' ')from LD_LIBRARY_PATH"
  done < <(find "$1" -type f)
  echo "$count ELF files, $(find "$foreign" -type f | wc -l) foreign libraries"
}

# What is loaded by name while it runs: run every plugin, and through them every backend of the host.
check_runs() {
  local code=0 said
  export LD_LIBRARY_PATH=$foreign
  said=$("$1/bin/muster" --version && "$1/bin/muster" plugins) || fail "muster does not run: $said"
  said=$("$1/bin/muster" run "$here/foreign.toml" --plain --out "$work/run" 2>&1) || code=$?
  unset LD_LIBRARY_PATH
  # How fast this machine is (1), and who else uses it (3), does not matter here; any other error does.
  [[ " 0 1 3 " == *" $code "* ]] || fail "the run ended with $code: $said"
  if grep -E '^ +error: ' <<<"$said" | grep -vE 'error: [0-9]+ error|not measurable: external load|^ +and [0-9]+ more'; then
    fail "something could not be measured: $said"
  fi
  grep -q '"LD_LIBRARY_PATH"' "$work/run/record.json" || fail "the record does not say that LD_LIBRARY_PATH was set"
}

loaded() { find "$MUSTER_FOREIGN_NOTES" -type f -printf '%f '; }

# A check that cannot fail proves nothing: with RUNPATH the foreign libraries must be found at work.
check_that_runpath_is_found() {
  local copy=$work/runpath said before=$bad
  mkdir -p "$copy"
  cp -r "$dist/." "$copy"
  patchelf --set-rpath "\$ORIGIN/../lib" "$copy/lib/muster/plugins/compute.so"
  patchelf --set-rpath "\$ORIGIN/../lib/muster/lib" "$copy/bin/muster"
  said=$(check_needs "$copy")
  [[ $said == *"bin/muster takes "*"from LD_LIBRARY_PATH"* ]] || fail "a RUNPATH of bin/muster went unnoticed: $said"
  env LD_PRELOAD="$(find "$foreign" -name 'libfmt.so.*')" true
  [[ $(loaded) == libfmt.so.* ]] || fail "a foreign library that is loaded leaves no note"
  rm -f "$MUSTER_FOREIGN_NOTES"/*
  [ "$bad" = "$before" ]
}

make_foreign "$dist"
check_that_runpath_is_found
check_needs "$dist"
check_runs "$dist"
[ -z "$(loaded)" ] || fail "loaded from LD_LIBRARY_PATH: $(loaded)"
[ "$bad" = 0 ]
