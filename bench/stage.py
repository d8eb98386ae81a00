"""stage.py - a place to measure in, for root and for an ordinary user.

Root becomes the user BENCH_USER (writ-bench, made if it is not there: with a shell, which
firejail wants); who is not root is measured as what they are. BENCH_DIR is where the place
is made (/var/tmp, which should be a disk).
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("BENCH_ROOT", HERE.parent))
RELEASE = Path(os.environ.get("WRIT", ROOT / "build/release/prog/writ")).resolve().parent.parent
USER = os.environ.get("BENCH_USER", "writ-bench")
PROGRAMS = ["prog/writ", "prog/writ-l7", "prog/writ-signer", "bench/pool", "bench/opens", "src/front/lib/libwrit.so.0"]


def am_root():
    return os.geteuid() == 0


def become():
    """What comes before a command that is to run as the ordinary user."""
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if am_root() else []


def with_memory(where):
    """What comes before a command that is to have a file system in memory there, for itself."""
    where.mkdir()
    mount = f'mount -t tmpfs -o mode=1777 bench {where} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, "sh"] if am_root() else []


def make_user():
    if am_root() and subprocess.run(["getent", "passwd", USER], stdout=subprocess.DEVNULL).returncode:
        subprocess.run(["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
                        "--shell", "/bin/sh", USER], check=True)


class Stage:
    """Copies of the programs, and a directory for each account; removed at the end."""

    def __init__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that it is removed then, too
        self.dir = Path(tempfile.mkdtemp(prefix="writ-bench-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
        self.dir.chmod(0o755)
        for name in PROGRAMS:
            where = self.dir / "build" / name
            where.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(RELEASE / name, where)
        shutil.copytree(HERE, self.dir / "bench", ignore=shutil.ignore_patterns("__pycache__", "*.c"))
        self.writ = str(self.dir / "build/prog/writ")

    def account(self, name, owned):
        """Directories of one account, and the environment that leads there."""
        top = self.dir / name
        for sub in ("home", "state", "config", "tmp", "run", "work"):
            (top / sub).mkdir(parents=True)
        (top / "run").chmod(0o700)
        if owned and am_root():
            for path in (top, *top.iterdir()):
                shutil.chown(path, USER, USER)
        return top, {"HOME": f"{top}/home", "XDG_STATE_HOME": f"{top}/state", "XDG_CONFIG_HOME": f"{top}/config",
                     "XDG_RUNTIME_DIR": f"{top}/run", "TMPDIR": f"{top}/tmp", "WRIT": self.writ, "BENCH_ROOT": str(ROOT),
                     "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["chmod", "-R", "u+rwx", self.dir], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def need(program, package):
    if not shutil.which(program):
        sys.exit(f"{Path(sys.argv[0]).name}: install {package} to compare with")
