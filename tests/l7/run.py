#!/usr/bin/env python3
"""run - what writ-l7 does to requests, row by row; TAP.

$WRIT_L7 is the program. usage: run.py [WORD ...] runs the tests whose names have a WORD.
"""
import os
import shutil
import subprocess
import sys
import traceback

sys.dont_write_bytecode = True
import world
import rows_http1
import rows_http2
import rows_live
import rows_secret
import rows_tls


class Tap:
    def __init__(self):
        self.n = self.failed = 0
        self.row = ""

    def __call__(self, what, good, note=""):
        self.n += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {self.row}: {what}", flush=True)
        if not good:
            print("# " + str(note).replace("\n", "\n# "), flush=True)

    def equal(self, what, got, want):
        self(what, got == want, f"got {got!r}, want {want!r}")


def main():
    tap, pki = Tap(), world.Pki()
    modules = (rows_tls, rows_http1, rows_http2, rows_secret, rows_live)
    for name, test in [(n, t) for m in modules for n, t in vars(m).items() if n.startswith("row_")]:
        if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
            continue
        tap.row = name[4:].replace("_", " ")
        before = len(world.WORLDS)
        try:
            test(tap, pki)
        except Exception:
            tap("runs to its end", False, traceback.format_exc())
        for w in world.WORLDS[before:]:
            try:
                code, err = w.end()
                tap("the reader ends well", code == 0 and not err, f"code {code}\n{err}")
            except subprocess.TimeoutExpired:
                w.proc.kill()
                tap("the reader ends", False)
    shutil.rmtree(pki.dir, ignore_errors=True)
    print(f"1..{tap.n}")
    return 1 if tap.failed or not tap.n else 0


if __name__ == "__main__":
    sys.exit(main())
