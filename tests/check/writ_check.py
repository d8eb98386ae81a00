#!/usr/bin/env python3
"""writ_check.py - checks what writ wrote, without writ.

    writ_check.py session FILE
    writ_check.py realm DIR --policy FILE
    writ_check.py proof PROOF ENTRY --policy FILE
    writ_check.py token FILE --trust FILE --realm NAME [--list FILE]... [--local] [--now SECONDS] [--request TEXT]

Written from docs/protocol and the C2SP pages it names, and from no source code. Needs Python 3.9
and the package `cryptography`; `token` also needs the model of capabilities, tests/oracle, which
was written from docs/capabilities.md in the same way. Exits 0 if everything holds, 1 if not.
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


class Bad(Exception):
    """What does not hold: a code, and where (a line, a part, a file)."""

    def __init__(self, code, where=None):
        super().__init__(f"{code}" if where is None else f"{code} ({where})")
        self.code, self.where = code, where


def need(truth, code, where=None):
    if not truth:
        raise Bad(code, where)


# ---- log.md, "Text" -------------------------------------------------------------------------------

def sha(data):
    return hashlib.sha256(data).digest()


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_b64u(text, code="b64u"):
    need(isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1, code)
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(b64u(data) == text, code)
    return data


def from_b64(text, code="b64"):
    need(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 == 0, code)
    data = base64.b64decode(text)
    need(base64.b64encode(data).decode() == text, code)
    return data


def cj(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def walk(value, level=1):
    """Only what canonical JSON has; objects and lists nest at most 8 deep."""
    if isinstance(value, (dict, list)):
        need(level <= 8, "canonical")
        for key in value if isinstance(value, dict) else ():
            need(re.fullmatch(r"[A-Za-z0-9_.$-]+", key), "canonical")
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


# ---- Ed25519, without the keys and signatures that say nothing ------------------------------------

P25519 = 2**255 - 19
D25519 = -121665 * pow(121666, -1, P25519) % P25519


def weak_point(data):
    """Not in canonical form, or of small order: 8 times it is nothing."""
    y = int.from_bytes(data, "little") & (1 << 255) - 1
    order8 = (D25519 * y**4 + 2 * y * y - 1) % P25519 == 0
    return y >= P25519 or y in (0, 1, P25519 - 1) or order8


def ed25519(key, signature, message):
    if len(key) != 32 or len(signature) != 64 or weak_point(key) or weak_point(signature[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


# ---- log.md, "The tree" ---------------------------------------------------------------------------

def leaf_hash(entry):
    return sha(b"\0" + entry)


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
    def go(m, n, rest):
        if n == 1:
            return leaf if not rest else None
        if not rest:
            return None
        k = 1 << (n - 1).bit_length() - 1
        below = go(m, k, rest[:-1]) if m < k else go(m - k, n - k, rest[:-1])
        if below is None:
            return None
        return node_hash(below, rest[-1]) if m < k else node_hash(rest[-1], below)
    return go(index, size, path) if 0 <= index < size else None


# ---- log.md, entries and the log of a session -----------------------------------------------------

def entry(data, private=True):
    """(value, public form) of a line without its newline."""
    need(len(data) <= LINE_MAX, "size")
    value = canonical(data)
    need(isinstance(value, dict) and isinstance(value.get("event"), str), "entry")
    need(type(value.get("time")) is int, "entry")
    need(private or not {"_salt", "_sd"} & set(value), "private")
    salts, digests = value.get("_salt"), list(value.get("_sd", []))
    need("_salt" not in value or isinstance(salts, dict), "private")
    need(isinstance(value.get("_sd", []), list), "private")
    for digest in digests:
        need(isinstance(digest, str) and len(from_b64u(digest, "private")) == 32, "private")
    need(digests == sorted(set(digests)), "private")
    public = {k: v for k, v in value.items() if k not in ("_salt", "_sd")}
    for name, salt in (salts or {}).items():
        need(name in public and name not in ("event", "time") and len(from_b64u(salt, "private")) == 16, "private")
        digests.append(b64u(sha(b64u(cj([salt, name, public.pop(name)]).encode()).encode())))
    need(len(set(digests)) == len(digests), "private")
    if digests:
        public["_sd"] = sorted(digests)
    text = cj(public).encode()
    need(len(text) <= PUBLIC_MAX, "size")
    return value, text


def session(data):
    """(values, root, whether it has an end, bytes that are no entry) of the text of a session's log."""
    lines, values, hashes = data.split(b"\n"), [], []
    for i, line in enumerate(lines[:-1]):
        try:
            value, text = entry(line)
        except Bad as e:
            raise Bad(e.code, i) from None
        need((value["event"] == "start") == (i == 0), "order", i)
        need(not values or values[-1]["event"] != "end", "order", i)
        values.append(value)
        hashes.append(leaf_hash(text))
    return values, root_of(hashes), bool(values) and values[-1]["event"] == "end", len(lines[-1])


