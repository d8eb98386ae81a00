#!/usr/bin/env python3
"""run.py - the record of sessions and the realm's log, judged from outside. Speaks TAP.

    run.py [--writ PROGRAM] [--jobs N] [--times] [WORD ...]

The same harness as tests/host/run.py, with tests of its own. $WRIT_TEST_LONG makes the soak long.
"""
import importlib.util
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
HOST = HERE.parent / "host"
sys.path[:0] = [str(HERE), str(HOST)]

spec = importlib.util.spec_from_file_location("host_run", HOST / "run.py")
harness = importlib.util.module_from_spec(spec)
spec.loader.exec_module(harness)
harness.MODULES = ["tampering", "told", "keys", "witnesses", "soak"]

if __name__ == "__main__":
    sys.exit(harness.main())
