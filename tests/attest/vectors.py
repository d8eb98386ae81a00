#!/usr/bin/env python3
"""vectors.py - tests/vectors/attest/ and the seeds of its fuzzer, made without the C code.

    tests/attest/vectors.py           write them
    tests/attest/vectors.py --check   compare with what is there; TAP

A case is the entries of a session's log and the finding for each boundary, as
docs/protocol/evidence.md draws it. Every case but the first few changes one thing.
"""
import copy
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT, SEEDS = HERE.parent / "vectors/attest/verdicts.json", HERE.parent / "fuzz/corpus/attest_judge"
BOUNDARIES = ("filesystem", "network", "process", "resources", "credentials")
PROBES = {
    "filesystem": ["outside.read refused ENOENT there", "root.read refused other there", "tmp.read works ok -"],
    "network": ["loopback.connect refused ECONNREFUSED there", "family.packet refused EAFNOSUPPORT -", "socket works ok -"],
    "process": ["unshare refused EPERM -", "keyring refused ENOSYS -", "signal.own works ok -"],
    "resources": ["rlimit.files refused EPERM -", "limits.read works ok -"],
    "credentials": ["state.read refused ENOENT there", "descriptors.inherited refused ENOENT -", "home.own works ok -"],
}
READ = {
    "filesystem": ["ns-mnt own own", "mounts own own"], "network": ["ns-net own own", "seccomp 2 2"],
    "process": ["no-new-privs 1 1", "seccomp 2 2"], "resources": ["pids-max 512 512", "rlimit-4 0 0"],
    "credentials": ["cap-effective 0000000000000000 0000000000000000"],
}
HELD, E2 = "held", 2


def applied(b):
    return {"event": "applied", "boundary": b, "level": "exact", "none": [], "partial": [], "unasked": [],
            "read_back": list(READ[b]), "said": ["landlock restricted restricted"] if b == "filesystem" else []}


def probed(b, phase):
    return {"event": "probed", "boundary": b, "phase": phase, "probes": list(PROBES[b]), "known": 5}


class Log:
    """A good log; what a case changes is found by what it is, not by where."""

    def __init__(self):
        self.entries = [{"event": "start", "session": "abcdefgh"}, {"event": "sealed", "steps": 1}]
        for b in BOUNDARIES:
            self.entries += [applied(b), probed(b, "start")]
        self.entries += [{"event": "release", "command": 1, "namespaces": []}, {"event": "exec", "op": "exec"},
                         {"event": "denied", "op": "read"}]
        self.entries += [probed(b, "end") for b in BOUNDARIES]
        self.entries += [{"event": "exited", "command": 1, "status": 0}, {"event": "end", "exit": 0, "denials": 1}]
        self.expect = {b: {"verdict": HELD, "strength": E2} for b in BOUNDARIES}
        self.counts, self.left_out = True, 0

    def at(self, event, boundary=None, phase=None):
        return next(i for i, e in enumerate(self.entries) if e["event"] == event and
                    boundary in (None, e.get("boundary")) and phase in (None, e.get("phase")))

    def get(self, *what):
        return self.entries[self.at(*what)]

    def want(self, boundary, verdict, strength, entry=None):
        for b in BOUNDARIES if boundary == "all" else (boundary,):
            self.expect[b] = {"verdict": verdict, "strength": strength}
            if entry is not None:
                self.expect[b]["entry"] = entry

    def finish(self, name):
        for i, e in enumerate(self.entries):
            e["time"] = 1794805769000000 + i
            if e["event"] == "end" and self.counts:
                e["entries"] = i
        more = {"left_out": self.left_out} if self.left_out else {}
        return {"name": name, "entries": copy.deepcopy(self.entries), "expect": self.expect, **more}


CASES = []


def case(name):
    def with_it(change):
        log = Log()
        change(log)
        CASES.append(log.finish(name))
        return change
    return with_it


def violated(log, boundary, strength, *what):
    log.want(boundary, "violated", strength, log.at(*what))


@case("everything is as it should be")
def _(log):
    del log


@case("an empty log")
def _(log):
    log.entries = []
    log.want("all", "unknown", 0)


@case("no beginning")
def _(log):
    del log.entries[0]
    log.want("all", "unknown", 0)


@case("no end")
def _(log):
    del log.entries[-1]
    log.want("all", "unknown", 0)


@case("the end does not say how many entries there are")
def _(log):
    log.counts = False
    log.want("all", "unknown", 0)


@case("an entry that is about no boundary is missing")
def _(log):
    log.finish("")
    log.counts = False
    del log.entries[log.at("denied")]
    log.want("all", "unknown", 0)


