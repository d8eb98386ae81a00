"""Many at once: tunnels that idle, floods, and too few descriptors."""
import json
import os
import resource
import time

import net
from net import test

RULES = ["tcp://api.example.test:7000-7002"]
MANY = 10000 if net.LONG else 2000
RAISE = '''
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
'''


def memory(pid):
    return next((int(l.split()[1]) for l in net.read(f"/proc/{pid}/status").splitlines() if l.startswith("RssAnon")), 0)


def cpu(pid):
    fields = net.read(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0


@test("thousands of idle tunnels: little memory, others undisturbed, all given back", alone=True, bulk=True, seconds=300)
def idle(w):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    n = min(MANY, (hard - 500) // 2)
    w.zone("api.example.test", net.FIRST)
    w.serve("hold", 7000)
    w.serve("echo", 7001)
    p = w.started_inside(RULES, RAISE + f"""
print(talk("api.example.test", 7001), flush=True)
sys.stdin.readline()
held = []
for i in range({n}):
    held.append(socket.create_connection(("api.example.test", 7000), 20))
    held[-1].sendall(b"x")
start = time.monotonic()
echo = [talk("api.example.test", 7001) for _ in range(20)]
print(json.dumps([len(held), echo.count("ping"), time.monotonic() - start]), flush=True)
sys.stdin.readline()
for s in held: s.close()
print("closed", flush=True)
sys.stdin.readline()
print(talk("api.example.test", 7001), flush=True)
""")
    w.same(p.stdout.readline(), b"ping\n", "one goes through")
    relay = net.helpers_of(p.pid)[0]
    before, fds = memory(relay), count_fds(relay)
    p.stdin.write(b"\n"), p.stdin.flush()
    got = json.loads(p.stdout.readline() or b"[0,0,99]")
    w.same(got[0], n, f"{n} are open")
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == n, 20), "all of them reach the world", w.world()["holding"])
    grown = memory(relay) - before
    if w.sanitized:
        w.ok(True, "for less than a KiB each # SKIP a sanitizer has memory of its own")
    else:
        w.ok(grown <= max(4096, n * 1.0), f"for less than a KiB each ({grown} KiB)", grown)
    w.same(got[1], 20, "others go through meanwhile")
    w.ok(got[2] < 5, "quickly", got)
    busy = cpu(relay)
    time.sleep(1)
    w.ok(cpu(relay) - busy < 0.2, "and nobody is busy with them", cpu(relay) - busy)
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), b"closed\n", "all are closed")
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 0, 20), "the world sees it")
    if fds is not None:
        w.ok(net.host.wait_for(lambda: count_fds(relay) <= fds + 130, 5), "the descriptors are given back", [fds, count_fds(relay)])
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), b"ping\n", "and the next goes through")


def count_fds(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None  # nobody may look into it, not even its own user


FLOOD = RAISE + """
fakes = [socket.gethostbyname(n) for n in ("api.example.test", "silent.example.test")]
print("go", flush=True)
end, held, n = time.monotonic() + 6, [], 0
# More than 28,000 to one address use up the session's own ports, and its kernel lets the next wait.
while time.monotonic() < end and n < 40000:
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((fakes[n % 2], 7000))
    held.append(s)
    n += 1
    if len(held) > 3000: held.pop(0).close()
for s in held: s.close()
time.sleep(0.5)
print(json.dumps([n, talk("api.example.test", 7000, seconds=100)]), flush=True)
"""

BESIDE = """
out, end = [], time.monotonic() + 4
while time.monotonic() < end:
    start = time.monotonic()
    out.append([talk("api.example.test", 7000), time.monotonic() - start])
    time.sleep(0.02)
times = sorted(t for _, t in out)
show([len(out), sum(1 for r, _ in out if r == "ping"), times[len(times) // 2], times[-1]])
"""


@test("a flood of connections: nothing breaks, and another session does not feel it", alone=True, bulk=True, seconds=400)
def flood(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("silent.example.test", silent=["A", "AAAA"])
    w.serve("echo", 7000)
    quick = False
    # Others on this machine may be in the way once; a flood would be each time.
    for _ in range(3):
        first = w.started_inside(RULES + ["tcp://silent.example.test:7000"], FLOOD)
        first.stdout.readline()
        got = w.inside(RULES, BESIDE)
        own = json.loads(first.stdout.readline() or b"null")
        w.same(got[0], got[1], "each of the other's connections succeeds")
        w.ok(own and own[0] > 1000, "there was a flood", own)
        # On a busy machine it takes its time: each connection of the flood is dialled and recorded first.
        w.same(own and own[1], "ping", "and the session's own work goes on afterwards")
        quick = got[2] < 0.3 and got[3] < 3
        if quick:
            break
    w.ok(quick, "within moments", got)


def watched(pid):
    """How many descriptors epoll watches for a process; None if nobody may look."""
    try:
        return sum(net.read(f"/proc/{pid}/fdinfo/{fd}").count("tfd:") for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


@test("connections whose requests are read are no longer the relay's, while others come and go")
def taken(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("http", 80)
    w.serve("echo", 7000)
    p = w.started_inside(["http://api.example.test", "tcp://api.example.test:7000"], """
GET = b"GET / HTTP/1.1\\r\\nHost: api.example.test\\r\\n\\r\\n"
def ask(s):
    s.sendall(GET)
    return s.recv(4096).startswith(b"HTTP/1.1 200")
print(talk("api.example.test", 7000), flush=True)
sys.stdin.readline()
kept = [socket.create_connection(("api.example.test", 80), 10) for _ in range(40)]
print(json.dumps(all([ask(s) for s in kept])), flush=True)
sys.stdin.readline()
out = []
for i in range(200):
    out.append(ask(kept[i % 40]) and talk("api.example.test", 7000) == "ping")
print(json.dumps(out.count(True)), flush=True)
""")
    w.same(p.stdout.readline(), b"ping\n", "one goes through")
    relay = net.helpers_of(p.pid)[0]
    before = watched(relay)
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), b"true\n", "forty are read")
    if before is not None:
        w.ok(watched(relay) <= before + 5, "the relay watches none of them", [before, watched(relay)])
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), b"200\n", "both kinds go on")
    w.same(p.wait(20), 0, "to the end")


