"""scope.py - limits that the user's systemd holds, with somebody who plays systemd."""
import json
import shutil
from pathlib import Path

from host import PYTHON, test

HERE = Path(__file__).resolve().parent
FACTS = HERE.parent / "fixtures/hosts/debian13-user-6.12.facts"


def play(w, mode, *args, n=[0]):
    n[0] += 1
    runtime = w.dir / f"runtime{n[0]}"
    runtime.mkdir()
    r = w.call([shutil.which("unshare"), "-m", PYTHON, HERE / "manager.py", mode, runtime, w.program, *args], timeout=60)
    try:
        return json.loads(r.out)
    except ValueError:
        raise AssertionError(f"the manager failed: {r}") from None


@test("a scope holds what no cgroup does", needs_root=True, alone=True)
def _(w):
    run = ("run", "--facts", FACTS, "--limit", "memory=100M", "--limit", "cpu=1.5", "--", "sh", "-c", "cat /proc/self/cgroup; exit 3")
    r = play(w, "good", *run)
    w.same(r["code"], 3, "the command runs", r)
    a = r["asked"] or {}
    sid = w.events("start")[0]["session"]
    w.same((a.get("member"), a.get("signature"), a.get("unit"), a.get("mode"), a.get("more")),
           ("StartTransientUnit", "ssa(sv)a(sa(sv))", f"writ-{sid}.scope", "fail", 0), "systemd was asked for one scope", a)
    p = a.get("properties", {})
    w.same((p.get("MemoryMax"), p.get("MemorySwapMax"), p.get("CPUQuotaPerSecUSec"), p.get("CollectMode")),
           (100 << 20, 0, 1500000, "inactive-or-failed"), "with the limits", p)
    w.ok(len(p.get("PIDs", [])) == 1, "for one process", p)
    w.ok("memory limit was reached, and 3 processes" in r["err"], "what the limit hit is read from it", r)
    w.same({h["by"] for h in (w.events("start")[0]["guarantees"]["guarantees"][g] for g in ("res.memory", "res.cpu"))},
           {"systemd scope"}, "and the record says what holds")
    for mode, text in (("without", "scope without the memory limit"), ("refuse", "no such luck"), ("elsewhere", "did not move"),
                       ("silent", "does not answer"), ("stranger", "no systemd of this user listens")):
        r = play(w, mode, *run)
        w.ok(r["code"] == (125 if mode == "silent" else 122) and text in r["err"] and not r["out"],
             f"{mode}: the command is not started", r)
    r = play(w, "refuse", "run", "--facts", FACTS, "--", "sh", "-c", "exit 3")
    w.same((r["code"], r["asked"]), (3, None), "without such a limit systemd is not asked", r)
    w.clean()


@test("the probe of a scope", needs_root=True, alone=True)
def _(w):
    script = ("mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && exec " + " ".join(
        [PYTHON, str(HERE / "manager.py"), "{}", str(w.dir / "{}"), w.program, "doctor", "--record"]))
    facts = {}
    for mode in ("good", "stranger"):
        (w.dir / mode).mkdir()
        r = w.call([shutil.which("unshare"), "-m", "sh", "-c", script.format(mode, mode)], timeout=60)
        facts[mode] = dict(l.split(" ", 1) for l in json.loads(r.out)["out"].splitlines() if " " in l)
    w.same(facts["good"]["systemd_user"], "yes", "it answers")
    w.same(facts["stranger"]["systemd_user"], "no", "one of another user does not count")
    if facts["good"]["cgroup"] != "v2":
        w.same({facts["good"][f] for f in ("scope_memory", "scope_cpu", "scope_pids")}, {"no"}, "and holds nothing without version 2 of cgroups")
    else:
        w.same({facts["good"][f] for f in ("scope_memory", "scope_cpu", "scope_pids")}, {"yes"}, "and its limits hold")


@test("explain names the scope")
def _(w):
    r = w.writ("explain", "--facts", FACTS, w.policy("allow write .", "limit memory 1G", "limit cpu 2"))
    w.ok(r.code == 0 and r.text.count("systemd scope") == 2, "where it would hold", r)
    old = HERE.parent / "fixtures/hosts/ubuntu22.04-5.15.facts"
    r = w.writ("explain", "--facts", old, w.policy("allow write .", "limit memory 1G", "limit cpu 2"))
    w.ok(r.code == 122 and r.text.count("systemd scope") == 1, "cpu not where systemd was not given it", r)
    none = HERE.parent / "fixtures/hosts/cgroup-v2-not-delegated.facts"
    r = w.writ("explain", "--facts", none, w.policy("allow write .", "limit memory 1G"))
    w.ok(r.code == 122 and "systemd scope" not in r.text, "not where there is none", r)
