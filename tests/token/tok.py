"""tok.py - what the tests of tokens share: realms of their own, runs, TAP."""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "lib"))  # for bounds.py

WRIT = os.environ.get("WRIT", "")
PYTHON = "/usr/bin/python3"
TESTS = []


def test(body):
    TESTS.append(body)
    return body


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def digest(token):
    """Of a token's text, as logs have it."""
    return b64u(hashlib.sha256(token.encode()).digest())


class Realm:
    """A state directory of its own: as good as another machine."""

    def __init__(self, top, name):
        self.top, self.work = Path(top) / name, Path(top) / "work"
        self.state, self.config = self.top / "state", self.top / "config"
        for d in (self.state, self.config, self.work):
            d.mkdir(parents=True, exist_ok=True)
        self.env = {"HOME": str(self.top), "XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(self.config),
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "").replace("detect_leaks=1", "detect_leaks=0")}
        self.kept = self.state / "writ"

    def start(self, *args, **kw):
        return subprocess.Popen([WRIT, *map(str, args)], cwd=kw.pop("cwd", self.work), env={**self.env, **kw.pop("env", {})},
                                stdin=kw.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    def run(self, *args, give=None, **kw):
        p = self.start(*args, stdin=subprocess.PIPE if give is not None else subprocess.DEVNULL, **kw)
        try:
            out, err = p.communicate(give.encode() if isinstance(give, str) else give, timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
        return Result(p.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def mint(self, *allow, more=()):
        args = [x for a in allow for x in ("--allow", a)]
        return self.run("token", "mint", *args, *more).text()

    def narrow(self, chain, *args):
        return self.run("token", "attenuate", *args, give=chain).text()

    def use(self, chain, *command, options=(), **kw):
        return self.run("run", "--token", "-", *options, "--", *command, give=chain, **kw)

    def log(self):
        """Entries of the realm's log, as far as they are still lines."""
        lines = [json.loads(x) for f in sorted((self.kept / "log/wal").iterdir()) for x in f.read_text().splitlines()]
        return [{k: urllib.parse.unquote(v) if isinstance(v, str) else v for k, v in e.items()} for e in lines]

    def events(self, kind):
        return [e for e in self.log() if e.get("event") == kind]


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def text(self):
        if self.code:
            raise AssertionError(f"ended with {self.code}: {self.err}")
        return self.out.strip()

    def __str__(self):
        return f"exit {self.code}\nout: {self.out[-800:]}\nerr: {self.err[-1200:]}"


class World:
    def __init__(self):
        # Not below /tmp: that is the session's own, with the workspace mounted into it.
        top = Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path("/tmp")
        self.top = Path(tempfile.mkdtemp(prefix="writ-token-", dir=top))
        self.a = Realm(self.top, "a")
        self.work, self.checks = self.a.work, []

    def ok(self, good, text, notes=""):
        self.checks.append((bool(good), text, str(notes)))

    def refused(self, got, code, text, exit_code=1):
        self.ok(got.code == exit_code and code in got.err and not got.out, f"{text}: {code}", got)

    def close(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.top], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)


def main():
    if not os.access(WRIT, os.X_OK):
        print(f"Bail out! no program to test: {WRIT}")
        return 1
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    count = failed = 0
    for body in TESTS:
        if words and not any(w in body.__name__ for w in words):
            continue
        world, begin = World(), time.monotonic()
        try:
            body(world)
        except Exception:
            world.ok(False, "broke off", traceback.format_exc(limit=-4))
        world.close()
        for good, text, notes in world.checks:
            count += 1
            failed += not good
            print(f"{'' if good else 'not '}ok {count} - {body.__name__}: {text}".replace("\n", " "))
            for line in notes.splitlines()[:20] if not good else []:
                print(f"# {line}")
        if "--times" in sys.argv:
            print(f"# {time.monotonic() - begin:.1f} s {body.__name__}")
        sys.stdout.flush()
    print(f"1..{count}")
    return 1 if failed or not count else 0
