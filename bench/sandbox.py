#!/usr/bin/env python3
"""sandbox.py - the host sandbox against its budgets and its peers, as ratios.

    bench/sandbox.py [--rounds N] [--json FILE] [WORD ...]

Everything is interleaved in one run: one of each, again and again, and the medians
are compared, so that a busy machine slows all of them. CPU is what all processes of
one run used together, also those that outlive it for a moment; on a busy machine it
says more than the time. Run it as an ordinary user for the numbers that matter. With
words, only what has one of them in its name is measured. BENCH_DIR is where it works
(/var/tmp), WRIT the program.
"""
import argparse
import ctypes
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

ROOT = Path(__file__).resolve().parent.parent
WRIT = os.environ.get("WRIT", str(ROOT / "build/release/prog/writ"))
BUILD = Path(WRIT).resolve().parent.parent
ETC = ["alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "magic", "mime.types",
       "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"]
PR_SET_CHILD_SUBREAPER = 36
ROWS = []


def bwrap(work):
    """The same view and namespaces; it has no Landlock, no seccomp filter, no record."""
    cmd = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
           "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin",
           "--tmpfs", "/tmp", "--tmpfs", "/run", "--proc", "/proc", "--dev", "/dev"]
    for name in ETC:
        if Path("/etc", name).exists():
            cmd += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    if Path("/opt").is_dir():
        cmd += ["--ro-bind", "/opt", "/opt"]
    return [*cmd, "--bind", str(work), str(work), "--chdir", str(work)]


