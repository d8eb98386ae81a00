#!/usr/bin/env python3
"""rooms.py - who may include whom.

    tools/rooms.py [--self-test]

src/ROOMS has one line per room, `room: rooms it may include`, in dependency
order: a room may only name rooms above it, so there are no cycles. Checked:
- each folder of src/ is a room, and includes only itself and what ROOMS allows;
- ours are included as "room/header.h", and the header exists;
- a header named *_priv.h is included only inside its own room;
- base/banned.h is the last include of every .c file in src/ and prog/;
- a header starts with a comment, and a room's public one says Reads, Writes, Next.
"""
import re
import sys

import lintlib

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.M)


def read_rooms(root, errors):
    rooms = {}
    for n, line in enumerate((root / "src/ROOMS").read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        room, _, allowed = line.partition(":")
        for other in allowed.split():
            if other not in rooms:
                errors.append(f"src/ROOMS:{n}: {room} names {other}, which is not above it")
        rooms[room.strip()] = set(allowed.split())
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in rooms:
            errors.append(f"src/{folder.name}: not in src/ROOMS")
    return rooms


def check_includes(root, path, room, allowed, errors):
    """@room is None in prog/, which may use every room but no private header."""
    text = path.read_text()
    where = path.relative_to(root)
    found = list(INCLUDE.finditer(text))
    for m in found:
        name, line = m[2], text.count("\n", 0, m.start()) + 1
        if m[1] == "<":
            continue
        other = name.split("/")[0]
        if "/" not in name:
            errors.append(f'{where}:{line}: include "{name}" as "room/{name}"')
        elif room is not None and other != room and other not in allowed:
            errors.append(f"{where}:{line}: {room} may not include {name} (src/ROOMS)")
        elif name.endswith("_priv.h") and other != room:
            errors.append(f"{where}:{line}: {name} is private to {other}")
        elif not (root / "src" / name).exists() and not name.startswith("gen/"):
            errors.append(f"{where}:{line}: {name} does not exist")
    if path.suffix == ".c" and (not found or found[-1][2] != "base/banned.h"):
        errors.append(f'{where}: the last include must be "base/banned.h"')


def check_header(root, path, errors):
    where = path.relative_to(root)
    m = re.match(r"/\*(.*?)\*/", path.read_text(), re.S)
    if not m:
        errors.append(f"{where}: a header starts with a comment that says what it is for")
    elif not path.name.endswith("_priv.h"):
        for word in ("Reads:", "Writes:", "Next:"):
            if f" * {word}" not in m[1]:
                errors.append(f"{where}: the first comment does not say {word}")


def check(root):
    errors = []
    rooms = read_rooms(root, errors)
    for room, allowed in rooms.items():
        for path in sorted((root / "src" / room).rglob("*.[ch]")):
            check_includes(root, path, room, allowed, errors)
            if path.suffix == ".h":
                check_header(root, path, errors)
    for path in sorted((root / "prog").glob("*.c")):
        check_includes(root, path, None, set(), errors)
    return errors


HEAD = "/*\n * x.h - x\n *\n * Reads:  a\n * Writes: b\n * Next:   c\n */\n"
LAST = '#include "base/banned.h"\n'
CASES = [
    ("a good file", "src/b/x.c", '#include <stdio.h>\n#include "a/a.h"\n' + LAST, None),
    ("a room that is not allowed", "src/a/x.c", '#include "b/b.h"\n' + LAST, "may not include"),
    ("a foreign private header", "src/b/x.c", '#include "a/a_priv.h"\n' + LAST, "private"),
    ("a private header of one's own", "src/a/x.c", '#include "a/a_priv.h"\n' + LAST, None),
    ("a header that is not there", "src/b/x.c", '#include "a/no.h"\n' + LAST, "does not exist"),
    ("an include without its room", "src/a/x.c", '#include "a.h"\n' + LAST, "room/a.h"),
    ("no banned.h", "src/a/x.c", "#include <stdio.h>\n", "banned.h"),
    ("banned.h not last", "src/a/x.c", LAST + "#include <stdio.h>\n", "banned.h"),
    ("banned.h missing in prog", "prog/x.c", '#include "b/b.h"\n', "banned.h"),
    ("a header without a comment", "src/a/x.h", "int x;\n", "starts with a comment"),
    ("a header without Next", "src/a/x.h", HEAD.replace("Next:", "Then:"), "Next:"),
    ("a folder that is no room", "src/z/x.c", LAST, "not in src/ROOMS"),
    ("a room that names a later one", "src/ROOMS", "base:\na: b\nb:\n", "not above"),
]

BASE = {"src/ROOMS": "base:\na: base\nb: base a\n", "src/base/banned.h": HEAD, "src/a/a.h": HEAD,
        "src/a/a_priv.h": "/* a */\n", "src/b/b.h": HEAD}

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        lintlib.self_test(CASES, BASE, check)
    lintlib.finish("rooms", check(lintlib.ROOT))
