#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies NVIDIA's libraries that Muster opens, and no other, under their SONAMEs. Usage: cuda_libraries.sh TREE OUT
# They come from /usr/local/cuda or the system's folders of this machine. TREE is the distribution, which knows its CUDA version.
set -eu
tree=$1 out=$2

die() {
  echo "cuda_libraries: $*" >&2
  exit 1
}

backend=$tree/lib/muster/backends/cuda_blas.so
[ -f "$backend" ] || die "the distribution was built without CUDA; build it where nvcc is, or build the target cpu"
# The name itself is in the file: the image that runs this may have no readelf.
cublas=$(tr -c '[:print:]' '\n' <"$backend" | grep -E '^libcublasLt\.so\.[0-9]+$' | head -n 1) || die "$backend names no libcublasLt"
major=${cublas##*.}

folders="/usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/$(uname -m)-linux-gnu /usr/lib64"
# The base, graph, operation and engine libraries of cuDNN open each other by name.
cudnn="libcudnn.so.9 libcudnn_graph.so.9 libcudnn_ops.so.9 libcudnn_cnn.so.9 libcudnn_adv.so.9 libcudnn_heuristic.so.9
  libcudnn_engines_precompiled.so.9 libcudnn_engines_runtime_compiled.so.9"

find_library() {
  for folder in $folders; do
    for file in "$folder/"$1; do
      if [ -e "$file" ]; then echo "$file" && return 0; fi
    done
  done
  die "$1 is in none of: $folders; mount the CUDA toolkit at /usr/local/cuda, or name an image that has it (CUDA_BASE)"
}

mkdir -p "$out"
for name in "$cublas" "libnvrtc.so.$major" "libnvrtc-builtins.so.$major.*" $cudnn libnccl.so.2; do
  file=$(find_library "$name")
  cp --dereference "$file" "$out/${file##*/}"
done