@case("an entry behind the end")
def _(log):
    log.entries.append({"event": "denied", "op": "read"})
    log.want("all", "unknown", 0)


for b_ in BOUNDARIES:
    @case(f"{b_}: not applied")
    def _(log, b=b_):
        del log.entries[log.at("applied", b)]
        log.want(b, "unknown", 0)

    @case(f"{b_}: an attempt at the start worked")
    def _(log, b=b_):
        log.get("probed", b, "start")["probes"][0] = PROBES[b][0].split()[0] + " refused ok -"
        violated(log, b, 2, "probed", b, "start")

    @case(f"{b_}: an attempt at the end worked")
    def _(log, b=b_):
        log.get("probed", b, "end")["probes"][0] = PROBES[b][0].split()[0] + " refused ok there"
        violated(log, b, 2, "probed", b, "end")

    @case(f"{b_}: nothing tried at the start")
    def _(log, b=b_):
        del log.entries[log.at("probed", b, "start")]
        log.want(b, "unknown", 1)

    @case(f"{b_}: nothing tried at the end")
    def _(log, b=b_):
        del log.entries[log.at("probed", b, "end")]
        log.want(b, "unknown", 1)

    @case(f"{b_}: a part is not enforced")
    def _(log, b=b_):
        log.get("applied", b).update(level="none", none=["res.disk"])
        log.want(b, "not enforced", 2)


@case("applied after the release")
def _(log):
    log.entries.insert(log.at("release") + 1, log.entries.pop(log.at("applied", "network")))
    log.want("network", "unknown", 0)


@case("tried at the start only after the release")
def _(log):
    log.entries.insert(log.at("release") + 1, log.entries.pop(log.at("probed", "network", "start")))
    log.want("network", "unknown", 1)


@case("tried at the end before the release")
def _(log):
    log.entries.insert(log.at("release"), log.entries.pop(log.at("probed", "network", "end")))
    log.want("network", "unknown", 1)


@case("nothing was released")
def _(log):
    del log.entries[log.at("exec")]
    del log.entries[log.at("release")]
    log.want("all", "unknown", 1)


@case("something ran before the release")
def _(log):
    log.entries.insert(2, {"event": "exec", "op": "exec"})
    log.want("all", "unknown", 0)


@case("a control did not work at the start")
def _(log):
    log.get("probed", "process", "start")["probes"][-1] = "signal.own works EPERM -"
    log.want("process", "unknown", 1)


@case("a control did not work at the end")
def _(log):
    log.get("probed", "filesystem", "end")["probes"][-1] = "tmp.read works EACCES -"
    log.want("filesystem", "unknown", 1)


@case("no control at all")
def _(log):
    log.get("probed", "network", "start")["probes"].pop()
    log.want("network", "unknown", 1)


@case("nothing but controls")
def _(log):
    log.get("probed", "network", "start")["probes"] = ["socket works ok -"]
    log.want("network", "unknown", 1)


@case("no probes in the list")
def _(log):
    log.get("probed", "network", "end")["probes"] = []
    log.want("network", "unknown", 1)


@case("probes that are no list")
def _(log):
    log.get("probed", "network", "end")["probes"] = "family.packet refused EPERM -"
    log.want("network", "unknown", 1)


@case("a probe that is no text")
def _(log):
    log.get("probed", "network", "end")["probes"].append(1)
    log.want("network", "unknown", 1)


for text, why in (("a.b refused EPERM", "three words"), ("a.b refused EPERM - -", "five words"), ("a.b  EPERM -", "an empty word"),
                  ("a.b perhaps EPERM -", "an expectation nobody knows"), ("a.b refused failed -", "an error that shows nothing"),
                  ("a.b refused ENOMEM -", "an error that is no refusal"), ("a.b refused EPERM gone", "what it was to find is gone"), ("a.b refused other gone", "something else, and nothing outside"),
                  ("a.b refused EIO -", "a broken disk"),
                  ("a.b refused EPERM perhaps", "a word about outside that nobody knows"), ("a.b works other -", "a control that found something else")):
    @case(f"a probe with {why}")
    def _(log, text=text):
        log.get("probed", "credentials", "start")["probes"].append(text)
        log.want("credentials", "unknown", 1)

for text, why in (("EINVAL", "the kernel looked at what it was given"), ("EFAULT", "the kernel followed a pointer"),
                  ("EBADF", "the kernel looked for a descriptor")):
    @case(f"a call that was not refused as such: {why}")
    def _(log, text=text):
        log.get("probed", "process", "start")["probes"][0] = f"unshare refused {text} -"
        violated(log, "process", 2, "probed", "process", "start")


