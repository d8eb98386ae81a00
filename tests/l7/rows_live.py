"""Questions, limits, rules that come and go, connections that are kept."""
import os
import queue
import time

import h2
from h2 import Peer, request
from rows_http1 import wait
from world import ANSWER, CLOSE, GRANT, REVOKE, Stream, World, answer, get, plain, rule
from bounds import within

API = [rule("https://api.test:443/**")]
ASKED = [{"rule": 0, "text": "http.request:local:https://api.test:443/**;approve=operator;m=*;q=any"}]


def code(got):
    return got[0].split()[1]


def row_questions(ok, pki):
    w = World(ASKED, pki)
    o = w.origin("api.test", plain())
    a, b, c = (Stream(w.tls("api.test")) for _ in range(3))
    a.sock.sendall(get("/x"))
    asked = w.asks.get(timeout=5)
    ok.equal("what is asked", [asked[k] for k in ("host", "port", "method", "path", "answer")],
             ["api.test", 443, "GET", "/x", 1])
    b.sock.sendall(get("/x"))
    c.sock.sendall(get("/y"))
    other = w.asks.get(timeout=5)
    ok.equal("another path is another question", other["path"], "/y")
    try:
        w.asks.get(timeout=0.2)
        ok("the same is asked once", False)
    except queue.Empty:
        ok("the same is asked once", True)
    ok.equal("nothing is sent before", o.seen, [])
    w.tell(ANSWER, asked["id"], 1)
    ok.equal("yes is for both", [code(a.message()), code(b.message())], ["200", "200"])
    w.tell(ANSWER, other["id"], 0)
    got = c.message()
    ok.equal("no", (code(got), got[1]["x-writ-reason"]), ("403", ["a person said no, or nobody answered"]))
    a.sock.sendall(get("/gone"))
    gone = w.asks.get(timeout=5)
    a.sock.close()
    ok("who goes away is not waited for", w.event(CLOSE))
    w.tell(ANSWER, gone["id"], 1)
    b.sock.sendall(get("/z", method="POST", more="Content-Length: 200000\r\n") + b"x" * 100)
    z = w.asks.get(timeout=5)
    w.tell(ANSWER, z["id"], 1)
    b.sock.sendall(b"x" * 199900)
    ok.equal("a body waits meanwhile", (code(b.message()), len(o.seen[-1][2])), ("200", 200000))
    ok("how long it took is on record", any(e["asked"] > 0 for e in w.all))
    p = Peer(w.tls("api.test", alpn=["h2"]))
    i = p.ask(request("/h2"))
    w.tell(ANSWER, w.asks.get(timeout=5)["id"], 1)
    ok.equal("over HTTP/2", dict(p.wait(i)["fields"])[":status"], "200")


def row_questions_whole(ok, pki):
    """A question shows what is asked to its end, and a yes is for nothing else."""
    w = World(ASKED, pki)
    o = w.origin("api.test", plain())
    raws = [get("/publish"), get("/publish"), get("/publish?draft=1"), get("/publish?draft=0&to=all"),
            get("/publish", method="POST", more="Content-Length: 3\r\n") + b"one",
            get("/publish", method="POST", more="Content-Length: 3\r\n") + b"two",
            get("/publish", method="POST", more="Transfer-Encoding: chunked\r\n") + b"1\r\na\r\n0\r\n\r\n"]
    streams = [Stream(w.tls("api.test")) for _ in raws]
    asked = []
    for i, (s, raw) in enumerate(zip(streams, raws)):
        s.sock.sendall(raw)
        if i != 1:
            try:
                asked.append(w.asks.get(timeout=3))
            except queue.Empty:
                asked.append({"id": 0, "method": "nothing", "path": ""})
    ok.equal("each has its question, in which the query is", [(a["method"], a["path"]) for a in asked],
             [("GET", "/publish"), ("GET", "/publish?draft=1"), ("GET", "/publish?draft=0&to=all")] + [("POST", "/publish")] * 3)
    w.tell(ANSWER, asked[0]["id"], 1)
    ok.equal("yes is for those that are the same", [code(s.message()) for s in streams[:2]], ["200"] * 2)
    wait(lambda: len(o.seen) > 2, 0.5)
    ok.equal("and for no other", [r[0] for r in o.seen], ["GET /publish HTTP/1.1"] * 2)
    w.tell(ANSWER, asked[4]["id"], 1)
    ok.equal("nor for another body", (code(streams[5].message()), [r[2] for r in o.seen[2:]]), ("200", [b"two"]))
    w.tell(ANSWER, asked[3]["id"], 0)
    ok.equal("which can be refused", (code(streams[4].message()), len(o.seen)), ("403", 3))
    for a in asked[1:3] + asked[5:]:
        w.tell(ANSWER, a["id"], 1)
    ok.equal("the others come when they are allowed", [code(streams[i].message()) for i in (2, 3, 6)], ["200"] * 3)
    got = w.ask(get("/x?" + "a" * 520))
    ok.equal("a query that cannot be shown is refused", (code(got), w.asks.qsize()), ("403", 0))


