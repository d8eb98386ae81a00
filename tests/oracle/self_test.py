#!/usr/bin/env python3
"""The oracle against its own laws, over universes small enough to enumerate. Prints TAP.

Reads:  the oracle, the generator, tests/vectors/cap
Writes: TAP; exit status 1 if a law fails
Next:   compare.py, which trusts the oracle

Relations that the text gives as a rule on strings are checked against what they mean: the set of
all names, paths, hosts or traces of the universe that a pattern matches.
"""

import ipaddress
import itertools
import re
import sys

import canon
import gen
import gen_damage
import gen_requests
import make_vectors
import writ_oracle as oracle
from tap import Tap


def mask(members, matches):
    """The set of members that match, as the bits of one number."""
    bits = 0
    for at, member in enumerate(members):
        if matches(member):
            bits |= 1 << at
    return bits


def iff(patterns, masks, relation):
    """Pairs where the relation is not exactly inclusion: [(child, parent, relation says)]."""
    wrong = []
    for (child, c_bits), (parent, p_bits) in itertools.product(zip(patterns, masks), repeat=2):
        if relation(child, parent) != (c_bits & ~p_bits == 0):
            wrong.append((child, parent, relation(child, parent)))
    return wrong


def below_both(patterns, masks, members, meet, matches):
    """Pairs whose meet matches something that one of the two does not."""
    wrong = []
    for (a, a_bits), (b, b_bits) in itertools.product(zip(patterns, masks), repeat=2):
        both = meet(a, b)
        if both is not None and mask(members, lambda x: matches(both, x)) & ~(a_bits & b_bits):
            wrong.append((a, b, both))
    return wrong


# ---- paths --------------------------------------------------------------------------------------


def test_segments(tap):
    names = ["".join(w).encode() for n in range(1, 6) for w in itertools.product("abc", repeat=n)]
    words = ["".join(w) for n in range(3) for w in itertools.product("ab", repeat=n)]
    texts = [w for w in words if w] + [p + "*" + s for p in words for s in words]
    segs = [canon.parse_seg(text) for text in texts]
    masks = [mask(names, lambda name, s=seg: oracle.seg_matches(s, name)) for seg in segs]
    for seg, text, bits in zip(segs, texts, masks):
        regex = re.compile(text.replace("*", ".*").encode())
        if mask(names, regex.fullmatch) != bits:
            tap.ok(False, "segment %s is the regular expression" % text)
    wrong = iff(segs, masks, oracle.seg_within)
    tap.ok(not wrong, "segments: within is inclusion, %d pairs" % len(segs) ** 2, *wrong[:5])
    tap.ok(len(set(masks)) == len(masks), "segments: one string per meaning")
    wrong = below_both(segs, masks, names, oracle.seg_meet, oracle.seg_matches)
    tap.ok(not wrong, "segments: the meet lies in both", *wrong[:5])


def test_paths(tap):
    names = [n.encode() for n in ("a", "b", "ab", "ba", "c")]
    roads = [w for n in range(5) for w in itertools.product(names, repeat=n)]
    concrete = [(tuple((name,) for name in road), False) for road in roads]
    segs = [canon.parse_seg(text) for text in ("a", "ab", "a*", "*b", "*")]
    paths = [(w, d) for n in range(4) for w in itertools.product(segs, repeat=n) for d in (0, 1)]
    check_paths(tap, "paths", [(w, bool(d)) for w, d in paths], concrete)


def test_urlpaths(tap):
    names = [n.encode() for n in ("a", "ab", "cb", "c")]
    roads = [w for n in range(4) for w in itertools.product(names, repeat=n)]
    concrete = [(tuple((name,) for name in road), False) for road in roads if road]
    concrete += [(tuple((name,) for name in road) + (canon.EMPTY,), False) for road in roads]
    segs = [canon.parse_seg(text) for text in ("a", "a*", "*b", "*")]
    shapes = [w for n in range(3) for w in itertools.product(segs, repeat=n)]
    paths = [(w, True) for w in shapes] + [(w + (canon.EMPTY,), False) for w in shapes]
    check_paths(tap, "urlpaths", paths + [(w, False) for w in shapes if w], concrete)