# ---- C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-policy -----------------------------

class Key:
    """A vkey: NAME+ID+base64(TYPE, 32 bytes); type 1 signs notes, type 4 cosigns."""

    def __init__(self, vkey):
        part = vkey.split("+", 2)
        need(len(part) == 3 and part[0] and not re.search(r"\s", part[0]), "vkey")
        data = from_b64(part[2], "vkey")
        need(len(data) == 33 and data[0] in (1, 4), "vkey")
        need(not weak_point(data[1:]), "vkey")
        self.name, self.kind, self.pub = part[0], data[0], data[1:]
        self.id = sha(self.name.encode() + b"\n" + data)[:4]
        need(part[1] == self.id.hex(), "vkey")

    def signed(self, text, signature):
        if self.kind == 1:
            return ed25519(self.pub, signature, text)
        if len(signature) != 72 or signature[0] > 127:
            return False
        head = b"cosignature/v1\ntime %d\n" % struct.unpack(">Q", signature[:8])
        return ed25519(self.pub, signature[8:], head + text)


def note(data, keys):
    """(text, keys that signed it); a bad signature of a known key spoils all."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad("malformed") from None
    need(not re.search(rb"[\0-\x09\x0b-\x1f]", data), "malformed")
    text, blank, tail = data.rpartition(b"\n\n")
    need(blank and tail.endswith(b"\n"), "malformed")
    text, found, known = text + b"\n", [], {(k.name, k.id): k for k in keys}
    for line in tail.decode()[:-1].split("\n"):
        m = re.fullmatch(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/=]+)", line)
        need(m, "malformed")
        raw = from_b64(m[2], "malformed")
        need(len(raw) > 4, "malformed")
        key = known.get((m[1], raw[:4]))
        if key:
            need(key.signed(text, raw[4:]), "bad signature")
            found.append(key)
    return text, found


def number(text, code="malformed"):
    need(re.fullmatch(r"0|[1-9][0-9]{0,18}", text) and int(text) < 2**63, code)
    return int(text)


def checkpoint(data, keys):
    """(origin, size, root, keys that signed) of a checkpoint of ours: three lines, no more."""
    text, found = note(data, keys)
    line = text.decode().split("\n")
    need(len(line) == 4 and line[0] and line[3] == "", "malformed")
    root = from_b64(line[2], "malformed")
    need(len(root) == 32, "malformed")
    size = number(line[1])
    need(size or root == sha(b""), "malformed")
    return line[0], size, root, found


class Policy:
    """Logs, witnesses, groups and the quorum of a tlog-policy file."""

    def __init__(self, data):
        self.logs, self.names, self.quorum, self.used = [], {}, None, set()
        need(data.endswith(b"\n") and not re.search(rb"[\0-\x08\x0b-\x1f\x7f]", data), "policy")
        for line in data.decode("latin-1")[:-1].split("\n"):
            word = re.findall(r"[^ \t]+", line)
            if word and not word[0].startswith("#"):
                need(word[0] in ("log", "witness", "group", "quorum"), "policy")
                getattr(self, "line_" + word[0])(*word[1:]) if self.fits(word) else need(False, "policy")
        need(self.quorum, "policy")

    @staticmethod
    def fits(word):
        low, high = {"log": (2, 3), "witness": (3, 4), "group": (4, 999), "quorum": (2, 2)}[word[0]]
        return low <= len(word) <= high

    def key(self, vkey, kind, others):
        key = Key(vkey.encode("latin-1").decode("utf-8", "replace"))
        need(key.kind == kind and key.pub not in [o.pub for o in others], "policy")
        return key

    def define(self, name, what):
        need(name != "none" and name not in self.names, "policy")
        self.names[name] = what

    def line_log(self, vkey, _url=None):
        self.logs.append(self.key(vkey, 1, self.logs))

    def line_witness(self, name, vkey, _url=None):
        self.define(name, self.key(vkey, 4, self.witnesses()))

    def line_group(self, name, k, *members):
        need(all(m in self.names and m not in self.used for m in members), "policy")
        need(len(set(members)) == len(members), "policy")
        self.used |= set(members)
        k = {"any": 1, "all": len(members)}.get(k) or number(k, "policy")
        need(1 <= k <= len(members), "policy")
        self.define(name, (k, members))

    def line_quorum(self, name):
        need(self.quorum is None and (name == "none" or name in self.names), "policy")
        self.quorum = name

    def witnesses(self):
        return [k for k in self.names.values() if isinstance(k, Key)]

    def met(self, found, name=None):
        name = name or self.quorum
        if name == "none":
            return True
        what = self.names[name]
        if isinstance(what, Key):
            return what in found
        return sum(self.met(found, m) for m in what[1]) >= what[0]

    def checkpoint(self, data, cosigned=True):
        """(size, root) of a checkpoint that one of the logs signed, and enough witnesses."""
        origin, size, root, found = checkpoint(data, self.logs + self.witnesses())
        need(any(k in found and k.name == origin for k in self.logs), "unknown log")
        need(not cosigned or self.met(found), "no quorum")
        return size, root


def proof(data, leaf, policy):
    """(index, size) if the tlog-proof shows that @leaf is an entry of a log of the policy."""
    head, blank, signed = data.partition(b"\n\n")
    need(blank, "malformed")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise Bad("malformed") from None
    need(lines.pop(0) == "c2sp.org/tlog-proof@v1" and lines, "malformed")
    if lines[0].startswith("extra "):
        from_b64(lines.pop(0)[6:], "malformed")
    need(lines and lines[0].startswith("index "), "malformed")
    index, path = number(lines[0][6:]), [from_b64(h, "malformed") for h in lines[1:]]
    need(all(len(h) == 32 for h in path) and len(path) <= 63, "malformed")
    size, root = policy.checkpoint(signed)
    need(root_by_path(leaf_hash(leaf), index, size, path) == root, "not included")
    return index, size


# ---- log.md, "The log of a realm" -----------------------------------------------------------------

def tile_name(n):
    part = [f"{n % 1000:03}"]
    while n := n // 1000:
        part.insert(0, f"x{n % 1000:03}")
    return "/".join(part)


def bundle(data, where):
    """The 256 entries of a full bundle."""
    out = []
    while data:
        need(len(data) >= 2, "bundle", where)
        size = struct.unpack(">H", data[:2])[0]
        need(len(data) >= 2 + size, "bundle", where)
        out.append(data[2:2 + size])
        data = data[2 + size:]
    need(len(out) == WIDTH, "bundle", where)
    return out


def wal(folder, full):
    """The entries behind @full of bundles: the newest file's; an older one is what a crash left."""
    files = sorted(p for p in folder.glob("*") if re.fullmatch("[0-9a-f]{16}", p.name))
    need(files, "wal")
    need(int(files[-1].name, 16) == full, "wal", files[-1].name)
    data = files[-1].read_bytes()
    lines = data.split(b"\n")
    need(len(lines) - 1 <= WIDTH and not lines[-1], "wal", "bytes that are no entry")
    return lines[:-1]


