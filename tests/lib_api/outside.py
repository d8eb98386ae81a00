#!/usr/bin/env python3
"""outside.py BUILD_ROOT SOURCE_ROOT CC - the library as a program outside this tree meets it

TAP. Installs into a directory of its own; compiles the example and the program of
docs/library.md with what pkg-config says, shared and static, as C and as C++; runs them.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

count = 0
failed = 0


def ok(good, what, more=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good:
        for line in more.splitlines():
            print(f"#  {line}")


def run(*argv, **how):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **how)


def flags(top, env, *more):
    r = run("pkg-config", *more, "writ", env=env)
    return r.stdout.split() if r.returncode == 0 else None


def build_and_run(folder, cc, env, name, source, extra, argv):
    out = folder / name
    r = run(*cc, "-Wall", "-Wextra", "-Werror", source, "-o", out, *extra, env=env)
    ok(r.returncode == 0, f"{name}: compiles", r.stderr)
    if r.returncode:
        return
    r = run(out, *argv, env=env)
    ok(r.returncode == 5 and r.stdout == "hello\n", f"{name}: runs",
       f"{r.returncode} {r.stdout} {r.stderr}")
    ok("/usr/share/writ-lib-outside" in r.stderr, f"{name}: and shows what was denied", r.stderr)


def main(argv):
    if len(argv) < 4:
        sys.exit(__doc__)
    build, src, cc = argv[1], pathlib.Path(argv[2]), argv[3:]
    top = pathlib.Path(tempfile.mkdtemp(prefix="writ-outside-", dir="/var/tmp"))
    try:
        r = run("meson", "install", "-C", build, "--no-rebuild", "--destdir", top / "inst")
        ok(r.returncode == 0, "installs", r.stdout + r.stderr)
        pcs = list((top / "inst").rglob("writ.pc"))
        ok(len(pcs) == 1, "with one writ.pc")
        bins = [p.parent for p in (top / "inst").rglob("bin/writ")]
        ok(len(bins) == 1, "with the writ that runs its sessions")
        env = {"PATH": os.environ["PATH"], "HOME": str(top / "home"),
               "PKG_CONFIG_PATH": str(pcs[0].parent), "PKG_CONFIG_SYSROOT_DIR": str(top / "inst"),
               "LD_LIBRARY_PATH": str(pcs[0].parent.parent)}
        (top / "home").mkdir()
        (top / "work").mkdir()
        shared = flags(top, env, "--cflags", "--libs")
        ok(shared is not None, "pkg-config knows it")
        command = [top / "work", "sh", "-c", "echo hello; echo x > /usr/share/writ-lib-outside; exit 5"]
        build_and_run(top, cc, env, "example", src / "examples/c/run.c", shared, command)
        libdir = pcs[0].parent.parent
        cflags = flags(top, env, "--cflags")
        private = subprocess.run(["pkg-config", "--libs", "libsodium", "jansson", "libidn2"],
                                 capture_output=True, text=True, check=True).stdout.split()
        # Linked in, the library knows only where its program is: beside writ.
        build_and_run(bins[0], cc, env, "static", src / "examples/c/run.c",
                      [*cflags, libdir / "libwrit.a", *private, "-pthread"], command)
        page = (src / "docs/library.md").read_text()
        code = re.search(r"```c\n(/\* complete.*?)```", page, re.S)
        ok(code is not None, "docs/library.md has a complete program")
        (top / "page.c").write_text(code[1] if code else "")
        build_and_run(top, cc, env, "page", top / "page.c", shared, command)
        (top / "plus.cc").write_text('#include <writ/writ.h>\nint main() { return writ_version()[0] == 0; }\n')
        if shutil.which("c++"):
            r = run("c++", "-Wall", "-Werror", top / "plus.cc", "-o", top / "plus", *shared, env=env)
            ok(r.returncode == 0 and run(top / "plus", env=env).returncode == 0, "C++ can use the header",
               r.stderr)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
