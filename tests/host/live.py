"""live.py - sessions that run: grants, listing, stopping, more commands."""
import base64
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from host import OTHER_USER, Control, Terminal, children, code_of, places, test, wait_for
from bounds import within

# Says every 50 ms whether it can read $1 and write $2; the file $0.stop ends it.
PROBE = """
while [ ! -e stop ]; do
  if cat "$1" >/dev/null 2>&1; then echo read yes; else echo read no; fi
  if [ -n "$2" ]; then if echo x 2>/dev/null >> "$2"; then echo write yes; else echo write no; fi; fi
  sleep 0.05
done; exit 11
"""


class Probe:
    """A session that keeps trying, and what it last found."""

    def __init__(self, w, read, write="", opts=(), **kw):
        self.w, self.path = w, w.dir / "probe"
        self.out = open(self.path, "wb")
        self.proc, self.id = w.background(PROBE, "sh", str(read), str(write), opts=opts, stdout=self.out, **kw)

    def now(self, what, *answers):
        """Does it come to find one of these, with what is written from now on?"""
        start = self.path.stat().st_size
        return wait_for(lambda: any(f"\n{what} {a}\n" in "\n" + self.path.read_text()[start:].partition("\n")[2] for a in answers), 5)

    def end(self):
        (self.w.ws / "stop").write_text("")
        code = self.proc.wait(10)
        (self.w.ws / "stop").unlink()
        self.out.close()
        return code, self.proc.stderr.read().decode()


def outside(w, name="outside"):
    d = w.dir / name
    d.mkdir(exist_ok=True)
    (d / "file").write_text("data")
    return d


@test("a read is granted and taken back")
def _(w):
    for kind in ("a directory", "a file"):
        d = outside(w)
        p = Probe(w, d / "file")
        w.ok(p.now("read", "no"), f"{kind}: it fails at first")
        r = w.writ("allow", p.id, f"read:{d if kind == 'a directory' else d / 'file'}")
        w.exits(r, 0, f"{kind}: allow")
        m = re.search(r"writ revoke (\w+) (\d+)", r.said)
        w.ok(m, f"{kind}: says how to take it back", r)
        w.ok(p.now("read", "yes"), f"{kind}: the same read succeeds in the same session")
        w.exits(w.writ("revoke", p.id, m[2] if m else "1"), 0, f"{kind}: revoke")
        w.ok(p.now("read", "no"), f"{kind}: it fails again")
        code, said = p.end()
        w.same(code, 11, f"{kind}: the session went on all the time", said)
        w.same([e["event"] for e in w.events() if e["event"] in ("allow", "revoke")], ["allow", "revoke"], f"{kind}: on record")
    w.same((d / "file").read_text(), "data", "and nothing was changed")
    w.clean()


@test("a write is granted and taken back")
def _(w):
    for kind in ("a directory", "a file"):
        d = outside(w)
        p = Probe(w, d / "file", d / "file")
        w.ok(p.now("write", "no"), f"{kind}: it fails at first")
        w.exits(w.writ("allow", p.id, f"read:{d}"), 0, f"{kind}: allow read")
        w.ok(p.now("read", "yes") and p.now("write", "no"), f"{kind}: reading is not writing")
        w.exits(w.writ("allow", p.id, "write", d if kind == "a directory" else d / "file"), 0, f"{kind}: allow write")
        w.ok(p.now("write", "yes"), f"{kind}: it succeeds")
        w.exits(w.writ("revoke", p.id, "2"), 0, f"{kind}: revoke")
        w.ok(p.now("write", "no"), f"{kind}: it fails again")
        w.ok(p.now("read", "yes"), f"{kind}: what was granted to read stays")
        w.same(p.end()[0], 11, f"{kind}: the session went on")
        w.ok("x" in (d / "file").read_text(), f"{kind}: it was really written")


@test("in the workspace, under a policy that is narrow")
def _(w):
    (w.ws / "data").mkdir()
    (w.ws / "data/f").write_text("d")
    p = Probe(w, w.ws / "data/f", w.ws / "data/f", opts=("--policy", w.policy("allow read .")))
    w.ok(p.now("read", "yes") and p.now("write", "no"), "may read and not write")
    w.exits(w.writ("allow", p.id, "write:./data"), 0, "allow write, by a relative path")
    w.ok(p.now("write", "yes"), "it succeeds")
    w.exits(w.writ("revoke", p.id, "1"), 0, "revoke")
    w.ok(p.now("write", "no") and p.now("read", "yes"), "as before")
    w.same(p.end()[0], 11, "the session went on")


@test("by the number of a denial", needs_root=True)
def _(w):
    for top, user in places()[1:]:
        by_number(w.at(top, user), "root" if user is None else "a user")


