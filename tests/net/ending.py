"""What a command sent before it ended arrives, however slowly it is read; but no session lasts for it without a bound."""
import signal
import time

import net
from bytes_ import SEND
from net import test
from world import digest
from bounds import within

RULES = ["tcp://api.example.test:7000-7003"]
SIZE = 4 << 20
PACE = 0.008  # for each 32 KiB
RAW = SEND + f"""
s = socket.create_connection(("api.example.test", 7000), 30)
for p in pattern({SIZE}, 5): s.sendall(p)
print(1, flush=True)
os._exit(0)
"""
FULL = SEND + """
s = socket.create_connection(("api.example.test", PORT), 30)
s.settimeout(0.3)
try:
    for p in pattern(64 << 20, 5): s.sendall(p)
except TimeoutError: pass
print(1, flush=True)
os._exit(0)
"""
POST = SEND + r"""
def connect(where, tls):
    s = socket.create_connection((where, 443 if tls else 80), 30)
    return ssl.create_default_context().wrap_socket(s, server_hostname=where) if tls else s
def post(s, where, path, n, seed):
    s.sendall(b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (path.encode(), where.encode(), n))
    for p in pattern(n, seed): s.sendall(p)
"""


def ended(w, port, seconds=10):
    return net.host.wait_for(lambda: [c for c in w.accepted(port) if c["end"]], seconds)


def closed(w, port):
    return [(e["up"], e.get("why")) for e in w.net_events("closed") if e["port"] == port]


def raw(w, opts):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000, pace=PACE)
    got = w.python(net.INSIDE + RAW, opts=[*opts, *w.rules(*RULES)], timeout=60)
    w.same(got, 1, "the command has sent it")
    w.same([(c["got"], c.get("sha"), c["end"]) for c in ended(w, 7000)], [(SIZE, digest(SIZE, 5), "eof")], "and all of it arrives, and its end")
    w.same(closed(w, 7000), [(SIZE, None)], "the record has every byte")


@test("a tunnel's last bytes arrive", bulk=True)
def tunnel(w):
    raw(w, [])


@test("a tunnel's last bytes arrive where the network is shared", bulk=True)
def tunnel_shared(w):
    r = w.run("true", opts=["--tier", "B", *w.rules(*RULES)])
    if r.code == 0:
        raw(w, ["--tier", "B"])
    else:
        w.exits(r, 122, "tier B is refused before anything runs")


def upload(w, opts, tls):
    w.zone("api.example.test", net.FIRST)
    port = 443 if tls else 80
    if tls:
        w.serve_tls(443, "upload", pace=PACE)
        w.env["WRIT_CA_FILE"] = str(w.ws / "ca.pem")
    else:
        w.serve("upload", 80, pace=PACE)
    got = w.python(net.INSIDE + POST + f"""
s = connect("api.example.test", {tls})
post(s, "api.example.test", "/v1/first", 10, 5)
s.recv(4096)  # nothing is unread when it ends: that would be a reset
post(s, "api.example.test", "/v1/a", {SIZE}, 6)
print(1, flush=True)
os._exit(0)
""", opts=[*opts, *w.rules(f"{'https' if tls else 'http'}://api.example.test/v1/** methods=POST")], timeout=60)
    w.same(got, 1, "the command has sent it")
    bodies = net.host.wait_for(lambda: [b for c in w.accepted(port) for b in c.get("bodies", [])][1:], 10)
    w.same(bodies, [["POST", "/v1/a", SIZE, digest(SIZE, 6)]], "and all of it arrives")
    seen = [(e["method"], e["answer"], e["up"] > SIZE, e["status"]) for e in w.net_events("request", path="/v1/a")]
    w.same(seen, [("POST", "allow", True, 200)], "the record has every byte, and the answer")
    w.ok([up > SIZE for up, why in closed(w, port)] == [True], "also where the connection ends", closed(w, port))


@test("an upload that is read arrives", bulk=True)
def inspected(w):
    upload(w, [], True)


