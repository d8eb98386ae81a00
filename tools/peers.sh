#!/bin/sh
# peers.sh [DIR] - install the sandboxes that bench/sandbox.py compares with.
#
# Not run by `make test` or `make bench`: it takes a quarter of an hour, because nono is compiled.
# bubblewrap, firejail, crun and runc come from the distribution; the others go to DIR, build/peers
# if none is named, with npm, go and cargo; codex is one of the agents (tools/agents.sh). What is
# there already stays. Of what cannot be had, DIR/why-not/NAME says why, the table shows it, and
# this is no failure.
set -eu

srt=@anthropic-ai/sandbox-runtime@0.0.83
landrun=github.com/zouuup/landrun/cmd/landrun@latest
nono='nono-cli@0.81.0'

tools=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$tools/../build/peers}
mkdir -p "$dir/why-not" "$dir/bin"
dir=$(cd "$dir" && pwd)

give_up() { # NAME WHY
	echo "$2" >"$dir/why-not/$1"
	echo "writ: no $1: $2" >&2
}

# The last line that says more than "I have failed".
reason() {
	grep -v '^[[:space:]]*$' "$dir/log" | tail -n 1 | sed 's,https\?://[^ ]*,the registry,g; s/^[[:space:]]*//' | cut -c 1-120
}

have() { [ -x "$dir/bin/$1" ] || command -v "$1" >/dev/null; }

install_with() { # NAME TOOL COMMAND...
	name=$1 tool=$2
	shift 2
	rm -f "$dir/why-not/$name"
	if have "$name"; then
		return
	fi
	if ! command -v "$tool" >/dev/null; then
		give_up "$name" "there is no $tool"
		return
	fi
	echo "writ: installing $name"
	status=0
	timeout 1800 "$@" >"$dir/log" 2>&1 || status=$?
	if [ "$status" -eq 124 ]; then
		give_up "$name" "$tool was not done after half an hour; what it has made is kept"
	elif [ "$status" -ne 0 ]; then
		give_up "$name" "$tool: $(reason)"
	elif ! have "$name"; then
		give_up "$name" "$tool has installed no such program"
	fi
}

for name in bwrap firejail crun runc; do
	install_with "$name" sh "$tools/deps.sh" "peer-$name"
done
"$tools/deps.sh" peer-srt || true
install_with srt npm npm install --global --prefix "$dir" --no-audit --no-fund --no-update-notifier "$srt"
install_with landrun go env GOBIN="$dir/bin" go install "$landrun"
install_with nono cargo env CARGO_TARGET_DIR="$dir/target" cargo install --quiet --root "$dir" --no-default-features "$nono"

rm -f "$dir/why-not/codex"
"$tools/agents.sh"
[ ! -s "$tools/../build/agents/why-not" ] || give_up codex "$(cat "$tools/../build/agents/why-not")"
