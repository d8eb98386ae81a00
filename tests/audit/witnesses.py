"""witnesses.py - what a copy cannot say of itself: is it all there is?"""
import os
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from audit import Kept, fails, holds, verify
from host import test
from keys import vkey
from bounds import within


def serve(w, *logs, listen="127.0.0.1:0"):
    """A witness with a home of its own. Returns (process, URL, verifier key)."""
    home = w.dir / "witness-home"
    home.mkdir(exist_ok=True)
    proc = w.start([w.program, "witness", "serve", "--listen", listen, *logs], env={**w.env, "HOME": str(home)}, stdout=subprocess.PIPE)
    url, key = proc.stdout.readline().decode().split()
    return proc, url, key


def say(url, data, wait=5.0, source="127.0.0.1"):
    """What a witness answers to these bytes."""
    host, port = re.match(r"http://([^:]*):(\d+)", url).groups()
    with socket.create_connection((host, int(port)), timeout=wait, source_address=(source, 0)) as s:
        s.sendall(data)
        got = b""
        while chunk := s.recv(4096):
            got += chunk
    return got


@test("a witness cosigns, and finds what was cut off or put back")
def _(w):
    w.run("true")
    proc, url, key = serve(w, vkey(w))
    r = w.writ("witness", "add", url, key)
    w.ok(r.code == 0 and "without its word" in r.said, "added", r)
    w.exits(w.writ("witness", "add", url, key), 125, "only once")
    fails(w, "witness", "before it has seen anything there is nothing to go by")
    w.exits(w.writ("audit", "witness"), 0, "it cosigns")
    holds(w, "then all is well")
    yesterday = Kept(w)
    for _ in range(2):
        r = w.run("true")
        w.ok(r.code == 0 and not r.said, "a session ends as before", r)
    holds(w, "and is cosigned by itself")
    r = w.writ("attest", "verify")
    w.ok(r.code == 0 and "1 witness" in r.text, "attest verify counts it", r)
    w.ok(key.split("+")[0] in (w.state / "log/cosigned").read_text(), "what it said is kept beside")
    today = Kept(w, "today")
    yesterday.back()
    code, result = verify(w)
    w.ok(code == 1 and any("older copy" in f["what"] for f in result["failures"]), "yesterday's copy of everything", result)
    r = w.run("true")
    w.ok(r.code == 0 and ("another log" in r.said or "has seen more" in r.said), "a session says so when it ends", r)
    fails(w, "witness", "and it does not heal by going on")
    today.back()
    holds(w, "today's verifies")
    log = w.state / "log"
    wal = next((log / "wal").iterdir())
    wal.write_bytes(b"".join(wal.read_bytes().splitlines(keepends=True)[:-2]))
    for name in ("checkpoint", "latest", "cosigned"):
        (log / name).unlink(missing_ok=True)
    fails(w, "witness", "the end of the log cut off, with all that was signed beside it")
    w.run("true")
    w.writ("audit", "witness")
    fails(w, "witness", "also when it was signed again")


@test("a witness that is gone or strange does not hold a session up")
def _(w):
    w.run("true")
    proc, url, key = serve(w, vkey(w))
    w.exits(w.writ("witness", "add", url, key), 0, "added")
    w.exits(w.writ("audit", "witness"), 0, "cosigned")
    proc.kill()
    proc.wait()
    r = w.run("true")
    w.ok(r.code == 0 and "cannot be reached" in r.said and within(r.seconds, 5), "gone: said, and the exit code is the command's", r)
    w.ok('"witness.failed"' in next((w.state / "log/wal").iterdir()).read_text(), "and on record")
    fails(w, "witness", "without it nothing verifies, as the policy wants")
    policy = w.home / ".config/writ/log.policy"
    text = policy.read_text()
    policy.write_text(text.replace("quorum witnesses", "quorum none"))
    holds(w, "unless nobody has to")
    policy.write_text(text)
    port = int(url.rsplit(":", 1)[1])
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent.bind(("127.0.0.1", port))
        silent.listen()
        r = w.run("true")
        w.ok(r.code == 0 and "does not answer" in r.said and within(r.seconds, 6), "silent: the end of a session waits two seconds", r)
    proc, _, _ = serve(w, vkey(w), listen=f"127.0.0.1:{port}")
    r = w.run("true")
    w.ok(r.code == 0 and not r.said, "back: made up for by the next session", r)
    holds(w, "and all verifies")


