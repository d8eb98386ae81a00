"""Secrets: N082 to N092."""
import base64
import gzip
import socket
import zlib

import h2
from h2 import Peer, request
from rows_http1 import KEY, WS, wait, websocket
from world import SANITIZED, Stream, World, answer, get, placeholder, plain, rule

VALUE = "s3cr3t/+val=ue~42"
WS_ANSWER = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
API = [rule("https://api.test:443/**"), rule("https://other.test:443/**"), rule("http://api.test:80/**")]
TOKEN = ("TOKEN", "bearer", "https://api.test:443/**", VALUE)
P = placeholder("TOKEN")


def start(pki, *secrets, reply=None, **kw):
    w = World(API, pki, secrets=secrets or (TOKEN,), **kw)
    o = w.origin("api.test", plain(reply))
    return w, o


def code(got):
    return got[0].split()[1]


def row_N082_set(ok, pki):
    w, o = start(pki)
    s = w.tls("api.test")
    w.ask(get(more=f"Authorization: Bearer {P}\r\n"), sock=s)
    ok.equal("the placeholder becomes the value", o.seen[-1][1]["authorization"], [f"Bearer {VALUE}"])
    e = w.event()
    ok.equal("the record has the name", e["credential"], "TOKEN")
    ok("and not the value", VALUE not in str(w.all))
    w.ask(get(more=f"Authorization: token {P}\r\n"), sock=s)
    ok.equal("in the form the client chose", o.seen[-1][1]["authorization"], [f"token {VALUE}"])
    w.ask(get(), sock=s)
    ok.equal("where there is none it is set", o.seen[-1][1]["authorization"], [f"Bearer {VALUE}"])
    w.ask(get(more="Authorization: Bearer mine\r\nAuthorization: Bearer two\r\n"), sock=s)
    ok.equal("others are replaced", o.seen[-1][1]["authorization"], [f"Bearer {VALUE}"])
    ok.equal("no coding is asked for", o.seen[-1][1]["accept-encoding"], ["identity"])
    for word in ("ApiKey", "BEARER"):
        ok.equal(f"{word} is a scheme", code(w.ask(get(more=f"Authorization: {word} {P}\r\n"), sock=s)), "200")
    seen = len(o.seen)
    for before in ("x" * 17, "Bearer  ", "Bearer x ", "xBearer ", "Bearer", "Bearer " * 2, "a=b, "):
        ok.equal(f"{before!r} before it is refused", code(w.ask(get(more=f"Authorization: {before}{P}\r\n"), sock=s)), "403")
    ok.equal("and not sent", len(o.seen), seen)
    ok.equal("twice in one field is too often",
             code(w.ask(get(more=f"Authorization: Bearer {P} {P}\r\n"), sock=s)), "403")
    ok.equal("Connection cannot take it away",
             code(w.ask(get(more="Connection: authorization\r\n"))), "400")
    c = Peer(w.tls("api.test", alpn=["h2"]))
    c.get(request(more=[("authorization", f"Bearer {P}")]))
    ok.equal("over HTTP/2", o.seen[-1][1]["authorization"], [f"Bearer {VALUE}"])
    two = World(API, pki, secrets=(TOKEN,))
    t = two.origin("api.test", h2.serve(), alpn=["h2"])
    Peer(two.tls("api.test", alpn=["h2"])).get(request(more=[("authorization", f"Bearer {P}")]))
    ok.equal("to HTTP/2", t.seen[0][0]["authorization"], f"Bearer {VALUE}")


