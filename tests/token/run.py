#!/usr/bin/env python3
"""run.py - tokens as people use them, judged from outside. Speaks TAP; $WRIT is the program.

    run.py [--times] [WORD ...]
"""
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tok  # noqa: E402
from tok import PYTHON, Realm, test  # noqa: E402
from bounds import within  # noqa: E402


QUIET = "export ASAN_OPTIONS=detect_leaks=0; "  # of a writ inside, where nothing can be traced


def outs(w):
    (w.work / "out/a").mkdir(parents=True)


@test
def pipeline(w):
    """Literally as it stands in the documentation, and the very first thing this realm does."""
    outs(w)
    line = ("writ token mint --allow 'write:./out/' | writ token attenuate --allow 'write:./out/a/' | "
            "writ run --token - -- sh -c 'echo x > out/%s'")
    for name, good in (("b", False), ("a/b", True)):
        got = subprocess.run(["sh", "-c", f'writ() {{ "{tok.WRIT}" "$@"; }}; ' + line % name], cwd=w.work, env=w.a.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        w.ok((got.returncode == 0) is good and (w.work / "out" / name).exists() is good,
             f"out/{name} is {'written' if good else 'refused by the kernel'}", got.stderr.decode())
        w.ok(good or b"hop 2 of 2 of the chain dropped it" in got.stderr, "and the hop is named", got.stderr.decode())
    sessions = [p.stem for p in (w.a.kept / "sessions").glob("*.jsonl")]
    told = [w.a.run("why", f"{s}#1") for s in sessions]
    w.ok(any(t.code == 1 and "hop 2 of 2 of the chain dropped it" in t.out and "a token cannot be widened" in t.out for t in told),
         "writ why SESSION#1 names it too", "\n".join(map(str, told)))


@test
def answers(w):
    outs(w)
    chain = w.a.narrow(w.a.mint("write:./out/"), "--allow", "write:./out/a/")
    (w.work / "chain").write_text(chain + "\n")
    got = w.a.run("why", "--token", "chain", "write", "./out/b")
    w.ok(got.code == 1 and "hop 2 of 2 of the chain dropped it" in got.out, "why names the hop that dropped it", got)
    got = w.a.run("why", "--token", "chain", "write", "/etc/passwd")
    w.ok(got.code == 1 and "hop 1 of 2 of the chain never had it" in got.out, "or that never had it", got)
    got = w.a.run("why", "--json", "--token", "chain", "write", "./out/b")
    w.ok(json.loads(got.out)["hop"] == 2, "also for machines", got)
    w.ok(w.a.run("why", "--token", "chain", "write", "./out/a/x").code == 0, "and says yes to what is left")
    got = w.a.run("explain", "--token", "chain")
    w.ok(got.code == 0 and "hop 2 of 2 of the chain narrowed fs.write" in got.out, "explain says what a hop took", got)
    got = w.a.run("token", "inspect", "chain")
    w.ok(got.code == 0 and "narrowed" in got.out and "this machine" in got.out, "inspect is for people", got)
    seen = json.loads(w.a.run("token", "inspect", "--json", "chain").out)
    w.ok(len(seen["hops"]) == 2 and len(seen["hops"][1]["dropped"]) == 2 and seen["hops"][1]["key"] is True, "and for machines", seen)
    w.ok(w.a.run("token", "verify", "chain").code == 0, "verify says that it is good")


@test
def widening(w):
    outs(w)
    leaf = w.a.narrow(w.a.mint("write:./out/", more=("--limit", "pids=64", "--for", "20m")), "--allow", "write:./out/a/", "--depth", "1")
    narrow = ("token", "attenuate")
    for rule in ("write:./out/", "write:./out/b", "read:/etc/", "net:example.com", "unix:/run/x.sock"):
        got = w.a.run(*narrow, "--allow", rule, give=leaf)
        w.refused(got, "E_WIDEN", f"--allow {rule}")
        w.ok(rule.split(":")[1].strip("./") in got.err, "and says which rule", got)
    w.refused(w.a.run(*narrow, "--limit", "pids=65", give=leaf), "E_WIDEN", "a larger limit")
    w.refused(w.a.run(*narrow, "--for", "30m", give=leaf), "E_TIME", "a longer life")
    w.refused(w.a.run(*narrow, "--depth", "3", give=leaf), "E_DEPTH", "more derived ones")
    last = w.a.narrow(leaf, "--deny", "write:./out/a/x")
    w.refused(w.a.run(*narrow, give=last), "E_DEPTH", "one more than it may have")
    got = w.a.use(last, "sh", "-c", "echo y > out/a/y; echo x > out/a/x; ulimit -u")
    w.ok((w.work / "out/a/y").exists() and not (w.work / "out/a/x").exists(), "a denial alone keeps the rest", got)
    deep = w.a.mint("write:./out/")
    for _ in range(7):
        deep = w.a.narrow(deep)
    w.refused(w.a.run(*narrow, give=deep), "E_DEPTH", "a ninth hop")
    got = w.a.use(deep, "sh", "-c", "echo z > out/z && cat out/z")
    w.ok(got.out == "z\n", "eight hops run, a layer each", got)


@test
def sibling_denials(w):
    outs(w)
    root = w.a.mint("write:./out/", more=("--deny", "write:./out/x"))
    got = w.a.use(w.a.narrow(root, "--allow", "write:./out/"), "sh", "-c", "echo x > out/x; echo y > out/y")
    w.ok(not (w.work / "out/x").exists() and (w.work / "out/y").exists(), "denials of every hop hold", got)


@test
def once(w):
    outs(w)
    w.a.run("run", "--", "true")  # what this machine can do is found out once
    chain = w.a.mint("write:./out/", more=("--single-use",))
    w.refused(w.a.run("token", "attenuate", give=chain), "E_DEPTH", "nothing is derived from a single-use token")
    runs = [w.a.start("run", "-q", "--token", "-", "--", "sh", "-c", f"echo x > out/won.{i}", stdin=subprocess.PIPE) for i in range(100)]
    for p in runs:
        p.stdin.write(chain.encode())
        p.stdin.close()
        p.stdin = None
    ends = [(p.communicate(timeout=120)[1].decode(), p.returncode) for p in runs]
    w.ok(len(list((w.work / "out").glob("won.*"))) == 1, "of a hundred at once exactly one wins")
    w.ok(sum(c == 0 for _, c in ends) == 1 and sum(c == 121 and "E_REPLAY" in e for e, c in ends) == 99, "and the others are told",
         sorted({(c, e[-200:]) for e, c in ends if c and "E_REPLAY" not in e}))
    w.ok(len(w.a.events("token.spend")) == 1 and len(w.a.events("token.accept")) == 1, "the log has one")
    got = w.a.use(chain, "true")
    w.refused(got, "E_REPLAY", "later it is still used", 121)
    fresh = w.a.mint("write:./out/")
    (w.a.kept / "log/wal").rename(w.a.kept / "log/gone")
    (w.a.kept / "log/wal").write_text("")
    spent = sorted(p.name for p in (w.a.kept / "tokens/spent").iterdir())
    got = w.a.use(fresh, "sh", "-c", "echo x > out/ran")
    w.ok(got.code == 125 and "wal" in got.err and not (w.work / "out/ran").exists(), "what cannot be logged is not begun", got)
    w.ok(sorted(p.name for p in (w.a.kept / "tokens/spent").iterdir()) == spent, "nor spent")


def running(w, chain, command):
    p = w.a.start("run", "-q", "--token", "-", "--", "sh", "-c", f"echo x > out/a/started; {command}", stdin=subprocess.PIPE)
    p.stdin.write(chain.encode())
    p.stdin.close()
    p.stdin = None
    end = time.monotonic() + 20
    while not (w.work / "out/a/started").exists() and p.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    (w.work / "out/a/started").unlink(missing_ok=True)
    return p


@test
def revoked(w):
    outs(w)
    root = w.a.mint("write:./out/")
    child = w.a.narrow(root, "--allow", "write:./out/a/")
    p = running(w, child, "sleep 60")
    begin = time.monotonic()
    got = w.a.run("token", "revoke", "-", give=root)
    w.ok(got.code == 0, "the first token is revoked", got)
    out, err = p.communicate(timeout=30)
    w.ok(within(time.monotonic() - begin, 2) and p.returncode == 143, f"and the session of one derived from it ends within a second ({time.monotonic() - begin:.2f} s)",
         err.decode())
    w.ok("revoked" in err.decode(), "and says why", err.decode())
    w.refused(w.a.run("token", "verify", give=child), "E_REVOKED", "it is no token any more")
    w.refused(w.a.run("token", "attenuate", give=root), "E_REVOKED", "nothing can be derived from it")
    w.refused(w.a.use(root, "true"), "E_REVOKED", "nor run", 121)
    other = w.a.mint("write:./out/")
    jti = json.loads(w.a.run("token", "inspect", "--json", give=other).out)["hops"][0]["jti"]
    w.ok(w.a.run("token", "revoke", jti).code == 0, "by name as well")
    w.refused(w.a.run("token", "verify", give=other), "E_REVOKED", "then, too")
    w.ok(len(w.a.events("token.revoke")) == 2, "the log knows")


@test
def expired(w):
    outs(w)
    chain = w.a.narrow(w.a.mint("write:./out/"), "--for", "3s")
    begin = time.monotonic()
    p = running(w, chain, "sleep 60")
    _, err = p.communicate(timeout=30)
    w.ok(p.returncode == 124 and within(time.monotonic() - begin, 6), f"the session ends with the first of them ({time.monotonic() - begin:.1f} s)", err.decode())
    w.refused(w.a.run("token", "verify", give=chain), "E_TIME", "which has expired")


@test
def clock(w):
    outs(w)
    chain, floor = w.a.mint("write:./out/"), w.a.kept / "tokens/clock"
    now = int(time.time())
    w.ok(abs(int(floor.read_text()) - now) < 30, "the latest time is kept")
    floor.write_text(f"{now + 20}\n")
    w.ok(w.a.run("token", "verify", give=chain).code == 0, "a few seconds are no matter")
    floor.write_text(f"{now + 3600}\n")
    w.refused(w.a.run("token", "verify", give=chain), "E_TIME", "a clock that was set back")
    w.refused(w.a.use(chain, "true"), "E_TIME", "runs nothing", 121)
    floor.write_text("yesterday\n")
    w.ok(w.a.use(chain, "true").code == 125, "one that cannot be read is no time")


@test
def counted(w):
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    port, seen = server.getsockname()[1], []

    def serve():
        while True:
            try:
                c, _ = server.accept()
                seen.append(1)
                c.sendall(b"hello")
                c.close()
            except OSError:
                return
    threading.Thread(target=serve, daemon=True).start()
    ask = (f"import socket\nfor i in range(3):\n  try:\n    s=socket.create_connection(('host.writ',{port}),9)\n"
           "    print(s.recv(9)==b'hello')\n  except OSError: print(False)")
    root = w.a.mint(f"net:tcp://localhost:{port};count=5")
    child = w.a.narrow(root, "--allow", f"net:tcp://localhost:{port};count=4")
    got = w.a.use(w.a.narrow(child), PYTHON, "-c", ask)
    w.ok(got.out.split() == ["True"] * 3, "three of four", got)
    got = [w.a.start("run", "-q", "--token", "-", "--", PYTHON, "-c", ask, stdin=subprocess.PIPE) for _ in range(4)]
    for p, chain in zip(got, [w.a.narrow(child), w.a.narrow(child), w.a.narrow(root), w.a.narrow(root)]):
        p.stdin.write(chain.encode())
        p.stdin.close()
        p.stdin = None
    good = sum(p.communicate(timeout=60)[0].count(b"True") for p in got)
    w.ok(good == 2 and len(seen) == 5, f"siblings at once share what is left: {good} more, {len(seen)} in all")
    left = [c["uses"] for h in json.loads(w.a.run("token", "inspect", "--json", give=child).out)["hops"] for c in h["counters"]]
    w.ok(left[0] == 5 and left[1] in (3, 4), "every ancestor was debited, none too often", left)
    got = w.a.use(w.a.narrow(root), PYTHON, "-c", ask)
    w.ok(got.out.split() == ["False"] * 3 and "shared with other sessions" in got.err, "nobody gets a new counter by deriving anew", got)
    server.close()


@test
def unenforceable(w):
    outs(w)
    for rule in ("tool:mail/send;count=1", "net:tcp://localhost:9;rate=1/1m"):
        got = w.a.use(w.a.mint(rule), "true")
        w.ok(got.code == 122, f"{rule} ends with 122", got)
    ask = w.a.run("token", "mint", "-p", "-", give="version 1\nask write ./out/\n")
    w.ok(w.a.use(ask.text(), "true").code == 122, "and what somebody has to approve", ask)


@test
def only_narrows(w):
    outs(w)
    (w.work / "other").mkdir()
    got = w.a.use(w.a.mint("write:./out/"), "sh", "-c", "echo x > out/x; echo x > out/a/x; echo x > other/x",
                  options=("--allow", "write:./out/a/", "--allow", "write:./other/"))
    w.ok((w.work / "out/a/x").exists() and not (w.work / "out/x").exists() and not (w.work / "other/x").exists(),
         "rules of the command line take away and give nothing", got)
    w.ok("the rules of the command line dropped it" in got.err, "and are named", got)
    got = w.a.use(w.a.mint("write:./out/"), "sh", "-c", "echo x > out/y; echo x > out/a/y", options=("--deny", "write:./out/y"))
    w.ok((w.work / "out/a/y").exists() and not (w.work / "out/y").exists(), "a denial alone leaves the rest", got)
    got = w.a.use(w.a.mint("write:./out/"), "true", options=("--env", "FOO=1"))
    w.ok(got.code == 125 and "only be narrowed" in got.err, "nothing can be added", got)
    (w.work / "agent.writ").write_text("version 1\nallow write .\n")
    got = w.a.use(w.a.mint("write:./out/"), "sh", "-c", "cat agent.writ; echo x > z")
    w.ok(not (w.work / "z").exists() and "allow" not in got.out, "neither a policy nor the workspace counts", got)


@test
def first_of_all(w):
    """A realm that has minted before anything ran: the log's key is still one that is pinned."""
    w.a.mint("read:/usr")
    got = w.a.run("run", "--", "true")
    w.ok(got.code == 0, "a run after that", got)
    got = w.a.run("audit", "verify")
    w.ok(got.code == 0, "and all of it verifies", got)


def listed(w):
    """The session that runs; it is listed a moment after its command has started."""
    end = time.monotonic() + 20
    while not (found := json.loads(w.a.run("ps", "--json").out)) and time.monotonic() < end:
        time.sleep(0.02)
    return found[0]["session"]


@test
def nothing_live(w):
    outs(w)
    p = running(w, w.a.mint("write:./out/"), "sleep 20")
    name = listed(w)
    got = w.a.run("allow", name, f"write:{w.work}")
    w.ok(got.code and "its token is its policy" in got.err, "a session of a token cannot be widened", got)
    w.a.run("stop", name)
    p.communicate(timeout=20)


@test
def hidden(w):
    """TOK-019: in no environment, argument list, log or record, and nothing inside can use it."""
    outs(w)
    chain = w.a.narrow(w.a.mint("write:./out/"), "--allow", "write:./out/a/")
    (w.work / "chain").write_text(chain)
    look = ("import os,glob\nt=''\nfor p in glob.glob('/proc/[0-9]*'):\n  for f in ('environ','cmdline'):\n"
            "    try: t+=open(p+'/'+f,errors='replace').read()\n    except OSError: pass\n"
            "open('out/a/seen','w').write(t+os.read(0,1<<20).decode())")
    with open(w.work / "chain") as f:
        p = w.a.start("run", "--token", "-", "--", PYTHON, "-c", look, stdin=f)
        out, err = p.communicate(timeout=60)
    parts = [x for t in chain.split("~") for x in t.split(".")]
    seen = (w.work / "out/a/seen").read_text() if (w.work / "out/a/seen").exists() else None
    w.ok(seen is not None and not any(x in seen for x in parts), "nothing inside sees it, not even its standard input", err.decode())
    kept = b"".join(f.read_bytes() for f in w.a.kept.rglob("*") if f.is_file())
    w.ok(not any(x.encode() in kept for t in chain.split("~") for x in t.split(".")[1:]), "no file of ours has it")
    w.ok(tok.digest(chain.split("~")[-1]).encode() in kept, "but its digest")
    got = w.a.use(w.a.mint("write:./out/", f"read:{w.a.kept}"), "sh", "-c", f"cat {w.a.kept}/keys/holder/*.pem {w.a.kept}/keys/issue.pem")
    w.ok("PRIVATE" not in got.out, "nobody inside has its key", got)


@test
def foreign(w):
    outs(w)
    chain, other = w.a.mint("write:./out/"), Realm(w.top, "b")
    w.refused(other.run("token", "verify", give=chain), "E_ROOT", "another machine does not know its issuer")
    w.refused(other.use(chain, "true"), "E_ROOT", "and runs nothing", 121)
    for key in (w.a.kept / "keys/holder").iterdir():
        key.rename(w.top / key.name)
    got = w.a.use(chain, "true")
    w.refused(got, "E_POP", "whoever copied the text alone has nothing", 121)
    got = w.a.run("token", "attenuate", give=chain)
    w.ok(got.code and not got.out, "and can derive nothing", got)
    for key in w.top.glob("*.pem"):
        key.chmod(0o644)
        key.rename(w.a.kept / "keys/holder" / key.name)
    w.ok(w.a.use(chain, "true").code == 121, "a key that others can read is none")


@test
def garbage(w):
    outs(w)
    chain = w.a.mint("write:./out/")
    head, body, sig = chain.split(".")
    for text, code, what in (("", "E_FORMAT", "nothing"), ("A" * (1 << 20), "E_SIZE", "a megabyte"), (chain + "~" + chain, "E_LINK_ISS", "twice the same"),
                             (chain[:-1], "E_", "the end is missing"), (chain + "A", "E_", "too long"), (f"{head}.{body}.", "E_", "no signature"),
                             (f"{head}.{body[:-4]}AAAA.{sig}", "E_SIG", "another payload"), ("~" * 9 + chain, "E_", "empty parts"),
                             (tok.b64u(b'{"alg":"none","kid":"x","typ":"writ-cap+jwt"}') + f".{body}.", "E_", "no algorithm"),
                             (tok.b64u(b'{"alg":"EdDSA","kid":"../../../../etc/passwd","typ":"writ-cap+jwt"}') + f".{body}.{sig}", "E_", "a path as kid"),
                             (chain + "\0" + "x", "E_", "a NUL"), ("[" * 10000, "E_", "deep")):
        w.refused(w.a.run("token", "verify", give=text), code, what)
    w.refused(w.a.use("A" * (1 << 20), "true"), "E_SIZE", "run", 121)


@test
def own_home(w):
    outs(w)
    w.a.run("run", "--", "sh", "-c", "echo secret > ~/kept")
    got = w.a.use(w.a.mint("write:./out/"), "sh", "-c", "cat ~/kept; echo x > ~/mine && cat ~/mine")
    w.ok(got.out == "x\n", "the home of other sessions is not its home", got)
    w.ok(not list((w.a.kept / "homes").glob("own-*")), "and nothing of its own is left")


@test
def both_tiers(w):
    outs(w)
    for tier in "AB":
        chain = w.a.narrow(w.a.mint("write:./out/"), "--allow", "write:./out/a/")
        got = w.a.use(chain, "sh", "-c", f"echo x > out/a/{tier}; echo x > out/{tier}; cat /etc/shadow", options=("--tier", tier))
        w.ok((w.work / f"out/a/{tier}").exists() and not (w.work / f"out/{tier}").exists(), f"tier {tier}", got)


@test
def agents(w):
    """`writ spawn` inside: the agent of a policy, in a session of its own."""
    outs(w)
    prog = Path(tok.WRIT).parent
    (w.top / "policy").write_text(f"version 1\nallow write ./out/\nallow read {prog}\nallow agent coder\n"
                                  f"agent coder\n    allow write ./out/a/\n")

    def run(script):
        return w.a.run("run", "-p", w.top / "policy", "--", "sh", "-c", QUIET + script)
    got = run(f"echo mine > ~/kept; echo hello | {tok.WRIT} spawn coder -- sh -c 'cat; echo x > out/a/x; echo y > out/y; cat ~/kept; exit 7'; echo ended $?")
    w.ok(got.out == "hello\nended 7\n", "it has our standard descriptors, and we its status", got)
    w.ok((w.work / "out/a/x").exists() and not (w.work / "out/y").exists(), "the kernel refuses what its block dropped", got)
    w.ok("out/y: Permission denied" in got.err and "kept" in got.err, "and it has a home of its own", got)
    logs = {p.stem: [json.loads(x) for x in p.read_text().splitlines()] for p in (w.a.kept / "sessions").glob("*.jsonl")}
    told = {n: {e["event"]: e for e in log} for n, log in logs.items()}
    child = next((n for n in told if "parent" in told[n]), None)
    parent = told[child]["parent"]["session"] if child else None
    w.ok(child and told[parent]["spawn"]["session"] == child and told[parent]["spawn.end"]["exit"] == 7, "both logs name the other", told.keys())
    got = run(f"{tok.WRIT} spawn other -- true; echo $?")
    w.ok(got.out == "125\n" and "no rule lets" in got.err, "another one is not started", got)
    got = run(f"{tok.WRIT} spawn coder -- {tok.WRIT} spawn coder -- true; echo $?")
    w.ok(got.out != "0\n", "an agent has no agents", got)
    begin = time.monotonic()
    got = run(f"{tok.WRIT} spawn coder -- sh -c 'echo x > out/a/up; sleep 61.5' & while [ ! -e out/a/up ]; do sleep 0.05; done; exit 3")
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0061.5" in read(p)]
    w.ok(got.code == 3 and within(time.monotonic() - begin, 15) and not left, "and ends with who started it", (got, left))
    got = w.a.run("run", "--tier", "B", "-p", w.top / "policy", "--", "true")
    w.ok(got.code == 122, "tier B has no way to ask for one", got)
    w.ok(w.a.run("spawn", "coder", "--", "true").code == 125, "nor has who stands outside")
    w.ok(not list((w.a.kept / "homes").glob("own-*")) and not list((w.a.kept / "run").iterdir()), "nothing is left")


class Agents:
    """A policy with an agent, which both sessions and tokens can have."""

    def __init__(self, w, parent="", block="", limits=""):
        outs(w)
        self.w, self.file = w, w.top / "policy"
        self.file.write_text(f"version 1\nallow write ./out/\nallow read {Path(tok.WRIT).parent}\nallow agent coder\n{parent}{limits}"
                             f"agent coder\n    allow write ./out/a/\n{block}")

    def mint(self, *more):
        return self.w.a.run("token", "mint", "-p", self.file, *more).text()

    def run(self, script, chain=None, **kw):
        token = ("--token", "-") if chain else ()
        return self.w.a.run("run", *token, "-p", self.file, "--", "sh", "-c", QUIET + script.replace("SPAWN", f"{tok.WRIT} spawn coder --"),
                             give=chain, **kw)

    def agent(self):
        """The record of the one agent that there was, and its name."""
        for p in (self.w.a.kept / "sessions").glob("*.jsonl"):
            log = [json.loads(x) for x in p.read_text().splitlines()]
            if any(e["event"] == "parent" for e in log):
                return p.stem, {e["event"]: e for e in log}
        return "", {}


@test
def agent_blocks(w):
    """Without tokens: the block is named when it refuses."""
    a = Agents(w)
    got = a.run("SPAWN sh -c 'echo x > out/a/x; echo y > out/y; echo z > /etc/writ-test'; echo ended $?")
    w.ok((w.work / "out/a/x").exists() and not (w.work / "out/y").exists(), "the block holds", got)
    name, _ = a.agent()
    told = w.a.run("session", "denials", name)
    w.ok("the block of agent coder dropped it" in told.out, "what its block dropped is the block's", told)
    got = w.a.run("why", f"{name}#1")
    w.ok(got.code == 1 and "the block of agent coder dropped it" in got.out and "an agent cannot be widened" in got.out, "why says so, too", got)


@test
def agent_tokens(w):
    """Under a token the block is one more token, derived by the supervisor."""
    a = Agents(w)
    (w.work / "out/b").mkdir()
    root = a.mint()
    chain = w.a.narrow(root, "--deny", f"write:{w.work}/out/b/")
    got = a.run("SPAWN sh -c 'echo x > out/a/x; echo y > out/y; echo z > out/b/z; ls ~/../..; cat /proc/self/environ'; echo ended $?", chain)
    w.ok((w.work / "out/a/x").exists() and not (w.work / "out/y").exists() and not (w.work / "out/b/z").exists(), "the kernel refuses what a hop dropped", got)
    name, log = a.agent()
    w.ok(log.get("token", {}).get("hops") == 3, "its chain has one more than its session's", log.keys())
    told = w.a.run("session", "denials", name)
    w.ok("hop 3 of 3 of the chain, agent coder, dropped it" in told.out, "why names the agent's hop", told)
    w.ok("hop 3 of 3 of the chain, agent coder, dropped it" in w.a.run("why", f"{name}#1").out, "by its number as well", told)
    w.ok(log["token"]["token"] in {e["token"] for e in w.a.events("delegation.out")} & {e["token"] for e in w.a.events("token.accept")},
         "the log has what was derived, and that it was used")
    left = [p.name for p in (w.a.kept / "homes").glob("own-*")]
    w.ok(not left and not list((w.a.kept / "run").iterdir()), "nothing is left", left)
    w.ok(len(list((w.a.kept / "keys/holder").iterdir())) == 2, "not even the key of its holder")
    got = a.run("SPAWN true; echo $?", a.mint("--single-use"))
    w.ok(got.out == "121\n" and "E_DEPTH" in got.err, "where nothing can be derived there are no agents", got)
    got = w.a.run("run", "--token", "-", "--", "true", give=a.mint())
    w.ok(got.code == 122 and "-p" in got.err, "a token that lets an agent be started wants its block", got)
    got = a.run(f"cat {w.a.kept}/keys/holder/*.pem; SPAWN sh -c 'cat {w.a.kept}/keys/holder/*.pem'", a.mint())
    w.ok("PRIVATE" not in got.out, "neither of them has a key", got)
    w.ok(w.a.run("audit", "verify").code == 0, "all of it verifies")


@test
def agent_extras(w):
    """What stands in a block and not in the token is not the agent's."""
    a = Agents(w, "env WRIT_TEST_X\n", "    env WRIT_TEST_X\n    env WRIT_TEST_Y=set\n")
    script, env = "SPAWN sh -c 'echo got $WRIT_TEST_X $WRIT_TEST_Y'", {"WRIT_TEST_X": "leak"}
    got = a.run(script, env=env)
    w.ok(got.out == "got leak set\n", "of a policy it has its variables", got)
    chain = w.a.mint("write:./out/", f"read:{Path(tok.WRIT).parent}", "agent:coder")
    got = a.run(script, chain, env=env)
    w.ok(got.out == "got\n", "under a token that does not name them, it has none", got)
    got = a.run(script, a.mint(), env=env)
    w.ok(got.out == "got leak\n", "under one that does, those that are passed", got)


@test
def agent_revoked(w):
    a = Agents(w)
    root = a.mint()
    begin = time.monotonic()
    p = w.a.start("run", "-q", "--token", "-", "-p", a.file, "--", "sh", "-c", f"{tok.WRIT} spawn coder -- sh -c 'echo x > out/a/up; sleep 61.7'; sleep 60",
                  stdin=subprocess.PIPE)
    p.stdin.write(root.encode())
    p.stdin.close()
    p.stdin = None
    while not (w.work / "out/a/up").exists() and p.poll() is None and time.monotonic() - begin < 20:
        time.sleep(0.02)
    begin = time.monotonic()
    w.a.run("token", "revoke", "-", give=root)
    _, err = p.communicate(timeout=30)
    left = [x for x in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0061.7" in read(x)]
    w.ok(p.returncode == 143 and within(time.monotonic() - begin, 5) and not left, f"both end with the token ({time.monotonic() - begin:.1f} s)", (err.decode(), left))


class Counting:
    """A server that counts who came."""

    def __init__(self):
        self.socket, self.seen = socket.socket(), []
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
                self.seen.append(1)
                c.sendall(b"hello")
                c.close()
            except OSError:
                return

    def ask(self, times):
        return (f"import socket\nfor i in range({times}):\n  try:\n    s=socket.create_connection(('host.writ',{self.port}),9)\n"
                "    print(s.recv(9)==b'hello')\n  except OSError: print(False)")


@test
def agent_counters(w):
    """Several agents together never use more than their session has, with and without tokens."""
    server = Counting()
    a = Agents(w, f"allow net tcp://localhost:{server.port} count=5\n", f"    allow net tcp://localhost:{server.port} count=3\n")
    (w.work / "out/a/ask").write_text(server.ask(4))
    asks = f"{PYTHON} out/a/ask; SPAWN {PYTHON} out/a/ask & SPAWN {PYTHON} out/a/ask; wait"
    first = f"SPAWN {PYTHON} out/a/ask; {asks}"
    got = a.run(first)
    w.ok(got.out.split()[:4] == ["True"] * 3 + ["False"], "an agent has no more than its block", got)
    w.ok(len(server.seen) == 5 and got.out.count("True") == 5, f"and all together no more than their session: {len(server.seen)}", got)
    server.seen.clear()
    root = a.mint()
    got = a.run(first, w.a.narrow(root))
    w.ok(len(server.seen) == 5 and got.out.count("True") == 5, f"under a token as well: {len(server.seen)}", got)
    got = a.run(asks, w.a.narrow(root))
    w.ok(len(server.seen) == 5 and "True" not in got.out, "and the token has nothing left", got)
    server.socket.close()


@test
def agent_limits(w):
    server = Counting()
    a = Agents(w, f"allow net tcp://localhost:{server.port}\n", f"    allow net tcp://localhost:{server.port}\n", limits="limit requests 4\n")
    (w.work / "out/a/ask").write_text(server.ask(3))
    got = a.run(f"SPAWN {PYTHON} out/a/ask; {PYTHON} out/a/ask; SPAWN {PYTHON} out/a/ask")
    w.ok(len(server.seen) == 4 and got.out.count("True") == 4, f"limit requests is of all together: {len(server.seen)}", got)
    server.socket.close()


@test
def shared_limits(w):
    """Limits on requests and bytes of a token are those of all its sessions."""
    server = Counting()
    root = w.a.mint(f"net:tcp://localhost:{server.port}", more=("--limit", "requests=4", "--limit", "down=1M"))
    for n in (3, 1, 0):
        got = w.a.use(w.a.narrow(root), PYTHON, "-c", server.ask(3))
        w.ok(got.out.count("True") == n, f"{n} of four are left", got)
    w.ok(len(server.seen) == 4, "four in all")
    used = json.loads(w.a.run("token", "inspect", "--json", give=root).out)["hops"][0]["used"]
    w.ok(used["requests"] == 4 and used["down"] == 20, "inspect says what was used", used)
    w.ok("4 of 4 requests" in w.a.run("token", "inspect", give=root).out, "also to people")
    server.seen.clear()
    root = w.a.mint(f"net:tcp://localhost:{server.port}", more=("--limit", "down=12"))
    good = [w.a.use(w.a.narrow(root), PYTHON, "-c", server.ask(2)).out.count("True") for _ in range(2)]
    w.ok(good == [2, 0], "bytes as well", good)
    server.socket.close()


@test
def unspent(w):
    """A start that fails for another reason than the token leaves it as it was."""
    outs(w)
    chain = w.a.mint("write:./out/", more=("--single-use",))
    got = w.a.use(chain, "no-such-program")
    w.ok(got.code == 127, "a program that is not there", got)
    (w.work / "out/plain").write_text("x")
    got = w.a.use(chain, "out/plain")
    w.ok(got.code == 126, "one that cannot be run", got)
    w.ok(not list((w.a.kept / "tokens/spent").iterdir()) and len(w.a.events("token.spend")) == len(w.a.events("token.unspend")) == 2,
         "both gave back what they took, and the log has it")
    got = w.a.use(chain, "true", options=("--tier", "C"))
    w.ok(got.code == 125, "no such tier", got)
    got = w.a.use(chain, "true", options=("--allow", "exec:/usr/bin/true"))
    w.ok(got.code == 122 and "exec" in got.err, "a plan that is refused", got)
    got = w.a.use(chain, "sh", "-c", "echo x > out/x; exit 127")
    w.ok(got.code == 127 and (w.work / "out/x").exists(), "then it runs", got)
    w.refused(w.a.use(chain, "true"), "E_REPLAY", "once, whatever its status was", 121)
    w.ok(w.a.run("audit", "verify").code == 0, "and all of it verifies")


@test
def quietly_revoked(w):
    """A list that is changed in place, with all its times put back, is seen as well."""
    outs(w)
    other, chain = w.a.mint("write:./out/"), w.a.mint("write:./out/")
    ids = [json.loads(w.a.run("token", "inspect", "--json", give=c).out)["hops"][0]["jti"] for c in (other, chain)]
    w.a.run("token", "revoke", ids[0])
    file = w.a.kept / "tokens/revoked"
    old = time.time() - 3600
    for p in (file, file.parent):
        os.utime(p, (old, old))
    p = running(w, chain, "sleep 60")
    time.sleep(3)
    begin = time.monotonic()
    with open(file, "r+") as f:
        text = f.read().replace(ids[0], ids[1])
        f.seek(0)
        f.write(text)
    for x in (file, file.parent):
        os.utime(x, (old, old))
    _, err = p.communicate(timeout=30)
    w.ok(p.returncode == 143 and within(time.monotonic() - begin, 3), f"within a second ({time.monotonic() - begin:.1f} s)", err.decode())


@test
def words(w):
    """What people are told."""
    outs(w)
    got = w.a.run("token", "verify", give="")
    w.ok(got.code == 1 and "standard input" in got.err and "expected a chain" in got.err, "of nothing, what was expected", got)
    (w.work / "empty").write_text("\n")
    got = w.a.run("token", "trust", "empty")
    w.ok(got.code == 1 and "expected a bundle" in got.err, "of a bundle, too", got)
    chain = w.a.mint("write:./out/", more=("--for", "1s"))
    known = json.loads(w.a.run("token", "inspect", "--json", give=w.a.mint("write:./out/")).out)["hops"][0]["jti"]
    got = w.a.run("token", "revoke", known)
    w.ok(got.code == 0 and "made or used here" not in got.err, "one that was made here", got)
    got = w.a.run("token", "revoke", known[:-4] + "0000")
    w.ok(got.code == 0 and "no token of that id was made or used here" in got.err, "one that nobody knows is revoked, and they say so", got)
    w.ok(known[:-4] + "0000" in (w.a.kept / "tokens/revoked").read_text(), "it is on the list")
    time.sleep(1.2)
    got = w.a.run("token", "inspect", give=chain)
    w.ok(got.code == 1 and "expired at 20" in got.err and "seconds ago" in got.err, "when it expired", got)
    got = w.a.run("token", "mint", "--allow", "net:tcp://localhost:9;rate=1/1m")
    w.ok(got.code == 0 and got.out and "no token of this can be run" in got.err, "what cannot be held is minted with a word", got)
    got = w.a.run("token", "mint", "--allow", "tool:mail/send")
    w.ok(got.code == 0 and "would end with 122" in got.err, "also what this machine cannot hold", got)
    (w.a.kept / "tokens/clock").write_text(f"{int(time.time()) + 3600}\n")
    got = w.a.run("token", "verify", give=w.a.run("token", "mint", "--allow", "write:./out/").out)
    w.ok(got.code == 1 and "went back by 3" in got.err and "tokens/clock" in got.err and "not valid now" not in got.err, "a clock that went back", got)


@test
def agent_descriptors(w):
    a = Agents(w)
    (w.work / "out/odd.py").write_text(f"""
import os, subprocess, sys
def spawn(**kw):
    p = subprocess.run(["{tok.WRIT}", "spawn", "coder", "--", "sh", "-c", "test -t 1; echo terminal $?"], stderr=subprocess.PIPE, **kw)
    return p.returncode, p.stderr.decode().strip()
print(spawn(stdout=os.eventfd(0)))
print(spawn(stdin=os.open(".", os.O_RDONLY), stdout=subprocess.DEVNULL))
print(spawn(stdin=subprocess.DEVNULL, stdout=open("out/a/file", "w")))
top, bottom = os.openpty()
print(spawn(stdin=bottom, stdout=bottom)[0], os.read(top, 99).decode().strip())
""")
    got = a.run(f"{PYTHON} out/odd.py")
    lines = got.out.splitlines() + [""] * 4
    w.ok(lines[0].startswith("(125") and "standard output is neither" in lines[0], "an eventfd is no output", got)
    w.ok(lines[1].startswith("(125") and "standard input is a directory" in lines[1], "a directory no input", got)
    w.ok(lines[2].startswith("(0") and (w.work / "out/a/file").read_text() == "terminal 1\n", "a file is one", got)
    w.ok(lines[3] == "0 terminal 1", "of a terminal it gets a pipe, and we pass it on", got)


@test
def swept(w):
    """What a session that was killed hard has left is removed by the next one."""
    outs(w)
    p = running(w, w.a.mint("write:./out/"), "echo x > ~/kept; sleep 60")
    homes = w.a.kept / "homes"
    w.ok(len(list(homes.glob("own-*"))) == 1, "it has a home")
    q = running(w, w.a.mint("write:./out/"), "sleep 60")
    p.kill()
    p.communicate(timeout=20)
    w.ok(len(list(homes.glob("own-*"))) == 2, "which is left when it is killed")
    w.a.run("run", "--", "true")
    w.ok(len(list(homes.glob("own-*"))) == 1, "and removed by the next, which leaves those of others")
    q.terminate()
    q.communicate(timeout=20)
    w.ok(not list(homes.glob("own-*")) and not list((w.a.kept / "run").iterdir()), "in the end nothing is left")


class Web:
    """An HTTPS server on the loopback, its authority, and what was asked of it."""

    def __init__(self, w):
        ca, key, self.asked = w.top / "web.pem", w.top / "web.key", []
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", ca], check=True, stderr=subprocess.DEVNULL)
        web = self

        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                web.asked.append(f"{self.command} {self.path}")
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")
            do_POST = do_GET

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(ca, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port, self.env = self.server.server_address[1], {"WRIT_CA_FILE": str(ca)}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self, *what):
        """Each "METHOD PATH" in a connection of its own: prints the status, or that there was none."""
        return (f"import http.client,ssl\nfor m,p in {[x.split() for x in what]}:\n  try:\n    c=http.client.HTTPSConnection('localhost',{self.port},timeout=9,"
                "context=ssl.create_default_context())\n    c.request(m,p,b'x' if m=='POST' else None)\n    r=c.getresponse()\n    print(r.status if r.status<500 else str(r.status)+'_'+str(r.headers.get('x-writ-reason')).replace(' ','_'))\n  except Exception as e: print(type(e).__name__)")


@test
def requests(w):
    """Hops and counters of requests that are read."""
    outs(w)
    web = Web(w)
    site = f"net:https://localhost:{web.port}"
    root = w.a.mint(f"{site}/v1/**;methods=GET,POST", "write:./out/")
    chain = w.a.narrow(root, "--allow", f"{site}/v1/items/**;methods=GET")
    got = w.a.use(chain, PYTHON, "-c", web.ask("GET /v1/items/1", "GET /v1/other", "POST /v1/items/1", "GET /v2"), env=web.env)
    w.ok(got.out.split() == ["200", "403", "403", "403"], "only what both hops allow is answered", got)
    w.ok(web.asked == ["GET /v1/items/1"], "and nothing else was asked", web.asked)
    name = max((w.a.kept / "sessions").glob("*.jsonl"), key=lambda p: p.stat().st_mtime)
    why = [e.get("why", "") for e in map(json.loads, name.read_text().splitlines()) if e.get("answer") == "deny"]
    w.ok(sum("hop 2 of 2 of the chain dropped it" in x for x in why) == 2 and any("hop 1 of 2 of the chain never had it" in x for x in why),
         "the record names the hop", why)
    w.ok("hop 2 of 2 of the chain dropped it" in w.a.run("session", "denials", name.stem).out, "and so do the denials")
    web.asked.clear()
    root = w.a.mint(f"{site}/v1/**;methods=GET;count=4")
    child = w.a.narrow(root, "--allow", f"{site}/v1/**;methods=GET;count=3")
    got = [w.a.use(w.a.narrow(c), PYTHON, "-c", web.ask(*["GET /v1/x"] * 4), env=web.env).out.split() for c in (child, root)]
    w.ok([x.count("200") for x in got] == [3, 1] and len(web.asked) == 4, "sessions share what is counted of requests", (got, web.asked))
    web.asked.clear()
    root = w.a.mint(f"{site}/v1/**;methods=GET", more=("--limit", "requests=3"))
    got = [w.a.use(w.a.narrow(root), PYTHON, "-c", web.ask(*["GET /v1/x"] * 2), env=web.env).out.split() for _ in range(2)]
    w.ok([x.count("200") for x in got] == [2, 1] and len(web.asked) == 3, "and the limit of requests", (got, web.asked))
    web.server.shutdown()


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(tok.main())
