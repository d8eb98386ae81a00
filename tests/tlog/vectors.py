#!/usr/bin/env python3
"""vectors.py - tests/vectors/tlog/: trees, notes and proofs, made without the C code.

    tests/tlog/vectors.py           write them
    tests/tlog/vectors.py --check   compare with what is there; TAP

Hashes are Python's own; signatures are RFC 8032 written out below, slow and plain.
Trees follow the recursive definitions of RFC 6962 section 2.1, word for word, where
the C code has loops. Secret keys are the hash of "writ-test-vector-v1/NAME".
"""
import base64
import hashlib
import sys
from functools import lru_cache
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "vectors/tlog"

# The eight entries that the reference tree of Certificate Transparency is tested with, and its roots.
CT_ENTRIES = [bytes.fromhex(h) for h in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
    "606162636465666768696a6b6c6d6e6f")]
CT_ROOTS = """
6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d
fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125
aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77
d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7
4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4
76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef
ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c
5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328
""".split()


def sha(data):
    return hashlib.sha256(data).digest()


def b64(data):
    return base64.b64encode(data).decode()


class Tree:
    """MTH, PATH and SUBPROOF of RFC 6962 over entries given by their index."""

    def __init__(self, entry):
        self.mth = lru_cache(None)(self.mth)
        self.entry = entry

    def mth(self, start, end):
        n = end - start
        if n == 0:
            return sha(b"")
        if n == 1:
            return sha(b"\0" + self.entry(start))
        k = self.split(n)
        return sha(b"\1" + self.mth(start, start + k) + self.mth(start + k, end))

    @staticmethod
    def split(n):
        k = 1
        while 2 * k < n:
            k *= 2
        return k

    def path(self, m, start, end):
        if end - start == 1:
            return []
        k = self.split(end - start)
        if m < k:
            return self.path(m, start, start + k) + [self.mth(start + k, end)]
        return self.path(m - k, start + k, end) + [self.mth(start, start + k)]

    def subproof(self, m, start, end, known):
        n = end - start
        if m == n:
            return [] if known else [self.mth(start, end)]
        k = self.split(n)
        if m <= k:
            return self.subproof(m, start, start + k, known) + [self.mth(start + k, end)]
        return self.subproof(m - k, start + k, end, False) + [self.mth(start, start + k)]

    def consistency(self, m, n):
        return self.subproof(m, 0, n, True) if m else []


# Ed25519, from the definitions of RFC 8032 in affine-free coordinates.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def point_add(a, b):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = a, b
    e, f = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
    g, h = 2 * t1 * t2 * D, 2 * z1 * z2
    p, q, r, s = f - e, h - g, h + g, f + e
    return p * q % P, r * s % P, q * r % P, p * s % P


def point_mul(n, a):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = point_add(out, a)
        a, n = point_add(a, a), n >> 1
    return out


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


def compress(a):
    z = pow(a[2], P - 2, P)
    return (a[1] * z % P | (a[0] * z % P & 1) << 255).to_bytes(32, "little")


def little(data):
    return int.from_bytes(data, "little")


class Key:
    """A key of a note: type 1 signs the text, type 4 a time and the text."""

    def __init__(self, name, kind):
        wide = hashlib.sha512(sha(b"writ-test-vector-v1/" + name.encode())).digest()
        self.scalar = little(wide[:32]) & (1 << 254) - 8 | 1 << 254
        self.prefix, self.name = wide[32:], name
        self.pub = compress(point_mul(self.scalar, base_point()))
        self.data = bytes([kind]) + self.pub
        self.id = sha(name.encode() + b"\n" + self.data)[:4]

    def vkey(self):
        return f"{self.name}+{self.id.hex()}+{b64(self.data)}"

    def sign(self, message):
        r = little(hashlib.sha512(self.prefix + message).digest()) % L
        point = compress(point_mul(r, base_point()))
        h = little(hashlib.sha512(point + self.pub + message).digest()) % L
        return point + ((r + h * self.scalar) % L).to_bytes(32, "little")

    def line(self, text, time=None):
        if time is None:
            sig = self.sign(text.encode())
        else:
            sig = time.to_bytes(8, "big") + self.sign(f"cosignature/v1\ntime {time}\n{text}".encode())
        return f"— {self.name} {b64(self.id + sig)}\n"


