#!/bin/sh
# install.sh [PREFIX] - copy this tree below PREFIX (/usr/local)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-/usr/local}
mkdir -p "$prefix"
cp -R "$here/bin" "$here/libexec" "$here/share" "$here/lib" "$here/include" "$prefix/"
ldconfig 2>/dev/null || true # so that the library is found; only root can
echo "writ is now in $prefix/bin; start with: writ doctor"
