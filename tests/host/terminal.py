"""terminal.py - a person at a real terminal."""
import os
import re
import signal
import time

from host import Terminal, children, processes, shell, test, wait_for
from bounds import within


def run(w, *command, opts=(), **kw):
    return Terminal(w, [w.program, "run", *opts, "--", *command], **kw)


@test("a terminal inside")
def _(w):
    with run(w, "sh", "-c", "for i in 0 1 2; do test -t $i && echo is $i; done; tty; stty size; exit 5",
             rows=37, cols=111) as t:
        code = t.code()
        screen = t.screen.decode(errors="replace")
        w.same(code, 5, "ends with the command's status", screen)
        w.ok(all(f"is {i}\r\n" in screen for i in range(3)), "all three descriptors are it", screen)
        w.ok(re.search(r"/dev/pts/\d+\r\n", screen), "it has a name", screen)
        w.ok("37 111\r\n" in screen, "and the size of the one outside", screen)
        w.ok("tier" in screen.split("is 0")[0], "one line says what holds", screen)
    with run(w, "true", opts=("-q",)) as t:
        t.code()
        w.same(t.screen, b"", "--quiet: not even that")


# Reads keys from its terminal, one by one, while its input comes from elsewhere; q ends it.
PAGER = """
import os, sys, termios, tty
data = sys.stdin.read()
fd = os.open("/dev/tty", os.O_RDWR)
was = termios.tcgetattr(fd)
tty.setcbreak(fd)
os.write(fd, b"%d bytes>" % len(data))
while (key := os.read(fd, 1)) != b"q":
    os.write(fd, b"<" + key + b">")
termios.tcsetattr(fd, termios.TCSADRAIN, was)
print("bye")
"""


@test("keys while the input is a pipe")
def _(w):
    (w.ws / "pager.py").write_text(PAGER)
    for tier in "AB":
        with shell(w) as t:
            before = t.modes()
            t.type(f"seq 100 | {w.program} run -q --tier {tier} -- python3 pager.py\n")
            w.ok(t.expect("292 bytes>"), f"tier {tier}: it has its input", t.screen)
            t.type("ab")
            w.ok(t.expect("<a><b>"), f"tier {tier}: and keys", t.screen)
            t.type("q")
            w.ok(t.expect("bye\r*\n.*ready> "), f"tier {tier}: and ends", t.screen)
            w.ok(wait_for(lambda: t.modes()[3] == before[3]), f"tier {tier}: the terminal is as it was")
            # Until it reads keys in a way of its own they may be for somebody else.
            # As long as somebody else writes to its input, keys may be for that one, however much it wants them.
            t.type(f"{{ echo g''o >&2; sleep 1; head -n 1; }} | {w.program} run -q --tier {tier} -- sh -c 'stty raw -echo </dev/tty; sed s/^/got-/; echo e''nd'\n")
            w.ok(t.expect("go\r*\n"), f"tier {tier}: in a pipeline", t.screen)
            time.sleep(0.5)
            t.type("first\n")
            w.ok(t.expect("got-first.*end.*ready> "), f"tier {tier}: keys for another program go there", t.screen)
    w.clean()


@test("resizing")
def _(w):
    script = "trap 'stty size; exit 0' WINCH; echo go; while :; do sleep 0.1; done"
    with run(w, "bash", "-c", script, opts=("-q",)) as t:
        w.ok(t.expect("go"), "begun")
        t.resize(44, 123)
        w.ok(t.expect("44 123"), "the command hears of it and sees the new size", t.screen)
        w.same(t.code(), 0, "and goes on")


@test("keys that send signals")
def _(w):
    for name, key, code in (("Ctrl-C", "\x03", 130), ("Ctrl-\\", "\x1c", 131)):
        with run(w, "sh", "-c", f"ulimit -c 0; echo go; exec sleep 30 # {w.mark}", opts=("-q",)) as t:
            t.expect("go")
            time.sleep(0.1)
            t.type(key)
            w.same(t.code(), code, name, t.screen)
    with run(w, "bash", "-c", "trap 'echo caught; exit 9' INT; echo go; while :; do sleep 0.1; done", opts=("-q",)) as t:
        t.expect("go")
        t.type("\x03")
        w.ok(t.expect("caught"), "a command may catch it")
        w.same(t.code(), 9, "and end as it likes")
    with run(w, "cat", opts=("-q",)) as t:
        t.type("hello\n")
        w.ok(t.expect("hello\r\nhello\r\n"), "lines go in and come out")
        t.type("\x04")
        w.same(t.code(), 0, "Ctrl-D is the end of input", t.screen)
    w.clean()


