"""lab.py - a small project to read policies in, and TAP. Used by run.py and hostile.py."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REALM = "l-" + "a" * 26
# Everything that the documentation and the examples name without `?`.
FOLDERS = ("src", "logs", "data", "data/weekly report", "tests", "tools", "notes/archive", "reports",
           "downloads", "migrations", ".git")
FILES = {"README.md": "", "Makefile": "", "pyproject.toml": "", ".env": "", "src/main.c": "", "data/a.csv": "",
         "data/sales 2024.csv": "", "data/100* true.txt": "", "tools/check": "#!/bin/sh\n", ".git/HEAD": "ref: refs/heads/main\n"}
HOME_FOLDERS = ("outbox", "datasets/sales", "datasets/people")
PROGRAMS = ("git", "node", "npm", "python3", "claude", "codex")


class Result:
    def __init__(self, code, out, err, seconds, peak):
        self.code, self.out, self.err = code, out, err
        self.seconds, self.peak = seconds, peak  # peak memory in bytes


class Lab:
    """A temporary project with a home, a known realm and stand-ins for programs."""

    def __init__(self, writ, where=None):
        self.writ = str(Path(writ).resolve())
        self.top = Path(tempfile.mkdtemp(prefix="writ-language-", dir=where)).resolve()
        self.project, self.home = self.top / "app", self.top / "home"
        for d in FOLDERS:
            (self.project / d).mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (self.project / name).write_text(text)
        for d in HOME_FOLDERS:
            (self.home / d).mkdir(parents=True)
        (self.top / "bin").mkdir()
        for name in PROGRAMS:
            (self.top / "bin" / name).write_text("#!/bin/sh\n")
            (self.top / "bin" / name).chmod(0o755)
        (self.project / "tools/check").chmod(0o755)
        (self.top / "state/writ").mkdir(parents=True)
        (self.top / "state/writ/realm").write_text(REALM + "\n")
        self.env = {"HOME": str(self.home), "PATH": f"{self.top}/bin:/usr/bin:/bin", "LC_ALL": "C",
                    "XDG_CONFIG_HOME": str(self.top / "config"), "XDG_STATE_HOME": str(self.top / "state"),
                    "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def file(self, text, name="p.writ"):
        path = self.top / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def run(self, *args, stdin=b"", timeout=60, memory=0, cwd=None):
        """Runs writ in the project. A timeout is the code None."""
        command = [self.writ, *args]
        if memory:
            command = ["/bin/sh", "-c", f'ulimit -v {memory >> 10} && exec "$0" "$@"', *command]
        start = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            proc = subprocess.Popen(command, cwd=cwd or self.project, env=self.env, stdin=subprocess.PIPE, stdout=out,
                                    stderr=err)
            try:
                try:
                    proc.stdin.write(stdin)
                    proc.stdin.close()
                except BrokenPipeError:
                    pass
                code, usage = wait(proc, timeout)
            finally:
                if proc.poll() is None:
                    proc.kill()
                    proc.wait()
            seconds = time.monotonic() - start
            texts = []
            for f in (out, err):
                f.seek(0)
                texts.append(f.read().decode(errors="backslashreplace"))
        return Result(code, *texts, seconds, usage)


def wait(proc, timeout):
    """The exit code, or None at the timeout, and the peak memory of the process."""
    end, pause = time.monotonic() + timeout, 0.0005
    while time.monotonic() < end:
        pid, status, usage = os.wait4(proc.pid, os.WNOHANG)
        if pid:
            proc.returncode = os.waitstatus_to_exitcode(status)
            return proc.returncode, usage.ru_maxrss * 1024
        time.sleep(pause)
        pause = min(pause * 1.5, 0.005)
    return None, 0


class Tap:
    def __init__(self):
        self.count = self.bad = 0

    def check(self, good, name, why=""):
        self.count += 1
        self.bad += not good
        print(f"{'' if good else 'not '}ok {self.count} - {name}")
        if not good:
            print("".join(f"# {line}\n" for line in str(why).splitlines()[:40]), end="")
        return good

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.bad or not self.count else 0


def arguments(about):
    ap = argparse.ArgumentParser(description=about)
    ap.add_argument("--writ", default=os.environ.get("WRIT", str(ROOT / "build/release/prog/writ")))
    ap.add_argument("--dir", help="where the temporary project goes; /tmp")
    args = ap.parse_args()
    if not Path(args.writ).exists():
        sys.exit(f"no {args.writ}; build it or say --writ")
    return args
