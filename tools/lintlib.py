"""lintlib.py - what the lints share: their self-test and their ending.

A case is (name, file, text, word): a tree is made of the lint's base files plus
this file, and the lint must complain with that word, or not at all if it is None.
"@ROOT@" in the text stands for the tree's own path.
"""
import sys
import tempfile
from pathlib import Path


def self_test(cases, base, check):
    bad = 0
    for n, (name, where, text, word) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as d:
            root = Path(d).resolve()
            for f, t in {**base, where: text}.items():
                (root / f).parent.mkdir(parents=True, exist_ok=True)
                (root / f).write_text(t.replace("@ROOT@", str(root)))
            errors = check(root)
        good = not errors if word is None else any(word in e for e in errors)
        bad += not good
        print(f"{'' if good else 'not '}ok {n} - {name}")
        print("".join(f"# {e}\n" for e in errors if not good), end="")
    print(f"1..{len(cases)}")
    sys.exit(1 if bad else 0)


def finish(name, problems):
    print("\n".join(problems) or f"{name}: ok")
    sys.exit(1 if problems else 0)


ROOT = Path(__file__).resolve().parent.parent
