"""control.py - the control socket of a session: its methods, and clients that mean harm."""
import array
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

from host import PYTHON, Control, code_of, test, wait_for

MIB = 1 << 20


def session(w, *command):
    """A session that stays, with an ordinary client."""
    sid = w.session(*(("--", *command) if command else ())).text.strip()
    return sid, Control(w, sid)


def goes_on(w, sid, ordinary, what):
    """The session, its other clients and new ones are served as before."""
    start = time.monotonic()
    got = ordinary.call("session.get")
    w.ok(got and got["result"]["state"] == "running", f"{what}: another client is answered", got)
    r = w.writ("session", "exec", sid, "--", "sh", "-c", "exit 5")
    w.same(r.code, 5, f"{what}: the session runs commands")
    w.ok(time.monotonic() - start < 5, f"{what}: without delay")


def lost(c, seconds=10):
    """Has the session closed the connection? Reads what is left."""
    c.socket.settimeout(seconds)
    try:
        while c.socket.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def end(w, sid):
    w.exits(w.writ("stop", sid), 0, "it is stopped")
    w.clean(seconds=5)


@test("methods")
def _(w):
    (w.ws / "file").write_text("x")
    sid, c = session(w)
    hello = c.call("hello", protocol=1, client="test")["result"]
    w.same((hello["protocol"], hello["session"]), (1, sid), "hello names the protocol and the session")
    got = c.call("session.get")["result"]
    w.same((got["session"], got["state"], got["denials"], got["workspace"]), (sid, "running", 0, str(w.ws)), "session.get")
    started = c.call("proc.start", argv=["sh", "-c", "exit 7"], env=[])["result"]
    w.same(c.call("proc.wait", proc=started["proc"])["result"], {"proc": started["proc"], "exit_code": 7}, "proc.start and proc.wait")
    started = c.call("proc.start", argv=["sleep", "60"], env=[])["result"]
    c.send("proc.wait", proc=started["proc"])
    c.send("proc.signal", proc=started["proc"], signal=15)
    answers = {m["id"]: m["result"] for m in (c.receive(), c.receive())}
    w.same(answers, {c.last: {}, c.last - 1: {"proc": started["proc"], "exit_code": 143}}, "proc.signal; the wait that came first is answered last")
    c.call("proc.start", argv=["sh", "-c", "echo x > /usr/share/writ-control-test"], env=[])
    w.ok(wait_for(lambda: c.call("denial.list")["result"]["denials"], 5), "denial.list has what was refused")
    row = c.call("denial.list", after=0, max=1)["result"]["denials"][0]
    w.same((row["number"], row["op"], row["object"]), (1, "write", "/usr/share/writ-control-test"), "as members")
    d = w.dir / "granted"
    d.mkdir()
    grant = c.call("grant.allow", action="read", object=str(d))["result"]
    w.same(grant, {"grant": 1}, "grant.allow")
    w.same(c.call("grant.revoke", grant=1)["result"], {}, "grant.revoke")
    w.same(code_of(c.call("grant.revoke", grant=1)), "not_found", "which is then gone")
    waits = Control(w, sid)
    waits.send("session.wait")
    w.same(c.call("session.close")["result"], {}, "session.close")
    got = waits.receive()["result"]
    w.same((got["session"], got["exit_code"], got["ended_by"]), (sid, 143, "stopped from outside"), "session.wait tells how it ended")
    w.clean(seconds=5)


@test("descriptors of a command")
def _(w):
    sid, c = session(w)
    r, wr = os.pipe()
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "proc.start", "fds": 1,
                       "params": {"argv": ["echo", "hello"], "env": [], "stdio": 2}}).encode() + b"\n"
    socket.send_fds(c.socket, [text], [wr])
    os.close(wr)
    w.ok(c.receive()["result"]["proc"] > 0, "a command with a pipe as its output")
    w.same(os.read(r, 100), b"hello\n", "writes to it")
    big = ["sh", "-c", "echo $#", "x"] + ["a" * 100000] * 12
    fd = os.memfd_create("params")
    os.write(fd, json.dumps({"argv": big, "env": [], "stdio": 2}).encode())
    r2, wr = os.pipe()
    socket.send_fds(c.socket, [b'{"jsonrpc":"2.0","id":2,"method":"proc.start","file":true,"fds":2}\n'], [fd, wr])
    os.close(wr)
    w.ok(c.receive()["result"]["proc"] > 0, "parameters in a file")
    w.same(os.read(r2, 100), b"12\n", "may be larger than a line")
    for n in (r, r2, fd):
        os.close(n)
    end(w, sid)


@test("frames that mean harm")
def _(w):
    sid, ordinary = session(w)
    c = Control(w, sid)
    for frame, code in ((b"nonsense", "parse_error"), (b"{", "parse_error"), (b"\xff\xfe", "parse_error"), (b"", "parse_error"),
                        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}', "parse_error"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"hello","params":' + b"[" * 40 + b"]" * 40 + b"}", "parse_error"),
                        (b"[]", "invalid_request"), (b"{}", "invalid_request"), (b'"x"', "invalid_request"),
                        (b'{"jsonrpc":"1.0","id":1,"method":"hello"}', "invalid_request"),
                        (b'{"jsonrpc":"2.0","id":1.5,"method":"hello"}', "invalid_request"),
                        (b'{"jsonrpc":"2.0","id":1,"method":7}', "invalid_request"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"hello","params":[1]}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.start"}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.start","params":{"argv":[],"env":[]}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.start","params":{"argv":["true"],"env":[],"stdio":7}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.start","params":{"argv":[{"base64":"AA=="}],"env":[]}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.wait","params":{"proc":-1}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.wait","params":{"proc":99999}}', "not_found"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"proc.signal","params":{"proc":1,"signal":999}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"grant.allow","params":{"action":"own","object":"/"}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"grant.allow","params":{"action":"net","object":"a\\nb","caps":["x"]}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"grant.allow","params":{"action":"read","object":"/proc"}}', "denied"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"denial.list","params":{"after":"x"}}', "invalid_params"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 5000 + b'"}', "method_not_found"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"session.open"}', "method_not_found"),
                        (b'{"jsonrpc":"2.0","id":1,"method":"hello","file":true}', "invalid_params")):
        c.raw(frame + b"\n")
        w.same(code_of(c.receive()), code, f"{frame[:60]}")
    w.same(c.call("session.get")["result"]["state"], "running", "after all of them the same client is still served")
    goes_on(w, sid, ordinary, "frames")
    end(w, sid)


