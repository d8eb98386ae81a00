#!/usr/bin/env python3
"""compare.py TOOL [--pairs N] [--seed S]: the C code against the oracle. Prints TAP.

Reads:  the answers of TOOL, a filter: one question per line, fields separated by tabs
Writes: TAP, the first ten disagreements in full, totals
Next:   nothing; this is the last word on src/policy/cap

Questions, and answers (E: something does not parse):
  P g|r|d TEXT      1 or 0: parses
  M GRANT REQUEST   1, 0, E: matches
  W CHILD PARENT    1, 0, E: within
  T A B             the meet, "-" for none, E
  D DENIAL REQUEST  1, 0, E: denies
  F HEX             canonical text of a raw path, E
"""

import argparse
import collections
import queue
import subprocess
import sys
import threading

import gen
import gen_damage
import gen_requests
import make_vectors
from tap import Tap

SHOWN = 10
BATCH = 2000

# letter of a question: (vector file, oracle's answer, what it is called)
QUESTIONS = {
    "P": ("parse", make_vectors.answer_parse, "parses"),
    "M": ("match", make_vectors.answer_match, "matches"),
    "W": ("within", make_vectors.answer_within, "within"),
    "T": ("meet", make_vectors.answer_meet, "meets"),
    "D": ("deny", make_vectors.answer_deny, "denials"),
    "F": ("path", make_vectors.answer_path, "paths"),
}

# The least share of yes and of no: a comparison of one kind of answer only proves nothing.
LEAST_YES = {"P": 0.15, "M": 0.35, "W": 0.25, "T": 0.40, "D": 0.35, "F": 0.50}
LEAST_NO = {"P": 0.40, "M": 0.15, "W": 0.25, "T": 0.08, "D": 0.10, "F": 0.05}


class Tool:
    """The filter program. A thread collects its answers, so that neither side waits for ever."""

    def __init__(self, path):
        self.child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.collect, daemon=True)
        self.reader.start()

    def collect(self):
        for line in self.child.stdout:
            self.answers.put(line.rstrip(b"\n").decode("latin-1"))

    def ask(self, lines):
        """False if the program has gone away."""
        try:
            self.child.stdin.write(("\n".join(lines) + "\n").encode("latin-1"))
            self.child.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def ready(self):
        """The answers that are there already."""
        while not self.answers.empty():
            yield self.answers.get()

    def finish(self):
        """The remaining answers, and the exit status."""
        try:
            self.child.stdin.close()
        except BrokenPipeError:
            pass
        self.reader.join()
        rest = list(self.ready())
        self.child.stdout.close()
        return rest, self.child.wait()


class Count:
    """What was asked and answered, and where the two disagree."""

    def __init__(self):
        self.waiting = collections.deque()
        self.total = collections.Counter()
        self.yes = collections.Counter()
        self.error = collections.Counter()
        self.by_action = collections.Counter()
        self.proper = 0
        self.wrong = 0
        self.extra = 0
        self.shown = []

    def expect(self, fields):
        """Notes the oracle's answer; the line to send."""
        letter, words = fields[0], fields[1:]
        answer = QUESTIONS[letter][1](*words)
        self.waiting.append((fields, answer))
        self.total[letter] += 1
        if answer == "E":
            self.error[letter] += 1
        elif answer not in ("0", "-"):
            self.yes[letter] += 1
            self.by_action[letter, words[-1].partition(":")[0]] += 1
            self.proper += letter == "T" and answer not in words
        return "\t".join(fields)

    def check(self, answers):
        for got in answers:
            if not self.waiting:
                self.extra += 1
                continue
            fields, want = self.waiting.popleft()
            if got != want:
                self.wrong += 1
                if len(self.shown) < SHOWN:
                    self.shown.append((fields, want, got))

    def report(self, tap):
        for fields, want, got in self.shown:
            tap.note("question %s" % fields[0])
            for word in fields[1:]:
                tap.note("    %s" % ascii(word)[1:-1])
            tap.note("  oracle %s" % want)
            tap.note("  tool   %s" % ascii(got)[1:-1])


