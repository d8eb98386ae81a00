"""audit.py - what the tests of the record share."""
import json
import shutil


def verify(w, *args, **kw):
    """Exit code, and the result as `verify --json` has it."""
    r = w.writ("audit", "verify", "--json", *args, **kw)
    try:
        return r.code, json.loads(r.out)
    except ValueError:
        return r.code, {"verifies": None, "failures": [], "said": r.said}


def places(result):
    return [f["place"] for f in result["failures"]]


def holds(w, text, *args):
    code, result = verify(w, *args)
    return w.ok(code == 0 and result["verifies"], text, f"{code} {result}")


def fails(w, place, text, *args):
    """It does not verify, and one of the failures is at @place."""
    code, result = verify(w, *args)
    return w.ok(code == 1 and not result["verifies"] and any(p.startswith(place) for p in places(result)), text,
                f"{code} {result}")


class Kept:
    """A copy of what is on record and of the keys, to go back to."""

    def __init__(self, w, name="kept"):
        self.w, self.copy = w, w.dir / name
        for part in ("log", "sessions", "keys"):
            shutil.copytree(w.state / part, self.copy / part)

    def back(self):
        for part in ("log", "sessions", "keys"):
            shutil.rmtree(self.w.state / part)
            shutil.copytree(self.copy / part, self.w.state / part)


def last(w):
    return max((w.state / "sessions").glob("*.jsonl"), key=lambda f: f.stat().st_mtime_ns)


def states(w):
    return {s["session"]: s["state"] for s in verify(w)[1]["sessions"]}
