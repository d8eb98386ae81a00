#!/usr/bin/env python3
"""modules.py - layers, modules, and which module may use which.

    tools/modules.py [--self-test]

src/MODULES lists the layers from the bottom up and, indented below each, its
modules: `module (other prefixes): modules it may use`. A module may only use
modules listed above it, so there are no cycles. Checked in the sources:
- each module is a folder below its layer's folder, and no other folder holds code;
- a file includes only its own module and the modules that MODULES grants;
- our headers are included as "module/header.h", and the header exists;
- a header named *_priv.h is included only inside its own module, and has less than 200 lines;
- base/banned.h is the last header that a .c file in src/ or prog/ includes; tables (.def) may follow;
- a header starts with a comment, a public one has the lines Reads, Writes, Next, and one
  header of each module has a section "Theory of operation";
Checked in the objects of build/release, with nm:
- an external symbol begins with its module's name or one of its other prefixes, and
  is defined in one module only;
- a module refers only to symbols of modules that it is granted;
- every grant is used, by an include or by a call.
"""
import re
import subprocess
import sys

import lintlib

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.M)
ROW = re.compile(r"  (\w+)(?: +\(([\w ]*)\))?:((?: +\w+)*)$")
PRIVATE_MAX = 200
# Names that a program without a C library, or each program, defines for itself.
FREE = {"main", "_start", "memcmp", "memcpy", "memmove", "memset", "strlen"}


class Module:
    def __init__(self, name, folder, prefixes, uses):
        self.name, self.folder, self.uses = name, folder, uses
        self.prefixes = {name, *prefixes}
        self.used = set()


def read_modules(root, errors):
    """The modules by name, in the order of the file."""
    modules, layer, owner = {}, None, {}
    for n, line in enumerate((root / "src/MODULES").read_text().splitlines(), 1):
        text = line.split("#")[0].rstrip()
        if not text:
            continue
        if not text.startswith(" "):
            layer = text
            continue
        if not (m := ROW.match(text)):
            errors.append(f"src/MODULES:{n}: not `  module (prefixes): modules`")
            continue
        name, prefixes, uses = m[1], (m[2] or "").split(), m[3].split()
        for other in uses:
            if other not in modules:
                errors.append(f"src/MODULES:{n}: {name} names {other}, which is not above it")
        if name in modules:
            errors.append(f"src/MODULES:{n}: {name} is listed twice")
        for prefix in (name, *prefixes):
            if owner.setdefault(prefix, name) != name:
                errors.append(f"src/MODULES:{n}: the prefix {prefix} belongs to {owner[prefix]}")
        modules[name] = Module(name, root / "src" / layer / name, prefixes, set(uses))
    known = {m.folder for m in modules.values()}
    for folder in sorted({p.parent for p in (root / "src").rglob("*.[ch]")}):
        if not known & {folder, *folder.parents}:
            errors.append(f"{folder.relative_to(root)}: not in src/MODULES")
    return modules


def check_includes(root, path, module, modules, errors):
    """@module is None in prog/, which may use every module but no private header."""
    text = path.read_text()
    where = path.relative_to(root)
    name = module.name if module else None
    found = list(INCLUDE.finditer(text))
    for m in found:
        header, line = m[2], text.count("\n", 0, m.start()) + 1
        if m[1] == "<":
            continue
        other, _, rest = header.partition("/")
        if module:
            module.used.add(other)
        if not rest:
            errors.append(f'{where}:{line}: include "{header}" as "module/{header}"')
        elif module and other != name and other not in module.uses:
            errors.append(f"{where}:{line}: {name} may not include {header} (src/MODULES)")
        elif header.endswith("_priv.h") and other != name:
            errors.append(f"{where}:{line}: {header} is private to {other}")
        elif other not in modules or not (modules[other].folder / rest).exists():
            errors.append(f"{where}:{line}: {header} does not exist")
    headers = [m[2] for m in found if not m[2].endswith(".def")]
    if path.suffix == ".c" and headers[-1:] != ["base/banned.h"]:
        errors.append(f'{where}: the last include must be "base/banned.h"')


def check_header(root, path, errors):
    where, text = path.relative_to(root), path.read_text()
    m = re.match(r"/\*(.*?)\*/", text, re.S)
    if not m:
        errors.append(f"{where}: a header starts with a comment that says what it is for")
    elif not path.name.endswith("_priv.h"):
        for word in ("Reads:", "Writes:", "Next:"):
            if f" * {word}" not in m[1]:
                errors.append(f"{where}: the first comment does not say {word}")
    elif text.count("\n") >= PRIVATE_MAX:
        errors.append(f"{where}: {text.count(chr(10))} lines; a private header has less than {PRIVATE_MAX}")


def check_sources(root, modules, errors):
    for module in modules.values():
        theory = False
        for path in sorted(module.folder.rglob("*.[ch]")):
            check_includes(root, path, module, modules, errors)
            if path.suffix == ".h":
                check_header(root, path, errors)
                theory |= "Theory of operation" in path.read_text()
        if not theory:
            errors.append(f"{module.folder.relative_to(root)}: no header has a section \"Theory of operation\"")
    for path in sorted((root / "prog").glob("*.c")):
        check_includes(root, path, None, modules, errors)


