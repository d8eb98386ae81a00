"""statements.py - statements about sessions that never were: signed as they must be, with one thing wrong.

Reads:  nothing
Writes: folders in the form of `writ attest show --out`
Next:   run.py asks both verifiers about them
"""
import base64
import copy
import json
import shutil
import subprocess

import writ_check as w
import writ_statement as ws
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from samples import PREDICATE

KIND = "application/vnd.in-toto+json"
ORIGIN = "writ/log/l-made"


def b64(data):
    return base64.b64encode(data).decode()


class Author:
    """Whoever holds the keys of a log and of statements, and may sign anything with them."""

    def __init__(self):
        self.log, self.key = Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())
        self.pem = self.key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
        der = self.key.public_key().public_bytes(s.Encoding.DER, s.PublicFormat.SubjectPublicKeyInfo)
        self.keyid, self.next = w.sha(der).hex(), Ed25519PrivateKey.generate()
        self.vkeys = {(o, key): self.parts(o, key) for o in (ORIGIN, "other/log/l-made") for key in (self.log, self.next)}

    def parts(self, origin, key):
        raw = key.public_key().public_bytes(s.Encoding.Raw, s.PublicFormat.Raw)
        return w.sha(origin.encode() + b"\n\1" + raw)[:4], b"\1" + raw

    def vkey(self, origin=ORIGIN, key=None):
        parts = self.vkeys[origin, key or self.log]
        return f"{origin}+{parts[0].hex()}+{b64(parts[1])}"

    def policy(self):
        return f"log {self.vkey()}\nquorum none\n".encode()

    def checkpoint(self, origin, size, root, *keys):
        text = f"{origin}\n{size}\n{b64(root)}\n"
        rows = [(self.vkeys.get((origin, k), self.vkeys[ORIGIN, k])[0], k) for k in keys or (self.log,)]
        return (text + "\n" + "".join(f"\u2014 {origin} {b64(id_ + k.sign(text.encode()))}\n" for id_, k in rows)).encode()

    def bundle(self, payload):
        signed = b"DSSEv1 %d %s %d %s" % (len(KIND), KIND.encode(), len(payload), payload)
        sig = b64(self.key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": {"publicKey": {"hint": self.keyid}},
                "dsseEnvelope": {"payload": b64(payload), "payloadType": KIND, "signatures": [{"keyid": "", "sig": sig}]}}


def path(hashes_, index):
    """The inclusion proof of one leaf, by the definition."""
    n = len(hashes_)
    if n == 1:
        return []
    k = 1 << (n - 1).bit_length() - 1
    if index < k:
        return path(hashes_[:k], index) + [w.root_of(hashes_[k:])]
    return path(hashes_[k:], index - k) + [w.root_of(hashes_[:k])]


