#!/bin/sh
# man.sh DIRECTORY - put every manual page there: those that writ prints from its
# option tables, and those in man/
set -eu
to=${1:?usage: tools/man.sh DIRECTORY}
cd "$(dirname "$0")/.."
writ=build/release/prog/writ
mkdir -p "$to"

"$writ" man writ >"$to/writ.1"
for verb in $(sed -n 's/^\.BR writ\\-\([a-z-]*\) (1)$/\1/p' "$to/writ.1"); do
	"$writ" man "$verb" >"$to/writ-$verb.1"
done
for page in man/*.[1-8]; do
	[ ! -e "$page" ] || cp "$page" "$to/"
done