def row_N083_wrong_place(ok, pki):
    w, o = start(pki)
    b64 = base64.b64encode(P.encode()).decode()
    cases = (("path", get(f"/a/{P}")), ("query", get(f"/?key={P}")), ("cookie", get(more=f"Cookie: a={P}\r\n")),
             ("User-Agent", get(more=f"User-Agent: {P}\r\n")), ("another field", get(more=f"X-Api-Key: {P}\r\n")),
             ("base64", get(more=f"X-A: {b64}\r\n")), ("a field's name", get(more=f"{P}: 1\r\n")),
             ("a field that is dropped", get(more=f"Proxy-Authorization: {P}\r\n")),
             ("trailers", get("/", method="POST", more="Transfer-Encoding: chunked\r\n") +
              b"1\r\na\r\n0\r\nX-T: " + P.encode() + b"\r\n\r\n"))
    for name, raw in cases:
        w.all.clear()
        try:
            got = w.ask(raw)
            ok(f"{name}: blocked", code(got) == "403" and got[1]["x-writ-reason"] == ["placeholder-wrong-place"], got)
        except (EOFError, OSError):
            ok(f"{name}: blocked", True)
        e = w.event()
        ok.equal(f"{name}: on record", e["why"], "placeholder-wrong-place")
        ok(f"{name}: as denied, if it was in the head", e["answer"] == 0 or name in ("body in chunks", "body", "trailers"), e)
    ok("no server saw it", all(P not in str(r) for r in o.seen), o.seen)
    c = Peer(w.tls("api.test", alpn=["h2"]))
    ok.equal("HTTP/2 field", c.get(request(more=[("x-a", P)]))[0], "403")


def row_N083_bodies(ok, pki):
    w, o = start(pki)
    other = w.origin("other.test", plain())
    plainly = f"Content-Length: {len(P) + 4}\r\n", b"<<" + P.encode() + b">>"
    pieces = "Transfer-Encoding: chunked\r\n", b"".join(b"1\r\n%c\r\n" % ch for ch in P.encode()) + b"0\r\n\r\n"
    # To whom the secret goes, it may be told: an agent repeats all it has seen to its model.
    for name, (more, body) in (("body", plainly), ("body in chunks", pieces)):
        ok.equal(f"{name}: to whom the secret goes, as it is", code(w.ask(get("/", method="POST", more=more) + body)), "200")
        ok(f"{name}: and beside the secret", o.seen[-1][1]["authorization"] == [f"Bearer {VALUE}"] and P.encode() in o.seen[-1][2], o.seen[-1])
    o.seen.clear()
    for host in ("other.test",):
        for name, (more, body) in (("body", plainly), ("body in chunks", pieces)):
            w.all.clear()
            try:
                got = w.ask(get("/", method="POST", host=host, more=more) + body, host=host)
                ok(f"{host}, {name}: blocked", code(got) == "403" and got[1]["x-writ-reason"] == ["placeholder-wrong-place"], got)
            except (EOFError, OSError):
                ok(f"{host}, {name}: blocked", True)
            e = next(e for e in iter(w.event, None) if e["host"] == host)
            ok.equal(f"{host}, {name}: on record", e["why"], "placeholder-wrong-place")
        c = Peer(w.tls(host, alpn=["h2"]))
        s = c.wait(c.ask(request("/", "POST", host), b"x" * 20000 + P.encode()))
        ok(f"{host}, HTTP/2 body", dict(s["fields"]).get(":status") == "403" or s["reset"] is not None, s)
    ok("no server saw it", all(P.encode() not in str(r).encode() for r in o.seen + other.seen), (o.seen, other.seen))
    ok.equal("a body without it goes through", code(w.ask(get("/", method="POST", more="Content-Length: 3\r\n") + b"abc")), "200")
    ok.equal("and what only begins like it", code(w.ask(get("/", method="POST", more="Content-Length: 20\r\n") + P.encode()[:20])), "200")
    ok.equal("to the server too", o.seen[-1][2], P.encode()[:20])
    half = "".join(f"%{ord(ch):02x}" if i % 2 else ch for i, ch in enumerate(P))
    ok.equal("partly behind escapes", code(w.ask(get(f"/?a={half}"))), "403")
    # What goes up while the answer is already coming: nothing that completes it.
    seen = []
    def slow(origin, sock):
        st = Stream(sock)
        st.until(b"\r\n\r\n")
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        try:
            while True:
                st.more()
        except (EOFError, OSError):
            seen.append(st.rest)
    w = World(API, pki, secrets=(TOKEN,))
    w.origin("other.test", slow)
    s = Stream(w.tls("other.test", alpn=["http/1.1"]))
    s.sock.sendall(get("/", method="POST", host="other.test", more=f"Content-Length: {len(P) + 5}\r\n") + b"first")
    s.until(b"1\r\na\r\n")
    s.sock.sendall(P.encode())
    try:
        while True:
            s.more()
    except (EOFError, OSError):
        ok("an answer that has begun is cut off", b"0\r\n\r\n" not in s.rest, s.rest)
    wait(lambda: seen)
    ok("and the server has nothing of it", seen == [b"first"], seen)


