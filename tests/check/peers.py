#!/usr/bin/env python3
"""peers.py - what writ signs, verified with tools of others, and refused by them once it is changed; TAP.

    tests/check/peers.py TLOG_TOOL WRIT

openssl, and what tools/peers-proof.sh has installed in build/peers-proof (or the folder that WRIT_PEERS names): PyJWT,
npm's jose and @sigstore/verify, cosign; Go's x/mod in make test-long. What is not there is skipped, with the reason.
ssh-keygen is not asked: nothing of ours is in its format.
"""
import base64
import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from samples import HERE, LONG, TESTS, Tap, load, missing

if missing("cryptography"):
    print("1..0 # SKIP the Python package cryptography is not installed")
    sys.exit(0)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: E402

import samples  # noqa: E402
import writ_check as w  # noqa: E402

PEERS = Path(os.environ.get("WRIT_PEERS", TESTS.parent / "build/peers-proof"))
TYPE = "application/vnd.in-toto+json"


def why_not(name):
    path = PEERS / "why-not" / name
    return path.read_text().strip() if path.is_file() else "tools/peers-proof.sh was not run"


def run(*cmd, **more):
    return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **more)


def flipped(data, at=None):
    at = len(data) // 2 if at is None else at
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def pem_of(raw):
    return Ed25519PublicKey.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def pae(payload, kind=TYPE):
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def expect(tap, rows, ask):
    """Each row is (what, arguments, whether it must be accepted)."""
    for what, args, good in rows:
        answer = ask(*args)
        tap.ok(answer.startswith("ok") == good, f"{what}: {'accepted' if good else 'refused'}" +
               ("" if answer.startswith("ok") == good else f", got {answer[:200]!r}"))


# ---- openssl --------------------------------------------------------------------------------------

def openssl(work, args, key, signature, message):
    for name, data in (("key", key), ("sig", signature), ("msg", message)):
        (work / name).write_bytes(data)
    r = run("openssl", *args(work))
    return "ok" if r.returncode == 0 else f"no {r.stdout}"


def ed25519_args(d):
    return ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", d / "key", "-sigfile", d / "sig", "-in", d / "msg"]


def ecdsa_args(d):
    return ["dgst", "-sha256", "-verify", d / "key", "-signature", d / "sig", d / "msg"]


def by_openssl(tap, work):
    rows = []
    for what, key, signature, message in [*samples.jws_messages(), *samples.note_messages()]:
        rows += [(f"openssl: {what}", (work, ed25519_args, pem_of(key), signature, message), True),
                 (f"openssl: {what}, a byte flipped", (work, ed25519_args, pem_of(key), signature, flipped(message)), False)]
    rows.append(("openssl: the signature flipped", (work, ed25519_args, pem_of(key), flipped(signature), message), False))
    expect(tap, rows, openssl)


def bundle_by_openssl(tap, work, b):
    sig, payload = b.signature(), b.payload()
    other = json.dumps({**json.loads(payload), "predicateType": "x"}).encode()
    expect(tap, [
        ("openssl: the statement of " + b.name, (work, ecdsa_args, b.pem, sig, pae(payload)), True),
        ("openssl: one byte of it flipped", (work, ecdsa_args, b.pem, sig, pae(flipped(payload))), False),
        ("openssl: another statement", (work, ecdsa_args, b.pem, sig, pae(other)), False),
        ("openssl: another payload type", (work, ecdsa_args, b.pem, sig, pae(payload, "text/plain")), False),
        ("openssl: without the envelope's encoding", (work, ecdsa_args, b.pem, sig, payload), False),
        ("openssl: another key", (work, ecdsa_args, samples.other_pem(), sig, pae(payload)), False)], openssl)


# ---- JOSE libraries -------------------------------------------------------------------------------

PYJWT = """
import json, sys, jwt
off = {"verify_" + c: False for c in ("aud", "exp", "nbf", "iat")}
for line in sys.stdin:
    q = json.loads(line)
    try:
        jwt.decode(q["text"], jwt.PyJWK(q["jwk"], algorithm="EdDSA").key, algorithms=["EdDSA"], options=off)
        print("ok", flush=True)
    except Exception as e:
        print("no", type(e).__name__, e, flush=True)
"""


