#!/usr/bin/env python3
"""walk.py - the calls between modules of one real run.

    tools/walk/walk.py [--all] [ARGUMENTS of writ; default: run --allow net:https://x.example -- true]

Builds build/walk with gcc -finstrument-functions, runs writ, and prints for each
process the calls from one module into another in order of their first occurrence.
Calls into the base layer are left out unless --all is given. A
call from a lower layer into a higher one is marked `UP`: it must be a callback that
the lower layer's header declares.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import modules  # noqa: E402

BUILD = ROOT / "build/walk"
DEFAULT = ["run", "--allow", "net:https://x.example", "--", "true"]


def build():
    hooks, archive = BUILD / "hooks.o", BUILD / "libhooks.a"  # an archive: writ-init calls no hook and gets none
    if not (BUILD / "build.ninja").exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O1", "-fPIE", "-D_GNU_SOURCE", "-c", ROOT / "tools/walk/hooks.c", "-o", hooks], check=True)
        subprocess.run(["ar", "rc", archive, hooks], check=True)
        subprocess.run(["meson", "setup", BUILD, "-Doptimization=0", "-Dwerror=false",
                        "-Dc_args=-finstrument-functions -finstrument-functions-exclude-file-list=/usr/include",
                        f"-Dc_link_args={archive}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, "prog/writ", "prog/writ-l7"], check=True, stdout=subprocess.DEVNULL)


def names(offsets):
    """{offset: (function, path below src/)}"""
    out = subprocess.run(["addr2line", "-f", "-e", BUILD / "prog/writ"], check=True, text=True,
                         stdout=subprocess.PIPE, input="".join(f"{o:#x}\n" for o in offsets)).stdout.splitlines()
    return {o: (out[2 * i], m[1] if (m := re.search(r"/src/(.*):", out[2 * i + 1])) else "")
            for i, o in enumerate(offsets)}


def show(rows, rank, everything):
    """@rows: (caller's module, callee, its module) in order."""
    seen = set()
    for caller, name, module in rows:
        if not module or not caller or caller == module or (caller, name) in seen:
            continue
        if not everything and rank[module][0] == "base":
            continue
        seen.add((caller, name))
        print(f"  {caller} -> {module}/{name}" + (" UP" if rank[module][1] > rank[caller][1] else ""))


def main(argv):
    everything = "--all" in argv
    argv = [a for a in argv if a != "--all"] or DEFAULT
    build()
    errors = []
    mods = modules.read_modules(ROOT, errors)
    layers = list(dict.fromkeys(m.folder.parent for m in mods.values()))
    folder = {str(m.folder.relative_to(ROOT / "src")): n for n, m in mods.items()}
    rank = {n: (m.folder.parent.name, layers.index(m.folder.parent)) for n, m in mods.items()}
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        subprocess.run([BUILD / "prog/writ", *argv], env={**os.environ, "WALK_DIR": d})
        for path in sorted(Path(d).iterdir(), key=lambda p: int(p.name)):
            words = list(struct.iter_unpack("<QQ", path.read_bytes()))
            where = names(sorted({w for pair in words for w in pair}))
            module = {o: folder.get(str(Path(file).parent)) for o, (_, file) in where.items()}
            print(f"process {path.name}: {len(words)} calls")
            show([(module[site], where[callee][0], module[callee]) for site, callee in words], rank, everything)


if __name__ == "__main__":
    main(sys.argv[1:])