class Story:
    """Everything about one session, before it is signed. Cases change a part; the rest follows from it."""

    def __init__(self):
        digest = w.b64u(w.sha(b"x"))
        self.lines = [{"event": "start", "session": "s1", "time": 1}, {"event": "sealed", "executable": digest, "time": 2},
                      {"event": "exited", "executable": "other", "time": 3}, {"event": "end", "exit": 0, "time": 4}]
        self.start = {"event": "session.start", "session": "s1", "custody": "same-uid", "policy": digest, "plan": digest,
                      "tier": "A", "adapter": "host", "version": "0.1.0", "time": 1}
        self.end = {"event": "session.end", "session": "s1", "exit": 0, "time": 5}
        self.origin, self.order = ORIGIN, [{"event": "log.other", "time": 0}, "start", {"event": "log.other", "time": 3}, "end"]
        self.manifest, self.said, self.predicate, self.bundle, self.text = {}, {}, {}, {}, {}
        self.signs, self.carries, self.turn = "log", None, {}  # whose key; who signs the change that comes along; what it says

    def write(self, author, folder):
        folder.mkdir()
        files = {"entries.jsonl": "".join((x if isinstance(x, str) else w.cj(x)) + "\n" for x in self.lines).encode()}
        hashes_ = [w.leaf_hash((x if isinstance(x, str) else w.cj(x)).encode()) for x in self.lines]
        end = {"entries": len(hashes_), "root": w.b64u(w.root_of(hashes_)), **self.end}
        both = {"start": self.start, "end": end}
        turn = {"event": "key.rotate", "role": "log", "old": author.vkey(), "new": author.vkey(key=author.next), "time": 2, **self.turn}
        self.order = [turn if x == "turn" else x for x in self.order]
        log = [w.cj(both[x] if isinstance(x, str) else x).encode() for x in self.order]
        leaves, at = [w.leaf_hash(x) for x in log], {k: self.order.index(k) for k in both}
        root = w.root_of(leaves)
        signed = author.checkpoint(self.origin, len(log), root, getattr(author, self.signs))
        if self.carries is not None:
            grown = log if turn in self.order else log + [w.cj(turn).encode()]
            i = self.order.index(turn) if turn in self.order else len(log)
            before = [w.leaf_hash(x) for x in grown[:i + 1]]
            rows = "".join(b64(h) + "\n" for h in path(before, i))
            note = author.checkpoint(self.origin, i + 1, w.root_of(before), *(getattr(author, k) for k in self.carries))
            files["rotated-1.tlog-proof"] = f"c2sp.org/tlog-proof@v1\nextra {b64(grown[i])}\nindex {i}\n{rows}\n".encode() + note
        for k, i in at.items():
            rows = "".join(b64(h) + "\n" for h in path(leaves, i))
            files[f"{k}.tlog-proof"] = f"c2sp.org/tlog-proof@v1\nextra {b64(log[i])}\nindex {i}\n{rows}\n".encode() + signed
        a, common = self.start, {"started": self.start.get("time"), "finished": end.get("time"), "exit": end.get("exit"),
                                 "realm": self.origin.rpartition("/")[2]}
        found = [x["executable"] for x in self.lines if isinstance(x, dict) and "executable" in x]
        manifest = {"v": 1, "session": a.get("session"), "custody": a.get("custody"), "policy": a.get("policy"), "tier": a.get("tier"),
                    "adapter": a.get("adapter"), "guarantees": a.get("plan"), "writ": a.get("version"), **common,
                    "entries": end["entries"], "root": end["root"], **({"executable": found[0]} if found else {}), **self.manifest}
        files["session.json"] = self.text.get("session.json", lambda t: t)(w.cj(without(manifest)).encode())
        subject = [{"digest": {"sha256": w.sha(files[n]).hex()}, "name": n} for n in ("session.json", "entries.jsonl")]
        predicate = {"schema": 1, "session": {"id": a.get("session"), **common}, "custody": a.get("custody"),
                     "evidence": {"entries": end["entries"], "root": end["root"]}, "assumptions": ["kernel"], "notCovered": [],
                     "log": {"origin": self.origin, "size": len(log), "root": w.b64u(root), "start": at["start"], "end": at["end"]}}
        statement = {"_type": "https://in-toto.io/Statement/v1", "predicateType": PREDICATE, "subject": subject,
                     "predicate": without(merge(predicate, self.predicate)), **self.said}
        payload = self.text.get("payload", lambda t: t)(w.cj(without(statement)).encode())
        bundle = merge(author.bundle(payload), self.bundle)
        files["session.sigstore.json"] = self.text.get("session.sigstore.json", lambda t: t)(w.cj(without(bundle)).encode())
        files["log.vkey"], files["attest.pub.pem"] = author.vkey().encode() + b"\n", author.pem
        for name, data in files.items():
            (folder / name).write_bytes(self.text.get(name, lambda t: t)(data) if name.startswith(("start", "end", "entries", "rotated")) else data)


def without(value):
    """None is a member that is not there."""
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def merge(value, change):
    out = copy.deepcopy(value)
    for k, v in change.items():
        out[k] = without(merge(out[k], v)) if isinstance(v, dict) and isinstance(out.get(k), dict) else v
    return out


def put(part, key, value):
    def do(story):
        target = getattr(story, part)
        target = target[key[0]] if isinstance(key, tuple) else target
        key_ = key[1] if isinstance(key, tuple) else key
        if value is None and part in ("start", "end", "lines"):
            target.pop(key_, None)
        else:
            target[key_] = value
    return f"{part} {key} {json.dumps(value)}", do


def text(name, change):
    return f"{name} as text", lambda story: story.text.update({name: change})


