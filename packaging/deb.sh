#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of a release tree. Usage: deb.sh TREE FILE.deb VERSION SECONDS
# DEB_ARCH replaces this machine's architecture; DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools.
set -euo pipefail
umask 022
[ $# = 4 ] || { echo "usage: deb.sh TREE FILE.deb VERSION SECONDS" >&2; exit 2; }
tree=$1 file=$2 version=$3
export SOURCE_DATE_EPOCH=$4
here=$(dirname "$(readlink -f "$0")")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
maintainer="${DEBFULLNAME:-Muster packagers} <${DEBEMAIL:-muster@packages.invalid}>"
doc=$root/usr/share/doc/muster

changelog() {
  printf 'muster (%s) stable; urgency=medium\n\n  * Built from this commit; its log has the changes.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

place_files() {
  mkdir -p "$root/usr" "$root/lib/systemd/system" "$root/etc/default" "$root/usr/share/lintian/overrides" "$root/DEBIAN"
  cp -r "$tree/bin" "$tree/lib" "$tree/share" "$root/usr"
  mv "$root"/usr/share/muster/systemd/muster-reverify.* "$root/lib/systemd/system"
  mv "$root/usr/share/muster/systemd/muster.default" "$root/etc/default/muster"
  rmdir "$root/usr/share/muster/systemd"
  rm "$doc/LICENSE" # Debian has the text
  install -m 644 "$here/deb/copyright" "$doc/copyright"
  install -m 644 "$here/deb/lintian-overrides" "$root/usr/share/lintian/overrides/muster"
  changelog | gzip -9n >"$doc/changelog.gz"
}

place_control() {
  local size
  size=$(du --apparent-size -k -s "$root/usr" | cut -f1)
  sed -e "s|@VERSION@|$version|; s|@ARCHITECTURE@|${DEB_ARCH:-$(dpkg --print-architecture)}|; s|@MAINTAINER@|$maintainer|; s|@SIZE@|$size|" \
    "$here/deb/control.in" >"$root/DEBIAN/control"
  install -m 755 "$here"/deb/{postinst,prerm,postrm} "$root/DEBIAN"
  echo /etc/default/muster >"$root/DEBIAN/conffiles"
  (cd "$root" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

place_files
place_control
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zgzip -z4 --build "$root" "$file" >/dev/null
