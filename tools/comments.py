#!/usr/bin/env python3
"""comments.py - comments name their subject.

    tools/comments.py [--self-test] [PATH ...]

Checked in the C files of src/, prog/, include/ and bench/ (or of each PATH):
- a comment does not begin with a pronoun or a filler (What, Who, It, Then, ...),
  which leaves the reader to guess the subject.
"""
import re
import sys
from pathlib import Path

import lintlib

FOLDERS = ("src", "prog", "include", "bench")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(.*?)\*/', re.S)
FIRST = re.compile(r"(What|Whatever|Who|Whoever|Whom|Whose|Nobody|Somebody|Someone|Anybody|Everybody|It|Its|That|"
                   r"Those|Such|One|Ones|Then|So|Of|They|Their|Them|Otherwise|Likewise|Same|Neither|Others?|"
                   r"Something|Nothing|Anything|Everything)\b", re.I)


def first_words(comment):
    """The start of the text, without the stars, a name before a colon or dash, and @NAME."""
    text = re.sub(r"\n[ \t]*\*[ \t]?", "\n", comment).strip(" \t\n*")
    return re.sub(r"^(?:SECURITY|NOTE): *", "", text)


def check_text(where, text, errors):
    for m in COMMENT.finditer(text):
        if m[1] is None:
            continue
        words = first_words(m[1])
        if FIRST.match(words):
            line = text.count("\n", 0, m.start()) + 1
            errors.append(f"{where}:{line}: comment does not name its subject: {' '.join(words.split()[:8])}")


def check(root, paths=None):
    errors = []
    for folder in paths or [root / f for f in FOLDERS]:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.[ch]"))
        for path in files:
            check_text(path.relative_to(root) if root in path.parents else path, path.read_text(), errors)
    return errors


CASES = [
    ("a subject first", "src/a/x.c", "/* The mediator owns this descriptor. */\n", None),
    ("an imperative first", "src/a/x.c", "/* Retry a listener whose bind failed. */\n", None),
    ("a pronoun first", "src/a/x.c", "/* What could not be had may be now. */\n", "x.c:1"),
    ("a pronoun on the second line", "src/a/x.c", "/*\n * It ends with the parent.\n */\n", "It ends"),
    ("a pronoun behind a mark", "src/a/x.c", "/* SECURITY: who asks is checked. */\n", "who asks"),
    ("a word that only starts like one", "src/a/x.c", "/* Iterate. Official names. Soft limit. */\n", None),
    ("a comment in a string", "src/a/x.c", 'x = "/* It is text */";\n', None),
    ("a comment in prog", "prog/x.c", "/* Nobody reads it. */\n", "Nobody"),
]

BASE = {"src/a/a.c": "\n", "prog/a.c": "\n"}

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        lintlib.self_test(CASES, BASE, check)
    lintlib.finish("comments", check(lintlib.ROOT, [Path(p).resolve() for p in sys.argv[1:]]))
