#!/usr/bin/env python3
"""bounds.py - the times that the tests allow, held exactly.

    bench/bounds.py [SUITE ...]

`make test` judges elapsed times generously (tests/lib/bounds.py). This runs the same
suites with exact bounds and prints each row that fails. WRIT names the program,
build/release/prog/writ by default. Exit code 1 if a row failed.
"""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = ["host", "net", "token", "l7", "audit", "attest", "profiles"]


def main(suites):
    release = ROOT / "build/release/prog"
    env = {"WRIT": str(release / "writ"), "WRIT_L7": str(release / "writ-l7"), **os.environ, "WRIT_BOUNDS": "exact"}
    bad = 0
    for name in suites or SUITES:
        out = subprocess.run([str(ROOT / "tests" / name / "run.py")], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        rows = [line for line in out.splitlines() if line.startswith("not ok")]
        bad += len(rows)
        print(f"{name}: {len(rows)} over their bound or failed", *rows, sep="\n  ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
