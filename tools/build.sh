#!/bin/sh
# build.sh NAME [TARGET...] - configure build/NAME once and bring it up to date, or only these of it.
#
# release  what is shipped: static, no debug information, so that the bytes do
#          not depend on where the source lies
# asan     gcc, address and undefined-behaviour sanitizers, warnings are errors
# clang    clang, warnings are errors; also the compile commands for clang-tidy
# fuzz     clang with the libFuzzer targets
set -eu
cd "$(dirname "$0")/.."

# `sudo make install` builds as whose checkout it is, who could not change root's files later.
if [ "$(id -u)" -eq 0 ] && [ "${SUDO_UID:-0}" -ne 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ]; then
	exec sudo -u "#$SUDO_UID" -- tools/build.sh "$@"
fi

name=${1:?usage: tools/build.sh release|asan|clang|fuzz [TARGET...]}
shift
dir=build/$name
case $name in
release) cc=gcc opts='-Ddebug=false -Doptimization=2' ;;
asan) cc=gcc opts='-Db_sanitize=address,undefined -Dstatic=false -Dwerror=true' ;;
clang) cc=clang opts='-Dstatic=false -Dwerror=true' ;;
fuzz) cc=clang opts='-Db_sanitize=address,undefined -Db_lundef=false -Dstatic=false -Dfuzz=true
	-Dc_args=-fsanitize=fuzzer-no-link' ;;
*) echo "build.sh: unknown build '$name'" >&2; exit 2 ;;
esac

# A changed recipe means a new directory: meson keeps the compiler of its first run.
if [ "$(cat "$dir/recipe" 2>/dev/null)" != "$cc $opts" ]; then
	rm -rf "$dir"
	mkdir -p "$dir"
	# shellcheck disable=SC2086  # the options are words
	CC=$cc meson setup "$dir" $opts >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
	echo "$cc $opts" >"$dir/recipe"
fi
if [ -t 1 ]; then
	exec ninja -C "$dir" "$@"
fi
ninja -C "$dir" "$@" >"$dir.log" 2>&1 || {
	grep -vE '^\[[0-9]+/[0-9]+\]|^(gcc|clang) ' "$dir.log" | tail -n 60 >&2
	exit 1
}