def run(tap, path, batches, what):
    """Puts all questions to the program; the counts."""
    tool, count = Tool(path), Count()
    alive = True
    for batch in batches:
        alive = tool.ask([count.expect(fields) for fields in batch])
        count.check(tool.ready())
        if not alive:
            break
    rest, status = tool.finish()
    count.check(rest)
    count.report(tap)
    whole = alive and not count.waiting and not count.extra and status == 0
    tap.ok(
        whole, "%s: one answer per question" % what,
        "%d unanswered, %d too many, exit status %d" % (len(count.waiting), count.extra, status),
    )
    asked = sum(count.total.values())
    agree = asked and not count.wrong and not count.waiting
    tap.ok(agree, "%s: agree" % what, "%d of %d are wrong" % (count.wrong, asked))
    return count


# ---- vectors ------------------------------------------------------------------------------------


def check_vectors(tap, path):
    for letter, (name, answer, _) in QUESTIONS.items():
        vectors = make_vectors.read(name)
        stale = [words for want, words in vectors if answer(*words) != want]
        tap.ok(vectors and not stale, "%s.txt: the oracle gives its answers" % name, *stale[:SHOWN])
        run(tap, path, [[[letter] + words for _, words in vectors]], "%s.txt" % name)


# ---- random questions ---------------------------------------------------------------------------


def questions(rng):
    """All questions about one pair."""
    a_term, b_term = gen.pair(rng)
    a, b = gen.text(a_term), gen.text(b_term)
    req_term = gen_requests.request(rng, a_term if rng.chance(0.7) else b_term)
    if rng.chance(0.4):
        req_term = gen_requests.spoil_request(rng, req_term)
    no_term = gen_requests.denial(rng, req_term)
    if rng.chance(0.5):
        no_term = gen_requests.spoil_denial(rng, no_term)
    req, no = gen.text(req_term), gen.text(no_term)
    kind, text = rng.pick([("g", a), ("r", req), ("d", no)])
    bad = gen_damage.damage(rng, text)
    if rng.chance(0.08):
        a = bad if kind == "g" else a
        req = bad if kind == "r" else req
        no = bad if kind == "d" else no
    out = [["P", kind, bad], ["P", rng.pick("grd"), text], ["W", a, b], ["W", b, a], ["T", a, b]]
    out += [["M", a, req], ["M", b, req], ["D", no, req]]
    if rng.chance(0.25):
        out += [["T", b, a], ["F", gen_damage.raw_path(rng).hex()]]
    return out


def batches(seed, pairs):
    rng = gen.Rng(seed)
    batch = []
    for _ in range(pairs):
        batch += questions(rng)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def check_shares(tap, count, pairs):
    for letter, (_, _, name) in QUESTIONS.items():
        total, yes, error = count.total[letter], count.yes[letter], count.error[letter]
        no = total - yes - error
        if letter == "F":  # a path is refused with E; there is no other no
            no = error
        tap.note("{}: {:,} asked, {:,} yes, {:,} errors".format(name, total, yes, error))
        tap.ok(yes >= LEAST_YES[letter] * total > 0, "%s: enough yes" % name)
        tap.ok(no >= LEAST_NO[letter] * total > 0, "%s: enough no" % name)
        if letter not in "PF":
            tap.ok(error > total // 200, "%s: some errors" % name)
            rare = [act for act in gen.GRANTS if count.by_action[letter, act] < pairs // 400]
            tap.ok(not rare, "%s: yes for every action" % name, *rare)
    tap.note("meets that are neither of the two: {:,}".format(count.proper))
    tap.ok(count.proper >= 0.06 * count.total["T"] > 0, "meets: enough that are neither of the two")


def main():
    parser = argparse.ArgumentParser(description="the C code against the oracle")
    parser.add_argument("tool")
    parser.add_argument("--pairs", type=int, default=60000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tap = Tap()
    check_vectors(tap, args.tool)
    count = run(tap, args.tool, batches(args.seed, args.pairs), "random, seed %d" % args.seed)
    check_shares(tap, count, args.pairs)
    totals = args.pairs, count.yes["W"], sum(count.total.values()), count.wrong
    tap.note("{:,} pairs, {:,} positive, {:,} questions, {:,} disagreements".format(*totals))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