def nm(path):
    """(defined, undefined) external symbols of an object; NAME.nm is output that was recorded."""
    if path.suffix == ".nm":
        out = path.read_text()
    else:
        out = subprocess.run(["nm", "-g", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return ({r[-1] for r in rows if r[-2] not in "Uw"}, {r[-1] for r in rows if r[-2] in "Uw"})


def owner_of(symbol, modules):
    """The module whose prefix is the longest that @symbol has."""
    found = [(len(p), m.name) for m in modules.values() for p in m.prefixes
             if symbol == p or symbol.startswith(p + "_")]
    return max(found, default=(0, None))[1]


def check_objects(root, modules, errors):
    defined, wanted = {}, {}
    build = root / "build/release/src"
    for module in modules.values():
        folder = build / module.folder.relative_to(root / "src")
        for path in [*folder.rglob("*.o"), *folder.rglob("*.nm")]:
            has, wants = nm(path)
            for symbol in has - FREE:
                if (other := defined.setdefault(symbol, module)) is not module:
                    errors.append(f"{symbol}: defined in {other.name} and in {module.name}")
            for symbol in wants:
                wanted.setdefault((module.name, symbol), module)
    for symbol, module in sorted(defined.items(), key=lambda row: (row[1].name, row[0])):
        if owner_of(symbol, modules) != module.name:
            errors.append(f"{module.name}: {symbol} does not have a prefix of its module")
    for (_, symbol), module in sorted(wanted.items(), key=lambda row: row[0]):
        other = defined.get(symbol)
        if other:
            module.used.add(other.name)
        if other and other is not module and other.name not in module.uses:
            errors.append(f"{module.name} calls {symbol} of {other.name}, which src/MODULES does not grant")
    if not defined:
        errors.append("build/release has no objects; run tools/build.sh release")


def check(root):
    errors = []
    modules = read_modules(root, errors)
    check_sources(root, modules, errors)
    check_objects(root, modules, errors)
    for module in modules.values():
        for other in sorted(module.uses - module.used):
            errors.append(f"src/MODULES: {module.name} is granted {other} and does not use it")
    return errors


HEAD = "/*\n * x.h - x\n *\n * Theory of operation\n *\n * Reads:  a\n * Writes: b\n * Next:   c\n */\n"
LAST = '#include "base/banned.h"\n'
ROWS = "low\n  base:\n  a (other): base\nup\n  b: base a\n"
NM_A, NM_B = (f"build/release/src/{d}.a.p/x.c.nm" for d in ("low/a/liba", "up/b/libb"))
CASES = [
    ("a good file", "src/up/b/x.c", '#include <stdio.h>\n#include "a/a.h"\n' + LAST, None),
    ("a module that is not granted", "src/low/a/x.c", '#include "b/b.h"\n' + LAST, "may not include"),
    ("a foreign private header", "src/up/b/x.c", '#include "a/a_priv.h"\n' + LAST, "private"),
    ("the module's own private header", "src/low/a/x.c", '#include "a/a_priv.h"\n' + LAST, None),
    ("a private header of 199 lines", "src/low/a/y_priv.h", "/* y */\n" * 199, None),
    ("a private header of 200 lines", "src/low/a/y_priv.h", "/* y */\n" * 200, "200 lines"),
    ("a header that is not there", "src/up/b/x.c", '#include "a/no.h"\n' + LAST, "does not exist"),
    ("an include without its module", "src/low/a/x.c", '#include "a.h"\n' + LAST, "module/a.h"),
    ("no banned.h", "src/low/a/x.c", "#include <stdio.h>\n", "banned.h"),
    ("banned.h not last", "src/low/a/x.c", LAST + "#include <stdio.h>\n", "banned.h"),
    ("banned.h missing in prog", "prog/x.c", '#include "b/b.h"\n', "banned.h"),
    ("a header without a comment", "src/low/a/x.h", "int x;\n", "starts with a comment"),
    ("a header without Next", "src/low/a/x.h", HEAD.replace("Next:", "Then:"), "Next:"),
    ("a module without a theory of operation", "src/low/a/a.h", HEAD.replace("Theory", "Story"), "Theory"),
    ("a folder that is no module", "src/low/z/x.c", LAST, "not in src/MODULES"),
    ("a module that names a later one", "src/MODULES", "low\n  base:\n  a: b\nup\n  b:\n", "not above"),
    ("a module listed twice", "src/MODULES", ROWS + "  a: base\n", "twice"),
    ("a row of another form", "src/MODULES", ROWS + "  c base\n", "src/MODULES:6: not"),
    ("a prefix that two modules have", "src/MODULES", ROWS.replace("b:", "b (other):"), "belongs to a"),
    ("a grant that is not used", "src/up/b/b.c", LAST, "does not use it"),
    ("a grant that only a call uses", NM_B.replace("x.c", "b.c"), "                 U a_base\n", None),
    ("the module's prefix", NM_A, "0 T a_one\n0 T other_two\n                 U memcpy\n", None),
    ("no prefix", NM_A, "0 T one\n", "one does not have a prefix"),
    ("a prefix of another module", NM_A, "0 T b_one\n", "b_one does not have a prefix"),
    ("a word that only starts like the prefix", NM_A, "0 T aone\n", "aone does not have"),
    ("one symbol in two modules", NM_B, "0 T b_one\n0 T a_base\n", "a_base: defined in a and in b"),
    ("a call that is granted", NM_B, "0 T b_one\n                 U a_base\n", None),
    ("a call that is not granted", NM_A, "0 T a_one\n                 U b_base\n", "a calls b_base of b"),
    ("a main in each program", NM_B, "0 T main\n", None),
]

BASE = {"src/MODULES": ROWS, "src/low/base/banned.h": HEAD, "src/low/a/a.h": HEAD, "src/low/a/a.c": LAST,
        "src/low/a/a_priv.h": "/* a */\n", "src/up/b/b.h": HEAD, "src/up/b/b.c": '#include "a/a.h"\n' + LAST,
        NM_A.replace("x.c", "a.c"): "0 T a_base\n", NM_B.replace("x.c", "b.c"): "0 T b_base\n"}

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        lintlib.self_test(CASES, BASE, check)
    lintlib.finish("modules", check(lintlib.ROOT))
