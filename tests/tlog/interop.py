#!/usr/bin/env python3
"""interop.py - the log's files against Go's packages for the same formats.

    tests/tlog/interop.py TLOG_TOOL

Needs Go and golang.org/x/mod: Debian's package, or the copy that Go's own tools are
built from. Nothing is fetched. Runs in `make test-long` (WRIT_TEST_LONG), and says so
where it does not run.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = (1, 255, 256, 257, 10000, 65537)


def find_go():
    """The compiler and the folder of golang.org/x/mod, or None for what is not there."""
    go = shutil.which("go") or next((p for p in ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")
                                     if os.access(p, os.X_OK)), None)
    if not go:
        return None, None
    root = subprocess.run([go, "env", "GOROOT"], stdout=subprocess.PIPE, text=True).stdout.strip()
    for mod in ("/usr/share/gocode/src/golang.org/x/mod", f"{root}/src/cmd/vendor/golang.org/x/mod"):
        if Path(mod, "sumdb/tlog").is_dir() and Path(mod, "sumdb/note").is_dir():
            return go, mod
    return go, None


class Tap:
    def __init__(self):
        self.n, self.bad = 0, 0

    def ok(self, good, name):
        self.n, self.bad = self.n + 1, self.bad + (not good)
        print(f"{'' if good else 'not '}ok {self.n} - {name}", flush=True)


def build(go, mod, work):
    src = work / "gopath/src"
    (src / "golang.org/x").mkdir(parents=True)
    (src / "golang.org/x/mod").symlink_to(mod)
    (src / "interop").mkdir()
    shutil.copy(HERE / "interop.go", src / "interop/main.go")
    env = {**os.environ, "GOPATH": str(work / "gopath"), "GO111MODULE": "off", "GOCACHE": str(work / "cache"),
           "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOPROXY": "off"}
    return subprocess.run([go, "build", "-o", work / "interop", "interop"], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def one_size(tap, tool, work, size):
    log = work / f"log{size}"
    made = subprocess.run([tool, "make", str(size), log], stderr=subprocess.PIPE, text=True)
    tap.ok(made.returncode == 0, f"{size} entries written {made.stderr.strip()}")
    out = subprocess.run([work / "interop", log], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [l for l in out.stdout.splitlines() if l.startswith(("ok ", "not ok "))]
    for line in lines:
        tap.ok(line.startswith("ok "), f"{size} entries: {line.split(' ', 1)[1]}")
    tap.ok(out.returncode == 0 and len(lines) >= 7, f"{size} entries: read by Go to the end")
    if out.returncode:
        print("# " + out.stdout[-500:].replace("\n", "\n# "))
    return log


def reverse(tap, tool, log):
    """What Go made, read by us; and not, if a byte of it is another."""
    args = [log / "go.tlog-proof", log / "go.entry", log / "go.policy"]

    def verdict():
        return subprocess.run([tool, "check", *args], stdout=subprocess.PIPE, text=True).stdout.strip()
    tap.ok(verdict() == "holds", "a proof that Go made holds")
    for old, new, want in [(b"index 41", b"index 42", "not included"),
                           (b"\n300\n", b"\n301\n", "bad signature"),
                           (b"tlog-proof@v1", b"tlog-proof@v2", "malformed")]:
        good = args[0].read_bytes()
        args[0].write_bytes(good.replace(old, new, 1))
        tap.ok(verdict() == want, f"changed, it is {want}")
        args[0].write_bytes(good)


def main():
    if not os.environ.get("WRIT_TEST_LONG"):
        print("1..0 # SKIP only in make test-long")
        return 0
    go, mod = find_go()
    if not mod:
        print("1..0 # SKIP no Go here, or no golang.org/x/mod/sumdb beside it")
        return 0
    tap, work = Tap(), Path(tempfile.mkdtemp(prefix="writ-tlog-"))
    try:
        made = build(go, mod, work)
        tap.ok(made.returncode == 0, "the Go program is built")
        if made.returncode:
            print("# " + made.stdout.replace("\n", "\n# "))
        else:
            logs = [one_size(tap, sys.argv[1], work, size) for size in SIZES]
            reverse(tap, sys.argv[1], logs[-1])
    finally:
        subprocess.run(["chmod", "-R", "u+w", work])
        shutil.rmtree(work, ignore_errors=True)
    print(f"1..{tap.n}")
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