def cases():
    """(what, change of a story)"""
    digest = w.b64u(w.sha(b"y"))
    yield "as it is", lambda story: None
    for part in ("start", "end"):
        story = Story()
        for key in getattr(story, part):
            yield put(part, key, None)
        yield put(part, "more", "x")
        yield put(part, "_sd", [digest])
        yield put(part, "_salt", {"session": w.b64u(bytes(16))})
    for key, values in {"session": ("s2", "", ".s", "a/b", "x" * 65, "s_1", 1), "custody": ("other-uid", "tpm", ""), "policy": ("x", digest + "A", digest),
                        "plan": (digest[:-1] + "B",), "tier": ("", "a b", "B"), "event": ("session.end",), "time": (9, True)}.items():
        for v in values:
            yield put("start", key, v)
    for key, values in {"exit": (1, True, "0"), "entries": (3, 5, "4"), "root": (digest, "x"), "event": ("session.cut",), "session": ("s2",),
                        "time": (0,)}.items():
        for v in values:
            yield put("end", key, v)
    for key, values in {"v": (2, True, None), "session": ("s2",), "realm": ("l-other",), "custody": ("other-uid",), "policy": (digest,),
                        "guarantees": (digest,), "tier": ("B",), "adapter": ("x",), "writ": ("0",), "started": (2,), "finished": (6,), "exit": (1, False),
                        "entries": (3,), "root": (digest,), "executable": ("other", None), "more": (1,)}.items():
        for v in values:
            yield put("manifest", key, v)
    for key, values in {"_type": ("https://in-toto.io/Statement/v0.1", None), "predicateType": ("x",), "subject": ([], None), "more": (1,)}.items():
        for v in values:
            yield put("said", key, v)
    for change in ({"schema": 2}, {"schema": None}, {"schema": True}, {"session": {"id": "s2"}}, {"session": {"realm": "x"}}, {"session": {"started": 7}},
                   {"session": {"finished": 7}}, {"session": {"exit": 7}}, {"session": {"more": 7}}, {"session": {"exit": None}}, {"evidence": {"entries": 7}},
                   {"evidence": {"root": digest}}, {"evidence": {"more": 1}}, {"custody": "other-uid"}, {"custody": None}, {"log": {"origin": "x/y"}},
                   {"log": {"size": 9}}, {"log": {"root": digest}}, {"log": {"start": 0}}, {"log": {"end": 2}}, {"log": {"more": 2}}, {"log": None},
                   {"assumptions": []}, {"assumptions": ["a"] * 16}, {"assumptions": ["a"] * 17}, {"assumptions": ["a b"]}, {"assumptions": [1]},
                   {"assumptions": None}, {"notCovered": "x"}, {"notCovered": ["x" * 65]}, {"notCovered": ["-x"]}, {"verdict": "held"}):
        yield f"predicate {change}", lambda story, c=change: story.predicate.update(c)
    for change in ({"mediaType": "application/vnd.dev.sigstore.bundle.v0.2+json"}, {"more": 1}, {"verificationMaterial": {"publicKey": {"hint": "00" * 32}}},
                   {"verificationMaterial": {"publicKey": None}}, {"verificationMaterial": {"tlogEntries": []}}, {"dsseEnvelope": {"payloadType": "x"}},
                   {"dsseEnvelope": {"signatures": []}}, {"dsseEnvelope": {"more": 1}}, {"dsseEnvelope": {"payload": "AAAA"}}, {"dsseEnvelope": None}):
        yield f"bundle {change}", lambda story, c=change: story.bundle.update(c)
    for name in ("session.json", "payload", "session.sigstore.json"):
        for change in (lambda t: t + b"\n", lambda t: b" " + t, lambda t: t[:-1], lambda t: t.replace(b":", b": ", 1), lambda t: t.replace(b"s1", b"\\u00731")):
            yield text(name, change)
    for name in ("start.tlog-proof", "end.tlog-proof"):
        for change in (lambda t: t.replace(b"extra ", b"extra  "), lambda t: t.replace(b"\nindex", b"\nindex ", 1), lambda t: b"\n".join(t.split(b"\n")[:1] + t.split(b"\n")[2:])):
            yield text(name, change)
    yield from line_cases(digest)
    yield from turn_cases()


