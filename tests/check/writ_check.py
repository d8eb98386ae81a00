#!/usr/bin/env python3
"""writ_check.py - checks what writ wrote, without writ.

    writ_check.py session FILE [DIR POLICY]
    writ_check.py realm DIR POLICY [SESSIONS]
    writ_check.py proof PROOF ENTRY POLICY
    writ_check.py statement DIR KEYS POLICY
    writ_check.py token PRESENTATION TRUST REALM [LIST...] [--local] [--now SECONDS]

Written from docs/protocol and the C2SP pages it names, from no source code. Needs Python 3.9 and the package `cryptography`;
for some of it also the other writ_*.py beside it.
Exits 0 if everything holds, 1 if not, and says what and where.
"""
import argparse
import base64
import hashlib
import json
import re
import struct
import sys
import time
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_INT, LINE_MAX, PUBLIC_MAX, WIDTH = 2**53 - 1, 1 << 20, 16384, 256
P25519 = 2**255 - 19
D25519 = -121665 * pow(121666, -1, P25519) % P25519


class Bad(Exception):
    """What does not hold: a code, and where (a line, a part, a file)."""
    def __init__(self, code, where=None):
        super().__init__(f"{code}" if where is None else f"{code} ({where})")
        self.code, self.where = code, where


def need(truth, code, where=None):
    if not truth:
        raise Bad(code, where)


# ---- log.md, "Text" ----


def sha(data):
    return hashlib.sha256(data).digest()


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_b64u(text, code="b64u"):
    need(isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1, code)
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(b64u(data) == text, code)
    return data


def from_b64(text, code="malformed"):
    need(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 == 0, code)
    data = base64.b64decode(text)
    need(base64.b64encode(data).decode() == text, code)
    return data


