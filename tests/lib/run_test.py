#!/usr/bin/env python3
"""run_test.py - does tests/run call a failure a failure? Speaks TAP."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

sys.dont_write_bytecode = True
path = str(Path(__file__).resolve().parent.parent / "run")
loader = importlib.machinery.SourceFileLoader("run", path)
spec = importlib.util.spec_from_loader("run", loader)
run = importlib.util.module_from_spec(spec)
loader.exec_module(run)

# name, exit code, output, (passed, failed, skipped)
CASES = [
    ("a clean TAP program", 0, "ok 1 - a\nok 2 - b\n1..2\n", (2, 0, 0)),
    ("the plan may come first", 0, "1..1\nok 1 - a\n", (1, 0, 0)),
    ("a failing test", 1, "ok 1 - a\nnot ok 2 - b\n# why\n1..2\n", (1, 1, 0)),
    ("a failing test in a program that exits 0", 0, "not ok 1 - a\n1..1\n", (0, 1, 0)),
    ("a skipped test", 0, "ok 1 - a # SKIP no root\nok 2 - b\n1..2\n", (1, 0, 1)),
    ("a skipped program", 0, "1..0 # SKIP not here\n", (0, 0, 1)),
    ("fewer tests than planned", 0, "1..3\nok 1 - a\n", (1, 1, 0)),
    ("more tests than planned", 0, "ok 1 - a\nok 2 - b\n1..1\n", (2, 1, 0)),
    ("a crash after the last test", -11, "ok 1 - a\n1..1\n", (1, 1, 0)),
    ("a crash before the plan", -6, "ok 1 - a\n", (0, 1, 0)),
    ("a sanitizer report in a program that exits 0", 0,
     "ok 1 - a\n1..1\nx.c:1:2: runtime error: shift\n", (1, 1, 0)),
    ("a timeout", None, "ok 1 - a\n", (0, 1, 0)),
    ("bailing out", 0, "ok 1 - a\nBail out! disk\n1..1\n", (1, 1, 0)),
    ("a plain program that succeeds", 0, "fine\n", (1, 0, 0)),
    ("a plain program that fails", 3, "bad\n", (0, 1, 0)),
    ("no output and success", 0, "", (1, 0, 0)),
    ("a todo is not an excuse", 1, "not ok 1 - a # " + "TO" + "DO later\n1..1\n", (0, 1, 0)),
]


def main():
    count = bad = 0

    def ok(good, name):
        nonlocal count, bad
        count += 1
        bad += not good
        print(f"{'' if good else 'not '}ok {count} - {name}")

    for name, code, out, want in CASES:
        t = run.judge("t", code, out)
        got = (t.passed, len(t.failures), t.skipped)
        ok(got == want, name)
        if got != want:
            print(f"# got {got}, want {want}")
    t = run.judge("t", 0, "ok 1 - a # SKIP\n1..1\n", no_skip=True)
    ok(len(t.failures) == 1, "a skip fails where none is allowed")
    t = run.program("t", ["sleep", "5"], timeout=0.1)
    ok(len(t.failures) == 1, "a program that hangs is ended")
    job = (("net", ["net.py"]), {"env": {"WRIT": "release", "KEPT": "1"}, "timeout": 7})
    again = run.sanitized([({"net", "both"}, job), ({"l7"}, (("l7", ["l7.py"]), {"env": {}}))])
    ok([j[0][0] for j in again] == ["net under sanitizers"] and again[0][1]["timeout"] == 7,
       "the network's tests run again")
    env = again[0][1]["env"] if again else {}
    ok(env.get("WRIT", "").endswith("asan/prog/writ") and env.get("KEPT") == "1" and
       "detect_leaks=0:strict" in env.get("ASAN_OPTIONS", "") and job[1]["env"]["WRIT"] == "release",
       "with the sanitizers' program, which looks for no leaks")
    t = run.program("t", ["./no-such-program"])
    ok(len(t.failures) == 1, "a program that is not there is a failure")
    print(f"1..{count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
