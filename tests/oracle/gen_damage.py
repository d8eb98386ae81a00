"""Text one step away from canonical text, and raw paths.

Reads:  canonical text and the generator's state
Writes: text that is refused, or that means something else
Next:   compare.py and make_vectors.py
"""

import re

from gen import PIECES

NUMBERS = [
    "0", "00", "01", "1", "32", "31", "33", "127", "128", "129", "255", "256", "65535", "65536",
    "4294967295", "4294967296", "4294967297", "9007199254740991", "9007199254740992",
    "9007199254740993", "18446744073709551616", "18446744073709551617", "-1", "1e3", "0x1", "",
]
STRANGE = "\x01\x1f !\"#$&'()*,/:;<>?[\\]^`{|}\x7f\x80\xc3\xff\r"
TAILS = """; ;;n=1 ;n ;n= ;=1 : / /** /. /.. //a * ** /a/**/b ;zzz=1 ;N=1 % %2 %20
    ;n=1=1""".split() + [" "]
VALUES = NUMBERS + ["*", "any", "pass", "sni", "rw", "a,a", "b,a", "a,b", ","]


def damage_needless(rng, s):
    at = rng.below(len(s))
    return s[:at] + "%%%02X" % ord(s[at]) + s[at + 1 :]


def damage_case(rng, s):
    at = rng.below(len(s))
    end = len(s) if rng.chance(0.3) else at + 1
    return s[:at] + s[at:end].swapcase() + s[end:]


def damage_params(rng, s):
    head, *params = s.split(";")
    if not params:
        return head + rng.pick(TAILS)
    at = rng.below(len(params))
    roll = rng.below(4)
    if roll == 0:
        params.pop(at)
    elif roll == 1:
        params.insert(at, params[at])
    elif roll == 2:
        params.append(params.pop(0))
    else:
        params[at] = params[at].partition("=")[0] + "=" + rng.pick(VALUES)
    return ";".join([head] + params)


def damage_number(rng, s):
    found = list(re.finditer("[0-9]+", s))
    if not found:
        return s + rng.pick(TAILS)
    hit = found[rng.below(len(found))]
    return s[: hit.start()] + rng.pick(NUMBERS) + s[hit.end() :]


def damage_list(rng, s):
    found = list(re.finditer("[^;=,]+(,[^;=,]+)+", s))
    if not found:
        return damage_params(rng, s)
    hit = found[rng.below(len(found))]
    items = hit.group().split(",")
    items.insert(rng.below(len(items) + 1), items.pop(0))
    if rng.chance(0.3):
        items.append(items[-1])
    return s[: hit.start()] + ",".join(items) + s[hit.end() :]


def damage_length(rng, s):
    """Lengthen one word so that a limit is reached or passed by one."""
    found = list(re.finditer("[A-Za-z]+", s))
    hit = found[rng.below(len(found))]
    goal = rng.pick([16, 63, 64, 253, 4096, 4096]) + rng.below(3) - 1
    more = goal - (len(s) if goal > 4000 else len(hit.group()))
    return s[: hit.end()] + s[hit.end() - 1] * max(0, more) + s[hit.end() :]


def damage_byte(rng, s):
    at = rng.below(len(s))
    byte = rng.pick([chr(ord(s[at]) ^ (1 << rng.below(8))), rng.pick(STRANGE), rng.pick(PIECES)])
    byte = "?" if byte in "\n\t\0" else byte
    rest = s[at + 1 :]
    return s[:at] + rng.pick([byte + rest, byte + s[at:], rest, ""])


def damage_slashes(rng, s):
    """Deepen a path around the limit on segments."""
    head, semi, tail = s.partition(";")
    have = head.count("/")
    more = "/a" * max(1, rng.pick([126, 127, 128, 129, 130]) - have)
    return head + more + rng.pick(["", "/**"]) + semi + tail


DAMAGE = [damage_needless, damage_case, damage_params, damage_number, damage_list, damage_byte]
RARE = [damage_length, damage_slashes]


def damage(rng, s):
    """One step away. No newline, tab or NUL: the protocol of the filter cannot carry them."""
    out = rng.pick(RARE if rng.chance(0.05) else DAMAGE)(rng, s)
    return out.translate({9: "?", 10: "?", 0: "?"})


def raw_path(rng):
    """Bytes of a path as the kernel has it, now and then not physical."""
    names = []
    for _ in range(rng.below(5)):
        size = 1 + rng.below(6)
        names.append(bytes(rng.pick([rng.below(256), 0x61, 0x2A, 0x25, 0x2E]) for _ in range(size)))
    raw = b"/" + b"/".join(names)
    if rng.chance(0.15):
        ends = [b"/", b"//a", b"/.", b"/..", b"/...", b"/.a"]
        raw = rng.pick([raw[1:], raw + rng.pick(ends), raw + rng.pick(ends), b"/." + raw, b""])
    if rng.chance(0.02):
        raw = b"/a" * (126 + rng.below(5))
    return raw
