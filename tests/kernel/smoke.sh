#!/bin/sh
# smoke.sh TIER - what the escape suite does not ask: is the network there that was
# granted, does a grant come and go, does a limit hold and say so? Speaks TAP; runs in
# the machine of run.py, where files.test is a host of its own (see init.sh).
tier=$1 count=0 bad=0
work=$(mktemp -d "$HOME/smoke-XXXXXX") && mkdir "$work/ws" "$work/more" && cd "$work/ws" || exit 99
out=$work/out
export XDG_STATE_HOME="$work/state"
PATH=/test:$PATH

# check NAME COMMAND...: what it said is shown if it fails.
check() {
	name=$1 count=$((count + 1))
	shift
	if "$@"; then
		echo "ok $count - $name"
	else
		bad=1
		echo "not ok $count - $name"
		tail -n 20 "$out" | sed 's/^/# /'
	fi
}
fails() { ! "$@"; }
said() { grep -q -- "$1" "$out"; }

run() { timeout 90 writ run --tier "$tier" "$@" >"$out" 2>&1; }
writ_() { timeout 90 writ "$@" >"$out" 2>&1; }
inside() { writ_ session exec "$id" -- "$@"; }
limited() { # CODE WORDS: how the last run ended, and what its record says
	grep -q "^exit $1\$" "$out" && cat "$XDG_STATE_HOME"/writ/sessions/*.jsonl >>"$out" && said "$2"
}
ends() { # a run of which the record is the only one
	rm -rf "$XDG_STATE_HOME/writ/sessions"
	run "$@"
	echo "exit $?" >>"$out"
}

page() { run "$@" -- curl -sS -m 30 "$url" && said 'the page'; }
page_inside() { inside curl -sS -m 30 "$url" && said 'the page'; }

# In tier B a program reads the /etc/hosts of this machine, and goes where nobody let it go.
host=files.test
[ "$tier" = A ] || host=1.2.3.10
url=http://$host:8080/
check "a granted host is reached" page --allow "net:tcp://$host:8080"
[ "$tier" = B ] || check "with requests read, too" page --allow "net:http://$host:8080"
check "without the grant it is not" fails page
url=http://localhost:8080/
check "a granted port of this machine is reached" page --allow net:localhost:8080
check "without the grant it is not" fails page

id=$(timeout 90 writ session start --tier "$tier" --allow net:tcp://other.test:80)
check "a session stays" test -n "$id"
check "another folder cannot be written" fails inside sh -c "echo x >$work/more/f"
check "until it is granted" writ_ allow "$id" "write:$work/more"
check "then it can" inside sh -c "echo x >$work/more/f"
check "taken back" writ_ revoke "$id" 1
check "it cannot" fails inside sh -c "echo x >$work/more/g"
if [ "$tier" = A ]; then
	url=http://files.test:8080/
	check "another name is not there" fails page_inside
	check "until it is granted" writ_ allow "$id" net:tcp://files.test:8080
	check "then it is reached" page_inside
	check "taken back" writ_ revoke "$id" 2
	check "it is not" fails page_inside
	url=http://localhost:8080/
	check "a port of this machine is not there" fails page_inside
	check "until it is granted" writ_ allow "$id" net:localhost:8080
	check "then it is reached" page_inside
	check "taken back" writ_ revoke "$id" 3
	check "it is not" fails page_inside
fi
check "and ends" writ_ stop "$id"

ends --limit memory=64M -- tail /dev/zero
check "memory: killed, and on record" limited 137 '"event":"limit","killed":[1-9][0-9]*,"limit":"memory"'
ends --limit pids=16 -- sh -c 'i=0; while [ $i -lt 30 ]; do sleep 3 & i=$((i + 1)); done; wait'
check "pids: refused, and on record" limited 2 '"event":"limit","limit":"pids","refused":[1-9]'
ends --limit command=2s -- sleep 60
check "time: ended, and on record" limited 124 '"event":"limit","limit":"command"'
# A fifth of a core for three seconds is 0.6 s; `times` ends with that of the children.
run --limit cpu=0.2 -- sh -c 'timeout 3 sh -c "while :; do :; done"; times'
check "cpu: no more than its part" awk '/^0m/ { t = $1 } END { split(t, p, /[ms]/); exit !(p[2] > 0.1 && p[2] < 1.2) }' "$out"

rm -rf "$work"
echo "1..$count"
exit $bad
