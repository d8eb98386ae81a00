"""prune.py - records of sessions that have ended are not kept for ever."""
import fcntl
import os
import time

from host import test


def fill(w, n, days):
    """@n records of sessions that ended so long ago."""
    folder, made = w.state / "sessions", []
    for i in range(n):
        file = folder / f"{'abcdefgh'[i % 8]}{days:03d}{i:04d}.jsonl"
        file.write_text('{"event":"start"}\n')
        at = time.time() - days * 86400 - i
        os.utime(file, (at, at))
        made.append(file)
    return made


def here(w):
    return {f.stem for f in (w.state / "sessions").glob("*.jsonl")}


@test("by age, by number, and never one that runs")
def _(w):
    sid = w.session().text.strip()
    os.utime(w.state / f"sessions/{sid}.jsonl", (1, 1))
    old, new = fill(w, 20, 40), fill(w, 20, 2)
    (w.state / "sessions/notes.txt").write_text("mine")
    begins = old.pop()  # of a session that has no directory yet
    for record in (old[0], new[0], begins):
        record.with_suffix(".hints").write_text('{"event":"hint"}\n')
    held = os.open(begins, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    r = w.writ("session", "prune", "--older-than", "41d")
    w.ok(r.code == 0 and "0 records removed" in r.said and not r.out, "nothing is that old", r)
    r = w.writ("session", "prune")
    w.ok(r.code == 0 and "19 records removed" in r.said, "the default is 30 days", r)
    w.same(here(w), {f.stem for f in new} | {sid, begins.stem}, "the others stay, and those that run however old they are")
    w.same({f.stem for f in (w.state / "sessions").glob("*.hints")}, {new[0].stem, begins.stem}, "hints go and stay with their record")
    os.close(held)
    r = w.writ("session", "prune", "--older-than", "1d")
    w.ok(r.code == 0 and here(w) == {sid} and (w.state / "sessions/notes.txt").exists(), "--older-than: those, and nothing that is no record", r)
    many = fill(w, 520, 1)
    r = w.writ("session", "prune")
    w.ok(r.code == 0 and "20 records removed" in r.said and here(w) == {f.stem for f in many[:500]} | {sid}, "the newest 500 stay", r)
    w.exits(w.writ("session", "prune", "--older-than", "soon"), 125, "a time that is none")
    w.exits(w.writ("session", "prune", "x"), 125, "it takes no name")
    w.exits(w.writ("session", "exec", sid, "--", "true"), 0, "the session has not noticed")
    w.writ("stop", sid)
    w.clean(seconds=3)
    w.exits(w.writ("session", "prune", env={**w.env, "HOME": str(w.ws)}), 0, "no records at all")


@test("by itself, once in a while")
def _(w):
    w.sh("true")
    mark = w.state / "tidied"
    w.ok(mark.exists(), "the first session looks")
    old = fill(w, 3, 40)
    w.sh("true")
    w.ok(all(f.exists() for f in old), "the next one soon after does not")
    os.utime(mark, (1, 1))
    r = w.sh("exit 4")
    w.ok(r.code == 4 and not any(f.exists() for f in old), "one an hour later does", r)
    w.same(len(here(w)), 3, "and those of now stay")
    os.utime(mark, (time.time() + 9e6, time.time() + 9e6))
    old = fill(w, 3, 40)
    w.sh("true")
    w.ok(not any(f.exists() for f in old), "a clock that went back does not stop it")
