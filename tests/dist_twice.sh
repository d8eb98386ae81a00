#!/bin/sh
# dist_twice.sh - build the tarball in two places, at two times of day, with two
# umasks; the bytes must be the same.
set -eu
src=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for where in one another/and/deeper; do
	mkdir -p "$tmp/$where"
	tar -C "$src" --exclude=./build --exclude=./dist --exclude=./.git -cf - . |
		tar -C "$tmp/$where" -xf -
	case $where in one) zone=UTC mask=022 ;; *) zone=Asia/Tokyo mask=077 ;; esac
	(cd "$tmp/$where" && umask $mask && export TZ=$zone SOURCE_DATE_EPOCH=1700000000 &&
		tools/build.sh release && tools/dist.sh >/dev/null)
done
cat "$tmp/one/dist/SHA256SUMS"
cmp "$tmp/one/dist/SHA256SUMS" "$tmp/another/and/deeper/dist/SHA256SUMS"
cmp "$tmp"/one/dist/*.tar.gz "$tmp"/another/and/deeper/dist/*.tar.gz