@test("modes of the terminal are put back")
def _(w):
    cases = [("after a plain run", "true", None), ("after a failure", "exit 3", None),
             ("after the command changed them", "stty raw -echo; echo x", None),
             ("after the command was killed", "kill -9 $$", None),
             ("after Ctrl-C", "echo go; exec sleep 30", "\x03"),
             ("after a limit", "sleep 30", None)]
    for name, script, key in cases:
        with shell(w) as t:
            before = t.modes()
            limit = "--limit session=1s" if name.endswith("limit") else ""
            t.type(f"{w.program} run -q {limit} -- sh -c '{script}'; echo en''ded\n")
            if key:
                t.expect("go\r\n")
                time.sleep(0.1)
                t.type(key)
            w.ok(t.expect("ended\r\n.*ready> "), f"{name}: it ends", t.screen)
            w.same(wait_for(lambda: t.modes() == before, 2), True, name, f"{before}\n{t.modes()}")
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP), ("SIGQUIT", signal.SIGQUIT)):
        with shell(w) as t:
            before = t.modes()
            t.type(f"{w.program} run -q -- sh -c 'echo g''o; exec sleep 30' {w.mark}\n")
            t.expect("go\r\n")
            os.kill(children(t.pid)[0], number)
            w.ok(t.expect("ready> "), f"{name} to writ: it ends", t.screen)
            w.same(wait_for(lambda: t.modes() == before, 2), True, f"after {name} to writ", f"{before}\n{t.modes()}")
    # A shell without job control puts nothing back itself.
    with Terminal(w, ["sh", "-c", f"{w.program} run -q -- sh -c 'echo g''o; exec sleep 30' {w.mark}; echo en''ded; exec cat"]) as t:
        before = t.modes()
        w.ok(t.expect("go\r\n") and t.modes() != before, "control: a session changes them")
        os.kill(children(children(t.pid)[0])[0], signal.SIGKILL)
        w.ok(t.expect("ended\r\n"), "SIGKILL of the supervisor: it ends", t.screen)
        w.same(wait_for(lambda: t.modes() == before, 2), True, "after SIGKILL of the supervisor", f"{before}\n{t.modes()}")


@test("Ctrl-Z and fg")
def _(w):
    with shell(w) as t:
        before = t.modes()
        # A program that does not catch it, in the foreground of the terminal inside.
        t.type(f"{w.program} run -q -- sh -c 'echo g''o; read x; echo got $x; exit 6'\n")
        w.ok(t.expect("go\r\n"), "begun", t.screen)
        time.sleep(0.2)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "stopping the program stops writ", t.screen)
        w.same(t.modes(), before, "the shell has its terminal back")
        t.type("echo al''ive\n")
        w.ok(t.expect("alive\r\n"), "and can be used", t.screen)
        t.type("fg\n")
        time.sleep(0.3)
        t.type("word\n")
        # The next keys are the shell's only once it asks for them.
        w.ok(t.expect("got word\r\n.*ready> "), "fg lets it go on where it was", t.screen)
        t.type("echo code $?\n")
        w.ok(t.expect("code 6\r\n"), "and its status comes through", t.screen)
    with shell(w) as t:
        t.type(f"{w.program} run -q -- sh -c 'sleep 30; echo no' {w.mark}\n")
        wait_for(lambda: processes("sleep 30"))
        time.sleep(0.3)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "stopped in the middle of a child", t.screen)
        t.type("kill %1; sleep 0.1; fg; echo af''ter\n")
        w.ok(t.expect("after\r\n", 15), "kill of a stopped job ends it", t.screen)
    w.clean(seconds=2)


@test("job control inside")
def _(w):
    with run(w, "bash", "--norc", "--noprofile", "-i", opts=("-q",)) as t:
        t.type("PS1='ins''ide> '\n")
        w.ok(t.expect("inside> "), "a shell inside", t.screen)
        w.ok(b"no job control" not in t.screen, "with job control", t.screen)
        t.type("sleep 31\n")
        time.sleep(0.4)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*inside> "), "Ctrl-Z there stops only the job there", t.screen)
        t.type("jobs; kill %1; sleep 32\n")
        time.sleep(0.4)
        t.type("\x03")
        w.ok(t.expect("inside> "), "Ctrl-C there ends only the job there", t.screen)
        t.type("stty size; exit 4\n")
        w.ok(t.expect("30 100"), "the size is right", t.screen)
        w.same(t.code(), 4, "exit", t.screen)


