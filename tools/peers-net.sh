#!/bin/sh
# peers-net.sh [DIR] - fetch the proxies that bench/egress.py compares with.
#
# They go to DIR, build/peers if none is named, and nothing of the system changes: packages
# are unpacked there, not installed, so no service starts. It does nothing for what is there
# already. Where one cannot be had, DIR/NAME.why-not says why, the table shows that, and it
# is no failure.
set -eu

srt=@anthropic-ai/sandbox-runtime@0.0.78
packages='nginx-light libnginx-mod-stream haproxy squid-openssl'

dir=${1:-$(dirname "$0")/../build/peers}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

why_not() {
	echo "$2" >"$dir/$1.why-not"
	echo "writ: $1 is not there to compare with: $2" >&2
}

# Everything that installing them would bring, unpacked below DIR/deb.
unpack() {
	command -v apt-get >/dev/null || { echo "there is no apt-get"; return 1; }
	[ "$(id -u)" -ne 0 ] || apt-get -qq update >/dev/null 2>&1 || true
	mkdir -p "$dir/deb" "$dir/fetched"
	# shellcheck disable=SC2086  # package names are words
	all=$(apt-get -qq -s install --no-install-recommends $packages 2>/dev/null |
		sed -n 's/^Inst \([^ ]*\) .*/\1/p')
	# What is installed has its files in the system already.
	[ -n "$all" ] || return 0
	# shellcheck disable=SC2086
	(cd "$dir/fetched" && timeout 120 apt-get -qq download $all) >"$dir/log" 2>&1 ||
		{ echo "its package cannot be fetched: $(tail -n 1 "$dir/log")"; return 1; }
	for deb in "$dir"/fetched/*.deb; do
		dpkg-deb -x "$deb" "$dir/deb" || { echo "its package cannot be unpacked"; return 1; }
	done
	rm -rf "$dir/fetched"
}

packages() {
	[ ! -e "$dir/deb.done" ] || return 0
	rm -f "$dir"/nginx.why-not "$dir"/haproxy.why-not "$dir"/squid.why-not
	if why=$(unpack); then
		touch "$dir/deb.done"
	else
		for name in nginx haproxy squid; do
			why_not "$name" "$why"
		done
	fi
}

mitmproxy() {
	[ ! -x "$dir/mitm/bin/mitmdump" ] || return 0
	rm -f "$dir/mitmproxy.why-not"
	python3 -m venv "$dir/mitm" >"$dir/log" 2>&1 &&
		timeout 180 "$dir/mitm/bin/pip" install -q --disable-pip-version-check mitmproxy >"$dir/log" 2>&1 ||
		why_not mitmproxy "pip could not install it: $(tail -n 1 "$dir/log")"
}

sandbox_runtime() {
	[ "$(cat "$dir/srt.installed" 2>/dev/null)" != "$srt" ] || return 0
	rm -f "$dir/srt.why-not"
	command -v npm >/dev/null || { why_not srt "there is no npm"; return 0; }
	if timeout 180 npm install --prefix "$dir/srt" --no-audit --no-fund --no-update-notifier \
		--ignore-scripts "$srt" >"$dir/log" 2>&1; then
		echo "$srt" >"$dir/srt.installed"
	else
		why_not srt "npm could not install it: $(tail -n 1 "$dir/log")"
	fi
}

packages
mitmproxy
sandbox_runtime
rm -f "$dir/log"
