"""Deterministic generator of grants that are often related: pairs of child and parent, siblings.

Reads:  a seed
Writes: strings; most are canonical, some are off by one change
Next:   gen_requests.py and gen_damage.py go on from here

Only Random.random() is used: its sequence for a given seed is the same in every Python version.

A term is [action, realm, resource, params]. Resources: ["path", [segment texts], deep],
["net", host, low, high], ["url", scheme, host, port, [segment texts], "" or "/" or "/**"],
["repo", text]. Hosts are as in canon.py.
"""

import random
import re

from canon import GRANTS, MAX_NUM, USES, host_form

PIECES = "a b c ab abb 0 20 2A %20 %25 %2A %C3%A9 %FF x - = @ ~ + . _ Z src env pem".split()
LABELS = "a b c x1 api a-b xn--a 0 n0x".split()
NAMES = """localhost intranet a.b x.a.b y.x.a.b c.d b.c.d example.net api.example.net
    v1.api.example.net xn--a.b 0.a.b""".split()
NETS = [
    (4, 0x0A000000, 8), (4, 0x0A000000, 9), (4, 0x0A010000, 16), (4, 0xC0000200, 24),
    (4, 0xC0000201, 32), (4, 0xA9FEA9FE, 32), (4, 0x80000000, 1), (4, 0xFFFFFFFE, 31),
    (4, 0x7E000000, 8), (4, 0x01000000, 8),
    (6, 0x20010DB8 << 96, 32), (6, (0x20010DB8 << 96) + 1, 128), (6, 0xFC << 120, 7),
    (6, 0xFE80 << 112, 10), (6, 1 << 127, 1), (6, (1 << 96) | 1, 128), (6, 0xFFFE << 32, 96),
    (6, 0x64FF9B << 96, 96), (6, 0x20010DB8000000000001000000000001, 128),
]
REALMS = ["host", "host", "host", "host", "h", "web.1_a-b"]
IDS = "alice bob carol ops.1 z".split()
METHODS = "GET HEAD POST PUT DELETE A".split()
PORTS = [1, 22, 80, 443, 8080, 8443, 65535]
WINDOWS = [1, 2, 3, 7, 59, 60, 61, 3600, 86400, 2**32, 2**48, MAX_NUM]
COUNTS = [1, 2, 3, 5, 9, 10, 11, 100, 4294967295, 4294967296, MAX_NUM - 1, MAX_NUM]
DIGESTS = [c * 64 for c in "0a3f"] + ["0123456789abcdef" * 4]
AS = ["basic", "bearer", "env", "header:x-key", "header:a", "query:Key_1.a-b", "query:k"]
KERNEL = ["/io_uring", "/nested-userns", "/ptrace-own"]
REPOS = [
    "https://git.example.net:443/a/b.git", "https://git.example.net:443/a/c.git",
    "https://git.example.net:8443/a/b.git", "ssh://git@git.example.net:22/a/b.git",
    "ssh://git.example.net:22/a/b.git", "ssh://a.~+-_b@b.c.d:22/x%20y",
]
TOKENS = re.compile(r"%[0-9A-F]{2}|.")


class Rng:
    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, n):
        return int(self.random() * n)

    def pick(self, seq):
        return seq[int(self.random() * len(seq))]

    def chance(self, p):
        return self.random() < p

    def some(self, seq, least=1):
        """A sorted selection without repeats."""
        want = least + self.below(3)
        return sorted({self.pick(seq) for _ in range(want)})


# ---- pieces -------------------------------------------------------------------------------------


def lit_seg(rng):
    text = rng.pick(PIECES) + (rng.pick(PIECES) if rng.chance(0.3) else "")
    return text + "a" if text in (".", "..") else text


def pat_seg(rng):
    if rng.chance(0.6):
        return lit_seg(rng)
    left = rng.pick(PIECES) if rng.chance(0.5) else ""
    right = rng.pick(PIECES) if rng.chance(0.5) else ""
    if left and rng.chance(0.2):  # two ends that could overlap
        right = TOKENS.findall(left)[-1] + right
    return left + "*" + right


def fill(rng, seg, wild):
    """What a star stands for: text, and again a star if wild."""
    if "*" not in seg:
        return seg
    left, right = (TOKENS.findall(part) for part in seg.split("*"))
    if left and left[-1:] == right[:1] and rng.chance(0.2):
        return "".join(left + right[1:]) + "a" * (left + right[1:] == ["."])
    middle = rng.pick(PIECES) if rng.chance(0.8) else ""
    if wild and rng.chance(0.6):
        middle = rng.pick(["*", "*" + middle, middle + "*", middle + "*" + rng.pick(PIECES)])
    out = seg.replace("*", middle)
    return out if out not in ("", ".", "..") else "a" if rng.chance(0.9) else seg


