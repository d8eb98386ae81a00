"""TLS on both sides: N051, N052, N058, N060, N061, N062."""
import os
import socket
import ssl
import subprocess
import threading

from world import CLOSE, World, answer, get, plain, rule

API = [rule("https://api.test:443/**")]


def refused(w, **kw):
    """The reason if the handshake fails, else None."""
    try:
        w.tls("api.test", **kw).close()
        return None
    except (ssl.SSLError, OSError) as e:
        return str(e)


def row_plain_request(ok, pki):
    w = World([rule("https://api.test:443/v1/**")], pki)
    o = w.origin("api.test", plain())
    s = w.tls("api.test")
    ok.equal("allowed", w.ask(get("/v1/a"), sock=s)[0], "HTTP/1.1 200 OK")
    first, fields, body, _ = w.ask(get("/v2?x=1"), sock=s)
    ok.equal("denied", first.split()[1], "403")
    ok.equal("and why", fields["x-writ-reason"], ["no rule allows it"])
    for word in (b"api.test", b"GET /v2\n", b"no rule allows it",
                 b"writ allow 7f3a 'net:https://api.test/v2;methods=GET'"):
        ok(f"the page says {word.decode()}", word in body, body)
    ok.equal("the connection goes on", w.ask(get("/v1/b"), sock=s)[0], "HTTP/1.1 200 OK")
    ok.equal("one connection to the server", o.connections, 1)
    ok.equal("which saw", [r[0] for r in o.seen], ["GET /v1/a HTTP/1.1", "GET /v1/b HTTP/1.1"])
    e = w.event()
    ok.equal("the record", [e[k] for k in ("answer", "status", "host", "port", "method", "path", "why")],
             [2, 200, "api.test", 443, "GET", "/v1/a", ""])
    ok("with bytes and times", e["up"] > 20 and e["down"] > 20 and e["lasted"] >= e["dialled"], e)
    e = w.event()
    ok.equal("of the denied one", [e[k] for k in ("answer", "status", "path", "why", "up")],
             [0, 403, "/v2", "no rule allows it", 0])


def row_bytes_before(ok, pki):
    w = World(API + [rule("http://api.test:80/**")], pki)
    w.origin("api.test", plain())
    w.origin("api.test", plain(), port=80, tls=False)
    raw = get("/x")
    s = w.take("api.test", 80, tls=False, first=raw[:9])
    ok.equal("plain HTTP", w.ask(raw[9:], sock=s)[0], "HTTP/1.1 200 OK")
    # A hello of which egress has read the first bytes.
    ctx = ssl.create_default_context(cadata=w.pem)
    inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = ctx.wrap_bio(inc, out, server_hostname="api.test")
    try:
        t.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = out.read()
    s = w.take("api.test", first=hello[:50])
    s.sendall(hello[50:])
    while True:
        try:
            t.do_handshake()
            break
        except ssl.SSLWantReadError:
            inc.write(s.recv(65536))
    s.sendall(out.read())
    t.write(get("/y"))
    s.sendall(out.read())
    got = b""
    while b"ok" not in got:
        inc.write(s.recv(65536))
        try:
            got += t.read(4096)
        except ssl.SSLWantReadError:
            pass
    ok("TLS", got.startswith(b"HTTP/1.1 200 OK"))


