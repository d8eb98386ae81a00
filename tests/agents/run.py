#!/usr/bin/env python3
"""run.py - whole agents under writ: the real packages, models that play a script, and everything judged from outside. TAP.

    run.py [--writ PROGRAM] [--agents PREFIX] [--times] [WORD ...]

$WRIT, or --writ, is the program; $WRIT_AGENTS, or --agents, is where tools/agents.sh has installed the agents. The networks
are those of tests/net: nothing goes beyond them.
"""
import argparse
import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "net")]
import model  # noqa: E402
import net  # noqa: E402

# The runner of tests/net, with our world behind its networks.
spec = importlib.util.spec_from_file_location("net_run", HERE.parent / "net" / "run.py")
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
runner.world = model

NAMES = ["api.anthropic.com", "api.openai.com", "chatgpt.com", "evil.example.test"]


def make_certificates(folder):
    """A test authority, and a certificate of it for every name that is served."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    (folder / "ext").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in NAMES) + "\n")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=models")
    run("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "leaf.pem")


def missing(options):
    """Why these tests cannot be run here; None if they can."""
    why = Path(options.agents or "/nonexistent") / "why-not"
    if why.is_file():
        return why.read_text().strip()
    for program in ("claude", "codex"):
        if not os.access(f"{options.agents}/bin/{program}", os.X_OK):
            return f"{program} is not installed: tools/agents.sh does it"
    if not shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"):
        return "there is no node where every user finds it"
    if not runner.can_make_networks():
        return "networks cannot be made here"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writ", default=os.environ.get("WRIT"))
    parser.add_argument("--agents", default=os.environ.get("WRIT_AGENTS"))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.writ or not os.access(options.writ, os.X_OK):
        print(f"Bail out! no program to test: {options.writ}")
        return 1
    options.writ = os.path.abspath(options.writ)
    if why := missing(options):
        print(f"1..0 # SKIP {why}")
        return 0
    os.environ["WRIT_AGENTS"] = os.path.abspath(options.agents)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    importlib.import_module("whole")
    tests = [t for t in net.TESTS if not options.words or any(w in t.name for w in options.words)]
    options.certs = Path(tempfile.mkdtemp(prefix="wa-certs-"))
    tap = runner.Tap(options.times)
    try:
        make_certificates(options.certs)
        runner.run_all(tests, 2, options, tap)
    finally:
        shutil.rmtree(options.certs, ignore_errors=True)
    print(f"1..{tap.count}")
    return 1 if tap.failed or not tap.count else 0


if __name__ == "__main__":
    sys.exit(main())