def loosen_seg(rng, seg):
    """A pattern that covers the segment: part of it becomes a star."""
    if seg == "**":
        return "*"
    if "*" in seg:
        left, right = (TOKENS.findall(part) for part in seg.split("*"))
        left = left[: rng.below(len(left) + 1)]
        right = right[rng.below(len(right) + 1) :]
        return "".join(left) + "*" + "".join(right)
    tokens = TOKENS.findall(seg)
    start = rng.below(len(tokens) + 1)
    end = start + rng.below(len(tokens) - start + 1)
    return "".join(tokens[:start]) + "*" + "".join(tokens[end:])


def a_path(rng, least=0, deep=0.4):
    segs = [pat_seg(rng) for _ in range(least + rng.below(4 - least if least < 3 else 1))]
    return ["path", segs, rng.chance(deep)]


def a_host(rng, nets=True):
    roll = rng.random()
    if roll < 0.08:
        return ("all",)
    if roll < 0.45:
        return ("name", rng.pick(NAMES))
    if roll < 0.6:
        return ("one", rng.pick(NAMES[2:]))
    if roll < 0.75:
        return ("sub", rng.pick(NAMES[2:]))
    net = rng.pick(NETS)
    if not nets:
        return ("net", net[0], net[1], 32 if net[0] == 4 else 128)
    return ("net", *net)


def a_net(rng):
    low = rng.pick(PORTS)
    high = low if rng.chance(0.5) else rng.pick(PORTS + [low + 1])
    low, high = min(low, high), max(low, high)
    return ["net", a_host(rng), low, min(high, 65535)]


def a_url(rng):
    segs = [pat_seg(rng) for _ in range(rng.below(3))]
    end = rng.pick(["/", "/**", "/**"]) if not segs else rng.pick(["", "", "/", "/**"])
    scheme = rng.pick(["http", "https", "https"])
    return ["url", scheme, a_host(rng, False), rng.pick(PORTS), segs, end]


def a_resource(rng, action):
    if action in ("fs.read", "fs.write", "fs.put", "proc.exec"):
        return a_path(rng)
    if action == "tool.call":
        return a_path(rng, 1)
    if action == "unix.connect":
        return ["path", [lit_seg(rng) for _ in range(1 + rng.below(3))], False]
    if action == "secret.use":
        return ["path", [lit_seg(rng)], False]
    if action in ("env.pass", "agent.spawn", "state.use"):
        return ["path", [pat_seg(rng)], False]
    if action == "dev.use":
        return ["path", ["dev"] + [pat_seg(rng) for _ in range(1 + rng.below(2))], False]
    if action == "kernel.use":
        return ["path", [rng.pick(KERNEL)[1:]], False]
    if action == "git.use":
        return ["repo", rng.pick(REPOS)]
    if action == "net.bind":
        return ["net", ("name", "localhost")] + a_net(rng)[2:]
    return a_net(rng) if action == "net.connect" else a_url(rng)


def an_arg(rng):
    return rng.pick([".", "..", "a%2Fb", "%2F", "-c", "*"]) if rng.chance(0.3) else pat_seg(rng)


def a_priv(rng):
    nets = []
    for _ in range(1 + rng.below(3)):
        nets.append(("net", *rng.pick(NETS)))
    return sorted(set(nets), key=host_form)


def a_param(rng, key):
    if key in ("n", "max-in", "max-out"):
        return rng.pick(COUNTS)
    makers = {
        "approve": lambda: rng.some(IDS),
        "args": lambda: ["path", [an_arg(rng) for _ in range(rng.below(4))], rng.chance(0.4)],
        "as": lambda: rng.pick(AS),
        "danger": lambda: "1",
        "m": lambda: ["*"] if rng.chance(0.35) else rng.some(METHODS),
        "o": lambda: rng.pick(["r", "rw"]),
        "op": lambda: rng.pick([["fetch"], ["push"], ["fetch", "push"], ["fetch", "push"]]),
        "priv": lambda: a_priv(rng),
        "q": lambda: rng.pick(["any", "none"]),
        "rate": lambda: (rng.pick(COUNTS), rng.pick(WINDOWS)),
        "ref": lambda: ["path", [pat_seg(rng) for _ in range(1 + rng.below(3))], rng.chance(0.4)],
        "sha256": lambda: rng.some(DIGESTS),
        "tls": lambda: "pass",
        "to": lambda: a_url(rng),
    }
    return makers[key]()


