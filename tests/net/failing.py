"""When a part of it dies or hangs nothing gets out, and what can go on goes on."""
import json
import os
import signal
import time

import net
from net import test

RULES = ["tcp://api.example.test:7000-7002", "tcp://new.example.test:7000"]
STEPS = r'''
def step(text):
    print(json.dumps(text), flush=True)
    return sys.stdin.readline()
'''


def scene(w):
    for name in ("api", "new"):
        w.zone(f"{name}.example.test", net.FIRST)
    w.serve("echo", 7000)
    w.serve("hold", 7001)


def say(p):
    line = p.stdout.readline()
    return json.loads(line) if line else None


def go(p):
    """The next step; a session that has ended needs none."""
    try:
        os.write(p.stdin.fileno(), b"\n")
    except BrokenPipeError:
        pass


@test("the process that looks names up is killed: tunnels go on, the next name gets another")
def resolver(w):
    scene(w)
    p = w.started_inside(RULES, STEPS + """
s = socket.create_connection(("api.example.test", 7000), 5)
s.sendall(b"one")
step(s.recv(9).decode())
s.sendall(b"two")
step([s.recv(9).decode(), talk("new.example.test", 7000), talk("api.example.test", 7000)])
""")
    w.same(say(p), "one", "a tunnel is there")
    relay, names = net.helpers_of(p.pid)
    os.kill(names, signal.SIGKILL)
    go(p)
    w.same(say(p), ["two", "ping", "ping"], "it goes on, and names are looked up again")
    now = net.helpers_of(p.pid)
    w.ok(relay in now and names not in now and len(now) == 2, "by another process", now)
    go(p)
    w.same(p.wait(10), 0, "the session ends well")


@test("killed while somebody waits for a name: it is asked again or given up, never let through", seconds=90)
def resolver_waiting(w):
    scene(w)
    w.zone("silent.example.test", silent=["A", "AAAA"])
    p = w.started_inside(RULES + ["tcp://silent.example.test:7000"], STEPS + """
s = socket.socket()
s.setblocking(False)
s.connect_ex((socket.gethostbyname("silent.example.test"), 7000))
time.sleep(0.5)
step("waits")
step(talk("api.example.test", 7000))
s.setblocking(True)
s.settimeout(45)
step(attempt(lambda: s.recv(10).decode()))
""")
    w.same(say(p), "waits", "somebody waits")
    os.kill(net.helpers_of(p.pid)[1], signal.SIGKILL)
    go(p)
    w.same(say(p), "ping", "others are served")
    go(p)
    w.ok(say(p) in ("ECONNRESET", "", "timeout"), "the one that waited is let go")
    w.same([c["to"] for c in w.accepted()], [net.FIRST], "and nothing was dialled for it")


@test("the process that relays is killed: the session ends, and nothing gets out")
def relay(w):
    scene(w)
    p = w.started_inside(RULES, STEPS + """
s = socket.create_connection(("api.example.test", 7000), 5)
s.sendall(b"one")
step(s.recv(9).decode())
out = open("after", "w")
for _ in range(100):
    out.write(talk("api.example.test", 7000) + "\\n")
    out.flush()
    time.sleep(0.05)
""")
    w.same(say(p), "one", "a tunnel is there")
    w.forget()
    os.kill(net.helpers_of(p.pid)[0], signal.SIGKILL)
    go(p)
    try:
        code = p.wait(10)
    except Exception:
        code = "still there"
    w.ok(code not in (0, "still there"), "the session ends with an error", code)
    w.ok(b"network" in p.stderr.read(), "and says why")
    after = (w.ws / "after").read_text() if (w.ws / "after").exists() else ""
    w.ok("ping" not in after, "nothing that was tried afterwards succeeded", after)
    w.same([p for p in w.packets() if p[0] != "tcp" or p[2] != 7000], [], "no packet went anywhere else")
    w.same(w.accepted(), [], "and nobody was connected to")
    w.clean(seconds=3)


