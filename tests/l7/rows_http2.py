"""HTTP/2 on either side: N075 to N081."""
import random
import struct
import time

import h2
from h2 import Peer, frame, request
from world import CLOSE, SANITIZED, Stream, World, answer, get, plain, rule

API = [rule("https://api.test:443/**")]
SLACK = 20 if SANITIZED else 1


def connect(w, **kw):
    return Peer(w.tls("api.test", alpn=["h2"]), **kw)


def memory(w):
    for line in open(f"/proc/{w.proc.pid}/status", encoding="ascii"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def row_N075_authority(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    c = connect(w)
    ok.equal(":authority of another", c.get(request(authority="evil.test"))[0], "421")
    ok.equal("Host is another", c.get(request(more=[("host", "evil.test")]))[0], "421")
    ok.equal("Host is the same", c.get(request(more=[("host", "api.test")]))[0], "200")
    s = c.wait(c.ask([(":method", "GET"), (":scheme", "https"), (":authority", "api.test"),
                      (":authority", "api.test"), (":path", "/")]))
    ok("two of them", s["reset"] is not None or dict(s["fields"]).get(":status") == "400", s)
    ok.equal("the connection goes on", c.get(request("/after"))[0], "200")
    ok.equal("the server saw", [r[0] for r in o.seen], ["GET / HTTP/1.1", "GET /after HTTP/1.1"])


def row_N076_fields(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    bad = (("x", "a\r\nb: c"), ("x", "a\nb"), ("x", b"a\0b"), ("X-Big", "a"), ("transfer-encoding", "chunked"),
           ("connection", "close"), ("upgrade", "h2c"), ("x y", "a"), ("", "a"), ("te", "gzip"), (":extra", "a"))
    for name, value in bad:
        c = connect(w)
        s = c.wait(c.ask(request(more=[(name, value)])))
        ok(f"{name!r}: {value!r} is a protocol error", s["reset"] == 1 or c.goaway == 1, s)
    c = connect(w)
    s = c.wait(c.ask(request(path="/ HTTP/1.1\r\nX: y")))
    ok("a line break in the path", s["reset"] == 1 or dict(s["fields"]).get(":status") == "400", s)
    ok.equal("nothing was sent", o.seen, [])
    ok.equal("cookies are put together", [connect(w).get(request(more=[("cookie", "a=1"), ("cookie", "b=2")]))[0],
                                          o.seen[-1][1]["cookie"]], ["200", ["a=1; b=2"]])


def row_N077_decisions(ok, pki):
    w = World([rule("https://api.test:443/v1/**", m="GET")], pki)
    w.origin("api.test", plain())
    c = connect(w)
    ok.equal("allowed", c.get(request("/v1/a"))[0], "200")
    status, fields, body = c.get(request("/v2"))
    ok.equal("denied", (status, fields["x-writ-reason"]), ("403", "no rule allows it"))
    ok("with a page", b"writ allow 7f3a" in body)
    ok.equal("another method", c.get(request("/v1/a", method="POST"), b"abc")[0], "403")
    ok.equal("ambiguous", c.get(request("/v1/../a"))[0], "400")
    ok.equal("TRACE", c.get(request("/v1/a", method="TRACE"))[0], "405")
    s = c.wait(c.ask([(":method", "CONNECT"), (":authority", "api.test:443")]))
    ok("N067: CONNECT", s["reset"] is not None or dict(s["fields"])[":status"] == "405", s)
    s = c.wait(c.ask(request("/ws", method="CONNECT", more=[(":protocol", "websocket")])))
    ok("N079: extended CONNECT is not offered", s["reset"] is not None or c.goaway, s)


def flood(w, send):
    c = connect(w)
    before = memory(w)
    try:
        send(c)
        while c.goaway in (None, 0):
            c.step()
    except (EOFError, OSError):
        pass
    try:
        for _ in range(1000):
            if c.goaway not in (None, 0):
                break
            c.step()
    except (EOFError, OSError):
        pass
    return c, memory(w) - before


def row_N078_floods(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain(lambda *_: time.sleep(0.05) or answer()))

    def resets(c):
        for _ in range(100):
            out = b""
            for _ in range(20):
                out += frame(h2.HEADERS, 5, c.next, h2.block(request())) + \
                    frame(h2.RST, 0, c.next, struct.pack(">I", 8))
                c.next += 2
            c.sock.sendall(out)

    def continuations(c):
        c.sock.sendall(frame(h2.HEADERS, 1, 1, h2.block(request())))
        for _ in range(2000):
            c.sock.sendall(frame(h2.CONTINUATION, 0, 1, h2.block([("x", "a" * 1000)])))

    def empty_continuations(c):
        c.sock.sendall(frame(h2.HEADERS, 1, 1, h2.block(request())))
        for _ in range(2000):
            c.sock.sendall(frame(h2.CONTINUATION, 0, 1) * 20)

    def many(kind, payload):
        def send(c):
            for _ in range(2000):
                c.sock.sendall(frame(kind, 0, 0, payload) * 20)
        return send

    def bomb(c):
        # One field of 4000 bytes goes into the table; then it is named again and again.
        big = b"\x40\x01x" + b"\x7f\xa1\x1e" + b"a" * 4000
        for _ in range(50):
            i, c.next = c.next, c.next + 2
            c.sock.sendall(frame(h2.HEADERS, 5, i, h2.block(request()) + big + b"\xbe" * 12000))
            s = c.wait(i)
            if c.goaway:
                return
            if s["reset"] is None:
                assert dict(s["fields"])[":status"] == "431", s
        c.goaway = -1

    def windows(c):
        c.sock.sendall(frame(h2.WINDOW, 0, 0, struct.pack(">I", 0x7fffffff)) * 2)

    def zero(c):
        i = c.ask(request("/", "POST"), None, end=False)
        c.sock.sendall(frame(h2.DATA, 0, i) * 40000)

    cases = (("rapid reset", resets), ("CONTINUATION", continuations), ("empty CONTINUATION", empty_continuations),
             ("SETTINGS", many(h2.SETTINGS, b"")), ("PING", many(h2.PING, b"12345678")), ("HPACK bomb", bomb),
             ("windows above 2^31", windows), ("PRIORITY", many(h2.PRIORITY, b"")), ("empty DATA", zero))
    for name, send in cases:
        c, more = flood(w, send)
        ok(f"{name}: the connection ends", c.goaway not in (None, 0) or c.sock.recv(1) == b"", c.frames[-5:])
        ok(f"{name}: in bounded memory", more < 6000 * SLACK, more)
    ok.equal("others do not notice", connect(w).get(request())[0], "200")
    ok("and it is on record", any("h2-flood" in e["why"] for e in w.all), [e["why"] for e in w.all][-20:])


def row_N080_grpc(ok, pki):
    def reply(p, i, s):
        fields = dict(s["blocks"][0])
        if fields[":path"] == "/denied":
            p.headers(i, [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "7")])
            return
        p.headers(i, [(":status", "200"), ("content-type", "application/grpc")], end=False)
        p.data(i, s["body"], end=False)
        p.headers(i, [("grpc-status", "0"), ("grpc-message", "fine")])
    w = World(API, pki)
    o = w.origin("api.test", h2.serve(reply), alpn=["h2"])
    c = connect(w)
    call = request("/pkg.Service/Method", "POST", more=[("content-type", "application/grpc"), ("te", "trailers")])
    big = random.Random(1).randbytes(4 << 20)
    i = c.ask(call, big)
    s = c.wait(i)
    ok.equal("4 MiB there and back", s["body"] == big, True)
    ok.equal("trailers", s["blocks"][-1], [("grpc-status", "0"), ("grpc-message", "fine")])
    ok.equal("te: trailers is sent on", o.seen[0][0].get("te"), "trailers")
    i = c.ask(request("/denied", "POST", more=[("te", "trailers")]), b"")
    fields = dict(c.wait(i)["fields"])
    ok.equal("an answer of trailers only", (fields[":status"], fields["grpc-status"]), ("200", "7"))
    ok.equal("in one frame, as its clients want it", [f[0] for f in c.frames if f[2] == i], [h2.HEADERS])
    ok.equal("trailers of a request", trailers(c, o), {"x-sum": "5"})
    ok.equal("one connection to the server", o.connections, 1)


def trailers(c, o):
    i, c.next = c.next, c.next + 2
    c.headers(i, request("/t", "POST", more=[("te", "trailers")]), end=False)
    c.data(i, b"abc", end=False)
    c.headers(i, [("x-sum", "5"), ("authorization", "no")])
    c.wait(i)
    return o.seen[-1][2]


def row_N080_bidi(ok, pki):
    """Both directions at once: each message is answered before the next is sent."""
    def handler(origin, sock):
        p = Peer(sock, server=True)
        sent = {}
        while True:
            kind, flags, i, payload = p.step()
            if kind == h2.HEADERS:
                p.headers(i, [(":status", "200")], end=False)
            elif kind == h2.DATA and payload:
                sent[i] = sent.get(i, 0) + 1
                p.data(i, payload.upper(), end=False)
            if kind in (h2.DATA, h2.HEADERS) and flags & h2.END_STREAM:
                p.headers(i, [("grpc-status", str(sent.get(i, 0)))])
    w = World(API, pki)
    w.origin("api.test", handler, alpn=["h2"])
    c = connect(w)
    i = c.ask(request("/bidi", "POST", more=[("te", "trailers")]), end=False)
    for n in range(5):
        c.data(i, b"message%d" % n, end=False)
        while len(c.stream(i)["body"]) < 8 * (n + 1):
            c.step()
    c.data(i, b"")
    s = c.wait(i)
    ok.equal("in turns", s["body"], b"".join(b"MESSAGE%d" % n for n in range(5)))
    ok.equal("and the end", s["blocks"][-1], [("grpc-status", "5")])


def row_N080_backpressure(ok, pki):
    size = 64 << 20

    def handler(origin, sock):
        s = Stream(sock)
        while True:
            s.message()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size >> 16):
                sock.sendall(b"x" * 65536)
                origin.seen.append(65536)
    w = World(API, pki)
    o = w.origin("api.test", handler)
    before = memory(w)
    c = connect(w, window=False)
    c.ask(request("/big"))
    s = w.tls("api.test")
    s.sendall(get("/big"))
    time.sleep(1)
    ok("a client that does not read is not read for", sum(o.seen) < 24 << 20, sum(o.seen))
    ok("in bounded memory", memory(w) - before < 3000 * SLACK, memory(w) - before)
    got = Stream(s)
    got.until(b"\r\n\r\n")
    n = len(got.rest)
    while n < size:
        n += len(s.recv(1 << 20))
    ok.equal("and then gets all of it", n, size)


def row_N081_bridges(ok, pki):
    rng = random.Random(7)
    bodies = [rng.randbytes(n) for n in (0, 1, 1000, 70000, 1500000)]
    w = World(API + [rule("https://two.test:443/**")], pki)
    one = w.origin("api.test", plain(lambda first, fields, body: answer(body=body)))

    def echo(p, i, s):
        p.headers(i, [(":status", "200"), ("x-path", dict(s["blocks"][0])[":path"])], end=False)
        p.data(i, s["body"])
    two = w.origin("two.test", h2.serve(echo), alpn=["h2"])
    c = connect(w)
    for b in bodies:
        ok(f"HTTP/2 to HTTP/1.1, {len(b)} bytes", c.get(request("/e", "POST"), b)[2] == b)
    with_length = c.get(request("/e", "POST", more=[("content-length", "1000")]), bodies[2])
    ok("with a length", with_length[2] == bodies[2] and one.seen[-1][1]["content-length"] == ["1000"], one.seen[-1][1])
    s = Stream(w.tls("two.test"))
    for b in bodies:
        s.sock.sendall(get("/f", "two.test", "POST", f"Content-Length: {len(b)}\r\n") + b)
        first, fields, body, _ = s.message()
        ok(f"HTTP/1.1 to HTTP/2, {len(b)} bytes", (first.split()[1], body, fields.get("x-path")) == ("200", b, ["/f"]),
           (first, fields, body[:200]))
    s.sock.sendall(get("/f", "two.test", "POST", "Content-Length: 3\r\nExpect: 100-continue\r\n"))
    ok.equal("100 on the way to HTTP/2", s.message()[0].split()[1], "100")
    s.sock.sendall(b"abc")
    ok.equal("and the answer", s.message()[2], b"abc")
    s.sock.sendall(get("/f", "two.test", "HEAD"))
    ok.equal("HEAD", s.message(True)[0].split()[1], "200")
    ok("the server speaks HTTP/2", two.seen[0][0][":scheme"] == "https")
    # Many at once over one connection, each to a server of its own.
    ids = [c.ask(request(f"/{n}", "POST"), b"%d" % n) for n in range(80)]
    ok.equal("80 at once", [c.wait(i)["body"] for i in ids], [b"%d" % n for n in range(80)])
    c2 = Peer(w.tls("two.test", alpn=["h2"]))
    ids = [c2.ask(request(f"/{n}", "POST", "two.test"), b"%d" % n) for n in range(80)]
    ok.equal("80 at once over one", [c2.wait(i)["body"] for i in ids], [b"%d" % n for n in range(80)])


def row_cut_streams(ok, pki):
    def reply(p, i, s):
        p.headers(i, [(":status", "200")], end=False)
        p.data(i, b"some", end=False)
        p.sock.sendall(frame(h2.RST, 0, i, struct.pack(">I", 2)))
    w = World(API + [rule("https://two.test:443/**")], pki)
    w.origin("two.test", h2.serve(reply), alpn=["h2"])

    def cut(origin, sock):
        Stream(sock).message()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
    w.origin("api.test", cut)
    c = Peer(w.tls("two.test", alpn=["h2"]))
    s = c.wait(c.ask(request("/", authority="two.test")))
    ok("a reset of the server is one for the client", s["reset"] is not None and not s["end"], s)
    c = connect(w)
    s = c.wait(c.ask(request("/")))
    ok("so is the end of a connection", s["reset"] is not None and not s["end"], s)
    ok.equal("the connection goes on", c.get(request("/", authority="evil.test"))[0], "421")
    i = c.ask(request("/x", "POST"), b"abc", end=False)
    c.sock.sendall(frame(h2.RST, 0, i, struct.pack(">I", 8)))
    ok.equal("a client may cancel", c.get(request("/", authority="evil.test"))[0], "421")
    c.sock.close()
    ok("and go", w.event(CLOSE) is not None)