def frame(data, first=0x81, mask=b"\x11\x22\x33\x44"):
    n = len(data)
    head = bytes([first]) + (bytes([0x80 | n]) if n < 126 else bytes([0xfe]) + n.to_bytes(2, "big"))
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def row_N083_websocket(ok, pki):
    p = P.encode()
    cases = {"a frame": frame(b"x" * 300 + p), "two frames": frame(p[:9], 0x01) + frame(b"hi", 0x89) + frame(p[9:], 0x80),
             "a ping": frame(p, 0x89), "no mask": bytes([0x81, len(p)]) + p, "a compressed one": frame(b"abc", 0xc1)}
    for name, raw in cases.items():
        w = World(API, pki, secrets=(TOKEN,))
        o = w.origin("other.test", websocket)
        s = Stream(w.tls("other.test", alpn=["http/1.1"]))
        s.sock.sendall(get("/ws", host="other.test", more=WS + KEY + "Sec-WebSocket-Extensions: permessage-deflate\r\n"))
        s.message()
        ok(f"{name}: no compression is agreed on", "sec-websocket-extensions" not in o.seen[0][1], o.seen)
        s.exactly(5)
        for good in (frame(b"hello"), frame(b"y" * 60000), frame(b"", 0x8a)):
            s.sock.sendall(good)
            ok.equal(f"{name}: what is before it", s.exactly(len(good)), good.upper())
        try:
            for b in raw:
                s.sock.sendall(bytes([b]))
            while True:
                s.more()
        except (EOFError, OSError):
            pass
        back = s.rest
        ok(f"{name}: not passed on", len(back) < len(raw), (len(back), len(raw)))
        want = "a frame that cannot be looked through" if name in ("no mask", "a compressed one") else "placeholder-wrong-place"
        ok.equal(f"{name}: on record", w.event()["why"], want)


def row_N084_wrong_host(ok, pki):
    w, _ = start(pki)
    other = w.origin("other.test", plain())
    got = w.ask(get(host="other.test", more=f"Authorization: Bearer {P}\r\n"), host="other.test")
    ok.equal("blocked", (code(got), got[1]["x-writ-reason"]), ("403", ["placeholder-wrong-place"]))
    ok.equal("not sent", other.seen, [])
    ok.equal("a request without it is fine", code(w.ask(get(host="other.test"), host="other.test")), "200")
    ok("and gets nothing", "authorization" not in other.seen[0][1])
    w, o = start(pki, ("TOKEN", "bearer", "https://api.test:443/v1/**", VALUE))
    ok.equal("outside its path", code(w.ask(get("/v2", more=f"Authorization: Bearer {P}\r\n"))), "403")
    w.ask(get("/v2"))
    ok("it is not set there", "authorization" not in o.seen[-1][1])
    w.ask(get("/v1/x"))
    ok.equal("inside", o.seen[-1][1]["authorization"], [f"Bearer {VALUE}"])


