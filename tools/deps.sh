#!/bin/sh
# deps.sh build|test|agents|clients|fuzz|long|format|peer-NAME - install the Debian or Ubuntu packages a target needs.
#
# Does nothing if all are there. Says what it installs. With WRIT_NO_APT=1, or
# where it cannot install, it prints the command to type and fails.
set -eu

pkgs='meson ninja-build pkg-config gcc libc6-dev python3
libsodium-dev libjansson-dev libyaml-dev libidn2-dev libunistring-dev libseccomp-dev
libc-ares-dev libssl-dev libnghttp2-dev zlib1g-dev'
case ${1:?usage: deps.sh build|test|agents|clients|fuzz|long|format|peer-NAME} in
build) ;;
test) pkgs="$pkgs git clang clang-tidy mandoc curl openssl python3-cryptography" ;;
agents) # for tests/agents; whoever has npm from elsewhere keeps it
	! command -v npm >/dev/null || exit 0
	pkgs='nodejs npm'
	;;
clients) # for tests/clients: whoever has one from elsewhere keeps it, and none of them starts a server
	pkgs='python3-pip python3-requests python3-grpcio'
	for p in curl:curl wget:wget git:git ssh:openssh-client node:nodejs npm:npm java:default-jdk-headless \
		go:golang-go psql:postgresql-client redis-cli:redis-tools sshd:dropbear-bin chromium:chromium; do
		PATH="$PATH:/usr/sbin:/usr/local/go/bin" command -v "${p%%:*}" >/dev/null || pkgs="$pkgs ${p#*:}"
	done
	# Ubuntu has no package of it, only a way to get it from elsewhere.
	grep -q '^ID=ubuntu' /etc/os-release && pkgs=${pkgs% chromium}
	;;
fuzz | long)
	pkgs="$pkgs git clang clang-tidy mandoc curl openssl python3-cryptography"
	# Ubuntu 22.04 ships the fuzzer's run time inside clang's own packages.
	grep -q '^VERSION_ID="22.04"' /etc/os-release || pkgs="$pkgs libclang-rt-dev"
	# For the machines with other kernels.
	[ "$1" = fuzz ] || pkgs="$pkgs qemu-system-x86 busybox e2fsprogs"
	;;
format) pkgs=clang-format ;;
peer-bwrap) pkgs=bubblewrap ;; # to compare with: tools/peers.sh
peer-srt) pkgs='bubblewrap socat ripgrep' ;;
peer-*) pkgs=${1#peer-} ;;
*) echo "deps.sh: unknown set '$1'" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
	for tool in meson ninja pkg-config gcc python3; do
		command -v "$tool" >/dev/null || {
			echo "writ: $tool is missing. This is not Debian or Ubuntu; install the" >&2
			echo "      counterparts of: $pkgs" >&2
			exit 1
		}
	done
	exit 0
fi

# shellcheck disable=SC2086  # package names are words
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $pkgs 2>/dev/null || true)
missing=
for p in $pkgs; do
	case "
$have
" in
	*"
installed $p
"*) ;;
	*) missing="$missing $p" ;;
	esac
done
[ -n "$missing" ] || exit 0

sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
type="${sudo:+sudo }apt-get install --no-install-recommends$missing"
if [ -n "${WRIT_NO_APT:-}" ]; then
	printf 'writ: packages are missing; type:\n  %s\n' "$type" >&2
	exit 1
fi
if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
	printf 'writ: packages are missing and there is no sudo; as root type:\n  %s\n' \
		"${type#sudo }" >&2
	exit 1
fi

echo "writ: installing$missing"
apt() {
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
		-o DPkg::Lock::Timeout=120 "$@"
}
# A stale or broken extra source need not stop us: the install decides.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt update >"$log" 2>&1 || true
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $missing >>"$log" 2>&1; then
	tail -n 20 "$log" >&2
	printf 'writ: that did not work; type:\n  %s\n' "$type" >&2
	exit 1
fi
