"""exits.py - what a run ends with, and what it says."""
import json
import os
import socket
import subprocess
from pathlib import Path

from host import test
from bounds import within


def status_of(w, *command, opts=(), **kw):
    """The result of a run and the line it wrote to --status-fd."""
    r, out = os.pipe()
    try:
        result = w.run(*command, opts=("--status-fd", out, *opts), pass_fds=(out,), **kw)
    finally:
        os.close(out)
    with os.fdopen(r, "rb") as f:
        return result, f.read()


@test("a command's own status")
def _(w):
    for code in (0, 1, 42, 120, 255):
        w.exits(w.sh(f"exit {code}"), code, f"exit {code}")
    for name, number in (("KILL", 9), ("TERM", 15), ("SEGV", 11), ("HUP", 1), ("USR1", 10), ("PIPE", 13)):
        w.exits(w.sh(f"kill -{name} $$"), 128 + number, f"ended by SIG{name}")
    w.exits(w.call([w.program, "run", "sh", "-c", "exit 3"]), 3, "options end at the first word of the command")
    w.exits(w.sh("exec sh -c 'exit 9'"), 9, "through exec")
    r = w.sh("echo fine")
    w.same((r.out, r.err), (b"fine\n", b""), "a run says nothing of its own")


@test("programs that cannot be run")
def _(w):
    r = w.run("no-such-program-anywhere")
    w.exits(r, 127, "not found")
    w.ok("cannot run no-such-program-anywhere: not found inside; is its directory granted?" in r.said, "not found: named, with what may help", r)
    r = w.run("./nothing")
    w.exits(r, 127, "a path that is not there")
    w.ok("./nothing" in r.said, "a path that is not there: named", r)
    (w.ws / "plain").write_text("echo no\n")
    r = w.run("./plain")
    w.exits(r, 126, "not executable")
    w.ok("./plain" in r.said and "ermission" in r.said, "not executable: named", r)
    w.exits(w.run("/usr/bin"), 126, "a directory")
    (w.ws / "text").write_text("echo no\n")
    (w.ws / "text").chmod(0o755)
    r = w.run("./text")
    w.ok(r.code == 126 and "./text" in r.said, "neither program nor script", r)
    (w.ws / "bad").write_text("#!/no/such/interpreter\n")
    (w.ws / "bad").chmod(0o755)
    r = w.run("./bad")
    w.ok(r.code in (126, 127) and "./bad" in r.said, "a script without its interpreter", r)
    (w.ws / "good").write_text("#!/bin/sh\necho $0 $1; exit 5\n")
    (w.ws / "good").chmod(0o755)
    r = w.run("./good", "arg")
    w.same((r.code, r.out), (5, b"./good arg\n"), "a script of the workspace runs", r)
    r = w.run("")
    w.ok(r.code in (126, 127) and r.err, "an empty name", r)
    w.clean()


@test("121: the policy has errors")
def _(w):
    r = w.sh("touch ran", opts=("--policy", w.policy("allow wriet .")))
    w.exits(r, 121, "a wrong word")
    w.ok("p.writ:2:7" in r.said and "did you mean" in r.said, "its place and what to write", r)
    w.exits(w.sh("touch ran", opts=("--allow", "write:./nowhere")), 121, "a path that is missing")
    w.exits(w.sh("touch ran", opts=("--limit", "memory=lots")), 121, "a wrong limit")
    w.ok(not (w.ws / "ran").exists(), "nothing ran")
    w.exits(w.sh("touch ran", opts=("--policy", w.policy("allow write ."))), 0, "control: without the error it runs")
    w.ok((w.ws / "ran").exists(), "control: and does what it should")


@test("122: what cannot be enforced")
def _(w):
    r = w.sh("touch ran", opts=("--policy", w.policy("allow write .", "allow tool files/read")))
    w.exits(r, 122, "a rule about a tool")
    w.ok("files/read" in r.said, "the rule is named", r)
    tier = ("--tier", "B", "--policy")
    r = w.sh("touch ran", opts=(*tier, w.policy("allow write .", "require fs.metadata=exact")))
    w.exits(r, 122, "a required guarantee")
    w.ok("fs.metadata" in r.said and "nothing was started" in r.said, "the guarantee is named", r)
    w.exits(w.sh("touch ran", opts=("--policy", w.policy("allow write .", "workspace cow"))), 122, "copy on write")
    w.exits(w.sh("touch ran", opts=("--policy", w.policy("allow write .", "isolation >= vm"))), 122, "isolation")
    w.ok(not (w.ws / "ran").exists(), "nothing ran")
    w.clean()
    w.exits(w.sh("touch ran", opts=(*tier, w.policy("allow write .", "require fs.write=exact"))), 0,
            "control: a guarantee that holds")
    w.ok((w.ws / "ran").exists(), "control: it ran")


