"""Model of the capability algebra, written from docs/capabilities.md and from nothing else.

Reads:  canonical strings (grants, requests, denials) and raw path bytes
Writes: answers: parse, matches, within, meet, denies, decide, put_path
Next:   gen.py makes input for it, compare.py holds the C code against it

Section numbers in comments are those of docs/capabilities.md. The model favours plainness over
speed. canon.py has the grammar and describes the parsed values.
"""

from canon import MAX_CAP, MAX_NUM, Bad, Cap, host_form, inside, need, parse, put_path, try_parse
from canon import unrestricted

__all__ = [
    "Bad", "Cap", "Set", "decide", "denies", "matches", "meet", "meet_sets", "parse", "put_path",
    "set_within", "try_parse", "within",
]


# ---- 3. matches ---------------------------------------------------------------------------------


def seg_matches(seg, raw):
    if len(seg) == 1:
        return seg[0] == raw
    prefix, suffix = seg
    fits = len(raw) >= max(1, len(prefix) + len(suffix))
    return fits and raw.startswith(prefix) and raw.endswith(suffix)


def path_matches(path, concrete):
    segs, deep = path
    names = concrete[0]
    if len(names) < len(segs) or (len(names) > len(segs) and not deep):
        return False
    return all(seg_matches(seg, name[0]) for seg, name in zip(segs, names))


def below(name, parent):
    return name.endswith("." + parent)


def host_matches(host, concrete):
    if host[0] == "net" or concrete[0] == "net":
        return host[0] == concrete[0] == "net" and inside(concrete, host)
    name = concrete[1]
    if host[0] == "all":
        return "." in name
    if host[0] == "name":
        return name == host[1]
    if not below(name, host[1]):
        return False
    return host[0] == "sub" or "." not in name[: -len(host[1]) - 1]


def url_matches(url, concrete):
    same = url[0] == concrete[0] and url[2] == concrete[2]
    return same and host_matches(url[1], concrete[1]) and path_matches(url[3], concrete[3])


def net_matches(net, host, port):
    return host_matches(net[0], host) and net[1] <= port <= net[2]


def res_matches(cap, req):
    acts = (cap.action, req.action)
    if acts == ("fs.write", "fs.put"):
        return path_matches(cap.res, req.res)
    if acts == ("net.connect", "http.request"):
        return net_matches(cap.res, req.res[1], req.res[2])
    if acts == ("http.request", "net.connect"):
        if "tls" not in req.params or not unrestricted(cap.res, cap.params):
            return False
        return cap.res[2] == req.res[1] and host_matches(cap.res[1], req.res[0])
    if cap.action != req.action:
        return False
    if cap.action in ("net.connect", "net.bind"):
        return net_matches(cap.res, req.res[0], req.res[1])
    if cap.action == "http.request":
        return url_matches(cap.res, req.res)
    if cap.action == "git.use":
        return cap.res == req.res
    return path_matches(cap.res, req.res)


def params_match(cap, req):
    have, want = cap.params, req.params
    if "priv" in want:
        if not any(inside(want["priv"][0], net) for net in have.get("priv", ())):
            return False
    if "args" in have:
        if "args" not in want or not path_matches(have["args"], want["args"]):
            return False
    if "sha256" in have:
        if "sha256" not in want or want["sha256"][0] not in have["sha256"]:
            return False
    if cap.action != req.action:
        return True
    if "m" in have and have["m"] != "*" and want["m"][0] not in have["m"]:
        return False
    if have.get("q") == "none" and want["q"] != "none":
        return False
    if have.get("o") == "r" and want["o"] != "r":
        return False
    if "op" in have and want["op"][0] not in have["op"]:
        return False
    if "ref" in want and not path_matches(have["ref"], want["ref"]):
        return False
    if "as" in have and have["as"] != want["as"]:
        return False
    return "to" not in have or url_matches(have["to"], want["to"])


def matches(cap, req):
    return cap.realm == req.realm and res_matches(cap, req) and params_match(cap, req)


# ---- 4. within ----------------------------------------------------------------------------------


def seg_within(child, parent):
    if len(parent) == 1:
        return child == parent
    if len(child) == 1:
        return seg_matches(parent, child[0])
    return child[0].startswith(parent[0]) and child[1].endswith(parent[1])


def path_within(child, parent):
    segs, deep = child
    p_segs, p_deep = parent
    if p_deep:
        if len(segs) < len(p_segs):
            return False
    elif deep or len(segs) != len(p_segs):
        return False
    return all(seg_within(c, p) for c, p in zip(segs, p_segs))


def host_within(child, parent):
    if child[0] == "net" or parent[0] == "net":
        return child[0] == parent[0] == "net" and inside(child, parent)
    if child[0] == "name":
        return host_matches(parent, child)
    if parent[0] == "all":
        return True
    if parent[0] == "sub" and child[0] != "all":
        return child[1] == parent[1] or below(child[1], parent[1])
    return child == parent


def url_within(child, parent):
    same = child[0] == parent[0] and child[2] == parent[2]
    return same and host_within(child[1], parent[1]) and path_within(child[3], parent[3])


