"""host.py - what the tests of the host sandbox share: worlds, runs, terminals, leftovers."""
import errno
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.parse
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "lib"))  # for bounds.py

ROOT = os.geteuid() == 0
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "python3"
OTHER_USER = 65534  # nobody: for what one user may not do to another
TESTS = []


class Test:
    def __init__(self, name, body, needs_root, alone):
        self.name, self.body, self.needs_root, self.alone = name, body, needs_root, alone


def test(name, needs_root=False, alone=False):
    def keep(body):
        TESTS.append(Test(f"{body.__module__}: {name}", body, needs_root, alone))
        return body
    return keep


class Control:
    """A connection to the control socket of a session: one JSON object per line."""

    def __init__(self, w, sid, timeout=10):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(w.state / "run" / sid / "control"))
        self.socket.settimeout(timeout)
        self.lines, self.last = self.socket.makefile("rb"), 0

    def fileno(self):
        return self.socket.fileno()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, method, **params):
        self.last += 1
        self.raw(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).encode() + b"\n")

    def receive(self):
        """The next message; None at the end of the connection."""
        try:
            line = self.lines.readline()
        except ConnectionResetError:
            line = b""
        return json.loads(line) if line else None

    def call(self, method, **params):
        self.send(method, **params)
        return self.receive()

    def close(self):
        self.lines.close()
        self.socket.close()


def code_of(answer):
    """The typed code of an error, or None."""
    return answer.get("error", {}).get("data", {}).get("code") if answer else None


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def said(self):
        return self.err.decode(errors="replace")

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.2f} s\nout: {self.out[-1500:]!r}\nerr: {self.err[-1500:]!r}"


def wait_for(condition, seconds=10.0, step=0.01):
    """The first true value of condition(), or its last one."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(step)
    return value


def processes(mark, below=None):
    """Living processes but ours that carry @mark in their command line, or stand in a directory below @below."""
    found = []
    for pid in (p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            if mark.encode() not in line and not (below and stands_below(pid, str(below))):
                continue
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(f"{pid} {line.decode(errors='replace').strip()[:200]}")
        except OSError:
            pass
    return found


def is_dying(pid):
    """Has it been killed, and not gone yet? Who ends a session need not wait for that."""
    try:
        flags = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[6])
        pending = [int(l.split()[1], 16) for l in Path(f"/proc/{pid}/status").read_text().splitlines() if l.startswith(("SigPnd", "ShdPnd"))]
        return bool(flags & 4) or any(p & 1 << signal.SIGKILL - 1 for p in pending)
    except (OSError, ValueError, IndexError):
        return False


def stands_below(pid, folder):
    try:
        return (os.readlink(f"/proc/{pid}/cwd") + "/").startswith(folder + "/")
    except OSError:
        return False


def children(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(c) for c in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        pass
    return found


def descendants(pid):
    found, at = children(pid), 0
    while at < len(found):
        found += children(found[at])
        at += 1
    return found


def cgroups():
    """Directories that sessions made below any controller."""
    return [os.path.join(folder, d) for folder, dirs, _ in os.walk("/sys/fs/cgroup", onerror=None) for d in dirs
            if d.startswith("writ-")]


def places():
    """Where a person may work, as (directory, who): below /tmp, and in other trees as far as we may write there."""
    found = [("/tmp", None)]
    for top in ("/srv", "/home", "/var/lib"):
        if ROOT and os.path.isdir(top):
            return found + [(top, None), (top, OTHER_USER)]
    return found


def snapshot(path):
    """Everything about a tree that a person could notice, the time of last access apart."""
    tree = {}
    for folder, dirs, files in os.walk(os.fsencode(str(path))):
        for full in [folder] + [os.path.join(folder, n) for n in dirs + files]:
            st = os.lstat(full)
            tree[full] = (st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_mtime_ns, st.st_ctime_ns,
                          st.st_size if not stat.S_ISDIR(st.st_mode) else 0, st.st_ino)
    return tree


def difference(before, after):
    return sorted(os.fsdecode(p) for p in before.keys() | after.keys() if before.get(p) != after.get(p))


def entry(line):
    """An entry of a session's log as a person means it."""
    def plain(v):
        if isinstance(v, str):
            return os.fsdecode(urllib.parse.unquote_to_bytes(v))
        if isinstance(v, list):
            return [plain(x) for x in v]
        return {k: plain(x) for k, x in v.items()} if isinstance(v, dict) else v
    e = plain(json.loads(line))
    if "guarantees" in e:
        e["guarantees"] = json.loads(e["guarantees"])
    return e