def by_number(w, who):
    d = outside(w)
    if w.user is not None:
        os.chown(d / "file", w.user, w.user)
    script = 'cat "$1"; while [ ! -e stop ]; do cat "$1" 2>/dev/null && break; sleep 0.05; done; exit 11'
    proc, sid = w.background(script, "sh", str(d / "file"))
    kept = w.state / f"sessions/{sid}.hints"
    line = wait_for(lambda: kept.exists() and kept.read_text(), 3)
    w.ok(line and json.loads(line)["object"] == str(d / "file"), f"{who}: the file that a command named is a hint", line)
    w.same(w.events("denied"), [], f"{who}: and not on record as denied")
    r = w.writ("allow", f"{sid}#h1")
    w.ok(r.code == 0 and str(d / "file") in r.said, f"{who}: allow ID#h1 says what that is", r)
    wait_for(lambda: proc.poll() is not None, 3)
    (w.ws / "stop").write_text("")
    out, err = proc.communicate(timeout=10)
    w.same((out, proc.returncode), (b"data", 11), f"{who}: the read succeeds in the same session", err)
    w.ok(f"writ allow {sid}#h1".encode() in err, f"{who}: the line it printed said what to type", err)
    (w.ws / "stop").unlink()
    w.exits(w.writ("allow", f"{sid}#h1"), 125, f"{who}: a session that has ended")
    proc, sid = w.background("while [ ! -e stop ]; do echo x >> ./f; sleep 0.05; done 2>/dev/null; exit 11",
                             opts=("--policy", w.policy("allow read .")))
    w.ok(wait_for(lambda: w.events("denied"), 3), f"{who}: a write that failed is on record")
    w.exits(w.writ("allow", sid, f"write:{w.ws}"), 0, f"{who}: the directory is granted")
    w.ok(wait_for(lambda: (w.ws / "f").exists(), 3), f"{who}: the write succeeds")
    (w.ws / "stop").write_text("")
    out, err = proc.communicate(timeout=10)
    w.ok(f"writ allow {sid}#1".encode() in err, f"{who}: and the line said what to type", err)
    w.same([json.loads(l)["hint"] for l in err.decode().splitlines() if l.startswith("{")], [], f"{who}: no other lines")


def keeper(proc):
    """The process that mounts and unmounts for the session of @proc."""
    return next(p for p in children(proc.pid) if Path(f"/proc/{p}/cmdline").read_bytes().startswith(b"writ-init"))


def ask(w, sid, method, **params):
    """A connection where the session answers a request; it has begun with it."""
    asked = Control(w, sid)
    asked.send(method, **params)
    other = Control(w, sid)
    other.call("session.get")
    other.close()
    return asked


def grants(w):
    return [(e["event"], e["number"], e["rule"]) for e in w.events() if e["event"] in ("allow", "revoke")]


@test("a grant in tier B is taken back, whatever became of its path")
def _(w):
    if w.run("true", opts=("--tier", "B")).code == 122:
        w.ok(True, "not run # SKIP there is no tier B here")
        return
    d = outside(w)
    p = Probe(w, w.ws, d / "file", opts=("--tier", "B"))
    w.exits(w.writ("allow", p.id, f"write:{d}"), 0, "allow")
    w.ok(p.now("write", "yes"), "it writes there")
    shutil.rmtree(d)
    w.exits(w.writ("revoke", p.id, "1"), 0, "revoke, with the directory gone")
    outside(w)
    w.ok(p.now("write", "no"), "nothing is written to one that is made again")
    p.end()
    w.same((d / "file").read_text(), "data", "and nothing was")


@test("grants of one place go in the order that they can")
def _(w):
    w = w.at("/var/tmp")
    d = outside(w)
    (d / "sub").mkdir()
    for name, first, second in (("the same", d, d), ("below", d, d / "file"), ("above", d / "sub", d)):
        p = Probe(w, d / "sub", d / "file")
        w.exits(w.writ("allow", p.id, f"read:{first}"), 0, f"{name}: allow read")
        w.exits(w.writ("allow", p.id, f"write:{second}"), 0, f"{name}: allow write")
        w.ok(p.now("write", "yes"), f"{name}: it writes")
        r = w.writ("revoke", p.id, "1")
        w.ok(r.code == 125 and f"writ revoke {p.id} 2" in r.said, f"{name}: what lies under another stays, and it says what to do", r)
        w.exits(w.writ("revoke", p.id, "2"), 0, f"{name}: revoke the second")
        size = (d / "file").stat().st_size
        w.ok(p.now("write", "no") if first == d else p.now("write", "yes"), f"{name}: no more than before")
        w.same((d / "file").stat().st_size, size, f"{name}: nothing reaches the file")
        w.exits(w.writ("revoke", p.id, "1"), 0, f"{name}: and then the first")
        w.same(p.end()[0], 11, f"{name}: the session went on")
        w.same([e[:2] for e in grants(w)], [("allow", 1), ("allow", 2), ("revoke", 2), ("revoke", 1)], f"{name}: on record")
    for name, first, second in (("the same", d, d), ("below", d, d / "file"), ("above", d / "file", d)):
        p = Probe(w, d / "file", d / "file")
        w.exits(w.writ("allow", p.id, f"write:{first}"), 0, f"{name}: allow write")
        r = w.writ("allow", p.id, f"read:{second}")
        w.ok(r.code == 125 and f"writ revoke {p.id} 1" in r.said, f"{name}: less is not laid over more, and it says what to do", r)
        w.ok(p.now("write", "yes"), f"{name}: it goes on to write")
        w.exits(w.writ("revoke", p.id, "1"), 0, f"{name}: revoke")
        size = (d / "file").stat().st_size
        w.ok(p.now("write", "no", "yes"), f"{name}: it tries again")
        w.same((d / "file").stat().st_size, size, f"{name}: nothing reaches the file")
        mounts = Path(f"/proc/{children(children(keeper(p.proc))[0])[0]}/mountinfo").read_text()
        w.ok(f" {first} " not in mounts, f"{name}: nothing is mounted there any more", mounts)
        p.end()


@test("an allow that fails gives nothing")
def _(w):
    odd = w.dir / "/".join([" \u00e9" * 60] * 9)
    odd.mkdir(parents=True)
    (odd / "file").write_text("data")
    p = Probe(w, odd / "file")
    for _ in range(2):
        r = w.writ("allow", p.id, f"read:{odd}")
        w.ok(r.code == 125 and "too long" in r.said and "Success" not in r.said, "a path that no rule can hold is refused, in words", r)
    w.ok(p.now("read", "no"), "and cannot be read")
    deep = w.dir / "/".join(["d"] * 140)
    deep.mkdir(parents=True)
    w.exits(w.writ("allow", p.id, f"read:{deep}"), 125, "one of too many names")
    nul = {"base64": base64.b64encode(f"{w.state}\0x".encode()).decode()}
    w.same(code_of(ask(w, p.id, "grant.allow", action="read", object=nul).receive()), "denied", "one that goes on after its end")
    for _ in range(300):
        ask(w, p.id, "grant.allow", action="read", object="/proc").close()
    d = outside(w)
    r = w.writ("allow", p.id, f"read:{d}")
    w.ok(r.code == 0 and f"writ revoke {p.id} 1" in r.said, "what was refused is not counted", r)
    w.same(p.end()[0], 11, "the session went on")
    w.same(grants(w), [("allow", 1, f"read {d}")], "nor on record")