def host_of(term):
    res = term[2]
    return res[2] if res[0] == "url" else res[1] if res[0] == "net" else None


def make_free(rng, term):
    """Turn an http grant into the kind that stands for the whole host."""
    term[2][1], term[2][4], term[2][5] = "https", [], "/**"
    term[3].update(m=["*"], q="any")
    if rng.chance(0.15):  # all of it, but counted
        return
    for key in ("n", "rate"):
        term[3].pop(key, None)
    if rng.chance(0.5):
        term[3]["tls"] = "pass"


def tidy(term):
    """Drop what the resource or the other params forbid; damage is done elsewhere, on purpose."""
    params = term[3]
    host = host_of(term)
    if host and host[0] == "net":
        params.pop("priv", None)
    if term[0] == "git.use" and "push" not in params["op"]:
        params.pop("ref", None)
    if "tls" in params:
        _, scheme, _, _, segs, end = term[2]
        free = (scheme, segs, end, params["m"], params["q"]) == ("https", [], "/**", ["*"], "any")
        if not free or "n" in params or "rate" in params:
            del params["tls"]
    return term


def grant(rng, action=None):
    action = action or rng.pick(list(GRANTS))
    _, required, optional = GRANTS[action]
    params = {key: a_param(rng, key) for key in required}
    for key in optional:
        if key == "ref" or (key != "tls" and rng.chance(0.22)):
            params[key] = a_param(rng, key)
    term = [action, rng.pick(REALMS), a_resource(rng, action), params]
    if action == "http.request" and rng.chance(0.25):
        make_free(rng, term)
    return tidy(term)


# ---- text ---------------------------------------------------------------------------------------


def path_text(path):
    return "/" + "/".join(path[1] + (["**"] if path[2] else []))


def url_text(url):
    _, scheme, host, port, segs, end = url
    return "%s://%s:%d%s%s" % (scheme, host_form(host), port, "".join("/" + s for s in segs), end)


def res_text(res):
    if res[0] == "path":
        return path_text(res)
    if res[0] == "url":
        return url_text(res)
    if res[0] == "repo":
        return res[1]
    ports = "%d" % res[2] if res[2] == res[3] else "%d-%d" % (res[2], res[3])
    return "tcp/%s:%s" % (host_form(res[1]), ports)


def param_text(key, value):
    if key in ("approve", "m", "op", "sha256"):
        return ",".join(value)
    if key == "args":
        return path_text(value)
    if key == "ref":
        return path_text(value)[1:]
    if key == "priv":
        return ",".join(sorted(host_form(net) for net in value))
    if key == "rate":
        return "%d/%d" % value
    return url_text(value) if key == "to" else str(value)


def text(term):
    action, realm, res, params = term
    words = ["%s:%s:%s" % (action, realm, res_text(res))]
    words += ["%s=%s" % (key, param_text(key, params[key])) for key in sorted(params)]
    return ";".join(words)


def copy(term):
    action, realm, res, params = term
    return [action, realm, copy_value(res), {key: copy_value(v) for key, v in params.items()}]


def copy_value(value):
    return [copy_value(v) for v in value] if isinstance(value, list) else value


# ---- narrowing ----------------------------------------------------------------------------------


def narrow_net(rng, host):
    _, version, base, length = host
    bits = 32 if version == 4 else 128
    if length == bits:
        return host
    more = rng.pick([length, length + 1, length + 1, bits, min(bits, length + 8)])
    low = rng.pick([0, 1, (1 << (more - length)) - 1]) << (bits - more)
    return ("net", version, base | low, more)


def narrow_host(rng, host):
    if host[0] == "all":
        return rng.pick([host, ("one", "a.b"), ("sub", "c.d"), ("name", rng.pick(NAMES[2:]))])
    if host[0] == "one":
        return rng.pick([host, ("name", rng.pick(LABELS) + "." + host[1])])
    if host[0] == "sub":
        name = host[1]
        under = rng.pick(LABELS) + "." + name
        kind = rng.pick(["sub", "one", "name"])
        return rng.pick([host, ("one", name), (kind, under), (kind, "b." + under)])
    return narrow_net(rng, host) if host[0] == "net" else host


def narrow_path(rng, path, least=0, args=False):
    segs = [fill(rng, seg, True) if rng.chance(0.5) else seg for seg in path[1]]
    deep = path[2]
    if deep and rng.chance(0.6):
        maker = an_arg if args else pat_seg
        segs += [maker(rng) for _ in range(rng.below(3))]
        deep = rng.chance(0.4) or len(segs) < least
    return ["path", segs, deep]


