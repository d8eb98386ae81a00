#!/usr/bin/env python3
"""vectors.py - tests/vectors/log/: entries, checkpoints, proofs and policies, one broken rule each.

    tests/check/vectors.py           write them
    tests/check/vectors.py --check   compare with what is there; TAP

Each case names what a reader must say of it. Nothing here uses the code under test or the other verifier; signatures are
those of tests/tlog/vectors.py. tests/check/run.py asks both.
"""
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "vectors/log"
spec = importlib.util.spec_from_file_location("tlog_vectors", HERE.parent / "tlog/vectors.py")
tlog = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tlog)

SALT, OTHER_SALT = "jQDp9noSXS9B48lKfv0GzQ", "AAECAwQFBgcICQoLDA0ODw"
DIGEST = "jQIi90he6eeRR_DmBAoDYpXZ6b93VgpxEJEsvhIFJMY"


def b64u(data):
    return tlog.base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def digest(salt, name, value):
    return b64u(hashlib.sha256(b64u(f'["{salt}","{name}",{value}]'.encode()).encode()).digest())


def entries():
    """(name, line, public form or None if it must be refused)"""
    end = '"event":"a","time":1}'
    hidden, second = digest(SALT, "o", '"x"'), digest(OTHER_SALT, "p", '{"a":false}')
    both, erased = sorted([hidden, second]), sorted([hidden, DIGEST])

    def same(text):
        return text, text
    yield "the smallest", *same('{' + end)
    yield "no private member", *same('{"a":"\\"\\\\/%41%zz","b":[1,true,false,{}],"c":9007199254740991,' + end)
    yield "one private member", f'{{"_salt":{{"o":"{SALT}"}},"event":"a","o":"x","time":1}}', f'{{"_sd":["{hidden}"],{end}'
    yield ("two private members", f'{{"_salt":{{"o":"{SALT}","p":"{OTHER_SALT}"}},"event":"a","o":"x","p":{{"a":false}},"time":1}}',
           f'{{"_sd":["{both[0]}","{both[1]}"],{end}')
    yield "one erased before", *same(f'{{"_sd":["{DIGEST}"],{end}')
    yield ("one erased before, one not", f'{{"_salt":{{"o":"{SALT}"}},"_sd":["{DIGEST}"],"event":"a","o":"x","time":1}}',
           f'{{"_sd":["{erased[0]}","{erased[1]}"],{end}')
    yield "every character of a name", *same('{"$.-Z_a9":1,' + end)
    yield "8 levels", *same('{"a":' + "[" * 7 + "]" * 7 + "," + end)
    yield "a public form of 16384 bytes", *same('{"a":"' + "x" * (16384 - 8 - len(end)) + '",' + end)
    for name, text in bad_entries(end, hidden):
        yield name, text, None


