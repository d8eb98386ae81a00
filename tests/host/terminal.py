"""terminal.py - a person at a real terminal."""
import os
import re
import signal
import time

from host import Terminal, children, processes, shell, test, wait_for


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
