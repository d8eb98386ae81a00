#!/usr/bin/env python3
"""run.py - docs/language.md, the manual page and examples/ are true. Speaks TAP.

    tests/language/run.py [--writ BINARY] [--dir DIRECTORY]

In docs/language.md:

    ```writ             the policy passes `writ check`, and printing it changes nothing but spacing
    ```writ-error       it does not; the last line, `# error: LINE:COL TEXT`, says what the only error is
    ```writ-token       TOKEN   RULE: --allow TOKEN means what the rule means

`version 1` is put before a block that has none, unless the block says `whole`; lines count from the block's first.
/home/me/app stands for the project. Each statement, verb, qualifier and limit that the sources know must have a row in
its table, an example that passes, and one that fails in a line of its own.
"""
import json
import re
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
from lab import Lab, ROOT, Tap, arguments

DOC = ROOT / "docs/language.md"
MANUAL = ROOT / "man/writ-policy.5"
EXAMPLES = ROOT / "examples"
FACTS = ROOT / "tests/fixtures/hosts/debian13-user-6.12.facts"
ERROR = re.compile(r"^(.*?):(\d+):(\d+): error: (.*)$", re.M)
WORD = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^\s"])+')


class Block:
    def __init__(self, kind, flags, line, text):
        self.kind, self.line, self.shown = kind, line, text
        self.added = 0
        first = next((w for w in map(words, text.splitlines()) if w), [""])
        if kind != "writ-token" and "whole" not in flags and first[0] != "version":
            self.added, text = 1, "version 1\n" + text
        self.text = text

    def statements(self):
        return [w for w in map(words, self.shown.splitlines()) if w]


def words(line):
    """The words of a policy line as they are written."""
    found = []
    for m in WORD.finditer(line):
        if m[0].startswith("#"):
            break
        found.append(m[0])
    return found


def blocks(text):
    lines, i = text.splitlines(), 0
    while i < len(lines):
        m = re.match(r"```(\S*) *(.*)$", lines[i])
        if m:
            start = i + 1
            i = next(k for k in range(start, len(lines)) if lines[k] == "```")
            if m[1].startswith("writ"):
                yield Block(m[1], m[2].split(), start + 1, "\n".join(lines[start:i]) + "\n")
        i += 1


def canonical(text):
    """What `writ check --print` must write, found without writ."""
    return "".join(("    " if line[0] in " \t" else "") + " ".join(words(line)) + "\n"
                   for line in text.splitlines() if words(line))


def passes(tap, lab, name, text):
    r = lab.run("check", lab.file(text))
    tap.check(r.code == 0 and not r.err, f"{name} passes", r.err + r.out + f"exit {r.code}")
    p = lab.run("check", "--print", lab.file(text))
    tap.check(p.code == 0 and p.out == canonical(text), f"{name} is printed as it was written", p.err + p.out)
    q = lab.run("check", "--print", lab.file(p.out, "q.writ"))
    a, b = (lab.run("caps", "--all", lab.file(t)) for t in (text, p.out))
    tap.check(q.out == p.out and a.code == b.code == 0 and a.out == b.out, f"{name} means the same when printed",
              a.err + a.out + b.err + b.out)


def fails(tap, lab, block, name):
    m = re.search(r"^# error: (?:(\d+):(\d+) )?(.+)\n\Z", block.shown, re.M)
    if not tap.check(m, f"{name} says which error", block.shown):
        return None
    r = lab.run("check", lab.file(block.text))
    found = ERROR.findall(r.err)
    want = m[3].replace("/home/me/app", str(lab.project))
    good = r.code == 121 and len(found) == 1 and not r.out and want in found[0][3]
    if good and m[1]:
        good = found[0][1:3] == (str(int(m[1]) + block.added), m[2])
    tap.check(good, f"{name} gets exactly that error", f"expected {m[0]}exit {r.code}\n{r.out}{r.err}")
    return words(block.text.splitlines()[int(found[0][1]) - 1]) if found else None


def tokens(tap, lab, block):
    for line in block.shown.splitlines():
        token, rule = re.match(r"(.*?\S) {2,}(allow .*)", line).groups()
        a = lab.run("caps", "--all", "--allow", token)
        b = lab.run("caps", "--all", lab.file(f"version 1\n{rule}\n"))
        tap.check(a.code == 0 and a.out == b.out and len(a.out) > 200, f"--allow {token} is {rule}",
                  a.err + a.out + b.err + b.out)


def rule_of(stmt):
    """(verb, qualifiers) of a rule or a test, or (None, [])."""
    at = 2 if stmt[0] == "test" else 1
    if stmt[0] not in ("allow", "ask", "deny", "test") or len(stmt) <= at:
        return None, []
    return stmt[at], [q.split("=")[0] for q in stmt[at + 2:]]


def cover(seen, stmt):
    seen["statement"].add(stmt[0])
    verb, quals = rule_of(stmt)
    if verb and stmt[0] != "test":
        seen["verb"].add(verb)
        for q in quals:
            seen["qualifier"].add(q)
            seen["pair"].add((verb, q))
    if stmt[0] == "limit" and len(stmt) > 1:
        seen["limit"].add(stmt[1])


