#!/usr/bin/env python3
"""run.py - the host sandbox, used as people use it and judged from outside. Speaks TAP.

    run.py [--writ PROGRAM] [--jobs N] [--times] [WORD ...]

$WRIT, or --writ, is the program. Only tests whose name has one of the words are run.
Every test has directories of its own; those marked `alone` run after all others.
"""
import argparse
import importlib
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import host  # noqa: E402

MODULES = ["exits", "stdio", "terminal", "view", "life", "residue", "hostile", "live", "attach", "control", "denials", "limits", "shared", "scope", "prune", "tier_b", "protect", "hidden",
           "repositories", "gits"]


class Tap:
    """Results in the order in which tests end; the lines of one test stay together."""

    def __init__(self):
        self.lock, self.count, self.failed = threading.Lock(), 0, 0

    def report(self, name, checks, seconds):
        with self.lock:
            for good, text, notes in checks:
                self.count += 1
                self.failed += not good
                print(f"{'' if good else 'not '}ok {self.count} - {name}: {text}".replace("\n", " "))
                for line in notes.splitlines()[:40]:
                    print(f"# {line}")
            if seconds is not None:
                print(f"# {seconds:5.1f} s  {name}")
            sys.stdout.flush()


def run_one(tap, test, options):
    start = time.monotonic()
    if test.needs_root and os.geteuid() != 0:
        tap.report(test.name, [(True, "not run # SKIP needs root", "")], None)
        return
    world = host.World(test, options.writ)
    try:
        test.body(world)
        if not world.checks:
            world.ok(False, "checked nothing")
    except Exception:
        world.ok(False, "broke off", traceback.format_exc(limit=-4))
    try:
        world.close()
    except Exception:
        world.ok(False, "could not tidy up", traceback.format_exc(limit=-3))
    tap.report(test.name, world.checks, time.monotonic() - start if options.times else None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writ", default=os.environ.get("WRIT"))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.writ or not os.access(options.writ, os.X_OK):
        print(f"Bail out! no program to test: {options.writ}")
        return 1
    options.writ = os.path.abspath(options.writ)
    for module in MODULES:
        importlib.import_module(module)
    tests = [t for t in host.TESTS if not options.words or any(w in t.name for w in options.words)]
    tap = Tap()
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda t: run_one(tap, t, options), [t for t in tests if not t.alone]))
    for t in tests:
        if t.alone:
            run_one(tap, t, options)
    print(f"1..{tap.count}")
    return 1 if tap.failed or not tap.count else 0


if __name__ == "__main__":
    sys.exit(main())
