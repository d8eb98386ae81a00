"""HTTP/1.1: N053, N063 to N074."""
import base64
import hashlib
import time

import world
from world import Stream, World, answer, get, plain, rule

API = [rule("https://api.test:443/**")]


def status(w, raw, **kw):
    """The status of the answer to raw bytes, and whether the connection was closed after it."""
    s = Stream(kw.pop("sock", None) or w.tls("api.test"))
    s.sock.settimeout(10)
    try:
        s.sock.sendall(raw)
        first = s.message()[0].split()[1]
        s.sock.settimeout(0.2)
        try:
            closed = s.sock.recv(1) == b""
        except TimeoutError:
            closed = False
        return first, closed
    except (EOFError, OSError) as e:
        return type(e).__name__, True


def row_N053_other_host(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    s = w.tls("api.test")
    ok.equal("421", w.ask(get("/", host="evil.test"), sock=s)[0].split()[1], "421")
    ok.equal("another port too", w.ask(get("/", host="api.test:8443"), sock=s)[0].split()[1], "421")
    ok.equal("the right port is fine", w.ask(get("/", host="api.test:443"), sock=s)[0].split()[1], "200")
    ok.equal("only that was sent", len(o.seen), 1)


def row_N063_lengths(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    bad = ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
           "Transfer-Encoding:\x0bchunked\r\n", "Content-Length: 3\r\nContent-Length: 3\r\n",
           "Content-Length: +5\r\n", "Content-Length: 5,5\r\n", "Content-Length: -1\r\n",
           "Content-Length: 18446744073709551616\r\n", "Content-Length: 0x3\r\n",
           "Transfer-Encoding: gzip\r\n", "Content-Length : 3\r\n")
    for fields in bad:
        ok.equal(repr(fields), status(w, get("/", method="POST", more=fields) + b"abc"), ("400", True))
    ok.equal("none was sent", o.seen, [])


def row_N064_heads(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    bad = (b"GET / HTTP/1.1\r\nHost: api.test\r\nX: a\r\n b\r\n\r\n", b"GET / HTTP/1.1\nHost: api.test\n\n",
           b"GET / HTTP/1.1\r\nHost: api.test\r\nX: a\rb\r\n\r\n", b"GET / HTTP/1.1\r\nHost: api.test\r\nX : a\r\n\r\n",
           b"GET / HTTP/1.1\r\nHost: api.test\r\nX: a\0b\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: api.test\r\n\r\n",
           b"GET / HTTP/1.1\r\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
           b"GET / HTTP/1.1\r\nHost: api.test\r\nHost: api.test\r\n\r\n")
    for raw in bad:
        ok.equal(repr(raw), status(w, raw), ("400", True))
    big = get(more="X: " + "a" * 70000 + "\r\n")
    many = get(more="".join(f"X{i}: a\r\n" for i in range(201)))
    ok.equal("70000 bytes in a field", status(w, big)[0], "431")
    ok.equal("201 fields", status(w, many)[0], "431")
    ok.equal("none was sent", o.seen, [])
    ok.equal("one byte at a time", slowly(w, get("/slow")), "200")


def slowly(w, raw):
    s = w.tls("api.test")
    for i in range(len(raw)):
        s.sendall(raw[i:i + 1])
    return Stream(s).message()[0].split()[1]


def row_N065_absolute(ok, pki):
    w = World(API + [rule("http://api.test:80/**"), rule("http://two.test:80/**")], pki)
    w.origin("api.test", plain())
    a = w.origin("api.test", plain(), port=80, tls=False)
    b = w.origin("two.test", plain(), port=80, tls=False)
    req = b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"
    ok.equal("inside TLS for another", status(w, req % (b"https://evil.test/", b"evil.test"))[0], "421")
    ok.equal("inside TLS for itself", status(w, req % (b"https://api.test/", b"api.test"))[0], "200")
    ok.equal("http inside TLS", status(w, req % (b"http://api.test/", b"api.test"))[0], "421")
    ok.equal("URL and Host differ", status(w, req % (b"https://api.test/", b"evil.test"))[0], "400")
    s = w.take("api.test", 80, tls=False, proxy=True)
    ok.equal("proxied", w.ask(req % (b"http://api.test/a?b", b"api.test"), sock=s)[0].split()[1], "200")
    ok.equal("in origin form", a.seen[0][0], "GET /a?b HTTP/1.1")
    ok.equal("another host on the same connection",
             w.ask(req % (b"http://two.test/c", b"two.test"), sock=s)[0].split()[1], "200")
    ok.equal("goes there", [b.seen[0][0], b.seen[0][1]["host"]], ["GET /c HTTP/1.1", ["two.test"]])
    ok.equal("one without a rule", w.ask(req % (b"http://evil.test/", b"evil.test"), sock=s)[0].split()[1], "421")
    ok.equal("https in the open", w.ask(req % (b"https://api.test/", b"api.test"), sock=s)[0].split()[1], "400")
    ok.equal("origin form to the proxy", w.ask(get(), sock=s)[0].split()[1], "400")


def row_N067_connect(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    ok.equal("405", status(w, b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")[0], "405")
    ok.equal("not sent", o.seen, [])


def row_N068_chunks(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    head = get("/", method="POST", more="Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n")
    s = w.tls("api.test")
    raw = head + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nAuthorization: x\r\nHost: evil\r\nX-Sum: 5\r\n\r\n"
    ok.equal("taken", w.ask(raw, sock=s)[0].split()[1], "200")
    ok.equal("the body", o.seen[0][2], b"abcde")
    ok.equal("trailers that may pass", o.seen[0][3], b"X-Sum: 5\n")
    ok.equal("an extension of 1 MiB", status(w, head + b"3;" + b"a" * (1 << 20) + b"\r\nabc\r\n0\r\n\r\n")[0] in
             ("400", "ConnectionResetError", "BrokenPipeError"), True)
    ok.equal("a bad length", status(w, head + b"xyz\r\n")[0], "400")


def row_N069_h2c(ok, pki):
    w = World([rule("http://api.test:80/**")], pki)
    o = w.origin("api.test", plain(), port=80, tls=False)
    up = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    s = w.take("api.test", 80, tls=False)
    ok.equal("answered as HTTP/1.1", w.ask(get(more=up), sock=s)[0].split()[1], "200")
    ok.equal("not sent on", [k for k in o.seen[0][1] if k in ("upgrade", "connection", "http2-settings")], [])
    ok.equal("prior knowledge", status(w, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                       sock=w.take("api.test", 80, tls=False))[0], "400")


def row_N070_framing(ok, pki):
    def reply(first, fields, body):
        path = first.split()[1]
        if path == "/continue":
            return answer(body=body)
        if path == "/hints":
            return b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer()
        if path == "/204":
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        if path == "/304":
            return b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n"
        if path == "/head":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + (b"" if first.startswith("HEAD") else b"12345")
        if path == "/chunks":
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n"
        if path == "/hop":
            return answer(fields=["Connection: X-Hop", "X-Hop: 1", "Keep-Alive: 5", "Alt-Svc: h3=\":443\"", "X-End: 2"])
        return answer()

    def handler(origin, sock):
        s = Stream(sock)
        while True:
            head = s.until(b"\r\n\r\n") + b"\r\n\r\n"
            s.rest = head + s.rest
            if b"100-continue" in head:
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            first, fields, body, trailers = s.message()
            origin.seen.append((first, fields, body, trailers))
            sock.sendall(reply(first, fields, body))
    w = World(API, pki)
    o = w.origin("api.test", handler)
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get("/continue", method="POST", more="Content-Length: 4\r\nExpect: 100-continue\r\n"))
    ok.equal("100 comes through", s.message()[0], "HTTP/1.1 100 Continue")
    s.sock.sendall(b"abcd")
    ok.equal("then the answer", s.message()[2], b"abcd")
    s.sock.sendall(get("/hints"))
    ok.equal("103 comes through", s.message()[0].split()[1], "103")
    ok.equal("then the answer", s.message()[0].split()[1], "200")
    for path, method in (("/204", "GET"), ("/304", "GET"), ("/head", "HEAD"), ("/head", "GET"), ("/chunks", "GET")):
        s.sock.sendall(get(path, method=method))
        first, fields, body, trailers = s.message(method == "HEAD")
        ok(f"{method} {path}", first.split()[1] in ("200", "204", "304"), first)
        if path == "/chunks":
            ok.equal("body and trailers", (body, trailers), (b"abcde", b"X-T: 1\n"))
    s.sock.sendall(get("/hop"))
    fields = s.message()[1]
    ok.equal("fields for one hop, and Alt-Svc, stay behind",
             [k for k in ("x-hop", "keep-alive", "alt-svc") if k in fields], [])
    ok("others do not", fields["x-end"] == ["2"])
    ok.equal("all on one connection", o.connections, 1)
    s.sock.sendall(get(more="Connection: X-Secret\r\nX-Secret: 1\r\n"))
    s.message()
    ok("what Connection names is not sent on", "x-secret" not in o.seen[-1][1])
    ok.equal("but not what counts", status(w, get(more="Connection: Authorization\r\nAuthorization: a\r\n")),
             ("400", True))
    old = w.ask(b"GET /chunks HTTP/1.0\r\nHost: api.test\r\n\r\n")
    ok.equal("HTTP/1.0 gets the body until the end", (old[2], "transfer-encoding" in old[1]), (b"abcde", False))
    ok.equal("pipelined requests", pipelined(w), ["200", "200", "204"])


def pipelined(w):
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get("/1") + get("/2") + get("/204"))
    return [s.message()[0].split()[1] for _ in range(3)]


def row_reset_behind_answer(ok, pki):
    """A server that answers, then resets because nobody reads the rest of the request."""
    body = b"x" * 3000000

    def handler(origin, sock):
        Stream(sock).until(b"\r\n\r\n")
        sock.sendall(answer(body=body))
    w = World([rule("http://api.test:80/**")], pki)
    w.origin("api.test", handler, port=80, tls=False)
    s = Stream(w.take("api.test", 80, tls=False))
    s.sock.sendall(get(method="POST", more="Content-Length: 9000000\r\n") + b"y" * 200000)
    time.sleep(0.5)
    first = s.until(b"\r\n\r\n")
    ok("the answer begins", first.startswith(b"HTTP/1.1 200"), first)


def row_N071_paths(ok, pki):
    w = World([rule("https://api.test:443/v1/**", m="GET")], pki)
    o = w.origin("api.test", plain())
    for path in ("/v1/../admin", "/v1/%2e%2e/admin", "//v1", "/v1%2f..", "/v1/a;jsessionid=1", "/v1/a\\b", "/v1/%zz"):
        ok.equal(path, status(w, get(path))[0], "400")
    ok.equal("a small method", status(w, get("/v1/a", method="get"))[0], "400")
    ok.equal("another method", status(w, get("/v1/a", method="POST", more="Content-Length: 0\r\n"))[0], "403")
    ok.equal("an override", status(w, get("/v1/a", more="X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\n"))[0], "200")
    ok("is not sent on", not {"x-http-method-override", "x-original-url"} & set(o.seen[-1][1]))
    ok.equal("the path is sent as it was judged", [status(w, get("/v1/%61%2Db"))[0], o.seen[-1][0]],
             ["200", "GET /v1/a-b HTTP/1.1"])
    ok.equal("TRACE", status(w, get("/v1/a", method="TRACE"))[0], "405")
    w = World([rule("https://api.test:443/**", q="none")], pki)
    w.origin("api.test", plain())
    ok.equal("a query where none may be", status(w, get("/?a=b"))[0], "403")
    ok.equal("none", status(w, get("/?"))[0], "200")
    no = [{"rule": 0, "text": "http.request:local:https://api.test:443/admin/**"}]
    w = World(API, pki, nots=no, rules=("deny net https://api.test/admin/**",))
    w.origin("api.test", plain())
    _, fields, body, _ = w.ask(get("/admin/x"))
    ok.equal("a rule denies it", fields["x-writ-reason"], ["a rule denies it"])
    ok("which one is said", b"deny net https://api.test/admin/**" in body, body)


def row_N072_bad_answers(ok, pki):
    bad = (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"hello\r\n\r\n",
           b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"")
    w = World(API, pki)
    o = w.origin("api.test", plain())
    for raw in bad:
        o.handler = plain(lambda *_, raw=raw: raw or None)
        ok.equal(repr(raw), status(w, get())[0], "502")
    # Bytes behind an answer end the connection, and are never the next answer.
    o.handler = plain(lambda *_: answer(body=b"first") + answer("200 Smuggled", b"second"))
    s = w.tls("api.test")
    ok.equal("the first", w.ask(get(), sock=s)[2], b"first")
    o.handler = plain(lambda *_: answer(body=b"third"))
    time.sleep(0.1)
    ok.equal("the next is from a new connection", w.ask(get(), sock=s)[2], b"third")
    w = World(API, pki)
    w.origin("api.test", cut)
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get())
    try:
        s.message()
        ok("an answer that is cut off stays so", False)
    except (EOFError, OSError):
        ok("an answer that is cut off stays so", True)
    ok("and is on record", wait(lambda: [e for e in w.all if "whole" in e["why"]]), w.all)


def cut(origin, sock):
    Stream(sock).message()
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")


def wait(what, seconds=5):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


WS = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def websocket(origin, sock):
    s = Stream(sock)
    first, fields, _, _ = s.message()
    origin.seen.append((first, fields))
    key = fields["sec-websocket-key"][0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    sock.sendall(("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode() + b"hello")
    while True:
        got = sock.recv(4096)
        if not got:
            return
        sock.sendall(got.upper())


def row_N073_websocket(ok, pki):
    w = World([rule("https://api.test:443/ws/**")], pki)
    o = w.origin("api.test", websocket)
    s = Stream(w.tls("api.test", alpn=["http/1.1"]))
    s.sock.sendall(get("/ws/a", more=WS + KEY))
    first, fields, _, _ = s.message()
    ok.equal("101", first.split()[1], "101")
    ok("with what the client checks", "sec-websocket-accept" in fields and fields["upgrade"] == ["websocket"])
    ok.equal("what came with it", s.exactly(5), b"hello")
    s.sock.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    ok.equal("N074: then the bytes are nobody's business", s.exactly(35), b"GET / HTTP/1.1\r\nHOST: EVIL.TEST\r\n\r\n")
    big = b"x" * 300000
    s.sock.sendall(big)
    ok.equal("many of them", s.exactly(len(big)), big.upper())
    s.sock.close()
    e = w.event()
    ok("and they are counted", e["up"] > 300000 and e["down"] > 300000 and e["status"] == 101, e)
    ok.equal("a path that is not allowed", status(w, get("/other", more=WS + KEY))[0], "403")
    ok.equal("without a key", status(w, get("/ws/a", more=WS))[0], "400")
    ok.equal("the server saw one", len(o.seen), 1)
    w = World([rule("https://api.test:443/**", more=";max-in=100000")], pki)
    w.origin("api.test", websocket)
    s = Stream(w.tls("api.test", alpn=["http/1.1"]))
    s.sock.sendall(get("/ws/a", more=WS + KEY))
    s.message()
    s.exactly(5)
    try:
        s.sock.sendall(big)
        s.exactly(len(big))
        ok("a limit of bytes ends it", False)
    except (EOFError, OSError):
        ok("a limit of bytes ends it", True)
    ok.equal("and that is on record", w.event()["why"], "used up: bytes received")
