"""Programs that are told of a proxy get the same decisions, under the same names, on the same record."""
import os

import net
from net import test
from bounds import within

RULES = ["tcp://api.example.test:7000", "tcp://*.pkg.test:7000"]


@test("sockets, CONNECT, SOCKS 5, SOCKS 4a and addresses of names: one decision, one record")
def equal(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("a.pkg.test", net.SECOND)
    w.zone("evil.test", net.THIRD)
    w.serve("echo", 7000)
    got = w.inside(RULES, """
out = {}
for n in ("api.example.test", "a.pkg.test", "evil.test"):
    out[n] = [through("connect", n, 7000)[1][:4], through("socks5", n, 7000)[1], through("socks4", n, 7000)[1], talk(n, 7000)]
    if n != "evil.test":
        fake = socket.inet_aton(socket.gethostbyname(n))
        out[n] += [through("socks5", (1, fake), 7000)[1], through("connect", socket.inet_ntoa(fake), 7000)[1], through("socks4", (1, fake), 7000)[1]]
show(out)
""")
    w.same([got["api.example.test"], got["a.pkg.test"]], [["ping"] * 7] * 2, "each way to each allowed name")
    w.same(got["evil.test"], ["HTTP", "", "", "no name"], "and none to another")
    opened = w.net_events("connect", answer="allow")
    keys = {(e["host"], e["port"], e["address"], e["rule"], e["way"]) for e in opened}
    w.same(keys, {("api.example.test", 7000, net.FIRST, "allow net tcp://api.example.test:7000", "raw"),
                  ("a.pkg.test", 7000, net.SECOND, "allow net tcp://*.pkg.test:7000", "raw")}, "the record knows two destinations")
    w.same(len(opened), 14, "and each connection")
    w.same([(e["up"], e["down"]) for e in w.net_events("closed")], [(4, 4)] * 14, "with what passed, and no word of the proxy's own")
    w.same({(e["what"], e["port"]) for e in w.net_events(answer="deny", host="evil.test")}, {("connect", 7000), ("lookup", 0)}, "denials too")
    w.same(w.queries("evil"), [], "which nobody outside heard of")


@test("a refusal says why, and how a person could allow it")
def says(w):
    got = w.inside(RULES, "show([through('connect', 'evil.test', 7000)[1], through('connect', 'api.example.test', 7000)[1]])")
    w.ok(got[0].startswith("HTTP/1.1 403 ") and "writ: denied net evil.test:7000" in got[0] and "writ allow " in got[0], "in words", got[0])
    w.ok(got[1].startswith("HTTP/1.1 502 "), "what is allowed and not there is another matter", got[1])


@test("SOCKS commands other than connect, and passwords, are refused")
def commands(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
def socks(command, greeting=b"\5\1\0", where=b"\3\x10api.example.test\x1b\x58"):
    with socket.create_connection(PROXY, 5) as s:
        s.settimeout(3)
        try:
            s.sendall(greeting)
            g = s.recv(2)
            if g != b"\5\0": return ["greeting", g.hex()]
            s.sendall(b"\5" + bytes([command]) + b"\0" + where)
            r = s.recv(64)
            return r[1] if len(r) > 1 else "closed"
        except OSError as e: return word(e)
show({"connect": socks(1), "bind": socks(2), "udp": socks(3), "other": socks(99), "password": socks(1, b"\5\1\2"), "both": socks(1, b"\5\2\2\0"), "none": socks(1, b"\5\0"),
      "type": socks(1, where=b"\7\1\2\3\4\0\1"), "mapped": socks(1, where=b"\4" + b"\0" * 10 + b"\xff\xff\x0a\x09\x09\x09\x1b\x58")})
""")
    w.same([got["connect"], got["both"]], [0, 0], "connect works, with what is offered beside it")
    w.same([got["bind"], got["udp"]], [7, 7], "bind and datagrams are not supported")
    w.ok(got["other"] not in (0,), "nor is anything else", got["other"])
    w.same(got["password"], ["greeting", "05ff"], "a password is not asked for")
    w.ok(got["none"] in ("closed", "ECONNRESET", ["greeting", "05ff"]), "no method is no method", got["none"])
    w.ok(got["type"] in (8, 1, 2, "closed", "ECONNRESET") and got["mapped"] in (1, 2, 8, "closed", "ECONNRESET"), "odd addresses are refused", got)


@test("heads that two programs could read differently are refused")
def smuggling(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("evil.test", net.SECOND)
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
def send(text):
    r = talk("198.18.0.1", 1080, text if isinstance(text, bytes) else text.encode("latin1"))
    return r[9:12] if r.startswith("HTTP/") else r
api = "api.example.test:7000"
show({k: send(v) for k, v in {
 "bare LF": f"CONNECT {api} HTTP/1.1\nHost: {api}\n\n", "fold": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\r\n x\r\n\r\n", "NUL": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\0\r\n\r\n",
 "two hosts": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\r\nHost: evil.test:7000\r\n\r\n", "other host": f"CONNECT {api} HTTP/1.1\r\nHost: evil.test:7000\r\n\r\n",
 "space": f"CONNECT  {api} HTTP/1.1\r\nHost: {api}\r\n\r\n", "tab": f"CONNECT\t{api} HTTP/1.1\r\nHost: {api}\r\n\r\n", "colon": f"CONNECT {api} HTTP/1.1\r\nHost : {api}\r\n\r\n",
 "no port": "CONNECT api.example.test HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "two ports": "CONNECT api.example.test:7000:80 HTTP/1.1\r\nHost: x\r\n\r\n",
 "user": f"CONNECT u@{api} HTTP/1.1\r\nHost: {api}\r\n\r\n", "path": f"CONNECT {api}/x HTTP/1.1\r\nHost: {api}\r\n\r\n", "scheme": f"CONNECT http://{api} HTTP/1.1\r\nHost: {api}\r\n\r\n",
 "h2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "https": f"GET https://api.example.test/ HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "origin form": "GET / HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
 "asterisk": "OPTIONS * HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "CL and TE": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
 "big": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\r\nX: " + "a" * 70000 + "\r\n\r\n", "many": f"CONNECT {api} HTTP/1.1\r\nHost: {api}\r\n" + "X: y\r\n" * 300 + "\r\n",
 "itself": "CONNECT proxy.writ:1080 HTTP/1.1\r\nHost: proxy.writ:1080\r\n\r\n", "itself by address": "CONNECT 198.18.0.1:1080 HTTP/1.1\r\nHost: 198.18.0.1:1080\r\n\r\n"}.items()})
""")
    bad = {k: v for k, v in got.items() if v[:1] != "4" and v not in ("ECONNRESET", "", "EPIPE")}
    w.same(bad, {}, "each of them")
    w.same({k: got[k] for k in ("bare LF", "two hosts", "other host", "user", "NUL")}, dict.fromkeys(("bare LF", "two hosts", "other host", "user", "NUL"), "400"), "with the right word")
    w.nothing_left("and nothing has left the host")


@test("what a client sends along with its request is not lost, and goes only there")
def pipelined(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
def read_all(s, n):
    out = b""
    while len(out) < n:
        more = s.recv(4096)
        if not more: break
        out += more
    return out
api = b"api.example.test:7000"
one = socket.create_connection(PROXY, 5)
one.sendall(b"CONNECT " + api + b" HTTP/1.1\r\nHost: " + api + b"\r\n\r\nCONNECT evil.test:7000 HTTP/1.1\r\nHost: evil.test:7000\r\n\r\n")
first = read_all(one, 39 + 57).decode()
two = socket.create_connection(PROXY, 5)
two.sendall(b"\5\1\0\5\1\0\3\x10api.example.test" + struct.pack("!H", 7000) + b"hello")
second = read_all(two, 2 + 10 + 5)[-5:].decode()
show([first, second])
""")
    w.ok(got[0].startswith("HTTP/1.1 200 ") and got[0].endswith("CONNECT evil.test:7000 HTTP/1.1\r\nHost: evil.test:7000\r\n\r\n"), "a second request inside is bytes for the first host", got[0])
    w.same(got[1], "hello", "and so is what comes behind SOCKS")
    w.same([c["to"] for c in w.accepted()], [net.FIRST] * 2, "nobody else was connected to")


@test("plain requests through the proxy: each one goes to its own host, whatever the connection was opened for")
def absolute(w):
    w.zone("web.example.test", net.FIRST)
    w.zone("evil.test", net.SECOND)
    w.zone("tls.example.test", net.THIRD)
    w.serve("http", 7000)
    w.serve("http", 443)
    got = w.inside(["tcp://web.example.test:7000", "https://tls.example.test"], r"""
def request(host): return ("GET http://%s/x HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).encode()
s = socket.create_connection(PROXY, 5)
s.sendall(request("web.example.test:7000"))
first = attempt(lambda: s.recv(4096).decode())
attempt(s.sendall, request("evil.test:7000"))
second = attempt(lambda: s.recv(4096).decode())
third = talk("198.18.0.1", 1080, request("tls.example.test:443"))
show([first.split("\r\n")[0], second.split("\r\n")[0], third.split("\r\n")[0]])
""")
    w.same([f for f in ("/ca.pem", "/ca-bundle.pem") if os.path.exists(f)], [], "the host's files are left alone")
    w.ok(got[0] == "HTTP/1.1 200 OK", "a host whose bytes are free is asked, and answers itself", got)
    w.ok(" 200 " not in got[1], "the next request on that connection is judged by its own host", got)
    w.ok(" 200 " not in got[2], "and where only TLS is allowed a plain one is refused", got)
    w.same([[c["to"], [q[2] for q in c.get("requests", [])]] for c in w.accepted()], [[net.FIRST, ["web.example.test:7000"]]], "one host got one request")


@test("slow clients are given up, and others are served meanwhile", seconds=60)
def slow(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
held = [socket.create_connection(PROXY, 5) for _ in range(300)]
for i, s in enumerate(held): s.sendall((b"C", b"\5", b"\4", b"CONNECT api.example")[i % 4])
start = time.monotonic()
now = [through(k, "api.example.test", 7000)[1] for k in ("connect", "socks5", "socks4")]
quick = time.monotonic() - start
end, gone = time.monotonic() + 25, 0
for s in held: s.setblocking(False)
left = list(held)
while left and time.monotonic() < end:
    for s in select.select(left, [], [], 0.5)[0]:
        attempt(s.recv, 999)
        left.remove(s)
    for s in left:   # one more byte each half second does not help
        attempt(s.send, b"x")
show([now, quick, len(left), time.monotonic() - start])
""")
    w.same(got[0], ["ping"] * 3, "others go through")
    w.ok(within(got[1], 3), "at once", got)
    w.ok(got[2] == 0 and within(got[3], 20), "all of the slow ones are closed after ten seconds or so", got)
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "and led nowhere")