def whole(file):
    """The text of a record that may grow: a reader can see a part of the line that is being written."""
    text = file.read_text()
    for _ in range(100):
        if text.endswith("\n"):
            break
        time.sleep(0.01)
        text = file.read_text()
    return text


class World:
    """One test's directories, environment and results."""

    def __init__(self, test, writ, top="/tmp", user=None):
        self.checks, self.program, self.started, self.extra, self.user = [], writ, [], [], user
        self.dir = Path(os.path.realpath(tempfile.mkdtemp(prefix="wh-", dir=top)))
        self.dir.chmod(0o755)
        self.home, self.ws = self.dir / "home", self.dir / "work"
        self.mark = "mark-" + self.dir.name
        for d in (self.home, self.ws):
            d.mkdir()
        for d in (self.dir, self.home, self.ws) if user is not None else ():
            os.chown(d, user, user)
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME": str(self.home),
                    "TERM": "xterm", "LANG": "C.UTF-8", "USER": "tester", "LOGNAME": "tester"}
        for k, v in os.environ.items():  # of sanitizers, when the program has them
            if k.endswith("SAN_OPTIONS"):
                self.env[k] = v

    @property
    def state(self):
        return self.home / ".local/state/writ"

    # --- results ---

    def ok(self, good, text, notes=""):
        self.checks.append((bool(good), text, "" if good else str(notes)))
        return bool(good)

    def same(self, got, want, text, notes=""):
        return self.ok(got == want, text, f"got  {got!r}\nwant {want!r}\n{notes}")

    def exits(self, result, code, text):
        return self.ok(result.code == code, text, f"want exit {code}, got {result}")

    # --- running ---

    def at(self, top, user=None):
        """A world of its own below @top, with the same results."""
        other = World(None, self.program, top, user)
        other.checks = self.checks
        self.extra.append(other)
        return other

    def start(self, argv, cwd=None, env=None, as_user=None, **kw):
        who = self.user if as_user is None else as_user
        drop = {} if who is None else {"user": who, "group": who, "extra_groups": []}
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("start_new_session", True)
        proc = subprocess.Popen([os.fsencode(str(a)) if not isinstance(a, bytes) else a for a in argv],
                                cwd=cwd or self.ws, env=self.env if env is None else env, **drop, **kw)
        self.started.append(proc)
        return proc

    def call(self, argv, data=None, timeout=30, **kw):
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        if data is not None:
            kw["stdin"] = subprocess.PIPE
        begin = time.monotonic()
        proc = self.start(argv, **kw)
        try:
            out, err = proc.communicate(data, timeout)
            code = proc.returncode
        except subprocess.TimeoutExpired:
            os.killpg(proc.pid, signal.SIGKILL)
            try:
                out, err = proc.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                out, err = b"", b"[somebody holds its output open]"
            code, err = None, (err or b"") + b"\n[it had to be killed]"
        return Result(code, out or b"", err or b"", time.monotonic() - begin)

    def writ(self, *args, **kw):
        return self.call([self.program, *args], **kw)

    def run(self, *command, opts=(), **kw):
        return self.writ("run", *opts, "--", *command, **kw)

    def sh(self, script, *args, opts=(), **kw):
        return self.run("sh", "-c", script, *args, opts=opts, **kw)

    def session(self, *args, **kw):
        """The result of `session start`; its errors go to a file, which nobody waits for."""
        with open(self.dir / "session-errors", "wb+") as f:
            r = self.writ("session", "start", *args, stderr=f, **kw)
            f.seek(0)
            r.err = f.read()
        return r

    def python(self, script, *args, opts=(), **kw):
        """The JSON that a script prints inside; the script has os, sys and json."""
        r = self.run(PYTHON, "-c", "import os, sys, json\n" + script, *args, opts=opts, **kw)
        try:
            return json.loads(r.out)
        except ValueError:
            raise AssertionError(f"the script inside failed: {r}") from None

    def background(self, script, *args, opts=(), **kw):
        """A run that goes on; returns the process once the session answers, and its id."""
        before = set(self.ids())
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        proc = self.start([self.program, "run", *opts, "--", "sh", "-c", script, *args], **kw)
        wait_for(lambda: proc.poll() is not None or self.ids() - before)
        new = self.ids() - before
        if not new:
            out, err = proc.communicate()
            raise AssertionError(f"no session began: {out!r} {err!r}")
        return proc, new.pop()

    # --- what writ says and leaves ---

    def ids(self):
        r = self.writ("ps", "--json")
        return {s["session"] for s in json.loads(r.out)} if r.code == 0 else set()

    def put(self, name, text):
        """A file of the workspace, as its user's."""
        (self.ws / name).write_text(text)
        if self.user is not None:
            os.chown(self.ws / name, self.user, self.user)

    def mkdirs(self, name):
        at = self.ws
        for part in Path(name).parts:
            at = at / part
            at.mkdir(exist_ok=True)
            if self.user is not None:
                os.chown(at, self.user, self.user)

    def policy(self, *lines, name="p.writ"):
        file = self.dir / name
        file.write_text("version 1\n" + "".join(l + "\n" for l in lines))
        return str(file)

    def records(self):
        """Events of all sessions, oldest session first."""
        files = sorted((self.state / "sessions").glob("*.jsonl"), key=lambda f: f.stat().st_mtime_ns)
        return [[entry(line) for line in whole(f).splitlines()] for f in files]

    def events(self, kind=None):
        """Of the latest session."""
        records = self.records()
        return [e for e in (records[-1] if records else []) if kind in (None, e["event"])]

    def cgroups(self):
        names = {f"writ-{f.stem}" for f in (self.state / "sessions").glob("*.jsonl")}
        return [c for c in cgroups() if os.path.basename(c) in names]

    def leftovers(self):
        """What sessions of this world left on the machine; empty is right."""
        found = processes(self.mark, self.dir)
        run = self.state / "run"
        try:
            found += [f"run/{p.relative_to(run)}" for p in run.rglob("*")] if run.is_dir() else []
        except FileNotFoundError as e:  # it goes while it is looked at
            found.append(f"run/: {e}")
        return found + self.cgroups()

    def clean(self, text="nothing is left", seconds=0.0):
        wait_for(lambda: not any(is_dying(p.split()[0]) for p in processes(self.mark, self.dir)), 1)
        end = time.monotonic() + seconds
        while (left := self.leftovers()) and time.monotonic() < end:
            time.sleep(0.01)
        return self.ok(not left, text, "\n".join(left))

    def close(self):
        for proc in self.started:
            if proc.poll() is None:
                try:
                    os.killpg(proc.pid, signal.SIGKILL)
                except OSError:
                    proc.kill()
                proc.wait()
            for stream in (proc.stdin, proc.stdout, proc.stderr):
                if stream:
                    stream.close()
        for line in processes(self.mark, self.dir):  # what a test has found to stay is not left to the machine
            try:
                os.kill(int(line.split()[0]), signal.SIGKILL)
            except OSError:
                pass
        for folder in self.cgroups():
            try:
                os.rmdir(folder)
            except OSError:
                pass
        for other in self.extra:
            other.close()
        subprocess.run(["chmod", "-R", "u+rwX", self.dir], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)