def bad_entries(end, hidden):
    yield "9 levels", '{"a":' + "[" * 8 + "]" * 8 + "," + end
    yield "a public form of 16385 bytes", '{"a":"' + "x" * (16385 - 8 - len(end)) + '",' + end
    for name, text in (("nothing", ""), ("a list", "[]"), ("a string", '"a"'), ("a number", "1"), ("an empty object", "{}"), ("null", "null")):
        yield name, text
    for name, text in (
            ("no event", '{"time":1}'), ("no time", '{"event":"a"}'), ("an event that is a number", '{"event":1,"time":1}'),
            ("a time that is a string", '{"event":"a","time":"1"}'), ("a time that is true", '{"event":"a","time":true}'),
            ("a blank before", " {" + end), ("a blank behind", "{" + end + " "), ("a blank inside", '{"event":"a", "time":1}'),
            ("a newline behind", "{" + end + "\n"), ("names in disorder", '{"time":1,"event":"a"}'), ("a name twice", '{"event":"a","event":"a","time":1}'),
            ("a fraction", '{"event":"a","time":1.0}'), ("an exponent", '{"event":"a","time":1e3}'), ("a negative number", '{"event":"a","time":-1}'),
            ("a negative zero", '{"event":"a","time":-0}'), ("a leading zero", '{"event":"a","time":01}'), ("2^53", '{"event":"a","time":9007199254740992}'),
            ("a member that is null", '{"a":null,' + end), ("no number", '{"a":NaN,' + end), ("an escape for a letter", '{"a":"\\u0061",' + end),
            ("an escape for a slash", '{"a":"\\/",' + end), ("an escape for a newline", '{"a":"\\n",' + end), ("byte 0x7f", '{"a":"\x7f",' + end),
            ("byte 0x1f", '{"a":"\x1f",' + end), ("UTF-8", '{"a":"\u00e4",' + end), ("an empty name", '{"":1,' + end), ("a blank in a name", '{"a b":1,' + end),
            ("a slash in a name", '{"a/b":1,' + end), ("bytes behind", "{" + end + "{}"), ("no end", '{"event":"a","time":1')):
        yield name, text
    for name, text in (
            ("no salts", '{"_salt":{},' + end), ("salts that are a string", f'{{"_salt":"{SALT}",' + end), ("a salt of nothing", f'{{"_salt":{{"q":"{SALT}"}},' + end),
            ("a short salt", f'{{"_salt":{{"o":"{SALT[:-1]}"}},"event":"a","o":1,"time":1}}'), ("a long salt", f'{{"_salt":{{"o":"{SALT}AA"}},"event":"a","o":1,"time":1}}'),
            ("a salt with unused bits", f'{{"_salt":{{"o":"{SALT[:-1]}R"}},"event":"a","o":1,"time":1}}'), ("a salt that is a number", '{"_salt":{"o":1},"event":"a","o":1,"time":1}'),
            ("a private event", f'{{"_salt":{{"event":"{SALT}"}},' + end), ("a private time", f'{{"_salt":{{"time":"{SALT}"}},' + end),
            ("private digests", f'{{"_salt":{{"_sd":"{SALT}"}},"_sd":["{DIGEST}"],' + end), ("private salts", f'{{"_salt":{{"_salt":"{SALT}"}},' + end),
            ("a private name in capitals", f'{{"O":1,"_salt":{{"O":"{SALT}"}},' + end), ("no digests", '{"_sd":[],' + end), ("digests that are a string", f'{{"_sd":"{DIGEST}",' + end),
            ("a digest that is a number", '{"_sd":[1],' + end), ("a short digest", f'{{"_sd":["{DIGEST[:-1]}"],' + end), ("a digest with unused bits", f'{{"_sd":["{DIGEST[:-1]}Z"],' + end),
            ("digests in disorder", f'{{"_sd":["{DIGEST}","A{DIGEST[1:]}"],' + end), ("a digest twice", f'{{"_sd":["{DIGEST}","{DIGEST}"],' + end),
            ("a digest that the salt makes again", f'{{"_salt":{{"o":"{SALT}"}},"_sd":["{hidden}"],"event":"a","o":"x","time":1}}')):
        yield name, text


class Signed:
    """A log of five entries with two cosignatures; parts can be changed before they are signed."""

    def __init__(self, **change):
        self.log, self.wits = tlog.Key("writ.example/log/l-test", 1), [tlog.Key(f"writ.example/witness/{c}", 4) for c in "abc"]
        tree = tlog.Tree(lambda i: tlog.ENTRIES[i].encode())
        parts = {"origin": self.log.name, "size": "5", "root": tlog.b64(tree.mth(0, 5)), "more": "", **change}
        self.text = "{origin}\n{size}\n{root}\n{more}".format(**parts)
        self.lines = [self.log.line(self.text)] + [w.line(self.text, 1794745401) for w in self.wits[:2]]
        self.path = [tlog.b64(h) for h in tree.path(2, 0, 5)]
        self.head, self.index = "c2sp.org/tlog-proof@v1", "index 2"

    def note(self):
        return self.text + "\n" + "".join(self.lines)

    def proof(self):
        return "\n".join([self.head, self.index, *self.path]) + "\n\n" + self.note()


def retimed(line):
    """A cosignature that says it was made a second later."""
    dash, name, text = line.split(" ")
    raw = bytearray(tlog.base64.b64decode(text))
    raw[11] += 1
    return f"{dash} {name} {tlog.b64(raw)}\n"


