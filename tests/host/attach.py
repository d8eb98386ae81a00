"""attach.py - joining commands of a session that stays, and leaving them running."""
import json
import os
import re
import signal
import time

from host import OTHER_USER, Terminal, test, wait_for
from bounds import within

LEAVE = "\x1dd"


def attach(w, sid, *more, **kw):
    return Terminal(w, [w.program, "session", "attach", sid, *more], **kw)


def detached(w, sid, *command, **kw):
    r = w.writ("session", "exec", "--detach", sid, "--", *command, **kw)
    return r.text.strip()


def inside(w, sid, mark):
    return mark in w.writ("session", "exec", sid, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text


@test("a command goes on without anybody, and is joined")
def _(w):
    sid = w.session().text.strip()
    r = w.writ("session", "exec", "--detach", sid, "--", "sh", "-c", "echo begun; read x; echo got $x; exit 5")
    w.ok(r.code == 0 and re.fullmatch(r"\d+\n", r.text) and not r.err, "exec --detach prints its number and returns", r)
    number = r.text.strip()
    with Terminal(w, ["true"]) as t:
        before = t.modes()  # of one that nobody has changed yet
        t.code()
    with attach(w, sid, rows=33, cols=77) as t:
        w.ok(t.expect("begun"), "what it showed before is shown", t.screen)
        t.type("you\n")
        w.ok(t.expect("got you"), "keys reach it", t.screen)
        w.same(t.code(), 5, "its status is ours", t.screen)
        w.same(t.modes(), before, "the terminal is as it was")
    r = w.writ("session", "attach", sid, number)
    w.ok(r.code == 5 and b"begun" in r.out and b"got you" in r.out, "afterwards the last of it can still be seen", r)
    w.exits(w.writ("session", "attach", sid, "999"), 125, "there is no such command")
    w.exits(w.writ("session", "attach", sid, "x"), 125, "nor such a number")
    w.exits(w.writ("session", "attach"), 125, "attach to what?")
    r = w.writ("session", "exec", "--detach", sid, "--", "no-such-program")
    w.ok(r.code == 127 and "cannot run no-such-program: not found inside" in r.said and not r.out,
         "a command that cannot be run says so at once", r)
    r = w.writ("session", "exec", "--detach", sid, "--", "sh", "-c", "echo short; exit 9")
    w.ok(r.code == 0 and r.text.strip().isdigit(), "one that ends at once has a number as well", r)
    r = w.writ("session", "attach", sid, r.text.strip())
    w.ok(r.code == 9 and b"short" in r.out, "and an end to be seen", r)
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("leaving, coming back, taking over")
def _(w):
    sid = w.session("--", "sh", "-c", "echo first; while read x; do echo \"<$x>\"; done; exit 7", w.mark).text.strip()
    with attach(w, sid) as a:
        w.ok(a.expect("first"), "the command that the session was started with", a.screen)
        a.type("one\n")
        w.ok(a.expect("<one>"), "is typed to", a.screen)
        a.type("\x1d\x1d\n")
        w.ok(a.expect(rb"<\x1d>|<\^\]>"), "the escape typed twice is sent once", a.screen)
        a.type("\x1dx\n")
        w.ok(a.expect(rb"<\x1dx>|<\^\]x>"), "and with another key both are sent", a.screen)
        a.type(LEAVE)
        w.same(a.code(), 0, "the escape and d leave", a.screen)
        w.ok(b"it goes on: writ session attach " + sid.encode() in a.screen, "and say how to come back", a.screen)
    w.ok(inside(w, sid, w.mark), "it still runs")
    with attach(w, sid) as a:
        w.ok(a.expect("<one>"), "coming back shows what was there", a.screen)
        with attach(w, sid, "1") as b:
            w.ok(b.expect("<one>"), "by its number, too", b.screen)
            w.same(a.code(), 0, "whoever comes last has it", a.screen)
            w.ok(b"somebody else has attached" in a.screen, "and the other is told", a.screen)
            b.type("two\n")
            w.ok(b.expect("<two>"), "and can type", b.screen)
            os.kill(b.pid, signal.SIGKILL)
    time.sleep(0.2)
    w.ok(inside(w, sid, w.mark), "one who is killed takes nothing along")
    with attach(w, sid) as b:
        b.expect("<two>")
        os.kill(b.pid, signal.SIGTERM)
        w.same(b.code(), 0, "SIGTERM leaves too", b.screen)
    with attach(w, sid) as b:
        b.expect("<two>")
        b.type("\x04")
        w.same(b.code(), 7, "the end of its input ends it", b.screen)
    w.same(w.ids(), {sid}, "and not the session")
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("exec with a terminal can be left and joined")
def _(w):
    sid = w.session().text.strip()
    line = [w.program, "session", "exec", sid, "--", "sh", "-c", "echo go; while read x; do echo \"<$x>\"; done; exit 4", w.mark]
    with Terminal(w, line) as t:
        t.expect("go")
        t.type(LEAVE)
        w.same(t.code(), 0, "the escape leaves it running", t.screen)
    w.ok(inside(w, sid, w.mark), "it does run")
    with Terminal(w, line) as t:
        t.expect("go")
        r = w.writ("session", "attach", sid)
        w.ok(r.code == 125 and re.search(r"several run, say which: 2 \(sh\), \d+ \(sh\)", r.said), "with two one must say which", r)
        with attach(w, sid, "2") as a:
            w.ok(a.expect("go"), "the first is joined by its number", a.screen)
            a.type("\x04")
            w.same(a.code(), 4, "and ends", a.screen)
        os.kill(t.pid, signal.SIGKILL)
    w.ok(wait_for(lambda: not inside(w, sid, w.mark), 3), "one that nobody left goes with its client, although it is a shell")
    stopped = detached(w, sid, "sh", "-c", "kill -STOP $$; echo woken; exit 2")
    time.sleep(0.3)
    w.exits(w.writ("session", "attach", sid, stopped), 2, "one that was stopped while nobody looked goes on when somebody does")
    with Terminal(w, ["bash", "--norc", "-i"]) as t:
        t.type(f"PS1='$ '; {w.program} session exec {sid} -- sh -c 'echo go; read x; echo \"<$x>\"'\n")
        t.expect("go\r\n")
        t.type("\x1a")
        w.ok(t.expect("Stopped"), "Ctrl-Z stops it and us", t.screen)
        t.type("fg\n")
        t.expect("session exec")
        t.type("on\n")
        w.ok(t.expect("<on>"), "and fg lets both go on", t.screen)
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("size, colours and floods of a joined terminal")
def _(w):
    sid = w.session().text.strip()
    detached(w, sid, "bash", "-c", "trap 'stty size' WINCH; printf '\\033[6n\\033]0;title\\007\\033[31mred\\n'; while :; do sleep 0.1; done")
    with attach(w, sid, rows=33, cols=77) as t:
        w.ok(t.expect("33 77"), "it has the size of who attached", t.screen)
        time.sleep(0.5)  # bash forgets a signal that comes while it handles the same one
        t.resize(44, 88)
        w.ok(t.expect("44 88"), "and follows it", t.screen)
        t.type(LEAVE)
        t.code()
    with attach(w, sid) as t:
        w.ok(t.expect(rb"\x1b\[31mred"), "colours of before stay", t.screen)
        t.type(LEAVE)
        t.code()
        w.ok(b"\x1b[6n" not in t.screen and b"title" not in t.screen, "but no question is asked again", t.screen)
    detached(w, sid, "sh", "-c", "seq 100000; echo the end; sleep 100")
    time.sleep(0.5)
    r = w.writ("session", "attach", sid, "3", timeout=2)
    lines = r.text.splitlines()
    w.ok(50000 < len(r.out) <= 66000 and lines and lines[-1] == "the end" and lines[0].isdigit(),
         "of much output the last 64 KiB are shown, from the start of a line", (len(r.out), lines[:1], lines[-1:]))
    w.ok(sum(w.writ("session", "exec", sid, "--", "true").code for _ in range(3)) == 0, "nobody waits for it")
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("every byte reaches who is attached")
def _(w):
    sid = w.session().text.strip()
    number = detached(w, sid, "sh", "-c", "sleep 0.5; seq 200000; exit 3")
    r = w.writ("session", "attach", sid, number, timeout=30)
    w.same((r.code, r.text.split()), (3, [str(i) for i in range(1, 200001)]), "and then the status")
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("a neutral session stays neutral for who joins")
def _(w):
    sid = w.session("--neutral", "--", "sh", "-c", "read x; printf '\\033]52;c;eA==\\007\\033[32mgreen\\n'; read y").text.strip()
    with attach(w, sid) as t:
        t.type("a\n")
        w.ok(t.expect(rb"\x1b\[32mgreen"), "colours", t.screen)
        w.ok(b"]52" not in t.screen, "and no clipboard", t.screen)
        t.type(LEAVE)
        t.code()
    plain = w.session("--", "sh", "-c", "read x; printf '\\033]52;c;eA==\\007\\033[32mgreen\\n'; read y").text.strip()
    with attach(w, plain) as t:
        t.type("a\n")
        w.ok(t.expect(rb"\x1b\]52.*\x1b\[32mgreen"), "control: a plain one is not", t.screen)
        t.type(LEAVE)
        t.code()
    w.writ("stop", "--all")
    w.clean(seconds=3)


@test("who may attach", needs_root=True)
def _(w):
    sid = w.session("--", "sh", "-c", "echo secret; sleep 30", w.mark).text.strip()
    stranger = {**w.env, "XDG_STATE_HOME": str(w.home / ".local/state"), "HOME": "/nonexistent"}
    for p in [w.home, w.home / ".local", w.home / ".local/state", w.state, w.state / "run", w.state / "run" / sid]:
        p.chmod(0o755)
    (w.state / "run" / sid / "control").chmod(0o777)
    r = w.writ("session", "attach", sid, env=stranger, as_user=OTHER_USER, cwd="/")
    w.ok(r.code == 125 and b"secret" not in r.out, "another user may not, even where the directory is open", r)
    ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "proc.attach"})
    script = (f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); s.connect('{w.state}/run/{sid}/control'); "
              f"s.send({ask!r}.encode() + bytes([10])); d = s.recv(99); print(d); assert d")
    r = w.run("python3", "-c", script, opts=("--allow", f"read:{w.state}/run",))
    w.ok(r.code != 0 and b"jsonrpc" not in r.out, "nor may anything inside", r)
    proc, run = w.background("sleep 30", w.mark)
    r = w.writ("session", "attach", run)
    w.ok(r.code == 125 and "no command of this session has a terminal to join" in r.said, "a run has its own terminal, and cannot be joined", r)
    w.exits(w.writ("session", "attach", sid, timeout=2), None, "control: its own user may")
    proc.terminate()
    proc.wait()
    w.writ("stop", "--all")
    w.clean(seconds=3)


