#!/usr/bin/env python3
"""hostile.py - input made to break the reader of policies gets an error, soon and in little memory. Speaks TAP.

    tests/language/hostile.py [--writ BINARY] [--dir DIRECTORY]

Each case must end with 121 (the policy is wrong) or 125 (it cannot be read) within five seconds, and say why without a
control character. A release binary also runs under RLIMIT_AS. WRIT_TEST_LONG=1 runs more mutations.
"""
import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from lab import ROOT, Lab, Tap, arguments

SECONDS = 5
MEMORY = 768 << 20  # the arena of a policy has at most 256 MiB
HEAD = "version 1\n"
MUTATIONS = 20000 if os.environ.get("WRIT_TEST_LONG") else 2000


class Judge:
    def __init__(self, tap, lab):
        self.tap, self.lab = tap, lab
        with open(lab.writ, "rb") as f:
            asan = b"__asan_init" in f.read()
        self.slow = 4 if asan else 1  # sanitizers cost time and address space, and that is no finding
        self.memory = 0 if asan else MEMORY

    def run(self, *args, stdin=b""):
        return self.lab.run(*args, stdin=stdin, timeout=SECONDS * self.slow, memory=self.memory)

    def harm(self, r, codes):
        """What is wrong with how it ended, or nothing."""
        if r.code is None:
            return "it did not end"
        if r.code not in codes:
            return f"exit {r.code}"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", r.err):
            return "raw control characters in what it says"
        if len(r.err) > 200000:
            return f"it says {len(r.err)} characters"
        if r.code and not r.err.strip():
            return "it says nothing"
        if self.memory and r.peak > self.memory:
            return f"{r.peak} bytes of memory"
        return ""

    def refused(self, name, r, text="", codes=(121, 125)):
        why = self.harm(r, codes) or (text not in r.err and f"it does not say {text!r}")
        self.tap.check(not why, f"{name}: refused in {SECONDS} s", f"{why}\n{r.err[:2000]}")

    def policy(self, name, text, says="", codes=(121, 125)):
        """@text as a file, and as standard input."""
        self.refused(name, self.run("check", self.lab.file(text)), says, codes)
        data = text if isinstance(text, bytes) else text.encode()
        self.refused(f"{name}, on standard input", self.run("check", "-", stdin=data), says, codes)


def bytes_and_lines(j):
    j.policy("one line of 1 MB", HEAD + "allow read ./" + "a" * (1 << 20))
    j.policy("one line of 1 MB without a newline or a version", "a" * ((1 << 20) - 1), "a line has at most")
    j.policy("one comment of 1 MB", "#" * ((1 << 20) - 1), "a line has at most")
    j.policy("2 MB", HEAD + "# x\n" * (1 << 19), "larger than", (125,))
    j.policy("nothing", "", "a policy begins with its version")
    j.policy("only newlines", "\n" * 1000000, "a policy begins with its version")
    j.policy("NUL in a word", HEAD.encode() + b"allow read ./a\0b\n", "2:15: error: control character 0x00")
    j.policy("NUL in a comment", HEAD.encode() + b"# a\0b\n", "control character 0x00")
    j.policy("a file of NULs", b"\0" * 10000, "control character 0x00")
    j.policy("an escape sequence", HEAD + "# \x1b[31m\n", "control character 0x1b")
    for name, raw in (("a lone continuation byte", b"\x80"), ("an overlong slash", b"\xc0\xaf"),
                      ("a surrogate", b"\xed\xa0\x80"), ("above U+10FFFF", b"\xf4\x90\x80\x80"),
                      ("a cut sequence", b"\xe2\x80"), ("latin-1", b"\xe4")):
        j.policy(f"invalid UTF-8, {name}", HEAD.encode() + b"allow read ./" + raw + b"\n", "not valid UTF-8")
    j.policy("UTF-16", (HEAD + "allow read .\n").encode("utf-16"))
    for code in (0x200b, 0x200e, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x2028, 0xfeff,
                 0x61c, 0xad, 0x85, 0x180e, 0xe0041):
        j.policy(f"U+{code:04X} in a comment", f"{HEAD}# allow{chr(code)} nothing\n", "2:8: error:")
        j.policy(f"U+{code:04X} in a word", f"{HEAD}deny net a{chr(code)}.example.com\n", "2:11: error:")


