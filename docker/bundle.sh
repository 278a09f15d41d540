#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by `meson install`: bundles the third-party libraries beside ours.
set -eu