@test("a grant that is revoked while it is made")
def _(w):
    d = outside(w)
    p = Probe(w, d / "file", d / "file")
    k = keeper(p.proc)
    os.kill(k, signal.SIGSTOP)
    allow = ask(w, p.id, "grant.allow", action="write", object=str(d))
    revokes = [ask(w, p.id, "grant.revoke", grant=1) for _ in range(2)]
    r = w.writ("allow", p.id, f"write:{d}/file")
    w.ok(r.code == 125 and "being taken back" in r.said, "nothing is laid over it meanwhile", r)
    w.same(select.select((allow, *revokes), (), (), 0)[0], [], "all of them wait")
    os.kill(k, signal.SIGCONT)
    w.same([x.receive()["result"] for x in revokes], [{}] * 2, "whoever revokes it hears that it is gone")
    w.same(allow.receive()["error"]["message"], "it was revoked before it was there", "whoever asked for it hears that it was revoked")
    w.ok(p.now("write", "no", "yes"), "the session tries again")
    w.same((d / "file").read_text(), "data", "and nothing reaches the file")
    w.exits(w.writ("revoke", p.id, "1"), 125, "there is no such grant any more")
    w.exits(w.writ("allow", p.id, f"write:{d}"), 0, "and the next")
    w.ok(wait_for(lambda: "x" in (d / "file").read_text(), 5), "is held")
    p.end()
    w.same([e[:2] for e in grants(w)], [("allow", 1), ("revoke", 1), ("allow", 2)], "on record in that order")


@test("grants are no change of mounts from outside")
def _(w):
    d = outside(w)
    (w.ws / "secret").write_text("s")
    p = Probe(w, d / "file", opts=("--policy", w.policy("allow write .", "deny read ./secret")))
    for i in range(1, 6):
        w.exits(w.writ("allow", p.id, f"read:{d}"), 0, f"allow {i}")
        w.exits(w.writ("revoke", p.id, f"{i}"), 0, f"revoke {i}")
    w.same(w.events("mounts"), [], "none is on record as that")
    (w.ws / "new").write_text("n")
    os.rename(w.ws / "new", w.ws / "secret")
    w.ok(wait_for(lambda: w.events("mounts"), 3), "control: one from outside is")
    p.end()


def jail_mounts(proc):
    """The mounts of the jail of the run @proc, as its command sees them."""
    command = wait_for(lambda: children(children(keeper(proc))[0]), 5)[0]
    return Path(f"/proc/{command}/mountinfo").read_text()


@test("a revoke takes back the granted mount, whatever became of its path", needs_root=True)
def _(w):
    for top, user in places()[1:]:
        revoke_bent(w.at(top, user), "root" if user is None else "a user")


def revoke_bent(w, who):
    for name in ("in/sys", "in/priv", "in/data"):
        (w.ws / name).mkdir(parents=True)
    (w.ws / "priv").mkdir()
    (w.ws / "priv/name").write_text("s")
    file = w.ws / "single"
    file.write_text("f")
    for p in (w.ws / "in", *(w.ws / "in").iterdir(), file) if w.user is not None else ():
        os.chown(p, w.user, w.user)
    bend = "mv in in2; ln -s /proc in; : > bent; while [ ! -e again ]; do sleep 0.05; done; rm in; ln -s . in; : > bent2; while [ ! -e stop ]; do sleep 0.05; done; exit 11"
    proc, sid = w.background(f"while [ ! -e go ]; do sleep 0.05; done; {bend}", opts=("--policy", w.policy("allow write .", "deny read ./priv")))
    for path in ("in/sys", "in/priv", "in/data", "single"):
        w.exits(w.writ("allow", sid, f"write:{w.ws}/{path}"), 0, f"{who}: allow {path}")
    before = jail_mounts(proc)
    w.ok(" /proc/sys " in before and f" {w.ws}/priv " in before and f" {w.ws}/in/sys " in before, f"{who}: control: masks and grants are there", before)
    w.exits(w.writ("revoke", sid, "4"), 0, f"{who}: revoke of a file")
    w.exits(w.writ("revoke", sid, "3"), 0, f"{who}: revoke before the path is bent")
    w.ok(f" {w.ws}/in/data " not in jail_mounts(proc) and f" {w.ws}/single " not in jail_mounts(proc), f"{who}: control: it detaches", jail_mounts(proc))
    (w.ws / "go").write_text("")
    w.ok(wait_for(lambda: (w.ws / "bent").exists(), 5), f"{who}: the path leads to /proc now")
    r = w.writ("revoke", sid, "1")
    after = jail_mounts(proc)
    w.ok(r.code == 0 and " /proc/sys " in after, f"{who}: /proc/sys keeps its mount", r)
    w.ok(f" {w.ws}/in2/sys " not in after, f"{who}: the granted mount is gone", after)
    (w.ws / "again").write_text("")
    w.ok(wait_for(lambda: (w.ws / "bent2").exists(), 5), f"{who}: the path leads to the hidden directory now")
    r = w.writ("revoke", sid, "2")
    after = jail_mounts(proc)
    w.ok(r.code == 0 and f" {w.ws}/priv " in after, f"{who}: the hidden directory keeps its mask", r)
    w.ok(f" {w.ws}/in2/priv " not in after, f"{who}: the granted mount is gone, too", after)
    (w.ws / "stop").write_text("")
    w.same(proc.wait(10), 11, f"{who}: the session went on")
    for name in ("stop", "go", "again"):
        (w.ws / name).unlink()


