#!/bin/sh
# version.sh [--date] - the version, from the one place that states it; or the
# time stamp of what is packaged: of the last commit, else of the last changelog entry
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --date ]; then
	git log -1 --format=%ct 2>/dev/null ||
		date -d "$(sed -n 's/^ -- .*>  //p' packaging/deb/changelog | head -n 1)" +%s
else
	sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build
fi
