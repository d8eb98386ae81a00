#!/bin/sh
# build.sh - dist/writ_VERSION_ARCH.deb from a staged install.
set -eu
cd "$(dirname "$0")/../.."
umask 022

version=$(tools/version.sh)
arch=$(dpkg --print-architecture)
: "${SOURCE_DATE_EPOCH:=$(tools/version.sh --date)}"
export SOURCE_DATE_EPOCH
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
doc=$root/usr/share/doc/writ

DESTDIR=$root tools/install.sh /usr
rm -f "$doc/LICENSE" # the copyright file names the system's own copy
install -m 644 packaging/deb/copyright "$doc/copyright"
install -m 644 packaging/deb/changelog "$doc/changelog"
[ ! -e "$doc/CHANGELOG.md" ] || mv "$doc/CHANGELOG.md" "$doc/NEWS.md"
install -D -m 644 packaging/deb/lintian-overrides "$root/usr/share/lintian/overrides/writ"
find "$root/usr/share/man" -type f -exec gzip -9n {} + 2>/dev/null || true
gzip -9n "$doc/changelog"

# What is not static: writ-l7, writ-signer and the library.
work=$(mktemp -d)
trap 'rm -rf "$root" "$work"' EXIT
mkdir "$work/debian"
printf 'Source: writ\n\nPackage: writ\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/libexec/writ/writ-l7" "$root/usr/libexec/writ/writ-signer" "$root"/usr/lib/libwrit.so.*.*.* 2>/dev/null |
	sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "build.sh: which packages the programs need is not known" >&2; exit 1; }

mkdir -p "$root/DEBIAN" dist
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" \
	-e "s/@DEPENDS@/$depends/" -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" \
	packaging/deb/control.in >"$root/DEBIAN/control"
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
echo 'libwrit 0 writ' >"$root/DEBIAN/shlibs"
install -m 755 packaging/deb/postinst packaging/deb/prerm "$root/DEBIAN"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz --build "$root" "dist/writ_${version}_${arch}.deb"
