"""Programs that know nothing of writ reach what is allowed by name, and nothing else."""

import net
from net import test
from bounds import within

RAW = "tcp://raw.example.test:7000"


@test("a name and a port that are allowed are reached with plain sockets")
def plain_sockets(w):
    w.zone("raw.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside([RAW], """
s = socket.create_connection(("raw.example.test", 7000), 5)
one = []
for c in b"abc":
    start = time.monotonic()
    s.sendall(bytes([c]))
    one.append([s.recv(16).decode(), time.monotonic() - start < 1])
peer = s.getpeername()
show({"one": one, "peer": peer, "error": s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
      "seen": socket.gethostbyname("raw.example.test"), "back": attempt(lambda: socket.gethostbyaddr(peer[0])[0])})
""")
    w.same(got["one"], [["a", True], ["b", True], ["c", True]], "single bytes come back at once")
    w.same(got["peer"], [got["seen"], 7000], "the peer has the address that the name was answered with, and the port")
    w.ok(got["peer"][0].startswith("198.18."), "which is one that stands for a name", got)
    w.same(got["error"], 0, "no error waits on the socket")
    w.same(got["back"], "raw.example.test", "the address leads back to the name")
    w.same([(c["to"], c["port"], c["first"]) for c in w.accepted()], [(net.FIRST, 7000, "616263")],
           "the world saw one connection to the real address")
    e = w.net_events("connect")
    w.same([(x["answer"], x["host"], x["port"], x["address"]) for x in e], [("allow", "raw.example.test", 7000, net.FIRST)],
           "it is on record, with the address that was dialled")
    w.same([(x["up"], x["down"]) for x in w.net_events("closed")], [(3, 3)], "and so is every byte")


@test("a server that speaks first is heard by a client that says nothing")
def server_first(w):
    w.zone("git.example.test", net.FIRST)
    w.serve("banner", 22)
    got = w.inside(["tcp://git.example.test:22"], """
start = time.monotonic()
s = socket.create_connection(("git.example.test", 22), 5)
s.settimeout(5)
text = s.recv(100).decode()
show([text, time.monotonic() - start])
""")
    w.same(got[0], "SSH-2.0-world\r\n", "its greeting arrives")
    w.ok(within(got[1], 1), "at once", got)


@test("what is not allowed is refused at once, and nothing is sent")
def refused(w):
    w.zone("raw.example.test", net.FIRST)
    w.zone("other.example.test", net.FIRST)
    for port in (7000, 7001, 443):
        w.serve("echo", port)
    got = w.inside([RAW], """
def quick(*where):
    s = socket.socket()
    s.setblocking(False)
    start = time.monotonic()
    s.connect_ex(where)
    select.select([], [s], [], 5)
    return [errno.errorcode.get(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "connected"), time.monotonic() - start < 0.5]
fake = socket.gethostbyname("raw.example.test")
show({"port": quick(fake, 7001), "tls": quick(fake, 443), "unused": quick("198.18.77.77", 7000), "name": talk("other.example.test", 7000),
      "address": talk("1.2.3.10", 7000)})
""")
    w.same(got["port"], ["ECONNREFUSED", True], "another port of an allowed name")
    w.same(got["tls"], ["ECONNREFUSED", True], "another port, even a usual one")
    w.same(got["unused"], ["ECONNREFUSED", True], "an address that stands for nothing")
    w.same(got["name"], "no name", "another name")
    w.same(got["address"], "ENETUNREACH", "the address of an allowed name")
    w.nothing_left("no packet has left the host")
    w.same(w.inside([RAW], "show(talk('raw.example.test', 7000))"), "ping", "while what is allowed works")


@test("IPv6 sockets reach names as well")
def six(w):
    w.zone("raw.example.test", net.FIRST)
    w.zone("six.example.test", "2600:bbbb::7")
    w.serve("echo", 7000)
    got = w.inside([RAW, "tcp://six.example.test:7000"], """
s = socket.socket(socket.AF_INET6)
s.settimeout(5)
fake = socket.gethostbyname("raw.example.test")
mapped = attempt(lambda: (s.connect(("::ffff:" + fake, 7000)), s.sendall(b"six"), s.recv(9).decode())[-1])
show([mapped, talk("six.example.test", 7000), ask("raw.example.test", 28), attempt(talk, "2600:bbbb::7", 7000)])
""")
    w.same(got[0], "six", "by a socket that does both")
    w.same(got[1], "ping", "a name that only has IPv6 addresses")
    w.same([c["to"] for c in w.accepted()], [net.FIRST, "2600:bbbb::7"], "both were dialled where they are")
    w.same(got[2], [0, []], "there is no IPv6 address that stands for a name, and that is no error")
    w.same(got[3], "ENETUNREACH", "no IPv6 address is reached by itself")


@test("two sessions: the addresses of one mean nothing in the other")
def two_sessions(w):
    w.zone("raw.example.test", net.FIRST)
    w.serve("echo", 7000)
    first = w.started_inside([RAW], """
print(socket.gethostbyname("raw.example.test"), flush=True)
sys.stdin.readline()
print(talk("raw.example.test", 7000), flush=True)
""")
    fake = first.stdout.readline().decode().strip()
    got = w.inside(["tcp://else.example.test:7001"], f"show([talk('{fake}', 7000), talk('{fake}', 7001)])")
    w.same(got[0], "ECONNREFUSED", "the other's address at the other's port is refused")
    w.same(w.accepted(), [], "and nothing came of it")
    first.stdin.write(b"\n")
    first.stdin.close()
    w.same(first.stdout.readline(), b"ping\n", "while the first reaches its own")


@test("no network rule means no network at all")
def nothing(w):
    w.zone("raw.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside([], "show([talk('raw.example.test', 7000), talk('1.2.3.10', 7000), talk('127.0.0.1', 7000)])")
    w.same(got[0], "no name", "no name")
    w.same(got[1], "ENETUNREACH", "no address")
    w.same(got[2], "ECONNREFUSED", "an empty loopback")
    w.nothing_left("no packet has left the host")


@test("rules that deny win over rules that allow")
def deny_wins(w):
    for name in ("a.pkg.test", "b.pkg.test"):
        w.zone(name, net.FIRST)
    w.serve("echo", 7000)
    w.serve("echo", 7001)
    got = w.inside(["tcp://*.pkg.test:7000-7001", "deny net b.pkg.test"], """
show([talk("a.pkg.test", 7000), talk("b.pkg.test", 7000), talk("b.pkg.test", 7001), through("socks5", "b.pkg.test", 7000)[0],
      through("connect", "b.pkg.test", 7000)[0]])
""")
    w.same(got, ["ping", "no name", "no name", "2", "403"], "by name and through the proxy")
    w.same(w.queries("b.pkg"), [], "the denied name was never asked for outside")
    denied = w.net_events(answer="deny", host="b.pkg.test")
    w.ok(len(denied) >= 4 and all(e.get("rule") == "deny net b.pkg.test" for e in denied), "each is on record with its rule", denied)


@test("a session that ends takes its connections with it")
def ends(w):
    w.zone("raw.example.test", net.FIRST)
    w.serve("hold", 7000)
    p = w.started_inside([RAW], """
s = socket.create_connection(("raw.example.test", 7000), 5)
s.sendall(b"x")
print("there", flush=True)
sys.stdin.readline()
""")
    w.same(p.stdout.readline(), b"there\n", "a connection is there")
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 1), "the world holds it")
    p.stdin.close()
    p.wait(10)
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 0, 5), "and then no longer")
    w.clean(seconds=2)


@test("environment variables for proxies change nothing about what is allowed")
def variables(w):
    w.zone("raw.example.test", net.FIRST)
    w.serve("http", 7000)
    w.env.update({"HTTPS_PROXY": "http://9.9.9.9:3128", "http_proxy": "http://9.9.9.9:3128", "ALL_PROXY": "socks5://9.9.9.9:1080"})
    got = w.inside([RAW], """
for k in ("HTTPS_PROXY", "http_proxy", "ALL_PROXY"): os.environ[k] = "http://9.9.9.9:3128"
import urllib.request
def get(url):
    try: return urllib.request.urlopen(url, timeout=5).status
    except Exception as e: return word(getattr(e, "reason", e))
one = get("http://raw.example.test:7000/")
os.environ["no_proxy"] = "*"
show([one, get("http://raw.example.test:7000/"), get("http://other.example.test:7000/")])
""")
    w.same(got, ["ENETUNREACH", 200, "no name"], "one that points away leads nowhere, one that is off goes the usual way")
    w.same([p for p in w.packets() if p[1] == "9.9.9.9"], [], "the proxy that was named got nothing")
