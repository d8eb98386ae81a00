#!/usr/bin/env python3
"""two_realms.py - authority that goes from one machine to another and back, and both logs. Speaks TAP.

Two state directories stand for two machines: A, whose agent plans, and B, where the work is done.
B mints for A's holder; A narrows it offline, for a holder of B; B runs it. An organisation has
told both whose tokens count. $WRIT is the program.
"""
import base64
import hashlib
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import tok  # noqa: E402
from tok import Realm, test  # noqa: E402

spec = importlib.util.spec_from_file_location("token_vectors", HERE / "vectors.py")
vectors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(vectors)
ORG, STRANGER = vectors.Key("org"), vectors.Key("stranger")


class Stolen(vectors.Key):
    """A holder's key that we have as bytes: what a dishonest machine could sign with."""

    def __init__(self, seed):
        wide, t = hashlib.sha512(seed).digest(), vectors.tlog
        self.scalar = t.little(wide[:32]) & (1 << 254) - 8 | 1 << 254
        self.prefix, self.name = wide[32:], "stolen"
        self.pub = t.compress(t.point_mul(self.scalar, t.base_point()))


def pem(key):
    spki = bytes.fromhex("302a300506032b6570032100") + key.pub
    return f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(spki).decode()}\n-----END PUBLIC KEY-----\n"


def bundle(version, *issuers, key=ORG, life=3600):
    now = int(time.time())
    return vectors.jws(key, "writ-trust+jwt", {"writ": 1, "ver": version, "iat": now, "exp": now + life, "issuers": [
        {**i, "ceiling": sorted(c), "nbf": now - 60, "exp": now + life} for i, c in issuers]})


class Two:
    def __init__(self, w):
        self.w, self.a, self.b = w, w.a, Realm(w.top, "b")
        (w.work / "srv/docs").mkdir(parents=True)
        (w.work / "srv/docs/x.md").write_text("x\n")
        (w.work / "srv/key").write_text("k\n")
        (w.work / "org.pem").write_text(pem(ORG))
        self.who = {n: json.loads(r.run("token", "issuer").text()) for n, r in (("a", self.a), ("b", self.b))}
        self.realm = self.who["b"]["realms"][0]
        # B may give out what lies below srv/, and nothing else, whatever it signs.
        self.ceiling = [f"{x}:{self.realm}:{w.work}/srv/**" for x in ("fs.read", "fs.write")] + [f"proc.exec:{self.realm}:/**"]

    def trust(self, realm, text, *more):
        (self.w.work / "bundle").write_text(text + "\n")
        return realm.run("token", "trust", "bundle", *more)

    def introduce(self):
        for r in (self.a, self.b):
            got = self.trust(r, bundle(3, (self.who["b"], self.ceiling)), "--org", "org.pem")
            self.w.ok(got.code == 0, "a bundle of the organisation is taken", got)

    def holder(self, realm, name):
        (self.w.work / name).write_text(realm.run("token", "holder").text() + "\n")
        return name

    def given(self):
        """What B gives A, and A narrows for a holder of B."""
        first = self.b.mint("write:./srv/", more=("--holder", self.holder(self.a, "a.pem"), "--depth", "1"))
        return first, self.a.narrow(first, "--allow", "read:./srv/docs/", "--for", "14m", "--holder", self.holder(self.b, "b.pem"))


@test
def there_and_back(w):
    two = Two(w)
    two.introduce()
    first, chain = two.given()
    got = two.b.use(first, "true")
    w.refused(got, "E_POP", "B cannot use what it gave away", 121)
    w.refused(two.a.use(first, "true"), "E_AUD", "nor A on its own machine", 121)
    got = two.b.use(chain, "sh", "-c", "cat srv/docs/x.md; cat srv/key; echo y > srv/docs/y")
    w.ok(got.out == "x\n" and not (w.work / "srv/docs/y").exists(), "B runs what A narrowed, and no more", got)
    w.ok("hop 2 of 2 of the chain dropped it" in got.err, "and names A's hop", got)
    w.refused(two.b.use(chain, "true"), "E_REPLAY", "once", 121)
    w.refused(two.b.run("token", "attenuate", give=chain), "E_DEPTH", "the worker derives nothing further")
    # The auditor has both logs and nothing else.
    out = {e["token"] for e in two.a.events("delegation.out")}
    came = {e["token"] for e in two.b.events("token.accept")}
    w.ok(tok.digest(chain.split("~")[1]) in out & came, "both logs have the digest of what went over")
    w.ok({e["token"] for e in two.b.events("token.issue")} == {tok.digest(first)}, "and B's of what it gave")