def many(j):
    j.policy("10,000 rules", HEAD + "".join(f"deny net h{i}.example.com\n" for i in range(10000)), "more than 4096")
    j.policy("4,000 rules that deny each other",
             HEAD + "".join(f"allow read ./data/x{i}*\n" for i in range(2000)) + "".join(
                 f"deny read ./data/x{i}*\n" for i in range(2000)), "can never match")
    j.policy("100,000 lines", HEAD + "allow\n" * 100000)
    j.policy("100,000 comments and a mistake", HEAD + "#\n" * 100000 + "alow read .\n", 'did you mean "allow"')
    j.policy("more words than fit", HEAD + "allow net h " + "count=1 " * 100, "more than 64 words")
    j.policy("one qualifier again and again", HEAD + "allow net h" + " count=1" * 50, '"count" is given twice')
    j.policy("a list of 5,000 methods", HEAD + "allow net https://h.example.com methods=" + ",".join(
        ["A" * (i % 15 + 1) for i in range(1500)]))
    j.policy("agents in agents", HEAD + "".join(" " * 4 * i + f"agent a{i}\n" for i in range(500)),
             'cannot stand in an agent block')
    j.policy("3,500 deep paths that are missing",
             HEAD + "".join("deny read ." + "/a" * 126 + f"/{i}\n" for i in range(3500)), "", (0, 121))
    j.policy("2,000 agents that pass", HEAD + "".join(f"agent a{i}\n    limit pids {i + 1}\n" for i in range(2000)),
             "", (0, 121))
    j.policy("2,000 agents", HEAD + "".join(f"agent a{i}\n    limit pids {i + 1}\n    allow write /\n"
                                            for i in range(2000)))
    text = HEAD + "".join(f"alow{i} read .\n" for i in range(3000))
    r = j.run("check", j.lab.file(text))
    shown = len(re.findall(r": error: ", r.err))
    j.tap.check(r.code == 121 and shown == 20 and "2980 more not shown" in r.err,
                "3,000 errors: 20 are shown, the others are counted", f"{r.code} {shown}\n{r.err[-300:]}")


def long_things(j):
    j.policy("a segment of 4,096 bytes", HEAD + "allow read ./" + "a" * 4096)
    j.policy("a segment of 4,096 stars", HEAD + "allow read ./" + "*" * 4096, "more than one *")
    j.policy("a path of 300 segments", HEAD + "allow read ." + "/a" * 300, "more than 128 segments")
    j.policy("a path of 8,000 segments", HEAD + "deny read ." + "/a" * 8000, "more than 128 segments")
    j.policy("a path of 300 double stars", HEAD + "deny read ." + "/**" * 300)
    j.policy("a host of 300 labels", HEAD + "allow net " + ".".join("a" * 300))
    j.policy("a host of 16,000 bytes", HEAD + "allow net " + "a" * 16000)
    j.policy("a URL of 16,000 bytes", HEAD + "allow net https://h.example.com/" + "a" * 16000)
    j.policy("an escaped segment of 4,000 bytes", HEAD + 'deny read "./' + "\\xff" * 4000 + '"')
    j.policy("a variable of 1,000 bytes", HEAD + "env " + "A" * 1000, "2:5: error:")
    j.policy("a name of 16,000 bytes", HEAD + "use " + "a" * 16000, "no profile")
    j.policy("a file name of 16,000 bytes", HEAD + "use ./" + "a" * 16000)
    j.policy("an unclosed quote", HEAD + 'allow read "./a b\nallow read ./c"\n', "this quote is never closed")
    j.policy("16,000 quotes", HEAD + "allow read ./" + '"' * 16001, "this quote is never closed")
    j.policy("a backslash at the end", HEAD + 'allow read "./a\\', "unknown escape")
    j.policy("half an escape", HEAD + 'allow read "./a\\x4', "unknown escape")
    for key in ("memory", "pids", "session", "cpu", "requests"):
        for value in ("9" * 30, "18446744073709551616", "9007199254740992", "-1", "0x10", "1e9", "+1", "00001",
                      "9223372036854775807T", "99999999999999d"):
            j.policy(f"limit {key} {value}", HEAD + f"limit {key} {value}\n", "is not a limit for", (121,))
    for q in ("count=99999999999999999999", "rate=1/99999999999d", "up=99999999999999T", "rate=99999999999/1s"):
        j.policy(q, HEAD + f"allow net https://h.example.com {q}\n", "is not a value for", (121,))