def row_body_of_a_get(ok, pki):
    """A server that expects no body would take it for the next request: such a connection is not used again."""
    w = World(API, pki)
    o = w.origin("api.test", plain())
    s = w.tls("api.test")
    inner = b"GET /inner HTTP/1.1\r\nHost: api.test\r\n\r\n"
    for method in ("GET", "HEAD", "DELETE", "OPTIONS"):
        before = o.connections
        o.seen.clear()
        first = Stream(w.tls("api.test"))
        first.sock.sendall(get("/a", method=method, more=f"Content-Length: {len(inner)}\r\n") + inner)
        ok.equal(f"{method}: it is answered", code(first.message(head_only=method == "HEAD")), "200")
        ok.equal(f"{method}: the server is told that nothing follows", o.seen[0][1].get("connection"), ["close"])
        ok.equal(f"{method}: the next is answered", code(w.ask(get("/b"), sock=s)), "200")
        ok(f"{method}: on another connection", o.connections > before, (before, o.connections))
    before = o.connections
    for method, more, body in (("GET", "", b""), ("POST", "Content-Length: 1\r\n", b"x"), ("GET", "", b"")):
        w.ask(get("/c", method=method, more=more) + body, sock=s)
    ok.equal("others share one", o.connections - before <= 1, True)


def row_N093_asked_in_full(ok, pki):
    """Nobody is asked about a path of which only the beginning could be shown."""
    w = World(ASKED, pki)
    o = w.origin("api.test", plain())
    got = w.ask(get("/" + "a" * 520))
    ok.equal("refused", (code(got), o.seen, w.asks.qsize()), ("403", [], 0))


def row_limits(ok, pki):
    w = World([rule("https://api.test:443/**", more=";n=2")], pki)
    w.origin("api.test", plain())
    ok.equal("count", [code(w.ask(get())) for _ in range(3)], ["200", "200", "403"])
    w = World([{"rule": 0, "text": "http.request:local:https://api.test:443/**;m=*;q=any;rate=2/60"}], pki)
    w.origin("api.test", plain())
    ok.equal("rate", [code(w.ask(get())) for _ in range(3)], ["200", "200", "403"])
    w = World(API, pki, limits={"requests": 1})
    w.origin("api.test", plain())
    got = [w.ask(get()) for _ in range(2)]
    ok.equal("requests of the session", [code(g) for g in got], ["200", "403"])
    ok("and why", "requests of the session" in got[1][1]["x-writ-reason"][0])
    w = World(API, pki, limits={"up": 1000})
    o = w.origin("api.test", plain())
    ok.equal("bytes sent", code(w.ask(get(method="POST", more="Content-Length: 5000\r\n") + b"x" * 5000)), "403")
    ok.equal("a server sees no more", sum(len(r[2]) for r in o.seen), 0)
    w = World(API, pki, limits={"down": 1000})
    w.origin("api.test", plain(lambda *_: answer(body=b"x" * 5000)))
    try:
        got = w.ask(get())
        ok("bytes received", False, got)
    except (EOFError, OSError) as e:
        ok("bytes received", b"x" * 1000 not in e.args[0] if e.args and isinstance(e.args[0], bytes) else True)
    ok.equal("on record", w.event()["why"], "used up: bytes received")


def row_grants(ok, pki):
    w = World([rule("https://api.test:443/a/**")], pki)
    w.origin("api.test", plain(lambda first, *_: answer() if "slow" not in first else time.sleep(3) or answer()))
    s = w.tls("api.test")
    ok.equal("not yet", code(w.ask(get("/b/x"), sock=s)), "403")
    cap = rule("https://api.test:443/b/**")["text"].encode()
    w.tell(GRANT, what=cap)
    time.sleep(0.1)
    ok.equal("granted", code(w.ask(get("/b/x"), sock=s)), "200")
    q = Stream(w.tls("api.test"))
    q.sock.sendall(get("/b/slow"))
    time.sleep(0.2)
    w.tell(REVOKE, what=cap)
    ok.equal("what is under way ends", code(q.message()), "502")
    ok.equal("taken back", code(w.ask(get("/b/x"), sock=s)), "403")
    ok.equal("the rest stands", code(w.ask(get("/a/x"), sock=s)), "200")