@test
def widening(w):
    two = Two(w)
    two.introduce()
    first, chain = two.given()
    narrow = ("token", "attenuate", "--holder", "b.pem")
    for rule in ("write:/etc/", "read:./", "net:example.com"):
        w.refused(two.a.run(*narrow, "--allow", rule, give=first), "E_WIDEN", rule)
    w.refused(two.a.run(*narrow, "--for", "2h", give=first), "E_TIME", "longer")
    w.refused(two.a.run(*narrow, "--depth", "2", give=first), "E_DEPTH", "deeper")
    got = two.b.run("token", "mint", "--allow", "write:./", "--holder", "a.pem").text()
    w.refused(two.a.run(*narrow, give=got), "E_CEILING", "the organisation's ceiling is B's as well")
    w.refused(two.b.run("token", "verify", give=got), "E_CEILING", "on B, too")
    # A dishonest A signs what its own writ would not: B alone decides.
    t0, t1 = chain.split("~")
    payload = json.loads(base64.urlsafe_b64decode(t1.split(".")[1] + "=="))
    keys = [p for p in (two.a.kept / "keys/holder").iterdir() if p.stem == json.loads(base64.urlsafe_b64decode(t1.split(".")[0] + "=="))["kid"]]
    seed = base64.b64decode("".join(keys[0].read_text().splitlines()[1:-1]))[-32:]
    for text, key, change, code in (("caps", "caps", [f"fs.read:{two.realm}:{w.work}/srv/**", f"fs.write:{two.realm}:/**"], "E_WIDEN"),
                                    ("time", "exp", payload["exp"] + 7200, "E_TIME"), ("depth", "del_max_depth", 3, "E_DEPTH"),
                                    ("realm", "aud", sorted([two.realm, "l-other"]), "E_AUD"), ("who answers", "sub", "root", "E_SUB"),
                                    ("another parent", "par_hash", tok.b64u(b"\0" * 32), "E_LINK_HASH")):
        forged = json.loads(json.dumps(payload))
        if key == "caps":
            forged["authorization_details"][0]["caps"] = sorted(change)
        else:
            forged[key] = change
        forged = vectors.jws(Stolen(seed), "writ-cap+jwt", forged)
        w.refused(two.b.use(f"{t0}~{forged}", "true"), code, f"forged {text}", 121)


@test
def whom_to_trust(w):
    two = Two(w)
    chain = two.b.mint("read:./srv/", more=("--holder", two.holder(two.a, "a.pem")))
    w.refused(two.a.run("token", "attenuate", give=chain), "E_ROOT", "nobody is trusted unasked")
    got = two.trust(two.a, bundle(3, (two.who["b"], two.ceiling), key=STRANGER), "--org", "org.pem")
    w.refused(got, "E_ROOT", "a bundle that somebody else signed")
    got = two.trust(two.a, bundle(3, (two.who["b"], two.ceiling)))
    w.ok(got.code and "--org" in got.err, "or of an organisation that nobody named", got)
    two.introduce()
    w.ok(two.a.run("token", "verify", give=chain).code == 0, "then it is known")
    w.refused(two.trust(two.a, bundle(2, (two.who["b"], two.ceiling))), "E_REPLAY", "an older version")
    (w.work / "other.pem").write_text(pem(STRANGER))
    got = two.trust(two.a, bundle(9, (two.who["b"], two.ceiling), key=STRANGER), "--org", "other.pem")
    w.ok(got.code == 125, "another organisation does not take over", got)
    w.ok(two.trust(two.a, bundle(4)).code == 0, "a newer one takes the issuer out")
    w.refused(two.a.run("token", "attenuate", give=chain), "E_ROOT", "and with it all it issued")


@test
def lists(w):
    """A runs what B issued for A's realm: only with a list of what B revoked that is not old."""
    two = Two(w)
    now = int(time.time())
    here = two.who["a"]["realms"][0]
    issuer = vectors.Key("central")
    who = {"iss": "urn:example:central", "jwk": issuer.jwk(), "realms": [here]}
    ceiling = [f"fs.read:{here}:/**", f"proc.exec:{here}:/**"]
    w.ok(two.trust(two.a, bundle(1, (who, ceiling)), "--org", "org.pem").code == 0, "an issuer that is no machine of ours")
    holder = two.a.run("token", "holder").text().splitlines()[1]
    token = {"writ": 1, "iss": who["iss"], "jti": vectors.uuid(1), "iat": now, "nbf": now, "exp": now + 600, "aud": [here], "sid": vectors.uuid(2),
             "sub": "alice", "wf": vectors.uuid(3), "del_depth": 0, "del_max_depth": 2, "rvk": 60,
             "cnf": {"jwk": {"crv": "Ed25519", "kty": "OKP", "x": tok.b64u(base64.b64decode(holder)[-32:])}},
             "authorization_details": [{"type": "urn:writ:cap:1", "caps": [f"fs.read:{here}:{w.work}/srv/docs/**", f"proc.exec:{here}:/**"],
                                        "not": [], "limits": {}, "require": {}, "rt": ""}]}
    chain = vectors.jws(issuer, "writ-cap+jwt", token)

    def revoked(seq, ids, age=0):
        return two.trust(two.a, vectors.jws(issuer, "writ-rvk+jwt", {"writ": 1, "iss": who["iss"], "seq": seq, "iat": now - age, "exp": now + 600,
                                                                     "jti": ids, "kid": [], "sid": []}))
    w.refused(two.a.use(chain, "true"), "E_RVK_STALE", "without a list", 121)
    w.ok(revoked(1, [], age=120).code == 0, "an old list is taken")
    w.refused(two.a.use(chain, "true"), "E_RVK_STALE", "and does not help", 121)
    w.ok(revoked(2, []).code == 0, "a new one is")
    got = two.a.use(chain, "sh", "-c", "cat srv/docs/x.md; cat srv/key")
    w.ok(got.out == "x\n" and "ceiling" not in got.err, "then it runs", got)
    w.refused(revoked(1, []), "E_REPLAY", "lists do not go back")
    w.ok(revoked(3, [token["jti"]]).code == 0, "it is revoked elsewhere")
    w.refused(two.a.run("token", "verify", give=chain), "E_REVOKED", "and here, too")


