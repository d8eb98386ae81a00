"""Requests that follow from a grant, denials that follow from a request; terms as in gen.py.

Reads:  a term and the generator's state
Writes: a term that fits it, if all goes well, or misses it by one change
Next:   compare.py and make_vectors.py
"""

from canon import REQUESTS
from gen import (
    DIGESTS, LABELS, METHODS, NAMES, NETS, REALMS, a_param, a_url, an_arg, copy, fill, host_of,
    lit_seg, loosen_seg, narrow_param, pat_seg, spoil_path, spoil_resource, spoil_url,
)

DENIED_NETS = [
    (4, 0, 0), (4, 0x7F000000, 8), (4, 0x7F000001, 32), (4, 0, 8), (4, 0, 1),
    (6, 0, 0), (6, 1, 128), (6, 0, 128), (6, 0, 127),
]

# ---- requests -----------------------------------------------------------------------------------


def concrete_host(rng, host):
    if host[0] == "all":
        return ("name", rng.pick(NAMES))
    if host[0] == "one":
        return ("name", rng.pick(LABELS) + "." + host[1])
    if host[0] == "sub":
        return ("name", rng.pick(["", "b.", "b.a."]) + rng.pick(LABELS) + "." + host[1])
    if host[0] == "net":
        _, version, base, length = host
        bits = 32 if version == 4 else 128
        last = (1 << (bits - length)) - 1
        inner = rng.pick([0, last, last // 2, rng.below(min(last, 1 << 40) + 1)])
        return ("net", version, base | inner, bits)
    return host


def concrete_segs(rng, segs, deep, maker=lit_seg):
    segs = [fill(rng, seg, False).replace("*", "a") for seg in segs]
    return segs + [maker(rng) for _ in range(rng.below(3))] if deep else segs


def concrete_url(rng, url):
    _, scheme, host, port, segs, end = url
    segs = concrete_segs(rng, segs, end == "/**")
    if end == "/**":
        end = rng.pick(["", "/"]) if segs else "/"
    return ["url", scheme, concrete_host(rng, host), port, segs, end]


def concrete_arg(rng):
    return an_arg(rng).replace("*", "b")


def concrete_path(rng, path, maker=lit_seg):
    return ["path", concrete_segs(rng, path[1], path[2], maker), False]


def concrete_resource(rng, res):
    if res[0] == "path":
        return concrete_path(rng, res)
    if res[0] == "url":
        return concrete_url(rng, res)
    if res[0] == "net":
        port = rng.pick([res[2], res[3], (res[2] + res[3]) // 2])
        return ["net", concrete_host(rng, res[1]), port, port]
    return res


def concrete_params(rng, term):
    action, _, _, params = term
    required, optional = REQUESTS.get(action, ((), ()))
    out = {}
    for key in ("as", "o", "q"):
        if key in required:
            out[key] = params[key] if key == "as" else narrow_param(rng, key, params[key])
    if "m" in required:
        out["m"] = [rng.pick(METHODS if params["m"] == ["*"] else params["m"])]
    if "op" in required:
        out["op"] = [rng.pick(params["op"])]
        if out["op"] == ["push"]:
            out["ref"] = concrete_path(rng, params.get("ref", ["path", ["main"], False]))
    if "to" in required:
        out["to"] = concrete_url(rng, params["to"])
    if "args" in optional and ("args" in params or rng.chance(0.3)):
        out["args"] = concrete_path(rng, params.get("args", ["path", [], True]), concrete_arg)
    if "sha256" in optional and ("sha256" in params or rng.chance(0.3)):
        out["sha256"] = [rng.pick(params.get("sha256", DIGESTS))]
    if "priv" in params and rng.chance(0.6):
        out["priv"] = [concrete_host(rng, rng.pick(params["priv"]))]
    if action == "net.connect" and rng.chance(0.3):
        out["tls"] = "sni"
    return out


def request(rng, term):
    """A request that the term matches, if all goes well."""
    out = [term[0], term[1], concrete_resource(rng, term[2]), concrete_params(rng, term)]
    if term[0] == "fs.write" and rng.chance(0.5):
        out[0] = "fs.put"
    elif term[0] == "net.connect" and rng.chance(0.4):
        url = concrete_url(rng, a_url(rng))
        url[2], url[3] = out[2][1], out[2][2]
        out[0], out[2] = "http.request", url
        out[3].pop("tls", None)
        out[3].update(m=[rng.pick(METHODS)], q=rng.pick(["any", "none"]))
    elif term[0] == "http.request" and rng.chance(0.3):
        out[0], out[2] = "net.connect", ["net", out[2][2], out[2][3], out[2][3]]
        out[3] = {key: out[3][key] for key in ("priv",) if key in out[3]}
        if rng.chance(0.9):
            out[3]["tls"] = "sni"
    if rng.chance(0.06):
        out[3]["priv"] = [concrete_host(rng, ("net", *rng.pick(NETS)))]
    if out[0] not in ("net.connect", "http.request") or host_of(out)[0] == "net":
        out[3].pop("priv", None)
    return out


def spoil_request(rng, req):
    """One change that leaves a request, most of the time."""
    out = copy(req)
    roll = rng.random()
    if roll < 0.05:
        out[1] = rng.pick(REALMS)
    elif roll < 0.15 and out[0].startswith("fs."):
        out[0] = rng.pick(["fs.read", "fs.write", "fs.put"])
    elif roll < 0.65 or not out[3]:
        res = out[2]
        if res[0] == "path" and res[1]:
            res[1][rng.below(len(res[1]))] = lit_seg(rng)
        elif res[0] == "net" and rng.chance(0.5):
            res[2] = res[3] = rng.pick([max(1, res[2] - 1), min(65535, res[2] + 1)])
        else:
            spoil_resource(rng, out)
            out[2] = concrete_resource(rng, out[2])
    else:
        spoil_request_param(rng, out)
    return out


def spoil_request_param(rng, out):
    key = rng.pick(sorted(out[3]))
    if key in ("args", "sha256", "priv", "tls") and rng.chance(0.4):
        del out[3][key]
    elif key == "to":
        spoil_url(rng, out[3][key])
        out[3][key] = concrete_url(rng, out[3][key])
    elif key in ("args", "ref"):
        spoil_path(rng, out[3][key])
        out[3][key] = concrete_path(rng, out[3][key])
    elif key == "priv":
        out[3][key] = [concrete_host(rng, ("net", *rng.pick(NETS)))]
    elif key in ("m", "sha256"):
        out[3][key] = [rng.pick(METHODS if key == "m" else DIGESTS)]
    elif key != "op" and key != "tls":
        out[3][key] = a_param(rng, key)


# ---- denials ------------------------------------------------------------------------------------


def denied_path(rng, segs):
    segs = [loosen_seg(rng, seg) if rng.chance(0.3) else seg for seg in segs]
    segs = segs[: len(segs) - rng.below(len(segs) + 1)] if rng.chance(0.5) else segs
    if segs and rng.chance(0.5):
        start = rng.below(len(segs))
        segs[start : start + rng.below(len(segs) - start)] = ["**"]
    return ["path", segs, True]


def denied_host(rng, host):
    if rng.chance(0.1):
        return ("all",)
    if host[0] == "net":
        if rng.chance(0.3):
            return ("net", *rng.pick(DENIED_NETS))
        _, version, base, bits = host
        length = rng.pick([0, 1, 8, 31, bits])
        return ("net", version, base >> (bits - length) << (bits - length), length)
    name = host[1]
    if "." not in name:
        return host
    parent = name.partition(".")[2]
    if "." not in parent:
        return rng.pick([host, ("sub", name), ("all",)])
    return rng.pick([host, ("one", parent), ("sub", parent), ("sub", parent), ("one", name)])


def denial(rng, req):
    """A denial that matches the request, if all goes well."""
    action, realm, res, _ = copy(req)
    if action.startswith("fs.") or action == "proc.exec":
        res = denied_path(rng, res[1])
        if action == "fs.put" and rng.chance(0.5):
            action = "fs.write"
    elif res[0] == "net" and action == "net.connect":
        if rng.chance(0.3):
            scheme = rng.pick(["http", "https"])
            action, res = "http.request", ["url", scheme, res[1], res[2], [pat_seg(rng)], "/**"]
        else:
            low, high = max(1, res[2] - rng.below(2)), min(65535, res[3] + rng.below(2))
            res = ["net", denied_host(rng, res[1]), low, high]
    elif res[0] == "url":
        if rng.chance(0.4):
            action, res = "net.connect", ["net", denied_host(rng, res[2]), res[3], res[3]]
        else:
            res[4] = [loosen_seg(rng, seg) if rng.chance(0.3) else seg for seg in res[4]]
            if rng.chance(0.5):
                res[4], res[5] = res[4][: rng.below(len(res[4]) + 1)], "/**"
    elif action in ("env.pass", "agent.spawn", "state.use", "tool.call"):
        res[1] = [loosen_seg(rng, seg) if rng.chance(0.4) else seg for seg in res[1]]
    elif action == "dev.use":
        res[1][-1] = rng.pick([res[1][-1], loosen_seg(rng, res[1][-1])])
    return [action, realm, res, {}]


def spoil_denial(rng, term):
    out = copy(term)
    if rng.chance(0.15):
        out[1] = rng.pick(REALMS)
    elif rng.chance(0.15) and out[0].startswith("fs."):
        out[0] = rng.pick(["fs.read", "fs.write", "fs.put"])
    else:
        spoil_resource(rng, out)
        if out[0].startswith("fs.") or out[0] == "proc.exec":
            out[2][2] = rng.chance(0.97)
    return out
