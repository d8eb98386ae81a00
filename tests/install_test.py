#!/usr/bin/env python3
"""install_test.py - is everything installed, and does it work where it lies? Speaks TAP.

Takes what `make build` made. Nothing outside a directory of its own is written.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = """
bin/writ
libexec/writ/writ-init libexec/writ/writ-l7 libexec/writ/writ-signer libexec/writ/writ-escape
include/writ/writ.h lib/libwrit.a lib/libwrit.so lib/libwrit.so.0 lib/pkgconfig/writ.pc
share/man/man1/writ.1 share/man/man1/writ-run.1 share/man/man5/writ-policy.5 share/man/man3/libwrit.3
share/bash-completion/completions/writ share/zsh/vendor-completions/_writ
share/fish/vendor_completions.d/writ.fish share/writ/apparmor/writ
share/doc/writ/README.md share/doc/writ/LICENSE share/doc/writ/examples/git-push.writ
""".split()
count = bad = 0


def ok(good, name, notes=""):
    global count, bad
    count, bad = count + 1, bad + (not good)
    print(f"{'' if good else 'not '}ok {count} - {name}")
    for line in str(notes).splitlines()[-20:] if not good else ():
        print(f"# {line}")
    return good


def runs(name, cmd, cwd=ROOT, **env):
    p = subprocess.run([str(c) for c in cmd], cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return ok(p.returncode == 0, name, f"{p.stdout}\nended with {p.returncode}")


def names(top):
    return sorted(str(p.relative_to(top)) for p in top.rglob("*") if not p.is_dir())


def works(tree, home):
    """The programs find each other from where they lie; no rule here needs anybody out there."""
    ws, env = home / "work", {"HOME": str(home), "WRIT_SIGNER": "none", "LD_LIBRARY_PATH": str(tree / "lib")}
    ws.mkdir()
    (home / "git.writ").write_text("version 1\nallow write .\n"
                                   "allow git https://git.example.test/acme/app.git fetch push=agent/*\n")
    for name, words in (("doctor", ["doctor"]), ("conform says how", ["conform", "--help"]),
                        ("conform has its attempts", ["conform", "--dir", home, "--id", "FS-001"]),
                        ("a run", ["run", "--", "true"]),
                        ("a statement", ["run", "--attest-out", home / "out", "--", "true"]),
                        ("it verifies", ["attest", "verify", home / "out"]),
                        ("requests are read", ["run", "--allow", "net:https://api.example.test/v1/*", "--", "true"]),
                        ("a repository may be pushed to", ["run", "--policy", home / "git.writ", "--", "true"])):
        runs(name, [tree / "bin/writ", *words], ws, **env)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "writ"], stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "PKG_CONFIG_PATH": str(tree / "lib/pkgconfig")}).stdout.split()
    if runs("a program is linked with the library",
            ["cc", tree / "share/doc/writ/examples/c/run.c", *flags, "-o", home / "run"], ws):
        runs("and runs", [home / "run", ws, "/bin/true"], ws, **env)


def main():
    with tempfile.TemporaryDirectory(prefix="writ-install-", dir="/var/tmp") as d:
        top = Path(d)
        staged, tree, home = top / "stage/opt/writ", top / "unpacked", top / "home"
        home.mkdir()
        if not runs("make install", ["tools/install.sh", "/opt/writ"], DESTDIR=str(top / "stage")):
            return
        for name in FILES:
            ok((staged / name).exists(), name)
        before = names(staged)
        shutil.copy(ROOT / "packaging/install.sh", staged)
        runs("a tarball's install.sh", ["sh", staged / "install.sh", tree])
        ok(names(tree) == before, "puts everything there", set(before) ^ set(names(tree)))
        shutil.rmtree(top / "stage")
        works(tree, home)


if __name__ == "__main__":
    main()
    print(f"1..{count}")
    sys.exit(1 if bad else 0)