def run(cmd, cwd):
    """Seconds until it has ended, and seconds of CPU of everything it started."""
    with tempfile.TemporaryFile() as errors, open(os.devnull, "r+b") as null:
        os.chdir(cwd)
        start = time.perf_counter()
        pid = os.posix_spawnp(cmd[0], cmd, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, null.fileno(), 0), (os.POSIX_SPAWN_DUP2, null.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
        _, status, used = os.wait4(pid, 0)
        took = time.perf_counter() - start
        cpu = used.ru_utime + used.ru_stime
        # What it left to end by itself comes to us.
        try:
            while True:
                _, _, used = os.wait4(-1, 0)
                cpu += used.ru_utime + used.ru_stime
        except ChildProcessError:
            pass
        if status:
            errors.seek(0)
            sys.exit(f"sandbox.py: {cmd[0]} ended with {os.waitstatus_to_exitcode(status)}: {errors.read()[-300:].decode()}")
    return took, cpu


def interleave(rounds, ways, cwd):
    """Medians of (seconds, CPU seconds) of each way, one of each in turn."""
    took = {name: [] for name in ways}
    for i in range(rounds + 1):
        for name, cmd in ways.items():
            t = run(cmd, cwd)
            if i:  # the first of each warms the caches
                took[name].append(t)
    return {name: tuple(statistics.median(x) for x in zip(*t)) for name, t in took.items()}


def line(what, who, measured, unit, budget, note):
    """One row of the table. Without a budget it is there to compare with."""
    verdict = "" if budget is None else "ok" if measured <= budget else "MISSED"
    shown = "" if budget is None else f"<= {budget:.2f} {unit}"
    print(f"{what:<32}{who:<12}{measured:>9.2f} {unit:<10} {shown:<20}{verdict:<8}{note}".rstrip(), flush=True)
    ROWS.append({"what": what, "who": who, "measured": measured, "unit": unit, "budget": budget, "note": note})


def against(what, medians, peer, budget):
    for name, (t, cpu) in medians.items():
        ratio, cpus = t / medians[peer][0], cpu / (medians[peer][1] or 1)
        if name != peer:
            line(what, name, ratio, f"x {peer}", budget if name.startswith("writ") else None,
                 f"{t * 1000:.2f} ms; CPU {cpu * 1000:.2f} ms, {cpus:.2f} x")


def cold(work, rounds):
    ways = {"bwrap": [*bwrap(work), "--", "/bin/true"], "writ run": [WRIT, "run", "-q", "--", "/bin/true"],
            "plain": ["/bin/true"]}
    if shutil.which("firejail"):
        ways["firejail"] = ["firejail", "--noprofile", "--quiet", "--", "/bin/true"]
    against("cold start of /bin/true", interleave(rounds, ways, work), "bwrap", 0.5)


def pooled(work, rounds):
    out = subprocess.run([BUILD / "bench/pool", str(rounds), *bwrap(work), "--", "/bin/true"], cwd=work, check=True,
                         stdout=subprocess.PIPE, text=True).stdout.splitlines()
    ours, theirs = (int(text.split()[0]) for text in out)
    line("start from a warm pool", "library", ours / theirs, "x bwrap", 0.2, f"{ours / 1e6:.2f} ms, bwrap {theirs / 1e6:.2f} ms")


def opens(work, rounds):
    """Median of medians: each run does a thousand."""
    shutil.copy(BUILD / "bench/opens", work / "opens")
    for what, word, budget in (("mediated open for writing", "open", 6.0), ("mediated creation of a file", "create", None)):
        got = {"native": [], "writ run": []}
        for _ in range(max(3, rounds // 8)):
            for name, head in (("native", []), ("writ run", [WRIT, "run", "-q", "--"])):
                out = subprocess.run([*head, "./opens", word, "1000"], cwd=work, check=True, stdout=subprocess.PIPE).stdout
                got[name].append(int(out))
        native, ours = (statistics.median(v) / 1000 for v in got.values())
        line(what, "writ run", ours / native, "x native", budget, f"{ours:.1f} us, native {native:.1f} us")


def make_tree(work):
    (work / "src").mkdir()
    for i in range(31):
        (work / f"src/f{i}.c").write_text(f"#include <stdio.h>\nint f{i}(int x)\n{{\n\treturn printf(\"%d\", x + {i});\n}}\n")
    (work / "Makefile").write_text("O = $(patsubst %.c,%.o,$(wildcard src/*.c))\nall: $(O)\nclean:\n\trm -f $(O)\n")
    subprocess.run("git init -q . && for d in $(seq 100); do mkdir -p d/$d; for f in $(seq 100); do echo $f >d/$d/$f; done; done"
                   " && git add -A && git -c user.name=a -c user.email=a@b commit -qm x", shell=True, cwd=work, check=True)
    big = work.parent / "many"
    big.mkdir()
    for i in range(200):
        (big / str(i)).mkdir()
        for k in range(100):
            (big / str(i) / str(k)).write_text("x" * 100)
    subprocess.run(["tar", "cf", work / "many.tar", "-C", big, "."], check=True)


JOBS = [("find /usr", "find /usr >/dev/null 2>&1 || :", 1.03), ("git status, 10k files", "git status >/dev/null", 1.03),
        ("make -j2, 31 files", "make -s clean; make -s -j2", 1.03),
        ("tar of /usr/include to a pipe", "tar cf - /usr/include | cat >/dev/null", 1.03),
        ("untar of 20k files", "rm -rf out; mkdir out; tar xf many.tar -C out", 2.5)]


def inside(work, rounds, wanted):
    """What goes on for a while: the start is not counted, it has a row of its own."""
    jobs = [job for job in JOBS if wanted(job[0])]
    if not jobs:
        return
    make_tree(work)
    nothing = interleave(rounds, {"native": ["sh", "-c", ":"], "writ run": [WRIT, "run", "-q", "--", "sh", "-c", ":"],
                                  "bwrap": [*bwrap(work), "--", "sh", "-c", ":"]}, work)
    for what, script, budget in jobs:
        ways = {"native": ["sh", "-c", script], "writ run": [WRIT, "run", "-q", "--", "sh", "-c", script],
                "bwrap": [*bwrap(work), "--", "sh", "-c", script]}
        got = interleave(max(3, rounds // 8), ways, work)
        against(what, {name: (t - nothing[name][0], max(cpu - nothing[name][1], 0.0)) for name, (t, cpu) in got.items()},
                "native", budget)


def ask(sid, request):
    """One request at the control socket, as `writ allow` makes it, without its start."""
    path = Path(os.environ["XDG_STATE_HOME"], "writ/run", sid)
    where = next(p for p in path.iterdir() if p.is_socket())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        start = time.perf_counter()
        s.connect(str(where))
        s.send(request.encode())
        answer = s.recv(65536).decode()
        took = time.perf_counter() - start
    return took, answer


def live(work, rounds):
    """Milliseconds from asking to granted, and the memory of an idle session."""
    other = work.parent / "other"
    other.mkdir(exist_ok=True)
    sid = subprocess.run([WRIT, "session", "start"], cwd=work, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        line("idle session, all processes", "writ", pss(sid), "MiB PSS", 1.5, "")
        took = []
        for _ in range(max(10, rounds)):
            t, answer = ask(sid, f"allow read {other}")
            if not answer.startswith("ok"):
                sys.exit(f"sandbox.py: allow: {answer}")
            took.append(t)
            ask(sid, f"revoke {answer.split()[-1]}")
        line("live grant, asked to visible", "writ", statistics.median(took) * 1000, "ms", 1.0, "")
    finally:
        subprocess.run([WRIT, "stop", sid], cwd=work, stderr=subprocess.DEVNULL)


def pss(sid):
    """Proportional set size of the supervisor and everything below it."""
    shown = subprocess.run([WRIT, "ps"], stdout=subprocess.PIPE, text=True, check=True).stdout
    todo, total = [next(text.split()[1] for text in shown.splitlines() if sid in text)], 0
    while todo:
        pid = todo.pop()
        try:
            todo += Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(l.split()[1]) for l in text.splitlines() if l.startswith("Pss:"))
        except (OSError, StopIteration):
            pass  # pid 1 of a jail cannot be looked at by its own user; it has a few pages
    return total / 1024


def main():
    ap = argparse.ArgumentParser(description="the sandbox against its budgets and peers")
    ap.add_argument("--rounds", type=int, default=40)
    ap.add_argument("--json", help="also write the rows there")
    ap.add_argument("words", nargs="*")
    opt = ap.parse_args()
    if not shutil.which("bwrap"):
        sys.exit("sandbox.py: install bubblewrap to compare with")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def wanted(*names):
        return not opt.words or any(w in n for w in opt.words for n in names)

    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", "/var/tmp")) as d:
        os.environ.update(HOME=f"{d}/home", XDG_STATE_HOME=f"{d}/state", XDG_CONFIG_HOME=f"{d}/config")
        work = Path(d, "work")
        work.mkdir()
        if wanted("cold start"):
            cold(work, opt.rounds)
        if wanted("pool"):
            pooled(work, opt.rounds)
        if wanted("mediated open"):
            opens(work, opt.rounds)
        if wanted("live grant", "idle session"):
            live(work, opt.rounds)
        inside(work, opt.rounds, wanted)
        subprocess.run(["chmod", "-R", "u+rwx", d], check=False)
    if opt.json:
        Path(opt.json).write_text(json.dumps(ROWS, indent=1) + "\n")


if __name__ == "__main__":
    main()
