#!/usr/bin/env python3
"""abi.py ABI_PROGRAM LIBWRIT.so LIBWRIT.a HEADER LIST - what programs rely on has not changed

TAP. LIST is the committed one. With WRIT_ABI_UPDATE in the environment it is written
instead: lines may be added, and structs that begin with `size` may grow; any other line
that goes or changes needs a new soversion.
"""
import os
import re
import subprocess
import sys


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def exported(library, *flags):
    names = set()
    for line in run("nm", "--defined-only", *flags, library).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TDBRVW":
            names.add(fields[2].split("@")[0])
    return names


def main(argv):
    if len(argv) != 6:
        sys.exit(__doc__)
    program, shared, static, header, path = argv[1:]
    symbols = exported(shared, "-D")
    lines = run(program).splitlines() + [f"symbol {name}" for name in sorted(symbols)]
    if os.environ.get("WRIT_ABI_UPDATE"):
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
    with open(path, encoding="ascii") as f:
        kept = f.read().splitlines()
    with open(header, encoding="ascii") as f:
        text = f.read()
    declared = set(re.findall(r"WRIT_API [^;(]*?\**(writ_\w+)\(", text))
    members = set(re.findall(r"\b(WRIT_[A-Z]+_[A-Z_]+)\b(?:\s*=|,|\s*\})", text))
    listed = {line.split()[1] for line in lines if line.startswith("number ")}
    size = run("readelf", "-d", shared)
    checks = [
        ("nothing that programs rely on is gone or changed",
         [line for line in kept if line not in lines]),
        ("what is new is in the list", [line for line in lines if line not in kept]),
        ("exactly what the header declares is exported", sorted(symbols ^ declared)),
        ("the static library shows the same names", sorted(exported(static, "-g") ^ symbols)),
        ("every number of the header is in the list",
         sorted(members - listed - {"WRIT_ERROR_NONE"})),
        ("the shared library is called libwrit.so.0",
         [] if "[libwrit.so.0]" in size else [size]),
    ]
    print(f"1..{len(checks)}")
    for n, (what, wrong) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {n} - {what}")
        for line in wrong:
            print(f"#  {line}")
    return any(wrong for _, wrong in checks)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
