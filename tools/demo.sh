#!/bin/sh
# demo.sh - a first look at writ: a policy, a mistake, what holds, and what people use today.
#
# Everything happens in a directory that is removed at the end, writ's own state
# included. Each command is shown before it runs. WRIT names the binary (default: the
# one in PATH); FACTS names recorded facts to use instead of this machine's.
set -eu
writ=${WRIT:-writ}
dir=$(mktemp -d)
trap 'chmod -R u+rwx "$dir"; rm -rf "$dir"' EXIT
export HOME="$dir/home" XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state"
mkdir -p "$dir/home" "$dir/app/logs" "$dir/app/src"
cd "$dir/app"

say() { printf '\n\033[1m%s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }

show() {
	printf '$ writ'
	for word in "$@"; do
		case $word in
		*[*\ \;]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '\n'
	verb=$1
	shift
	case $verb in explain | why | doctor) [ -z "${FACTS:-}" ] || set -- --facts "$FACTS" "$@" ;; esac
	# "denied" and "found something" have exit codes of their own; a demo goes on.
	"$writ" "$verb" "$@" 2>&1 || true
}

say '1. What an agent may do, in lines a person can read aloud.'
cat >agent.writ <<'POLICY'
version 1
allow write ./logs/*
allow net   https://api.example.com/v1/** methods=GET,POST
secret API_KEY from env:API_KEY to https://api.example.com as bearer
deny  read  **/.env
limit session 2h
test deny net   https://api.example.com/admin
test deny write ./src/main.c
POLICY
printf '$ cat agent.writ\n'
cat agent.writ
show check agent.writ

say '2. A mistake is an error with its place, never a rule that quietly does nothing.'
sed 's/^allow write/alow  write/' agent.writ >wrong.writ
show check wrong.writ

say '3. What enforces each line on this machine. What cannot be enforced is refused by name.'
show explain agent.writ

say '4. One question, and the line that decides it.'
show why --policy agent.writ write /etc/passwd
show why --policy agent.writ read ./src/.env
show why --policy agent.writ net https://api.example.com/v1/items

say '5. What many people run today.'
printf '$ cat run.sh\n'
echo 'docker run --privileged -v /var/run/docker.sock:/var/run/docker.sock agent:1.4' | tee run.sh
show lint --quiet run.sh | grep -E '^\$|^run.sh.*error|  fix: Remove'

say '6. What this machine can hold, for you.'
show doctor

# Recorded facts are another machine's: nothing can be run there.
[ -z "${FACTS:-}" ] || exit 0
say '7. A first sandboxed session. It writes where it may, is refused elsewhere, and is told why.'
show run --allow 'write:./logs/*' -- sh -c \
	'echo hello >logs/today; cat logs/today; echo x >src/main.c; cat /etc/shadow; ls /proc | grep -c "^[0-9]"'