def proofs():
    """(name, proof, verdict); the entry and the policy are those of tests/vectors/tlog."""
    def case(name, verdict, change=lambda s: None, **parts):
        signed = Signed(**parts)
        change(signed)
        return name, signed.proof(), verdict

    def put(**attributes):
        return lambda s: [setattr(s, k, v) for k, v in attributes.items()]

    def lines(change):
        return lambda s: setattr(s, "lines", change(s.lines, s))
    root = Signed().path[0]
    yield case("as it is", "holds")
    yield case("a third cosignature", "holds", lines(lambda x, s: x + [s.wits[2].line(s.text, 1)]))
    yield case("a line of somebody unknown", "holds", lines(lambda x, s: x + ["\u2014 somebody AAAAAAA=\n"]))
    yield case("lines in another order", "holds", lines(lambda x, s: x[::-1]))
    yield case("the same line twice", "holds", lines(lambda x, s: x + x[-1:]))
    yield case("another version", "malformed", put(head="c2sp.org/tlog-proof@v2"))
    yield case("no index", "malformed", put(index="inclusion 2"))
    yield case("an index with a zero before", "malformed", put(index="index 02"))
    yield case("an index with a sign", "malformed", put(index="index +2"))
    yield case("extra behind the index", "malformed", put(index="index 2\nextra AAAA"))
    yield case("extra that is no base64", "malformed", put(head="c2sp.org/tlog-proof@v1\nextra AAA"))
    yield case("extra", "holds", put(head="c2sp.org/tlog-proof@v1\nextra AAAA"))
    yield case("another index", "not included", put(index="index 1"))
    yield case("an index behind the end", "not included", put(index="index 5"))
    yield case("a hash dropped", "not included", lambda s: s.path.pop())
    yield case("two hashes swapped", "not included", lambda s: s.path.reverse())
    yield case("a hash too many", "not included", lambda s: s.path.append(root))
    yield case("a hash without padding", "malformed", lambda s: s.path.__setitem__(0, root[:-1]))
    yield case("a hash of 33 bytes", "malformed", lambda s: s.path.__setitem__(0, root[:-1] + "A"))
    yield case("unused bits of a hash", "malformed", lambda s: s.path.__setitem__(0, root[:-2] + "Z="))
    yield case("another size", "bad signature", put(text=Signed().text.replace("\n5\n", "\n6\n")))
    yield case("another root, signed", "not included", root=root)
    yield case("another size, signed", "not included", size="4")
    yield case("a size with a zero before, signed", "malformed", size="05")
    yield case("a size above 2^62, signed", "malformed", size=str(2**62 + 1))
    yield case("a size of 0 with a root, signed", "malformed", size="0")
    yield case("a root of 31 bytes, signed", "malformed", root=tlog.b64(bytes(31)))
    yield case("a fourth line, signed", "malformed", more="more\n")
    yield case("an origin without a slash, signed", "malformed", origin="writ.example")
    yield case("an origin that begins like a JWS, signed", "malformed", origin="eyJ/x")
    yield case("the origin of another log, signed", "unknown log", origin="writ.example/log/l-other")
    yield case("no signature", "malformed", lines(lambda x, s: []))
    yield case("not by the log", "unknown log", lines(lambda x, s: x[1:]))
    yield case("a witness less", "no quorum", lines(lambda x, s: x[:2]))
    yield case("one witness twice", "no quorum", lines(lambda x, s: x[:2] + x[1:2]))
    yield case("no witness", "no quorum", lines(lambda x, s: x[:1]))
    yield case("16 lines", "holds", lines(lambda x, s: x + [f"\u2014 w{i} AAAAAAA=\n" for i in range(13)]))
    yield case("17 lines", "malformed", lines(lambda x, s: x + [f"\u2014 w{i} AAAAAAA=\n" for i in range(14)]))
    yield case("a cosignature with another time", "bad signature",
               lines(lambda x, s: x[:2] + [retimed(x[2])]))
    yield case("a cosignature of a time from 2^63 on", "bad signature", lines(lambda x, s: x[:2] + [s.wits[1].line(s.text, 2**63)]))
    yield case("a cosignature of another text", "bad signature", lines(lambda x, s: x[:2] + [s.wits[1].line(s.text + "x", 7)]))
    yield case("a witness signs like a log", "bad signature", lines(lambda x, s: x[:2] + [s.wits[1].line(s.text)]))
    yield case("a hyphen for the dash", "malformed", lines(lambda x, s: ["-" + x[0][1:], *x[1:]]))
    yield case("two blanks", "malformed", lines(lambda x, s: [x[0].replace(" ", "  ", 1), *x[1:]]))
    yield case("no newline at the end", "malformed", lines(lambda x, s: x[:-1] + [x[-1][:-1]]))
    yield case("an empty line at the end", "malformed", lines(lambda x, s: x + ["\n"]))
    yield case("a carriage return", "malformed", lines(lambda x, s: [x[0].replace("\n", "\r\n"), *x[1:]]))
    yield case("a signature line with nothing but an id", "malformed", lines(lambda x, s: x + ["\u2014 somebody AAAAAA==\n"]))
    yield case("a plus in a name", "malformed", lines(lambda x, s: x + ["\u2014 some+body AAAAAAA=\n"]))
    yield case("a blank of Unicode in a name", "malformed", lines(lambda x, s: x + ["\u2014 some\u2003body AAAAAAA=\n"]))


