#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a libFuzzer target with clang++ from all sources that it runs, so that coverage guides it through them:
# build_fuzzer.sh CLANG SOURCE_ROOT OUTPUT plan|bytes
set -eu
clang=$1 root=$2 output=$3
case $4 in
  plan)
    packages='lua5.4-c++ fmt nettle'
    set -- "$root"/runner/plan/*.cpp "$root"/runner/plan/lua/*.cpp "$root"/tests/runner/plan/sample_catalog.cpp "$root"/tests/fuzz/plan_check.cpp \
      "$root"/tests/fuzz/plan_fuzzer.cpp
    ;;
  bytes)
    packages='fmt nettle openssl zlib libjpeg gtest'
    set -- "$root"/runner/rendezvous/*.cpp "$root"/runner/rendezvous/wire/*.cpp "$root"/runner/launcher/*.cpp "$root"/runner/hosts/*.cpp "$root"/runner/dispatch/frame_*.cpp "$root"/runner/app/stage/frame_collector.cpp \
      "$root"/kernels/host/rdma/perftest_output.cpp "$root"/plugins/train/data/*.cpp "$root"/plugins/train/data/files/*.cpp \
      "$root"/tests/support/process.cpp \
      "$root"/tests/fuzz/*target*.cpp "$root"/tests/fuzz/document_mutator.cpp "$root"/tests/fuzz/mutate_run.cpp "$root"/tests/fuzz/bytes_fuzzer.cpp
    ;;
esac
# shellcheck disable=SC2046,SC2086 # flags are words
exec "$clang" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I"$root" \
  $(pkg-config --cflags $packages) "$root"/runner/core/*.cpp "$root"/runner/core/toml/*.cpp "$root"/runner/metrics/*.cpp "$@" -o "$output" $(pkg-config --libs $packages) -ldl -pthread \
  -Wl,-rpath,"\$ORIGIN/../../runner/rendezvous"