def check_paths(tap, what, paths, concrete):
    masks = [mask(concrete, lambda c, p=path: oracle.path_matches(p, c)) for path in paths]
    wrong = iff(paths, masks, oracle.path_within)
    tap.ok(not wrong, "%s: within is inclusion, %d pairs" % (what, len(paths) ** 2), *wrong[:5])
    tap.ok(len(set(masks)) == len(masks), "%s: one string per meaning" % what)
    some, bits = paths[::3], masks[::3]
    wrong = below_both(some, bits, concrete, oracle.path_meet, oracle.path_matches)
    tap.ok(not wrong, "%s: the meet lies in both" % what, *wrong[:5])
    lost = [
        (a, b)
        for (a, x), (b, y) in itertools.product(zip(some, bits), repeat=2)
        if oracle.path_meet(a, b) is None and x & y and not has_star_pair(a, b)
    ]
    tap.ok(not lost, "%s: no meet is missed where the text promises one" % what, *lost[:5])


def has_star_pair(a, b):
    """Two stars in one place: there the meet may be smaller than the intersection."""
    return any(len(x) == len(y) == 2 for x, y in zip(a[0], b[0]))


# ---- hosts, ports -------------------------------------------------------------------------------


def test_names(tap):
    names = [".".join(w) for n in range(1, 6) for w in itertools.product("abx", repeat=n)]
    concrete = [("name", name) for name in names]
    short = [name for name in names if "x" not in name and name.count(".") < 3]
    hosts = [("all",)] + [("name", name) for name in short]
    hosts += [(kind, name) for kind in ("one", "sub") for name in short if "." in name]
    masks = [mask(concrete, lambda c, h=host: oracle.host_matches(h, c)) for host in hosts]
    wrong = iff(hosts, masks, oracle.host_within)
    tap.ok(not wrong, "names: within is inclusion, %d pairs" % len(hosts) ** 2, *wrong[:5])
    tap.ok(len(set(masks)) == len(masks), "names: one string per meaning")
    wrong = below_both(hosts, masks, concrete, oracle.host_meet, oracle.host_matches)
    tap.ok(not wrong, "names: the meet lies in both", *wrong[:5])


def test_networks(tap):
    base4, base6 = 0xC0000200, 0x20010DB8 << 96
    nets, concrete = [], []
    for version, base, bits in ((4, base4, 32), (6, base6, 128)):
        concrete += [("net", version, base + x, bits) for x in range(16)]
        for length in range(bits - 4, bits + 1):
            step = 1 << (bits - length)
            nets += [("net", version, base + x, length) for x in range(0, 16, step)]
    masks = [mask(concrete, lambda c, n=net: oracle.host_matches(n, c)) for net in nets]
    wrong = iff(nets, masks, oracle.host_within)
    tap.ok(not wrong, "networks: within is inclusion, %d pairs" % len(nets) ** 2, *wrong[:5])
    test_priv(tap, [net for net in nets if net[1] == 4])


def test_priv(tap, nets):
    """Every set of addresses of a /29 has exactly one canonical list, and meet is intersection."""
    nets = [net for net in nets if net[2] < 0xC0000208 and net[3] >= 29]
    each = [("net", 4, 0xC0000200 + x, 32) for x in range(8)]
    bits = {net: mask(each, lambda x, n=net: canon.inside(x, n)) for net in nets}
    lists = {}
    for size in range(1, 6):
        for some in itertools.combinations(nets, size):
            text = ",".join(sorted(canon.host_form(net) for net in some))
            try:
                canon.parse_priv(text)
            except canon.Bad:
                continue
            lists.setdefault(sum(bits[net] for net in some), []).append(some)
    tap.ok(len(lists) == 255, "priv: every set of addresses has a list, %d" % len(lists))
    tap.ok(all(len(v) == 1 for v in lists.values()), "priv: one string per meaning")
    lists[0] = [()]
    wrong = []
    for (x, (a,)), (y, (b,)) in itertools.product(lists.items(), repeat=2):
        both = oracle.priv_meet(a, b)
        if sorted(both) != sorted(lists[x & y][0]):
            wrong.append((a, b, both))
    tap.ok(not wrong, "priv: the meet is the intersection and minimal", *wrong[:5])