@test("a revoke that finds its mount gone ends the session")
def _(w):
    w = w.at("/var/tmp" if os.geteuid() else "/srv")
    (w.ws / "in/x").mkdir(parents=True)
    proc, sid = w.background("while [ ! -e go ]; do sleep 0.05; done; mv in in2; : > moved; while [ ! -e stop ]; do sleep 0.05; done; exit 11")
    w.exits(w.writ("allow", sid, "write:./in/x"), 0, "allow")
    (w.ws / "go").write_text("")
    w.ok(wait_for(lambda: (w.ws / "moved").exists(), 5), "the session renames the directory above it")
    w.exits(w.writ("allow", sid, "write:./in2/x"), 0, "allow the same place under its new name")
    w.same(jail_mounts(proc).count(f" {w.ws}/in2/x "), 2, "control: one mount lies on the other")
    w.exits(w.writ("revoke", sid, "1"), 0, "revoke the lower one")
    w.same(jail_mounts(proc).count(f" {w.ws}/in2/x "), 0, "both are gone")
    w.exits(w.writ("revoke", sid, "2"), 125, "revoke the upper one, which is gone")
    w.same(proc.wait(10), 125, "the session ended")


@test("no grant covers what is the session's own")
def _(w):
    d = outside(w)
    proc, sid = w.background("while [ ! -e stop ]; do sleep 0.05; done; exit 11")
    before = jail_mounts(proc)
    for path in ("/run", "/etc", "/var", "/tmp"):
        r = w.writ("allow", sid, f"read:{path}")
        w.ok(r.code == 125 and "own" in r.said, f"read {path}: refused, in words", r)
    w.same(jail_mounts(proc), before, "nothing was mounted")
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "control: another directory is granted")
    w.ok(jail_mounts(proc) != before, "control: and mounted")
    (w.ws / "stop").write_text("")
    w.same(proc.wait(10), 11, "the session went on")


@test("a grant carries no mount of the kernel along", needs_root=True)
def _(w):
    for top, user in places()[1:]:
        no_kernel_mounts(w.at(top, user), "root" if user is None else "a user")


def no_kernel_mounts(w, who):
    d = outside(w)
    for name in ("pro c", "sys", "data"):
        (d / name).mkdir()
    (d / "procfile").write_text("")
    inner = f"""
mount -t proc proc "$1/pro c" && mount --bind /sys "$1/sys" && mount -t tmpfs data "$1/data" && mount --bind /proc/version "$1/procfile" || exit 99
echo kept > "$1/data/file"; chmod 755 "$1/data"
shift; exec "$@"
"""
    drop = () if w.user is None else ("setpriv", f"--reuid={w.user}", f"--regid={w.user}", "--clear-groups")
    script = """
d=$1; writ=$2
sid=$($writ session start -q) || exit 98
look() { $writ session exec $sid -- sh -c 'for p; do if [ -r "$p" ] && cat "$p" >/dev/null 2>&1; then echo "yes $p"; else echo "no $p"; fi; done' sh "$d/file" "$d/data/file" "$d/pro c/1/cmdline" "$d/pro c/version" "$d/sys/kernel/mm/transparent_hugepage/enabled" "$d/procfile"; }
$writ allow $sid "read:$d" || exit 97
look
$writ session exec $sid -- grep -c " $d" /proc/self/mountinfo
$writ allow $sid "read:$d/pro c"; echo "direct $?"
$writ revoke $sid 1; echo "revoke $?"
look
$writ stop $sid
"""
    r = w.call(["unshare", "-m", "--propagation", "private", "sh", "-c", inner, "sh", d, *drop, "sh", "-c", script, "sh", d, w.program], as_user=0)
    lines = r.text.splitlines()
    w.same(lines[:6], [f"yes {d}/file", f"yes {d}/data/file", f"no {d}/pro c/1/cmdline", f"no {d}/pro c/version",
                       f"no {d}/sys/kernel/mm/transparent_hugepage/enabled", f"no {d}/procfile"], f"{who}: its files, and no more", r)
    w.ok("direct 125" in lines and "the kernel's" in r.said, f"{who}: nor is one granted by itself", r)
    w.ok("revoke 0" in lines and lines[-6:] == ["no" + l[l.index(" "):] for l in lines[:6]], f"{who}: revoked", r)


@test("a number grants what was denied, and nothing else", needs_root=True)
def _(w):
    for top, user in places()[1:]:
        for tier in "AB":
            who = f"{'root' if user is None else 'a user'}, tier {tier}"
            if w.at(top, user).run("true", opts=("--tier", tier)).code == 122:
                w.ok(True, f"{who}: not run # SKIP there is no such tier here")
                continue
            number_bent(w.at(top, user), tier, who)


