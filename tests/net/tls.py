"""Rules for https: the name inside TLS has to be the one that was asked for, and nothing is dialled before."""
import net
from net import test
from bounds import within

API = "https://api.example.test"

# A client's first message, by hand, so that it can be wrong.
HELLO = r'''
def ext(kind, data): return struct.pack("!HH", kind, len(data)) + data
def sni(*names):
    lst = b"".join(struct.pack("!BH", 0, len(n)) + n for n in names)
    return ext(0, struct.pack("!H", len(lst)) + lst)
def hello(*exts, version=0x0303, pad=0):
    more = ext(43, b"\2\3\4") + ext(10, b"\0\2\0\x1d") + ext(13, b"\0\2\4\3") + ext(51, b"\0\x24\0\x1d\0\x20" + b"k" * 32)
    body = b"".join(exts) + more + (ext(21, b"\0" * pad) if pad else b"")
    msg = struct.pack("!H", version) + b"r" * 32 + b"\x20" + b"s" * 32 + b"\0\2\x13\1" + b"\1\0" + struct.pack("!H", len(body)) + body
    return b"\1" + len(msg).to_bytes(3, "big") + msg
def records(msg, size=16384, kind=22): return b"".join(struct.pack("!BHH", kind, 0x301, len(msg[i:i+size])) + msg[i:i+size] for i in range(0, len(msg), size))
def send(host, data, pieces=1, wait=0.02, seconds=3):
    """What came back: "answer", "closed", "timeout" or an errno."""
    try:
        with socket.create_connection((host, 443), seconds) as s:
            step = max(1, len(data) // pieces)
            for i in range(0, len(data), step):
                s.sendall(data[i:i + step])
                if pieces > 1: time.sleep(wait)
            r = s.recv(100)
            return "answer" if r else "closed"
    except Exception as e: return word(e)
'''


@test("TLS to the name that was asked for goes through, unopened")
def through(w):
    w.zone("api.example.test", net.FIRST)
    w.serve_tls(443)
    got = w.inside([API], """
c = ssl.create_default_context(cafile="ca.pem")
with socket.create_connection(("api.example.test", 443), 5) as s, c.wrap_socket(s, server_hostname="api.example.test") as t:
    t.sendall(b"GET /x HTTP/1.1\\r\\nHost: api.example.test\\r\\n\\r\\n")
    text = t.recv(4096).decode()
    issuer = dict(x[0] for x in t.getpeercert()["issuer"])
show([text.split("\\r\\n")[0], issuer["commonName"], t.version() or "TLSv1.3"])
""")
    w.same(got[:2], ["HTTP/1.1 200 OK", "test authority"], "with the server's own certificate")
    w.same([e.get("way") for e in w.net_events("connect")], ["tls"], "the record says how it was let through")


