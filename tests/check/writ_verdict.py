"""writ_verdict.py - which boundaries held, by the entries of a session: docs/protocol/evidence.md.

Reads:  the values of a session's entries, in order
Writes: a verdict and a strength for each boundary
Next:   writ_check.py, "statement" and "session"; tests/check/run.py

Written from that page and from no source code.
"""
BOUNDARIES = ("filesystem", "network", "process", "resources", "credentials")
OPEN = "ok EINVAL EFAULT EBADF".split()
REFUSED = ("EPERM EACCES ENOENT ENOSYS EROFS ESRCH ENOTDIR ENXIO ECONNREFUSED ENETUNREACH EHOSTUNREACH EAFNOSUPPORT "
           "EPROTONOSUPPORT ESOCKTNOSUPPORT other").split()


def words(text, n):
    """The @n words of a row, or None if it has not exactly so many."""
    row = text.split(" ") if isinstance(text, str) else []
    return row if len(row) == n and all(row) else None


def probe(text):
    row = words(text, 4)
    if not row:
        return "nothing"
    _name, expected, got, outside = row
    if expected == "works":
        return "works" if (got, outside) == ("ok", "-") else "nothing"
    if expected != "refused":
        return "nothing"
    if got in OPEN or outside == "touched":
        return "open"
    return "refused" if got in REFUSED and outside in ("-", "there") else "nothing"


def row(text):
    found = words(text, 3)
    if not found or found[2] == "?":
        return "unread"
    return "agrees" if found[1] == found[2] else "differs"


def listed(entry, key):
    value = entry.get(key)
    return value if isinstance(value, list) else []


def clear(entry, before):
    """@before: the kinds of the entries before it."""
    shown = {probe(p) for p in listed(entry, "probes")}
    if entry.get("phase") == "start":
        in_time = "release" not in before and "exec" not in before
    else:
        in_time = "release" in before
    return shown == {"refused", "works"} and in_time


def whole(values):
    last = values[-1] if values else {}
    said = last.get("entries")
    return bool(values) and values[0]["event"] == "start" and last["event"] == "end" and \
        type(said) is int and said == len(values) - 1


def left_out(values):
    """How many events the log does not have, because it was full; at least."""
    last = values[-1] if values else {}
    said = last.get("not_recorded", 0)
    return 0 if last.get("event") != "end" else said if type(said) is int else 1


def judge(values, boundary):
    """(verdict, strength, the entry that shows a violation)"""
    events = [v["event"] for v in values]
    release = events.index("release") if "release" in events else len(events)
    mine = [(i, v) for i, v in enumerate(values) if v.get("boundary") == boundary and v["event"] in ("applied", "probed")]
    applied = [(i, v) for i, v in mine if v["event"] == "applied"]
    probed = [(i, v) for i, v in mine if v["event"] == "probed"]
    by_probe = [i for i, v in probed if "open" in map(probe, listed(v, "probes"))]
    by_row = [i for i, v in applied if "differs" in map(row, listed(v, "read_back") + listed(v, "said"))]
    if by_probe or by_row:
        return "violated", 2 if by_probe else 1, min(by_probe + by_row)
    rows = [row(r) for _, v in applied for r in listed(v, "read_back")]
    phases = {p: [(i, v) for i, v in probed if v.get("phase") == p] for p in ("start", "end")}
    blind = not whole(values) or not applied or any(i > release for i, _ in applied) or "exec" in events[:release]
    unread = "agrees" not in rows or "unread" in rows
    untried = release == len(events) or not all(phases.values()) or unread or \
        not all(clear(v, events[:i]) for p in phases.values() for i, v in p)
    strength = 0 if blind or unread else 1 if untried else 2
    if blind:
        return "unknown", strength, None
    if any(v.get("none") != [] or v.get("level") == "none" for _, v in applied):
        return "not enforced", strength, None
    return "unknown" if untried else "held", strength, None