def test_addresses(tap):
    rng = gen.Rng(5)
    wrong = []
    for _ in range(3000):
        groups = [rng.pick([0, 0, 0, 1, 0x10, 0xFFFF, rng.below(65536)]) for _ in range(8)]
        value = int("".join("%04x" % g for g in groups), 16)
        if value >> 32 != 0xFFFF and canon.v6_text(value) != str(ipaddress.IPv6Address(value)):
            wrong.append(value)
    tap.ok(not wrong, "IPv6 text is that of the library", *wrong[:5])
    odd = [v for v in ("[::ffff:a00:1]", "[::ffff:0:0]/96", "[::ffff:10.0.0.1]") if parses(v)]
    tap.ok(not odd, "IPv4-mapped addresses are refused", *odd)


def parses(host):
    try:
        canon.parse_host(host)
    except canon.Bad:
        return False
    return True


def test_ports(tap):
    spans = [(low, high) for low in range(1, 8) for high in range(low, 8)]
    nets = [(("name", "a.b"), low, high) for low, high in spans]
    masks = [mask(range(1, 8), lambda p, n=net: n[1] <= p <= n[2]) for net in nets]
    wrong = iff(nets, masks, lambda c, p: oracle.net_within(*c, p))
    tap.ok(not wrong, "ports: within is inclusion", *wrong[:5])
    bad = []
    for (a, x), (b, y) in itertools.product(zip(nets, masks), repeat=2):
        both = oracle.net_meet(a, b)
        if (masks[nets.index(both)] if both else 0) != x & y:
            bad.append((a, b, both))
    tap.ok(not bad, "ports: the meet is the intersection", *bad[:5])


# ---- sets and numbers ---------------------------------------------------------------------------


def test_methods(tap):
    lists = ["*"] + [w for n in (1, 2, 3) for w in itertools.combinations("ABC", n)]
    members = "ABCD"
    masks = [mask(members, lambda m, w=words: w == "*" or m in w) for words in lists]
    wrong = iff(lists, masks, oracle.methods_within)
    tap.ok(not wrong, "methods: within is inclusion", *wrong)
    bad = []
    for (a, x), (b, y) in itertools.product(zip(lists, masks), repeat=2):
        both = oracle.set_meet(a, b)
        if (masks[lists.index(both)] if both else 0) != x & y:
            bad.append((a, b, both))
    tap.ok(not bad, "methods: the meet is the intersection", *bad)


def obeys(trace, rate):
    """At most so many uses in any window of so many seconds; a trace has those of each second."""
    uses, seconds = rate
    return all(sum(trace[at : at + seconds]) <= uses for at in range(len(trace)))


def test_rates(tap):
    """Against every trace of six seconds with up to four uses in each: exact in this universe."""
    rates = [(uses, seconds) for uses in range(1, 5) for seconds in range(1, 5)]
    traces = list(itertools.product(range(5), repeat=6))
    masks = [mask(traces, lambda t, r=rate: obeys(t, r)) for rate in rates]
    unsound, strict = [], 0
    for (child, c_bits), (parent, p_bits) in itertools.product(zip(rates, masks), repeat=2):
        if oracle.rate_within(child, parent) and c_bits & ~p_bits:
            unsound.append((child, parent))
        strict += not oracle.rate_within(child, parent) and not c_bits & ~p_bits
    tap.ok(not unsound, "rate: what the child's rate allows, the parent's does", *unsound)
    tap.ok(strict == 0, "rate: and the rule refuses nothing else")
    wrong = []
    for (a, x), (b, y) in itertools.product(zip(rates, masks), repeat=2):
        both = oracle.MEETS["rate"](a, b)
        if masks[rates.index(both)] & ~(x & y) or not oracle.rate_within(both, a):
            wrong.append((a, b, both))
    tap.ok(not wrong, "rate: the meet is within both", *wrong[:5])