def policies():
    """(name, policy, whether it can be read)"""
    log, a, b, c = (k for k in (OUT.parent / "tlog/vkeys").read_text().split())
    abc = f"witness a {a}\nwitness b {b}\nwitness c {c}\n"
    name, ident, key = a.split("+", 2)
    for good, rows in ((True, {
            "only a quorum": "quorum none\n", "a log": f"log {log}\nquorum none\n", "a log with its address": f"log {log} x\nquorum none\n",
            "blanks, tabs and comments": f"# x\n\n \tlog\t{log} \t\n  # y\nquorum none\n", "a witness": f"witness a {a}\nquorum a\n",
            "two of three": abc + "group g 2 a b c\nquorum g\n", "any and all": abc + "group g any a b\ngroup h all g c\nquorum h\n",
            "a witness that is in no group": abc + "group g 1 a\nquorum g\n", "names like words": f"witness any {a}\nwitness all {b}\ngroup 3 2 any all\nquorum 3\n"}),
                       (False, {
            "nothing": "", "no quorum": f"log {log}\n", "no newline at the end": "quorum none", "two quorums": "quorum none\nquorum none\n",
            "a quorum of nobody": "quorum a\n", "a quorum before its witness": f"quorum a\nwitness a {a}\n", "a quorum with two words": "quorum none none\n",
            "a word that nobody knows": "logs\nquorum none\n", "a log without a key": "log\nquorum none\n", "a log with three words": f"log {log} x y\nquorum none\n",
            "a log twice": f"log {log}\nlog {log}\nquorum none\n", "a log with a witness's key": f"log {a}\nquorum none\n", "a witness with a log's key": f"witness a {log}\nquorum a\n",
            "a witness without a key": "witness a\nquorum none\n", "one key for two witnesses": f"witness a {a}\nwitness b {a}\nquorum a\n", "one name for two": f"witness a {a}\nwitness a {b}\nquorum a\n",
            "a witness called none": f"witness none {a}\nquorum none\n", "a group without members": abc + "group g any\nquorum g\n", "a group that needs none": abc + "group g 0 a\nquorum g\n",
            "a group that needs too many": abc + "group g 2 a\nquorum g\n", "a number with a zero before": abc + "group g 01 a\nquorum g\n", "a member twice": abc + "group g 1 a a\nquorum g\n",
            "a member of two groups": abc + "group g 1 a\ngroup h 1 a b\nquorum h\n", "a member that comes later": abc + "group g 1 h\ngroup h 1 a\nquorum g\n", "a member called none": abc + "group g 1 none\nquorum g\n",
            "a group of itself": abc + "group g 1 g\nquorum g\n", "another id": f"witness a {name}+00000000+{key}\nquorum a\n", "an id in capitals": f"witness a {name}+{ident.upper()}+{key}\nquorum a\n",
            "a key of 31 bytes": f"witness a {name}+{ident}+{key[:-4]}\nquorum a\n", "a key that is no base64": f"witness a {name}+{ident}+{key[:-1]}\nquorum a\n",
            "a carriage return": "quorum none\r\n", "byte 0": "quorum none\0\n"})):
        for what, text in rows.items():
            yield what, text, good
    weak = bytes([4, 1] + [0] * 31)
    yield "a key of small order", f"witness a x+{hashlib.sha256(b'x' + bytes([10]) + weak).digest()[:4].hex()}+{tlog.b64(weak)}\nquorum a\n", False


def lines(key, rows):
    return "[\n" + ",\n".join(json.dumps(dict(zip(("name", "text", key), r)), sort_keys=True, separators=(",", ":")) for r in rows) + "\n]\n"


def main():
    made, bad = {"entries.json": lines("public", entries()), "proofs.json": lines("verdict", proofs()), "policies.json": lines("good", policies())}, 0
    for i, (name, text) in enumerate(made.items(), 1):
        path = OUT / name
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            continue
        good = path.is_file() and path.read_text() == text
        bad += not good
        print(f"{'' if good else 'not '}ok {i} - {name} is what vectors.py makes")
    if "--check" in sys.argv:
        print(f"1..{len(made)}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