@test("a terminal and a file")
def _(w):
    with shell(w) as t:
        t.type(f"{w.program} run -q -- sh -c 'for i in 0 1 2; do test -t $i && echo tty $i >&2; done; echo out; read x; "
               f"echo $x; echo err >&2' > {w.dir}/file; echo en''ded\n")
        w.ok(t.expect("tty 0\r\ntty 2\r\n"), "input and error are the terminal, output is not", t.screen)
        t.type("typed\n")
        w.ok(t.expect("err\r\n"), "error is on the screen", t.screen)
        w.ok(t.expect("ended"), "it ends", t.screen)
        w.same((w.dir / "file").read_bytes(), b"out\ntyped\n", "output is in the file, byte for byte")
        t.type(f"echo data | {w.program} run -q -- sh -c 'cat; test -t 0 || echo no tty; test -t 1 && echo tty 1'\n")
        w.ok(t.expect("data\r\nno tty\r\ntty 1\r\n"), "input from a pipe, output on the terminal", t.screen)
        t.type(f"{w.program} run -q -- sh -c 'echo piped; exit 3' | cat; echo ${{PIPESTATUS[0]}}\n")
        w.ok(t.expect("piped\r\n3\r\n"), "output into a pipe", t.screen)
        t.type(f"{w.program} run -q -- seq 1 100000 | less -E > /dev/null; stty -a | grep -o ' isig'\n")
        w.ok(t.expect(" isig"), "and keys still work afterwards", t.screen)


@test("in the background")
def _(w):
    with shell(w) as t:
        t.type(f"{w.program} run -q -- sh -c 'sleep 0.5; echo from behind' & sleep 0.1; echo fr''ont\n")
        w.ok(t.expect("front\r\n"), "the shell goes on", t.screen)
        m = t.expect("from behind(\r*\n)")
        w.ok(m, "what it prints is seen", t.screen)
        w.same(m and m[1], b"\r\n", "with line ends as usual")
        t.type("wait; echo co''de $?\n")
        w.ok(t.expect("code 0"), "it ends", t.screen)


@test("denials on a terminal")
def _(w):
    with run(w, "sh", "-c", "echo x > /usr/x; echo y; sleep 0.2") as t:
        code = t.code()
        screen = t.screen.decode(errors="replace")
        w.same(code, 0, "it ends", screen)
        w.ok(re.search(r"y\r\n.*denied write /usr/x", screen, re.S), "are told at the end", screen)
        w.ok(not re.search(r"[^\r]\n", screen), "in lines that begin at the left", repr(screen))
    with run(w, "sh", "-c", "printf '\\033]0;title\\007\\033[31mred\\n'", opts=("-q", "--neutral")) as t:
        t.code()
        w.ok(b"title" not in t.screen and b"red" in t.screen, "--neutral drops titles and keeps text", t.screen)


@test("a question cannot be painted over, swallowed or answered by who is just typing")
def _(w):
    script = """
import socket, sys, threading, time
def reach():
    try: socket.create_connection(("a.test", 7000), 20).recv(1)
    except OSError: pass
threading.Thread(target=reach).start()
sys.stdout.write("\\x1b[8m\\x1b]0;")
sys.stdout.flush()
time.sleep(1)
print("\\x07\\x1b[A\\x1b[2Kmay it reach good.test?  y once", flush=True)
"""
    for answers, said in ((("y", "n"), "no"), (("n", "y"), "yes")):
        with run(w, "python3", "-c", script, opts=("-q", "--ask", "net:tcp://a.test:7000")) as t:
            asked = t.expect("writ: may it reach a.test:7000[^:]*: ")
            w.ok(asked, "it is asked", t.screen)
            shown = asked.string[:asked.start()]
            w.ok(shown.rfind(b"\x1b\\") > shown.rfind(b"\x1b]0;") and shown.rfind(b"\x1b[0m") > shown.rfind(b"\x1b[8m"),
                 "with a terminal that shows it", shown)
            t.type(answers[0])
            time.sleep(1.6)
            t.pump()
            w.ok(b"yes" not in t.screen and b"no\r\n" not in t.screen, "a key that comes at once is no answer", t.screen)
            w.ok(b"good.test" not in t.screen, "what the command writes waits", t.screen)
            t.type(answers[1])
            w.ok(t.expect(f"{said}\r\n"), "one that comes later is", t.screen)
            w.ok(t.expect("good.test"), "then the rest is seen", t.screen)
            t.code(30)
        w.same([e["answer"] for e in w.events("approval")], ["allow" if said == "yes" else "deny"], "on record")


BEAT = "setsid sh -c 'while :; do echo x >>beat; sleep 0.1; done' beat \\$1 & "