def known():
    """What the sources say there is."""
    verb_c, parse_c, units_c = ((ROOT / "src/policy/lang" / f).read_text() for f in ("verb.c", "parse.c", "units.c"))
    verbs = re.findall(r'^\t\{ "(\w+)",\s+VERB_\w+,\s*((?:0|Q\(\w+\)|[ |\n\t])+),', verb_c, re.M)
    quals = dict(re.findall(r'\[(QUAL_\w+)\] = "(\w+)"', verb_c))
    limits = re.search(r"limit_words\[\] = \{(.*?)NULL", units_c, re.S)
    sets = {"statement": set(re.findall(r'^\t\{ "(\w+)",\s+STMT_', parse_c, re.M)),
            "verb": {v for v, _ in verbs}, "qualifier": set(quals.values()),
            "pair": {(v, quals["QUAL_" + q]) for v, bits in verbs for q in re.findall(r"Q\((\w+)\)", bits)},
            "limit": set(re.findall(r'"(\w+)"', limits[1]))}
    return sets


def table(text, heading):
    """The first words of the rows of the table below a heading."""
    part = re.search(rf"^## \d+\. {heading}$(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    rows = re.search(r"((?:^\|.*\n)+)", part, re.M)[1].splitlines()[2:]
    return {re.match(r"\| \[?`(\w+)`", row)[1] for row in rows}


def coverage(tap, text, good, bad):
    have = known()
    sizes = {k: len(v) for k, v in have.items()}
    tap.check(min(sizes.values()) > 8, "the sources were understood", sizes)
    for kind, heading in (("statement", "Statements"), ("verb", "Verbs"), ("qualifier", "Qualifiers"),
                          ("limit", "Limits")):
        rows = table(text, heading) | ({"time"} if kind == "limit" else set())
        tap.check(rows == have[kind], f"the table of {heading} has every {kind} and no other",
                  f"only in one: {sorted(rows ^ have[kind])}")
    for kind, all_of in have.items():
        tap.check(all_of <= good[kind], f"every {kind} has an example that passes", sorted(all_of - good[kind]))
        if kind not in ("pair", "limit"):
            tap.check(all_of <= bad[kind], f"every {kind} has an example that fails", sorted(all_of - bad[kind]))


def document(tap, lab):
    text = DOC.read_text()
    good, bad = defaultdict(set), defaultdict(set)
    for b in blocks(text):
        name = f"language.md:{b.line}"
        if b.kind == "writ":
            passes(tap, lab, name, b.text)
            for stmt in b.statements():
                cover(good, stmt)
        elif b.kind == "writ-error":
            stmt = fails(tap, lab, b, name)
            if stmt:
                cover(bad, stmt)
        else:
            tap.check(b.kind == "writ-token", f"{name} is a kind of block that is known", b.kind)
            tokens(tap, lab, b)
    coverage(tap, text, good, bad)


def manual(tap, lab):
    """The manual page has the same words, and its policies pass."""
    text = MANUAL.read_text()
    plain = set(re.findall(r"[\w.]+", text))
    for kind, all_of in known().items():
        if kind != "pair":
            tap.check(all_of <= plain, f"the manual page names every {kind}", sorted(all_of - plain))
    policies = re.findall(r"^\.Bd -literal.*\n(version 1\n(?:[^.].*\n|\n)+)\.Ed$", text, re.M)
    tap.check(len(policies) == 2, "the manual page has two policies", policies)
    for i, policy in enumerate(policies, 1):
        passes(tap, lab, f"{MANUAL.name}, policy {i}", policy)


def enforced(tap, lab, f):
    """Nothing but this version itself may keep an example from running on a good machine."""
    r = lab.run("explain", "--json", "--facts", str(FACTS), str(f))
    plan = json.loads(r.out or "{}")
    plans = [plan] + [a["plan"] for a in plan.get("agents", [])]
    refused = [x for p in plans for x in p.get("rules", []) if x["refused"]]
    refused += [x for p in plans for x in p.get("guarantees", {}).values() if x["refused"]]
    tap.check(plan.get("rules") and all(x["by"].startswith("not in this version") for x in refused),
              f"{f.name} can be enforced on {FACTS.stem}", refused or r.err)
    tap.check(r.code == (122 if refused else 0), f"{f.name}: explain ends with {122 if refused else 0}", r.err)


def examples(tap, lab):
    files = sorted(EXAMPLES.glob("*.writ"))
    listed = set(re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.writ)\) \|", (EXAMPLES / "README.md").read_text(), re.M))
    tap.check(len(files) == 12 and listed == {f.name for f in files}, "twelve policies, all in examples/README.md",
              sorted(listed ^ {f.name for f in files}))
    for f in files:
        text = f.read_text()
        effects = set(re.findall(r"^\s*test (\w+)", text, re.M))
        tap.check(re.match(r"version 1\n# \S", text), f"{f.name} says whom it is for", text[:200])
        tap.check(effects == {"allow", "ask", "deny"}, f"{f.name} tests what is allowed, asked and denied", effects)
        passes(tap, lab, f.name, text)
        enforced(tap, lab, f)
    text = (EXAMPLES / "review-bot.writ").read_text()
    r = lab.run("check", lab.file(text.replace("test deny", "test allow")))
    tap.check(r.code == 121 and "test failed" in r.err, "a wrong test line is noticed", r.err + r.out)


def main():
    args, tap = arguments(__doc__.splitlines()[0]), Tap()
    with Lab(args.writ, args.dir) as lab:
        document(tap, lab)
        manual(tap, lab)
        examples(tap, lab)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
