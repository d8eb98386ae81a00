"""Bytes arrive as they were sent, in both directions, to the last one; ends and resets arrive as well."""
import time

import net
from net import test
from world import digest
from bounds import within

RULES = ["tcp://api.example.test:7000-7003"]
MIB = 1 << 20
BIG = 1024 * MIB if net.LONG else 48 * MIB
SEND = r'''
def pattern(n, seed=0):
    block = hashlib.sha256(str(seed).encode()).digest() * 2048
    while n > 0:
        yield block[:min(n, len(block))]
        n -= len(block)
'''


@test("half-close: what is sent after one side has ended arrives whole", bulk=True, seconds=600)
def half_close(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000)
    w.serve("source", 7001)
    w.serve("says_bye", 7002)
    n = BIG
    got = w.inside(RULES, SEND + f"""
out = {{}}
s = socket.create_connection(("api.example.test", 7000), 60)
for p in pattern({n}, 1): s.sendall(p)
s.shutdown(socket.SHUT_WR)
out["up"] = s.recv(200).decode().split()
s = socket.create_connection(("api.example.test", 7001), 60)
s.sendall(b"{n} 2\\n")
s.shutdown(socket.SHUT_WR)
out["down"] = pump(s)
s = socket.create_connection(("api.example.test", 7002), 60)
out["bye"] = [s.recv(10).decode(), s.recv(10).decode()]
for p in pattern(3000000, 3): s.sendall(p)
s.close()
show(out)
""", timeout=500)
    w.same(got["up"], [digest(n, 1), str(n)], "up, then the answer after the end")
    w.same(got["down"], [n, digest(n, 2)], "down, after our end")
    w.same(got["bye"], ["bye", ""], "the other side's end is seen")
    c = net.host.wait_for(lambda: [c for c in w.accepted(7002) if c["end"]], 10)
    w.same([(x["got"], x.get("sha")) for x in c], [(3000000, digest(3000000, 3))], "and what is sent after it arrives")
    closed = {(e["port"]): (e["up"], e["down"]) for e in w.net_events("closed")}
    w.same(closed[7001][1], n, "the record has every byte down")
    w.same(closed[7000][0], n, "and up")