def row_pool(ok, pki):
    w = World(API, pki)
    o = w.origin("api.test", plain())
    for _ in range(5):
        w.ask(get())
    ok.equal("five clients, one server", o.connections, 1)
    # A server that closes a kept connection: the next request goes over a new one.
    def once(origin, sock):
        s = Stream(sock)
        s.message()
        sock.sendall(answer())
        s.message()
    w = World(API, pki)
    o = w.origin("api.test", once)
    s = w.tls("api.test")
    ok.equal("asked again where that is safe", [code(w.ask(get(), sock=s)) for _ in range(4)], ["200"] * 4)
    ok.equal("over new connections", o.connections, 4)
    got = w.ask(get(method="POST", more="Content-Length: 1\r\n") + b"x", sock=s)
    ok.equal("not where it is not", code(got), "502")
    p = Peer(w.tls("api.test", alpn=["h2"]))
    ok.equal("nor is it forgotten", p.get(request())[0], "200")


def row_full_pool(ok, pki):
    both = {"h2": h2.serve(), "http/1.1": plain(lambda *_: time.sleep(0.3) or answer())}
    w = World(API, pki)
    o = w.origin("api.test", lambda origin, sock: both[sock.selected_alpn_protocol()](origin, sock),
                 alpn=["h2", "http/1.1"])
    socks = [w.tls("api.test") for _ in range(64)]
    for s in socks:
        s.sendall(get())
    for s in socks:
        Stream(s).message()
    ok("many connections are kept", o.connections > 40, o.connections)
    start = time.monotonic()
    ok.equal("one who cannot use them", Peer(w.tls("api.test", alpn=["h2"])).get(request())[0], "200")
    ok("does not wait for them to end", within(time.monotonic() - start, 5))


def row_many(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain())
    socks = [w.tls("api.test") for _ in range(100)]
    for s in socks:
        s.sendall(get())
    ok.equal("100 at once", {code(Stream(s).message()) for s in socks}, {"200"})
    for s in socks:
        s.close()
    ok("all ends are on record", wait(lambda: sum(e["what"] == CLOSE for e in w.all) == 100))
    if os.getuid() == 0:
        fds = os.listdir(f"/proc/{w.proc.pid}/fd")
        ok("and closed", len(fds) < 90, len(fds))


def row_slow_head(ok, pki):
    w = World(API, pki)
    w.origin("api.test", plain())
    s = w.tls("api.test")
    s.sendall(b"GET / HT")
    start = time.monotonic()
    s.settimeout(20)
    try:
        got = s.recv(10)
    except OSError:
        got = b""
    ok("a head has ten seconds", got == b"" and 8 < time.monotonic() - start and within(time.monotonic() - start, 14), time.monotonic() - start)
    ok("why is on record", "too long" in w.event(CLOSE)["why"])


def row_early_answer(ok, pki):
    def early(origin, sock):
        Stream(sock).until(b"\r\n\r\n")
        sock.sendall(answer("413 Too Large", b"no"))
        time.sleep(1)
    w = World(API, pki)
    w.origin("api.test", early)
    s = Stream(w.tls("api.test"))
    s.sock.sendall(get(method="POST", more="Content-Length: 10000000\r\n") + b"x" * 100000)
    ok.equal("an answer before the end of the request", code(s.message()), "413")
    p = Peer(w.tls("api.test", alpn=["h2"]))
    i = p.ask(request("/", "POST"), b"x" * 1000, end=False)
    ok.equal("over HTTP/2", dict(p.wait(i)["fields"])[":status"], "413")
    # A refused request with a short body leaves the connection usable.
    w = World([rule("https://api.test:443/a")], pki)
    w.origin("api.test", plain())
    s = w.tls("api.test")
    ok.equal("refused", code(w.ask(get("/b", method="POST", more="Content-Length: 5\r\n") + b"12345", sock=s)), "403")
    ok.equal("and used again", code(w.ask(get("/a"), sock=s)), "200")
