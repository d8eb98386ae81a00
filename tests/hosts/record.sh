#!/bin/sh
# record.sh - records this machine's facts as root and as an ordinary user
#
# usage: tests/hosts/record.sh BUILD-DIRECTORY DISTRO KERNEL
#
# Writes DISTRO-root-KERNEL.facts and DISTRO-user-KERNEL.facts in
# tests/fixtures/hosts. Run as root; the ordinary user is uid 65534 without
# groups. Other fixtures are edited from these by hand: their first line says so.
set -eu

if [ $# -ne 3 ] || [ "$(id -u)" -ne 0 ]; then
	echo "usage: $0 BUILD-DIRECTORY DISTRO KERNEL (as root)" >&2
	exit 2
fi
out=$(cd "$(dirname "$0")/../fixtures/hosts" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# A copy where everybody may read it: a build directory may be private.
chmod 755 "$dir"
cp "$1/tests/unit/test_probe" "$dir/probe"
chmod 755 "$dir/probe"

record() {
	file=$1
	shift
	{
		echo "# recorded by tests/hosts/record.sh"
		env -i PATH="$PATH" "$@" "$dir/probe" --facts-tools
	} >"$dir/facts"
	cp "$dir/facts" "$out/$file"
	chmod 644 "$out/$file"
	echo "$out/$file"
}

record "$2-root-$3.facts"
record "$2-user-$3.facts" setpriv --reuid=65534 --regid=65534 --clear-groups
