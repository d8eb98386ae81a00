#!/usr/bin/env python3
"""sandbox.py - the host sandbox against its budgets and its peers, as ratios.

    bench/sandbox.py [--quick] [--rounds N] [WORD ...]

Started by root it measures twice: as root what starting costs, and everything as an
ordinary user, which is what people are. Started by anybody else, only the latter.
Everything is interleaved (measure.py), so that a busy machine slows all of it. CPU is
what all processes of one run used together, also those that outlive it for a moment; on
a busy machine it says more than the time. With words, only what has one of them in its
name is measured, and nothing is saved.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
import peers
import report
import stage
from measure import Times, Way

BUDGET_COLD, BUDGET_POOL, BUDGET_OPEN, BUDGET_WORK, BUDGET_UNTAR, BUDGET_GRANT_MS, BUDGET_PSS = 0.5, 0.2, 6.0, 1.03, 2.5, 1.0, 1.5
IDLE_SECONDS = 2.5  # nothing happened for that long: idle
LONG_ENOUGH_MS = 400  # a job is repeated until it takes that long, so that the start counts for nothing
PEER_SECONDS = 15
OUT = report.Printer()


def writ():
    return os.environ["WRIT"]


def build():
    return Path(writ()).parent.parent


def cold(top, rounds, seconds):
    work, true = top / "work", ["/bin/true"]
    ways = {"bwrap": Way([*peers.bwrap(work), *true]), "writ run": Way([writ(), "run", "-q", "--", *true]), "no sandbox": Way(true)}
    missing = {}
    for name, way in peers.ways(top, work, true).items():
        (missing if isinstance(way, str) else ways)[name] = way
    got = measure.interleave(ways, rounds, work, seconds)
    OUT.add(*report.against("cold start of /bin/true", {**got, **missing}, "bwrap", {"writ run": BUDGET_COLD}))


def pooled(top, rounds):
    work = top / "work"
    out = subprocess.run([build() / "bench/pool", str(rounds), *peers.bwrap(work), "/bin/true"], cwd=work, check=True,
                         stdout=subprocess.PIPE, text=True).stdout.splitlines()
    got = dict(zip(("library", "bwrap"), (Times([int(ns) / 1e6 for ns in text.split()], []) for text in out)))
    for who, budget in (("bwrap", None), ("library", BUDGET_POOL)):
        note = f"p99 {got[who].p99 / got['bwrap'].p99:.2f} x" if who != "bwrap" else ""
        OUT.add(report.row("start from a warm pool", who, got[who].median / got["bwrap"].median, "x bwrap", budget, got[who], note))


OPENS = [("open for writing, mediated", "open", BUDGET_OPEN), ("creation of a file, mediated", "create", None),
         ("open for reading, not mediated", "read", None)]


def opens(top, rounds):
    """Median of medians: each run does a thousand."""
    work = top / "work"
    shutil.copy(build() / "bench/opens", work / "opens")
    for what, word, budget in OPENS:
        got = {"native": [], "writ run": []}
        for _ in range(rounds):
            for name, head in (("native", []), ("writ run", [writ(), "run", "-q", "--"])):
                out = subprocess.run([*head, "./opens", word, "1000"], cwd=work, check=True, stdout=subprocess.PIPE).stdout
                got[name].append(int(out) / 1000)
        native, ours = (statistics.median(v) for v in got.values())
        OUT.add(report.row(what, "writ run", ours / native, "x native", budget, note=f"{ours:.1f} us, native {native:.1f} us"))


def make_tree(work):
    (work / "src").mkdir()
    for i in range(31):
        (work / f"src/f{i}.c").write_text(f"#include <stdio.h>\nint f{i}(int x)\n{{\n\treturn printf(\"%d\", x + {i});\n}}\n")
    (work / "Makefile").write_text("O = $(patsubst %.c,%.o,$(wildcard src/*.c))\nall: $(O)\nclean:\n\trm -f $(O)\n")
    subprocess.run("git init -q . && for d in $(seq 100); do mkdir -p d/$d; for f in $(seq 100); do echo $f >d/$d/$f; done; done"
                   " && git add -A && git -c user.name=a -c user.email=a@b commit -qm x", shell=True, cwd=work, check=True)


def make_tar(where):
    with tempfile.TemporaryDirectory() as d:
        for i in range(200):
            Path(d, str(i)).mkdir()
            for k in range(100):
                Path(d, str(i), str(k)).write_text("x" * 100)
        subprocess.run(["tar", "cf", where, "-C", d, "."], check=True)


# Not removed: an ext4 without a journal looks at each inode that was, for minutes.
AWAY = "mkdir -p old; [ ! -d out ] || mv out old/$(ls old | wc -l); mkdir out"
JOBS = [("find /usr", "find /usr >/dev/null 2>&1 || :", None, BUDGET_WORK),
        ("git status, 10k files", "git status >/dev/null", None, BUDGET_WORK),
        ("make -j2, 31 files", "make -s clean; make -s -j2", None, BUDGET_WORK),
        ("tar of /usr/include to a pipe", "tar cf - /usr/include | cat >/dev/null", None, BUDGET_WORK),
        ("untar of 20k files", "tar xf many.tar -C out", AWAY, BUDGET_UNTAR)]


def ways_to_do(work, script, before=None):
    job = ["sh", "-c", script]
    before = ["sh", "-c", before] if before else None
    return {"native": Way(job, before=before), "writ run": Way([writ(), "run", "-q", "--", *job], before=before),
            "bwrap": Way([*peers.bwrap(work), *job], before=before)}


def do_job(work, nothing, job, rounds):
    """One job: the start, which has a row of its own, is taken off."""
    what, script, before, budget = job
    if not before:
        once = min(measure.run(Way(["sh", "-c", script]), work)[1] for _ in range(2))  # CPU, which others do not stretch
        script = f"for i in $(seq {max(1, round(LONG_ENOUGH_MS / once))}); do {script}; done"
    got = measure.interleave(ways_to_do(work, script, before), rounds, work)
    for who, t in got.items():
        got[who] = Times([wall - nothing[who].median for wall in t.wall], [max(0.0, cpu - nothing[who].cpu_median) for cpu in t.cpu])
    OUT.add(*report.against(what, got, "native", {"writ run": budget}))


def inside(top, rounds, wanted):
    work, jobs = top / "work", [job for job in JOBS if wanted(job[0])]
    if not jobs:
        return
    make_tree(work)
    make_tar(work / "many.tar")
    nothing = measure.interleave(ways_to_do(work, ":"), max(15, rounds), work)
    for job in jobs:
        do_job(work, nothing, job, min(rounds, 8) if job[2] else rounds)
    memory = top / "memory"
    if wanted("untar") and memory.is_mount():
        shutil.copy(work / "many.tar", memory)
        what, script, _, budget = next(job for job in JOBS if "untar" in job[0])
        do_job(memory, nothing, (f"{what}, in memory (tmpfs)", script, "rm -rf out; mkdir out", budget), rounds)


def ask(sid, method, **params):
    """One request at the control socket, as `writ allow` makes it, without its start."""
    path = Path(os.environ["XDG_STATE_HOME"], "writ/run", sid)
    where = next(p for p in path.iterdir() if p.is_socket())
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        start = time.perf_counter()
        s.connect(str(where))
        s.send(request)
        answer = s.recv(65536)
        took = time.perf_counter() - start
    answer = json.loads(answer)
    if "result" not in answer:
        sys.exit(f"sandbox.py: {method}: {answer}")
    return took * 1000, answer["result"]


def start_session(work, head=(), env=None):
    return subprocess.run([*head, writ(), "session", "start"], cwd=work, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def stop_session(work, sid, head=(), env=None):
    subprocess.run([*head, writ(), "stop", sid], cwd=work, env=env, stderr=subprocess.DEVNULL)


def seen(work, sid, path):
    return subprocess.run([writ(), "session", "exec", sid, "--", "cat", path], cwd=work, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def live(top, rounds):
    """Milliseconds from asking until it is granted; that it is then there is looked at once."""
    work, other = top / "work", top / "other"
    other.mkdir()
    (other / "file").write_text("here\n")
    sid, took, whole = start_session(work), [], []
    try:
        for i in range(rounds):
            before = i > 0 or not seen(work, sid, other / "file")
            t, grant = ask(sid, "grant.allow", action="read", object=str(other))
            if not before or (i == 0 and not seen(work, sid, other / "file")):
                sys.exit("sandbox.py: a live grant is not what makes the file seen")
            ask(sid, "grant.revoke", grant=grant["grant"])
            took.append(t)
        for _ in range(max(10, rounds // 10)):
            start = time.perf_counter()  # not measure.run(): that waits for the session, too
            subprocess.run([writ(), "allow", sid, f"read:{other}"], cwd=work, check=True, stderr=subprocess.DEVNULL)
            whole.append((time.perf_counter() - start) * 1000)
        for name, values, budget in (("asked to granted", took, BUDGET_GRANT_MS), ("`writ allow`", whole, None)):
            OUT.add(report.row("live grant of a directory", name, statistics.median(values), "ms", budget, Times(values, [])))
    finally:
        stop_session(work, sid)


def family(pid):
    """A process and all below it."""
    todo, found = [str(pid)], []
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            todo += Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            pass
    return found


def pss(pids):
    """MiB of proportional set size, and how many could not be looked at."""
    total, hidden = 0, 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            hidden += 1
    return total / 1024, hidden


def idle(work, head, env):
    """Memory of a session in which nothing runs; root sees all of it."""
    sid = start_session(work, head, env)
    try:
        shown = subprocess.run([*head, writ(), "ps"], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        pids = family(next(text.split()[1] for text in shown.splitlines() if sid in text))
        time.sleep(IDLE_SECONDS)
        mib, hidden = pss(pids)
        note = f"{len(pids)} processes" + (f", {hidden} of them not counted: only root may look" if hidden else "")
        OUT.add(report.row("memory of an idle session", "writ", mib, "MiB PSS", None if hidden else BUDGET_PSS, note=note))
    finally:
        stop_session(work, sid, head, env)
    with subprocess.Popen([*head, *peers.bwrap(work), "sleep", "100"], env=env) as p:
        time.sleep(IDLE_SECONDS)
        # Not the sleep, and with setpriv it is the same process.
        pids = [pid for pid in family(p.pid) if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "bwrap"]
        OUT.add(report.row("memory of an idle session", "bwrap", pss(pids)[0], "MiB PSS", note=f"{len(pids)} processes; a command waits"))
        for pid in reversed(family(p.pid)):
            os.kill(int(pid), 9)


def wants(words):
    return lambda *names: not words or any(w in n for w in words for n in names)


def measure_here(top, opt, starts_only):
    wanted, rounds = wants(opt.words), opt.rounds
    if wanted("cold start"):
        cold(top, rounds, PEER_SECONDS * rounds / 200)
    if wanted("pool"):
        pooled(top, max(20, rounds // 2))
    if starts_only:
        return
    if wanted("open", "creation"):
        opens(top, max(5, rounds // 10))
    if wanted("live grant"):
        live(top, rounds)
    inside(top, max(5, rounds // 12), wanted)


def as_user(place, opt, top, env):
    """The same program again, as the ordinary user; its rows."""
    rows = top / "rows.json"
    cmd = [*stage.with_memory(top / "memory"), *stage.become(), "/usr/bin/python3", place.dir / "bench/sandbox.py", "--place", top, "--rounds", str(opt.rounds), *opt.words]
    if subprocess.run(cmd, cwd=top, env=env).returncode:
        sys.exit(1)
    return json.loads(rows.read_text())


def main():
    ap = argparse.ArgumentParser(description="the sandbox against its budgets and peers")
    ap.add_argument("--rounds", type=int, default=200)
    ap.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    ap.add_argument("--place", help=argparse.SUPPRESS)  # of the ordinary user, made by root
    ap.add_argument("words", nargs="*")
    opt = ap.parse_args()
    stage.need("bwrap", "bubblewrap")
    measure.adopt_orphans()
    if opt.quick:
        opt.rounds //= 10
    if opt.place:
        measure_here(Path(opt.place), opt, starts_only=False)
        Path(opt.place, "rows.json").write_text(json.dumps(OUT.rows))
        return
    stage.make_user()
    with stage.Stage() as place:
        load, sections = report.load_average(), {}
        print(f"load {load:.2f} on {os.cpu_count()} cores" + (": others are at work, ratios and CPU hold, times do not" if load > 1 else ""))
        top, env = place.account("user", owned=True)
        os.environ["WRIT"] = place.writ
        print("\n== as an ordinary user")
        if wants(opt.words)("idle session", "memory"):
            idle(top / "work", stage.become(), env)
        sections["sandbox, ordinary user"] = OUT.rows + as_user(place, opt, top, env)
        if stage.am_root():
            print("\n== as root")
            OUT.what, OUT.rows = None, []
            top, env = place.account("root", owned=False)
            os.environ.clear()
            os.environ.update(env)
            measure_here(top, opt, starts_only=True)
            sections["sandbox, root"] = OUT.rows
        print(f"\nsandbox: {report.verdict(sections)}")
        if not opt.words:
            for name, rows in sections.items():
                report.save(name, rows, load)


if __name__ == "__main__":
    main()
