#!/bin/sh
# dist.sh - dist/writ-VERSION-linux-ARCH.tar.gz and dist/SHA256SUMS.
#
# The same source gives the same bytes: names sorted, one time stamp, no owner,
# no debug information. tests/dist_twice.sh holds it to that.
set -eu
cd "$(dirname "$0")/.."
umask 022

name=writ-$(tools/version.sh)-linux-$(uname -m)
: "${SOURCE_DATE_EPOCH:=$(tools/version.sh --date)}"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

DESTDIR=$stage tools/install.sh "/$name"
mv "$stage/$name/share/doc/writ/LICENSE" "$stage/$name/LICENSE"
[ ! -e README.md ] || mv "$stage/$name/share/doc/writ/README.md" "$stage/$name/README.md"
install -m 755 packaging/install.sh "$stage/$name/install.sh"

mkdir -p dist
tar -C "$stage" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
	--numeric-owner -cf - "$name" | gzip -9n >"dist/$name.tar.gz"
(cd dist && sha256sum "$name.tar.gz" >SHA256SUMS && cat SHA256SUMS)