def row_N085_plain_http(ok, pki):
    w, _ = start(pki)
    o = w.origin("api.test", plain(), port=80, tls=False)
    got = w.ask(get(more=f"Authorization: Bearer {P}\r\n"), sock=w.take("api.test", 80, tls=False))
    ok.equal("blocked", (code(got), got[1]["x-writ-reason"]), ("403", ["placeholder-wrong-place"]))
    w.ask(get(), sock=w.take("api.test", 80, tls=False))
    ok("never set", len(o.seen) == 1 and "authorization" not in o.seen[0][1])


def row_N086_bad_values(ok, pki):
    for value in ("abcdefgh\r\nX: y", "abcdefgh\n", "abcdefgh\0", "short"):
        w = World(API, pki, secrets=[("TOKEN", "bearer", "https://api.test:443/**", value)], expect_start=False)
        ok.equal(f"{value!r} is refused", (w.pem, w.proc.wait(10)), ("", 1))
        err = w.proc.stderr.read().decode()
        ok("without saying it", value not in err and "TOKEN" in err, err)


def reflect(body, fields=()):
    return lambda *_: answer(body=body, fields=fields)


def row_N088_reflection(ok, pki):
    v = VALUE.encode()
    bodies = {"raw": v, "base64": base64.b64encode(b"Bearer " + v), "hex": v.hex().encode(),
              "percent": "".join(f"%{b:02X}" for b in v).encode(), "JSON": b'{"a": "s3cr3t\\/+val=ue~42"}'}
    for name, body in bodies.items():
        w, o = start(pki, reply=reflect(b"<" + body + b">"))
        try:
            got = w.ask(get())
            ok(f"{name}: cut", False, got)
        except (EOFError, OSError) as e:
            ok(f"{name}: cut", body[:-2] not in str(e.args).encode(), e)
        ok.equal(f"{name}: on record", w.event()["why"], "secret-in-answer")
    w, o = start(pki, reply=reflect(b"x", ["X-Echo: " + VALUE]))
    got = w.ask(get())
    ok.equal("in a field", (code(got), got[1]["x-writ-reason"]), ("502", ["secret-in-answer"]))
    ok("the field is not there", VALUE not in str(got))
    one = b"".join(b"1\r\n%c\r\n" % ch for ch in b"<" + v + b">")
    w, o = start(pki, reply=lambda *_: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + one + b"0\r\n\r\n")
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get())
    got = b""
    try:
        while True:
            s.more()
    except (EOFError, OSError):
        got = s.rest
    ok("byte by byte", v not in got and b"0\r\n\r\n" not in got, got)
    ok("and not a part of it", b"s\r\n" not in got, got)
    w, o = start(pki, reply=lambda *_: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: " + v + b"\r\n\r\n")
    try:
        got = w.ask(get())
        ok("in a trailer", False, got)
    except (EOFError, OSError):
        ok("in a trailer", True)


def row_N088_codings(ok, pki):
    v = VALUE.encode()
    big = b"text " * 30000
    for name, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        w, o = start(pki, reply=reflect(pack(big), [f"Content-Encoding: {name}"]))
        _, fields, body, _ = w.ask(get())
        ok(f"{name}: is decoded", body == big and "content-encoding" not in fields, fields)
        w, o = start(pki, reply=reflect(pack(big + v + big), [f"Content-Encoding: {name}"]))
        try:
            got = w.ask(get())
            ok(f"{name}: cut", False, got)
        except (EOFError, OSError):
            ok(f"{name}: cut", True)
        ok.equal(f"{name}: on record", w.event()["why"], "secret-in-answer")
    w, o = start(pki, reply=reflect(b"abc", ["Content-Encoding: br"]))
    ok.equal("br is refused", code(w.ask(get())), "502")
    w, o = start(pki, reply=reflect(gzip.compress(b"x") + b"tail" + v, ["Content-Encoding: gzip"]))
    try:
        got = w.ask(get())
        ok("bytes behind the end of gzip", v not in got[2], got)
    except (EOFError, OSError):
        ok("bytes behind the end of gzip", True)
    w, o = start(pki, reply=reflect(gzip.compress(b"\0" * (64 << 20)), ["Content-Encoding: gzip"]))
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get())
    s.until(b"\r\n\r\n")
    n = 0
    while True:
        size = int(s.until(b"\r\n"), 16)
        if size == 0:
            break
        n += len(s.exactly(size))
        s.exactly(2)
    ok.equal("a bomb comes in pieces", n, 64 << 20)
    # The same over HTTP/2 on both sides.
    def reply(p, i, _):
        p.headers(i, [(":status", "200"), ("content-encoding", "gzip")], end=False)
        p.data(i, gzip.compress(big + (v if p.leak else b"")))
    for leak in (False, True):
        w = World(API, pki, secrets=(TOKEN,))
        h2.Peer.leak = leak
        w.origin("api.test", h2.serve(reply), alpn=["h2"])
        c = Peer(w.tls("api.test", alpn=["h2"]))
        s = c.wait(c.ask(request()))
        ok(f"HTTP/2, {'with' if leak else 'without'} the value",
           (s["reset"] is not None and not s["end"]) if leak else s["body"] == big, s["reset"])


