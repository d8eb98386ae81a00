#!/usr/bin/env python3
"""loc.py - lines of code per layer: without blank lines and comments.

    tools/loc.py [--modules] [COMMIT]

Counts .c, .h and .def files below src/ and prog/ of the working tree, or of COMMIT.
"""
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Comments, and the strings in which comment marks mean nothing.
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], check=True, capture_output=True, text=True).stdout


def count(text):
    text = TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", text)
    return sum(1 for line in text.splitlines() if line.strip())


def main(argv):
    modules = "--modules" in argv
    commit = next((a for a in argv if not a.startswith("-")), None)
    names = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files", "-co", "--exclude-standard")
    lines = Counter()
    for name in names.splitlines():
        if not re.match(r"(src|prog)/.*\.([ch]|def)$", name):
            continue
        if not commit and not (ROOT / name).exists():
            continue
        text = git("show", f"{commit}:{name}") if commit else (ROOT / name).read_text()
        parts = name.split("/")
        lines["/".join(parts[:-1] if modules else parts[:2])] += count(text)
    for name, n in sorted(lines.items()):
        print(f"{n:7} {name.removesuffix('.c')}")
    print(f"{lines.total():7} all")


if __name__ == "__main__":
    main(sys.argv[1:])