def narrow_url(rng, url):
    _, scheme, host, port, segs, end = url
    segs = [fill(rng, seg, True) if rng.chance(0.5) else seg for seg in segs]
    if end == "/**" and rng.chance(0.6):
        segs += [pat_seg(rng) for _ in range(rng.below(3))]
        end = rng.pick(["", "/", "/**"]) if segs else rng.pick(["/", "/**"])
    if host[0] != "net" and rng.chance(0.5):
        host = narrow_host(rng, host)
    return ["url", scheme, host, port, segs, end]


def narrow_ports(rng, low, high):
    if low == high or rng.chance(0.4):
        return [low, high]
    ends = sorted(low + rng.pick([0, 1, (high - low) // 2, high - low]) for _ in range(2))
    return ends


def narrow_resource(rng, term):
    action, res = term[0], term[2]
    if res[0] == "net":
        host = narrow_host(rng, res[1]) if rng.chance(0.6) else res[1]
        return ["net", host] + narrow_ports(rng, res[2], res[3])
    if res[0] == "url":
        return narrow_url(rng, res)
    if res[0] == "path":
        return narrow_path(rng, res, 1 if action == "tool.call" else 0)
    return res


def narrow_rate(rng, rate):
    uses, seconds = rate
    window = rng.pick([seconds, seconds, seconds // 2, seconds - 1, seconds + 1, seconds * 3, 1])
    window = max(1, min(window, MAX_NUM))
    times = -(-seconds // window)
    if uses // times == 0:
        return uses, seconds
    return uses // times, window


def narrow_priv(rng, priv):
    nets = [narrow_net(rng, net) if rng.chance(0.4) else net for net in priv]
    if len(nets) > 1 and rng.chance(0.4):
        nets.pop(rng.below(len(nets)))
    return nets


def narrow_list(rng, items):
    kept = [item for item in items if rng.chance(0.7)]
    return kept or items


def narrow_param(rng, key, value):
    if key in ("n", "max-in", "max-out"):
        return rng.pick([value, max(1, value - 1), max(1, value // 2)])
    if key == "approve":
        return sorted(set(value + [rng.pick(IDS)]))
    if key == "args":
        return narrow_path(rng, value, 0, True)
    if key == "m":
        return a_param(rng, "m") if value == ["*"] else narrow_list(rng, value)
    if key in ("sha256", "op"):
        return narrow_list(rng, value)
    if key == "q":
        return rng.pick([value, "none"])
    if key == "o":
        return rng.pick([value, "r"])
    if key == "rate":
        return narrow_rate(rng, value)
    if key == "priv":
        return narrow_priv(rng, value)
    if key == "ref":
        return narrow_path(rng, value, 1)
    return narrow_url(rng, value) if key == "to" else value


RIGHTS = ("danger", "priv", "tls")  # params that add to a capability; the others take away


def narrow(rng, term):
    """A term that lies within, if all goes well: params tightened or added, rights dropped."""
    out = copy(term)
    out[2] = narrow_resource(rng, out)
    params = out[3]
    for key in sorted(params):
        if key in RIGHTS and rng.chance(0.25):
            del params[key]
        elif rng.chance(0.45):
            params[key] = narrow_param(rng, key, params[key])
    for key in GRANTS[out[0]][2]:
        if key not in params and key not in RIGHTS and key != "ref" and rng.chance(0.1):
            params[key] = a_param(rng, key)
    cross(rng, out)
    return tidy(out)


def cross(rng, term):
    """fs.put below fs.write, http.request below net.connect."""
    if term[0] == "fs.write" and rng.chance(0.5):
        term[0] = "fs.put"
    if term[0] != "net.connect" or rng.chance(0.5):
        return
    _, host, low, high = term[2]
    if host[0] == "net":
        host = ("net", host[1], host[2], 32 if host[1] == 4 else 128)
    url = a_url(rng)
    url[2], url[3] = host, rng.pick([low, high, (low + high) // 2])
    term[0], term[2] = "http.request", url
    term[3].update(m=a_param(rng, "m"), q=a_param(rng, "q"))
    if rng.chance(0.3):
        make_free(rng, term)


# ---- one wrong step -----------------------------------------------------------------------------


def spoil_path(rng, path):
    segs, roll = path[1], rng.random()
    if roll < 0.3 and segs:
        at = rng.below(len(segs))
        segs[at] = loosen_seg(rng, segs[at])
    elif roll < 0.5 and segs:
        segs[rng.below(len(segs))] = pat_seg(rng)
    elif roll < 0.65 and segs:
        segs.pop(rng.below(len(segs)))
    elif roll < 0.8:
        segs.insert(rng.below(len(segs) + 1), lit_seg(rng))
    else:
        path[2] = not path[2]


def spoil_host(rng, host, nets):
    if host[0] == "net":
        _, version, base, length = host
        bits = 32 if version == 4 else 128
        if length == 0:
            return ("net", version, 1 << (bits - 1), 1)
        if not nets or rng.chance(0.4):
            return ("net", version, base ^ (1 << (bits - length)), length)
        return ("net", version, base & ~(1 << (bits - length)), max(1, length - 1))
    if host[0] == "all":
        return rng.pick([("name", "localhost"), a_host(rng, nets)])
    kind = rng.pick(["one", "sub", "name"])
    return rng.pick([(kind, host[1]), (kind, "c." + host[1]), ("all",), a_host(rng, nets)])


def spoil_resource(rng, term):
    res = term[2]
    if res[0] == "path":
        spoil_path(rng, res)
    elif res[0] == "repo":
        res[1] = rng.pick(REPOS)
    elif res[0] == "net":
        if rng.chance(0.5) and term[0] != "net.bind":
            res[1] = spoil_host(rng, res[1], True)
        elif rng.chance(0.5):
            res[2] = max(1, res[2] - 1)
        else:
            res[3] = min(65535, res[3] + 1)
    else:
        spoil_url(rng, res)


def spoil_url(rng, url):
    roll = rng.random()
    if roll < 0.4:
        url[2] = spoil_host(rng, url[2], False)
    elif roll < 0.5:
        url[1] = "http" if url[1] == "https" else "https"
    elif roll < 0.6:
        url[3] = rng.pick(PORTS)
    elif roll < 0.75 and url[4] and "*" in url[4][-1]:
        url[4].pop()
        url[5] = "/"
    elif roll < 0.8 or not url[4]:
        url[5] = rng.pick(["", "/", "/**"]) if url[4] else rng.pick(["/", "/**"])
    else:
        at = rng.below(len(url[4]))
        url[4][at] = rng.pick([loosen_seg(rng, url[4][at]), pat_seg(rng)])


def spoil_param(rng, term):
    params = term[3]
    key = rng.pick(sorted(params))
    value = params[key]
    if key in ("n", "max-in", "max-out"):
        params[key] = min(MAX_NUM, value + 1)
    elif key == "rate":
        uses, seconds = value
        wraps = min(MAX_NUM, 2**64 // seconds)  # times the window it is zero in 64 bits
        options = [(min(MAX_NUM, uses + 1), seconds), (uses, max(1, seconds - 1)), (wraps, 1)]
        params[key] = rng.pick(options)
    elif key == "to" and rng.chance(0.8):
        spoil_url(rng, value)
    elif key in ("args", "ref") and rng.chance(0.8):
        spoil_path(rng, value)
    elif key in USES + ("sha256", "args") and rng.chance(0.3):
        del params[key]
    else:
        params[key] = a_param(rng, key)


def spoil(rng, term):
    """One change, which may or may not matter."""
    out = copy(term)
    roll = rng.random()
    if roll < 0.06:
        out[1] = rng.pick(REALMS)
    elif roll < 0.12 and out[0].startswith("fs."):
        out[0] = rng.pick(["fs.read", "fs.write", "fs.put"])
    elif roll < 0.2 and GRANTS[out[0]][2]:
        key = rng.pick(GRANTS[out[0]][2])
        out[3][key] = a_param(rng, key)
    elif roll < 0.6 or not out[3]:
        spoil_resource(rng, out)
    else:
        spoil_param(rng, out)
    return tidy(out) if rng.chance(0.97) else out


# ---- pairs --------------------------------------------------------------------------------------

# Actions with more to them are drawn more often.
DRAWN = list(GRANTS) + """fs.read fs.write proc.exec net.connect http.request http.request git.use
    secret.use""".split()


def pair(rng):
    """Two related grants: most often (child, parent), sometimes siblings or strangers."""
    parent = grant(rng, rng.pick(DRAWN))
    roll = rng.random()
    if roll < 0.36:
        return narrow(rng, parent), parent
    if roll < 0.56:
        return spoil(rng, narrow(rng, parent)), parent
    if roll < 0.83:
        return narrow(rng, parent), narrow(rng, parent)
    if roll < 0.91:
        return spoil(rng, narrow(rng, parent)), spoil(rng, narrow(rng, parent))
    if roll < 0.93:
        return copy(parent), parent
    return grant(rng, parent[0] if rng.chance(0.7) else None), parent
