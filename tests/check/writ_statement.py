"""writ_statement.py - checks what is signed about a session: docs/protocol/attestation.md.

Reads:  the files of `writ attest show --out`, keys for statements, a policy of logs
Writes: what the manifest says, if all of it holds
Next:   writ_verdict.py draws the verdict; writ_check.py, "statement"; tests/check/run.py

Written from that page and from no source code.
"""
import copy
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from writ_check import Bad, Key, Policy, b64u, canonical, cj, entry, from_b64, from_b64u, need, proof, session, sha


def public_keys(pem):
    """{key id: key} of the P-256 keys of a PEM file."""
    keys = {}
    for block in re.findall(rb"-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----", pem):
        key = serialization.load_pem_public_key(block)
        need(isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1), "key")
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        keys[sha(der).hex()] = key
    return keys


def closed(value, *names):
    need(isinstance(value, dict) and set(value) == set(names), "bundle")
    return [value[n] for n in names]


def signed_payload(data, keys):
    """The payload of a bundle that one of @keys has signed."""
    kind = "application/vnd.in-toto+json"
    envelope, media, material = closed(canonical(data, "bundle"), "dsseEnvelope", "mediaType", "verificationMaterial")
    payload, payload_type, signatures = closed(envelope, "payload", "payloadType", "signatures")
    need(isinstance(signatures, list) and len(signatures) == 1, "bundle")
    (keyid, sig), ((hint,),) = closed(signatures[0], "keyid", "sig"), (closed(closed(material, "publicKey")[0], "hint"),)
    need((media, payload_type) == ("application/vnd.dev.sigstore.bundle.v0.3+json", kind) and keyid == "", "bundle")
    need(all(isinstance(v, str) for v in (payload, sig, hint)) and re.fullmatch("[0-9a-f]{64}", hint), "bundle")
    payload, sig = from_b64(payload, "bundle"), from_b64(sig, "bundle")
    need(hint in keys, "signer not pinned")
    try:
        keys[hint].verify(sig, b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload), ec.ECDSA(SHA256()))
    except InvalidSignature:
        raise Bad("bad signature") from None
    return payload


def changes(folder, origin):
    """[(index, old key, new key)] of the changes of the log's key that came along."""
    links = []
    while (path := folder / f"rotated-{len(links) + 1}.tlog-proof").exists():
        data = path.read_bytes()
        extra = re.match(rb"c2sp\.org/tlog-proof@v1\nextra ([^\n]*)\n", data)
        need(extra and len(links) < 64, "rotated")
        value = entry(from_b64(extra[1].decode("latin-1"), "rotated"), False)[0]
        need((value["event"], value.get("role")) == ("key.rotate", "log"), "rotated")
        need(all(isinstance(value.get(k), str) for k in ("old", "new")), "rotated")
        for vkey in (value["old"], value["new"]):
            try:
                index, head, _ = proof(data, None, Policy(f"log {vkey}\nquorum none\n".encode()))
            except Bad:
                raise Bad("rotated") from None
            need(head[0] == origin and index + 1 == head[1], "rotated")
        old, new = Key(value["old"]), Key(value["new"])
        need(not links or (links[-1][0] < index and links[-1][2].pub == old.pub), "rotated")
        links.append((index, old, new))
    return links


def in_force(policy, links, size):
    """@policy with the keys of the log that count at @size."""
    if not links:
        return policy
    chain, now = [links[0][1]] + [new for _, _, new in links], links[0][1]
    for index, _, new in links:
        now = new if index < size else now
    place = [(c.name, c.pub) for c in chain]
    mine = [k for k in policy.logs if (k.name, k.pub) in place]
    before = [k for k in mine if place.index((k.name, k.pub)) < place.index((now.name, now.pub))]
    strange = [k for k in policy.logs if k not in mine and k.name == now.name]
    out = copy.copy(policy)
    out.logs = [k for k in policy.logs if k not in mine or k.pub == now.pub]
    if before and not strange and all(k.pub != now.pub for k in mine):
        out.logs.append(now)
    return out