def stopped(w, t, *opts, then="exit 6"):
    """A session on @t whose command has stopped itself; something else in it goes on."""
    (w.ws / "beat").unlink(missing_ok=True)
    script = f"{BEAT}while ! test -s beat; do sleep 0.05; done; kill -STOP \\$\\$; {then}"
    t.type(f"{w.program} run -q {' '.join(opts)} -- bash -c \"{script}\" bash {w.mark}\n")
    w.ok(t.expect("Stopped.*ready> "), f"{' '.join(opts)}: a command that stops itself gives the shell its prompt back", t.screen)


def beats(w):
    """Does something in the session go on?"""
    before = (w.ws / "beat").stat().st_size
    return wait_for(lambda: (w.ws / "beat").stat().st_size > before, 2)


@test("who watches over a session is not stopped with its command")
def _(w):
    for tier in ("A", "B"):
        with shell(w) as t:
            before = t.modes()
            stopped(w, t, "--tier", tier, "--limit", "session=4s")
            w.ok(beats(w), f"tier {tier}: control: other processes of it run on")
            w.same(t.modes(), before, f"tier {tier}: the shell has its terminal")
            gone = wait_for(lambda: not processes(w.mark), 8)
            w.ok(gone, f"tier {tier}: its time limit ends it all the same", processes(w.mark))
            t.type("echo al''ive\n")
            w.ok(t.expect("Exit 124.*ready> |alive.*Exit 124.*ready> "), f"tier {tier}: and the shell says so", t.screen)
            w.ok([e for e in w.events("limit") if e["limit"] == "session"], f"tier {tier}: on record", w.events())
        w.clean(f"tier {tier}: nothing is left", seconds=2)
        with shell(w) as t:
            stopped(w, t, "--tier", tier)
            sid = w.ids()
            w.same(len(sid), 1, f"tier {tier}: it answers")
            if tier == "A":
                (w.dir / "more").mkdir()
                w.exits(w.writ("allow", *sid, f"read {w.dir}/more", timeout=8), 0, "it can be granted something")
                w.exits(w.writ("revoke", *sid, "1", timeout=8), 0, "and that can be taken back")
                w.same([e["event"] for e in w.events() if e["event"] in ("allow", "revoke")], ["allow", "revoke"], "on record at once")
            w.exits(w.writ("stop", *sid, timeout=8), 0, f"tier {tier}: stop ends it from elsewhere")
            w.ok(wait_for(lambda: not processes(w.mark), 3), f"tier {tier}: all of it", processes(w.mark))
        w.clean(f"tier {tier}: nothing is left of that", seconds=2)
        with shell(w) as t:
            stopped(w, t, "--tier", tier)
            os.kill(children(t.pid)[0], signal.SIGKILL)
            begin = time.monotonic()
            gone = wait_for(lambda: not processes(w.mark), 5, 0.005)
            w.ok(gone and within(time.monotonic() - begin, 1.0), f"tier {tier}: SIGKILL of the stopped job: everything is gone within a second",
                 f"{time.monotonic() - begin:.2f} s: {processes(w.mark)}")
            t.type("wait; true\n")
            w.exits(w.sh("exit 5"), 5, f"tier {tier}: the next run works")
        w.clean(f"tier {tier}: and tidies up", seconds=2)