def number_bent(w, tier, who):
    d = w.ws.parent / "outside"
    for p in (w.ws / "sub", w.ws / "kept", w.ws / "swapped", d):
        p.mkdir()
    (d / ".envrc").write_text("data")
    (w.ws / "kept/.envrc").write_text("k")
    (w.ws / "swapped/.envrc").write_text("s")
    for p in (w.ws / "sub", w.ws / "kept", w.ws / "swapped", d, d / ".envrc", w.ws / "kept/.envrc", w.ws / "swapped/.envrc") if w.user is not None else ():
        os.chown(p, w.user, w.user)
    script = """
(echo x > sub/.envrc; echo x > kept/.envrc; echo x > swapped/.envrc) 2>/dev/null
mv sub sub.old; ln -s "$1" sub; : > bent
while [ ! -e stop ]; do cat "$1/.envrc" 2>/dev/null; sleep 0.05; done; exit 11"""
    proc, sid = w.background(script, "sh", str(d), opts=("--tier", tier))
    w.ok(wait_for(lambda: (w.ws / "bent").exists(), 5), f"{who}: the link is there")
    w.same([e["object"] for e in w.events("denied")][:3], [f"{w.ws}/{n}/.envrc" for n in ("sub", "kept", "swapped")], f"{who}: control: three denials")
    (w.ws / "new").write_text("n")
    os.replace(w.ws / "new", w.ws / "swapped/.envrc")
    r = w.writ("allow", f"{sid}#1")
    w.ok(r.code == 125 and "link" in r.said and "granted" not in r.said, f"{who}: a link has taken its place: refused, in words", r)
    r = w.writ("allow", f"{sid}#3")
    w.ok(r.code == 125 and "is not what it was" in r.said, f"{who}: another file has taken its place: refused, in words", r)
    r = w.writ("allow", f"{sid}#2")
    w.ok(r.code == 0 and f"{w.ws}/kept/.envrc" in r.said, f"{who}: control: what is as it was is granted", r)
    time.sleep(0.3)
    (w.ws / "stop").write_text("")
    out, err = proc.communicate(timeout=10)
    w.same(proc.returncode, 11, f"{who}: the session went on", err)
    if tier == "A":
        w.same(out, b"", f"{who}: nothing outside was read", err)
    w.same([e[2] for e in grants(w)], [f"write {w.ws}/kept/.envrc"], f"{who}: on record")


@test("a hint grants the file that was named, and no other")
def _(w):
    w = w.at("/var/tmp" if os.geteuid() else "/srv")  # hints say nothing about /tmp
    d = outside(w)
    (d / "other").write_text("data")
    script = 'cat "$1"; cat "$2"; while [ ! -e stop ]; do sleep 0.05; done; exit 11'
    proc, sid = w.background(script, "sh", str(d / "file"), str(d / "other"), opts=("--explain-denials",))
    kept = w.state / f"sessions/{sid}.hints"
    w.ok(wait_for(lambda: kept.exists() and len(kept.read_text().splitlines()) == 2, 5), "control: two hints")
    (d / "new").write_text("new")
    os.replace(d / "new", d / "file")
    r = w.writ("allow", f"{sid}#h1")
    w.ok(r.code == 125 and "is not what it was" in r.said, "another file is there now: refused", r)
    w.exits(w.writ("allow", f"{sid}#h2"), 0, "control: the one that is as it was")
    (w.ws / "stop").write_text("")
    w.same(proc.wait(10), 11, "the session went on")


@test("a grant attaches the object that the client means")
def _(w):
    d = outside(w)
    p = Probe(w, d / "file")
    st = d.stat()
    for inode in (f"{st.st_dev}:{st.st_ino + 1}", f"{st.st_dev + 1}:{st.st_ino}"):
        r = ask(w, p.id, "grant.allow", action="read", object=str(d), inode=inode).receive()
        w.ok("another object" in r.get("error", {}).get("message", ""), "another one is not attached", r)
    for inode in ("", "1", "x:1", "1:0", 7):
        w.same(code_of(ask(w, p.id, "grant.allow", action="read", object=str(d), inode=inode).receive()), "invalid_params", f"no identity: {inode}")
    w.ok(p.now("read", "no"), "nothing can be read")
    r = ask(w, p.id, "grant.allow", action="read", object=str(d), inode=f"{st.st_dev}:{st.st_ino}").receive()
    w.ok("result" in r and p.now("read", "yes"), "control: the right one is", r)
    p.end()


@test("an empty name is no session")
def _(w):
    d = outside(w)
    proc, sid = w.background("while [ ! -e stop ]; do sleep 0.05; done; exit 11")
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "control: its id is")
    for args in (("stop", ""), ("allow", "", f"read:{d}"), ("allow", "#1"), ("allow", "#h1"), ("revoke", "", "1"), ("session", "stop", ""),
                 ("session", "exec", "", "--", "true"), ("session", "attach", ""), ("session", "denials", "")):
        r = w.writ(*args)
        w.ok(r.code == 125 and "which session" in r.said, f"{' '.join(a or repr(a) for a in args[:2])}: refused, in words", r)
    w.same(grants(w), [("allow", 1, f"read {d}")], "nothing was granted or revoked")
    w.exits(w.writ("revoke", sid[:4], "1"), 0, "control: the beginning of its id is enough")
    (w.ws / "stop").write_text("")
    w.same(proc.wait(10), 11, "the session went on")


@test("grants that make no sense")
def _(w):
    d = outside(w)
    proc, sid = w.background("sleep 30", w.mark)
    for name, args in (("no session", ("allow", "zzzz", f"read:{d}")), ("no rule", ("allow", sid)),
                       ("another verb", ("allow", sid, "listen:8080")), ("a path that is missing", ("allow", sid, "read:./none")),
                       ("no such denial", ("allow", f"{sid}#99")), ("denial zero", ("allow", f"{sid}#0")),
                       ("denial x", ("allow", f"{sid}#x")), ("no such grant", ("revoke", sid, "7")),
                       ("no number", ("revoke", sid, "x")), ("nothing", ("allow",)), ("an empty path", ("allow", sid, "read:"))):
        r = w.writ(*args)
        w.ok(r.code == 125 and r.said.startswith("writ: "), f"{name}: refused, in words", r)
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "control: and after all that one that does")
    name = d / ("n" * 200 + "/" + "m" * 200)
    name.mkdir(parents=True)
    w.exits(w.writ("allow", sid, f"read:{name}"), 0, "a long path")
    odd = d / "two  blanks\nand a line"
    odd.mkdir()
    r = w.writ("allow", sid, f"read:{odd}")
    w.ok(r.code == 0 or "writ: " in r.said, "an odd path", r)
    proc.kill()


