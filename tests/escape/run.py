#!/usr/bin/env python3
"""run.py - tries every known way out of a sandbox, and says which ones work.

    run.py [--bound B] [--id ID] [--tier A|B] [--user NAME] [--json] [-v]
           [--under 'CMD...'] [--declare G=LEVEL,...]

Without --under it tests `writ run` ($WRIT, or the one in the build directory).
CMD is any command that runs another one; {work}, {out} and {dir} are replaced and
`-- program arguments` is appended. `--under ''` tests nothing at all.

Each attempt is first made without a sandbox: what does not work even then says
nothing here and is shown as `n.a.`. Then it is made inside and judged from outside.
A way out that the sandbox declared beforehand (`writ explain --json`, or --declare)
is shown as `gap`. Exit code 1 if anything escaped, did not run, or broke.
"""
import argparse
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
WEAK = {"none", "partial"}
# Rows that a gap of the record speaks of by name, whatever the level of their guarantee.
GAPS = {"ID-004": "bounding set"}
PASS = {"held", "gap", "n.a.", "works", "blocked"}
MEANING = {
    "held": "stayed inside; the same worked without a sandbox",
    "blocked": "stayed inside; the operation is refused everywhere, also where it would be harmless",
    "ESCAPED": "got out",
    "gap": "got out, or was not started, as declared beforehand",
    "n.a.": "does not work on this machine for this user even without a sandbox",
    "NOT RUN": "the attempt left no trace of having run inside",
    "works": "allowed work succeeds inside",
    "BROKEN": "allowed work fails inside",
}


