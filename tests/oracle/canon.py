"""Canonical strings: the grammar of docs/capabilities.md, sections 1 to 3 and 6.

Reads:  text of grants, requests and denials; raw bytes of paths
Writes: parsed values, and text again
Next:   writ_oracle.py relates the parsed values

Values:
  segment   (bytes,) for a literal, (prefix, suffix) for one with a star; (b"",) is the empty
            segment of a urlpath; None is the inner "**" of a denial
  path      (tuple of segments, True if it ends in "/**")
  host      ("all",)  ("name", n)  ("one", d) for *.d  ("sub", d) for **.d
            ("net", version, base, len) for an address or a network
  net       (host, low port, high port)
  url       (scheme, host, port, path)
"""

import ipaddress
import re
from functools import lru_cache

MAX_CAP = 4096
MAX_SEGS = 128
MAX_NUM = 2**53 - 1
LIT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+@=-")
EMPTY = (b"",)

RE_REALM = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
RE_SEG = re.compile(r"(?:[A-Za-z0-9._~+@=*-]|%[0-9A-F][0-9A-F])+")
RE_PCT = re.compile(r"%([0-9A-F][0-9A-F])")
RE_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
RE_NUMBERLIKE = re.compile(r"[0-9]+|0x[0-9a-f]*")
RE_V4 = re.compile(r"([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)(?:/([0-9]+))?")
RE_V6 = re.compile(r"\[([0-9a-f:]+)\](?:/([0-9]+))?")
RE_OCTET = re.compile(r"0|[1-9][0-9]{0,2}")
RE_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
RE_URL = re.compile(r"(https?)://([^/]+):([0-9]+)(/.*)")
RE_REPO = re.compile(r"(?:https://|ssh://(?:[A-Za-z0-9._~+-]+@)?)([^/:@]+):([0-9]+)(/.*)")
RE_METHOD = re.compile(r"[A-Z]{1,16}")
RE_SHA256 = re.compile(r"[0-9a-f]{64}")
RE_AS = re.compile(r"basic|bearer|env|header:[a-z0-9-]{1,64}|query:[A-Za-z0-9._-]{1,64}")

LOOPBACK = (("net", 4, 127 << 24, 8), ("net", 4, 0, 8), ("net", 6, 1, 128), ("net", 6, 0, 128))
MAPPED = ("net", 6, 0xFFFF << 32, 96)


class Bad(Exception):
    """The string is not in canonical form."""


class Cap:
    """One parsed grant, request or denial. `params` maps a key to its parsed value."""

    __slots__ = ("kind", "action", "realm", "res", "params", "text")

    def __init__(self, kind, action, realm, res, params, text=None):
        self.kind = kind
        self.action = action
        self.realm = realm
        self.res = res
        self.params = params
        self.text = form(self) if text is None else text

    def __repr__(self):
        return "Cap(%s %s)" % (self.kind, self.text)


def need(truth, why):
    if not truth:
        raise Bad(why)


# ---- 1. Strings: segments and paths -------------------------------------------------------------


