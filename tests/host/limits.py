"""limits.py - at most so much, and a record of what happened."""
import fcntl
import json
import os
import re
import time

from host import PYTHON, ROOT, entry, test, wait_for
from bounds import within


def held(w, what, *lines):
    """How well this machine holds a guarantee, as explain says."""
    r = w.writ("explain", "--json", w.policy("allow write .", *lines, name="held.writ"))
    return json.loads(r.out)["guarantees"][what]["level"]


@test("processes")
def _(w):
    script = "for i in $(seq 60); do sleep 5 & done; wait"
    r = w.run("bash", "-c", script, opts=("--limit", "pids=20"), timeout=60)
    w.ok("fork" in r.said or "Resource" in r.said, "no more than so many", r)
    if held(w, "res.pids", "limit pids 20") == "exact" and ROOT:
        w.ok("limit of processes was reached" in r.said, "and a line says so", r)
        e = [e for e in w.events("limit") if e["limit"] == "pids"]
        w.ok(len(e) == 1 and e[0]["refused"] > 0, "on record", w.events("limit"))
    r = w.run("bash", "-c", "for i in $(seq 10); do sleep 0.2 & done; wait; exit 3", opts=("--limit", "pids=100"))
    w.ok(r.code == 3 and not r.err, "control: below the limit", r)
    a = w.run("bash", "-c", "for i in $(seq 10); do sleep 0.5 & done; wait; exit 3", opts=("--limit", "pids=15"))
    w.ok(a.code == 3 and not a.err, "the limit counts the session, and nothing outside", a)
    w.clean()


@test("open files")
def _(w):
    r = w.sh("ulimit -n; ulimit -Hn", opts=("--limit", "files=64"))
    w.same(r.text.split(), ["64", "64"], "as many as the limit says", r)
    r = w.run(PYTHON, "-c", "import os\nf = []\ntry:\n  while True: f.append(os.open('/dev/null', 0))\nexcept OSError as e: print(len(f), e.errno)",
              opts=("--limit", "files=64"))
    w.same(r.text.split()[1:], ["24"], "and then EMFILE", r)
    w.exits(w.sh("ulimit -n 65", opts=("--limit", "files=64")), 2, "it cannot be raised")


@test("memory")
def _(w):
    script = "b = []\nfor i in range(400): b.append(bytearray(1 << 20))\nprint('all')"
    level = held(w, "res.memory", "limit memory 100M")
    if level not in ("exact", "stricter"):
        r = w.run(PYTHON, "-c", script, opts=("--limit", "memory=100M"))
        w.exits(r, 122, "what cannot be held here is refused")
        if level == "partial":
            policy = w.policy("allow write .", "limit memory 100M", "accept res.memory=partial")
            r = w.run(PYTHON, "-c", script, opts=("--policy", policy), timeout=60)
            w.ok(r.code not in (0, 122, None) and b"all" not in r.out, "unless that is accepted: then as far as it goes", r)
        return
    r = w.run(PYTHON, "-c", script, opts=("--limit", "memory=100M"), timeout=60)
    w.ok(r.code not in (0, None) and b"all" not in r.out, f"no more than so much ({level})", r)
    if ROOT:
        w.ok("memory limit was reached" in r.said, "and a line says so", r)
        e = [e for e in w.events("limit") if e["limit"] == "memory"]
        w.ok(len(e) == 1 and e[0]["killed"] > 0, "on record", w.events())
        r = w.sh(f"for i in 1 2 3 4; do {PYTHON} -c 'import time; b = bytearray(40 << 20); time.sleep(1)' & done; wait",
                 opts=("--limit", "memory=100M"), timeout=60)
        w.ok("memory limit was reached" in r.said, "all processes count together", r)
    r = w.run(PYTHON, "-c", "b = bytearray(30 << 20); print('all')", opts=("--limit", "memory=200M"))
    w.same((r.code, r.out), (0, b"all\n"), "control: below the limit", r)
    w.clean()


@test("disk")
def _(w):
    r = w.sh("head -c 3000000 /dev/zero > /tmp/x; stat -c %s /tmp/x", opts=("--limit", "disk=1M"))
    if r.code == 122:
        w.ok(r.err, "refused, in words", r)
    else:
        w.ok("space" in r.said and int(r.text or 0) <= 1 << 20, "what is thrown away counts", r)


