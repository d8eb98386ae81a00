"""denials.py - what was refused, why, and what to type: at the end of a run, and from outside."""
import ctypes
import json
import os
import re
import socket
import struct
import time

from host import Terminal, test, wait_for
from bounds import within


def blocks(text):
    """Denials as told in full: {(op, object): {label: value}}."""
    found, now = {}, None
    for line in text.splitlines():
        if m := re.fullmatch(r"(?:h?\d+|-) +denied (\w+) (.*) \((.*?)(?:, (\d+) times)?\)", line):
            now = found[(m[1], m[2])] = {"program": m[3], "count": int(m[4] or 1)}
        elif now is not None and (m := re.fullmatch(r"   (\w+(?: run)?) {2,}(.*)", line)):
            now[m[1]] = m[2]
        elif now is not None and line.startswith("              "):
            now["policy"] += "\n" + line.strip()
    return found


@test("explained at the end")
def _(w):
    (w.dir / "out").mkdir()
    (w.dir / "out/data").write_text("data")
    (w.ws / "keep").write_text("x")
    policy = w.policy("allow write .", "deny write ./keep")
    r = w.sh('echo x > /usr/x; echo x > /usr/x; echo y > .envrc; echo z > keep; cat "$1"; dd if="$1"', "sh", str(w.dir / "out/data"),
             opts=("--explain-denials", "--policy", policy))
    b = blocks(r.said)
    w.same(set(b), {("write", "/usr/x"), ("write", str(w.ws / ".envrc")), ("write", str(w.ws / "keep")),
                    ("read", str(w.dir / "out/data"))}, "each thing once", r)
    usr = b.get(("write", "/usr/x"), {})
    w.ok(usr.get("count") == 2 and usr.get("rule") == "no rule allows it" and usr.get("guarantee", "").startswith("fs.write, "),
         "how often, which rule, which guarantee", usr)
    w.same((usr.get("policy"), usr.get("next run")), ("allow write /usr/x", "--allow write:/usr/x"), "and what to type", usr)
    w.same(b[("write", str(w.ws / ".envrc"))].get("policy"), "open .envrc", "a protected name: the line that opens it")
    keep = b[("write", str(w.ws / "keep"))]
    w.ok(keep.get("rule", "").endswith("p.writ:3: deny write ./keep") and "policy" not in keep, "a line that denies: that line", keep)
    arg = b[("read", str(w.dir / "out/data"))]
    w.ok("exists outside" in arg.get("hint", "") and arg.get("count") == 2, "a read of what is not there, by its name in the arguments", arg)
    w.ok(r.said.count("denied write /usr/x (") == 2, "also said while it ran", r)
    q = w.sh("echo x > /usr/x", opts=("--explain-denials", "-q"))
    w.ok(q.said.count("denied write /usr/x") == 1 and "   rule " in q.said, "--quiet: only at the end", q)
    none = w.sh("true", opts=("--explain-denials",))
    w.ok(none.code == 0 and "0 things were refused" in none.said, "nothing refused: it says so", none)
    plain = w.sh("echo x > /usr/x")
    w.ok("guarantee" not in plain.said, "control: without the option one line", plain)


@test("what it says to type works")
def _(w):
    top = w.dir / "odd"
    names = ["plain", "two words", "a*b", 'quote"d', "$HOME", "#x", "per%cent", "b\\s", "caf\u00e9"]
    top.mkdir()
    for n in names:
        (top / n).write_text(n)
        r = w.run("cat", str(top / n), opts=("--explain-denials",))
        b = blocks(r.said)
        if " " in n:  # arguments are seen joined by blanks
            w.same(len(b), 0, "a name with a blank is not recognised", r)
            continue
        lines = (list(b.values()) or [{}])[0].get("policy", "")
        w.ok(lines.startswith("allow write .\n"), f"{n}: without a policy the workspace has to be named too", r)
        (w.dir / "next.writ").write_text("version 1\n" + lines + "\n")
        r = w.run("sh", "-c", 'cat "$1" && touch still', "sh", str(top / n), opts=("--policy", str(w.dir / "next.writ")))
        w.same((r.code, r.text), (0, n), f"{n}: with that line it can be read", r)
    other = w.run("cat", str(top / "#x"), opts=("--policy", str(w.dir / "next.writ")))
    w.ok(other.code == 1, "and nothing else", other)
    r = w.run("cat", str(top / "plain"), opts=("--explain-denials",))
    flags = blocks(r.said)[("read", str(top / "plain"))]["next run"].split()
    w.same(w.run("cat", str(top / "plain"), opts=flags).out, b"plain", "and the options for the next run")