@test("the process that relays hangs: connections wait, nothing gets out, the session can be stopped")
def hangs(w):
    scene(w)
    p = w.started_inside(RULES, STEPS + """
step(talk("api.example.test", 7000))
step([talk("api.example.test", 7000, seconds=1), talk("evil.test", 7000, seconds=1), talk("1.2.3.10", 7000)])
""")
    w.same(say(p), "ping", "it works")
    net.host.wait_for(lambda: all(c["end"] for c in w.accepted()))
    time.sleep(0.3)  # the last words of that connection
    w.forget()
    helper = net.helpers_of(p.pid)[0]
    os.kill(helper, signal.SIGSTOP)
    try:
        go(p)
        got = None
        if net.select_ready(p.stdout, 40):
            got = say(p)
        w.ok(got and "ping" not in got and got[2] == "ENETUNREACH", "nothing succeeds", got)
        w.nothing_left("and nothing has left the host")
        p.send_signal(signal.SIGTERM)
        try:
            code = p.wait(10)
        except Exception:
            code = "still there"
        w.ok(code != "still there", "the session ends when it is told to", code)
    finally:
        try:
            os.kill(helper, signal.SIGCONT)
        except OSError:
            pass


@test("the supervisor is killed: tunnels and helpers go with it")
def supervisor(w):
    scene(w)
    p = w.started_inside(RULES, STEPS + """
s = socket.create_connection(("api.example.test", 7001), 5)
s.sendall(b"x")
step("there")
""")
    w.same(say(p), "there", "a tunnel is there")
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 1), "the world holds it")
    helpers = net.helpers_of(p.pid)
    p.kill()
    p.wait()
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 0, 5), "it is gone")
    w.ok(net.host.wait_for(lambda: not any(os.path.exists(f"/proc/{h}") for h in helpers), 5), "and so are the helpers", helpers)


@test("no name server: what is allowed cannot be reached, and nothing else either")
def no_server(w):
    scene(w)
    for server in ("127.0.0.1:9", "nonsense"):
        w.env["WRIT_RESOLVER"] = server
        r = w.run(net.host.PYTHON, "-c", "import os, sys, json\n" + net.INSIDE + "show(talk('api.example.test', 7000, seconds=40))", opts=w.rules(*RULES), timeout=60)
        w.ok(r.code != 0 or r.text.strip() in ('"ECONNRESET"', '"timeout"'), f"{server}: no connection", r)
    w.same(w.accepted(), [], "nobody was connected to")


@test("a rule that comes, and goes, while the session runs")
def live(w):
    scene(w)
    p = w.started_inside(["tcp://api.example.test:7000"], STEPS + """
step(talk("new.example.test", 7000))
s = socket.create_connection(("new.example.test", 7000), 5)
s.sendall(b"held")
step(s.recv(9).decode())
s.settimeout(5)
end = attempt(lambda: s.recv(9).decode())
step([end, talk("new.example.test", 7000), talk("api.example.test", 7000)])
""")
    w.same(say(p), "no name", "before, there is no such name")
    w.same(w.queries("new"), [], "and nobody asked for it")
    session = next(iter(w.ids()))
    r = w.writ("allow", session, "net:tcp://new.example.test:7000")
    w.exits(r, 0, "it is allowed")
    go(p)
    w.same(say(p), "held", "and reached")
    r = w.writ("revoke", session, next((t for t in r.text.split() if t.strip(".:").isdigit()), "1").strip(".:"))
    w.exits(r, 0, "it is taken back")
    go(p)
    got = say(p)
    w.ok(got and got[0] in ("ECONNRESET", ""), "the tunnel ends", got)
    w.ok(got and got[1] in ("no name", "ECONNREFUSED", "ECONNRESET"), "there is no new one", got)
    w.same(got and got[2], "ping", "others are as they were")


@test("what is taken back while it is being dialled is not connected later")
def taken_back(w):
    w.zone("slow.example.test", net.space.SILENT[0])
    w.zone("other.example.test", net.FIRST)
    p = w.started_inside(["tcp://other.example.test:7000"], """
print("go", flush=True)
sys.stdin.readline()
s = socket.create_connection(("slow.example.test", 7000), 5)
print("waits", flush=True)
s.settimeout(10)
start = time.monotonic()
print(json.dumps([attempt(s.recv, 1), time.monotonic() - start < 9]), flush=True)
""")
    w.same(p.stdout.readline(), b"go\n", "it runs")
    session = next(iter(w.ids()))
    w.exits(w.writ("allow", session, "net:tcp://slow.example.test:7000"), 0, "a name is granted")
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), b"waits\n", "somebody waits for it to answer")
    time.sleep(0.5)
    w.exits(w.writ("revoke", session, "1"), 0, "it is taken back")
    w.same(json.loads(p.stdout.readline()), ["ECONNRESET", True], "who waits is told at once")
    p.wait(20)


