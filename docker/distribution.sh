#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first stage of the image: unpacks an archive of ./dev package, or builds one from these sources, and divides it
# into /image/cpu and what only GPUs need, /image/cuda. Usage: distribution.sh [ARCHIVE.tar.gz]
set -eu
cd "$(dirname "$0")/.."
archive=${1:-}
if [ -z "$archive" ]; then
  ./dev package --out /tmp/package
  set -- /tmp/package/*.tar.gz
  archive=$1
elif [ -f "${archive%.tar.gz}.sha256" ]; then
  (cd "$(dirname "$archive")" && grep -F "$(basename "$archive")" "$(basename "${archive%.tar.gz}").sha256" | sha256sum --check)
fi
mkdir -p /image/cpu /image/cuda/lib/muster/backends
tar -xzf "$archive" --strip-components=1 -C /image/cpu
# Units are for systemd, man pages for people.
rm -r /image/cpu/share/man /image/cpu/share/muster/systemd /image/cpu/lib/muster/reverify
for file in /image/cpu/lib/muster/backends/*cuda*.so; do
  if [ -e "$file" ]; then mv "$file" /image/cuda/lib/muster/backends; fi
done