def row_N088_pieces(ok, pki):
    """An answer that has the value is not given in parts that each have only some of it."""
    def reply(first, fields, _):
        body = b"<" + fields["authorization"][0].encode() + b">"
        want = fields.get("range") or fields.get("x-part")
        if not want:
            return answer(body=body.upper() if "accept-charset" in fields else body)
        lo, hi = (int(n) for n in want[0].split("=")[1].split("-"))
        return answer("206 Partial Content", body[lo:hi + 1], [f"Content-Range: bytes {lo}-{hi}/{len(body)}"])
    for name in ("Range", "X-Part"):
        w, o = start(pki, reply=reply)
        got = b""
        for at in range(8, 8 + len(VALUE)):
            try:
                first, _, body, _ = w.ask(get(more=f"{name}: bytes={at}-{at}\r\n"))
                got += body if " 206 " in first else b""
            except (EOFError, OSError):
                pass
        ok(f"{name}: no byte of it", got == b"", got)
    ok("nor is one asked for", "range" not in o.seen[0][1], o.seen[0])
    for name in ("If-Range", "A-IM", "Accept-Charset"):
        w, o = start(pki)
        w.ask(get(more=f"{name}: x\r\n"))
        ok(f"{name} is not sent where it goes", name.lower() not in o.seen[0][1], o.seen[0])
    w, _ = start(pki)
    other = w.origin("other.test", plain(lambda f, h, b: answer("206 Partial Content", b"x")))
    got = w.ask(get(host="other.test", more="Range: bytes=0-0\r\n"), host="other.test")
    ok.equal("others are asked for parts", (code(got), other.seen[0][1]["range"]), ("206", ["bytes=0-0"]))


def row_N088_websocket(ok, pki):
    """What is packed by an extension of WebSocket could not be looked through."""
    ws = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n")
    for forced in (False, True):
        def handler(origin, sock, forced=forced):
            s = Stream(sock)
            _, fields, _, _ = s.message()
            origin.seen.append(fields)
            packed = forced or "sec-websocket-extensions" in fields
            text = fields["authorization"][0].encode()
            if packed:
                pack = zlib.compressobj(wbits=-15)
                text = pack.compress(text) + pack.flush(zlib.Z_SYNC_FLUSH)[:-4]
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                         b"Sec-WebSocket-Accept: x\r\n" +
                         (b"Sec-WebSocket-Extensions: permessage-deflate\r\n" if packed else b"") + b"\r\n" +
                         bytes([0xc1 if packed else 0x81, len(text)]) + text)
            s.more()
        w = World(API, pki, secrets=(TOKEN,))
        o = w.origin("api.test", handler)
        s = Stream(w.tls("api.test"))
        s.sock.settimeout(5)
        s.sock.sendall(get(more=ws))
        try:
            while True:
                s.more()
        except (EOFError, OSError):
            pass
        frame = s.rest.split(b"\r\n\r\n", 1)[1]
        seen = frame
        if frame[:1] == b"\xc1":
            seen = zlib.decompressobj(wbits=-15).decompress(frame[2:] + b"\0\0\xff\xff")
        ok(f"{'unasked' if forced else 'asked for'}: the value does not come", VALUE.encode() not in seen, (s.rest, seen))
        ok("it is not asked for", "sec-websocket-extensions" not in o.seen[0], o.seen)


