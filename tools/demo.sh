#!/bin/sh
# demo.sh - a first look at writ: one policy, four questions about it.
#
# Everything happens in a directory that is removed at the end, writ's own state
# included. Each command is shown before it runs; WRIT names the binary (default:
# the one in PATH).
set -eu
writ=${WRIT:-writ}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state"
mkdir -p project/logs

show() {
	printf '\n$ writ'
	for word in "$@"; do printf ' %s' "$word"; done
	printf '\n'
	# Answers such as "denied" have exit codes of their own; a demo goes on.
	"$writ" "$@" || true
}

cat >agent.writ <<'POLICY'
version 1
# What a log-keeping agent may do, and nothing else.
allow write ./project/logs/*
allow net https://api.example.com methods=GET
limit memory 1G
POLICY
printf '$ cat agent.writ\n'
cat agent.writ
show check agent.writ
show caps agent.writ
show explain agent.writ
show why --policy agent.writ write /etc/passwd
show doctor
