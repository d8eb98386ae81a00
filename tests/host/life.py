"""life.py - how sessions end, and what is left of them."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from host import PYTHON, descendants, processes, test, wait_for
from bounds import within

STAY = """
trap '' TERM HUP INT QUIT
(trap '' TERM HUP INT; exec -a $1-plain sleep 300) &
setsid bash -c "exec -a $1-setsid sleep 300" &
(setsid bash -c "(exec -a $1-double sleep 300) &" &)
nohup bash -c "trap '' TERM HUP; exec -a $1-nohup sleep 300" >/dev/null 2>&1 &
exec 3>&1; (exec -a $1-holds sleep 300) &
sleep 0.3
"""


STAYING = {"plain", "setsid", "double", "nohup", "holds"}


def stayed(mark):
    """Which of them are there under the names they end up with: on the way there each is several shells."""
    return {line.split()[1].removeprefix(mark + "-") for line in processes(mark + "-") if line.split()[1].startswith(mark + "-")}


def daemon(mark):
    """A daemon by the book, in Python."""
    return f"""
import os, time, signal
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.closerange(0, 50)
        os.execv('/bin/sh', ['{mark}-daemon', '-c', 'while :; do sleep 1; done'])
    os._exit(0)
time.sleep(0.2)
"""


@test("what a command leaves behind ends with it")
def _(w):
    for tier in ("A", "B"):
        r = w.run("bash", "-c", STAY + "echo $(pgrep -fc $1- 2>/dev/null); exit 3", "bash", w.mark, opts=("--tier", tier))
        w.exits(r, 3, f"tier {tier}: the status is the command's")
        w.ok(int(r.text.strip() or 0) >= 5, f"tier {tier}: control: they were there", r)
        w.ok(within(r.seconds, 8), f"tier {tier}: soon", r)
        w.clean(f"tier {tier}: children that ignore signals, detach or fork twice are gone")
        w.exits(w.run(PYTHON, "-c", daemon(w.mark), opts=("--tier", tier)), 0, f"tier {tier}: a daemon")
        w.clean(f"tier {tier}: is gone too")
        r = w.sh("sleep 300 & echo hi", opts=("--tier", tier))
        w.ok(r.out == b"hi\n" and within(r.seconds, 5), f"tier {tier}: one that holds the output is not waited for", r)
    r = w.sh("f() { f | f & }; ulimit -u 200 2>/dev/null; (while :; do (sleep 100 &) ; done) 2>/dev/null & sleep 0.5; exit 2",
             opts=("--limit", "pids=100"))
    w.exits(r, 2, "a fork bomb")
    w.clean("is gone")


@test("SIGKILL of the supervisor")
def _(w):
    for tier in ("A", "B"):
        proc, _ = w.background("bash -c \"$0\" bash $1; sleep 300", STAY, w.mark, opts=("--tier", tier))
        w.ok(wait_for(lambda: stayed(w.mark) == STAYING), f"tier {tier}: control: they are there", processes(w.mark))
        os.kill(proc.pid, signal.SIGKILL)
        begin = time.monotonic()
        gone = wait_for(lambda: not processes(w.mark), 5, 0.005)
        w.ok(gone and within(time.monotonic() - begin, 1.0), f"tier {tier}: everything is gone within a second",
             f"{time.monotonic() - begin:.2f} s: {processes(w.mark)}")
        proc.wait()
        r = w.writ("ps")
        w.ok(r.code == 0 and "no session" in r.said, f"tier {tier}: ps shows none", r)
        w.same(w.writ("ps", "--json").out, b"[]\n", f"tier {tier}: ps --json too")
        w.exits(w.writ("stop", "--all"), 0, f"tier {tier}: stop --all has nothing to do")
        w.exits(w.sh("exit 5"), 5, f"tier {tier}: the next run works")
        w.clean(f"tier {tier}: and tidies up behind the dead one")


@test("the death of a part ends the whole")
def _(w):
    for which in range(4):
        proc, _ = w.background("echo begun; sleep 300", w.mark)
        proc.stdout.readline()
        parts = descendants(proc.pid)
        if which >= len(parts):
            proc.kill()
            proc.wait()
            continue
        name = Path(f"/proc/{parts[which]}/comm").read_text().strip()
        os.kill(parts[which], signal.SIGKILL)
        code = wait_for(lambda: proc.poll() is not None, 5) and proc.returncode
        w.ok(code not in (False, 0), f"part {which} ({name}) is killed: the run ends and does not say 0", code)
        if code is False:
            proc.kill()
        said = proc.communicate()[1]
        if code == 125:
            w.ok((b"ended without a word" in said or b"is gone" in said) and w.events("failed"), f"part {which} ({name}): it says why, and so does the record", said)
        w.clean(f"part {which} ({name}): nothing is left", seconds=2)


@test("a supervisor that is stopped holds nobody else up")
def _(w):
    stopped, _ = w.background("echo begun; sleep 300", w.mark)
    other, _ = w.background("echo begun; sleep 300", w.mark)
    for proc in (stopped, other):
        proc.stdout.readline()
    w.ok(wait_for(lambda: len(w.ids()) == 2, 5), "control: two sessions", w.ids())
    silent = next(i["session"] for i in json.loads(w.writ("ps", "--json").out) if i["pid"] == stopped.pid)
    os.kill(stopped.pid, signal.SIGSTOP)
    r = w.writ("stop", silent, timeout=30)
    w.ok(r.code != 0 and f"-CONT {stopped.pid}" in r.said, "stop says what to do", r)
    with contextlib.ExitStack() as crowd:  # more than may wait to be heard
        for path in [*(w.state / "run").glob("*/control")] * 12:
            s = crowd.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            s.setblocking(False)
            s.connect_ex(str(path))
        r = w.writ("ps", timeout=15)
    w.ok(r.code == 0 and within(r.seconds, 8) and "silent" in r.text and "running" in r.text, "ps shows both", r)
    os.kill(stopped.pid, signal.SIGCONT)
    w.exits(w.writ("stop", "--all", timeout=15), 0, "then both end")
    for proc in (stopped, other):
        proc.communicate(timeout=15)
    w.clean()


@test("signals to writ")
def _(w):
    for name, number in (("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)):
        proc, _ = w.background(f"trap 'echo caught; exit 7' {name}; echo begun; while :; do sleep 0.05; done", w.mark)
        proc.stdout.readline()
        os.kill(proc.pid, number)
        out, err = proc.communicate(timeout=10)
        w.same((out, proc.returncode), (b"caught\n", 7), f"SIG{name} reaches the command, which may tidy up", err)
        proc, _ = w.background("echo begun; exec sleep 300", w.mark)
        proc.stdout.readline()
        os.kill(proc.pid, number)
        proc.communicate(timeout=10)
        w.same(proc.returncode, 128 + number, f"SIG{name} ends one that does not catch it")
    proc, _ = w.background("trap '' TERM; echo begun; while :; do sleep 0.05; done", w.mark)
    proc.stdout.readline()
    begin = time.monotonic()
    os.kill(proc.pid, 15)
    proc.communicate(timeout=20)
    w.same(proc.returncode, 143, "SIGTERM ends also one that ignores it")
    w.ok(within(time.monotonic() - begin, 8), "after a moment", time.monotonic() - begin)
    proc, _ = w.background("trap '' TERM; echo begun; while :; do sleep 0.05; done", w.mark)
    proc.stdout.readline()
    os.kill(proc.pid, 15)
    time.sleep(0.2)
    os.kill(proc.pid, 15)
    begin = time.monotonic()
    proc.communicate(timeout=20)
    w.ok(proc.returncode == 143 and within(time.monotonic() - begin, 1.5), "twice: at once", proc.returncode)
    w.clean()


@test("a launcher that ignores signals or has blocked them")
def _(w):
    script = f"import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60))\n" \
             f"os.execv({w.program!r}, ['writ', 'run', '--', 'sh', '-c', 'grep -E \"^Sig(Blk|Ign|Cgt)\" /proc/self/status; kill -TERM $$'])"
    r = w.call([PYTHON, "-c", script])
    w.exits(r, 143, "signals work inside")
    blocked = [l.split()[1] for l in r.text.splitlines() if l.startswith("SigBlk")]
    w.same(blocked, ["0" * 16], "and none is blocked", r)
    for name in ("INT", "HUP", "TERM"):
        r = w.call(["bash", "-c", f"(sleep 0.3; kill -{name} $$) & trap '' {name}; exec {w.program} run -- sh -c 'sleep 0.8; exit 4'"])
        w.exits(r, 4, f"SIG{name}, if it was ignored outside (nohup), is ignored")


@test("two hundred runs, one after the other", alone=True)
def _(w):
    mounts = Path("/proc/self/mountinfo").read_text()
    w.sh("true")
    files = {p for p in w.state.rglob("*")}
    begin = time.monotonic()
    bad = [f"run {i}: {r}" for i in range(200)
           if (r := w.sh(f"echo {i}; exit {i % 3}", w.mark)).code != i % 3 or r.text != f"{i}\n"]
    took = time.monotonic() - begin
    w.ok(not bad, "each with its own status and output", "\n".join(bad))
    w.same(Path("/proc/self/mountinfo").read_text(), mounts, "no mount is left")
    w.clean("no process, cgroup or file of a run")
    new = {p for p in w.state.rglob("*")} - files
    other = [p for p in new if p.parent != w.state / "sessions" and w.state / "log" not in p.parents]
    w.same(sorted(map(str, other)), [], "nothing but records in the state directory")
    w.same(len(list((w.state / "log/wal").iterdir())), 1, "one file of newest entries in the realm's log")
    w.same(len(w.records()), 201, "one record each")
    w.ok(within(took, 60), f"in {took:.1f} s")


@test("thirty at once", alone=True)
def _(w):
    with ThreadPoolExecutor(30) as pool:
        results = list(pool.map(lambda i: w.sh(f"echo {i} > f{i}; cat f{i}; sleep 0.3; echo ~ > /dev/null; exit {i}", w.mark,
                                               timeout=60), range(30)))
    w.same([r.code for r in results], list(range(30)), "each has its own status",
           "\n".join(str(r) for i, r in enumerate(results) if r.code != i))
    w.same([r.text for r in results], [f"{i}\n" for i in range(30)], "and output")
    w.clean()
    procs = [w.start([w.program, "run", "--", "sleep", "300"], stderr=subprocess.DEVNULL) for _ in range(20)]
    wait_for(lambda: len(w.ids()) == 20, 20, 0.2)
    w.same(len(w.ids()), 20, "twenty are listed")
    w.exits(w.writ("stop", "--all"), 0, "stop --all")
    w.same([p.wait(20) for p in procs], [143] * 20, "ends them all")
    w.clean()