def messages(raw):
    """The data messages in frames of a server, one after the other, the last perhaps not whole; and the control frames."""
    data, controls, at, new = [], [], 0, True
    while at + 2 <= len(raw):
        first, n, at = raw[at], raw[at + 1], at + 2
        if n >= 126:
            more = 2 if n == 126 else 8
            n, at = int.from_bytes(raw[at:at + more], "big"), at + more
        payload, at = raw[at:at + n], at + n
        if first & 8:
            controls.append(payload)
            continue
        if new:
            data.append(b"")
        data[-1] += payload
        new = bool(first & 0x80)
    return data, controls


def plain_frame(data, first=0x81):
    n = len(data)
    return bytes([first]) + (bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big") if n < 65536 else b"\x7f" + n.to_bytes(8, "big")) + data


def row_N088_frames(ok, pki):
    """A value is found in a message however the server cuts it into frames; without the value the message arrives."""
    v = VALUE.encode()
    f = plain_frame

    def pieces(data, size, between=b""):
        cut = [data[i:i + size] for i in range(0, len(data), size)]
        return between.join(f(c, (0x80 if i == len(cut) - 1 else 0) | (0 if i else 1)) for i, c in enumerate(cut))

    def given(raw, size=1 << 20, fields=""):
        def handler(origin, sock):
            Stream(sock).message()
            sock.sendall((WS_ANSWER + fields + "\r\n").encode())
            for i in range(0, len(raw), size):
                sock.sendall(raw[i:i + size])
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1)
        w = World(API, pki, secrets=(TOKEN,))
        w.origin("api.test", handler)
        s = Stream(w.tls("api.test", alpn=["http/1.1"]))
        s.sock.settimeout(5)
        s.sock.sendall(get("/ws", more=WS + KEY))
        s.until(b"\r\n\r\n")
        try:
            while True:
                s.more()
        except (EOFError, OSError):
            pass
        return messages(s.rest), w.event()["why"]
    near = v[:4] + b"?"  # more of it would be a guess
    for name, raw in {"one frame": f(b"<" + near + b">"), "one byte each": pieces(b"<" + near + b">", 1),
                      "three frames, a ping between": pieces(b"<" + near + b">", 3, f(b"hi", 0x89)),
                      "empty frames": f(b"<" + near, 0x01) + f(b"", 0x00) + f(b">", 0x00) + f(b"", 0x80)}.items():
        for size in (1, 1 << 20):
            (data, controls), why = given(raw, size)
            ok.equal(f"{name}, without the value: it arrives", (data, why), ([b"<" + near + b">"], ""))
            ok.equal(f"{name}: and so do control frames", controls, [b"hi", b"hi"] if "ping" in name else [])
    big = bytes(range(256)) * 600
    (data, _), why = given(f(big, 0x82) + f(b"") + pieces(big, 70000))
    ok.equal("long and empty ones arrive", (len(data), data == [big, b"", big], why), (3, True, ""))
    for name, raw in {"one frame": f(b"<" + v + b">"), "one byte each": pieces(b"<" + v + b">", 1), "a ping between": pieces(b"<" + v + b">", 9, f(b"hi", 0x89)),
                      "empty frames between": f(b"<" + v[:5], 0x01) + f(b"", 0x00) + f(v[5:], 0x80), "a ping": f(v, 0x89), "a close": f(b"\x03\xe8" + v, 0x88),
                      "base64 in pieces": pieces(base64.b64encode(v * 2), 3), "behind a message": f(b"first") + pieces(v, 4)}.items():
        for size in (1, 1 << 20):
            (data, controls), why = given(raw, size)
            ok(f"{name}: the value does not come", v not in b"".join(data) and v[2:] not in b"".join(controls) and
               v not in base64.b64decode(b"".join(data)[:-(len(b"".join(data)) % 4) or None] if "base64" in name else b""), (data, controls))
            ok(f"{name}: on record", why in ("secret-in-answer", "secret-guessed"), why)
    for name, raw in {"a masked one": frame(v), "a compressed one": f(b"x", 0xc1), "an unknown kind": f(b"x", 0x83), "a control frame in parts": f(b"x", 0x09),
                      "a long control frame": f(b"x" * 126, 0x89), "a part without a beginning": f(b"x", 0x80), "a beginning in a message": f(b"x", 0x01) * 2}.items():
        (data, controls), why = given(f(b"good") + raw)
        ok(f"{name}: refused", b"".join(data) in (b"", b"good", b"goodx") and not controls, (data, controls))
        ok.equal(f"{name}: on record", why, "a frame that cannot be looked through")


