#!/usr/bin/env python3
"""run.py - programs that people use, real ones, told of no proxy and of no authority: what they reach. Speaks TAP.

    run.py [--writ PROGRAM] [--times] [--long] [WORD ...]

$WRIT, or --writ, is the program. Each client runs three times: outside, where it reaches everything, in a session that
allows one name, and in one that reads what is said to that name. Servers are real ones too, in the networks of
tests/net: nothing goes beyond them. With $WRIT_TEST_LONG, or --long, the slow ones run as well; what is not installed is
skipped, and `tools/deps.sh clients` installs it.
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
import net  # noqa: E402
import town  # noqa: E402

# The runner of tests/net, with our world behind its networks.
spec = importlib.util.spec_from_file_location("net_run", HERE.parent / "net" / "run.py")
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
runner.world = town

MODULES = ["web", "packages", "gits", "data", "calls", "browser"]


def make_certificates(folder):
    """A test authority, a certificate of it for every name and address that is served, and a list for Java."""
    def run(*args):
        subprocess.run(args, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    (folder / "ext").write_text(f"subjectAltName=DNS:*.example.test,IP:{net.FIRST}\n")
    run("openssl", "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    run("openssl", "req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=world")
    run("openssl", "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "leaf.pem")
    if shutil.which("keytool") and net.LONG:
        run("keytool", "-importcert", "-noprompt", "-alias", "test", "-file", "ca.pem", "-storepass", "changeit",
            "-storetype", "JKS", "-keystore", "cacerts")  # the other kind shows nothing without its password


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writ", default=os.environ.get("WRIT"))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    net.LONG |= options.long
    if not options.writ or not os.access(options.writ, os.X_OK):
        print(f"Bail out! no program to test: {options.writ}")
        return 1
    options.writ = os.path.abspath(options.writ)
    if not runner.can_make_networks():
        print("1..0 # SKIP networks cannot be made here")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for module in MODULES:
        importlib.import_module(module)
    tests = [t for t in net.TESTS if not options.words or any(w in t.name for w in options.words)]
    options.certs = Path(tempfile.mkdtemp(prefix="wc-certs-"))
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