def cj(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def walk(value, level=1):
    """Only what canonical JSON has; objects and lists nest at most 8 deep."""
    if isinstance(value, (dict, list)):
        need(level <= 8 and all(re.fullmatch(r"[A-Za-z0-9_.$-]+", k) for k in value if isinstance(value, dict)), "canonical")
        for item in value.values() if isinstance(value, dict) else value:
            walk(item, level + 1)
    elif isinstance(value, str):
        need(re.fullmatch(r"[ -~]*", value), "canonical")
    else:
        need(isinstance(value, bool) or isinstance(value, int) and 0 <= value <= MAX_INT, "canonical")


def canonical(data, code="canonical"):
    """The value of @data, if this is the one text that it has."""
    try:
        value = json.loads(data.decode("ascii"))
        walk(value)
        need(cj(value).encode() == data, code)
    except (ValueError, RecursionError, Bad):
        raise Bad(code) from None
    return value


def weak_point(data):
    """Not in canonical form, or of small order: 8 times it is nothing, and then anybody can sign."""
    y = int.from_bytes(data, "little") & (1 << 255) - 1
    return y >= P25519 or y in (0, 1, P25519 - 1) or (D25519 * y**4 + 2 * y * y - 1) % P25519 == 0


def ed25519(key, signature, message):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return not weak_point(key) and not weak_point(signature[:32])
    except (InvalidSignature, ValueError):
        return False


# ---- log.md, "The tree", entries, the log of a session ----


def leaf_hash(entry_):
    return sha(b"\0" + entry_)


def node_hash(left, right):
    return sha(b"\1" + left + right)


def root_of(hashes):
    """The root above these, level by level; a last one without a neighbour moves up as it is."""
    level = list(hashes)
    while len(level) > 1:
        pairs = [node_hash(a, b) for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2:]
    return level[0] if level else sha(b"")


def root_by_path(leaf, index, size, path):
    """The root that an inclusion proof leads to (RFC 6962, 2.1.1), or None if it has another length."""
    if size <= 1 or not path:
        return leaf if size == 1 and not path else None
    k = 1 << (size - 1).bit_length() - 1
    left = index < k
    below = root_by_path(leaf, index if left else index - k, k if left else size - k, path[:-1])
    return below and (node_hash(below, path[-1]) if left else node_hash(path[-1], below))


def entry(data, private=True):
    """(value, public form) of a line without its newline."""
    value = canonical(data)
    need(len(data) <= LINE_MAX, "size")
    need(isinstance(value, dict) and isinstance(value.get("event"), str) and type(value.get("time")) is int, "entry")
    need(private or not {"_salt", "_sd"} & set(value), "private")
    salts, digests = value.get("_salt", {}), value.get("_sd", [])
    need(isinstance(salts, dict) and isinstance(digests, list) and value.get("_salt") != {} and value.get("_sd") != [], "private")
    need(all(len(from_b64u(d, "private")) == 32 for d in digests) and digests == sorted(set(digests)), "private")
    public, digests = {k: v for k, v in value.items() if k not in ("_salt", "_sd")}, list(digests)
    for name, salt in salts.items():
        need(name in public and name not in ("event", "time") and "a" <= name[0] <= "z", "private")
        need(len(from_b64u(salt, "private")) == 16, "private")
        digests.append(b64u(sha(b64u(cj([salt, name, public.pop(name)]).encode()).encode())))
    need(len(set(digests)) == len(digests), "private")
    text = cj({**public, "_sd": sorted(digests)} if digests else public).encode()
    need(len(text) <= PUBLIC_MAX, "size")
    return value, text


def entries(lines, private=True):
    """(values, hashes) of lines."""
    values, hashes = [], []
    for i, line in enumerate(lines):
        try:
            value, text = entry(line, private)
        except Bad as e:
            raise Bad(e.code, f"entry {i}") from None
        values.append(value)
        hashes.append(leaf_hash(text))
    return values, hashes


def session(data):
    """(values, root, whether it has an end, bytes that are no entry) of the text of a session's log."""
    *lines, rest = data.split(b"\n")
    values, hashes = entries(lines)
    events = [v["event"] for v in values]
    need(events[:1] in ([], ["start"]), "order")
    return values, root_of(hashes), events[-1:] == ["end"], len(rest)


# ---- C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-policy, tlog-proof ----


NAME = r"[^\s+\0-\x20\x7f-\x9f]+"


class Key:
    """A vkey: NAME+ID+base64(TYPE, 32 bytes); type 1 signs notes, type 4 cosigns."""
    def __init__(self, vkey):
        m = re.fullmatch(rf"({NAME})\+([0-9a-f]{{8}})\+(.+)", vkey)
        need(m and len(m[1].encode()) <= 255, "policy")
        data = from_b64(m[3], "policy")
        self.name, self.kind, self.pub, self.id = m[1], data[:1], data[1:], sha(m[1].encode() + b"\n" + data)[:4]
        need(len(data) == 33 and self.kind in (b"\1", b"\4") and not weak_point(self.pub) and m[2] == self.id.hex(), "policy")

    def signed(self, text, signature):
        if self.kind == b"\1":
            return ed25519(self.pub, signature, text)
        if len(signature) != 72 or signature[0] > 127:
            return False
        return ed25519(self.pub, signature[8:], b"cosignature/v1\ntime %d\n" % struct.unpack(">Q", signature[:8]) + text)


def number(text, code="malformed"):
    need(re.fullmatch(r"0|[1-9][0-9]{0,18}", text) and int(text) < 2**63, code)
    return int(text)


def checkpoint(data, keys):
    """(origin, size, root, keys that signed) of a checkpoint of ours; a bad signature of a known key spoils all."""
    try:
        text, blank, tail = data.decode("utf-8").rpartition("\n\n")
    except UnicodeDecodeError:
        raise Bad("malformed") from None
    need(blank and tail.endswith("\n") and not re.search(r"[\0-\x09\x0b-\x1f]", text + tail), "malformed")
    need(len(data) <= 1 << 17 and tail.count("\n") <= 16, "malformed")
    rows, found, known = [], [], {(k.name, k.id): k for k in keys}
    for line in tail[:-1].split("\n"):
        m = re.fullmatch(rf"\u2014 ({NAME}) ([A-Za-z0-9+/=]+)", line)
        need(m and len(m[1].encode()) <= 255 and len(from_b64(m[2])) > 4, "malformed")
        rows.append((m[1], from_b64(m[2])))
    head = text.split("\n")
    need(len(head) == 3 and re.fullmatch(rf"(?!eyJ|DSSEv1|cosignature){NAME}", head[0]), "malformed")
    need("/" in head[0] and len(head[0].encode()) <= 255, "malformed")
    size, root = number(head[1]), from_b64(head[2])
    need(len(root) == 32 and size <= 1 << 62 and (size or root == sha(b"")), "malformed")
    for name, raw in rows:
        key = known.get((name, raw[:4]))
        need(not key or key.signed((text + "\n").encode(), raw[4:]), "bad signature")
        found += [key] if key else []
    return head[0], size, root, found


class Policy:
    """Logs, witnesses, groups and the quorum of a tlog-policy file."""
    def __init__(self, data):
        self.logs, self.names, self.quorum, used = [], {"none": (0, ())}, None, {"none"}
        need(data.endswith(b"\n") and not re.search(rb"[\0-\x08\x0b-\x1f\x7f]", data), "policy")
        rows = (re.findall(r"[^ \t]+", line) for line in data.decode("latin-1").split("\n"))
        for what, *args in (r for r in rows if r and r[0][0] != "#"):
            if what == "log" and len(args) in (1, 2):
                self.logs.append(self.key(args[0], b"\1", self.logs))
            elif what == "witness" and len(args) in (2, 3) and args[0] not in self.names:
                self.names[args[0]] = self.key(args[1], b"\4", self.witnesses())
            elif what == "group" and len(args) >= 3 and args[0] not in self.names:
                members = args[2:]
                need(set(members) <= set(self.names) - used and len(set(members)) == len(members), "policy")
                k = {"any": 1, "all": len(members)}.get(args[1]) or number(args[1], "policy")
                need(1 <= k <= len(members), "policy")
                used |= set(members)
                self.names[args[0]] = (k, members)
            else:
                need(what == "quorum" and len(args) == 1 and not self.quorum and args[0] in self.names, "policy")
                self.quorum = args[0]
        groups = len(self.names) - 1 - len(self.witnesses())
        need(self.quorum and max(len(self.logs), len(self.witnesses()), groups) <= 32 and len(data) <= 1 << 16, "policy")

    def key(self, vkey, kind, others):
        key = Key(vkey.encode("latin-1").decode("utf-8", "replace"))
        need(key.kind == kind and key.pub not in [o.pub for o in others], "policy")
        return key

    def witnesses(self):
        return [k for k in self.names.values() if isinstance(k, Key)]

    def met(self, found, name):
        what = self.names[name]
        return what in found if isinstance(what, Key) else sum(self.met(found, m) for m in what[1]) >= what[0]

    def checkpoint(self, data, cosigned=True):
        """(origin, size, root) of a checkpoint that one of the logs signed, and enough witnesses."""
        origin, size, root, found = checkpoint(data, self.logs + self.witnesses())
        need(any(k in found and k.name == origin for k in self.logs), "unknown log")
        need(not cosigned or self.met(found, self.quorum), "no quorum")
        return origin, size, root


def proof(data, leaf, policy):
    """(index, head of the log, entry) if the tlog-proof shows that @leaf, or else its own extra data, is an entry."""
    m = re.fullmatch(rb"c2sp\.org/tlog-proof@v1\n(?:extra ([^\n]*)\n)?index ([0-9]+)((?:\n[A-Za-z0-9+/=]{44}){0,63})\n\n(.*)",
                     data, re.S)
    need(m, "malformed")
    extra = from_b64((m[1] or b"").decode("latin-1"))
    index, path = number(m[2].decode()), [from_b64(h) for h in m[3].decode().split()]
    need(all(len(h) == 32 for h in path) and (leaf is not None or m[1]), "malformed")
    head, leaf = policy.checkpoint(m[4]), extra if leaf is None else leaf
    need(index < head[1] and root_by_path(leaf_hash(leaf), index, head[1], path) == head[2], "not included")
    return index, head, leaf


# ---- log.md, "The log of a realm" ----


def tile_name(n):
    part = [f"{n % 1000:03}"]
    while n := n // 1000:
        part.insert(0, f"x{n % 1000:03}")
    return "/".join(part)


def bundle(data, where):
    """The 256 entries of a full bundle."""
    out = []
    while data:
        end = 2 + int.from_bytes(data[:2], "big")
        need(len(data) >= end, "bundle", where)
        out.append(data[2:end])
        data = data[end:]
    need(len(out) == WIDTH, "bundle", where)
    return out


def check_tiles(folder, hashes):
    """Every tile that must be there has the hashes of the entries."""
    level, values = 0, hashes[:len(hashes) // WIDTH * WIDTH]
    while values:
        tiles = [values[i:i + WIDTH] for i in range(0, len(values), WIDTH)]
        for i, tile in enumerate(tiles):
            path = folder / f"{level}/{tile_name(i)}{f'.p/{len(tile)}' if len(tile) < WIDTH else ''}"
            need(path.is_file() and path.read_bytes() == b"".join(tile), "tile", path)
        level, values = level + 1, [root_of(t) for t in tiles if len(t) == WIDTH]


def realm(folder, policy):
    """(values, {name: (origin, size, root)}) of a realm's log, with its checkpoints."""
    folder, lines, signed = Path(folder), [], {}
    while (path := folder / "tile/entries" / tile_name(len(lines) // WIDTH)).is_file():
        lines += bundle(path.read_bytes(), path)
    newest = max((p for p in (folder / "wal").glob("*") if re.fullmatch("[0-9a-f]{16}", p.name)), default=None)
    need(newest and int(newest.name, 16) == len(lines), "wal", newest)
    *more, _ = newest.read_bytes().split(b"\n")
    need(len(more) <= WIDTH, "wal", newest)
    values, hashes = entries(lines + more, private=False)
    check_tiles(folder / "tile", hashes)
    for name in ["checkpoint", "latest", "cosigned"] + sorted(f"rotated/{p.name}" for p in (folder / "rotated").glob("*")):
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            signed[name] = head = checkpoint(data.partition(b"\n")[2] if name == "latest" else data, [])[:3]
            need(head[1] <= len(hashes), "rollback", name)
            need(root_of(hashes[:head[1]]) == head[2], "root", name)
            signers(values, policy, head, name, data.partition(b"\n")[2] if name == "latest" else data)
    turns = [f"rotated/{i + 1:016x}" for i, v in enumerate(values) if v["event"] == "key.rotate" and v.get("role") == "log"]
    need(set(turns) <= set(signed), "keys", "rotated")
    need({"checkpoint", "latest"} & set(signed), "unsigned")
    need(policy.quorum == "none" or "cosigned" in signed, "no quorum")
    starts = [v.get("session") for v in values if v["event"] == "session.start"]
    ends = [v.get("session") for v in values if v["event"] in ("session.end", "session.cut")]
    need(len(set(starts)) == len(starts) and len(set(ends)) == len(ends) and set(ends) <= set(starts), "sessions")
    return values, signed


def signers(values, policy, head, name, data):
    """The checkpoint @data is signed by the key of its size, and by both at a change of keys; and the log knows every pinned key."""
    turns = [(i, Key(v.get("old", "")), Key(v.get("new", ""))) for i, v in enumerate(values)
             if v["event"] == "key.rotate" and v.get("role") == "log"]
    pinned = [k for k in policy.logs if k.name == head[0]]
    keys = [turns[0][1]] + [new for _, _, new in turns] if turns else pinned[:1]
    need(all((old.id, old.pub) == (k.id, k.pub) for (_, old, _), k in zip(turns, keys)), "keys", name)
    need(all(any(k.pub == p.pub for k in keys) for p in pinned) and pinned and all(k.name == head[0] for k in keys), "unknown log", name)
    needed = [keys[sum(i < head[1] for i, _, _ in turns)]]
    for i, old, _ in turns:
        need(f"rotated/{i + 1:016x}" != name or head[1] == i + 1, "keys", name)
        needed += [old] if f"rotated/{i + 1:016x}" == name else []
    found = checkpoint(data, needed + policy.witnesses())[3]
    need(all(k in found for k in needed), "unknown log", name)
    need(name != "cosigned" or policy.met(found, policy.quorum), "no quorum", name)


def sealed(values, name, size, root):
    """The realm's log has this session's end, once, with this size and root."""
    ends = [v for v in values if v["event"] in ("session.end", "session.cut") and v.get("session") == name]
    need(len(ends) == 1 and (ends[0].get("entries"), ends[0].get("root")) == (size, b64u(root)), "session.end", name)
    need([v.get("session") for v in values if v["event"] == "session.start"].count(name) == 1, "session.start", name)


def sessions(values, folder, covered):
    """{id: state} of the sessions of a realm; Bad if the file of one is not what was sealed."""
    late = {v["session"] for v in values[covered:] if v["event"] in ("session.end", "session.cut")}
    states = {v["session"]: "open or cut" for v in values if v["event"] == "session.start"}
    ended = {v["session"] for v in values if v["event"] in ("session.end", "session.cut")}
    states.update({name: "gone" for name in ended})
    for path in sorted(Path(folder).glob("*.jsonl")):
        found, root, _, rest = session(path.read_bytes())
        states.setdefault(path.stem, "unknown to the log")
        if path.stem in ended:
            need(not rest, "size", path.stem)
            sealed(values, path.stem, len(found), root)
            states[path.stem] = "ended, not signed yet" if path.stem in late else "sealed"
    return states


# ---- what a person asks ----


def read(path):
    return Path(path).read_bytes()


def verdicts(values):
    from writ_verdict import BOUNDARIES, judge, left_out
    rows = [(b, *judge(values, b)) for b in BOUNDARIES]
    return [f"{b}: {verdict}, E{strength}" + (f", see entry {at}" if at is not None else "") for b, verdict, strength, at in rows] + \
        ([f"{left_out(values)} events are not in the record"] if left_out(values) else [])


def do_session(a):
    values, root, ended, rest = session(read(a.file[0]))
    if a.file[1:]:
        sealed(realm(a.file[1], Policy(read(a.file[2])))[0], Path(a.file[0]).stem, len(values), root)
    told = f"{len(values)} entries, root {root.hex()}, {'ended' if ended else 'no end'}, {rest} bytes behind them"
    return "\n".join([told] + verdicts(values))


def do_realm(a):
    values, signed = realm(a.file[0], Policy(read(a.file[1])))
    states = sessions(values, a.file[2], max(size for _, size, _ in signed.values())) if a.file[2:] else {}
    return "\n".join([f"session {k}: {v}" for k, v in states.items()] + [f"{name}: {size} of {len(values)} entries, root {root.hex()}" for name, (_, size, root) in signed.items()])


def do_proof(a):
    index, (origin, size, _), _ = proof(read(a.file[0]), read(a.file[1]), Policy(read(a.file[2])))
    return f"entry {index} of the {size} of {origin}"


def do_statement(a):
    import writ_statement as t
    facts = t.statement(Path(a.file[0]), t.public_keys(read(a.file[1])), Policy(read(a.file[2])))
    values = session(read(Path(a.file[0]) / "entries.jsonl"))[0]
    return "\n".join([f"{k}: {v}" for k, v in facts.items()] + verdicts(values))


def do_token(a):
    import writ_tokens as t
    text, trust, now = read(a.file[0]).decode().strip(), t.trust(read(a.file[1]).strip()), a.now or int(time.time())
    lists = [t.signed_list(read(p).decode().strip(), trust) for p in a.file[3:]]
    issuer, chain, _pop = t.presentation(text, trust, lists, a.file[2], now, a.local)
    return f"{len(chain)} tokens of {issuer['iss']} for {chain[0]['sub']}"


def main():
    p = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    p.add_argument("what", choices=("session", "realm", "proof", "statement", "token"))
    p.add_argument("file", nargs="+")
    p.add_argument("--local", action="store_true")
    p.add_argument("--now", type=int)
    a = p.parse_args()
    try:
        print(globals()["do_" + a.what](a))
    except (Bad, OSError) as e:
        sys.exit(f"does not hold: {e}")
    except IndexError:
        p.error("a file is missing")

if __name__ == "__main__":
    sys.modules["writ_check"] = sys.modules["__main__"]
    main()
