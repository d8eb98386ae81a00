"""writ_tokens.py - checks tokens: docs/protocol/tokens.md, step by step.

Reads:  a presentation, a trust bundle, lists of what was revoked
Writes: who issued it to whom, or the code and the place of the first failure
Next:   writ_check.py, "token"; tests/check/run.py

Written from that page and from no source code. What capabilities mean is the model of tests/oracle, which was written
from docs/capabilities.md in the same way.
"""
import re
import sys
from pathlib import Path

from writ_check import MAX_INT, Bad, b64u, canonical, cj, ed25519, from_b64u, need, sha, weak_point

WHOLE, PROOF = -2, 100
URN = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"
LEVELS = ("partial", "stricter", "exact")
GUARANTEES = ("fs.read fs.write fs.metadata net dns ipc proc.see proc.signal exec syscall res.memory res.cpu "
              "res.pids res.disk res.time res.output cred audit").split()
PRICES = {"n", "rate", "max-in", "max-out"}


def model():
    """The model of capabilities."""
    if "writ_oracle" not in sys.modules:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
    return __import__("writ_oracle")


def is_a(pattern):
    return lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None


def is_number(value):
    return type(value) is int


def is_digest(value):
    return is_a("[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")(value)


def is_jwk(value):
    return (isinstance(value, dict) and set(value) == {"crv", "kty", "x"} and is_digest(value["x"]) and
            (value["crv"], value["kty"]) == ("Ed25519", "OKP") and not weak_point(from_b64u(value["x"])))


def shape(value, members, optional=()):
    """@value is an object with exactly these members, each as its test says; its value."""
    need(isinstance(value, dict) and set(members) - set(optional) <= set(value) <= set(members), "E_SCHEMA")
    need(all(test(value[name]) for name, test in members.items() if name in value), "E_SCHEMA")
    return value


def listed(low, high, test, kind=""):
    """A test for lists of strings in strictly increasing order; of capabilities if @kind says which."""
    def check(value):
        need(isinstance(value, list) and len(value) >= low, "E_SCHEMA")
        need(len(value) <= high, "E_SIZE")
        need(all(test(v) for v in value), "E_CAP_SYNTAX" if kind else "E_SCHEMA")
        need(value == sorted(set(value)), "E_NONCANON")
        need(not kind or all(model().try_parse(kind, v) for v in value), "E_CAP_SYNTAX")
        return True
    return check


def is_map(keys, test):
    return lambda v: isinstance(v, dict) and all(k in keys and test(x) for k, x in v.items())