def net_within(host, low, high, parent):
    return host_within(host, parent[0]) and parent[1] <= low and high <= parent[2]


def res_within(child, parent):
    acts = (child.action, parent.action)
    if acts == ("fs.put", "fs.write"):
        return path_within(child.res, parent.res)
    if acts == ("http.request", "net.connect"):
        _, host, port, _ = child.res
        return net_within(host, port, port, parent.res)
    if child.action != parent.action:
        return False
    if child.action in ("net.connect", "net.bind"):
        return net_within(*child.res, parent.res)
    if child.action == "http.request":
        return url_within(child.res, parent.res)
    if child.action == "git.use":
        return child.res == parent.res
    return path_within(child.res, parent.res)


def rate_within(child, parent):
    uses, seconds = child
    p_uses, p_seconds = parent
    return uses * -(-p_seconds // seconds) <= p_uses


def subset(child, parent):
    return set(child) <= set(parent)


def methods_within(child, parent):
    if parent == "*" or child == "*":
        return parent == "*"
    return subset(child, parent)


def at_most(child, parent):
    return child <= parent


# A param of the parent that the child must have too, and how the two compare.
NARROWS = {
    "args": path_within,
    "as": lambda c, p: c == p,
    "m": methods_within,
    "max-in": at_most,
    "max-out": at_most,
    "n": at_most,
    "o": lambda c, p: c == "r" or p == "rw",
    "op": subset,
    "q": lambda c, p: c == "none" or p == "any",
    "rate": rate_within,
    "sha256": subset,
    "to": url_within,
}


def params_within(child, parent):
    have, limit = child.params, parent.params
    for key, narrower in NARROWS.items():
        if key in limit and (key not in have or not narrower(have[key], limit[key])):
            return False
    if not subset(limit.get("approve", ()), have.get("approve", ())):
        return False
    for net in have.get("priv", ()):
        if not any(inside(net, p_net) for p_net in limit.get("priv", ())):
            return False
    if "ref" in have and not path_within(have["ref"], limit["ref"]):
        return False
    if "danger" in have and "danger" not in limit:
        return False
    return "tls" not in have or "tls" in limit or parent.action == "net.connect"


def within(child, parent):
    if child.realm != parent.realm:
        return False
    return res_within(child, parent) and params_within(child, parent)


# ---- 5. meet: None is none ----------------------------------------------------------------------


def seg_meet(a, b):
    if len(a) == 1:
        return a if seg_within(a, b) else None
    if len(b) == 1:
        return b if seg_within(b, a) else None
    prefix = max(a[0], b[0], key=len)
    suffix = max(a[1], b[1], key=len)
    if not prefix.startswith(a[0]) or not prefix.startswith(b[0]):
        return None
    if not suffix.endswith(a[1]) or not suffix.endswith(b[1]):
        return None
    return prefix, suffix


def path_meet(a, b):
    if len(a[0]) < len(b[0]):
        a, b = b, a
    if len(a[0]) > len(b[0]) and not b[1]:
        return None
    common = [seg_meet(x, y) for x, y in zip(a[0], b[0])]
    if None in common:
        return None
    # Of equal lengths both must go deeper; a longer one brings its own end.
    deep = a[1] and b[1]
    return tuple(common) + a[0][len(b[0]) :], deep


def host_meet(a, b):
    if host_within(a, b):
        return a
    return b if host_within(b, a) else None


def url_meet(a, b):
    if a[0] != b[0] or a[2] != b[2]:
        return None
    host = host_meet(a[1], b[1])
    path = path_meet(a[3], b[3])
    return None if host is None or path is None else (a[0], host, a[2], path)


def net_meet(a, b):
    host = host_meet(a[0], b[0])
    low, high = max(a[1], b[1]), min(a[2], b[2])
    return None if host is None or low > high else (host, low, high)


def set_meet(a, b):
    if a == "*":
        return b
    if b == "*":
        return a
    return tuple(x for x in a if x in b) or None


def priv_meet(a, b):
    found = set()
    for x in a:
        for y in b:
            if inside(x, y):
                found.add(x)
            elif inside(y, x):
                found.add(y)
    return tuple(sorted(found, key=host_form))


# Params on both sides; a one-sided one is kept.
MEETS = {
    "approve": lambda a, b: tuple(sorted(set(a) | set(b))),
    "args": path_meet,
    "as": lambda a, b: a if a == b else None,
    "m": set_meet,
    "max-in": min,
    "max-out": min,
    "n": min,
    "o": min,
    "op": set_meet,
    "q": max,
    "rate": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "sha256": set_meet,
    "to": url_meet,
}


def params_meet(a, b):
    out = {}
    for key, combine in MEETS.items():
        if key in a and key in b:
            out[key] = combine(a[key], b[key])
            if out[key] is None:
                return None
        elif key in a or key in b:
            out[key] = a[key] if key in a else b[key]
    priv = priv_meet(a.get("priv", ()), b.get("priv", ()))
    if priv:
        out["priv"] = priv
    for key in ("danger", "tls"):
        if key in a and key in b:
            out[key] = a[key]
    if "push" in out.get("op", ()):
        out["ref"] = path_meet(a["ref"], b["ref"])
        if out["ref"] is None:
            return None
    return out


def res_meet(a, b):
    """(action, resource), or None."""
    acts = {a.action, b.action}
    if acts == {"http.request", "net.connect"}:
        http, net = (a, b) if a.action == "http.request" else (b, a)
        scheme, host, port, path = http.res
        both = net_meet((host, port, port), net.res)
        return both and ("http.request", (scheme, both[0], port, path))
    if acts == {"fs.put", "fs.write"}:
        action = "fs.put"
    elif len(acts) == 1:
        action = a.action
    else:
        return None
    if action in ("net.connect", "net.bind"):
        res = net_meet(a.res, b.res)
    elif action == "http.request":
        res = url_meet(a.res, b.res)
    elif action == "git.use":
        res = a.res if a.res == b.res else None
    else:
        res = path_meet(a.res, b.res)
    return None if res is None else (action, res)


def meet(a, b):
    """One capability within both, or None."""
    a_in_b, b_in_a = within(a, b), within(b, a)
    if a_in_b and b_in_a:
        return min(a, b, key=lambda cap: cap.text)
    if a_in_b or b_in_a:
        return a if a_in_b else b
    if a.realm != b.realm:
        return None
    found = res_meet(a, b)
    params = found and params_meet(a.params, b.params)
    if params is None or found is None:
        return None
    cap = Cap("g", found[0], a.realm, found[1], params)
    # A string over the limit is not a capability, so there is none to give.
    return cap if len(cap.text) <= MAX_CAP else None


# ---- 6. Denials ---------------------------------------------------------------------------------


def denied_path_matches(segs, names):
    """The path ends in "/**": a prefix of the names is enough."""
    if not segs:
        return True
    if segs[0] is None:
        return any(denied_path_matches(segs[1:], names[skip:]) for skip in range(len(names) + 1))
    if not names or not seg_matches(segs[0], names[0][0]):
        return False
    return denied_path_matches(segs[1:], names[1:])


def denied_net_matches(net, host, port, params):
    hit = net[0][0] == "all" or host_matches(net[0], host)
    if net[0][0] == "net" and "priv" in params:
        hit = hit or inside(params["priv"][0], net[0])
    return hit and net[1] <= port <= net[2]


def denies(denial, req):
    if denial.realm != req.realm:
        return False
    acts = (denial.action, req.action)
    if acts == ("net.connect", "net.connect"):
        return denied_net_matches(denial.res, req.res[0], req.res[1], req.params)
    if acts == ("net.connect", "http.request"):
        return denied_net_matches(denial.res, req.res[1], req.res[2], req.params)
    if acts == ("http.request", "net.connect"):
        return denial.res[2] == req.res[1] and host_matches(denial.res[1], req.res[0])
    if denial.action != req.action and acts != ("fs.write", "fs.put"):
        return False
    if denial.action.startswith("fs.") or denial.action == "proc.exec":
        return denied_path_matches(denial.res[0], req.res[0])
    if denial.action == "net.bind":
        return net_matches(denial.res, req.res[0], req.res[1])
    if denial.action == "http.request":
        return url_matches(denial.res, req.res)
    if denial.action == "git.use":
        return denial.res == req.res
    return path_matches(denial.res, req.res)


# ---- sets: 4, 5, 7, 8 ---------------------------------------------------------------------------

LIMITS = "command cpu disk down files idle memory output pids requests session up".split()


class Set:
    """Capabilities, denials and limits, all parsed from text. Raises Bad."""

    def __init__(self, caps=(), denials=(), limits=None):
        self.caps = [parse("g", text) for text in sorted(set(caps))]
        self.denials = [parse("d", text) for text in sorted(set(denials))]
        self.limits = dict(limits or {})
        for key, value in self.limits.items():
            need(key in LIMITS and 1 <= value <= MAX_NUM, "limit")


def set_within(child, parent):
    for cap in child.caps:
        if not any(within(cap, p_cap) for p_cap in parent.caps):
            return False
    return all(child.limits.get(key, MAX_NUM + 1) <= most for key, most in parent.limits.items())


def meet_sets(a, b):
    found = {}
    for x in a.caps:
        for y in b.caps:
            both = meet(x, y)
            if both is not None:
                found[both.text] = both
    caps = [
        text
        for text, cap in found.items()
        if not any(within(cap, other) for other in found.values() if other.text != text)
    ]
    limits = dict(a.limits)
    for key, most in b.limits.items():
        limits[key] = min(most, limits.get(key, most))
    return Set(caps, [d.text for d in a.denials + b.denials], limits)


def decide(policy, req):
    """(verdict, ids that must agree, capabilities that are debited)."""
    if any(denies(denial, req) for denial in policy.denials):
        return "deny", (), ()
    hits = tuple(cap for cap in policy.caps if matches(cap, req))
    if not hits:
        return "deny", (), ()
    ids = tuple(sorted({who for cap in hits for who in cap.params.get("approve", ())}))
    return ("ask" if ids else "allow"), ids, hits