class Suite:
    def __init__(self, opt):
        self.opt = opt
        self.base = Path(tempfile.mkdtemp(prefix="we-", dir=opt.dir))
        self.user = pwd.getpwnam(opt.user) if opt.user else None
        if self.user and os.geteuid() == 0:
            os.chown(self.base, self.user.pw_uid, self.user.pw_gid)
        self.base.chmod(0o755)
        self.program = self.find_program()
        self.rows = self.load_rows()
        self.levels = {}

    def find_program(self):
        given = self.opt.program or os.environ.get("WRIT_ESCAPE")
        here = self.base / "writ-escape"
        if given:
            shutil.copy(given, here)
        else:
            subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-static", "-w",
                            "-ftrivial-auto-var-init=zero", "-o", here, *sorted(HERE.glob("*.c"))], check=True)
        here.chmod(0o755)
        return str(here)

    def load_rows(self):
        rows = json.loads(subprocess.run([self.program, "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
        ids = [r["id"] for r in rows]
        assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
        o = self.opt
        return [r for r in rows if (not o.bound or r["bound"] in o.bound) and (not o.id or r["id"] in o.id)]

    def environment(self):
        """Little, so that what an attempt prints of it is nobody's secret."""
        who = self.user or pwd.getpwuid(os.geteuid())
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TERM", "TMPDIR") or k.startswith("WRIT_")}
        return {**env, "HOME": who.pw_dir, "USER": who.pw_name, "LOGNAME": who.pw_name, "SHELL": "/bin/sh",
                "XDG_STATE_HOME": str(self.base / "state"), "XDG_CONFIG_HOME": str(self.base / "config")}

    def start(self, argv, cwd=None, out=subprocess.DEVNULL, err=subprocess.DEVNULL, as_user=True):
        drop = {}
        if self.user and as_user and os.geteuid() == 0:
            drop = dict(user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[])
        return subprocess.Popen([str(a) for a in argv], cwd=cwd or "/", env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=out, stderr=err, start_new_session=True, **drop)

    def call(self, *argv, timeout=60, as_user=True):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            proc = self.start([self.program, *argv], out=out, err=err, as_user=as_user)
            try:
                proc.wait(timeout=timeout)
            except subprocess.TimeoutExpired:
                self.end(proc)
            out.seek(0), err.seek(0)
            return proc.returncode, out.read().decode(errors="replace"), err.read().decode(errors="replace")

    # --- what is tested ---

    def policy(self, scene, extra):
        file = scene / "policy.writ"
        file.write_text(f"version 1\nallow write {scene}/work\n" + (extra + "\n" if extra else ""))
        file.chmod(0o644)
        return file

    def wrap(self, scene, extra, bare):
        if bare or self.opt.under == "":
            return []
        if self.opt.under is not None:
            names = {"work": scene / "work", "out": scene / "out", "dir": scene}
            return [w.format(**names) for w in shlex.split(self.opt.under)] + ["--"]
        return [self.opt.writ, "run", "--tier", self.opt.tier, "--policy", self.policy(scene, extra), "--"]

    def declared(self, row, scene=None):
        """True if the sandbox said beforehand that it does not hold this row's guarantee."""
        levels, refused = self.guarantees(row["policy"])
        return refused or levels.get(row["guarantee"], "exact") in WEAK or GAPS.get(row["id"]) in levels["gaps"]

    def guarantees(self, extra):
        if self.opt.under is not None:
            told = dict(d.split("=") for d in self.opt.declare.split(",") if d)
            return {**told, "gaps": ()}, False
        if extra not in self.levels:
            scene = self.base / "explain"
            (scene / "work").mkdir(parents=True, exist_ok=True)
            if self.user:
                os.chown(scene / "work", self.user.pw_uid, self.user.pw_gid)
            proc = self.start([self.opt.writ, "explain", "--json", "--tier", self.opt.tier, "--policy",
                               self.policy(scene, extra)], cwd=scene / "work", out=subprocess.PIPE)
            try:
                told = json.loads(proc.communicate(timeout=30)[0])
                levels = {g: v["level"] for g, v in told["guarantees"].items()}
                levels["gaps"] = [g["what"] for g in told["gaps"]]
                self.levels[extra] = levels, told["refused"] > 0
            except (ValueError, KeyError, subprocess.TimeoutExpired):
                self.levels[extra] = {"gaps": ()}, False  # nothing said is nothing declared
        return self.levels[extra]

    # --- one scene ---

    def scene(self, rows, bare):
        """Returns {id: (HELD|ESCAPED|SILENT, why, said)} and what was written to standard error."""
        scene = Path(tempfile.mkdtemp(prefix="s", dir=self.base))
        if self.user and os.geteuid() == 0:
            os.chown(scene, self.user.pw_uid, self.user.pw_gid)
        scene.chmod(0o755)
        try:
            code, _, err = self.call("setup", scene, *[r["id"] for r in rows], timeout=120)
            if code:
                raise RuntimeError(f"setup of {rows[0]['id']} failed: {err.strip()}")
            if any("root-setup" in r["flags"] for r in rows):
                self.call("setup-root", scene, as_user=False)
            return self.play(scene, rows, bare)
        finally:
            self.call("teardown", scene)
            shutil.rmtree(scene, ignore_errors=True)

    def play(self, scene, rows, bare):
        flags, row = rows[0]["flags"] if len(rows) == 1 else [], rows[0]
        inner = [scene / "work" / "writ-escape", "attempt", ",".join(r["id"] for r in rows), scene]
        argv = self.wrap(scene, row["policy"] if len(rows) == 1 else "", bare) + inner
        if "launch" in flags:
            argv = [self.program, "launch", row["id"], scene, "--"] + argv
        out, err = self.base / (scene.name + ".out"), self.base / (scene.name + ".err")
        with open(out, "wb") as o, open(err, "wb") as e:
            proc = self.start(argv, cwd=scene / "work", out=o, err=e)
            self.wait(proc, scene, row, flags, 30 if len(rows) == 1 else 60 + 3 * len(rows))
        judge = self.call("judge", ",".join(r["id"] for r in rows), scene, out, timeout=300)[1]
        self.end(proc)
        text = err.read_text(errors="replace")
        out.unlink(), err.unlink()
        found = {}
        for line in judge.splitlines():
            id_, verdict, why, said = (line.split("\t") + ["", "", ""])[:4]
            found[id_] = (verdict, why, said)
        return found, text

    def wait(self, proc, scene, row, flags, timeout):
        if "kill-supervisor" in flags:
            beat = scene / "work" / row["id"] / "beat"
            for _ in range(60):
                if beat.exists() or proc.poll() is not None:
                    break
                time.sleep(0.05)
            proc.send_signal(signal.SIGKILL)
            proc.wait()
            time.sleep(1)  # what is promised: everything dead within a second
            return
        try:
            proc.wait(timeout=4 if "timed" in flags else timeout)
        except subprocess.TimeoutExpired:
            if "timed" not in flags:
                self.end(proc)

    @staticmethod
    def end(proc):
        """The process group is the one started here, nobody else's."""
        if proc.poll() is None:
            os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()

    def controls(self, rows):
        """Ids whose operation also works inside where it is allowed; one sandbox for all."""
        rows = [r for r in rows if r["control"]]
        if not rows or self.opt.no_controls:
            return None
        scene = Path(tempfile.mkdtemp(prefix="c", dir=self.base))
        if self.user and os.geteuid() == 0:
            os.chown(scene, self.user.pw_uid, self.user.pw_gid)
        scene.chmod(0o755)
        self.call("setup", scene, *[r["id"] for r in rows], timeout=120)
        ids = ",".join(r["id"] for r in rows) + ","
        argv = self.wrap(scene, "", False) + [scene / "work" / "writ-escape", "control", ids, scene]
        proc = self.start(argv, cwd=scene / "work", out=subprocess.PIPE)
        try:
            text = proc.communicate(timeout=60 + 3 * len(rows))[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.end(proc)
            text = ""
        self.call("teardown", scene)
        shutil.rmtree(scene, ignore_errors=True)
        return {r["id"] for r in rows if f"={r['id']} 0\n" in text}

    # --- all of it ---

    def all(self, bare):
        """Every row once: most in one sandbox, the others in one each."""
        found, errors = {}, []
        skip = [r for r in self.rows if (bare or self.opt.under == "") and "never-bare" in r["flags"]]
        found.update({r["id"]: ("SKIPPED", "not run without a sandbox", "") for r in skip})
        if not (os.geteuid() == 0 and self.user and self.user.pw_uid):
            raised = [r for r in self.rows if "root-setup" in r["flags"]]
            found.update({r["id"]: ("HELD", "needs root to prepare and a user to run", "") for r in raised})
            skip += raised
        rows = [r for r in self.rows if r not in skip]
        batch = [r for r in rows if "own" not in r["flags"] and not r["policy"]]
        own = [r for r in rows if r not in batch]
        if batch:
            result, err = self.scene(batch, bare)
            found.update(result)
            errors.append(err)
        serial = [r for r in own if "serial" in r["flags"]]
        with ThreadPoolExecutor(self.opt.jobs) as pool:
            for result, err in pool.map(lambda r: self.scene([r], bare), [r for r in own if r not in serial]):
                found.update(result)
                errors.append(err)
        for r in serial:
            result, err = self.scene([r], bare)
            found.update(result)
            errors.append(err)
        return found, errors

    def verdict(self, row, bare, inside, controls):
        seen = bare[0] in ("ESCAPED", "SKIPPED") or "inherent" in row["flags"]
        if "positive" in row["flags"]:
            if bare[0] != "ESCAPED":
                return "n.a."
            return "works" if inside[0] == "ESCAPED" else "BROKEN"
        if inside[0] == "ESCAPED":
            return "gap" if self.declared(row) else "ESCAPED"
        if not seen or inside[0] == "SKIPPED":
            return "n.a."
        if inside[0] != "HELD":
            return "gap" if self.guarantees(row["policy"])[1] else "NOT RUN"
        return "blocked" if controls is not None and row["control"] and row["id"] not in controls else "held"

    def without(self):
        """What works without a sandbox: the same for every sandbox, so it can be kept in a file."""
        kept = Path(self.opt.bare) if self.opt.bare else None
        if kept and kept.exists():
            bare = json.loads(kept.read_text())
            if all(r["id"] in bare for r in self.rows):
                return bare
        bare, _ = self.all(True)
        if kept:
            kept.write_text(json.dumps(bare))
        return bare

    def run(self):
        bare = self.without()
        inside, errors = self.all(False)
        controls = self.controls(self.rows)
        results = []
        for r in self.rows:
            b, i = (d.get(r["id"], ("SILENT", "", "")) for d in (bare, inside))
            results.append({**r, "verdict": self.verdict(r, b, i, controls), "why": i[1] or i[2], "bare": b[0],
                            "bare_said": b[1] or b[2], "said": i[2],
                            "control_works": None if controls is None or not r["control"] else r["id"] in controls})
        return results, errors

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def show(results, opt):
    names = [v for v in MEANING if any(r["verdict"] == v for r in results)]
    bounds = list(dict.fromkeys(r["bound"] for r in results))
    print(f"{'bound':<11}{'rows':>6}" + "".join(f"{n:>9}" for n in names))
    for b in [*bounds, None]:
        rows = [r for r in results if b is None or r["bound"] == b]
        counts = [sum(r["verdict"] == n for r in rows) for n in names]
        print(f"{b or 'total':<11}{len(rows):>6}" + "".join(f"{c or '.':>9}" for c in counts))
    for n in names:
        rows = [r for r in results if r["verdict"] == n]
        if not (opt.verbose or n not in PASS or n == "gap"):
            continue
        print(f"\n{n}: {MEANING[n]}")
        for r in rows:
            print(f"  {r['id']:<8}{r['guarantee']:<12}{r['what']}" + (f"  [{r['why'][:120]}]" if r["why"] else ""))
    seen = sum(r["verdict"] != "n.a." for r in results)
    outside = sum(r["judged"] == "outside" for r in results if r["verdict"] != "n.a.")
    control = [r["control_works"] for r in results if r["control_works"] is not None]
    print(f"\n{seen} of {len(results)} attempts mean something on this machine for this user; "
          f"{outside} of them are judged from outside; {sum(control)} of {len(control)} controls work inside")


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--bound", action="append", help="only rows of this bound")
    p.add_argument("--id", action="append", help="only this row")
    p.add_argument("--user", help="run as this user (as root only)")
    p.add_argument("--under", help="the sandbox to test, instead of writ")
    p.add_argument("--declare", default="", help="guarantees that sandbox does not claim: fs.read=none,...")
    p.add_argument("--tier", default="A", help="tier of writ: A or B")
    p.add_argument("--program", help="writ-escape, if it is built already")
    p.add_argument("--dir", default="/var/tmp", help="where scenes are made")
    p.add_argument("--bare", metavar="FILE", help="keep there what works without a sandbox, for further runs")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--no-controls", action="store_true", help="do not ask what else the sandbox refuses")
    p.add_argument("--json", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true", help="list every row")
    opt = p.parse_args()
    opt.writ = os.environ.get("WRIT", str(HERE.parent.parent / "build" / "release" / "prog" / "writ"))
    return opt


def main():
    opt = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that scenes are cleaned up
    suite = Suite(opt)
    try:
        results, errors = suite.run()
    finally:
        suite.close()
    if opt.json:
        print(json.dumps(results, indent=1))
    else:
        show(results, opt)
    bad = [r for r in results if r["verdict"] not in PASS]
    if any(r["verdict"] == "NOT RUN" for r in bad):
        text = next((e for e in errors if e.strip()), "")
        print("standard error of the sandbox:\n" + text[-1500:], file=sys.stderr)
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