@test("a port of the host that comes, and goes, while the session runs")
def live_localhost(w):
    port, hits = net.host_listener(answer=b"host")
    p = w.started_inside([], STEPS + f"""
names = ["localhost", "127.0.0.1", "host.writ"]
step([talk(n, {port}) for n in names])
# It opens a moment after it was granted.
for i in range(50):
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", {port})) == 0: break
    time.sleep(0.1)
step([talk(n, {port}) for n in names])
step([talk(n, {port}) for n in names])
""")
    w.ok("host" not in say(p), "before, nobody is there")
    session = next(iter(w.ids()))
    w.exits(w.writ("allow", session, f"net:localhost:{port}"), 0, "it is allowed")
    go(p)
    w.same(say(p), ["host"] * 3, "and reached by each of its names")
    w.exits(w.writ("revoke", session, "1"), 0, "it is taken back")
    go(p)
    w.ok("host" not in say(p), "and gone")
    w.same(len(hits), 4, "nobody came but when it was allowed")


@test("who leaves while its name is looked up, or while it is dialled, is on record")
def left(w):
    w.zone("slow.example.test", net.space.SILENT[0])
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    names = [f"data{i}.pkg.test" for i in range(3)]
    for name in names:
        w.zone(name, silent=["A", "AAAA"])
    rules = w.rules("tcp://slow.example.test:7000-7003", "tcp://*.pkg.test:7000", "tcp://api.example.test:7000")
    for tier in "AB":
        if w.run("true", opts=["--tier", tier, *rules]).code == 122:
            w.ok(tier == "B", "tier B is refused before anything runs")
            continue
        w.forget()
        got = w.python(net.INSIDE + f"""
def knock(name, port, hard):
    s = socket.create_connection((name, port), 5)
    if hard: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.3)
    s.close()
for port in (7001, 7002): knock("slow.example.test", port, True)
for name in {names!r}: knock(name, 7000, True)
show(talk("api.example.test", 7000))
""", opts=["--tier", tier, *rules], timeout=60)
        w.same(got, "ping", f"{tier}: who stays is served")
        asked = sorted({q[0] for q in w.queries("pkg.test")})
        w.same(asked, names, f"{tier}: the names have been asked for outside")
        w.same(sorted({p[2] for p in w.packets() if p[1] == net.space.SILENT[0]}), [7001, 7002], f"{tier}: and packets have left")
        seen = [(e["host"], e["port"], e["answer"], e.get("why")) for e in w.net_events("connect")]
        why = "its client left before it was reached"
        w.same(sorted(s for s in seen if s[3]), sorted([("slow.example.test", p, "allow", why) for p in (7001, 7002)] +
                                                       [(n, 7000, "allow", why) for n in names]),
               f"{tier}: each is on record")
        w.same([s for s in seen if not s[3]], [("api.example.test", 7000, "allow", None)], f"{tier}: so is the one that was reached")


@test("the reader is killed while it waits for a server: that is on record, and another reads on")
def reader_waiting(w):
    w.zone("slow.example.test", net.space.SILENT[0])
    w.zone("api.example.test", net.FIRST)
    w.serve("http", 80)
    p = w.started_inside(["http://slow.example.test/v1/**", "http://api.example.test/v1/**"], STEPS + """
def get(name):
    return talk(name, 80, b"GET /v1/x HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % name.encode())[:15]
s = socket.create_connection(("slow.example.test", 80), 5)
s.sendall(b"GET /v1/x HTTP/1.1\\r\\nHost: slow.example.test\\r\\n\\r\\n")
time.sleep(0.5)
step("waits")
step(get("api.example.test"))
""")
    w.same(say(p), "waits", "somebody waits")
    w.ok(any(k[1] == net.space.SILENT[0] for k in w.packets()), "a packet has left")
    readers = [c for c in net.host.children(p.pid) if net.read(f"/proc/{c}/comm") == "writ-l7\n"]
    w.same(len(readers), 1, "there is a reader")
    os.kill(readers[0], signal.SIGKILL)
    time.sleep(0.5)
    go(p)
    w.same(say(p), "HTTP/1.1 200 OK", "another reads on")
    go(p)
    p.wait(20)
    seen = [(e["host"], e["port"], e.get("why")) for e in w.net_events("connect", host="slow.example.test")]
    w.same(seen, [("slow.example.test", 80, "nobody is there to read its requests")], "what it waited for is on record")
