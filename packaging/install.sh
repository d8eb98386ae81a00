#!/bin/sh
# install.sh [PREFIX] - copy this tree below PREFIX (/usr/local)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-/usr/local}
mkdir -p "$prefix"
cp -R "$here/bin" "$here/libexec" "$here/share" "$prefix/"
echo "writ is now in $prefix/bin; start with: writ doctor"