@test("what no policy could grant, no grant does")
def _(w):
    (w.home / ".config/writ").mkdir(parents=True)
    for path in ("/proc", "/sys", "/dev", str(w.state), str(w.home / ".config/writ"), "/"):
        proc, sid = w.background("sleep 30", w.mark)
        r = w.writ("allow", sid, f"write:{path}")
        w.ok(r.code != 0, f"write {path.replace(str(w.home), '~')} is refused", r)
        proc.terminate()
        proc.wait()
    w = w.at(places()[-1][0])
    (w.ws / "secret").mkdir()
    (w.ws / "secret/f").write_text("s")
    p = Probe(w, w.ws / "secret/f", w.ws / "secret/f", opts=("--policy", w.policy("allow write .", "deny read ./secret")))
    w.ok(p.now("read", "no") and p.now("write", "no"), "control: a line denies it")
    w.writ("allow", p.id, f"write:{w.ws}/secret")
    w.ok(p.now("read", "no") and p.now("write", "no"), "what a line denies stays denied")
    p.end()


@test("a grant is seen by what is already running, and by nobody else")
def _(w):
    d = outside(w)
    a = Probe(w, d / "file")
    other = w.dir / "otherws"
    other.mkdir()
    b, _ = w.background('sleep 1.5; cat "$1"', "sh", str(d / "file"), cwd=other)
    w.exits(w.writ("allow", a.id, f"read:{d}"), 0, "allow in one session")
    w.ok(a.now("read", "yes"), "it counts there")
    out, _ = b.communicate(timeout=10)
    w.same(out, b"", "and not in another")
    a.end()
    r = w.sh('cat "$1"', "sh", str(d / "file"))
    w.ok(r.code and not r.out, "nor in the next", r)


@test("--always")
def _(w):
    d = outside(w)
    p = Probe(w, d / "file")
    r = w.writ("allow", "--always", p.id, f"read:{d}")
    w.exits(r, 0, "allow --always")
    m = re.search(r"adding to (\S+): allow read", r.said)
    w.ok(m and str(d) in r.said, "shows the rule and where it goes", r)
    w.ok(p.now("read", "yes"), "it counts at once")
    w.same(p.end()[0], 11, "the session ends")
    text = open(m[1]).read() if m else ""
    w.ok(f"allow read {d}" in text and text.startswith("version 1\n"), "the policy of the project has it", text)
    w.exits(w.writ("check", m[1] if m else ""), 0, "and is right")
    r = w.sh('cat "$1"', "sh", str(d / "file"))
    w.same(r.out, b"data", "the next session has it from the start", r)
    r = w.sh("touch still")
    w.exits(r, 0, "and may still write the workspace, as before")
    evil = w.ws / "a\nallow write " / "usr"
    evil.mkdir(parents=True)
    p = Probe(w, evil)
    w.writ("allow", "--always", p.id, f"read:{evil}")
    p.end()
    lines = [l.strip() for f in (w.home / ".config/writ/projects").iterdir() for l in f.read_text().splitlines()]
    w.ok("allow write /usr" not in lines, "a name with a newline in it adds no rule", "\n".join(lines))
    if m:
        os.unlink(m[1])
    odd = w.dir / "odd \"name\" # *"
    odd.mkdir()
    (odd / "f").write_text("odd")
    p = Probe(w, odd / "f")
    r = w.writ("allow", "--always", p.id, f"read:{odd}")
    w.ok(r.code == 125 and "granted" in r.said and "unusual characters" in r.said,
         "a path that needs quotes is granted, but not written down", r)
    p.end()
    r = w.sh('cat "$1"', "sh", str(odd / "f"))
    w.same(r.out, b"", "so the next session does not have it", r)


@test("ps and stop")
def _(w):
    r = w.writ("ps")
    w.ok(r.code == 0 and "no session is running" in r.said and not r.out, "none", r)
    w.same(w.writ("ps", "--json").out, b"[]\n", "none, for machines")
    proc, sid = w.background("trap '' TERM; echo 'a\033[31mb' >/dev/null; sleep 300", w.mark)
    wait_for(lambda: json.loads(w.writ("ps", "--json").out)[0]["state"] == "running", 5)
    r = w.writ("ps")
    w.ok(sid in r.text and "running" in r.text and str(proc.pid) in r.text and w.mark in r.text, "one", r)
    s = json.loads(w.writ("ps", "--json").out)[0]
    w.same((s["session"], s["pid"], s["state"], s["workspace"], s["denials"]), (sid, proc.pid, "running", str(w.ws), 0), "its fields", s)
    w.ok(s["command"].startswith("sh -c trap") and s["seconds"] < 60, "its command and age", s)
    w.ok("\033" not in r.text, "control characters are made harmless", r)
    w.exits(w.writ("stop"), 125, "stop what?")
    w.exits(w.writ("stop", "zzzz"), 125, "stop something that is not there")
    w.exits(w.writ("stop", sid[:5]), 0, "stop by the beginning of its id")
    w.same(proc.wait(10), 143, "ends it, although it ignores SIGTERM")
    w.clean()
    procs = [w.background("sleep 300", w.mark)[0] for _ in range(3)]
    w.same(len(w.ids()), 3, "three are listed")
    w.exits(w.writ("stop", ""), 125, "an empty id stops none of them")
    w.exits(w.writ("stop", "--all"), 0, "stop --all")
    w.same([p.wait(10) for p in procs], [143] * 3, "ends them")
    w.same(w.ids(), set(), "and none is listed")
    w.clean()


