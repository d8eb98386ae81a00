#!/usr/bin/env python3
"""conform_test.py - does `writ conform` call an escape an escape, and leave nothing? Speaks TAP.

$WRIT is the program; writ-escape lies where a build puts it.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WRIT = os.path.abspath(os.environ.get("WRIT", "build/release/prog/writ"))
ROWS = ("FS-001", "RD-001", "UX-014")  # a write, a read, and one that the plan declares by name
LEAKY = "#!/bin/sh\n# Says what it was told, and is no sandbox.\nwhile [ $# -gt 0 ] && [ \"$1\" != -- ]; do " \
        "echo \"$1\" >>TOLD; shift; done\nshift\nexec \"$@\"\n"
count = failed = 0


def ok(good, name, notes=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {count} - {name}")
    for line in str(notes).splitlines()[-20:] if not good else []:
        print(f"# {line}")
    sys.stdout.flush()


class Ground:
    """A directory for scenes that must be empty again, and the bare trials of all tests."""

    def __init__(self):
        self.top = Path(tempfile.mkdtemp(prefix="ct-", dir="/var/tmp"))
        self.top.chmod(0o755)
        self.scenes = self.top / "s"
        self.scenes.mkdir()
        self.scenes.chmod(0o755)

    def argv(self, *args, ids=ROWS):
        return [WRIT, "conform", "--dir", str(self.scenes), *[x for i in ids for x in ("--id", i)], *map(str, args)]

    def run(self, *args, ids=ROWS):
        proc = subprocess.run(self.argv(*args, ids=ids), capture_output=True, text=True, timeout=120)
        ok(not any(self.scenes.iterdir()), f"nothing is left of: {' '.join(map(str, args)) or 'writ itself'}")
        return proc

    def verdicts(self, *args, ids=ROWS):
        proc = self.run("--json", *args, ids=ids)
        try:
            told = json.loads(proc.stdout)
        except ValueError:
            return proc, {}, {"rows": []}
        return proc, {r["id"]: r["verdict"] for r in told["rows"]}, told


def processes(text):
    """Pids of those whose command line names @text."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            pass
    return [p for p in found if p != os.getpid()]


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def leaks(g):
    for under in ("", "env"):
        proc, got, told = g.verdicts("--under", under)
        ok(proc.returncode == 1 and set(got.values()) == {"ESCAPED"}, f"--under '{under}' lets everything out",
           f"{proc.returncode} {got} {proc.stderr}")
        ok(told.get("passed") is False and told.get("counts", {}).get("ESCAPED") == 3, "and the counts say so", told)
    proc = g.run("--under", "env")
    ok(proc.returncode == 1 and "ESCAPED: got out" in proc.stdout and "  FS-001  fs.write" in proc.stdout and
       "[changed: " in proc.stdout, "people see the rows and the reason", proc.stdout)
    proc, got, _ = g.verdicts("--under", "env", "--declare", "fs.write=none,ipc=partial")
    ok(got == {"FS-001": "gap", "RD-001": "ESCAPED", "UX-014": "gap"}, "what was declared is a gap", got)
    proc, got, _ = g.verdicts("--under", "env", "--declare", "fs.write=none,fs.read=partial,ipc=none")
    ok(proc.returncode == 0 and set(got.values()) == {"gap"}, "gaps alone are no failure", f"{proc.returncode} {got}")
    proc, got, _ = g.verdicts("--under", "env", "--declare", "fs.write=exact")
    ok(proc.returncode == 1 and got.get("FS-001") == "ESCAPED", "exact declares nothing", got)


def sandboxes(g):
    proc, got, told = g.verdicts()
    ok(proc.returncode == 0 and got.get("FS-001") == got.get("RD-001") == "held", "writ holds them",
       f"{proc.returncode} {got} {proc.stderr}")
    ok(got.get("UX-014") == "held", "a socket of the host's in the workspace as well", got)
    ok(told.get("tier") in ("A", "B"), "the tier that the plan chose is told", told.get("tier"))
    proc, got, told = g.verdicts("--tier", "B", "--no-controls")
    ok(proc.returncode == 0 and told.get("tier") == "B", "a tier can be chosen", f"{proc.returncode} {got} {proc.stderr}")
    ok(all(r["control_works"] is None for r in told["rows"]), "no controls if nobody wants them")
    proc, got, _ = g.verdicts("--under", "true", ids=(*ROWS, "OK-001"))
    ok(proc.returncode == 1 and {got.get(i) for i in ROWS} == {"NOT RUN"} and got.get("OK-001") == "BROKEN",
       "a sandbox that runs nothing holds nothing", got)
    proc, got, _ = g.verdicts("--under", "", ids=("ID-010", "RS-024"))
    ok(got.get("ID-010") == "n.a." or os.geteuid() == 0, "what needs root to prepare is n.a.", got)
    tool = g.top / "leaky"
    tool.write_text(LEAKY.replace("TOLD", str(g.top / "told")))
    tool.chmod(0o755)
    proc, got, _ = g.verdicts("--under", f"{tool} '{{work}} x' \"{{out}}\"", "--", "{dir}", "{else}", ids=("FS-001",))
    told = (g.top / "told").read_text().splitlines()
    ok(got.get("FS-001") == "ESCAPED", "a command with arguments of its own", f"{got} {proc.stderr}")
    ok(any(t.endswith("/work x") for t in told) and any(t.endswith("/out") for t in told) and "{else}" in told and
       any(t.startswith(str(g.scenes)) for t in told), "{work}, {out} and {dir} are replaced", told)