@test("connections that mean harm")
def _(w):
    sid, ordinary = session(w)
    c = Control(w, sid)
    try:
        c.raw(b" " * (MIB + 200000))
    except (BrokenPipeError, ConnectionResetError):
        pass
    w.ok(lost(c), "a line without an end ends the connection")
    goes_on(w, sid, ordinary, "an endless line")
    for text, n in ((b'{"jsonrpc":"2.0","id":1,"method":"hello","fds":2}\n', 1), (b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n', 3)):
        c = Control(w, sid)
        socket.send_fds(c.socket, [text], [0] * n)
        w.ok(lost(c), "descriptors that are not counted right end the connection")
    c = Control(w, sid)
    c.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
    c.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
    c.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
    w.ok(lost(c), "and so do many without a message")
    goes_on(w, sid, ordinary, "descriptors")
    supervisor = ordinary.call("session.get")["result"]["pid"]
    w.ok(len(os.listdir(f"/proc/{supervisor}/fd")) < 40, "none of them is left open in the supervisor")
    half = Control(w, sid)
    half.raw(b'{"jsonrpc":"2.0",')
    half.close()
    goes_on(w, sid, ordinary, "half a message")
    end(w, sid)


@test("floods and slow clients")
def _(w):
    sid, ordinary = session(w)
    slow = Control(w, sid)
    request = b'{"jsonrpc":"2.0","id":"%s","method":"no.such"}\n' % (b"x" * 60)
    slow.socket.settimeout(5)
    sent = 0
    try:
        while sent < 64 * MIB:
            sent += slow.socket.send(request * 200)
    except (BrokenPipeError, ConnectionResetError, TimeoutError):
        pass
    w.ok(sent < 64 * MIB and lost(slow), "a client that asks and never reads loses its connection", sent)
    goes_on(w, sid, ordinary, "a slow client")
    keen = Control(w, sid)
    started = keen.call("proc.start", argv=["sleep", "60"], env=[])["result"]["proc"]
    for _ in range(64):
        keen.send("proc.wait", proc=started)
    w.same(code_of(keen.call("proc.wait", proc=started)), "limit", "the 65th request that waits is refused")
    goes_on(w, sid, ordinary, "requests that wait")
    keen.close()
    many = [Control(w, sid) for _ in range(60)]
    answers = []
    for c in many:
        try:
            answers.append(c.call("hello"))
        except BrokenPipeError:
            answers.append(c.receive())
    w.ok(answers[0] and answers[0].get("result"), "many clients: the first are served", answers[0])
    w.ok(any(code_of(a) == "limit" for a in answers), "the last are refused, with a reason")
    got = ordinary.call("session.get")
    w.same(got["result"]["state"], "running", "and who was there before is served")
    for c in many:
        c.close()
    w.ok(wait_for(lambda: w.writ("ps").code == 0 and sid in w.writ("ps").text, 5), "when they are gone others are served")
    goes_on(w, sid, ordinary, "many clients")
    end(w, sid)


@test("a command ends with its connection")
def _(w):
    sid, ordinary = session(w)
    c = Control(w, sid)
    c.call("proc.start", argv=["sh", "-c", "sleep 600; :", w.mark], env=[])
    inside = lambda: w.mark in w.writ("session", "exec", sid, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text
    w.ok(wait_for(inside, 5), "control: it runs")
    c.close()
    w.ok(wait_for(lambda: not inside(), 5), "it is killed when its client is gone")
    goes_on(w, sid, ordinary, "afterwards")
    end(w, sid)


@test("wrong states")
def _(w):
    sid, c = session(w, "sh", "-c", "trap 'sleep 1; exit' TERM; while :; do sleep 0.05; done")
    c.send("session.close")
    c.send("proc.start", argv=["true"], env=[])
    answers = {m["id"]: m for m in (c.receive(), c.receive()) if m}
    w.same(answers.get(1, {}).get("result"), {}, "it is closed")
    w.same(code_of(answers.get(2)), "session_gone", "nothing is started in a session that ends")
    w.clean(seconds=8)


@test("the client of the manual")
def _(w):
    page = (Path(__file__).resolve().parents[2] / "docs/control.md").read_text()
    code = re.search(r"```python\n(# complete.*?)```", page, re.S)
    script = w.dir / "client.py"
    script.write_text(code[1] if code else "")
    sid, ordinary = session(w)
    r = subprocess.run([PYTHON, script, sid, "sh", "-c", "echo hello; echo x > /usr/share/writ-control-page; exit 3"], env=w.env, timeout=30,
                       capture_output=True, text=True)
    w.same((r.returncode, r.stdout.splitlines()[:1]), (3, ["hello"]), "runs a command")
    w.ok("write /usr/share/writ-control-page" in r.stderr, "and shows what was denied", r.stderr)
    goes_on(w, sid, ordinary, "afterwards")
    end(w, sid)
