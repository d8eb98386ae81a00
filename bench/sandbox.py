#!/usr/bin/env python3
"""sandbox.py - the host sandbox against its budgets and its peers, as ratios.

    bench/sandbox.py [--rounds N] [--quick]

Everything is interleaved in one run: one of each, again and again, and the medians
are compared, so that a busy machine slows all of them. Run it as an ordinary user
for the numbers that matter; peers that are not installed are left out.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRIT = os.environ.get("WRIT", str(ROOT / "build/release/prog/writ"))
ETC = ["alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "magic", "mime.types",
       "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"]


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
    start = time.perf_counter()
    proc = subprocess.run(cmd, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if proc.returncode:
        sys.exit(f"sandbox.py: {cmd[0]} ended with {proc.returncode}: {proc.stderr.decode()[-300:]}")
    return time.perf_counter() - start


def interleave(rounds, ways, cwd, before=lambda: None):
    """Median seconds of each way, one of each in turn."""
    took = {name: [] for name in ways}
    for i in range(rounds + 1):
        for name, cmd in ways.items():
            before()
            t = run(cmd, cwd)
            if i:  # the first of each warms the caches
                took[name].append(t)
    return {name: statistics.median(t) for name, t in took.items()}


def row(what, medians, peer, budget):
    for name, t in medians.items():
        if name == peer:
            continue
        ratio = t / medians[peer]
        verdict = "" if not name.startswith("writ") else "ok" if ratio <= budget else "MISSED"
        print(f"{what:<34}{name:<16}{t * 1000:>10.2f} ms {ratio:>7.2f} x {peer:<8} "
              f"{'<= ' + format(budget, '.2f') if name.startswith('writ') else '':<9}{verdict}", flush=True)


def start_up(work, rounds):
    ways = {"bwrap": [*bwrap(work), "--", "/bin/true"], "writ run": [WRIT, "run", "-q", "--", "/bin/true"],
            "plain": ["/bin/true"]}
    if shutil.which("firejail"):
        ways["firejail"] = ["firejail", "--noprofile", "--quiet", "--", "/bin/true"]
    row("cold start of /bin/true", interleave(rounds, ways, work), "bwrap", 0.5)


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


def inside(work, rounds):
    jobs = [("find /usr", "find /usr >/dev/null", 1.03), ("git status, 10k files", "git status >/dev/null", 1.03),
            ("make -j2, 31 files", "make -s clean; make -s -j2", 1.03),
            ("tar of /usr/include to a pipe", "tar cf - /usr/include | cat >/dev/null", 1.03),
            ("untar of 20k files", "rm -rf out; mkdir out; tar xf many.tar -C out", 2.5)]
    for what, script, budget in jobs:
        ways = {"native": ["sh", "-c", script], "writ run": [WRIT, "run", "-q", "--", "sh", "-c", script],
                "bwrap": [*bwrap(work), "--", "sh", "-c", script]}
        row(what, interleave(rounds, ways, work), "native", budget)


def live(work):
    """Milliseconds from asking to granted, and the memory of an idle session."""
    other = work.parent / "other"
    other.mkdir()
    sid = subprocess.run([WRIT, "session", "start"], cwd=work, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        took = []
        for _ in range(20):
            start = time.perf_counter()
            said = subprocess.run([WRIT, "allow", sid, f"read:{other}"], cwd=work, stderr=subprocess.PIPE, text=True, check=True)
            took.append(time.perf_counter() - start)
            subprocess.run([WRIT, "revoke", sid, said.stderr.split()[-1]], cwd=work, check=True)
        idle = interleave(20, {"ps": [WRIT, "version"]}, work)["ps"]
        ms = (statistics.median(took) - idle) * 1000
        print(f"{'live grant, without start-up of writ':<50}{ms:>10.2f} ms {'':<18}<= 1.00 ms {'ok' if ms <= 1 else 'MISSED'}")
        print(f"{'idle session, all its processes':<50}{pss(sid):>10.2f} MiB{'':<18}<= 1.50 MiB "
              f"{'ok' if pss(sid) <= 1.5 else 'MISSED'}")
    finally:
        subprocess.run([WRIT, "stop", sid], cwd=work)


def pss(sid):
    """Proportional set size of the supervisor and everything below it."""
    line = next(l for l in subprocess.run([WRIT, "ps"], stdout=subprocess.PIPE, text=True).stdout.splitlines() if sid in l)
    todo, total = [line.split()[1]], 0
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
    ap.add_argument("--quick", action="store_true", help="start-up only")
    opt = ap.parse_args()
    if not shutil.which("bwrap"):
        sys.exit("sandbox.py: install bubblewrap to compare with")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", "/var/tmp")) as d:
        os.environ.update(HOME=f"{d}/home", XDG_STATE_HOME=f"{d}/state", XDG_CONFIG_HOME=f"{d}/config")
        work = Path(d, "work")
        work.mkdir()
        start_up(work, opt.rounds)
        if not opt.quick:
            make_tree(work)
            inside(work, max(3, opt.rounds // 8))
            live(work)
        subprocess.run(["chmod", "-R", "u+rwx", d], check=False)


if __name__ == "__main__":
    main()