def mistakes(g):
    def refuses(name, text, *args, ids=("FS-001",), writ=None):
        argv = g.argv(*args, ids=ids)
        proc = subprocess.run([writ or argv[0], *argv[1:]], capture_output=True, text=True, timeout=60)
        ok(proc.returncode == 125 and text in proc.stderr, name, f"{proc.returncode} {proc.stderr}")

    refuses("a row that is not there", "no row", ids=("XX-001",))
    refuses("a bound that is not there", "no bound", "--bound", "nowhere")
    refuses("a guarantee that is not there", "no guarantee", "--under", "env", "--declare", "fs.reed=none")
    refuses("a level that is not there", "none", "--under", "env", "--declare", "fs.read=weak")
    refuses("a declaration for writ", "--under", "--declare", "fs.read=none")
    refuses("words without a command", "--under", "--", "env")
    refuses("a quote that is not closed", "quote", "--under", "sh -c 'x")
    refuses("a sandbox that cannot be started", "no-such-sandbox", "--under", "no-such-sandbox --x")
    refuses("a directory that is not there", "--dir", "--dir", g.top / "none")
    refuses("a directory with a blank", "--dir", "--dir", tempfile.mkdtemp(prefix="a b", dir=g.top))
    refuses("no jobs", "--jobs", "--jobs", "0")
    refuses("a user that is not there", "no user", "--user", "nobody-of-that-name")
    if os.geteuid() != 0:
        refuses("another user without root", "root", "--user", "root")
    (g.top / "bad").write_text("{\"FS-001\": 3}")
    refuses("a file that keeps no trials", "keeps no trials", "--bare", g.top / "bad")
    ok((g.top / "bad").read_text() == "{\"FS-001\": 3}", "and it is left as it was")
    shutil.copy(WRIT, g.top / "writ")
    refuses("writ-escape is missing", "writ-escape is missing", writ=str(g.top / "writ"))


def keeps(g):
    kept = g.top / "bare.json"
    first = g.verdicts("--bare", kept, "--under", "env")[1]
    bare = json.loads(kept.read_text())
    ok(set(bare) == set(ROWS) and bare["FS-001"][0] == "ESCAPED", "what works bare is kept", bare)
    bare["FS-001"][0] = "HELD"
    kept.write_text(json.dumps(bare))
    second = g.verdicts("--bare", kept)[1]
    ok(first.get("FS-001") == "ESCAPED" and second.get("FS-001") == "n.a.", "and used again", second)
    g.verdicts("--bare", kept, ids=("FS-002",))
    ok("FS-002" in json.loads(kept.read_text()), "rows that are missing are tried")


def interrupted(g, number, code, phase, *args, ids):
    """Ends it once something of @phase is there, and looks for what it left."""
    proc = subprocess.Popen(g.argv(*args, ids=ids), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ok(bool(wait_for(lambda: list(g.scenes.glob(phase)))), f"it runs ({phase})")
    time.sleep(0.3)
    proc.send_signal(number)
    out, err = proc.communicate(timeout=60)
    ok(proc.returncode == code and out == "", f"signal {number}: it ends with {code}", f"{proc.returncode} {err}")
    ok(not any(g.scenes.iterdir()), f"signal {number}: no scene is left", list(g.scenes.rglob("*"))[:5])
    ok(wait_for(lambda: not processes(str(g.scenes)), 15), f"signal {number}: no process is left",
       processes(str(g.scenes)))


def listed():
    proc = subprocess.run([WRIT, "conform", "--list", "--json"], capture_output=True, text=True, timeout=60)
    rows = json.loads(proc.stdout)
    ok(len(rows) > 900 and len({r["id"] for r in rows}) == len(rows), "--list --json lists every row once", len(rows))
    proc = subprocess.run([WRIT, "conform", "--list", "--bound", "use"], capture_output=True, text=True, timeout=60)
    ok(len(proc.stdout.splitlines()) == sum(r["bound"] == "use" for r in rows), "--list can be narrowed", proc.stdout)


def killed(g):
    """Killed hard it cannot tidy up, but its helpers notice."""
    proc = subprocess.Popen(g.argv("--under", "env", ids=("RS-024",)), stdout=subprocess.DEVNULL)
    wait_for(lambda: list(g.scenes.glob("we-*/s*/state/daemon")))
    proc.kill()
    proc.wait()
    ok(wait_for(lambda: not processes(str(g.scenes)), 20), "killed hard: helpers end", processes(str(g.scenes)))
    for left in g.scenes.iterdir():
        shutil.rmtree(left)


def main():
    g = Ground()
    try:
        leaks(g)
        sandboxes(g)
        mistakes(g)
        keeps(g)
        listed()
        interrupted(g, signal.SIGINT, 130, "we-*/s*/work/RS-010/beat", "--under", "env", ids=("RS-010",))
        interrupted(g, signal.SIGTERM, 143, "we-*/s*/state/daemon", "--jobs", "3", ids=("RS-020", "RS-021", "RS-024"))
        interrupted(g, signal.SIGHUP, 129, "we-*/s*.out", "--under", "", ids=[f"RC-{i:03}" for i in range(1, 6)])
        killed(g)
        ok(not any(g.scenes.iterdir()), "nothing at all is left")
    finally:
        shutil.rmtree(g.top, ignore_errors=True)
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
