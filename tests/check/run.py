#!/usr/bin/env python3
"""run.py - the C code and writ_check.py say the same of everything; TAP.

    tests/check/run.py CHECK_TOOL TLOG_TOOL WRIT

Over the vectors, over what the programs write, and over changed copies of both: bits flipped,
lines dropped, swapped and doubled, other spellings, other keys, tails cut off, and tokens
whose claims were changed before they were signed. WRIT_TEST_LONG takes many more. A seed
that is printed can be given again as WRIT_TEST_SEED.
"""
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from samples import LONG, TESTS, Tap, attested, environment, load, minted, missing, writ_run

SEED = int(os.environ.get("WRIT_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
rng = random.Random(SEED)

if missing("cryptography"):
    print("1..0 # SKIP the Python package cryptography is not installed")
    sys.exit(0)
import writ_check as w  # noqa: E402
import writ_tokens as wt  # noqa: E402
import writ_verdict as wv  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key  # noqa: E402


class C:
    """check_tool, asked line by line."""

    def __init__(self, path):
        self.p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, word, *args):
        words = [word] + [(a.encode() if isinstance(a, str) else a).hex() or "-" for a in args]
        self.p.stdin.write(" ".join(words).encode() + b"\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().decode("latin-1").rstrip("\n")


class Compare:
    """Counts comparisons, and keeps the first few that differ."""

    def __init__(self, tap, c, name):
        self.tap, self.c, self.name, self.n, self.yes, self.diff = tap, c, name, 0, 0, []

    def same(self, ours, theirs, what):
        self.n, self.yes = self.n + 1, self.yes + ours.startswith("ok")
        if ours != theirs:
            self.diff.append(f"python {ours[-160:]!r}, C {theirs[-160:]!r}: {what}")

    def done(self, both=True):
        """@both: some were accepted and some refused, or the comparison shows little."""
        told = f"{self.name}: {self.n} compared, {self.yes} accepted"
        self.tap.ok(not self.diff and self.n and (not both or 0 < self.yes < self.n), told)
        for line in self.diff[:12]:
            print("# " + line[:900])


def said(ask, *args):
    """What writ_check says, as a string like C's answers."""
    try:
        return ask(*args)
    except w.Bad as e:
        return e.code


# ---- changes of bytes -----------------------------------------------------------------------------

def flip(data):
    at = rng.randrange(len(data) * 8)
    return data[:at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1:]


def poke(data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice(b'\0\n\r\t "\\,:{}[]019azAZ_-+/=%\x7f\xff')]) + data[at + rng.randrange(2):]


def cut(data):
    return data[:rng.randrange(len(data))]


def lines(change):
    def do(data):
        rows = data.split(b"\n")
        a, b = rng.randrange(len(rows)), rng.randrange(len(rows))
        change(rows, a, b)
        return b"\n".join(rows)
    return do


def swap(rows, a, b):
    rows[a], rows[b] = rows[b], rows[a]


CHANGES = [flip, flip, poke, poke, cut, lines(lambda r, a, b: r.pop(a)), lines(swap),
           lines(lambda r, a, b: r.insert(a, r[b])), lambda d: d + b"\n", lambda d: d + b" "]


def changed(data, n):
    """The data itself, then @n changed copies; some have several changes."""
    yield data
    for _ in range(n if data else 0):
        out = rng.choice(CHANGES)(data)
        while out and rng.randrange(5) == 0:
            out = rng.choice(CHANGES)(out)
        yield out


# ---- logs -----------------------------------------------------------------------------------------

def entry_said(line):
    return "ok " + w.entry(line)[1].decode()


def vectors(name):
    return json.loads((TESTS / "vectors/log" / name).read_text())


def test_entries(tap, c):
    cmp = Compare(tap, c, "entries")
    for case in vectors("entries.json"):
        data = case["text"].encode()
        ours = said(entry_said, data)
        cmp.same(ours if ours.startswith("ok") else "no", f"ok {case['public']}" if case["public"] else "no", case["name"] + " (vector)")
        for data in changed(data, (400 if LONG else 6) if len(data) < 999 else 0):
            if b"\n" not in data:
                ours, theirs = said(entry_said, data), c.ask("entry", data)
                cmp.same(ours if ours.startswith("ok") else "no", theirs if theirs.startswith("ok") else "no", data[:300])
    for n in range(1048505, 1048515):  # around a line of 1 MiB
        data = b'{"_salt":{"a":"jQDp9noSXS9B48lKfv0GzQ"},"a":"%s","event":"a","time":1}' % (b"x" * n)
        ours, theirs = said(entry_said, data), c.ask("entry", data)
        cmp.same(ours if len(data) <= 1 << 20 and ours.startswith("ok") else "no", theirs if theirs.startswith("ok") else "no", len(data))
    cmp.done()


def session_said(data):
    *rows, rest = data.split(b"\n")
    hashes = w.entries(rows)[1]
    return f"ok {len(hashes)} {w.root_of(hashes).hex()} {len(rest)}"


def test_sessions(tap, c, logs):
    cmp = Compare(tap, c, "session logs")
    for log in logs:
        for data in changed(log, 2000 if LONG else 80):
            ours, theirs = said(session_said, data), c.ask("session", data)
            cmp.same(ours if ours.startswith("ok") else "no", theirs if theirs.startswith("ok") else "no", data[:200])
    cmp.done()


# ---- logs of realms, and what `writ run` writes ---------------------------------------------------

def log_key(state):
    """A policy with the log's own key, made from the key itself: what somebody pinned who was there at the start."""
    secret = load_pem_private_key((state / "keys/log.pem").read_bytes(), None)
    raw = b"\1" + secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    name = "writ/log/" + (state / "realm").read_text().strip()
    vkey = f"{name}+{w.sha(name.encode() + bytes([10]) + raw)[:4].hex()}+{w.base64.b64encode(raw).decode()}"
    return f"log {vkey}\nquorum none\n".encode()


def test_live(tap, writ, work):
    """Sessions of a built writ; their logs, and that of the realm. Returns the logs and the state directory."""
    state = work / "state/writ"
    for command in ("true", "cat /etc/shadow; exit 3", "echo 'a%b \t\\\"\u00e4'; touch /x\ny"):
        r = writ_run(writ, work, "run", "--", "sh", "-c", command)
        if r.returncode in (122, 125):
            tap.skip("writ run does not work here: " + r.stdout.splitlines()[0])
            return [], None
    policy = w.Policy(log_key(state))
    values, signed = w.realm(state / "log", policy)
    logs = {p.stem: p.read_bytes() for p in sorted((state / "sessions").glob("*.jsonl"))}
    tap.ok(len(logs) == 3 and signed["latest"][1] == len(values) == 6, "three sessions are in a signed log of six entries")
    for name, data in logs.items():
        found, root, ended, rest = w.session(data)
        tap.ok(said(w.sealed, values, name, len(found), root) is None and ended and not rest,
               f"{name}: {len(found)} entries, with the size and the root that the realm's log has")
        *rows, _ = data.split(b"\n")
        public = b"".join(w.entry(r)[1] + b"\n" for r in rows)
        tap.ok(public != data and w.session(public)[1] == root, f"{name}: what is private taken out, the root stays")
        for change, gone in (("a line dropped", rows[:1] + rows[2:]), ("two lines swapped", [rows[0], rows[2], rows[1], *rows[3:]]),
                             ("the end cut off", rows[:-1]), ("a line doubled", rows[:2] + rows[1:])):
            short = w.session(b"".join(r + b"\n" for r in gone))
            tap.ok(said(w.sealed, values, name, len(short[0]), short[1]) == "session.end", f"{name}: {change}: refused")
    return list(logs.values()), state


def damage(folder):
    """One change to one file of a log."""
    path = rng.choice([p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "lock"])
    data, what = path.read_bytes(), rng.randrange(6)
    new = rng.choice([flip, poke, cut, *CHANGES[5:8]])(data) if data and what > 1 else data + data[:rng.choice((1, 32, 99999))] + b"x"
    path.unlink() if what == 0 else path.write_bytes(new)
    return f"{path.relative_to(folder)} {what}"


def realm_said(folder, policy):
    return f"ok {len(w.realm(folder, policy)[0])}"


def test_realms(tap, c, tool, work):
    """Logs of many sizes, whole and with one thing changed. What opening refuses, checking refuses: it looks at more."""
    vkey = (TESTS / "vectors/tlog/vkeys").read_bytes().split()[0]
    policy, cmp, n, refused, kept = w.Policy(b"log " + vkey + b"\nquorum none\n"), Compare(tap, c, "logs of realms"), 0, 0, True
    for steps in ((1,), (255,), (256,), (100, 257), (300, 512, 770)) + (((5000, 66000),) if LONG else ()):
        log, start = work / f"realm{steps[-1]}", 0
        for to in steps:
            subprocess.run([tool, "grow", log, str(start), str(to)], check=True)
            start = to
        whole = w.realm(log, policy)[0]
        cmp.same(said(realm_said, log, policy), c.ask("open", str(log)), f"{steps}")
        for i in range((300 if LONG else 15) if steps[-1] < 5000 else 3):
            other, n = work / f"copy{steps[-1]}-{i}", n + 1
            shutil.copytree(log, other)
            told, ours = damage(other), said(realm_said, other, policy)
            theirs = c.ask("open", str(other))
            if not ours.startswith("ok"):
                refused += 1
            elif not theirs.startswith("ok") or w.realm(other, policy)[0][:len(whole)] != whole:
                kept = False
                print(f"# {steps} {told}: python {ours}, C {theirs}")
            shutil.rmtree(other)
    cmp.done(both=False)
    tap.ok(kept and refused > n / 2, f"{refused} of {n} changed logs are refused, the others have every entry that was signed")


def state_said(state, policy):
    values, signed = w.realm(state / "log", w.Policy(policy.read_bytes()))
    states = w.sessions(values, state / "sessions", max(size for _, size, _ in signed.values()))
    return f"ok {sum(s.endswith('yet') for s in states.values())}"


def test_audit(tap, c, writ, work):
    """Whole state directories, with sessions, a change of keys, and one thing changed. Needs `writ audit verify`."""
    here = work / "audited"
    here.mkdir()
    if "audit" not in writ_run(writ, here, "--help").stdout:
        tap.skip("this writ has no audit verify")
        return
    for args in (("run", "--", "true"), ("run", "--", "false"), ("key", "rotate", "log"), ("run", "--", "true")):
        r = writ_run(writ, here, *args)
        if r.returncode in (122, 125):
            tap.skip("writ run does not work here: " + r.stdout.splitlines()[0])
            return
    key = here / "state/writ/keys/log.pem"
    key.chmod(0o644)  # a key that others can read is not used: this end is not signed
    writ_run(writ, here, "run", "--", "true")
    key.chmod(0o600)
    cmp, policy = Compare(tap, c, "states of whole realms"), here / "config/writ/log.policy"
    for i in range(250 if LONG else 25):
        other = work / f"audited{i}"
        shutil.copytree(here, other, symlinks=True)
        state = other / "state/writ"
        told = damage(rng.choice((state / "log", state / "sessions"))) if i else "as it is"
        r = writ_run(writ, other, "audit", "verify", "--policy", str(policy))
        ours = said(state_said, state, policy)
        late = re.search(r"(\d+) ended and not signed yet", r.stdout)
        theirs = {0: f"ok {late and late[1]}", 1: "no"}.get(r.returncode, str(r.returncode))
        cmp.same(ours if ours.startswith("ok") else "no", theirs, f"{told}: {ours}; {r.stdout[-300:]}")
        shutil.rmtree(other)
    cmp.done()


def policy_said(data):
    p = w.Policy(data)
    return f"ok {len(p.logs)} {len(p.witnesses())}"


def test_policies(tap, c):
    cmp = Compare(tap, c, "policies of logs")
    seeds = [p.read_bytes() for p in sorted((TESTS / "fuzz/corpus/tlog_policy").iterdir())]
    for case in vectors("policies.json"):
        seeds.append(case["text"].encode())
        cmp.same(said(policy_said, seeds[-1])[:2], "ok" if case["good"] else "po", case["name"] + " (vector)")
    def vkey(name, kind, seed=0):
        raw = bytes([kind]) + \
            Ed25519PrivateKey.from_private_bytes(bytes([seed] * 32)).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return f"{name}+{w.sha(name.encode() + bytes([10]) + raw)[:4].hex()}+{w.base64.b64encode(raw).decode()}"
    many = [vkey(f"w{i}", 4, i) for i in range(33)]
    for n in (32, 33):
        seeds.append("".join(f"witness w{i} {k}\n" for i, k in enumerate(many[:n])).encode() + b"quorum w0\n")
        seeds.append(f"witness a {many[0]}\ngroup g0 any a\n".encode() +
                     b"".join(b"group g%d any g%d\n" % (i, i - 1) for i in range(1, n)) + b"quorum g1\n")
    for name in ("x" * 255, "x" * 256, "\u00e4/\u65e5", "a\u00a0b", "a\u2003b", "a\u0085b", "a\x7fb", "a+b"):
        seeds.append(f"log {vkey(name, 1)}\nquorum none\n".encode())
    for seed in seeds:
        for data in changed(seed, 0 if len(seed) > 1500 else 600 if LONG else 8):
            ours, theirs = said(policy_said, data), c.ask("policy", data)
            cmp.same(ours if ours.startswith("ok") else "no", theirs if theirs.startswith("ok") else "no", data)
    cmp.done()


def checkpoint_said(data, vkey):
    origin, size, _root, found = w.checkpoint(data, [w.Key(vkey)])
    w.need(found and found[0].name == origin, "unknown log")
    return f"ok {size}"


def test_checkpoints(tap, c, v):
    """Notes that the log's own key has signed, whatever they say."""
    key, cmp, root = v.tlog.Key("writ.example/log/l-test", 1), Compare(tap, c, "checkpoints"), w.base64.b64encode(bytes(32)).decode()
    empty = w.base64.b64encode(w.sha(b"")).decode()
    texts = [f"{key.name}\n{size}\n{r}\n" for size in ("0", "1", "01", "-1", "+1", "", "1 ", str(2**62), str(2**62 + 1), "9223372036854775807", "9223372036854775808",
                                                      "18446744073709551615", "99999999999999999999") for r in (root, empty)]
    texts += [f"{key.name}\n5\n{root}\nmore\n", f"{key.name}\n5\n\n", f"{key.name}\n5\n", f"{key.name}\n5\n{root[:-1]}\n", f"{key.name}x\n5\n{root}\n",
              f"{key.name}\n5\n{root[:-2]}B=\n", f"{key.name}\n5\n{root[:-4]}\n", f"\n5\n{root}\n", f"eyJ/x\n5\n{root}\n", f"{key.name}\r\n5\n{root}\n"]
    tails = [lambda line: line, lambda line: line * 2, lambda line: line * 16, lambda line: line * 17, lambda line: line[:-1], lambda line: "",
             lambda line: line + "\n", lambda line: line.replace("\u2014", "-"), lambda line: line.replace(" ", "  ", 1), lambda line: line + "\u2014 x AAAAAAA=\n",
             lambda line: "\u2014 x AAAA\n" + line, lambda line: "\u2014 x AAAAAA==\n" + line, lambda line: line + "x\n", lambda line: line.replace("\n", "\r\n")]
    for text in texts:
        for tail in tails if text is texts[2] or LONG else tails[:1]:
            data = (text + "\n" + tail(key.line(text))).encode()
            ours, theirs = said(checkpoint_said, data, key.vkey()), c.ask("checkpoint", data, key.vkey())
            cmp.same(ours if ours.startswith("ok") else "no", theirs if theirs.startswith("ok") else "no", data)
    cmp.done()


def proof_said(data, leaf, policy):
    index, head, _ = w.proof(data, leaf, w.Policy(policy))
    return f"ok {index} {head[1]}"


def test_proofs(tap, c, logs):
    cmp = Compare(tap, c, "proofs of inclusion")
    vec = TESTS / "vectors/tlog"
    policy, leaf = (vec / "policy").read_bytes(), (vec / "entries").read_bytes().split(b"\n")[2]
    for case in vectors("proofs.json"):
        ours = said(proof_said, case["text"].encode(), leaf, policy)
        cmp.same(ours, c.ask("proof", case["text"], leaf, policy), case["name"])
        cmp.same("holds" if ours.startswith("ok") else ours, case["verdict"], case["name"] + " (vector)")
    rows = [((vec / n).read_bytes(), leaf, policy) for n in ("entry2.tlog-proof", "entry2-extra.tlog-proof")] + logs
    for seed, leaf, policy in rows:
        for data in changed(seed, 4000 if LONG else 60):
            cmp.same(said(proof_said, data, leaf, policy), c.ask("proof", data, leaf, policy), data)
        for other in changed(policy, 300 if LONG else 25):
            cmp.same(said(proof_said, seed, leaf, other), c.ask("proof", seed, leaf, other), other)
        cmp.same(said(proof_said, seed, leaf + b"x", policy), c.ask("proof", seed, leaf + b"x", policy), "another entry")
    cmp.done()


def made_logs(tool, work):
    """Proofs from logs that tlog_tool wrote."""
    for size in (1, 2, 255, 257, 1000):
        log = work / f"tlog{size}"
        subprocess.run([tool, "make", str(size), log], check=True)
        vkey = (log / "vkeys").read_text().split()
        policy = f"log {vkey[0]}\nwitness a {vkey[1]}\nwitness b {vkey[2]}\ngroup g all a b\nquorum g\n".encode()
        rows = [r.split() for r in (log / "proofs").read_text().splitlines() if r.startswith("inclusion")]
        for row in (rows[0], rows[len(rows) // 2], rows[-1])[:3 if LONG else 1]:
            path = "".join(w.base64.b64encode(bytes.fromhex(h)).decode() + "\n" for h in row[2:])
            head = f"c2sp.org/tlog-proof@v1\nindex {row[1]}\n{path}\n".encode()
            yield head + (log / "checkpoint").read_bytes(), f"entry {row[1]}".encode(), policy


# ---- tokens ---------------------------------------------------------------------------------------

def chain_said(doc, text, lists, realm, now, local):
    bundle = wt.trust(doc["trust"].encode())
    try:
        lists = [wt.signed_list(t, bundle) for t in lists]
        _issuer, chain, _pop = wt.presentation(text, bundle, lists, realm, now, local)
    except w.Bad as e:
        return f"{e.code} {e.where if e.where is not None else wt.WHOLE}"
    return f"ok {len(chain)}"


def chain_asked(c, doc, text, lists, realm, now, local):
    got = c.ask("chain", doc["trust"], realm, str(now), "1" if local else "0", text, *lists).split(" ")
    if got[0] != "ok":
        return " ".join(got[:2])
    return " ".join(got)


def test_vectors(tap, c, folder):
    doc = json.loads((folder / "chains.json").read_text())
    cmp = Compare(tap, c, "chains of the vectors")
    for case in doc["cases"]:
        args = (case["text"], case.get("rvk", [doc["list"]]), case.get("realm", doc["realm"]),
                case.get("now", doc["now"]), case.get("local", False))
        want = "ok %d" % case["text"].count("~") if case["expect"] == "OK" else f"{case['expect']} {case['hop']}"
        cmp.same(chain_said(doc, *args), chain_asked(c, doc, *args), case["name"])
        cmp.same(chain_said(doc, *args), want, case["name"] + " (vector)")
    cmp.done()
    test_lists(tap, c, json.loads((folder / "lists.json").read_text()))


def list_said(doc, case, text):
    org = {"crv": "Ed25519", "kty": "OKP", "x": doc["org"]}
    try:
        if case["kind"] == "trust":
            return f"ok {len(wt.signed_trust(text, org, case['seen'], doc['now'])['issuers'])}"
        return f"ok {wt.signed_list(text, wt.trust(doc['trust'].encode()), case['seen'])['seq']}"
    except w.Bad as e:
        return e.code


def list_asked(c, doc, case, text):
    if case["kind"] == "trust":
        got = c.ask("trust", w.from_b64u(doc["org"]), str(doc["now"]), str(case["seen"]), text)
    else:
        got = c.ask("list", doc["trust"], str(case["seen"]), text)
    return got if got.startswith("ok") else got.split(" ")[0]


def test_lists(tap, c, doc):
    cmp = Compare(tap, c, "lists and bundles")
    for case in doc["cases"]:
        cmp.same(list_said(doc, case, case["text"]), list_asked(c, doc, case, case["text"]), case["name"])
        cmp.same(list_said(doc, case, case["text"]).split(" ")[0], case["expect"].replace("OK", "ok"), case["name"] + " (vector)")
    for case in doc["cases"]:
        if case["expect"] == "OK":
            for data in changed(case["text"].encode(), 500 if LONG else 20):
                text = data.decode("latin-1")
                if text.isascii():
                    cmp.same(list_said(doc, case, text), list_asked(c, doc, case, text), text)
    cmp.done()


def test_flips(tap, c, folder):
    """Single bits of whole presentations, and coarser damage."""
    doc, cmp = json.loads((folder / "chains.json").read_text()), Compare(tap, c, "presentations with damage")
    for text in doc["good"].values():
        rows = changed(text.encode(), 300 if LONG else 60)
        if LONG:
            rows = [*rows, *(text[:i].encode() + bytes([ord(text[i]) ^ 1 << b]) + text[i + 1:].encode()
                             for i in range(len(text)) for b in range(7))]
        for data in rows:
            one = data.decode("latin-1")
            if one.isascii():
                args = (one, [doc["list"]], doc["realm"], doc["now"], False)
                cmp.same(chain_said(doc, *args), chain_asked(c, doc, *args), one)
    cmp.done()


def loose(text):
    """The same bytes to a decoder that does not look at unused bits."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1] if len(text) % 4 else text


SPELLINGS = [lambda t: t, lambda t: t, loose, lambda t: t + "=", lambda t: t + "A", lambda t: t[:-1], lambda t: t[:-2], lambda t: "",
             lambda t: t[:5] + "+" + t[6:], lambda t: t + "\n", lambda t: " " + t]
HEADERS = ['{"alg":"EdDSA","kid":"KID","typ":"TYP"}'] * 4 + [
    '{"alg":"EdDSA","kid":"KID","typ":"JWT"}', '{"alg":"none","kid":"KID","typ":"TYP"}', '{"alg":"none","kid":"KID","typ":"JWT"}',
    '{"alg":"","kid":"KID","typ":"TYP"}', '{"alg":"EdDSA","kid":"KID","typ":""}', '{"alg":"E\\\\","kid":"KID","typ":"TYP"}',
    '{"alg":"Ed25519","kid":"KID","typ":"TYP"}', '{"alg":"eddsa","kid":"KID","typ":"TYP"}', '{"alg":"EdDSA","kid":"","typ":"TYP"}',
    '{"alg":"EdDSA","kid":"KIDA","typ":"TYP"}', '{"alg":"EdDSA","kid":"BAD","typ":"TYP"}', '{"alg":"EdDSA", "kid":"KID","typ":"TYP"}',
    '{"kid":"KID","alg":"EdDSA","typ":"TYP"}', '{"alg":"EdDSA","kid":"KID"}', '{"alg":"EdDSA","kid":"KID","typ":"TYP"} ',
    '{"alg":"EdDSA","alg":"EdDSA","kid":"KID","typ":"TYP"}', '{"alg":1,"kid":"KID","typ":"TYP"}', '{}', 'x',
    '{"alg":"none","kid":"x","typ":"JWT"}', '{"alg":"none","kid":"x","typ":"TYP"}', '{"alg":"EdDSA","kid":"x","typ":"JWT"}',
    '{"alg":"a b","kid":"KID","typ":"TYP"}', '{"alg":"EdDSA","kid":"KID","typ":"a b"}', '{"alg":"%s","kid":"KID","typ":"TYP"}' % ("A" * 300)]
L25519 = 2**252 + 27742317777372353535851937790883648493


def odd_signature(v, key, message):
    """Signatures that only some verifiers take: s too large, and R of small order."""
    good = key.sign(message)
    kind = rng.randrange(12)
    if kind == 0:
        return good[:32] + (v.tlog.little(good[32:]) + L25519).to_bytes(32, "little")
    if kind == 1:
        point = (1).to_bytes(32, "little")
        h = v.tlog.little(v.hashlib.sha512(point + key.pub + message).digest())
        return point + (h * key.scalar % L25519).to_bytes(32, "little")
    return good[:-1] if kind == 2 else good + b"x" if kind == 3 else good


def test_spellings(tap, c, v):
    """Signed texts that are spelled otherwise before they are signed."""
    cmp = Compare(tap, c, "signed texts in other spellings")
    doc = {"trust": v.cj(v.TRUST)}
    for _ in range(20000 if LONG else 300):
        chain = v.Chain(rng.choice((1, 2)))
        parts = chain.parts()
        at = rng.randrange(len(parts))
        key, typ = [*chain.keys[:len(parts) - 1], chain.pop_key][at], "writ-pop+jwt" if at == len(parts) - 1 else "writ-cap+jwt"
        bad_kid = rng.choice((loose(key.kid()), v.C.kid(), v.ORG.kid(), "~" * 43))
        head = v.b64u(rng.choice(HEADERS).replace("KID", key.kid()).replace("TYP", typ).replace("BAD", bad_kid).encode())
        spelled = [t if rng.randrange(3) else rng.choice(SPELLINGS)(t) for t in (head, parts[at].split(".")[1])]
        signature = v.b64u(odd_signature(v, key, ".".join(spelled).encode()))
        parts[at] = ".".join([*spelled, rng.choice(SPELLINGS)(signature) if rng.randrange(3) == 0 else signature])
        args = ("~".join(parts), [], v.REALM, v.NOW, True)
        cmp.same(chain_said(doc, *args), chain_asked(c, doc, *args), parts[at])
    cmp.done()


def values(v, chain):
    """What a claim or a member may be turned into."""
    yield from (0, 1, 2, 7, 8, 299, 300, 301, v.NOW, v.NOW - 100, v.NOW - 101, v.NOW + 30, v.NOW + 31, v.NOW + 800, v.NOW + 28700,
                v.NOW + 28701, v.NOW + 3500, v.NOW + 3501, 2**53 - 1, True, "", "x", "a b", [], {}, [v.REALM], ["l-test8"],
                [v.REALM, "l-test8"], ["l-test8", v.REALM], [f"l-{i:03}" for i in range(17)], v.REALM, v.uuid(1), v.uuid(2), v.uuid(10), v.uuid(255),
                "urn:example:alice", "https://issuer.example", "https://other.example", v.URN + v.A.kid(), v.URN + v.B.kid(),
                {"jwk": v.A.jwk()}, {"jwk": v.B.jwk()}, {"jwk": v.C.jwk()}, {"jwk": v.ISSUER.jwk()}, {"jwk": {**v.A.jwk(), "x": v.b64u(bytes(32))}},
                {"fs.read": "exact"}, {"fs.read": "none"}, {"audit": "stricter", "fs.read": "exact", "net": "exact"}, {"session": 1},
                {"session": 1, "up": 1}, {"session": 0, "up": 1}, {"up": 10485761, "session": 1}, "ab" * 32, "cd" * 32,
                [f"fs.read:{v.REALM}:/srv/repo/docs/**"], [f"fs.read:{v.REALM}:/srv/**"], [f"fs.read:{v.REALM}:/srv/repo/docs/a/**;n=1"],
                [f"fs.read:{v.REALM}:/srv/repo/**/x/**"], [f"fs.read:{v.REALM}:/etc/**"], ["fs.read:l-test8:/srv/repo/docs/**"])
    yield from (copy.deepcopy(t["authorization_details"]) for t in chain)


def fast_sign(v):
    """The vectors' keys with a signature that is made in no time."""
    def sign(key, message):
        return Ed25519PrivateKey.from_private_bytes(v.sha(b"writ-test-vector-v1/" + key.name.encode())).sign(message)
    v.Key.sign = sign


def test_claims(tap, c, v):
    """Chains that are signed as they must be, with one or two claims that may be wrong."""
    cmp, seen = Compare(tap, c, "chains with other claims"), set()
    doc = {"trust": v.cj(v.TRUST), "list": v.jws(v.ISSUER, "writ-rvk+jwt", v.RVK)}
    for _ in range(20000 if LONG else 500):
        chain, told = v.Chain(rng.choice((1, 2, 2, 3))), []
        for _ in range(1 if rng.randrange(4) else 2):
            target = rng.choice([*chain.claims, chain.pop])
            inner = target.get("authorization_details")
            if rng.randrange(3) == 0 and isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
                target = inner[0]
            key = rng.choice(sorted(target))
            pool = list(values(v, [v.ROOT, v.CHILD, v.LEAF]))
            value = rng.choice([x for x in pool if type(x) is type(target[key]) or rng.randrange(12) == 0])
            if rng.randrange(12) == 0:
                target.pop(key)
            else:
                target[key] = value
            told.append((key, value))
        try:
            text = chain.text()
        except (KeyError, TypeError):
            continue
        args = (text, [doc["list"]], v.REALM, v.NOW + rng.choice((0,) * 12 + (-101, -61, 799, 800)), rng.randrange(2) == 0)
        ours = chain_said(doc, *args)
        seen.add(ours.split(" ")[0])
        theirs = chain_asked(c, doc, *args)
        if len(told) > 1 and not ours.startswith("ok"):  # two things are wrong: which is told first is not compared
            ours, theirs = ours.split(" ")[0][:2], theirs.split(" ")[0][:2]
        cmp.same(ours, theirs, str(told))
    cmp.done()
    tap.ok(len(seen) >= 9, f"for {len(seen)} reasons: {' '.join(sorted(seen))}")


def test_minted(tap, c, writ, work):
    """A chain that `writ token` made, and changed copies of it: `writ token verify` says the same."""
    made = minted(tap, writ, work)
    if not made:
        return
    issuer, text = made
    cmp, path, here = Compare(tap, c, "chains that were minted"), work / "chain", issuer["realms"][0]
    for data in changed(text.encode(), 200 if LONG else 15):
        one = data.decode("latin-1")
        if not one.isascii() or one != one.strip():
            continue
        path.write_bytes(data)
        r = writ_run(writ, work, "token", "verify", str(path))
        told = re.search(r"(E_[A-Z_]+)(?:, hop ([0-9]+))?", r.stdout)
        theirs = "ok" if r.returncode == 0 else f"{told[1]} {int(told[2]) - 1 if told[2] else wt.WHOLE}" if told else r.stdout
        try:
            wt.presentation(one, {"issuers": [issuer]}, [], here, int(time.time()), True, False)
            ours = "ok"
        except w.Bad as e:
            ours = f"{e.code} {e.where}"
        cmp.same(ours, theirs, one)
    cmp.done()


# ---- verdicts and statements ----------------------------------------------------------------------

def verdicts_said(values):
    out = []
    for b in wv.BOUNDARIES:
        verdict, strength, at = wv.judge(values, b)
        out.append(f"{verdict}/{strength}" + (f"@{at}" if at is not None else ""))
    return " ".join(["ok", *out, f"left out {wv.left_out(values)}"])


def retold(values):
    """The entries of a session, with some of them left out, doubled, moved, or with another word in one."""
    values = copy.deepcopy(values)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not values:
            break
        a, b, what = rng.randrange(len(values)), rng.randrange(len(values)), rng.randrange(9)
        one = values[a]
        if what == 0:
            values.pop(a)
        elif what == 1:
            values.insert(b, copy.deepcopy(one))
        elif what == 2:
            values.insert(b, values.pop(a))
        elif what == 3:
            one[rng.choice(sorted(one))] = rng.choice(([], "", 0, 1, True, {}, ["x"], [1], "none", "start", "end", "exact", "network", "release", "exec"))
        elif what == 4 and values[-1]["event"] == "end":
            values[-1]["entries"] = len(values) - 1
        else:
            key = rng.choice(("probes", "read_back", "said"))
            if isinstance(one.get(key), list) and one[key] and isinstance(one[key][0], str):
                at = rng.randrange(len(one[key]))
                row = one[key][at].split(" ") if isinstance(one[key][at], str) else ["x"]
                row[rng.randrange(len(row))] = rng.choice(("ok", "EPERM", "EINVAL", "ENOENT", "other", "failed", "works", "refused", "-", "there",
                                                           "touched", "gone", "?", "1", "own", "", "a b"))
                one[key][at] = rng.choice((" ".join(row),) * 6 + (1, []))
        if rng.randrange(2) and values and values[-1].get("event") == "end" and "entries" in values[-1]:
            values[-1]["entries"] = len(values) - 1
    return [v for v in values if isinstance(v.get("event"), str)]


def test_verdicts(tap, c):
    path = TESTS / "vectors/attest/verdicts.json"
    if not path.is_file():
        tap.skip("there are no vectors of verdicts")
        return
    cmp, rows = Compare(tap, c, "verdicts of the vectors"), json.loads(path.read_text())
    for case in rows:
        want = (case["expect"][b] for b in wv.BOUNDARIES)
        want = " ".join(["ok"] + [f"{x['verdict']}/{x['strength']}" + (f"@{x['entry']}" if "entry" in x else "") for x in want] + [f"left out {case.get('left_out', 0)}"])
        cmp.same(verdicts_said(case["entries"]), want, case["name"])
        cmp.same(verdicts_said(case["entries"]), c.ask("judge", "\n".join(w.cj(e) for e in case["entries"])), case["name"])
    cmp.done(both=False)
    cmp = Compare(tap, c, "verdicts of changed entries")
    for _ in range(40000 if LONG else 1500):
        values = retold(rng.choice(rows)["entries"])
        cmp.same(verdicts_said(values), c.ask("judge", "\n".join(w.cj(e) for e in values)), w.cj(values)[:3000])
    cmp.done(both=False)


def test_statements(tap, c, writ, work, folder):
    """Statements of an author who signs anything, and damaged copies of a real one. Needs `writ attest verify`."""
    import statements as st
    env, author, cmp = environment(work)[1], st.Author(), Compare(tap, c, "statements that were made up")
    pem, policy = work / "key.pem", work / "policy"
    pem.write_bytes(author.pem)
    policy.write_bytes(author.policy())
    rows = list(st.cases())
    for what, change in rows if LONG else [r for r in rows if r[0].startswith(("as", "entries", "log"))] + rng.sample(rows, 15):
        st.made(author, change, work / "made")
        theirs, words = st.theirs(writ, work / "made", pem, policy, env)
        cmp.same(st.ours(work / "made", pem, policy), theirs, f"{what}: {words}")
    cmp.done()
    cmp = Compare(tap, c, "statements with damage")
    pins = work / "config/writ"
    for i in range(400 if LONG else 12):
        copied = work / "damaged"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(folder, copied)
        path = copied / rng.choice(["session.json", "entries.jsonl", "session.sigstore.json", "start.tlog-proof", "end.tlog-proof"])
        if i:
            path.write_bytes(rng.choice(CHANGES)(path.read_bytes()))
        args = copied, pins / "attest.pub.pem", pins / "log.policy"
        theirs, words = st.theirs(writ, *args, env)
        cmp.same(st.ours(*args), theirs, f"{path.name}: {words}")
    cmp.done()


def main():
    tool, tlog_tool, writ = (Path(p).resolve() for p in sys.argv[1:4])
    tap, work = Tap(), Path(tempfile.mkdtemp(prefix="writ-check-"))
    print(f"# seed {SEED}")
    try:
        c, v = C(tool), load("token_vectors", TESTS / "token/vectors.py")
        fast_sign(v)
        test_entries(tap, c)
        logs, _state = test_live(tap, writ, work)
        test_sessions(tap, c, [*logs, "".join(e["text"] + "\n" for e in vectors("entries.json")[:7]).encode()])
        test_realms(tap, c, tool, work)
        test_audit(tap, c, writ, work)
        test_checkpoints(tap, c, v)
        test_policies(tap, c)
        test_proofs(tap, c, list(made_logs(tlog_tool, work)))
        test_vectors(tap, c, TESTS / "vectors/token")
        test_flips(tap, c, TESTS / "vectors/token")
        test_spellings(tap, c, v)
        test_claims(tap, c, v)
        test_minted(tap, c, writ, work)
        test_verdicts(tap, c)
        folder = attested(tap, writ, work)
        if folder:
            test_statements(tap, c, writ, work, folder)
        c.p.stdin.close()
        tap.ok(c.p.wait() == 0, "check_tool ended well")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"1..{tap.n}")
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