@test("what was connected is on record, however fast and however late")
def recorded(w):
    w.zone("api.example.test", net.FIRST, ttl=60)
    w.serve("echo", 7000)
    got = w.inside(RULES, """
out = []
threads = [threading.Thread(target=lambda: out.append(talk("api.example.test", 7000))) for _ in range(30)]
[t.start() for t in threads], [t.join() for t in threads]
start, n = time.monotonic(), out.count("ping")
while n < 400 and time.monotonic() - start < 20:
    n += talk("api.example.test", 7000) == "ping"
show(n)
""")
    w.ok(got > 100, "there were many", got)
    w.same(len(w.net_events("connect")), got, "each is on record")
    w.same({e["address"] for e in w.net_events("connect")}, {net.FIRST}, "with its address")
    w.ok(len(w.queries("api.example.test")) <= 2, "the name was asked for once", w.queries())


@test("too few descriptors: connections wait or are refused, nobody spins, and it passes", alone=True, seconds=90)
def few(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("hold", 7000)
    w.serve("echo", 7001)
    for limit in (400, 401):  # a tunnel takes two: once none is left, once one
        few_of(w, limit)


def few_of(w, limit):
    parent = os.getpid()

    def less():
        net.space.die_with_parent(parent)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    p = w.started_inside(RULES, """
held, end = [], time.monotonic() + 5
# Two processes, because a command may open half as many files as writ itself.
rest, go = os.pipe()
child = os.fork()
for i in range(165):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("198.18.0.16", 7000))
    held.append(s)
    time.sleep(0.01)   # one after the other, or all of them have half of what they need
if child == 0:
    os.close(go)
    os.read(rest, 1)
    os._exit(0)
time.sleep(1.5)
print("full", flush=True)
sys.stdin.readline()
os.close(go)
os.waitpid(child, 0)
for s in held: s.close()
time.sleep(1)
print(json.dumps([talk("api.example.test", 7001, seconds=20) for _ in range(5)]), flush=True)
""", preexec_fn=less)
    if not w.same(p.stdout.readline(), b"full\n", "many more than there is room for"):
        p.kill()
        return w.ok(False, "why", p.stderr.read())
    relay = net.helpers_of(p.pid)[0]
    w.ok(0 < w.world()["holding"] < 330, "some are through", w.world()["holding"])
    busy = cpu(relay)
    time.sleep(2)
    spent = cpu(relay) - busy
    w.ok(spent < 0.1, f"waiting for room costs nothing ({spent:.2f} s in 2 s)", spent)
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(json.loads(p.stdout.readline() or b"null"), ["ping"] * 5, "and afterwards all is well")
    p.wait(10)
    net.host.wait_for(lambda: w.world()["holding"] == 0)


def watched_elsewhere(pid):
    """What epoll of @pid watches although it has closed it; None: its own user cannot see."""
    found = []
    try:
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            for line in net.read(f"/proc/{pid}/fdinfo/{fd}").splitlines():
                if line.startswith("tfd:"):
                    number = line.split()[1]
                    inode = int(line.split("ino:")[1].split()[0], 16)
                    try:
                        same = os.stat(f"/proc/{pid}/fd/{number}").st_ino == inode
                    except FileNotFoundError:
                        same = False
                    found += [] if same else [number]
    except PermissionError:
        return None
    return found


@test("what the reader was given is not watched any more by who gave it")
def given(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("http", 80)
    p = w.started_inside(["http://api.example.test/**"], """
held = [socket.create_connection(("api.example.test", 80), 5) for _ in range(20)]
def ask(s):
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: api.example.test\\r\\n\\r\\n")
    return s.recv(4096)[:15].decode("latin1")
for _ in range(2):
    print(json.dumps([attempt(ask, s) for s in held]), flush=True)
    sys.stdin.readline()
""")
    good = json.dumps(["HTTP/1.1 200 OK"] * 20).encode() + b"\n"
    w.same(p.stdout.readline(), good, "twenty requests are answered")
    w.ok(not watched_elsewhere(net.helpers_of(p.pid)[0]), "nobody else is told about them", watched_elsewhere(net.helpers_of(p.pid)[0]))
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.stdout.readline(), good, "and twenty more")
    p.stdin.write(b"\n"), p.stdin.flush()
    w.same(p.wait(20), 0, "it ends well")


@test("who hangs up while it is being dialled for does no harm")
def hanging_up(w):
    """Both happen in one round: with a sanitizer a use of what was freed shows."""
    w.zone("api.example.test", net.FIRST, net.SECOND)
    w.serve("echo", 7000)
    got = w.inside(RULES, """
def go(n):
    for i in range(60):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        attempt(s.connect, ("api.example.test", 7000 + n % 2))
        time.sleep(i % 10 * 0.0005)
        s.close()
all = [threading.Thread(target=go, args=(n,)) for n in range(24)]
[t.start() for t in all], [t.join() for t in all]
show(talk("api.example.test", 7000))
""")
    w.same(got, "ping", "others go through after it")
