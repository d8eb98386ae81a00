#!/usr/bin/env python3
"""Writes tests/vectors/cap/*.txt: the hand-written cases, then generated ones.

Reads:  cases_*.py (answers written by hand), gen*.py (a fixed seed)
Writes: tests/vectors/cap/*.txt, the same bytes on every run
Next:   compare.py and the unit tests read the files

Fails if the oracle disagrees with an answer that was written by hand.
"""

import re
import sys
from pathlib import Path

import gen
import gen_damage
import gen_requests
from cases_match import DENY, MATCH
from cases_meet import MEET, PATH
from cases_parse import PARSE
from cases_within import WITHIN
from writ_oracle import Bad, denies, matches, meet, put_path, try_parse, within

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "cap"
SEED = 20
GENERATED = 200
SHARE = {"yes": 0.8, "no": 0.5, "error": 0.2}  # at most, of the generated lines
LONGEST = 400  # generated lines stay readable


# ---- answers, as text: the same as the filter program prints ------------------------------------


def answer_parse(kind, text):
    return "1" if try_parse(kind, text) else "0"


def relation(left_kind, right_kind, relate):
    def answer(left, right):
        a, b = try_parse(left_kind, left), try_parse(right_kind, right)
        if a is None or b is None:
            return "E"
        return "1" if relate(a, b) else "0"

    return answer


answer_within = relation("g", "g", within)
answer_match = relation("g", "r", matches)
answer_deny = relation("d", "r", denies)


def answer_meet(left, right):
    a, b = try_parse("g", left), try_parse("g", right)
    if a is None or b is None:
        return "E"
    both = meet(a, b)
    return "-" if both is None else both.text


def answer_path(digits):
    try:
        return put_path(bytes.fromhex(digits))
    except Bad:
        return "E"


# ---- lines --------------------------------------------------------------------------------------

# file: (how a line reads, how many words a question has, the answer)
FILES = {
    "parse": ("1|0 g|r|d TEXT", " ", answer_parse),
    "within": ("1|0|E CHILD | PARENT", " | ", answer_within),
    "match": ("1|0|E GRANT | REQUEST", " | ", answer_match),
    "meet": ("MEET|-|E A | B", " | ", answer_meet),
    "deny": ("1|0|E DENIAL | REQUEST", " | ", answer_deny),
    "path": ("TEXT|E HEX", None, answer_path),
}
HAND = {
    "parse": PARSE, "within": WITHIN, "match": MATCH, "meet": MEET, "deny": DENY, "path": PATH,
}


def question(name, line):
    """(answer, words of the question) of a line of a vector file."""
    answer, _, rest = line.partition(" ")
    separator = FILES[name][1]
    return answer, rest.split(separator, 1) if separator else [rest]


def hand_lines(name):
    """The hand-written lines with repeats written out; complains if the oracle disagrees."""
    lines = []
    for line in HAND[name].strip("\n").split("\n"):
        line = re.sub(r"\{(\d+)\*([^}]*)\}", lambda hit: hit[2] * int(hit[1]), line)
        lines.append(line)
        if line.startswith("#"):
            continue
        answer, words = question(name, line)
        got = FILES[name][2](*words)
        if got != answer:
            raise SystemExit("%s: by hand %s, oracle %s: %s" % (name, answer, got, line))
    return lines


def draw(rng):
    """One question for each file."""
    a, b = gen.pair(rng)
    req = gen_requests.request(rng, a)
    if rng.chance(0.4):
        req = gen_requests.spoil_request(rng, req)
    no = gen_requests.denial(rng, req)
    if rng.chance(0.4):
        no = gen_requests.spoil_denial(rng, no)
    a, b, req, no = (gen.text(term) for term in (a, b, req, no))
    kind, text = rng.pick([("g", a), ("r", req), ("d", no)])
    if rng.chance(0.7):
        text = gen_damage.damage(rng, text)
    return {
        "parse": [kind, text],
        "within": [a, b],
        "match": [rng.pick([a, b]), req],
        "meet": [a, b],
        "deny": [no, req],
        "path": [gen_damage.raw_path(rng).hex()],
    }


def printable(words):
    line = " ".join(words)
    return all("!" <= c <= "~" and c != "|" or c == " " for c in line) and len(line) <= LONGEST


def sort(line):
    """Yes, no or error."""
    answer = line.partition(" ")[0]
    return {"0": "no", "-": "no", "E": "error"}.get(answer, "yes")


def generated():
    """For each file, new questions in an even mix of answers."""
    rng = gen.Rng(SEED)
    lines = {name: [] for name in FILES}
    while any(len(done) < GENERATED for done in lines.values()):
        for name, words in draw(rng).items():
            _, separator, answer = FILES[name]
            line = "%s %s" % (answer(*words), (separator or "").join(words))
            same = sum(1 for other in lines[name] if sort(other) == sort(line))
            room = len(lines[name]) < GENERATED and same < GENERATED * SHARE[sort(line)]
            if room and printable(words) and words[-1] and line not in lines[name]:
                lines[name].append(line)
    return lines


def render():
    """{file name: bytes}"""
    out = {}
    made = generated()
    for name, (shape, _, _) in FILES.items():
        lines = ["# %s. Made by tests/oracle/make_vectors.py; do not edit." % shape]
        lines += hand_lines(name) + ["# generated"] + made[name]
        out[name + ".txt"] = ("\n".join(lines) + "\n").encode("ascii")
    return out


def read(name):
    """[(answer, words)] of a vector file."""
    lines = (VECTORS / (name + ".txt")).read_text("ascii").splitlines()
    return [question(name, line) for line in lines if line and not line.startswith("#")]


def main():
    VECTORS.mkdir(parents=True, exist_ok=True)
    for name, data in render().items():
        (VECTORS / name).write_bytes(data)
        print("%-12s %5d lines" % (name, data.count(b"\n")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