@test("a key that changes: the witness cosigns the change, then wants to be told")
def _(w):
    w.run("true")
    proc, url, key = serve(w, vkey(w))
    w.writ("witness", "add", url, key)
    w.exits(w.writ("audit", "witness"), 0, "cosigned")
    old = vkey(w)
    w.writ("key", "rotate")
    r = w.writ("audit", "witness")
    w.ok(r.code == 1 and "does not know the key" in r.text, "it does not know the new one", r)
    proc.kill()
    proc.wait()
    proc, _, _ = serve(w, old, vkey(w), listen=url.removeprefix("http://"))
    w.exits(w.writ("audit", "witness"), 0, "told, it goes on")
    holds(w, "it verifies")


@test("bytes that are no request, slow ones, many at once")
def _(w):
    w.run("true")
    proc, url, key = serve(w, vkey(w))
    head = b"POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\n"
    for data, status in ((b"\0\0\0\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"404"), (head + b"\r\n", b"411"),
                         (head + b"Content-Length: 99999999\r\n\r\n", b"413"), (head + b"Content-Length: 3\r\n\r\nabc", b"400"),
                         (head + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na", b"400"), (b"A" * 20000, b"400")):
        got = say(url, data)
        w.ok(got.split(b" ")[1:2] == [status], f"{data[:60]!r}: {status.decode()}", got)
    port = int(url.rsplit(":", 1)[1])
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    for s in slow:
        s.sendall(b"POST /add")
    w.writ("witness", "add", url, key)
    r = w.writ("audit", "witness", timeout=20)
    w.exits(r, 0, "a hundred that say nothing do not keep it from answering")
    for s in slow:
        s.close()
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda i: w.run("true", timeout=60), range(24)))
    w.same({(r.code, r.said) for r in runs}, {(0, "")}, "24 sessions ask it, eight at a time, and none of them is refused")
    w.exits(w.writ("audit", "witness"), 0, "and it has seen them all")
    holds(w, "it verifies")
    r = w.call([w.program, "witness", "serve", "--listen", "127.0.0.1:0", vkey(w)], env={**w.env, "HOME": str(w.dir / "witness-home")}, timeout=10)
    w.ok(r.code == 125 and "another witness" in r.said, "two cannot have one memory", r)
    for bad in ("https://127.0.0.1:1", "http://witness.test:1", "127.0.0.1:1"):
        w.exits(w.writ("witness", "add", bad, key), 125, f"{bad} is no witness")
    w.exits(w.writ("witness", "add", url, vkey(w)), 125, "nor is a log")


def still_open(s):
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@test("who holds connections open keeps nobody else from being heard")
def _(w):
    w.run("true")
    proc, url, key = serve(w, vkey(w))
    port, ask, held = int(url.rsplit(":", 1)[1]), b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", []

    def hold(source):
        s = socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(source, 0))
        s.sendall(b"POST /add")
        held.append(s)

    def heard(source, text):
        began = time.monotonic()
        try:
            got = say(url, ask, 8, source)
        except OSError as e:
            got = str(e).encode()
        w.ok(b" 404 " in got and within(time.monotonic() - began, 4), text, got)
    for _ in range(300):
        hold("127.0.0.1")
    heard("127.0.0.2", "300 of one address: another one is")
    heard("127.0.0.1", "and so is that one")
    for i in range(240):
        hold(f"127.0.{1 + i % 40}.1")
    heard("127.0.0.2", "240 more of forty addresses: it still is")
    for s in held:
        s.setblocking(False)
    alive = sum(map(still_open, held))
    w.ok(40 <= alive <= 128, "no more than there are places", alive)
    if os.environ.get("WRIT_TEST_LONG"):
        time.sleep(10.5)
        heard("127.0.0.2", "all of them had their time")
        w.same(sum(map(still_open, held)), 0, "and are closed")
    for s in held:
        s.close()
