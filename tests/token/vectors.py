#!/usr/bin/env python3
"""vectors.py - tests/vectors/token/ and the seeds of the token fuzzers, made without the C code.

    tests/token/vectors.py           write them
    tests/token/vectors.py --check   compare with what is there; TAP

Every case breaks one rule of docs/protocol/tokens.md in an otherwise good chain and names the
code that the first failing step has. Signatures are those of tests/tlog/vectors.py.
"""
import base64
import copy
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT, SEEDS = HERE.parent / "vectors/token", HERE.parent / "fuzz/corpus"
spec = importlib.util.spec_from_file_location("tlog_vectors", HERE.parent / "tlog/vectors.py")
tlog = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tlog)

NOW, REALM = 1794745300, "l-test7"
URN = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"
NONCE = "AAZgT7QCWsAp5UrYzlzv_mNX4PHdRvOJ"
SIGNED = {}


def sha(data):
    return hashlib.sha256(data).digest()


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cj(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def uuid(n):
    return f"0199f000-0000-7000-8000-{n:012x}"


class Key(tlog.Key):
    def __init__(self, name):
        super().__init__(name, 1)

    def jwk(self):
        return {"crv": "Ed25519", "kty": "OKP", "x": b64u(self.pub)}

    def kid(self):
        return b64u(sha(cj(self.jwk()).encode()))


ORG, ISSUER, OTHER, A, B, C = (Key(n) for n in ("org", "issuer", "issuer-2", "agent-a", "agent-b", "agent-c"))


def jws(key, typ, payload, header=None):
    """Signed text of @payload, a value or a text; @header replaces members."""
    head = {"alg": "EdDSA", "kid": key.kid(), "typ": typ, **(header or {})}
    text = payload if isinstance(payload, str) else cj(payload)
    signing = f"{b64u(cj(head).encode())}.{b64u(text.encode())}"
    if (key.name, signing) not in SIGNED:
        SIGNED[key.name, signing] = b64u(key.sign(signing.encode()))
    return f"{signing}.{SIGNED[key.name, signing]}"


def details(caps, nots=(), limits=None, require=None, rt=""):
    return [{"caps": list(caps), "limits": limits or {}, "not": list(nots), "require": require or {},
             "rt": rt, "type": "urn:writ:cap:1"}]


ROOT = {
    "writ": 1, "iss": "https://issuer.example", "jti": uuid(1), "iat": NOW - 100, "nbf": NOW - 100,
    "exp": NOW + 3500, "aud": [REALM, "l-test8"], "sid": uuid(10), "sub": "urn:example:alice", "wf": uuid(255),
    "cnf": {"jwk": A.jwk()}, "del_depth": 0, "del_max_depth": 3, "rvk": 300,
    "authorization_details": details(
        [f"fs.read:{REALM}:/srv/repo/**", f"fs.write:{REALM}:/srv/repo/out/**;approve=operator",
         f"http.request:{REALM}:https://api.example.com:443/v1/**;m=GET,HEAD,POST;n=100;q=any",
         f"net.connect:{REALM}:tcp/db.example.com:5432;rate=10/60",
         f"proc.exec:{REALM}:/usr/bin/git;args=/git/**"],
        [f"fs.read:{REALM}:/srv/repo/**/.env/**"],
        {"session": 1800, "up": 10485760}, {"fs.read": "exact"}, "ab" * 32),
}


def narrower(n, sid, holder, caps, **more):
    t = copy.deepcopy(ROOT)
    t.update(jti=uuid(n), sid=uuid(sid), iat=NOW - 60, nbf=NOW - 60, exp=NOW + 800, aud=[REALM],
             cnf={"jwk": holder.jwk()}, del_depth=n - 1, rvk=200, **more)
    t["authorization_details"] = details(caps, limits={"session": 300, "up": 65536},
                                         require={"fs.read": "exact", "net": "exact"}, rt="ab" * 32)
    return t


CHILD = narrower(2, 11, B, [
    f"fs.read:{REALM}:/srv/repo/docs/**", f"fs.write:{REALM}:/srv/repo/out/**;approve=lead,operator",
    f"http.request:{REALM}:https://api.example.com:443/v1/**;m=GET,POST;n=50;q=none",
    f"http.request:{REALM}:https://api.example.com:443/v1/items/*;approve=items;m=GET;n=5;q=none",
    f"proc.exec:{REALM}:/usr/bin/git;args=/git/status"])
CHILD["authorization_details"][0]["not"] = [f"fs.read:{REALM}:/srv/repo/docs/private/**"]
LEAF = narrower(3, 12, C, [
    f"fs.read:{REALM}:/srv/repo/docs/**", f"http.request:{REALM}:https://api.example.com:443/v1/**;m=GET;n=9;q=none"])
POP = {"acth": b64u(sha(b"?")), "ath": "", "aud": REALM, "iat": NOW, "jti": uuid(900), "nonce": NONCE,
       "sid": "", "writ": 1}
TRUST = {"writ": 1, "ver": 17, "iat": NOW - 1000, "exp": NOW + 100000, "issuers": [
    {"iss": "https://issuer.example", "jwk": ISSUER.jwk(), "nbf": NOW - 1000, "exp": NOW + 90000,
     "realms": [REALM, "l-test8"],
     "ceiling": sorted([f"fs.read:{REALM}:/srv/**", f"fs.write:{REALM}:/srv/**",
                        f"http.request:{REALM}:https://**.example.com:443/**;m=*;q=any",
                        f"net.connect:{REALM}:tcp/**.example.com:1-65535", f"proc.exec:{REALM}:/usr/**"])},
    {"iss": "https://other.example", "jwk": OTHER.jwk(), "nbf": NOW - 1000, "exp": NOW - 1, "realms": ["l-test8"],
     "ceiling": ["fs.read:l-test8:/**"]}]}
RVK = {"writ": 1, "iss": "https://issuer.example", "seq": 4, "iat": NOW - 50, "exp": NOW + 5000,
       "jti": [uuid(77)], "kid": [Key("agent-x").kid()], "sid": [uuid(78)]}

CASES = []


class Chain:
    """A good chain with its parts; cases change one of them before it is signed."""

    def __init__(self, depth=3):
        self.keys = [ISSUER, A, B, C][:depth + 1]
        self.claims = [copy.deepcopy(t) for t in (ROOT, CHILD, LEAF)[:depth]]
        self.headers, self.pop = [{} for _ in range(depth)], copy.deepcopy(POP)
        self.pop_header, self.pop_key, self.typ = {}, self.keys[depth], "writ-cap+jwt"
        self.texts, self.late, self.here = [None] * depth, (lambda t, i: None), {}

    def tokens(self):
        out = []
        for i, claims in enumerate(self.claims):
            if i:
                claims.setdefault("par_hash", b64u(sha(out[-1].rsplit(".", 1)[0].encode())))
                if claims.get("iss", ROOT["iss"]) == ROOT["iss"]:
                    claims["iss"] = URN + self.keys[i].kid()
            self.late(claims, i)
            out.append(jws(self.keys[i], self.typ, self.texts[i] or claims, self.headers[i]))
        return out

    def parts(self):
        tokens, proof = self.tokens(), copy.deepcopy(self.pop)
        proof["ath"] = proof["ath"] or b64u(sha(tokens[-1].encode()))
        proof["sid"] = proof["sid"] or self.claims[-1].get("sid", "")
        return tokens + [jws(self.pop_key, "writ-pop+jwt", proof, self.pop_header)]

    def text(self):
        return "~".join(self.parts())


def case(name, expect, hop=-2, depth=3, after=None):
    """Decorator: the function changes a Chain; @after changes the finished parts."""
    def add(change):
        chain = Chain(depth)
        change(chain)
        parts = chain.parts()
        if after:
            parts = after(parts)
        CASES.append({"name": name, "expect": expect, "hop": hop, "text": "~".join(parts), **chain.here})
        return change
    return add


def simple(name, expect, hop, where, key, value, depth=3):
    """One claim of one token replaced, or removed if @value is None."""
    def change(chain):
        target = chain.pop if where == "pop" else chain.claims[where]
        if key.startswith("."):
            target = target["authorization_details"][0]
        if value is None:
            del target[key.lstrip(".")]
        else:
            target[key.lstrip(".")] = value
    case(name, expect, hop, depth)(change)


def swap(parts, i, text):
    return parts[:i] + [text] + parts[i + 1:]


def good_cases():
    for depth in (1, 2, 3):
        case(f"a chain of {depth}", "OK", depth=depth)(lambda c: None)

    @case("alg by its newer name", "OK")
    def _(c):
        c.headers = [{"alg": "Ed25519"}] * 3
        c.pop_header = {"alg": "Ed25519"}

    @case("without lists, revoked locally", "OK")
    def _(c):
        c.here = {"rvk": [], "local": True}

    @case("in its last second", "OK")
    def _(c):
        c.here = {"now": NOW + 799}
        c.pop["iat"] = NOW + 799
        c.claims[2]["rvk"] = 0
        c.here["local"] = True


def form_cases():
    for name, expect, hop, after in (
            ("no proof", "E_FORMAT", -2, lambda p: p[:1]),
            ("a part missing", "E_LINK_ISS", 1, lambda p: p[:1] + p[2:]),
            ("nothing", "E_FORMAT", -2, lambda p: [""]),
            ("an empty part", "E_FORMAT", 1, lambda p: swap(p, 1, "")),
            ("ten parts", "E_SIZE", -2, lambda p: p[:3] * 3 + p[3:]),
            ("more than 32768 bytes", "E_SIZE", -2, lambda p: ["A" * 8192] * 4 + ["A"]),
            ("a token of 8193 bytes", "E_SIZE", 0, lambda p: swap(p, 0, "A" * 8193)),
            ("a proof of 4097 bytes", "E_SIZE", 100, lambda p: swap(p, 3, "A" * 4097)),
            ("two parts of a JWS", "E_FORMAT", 0, lambda p: swap(p, 0, p[0].rsplit(".", 1)[0])),
            ("four parts of a JWS", "E_FORMAT", 0, lambda p: swap(p, 0, p[0] + ".AA")),
            ("padding", "E_FORMAT", 0, lambda p: swap(p, 0, p[0] + "==")),
            ("a blank behind", "E_FORMAT", 100, lambda p: swap(p, 3, p[3] + " ")),
            ("no payload", "E_FORMAT", 0, lambda p: swap(p, 0, "{0}..{2}".format(*p[0].split(".")))),
            ("tokens swapped", "E_ROOT", 0, lambda p: [p[1], p[0], *p[2:]]),
            ("a proof as a token", "E_TYP", 2, lambda p: swap(p, 2, p[3])),
            ("a token as the proof", "E_TYP", 100, lambda p: swap(p, 3, p[2])),
            ("another signature", "E_SIG", 1, lambda p: swap(p, 1, ".".join(p[1].split(".")[:2] + [p[0].split(".")[2]]))),
            ("another payload", "E_SIG", 0, lambda p: swap(p, 0, "{0}.{3}.{2}".format(*p[0].split("."), p[1].split(".")[1])))):
        case(name, expect, hop, after=after)(lambda c: None)
    for name, header, expect in (("none", {"alg": "none"}, "E_ALG"), ("HS256", {"alg": "HS256"}, "E_ALG"),
                                 ("ES256", {"alg": "ES256"}, "E_ALG"), ("crit", {"crit": ["b64"]}, "E_FORMAT"),
                                 ("jwk", {"jwk": A.jwk()}, "E_FORMAT"), ("short kid", {"kid": "AAAA"}, "E_FORMAT"),
                                 ("typ JWT", {"typ": "JWT"}, "E_TYP"), ("typ of a list", {"typ": "writ-rvk+jwt"}, "E_TYP")):
        def change(c, header=header):
            c.headers[0] = header
        case(f"header with {name}", expect, 0, 1)(change)


def payload_cases():
    for name, edit in (("a blank", lambda t: t.replace(":", ": ", 1)), ("a float", lambda t: t.replace('"rvk":300', '"rvk":300.0')),
                       ("an escape", lambda t: t.replace("alice", "\\u0061lice")), ("a key twice", lambda t: t.replace('"rvk":300', '"rvk":300,"rvk":300')),
                       ("null", lambda t: t.replace('"rvk":300', '"rvk":null')), ("no JSON", lambda t: "writ"),
                       ("a negative number", lambda t: t.replace('"rvk":300', '"rvk":-300')),
                       ("a number above 2^53", lambda t: t.replace('"rvk":300', '"rvk":9007199254740993'))):
        def change(c, edit=edit):
            c.texts[0] = edit(cj(ROOT))
        case(f"payload with {name}", "E_NONCANON", 0, 1)(change)
    rows = [(k, v, "E_SCHEMA") for k, v in (
        ("writ", 2), ("iss", ""), ("iss", "a b"), ("jti", "1"), ("jti", uuid(1).upper()), ("jti", uuid(1).replace("-7", "-4", 1)),
        ("sid", ""), ("wf", uuid(255)[:-1]), ("aud", []), ("aud", REALM), ("aud", ["L-TEST"]), ("sub", "x" * 256), ("iat", "1"),
        ("cnf", {}), ("cnf", {"jwk": {**A.jwk(), "d": b64u(bytes(32))}}), ("cnf", {"jwk": {**A.jwk(), "crv": "X25519"}}),
        ("cnf", {"jwk": {**A.jwk(), "x": b64u(bytes([1] + [0] * 31))}}),  # the identity: anybody can sign
        ("cnf", {"jwk": {**A.jwk(), "x": b64u(bytes(32))}}),
        ("cnf", {"jwk": {**A.jwk(), "x": b64u(bytes([0xee] + [255] * 30 + [0x7f]))}}),  # y = p + 1
        ("cnf", {"jwk": {**A.jwk(), "x": "AAAA"}}), ("par_hash", "AAAA"), ("extra", 1), ("authorization_details", []),
        ("authorization_details", ROOT["authorization_details"] * 2),
        (".caps", []), (".type", "urn:writ:cap:2"), (".limits", {"up": 0}), (".limits", {"speed": 1}), (".limits", []),
        (".require", {"fs.read": "none"}), (".require", {"fs.fly": "exact"}), (".rt", "ab"), (".rt", "AB" * 32), (".extra", []),
        (".not", "x"), (".rt", 1), (".prices", []))]
    rows += [(k, None, "E_SCHEMA") for k in (*sorted(ROOT), ".caps", ".limits", ".not", ".require", ".rt", ".type")]
    rows += [("aud", ["l-test8", REALM], "E_NONCANON"), ("aud", [REALM, REALM], "E_NONCANON"),
             (".caps", ROOT["authorization_details"][0]["caps"][::-1], "E_NONCANON"),
             (".caps", [f"fs.read:{REALM}:/srv/a"] * 2, "E_NONCANON"),
             (".caps", [f"fs.read:{REALM}:/srv/{i:02}" for i in range(65)], "E_SIZE"),
             (".not", [f"fs.read:{REALM}:/srv/{i:02}/**" for i in range(65)], "E_SIZE"),
             (".caps", [f"fs.read:{REALM}:/srv/../etc"], "E_CAP_SYNTAX"), (".caps", ["fs.fly:l-test7:/a"], "E_CAP_SYNTAX"),
             (".caps", [1], "E_CAP_SYNTAX"), (".not", [f"fs.read:{REALM}:/srv/a"], "E_CAP_SYNTAX"),
             ("del_max_depth", 8, "E_DEPTH"), ("exp", NOW - 100, "E_TIME")]
    for i, (key, value, expect) in enumerate(rows):
        simple(f"claim {key} {'missing' if value is None else 'wrong'} {i}", expect, 0, 0, key, value, depth=1)


def root_cases():
    simple("root by another name", "E_ROOT", 0, 0, "iss", "https://other.example")
    simple("root with a parent", "E_ROOT", 0, 0, "par_hash", b64u(bytes(32)))
    simple("root of depth 1", "E_DEPTH", 0, 0, "del_depth", 1)
    simple("root for a realm of others", "E_ROOT", 0, 0, "aud", ["l-other", REALM])
    simple("root for too long", "E_TIME", 0, 0, "exp", NOW - 100 + 28801, depth=1)
    simple("root for as long as may be", "OK", -2, 0, "exp", NOW - 100 + 28800, depth=1)
    simple("root above the ceiling", "E_CEILING", 0, 0, ".caps", [f"fs.read:{REALM}:/etc/**"], depth=1)
    simple("the holder is an issuer", "E_LINK_ISS", 0, 0, "cnf", {"jwk": OTHER.jwk()}, depth=1)
    simple("the holder is the issuer", "E_LINK_ISS", 0, 0, "cnf", {"jwk": ISSUER.jwk()}, depth=1)

    @case("an unknown issuer", "E_ROOT", 0)
    def _(c):
        c.keys[0] = Key("nobody")

    @case("an issuer that ended", "E_ROOT", 0)
    def _(c):
        c.keys[0] = OTHER
        c.claims[0].update(iss="https://other.example", aud=["l-test8"])


def link_cases():
    caps = CHILD["authorization_details"][0]["caps"]
    for key, value, expect in (
            ("iss", URN + C.kid(), "E_LINK_ISS"), ("iss", "https://agent-a.example", "E_LINK_ISS"),
            ("par_hash", b64u(sha(b"other")), "E_LINK_HASH"), ("del_depth", 2, "E_DEPTH"), ("del_depth", 0, "E_DEPTH"),
            ("del_max_depth", 4, "E_DEPTH"), ("iat", NOW - 101, "E_TIME"), ("nbf", NOW - 101, "E_TIME"),
            ("exp", NOW + 3501, "E_TIME"), ("aud", ["l-other", REALM], "E_AUD"), ("sub", "urn:example:bob", "E_SUB"),
            ("wf", uuid(254), "E_SUB"), ("rvk", 301, "E_WIDEN"), (".limits", {"session": 300}, "E_WIDEN"),
            (".limits", {"session": 1801, "up": 1}, "E_WIDEN"), (".require", {"fs.read": "partial"}, "E_WIDEN"),
            (".require", {}, "E_WIDEN"), (".rt", "", "E_WIDEN"), (".rt", "cd" * 32, "E_WIDEN"),
            (".caps", [f"fs.read:{REALM}:/srv/**"], "E_WIDEN"), (".caps", [f"fs.write:{REALM}:/srv/repo/out/**"], "E_WIDEN"),
            (".caps", [c.replace(";n=50", "") for c in caps], "E_WIDEN"),
            (".caps", [c.replace(";n=50", ";n=101") for c in caps], "E_WIDEN"),
            (".caps", [f"fs.read:l-test8:/srv/repo/**"], "E_WIDEN"), ("jti", uuid(1), "E_REPLAY"),
            ("cnf", {"jwk": A.jwk()}, "E_LINK_ISS"), ("cnf", {"jwk": ISSUER.jwk()}, "E_LINK_ISS")):
        simple(f"link {key} {cj(value)[:60]}", expect, 1, 1, key, value, depth=2)
    simple("derived from the wrong one of two", "E_LINK_HASH", 2, 2, "par_hash", b64u(sha(b"T0")))
    simple("a key again two hops later", "E_LINK_ISS", 2, 2, "cnf", {"jwk": A.jwk()})
    simple("passed on once too often", "E_DEPTH", 2, 1, "del_max_depth", 1)
    simple("a leaf for another realm", "E_AUD", 1, 1, "aud", ["l-test8"], depth=2)
    simple("denials need not be repeated", "OK", -2, 1, ".not", [], depth=2)

    @case("derived with no par_hash", "E_LINK_HASH", 1, 2)
    def _(c):
        c.late = lambda t, i: t.pop("par_hash", None)

    @case("signed by somebody else", "E_LINK_ISS", 1, 2)
    def _(c):
        c.keys[1] = C

    @case("signed by somebody else in the holder's name", "E_SIG", 1, 2)
    def _(c):
        c.keys[1], c.headers[1] = C, {"kid": A.kid()}


def time_cases():
    for name, now, expect, hop in (("before it begins", NOW - 101, "E_TIME", 0), ("before the second begins", NOW - 61, "E_TIME", 1),
                                   ("when the leaf has ended", NOW + 800, "E_TIME", 1), ("when the root has ended", NOW + 3500, "E_TIME", 0)):
        def change(c, now=now):
            c.here = {"now": now}
            c.pop["iat"] = now
        case(name, expect, hop)(change)
    simple("issued in the future", "E_TIME", 2, 2, "iat", NOW + 31)
    simple("issued in the near future", "OK", -2, 2, "iat", NOW + 30)


def rvk_cases():
    def lists(name, expect, hop, payloads, **more):
        @case(name, expect, hop)
        def _(c):
            c.here = {"rvk": [jws(OTHER if "other" in p.get("iss", "") else ISSUER, "writ-rvk+jwt", {**RVK, **p})
                              for p in payloads], **more}
    other = {"iss": "https://other.example", "jti": [uuid(1)]}
    lists("the first token revoked", "E_REVOKED", 0, [{"jti": [uuid(1)]}])
    lists("the middle holder revoked", "E_REVOKED", 1, [{"kid": [B.kid()]}])
    lists("the last session revoked", "E_REVOKED", 2, [{"sid": [uuid(12)]}])
    lists("revoked among many", "E_REVOKED", 2, [{"jti": [uuid(i) for i in (2**20, 2**21)] + [], "sid": [uuid(i) for i in range(12, 40)]}])
    lists("revoked in the older of two lists", "E_REVOKED", 2, [{}, {"seq": 3, "iat": NOW - 900, "jti": [uuid(3)]}])
    lists("revoked locally", "E_REVOKED", 0, [{"jti": [uuid(1)], "iat": NOW - 9000}], local=True)
    lists("another issuer revokes nothing here", "OK", -2, [other, {}])
    lists("only a list of another issuer", "E_RVK_STALE", -2, [other])
    lists("no list", "E_RVK_STALE", -2, [])
    lists("a list as old as may be", "OK", -2, [{"iat": NOW - 200}])
    lists("a list that is too old", "E_RVK_STALE", -2, [{"iat": NOW - 201}])
    lists("a list that has ended", "E_RVK_STALE", -2, [{"exp": NOW}])
    lists("a list from the future", "E_RVK_STALE", -2, [{"iat": NOW + 31}])


def pop_cases():
    for key, value, expect in (
            ("ath", b64u(sha(b"other")), "E_POP"), ("aud", "l-test8", "E_POP"), ("sid", uuid(11), "E_POP"),
            ("iat", NOW - 31, "E_POP"), ("iat", NOW + 31, "E_POP"), ("iat", NOW + 30, "OK"), ("iat", NOW - 30, "OK"),
            ("nonce", "short", "E_SCHEMA"), ("nonce", "A" * 65, "E_SCHEMA"), ("nonce", "~" * 32, "E_SCHEMA"),
            ("jti", "x", "E_SCHEMA"), ("acth", "x", "E_SCHEMA"), ("extra", 1, "E_SCHEMA"), ("writ", 2, "E_SCHEMA"),
            ("aud", [REALM], "E_SCHEMA"), ("acth", None, "E_SCHEMA"), ("nonce", None, "E_SCHEMA")):
        simple(f"proof {key} {cj(value)[:40]} {expect}", expect, -2 if expect == "OK" else 100, "pop", key, value)

    @case("a proof of another holder", "E_POP", 100)
    def _(c):
        c.pop_key = B

    @case("a proof of another holder in this one's name", "E_SIG", 100)
    def _(c):
        c.pop_key, c.pop_header = B, {"kid": C.kid()}

    @case("here is another realm", "E_POP", 100, 1)
    def _(c):
        c.here = {"realm": "l-test8"}


def actions():
    rows = [
        {"kind": "session", "o": {"a": "session.open", "argv": ["/usr/bin/agent", "100%25", "two words", "%C3%A4%0A"],
                                  "man": b64u(sha(b"man"))}},
    ]
    for row in rows:
        row["text"] = cj({**row.pop("o"), "r": REALM, "s": NONCE})
        row["acth"] = b64u(sha(row["text"].encode()))
    return rows


def list_cases():
    """Lists of revoked tokens and bundles of trust, one at a time."""
    def trust(name, expect, key=ORG, header=None, seen=17, issuer=None, **change):
        payload = {**copy.deepcopy(TRUST), **change}
        if issuer:
            payload["issuers"][0].update(issuer)
        payload = {k: v for k, v in payload.items() if v is not None}
        return {"kind": "trust", "name": name, "expect": expect, "seen": seen,
                "text": jws(key, "writ-trust+jwt", payload, header)}

    def rvk(name, expect, key=ISSUER, header=None, seen=4, **change):
        payload = {k: v for k, v in {**RVK, **change}.items() if v is not None}
        return {"kind": "rvk", "name": name, "expect": expect, "seen": seen,
                "text": jws(key, "writ-rvk+jwt", payload, header)}
    return [
        trust("a good bundle", "OK"), trust("an older bundle", "E_REPLAY", seen=18),
        trust("signed by an issuer", "E_ROOT", key=ISSUER), trust("in the organisation's name", "E_SIG", key=ISSUER, header={"kid": ORG.kid()}),
        trust("another type", "E_TYP", header={"typ": "writ-rvk+jwt"}), trust("ended", "E_TIME", exp=NOW),
        trust("not begun", "E_TIME", iat=NOW + 31), trust("without ver", "E_SCHEMA", ver=None), trust("logs", "E_SCHEMA", logs=[]),
        trust("issuers missing", "E_SCHEMA", issuers=None), trust("issuers by name", "E_SCHEMA", issuers={}),
        trust("a ceiling with a counter", "E_SCHEMA", issuer={"ceiling": [f"fs.read:{REALM}:/**;n=5"]}),
        trust("a ceiling with an approval", "OK", issuer={"ceiling": [f"fs.read:{REALM}:/**;approve=operator"]}),
        trust("an empty ceiling", "E_SCHEMA", issuer={"ceiling": []}),
        trust("no capability", "E_CAP_SYNTAX", issuer={"ceiling": ["**"]}),
        trust("realms out of order", "E_NONCANON", issuer={"realms": ["b", "a"]}),
        trust("no realms", "E_SCHEMA", issuer={"realms": []}),
        trust("a key of small order", "E_SCHEMA", issuer={"jwk": {**A.jwk(), "x": b64u(bytes([1] + [0] * 31))}}),
        trust("one key twice", "E_SCHEMA", issuer={"jwk": OTHER.jwk()}),
        trust("the organisation issues", "E_SCHEMA", issuer={"jwk": ORG.jwk()}),
        trust("a holder's name", "E_SCHEMA", issuer={"iss": URN + A.kid()}),
        trust("unknown member of an issuer", "E_SCHEMA", issuer={"alg": "EdDSA"}),
        rvk("a good list", "OK"), rvk("an older list", "E_REPLAY", seen=5), rvk("of nobody", "E_ROOT", key=A),
        rvk("of another issuer", "E_ROOT", key=OTHER), rvk("in the issuer's name", "E_SIG", key=A, header={"kid": ISSUER.kid()}),
        rvk("of another type", "E_TYP", header={"typ": "writ-cap+jwt"}), rvk("no seq", "E_SCHEMA", seq=None),
        rvk("out of order", "E_NONCANON", jti=[uuid(2), uuid(1)]), rvk("twice the same", "E_NONCANON", sid=[uuid(2)] * 2),
        rvk("no id", "E_SCHEMA", jti=["x"]), rvk("no thumbprint", "E_SCHEMA", kid=["x"]), rvk("more", "E_SCHEMA", all=True),
        rvk("too many", "E_SIZE", jti=[uuid(i) for i in range(1, 1300)]), rvk("nothing revoked", "OK", jti=[], kid=[], sid=[]),
    ]


def lines(head, key, rows):
    """JSON with one row per line, so that a change shows as one."""
    return cj(head)[:-1] + f',"{key}":[\n' + ",\n".join(cj(r) for r in rows) + "\n]}\n"


def files():
    for make in (good_cases, form_cases, payload_cases, root_cases, link_cases, time_cases, rvk_cases, pop_cases):
        make()
    here = {"now": NOW, "realm": REALM, "trust": cj(TRUST), "list": jws(ISSUER, "writ-rvk+jwt", RVK)}
    good = {str(d): Chain(d).text() for d in (1, 2, 3)}
    lists = list_cases()
    out = {OUT / "chains.json": lines({**here, "good": good}, "cases", CASES),
           OUT / "actions.json": lines({"realm": REALM, "salt": NONCE}, "cases", actions()),
           OUT / "lists.json": lines({"now": NOW, "org": b64u(ORG.pub), "trust": cj(TRUST)}, "cases", lists)}
    seeds = {"token_jws": [good["1"].split("~")[0], lists[0]["text"], "..", "a.b.c"],
             "token_payload": [cj(ROOT), cj({**CHILD, "par_hash": b64u(bytes(32))}), cj(POP), "{}"],
             "token_chain": [*good.values(), "~", "~~~~~~~~~"],
             "token_rvk": [cj(RVK), cj({**RVK, "jti": [], "kid": [], "sid": []})], "token_trust": [cj(TRUST), cj({**TRUST, "issuers": []})]}
    for name, texts in seeds.items():
        out.update({SEEDS / name / f"{i:02}": t for i, t in enumerate(texts)})
    return out


def main():
    made, bad = files(), 0
    for i, (path, text) in enumerate(made.items(), 1):
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            continue
        good = path.is_file() and path.read_bytes() == text.encode()
        bad += not good
        print(f"{'' if good else 'not '}ok {i} - {path.parent.name}/{path.name} is what vectors.py makes")
    if "--check" in sys.argv:
        print(f"1..{len(made)}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
