#!/usr/bin/env python3
"""archive.py OUT.a IN.a - one object, in which only writ_* can be seen

A static library shares one space of names with the program it goes into. So all
objects become one, and names that are hidden from shared libraries become local.
"""
import os
import subprocess
import sys


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__)
    out, whole = argv[1:]
    one = out + ".o"
    tool = {name: os.environ.get(name.upper(), name) for name in ("ld", "objcopy", "ar")}
    subprocess.run([tool["ld"], "-r", "-o", one, "--whole-archive", whole], check=True)
    subprocess.run([tool["objcopy"], "--localize-hidden", one], check=True)
    if os.path.exists(out):
        os.remove(out)
    subprocess.run([tool["ar"], "rcsD", out, one], check=True)
    os.remove(one)


if __name__ == "__main__":
    main(sys.argv)