@test("session start, exec and stop")
def _(w):
    r = w.session()
    w.ok(r.code == 0 and re.fullmatch(r"\w{8}\n", r.text) and not r.err, "start prints an id and nothing else", r)
    sid = r.text.strip()
    w.same(w.ids(), {sid}, "and it goes on")
    w.ok(w.writ("ps").text.splitlines()[-1].endswith(" -"), "ps: a session without a command", w.writ("ps"))
    for code in (0, 3, 255):
        w.exits(w.writ("session", "exec", sid, "--", "sh", "-c", f"exit {code}"), code, f"exec: exit {code}")
    w.exits(w.writ("session", "exec", sid, "--", "sh", "-c", "kill -9 $$"), 137, "exec: a signal")
    r = w.writ("session", "exec", sid, "--", "no-such-program")
    w.ok(r.code == 127 and "no-such-program" in r.said, "exec: not found", r)
    r = w.writ("session", "exec", sid, "--", "/etc/passwd")
    w.ok(r.code == 126 and r.said, "exec: not executable", r)
    data = os.urandom(300000)
    r = w.writ("session", "exec", sid, "--", "cat", data=data)
    w.ok(r.code == 0 and r.out == data, "exec: bytes both ways", r.said)
    r = w.writ("session", "exec", sid, "--", "sh", "-c", "echo o; echo e >&2")
    w.same((r.out, r.err), (b"o\n", b"e\n"), "exec: output and error")
    w.writ("session", "exec", sid, "--", "sh", "-c", "echo kept > /tmp/x; echo w > made")
    r = w.writ("session", "exec", sid[:3], "--", "cat", "/tmp/x", "made")
    w.same(r.out, b"kept\nw\n", "exec: one /tmp for all of them, and the workspace", r)
    (w.ws / "sub").mkdir()
    w.same(w.writ("session", "exec", sid, "--", "pwd", cwd=w.ws / "sub").text.strip(), str(w.ws / "sub"), "exec: here")
    w.same(w.writ("session", "exec", sid, "--", "pwd", cwd="/").text.strip(), "/var/agent/home", "exec: elsewhere")
    r = w.writ("session", "exec", sid, "--", "env", env={**w.env, "SECRET_X": "1", "LC_ALL": "C"})
    w.ok("SECRET_X" not in r.text and "LC_ALL=C" in r.text, "exec: the environment is chosen as in a run", r)
    begin = time.monotonic()
    procs = [w.start([w.program, "session", "exec", sid, "--", "sh", "-c", f"sleep 0.5; exit {i}"]) for i in range(1, 6)]
    w.same([p.wait(10) for p in procs], [1, 2, 3, 4, 5], "five at a time")
    w.ok(within(time.monotonic() - begin, 4), "really")
    proc = w.start([w.program, "session", "exec", sid, "--", "sh", "-c", "trap 'exit 8' TERM; echo go; while :; do sleep 0.05; done",
                    w.mark + "-a"], stdout=subprocess.PIPE)
    proc.stdout.readline()
    proc.terminate()
    w.same(proc.wait(10), 8, "exec: SIGTERM reaches the command")
    proc = w.start([w.program, "session", "exec", sid, "--", "sh", "-c", "echo go; sleep 100", w.mark + "-b"], stdout=subprocess.PIPE)
    proc.stdout.readline()
    proc.kill()
    proc.wait()
    r = wait_for(lambda: w.mark + "-b" not in w.writ("session", "exec", sid, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline").text, 3)
    w.ok(r, "exec: a client that is killed takes its command along")
    w.exits(w.writ("session", "exec", "zzzz", "--", "true"), 125, "exec in no session")
    w.exits(w.writ("session", "exec", sid), 125, "exec nothing")
    w.exits(w.writ("session", "stop", sid), 0, "stop")
    w.ok(wait_for(lambda: not w.ids(), 5), "it is gone")
    w.exits(w.writ("session", "exec", sid, "--", "true"), 125, "and takes no more commands")
    w.clean(seconds=2)


@test("a session with a command of its own")
def _(w):
    r = w.session("--", "sh", "-c", "echo begun > begun; sleep 300", w.mark)
    sid = r.text.strip()
    w.ok(r.code == 0 and wait_for(lambda: (w.ws / "begun").exists(), 5), "it runs", r)
    w.exits(w.writ("session", "exec", sid, "--", "true"), 0, "beside others")
    w.exits(w.writ("stop", sid), 0, "stop")
    w.clean("ends all", seconds=3)
    r = w.session("--policy", w.policy("allow wriet ."))
    w.ok(r.code == 121 and "p.writ:2" in r.said and not r.out, "errors of the policy are seen", r)
    r = w.session("--policy", w.policy("allow tool files/read"))
    w.ok(r.code == 122 and not r.out, "and what cannot be enforced", r)
    r = w.session("--limit", "session=1s")
    w.ok(r.code == 0 and wait_for(lambda: not w.ids(), 5), "a limit ends it", r)
    w.clean(seconds=2)


@test("a kept session holds nothing of whoever started it")
def _(w):
    r, out = os.pipe()
    os.set_inheritable(out, True)
    begin = w.writ("session", "start", timeout=5, pass_fds=(out,))
    w.exits(begin, 0, "standard error is let go once it runs, so that its end is seen")
    os.close(out)
    w.ok(wait_for(lambda: not os.set_blocking(r, False) and at_end(r), 2), "and so are other descriptors")
    os.close(r)
    sid = (w.ids() or {""}).pop()
    here = os.readlink(f"/proc/{json.loads(w.writ('ps', '--json').out)[0]['pid']}/cwd") if sid else ""
    w.same(here, "/", "it does not stand in a directory that somebody may want to unmount")
    w.writ("stop", "--all")
    w.clean(seconds=2)


def at_end(fd):
    try:
        return os.read(fd, 1) == b""
    except BlockingIOError:
        return False


@test("grants in a kept session")
def _(w):
    d = outside(w)
    sid = w.session().text.strip()
    cat = ("session", "exec", sid, "--", "cat", d / "file")
    w.ok(w.writ(*cat).code == 1, "a read fails")
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "allow")
    w.same(w.writ(*cat).out, b"data", "it succeeds")
    w.exits(w.writ("revoke", sid, "1"), 0, "revoke")
    w.ok(w.writ(*cat).code == 1, "it fails again")
    w.writ("stop", sid)
    w.clean(seconds=2)


@test("git goes on after a grant")
def _(w):
    d = outside(w)
    w.call(["git", "init", "-q", "."])
    sid = w.session().text.strip()
    git = ("session", "exec", sid, "--", "git", "-c", "user.name=a", "-c", "user.email=a@b")
    w.exits(w.writ(*git, "commit", "-q", "--allow-empty", "-m", "x"), 0, "a commit")
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "allow")
    # Each writes a file that leads git elsewhere: it is checked when it is closed, and put in its place then.
    for i in range(12):
        w.exits(w.writ(*git, "worktree", "add", "-q", f"tree{i}"), 0, f"worktree {i}")
        w.ok((w.ws / f"tree{i}/.git").is_file(), f"its .git is there ({i})")
        r = w.writ("session", "exec", sid, "--", "sh", "-c", "mkdir -p bad; echo gitdir: /etc >bad/.git; mkdir kid .vscode; rmdir kid && echo fine")
        w.ok(r.text == "fine\n" and not (w.ws / "bad/.git").exists(), f"one that leads away is not, and other calls are as before ({i})", r)
    w.writ("stop", sid)
    w.clean(seconds=2)