def both_proofs(files, folder, policy):
    """Step 2: what is in both proofs, by the keys that count for their checkpoint."""
    m = re.search(rb"\n\n([^\n]+)\n([0-9]{1,19})\n", files["end.tlog-proof"])
    need(m, "malformed")
    now = in_force(policy, changes(folder, m[1].decode("latin-1")), int(m[2]))
    try:
        return [proof(files[f"{n}.tlog-proof"], None, now) for n in ("start", "end")]
    except Bad as e:
        if e.code != "unknown log":
            raise
    for n in ("start", "end"):
        proof(files[f"{n}.tlog-proof"], None, policy)
    raise Bad("key given up")


def statement(folder, keys, policy):
    """What holds of a session; steps 1 to 7 of "Checking". Step 4 needs to know whose the keys are."""
    files = {n: (folder / n).read_bytes() for n in ("session.sigstore.json", "start.tlog-proof", "end.tlog-proof",
                                                    "entries.jsonl", "session.json")}
    payload = signed_payload(files["session.sigstore.json"], keys)
    (i, head, first), (j, last_head, last) = both_proofs(files, folder, policy)
    start, end = entry(first, False)[0], entry(last, False)[0]
    origin, size, tree = head
    notes = {files[f"{n}.tlog-proof"].partition(b"\n\n")[2] for n in ("start", "end")}
    need(head == last_head and len(notes) == 1 and origin.startswith("writ/log/") and i < j, "proofs")
    need((start["event"], end["event"]) == ("session.start", "session.end"), "proofs")
    word = re.compile("[A-Za-z0-9][A-Za-z0-9.-]{0,63}").fullmatch
    need(all(isinstance(start.get(k), str) and word(start[k]) for k in ("session", "tier", "adapter", "version")), "session.start")
    need(start["session"] == end.get("session") and start.get("custody") in ("same-uid", "other-uid"), "session.start")
    need(all(len(from_b64u(x, "digest")) == 32 for x in (start.get("policy"), start.get("plan"), end.get("root"))), "digest")
    need(type(end.get("exit")) is int and type(end.get("entries")) is int, "session.end")
    lines = files["entries.jsonl"].split(b"\n")
    values, root, ended, rest = session(files["entries.jsonl"])
    need(ended and not rest and all(entry(line)[1] == line for line in lines[:-1]), "entries")
    need((len(values), b64u(root)) == (end["entries"], end["root"]), "entries")
    need(values[0].get("session") == start["session"] and cj(values[-1].get("exit")) == cj(end["exit"]), "entries")
    both = {"session": start["session"], "realm": origin[9:], "started": start["time"], "finished": end["time"], "exit": end["exit"]}
    programs = {"executable": v["executable"] for v in reversed(values) if isinstance(v.get("executable"), str) and v["executable"]}
    manifest = {**both, "v": 1, "custody": start["custody"], "policy": start["policy"], "guarantees": start["plan"],
                "tier": start["tier"], "adapter": start["adapter"], "writ": start["version"], "entries": end["entries"],
                "root": end["root"], **programs}
    predicate = canonical(payload, "statement").get("predicate", {})
    words = [predicate.get(k) for k in ("assumptions", "notCovered")]
    need(all(isinstance(x, list) and len(x) <= 16 and all(isinstance(v, str) and word(v) for v in x) for x in words), "statement")
    said = {"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://writ.dev/attestation/agent-session/v0.1",
            "subject": [{"digest": {"sha256": sha(files[n]).hex()}, "name": n} for n in ("session.json", "entries.jsonl")],
            "predicate": {"schema": 1, "session": {"id" if k == "session" else k: v for k, v in both.items()},
                          "evidence": {"entries": end["entries"], "root": end["root"]}, "custody": start["custody"],
                          "log": {"origin": origin, "size": size, "root": b64u(tree), "start": i, "end": j},
                          "assumptions": words[0], "notCovered": words[1]}}
    need(cj(said).encode() == payload, "statement")
    need(cj(manifest).encode() == files["session.json"], "session.json")
    return manifest
