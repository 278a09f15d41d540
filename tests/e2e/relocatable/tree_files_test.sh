#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads every ELF file of the installed tree: it may need nothing newer than the oldest systems that Muster runs on
# have, and no library but the system's few and those in the tree itself; and it must be hardened as meson.build says.
# shellcheck disable=SC2016  # $ORIGIN is a word of the loader's, not a variable
set -euo pipefail
dist=${MUSTER_DIST:?set by tests/meson.build}

# What Ubuntu 22.04 has; Debian 12 itself has glibc 2.36.
declare -A newest=([GLIBC]=2.35 [GLIBCXX]=3.4.30 [CXXABI]=1.3.13)
system=' libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1
 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 libstdc++.so.6 libgcc_s.so.1 '
# NVIDIA's libraries come with its driver and its toolkit; only these modules may need them, and say so where one is missing.
nvidia='^lib(cublasLt|cudnn|nccl)\.so\.[0-9]+$'
nvidia_users='^lib/muster/backends/cuda_(blas|dnn|nccl)\.so$'
bad=0

fail() {
  echo "FAIL: $*"
  bad=$((bad + 1))
}

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

# Versions that a file asks of its libraries (references, not what it defines).
needed_versions() { objdump -p "$1" | sed -n '/^Version References:/,$s/.* \([A-Z]*_[0-9.]*\)$/\1/p' | sort -u; }

check_versions() {
  local version family number limit
  while read -r version; do
    family=${version%_*} number=${version#*_} limit=${newest[${version%_*}]:-}
    [ -n "$limit" ] || continue
    [ "$(printf '%s\n' "$number" "$limit" | sort -V | tail -n 1)" = "$limit" ] ||
      fail "$2 needs ${family}_$number; the newest allowed is ${family}_$limit"
  done < <(needed_versions "$1")
}

# check_libraries FILE NAME TREE: each needed library is the system's, or lies where the file's RPATH points to. Not RUNPATH:
# LD_LIBRARY_PATH would come before it.
check_libraries() {
  local name runpath folder
  if readelf --dynamic "$1" | grep -q '(RUNPATH)'; then fail "$2 has a RUNPATH; required: RPATH"; fi
  runpath=$(patchelf --print-rpath "$1")
  folder=${runpath/'$ORIGIN'/$(dirname "$1")}
  for name in $(patchelf --print-needed "$1"); do
    [[ $system != *[[:space:]]"$name"[[:space:]]* ]] || continue
    [[ ! $name =~ $nvidia || ! $2 =~ $nvidia_users ]] || continue
    [[ $runpath == '$ORIGIN'* && $runpath != *:* ]] || { fail "$2 needs $name, and its RPATH is '$runpath', not one \$ORIGIN path" && continue; }
    [ "$(realpath -m "$folder")" = "$(realpath "$3/lib/muster/lib")" ] || fail "$2: RPATH $runpath leads to $folder"
    [ -f "$folder/$name" ] || fail "$2 needs $name, which is not in $folder"
  done
}

# check_hardening FILE NAME: of the libraries of others only what a distribution gives all of its libraries.
check_hardening() {
  local dynamic segments symbols
  dynamic=$(readelf --dynamic --wide "$1") segments=$(readelf --segments --wide "$1") symbols=$(readelf --dyn-syms --wide "$1")
  grep -q GNU_RELRO <<<"$segments" || fail "$2: its tables of addresses stay writable (no RELRO)"
  if ! grep -q GNU_STACK <<<"$segments" || grep GNU_STACK <<<"$segments" | grep -q RWE; then fail "$2: its stack is executable"; fi
  if grep -q TEXTREL <<<"$dynamic"; then fail "$2: its code is changed at the start (TEXTREL)"; fi
  [[ $2 != lib/muster/lib/* ]] || return 0
  grep -Eq 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || fail "$2: addresses are resolved late (no BIND_NOW)"
  readelf --file-header "$1" | grep -q 'Type: *DYN' || fail "$2: is loaded to a fixed address (no PIE)"
  grep -q ' UND __stack_chk_fail' <<<"$symbols" || fail "$2: has no stack protector"
  [[ $2 != *muster && $2 != *muster-host ]] || grep -Eq ' UND __[a-z]+_chk@' <<<"$symbols" || fail "$2: calls no function that _FORTIFY_SOURCE checks"
}

check_tree() {
  local file name count=0
  bad=0
  while read -r file; do
    is_elf "$file" || continue
    count=$((count + 1))
    name=${file#"$1"/}
    check_versions "$file" "$name"
    check_libraries "$file" "$name" "$1"
    check_hardening "$file" "$name"
  done < <(find "$1" -type f)
  for name in bin/muster lib/muster/host/muster-host lib/muster/plugins/{env,compute,memory}.so; do
    [ -f "$1/$name" ] || fail "$name is missing"
  done
  [ -z "$(find "$1" -type l)" ] || fail "links do not survive every copy: $(find "$1" -type l | head -n 3)"
  [ -z "$(find "$1" -perm /022)" ] || fail "writable by others, so plugins are refused: $(find "$1" -perm /022 | head -n 3)"
  echo "$count ELF files, $bad mistakes"
}

# A check that cannot fail proves nothing: the same tree without one of its libraries must be found wanting.
check_that_a_gap_is_found() {
  local copy said gap
  copy=$(mktemp -d "$dist.gap.XXXXXX")
  cp -al "$dist/." "$copy"
  rm "$copy/lib/muster/lib/libdnnl.so.2"
  echo 'int f(char* s) { char b[64]; return __builtin_sprintf(b, "%s", s); }' |
    gcc -x c -shared -fPIC -fno-stack-protector -Wl,-z,lazy,-z,norelro,-z,execstack -o "$copy/lib/muster/plugins/soft.so" -
  said=$(check_tree "$copy")
  rm -rf "$copy"
  for gap in "needs libdnnl.so.2, which is not in" "soft.so: its tables of addresses stay writable" "soft.so: its stack is executable" \
    "soft.so: addresses are resolved late" "soft.so: has no stack protector"; do
    [[ $said == *"$gap"* ]] || fail "went unnoticed: $gap"
  done
}

check_tree "$dist"
check_that_a_gap_is_found
[ "$bad" = 0 ]