@test("who stops reading")
def _(w):
    """Nobody reads standard error, and denials are to be said: what counts the time goes on."""
    # The pulse makes no call that anybody outside has to answer: it stands still only when it is ended.
    pulse = "import time\nf = open(\"beat\", \"w\")\nwhile True: print(file=f, flush=True); time.sleep(0.1)"
    script = f"{PYTHON} -c '{pulse}' & i=0; while :; do i=$((i + 1)); echo x >/usr/y$i; sleep 0.1; done 2>/dev/null & yes >&2"
    r, out = os.pipe()
    p = w.start([w.program, "run", "--limit", "session=3s", "--", "sh", "-c", script], stdout=out, stderr=out)
    os.close(out)
    try:
        w.ok(wait_for((w.ws / "beat").exists), "control: it runs")
        begun = (w.ws / "beat").stat().st_size
        w.ok(wait_for(lambda: (w.ws / "beat").stat().st_size > begun + 3), "control: it has a pulse")
        ended = wait_for(lambda: time.time() - (w.ws / "beat").stat().st_mtime > 1.5, 8)
        w.ok(ended, "everything ends at the limit")
        w.ok(wait_for(lambda: p.poll() is not None, 8) and p.returncode == 124, "and writ with it, though nobody has read", p.returncode)
    finally:
        os.close(r)


@test("who does not read what is left")
def _(w):
    """The command has ended, and more than a pipe holds lies between: signals, limits and people are heard."""
    for name, opts, act in (("TERM", (), lambda p, sid: p.terminate()), ("the limit", ("--limit", "session=2s"), lambda p, sid: None),
                            ("writ stop", (), lambda p, sid: w.writ("stop", sid))):
        r, out = os.pipe()
        p = w.start([w.program, "run", *opts, "--", "sh", "-c", "head -c 900000 /dev/zero; sleep 0.3; touch done"], stdout=out)
        os.close(out)
        try:
            w.ok(wait_for((w.ws / "done").exists), f"{name}: control: it has run to its end")
            time.sleep(0.5)
            w.ok(p.poll() is None, f"{name}: control: what is left is waited for")
            act(p, next(iter(w.ids()), "none"))
            w.ok(wait_for(lambda: p.poll() is not None, 8), f"{name}: ends it")
        finally:
            os.close(r)
            (w.ws / "done").unlink(missing_ok=True)
    w.clean(seconds=2)


@test("who does not read what is explained")
def _(w):
    script = "exec 2>/dev/null; for i in $(seq 40); do echo x > /usr/x$i; done; true"

    def explain():
        back, front = os.pipe()
        fcntl.fcntl(front, fcntl.F_SETPIPE_SZ, 4096)
        proc = w.start([w.program, "run", "--explain-denials", "-q", "--", "sh", "-c", script], stderr=front)
        os.close(front)
        return proc, open(back, "rb")

    proc, err = explain()
    w.ok(wait_for(lambda: (w.state / "sessions").is_dir() and w.events("end"), 10), "its record ends")
    w.ok(wait_for(lambda: not w.leftovers() or not any("run/" in l for l in w.leftovers()), 3), "and so does the session", w.leftovers())
    w.exits(w.writ("audit", "verify"), 0, "which is sealed")
    w.same(proc.poll(), None, "who reads may take their time")
    time.sleep(2.2)
    text = err.read()
    w.ok(proc.wait(5) is not None and text.count(b"denied write /usr/x") == 40, "and gets everything", text[-500:])
    err.close()
    proc, err = explain()
    wait_for(lambda: len(w.records()) == 2 and w.events("end"))
    proc.terminate()
    begin = time.monotonic()
    proc.wait(10)
    w.ok(within(time.monotonic() - begin, 4), "SIGTERM is heard")
    err.close()