# ---- whole capabilities -------------------------------------------------------------------------

UNIVERSES = {
    "fs": (
        ["fs.%s:h:%s%s" % (act, path, end)
         for act in ("read", "write", "put") for path in ("/a", "/*", "/**", "/a/**", "/a*", "/")
         for end in ("", ";n=2", ";approve=x")],
        ["fs.%s:h:%s" % (act, path) for act in ("read", "write", "put")
         for path in ("/", "/a", "/b", "/ab", "/a/b", "/b/a")],
    ),
    "net": (
        ["net.connect:h:tcp/%s:%s%s" % (host, ports, end)
         for host in ("a.b", "*.a.b", "**", "10.0.0.0/8") for ports in ("1", "1-2")
         for end in ("", ";n=2", ";priv=10.0.0.1", ";priv=10.0.0.0/8")]
        + ["http.request:h:%s://%s:1%s%s" % (scheme, host, path, end)
           for scheme in ("http", "https") for host in ("a.b", "**", "10.0.0.1")
           for path in ("/**", "/", "/a/*")
           for end in (";m=*;q=any", ";m=GET;q=any", ";m=*;n=2;q=any", ";m=*;q=none",
                       ";m=*;priv=10.0.0.1;q=any", ";m=*;q=any;tls=pass")],
        ["net.connect:h:tcp/%s:%d%s%s" % (host, port, priv, tls)
         for host in ("a.b", "x.a.b", "c", "10.0.0.1") for port in (1, 2)
         for priv in ("", ";priv=10.0.0.1", ";priv=10.0.0.2") for tls in ("", ";tls=sni")]
        + ["http.request:h:%s://%s:1%s;m=%s%s;q=%s" % (scheme, host, path, m, priv, q)
           for scheme in ("http", "https") for host in ("a.b", "x.a.b", "10.0.0.1")
           for path in ("/", "/a", "/a/", "/a/b") for m in ("GET", "PUT")
           for priv in ("", ";priv=10.0.0.1", ";priv=10.0.0.2") for q in ("any", "none")],
    ),
    "exec": (
        ["proc.exec:h:%s%s%s" % (path, args, sha) for path in ("/a", "/*")
         for args in ("", ";args=/", ";args=/**", ";args=/x/*", ";args=/*/y")
         for sha in ("", ";sha256=" + "0" * 64, ";sha256=" + "0" * 64 + "," + "1" * 64)],
        ["proc.exec:h:%s%s%s" % (path, args, sha) for path in ("/a", "/b")
         for args in ("", ";args=/", ";args=/x", ";args=/x/y", ";args=/y/y")
         for sha in ("", ";sha256=" + "0" * 64, ";sha256=" + "1" * 64)],
    ),
    "git": (
        ["git.use:h:https://a.b:1/%s;%s" % (repo, op) for repo in ("r", "s")
         for op in ["op=fetch"] + ["op=%s;ref=%s" % (op, ref) for op in ("push", "fetch,push")
                                   for ref in ("x", "x/**", "*", "*/y")]],
        ["git.use:h:https://a.b:1/%s;%s" % (repo, op) for repo in ("r", "s")
         for op in ["op=fetch"] + ["op=push;ref=" + ref
                                   for ref in ("x", "y", "x/y", "y/y", "x/x/x")]],
    ),
    "dev, secret": (
        ["dev.use:h:/dev/%s;o=%s" % (name, o) for name in ("a", "*", "a*") for o in ("r", "rw")]
        + ["secret.use:h:/k;as=%s;to=%s" % (how, to) for how in ("env", "header:a")
           for to in ("https://a.b:1/**", "http://a.b:1/**", "https://*.a.b:1/x",
                      "https://a.b:1/x/", "https://**:2/**")],
        ["dev.use:h:/dev/%s;o=%s" % (name, o) for name in ("a", "b", "ab") for o in ("r", "rw")]
        + ["secret.use:h:/k;as=%s;to=%s" % (how, to) for how in ("env", "header:a")
           for to in ("https://a.b:1/x", "https://a.b:1/x/", "http://a.b:1/",
                      "https://x.a.b:1/x", "https://a.b:2/")],
    ),
}