@test("explain and run say the same")
def _(w):
    """Whatever a version can or cannot do: what one refuses the other does, for the same reason."""
    (w.ws / "d").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    lines = ("allow net https://a.example.com", f"allow listen {port}", "ask read ./d", "ask write ./d", "ask device /dev/null",
             "allow tool a/b", "workspace cow", "isolation >= gvisor", "allow git https://git.example.com/a/b.git fetch",
             "secret T from env:T to https://a.example.com as bearer", "allow read ./d", "deny read **/.env", "deny read /u*/x")
    for line in lines:
        policy = w.policy("allow write .", line)
        explained = w.writ("explain", "--json", policy)
        row = next(r for r in json.loads(explained.out)["rules"] if r["rule"] == line)
        r = w.sh("true", opts=("--policy", policy), env={**w.env, "T": "a value that is long enough"})
        w.same((r.code, explained.code), (122, 122) if row["refused"] else (0, 0), f"{line}: exit", r)
        w.same(row["by"] in r.said, row["refused"], f"{line}: words", r)
    r = w.writ("explain", policy, "--adapter", "podman")
    w.ok(r.code == 122, "another engine", r)


@test("init: what it writes runs here, or it says why not")
def _(w):
    for threat in ("prototype", "developer", "production", "api-only"):
        made = w.writ("init", "--force", "--threat", threat)
        w.exits(made, 0, f"{threat} is written")
        r = w.run("true")
        w.same(r.code, 122 if "122" in made.said else 0, f"{threat}: as init said", made)
        if r.code == 122:
            for line in r.said.splitlines()[:-1]:
                w.ok(line in made.said, f"{threat}: {line}", made)


@test("shell none: one program, and nothing after it")
def _(w):
    for tier in "AB":
        r = w.sh("echo one; /bin/echo two; echo three", opts=("--tier", tier, "--allow", "shell:none"))
        w.ok(r.out == b"one\nthree\n" and r.code == 0, f"tier {tier}: the first runs, the second does not", r)
        r = w.sh("exec /bin/echo two", opts=("--tier", tier, "--allow", "shell:none"))
        w.ok(r.code not in (0, 122) and not r.out, f"tier {tier}: not instead of the first either", r)


@test("deny read **/NAME: in what is granted, not in what base shows")
def _(w):
    shown = Path("/usr/share/doc")
    name = next(p.name for p in sorted(shown.rglob("*")) if p.is_file() and os.access(p, os.R_OK) and p.name.isalnum())
    theirs = next(p for p in sorted(shown.rglob(name)) if p.is_file())
    (w.ws / "d").mkdir()
    (w.ws / "d" / name).write_text("mine")
    inside = w.policy("allow write .", f"deny read /usr/share/**/{name}")
    for policy, here in ((w.policy("allow write .", f"deny read **/{name}", name="q.writ"), 0), (inside, 1)):
        r = w.writ("why", "--policy", policy, "read", str(theirs))
        w.exits(r, here, "why knows what base shows")
        r = w.sh('cat "$1" >/dev/null', "sh", str(theirs), opts=("--policy", policy))
        w.same(r.code != 0, here != 0, "and so it is", r)
    r = w.sh(f"cat d/{name}", opts=("--policy", str(w.dir / "q.writ")))
    w.ok(r.code != 0 and not r.out, "the workspace is denied by name", r)


@test("124: limits of time")
def _(w):
    for key in ("session", "command", "idle"):
        r, line = status_of(w, "sh", "-c", f"echo begun; sleep 60; touch late # {w.mark}", opts=("--limit", f"{key}=1s"))
        w.exits(r, 124, f"limit {key}")
        w.ok(0.9 <= r.seconds and within(r.seconds, 8), f"limit {key}: in time", r)
        w.ok(r.out == b"begun\n" and key in r.said, f"limit {key}: said, and output kept", r)
        w.same([e["limit"] for e in w.events("limit")], [key], f"limit {key}: on record")
        w.same(json.loads(line).get("ended_by"), key, f"limit {key}: in the status line", line)
        w.clean(f"limit {key}: nothing is left")
    w.exits(w.sh("trap '' TERM INT HUP; sleep 60", opts=("--limit", "command=1s")), 124, "ignoring signals does not help")
    r = w.sh("for i in 1 2 3 4 5; do sleep 0.5; echo $i; done; exit 7", opts=("--limit", "idle=2s"))
    w.exits(r, 7, "control: output is a sign of life")
    w.exits(w.sh("exit 7", opts=("--limit", "session=5s")), 7, "control: in good time")
    w.ok(not (w.ws / "late").exists(), "nothing went on")


