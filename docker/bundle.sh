#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run by `meson install`: copies every third-party library that the tree needs into lib/muster/lib, so that the tree
# runs on machines that lack them. libc, libstdc++ and libgcc_s stay the system's (docker/README.md says why).
set -euo pipefail
umask 022

tree=${MESON_INSTALL_DESTDIR_PREFIX:?run by meson install}
bundle=$tree/lib/muster/lib
system='^(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|resolv|util|anl|stdc\+\+|gcc_s|asan|ubsan|lsan|tsan))\.so\.[0-9]+$'
# NVIDIA's come with its driver and its toolkit; a backend finds them where they are and names those that are missing.
nvidia='^lib(cuda|cudart|cublas|cublasLt|cudnn.*|nccl|nvidia-ml)\.so'
declare -A where=() wanted=()

# Libraries of the tree's architecture: name -> file. Those of this machine's are in the loader's cache (the first line of a
# name wins); ldconfig does not list those of another, which a cross build uses.
find_libraries() {
  local kind name tags path
  kind=$(readelf --file-header "$tree/bin/muster" | sed -n 's/^ *Machine: *//p')
  if [[ $kind = AArch64 && $(uname -m) != aarch64 ]]; then
    # libgloo lies beside the folders of architectures.
    for path in /usr/lib/libgloo.so.* /usr/lib/aarch64-linux-gnu/*.so.*; do where[${path##*/}]=$path; done
    return
  fi
  [[ $kind != *X86-64 ]] || kind=x86-64
  while IFS='|' read -r name tags path; do
    if [[ $tags == *"$kind"* && -z ${where[$name]:-} ]]; then where[$name]=$path; fi
  done < <(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n 's/^\t\([^ ]*\) (\([^)]*\)) => \(.*\)$/\1|\2|\3/p')
}

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

own_files() {
  local file
  while IFS= read -r -d '' file; do
    if is_elf "$file"; then printf '%s\n' "$file"; fi
  done < <(find "$tree/bin" "$tree/lib/muster/host" "$tree/lib/muster/plugins" "$tree/lib/muster/backends" "$bundle/muster-tls.so" -type f -print0 2>/dev/null)
}

# Adds to `wanted` what a file needs, and what that needs in turn.
follow() {
  local name names
  names=$(patchelf --print-needed "$1")
  for name in $names; do
    if [[ $name =~ $system || $name =~ $nvidia || -n ${wanted[$name]:-} ]]; then continue; fi
    if [ -z "${where[$name]:-}" ]; then
      echo "bundle: $1 needs $name, which was not found: install its package, then build again" >&2
      exit 1
    fi
    wanted[$name]=${where[$name]}
    follow "${where[$name]}"
  done
}

has_rpath() { readelf --dynamic "$1" | grep -q '(RPATH)'; }

# Copies one library under its SONAME, with an RPATH of its own (see search_here_first). A copy keeps its source's time:
# that is how the next install sees that nothing changed.
place() {
  local target=$bundle/$1 source=$2
  if [ -e "$target" ] && [ ! "$target" -nt "$source" ] && [ ! "$target" -ot "$source" ] && has_rpath "$target"; then return 0; fi
  cp --dereference "$source" "$target.new"
  chmod 644 "$target.new"
  patchelf --force-rpath --set-rpath "\$ORIGIN" "$target.new"
  touch --reference="$source" "$target.new"
  mv "$target.new" "$target"
}

# The loader looks into LD_LIBRARY_PATH before RUNPATH, and after RPATH. What Conda or a module site puts there must not
# take the place of the libraries that were tested; what is not bundled (NVIDIA's) is still found there.
search_here_first() { patchelf --force-rpath --set-rpath "$(patchelf --print-rpath "$1")" "$1"; }

find_libraries
while read -r file; do
  follow "$file"
  search_here_first "$file"
done < <(own_files)
mkdir -p "$bundle"
for name in "${!wanted[@]}"; do place "$name" "${wanted[$name]}"; done
for file in "$bundle"/*; do
  if [ -z "${wanted[${file##*/}]:-}" ] && [ "${file##*/}" != muster-tls.so ]; then rm -f "$file"; fi # left by an earlier version
done
