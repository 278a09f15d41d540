#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a libFuzzer target with clang++ from all sources that it runs, so that coverage guides it through them:
# build_fuzzer.sh CLANG SOURCE_ROOT OUTPUT NAME, where NAME is plan or one of targets.h
set -eu
clang=$1 root=$2 output=$3 name=$4
core=$root/runner/core/*.cpp packages='fmt nettle' define=''
# shellcheck disable=SC2086 # the patterns are patterns, the flags are words
build() {
  exec "$clang" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I"$root" $define \
    $(pkg-config --cflags $packages) $core "$@" -o "$output" $(pkg-config --libs $packages)
}