@test("125: failures of writ and wrong use")
def _(w):
    w.exits(w.run("true", opts=("--no-such-option",)), 125, "a wrong option")
    w.exits(w.writ("run"), 125, "no command")
    w.exits(w.run("true", opts=("--policy", w.dir / "missing.writ")), 125, "a policy file that is missing")
    w.exits(w.run("true", opts=("--cwd", w.dir / "missing")), 125, "a directory that is missing")
    w.exits(w.run("true", opts=("--tier", "C")), 125, "a tier that does not exist")
    w.exits(w.run("true", opts=("--status-fd", "77")), 125, "a descriptor that is not open")
    w.exits(w.run("true", opts=("--status-fd", "x")), 125, "a descriptor that is no number")
    w.clean()


@test("the status line")
def _(w):
    def check(name, r, line, **want):
        try:
            got = json.loads(line)
        except ValueError:
            w.ok(False, f"{name}: one line of JSON", f"{line!r}\n{r}")
            return
        w.ok(line.count(b"\n") == 1 and line.endswith(b"\n"), f"{name}: exactly one line", line)
        w.same(got.get("exit"), r.code, f"{name}: says how the run ended", f"{line!r}\n{r}")
        for k, v in want.items():
            w.same(got.get(k), v, f"{name}: {k}", line)

    check("a success", *status_of(w, "true"), started=True, denials=0)
    check("a failure", *status_of(w, "sh", "-c", "exit 33"), started=True)
    check("a signal", *status_of(w, "sh", "-c", "kill -9 $$"), started=True)
    check("not found", *status_of(w, "no-such-thing"), started=False, step="exec")
    check("not executable", *status_of(w, "/etc/passwd"), started=False, step="exec")
    check("a limit", *status_of(w, "sleep", "9", opts=("--limit", "session=1s")), started=True, ended_by="session")
    r, line = status_of(w, "sh", "-c", "ls /proc/self/fd")
    w.same(r.out, b"0\n1\n2\n3\n", "the descriptor is not seen inside", r)
    ids = {json.loads(line)["session"]} & {f.stem for f in (w.state / "sessions").iterdir()}
    w.ok(ids, "the session it names has a record", line)


@test("options and quiet")
def _(w):
    r = w.sh("echo x > /usr/x; echo y", opts=("--quiet",))
    w.ok("writ:" not in r.said and r.out == b"y\n", "--quiet: no line of writ's", r)
    r = w.sh("printenv A B", opts=("-e", "A=1", "--env", 'B="2 3"'))
    w.same(r.out, b"1\n2 3\n", "--env sets variables", r)
    w.exits(w.sh("touch x", opts=("--allow", "read:.")), 1, "with a rule of one's own nothing else is granted")
    w.exits(w.sh("touch x", opts=("--allow", "write:.")), 0, "control: with the right one it is")
    (w.ws / "sub").mkdir()
    r = w.run("pwd", opts=("-C", "sub"))
    w.same(r.text.strip(), str(w.ws / "sub"), "--cwd", r)
    r = w.call(["sh", "-c", 'exec "$@" <&- >/dev/null', "sh", w.program, "run", "--", "true"], stderr=subprocess.PIPE)
    w.exits(r, 0, "started with closed input")


@test("a state directory that cannot be written")
def _(w):
    closed = w.dir / "state"
    closed.mkdir(mode=0o500)
    for state in ["/proc/nothing", "/sys/kernel"] + ([] if os.geteuid() == 0 else [closed]):
        r = w.sh("true", env={**w.env, "XDG_STATE_HOME": str(state)})
        w.ok(r.code == 125 and str(state) in r.said and "set XDG_STATE_HOME to a directory that you can write" in r.said,
             f"{state}: it says what to do", r)
    w.exits(w.sh("true", env={**w.env, "XDG_STATE_HOME": str(w.dir / "new/state")}), 0, "control: one that can be made")