@test("each kind of refusal has its advice")
def _(w):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(w.ws / "sock"))
        server.listen()
        script = "s = socket.socket(socket.AF_UNIX)\ntry: s.connect(sys.argv[1])\nexcept OSError as e: print(json.dumps(e.errno))"
        w.same(w.python("import socket\n" + script, str(w.ws / "sock"), opts=("-q",)), 13, "a socket of another program")
    sid = w.events("start")[0]["session"]
    got = json.loads(w.writ("session", "denials", "--json", sid).out)
    w.same([(d["op"], d["policy"], d["hint"]) for d in got],
           [("connect", f"allow unix {w.ws}/sock", "a line for the next session is needed")], "the line that opens it", got)
    w.same([e["reason"] for e in w.events("denied")], ["socket"], "the record has the reason as a code")
    w.sh("echo x > /usr/x; echo x > .envrc; echo x > keep", opts=("-q", "--policy", w.policy("allow write .", "deny write ./keep")))
    w.same([(e["reason"], e.get("protected")) for e in w.events("denied")], [("no-rule", None), ("protected", ".envrc"), ("rule", None)],
           "and for others")


@test("explained on a terminal")
def _(w):
    with Terminal(w, [w.program, "run", "--explain-denials", "--", "sh", "-c", "echo x > /usr/x; echo on; read x"]) as t:
        w.ok(t.expect("denied write /usr/x .*on"), "said while it runs", t.screen)
        t.type("\n")
        w.same(t.code(), 0, "it ends")
        w.ok(re.search(rb"1 thing was refused\r\n1  denied write /usr/x \(.*\r\n   rule ", t.screen), "and in full at the end", t.screen)


@test("denials of a session from outside")
def _(w):
    hidden = [f for f in ("/etc/fstab", "/etc/issue", "/etc/motd") if os.path.exists(f)][0]
    proc, sid = w.background('echo x > /usr/x; echo y > .envrc; cat "$1"; touch done; sleep 30', "sh", hidden)
    wait_for(lambda: (w.ws / "done").exists())
    time.sleep(0.2)
    r = w.writ("session", "denials", sid[:6])
    b = blocks(r.text)
    w.ok(r.code == 0 and set(b) == {("write", "/usr/x"), ("write", str(w.ws / ".envrc")), ("read", hidden)}, "all of them", r)
    w.same((b[("write", "/usr/x")].get("now"), b[("write", "/usr/x")].get("always")), (f"writ allow {sid}#1", f"writ allow --always {sid}#1"),
           "while it runs: how to grant it")
    w.ok("now" not in b[("write", str(w.ws / ".envrc"))], "but not what cannot be granted", r)
    w.same(b[("read", hidden)]["now"], f"writ allow {sid}#h1", "a guess has a number of its own")
    w.exits(w.writ("allow", f"{sid}#h1"), 0, "the command it gives is taken")
    for wrong in ("h0", "h2", "h", "hh1", "h-1", "h99999", "3"):
        w.exits(w.writ("allow", f"{sid}#{wrong}"), 125, f"there is no {wrong}")
    why = w.writ("why", f"{sid}#h1")
    w.ok(why.code == 1 and list(blocks(why.text)) == [("read", hidden)], "why takes it as well", why)
    w.same(list(blocks(w.writ("why", f"{sid}#1").text)), [("write", "/usr/x")], "and denial 1 is another thing")
    ps = json.loads(w.writ("ps", "--json").out)
    w.same([p["denials"] for p in ps if p["session"] == sid], [2], "a guess is not counted", ps)
    j = json.loads(w.writ("session", "denials", "--json", sid).out)
    w.same([(d["number"], d["op"]) for d in j] + [j[2]["program"]], [(1, "write"), (2, "write"), ("h1", "read"), "cat"], "for machines", j)
    w.same((j[0]["guarantee"], j[0]["policy"], j[0]["allow"], j[2]["named"]), ("fs.write", "allow write /usr/x", f"writ allow {sid}#1", True),
           "with all that people see", j)
    proc.terminate()
    proc.wait()
    w.same([(e["op"], e["object"]) for e in w.events("denied")], [("write", "/usr/x"), ("write", str(w.ws / ".envrc"))],
           "the signed record has what was observed")
    record = (w.state / f"sessions/{sid}.jsonl").read_text().splitlines()
    w.same([json.loads(e)["event"] for e in record if hidden in e and json.loads(e)["event"] not in ("start", "exec")], ["allow"],
           "and of the guess only that it was granted")
    w.same(w.events("end")[0]["denials"], 2, "its count as well")
    kept = w.state / f"sessions/{sid}.hints"
    w.same((oct(kept.stat().st_mode & 0o777), [json.loads(h)["object"] for h in kept.read_text().splitlines()]), ("0o600", [hidden]),
           "the guess is in a file beside it")
    after = w.writ("session", "denials", sid)
    b = blocks(after.text)
    w.ok(after.code == 0 and len(b) == 3 and "now" not in b[("write", "/usr/x")] and b[("write", "/usr/x")]["policy"],
         "after its end: the same without what needs it running", after)
    w.sh("true")
    none = [f.stem for f in (w.state / "sessions").iterdir() if f.stem != sid][0]
    r = w.writ("session", "denials", none)
    w.ok(r.code == 0 and not r.out and "nothing was refused" in r.said, "none", r)
    w.same(w.writ("session", "denials", "--json", none).out, b"[]\n", "none, for machines")
    w.exits(w.writ("session", "denials", "zzzz"), 125, "no such session")
    w.exits(w.writ("session", "denials", ""), 125, "an empty name is not one of two")
    w.exits(w.writ("session", "denials"), 125, "of which?")
    evil = w.ws / "a\x1b]0;t\x07\nb"
    evil.mkdir()
    w.python("try: open(sys.argv[1] + '/.envrc', 'w')\nexcept OSError as e: print(json.dumps(e.errno))", str(evil))
    name = max((w.state / "sessions").iterdir(), key=lambda f: f.stat().st_mtime_ns).stem
    r = w.writ("session", "denials", name)
    w.ok(r.code == 0 and "\x1b" not in r.text and "\\x1b]0;t" in r.text and len(r.text.splitlines()) == 6, "names cannot write to the terminal", r)
    file = w.state / f"sessions/{name}.jsonl"
    file.write_bytes(file.read_bytes() + b'{"event":"denied","op":\n{"event":"denied"}\n\xff\n')
    w.exits(w.writ("session", "denials", name), 0, "a damaged record is read as far as it goes")