class Asked:
    """A program that answers a line of JSON with a line."""

    def __init__(self, *cmd):
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.p.stdin.write(json.dumps(question) + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def end(self):
        self.p.stdin.close()
        self.p.wait(timeout=20)


def jose_rows(name, texts):
    """Signed texts as they are, and with each kind of change."""
    for i, (text, jwk) in enumerate(texts):
        head, payload, sig = text.split(".")
        none = w.b64u(b'{"alg":"none"}')
        yield f"{name}: signed text {i}", (text, jwk), True
        yield f"{name}: {i}, a byte of the payload flipped", (f"{head}.{payload[:40]}{'A' if payload[40] != 'A' else 'B'}{payload[41:]}.{sig}", jwk), False
        yield f"{name}: {i}, of another key", (text, texts[i - 1][1]), False
        yield f"{name}: {i}, without a signature", (f"{none}.{payload}.", jwk), False
    yield f"{name}: the header of another", (f"{texts[0][0].split('.')[0]}.{payload}.{sig}", jwk), False


def by_pyjwt(tap, texts):
    python = sys.executable if not missing("jwt") else PEERS / "venv/bin/python"
    if missing("jwt") and not (PEERS / "venv/done").is_file():
        tap.skip(f"PyJWT: {why_not('pyjwt')}")
        return
    peer = Asked(python, "-c", PYJWT)
    expect(tap, jose_rows("PyJWT", texts), lambda text, jwk: peer.ask(text=text, jwk=jwk))
    peer.end()


def node(tap, what):
    if not shutil.which("node") or not (PEERS / "node_modules/jose").is_dir():
        tap.skip(f"{what}: {why_not('npm')}")
        return None
    shutil.copy(HERE / "peers.mjs", PEERS / "peers.mjs")
    return Asked("node", PEERS / "peers.mjs")


def by_jose(tap, texts):
    peer = node(tap, "jose")
    if peer:
        expect(tap, jose_rows("jose", texts), lambda text, jwk: peer.ask(op="jws", text=text, jwk=jwk))
        peer.end()


# ---- statements -----------------------------------------------------------------------------------

def bundle_changes(b):
    """(what, bundle, key, subject, good)"""
    def changed(change):
        out = copy.deepcopy(b.json)
        change(out["dsseEnvelope"])
        return out
    b64 = lambda d: base64.b64encode(d).decode()  # noqa: E731
    payload, sig, manifest = b.payload(), b.signature(), b.manifest
    yield "as it is", b.json, b.pem, manifest, True
    yield "a byte of the statement flipped", changed(lambda e: e.update(payload=b64(flipped(payload)))), b.pem, manifest, False
    digest, other = (hashlib.sha256(m).hexdigest().encode() for m in (manifest, flipped(manifest)))
    yield "the subject's digest changed", changed(lambda e: e.update(payload=b64(payload.replace(digest, other)))), b.pem, flipped(manifest), False
    yield "a byte of the signature flipped", changed(lambda e: e["signatures"][0].update(sig=b64(flipped(sig)))), b.pem, manifest, False
    yield "a second signature", changed(lambda e: e["signatures"].append({**e["signatures"][0], "keyid": "00"})), b.pem, manifest, False
    yield "no signature", changed(lambda e: e["signatures"].clear()), b.pem, manifest, False
    yield "another type", changed(lambda e: e.update(payloadType="text/plain")), b.pem, manifest, False
    yield "another key", b.json, samples.other_pem(), manifest, False
    yield "a byte of the manifest flipped", b.json, b.pem, flipped(manifest), False
    yield "no manifest", b.json, b.pem, b"", False


def by_sigstore(tap, b):
    peer = node(tap, "@sigstore/verify")
    if not peer:
        return

    def ask(bundle, pem, manifest):
        answer = peer.ask(op="bundle", bundle=bundle, pem=pem.decode(), hint=b.hint())
        if not answer.startswith("ok"):
            return answer
        # It does not look at the subject: whoever uses it has to.
        statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
        digests = [s["digest"]["sha256"] for s in statement["subject"]]
        return "ok" if hashlib.sha256(manifest).hexdigest() in digests else "no subject of this digest"
    expect(tap, ((f"@sigstore/verify: {b.name}, {what}", args[:3], args[3]) for what, *args in bundle_changes(b)), ask)
    peer.end()


def by_cosign(tap, work, b):
    cosign = shutil.which("cosign", path=f"{PEERS / 'bin'}:{os.environ['PATH']}")
    if not cosign:
        tap.skip(f"cosign: {why_not('cosign')}")
        return

    kind = json.loads(b.payload())["predicateType"]

    def ask(bundle, pem, manifest, kind=kind):
        (work / "b.json").write_text(json.dumps(bundle))
        (work / "k.pem").write_bytes(pem)
        (work / "session.json").write_bytes(manifest)
        r = run(cosign, "verify-blob-attestation", "--key", work / "k.pem", "--bundle", work / "b.json", "--insecure-ignore-tlog",
                "--type", kind, work / "session.json",
                env={**os.environ, "HOME": str(work), "TUF_ROOT": str(work / "tuf")})
        return "ok" if r.returncode == 0 else f"no {r.stdout}"
    expect(tap, ((f"cosign: {b.name}, {what}", args[:3], args[3]) for what, *args in bundle_changes(b)), ask)
    expect(tap, [(f"cosign: {b.name}, another kind of statement", (b.json, b.pem, b.manifest, kind + "x"), False)], ask)


def by_page(tap, work, folder):
    """The lines of docs/protocol/checking.md that need nothing but openssl, as they stand there."""
    blocks = re.findall(r"```sh\n(.*?)```", (TESTS.parent / "docs/protocol/checking.md").read_text(), re.S)
    signed, digests, log = blocks[0], blocks[1], blocks[3]

    def ask(script, name="", change=flipped):
        here = work / "page"
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(folder, here)
        shutil.copy(here / "attest.pub.pem", here / "keys.pem")
        if name:
            (here / name).write_bytes(change((here / name).read_bytes()))
        r = run("sh", "-ec", script, cwd=here)
        found = set(re.findall("[0-9a-f]{64}", r.stdout))
        return "ok" if r.returncode == 0 and len(found) in (0, 2) else f"no {r.stdout}"
    keys = samples.other_pem()
    expect(tap, [("the page: the statement", (signed,), True), ("the page: another key", (signed, "keys.pem", lambda d: keys), False),
                 ("the page: the statement flipped", (signed, "session.sigstore.json", lambda d: flipped(d, d.index(b"payload") + 400)), False),
                 ("the page: the digests", (signed + digests,), True), ("the page: the manifest flipped", (signed + digests, "session.json"), False),
                 ("the page: an entry dropped", (signed + digests, "entries.jsonl", lambda d: d.split(b"\n", 1)[1]), False),
                 ("the page: two entries swapped", (signed + digests, "entries.jsonl", swap_lines), False),
                 ("the page: the log", (log,), True), ("the page: the log's size changed", (log, "end.tlog-proof", more_entries), False)], ask)


def swap_lines(data):
    rows = data.split(b"\n")
    return b"\n".join([rows[0], rows[2], rows[1], *rows[3:]])


def more_entries(proof):
    head, origin, size, rest = re.fullmatch(rb"(.*?\n\n)([^\n]+\n)([0-9]+)(\n.*)", proof, re.S).groups()
    return head + origin + b"%d" % (int(size) + 1) + rest


# ---- Go -------------------------------------------------------------------------------------------

def go_program(tap, work):
    interop = load("tlog_interop", TESTS / "tlog/interop.py")
    go, mod = interop.find_go()
    if not LONG or not mod:
        tap.skip("Go: only in make test-long" if mod else "Go: not here, or no golang.org/x/mod/sumdb beside it")
        return None
    interop.HERE = work / "go"
    (work / "go").mkdir()
    shutil.copy(HERE / "peers.go", work / "go/interop.go")
    made = interop.build(go, mod, work)
    tap.ok(made.returncode == 0, f"Go: the program is built {made.stdout[-200:]}")
    return work / "interop" if made.returncode == 0 else None


def by_go(tap, work, program, proofs):
    def ask(proof, entry, vkeys):
        (work / "proof").write_bytes(proof)
        (work / "entry").write_bytes(entry)
        return run(program, work / "proof", work / "entry", *vkeys).stdout.strip()
    for name, proof, entry, vkeys in proofs:
        lines = proof.split(b"\n")
        path = [i for i, l in enumerate(lines) if len(l) == 44][:-1]
        sigs = [i for i, l in enumerate(lines) if l.startswith("\u2014".encode())]
        rows = [("as it is", proof, entry, True), ("another entry", proof, flipped(entry), False)]
        start = proof.index(b"index ")  # nothing vouches for what is before it
        rows += [(f"byte {at} flipped", flipped(proof, at), entry, False) for at in range(start, len(proof) - 8, max(1, len(proof) // 12))]
        rows.append(("a signature removed", b"\n".join(lines[:sigs[-1]] + lines[sigs[-1] + 1:]), entry, False))
        if path:
            rows.append(("a hash dropped", b"\n".join(lines[:path[0]] + lines[path[0] + 1:]), entry, False))
        if len(path) > 1:
            lines[path[0]], lines[path[1]] = lines[path[1]], lines[path[0]]
            rows.append(("two hashes swapped", b"\n".join(lines), entry, False))
        expect(tap, ((f"Go: {name}, {what}", (p, e, vkeys), good) for what, p, e, good in rows), ask)


def main():
    writ = Path(sys.argv[2]).resolve()
    tap, work = Tap(), Path(tempfile.mkdtemp(prefix="writ-peers-"))
    try:
        if shutil.which("openssl"):
            by_openssl(tap, work)
        else:
            tap.skip("openssl: not installed")
        made = samples.minted(tap, writ, work)
        texts = samples.jws_texts() + (list(samples.with_keys(made[1], made[0]["jwk"])) if made else [])
        by_pyjwt(tap, texts)
        by_jose(tap, texts)
        folder = samples.attested(tap, writ, work)
        bundles = [samples.made_bundle()] + ([samples.Bundle("a session", folder)] if folder else [])
        for b in bundles:
            if shutil.which("openssl"):
                bundle_by_openssl(tap, work, b)
            by_sigstore(tap, b)
            by_cosign(tap, work, b)
        if folder and shutil.which("openssl"):
            by_page(tap, work, folder)
        program = go_program(tap, work)
        if program:
            by_go(tap, work, program, samples.proofs(folder))
    finally:
        subprocess.run(["chmod", "-R", "u+w", work], check=False)
        shutil.rmtree(work, ignore_errors=True)
    print(f"1..{tap.n}")
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
