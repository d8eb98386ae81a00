#!/bin/sh
# install.sh PREFIX - copy what `make build` made below $DESTDIR$PREFIX.
set -eu
cd "$(dirname "$0")/.."

prefix=${1:?usage: [DESTDIR=dir] tools/install.sh PREFIX}
case $prefix in /*) ;; *) echo "install.sh: PREFIX must be absolute" >&2; exit 2 ;; esac
to=${DESTDIR:-}$prefix
writ=build/release/prog/writ
umask 022

put() { # MODE FILE DIRECTORY [NAME]
	install -D -m "$1" "$2" "$to/$3/${4:-$(basename "$2")}"
}

put 755 "$writ" bin
strip "$to/bin/writ"
# As built, byte for byte: writ runs no other file by that name.
put 755 build/release/src/engine/host/init/writ-init libexec/writ
# Reads requests, where a rule says which.
put 755 build/release/prog/writ-l7 libexec/writ
strip "$to/libexec/writ/writ-l7"
# Signs statements. `writ signer install` makes a copy that is setgid; this one is not.
put 755 build/release/prog/writ-signer libexec/writ
strip "$to/libexec/writ/writ-signer"
# What `writ conform` tries to get out with.
put 755 build/release/tests/escape/writ-escape libexec/writ
strip "$to/libexec/writ/writ-escape"
for file in build/release/src/front/lib/libwrit.so.*[0-9].*[0-9].*[0-9]; do
	put 644 "$file" lib
	strip --strip-unneeded "$to/lib/${file##*/}"
	ln -sf "${file##*/}" "$to/lib/libwrit.so.0"
done
ln -sf libwrit.so.0 "$to/lib/libwrit.so"
put 644 build/release/src/front/lib/libwrit.a lib
put 644 include/writ/writ.h include/writ
put 644 packaging/apparmor/writ share/writ/apparmor
for file in README.md CHANGELOG.md THREAT_MODEL.md LICENSE; do
	[ ! -e "$file" ] || put 644 "$file" share/doc/writ
done
for file in examples/*.writ; do
	[ ! -e "$file" ] || put 644 "$file" share/doc/writ/examples
done
put 644 examples/c/run.c share/doc/writ/examples/c
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Found from where the file lies: the tree may be moved.
sed -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' \
	build/release/meson-private/writ.pc >"$tmp/writ.pc"
put 644 "$tmp/writ.pc" lib/pkgconfig
tools/man.sh "$tmp/man"
for page in "$tmp"/man/*; do
	put 644 "$page" "share/man/man${page##*.}"
done
for shell in bash zsh fish; do
	"$writ" completion "$shell" >"$tmp/$shell"
done
put 644 "$tmp/bash" share/bash-completion/completions writ
put 644 "$tmp/zsh" share/zsh/vendor-completions _writ
put 644 "$tmp/fish" share/fish/vendor_completions.d writ.fish
[ -n "${DESTDIR:-}" ] || ldconfig 2>/dev/null || true # so that the library is found; only root can
