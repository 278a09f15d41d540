#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Entry of the container image: its arguments are those of `muster`. exec, so that signals reach it (Ctrl-C, docker stop).
exec /opt/muster/bin/muster "$@"
