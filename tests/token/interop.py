#!/usr/bin/env python3
"""interop.py - the good chains of tests/vectors/token, verified with libraries of others; TAP.

Each part by PyJWT, and by the bare Ed25519 of cryptography. What is not installed is skipped,
and says so.
"""
import base64
import importlib.util
import json
import sys
from pathlib import Path

VECTORS = Path(__file__).resolve().parent.parent / "vectors/token"
UNCHECKED = {f"verify_{claim}": False for claim in ("aud", "exp", "nbf", "iat")}


def raw(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def key_of(jwk):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    return Ed25519PublicKey.from_public_bytes(raw(jwk["x"]))


def by_cryptography(part, key):
    signing, signature = part.rsplit(".", 1)
    key.verify(raw(signature), signing.encode())
    return json.loads(raw(signing.split(".")[1]))


def by_jwt(part, key):
    import jwt
    return jwt.decode(part, key, algorithms=["EdDSA"], options=UNCHECKED)


def parts(doc):
    """Every part with the key that must have signed it."""
    for text in doc["good"].values():
        jwk = json.loads(doc["trust"])["issuers"][0]["jwk"]
        for part in text.split("~"):
            yield part, jwk
            jwk = json.loads(raw(part.split(".")[1])).get("cnf", {}).get("jwk")


def main():
    doc, count, bad = json.loads((VECTORS / "chains.json").read_text()), 0, 0
    there = {m: importlib.util.find_spec(m) is not None for m in ("cryptography", "jwt")}
    for module, verify in (("cryptography", by_cryptography), ("jwt", by_jwt)):
        if not (there["cryptography"] and there[module]):
            count += 1
            print(f"ok {count} # SKIP {module} is not installed")
            continue
        for part, jwk in parts(doc):
            count += 1
            try:
                print(f"ok {count} - {module}: {verify(part, key_of(jwk))['jti']}")
            except Exception as e:  # whatever class the library has for it
                bad += 1
                print(f"not ok {count} - {module}: {type(e).__name__} {e}")
    print(f"1..{count}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