@test("another name, no name or no TLS at all ends before anything is dialled")
def mismatch(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("evil.test", net.SECOND)
    w.serve_tls(443)
    got = w.inside([API], HELLO + r"""
show({"other": tls("api.example.test", name="evil.test"), "none": tls("api.example.test", name=""), "ssh": talk("api.example.test", 443, b"SSH-2.0-x\r\n"),
      "http": talk("api.example.test", 443, b"GET / HTTP/1.1\r\nHost: api.example.test\r\n\r\n"), "postgres": talk("api.example.test", 443, b"\0\0\0\x08\x04\xd2\x16\x2f"),
      "two": send("api.example.test", records(hello(sni(b"api.example.test", b"evil.test")))), "twice": send("api.example.test", records(hello(sni(b"api.example.test"), sni(b"evil.test")))),
      "NUL": send("api.example.test", records(hello(sni(b"evil.test\0.api.example.test")))), "NUL behind": send("api.example.test", records(hello(sni(b"api.example.test\0evil.test")))),
      "empty": send("api.example.test", records(hello(sni(b"")))), "address": send("api.example.test", records(hello(sni(b"1.2.3.10")))),
      "alert": send("api.example.test", b"\x15\3\1\0\2\1\0"), "data": send("api.example.test", b"\x17\3\3\0\5hello"),
      "ssl2": send("api.example.test", b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + b"\0\0\4" * 7 + b"c" * 16),
      "connect": through("connect", "api.example.test", 443, records(hello(sni(b"evil.test")))), "socks": through("socks5", "api.example.test", 443, records(hello(sni(b"evil.test")))),
      "raw in connect": through("connect", "api.example.test", 443, b"SSH-2.0-x\r\n")})
""")
    bad = {k: v for k, v in got.items() if (v[1] if isinstance(v, list) else v) not in ("ECONNRESET", "closed", "")}
    w.same(bad, {}, "each of them")
    w.same(w.accepted(), [], "nobody out there was connected to")
    w.nothing_left("and not even the name was asked for")
    why = {e.get("why") for e in w.net_events("connect", answer="deny")}
    w.ok(len(why) >= 3 and all(why), "the record says why", why)


@test("a first message in many pieces is understood, never waved through")
def pieces(w):
    w.zone("api.example.test", net.FIRST)
    w.serve_tls(443)
    got = w.inside([API], HELLO + r"""
good = hello(sni(b"api.example.test"))
evil = hello(sni(b"evil.test"))
forms = lambda h: {"whole": records(h), "records": records(h, 40), "tiny records": records(h, 1)}
show({"good": {k: send("api.example.test", v, 1) for k, v in forms(good).items()}, "good5": {k: send("api.example.test", v, 5) for k, v in forms(good).items()},
      "bytes": send("api.example.test", records(good), 10**6, 0.001), "padded": send("api.example.test", records(hello(sni(b"api.example.test"), pad=16000))),
      "grease": send("api.example.test", records(hello(ext(0x0a0a, b""), sni(b"api.example.test"), ext(0xdada, b"x")))),
      "upper": send("api.example.test", records(hello(sni(b"API.Example.Test")))),
      "bad": {k: send("api.example.test", v, n) for k, v in forms(evil).items() for n in (1, 5)}, "bad padded": send("api.example.test", records(hello(sni(b"evil.test"), pad=16000)))})
""")
    w.same({k: v for k, v in got["good"].items() if v != "answer"}, {}, "in one record or several")
    w.same({k: v for k, v in got["good5"].items() if v != "answer"}, {}, "in five writes")
    w.same([got["bytes"], got["padded"], got["grease"], got["upper"]], ["answer"] * 4, "byte by byte, padded, with what nobody knows, in capitals")
    w.ok(all(v in ("ECONNRESET", "closed") for v in [*got["bad"].values(), got["bad padded"]]), "the wrong name in the same forms is refused", got["bad"])
    w.same({q[0] for q in w.queries()}, {"api.example.test"}, "and never asked for")


@test("one that begins and never ends its first message is given up", seconds=60)
def slow(w):
    w.zone("api.example.test", net.FIRST)
    w.serve_tls(443)
    got = w.inside([API], HELLO + r"""
start = time.monotonic()
s = socket.create_connection(("api.example.test", 443), 30)
s.sendall(records(hello(sni(b"api.example.test")))[:-1])
end = attempt(s.recv, 10)
took = time.monotonic() - start
held = socket.create_connection(("api.example.test", 443), 30)
start = time.monotonic()
quiet = attempt(held.recv, 10)
show([str(end), took, str(quiet), time.monotonic() - start])
""")
    w.ok(got[0] in ("ECONNRESET", "b''") and 5 < got[1] and within(got[1], 20), "after ten seconds or so", got)
    w.ok(got[2] in ("ECONNRESET", "b''") and 5 < got[3] and within(got[3], 20), "and so is one that says nothing", got)
    w.nothing_left("nothing has left the host")


@test("tls=passthrough and other ports of https follow the same rule")
def ports(w):
    w.zone("pinned.example.test", net.FIRST)
    w.zone("api.example.test", net.SECOND)
    w.serve_tls(443)
    w.serve_tls(8443)
    got = w.inside(["https://pinned.example.test tls=passthrough", "https://api.example.test:8443"], """
show([tls("pinned.example.test"), tls("pinned.example.test", name="api.example.test"), tls("api.example.test", 8443), tls("api.example.test", 443),
      tls("api.example.test", 8443, name="pinned.example.test")])
""")
    w.same([got[0], got[2]], ["TLSv1.3"] * 2, "the right name at the right port")
    w.ok(all(g in ("ECONNRESET", "closed", "ECONNREFUSED") for g in (got[1], got[3], got[4])), "and nothing else", got)
    w.same(sorted((c["to"], c["port"]) for c in w.accepted()), [(net.FIRST, 443), (net.SECOND, 8443)], "the world saw just those two")


@test("a redirect to elsewhere is a new connection, and judged like one")
def redirect(w):
    w.zone("web.example.test", net.FIRST)
    w.zone("evil.test", net.SECOND)
    w.serve("http", 8080)
    w.serve("http", 80)
    got = w.inside(["tcp://web.example.test:8080"], """
import urllib.request
def get(url):
    try: return urllib.request.urlopen(url, timeout=5).status
    except Exception as e: return word(getattr(e, "reason", e))
show([get("http://web.example.test:8080/"), get("http://web.example.test:8080/redirect?http://evil.test/"), get("http://web.example.test:8080/redirect?http://169.254.169.254/latest")])
""")
    w.same(got, [200, "no name", "ENETUNREACH"], "the second host is refused")
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "and never saw anything")
