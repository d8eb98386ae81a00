#!/bin/sh
# agents.sh [DIR] - install the agents that tests/agents runs, in the versions it was made for.
#
# They go to DIR, build/agents if none is named, with npm, and are kept there: it does nothing
# if they are there already. Where they cannot be had, DIR/why-not says why, the tests are
# skipped with that reason, and this is no failure.
set -eu

claude=@anthropic-ai/claude-code@2.1.325
codex=@openai/codex@0.166.0

dir=${1:-$(dirname "$0")/../build/agents}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ "$(cat "$dir/installed" 2>/dev/null)" = "$claude $codex" ]; then
	exit 0
fi

give_up() {
	echo "$1" >"$dir/why-not"
	echo "writ: no agents for tests/agents: $1" >&2
	exit 0
}

rm -f "$dir/installed" "$dir/why-not"
case $(uname -m) in
x86_64 | aarch64) ;;
*) give_up "there are none for $(uname -m)" ;;
esac
"$(dirname "$0")/deps.sh" agents || give_up "npm cannot be installed"
command -v npm >/dev/null || give_up "there is no npm"
echo "writ: installing $claude $codex"
# Claude Code puts its program in place when it is installed; nothing else runs a script.
if ! timeout 180 npm install --global --prefix "$dir" --no-audit --no-fund --no-update-notifier \
	"$claude" "$codex" >"$dir/log" 2>&1; then
	tail -n 5 "$dir/log" >&2
	give_up "npm could not install them"
fi
[ -x "$dir/bin/codex" ] || give_up "npm has installed no codex"
HOME=$dir/home "$dir/bin/claude" --version >"$dir/log" 2>&1 ||
	node "$dir/lib/node_modules/@anthropic-ai/claude-code/install.cjs" >>"$dir/log" 2>&1 ||
	give_up "claude does not start"
echo "$claude $codex" >"$dir/installed"