def decode(text, args):
    """Bytes of a part of a segment that has no star in it."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "%":
            out.append(ord(text[at]))
            at += 1
            continue
        byte = int(text[at + 1 : at + 3], 16)
        need(byte not in LIT, "needless escape")
        need(byte != 0, "escaped NUL")
        need(byte != 0x2F or args, "escaped slash")
        out.append(byte)
        at += 3
    return bytes(out)


@lru_cache(maxsize=1 << 16)
def parse_seg(text, args=False):
    need(RE_SEG.fullmatch(text), "segment")
    need(args or text not in (".", ".."), "dot segment")
    parts = text.split("*")
    need(len(parts) <= 2, "two stars in a segment")
    return tuple(decode(part, args) for part in parts)


def split_deep(parts):
    if parts[-1] == "**":
        return parts[:-1], True
    return parts, False


@lru_cache(maxsize=1 << 14)
def parse_path(text, args=False):
    need(text.startswith("/"), "path without slash")
    if text == "/":
        return (), False
    parts, deep = split_deep(text[1:].split("/"))
    need(len(parts) <= MAX_SEGS, "too many segments")
    return tuple(parse_seg(p, args) for p in parts), deep


@lru_cache(maxsize=1 << 14)
def parse_urlpath(text):
    need(text.startswith("/"), "urlpath without slash")
    parts, deep = split_deep(text[1:].split("/"))
    tail = ()
    if not deep and parts[-1] == "":
        parts, tail = parts[:-1], (EMPTY,)
    return tuple(parse_seg(p) for p in parts) + tail, deep


def parse_ref(text):
    parts, deep = split_deep(text.split("/"))
    need(parts, "ref without a segment")
    return tuple(parse_seg(p) for p in parts), deep


def parse_denied_path(text):
    """6: ends in "/**", and one more "**" somewhere before it, not next to it."""
    need(text.startswith("/"), "path without slash")
    parts, deep = split_deep(text[1:].split("/"))
    need(deep, "a denied path ends in /**")
    need(parts.count("**") <= 1, "a third **")
    need(not parts or parts[-1] != "**", "adjacent **")
    need(len(parts) - parts.count("**") <= MAX_SEGS, "too many segments")
    return tuple(None if p == "**" else parse_seg(p) for p in parts), True


# ---- 1. Strings: hosts, ports, numbers, urls ----------------------------------------------------


@lru_cache(maxsize=1 << 14)
def parse_name(text):
    need(0 < len(text) <= 253, "length of a name")
    labels = text.split(".")
    for label in labels:
        need(RE_LABEL.fullmatch(label), "label")
        need(label[2:4] != "--" or label.startswith("xn--"), "-- in a label")
    need(not RE_NUMBERLIKE.fullmatch(labels[-1]), "last label is a number")
    need(not text.endswith(".localhost"), "name below localhost")
    return text


def parse_name2(text):
    need("." in text, "one label below a wildcard")
    return parse_name(text)


def v6_text(value):
    """RFC 5952 text; own code, because library versions differ on mapped addresses."""
    groups = [(value >> shift) & 0xFFFF for shift in range(112, -16, -16)]
    best, best_len = 0, 1
    at = 0
    while at < 8:
        end = at
        while end < 8 and groups[end] == 0:
            end += 1
        if end - at > best_len:
            best, best_len = at, end - at
        at = end + 1
    words = ["%x" % g for g in groups]
    if best_len < 2:
        return ":".join(words)
    return ":".join(words[:best]) + "::" + ":".join(words[best + best_len :])


def inside(child, parent):
    """Network or address within network or address."""
    _, version, base, length = child
    _, p_version, p_base, p_length = parent
    if version != p_version or length < p_length:
        return False
    shift = (32 if version == 4 else 128) - p_length
    return base >> shift == p_base >> shift


def parse_len(text, bits, denial):
    if text is None:
        return bits
    need(RE_OCTET.fullmatch(text), "prefix length")
    length = int(text)
    need((0 if denial else 1) <= length <= bits - 1, "range of prefix length")
    return length


def parse_address(text, denial=False):
    """Address or network; None if the text does not look like one at all."""
    if text.startswith("["):
        found = RE_V6.fullmatch(text)
        need(found, "IPv6 address")
        try:
            base = int(ipaddress.IPv6Address(found.group(1)))
        except ValueError:
            raise Bad("IPv6 address") from None
        need(v6_text(base) == found.group(1), "IPv6 address not as in RFC 5952")
        version, bits = 6, 128
    else:
        found = RE_V4.fullmatch(text)
        if not found:
            return None
        base = 0
        for octet in found.group(1).split("."):
            need(RE_OCTET.fullmatch(octet) and int(octet) <= 255, "IPv4 address")
            base = base << 8 | int(octet)
        version, bits = 4, 32
    length = parse_len(found.group(2), bits, denial)
    need(base & ((1 << (bits - length)) - 1) == 0, "bits behind the prefix")
    net = ("net", version, base, length)
    need(not inside(net, MAPPED), "IPv4-mapped")
    if not denial:
        for loop in LOOPBACK:
            need(not inside(net, loop) and not inside(loop, net), "loopback by address")
    return net


@lru_cache(maxsize=1 << 14)
def parse_host(text, denial=False):
    if text == "**":
        return ("all",)
    if text.startswith("**."):
        return ("sub", parse_name2(text[3:]))
    if text.startswith("*."):
        return ("one", parse_name2(text[2:]))
    net = parse_address(text, denial)
    return net if net is not None else ("name", parse_name(text))


def parse_port(text):
    need(re.fullmatch("[1-9][0-9]{0,4}", text) and int(text) <= 65535, "port")
    return int(text)


def parse_ports(text):
    low, dash, high = text.partition("-")
    if not dash:
        return parse_port(low), parse_port(low)
    need(parse_port(low) < parse_port(high), "order of ports")
    return int(low), int(high)


def parse_number(text):
    need(RE_NUMBER.fullmatch(text), "number")
    need(1 <= int(text) <= MAX_NUM, "range of number")
    return int(text)


def single(host):
    """A name or one address: what a request may have."""
    return host[0] == "name" or is_address(host)


def is_address(host):
    return host[0] == "net" and host[3] == (32 if host[1] == 4 else 128)


@lru_cache(maxsize=1 << 14)
def parse_url(text):
    found = RE_URL.fullmatch(text)
    need(found, "url")
    scheme, host, port, path = found.groups()
    return scheme, parse_host(host), parse_port(port), parse_urlpath(path)


# ---- 2. Actions: resources ----------------------------------------------------------------------


def plain(path):
    """No star and no "**"."""
    segs, deep = path
    return not deep and all(seg is not None and len(seg) == 1 for seg in segs)


def res_path(text, denial):
    return parse_denied_path(text) if denial else parse_path(text)


def res_net(text, denial):
    need(text.startswith("tcp/"), "transport")
    host, colon, ports = text[4:].rpartition(":")
    need(colon, "no port")
    return (parse_host(host, denial), *parse_ports(ports))


def res_bind(text, denial):
    net = res_net(text, False)
    need(net[0] == ("name", "localhost"), "bind is on localhost")
    return net


def res_url(text, denial):
    return parse_url(text)


def res_unix(text, denial):
    path = parse_path(text)
    need(plain(path) and path[0], "unix path")
    return path


def res_one(text, denial):
    path = parse_path(text)
    need(len(path[0]) == 1 and not path[1], "one segment")
    return path


def res_one_plain(text, denial):
    path = res_one(text, denial)
    need(plain(path), "segment without a star")
    return path


def res_dev(text, denial):
    segs, deep = parse_path(text)
    need(not deep and len(segs) >= 2 and segs[0] == (b"dev",), "device path")
    return segs, deep


def res_tool(text, denial):
    need(text != "/", "tool path")
    return parse_path(text)


def res_kernel(text, denial):
    need(text in ("/io_uring", "/nested-userns", "/ptrace-own"), "kernel feature")
    return parse_path(text)


def res_repo(text, denial):
    found = RE_REPO.fullmatch(text)
    need(found, "repository")
    parse_name(found.group(1))
    parse_port(found.group(2))
    segs = tuple(parse_seg(p) for p in found.group(3)[1:].split("/"))
    need(plain((segs, False)), "wildcard in a repository")
    return text


USES = ("approve", "n", "rate")
BYTES = ("max-in", "max-out", "priv")

# action: (resource, required params, optional params)
GRANTS = {
    "fs.read": (res_path, (), USES),
    "fs.write": (res_path, (), USES),
    "fs.put": (res_path, (), USES),
    "proc.exec": (res_path, (), USES + ("args", "sha256")),
    "net.connect": (res_net, (), USES + BYTES),
    "net.bind": (res_bind, (), USES),
    "http.request": (res_url, ("m", "q"), USES + BYTES + ("tls",)),
    "unix.connect": (res_unix, (), USES + ("danger",)),
    "env.pass": (res_one, (), USES),
    "secret.use": (res_one_plain, ("as", "to"), USES),
    "dev.use": (res_dev, ("o",), USES),
    "git.use": (res_repo, ("op",), USES + ("ref",)),
    "tool.call": (res_tool, (), USES),
    "agent.spawn": (res_one, (), USES),
    "kernel.use": (res_kernel, (), USES),
    "state.use": (res_one, (), USES),
}
ACTIONS = tuple(GRANTS)

# 3. Requests: params a request must have, may have
REQUESTS = {
    "proc.exec": ((), ("args", "sha256")),
    "net.connect": ((), ("priv", "tls")),
    "http.request": (("m", "q"), ("priv",)),
    "secret.use": (("as", "to"), ()),
    "dev.use": (("o",), ()),
    "git.use": (("op",), ("ref",)),
}


# ---- 2. Actions: params -------------------------------------------------------------------------


def parse_list(value, item):
    items = value.split(",")
    for text in items:
        item(text)
    need(all(a < b for a, b in zip(items, items[1:])), "order of a list")
    return tuple(items)


def regex_item(regex, why):
    def check(text):
        need(regex.fullmatch(text), why)

    return check


def one_of(*words):
    def check(value):
        need(value in words, "value")
        return value

    return check


def parse_methods(value):
    return "*" if value == "*" else parse_list(value, regex_item(RE_METHOD, "method"))


def parse_op(value):
    need(value in ("fetch", "push", "fetch,push"), "op")
    return tuple(value.split(","))


def parse_as(value):
    need(RE_AS.fullmatch(value), "as")
    return value


def parse_rate(value):
    uses, slash, seconds = value.partition("/")
    need(slash, "rate")
    return parse_number(uses), parse_number(seconds)


def halves(a, b):
    """True if the two are the two halves of one network."""
    if a[1] != b[1] or a[3] != b[3] or a[3] == 0 or a[2] == b[2]:
        return False
    shift = (32 if a[1] == 4 else 128) - a[3] + 1
    return a[2] >> shift == b[2] >> shift


def parse_priv(value):
    nets = []

    def item(text):
        nets.append(parse_address(text))
        need(nets[-1] is not None, "priv entry")

    parse_list(value, item)
    for i, a in enumerate(nets):
        for b in nets[i + 1 :]:
            need(not inside(a, b) and not inside(b, a), "priv entry inside another")
            need(not halves(a, b), "priv entries that make one network")
    return tuple(nets)


PARAMS = {
    "approve": lambda v: parse_list(v, regex_item(RE_REALM, "id")),
    "args": lambda v: parse_path(v, True),
    "as": parse_as,
    "danger": one_of("1"),
    "m": parse_methods,
    "max-in": parse_number,
    "max-out": parse_number,
    "n": parse_number,
    "o": one_of("r", "rw"),
    "op": parse_op,
    "priv": parse_priv,
    "q": one_of("any", "none"),
    "rate": parse_rate,
    "ref": parse_ref,
    "sha256": lambda v: parse_list(v, regex_item(RE_SHA256, "digest")),
    "tls": one_of("pass", "sni"),
    "to": parse_url,
}


def parse_params(parts, required, optional):
    params = {}
    last = ""
    for part in parts:
        key, _, value = part.partition("=")
        need(key in required or key in optional, "unknown param")
        need(key > last, "order of params")
        need(value, "empty value")
        params[key] = PARAMS[key](value)
        last = key
    need(all(key in params for key in required), "missing param")
    return params


# ---- parse --------------------------------------------------------------------------------------


def check_common(action, res, params):
    """Rules that tie params to the resource or to each other; for grants and requests."""
    if "priv" in params:
        host = res[1] if action == "http.request" else res[0]
        need(host[0] != "net", "priv on an address")
    if action == "git.use":
        need(("push" in params["op"]) == ("ref" in params), "ref exactly with push")


def unrestricted(url, params):
    """All of an https host, uncounted: what tls=pass needs, and what may stand for a tunnel."""
    free = url[3] == ((), True) and params["m"] == "*" and params["q"] == "any"
    return url[0] == "https" and free and "n" not in params and "rate" not in params


def check_grant(action, res, params):
    check_common(action, res, params)
    if "tls" in params:
        need(params["tls"] == "pass", "tls")
        need(unrestricted(res, params), "tls=pass and a restriction")


def plain_url(url):
    return single(url[1]) and plain(url[3])


def check_request(action, res, params):
    check_common(action, res, params)
    if action in ("net.connect", "net.bind"):
        need(single(res[0]) and res[1] == res[2], "one host and one port")
    elif action == "http.request":
        need(plain_url(res), "concrete url")
        need(params["m"] != "*" and len(params["m"]) == 1, "one method")
    elif action == "git.use":
        need(len(params["op"]) == 1, "one operation")
    else:
        need(plain(res), "concrete path")
    for key in ("args", "ref"):
        need(key not in params or plain(params[key]), "concrete " + key)
    need(len(params.get("sha256", "1")) == 1, "one digest")
    need(params.get("tls", "sni") == "sni", "tls")
    if "priv" in params:
        need(len(params["priv"]) == 1 and is_address(params["priv"][0]), "one address")
    need("to" not in params or plain_url(params["to"]), "concrete url")


def parse(kind, text):
    """The parsed grant ("g"), request ("r") or denial ("d"). Raises Bad."""
    need(len(text) <= MAX_CAP, "too long")
    action, _, rest = text.partition(":")
    realm, _, rest = rest.partition(":")
    need(action in GRANTS, "action")
    need(RE_REALM.fullmatch(realm), "realm")
    parts = rest.split(";")
    resource, required, optional = GRANTS[action]
    res = resource(parts[0], kind == "d")
    if kind == "d":
        need(len(parts) == 1, "a denial has no params")
        return Cap(kind, action, realm, res, {}, text)
    if kind == "r":
        required, optional = REQUESTS.get(action, ((), ()))
    params = parse_params(parts[1:], required, optional)
    (check_request if kind == "r" else check_grant)(action, res, params)
    return Cap(kind, action, realm, res, params, text)


@lru_cache(maxsize=1 << 16)
def try_parse(kind, text):
    """As parse, but None for what is not canonical."""
    try:
        return parse(kind, text)
    except Bad:
        return None


# ---- form: values back to text ------------------------------------------------------------------


def encode(raw):
    return "".join(chr(b) if b in LIT else "%%%02X" % b for b in raw)


def seg_form(seg):
    return "**" if seg is None else "*".join(encode(part) for part in seg)


def path_form(path):
    segs, deep = path
    words = [seg_form(seg) for seg in segs] + (["**"] if deep else [])
    return "/" + "/".join(words)


def host_form(host):
    if host[0] == "all":
        return "**"
    if host[0] == "net":
        _, version, base, length = host
        text = str(ipaddress.IPv4Address(base)) if version == 4 else "[%s]" % v6_text(base)
        return text if is_address(host) else "%s/%d" % (text, length)
    return {"name": "", "one": "*.", "sub": "**."}[host[0]] + host[1]


def ports_form(low, high):
    return str(low) if low == high else "%d-%d" % (low, high)


def url_form(url):
    scheme, host, port, path = url
    return "%s://%s:%d%s" % (scheme, host_form(host), port, path_form(path))


def param_form(key, value):
    if key in ("approve", "m", "op", "sha256"):
        return ",".join(value)
    if key == "args":
        return path_form(value)
    if key == "ref":
        return path_form(value)[1:]
    if key == "priv":
        return ",".join(sorted(host_form(net) for net in value))
    if key == "rate":
        return "%d/%d" % value
    if key == "to":
        return url_form(value)
    return str(value)


def form(cap):
    if cap.action in ("net.connect", "net.bind"):
        res = "tcp/%s:%s" % (host_form(cap.res[0]), ports_form(*cap.res[1:]))
    elif cap.action == "http.request":
        res = url_form(cap.res)
    elif cap.action == "git.use":
        res = cap.res
    else:
        res = path_form(cap.res)
    words = ["%s:%s:%s" % (cap.action, cap.realm, res)]
    words += ["%s=%s" % (key, param_form(key, cap.params[key])) for key in sorted(cap.params)]
    return ";".join(words)


# ---- physical paths -----------------------------------------------------------------------------


def put_path(raw):
    """Canonical text of a physical absolute path. Nothing is tidied: other input raises Bad."""
    need(raw.startswith(b"/"), "not absolute")
    if raw == b"/":
        return "/"
    names = raw[1:].split(b"/")
    for name in names:
        need(name not in (b"", b".", b".."), "not physical")
        need(0 not in name, "NUL")
    need(len(names) <= MAX_SEGS, "too many segments")
    return "/" + "/".join(encode(name) for name in names)