def tree_text():
    out = ["# leaf ENTRY HASH, root SIZE HASH, inclusion INDEX SIZE HASH..., consistency OLD SIZE HASH...",
           "# Made by tests/tlog/vectors.py; do not edit."]
    t = Tree(CT_ENTRIES.__getitem__)
    assert [t.mth(0, n).hex() for n in range(1, 9)] == CT_ROOTS
    out += [f"leaf {e.hex() or '-'} {t.mth(i, i + 1).hex()}" for i, e in enumerate(CT_ENTRIES)]
    out += proofs(t, range(9), lambda n: range(n), lambda n: range(n + 1))
    return "\n".join(out) + "\n"


def large_text():
    """Around the size where a third level of tiles begins; entry i is i in decimal."""
    out = ["# As tree.txt, for the log whose entry i is i in decimal. Made by tests/tlog/vectors.py; do not edit."]
    t = Tree(lambda i: str(i).encode())
    out += proofs(t, [*range(255, 258), *range(65535, 65541)],
                  lambda n: sorted(i for i in {0, 1, 255, n // 2, n - 2, n - 1} if i < n),
                  lambda n: sorted(m for m in {1, 2, 3, 255, 256, n // 2, n - 1} if m < n))
    return "\n".join(out) + "\n"


def proofs(t, sizes, indexes, olds):
    for n in sizes:
        yield f"root {n} {t.mth(0, n).hex()}"
        for i in indexes(n):
            yield " ".join(["inclusion", str(i), str(n)] + [h.hex() for h in t.path(i, 0, n)])
        for m in olds(n):
            yield " ".join(["consistency", str(m), str(n)] + [h.hex() for h in t.consistency(m, n)])


ENTRIES = ["{\"i\":%d,\"t\":\"session.%s\",\"v\":1}" % (i, t)
           for i, t in enumerate(["start", "grant", "deny", "deny", "end"])]


def note_files():
    log, wits = Key("writ.example/log/l-test", 1), [Key(f"writ.example/witness/{c}", 4) for c in "abc"]
    tree = Tree(lambda i: ENTRIES[i].encode())

    def note(n, cosigners):
        text = f"{log.name}\n{n}\n{b64(tree.mth(0, n))}\n"
        lines = [log.line(text)] + [w.line(text, 1794745401 + i) for i, w in cosigners]
        return text + "\n" + "".join(lines)
    path = "".join(b64(h) + "\n" for h in tree.path(2, 0, 5))
    signed = note(5, list(enumerate(wits))[:2])
    yield "entries", "".join(e + "\n" for e in ENTRIES)
    yield "vkeys", "".join(k.vkey() + "\n" for k in [log, *wits])
    yield "checkpoint", note(5, [])
    yield "checkpoint.cosigned", signed
    yield "entry2.tlog-proof", f"c2sp.org/tlog-proof@v1\nindex 2\n{path}\n{signed}"
    yield "entry2-extra.tlog-proof", ("c2sp.org/tlog-proof@v1\n"
                                      f"extra {b64(ENTRIES[2].encode())}\nindex 2\n{path}\n{signed}")
    yield "add-checkpoint", ("old 3\n" + "".join(b64(h) + "\n" for h in tree.consistency(3, 5)) +
                             "\n" + note(5, []))
    yield "policy", (f"log {log.vkey()}\n" +
                     "".join(f"witness {c} {w.vkey()}\n" for c, w in zip("abc", wits)) +
                     "group two 2 a b c\nquorum two\n")


def files():
    return {"tree.txt": tree_text(), "large.txt": large_text(), **dict(note_files())}


def main():
    made, bad = files(), 0
    if "--check" not in sys.argv:
        OUT.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (OUT / name).write_bytes(text.encode())
        return 0
    for i, (name, text) in enumerate(made.items(), 1):
        good = (OUT / name).is_file() and (OUT / name).read_bytes() == text.encode()
        bad += not good
        print(f"{'' if good else 'not '}ok {i} - {name} is what vectors.py makes")
    print(f"1..{len(made)}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