@test("somebody else sweeps")
def _(w):
    w.sh("true")
    lock = os.open(w.state / "run", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    proc = w.start([w.program, "run", "--limit", "session=2s", "--", "sleep", "20"])
    w.ok(wait_for(w.ids, 1.5), "a session can be spoken to at once")
    w.ok(wait_for(lambda: proc.poll() is not None, 4) and proc.returncode == 124, "and its limit acts", proc.returncode)
    os.close(lock)
    w.clean(seconds=2)


@test("names that take long to look up")
def _(w):
    """Arguments of programs are looked at for hints; links that lead through one another many times must not hold up the clock."""
    (w.ws / "d" / "a").mkdir(parents=True)
    for i in range(38):
        (w.ws / "d" / f"L{i}").symlink_to("a/../" * 780 + f"L{i + 1}")
    names = [f"{w.ws}/d/L0/{i}" for i in range(60)]
    r = w.run(PYTHON, "-c", "import os\nfor i in range(400):\n  try: os.execv('/nope', ['/nope', *%r])\n  except OSError: pass\nimport time\ntime.sleep(20)" % names,
              opts=("--limit", "session=2s"))
    w.ok(r.code == 124 and within(r.seconds, 4), "the limit acts when it is due", r)


@test("records are whole")
def _(w):
    w.sh("exit 3")
    w.sh("echo x > /usr/x; touch a; ls > /dev/null", "arg\x01\n\"quoted\" \u00e9")
    w.run("no-such")
    w.sh("sleep 9", opts=("--limit", "command=1s"))
    w.sh("head -c 999 /dev/zero", opts=("--limit", "output=10"))
    w.call([w.program, "run", "--", "sh", "-c", "exit 4", b"\xff\xfe"])
    records = w.records()
    w.same(len(records), 6, "one for each session, every line JSON")
    for i, r in enumerate(records):
        kinds = [e["event"] for e in r]
        w.ok(kinds[0] == "start" and kinds[-1] == "end" and kinds.count("start") == kinds.count("end") == 1,
             f"record {i} begins with start and ends with end", kinds)
        times = [e["time"] for e in r]
        w.ok(times == sorted(times) and all(isinstance(t, int) for t in times), f"record {i}: in order of time", times)
        w.ok(set(kinds) <= {"start", "sealed", "probed", "applied", "release", "exec", "denied", "failed", "exited", "limit", "allow", "revoke", "end"},
             f"record {i}: only known events", kinds)
    start = records[0][0]
    w.same((start["command"], start["workspace"]), (["sh", "-c", "exit 3"], str(w.ws)), "start: the command and the workspace")
    w.ok(start["guarantees"]["tier"] == "A" and re.fullmatch(r"\w{8}", start["session"]), "start: what holds", start)
    w.same([e["status"] for e in records[0] if e["event"] == "exited"], [3], "exited: the status")
    w.same(records[0][-1]["exit"], 3, "end: the exit code")
    w.ok([e for e in records[1] if e["event"] == "denied" and e["object"] == "/usr/x" and e["op"] == "write" and e["program"]],
         "denied: what, on what, by which program", records[1])
    runs = [e["object"].rsplit("/", 1)[-1] for e in records[1] if e["event"] == "exec"]
    w.ok({"touch", "ls"} <= set(runs), "exec: every program that was run", runs)
    w.same(records[1][0]["command"][-1], "arg\x01\n\"quoted\" \u00e9", "odd arguments are kept as they are")
    failed = [e for e in records[2] if e["event"] == "failed"]
    w.ok(failed and failed[0]["step"] == "exec" and "no-such" in failed[0]["what"], "failed: the step and the name", records[2])
    w.same(records[2][-1]["exit"], 127, "end: the exit code of one that was not found")
    w.same([e["limit"] for e in records[3] if e["event"] == "limit"], ["command"], "limit: which one")
    w.same(records[3][-1]["exit"], 124, "end: the exit code of a timeout")
    mode = {oct(f.stat().st_mode & 0o777) for f in (w.state / "sessions").iterdir()}
    w.same(mode, {"0o600"}, "for this user alone")


@test("a record of a session that is killed")
def _(w):
    proc, sid = w.background("touch a; sleep 30", w.mark)
    wait_for(lambda: (w.ws / "a").exists())
    os.kill(proc.pid, 9)
    proc.wait()
    events = [entry(l) for l in (w.state / f"sessions/{sid}.jsonl").read_text().splitlines()]
    w.ok(events[0]["event"] == "start" and events[-1]["event"] != "end", "has whole lines, and no end", events)