def line_cases(digest):
    private = w.cj({"_salt": {"o": w.b64u(b"x" * 16)}, "event": "denied", "o": "x", "time": 3})
    public = w.entry(private.encode())[1].decode()
    for what, change in (
            ("a private line", lambda x: x.insert(2, private)), ("its public form", lambda x: x.insert(2, public)), ("no lines", lambda x: x.clear()),
            ("no end", lambda x: x.pop()), ("no start", lambda x: x.pop(0)), ("another start", lambda x: x.insert(1, dict(x[0]))),
            ("an end before", lambda x: x.insert(1, dict(x[-1]))), ("a line behind the end", lambda x: x.append({"event": "denied", "time": 9})),
            ("no JSON", lambda x: x.insert(1, "x")), ("an empty line", lambda x: x.insert(1, "")), ("not canonical", lambda x: x.insert(1, '{"time":1,"event":"x"}')),
            ("no time", lambda x: x.insert(1, {"event": "x"})), ("a start of another session", lambda x: x[0].update(session="s2")),
            ("a start without a session", lambda x: x[0].pop("session")), ("another exit", lambda x: x[-1].update(exit=1)),
            ("no exit", lambda x: x[-1].pop("exit")), ("exit true", lambda x: x[-1].update(exit=True)), ("no executable", lambda x: [y.pop("executable", 0) for y in x]),
            ("an executable that is no text", lambda x: x[1].update(executable=1)), ("an empty executable", lambda x: x[1].update(executable="")),
            ("two lines only", lambda x: x.__delitem__(slice(1, 3)))):
        yield f"entries: {what}", lambda story, c=change: c(story.lines)
    for what, change in (("the end first", lambda o: o.reverse()), ("a small log", lambda o: o.__delitem__(slice(0, 1))),
                         ("a log of two", lambda o: (o.pop(2), o.pop(0)))):
        yield f"log: {what}", lambda story, c=change: c(story.order)
    yield "log: one more line of signature under the end", lambda story: story.text.update(
        {"end.tlog-proof": lambda t: t + f"\u2014 somebody/else {b64(bytes(72))}\n".encode()})
    yield "log: another origin", lambda story: setattr(story, "origin", "other/log/l-made")
    yield "log: an origin that nobody pinned", lambda story: setattr(story, "origin", "writ/log/l-nobody")
    yield "entries: the last line without a newline", lambda story: story.text.update({"entries.jsonl": lambda t: t[:-1]})
    yield "entries: bytes behind", lambda story: story.text.update({"entries.jsonl": lambda t: t + b"x"})


def turned(signs, carries, order, **turn):
    def do(story):
        story.signs, story.carries, story.turn = signs, carries, turn
        if order:
            story.order.insert(story.order.index(order), "turn")
    return do


def turn_cases():
    """The key of the log changed, before the session or after it, and that came along or did not."""
    both, digest = ("log", "next"), "x"
    for order in ("start", "end", None):
        for signs in ("log", "next"):
            for carries in (None, both):
                yield f"log: a change before {order}, signed by {signs}, {'told' if carries else 'not told'}", turned(signs, carries, order)
    for carries in (("log",), ("next",), ("next", "log")):
        yield f"log: a change that {carries} signed", turned("next", carries, "start")
    for key, values in {"event": ("key.rotated",), "role": ("issue", 1), "old": (digest, 1), "new": (digest,), "more": (1,), "time": ("x",)}.items():
        for v in values:
            yield f"log: a change with {key} {v!r}", turned("next", both, "start", **{key: v})
    for change in (lambda t: t[:-1], lambda t: b"", lambda t: t.replace(b"index ", b"index  "), lambda t: t.replace(b"\nindex 1", b"\nindex 0")):
        def do(story, c=change):
            turned("next", both, "start")(story)
            story.text["rotated-1.tlog-proof"] = c
        yield "log: a change as text", do


def ours(folder, pem, policy):
    try:
        ws.statement(folder, ws.public_keys(pem.read_bytes()), w.Policy(policy.read_bytes()))
        return "ok"
    except w.Bad as e:
        return "not pinned" if e.code in ("signer not pinned", "unknown log") else "no"


def theirs(writ, folder, pem, policy, env):
    """(what `writ attest verify` says, its words)"""
    r = subprocess.run([writ, "attest", "verify", "--key", pem, "--policy", policy, folder], env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60)
    return {0: "ok", 1: "ok", 4: "no", 5: "not pinned"}.get(r.returncode, f"ended with {r.returncode}"), r.stdout[-200:]


def made(author, change, folder):
    shutil.rmtree(folder, ignore_errors=True)
    story = Story()
    change(story)
    story.write(author, folder)