IS_ID = is_a("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
IS_NAME, IS_REALM = is_a("[!-~]{1,255}"), is_a("[a-z0-9][a-z0-9._-]{0,62}")
LIMITS = "command cpu disk down files idle memory output pids requests session up".split()
DETAILS = {"type": is_a("urn:writ:cap:1"), "caps": listed(1, 64, is_a(".*"), "g"), "not": listed(0, 64, is_a(".*"), "d"),
           "limits": is_map(LIMITS, lambda v: is_number(v) and v >= 1), "require": is_map(GUARANTEES, lambda v: v in LEVELS),
           "rt": is_a("([0-9a-f]{64})?")}
ONE = {"writ": lambda v: is_number(v) and v == 1, "iat": is_number}
TOKEN = {**ONE, "iss": IS_NAME, "jti": IS_ID, "nbf": is_number, "exp": is_number, "aud": listed(1, 16, IS_REALM), "sid": IS_ID,
         "sub": IS_NAME, "wf": IS_ID, "cnf": lambda v: shape(v, {"jwk": is_jwk}), "del_depth": is_number, "del_max_depth": is_number,
         "par_hash": is_digest, "rvk": is_number,
         "authorization_details": lambda v: isinstance(v, list) and len(v) == 1 and shape(v[0], DETAILS)}
POP = {**ONE, "acth": is_digest, "ath": is_digest, "aud": IS_REALM, "jti": IS_ID, "nonce": is_a("[A-Za-z0-9_-]{16,64}"), "sid": IS_ID}
ISSUER = {"iss": lambda v: IS_NAME(v) and not v.startswith(URN), "jwk": is_jwk, "realms": listed(1, 256, IS_REALM),
          "ceiling": listed(1, 64, is_a(".*"), "g"), "nbf": is_number, "exp": is_number}
TRUST = {**ONE, "ver": is_number, "exp": is_number, "issuers": lambda v: isinstance(v, list)}
REVOKED = {**ONE, "iss": IS_NAME, "seq": is_number, "exp": is_number, "jti": listed(0, MAX_INT, IS_ID),
           "kid": listed(0, MAX_INT, is_digest), "sid": listed(0, MAX_INT, IS_ID)}


def kid_of(jwk):
    return b64u(sha(cj(jwk).encode()))


def jws(text, most, typ, keys, unknown):
    """(payload, key), once that one of @keys which the header names has signed it."""
    need(len(text) <= most, "E_SIZE")
    part = text.split(".")
    raw = from_b64u(part[0], "E_FORMAT")
    head = re.fullmatch(rb'\{"alg":"([^"]*)","kid":"([^"]*)","typ":"([^"]*)"\}', raw)
    need(head and len(raw) <= 256, "E_FORMAT")
    need(head[3] == typ.encode(), "E_TYP")
    need(head[1] in (b"EdDSA", b"Ed25519"), "E_ALG")
    need(len(part) == 3 and all(part) and is_digest(head[2].decode("latin-1")), "E_FORMAT")
    payload, signature = from_b64u(part[1], "E_FORMAT"), from_b64u(part[2], "E_FORMAT")
    need(len(signature) == 64, "E_FORMAT")
    found = [k for k in keys if kid_of(k) == head[2].decode()]
    need(found, unknown)
    need(ed25519(from_b64u(found[0]["x"]), signature, f"{part[0]}.{part[1]}".encode()), "E_SIG")
    return payload, found[0]


def trust(payload, org=None):
    """A trust bundle."""
    value, keys = shape(canonical(payload, "E_NONCANON"), TRUST), [org]
    need(len(value["issuers"]) <= 64, "E_SIZE")
    for i in value["issuers"]:
        shape(i, ISSUER)
        need(not any(PRICES & set(model().parse("g", c).params) for c in i["ceiling"]) and i["jwk"] not in keys, "E_SCHEMA")
        keys.append(i["jwk"])
    return value


def signed_trust(text, org, seen, now):
    value = trust(jws(text, 1 << 18, "writ-trust+jwt", [org], "E_ROOT")[0], org)
    need(value["ver"] >= seen, "E_REPLAY")
    need(value["iat"] <= now + 30 and now < value["exp"], "E_TIME")
    return value


def signed_list(text, bundle_, seen=0):
    payload, key = jws(text, 1 << 16, "writ-rvk+jwt", [i["jwk"] for i in bundle_["issuers"]], "E_ROOT")
    value = shape(canonical(payload, "E_NONCANON"), REVOKED)
    need(any((i["iss"], i["jwk"]) == (value["iss"], key) for i in bundle_["issuers"]), "E_ROOT")
    need(value["seq"] >= seen, "E_REPLAY")
    return value


def within(caps, others):
    parse = model().parse
    return all(any(model().within(parse("g", c), parse("g", o)) for o in others) for c in caps)


def token(text, keys, unknown):
    """Steps 2 and 3: (claims, key that signed)."""
    payload, key = jws(text, 8192, "writ-cap+jwt", keys, unknown)
    t = shape(canonical(payload, "E_NONCANON"), TOKEN, ["par_hash"])
    need(t["exp"] > max(t["iat"], t["nbf"]), "E_TIME")
    need(t["del_depth"] <= t["del_max_depth"] <= 7, "E_DEPTH")
    return t, key


def first(t, issuer, now):
    """Step 4."""
    need("par_hash" not in t, "E_ROOT")
    need(t["del_depth"] == 0, "E_DEPTH")
    need(t["exp"] - min(t["iat"], t["nbf"]) <= 28800, "E_TIME")
    need(t["iss"] == issuer["iss"] and issuer["nbf"] <= now < issuer["exp"] and set(t["aud"]) <= set(issuer["realms"]), "E_ROOT")
    need(issuer["ceiling"] is None or within(t["authorization_details"][0]["caps"], issuer["ceiling"]), "E_CEILING")


def link(t, old, text_before):
    """Step 5, for one link."""
    a, b = t["authorization_details"][0], old["authorization_details"][0]
    need(t["iss"] == URN + kid_of(old["cnf"]["jwk"]), "E_LINK_ISS")
    need(t.get("par_hash") == b64u(sha(text_before.rpartition(".")[0].encode())), "E_LINK_HASH")
    need(t["del_depth"] == old["del_depth"] + 1 and t["del_max_depth"] <= old["del_max_depth"], "E_DEPTH")
    need(t["iat"] >= old["iat"] and t["nbf"] >= old["nbf"] and t["exp"] <= old["exp"], "E_TIME")
    need(set(t["aud"]) <= set(old["aud"]), "E_AUD")
    need((t["sub"], t["wf"]) == (old["sub"], old["wf"]), "E_SUB")
    need(t["rvk"] <= old["rvk"] and b["rt"] in ("", a["rt"]) and within(a["caps"], b["caps"]), "E_WIDEN")
    need(all(a["limits"].get(k, MAX_INT + 1) <= v for k, v in b["limits"].items()), "E_WIDEN")
    need(all(k in a["require"] and LEVELS.index(a["require"][k]) >= LEVELS.index(v) for k, v in b["require"].items()), "E_WIDEN")


def revoked(chain, issuer, lists, now, local):
    """Step 7."""
    mine = [r for r in lists if r["iss"] == issuer["iss"]]
    for hop, t in enumerate(chain):
        names = {"jti": t["jti"], "kid": kid_of(t["cnf"]["jwk"]), "sid": t["sid"]}
        need(not any(v in r[k] for r in mine for k, v in names.items()), "E_REVOKED", hop)
    oldest = min(t["rvk"] for t in chain)
    fresh = any(r["iat"] <= now + 30 and now < r["exp"] and now - r["iat"] <= oldest for r in mine)
    need(local or fresh, "E_RVK_STALE", WHOLE)


def presentation(text, bundle_, lists, here, now, local=False, proved=True):
    """(issuer, tokens, proof) if steps 1 to 8 hold; Bad(code, hop) of the first that does not.

    Without @proved, @text is what a holder keeps: tokens only. A machine's own issuer has None for a ceiling.
    """
    need(len(text) <= 32768 and text.count("~") <= (8 if proved else 7), "E_SIZE", WHOLE)
    *texts, last = text.split("~") if proved else (text + "~").split("~")
    need(texts, "E_FORMAT", WHOLE)
    chain, keys, pop, hop = [], [i["jwk"] for i in bundle_["issuers"]], None, 0
    try:
        for hop, one in enumerate(texts):
            t, key = token(one, [chain[-1]["cnf"]["jwk"]] if chain else keys, "E_LINK_ISS" if chain else "E_ROOT")
            issuer = issuer if chain else next(i for i in bundle_["issuers"] if i["jwk"] == key)
            chain.append(t)
        hop = 0
        first(chain[0], issuer, now)
        for hop, t in enumerate(chain):
            if hop:
                link(t, chain[hop - 1], texts[hop - 1])
            need(t["cnf"]["jwk"] not in keys + [o["cnf"]["jwk"] for o in chain[:hop]], "E_LINK_ISS")
            need(t["jti"] not in [o["jti"] for o in chain[:hop]], "E_REPLAY")
        need(here in chain[-1]["aud"], "E_AUD")
        for hop, t in enumerate(chain):
            need(t["nbf"] <= now < t["exp"] and t["iat"] <= now + 30, "E_TIME")
        revoked(chain, issuer, lists, now, local)
        if not proved:
            return issuer, chain, pop
        hop = PROOF
        pop = shape(canonical(jws(last, 4096, "writ-pop+jwt", [chain[-1]["cnf"]["jwk"]], "E_POP")[0], "E_NONCANON"), POP)
        need((pop["ath"], pop["aud"], pop["sid"]) == (b64u(sha(texts[-1].encode())), here, chain[-1]["sid"]), "E_POP")
        need(abs(pop["iat"] - now) <= 30, "E_POP")
    except Bad as e:
        raise Bad(e.code, hop if e.where is None else e.where) from None
    return issuer, chain, pop
