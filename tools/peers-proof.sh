#!/bin/sh
# peers-proof.sh [DIR] - install the verifiers of others that tests/check/peers.py asks about what writ signs.
#
# By hand, and in `make test-long`. They go to DIR, build/peers-proof if none is named: two libraries with npm, one with pip,
# cosign with go. cosign is 1,800 packages to compile; COSIGN=0 leaves it out. What is there already stays. Of what cannot be
# had, DIR/why-not/NAME says why, the test skips it with these words, and this is no failure.
set -eu

npm_packages='jose@6.2.17 @sigstore/verify@3.1.1 @sigstore/bundle@4.0.0 @sigstore/protobuf-specs@0.5.2'
cosign=github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3

dir=${1:-$(dirname "$0")/../build/peers-proof}
mkdir -p "$dir/why-not" "$dir/bin"
dir=$(cd "$dir" && pwd)
PATH=$PATH:/usr/local/go/bin

give_up() { # NAME WHY
	echo "$2" >"$dir/why-not/$1"
	echo "writ: no $1: $2" >&2
}

reason() {
	grep -v '^[[:space:]]*$' "$dir/log" | tail -n 1 | sed 's,https\?://[^ ]*,the registry,g' | cut -c 1-120
}

install_with() { # NAME WHAT-IT-MAKES TOOL COMMAND...
	name=$1 made=$2 tool=$3
	shift 3
	rm -f "$dir/why-not/$name"
	if [ -e "$dir/$made" ]; then
		return
	fi
	if ! command -v "$tool" >/dev/null; then
		give_up "$name" "there is no $tool"
	elif ! "$@" >"$dir/log" 2>&1 </dev/null; then
		give_up "$name" "$(reason)"
	fi
}

with_pip() {
	python3 -m venv "$dir/venv" &&
		timeout 300 "$dir/venv/bin/pip" install -q --disable-pip-version-check pyjwt cryptography &&
		touch "$dir/venv/done"
}

# shellcheck disable=SC2086  # package names are words
install_with npm node_modules/jose npm timeout 300 npm install --silent --no-audit --no-fund --prefix "$dir" $npm_packages
install_with pyjwt venv/done python3 with_pip
if [ "${COSIGN:-1}" = 0 ]; then
	[ -x "$dir/bin/cosign" ] || give_up cosign "left out"
else
	install_with cosign bin/cosign go env GOBIN="$dir/bin" CGO_ENABLED=0 nice -n 19 timeout 5400 go install -p 2 "$cosign"
fi