class DeadMount:
    """A file system whose server takes what it is asked, and does not answer."""

    def __init__(self, at):
        self.at, self.libc = str(at), ctypes.CDLL(None, use_errno=True)
        self.dev = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.dev},rootmode=40000,user_id=0,group_id=0,allow_other"
        if self.libc.mount(b"dead", os.fsencode(self.at), b"fuse", 0, options.encode()) < 0:
            os.close(self.dev)
            raise OSError(ctypes.get_errno(), "mount")
        hello = os.read(self.dev, 1 << 20)
        body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0)
        os.write(self.dev, struct.pack("<IiQ", 16 + len(body), 0, struct.unpack_from("<IIQ", hello)[2]) + body)
        os.set_blocking(self.dev, False)
        self.asked = 0

    def __enter__(self):
        return self

    def swallow(self):
        """True once somebody has asked: from then on not even SIGKILL ends who waits."""
        try:
            self.asked += bool(os.read(self.dev, 1 << 20))
        except BlockingIOError:
            pass
        return self.asked

    def __exit__(self, *_):
        os.close(self.dev)
        self.libc.umount2(os.fsencode(self.at), 2)


@test("a file system that nobody answers for", needs_root=True)
def _(w):
    (w.dir / "dead").mkdir()
    try:
        mount = DeadMount(w.dir / "dead")
    except OSError as e:
        w.ok(True, f"not run # SKIP no FUSE here: {e}")
        return
    with mount:
        proc, sid = w.background('cat "$1"; sleep 30', "sh", str(w.dir / "dead/x"), opts=("--limit", "session=2s"))
        begin = time.monotonic()
        w.ok(wait_for(mount.swallow, 2), "somebody looks at what was named")
        r = w.writ("ps", "--json", timeout=2)
        w.ok(r.code == 0 and sid in r.text, "the session can be spoken to", r)
        out, err = proc.communicate(timeout=20)
        w.same(proc.returncode, 124, "its limit ends it", err)
        w.ok(within(time.monotonic() - begin, 4), "in time", err)
        w.ok(w.events("end"), "and its record has an end")
        r = w.run("cat", str(w.dir / "dead/y"), timeout=20)
        w.ok(r.code == 1 and within(r.seconds, 5), "one that has ended does not stay for an answer", r)
        r = w.run("ls", "-d", str(w.ws / "link"), "/etc/issue", timeout=20)
        w.ok("denied read /etc/issue" in r.said, "control: others are looked at", r)
    w.clean("and whoever was held is gone with the mount", seconds=3)