def check_tiles(folder, hashes):
    """Every tile that must be there, and every other that is, has the hashes of the entries."""
    level, values, wanted = 0, hashes[:len(hashes) // WIDTH * WIDTH], set()
    while values:
        for i in range(0, len(values), WIDTH):
            width = min(WIDTH, len(values) - i)
            name = f"{level}/{tile_name(i // WIDTH)}" + (f".p/{width}" if width < WIDTH else "")
            path = folder / name
            need(path.is_file() and path.read_bytes() == b"".join(values[i:i + width]), "tile", name)
            wanted.add(path)
        values = [root_of(values[i:i + WIDTH]) for i in range(0, len(values) // WIDTH * WIDTH, WIDTH)]
        level += 1
    return wanted


def realm(folder, policy, boot=None):
    """(values, {name: (size, root)}) of a realm's log, with its checkpoints."""
    folder, entries = Path(folder), []
    while (path := folder / "tile/entries" / tile_name(len(entries) // WIDTH)).is_file():
        entries += bundle(path.read_bytes(), len(entries) // WIDTH)
    entries += wal(folder / "wal", len(entries))
    values = []
    for i, data in enumerate(entries):
        try:
            values.append(entry(data, private=False)[0])
        except Bad as e:
            raise Bad(e.code, i) from None
    hashes, signed = [leaf_hash(e) for e in entries], {}
    check_tiles(folder / "tile", hashes)
    lost = [(v.get("size"), v.get("root")) for v in values if v["event"] == "log.lost"]
    for name in ("checkpoint", "latest"):
        if not (folder / name).is_file():
            continue
        data = (folder / name).read_bytes()
        if name == "latest":
            data = data.partition(b"\n")[2]
        size, root = signed[name] = policy.checkpoint(data, cosigned=name == "checkpoint")
        if name == "latest" and (size, b64u(root)) in lost:
            continue
        need(size <= len(entries), "rollback", name)
        need(root_of(hashes[:size]) == root, "root", name)
    need(signed, "unsigned")
    return values, signed


# ---- tokens.md ------------------------------------------------------------------------------------

WHOLE, PROOF, CEILING = -2, 100, -1
URN = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"
UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
LEVELS = ("partial", "stricter", "exact")
GUARANTEES = ("fs.read fs.write fs.metadata net dns ipc proc.see proc.signal exec syscall res.memory res.cpu "
              "res.pids res.disk res.time res.output cred audit").split()


def model():
    """The model of capabilities."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
    import writ_oracle
    return writ_oracle


def is_a(pattern):
    return lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None


def is_number(value):
    return type(value) is int


def is_digest(value):
    try:
        return len(from_b64u(value)) == 32
    except Bad:
        return False


def is_jwk(value):
    return (isinstance(value, dict) and set(value) == {"crv", "kty", "x"} and is_digest(value["x"]) and
            (value["crv"], value["kty"]) == ("Ed25519", "OKP") and not weak_point(from_b64u(value["x"])))


def shape(value, members, optional=()):
    """@value is an object with exactly these members, each as its test says."""
    need(isinstance(value, dict) and set(members) - set(optional) <= set(value) <= set(members), "E_SCHEMA")
    for name, test in members.items():
        need(name not in value or test(value[name]), "E_SCHEMA")


def listed(low, high, test, many="E_SCHEMA"):
    """A test for lists of strings in strictly increasing order."""
    def check(value):
        need(isinstance(value, list) and len(value) >= low, "E_SCHEMA")
        need(len(value) <= high, many)
        need(all(test(v) for v in value), "E_SCHEMA")
        need(value == sorted(set(value)), "E_NONCANON")
        return True
    return check


def is_caps(low, kind):
    def check(value):
        need(isinstance(value, list) and len(value) >= low, "E_SCHEMA")
        need(len(value) <= 64, "E_SIZE")
        need(all(isinstance(v, str) for v in value), "E_CAP_SYNTAX")
        need(value == sorted(set(value)), "E_NONCANON")
        need(all(model().try_parse(kind, v) for v in value), "E_CAP_SYNTAX")
        return True
    return check


IS_ID, IS_NAME, IS_REALM = is_a(UUID7), is_a("[!-~]{1,255}"), is_a("[a-z0-9][a-z0-9._-]{0,62}")


def is_limits(value):
    return isinstance(value, dict) and all(k in model().LIMITS and is_number(v) and v >= 1 for k, v in value.items())


def is_require(value):
    return isinstance(value, dict) and all(k in GUARANTEES and v in LEVELS for k, v in value.items())


def is_details(value):
    need(isinstance(value, list) and len(value) == 1, "E_SCHEMA")
    shape(value[0], {"type": is_a("urn:writ:cap:1"), "caps": is_caps(1, "g"), "not": is_caps(0, "d"),
                     "limits": is_limits, "require": is_require, "rt": is_a("([0-9a-f]{64})?")})
    return True


def is_cnf(value):
    return isinstance(value, dict) and set(value) == {"jwk"} and is_jwk(value["jwk"])


ONE = {"writ": lambda v: is_number(v) and v == 1}
TOKEN = {**ONE, "iss": IS_NAME, "jti": IS_ID, "iat": is_number, "nbf": is_number, "exp": is_number,
         "aud": listed(1, 16, IS_REALM), "sid": IS_ID, "sub": IS_NAME, "wf": IS_ID, "cnf": is_cnf,
         "del_depth": is_number, "del_max_depth": is_number, "par_hash": is_digest, "rvk": is_number,
         "authorization_details": is_details}
POP = {**ONE, "acth": is_digest, "ath": is_digest, "aud": IS_REALM, "iat": is_number, "jti": IS_ID,
       "nonce": is_a("[A-Za-z0-9_-]{16,64}"), "sid": IS_ID}
ISSUER = {"iss": IS_NAME, "jwk": is_jwk, "realms": listed(1, 256, IS_REALM), "ceiling": is_caps(1, "g"),
          "nbf": is_number, "exp": is_number}
TRUST = {**ONE, "ver": is_number, "iat": is_number, "exp": is_number, "issuers": lambda v: isinstance(v, list)}
REVOKED = {**ONE, "iss": IS_NAME, "seq": is_number, "iat": is_number, "exp": is_number,
           **{k: listed(0, MAX_INT, IS_ID if k != "kid" else is_digest) for k in ("jti", "kid", "sid")}}


def kid_of(jwk):
    return b64u(sha(cj(jwk).encode()))


def jws(text, most, typ, key_of, unsigned="E_SIG"):
    """The payload's bytes, once the key that @key_of gives for the kid has signed them."""
    need(len(text) <= most, "E_SIZE")
    part = text.split(".")
    need(len(part) == 3 and all(part), "E_FORMAT")
    head, payload, signature = (from_b64u(p, "E_FORMAT") for p in part)
    m = re.fullmatch(rb'\{"alg":"([!-~]+?)","kid":"([A-Za-z0-9_-]{43})","typ":"([!-~]+?)"\}', head)
    need(m and len(signature) == 64 and is_digest(m[2].decode()), "E_FORMAT")
    need(m[3].decode() == typ, "E_TYP")
    need(m[1] in (b"EdDSA", b"Ed25519"), "E_ALG")
    key = from_b64u(key_of(m[2].decode())["x"])
    need(ed25519(key, signature, text.rpartition(".")[0].encode()), unsigned)
    return payload


def one_of(keys, code):
    """For jws(): the key of these that the header names."""
    def find(kid):
        found = [k for k in keys if kid_of(k) == kid]
        need(found, code)
        return found[0]
    return find


def trust(payload, org=None):
    """The issuers of a trust bundle's payload, by name."""
    value, keys = canonical(payload, "E_NONCANON"), [org] if org else []
    shape(value, TRUST)
    need(len(value["issuers"]) <= 64, "E_SIZE")
    for i in value["issuers"]:
        shape(i, ISSUER)
        priced = [c for c in i["ceiling"] if {"n", "rate", "max-in", "max-out"} & set(model().parse("g", c).params)]
        need(not priced and not i["iss"].startswith(URN) and i["jwk"] not in keys, "E_SCHEMA")
        keys.append(i["jwk"])
    return value


def signed_trust(text, org, seen, now):
    payload = jws(text, 1 << 18, "writ-trust+jwt", one_of([org], "E_ROOT"))
    value = trust(payload, org)
    need(value["ver"] >= seen, "E_REPLAY")
    need(value["iat"] <= now + 30 and now < value["exp"], "E_TIME")
    return value


def signed_list(text, bundle_, seen=0):
    payload = jws(text, 1 << 16, "writ-rvk+jwt", one_of([i["jwk"] for i in bundle_["issuers"]], "E_ROOT"))
    kid = json.loads(from_b64u(text.split(".")[0]))["kid"]
    value = canonical(payload, "E_NONCANON")
    shape(value, REVOKED)
    need(any(i["iss"] == value["iss"] and kid_of(i["jwk"]) == kid for i in bundle_["issuers"]), "E_ROOT")
    need(value["seq"] >= seen, "E_REPLAY")
    return value


def caps_of(token):
    return [model().parse("g", c) for c in token["authorization_details"][0]["caps"]]


def within(caps, others):
    return all(any(model().within(c, o) for o in others) for c in caps)


def token(text, key_of):
    """Steps 2 and 3."""
    value = canonical(jws(text, 8192, "writ-cap+jwt", key_of), "E_NONCANON")
    shape(value, TOKEN, ["par_hash"])
    need(value["exp"] > max(value["iat"], value["nbf"]), "E_TIME")
    need(value["del_depth"] <= value["del_max_depth"] <= 7, "E_DEPTH")
    return value


def first(t, issuer, now):
    """Step 4."""
    need("par_hash" not in t, "E_ROOT")
    need(t["del_depth"] == 0, "E_DEPTH")
    need(t["exp"] - min(t["iat"], t["nbf"]) <= 28800, "E_TIME")
    need(t["iss"] == issuer["iss"] and issuer["nbf"] <= now < issuer["exp"], "E_ROOT")
    need(set(t["aud"]) <= set(issuer["realms"]), "E_ROOT")
    need(within(caps_of(t), [model().parse("g", c) for c in issuer["ceiling"]]), "E_CEILING")


def link(t, before, text_before):
    """Step 5, for one link."""
    a, b = t["authorization_details"][0], before["authorization_details"][0]
    need(t["iss"] == URN + kid_of(before["cnf"]["jwk"]), "E_LINK_ISS")
    need(t.get("par_hash") == b64u(sha(text_before.rpartition(".")[0].encode())), "E_LINK_HASH")
    need(t["del_depth"] == before["del_depth"] + 1 and t["del_max_depth"] <= before["del_max_depth"], "E_DEPTH")
    need(t["iat"] >= before["iat"] and t["nbf"] >= before["nbf"] and t["exp"] <= before["exp"], "E_TIME")
    need(set(t["aud"]) <= set(before["aud"]), "E_AUD")
    need((t["sub"], t["wf"]) == (before["sub"], before["wf"]), "E_SUB")
    need(t["rvk"] <= before["rvk"] and b["rt"] in ("", a["rt"]), "E_WIDEN")
    need(all(a["limits"].get(k, MAX_INT + 1) <= v for k, v in b["limits"].items()), "E_WIDEN")
    need(all(k in a["require"] and LEVELS.index(a["require"][k]) >= LEVELS.index(v)
             for k, v in b["require"].items()), "E_WIDEN")
    need(within(caps_of(t), caps_of(before)), "E_WIDEN")


def revoked(chain, issuer, lists, now, local):
    """Step 7."""
    mine = [r for r in lists if r["iss"] == issuer["iss"]]
    for hop, t in enumerate(chain):
        names = {"jti": t["jti"], "kid": kid_of(t["cnf"]["jwk"]), "sid": t["sid"]}
        need(not any(v in r[k] for r in mine for k, v in names.items()), "E_REVOKED", hop)
    oldest = min(t["rvk"] for t in chain)
    fresh = [r for r in mine if r["iat"] <= now + 30 and now < r["exp"] and now - r["iat"] <= oldest]
    need(local or fresh, "E_RVK_STALE", WHOLE)


def presentation(text, bundle_, lists, here, now, local=False):
    """(issuer, tokens, proof) if steps 1 to 8 hold; Bad(code, hop) of the first that does not."""
    need(len(text) <= 32768 and text.count("~") <= 8, "E_SIZE", WHOLE)
    *texts, last = text.split("~")
    need(texts, "E_FORMAT", WHOLE)
    chain, issuers, hop = [], bundle_["issuers"], 0
    try:
        for hop, one in enumerate(texts):
            keys = [chain[-1]["cnf"]["jwk"]] if chain else [i["jwk"] for i in issuers]
            chain.append(token(one, one_of(keys, "E_LINK_ISS" if chain else "E_ROOT")))
        kid = json.loads(from_b64u(texts[0].split(".")[0]))["kid"]
        issuer, hop = next(i for i in issuers if kid_of(i["jwk"]) == kid), 0
        first(chain[0], issuer, now)
        used, ids = [i["jwk"] for i in issuers], []
        for hop, t in enumerate(chain):
            if hop:
                link(t, chain[hop - 1], texts[hop - 1])
            need(t["cnf"]["jwk"] not in used, "E_LINK_ISS")
            need(t["jti"] not in ids, "E_REPLAY")
            used.append(t["cnf"]["jwk"])
            ids.append(t["jti"])
        need(here in chain[-1]["aud"], "E_AUD")
        for hop, t in enumerate(chain):
            need(t["nbf"] <= now < t["exp"] and t["iat"] <= now + 30, "E_TIME")
        revoked(chain, issuer, lists, now, local)
        hop = PROOF
        pop = canonical(jws(last, 4096, "writ-pop+jwt", one_of([chain[-1]["cnf"]["jwk"]], "E_POP")), "E_NONCANON")
        shape(pop, POP)
        need((pop["ath"], pop["aud"], pop["sid"]) == (b64u(sha(texts[-1].encode())), here, chain[-1]["sid"]), "E_POP")
        need(abs(pop["iat"] - now) <= 30, "E_POP")
    except Bad as e:
        raise Bad(e.code, hop if e.where is None else e.where) from None
    return issuer, chain, pop


def decide(issuer, chain, here, request):
    """Step 11: (who must agree, what is debited); Bad("E_NOCAP", who refuses)."""
    req, who, debits = model().parse("r", request), set(), []
    need(req.realm == here, "E_NOCAP", WHOLE)
    rows = [(CEILING, issuer["ceiling"], [])]
    rows += [(i, d["caps"], d["not"]) for i, d in enumerate(t["authorization_details"][0] for t in chain)]
    for hop, caps, nots in rows:
        verdict, ids, hits = model().decide(model().Set(caps, nots), req)
        need(verdict != "deny", "E_NOCAP", hop)
        who |= set(ids)
        debits += [(hop, c.text) for c in hits if {"n", "rate", "max-in", "max-out"} & set(c.params)]
    return sorted(who), debits


# ---- what a person asks ---------------------------------------------------------------------------

def do_session(a):
    values, root, ended, rest = session(Path(a.file).read_bytes())
    print(f"{len(values)} entries, root {root.hex()}, {'ended' if ended else 'no end'}, {rest} bytes behind them")


def do_realm(a):
    values, signed = realm(a.file, Policy(Path(a.policy).read_bytes()))
    for name, (size, root) in signed.items():
        print(f"{name}: {size} of {len(values)} entries, root {root.hex()}")


def do_proof(a):
    index, size = proof(Path(a.file).read_bytes(), Path(a.entry).read_bytes(), Policy(Path(a.policy).read_bytes()))
    print(f"entry {index} of {size}")


def do_token(a):
    bundle_, now = trust(Path(a.trust).read_bytes().strip()), a.now or int(time.time())
    lists = [signed_list(Path(p).read_text().strip(), bundle_) for p in a.list]
    issuer, chain, _pop = presentation(Path(a.file).read_text().strip(), bundle_, lists, a.realm, now, a.local)
    print(f"{len(chain)} tokens of {issuer['iss']} for {chain[0]['sub']}")
    if a.request:
        who, debits = decide(issuer, chain, a.realm, a.request)
        print(f"allowed; must agree: {' '.join(who) or 'nobody'}; debits: {len(debits)}")


def main():
    p = argparse.ArgumentParser(description="checks what writ wrote, without writ")
    verbs = p.add_subparsers(dest="verb", required=True)
    for verb, do in (("session", do_session), ("realm", do_realm), ("proof", do_proof), ("token", do_token)):
        v = verbs.add_parser(verb)
        v.set_defaults(do=do)
        v.add_argument("file")
        if verb == "proof":
            v.add_argument("entry")
        if verb in ("realm", "proof"):
            v.add_argument("--policy", required=True)
        if verb == "token":
            for name in ("--trust", "--realm"):
                v.add_argument(name, required=True)
            v.add_argument("--list", action="append", default=[])
            v.add_argument("--now", type=int)
            v.add_argument("--request")
            v.add_argument("--local", action="store_true")
    a = p.parse_args()
    try:
        a.do(a)
    except (Bad, OSError) as e:
        print(f"does not hold: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
