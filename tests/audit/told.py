"""told.py - what a person is shown: show, tail, export, redact, prove (AUD-005 to AUD-011)."""
import json
import subprocess

from audit import fails, holds, last, states, verify
from host import PYTHON, test


def shown(w, *args):
    return w.writ("audit", "show", *args).text.splitlines()


@test("show: one line for each entry, and none that a terminal obeys (AUD-006)")
def _(w):
    strange = "a\nb\x1b]0;owned\x07\x1b[31m\"'\\%41\u202e" + "x" * 300
    w.run("true", strange, opts=("--quiet",))
    w.run(PYTHON, "-c", "import os\ntry: open(b'/etc/\\xff\\xfe\\n\\x1b[2J')\nexcept OSError: pass", "z" * 100000)
    for file in (w.state / "sessions").glob("*.jsonl"):
        r = w.writ("audit", "show", file.stem)
        w.same(len(r.text.splitlines()), len(file.read_bytes().splitlines()), "a line for each")
        w.ok(not any(c < 32 and c != 10 or c == 127 for c in r.out) and b"\xff" not in r.out and "\u202e" not in r.text,
             "no control characters, whatever names are", repr(r.out[:2000]))
    kept = [e for r in w.records() for e in r if e["event"] == "start" and strange in e["command"]]
    w.same(len(kept), 1, "and in the record it is as it was")
    holds(w, "it verifies")


@test("show: what ran, what was denied, how it ended (AUD-007, AUD-008)")
def _(w):
    w.sh("for i in 1 2 3 4 5; do /bin/true $i; done; for i in 1 2 3; do cat /root/.x$i /etc/shadow$i; done 2>/dev/null\n"
         "(sh -c '(touch /usr/gshadow &) ; exit 0'); touch /usr/shadow; cat /etc/shadow; sleep 0.2; exit 3")
    text = shown(w)
    w.ok(text[0].split()[1] == "start" and text[-1].split()[1] == "end" and "exit 3" in text[-1], "from start to end", "\n".join(text))
    w.same(len([e for e in w.events("exec") if e["object"].endswith("/true")]), 5, "each of five programs that were run")
    denied = [e["object"] for e in w.events("denied")]
    w.same(sorted(denied), ["/usr/gshadow", "/usr/shadow"], "denials, also of one that nobody waits for, and no guesses")
    w.ok(any("denied" in t and "/usr/gshadow" in t for t in text), "and they are shown", "\n".join(text))
    start = w.events("start")[0]
    w.ok(start["durability"] == "process" and start["guarantees"]["tier"] and start["command"], "the start says how durable, and what is guaranteed (AUD-011)", start)


@test("tail follows a session that runs, and ends with it")
def _(w):
    proc, sid = w.background("until [ -e go ]; do sleep 0.02; done; cat /etc/shadow")
    tail = w.start([w.program, "audit", "tail", sid], stdout=subprocess.PIPE)
    w.same(states(w).get(sid), "open", "meanwhile it is open")
    w.put("go", "")
    out = tail.communicate(timeout=20)[0].decode()
    w.ok("start" in out and "/etc/shadow" in out and "end" in out.splitlines()[-1], "all of it", out)
    proc.communicate(timeout=20)
    holds(w, "then it is sealed")


@test("which session: its beginning, --last, none of that name")
def _(w):
    w.exits(w.writ("audit", "show"), 125, "none yet")
    w.run("true")
    first = last(w).stem
    w.sh("exit 7")
    w.ok("exit 7" in shown(w, "--last")[-1] and shown(w) == shown(w, "--last"), "the last is the default")
    w.ok("exit 0" in shown(w, first[:5])[-1], "a beginning is enough")
    w.exits(w.writ("audit", "show", "zzzzzz"), 125, "one that is not there")
    w.exits(w.writ("audit", "frobnicate"), 125, "a word that is none")
    w.exits(w.writ("audit", "verify", "zzzzzzzz"), 1, "nothing to verify of it")
    code, result = verify(w, first)
    w.ok(code == 0 and [s["session"] for s in result["sessions"]] == [first], "verify one", result)


@test("export and redact: what is private can go, and it verifies as before")
def _(w):
    w.sh("cat /etc/shadow; true")
    file = last(w)
    w.same(w.writ("audit", "export", "--jsonl").out, file.read_bytes(), "all of it as it is")
    public = w.writ("audit", "export", "--jsonl", "--public").text
    w.ok("shadow" not in public and '"_sd"' in public and "_salt" not in public, "without what is private", public[:500])
    w.same(len(public.splitlines()), len(file.read_bytes().splitlines()), "as many lines")
    w.exits(w.writ("audit", "redact"), 125, "erasing needs a name")
    before = file.stat().st_mtime_ns
    r = w.writ("audit", "redact", file.stem)
    w.ok(r.code == 0 and file.read_text() == public and file.stat().st_mtime_ns == before, "redact leaves just that", r)
    holds(w, "it verifies as before")
    w.ok("removed" in shown(w)[0], "show says that something is gone")
    file.write_text(public.replace("exec", "exek"))
    fails(w, "sessions/", "and notices a change as before")
    proc, sid = w.background("sleep 5")
    w.exits(w.writ("audit", "redact", sid), 125, "not one that runs")


@test("prove: files that hold by themselves")
def _(w):
    for _ in range(3):
        w.run("true")
    sid, out = last(w).stem, w.dir / "proof"
    w.exits(w.writ("audit", "prove", sid, "--out", out), 0, "made")
    w.same(sorted(f.name for f in out.iterdir()), [f"{sid}-{x}" for x in ("end.json", "end.tlog-proof", "start.json", "start.tlog-proof")], "four files")
    proof = (out / f"{sid}-end.tlog-proof").read_text()
    entry = json.loads((out / f"{sid}-end.json").read_text())
    w.ok(proof.startswith("c2sp.org/tlog-proof@v1\n") and "\nwrit/log/l-" in proof, "in the form that others read", proof)
    w.ok(entry["event"] == "session.end" and entry["session"] == sid and entry["entries"] == len(last(w).read_text().splitlines()), "of its end", entry)
    lines = next((w.state / "log/wal").iterdir()).read_bytes()
    next((w.state / "log/wal").iterdir()).write_bytes(lines.replace(b'"exit":0', b'"exit":1', 1))
    w.exits(w.writ("audit", "prove", sid, "--out", out), 1, "not of a log that does not verify")


@test("a record that cannot be written ends the session (AUD-010)")
def _(w):
    w.run("true")
    r = w.call(["prlimit", "--fsize=65536", w.program, "run", "--", "sh", "-c",
                "i=0; while :; do cat /etc/shadow$i; /bin/true xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx $i; i=$((i+1)); done >/dev/null 2>&1"], timeout=60)
    w.ok(r.code == 125 and "record cannot be written" in r.said, "and says why", r)
    holds(w, "what is there verifies")
    w.ok("cut" in states(w).values(), "it is one that was cut off")