@test("exec with a terminal")
def _(w):
    sid = w.session().text.strip()
    with Terminal(w, [w.program, "session", "exec", sid, "--", "sh", "-c", "test -t 0 && test -t 1 && echo tty; stty size; exit 6"],
                  rows=33, cols=77) as t:
        code = t.code()
        w.ok(b"tty\r\n" in t.screen and b"33 77\r\n" in t.screen, "it has one, of the right size", t.screen)
        w.same(code, 6, "and its status comes back", t.screen)
    with Terminal(w, ["true"]) as t:
        before = t.modes()  # of one that nobody has changed yet
        t.code()
    with Terminal(w, [w.program, "session", "exec", sid, "--", "sh", "-c", "echo go; exec sleep 30"]) as t:
        t.expect("go")
        time.sleep(0.1)
        t.type("\x03")
        w.same(t.code(), 130, "Ctrl-C", t.screen)
        w.same(t.modes(), before, "and the terminal is as it was")
    with Terminal(w, [w.program, "session", "exec", sid, "--", "bash", "-c", "trap 'stty size; exit 0' WINCH; echo go; while :; do "
                      "sleep 0.1; done"]) as t:
        t.expect("go")
        t.resize(44, 88)
        w.ok(t.expect("44 88"), "resizing", t.screen)
        t.code()
    w.writ("stop", sid)
    w.clean(seconds=2)


@test("other users", needs_root=True)
def _(w):
    d = outside(w)
    proc, sid = w.background("sleep 30", w.mark)
    stranger = {**w.env, "XDG_STATE_HOME": str(w.home / ".local/state"), "HOME": "/nonexistent"}
    for verb in (("allow", sid, f"read:{d}"), ("stop", sid), ("session", "exec", sid, "--", "true")):
        r = w.writ(*verb, env=stranger, as_user=OTHER_USER, cwd="/")
        w.ok(r.code == 125 and r.err, f"{verb[0]} in a session of another user: the directory is closed", r)
    for p in [w.home, w.home / ".local", w.home / ".local/state", w.state, w.state / "run", w.state / "run" / sid]:
        p.chmod(0o755)
    (w.state / "run" / sid / "control").chmod(0o777)
    for verb in (("allow", sid, f"read:{d}"), ("stop", sid), ("session", "exec", sid, "--", "true")):
        r = w.writ(*verb, env=stranger, as_user=OTHER_USER, cwd="/")
        w.ok(r.code == 125 and r.err, f"{verb[0]}: refused even if somebody opened the directory", r)
    w.same((proc.poll(), w.ids()), (None, {sid}), "the session has not noticed")
    w.same(w.events("allow"), [], "nothing was granted")
    w.exits(w.writ("allow", sid, f"read:{d}"), 0, "control: its own user may")
    proc.terminate()
    proc.wait()
    theirs = w.at("/tmp", OTHER_USER)
    proc, sid = theirs.background("sleep 30", theirs.mark)
    w.exits(theirs.writ("allow", sid, f"read:{outside(theirs)}", as_user=0), 0, "root may in a session of a user")
    w.exits(theirs.writ("stop", sid), 0, "and the user may stop it")
    proc.wait()


@test("many clients at once")
def _(w):
    d = outside(w)
    sid = w.session().text.strip()
    procs = [w.start([w.program, "allow", sid, f"read:{d}"], stderr=subprocess.PIPE) for _ in range(12)]
    codes = [p.wait(15) for p in procs]
    w.same(codes, [0] * 12, "twelve grants at the same time", [p.stderr.read() for p in procs])
    procs = [w.start([w.program, "session", "exec", sid, "--", "sh", "-c", "sleep 0.3; exit 9"], stderr=subprocess.PIPE)
             for _ in range(12)]
    ends = [(p.wait(15), p.stderr.read().decode()) for p in procs]
    w.ok(all(c == 9 or "too many" in e or "busy" in e for c, e in ends), "twelve commands at the same time: each runs, or is told "
         "that there are too many", ends)
    bad = 0
    for i in range(100):
        bad += w.writ("session", "exec", sid, "--", "sh", "-c", f"exit {i}").code != i
    w.same(bad, 0, "a hundred one after the other")
    w.writ("stop", sid)
    w.clean(seconds=2)