def price_not_lower(child, parent):
    """What a match of the child costs is at least what a match of the parent costs."""
    have, limit = child.params, parent.params
    for key in ("n", "max-in", "max-out"):
        if key in limit and have.get(key, canon.MAX_NUM + 1) > limit[key]:
            return False
    if "rate" in limit:
        if "rate" not in have or not oracle.rate_within(have["rate"], limit["rate"]):
            return False
    return set(limit.get("approve", ())) <= set(have.get("approve", ()))


def parse_all(kind, texts):
    """Those that parse: the lists above combine params that the text forbids together."""
    return [cap for cap in (oracle.try_parse(kind, text) for text in texts) if cap]


def test_universe(tap, name):
    grants, requests = UNIVERSES[name]
    caps, reqs = parse_all("g", grants), parse_all("r", requests)
    masks = [mask(reqs, lambda r, c=cap: oracle.matches(c, r)) for cap in caps]
    unsound, meets, positive, hits = [], [], 0, 0
    for (a, x), (b, y) in itertools.product(zip(caps, masks), repeat=2):
        if oracle.within(a, b):
            positive += 1
            if x & ~y or not price_not_lower(a, b):
                unsound.append((a, b))
        both = oracle.meet(a, b)
        if both is not None:
            hits += 1
            bits = mask(reqs, lambda r: oracle.matches(both, r))
            if bits & ~(x & y) or not oracle.within(both, a) or not oracle.within(both, b):
                meets.append((a, b, both))
    size = "%d grants, %d requests" % (len(caps), len(reqs))
    tap.note("%s: %s, %d within, %d meets" % (name, size, positive, hits))
    tap.ok(not unsound, "%s: within is sound, and the price not lower" % name, *unsound[:5])
    tap.ok(not meets, "%s: the meet is within both" % name, *meets[:5])
    idle = [cap for cap, bits in zip(caps, masks) if not bits]
    enough = positive > len(caps) and hits > len(caps) and not idle
    tap.ok(enough, "%s: says something" % name, *idle)


LAWS = ("form", "self", "sound", "meet", "order", "commutes", "chain", "reparse")