def files(j):
    top, run = j.lab.top, lambda name: j.run("check", str(top / name))
    for i in range(100):
        j.lab.file(HEAD + f"use ./c{i + 1}.writ\n", f"c{i}.writ")
    j.lab.file(HEAD, "c100.writ")
    j.refused("a chain of 100 files", run("c0.writ"), "too deeply", (121,))
    j.lab.file(HEAD + "".join(f"use ./f{i}.writ\n" for i in range(100)), "wide.writ")
    for i in range(100):
        j.lab.file(HEAD, f"f{i}.writ")
    j.refused("one file that uses 100", run("wide.writ"), "", (121,))
    for i in range(12):  # without memory of what was read this would be 2^12 files
        j.lab.file(HEAD + f"use ./d{i + 1}.writ\nuse ./e{i + 1}.writ\n", f"d{i}.writ")
        j.lab.file(HEAD + f"use ./d{i + 1}.writ\nuse ./e{i + 1}.writ\n", f"e{i}.writ")
    j.lab.file(HEAD, "d12.writ"), j.lab.file(HEAD, "e12.writ")
    r = run("d0.writ")
    j.tap.check(not j.harm(r, (0,)), "a lattice of files is read once each", r.err)
    j.lab.file(HEAD + "use ./b.writ\n", "a.writ")
    j.lab.file(HEAD + "use ./a.writ\n", "b.writ")
    j.refused("two files that use each other", run("a.writ"), "uses itself", (121,))
    j.lab.file(HEAD + "use ./self.writ\n", "self.writ")
    j.refused("a file that uses itself", run("self.writ"), "uses itself", (121,))
    j.lab.file(HEAD + "use ./other.writ\n", "one.writ")
    (top / "other.writ").symlink_to("one.writ")
    j.refused("a file that uses itself through a link", run("one.writ"), "uses itself", (121,))
    (top / "loop").symlink_to("loop")
    (top / "ping").symlink_to("pong")
    (top / "pong").symlink_to("ping")
    for name in ("loop", "ping"):
        j.refused(f"a policy that is a link in a circle, {name}", run(name), "", (125,))
        j.policy(f"use of {name}", HEAD + f"use {top}/{name}\n", "2:5: error:", (121,))
        for verb in ("read", "write", "put", "exec"):
            j.policy(f"allow {verb} of {name}", HEAD + f"allow {verb} {top}/{name}/x\n", "does not exist", (121,))
    strange = top / "strange"
    strange.mkdir()
    os.mkfifo(strange / "fifo")
    j.lab.file("", "strange/empty")
    for what in (strange / "fifo", strange, strange / "empty", "/dev/zero", "/dev/null", "/proc/self/mem", "/nowhere"):
        j.refused(f"a policy that is {what}".replace(str(top), ""), j.run("check", str(what)))
        j.policy(f"use of {what}".replace(str(top), ""), HEAD + f"use {what}\n", "", (121,))
    j.policy("reading a FIFO", HEAD + f"allow read {strange}/fifo\n", "neither a file nor a directory", (121,))


def tokens(j):
    for token in ("", ":", ";", "::", "write", "write:", ":./x", "write:;", "write:./src;", "write:./src;;",
                  "write:./src;mode=r", "write:allow=./src", "net:allow=", "net:", "shell:", "net:https://h.example.com;methods=GET,",
                  "a" * 100000, "write:" + "/a" * 20000, 'write:"', "write:\\", "read:./src\nread:./data",
                  "read ./src ./data", "allow read ./src", "net:https://h.example.com" + ";count=1" * 100, "\x01", "\u202e"):
        r = j.run("check", "--allow", token)
        shown = token if len(token) < 40 else token[:37] + "..."
        j.refused(f"--allow {shown!r}", r)
    for question in ([], ["write"], ["write", "*"], ["net", "*"], ["read", "./a" * 20000], ["shell", "full"]):
        r = j.run("why", *question)
        j.refused(f"why {str(question)[:40]}", r)


def mutate(rng, text, pieces):
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((0, 1, 1, 3, 20)))
        how = rng.randrange(5)
        if how == 0:
            data[at:end] = bytes([rng.randrange(256)])
        elif how == 1:
            data[at:end] = b""
        elif how == 2:
            data[at:end] = rng.choice(pieces)
        elif how == 3:
            data[at:at] = data[at:end] * rng.choice((2, 10, 100))
        else:
            data[at:end] = rng.choice(b' \t\n"\\*?#:;=/.,~$').to_bytes(1, "big")
    return bytes(data)


def mutations(j):
    seeds = [f.read_bytes() for f in sorted((ROOT / "examples").glob("*.writ"))]
    seeds += [f.read_bytes() for f in sorted((ROOT / "profiles").glob("*.writ"))]
    pieces = sorted({w for s in seeds for w in s.split()} | {b"**", b"\\*", b"?", b"%2e", b"\xe2\x80\xae", b"\0", b"0x7f",
                                                             b"[::1]", b"use none", b"agent x\n    "})
    rng, codes = random.Random(20240229), {}
    jobs = [(i, mutate(rng, rng.choice(seeds), pieces)) for i in range(MUTATIONS)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for (i, text), (code, why) in zip(jobs, pool.map(lambda job: one_mutation(j, *job), jobs)):
            codes[code] = codes.get(code, 0) + 1
            if why:
                j.tap.check(False, f"mutation {i}", f"{why}\n{text!r}")
    j.tap.check(codes.get(0, 0) > MUTATIONS // 100 and codes.get(121, 0) > MUTATIONS // 2,
                f"{MUTATIONS} mutated policies: some still pass, most get an error, none does harm", codes)


def one_mutation(j, i, text):
    """The exit code, and what is wrong. What passes must also pass when it is printed."""
    r = j.run("check", j.lab.file(text, f"m{i}.writ"))
    why = j.harm(r, (0, 121))
    if r.code == 0 and not why:
        p = j.run("check", "--print", j.lab.file(text, f"m{i}.writ"))
        q = j.run("check", j.lab.file(p.out, f"m{i}.writ"))
        why = "" if p.code == q.code == 0 and q.out == r.out else "it does not pass when printed"
        r.err = p.err + q.err
    (j.lab.top / f"m{i}.writ").unlink()
    return r.code, why and f"{why}\n{r.err[:2000]}"


def main():
    args, tap = arguments(__doc__.splitlines()[0]), Tap()
    with Lab(args.writ, args.dir) as lab:
        j = Judge(tap, lab)
        for part in (bytes_and_lines, many, long_things, files, tokens, mutations):
            part(j)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