def running(realm, chain):
    p = realm.start("run", "-q", "--token", "-", "--", "sh", "-c", "echo up; sleep 60", stdin=subprocess.PIPE)
    p.stdin.write(chain.encode())
    p.stdin.close()
    p.stdin = None
    p.stdout.readline()
    return p


@test
def running_on(w):
    """A session goes on only as long as its issuer is trusted here, and heard of."""
    two = Two(w)
    here = two.who["a"]["realms"][0]
    issuer = vectors.Key("central")
    who = {"iss": "urn:example:central", "jwk": issuer.jwk(), "realms": [here]}
    ceiling = [f"fs.read:{here}:/**", f"proc.exec:{here}:/**"]
    two.trust(two.a, bundle(1, (who, ceiling)), "--org", "org.pem")

    def chain(n, life):
        """A token whose list may be @life seconds old."""
        now = int(time.time())
        holder = two.a.run("token", "holder").text().splitlines()[1]
        return vectors.jws(issuer, "writ-cap+jwt", {
            "writ": 1, "iss": who["iss"], "jti": vectors.uuid(10 + n), "iat": now, "nbf": now, "exp": now + 600, "aud": [here], "sid": vectors.uuid(20 + n),
            "sub": "alice", "wf": vectors.uuid(3), "del_depth": 0, "del_max_depth": 2, "rvk": life,
            "cnf": {"jwk": {"crv": "Ed25519", "kty": "OKP", "x": tok.b64u(base64.b64decode(holder)[-32:])}},
            "authorization_details": [{"type": "urn:writ:cap:1", "caps": [f"proc.exec:{here}:/**"], "not": [], "limits": {}, "require": {}, "rt": ""}]})

    def heard(seq, age=0, ids=()):
        now = int(time.time())
        return two.trust(two.a, vectors.jws(issuer, "writ-rvk+jwt", {"writ": 1, "iss": who["iss"], "seq": seq, "iat": now - age, "exp": now + 600,
                                                                     "jti": list(ids), "kid": [], "sid": []}))

    def ended(p, event, text):
        begin = time.monotonic()
        _, err = p.communicate(timeout=40)
        took = time.monotonic() - begin
        events = [json.loads(x)["event"] for f in (two.a.kept / "sessions").glob("*.jsonl") for x in f.read_text().splitlines()]
        w.ok(p.returncode == 143 and event in events, f"{text} ({took:.1f} s)", (p.returncode, err.decode(), events[-4:]))
        return took
    heard(1, age=56)
    p = running(two.a, chain(1, 60))
    w.ok(1 < ended(p, "token.stale", "the list gets too old, and the session ends") < 9, "then, and not before")
    heard(2, age=56)
    p = running(two.a, chain(2, 60))
    w.ok(heard(3).code == 0, "a newer list comes in time")
    time.sleep(5)
    w.ok(p.poll() is None, "and it goes on")
    w.ok(two.trust(two.a, bundle(2)).code == 0, "the issuer is taken out of the bundle")
    w.ok(ended(p, "token.untrusted", "and its session ends") < 3, "at once")
    two.trust(two.a, bundle(3, (who, ceiling)))
    heard(4)
    p = running(two.a, chain(3, 60))
    two.trust(two.a, bundle(4, (who, [f"fs.read:{here}:/**"])))
    w.ok(ended(p, "token.untrusted", "so it does when its issuer may give less") < 3, "at once")


@test
def as_written(w):
    """Links of this machine say nothing about those of another."""
    two = Two(w)
    two.introduce()
    (w.work / "srv/here").symlink_to(w.work / "srv/docs")
    first = two.b.mint("write:./srv/", more=("--holder", two.holder(two.a, "a.pem"), "--depth", "1"))
    got = two.a.narrow(first, "--allow", f"read:{w.work}/srv/here/", "--allow", f"read:{w.work}/srv/gone/x", "--holder", two.holder(two.b, "b.pem"))
    caps = json.loads(two.b.run("token", "inspect", "--json", give=got).out)["hops"][1]["caps"]
    w.ok(f"fs.read:{two.realm}:{w.work}/srv/here/**" in caps, "a link is its own name", caps)
    w.ok(f"fs.read:{two.realm}:{w.work}/srv/gone/x" in caps, "and nothing has to be there", caps)
    got = two.trust(two.a, bundle(2, (two.who["b"], two.ceiling)))
    w.ok(got.code == 1 and "get the newest" in got.err and "trust*" in got.err, "an older bundle says what to do", got)


if __name__ == "__main__":
    sys.exit(tok.main())
