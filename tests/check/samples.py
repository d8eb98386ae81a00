"""samples.py - what is shown to other verifiers: vectors, and what a built writ leaves behind.

Reads:  tests/vectors, a built writ
Writes: below a folder of its caller
Next:   run.py (our second verifier), peers.py (verifiers of others)
"""
import base64
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
LONG = bool(os.environ.get("WRIT_TEST_LONG"))
PREDICATE = "https://writ.dev/attestation/agent-session/v0.1"
sys.path.insert(0, str(HERE))


def missing(module):
    return importlib.util.find_spec(module) is None


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tap:
    def __init__(self):
        self.n, self.bad = 0, 0

    def skip(self, why):
        self.n += 1
        print(f"ok {self.n} # SKIP {why}", flush=True)

    def ok(self, good, name):
        self.n, self.bad = self.n + 1, self.bad + (not good)
        print(f"{'' if good else 'not '}ok {self.n} - {name}", flush=True)


def raw(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# ---- tokens and notes of the vectors --------------------------------------------------------------

@lru_cache
def jws_texts():
    """Every signed text of the longest chain, with the key that must have signed it."""
    doc, out = json.loads((TESTS / "vectors/token/chains.json").read_text()), []
    jwk = json.loads(doc["trust"])["issuers"][0]["jwk"]
    for text in doc["good"]["3"].split("~"):
        out.append((text, jwk))
        jwk = json.loads(raw(text.split(".")[1])).get("cnf", {}).get("jwk")
    return out


def with_keys(text, jwk):
    """The parts of a chain, each with the key that must have signed it."""
    for part in text.split("~"):
        yield part, jwk
        jwk = json.loads(raw(part.split(".")[1]))["cnf"]["jwk"]


def jws_messages():
    """(what, key, signature, message)"""
    for i, (text, jwk) in enumerate(jws_texts()):
        signing, sig = text.rsplit(".", 1)
        yield f"signed text {i}", raw(jwk["x"]), raw(sig), signing.encode()


def note_messages():
    """The same of a checkpoint and its cosignatures."""
    text, tail = (TESTS / "vectors/tlog/checkpoint.cosigned").read_text().split("\n\n")
    keys = {k.split("+")[0]: base64.b64decode(k.split("+", 2)[2]) for k in (TESTS / "vectors/tlog/vkeys").read_text().split()}
    for line in tail.splitlines():
        _, name, sig = line.split(" ")
        sig, key = base64.b64decode(sig)[4:], keys[name]
        head = b"" if key[0] == 1 else b"cosignature/v1\ntime %d\n" % int.from_bytes(sig[:8], "big")
        yield f"{'checkpoint' if key[0] == 1 else 'cosignature'} of {name}", key[1:], sig[-64:], head + text.encode() + b"\n"


def proofs(folder=None):
    """(name, proof, entry, vkeys of all who signed)"""
    vec = TESTS / "vectors/tlog"
    keys, entry = (vec / "vkeys").read_text().split()[:3], (vec / "entries").read_bytes().split(b"\n")[2]
    for name in ("entry2.tlog-proof", "entry2-extra.tlog-proof"):
        yield name, (vec / name).read_bytes(), entry, keys
    for name in ("start", "end") if folder else ():
        proof = (folder / f"{name}.tlog-proof").read_bytes()
        extra = [l for l in proof.split(b"\n") if l.startswith(b"extra ")]
        yield f"{name} of a session", proof, base64.b64decode(extra[0][6:]), (folder / "log.vkey").read_text().split()


# ---- statements -----------------------------------------------------------------------------------

class Bundle:
    """The files that `writ attest show --out DIR` writes."""

    def __init__(self, name, folder):
        self.name, self.manifest = name, (folder / "session.json").read_bytes()
        self.json = json.loads((folder / "session.sigstore.json").read_text())
        self.pem = (folder / "attest.pub.pem").read_bytes()

    def payload(self):
        return base64.b64decode(self.json["dsseEnvelope"]["payload"])

    def signature(self):
        return base64.b64decode(self.json["dsseEnvelope"]["signatures"][0]["sig"])

    def hint(self):
        return self.json["verificationMaterial"]["publicKey"]["hint"]


def pem_and_key():
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    der, pem = (key.public_key().public_bytes(e, s.PublicFormat.SubjectPublicKeyInfo) for e in (s.Encoding.DER, s.Encoding.PEM))
    return pem, hashlib.sha256(der).hexdigest(), key


@lru_cache
def other_pem():
    return pem_and_key()[0]


def made_bundle():
    """A bundle in the form of ours that Python made: it shows that the tools are asked as they must be."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    b, kind = Bundle.__new__(Bundle), "application/vnd.in-toto+json"
    b.name, b.manifest, (b.pem, hint, key) = "a sample", b'{"sample":1}', pem_and_key()
    payload = json.dumps({"_type": "https://in-toto.io/Statement/v1", "predicateType": PREDICATE, "predicate": {"a": 1}, "subject": [
        {"name": "session.json", "digest": {"sha256": hashlib.sha256(b.manifest).hexdigest()}}]}).encode()
    signature = key.sign(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload), ec.ECDSA(hashes.SHA256()))
    b.json = {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": {"publicKey": {"hint": hint}},
              "dsseEnvelope": {"payload": base64.b64encode(payload).decode(), "payloadType": kind,
                               "signatures": [{"keyid": "", "sig": base64.b64encode(signature).decode()}]}}
    return b


def environment(work):
    spot, home = work / "spot", work / "home"
    for folder in (spot, home):
        folder.mkdir(exist_ok=True)
    return spot, {**os.environ, "XDG_STATE_HOME": str(work / "state"), "XDG_CONFIG_HOME": str(work / "config"), "HOME": str(home)}


def writ_run(writ, work, *args, apart=False):
    """@apart: what it says is not in what it prints."""
    spot, env = environment(work)
    return subprocess.run([writ, *args], cwd=spot, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE if apart else subprocess.STDOUT, text=True, errors="replace", timeout=120)


def minted(tap, writ, work):
    """(the issuer's entry of a bundle, a chain of two tokens); None, and said, where writ has no such verb."""
    if "token" not in writ_run(writ, work, "--help").stdout:
        tap.skip("this writ mints no tokens")
        return None
    (environment(work)[0] / "out/a").mkdir(parents=True)
    first = writ_run(writ, work, "token", "mint", "--allow", "write:./out/", "--allow", "read:.", apart=True)
    (work / "t0").write_text(first.stdout)
    second = writ_run(writ, work, "token", "attenuate", "--allow", "write:./out/a/", str(work / "t0"), apart=True)
    text, issuer = second.stdout.strip(), writ_run(writ, work, "token", "issuer", apart=True).stdout
    good = text.count("~") == 1 and issuer.startswith("{")
    tap.ok(good, f"writ token mint, attenuate, issuer {'' if good else first.stderr + second.stderr}")
    return ({**json.loads(issuer), "ceiling": None, "nbf": 0, "exp": 2**53 - 1}, text) if good else None


def attested(tap, writ, work):
    """The folder of a session's statement; None, and said, where writ has no such verb or cannot run."""
    if "attest" not in writ_run(writ, work, "--help").stdout:
        tap.skip("this writ makes no statements")
        return None
    out = work / "out"
    r = writ_run(writ, work, "run", "--attest-out", str(out), "--", "true")
    if r.returncode in (122, 125):
        tap.skip("writ run does not work here: " + r.stdout.splitlines()[0])
        return None
    tap.ok(r.returncode == 0 and (out / "session.sigstore.json").is_file(), f"writ run --attest-out: {r.stdout[-200:]}")
    return out
