#!/usr/bin/env python3
"""versions.py - one build of writ against an older one, as ratios.

    bench/versions.py [--rounds N] OLD NEW

OLD and NEW are build directories (build/release of two checkouts, with bench/ built). The
old build takes part twice, so that the table shows how far one program differs from itself
on this machine. NEW must stay within that spread, or within 1.05, whichever is larger.
Runs as the user who calls it. The builds keep their state in directories of their own.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
from measure import Times, Way
from sandbox import make_tree

LIMIT = 1.05
POOL_TURNS, POOL_ROUNDS = 10, 30
WORK = [("git status, 10k files", "git status >/dev/null"), ("find /usr/include", "find /usr/include >/dev/null"),
        ("make -j2, 31 files", "make -s clean; make -s -j2"), ("tar of /usr/include", "tar cf - /usr/include | cat >/dev/null")]


def environment(top, name, build):
    where = top / name
    where.mkdir()
    return {"XDG_STATE_HOME": str(where / "state"), "XDG_CONFIG_HOME": str(where / "config"), "WRIT": str(build / "prog/writ")}


def builds(top, old, new):
    """The programs to compare: name, build, environment."""
    return [(name, build, environment(top, name, build)) for name, build in (("old", old), ("old2", old), ("new", new))]


def run(who, work, rounds, script):
    ways = {name: Way([str(build / "prog/writ"), "run", "-q", "--", *script], env) for name, build, env in who}
    return measure.interleave(ways, rounds, work)


def pool(who, work):
    """Starts from a full pool; the pools of all builds take turns."""
    got = {name: Times([], []) for name, _, _ in who}
    for _ in range(POOL_TURNS):
        for name, build, env in who:
            out = subprocess.run([build / "bench/pool", str(POOL_ROUNDS), "/bin/true"], cwd=work, check=True,
                                 env={**os.environ, **env}, stdout=subprocess.PIPE, text=True).stdout
            got[name].wall += [int(ns) / 1e6 for ns in out.splitlines()[0].split()]
        who.append(who.pop(0))
    return got


def row(what, got):
    old, again, new = (got[k].median for k in ("old", "old2", "new"))
    base = min(old, again)
    allowed = max(LIMIT, max(old, again) / base)
    print(f"{what:24} {old:9.2f} {again:9.2f} {new:9.2f} ms   new/old {new / base:.3f}, allowed {allowed:.3f}", flush=True)
    return new / base <= allowed


def main():
    ap = argparse.ArgumentParser(description="one build against an older one")
    ap.add_argument("--rounds", type=int, default=300)
    ap.add_argument("old", type=Path)
    ap.add_argument("new", type=Path)
    opt = ap.parse_args()
    measure.adopt_orphans()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", "/var/tmp")) as d:
        top = Path(d)
        work = top / "work"
        work.mkdir()
        make_tree(work)
        who = builds(top, opt.old.resolve(), opt.new.resolve())
        good = [row("start of /bin/true", run(who, work, opt.rounds, ["/bin/true"])), row("start from a warm pool", pool(who, work))]
        good += [row(what, run(who, work, max(12, opt.rounds // 6), ["sh", "-c", script])) for what, script in WORK]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
