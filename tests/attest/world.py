"""world.py - what the tests of statements share: a home of their own, runs, TAP, writ-signer spoken to by hand."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "lib"))  # for bounds.py

WRIT = os.path.abspath(os.environ.get("WRIT", "writ"))
FILES = ["entries.jsonl", "session.json", "session.sigstore.json", "start.tlog-proof", "end.tlog-proof"]
count = bad = 0


def ok(good, name, notes=""):
    global count, bad
    count, bad = count + 1, bad + (not good)
    print(f"{'' if good else 'not '}ok {count} - {name}".replace("\n", " "), flush=True)
    for line in str(notes).splitlines()[-15:] if not good else ():
        print(f"# {line}", flush=True)
    return good


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


class Done:
    def __init__(self, p):
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    def __str__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


class World:
    """A home and a workspace; nothing of the machine's own settings."""

    def __init__(self, user=None, signer="none"):
        self.top = Path(tempfile.mkdtemp(prefix="writ-attest-", dir="/tmp"))
        self.home, self.work, self.bin = self.top / "home", self.top / "work", self.top / "bin"
        for d in (self.home, self.work, self.bin):
            d.mkdir()
        for name in ("writ", "writ-signer"):
            shutil.copy(Path(WRIT).parent / name, self.bin / name)
        self.writ, self.head = str(self.bin / "writ"), []
        self.env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "WRIT_SIGNER": str(signer)}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        if user:
            self.head = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
            subprocess.run(["chmod", "755", self.top], check=True)
            subprocess.run(["chown", "-R", user, self.top], check=True)
        self.state, self.config = self.home / ".local/state/writ", self.home / ".config/writ"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def do(self, *words, env=None, head=None, cwd=None, **kw):
        return Done(subprocess.run((self.head if head is None else head) + [str(w) for w in words],
                                   env={**self.env, **(env or {})}, cwd=cwd or self.work, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   timeout=60, **kw))

    def call(self, *words, **kw):
        return self.do(self.writ, *words, **kw)

    def start(self, *words, **kw):
        return subprocess.Popen(self.head + [str(w) for w in (self.writ, *words)], env=self.env, cwd=self.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    def running(self, *words):
        """A session whose command runs: its supervisor, and its record."""
        old = set((self.state / "sessions").glob("*.jsonl"))
        p, end = self.start(*words), time.monotonic() + 30
        while time.monotonic() < end:
            for f in set((self.state / "sessions").glob("*.jsonl")) - old:
                if b'"sealed"' in f.read_bytes():
                    return p, f
            time.sleep(0.02)
        return p, None

    def record(self):
        return max((self.state / "sessions").glob("*.jsonl"), key=lambda p: p.stat().st_mtime_ns)

    def json(self, *words, **kw):
        r = self.call("attest", "verify", "--json", *words, **kw)
        return r.code, json.loads(r.out) if r.out.startswith("{") else {"error": r.err}


def flips(path, step):
    """The file with one bit changed in every @step-th byte, each time; put back at the end."""
    whole = path.read_bytes()
    try:
        for i in range(0, len(whole), step):
            path.write_bytes(whole[:i] + bytes([whole[i] ^ 1 << i % 7]) + whole[i + 1:])
            yield i
    finally:
        path.write_bytes(whole)


class Signer:
    """The installed program, started by hand as whoever we want to be."""

    def __init__(self, world, program, mode, given=None, **kw):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(20)
        fds = [theirs.fileno()] + ([given] if given is not None else [])

        def place():
            high = [os.dup2(fd, 50 + i, inheritable=False) for i, fd in enumerate(fds)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
        self.p = subprocess.Popen(world.head + [str(program), mode], pass_fds=[3, 4, *fds], preexec_fn=place,
                                  env=kw.pop("env", {}), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, **kw)
        theirs.close()

    def say(self, letter, what=b""):
        if not isinstance(what, bytes):
            what = json.dumps(what, sort_keys=True, separators=(",", ":")).encode()
        self.ours.send(letter.encode() + what)

    def hear(self):
        m = b""
        for _ in range(2):  # the first answer may be that it ended without reading all
            try:
                m = self.ours.recv(1 << 18)
                break
            except ConnectionResetError:
                pass
            except OSError:
                break
        return m[:1].decode(), m[1:]

    def ask(self, letter, what=b""):
        try:
            self.say(letter, what)
        except OSError:
            pass
        return self.hear()

    def close(self):
        self.ours.close()
        return self.p.wait(20)