@test("both directions at once, writes of any size", bulk=True, seconds=600)
def duplex(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("duplex", 7000)
    n = BIG
    got = w.inside(RULES, SEND + f"""
import random
random.seed(7)
def one(out, seed):
    s = socket.create_connection(("api.example.test", 7000), 120)
    s.sendall(b"{n} %d\\n" % seed)
    def up():
        for p in pattern({n}, seed + 10):
            while p:
                k = random.choice((1, 17, 1000, 65536))
                s.sendall(p[:k])
                p = p[k:]
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=up)
    t.start()
    down = pump(s, {n})
    rest = b""
    while (more := s.recv(100)): rest += more
    t.join()
    out[str(seed)] = [down, rest.decode()]
out = {{}}
threads = [threading.Thread(target=one, args=(out, i)) for i in (1, 2, 3)]
[t.start() for t in threads], [t.join() for t in threads]
show(out)
""", timeout=550)
    for i in (1, 2, 3):
        w.same(got[str(i)], [[n, digest(n, i)], digest(n, i + 10)], f"stream {i} of three is whole both ways")


@test("a receiver that does not read stops the sender, and costs no memory", bulk=True)
def backpressure(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000, wait=4, small=True)
    w.serve("flood", 7001)
    p = w.started_inside(RULES, r"""
up = socket.create_connection(("api.example.test", 7000), 30)
up.setblocking(False)
down = [socket.create_connection(("api.example.test", 7001), 30) for _ in range(20)]   # never read
sent, h, end = 0, hashlib.sha256(), time.monotonic() + 2
block = b"q" * 65536
while time.monotonic() < end:
    try:
        n = up.send(block)
        sent += n
        h.update(block[:n])
    except BlockingIOError: time.sleep(0.01)
print(json.dumps(["stuck", sent]), flush=True)
sys.stdin.readline()
up.setblocking(True)
up.shutdown(socket.SHUT_WR)
print(json.dumps([up.recv(200).decode().split(), h.hexdigest(), sent]), flush=True)
""")
    import json
    stuck = json.loads(p.stdout.readline())
    w.ok(stuck[1] < 64 * MIB, "it stops after what fits between", stuck)
    sizes = [resident(c) for c in net.host.descendants(p.pid)]
    w.ok(max(sizes) < 64 * MIB, "and nobody has grown", sizes)
    p.stdin.write(b"\n")
    p.stdin.close()
    got = json.loads(p.stdout.readline() or b"null")
    w.same(got[0], [got[1], str(got[2])], "later everything arrives")


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm") as f:
            return int(f.read().split()[1]) * 4096
    except OSError:
        return 0


@test("a reset on one side is a reset on the other, at once")
def resets(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("resets", 7000)
    w.serve("hold", 7001)
    got = w.inside(RULES, r"""
s = socket.create_connection(("api.example.test", 7000), 10)
s.sendall(b"x")
start = time.monotonic()
first = attempt(s.recv, 10)
took = time.monotonic() - start
t = socket.create_connection(("api.example.test", 7001), 10)
t.sendall(b"y")
time.sleep(0.3)
t.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
t.close()
u = socket.create_connection(("api.example.test", 7001), 10)
u.sendall(b"z")
time.sleep(0.3)
u.close()
time.sleep(0.5)
show([first if isinstance(first, str) else "closed", took])
""")
    w.same(got[0], "ECONNRESET", "from outside to inside")
    w.ok(within(got[1], 1), "at once", got)
    ends = net.host.wait_for(lambda: (e := [c["end"] for c in w.accepted(7001)]) and all(e) and e, 5)
    w.same(ends, ["reset", "eof"], "from inside to outside; an ordinary end stays one")


@test("a limit of bytes is exact, and on record", bulk=True)
def quota(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000)
    w.serve("source", 7001)
    w.serve("echo", 7002)
    got = w.inside(["tcp://api.example.test:7000 up=1M", "tcp://api.example.test:7001 down=1M", "tcp://api.example.test:7002 count=3"], SEND + r"""
s = socket.create_connection(("api.example.test", 7000), 10)
sent = 0
try:
    for p in pattern(8 << 20): s.sendall(p); sent += len(p)
    s.shutdown(socket.SHUT_WR)
    up = s.recv(10).decode()
except OSError as e: up = word(e)
t = socket.create_connection(("api.example.test", 7001), 10)
t.sendall(b"8388608 1\n")
n = 0
try:
    while (d := t.recv(65536)): n += len(d)
    down = "closed"
except OSError as e: down = word(e)
show([up, n, down, talk("api.example.test", 7000), [talk("api.example.test", 7002) for _ in range(5)]])
""")
    w.ok(got[0] in ("ECONNRESET", "EPIPE"), "up: the connection is cut", got)
    passed = net.host.wait_for(lambda: [c["got"] for c in w.accepted(7000) if c["end"]], 5)
    w.ok(passed and sum(passed) <= MIB, "no byte above it has left", passed)
    w.ok(got[1] <= MIB and got[2] == "ECONNRESET", "down: no byte above it came in", got)
    w.ok(got[3] in ("ECONNRESET", "EPIPE", ""), "and it stays used up", got[3])
    w.same(got[4], ["ping"] * 3 + ["ECONNRESET"] * 2, "so many connections and no more")
    e = [(x["port"], x["up"], x["down"], bool(x.get("why"))) for x in w.net_events("closed")]
    w.ok((7000, MIB, 0, True) in e, "the record has the exact count, and why", e)
    w.ok(any(x[0] == 7001 and x[2] == MIB and x[3] for x in e), "for what came in too", e)
    w.same(len(w.net_events("connect", answer="deny", port=7002)), 2, "and the two that were refused")


@test("a limit of bytes holds for the first message too")
def quota_first(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("sink", 7000)
    got = w.inside(["tcp://api.example.test:7000 up=100"], r"""
s = socket.create_connection(PROXY, 5)
s.sendall(b"\5\1\0\5\1\0\3\x10api.example.test" + struct.pack("!H", 7000) + b"x" * 5000)
time.sleep(0.5)
attempt(s.shutdown, socket.SHUT_WR)
attempt(s.recv, 100)
show(1)
""")
    time.sleep(0.3)
    w.ok(sum(c["got"] for c in w.accepted(7000)) <= 100, "bytes sent along with a proxy's request are counted", [got, w.accepted(7000)])


@test("a rate holds in any stretch of time", seconds=60)
def rate(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["tcp://api.example.test:7000 rate=5/2s"], r"""
out = [talk("api.example.test", 7000) for _ in range(8)]
time.sleep(2.2)
show([out, [talk("api.example.test", 7000) for _ in range(7)]])
""")
    w.same(got, [["ping"] * 5 + ["ECONNRESET"] * 3, ["ping"] * 5 + ["ECONNRESET"] * 2], "five, then none, then five again")
    w.same(len(w.accepted()), 10, "the world saw ten")