@case("refused inside, but it arrived outside")
def _(log):
    log.get("probed", "network", "end")["probes"][0] = "loopback.connect refused ECONNREFUSED touched"
    violated(log, "network", 2, "probed", "network", "end")


for text in ("EPERM", "EACCES", "ENOENT", "ENOSYS", "EROFS", "ESRCH", "ENOTDIR", "ENXIO", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH",
             "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "other"):
    @case(f"a refusal: {text}")
    def _(log, text=text):
        log.get("probed", "process", "end")["probes"][0] = f"unshare refused {text} -"


@case("the kernel says something else than was wanted")
def _(log):
    log.get("applied", "process")["read_back"][0] = "no-new-privs 1 0"
    violated(log, "process", 1, "applied", "process")


@case("what the kernel does not tell was said otherwise")
def _(log):
    log.get("applied", "filesystem")["said"] = ["landlock restricted no"]
    violated(log, "filesystem", 1, "applied", "filesystem")


@case("the kernel could not be asked")
def _(log):
    log.get("applied", "network")["read_back"][0] = "ns-net own ?"
    log.want("network", "unknown", 0)


@case("nothing was read back")
def _(log):
    log.get("applied", "network")["read_back"] = []
    log.want("network", "unknown", 0)


@case("only said, not read back")
def _(log):
    log.get("applied", "filesystem")["read_back"] = []
    log.want("filesystem", "unknown", 0)


@case("a level of none that names nothing")
def _(log):
    log.get("applied", "resources")["level"] = "none"
    log.want("resources", "not enforced", 2)


@case("no list of what is not enforced")
def _(log):
    del log.get("applied", "resources")["none"]
    log.want("resources", "not enforced", 2)


for none_ in ([""], [1], [[]], [{}, ""]):
    @case(f"not enforced is {none_!r}: a list that is not empty is not")
    def _(log, none=none_):
        log.get("applied", "resources")["none"] = none
        log.want("resources", "not enforced", 2)


@case("rows that are no text: read back and said")
def _(log):
    log.get("applied", "network")["read_back"].append(7)
    log.get("applied", "filesystem")["said"].append({})
    log.want("network", "unknown", 0)


@case("in part: held, and said")
def _(log):
    log.get("applied", "process").update(level="partial", partial=["proc.see"])


@case("two violations: the first is named, the better evidence counts")
def _(log):
    log.get("applied", "process")["read_back"][0] = "no-new-privs 1 0"
    log.get("probed", "process", "end")["probes"][0] = "unshare refused ok -"
    violated(log, "process", 2, "applied", "process")


@case("a violation in a log without an end")
def _(log):
    log.get("probed", "network", "start")["probes"][0] = "loopback.connect refused ok touched"
    violated(log, "network", 2, "probed", "network", "start")
    at = log.expect["network"]
    del log.entries[-1]
    log.want("all", "unknown", 0)
    log.expect["network"] = at


@case("a boundary that nobody knows")
def _(log):
    log.entries.insert(2, {"event": "probed", "boundary": "weather", "phase": "start", "probes": ["rain refused ok -"], "known": 1})


@case("a phase that nobody knows")
def _(log):
    log.get("probed", "network", "end")["phase"] = "middle"
    log.want("network", "unknown", 1)


for value, n in ((0, 0), (7, 7), ("7", 1), (True, 1)):
    @case(f"the record was full: not_recorded is {value!r}")
    def _(log, value=value, n=n):
        log.get("end")["not_recorded"], log.left_out = value, n


@case("fewer were refused at the end than at the start")
def _(log):
    log.get("probed", "filesystem", "end")["probes"].pop(0)


def files():
    yield OUT, json.dumps(CASES, separators=(",", ":"), sort_keys=True).replace('},{"entries"', '},\n{"entries"') + "\n"
    for i, c in enumerate(CASES):
        if i < 12 or i % 5 == 0:
            lines = "".join(json.dumps(e, separators=(",", ":"), sort_keys=True) + "\n" for e in c["entries"])
            yield SEEDS / f"{i:02}", lines


def main():
    check = sys.argv[1:] == ["--check"]
    wanted = dict(files())
    if not check:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
        return
    good = all(p.exists() and p.read_text(encoding="ascii") == t for p, t in wanted.items())
    print("1..1\n" + ("ok" if good else "not ok") + " 1 - tests/attest/vectors.py makes what is in tests/vectors/attest")
    sys.exit(not good)


if __name__ == "__main__":
    main()