def row_N088_guessing(ok, pki):
    """What is held back because it may become the value tells whether a guess was right: not for long."""
    def echo(origin, sock):
        Stream(sock).message()
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     b"Sec-WebSocket-Accept: x\r\n\r\n")
        while data := sock.recv(4096):
            sock.sendall(data)
    w = World(API, pki, secrets=(TOKEN,))
    w.origin("api.test", echo)

    def held(s, guess):
        """Is all of it held back? Then what follows sets it free."""
        s.sendall(plain_frame(b"\n" + guess, 0x01))
        raw, end = b"", len(guess) + 3

        def got():
            return len(b"".join(messages(raw)[0]))
        while got() <= 1:
            s.settimeout(0.15)
            try:
                raw += s.recv(4096) or plain_frame(b"!" * end)
            except TimeoutError:
                break
        s.sendall(plain_frame(b"\n!", 0x80))
        s.settimeout(5)
        all_held = got() <= 1
        while got() < end:
            raw += s.recv(4096) or plain_frame(b"!" * end)
        return all_held
    s, known = w.tls("api.test"), 0
    s.sendall(get(more="Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"))
    Stream(s).until(b"\r\n\r\n")
    try:
        for n in range(1, len(VALUE)):
            for last in (b"?", VALUE[n - 1].encode()):
                if held(s, VALUE[:n - 1].encode() + last):
                    known = n
    except OSError:
        pass
    ok("a few letters can be found out", known >= 4, known)
    ok("and no more", known <= len(VALUE) // 2, known)
    got = w.ask(get())
    ok.equal("then it is not used any more", (code(got), got[1]["x-writ-reason"]), ("403", ["secret-guessed"]))
    w, _ = start(pki, reply=reflect(b"x" * 70000 + VALUE[:4].encode()))
    for _ in range(8):
        got = w.ask(get())
    ok.equal("its beginning may be spoken of", code(got), "200")


def row_N089_trace(ok, pki):
    w, o = start(pki)
    ok.equal("405", code(w.ask(get(method="TRACE"))), "405")
    ok.equal("not sent", o.seen, [])


def row_N090_redirect(ok, pki):
    w, _ = start(pki, reply=lambda *_: answer("302 Found", fields=["Location: https://other.test/"]))
    other = w.origin("other.test", plain())
    _, fields, _, _ = w.ask(get(more=f"Authorization: Bearer {P}\r\n"))
    ok.equal("the client sees it", fields["location"], ["https://other.test/"])
    got = w.ask(get(host="other.test", more=f"Authorization: Bearer {P}\r\n"), host="other.test")
    ok.equal("and has only the placeholder to give", (code(got), other.seen), ("403", []))


def row_N091_nowhere(ok, pki):
    w, _ = start(pki)
    w.ask(get(more=f"Authorization: Bearer {P}\r\n"))
    w.ask(get(f"/{P}"))
    pid = w.proc.pid
    for name in ("environ", "cmdline", "status", "maps"):
        try:
            ok(f"not in /proc/{name}", VALUE.encode() not in open(f"/proc/{pid}/{name}", "rb").read())
        except PermissionError:
            ok(f"/proc/{name} is closed to its own user", True)
    locked = [l for l in open(f"/proc/{pid}/status", encoding="ascii") if l.startswith("VmLck")]
    ok("its memory is locked", SANITIZED or int(locked[0].split()[1]) > 0, locked)
    core = [l.split()[4:6] for l in open(f"/proc/{pid}/limits", encoding="ascii") if "core file" in l]
    ok.equal("no core", core, [["0", "0"]])
    ok("not in the record", VALUE not in str(w.all))


def row_N092_kinds(ok, pki):
    def seen(kind, raw, value=VALUE):
        w, o = start(pki, ("TOKEN", kind, "https://api.test:443/**", value))
        got = w.ask(raw)
        return (o.seen[-1] if o.seen else got), code(got)

    def basic(text):
        return base64.b64encode(text.encode()).decode()
    ok.equal("bearer", seen("bearer", get())[0][1]["authorization"], ["Bearer " + VALUE])
    r, _ = seen("basic", get(more=f"Authorization: Basic {basic('x-access-token:' + P)}\r\n"))
    ok.equal("basic, the password", r[1]["authorization"], ["Basic " + basic("x-access-token:" + VALUE)])
    r, _ = seen("basic", get())
    ok.equal("basic, none there", r[1]["authorization"], ["Basic " + basic(":" + VALUE)])
    r, _ = seen("basic", get(), "user:password")
    ok.equal("basic, both in the value", r[1]["authorization"], ["Basic " + basic("user:password")])
    r, _ = seen("header:x-api-key", get(more=f"X-Api-Key: {P}\r\n"))
    ok.equal("header", r[1]["x-api-key"], [VALUE])
    r, _ = seen("header:x-api-key", get())
    ok.equal("header, none there", r[1]["x-api-key"], [VALUE])
    for text in ("a:b:", "a b:", "\"a\":", "a"):
        _, status = seen("basic", get(more=f"Authorization: Basic {basic(text + P)}\r\n"))
        ok.equal(f"basic, {text!r} is no user name", status, "403")
    _, status = seen("header:x-api-key", get(more=f"X-Api-Key: {'x' * 40}{P}\r\n"))
    ok.equal("header, text of the client before it", status, "403")
    r, _ = seen("query:key", get(f"/a?x=1&key={P}&y=2"))
    ok.equal("query", r[0], "GET /a?x=1&key=s3cr3t%2F%2Bval%3Due~42&y=2 HTTP/1.1")
    r, _ = seen("query:key", get("/a?x=1"))
    ok.equal("query, none there", r[0], "GET /a?x=1 HTTP/1.1")
    _, status = seen("query:key", get(f"/a?key={P}&key={P}"))
    ok.equal("query, twice", status, "403")
    _, status = seen("query:key", get(f"/a?other={P}"))
    ok.equal("query, another key", status, "403")
    w, o = start(pki, ("ONE", "header:x-one", "https://api.test:443/**", "first-value"),
                 ("TWO", "header:x-two", "https://api.test:443/**", "second-value"))
    w.ask(get())
    ok.equal("two at once", [o.seen[0][1]["x-one"], o.seen[0][1]["x-two"]], [["first-value"], ["second-value"]])
    ok.equal("both on record", w.event()["credential"], "ONE,TWO")