def test_random_laws(tap, count=6000):
    rng = gen.Rng(11)
    seen = {key: 0 for key in ("within", "meet", "match", "chain")}
    wrong = {law: [] for law in LAWS}
    for _ in range(count):
        terms = gen.pair(rng)
        caps = parse_all("g", [gen.text(term) for term in terms])
        if len(caps) < 2:
            continue
        a, b = caps
        one_pair(rng, a, b, terms, seen, wrong)
        one_chain(rng, b, terms[1], seen, wrong)
    tap.note("random: " + ", ".join("%d %s" % (n, key) for key, n in seen.items()))
    tap.ok(all(n > count // 10 for n in seen.values()), "random: says something")
    for key, cases in wrong.items():
        tap.ok(not cases, "random: law %s" % key, *cases[:5])


def one_pair(rng, a, b, terms, seen, wrong):
    for cap in (a, b):
        if canon.form(cap) != cap.text:
            wrong["form"].append(cap)
        if not oracle.within(cap, cap) or oracle.meet(cap, cap).text != cap.text:
            wrong["self"].append(cap)
    a_in_b, b_in_a = oracle.within(a, b), oracle.within(b, a)
    seen["within"] += a_in_b or b_in_a
    if a_in_b and b_in_a and a.text != b.text:
        wrong["order"].append((a, b))
    for term in terms:
        for req in parse_all("r", [gen.text(gen_requests.request(rng, term))]):
            x, y = oracle.matches(a, req), oracle.matches(b, req)
            seen["match"] += x
            if (a_in_b and x and not y) or (b_in_a and y and not x):
                wrong["sound"].append((a, b, req))
    both, other = oracle.meet(a, b), oracle.meet(b, a)
    if (both and both.text) != (other and other.text):
        wrong["commutes"].append((a, b))
    if both is None:
        return
    seen["meet"] += 1
    if oracle.try_parse("g", both.text) is None:
        wrong["reparse"].append((a, b, both))
    if not oracle.within(both, a) or not oracle.within(both, b):
        wrong["meet"].append((a, b, both))
    if (a_in_b and both.text != a.text) or (b_in_a and both.text != b.text):
        wrong["order"].append((a, b, both))


def one_chain(rng, parent, term, seen, wrong):
    """Within is transitive."""
    middle = gen.narrow(rng, term)
    caps = parse_all("g", [gen.text(middle), gen.text(gen.narrow(rng, middle))])
    if len(caps) == 2 and oracle.within(caps[1], caps[0]) and oracle.within(caps[0], parent):
        seen["chain"] += 1
        if not oracle.within(caps[1], parent):
            wrong["chain"].append((caps[1], caps[0], parent))


# ---- text, denials, sets, vectors ---------------------------------------------------------------


def test_canonical(tap, count=20000):
    """What parses after damage says exactly what its text says: text and values go both ways."""
    rng = gen.Rng(12)
    wrong, parsed = [], 0
    for _ in range(count):
        term = gen.grant(rng)
        req = gen_requests.request(rng, term)
        kind, term = rng.pick([("g", term), ("r", req), ("d", gen_requests.denial(rng, req))])
        text = gen_damage.damage(rng, gen.text(term))
        cap = oracle.try_parse(kind, text)
        if cap is not None:
            parsed += 1
            if canon.form(cap) != text or not re.fullmatch("[!-~]{1,4096}", text):
                wrong.append((kind, text))
    tap.note("damage: %d of %d strings still parse" % (parsed, count))
    enough = parsed > count // 20
    tap.ok(enough and not wrong, "one string per value, also after damage", *wrong[:5])
    for end in ("/a\x7f", "/\xe9", "/a\n", "/a\0", "/\u0661", "/a;n=\u0661", "/a;n=1\n"):
        tap.ok(oracle.try_parse("g", "fs.read:h:" + end) is None, "refused: %s" % ascii(end))


def denial_regex(text):
    """The denied path as a regular expression over "/" + names: a second way to the same answer."""
    out = ""
    for seg in text[1:].split("/"):
        seg = seg.replace(".", "[.]")
        out += "(/[^/]+)*" if seg == "**" else "/" + seg.replace("*", "[^/]*")
    return re.compile(out)


def test_denials(tap):
    words = ["a", "b", "a*", "*", "**", ".env"]
    shapes = [w for n in range(4) for w in itertools.product(words, repeat=n)]
    texts = ["/" + "/".join(shape + ("**",)) for shape in shapes]
    roads = [w for n in range(5) for w in itertools.product(["a", "b", "ab", ".env"], repeat=n)]
    reqs = [("".join("/" + n for n in road), tuple((n.encode(),) for n in road)) for road in roads]
    wrong, tried = [], 0
    for text in texts:
        cap = oracle.try_parse("d", "fs.read:h:" + text)
        legal = text.count("**") <= 2 and "**/**" not in text
        if legal != (cap is not None):
            wrong.append(text)
        if cap is None:
            continue
        regex = denial_regex(text)
        for plain, names in reqs:
            tried += 1
            if oracle.denied_path_matches(cap.res[0], names) != bool(regex.fullmatch(plain)):
                wrong.append((text, plain))
    what = "denied paths are regular expressions, %d pairs" % tried
    tap.ok(not wrong and tried > 10000, what, *wrong[:5])


def test_put_path(tap):
    rng = gen.Rng(13)
    wrong, good = [], 0
    for _ in range(5000):
        raw = gen_damage.raw_path(rng)
        answer = make_vectors.answer_path(raw.hex())
        if answer == "E":
            continue
        good += 1
        cap = oracle.try_parse("r", "fs.put:h:" + answer)
        if cap is None or b"/" + b"/".join(seg[0] for seg in cap.res[0]) != raw:
            wrong.append((raw, answer))
    tap.ok(good > 2000 and not wrong, "put_path and parse are inverse, %d paths" % good, *wrong[:5])


def test_sets(tap):
    small = oracle.Set(["fs.read:h:/a", "fs.put:h:/w/x;n=1"], limits={"cpu": 1000, "up": 5})
    large = oracle.Set(["fs.read:h:/**", "fs.write:h:/w/**"], ["fs.read:h:/a/**"], {"cpu": 2000})
    tap.ok(oracle.set_within(small, large), "sets: within, denials not compared")
    tap.ok(not oracle.set_within(large, small), "sets: not the other way")
    free = oracle.Set(["fs.read:h:/a"])
    tap.ok(not oracle.set_within(free, large), "sets: a limit of the parent must be there")
    over, at = oracle.Set([], limits={"cpu": 2001}), oracle.Set([], limits={"cpu": 2000})
    tap.ok(not oracle.set_within(over, large), "sets: a limit may not be larger")
    tap.ok(oracle.set_within(at, large), "sets: no capability is within all")
    halves = oracle.Set(["net.connect:h:tcp/a.b:1", "net.connect:h:tcp/a.b:2"])
    union = oracle.Set(["net.connect:h:tcp/a.b:1-2"])
    tap.ok(not oracle.set_within(union, halves), "sets: no union reasoning")
    test_meet_sets(tap, small, large)
    for limits in ({"speed": 1}, {"cpu": 0}, {"cpu": 2**53}):
        try:
            oracle.Set([], limits=limits)
            tap.ok(False, "sets: limit refused: %s" % limits)
        except oracle.Bad:
            tap.ok(True, "sets: limit refused: %s" % limits)


def test_meet_sets(tap, small, large):
    both = oracle.meet_sets(small, large)
    caps = [cap.text for cap in both.caps]
    tap.ok(caps == ["fs.put:h:/w/x;n=1", "fs.read:h:/a"], "sets: meet", caps)
    tap.ok(both.limits == {"cpu": 1000, "up": 5}, "sets: limits of the meet", both.limits)
    tap.ok([d.text for d in both.denials] == ["fs.read:h:/a/**"], "sets: denials of the meet")
    for side in (small, large):
        tap.ok(oracle.set_within(both, side), "sets: meet within both")
    one = oracle.Set(["fs.read:h:/a/**", "fs.read:h:/a/b"])
    two = oracle.Set(["fs.read:h:/**", "fs.read:h:/a/b"])
    caps = [cap.text for cap in oracle.meet_sets(one, two).caps]
    tap.ok(caps == ["fs.read:h:/a/**"], "sets: no member within another", caps)


def test_decide(tap):
    policy = oracle.Set(
        ["fs.read:h:/**", "fs.read:h:/a/**;approve=bob", "fs.read:h:/a/b;approve=alice;n=5"],
        ["fs.read:h:/**/.env/**"],
    )
    cases = [
        ("/x", "allow", (), 1),
        ("/a/c", "ask", ("bob",), 2),
        ("/a/b", "ask", ("alice", "bob"), 3),
        ("/a/.env", "deny", (), 0),
    ]
    for path, verdict, ids, debited in cases:
        got = oracle.decide(policy, oracle.parse("r", "fs.read:h:" + path))
        right = (got[0], got[1], len(got[2])) == (verdict, ids, debited)
        tap.ok(right, "decide %s: %s" % (path, verdict), got)
    got = oracle.decide(policy, oracle.parse("r", "fs.write:h:/x"))
    tap.ok(got[0] == "deny", "decide: no capability matches")


def test_vectors(tap):
    for name, data in make_vectors.render().items():
        path = make_vectors.VECTORS / name
        same = path.exists() and path.read_bytes() == data
        tap.ok(same, "vectors: %s is what make_vectors.py makes" % name)


def main():
    tap = Tap()
    for test in (
        test_segments, test_paths, test_urlpaths, test_names, test_networks, test_addresses,
        test_ports, test_methods, test_rates,
    ):
        test(tap)
    for name in UNIVERSES:
        test_universe(tap, name)
    for test in (
        test_random_laws, test_canonical, test_denials, test_put_path, test_sets, test_decide,
        test_vectors,
    ):
        test(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