@test("an upload that is read arrives, without TLS", bulk=True)
def inspected_plain(w):
    upload(w, [], False)


@test("an upload that is read arrives where the network is shared", bulk=True)
def inspected_shared(w):
    r = w.run("true", opts=["--tier", "B", *w.rules(*RULES)])
    if r.code == 0:
        upload(w, ["--tier", "B"], True)
    else:
        w.exits(r, 122, "tier B is refused before anything runs")


@test("an upload arrives that the client did not wait for, while the session goes on", bulk=True)
def left_alone(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("upload", 80, pace=PACE / 2)
    w.inside(["http://api.example.test/v1/** methods=POST"], POST + f"""
s = connect("api.example.test", False)
post(s, "api.example.test", "/v1/a", {3 * SIZE}, 6)
s.close()
time.sleep(6)
show(1)
""")
    bodies = [b for c in w.accepted(80) for b in c.get("bodies", [])]
    w.same(bodies, [["POST", "/v1/a", 3 * SIZE, digest(3 * SIZE, 6)]], "all of it")


@test("half a request is not made a whole one", bulk=True)
def half(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("upload", 80)
    w.inside(["http://api.example.test/v1/** methods=POST"], SEND + f"""
s = socket.create_connection(("api.example.test", 80), 30)
s.sendall(b"POST /v1/a HTTP/1.1\\r\\nHost: api.example.test\\r\\nContent-Length: {SIZE}\\r\\n\\r\\n")
for p in pattern({SIZE // 2}, 6): s.sendall(p)
print(1, flush=True)
os._exit(0)
""")
    c = ended(w, 80)
    bodies = [b for x in c for b in x.get("bodies", [])]
    w.ok(bool(c) and all(b[2] < SIZE for b in bodies), "it is cut off where the client cut it off", c)


@test("a limit of bytes holds for the last ones, too", bulk=True)
def quota(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000, pace=PACE)
    w.python(net.INSIDE + RAW.replace(str(SIZE), str(2 << 20)), opts=w.rules("tcp://api.example.test:7000 up=1M"), timeout=60)
    c = ended(w, 7000)
    w.ok(bool(c) and c[0]["got"] <= 1 << 20 and c[0]["end"] == "reset", "no byte above it has left, and the other side sees that", c)
    w.same([(up, bool(why)) for up, why in closed(w, 7000)], [(1 << 20, True)], "the record says why")


@test("who does not read, or hardly, does not hold a session", bulk=True)
def bound(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000, pace=30)
    w.serve("sink", 7001, pace=0.2)
    for port, least, most in ((7000, 1, 4), (7001, 4, 7)):
        p = w.started_inside(RULES, FULL.replace("PORT", str(port)))
        w.same(p.stdout.readline(), b"1\n", f"port {port}: the command has sent what it could")
        start = time.monotonic()
        code, took = p.wait(20), time.monotonic() - start
        w.ok(code == 0 and least < took < most, "it ends in time", [code, took])
        w.ok(b"ended before all was sent" in p.stderr.read(), "which is said")
        w.ok([bool(why) for up, why in closed(w, port)] == [True], "and on record", closed(w, port))
    w.same([c["end"] for c in ended(w, 7001)], ["reset"], "the other side sees that it has not all")


@test("a stop or a signal ends it at once", bulk=True)
def stopped(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000, pace=0.2)
    for way in ("stop", "signal"):
        before = set(w.ids())
        p = w.started_inside(RULES, RAW)
        w.same(p.stdout.readline(), b"1\n", f"{way}: the command has sent it")
        time.sleep(0.5)
        w.ok(p.poll() is None, "the session is still sending")
        start = time.monotonic()
        if way == "stop":
            r = w.writ("stop", *(set(w.ids()) - before))
            w.same(r.code, 0, "it can be told to stop")
        else:
            p.send_signal(signal.SIGTERM)
        code = p.wait(5)
        w.ok(within(time.monotonic() - start, 2.5), "it ends at once", time.monotonic() - start)
        w.same(code, 0, "and as its command did")
