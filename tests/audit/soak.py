"""soak.py - sessions that are killed hard, at any moment (AUD-005)."""
import os
import random
import subprocess
import time

from audit import holds, states, verify
from host import PYTHON, entry, test, wait_for

LONG = bool(os.environ.get("WRIT_TEST_LONG"))
BUSY = """i=0; while :; do cat /etc/shadow$i; /bin/true $i; i=$((i+1)); done 2>/dev/null"""


def kill(w, rng, longest):
    """A busy session, killed at some moment. What its record had just before, and has after."""
    folder = w.state / "sessions"
    before = set(folder.glob("*.jsonl")) if folder.is_dir() else set()
    proc = w.start([w.program, "run", "--quiet", "--", "sh", "-c", BUSY], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.random() ** 2 * longest)
    new = set(folder.glob("*.jsonl")) - before if folder.is_dir() else set()
    seen = {f: f.read_bytes() for f in new}
    proc.kill()
    proc.wait()
    return [(f, data, f.read_bytes()) for f, data in seen.items()]


@test("killed hard at random moments: what was written stays, and everything verifies", alone=True)
def _(w):
    rng, lost, lines, count = random.Random(os.getpid()), [], 0, 1000 if LONG else 20
    w.run("true")
    for i in range(count):
        for file, before, after in kill(w, rng, 0.3):
            lines += after.count(b"\n")
            if not after.startswith(before):
                lost.append(file.name)
        if LONG and i % 100 == 99:
            holds(w, f"after {i + 1}")
    w.same(lost, [], f"{count} sessions killed, and nothing that was there is gone")
    w.ok(lines > count, f"{lines} entries were looked at")
    code, result = verify(w)
    w.ok(code == 0, "all of it verifies", {k: v for k, v in result.items() if k != "sessions"})
    w.ok(set(states(w).values()) <= {"cut", "sealed", "unknown", "gone"}, "they are cut off", states(w))
    w.exits(w.run("true"), 0, "and it goes on")
    holds(w, "and verifies")


# Looks up names that nobody allows, as fast as it can, and says for each that it was refused.
LOOKUPS = """
import os, socket, sys, time
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for i in range(500):  # above that many, names of one second are only counted
    try:
        socket.getaddrinfo(f"n{i}.example.test", 443)
    except OSError:
        os.write(out, b"%d %f\\n" % (i, time.time()))
"""


@test("a burst of refused names, and a kill in the middle: each that was refused 100 ms before is there", alone=True)
def _(w):
    proc = w.start([w.program, "run", "--quiet", "--", PYTHON, "-c", LOOKUPS, w.ws / "out"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    out = w.ws / "out"
    wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") > 60, 20)
    time.sleep(0.2)
    proc.kill()
    at = time.time()
    proc.communicate()
    told = [line.split() for line in out.read_text().splitlines()]
    old = [int(i) for i, when in told if float(when) < at - 0.1]
    file = max((w.state / "sessions").glob("*.jsonl"), key=lambda f: f.stat().st_mtime_ns)
    entries = [entry(line) for line in file.read_bytes().decode().splitlines(keepends=True) if line.endswith("\n")]
    there = {e.get("host" if e["event"] == "net" else "object") for e in entries}
    missing = [i for i in old if f"n{i}.example.test" not in there]
    w.ok(old, f"{len(told)} were refused, {len(old)} of them long before")
    w.same(missing, [], "each of these is on record")
    holds(w, "it verifies")