class Terminal:
    """A person at a terminal: a program on a pseudo terminal, with keys and a screen."""

    def __init__(self, world, argv, rows=30, cols=100, cwd=None):
        self.world, self.screen, self.status = world, b"", None
        argv = [os.fsencode(str(a)) for a in argv]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd or world.ws)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                os.execvpe(argv[0], argv, world.env)
            finally:
                os._exit(99)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.status is None:
                for pid in [*descendants(self.pid), self.pid]:
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
        os.close(self.fd)
        if self.status is None:
            os.waitpid(self.pid, 0)

    def pump(self, seconds=0.05):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError as e:
                if e.errno != errno.EIO:
                    raise
                data = b""
            self.screen += data
            return bool(data)
        return False

    def expect(self, pattern, seconds=10.0):
        """Waits for @pattern on the screen and forgets all up to it; None if it does not come."""
        end = time.monotonic() + seconds
        pattern = pattern.encode() if isinstance(pattern, str) else pattern
        while not (m := re.search(pattern, self.screen, re.S)):
            if time.monotonic() > end:
                return None
            self.pump()
            if self.ended() and not self.pump(0):
                m = re.search(pattern, self.screen, re.S)
                if not m:
                    return None
                break
        self.screen = self.screen[m.end():]
        return m

    def type(self, keys):
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.fd)

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def code(self, seconds=10.0):
        """The exit code as a shell says it, or None if it does not end."""
        end = time.monotonic() + seconds
        while not self.ended() and time.monotonic() < end:
            self.pump(0.02)
        while self.pump(0):
            pass
        if self.status is None:
            return None
        return os.waitstatus_to_exitcode(self.status)


def shell(world, **kw):
    """An interactive shell on a terminal, ready for its first line."""
    t = Terminal(world, ["bash", "--norc", "--noprofile", "-i"], **kw)
    t.type("PS1='rea''dy> '; PS2=; bind 'set enable-bracketed-paste off' 2>/dev/null\n")
    t.expect("ready> ")
    return t
