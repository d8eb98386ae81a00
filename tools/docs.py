#!/usr/bin/env python3
"""docs.py - documents that cannot rot in silence.

    tools/docs.py [--self-test]

In every .md file: relative links and their #anchors resolve; a path in
backticks that starts with a folder or file of this repository exists (NAME,
FORMAT, ROOM, VERB stand for any); `make X` is a target; `writ X` is a verb of the built binary. A
line with "planned" may name what is still to come, and so may docs/ROADMAP.md.
The table of jail steps in ARCHITECTURE.md has the rows of steps.def, in its order.
In every file: no note to self, no path of the machine it was written on, no
host of a package registry (a test must never reach one).
"""
import re
import shutil
import subprocess
import sys

import lintlib

FENCE = re.compile(r"^\s*(```|~~~)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
MAKE = re.compile(r"(?:^|[;&|$] *|`)make ((?:[A-Z_]+=\S+ )*)([a-z][a-z-]*)")
WRIT = re.compile(r"(?:^|[;&|$] *|`)writ ([a-z][a-z0-9-]*)")
# Written in halves so that this file passes its own test.
NOTES = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
HOSTS = re.compile(r"\b(?:" + "|".join(
    name + r"\." + top for name, top in (
        ("pypi", "org"), ("pythonhosted", "org"), (r"npm" "js", "(?:org|com)"), ("crates", "io"),
        ("rubygems", "org"), (r"proxy\.golang", "org"), (r"docker", "io"), ("ghcr", "io"),
        ("quay", "io"), ("gcr", "io"), (r"deb\.debian", "org"), (r"archive\.ubuntu", "com"),
        (r"repo\.maven", "apache"))) + r")\b")


def tracked(root):
    """Files git has or would add; without git, all but what is built."""
    ls = ["git", "-C", root, "ls-files", "-zco", "--exclude-standard"]
    git = subprocess.run(ls, capture_output=True) if shutil.which("git") else None
    names = git.stdout.decode().split("\0") if git and git.returncode == 0 else [
        str(p.relative_to(root)) for p in root.rglob("*")
        if not {"build", "dist", ".git", "__pycache__"} & set(p.relative_to(root).parts)]
    return sorted(root / n for n in names if n and (root / n).is_file())


def anchors(path):
    """The anchors a forge makes of the headings of a file."""
    found, fenced = set(), False
    for line in path.read_text().splitlines():
        fenced ^= bool(FENCE.match(line))
        if line.startswith("#") and not fenced:
            text = line.lstrip("#").strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def check_link(path, target, say):
    name, _, anchor = target.partition("#")
    dest = (path.parent / name) if name else path
    if re.match(r"[a-z]+:", target):
        return
    if not dest.exists():
        say(f"link to {target}: no such file")
    elif anchor and dest.suffix == ".md" and anchor not in anchors(dest):
        say(f"link to {target}: no such heading")


def check_code(root, text, known, say):
    """@text is what stands in backticks or one line of a code block."""
    for m in MAKE.finditer(text):
        if known["targets"] and m[2] not in known["targets"]:
            say(f"make {m[2]}: no such target")
    for m in WRIT.finditer(text):
        if known["verbs"] and m[1] not in known["verbs"]:
            say(f"writ {m[1]}: no such verb")
    if PATH.fullmatch(text) and ("/" in text or text in known["roots"] or text.endswith(".md")):
        glob = re.sub(r"\b(NAME|FORMAT|ROOM|VERB)\b", "*", text.rstrip("/"))
        if (text.split("/")[0] in known["roots"] or "/" not in text) and not any(root.glob(glob)):
            say(f"{text}: no such file")


def check_markdown(root, path, known, errors):
    fenced = False
    where = path.relative_to(root)
    for n, line in enumerate(path.read_text().splitlines(), 1):
        def say(what):
            errors.append(f"{where}:{n}: {what}")
        fenced ^= (fence := bool(FENCE.match(line)))
        if fence or "planned" in line.lower() or str(where) == "docs/ROADMAP.md":
            continue
        if fenced or line.startswith("    "):
            check_code(root, line.strip(), {**known, "roots": set()}, say)
            continue
        for m in LINK.finditer(CODE.sub("", line)):
            check_link(path, m[1], say)
        for m in CODE.finditer(line):
            check_code(root, m[1], known, say)


STEP = re.compile(r'X\(\w+, "([^"]+)", (\w+), .*\n\s*"([^"]*)".*\n\s*"([^"]*)"\)')
STEPS = "src/engine/host/jail/steps.def"


def check_steps(root, errors):
    """ARCHITECTURE.md states the order of jail steps as steps.def does, or not at all."""
    page = root / "ARCHITECTURE.md"
    if not (root / STEPS).exists() or not page.exists():
        return
    want = [f"| {name} | {'A' if only == 'JAIL_OWN_NAMESPACES' else 'A B'} | {what} | {why} |"
            for name, only, what, why in STEP.findall((root / STEPS).read_text())]
    have = re.findall(r"^\| .*$", page.read_text().partition("| step | tier |")[2], re.M)[:len(want)]
    for row in want:
        if row not in have:
            errors.append(f"ARCHITECTURE.md: no row for this step of {STEPS}: {row}")
    if sorted(have) == sorted(want) and have != want:
        errors.append(f"ARCHITECTURE.md: jail steps in another order than {STEPS}")


def check(root, verbs=frozenset()):
    errors, files = [], tracked(root)
    make = (root / "Makefile").read_text() if (root / "Makefile").exists() else ""
    known = {"targets": set(re.findall(r"^([a-z-]+):", make, re.M)), "verbs": verbs,
             "roots": {p.relative_to(root).parts[0] for p in files}}
    # A root of one part says nothing; a longer one is a path of this machine.
    here = re.compile(r"(?<![\w.])" + re.escape(str(root)) + r"\b") if len(root.parts) > 2 else None
    for path in files:
        where, text = path.relative_to(root), path.read_bytes().decode(errors="replace")
        for n, line in enumerate(text.splitlines(), 1):
            for rule, what in ((NOTES, "a note to self"), (HOSTS, "a registry host"),
                               (here, "a path of this machine")):
                if rule and rule.search(line) and str(where) != "LICENSE":
                    errors.append(f"{where}:{n}: {what}: {rule.search(line)[0]}")
        if path.suffix == ".md":
            check_markdown(root, path, known, errors)
    check_steps(root, errors)
    return errors


def read_verbs(writ):
    """The first word of each indented line of `writ --help`; nothing if it is not built."""
    if not writ.exists():
        return frozenset()
    out = subprocess.run([writ, "--help"], capture_output=True, text=True, timeout=10).stdout
    return frozenset(re.findall(r"^ +([a-z][a-z0-9-]*)\b", out, re.M)) | {"help"}


CASES = [
    ("a good page", "x.md", "see [y](docs/y.md#a-b) and `src/a.c`, `make test`, `writ check`\n", None),
    ("a broken link", "x.md", "[y](docs/no.md)\n", "no such file"),
    ("a broken anchor", "x.md", "[y](docs/y.md#no)\n", "no such heading"),
    ("a path that is not there", "x.md", "`src/no.c`\n", "src/no.c"),
    ("a document that is not there", "x.md", "`NO.md`\n", "NO.md"),
    ("a path of somebody else", "x.md", "`/etc/passwd` `usr/lib` `a.example.com`\n", None),
    ("an unknown target", "x.md", "run `make coffee`\n", "coffee"),
    ("an unknown target in a block", "x.md", "```\n$ make PREFIX=/x coffee\n```\n", "coffee"),
    ("an unknown verb", "x.md", "run `writ fly -- x`\n", "writ fly"),
    ("an unknown verb in a block", "x.md", "    writ fly\n", "writ fly"),
    ("prose about a writ", "x.md", "a writ says what; make coffee\n", None),
    ("what is planned", "x.md", "planned: `writ fly`, `src/jail/`\n", None),
    ("steps as in the list", "ARCHITECTURE.md", "| step | tier |\n| a | A B | x | y |\n| b | A | z | w |\n", None),
    ("a step with another text", "ARCHITECTURE.md", "| step | tier |\n| a | A B | x | y |\n| b | A | z | v |\n", "no row"),
    ("steps in another order", "ARCHITECTURE.md", "| step | tier |\n| b | A | z | w |\n| a | A B | x | y |\n", "order"),
    ("a note to self", "a.c", "/* TO" "DO */\n", "note"),
    ("a path of this machine", "a.c", "x @ROOT@/y\n", "machine"),
    ("a registry", "a.c", "pypi" ".org\n", "registry"),
]

BASE = {"Makefile": "test:\n", "src/a.c": "", "docs/y.md": "# A b\n",
        STEPS: 'X(A, "a", 0, 0, f, \\\n "x", \\\n "y") \\\nX(B, "b", JAIL_OWN_NAMESPACES, 0, f, \\\n "z", \\\n "w")\n'}

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        lintlib.self_test(CASES, BASE, lambda root: check(root, {"check"}))
    lintlib.finish("docs", check(lintlib.ROOT, read_verbs(lintlib.ROOT / "build/release/prog/writ")))
