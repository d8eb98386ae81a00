#!/usr/bin/env python3
"""run.py - real work inside each shipped profile, judged from outside. Speaks TAP.

    run.py [--writ PROGRAM] [--jobs N] [--times] [WORD ...]

The runner, its options and the worlds are those of tests/host. WRIT_TEST_LONG=1 adds what takes long.
"""
import importlib.util
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("host_runner", HERE.parent / "host" / "run.py")
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
sys.path.insert(0, str(HERE))

# The longest first, so that they do not end alone.
runner.MODULES = ["go", "rust", "browser", "python", "node", "c", "git_commit", "ci", "mcp_server", "shell_read_only",
                  "base", "daily", "agents"]

if __name__ == "__main__":
    if "--jobs" not in sys.argv:
        sys.argv[1:1] = ["--jobs", "2"]
    sys.exit(runner.main())
