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
put 755 build/release/src/jail/writ-init libexec/writ
# What `writ conform` tries to get out with.
put 755 build/release/tests/escape/writ-escape libexec/writ
strip "$to/libexec/writ/writ-escape"
for file in README.md CHANGELOG.md THREAT_MODEL.md LICENSE; do
	[ ! -e "$file" ] || put 644 "$file" share/doc/writ
done
for file in examples/*.writ; do
	[ ! -e "$file" ] || put 644 "$file" share/doc/writ/examples
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
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
