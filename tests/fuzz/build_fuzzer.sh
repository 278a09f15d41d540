#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a libFuzzer target with clang++ from all sources that it runs, so that coverage guides it through them:
# build_fuzzer.sh CLANG SOURCE_ROOT OUTPUT
set -eu
clang=$1 root=$2 output=$3
# shellcheck disable=SC2046 # flags are words
exec "$clang" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I"$root" \
  $(pkg-config --cflags lua5.4-c++) "$root"/runner/core/*.cpp "$root"/runner/plan/*.cpp \
  "$root"/tests/runner/plan/sample_catalog.cpp "$root"/tests/fuzz/plan_check.cpp "$root"/tests/fuzz/plan_fuzzer.cpp \
  -o "$output" $(pkg-config --libs lua5.4-c++ fmt nettle)
