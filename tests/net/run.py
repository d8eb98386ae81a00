#!/usr/bin/env python3
"""run.py - the network boundary, judged from both sides. Speaks TAP.

    run.py [--writ PROGRAM] [--jobs N] [--times] [WORD ...]

$WRIT, or --writ, is the program. Only tests whose name has one of the words are run. Every test is a process with a
network of its own in which writ runs, and a world around it; nothing goes beyond that and nothing is left of it,
however it ends. With $WRIT_TEST_LONG some of them do more.
"""
import argparse
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import net  # noqa: E402
import space  # noqa: E402
import world  # noqa: E402

MODULES = ["capture", "names", "addresses", "dns", "tls", "proxy", "other_ways", "bytes_", "ending", "crowd", "failing", "prices",
           "credentials", "shared", "clients", "around", "ssh", "levels"]


def make_certificates(folder):
    """A test authority and a certificate for every name that the tests use."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "ext").write_text("subjectAltName=DNS:*.example.test,DNS:*.pkg.test,DNS:*.test,IP:9.8.7.6\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=world")
    run("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "leaf.pem")


# --- one test, in a process of its own ---

def run_body(test, options):
    boss, _ = space.enter(lambda s: world.main(s, test.bulk))
    w = net.Net(test, options.writ, boss, options.certs)
    try:
        test.body(w)
        if not w.checks:
            w.ok(False, "checked nothing")
    except Exception:
        w.ok(False, "broke off", traceback.format_exc(limit=-4))
    try:
        w.close()
    except Exception:
        w.ok(False, "could not tidy up", traceback.format_exc(limit=-3))
    return w.checks


def start(test, options):
    """Returns (process id, the end of the pipe from which its results come)."""
    parent, (ours, theirs) = os.getpid(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return pid, ours
    try:
        os.setpgid(0, 0)
        space.die_with_parent(parent)
        os.close(ours)
        checks = run_body(test, options)
        with open(theirs, "w") as f:
            json.dump(checks, f)
    except BaseException:
        with open(theirs, "w") as f:
            json.dump([(False, "broke off", traceback.format_exc(limit=-4))], f)
    os._exit(0)


class Running:
    def __init__(self, test, options):
        self.test, self.began, self.data = test, time.monotonic(), b""
        self.pid, self.fd = start(test, options)

    def read(self):
        """True at the end."""
        data = os.read(self.fd, 65536)
        self.data += data
        return not data

    def end(self, late):
        if late:
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        if late:
            return [(False, f"ended within {self.test.seconds} s", "")]
        try:
            return json.loads(self.data)
        except ValueError:
            return [(False, "said what it found", self.data.decode(errors="replace"))]


class Tap:
    def __init__(self, times):
        self.count = self.failed = 0
        self.times = times

    def report(self, name, checks, seconds):
        for good, text, notes in checks:
            self.count += 1
            self.failed += not good
            print(f"{'' if good else 'not '}ok {self.count} - {name}: {text}".replace("\n", " "))
            for line in notes.splitlines()[:40]:
                print(f"# {line}")
        if self.times:
            print(f"# {seconds:5.1f} s  {name}")
        sys.stdout.flush()


def run_all(tests, jobs, options, tap):
    running, waiting = {}, list(tests)
    try:
        while running or waiting:
            while waiting and len(running) < jobs:
                r = Running(waiting.pop(0), options)
                running[r.fd] = r
            ready = select.select(list(running), [], [], 0.5)[0]
            for fd, r in list(running.items()):
                late = time.monotonic() - r.began > r.test.seconds
                if late or (fd in ready and r.read()):
                    del running[fd]
                    tap.report(r.test.name, r.end(late), time.monotonic() - r.began)
    finally:
        for r in running.values():
            os.killpg(r.pid, signal.SIGKILL)


def can_make_networks():
    pid = os.fork()
    if pid == 0:
        try:
            space.enter(lambda s: (s.sendall(b"r"), s.recv(1)))
            os._exit(0)
        except OSError as e:
            print(f"# {e}")
            sys.stdout.flush()
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writ", default=os.environ.get("WRIT"))
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.writ or not os.access(options.writ, os.X_OK):
        print(f"Bail out! no program to test: {options.writ}")
        return 1
    options.writ = os.path.abspath(options.writ)
    if not can_make_networks():
        print("1..0 # SKIP networks cannot be made here")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for module in MODULES:
        importlib.import_module(module)
    tests = [t for t in net.TESTS if not options.words or any(w in t.name for w in options.words)]
    options.certs = Path(tempfile.mkdtemp(prefix="wn-certs-"))
    tap = Tap(options.times)
    try:
        make_certificates(options.certs)
        run_all([t for t in tests if not t.alone], options.jobs, options, tap)
        run_all([t for t in tests if t.alone], 1, options, tap)
    finally:
        shutil.rmtree(options.certs, ignore_errors=True)
    print(f"1..{tap.count}")
    return 1 if tap.failed or not tap.count else 0


if __name__ == "__main__":
    sys.exit(main())