def row_N051_other_sni(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    ok("refused", refused(w, sni="evil.test"))
    ok.equal("on record", w.event(CLOSE)["why"], "sni-mismatch")
    ok.equal("before the server is dialled", o.connections, 0)
    ok("case does not matter", refused(w, sni="API.test") is None)


def row_N052_no_sni(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain())
    s = w.tls("api.test", sni=None)
    ok.equal("served", w.ask(get(), sock=s)[0], "HTTP/1.1 200 OK")
    der = s.getpeercert(True)
    out = subprocess.run(["openssl", "x509", "-inform", "der", "-noout", "-text"], input=der,
                         capture_output=True, check=True).stdout.decode()
    ok("with a certificate for the host", "DNS:api.test" in out, out)


def row_N058_bad_server(ok, pki):
    cases = (("stranger", {"root": "stranger"}, "unable to get local issuer"),
             ("wrong name", {"name": "other.test"}, "ostname mismatch"),
             ("expired", {"days": -1}, "expired"))
    for name, kw, why in cases:
        w = World(API, pki)
        o = w.origin("api.test", plain(), **kw)
        ok(f"{name}: the handshake fails", refused(w))
        e = w.event(CLOSE)
        ok(f"{name}: on record", why in e["why"] and e["answer"] == 0, e)
        ok.equal(f"{name}: nothing was asked", o.seen, [])
    w = World(API, pki)
    ok("nobody there", refused(w))
    ok.equal("and why", w.event(CLOSE)["why"], "it could not be reached")
    # Verified once, another one later: the answer says so.
    w = World(API, pki)
    good = w.origin("api.test", plain(lambda *_: None))
    good.handler = plain(lambda *_: answer(fields=["Connection: close"]))
    s = w.tls("api.test")
    ok.equal("good at first", w.ask(get(), sock=s)[0], "HTTP/1.1 200 OK")
    w.origin("api.test", plain(), root="stranger")
    ok.equal("then not", w.ask(get(), sock=s)[0].split()[1], "502")


def row_N060_resumption(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain())
    ctx = ssl.create_default_context(cadata=w.pem)
    s = ctx.wrap_socket(w.take("api.test"), server_hostname="api.test")
    w.ask(get(), sock=s)
    session = s.session
    s.close()
    s = ctx.wrap_socket(w.take("api.test"), server_hostname="api.test", session=session)
    ok.equal("a resumed session works", w.ask(get(), sock=s)[0], "HTTP/1.1 200 OK")
    ok("its ticket allows no early data", b"Max Early Data: 0" in s_client(w), s_client(w))


def pump(a, b):
    try:
        while (got := a.recv(65536)):
            b.sendall(got)
    except OSError:
        pass


def s_client(w):
    """What another TLS client says about the connection."""
    relay = socket.create_server(("127.0.0.1", 0))
    p = subprocess.Popen(["openssl", "s_client", "-connect", "%s:%d" % relay.getsockname(), "-servername",
                          "api.test", "-tls1_3", "-ign_eof"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    near, _ = relay.accept()
    far = w.take("api.test")
    for a, b in ((near, far), (far, near)):
        threading.Thread(target=pump, args=(a, b), daemon=True).start()
    try:
        return p.communicate(get(more="Connection: close\r\n"), timeout=5)[0]
    except subprocess.TimeoutExpired:
        p.kill()
        return p.communicate()[0]


def row_N061_old_tls(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain())
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        def old(ctx, version=version):
            ctx.set_ciphers("ALL:@SECLEVEL=0")
            ctx.minimum_version = ctx.maximum_version = version
        ok(f"{version.name} from the agent is refused", refused(w, change=old))

    def newer(ctx):
        ctx.maximum_version = ssl.TLSVersion.TLSv1_2
    ok("1.2 is not", refused(w, change=newer) is None)
    w = World(API, pki)
    o = w.origin("api.test", plain())
    o.ctx.set_ciphers("ALL:@SECLEVEL=0")
    o.ctx.minimum_version = o.ctx.maximum_version = ssl.TLSVersion.TLSv1_1
    ok("1.1 of a server is refused", refused(w))
    ok("and why", "TLS with the server" in w.event(CLOSE)["why"])


def row_N062_authority(ok, pki):
    w, v = World(API, pki), World(API, pki)
    ok("each session has its own", w.pem != v.pem)
    out = subprocess.run(["openssl", "x509", "-noout", "-text"], input=w.pem.encode(),
                         capture_output=True, check=True).stdout.decode()
    for word in ("CN = writ session CA", "CA:TRUE, pathlen:0", "prime256v1", "Certificate Sign"):
        ok(word, word in out, out)
    short = World(API, pki, limits={"session": 60})
    ends = subprocess.run(["openssl", "x509", "-noout", "-checkend", "3700"], input=short.pem.encode(),
                          capture_output=True, check=False).returncode
    ok.equal("it ends an hour after its session", ends, 1)
    w.origin("api.test", plain())
    try:
        ssl.create_default_context(cadata=v.pem).wrap_socket(w.take("api.test"),
                                                            server_hostname="api.test")
        ok("not trusted in another session", False)
    except ssl.SSLError as e:
        ok("not trusted in another session", "verify failed" in str(e), e)


def row_confined(ok, pki):
    w = World(API, pki)
    status = open(f"/proc/{w.proc.pid}/status", encoding="ascii").read()
    ok("system calls are listed", "Seccomp:\t2" in status, status)
    ok("no new privileges", "NoNewPrivs:\t1" in status)
    ok.equal("not dumpable: it belongs to root", os.stat(f"/proc/{w.proc.pid}/fd").st_uid, 0)