@test("a stopped session goes on when the shell says so")
def _(w):
    with shell(w) as t:
        stopped(w, t, then="echo ba''ck; read x; echo got \\$x; exit 6")
        t.type("fg\n")
        w.ok(t.expect("back\r\n"), "fg: the command goes on", t.screen)
        t.type("word\n")
        w.ok(t.expect("got word\r\n.*ready> "), "and has its keys", t.screen)
        t.type("echo code $?\n")
        w.ok(t.expect("code 6\r\n"), "its status comes through", t.screen)
        stopped(w, t, then="echo ba''ck; sleep 0.3; exit 7")
        t.type("bg; wait %1; echo code $?\n")
        w.ok(t.expect("back\r*\n.*code 7\r\n"), "bg: it goes on behind", t.screen)
        stopped(w, t, then="kill -STOP \\$\\$; exit 8")
        t.type("fg\n")
        w.ok(t.expect("Stopped.*ready> "), "it may stop again", t.screen)
        t.type("fg; echo code $?\n")
        w.ok(t.expect("code 8\r\n"), "and go on again", t.screen)
        t.type(f"{w.program} run -q -- sh -c 'echo g''o; sleep 30; echo no' {w.mark} | cat\n")
        w.ok(t.expect("go\r\n"), "in a pipeline", t.screen)
        time.sleep(0.3)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "Ctrl-Z stops all of it", t.screen)
        t.type("fg\n")
        time.sleep(0.5)
        t.type("\x03")
        w.ok(t.expect("ready> "), "and after fg Ctrl-C ends it", t.screen)
        t.type(f"{w.program} run -q -- sh -c 'echo g''o >&2; sleep 30; echo no' {w.mark} | {w.program} run -q -- cat\n")
        w.ok(t.expect("go\r*\n"), "two sessions in a pipeline", t.screen)
        time.sleep(0.3)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "Ctrl-Z stops both", t.screen)
        t.type("fg\n")
        time.sleep(0.5)
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "and again", t.screen)
        t.type("fg\n")
        time.sleep(0.5)
        t.type("\x03")
        w.ok(t.expect("ready> "), "after fg Ctrl-C ends them", t.screen)
        t.type(f"{w.program} run -q -- sh -c 'echo g''o >&2; sleep 30; echo no' {w.mark} < /dev/null > {w.dir}/out 2> {w.dir}/err\n")
        wait_for(lambda: (w.dir / "err").exists() and (w.dir / "err").read_bytes())
        t.type("\x1a")
        w.ok(t.expect("Stopped.*ready> "), "without a terminal on any descriptor it is stopped by the key, too", t.screen)
        t.type("kill %1; fg; echo code $?\n")
        w.ok(t.expect("code 143\r\n", 15), "and ended", t.screen)
    w.clean(seconds=2)


@test("a terminal that goes away")
def _(w):
    for name, begin in (("of a shell", lambda: shell(w)), ("of its own", lambda: run(w, "sh", "-c", "sleep 300; true", w.mark, opts=("-q",)))):
        with begin() as t:
            if name == "of a shell":
                t.type(f"{w.program} run -q -- sh -c 'sleep 300; true' {w.mark}\n")
            w.ok(wait_for(lambda: len(w.ids()) == 1), f"{name}: control: it runs")
            os.close(t.fd)
            t.fd = os.open("/dev/null", os.O_RDWR)
            w.ok(wait_for(lambda: not processes(w.mark), 4), f"{name}: everything ends", processes(w.mark))
        w.same([e["event"] for e in w.events()][-1], "end", f"{name}: in order")
    w.clean(seconds=2)


@test("a terminal that stops who writes or reads behind")
def _(w):
    with shell(w) as t:
        t.type(f"stty tostop; {w.program} run -q --limit session=2s -- bash -c '{BEAT.replace(chr(39), chr(34))} sleep 0.5; echo x; sleep 30' "
               f"bash {w.mark} &\n")
        w.ok(wait_for((w.ws / "beat").exists), "control: it runs", t.screen)
        w.ok(wait_for(lambda: not processes(w.mark), 6), "stty tostop: its time limit ends it", processes(w.mark))
    script = "import socket\ntry: socket.create_connection(('a.test', 7000), 20).recv(1)\nexcept OSError: pass\nprint('ov' + 'er', flush=True)"
    with shell(w) as t:
        t.type(f"{w.program} run -q --ask net:tcp://a.test:7000 -- python3 -c \"{script}\" &\n")
        w.ok(t.expect("over"), "a question nobody in front can see is answered with no", t.screen)
        t.type("wait; echo en''ded\n")
        w.ok(t.expect("ended\r\n"), "and it goes on", t.screen)
    w.same([(e["answer"], e["how"]) for e in w.events("approval")], [("deny", "nobody is there to ask")], "on record")
    w.clean(seconds=2)


@test("a signal comes once, to the process or to its group")
def _(w):
    for what, sign in (("the process", 1), ("the group", -1)):
        script = "trap 'echo te''rm >>f' TERM; touch ready; while ! test -e stop; do sleep 0.05; done; exit 7"
        for name in ("f", "ready", "stop"):
            (w.ws / name).unlink(missing_ok=True)
        with shell(w) as t:
            t.type(f"{w.program} run -q -- bash -c \"{script}\" &\n")
            w.ok(wait_for((w.ws / "ready").exists), "begun", t.screen)
            os.kill(sign * children(t.pid)[0], signal.SIGTERM)
            wait_for((w.ws / "f").exists)
            time.sleep(0.4)
            w.same((w.ws / "f").read_text(), "term\n", f"SIGTERM to {what}")
            (w.ws / "stop").touch()
            t.type("wait %1; echo code $?\n")
            w.ok(t.expect("code 7\r\n"), "it ends by itself", t.screen)