@test("terminals of sessions without namespaces")
def _(w):
    r = w.session("--tier", "B", "--", "sh", "-c", "echo first; read x; echo \"<$x>\"; exit 6")
    sid = r.text.strip()
    if r.code == 122:
        w.ok(r.err, "tier B is refused here, in words", r)
        return
    with attach(w, sid, rows=31, cols=71) as t:
        w.ok(t.expect("first"), "attach", t.screen)
        t.type("k\n")
        w.ok(t.expect("<k>"), "keys", t.screen)
        w.same(t.code(), 6, "its status", t.screen)
    with Terminal(w, [w.program, "session", "exec", sid, "--", "sh", "-c", "test -t 0 && test -t 1 && echo tty; stty size; exit 6"],
                  rows=33, cols=77) as t:
        code = t.code()
        w.ok(b"tty\r\n" in t.screen and b"33 77\r\n" in t.screen, "exec has one, of the right size", t.screen)
        w.same(code, 6, "and its status comes back", t.screen)
    w.writ("stop", sid)
    w.clean(seconds=3)


@test("limits of commands in a session that stays")
def _(w):
    sid = w.session("--limit", "command=2s").text.strip()
    begin = time.monotonic()
    long = w.start([w.program, "session", "exec", sid, "--", "sh", "-c", "trap '' TERM HUP; sleep 30", w.mark])
    time.sleep(1)
    w.exits(w.writ("session", "exec", sid, "--", "sh", "-c", "sleep 0.2; exit 3"), 3, "a short one beside it")
    w.same(long.wait(10), 124, "the long one ends with 124")
    w.ok(1.5 < time.monotonic() - begin and within(time.monotonic() - begin, 6), "in time")
    w.same(w.ids(), {sid}, "and the session goes on")
    w.same([(e["limit"], e["command"]) for e in w.events("limit")], [("command", 2)], "on record", w.events())
    with Terminal(w, [w.program, "session", "exec", sid, "--", "sh", "-c", "trap '' TERM HUP INT; echo go; while :; do sleep 1; done", w.mark]) as t:
        t.expect("go")
        w.same(t.code(), 124, "one with a terminal too, whatever it ignores", t.screen)
    w.ok(wait_for(lambda: not inside(w, sid, w.mark), 3), "nothing of them is left")
    w.writ("stop", sid)
    first = w.session("--limit", "command=1s", "--", "sh", "-c", "sleep 30").text.strip()
    r = w.writ("session", "attach", first, timeout=10)
    w.ok(r.code == 124 and b"command limit is reached" in r.out, "the command it was started with", r)
    w.same(w.ids(), {first}, "ends alone as well")
    w.writ("stop", first)
    w.clean(seconds=3)


@test("idle in a session that stays")
def _(w):
    sid = w.session("--limit", "idle=3s").text.strip()
    r = w.writ("session", "exec", sid, "--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 1; echo $i; done; exit 5")
    w.exits(r, 5, "output of exec counts")
    detached(w, sid, "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 1; echo $i; done; sleep 60")
    time.sleep(5)
    w.same(w.ids(), {sid}, "and that of a command that nobody looks at")
    w.ok(wait_for(lambda: not w.ids(), 8), "without any it ends")
    w.clean(seconds=3)
    sid = w.session("--limit", "session=2s", "--", "true").text.strip()
    time.sleep(1)
    w.same(w.ids(), {sid}, "the end of its first command does not end a session")
    w.ok(wait_for(lambda: not w.ids(), 5), "its limit does")
    ends = [e for e in w.events() if e["event"] == "limit"]
    w.same(len(ends), 1, "said once", ends)
