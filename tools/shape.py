#!/usr/bin/env python3
"""shape.py - the size of functions and files, and the plain rules of layout.

    tools/shape.py [--self-test]

Hard caps, with no list of exceptions: a C function has at most 100 lines, a
main() in prog/ at most 60, a source file at most 1,000. Layout that needs no
particular version of a formatter: tabs indent C, its lines end within 100
columns (rows of a table that clang-format leaves alone: 170) and have no // comments; no blanks at the end of a line anywhere, and a
newline at the end of a file.
The ten longest functions are always printed.
"""
import re
import sys

import lintlib

FUNCTION_MAX, MAIN_MAX, FILE_MAX, COLUMNS, TABLE_COLUMNS = 100, 60, 1000, 100, 170
FOLDERS = ("src", "prog", "tests", "bench", "tools")
NAME = re.compile(r"(\w+)\s*\(")
# String literals first, so that "http://x" is not taken for a comment.
SLASHES = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|(//)')


def functions(lines):
    """Yields (name, first line, length) of each function: a brace alone in column 0."""
    start = name = None
    for n, line in enumerate(lines, 1):
        if line == "{":
            head = []
            for above in reversed(lines[max(0, n - 12):n - 1]):
                if not above or above[0] in "}#*" or above.endswith((";", "*/")):
                    break
                head.insert(0, above)
            names = [w for w in NAME.findall(" ".join(head)) if w not in ("__attribute__", "printf_like")]
            start, name = n - len(head), names[0] if names else "?"
        elif line == "}" and start is not None:
            yield name, start, n - start + 1
            start = None


def check_layout(where, text, errors):
    comment = table = False
    for n, line in enumerate(text.split("\n"), 1):
        table = "clang-format off" in line or (table and "clang-format on" not in line)
        most = TABLE_COLUMNS if table else COLUMNS
        at = f"{where}:{n}"
        if line != line.rstrip():
            errors.append(f"{at}: blanks at the end of the line")
        if not where.endswith((".c", ".h")):
            continue
        if len(line.expandtabs(8)) > most:
            errors.append(f"{at}: {len(line.expandtabs(8))} columns, at most {most}")
        if not comment and re.match(r" {2,}\S| +\t", line):
            errors.append(f"{at}: indent with tabs")
        if not comment and any(m[1] for m in SLASHES.finditer(line)):
            errors.append(f"{at}: write /* */ and not //")
        ends = re.sub(r'"(?:\\.|[^"\\])*"', "", line)
        if ends.rfind("/*") > ends.rfind("*/"):
            comment = True
        elif "*/" in ends:
            comment = False
    if text and not text.endswith("\n"):
        errors.append(f"{where}: no newline at the end")


def check(root):
    errors, longest = [], []
    paths = [p for d in FOLDERS for p in sorted((root / d).rglob("*"))
             if p.suffix in (".c", ".h", ".py", ".sh") and p.is_file()]
    for path in paths:
        where, text = str(path.relative_to(root)), path.read_text(errors="replace")
        lines = text.splitlines()
        if len(lines) > FILE_MAX:
            errors.append(f"{where}: {len(lines)} lines, at most {FILE_MAX}")
        check_layout(where, text, errors)
        if path.suffix not in (".c", ".h"):
            continue
        for name, start, length in functions(lines):
            longest.append((length, f"{where}:{start} {name}()"))
            cap = MAIN_MAX if name == "main" and where.startswith("prog/") else FUNCTION_MAX
            if length > cap:
                errors.append(f"{where}:{start}: {name}() has {length} lines, at most {cap}")
    return errors, sorted(longest, reverse=True)[:10]


def body(head, n):
    return head + "\n{\n" + "\tx();\n" * (n - 3) + "}\n"


CASES = [
    ("a function of 100 lines", "src/a/x.c", body("int f(void)", 100), None),
    ("a function of 101 lines", "src/a/x.c", body("int f(void)", 101), "f() has 101"),
    ("a long function with a wrapped head", "src/a/x.c", body("static int\nf(int a,\n\tint b)", 105), "f() has"),
    ("a long second function", "src/a/x.c", body("int f(void)", 9) + body("int g(void)", 120), "g() has 120"),
    ("main of 60 lines", "prog/x.c", body("int main(int argc, char **argv)", 60), None),
    ("main of 61 lines", "prog/x.c", body("int main(int argc, char **argv)", 61), "main() has 61"),
    ("a file of 1001 lines", "src/a/x.c", "\n" * 1001, "1001 lines"),
    ("a line of 101 columns", "src/a/x.c", "\t" + "x" * 93 + "\n", "101 columns"),
    ("a line of 100 columns", "src/a/x.c", "\t" + "x" * 92 + "\n", None),
    ("a table row of 150 columns", "src/a/x.c",
     "/* clang-format off */\n\t" + "x" * 142 + "\n/* clang-format on */\n", None),
    ("a table row of 171 columns", "src/a/x.c", "/* clang-format off */\n\t" + "x" * 163 + "\n",
     "171 columns"),
    ("spaces that indent", "src/a/x.c", "    x();\n", "tabs"),
    ("a blank at the end", "src/a/x.c", "x; \n", "blanks"),
    ("no newline at the end", "src/a/x.c", "x;", "newline"),
    ("a // comment", "src/a/x.c", "x; // y\n", "//"),
    ("// in a string or a comment", "src/a/x.c", 'x = "http://y"; /* see //z */\n/*\n * //\n */\n', None),
]


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        lintlib.self_test(CASES, {}, lambda root: check(root)[0])
    problems, worst = check(lintlib.ROOT)
    print("longest functions:", *(f"  {length:4d} {what}" for length, what in worst), sep="\n")
    lintlib.finish("shape", problems)
