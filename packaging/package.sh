#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs an installed distribution: an archive, a Debian package, their checksums, and a signature if a key is given.
# Usage: package.sh DIST OUT [--key KEY] [--data DIR] [-- MUSTER...]; MUSTER: the command that runs DIST/bin/muster (an emulator)
# The same distribution always gives the same bytes. Version and time are those of the commit that it was built from.
set -euo pipefail
umask 022
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")

die() {
  echo "package: $*" >&2
  exit 1
}

[ $# -ge 2 ] || die "usage: package.sh DIST OUT [--key KEY] [--data DIR] [-- MUSTER...]"
dist=$1 out=$(realpath -m "$2") key='' data=''
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --key | --data)
      [ $# -ge 2 ] || die "$1 needs a value"
      if [ "$1" = --key ]; then key=$2; else data=$2; fi
      shift 2
      ;;
    --) shift && break ;;
    *) die "unknown argument: $1" ;;
  esac
done
[ $# -gt 0 ] || set -- "$dist/bin/muster"
[ -z "$data" ] || [ -d "$data" ] || die "$data is not a directory"

# The time of the commit, unless SOURCE_DATE_EPOCH says it, as where there is no git.
commit_seconds() {
  local seconds=${SOURCE_DATE_EPOCH:-}
  [ -n "$seconds" ] || seconds=$(git -C "$here" log -1 --format=%ct "$1" 2>/dev/null) ||
    die "git does not know commit $1, from which $dist was built; set SOURCE_DATE_EPOCH to its time in seconds"
  echo "$seconds"
}

said=$("$@" --version) || die "$* --version failed"
[[ $said =~ ^muster\ ([0-9.]+)\ \([0-9.]+\+([0-9a-z]+)(-dirty)?\)$ ]] || die "muster --version said \"$said\", expected \"muster 0.1.0 (0.1.0+COMMIT)\""
commit=${BASH_REMATCH[2]}
seconds=$(commit_seconds "$commit")
version=${BASH_REMATCH[1]}+$(date -u -d "@$seconds" +%Y%m%d%H%M%S).$commit${BASH_REMATCH[3]:+.dirty}
architecture=${DEB_ARCH:-$(dpkg --print-architecture)}
name=muster-$version-$architecture
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$here/release_tree.sh" "$dist" "$work/$name" "$version" "$seconds" "$@"
mkdir -p "$out"
"$here/deb.sh" "$work/$name" "$out/muster_${version}_$architecture.deb" "$version" "$seconds"
# The data set is not in the Debian package: who has an archive of packages has dataset-fashion-mnist.
[ -z "$data" ] || cp -rL "$data" "$work/$name/share/muster/data"
tar -C "$work" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$seconds" -cf - "$name" |
  gzip -4n >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" "muster_${version}_$architecture.deb" >"$name.sha256")
if [ -n "$key" ]; then
  rm -f "$out/$name.sha256.asc"
  gpg --batch --yes --local-user "$key" --armor --detach-sign --output "$out/$name.sha256.asc" "$out/$name.sha256" || die "gpg could not sign with key $key"
fi
ls -l "$out/$name".* "$out/muster_${version}_$architecture.deb"
