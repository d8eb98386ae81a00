"""Which addresses are dialled: what a name leads to is checked, and exactly what was checked is dialled."""
import net
from net import test
from bounds import within

NAME = "tcp://api.example.test:7000"
SPECIAL = ["0.0.0.0", "0.1.2.3", "10.9.9.9", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "169.254.1.1", "172.16.0.1",
           "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.16", "198.19.255.255", "198.51.100.1",
           "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16", "::", "::1",
           "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "ff02::1", "100::1", "2001:db8::1", "3fff::1", "5f00::1",
           "::ffff:10.9.9.9", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::10.9.9.9", "64:ff9b::a09:909", "64:ff9b::a9fe:a9fe",
           "64:ff9b:1::a09:909", "2002:a09:909::1", "2002:7f00:1::1", "2001:0:a09:909::1", "2600:aaaa::5efe:a09:909"]


@test("a name that leads to a special address is not dialled", seconds=180)
def special(w):
    """Each of them reaches the world when the host itself connects, so a dial would be seen."""
    for i, a in enumerate(SPECIAL):
        w.zone(f"n{i}.special.test", a, ttl=60)
    w.zone("good.special.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["tcp://*.special.test:7000"], f"""
def one(i): return talk("n%d.special.test" % i, 7000)
show([[one(i) for i in range({len(SPECIAL)})], talk("good.special.test", 7000)])
""", timeout=150)
    w.same([[a, g] for a, g in zip(SPECIAL, got[0]) if g != "ECONNRESET"], [], "every kind of them")
    w.same(got[1], "ping", "while a public one is")
    w.same([c["to"] for c in w.accepted()], [net.FIRST], "the world saw only that one")
    bad = [p for p in w.packets() if p[0] == "tcp" and p[1] != net.FIRST]
    w.same(bad, [], "and no packet to any other")
    denied = w.net_events("connect", answer="deny")
    w.same(len(denied), len(SPECIAL), "each is on record as denied")
    w.ok(all(e.get("not_dialled") and "address" not in e for e in denied), "with the address that was not dialled", denied[:3])
    control = net.socket.create_connection((net.PRIVATE, 7000), 3)
    control.close()
    w.ok(net.host.wait_for(lambda: any(c["to"] == net.PRIVATE for c in w.accepted())), "the host itself could have reached them")


@test("of several addresses only the public ones are dialled")
def mixed(w):
    w.zone("api.example.test", net.PRIVATE, net.FIRST, "169.254.169.254")
    w.serve("echo", 7000)
    got = w.inside([NAME], "show([talk('api.example.test', 7000) for _ in range(5)])")
    w.same(got, ["ping"] * 5, "it is reached")
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "always at the public one")
    e = w.net_events("connect")[0]
    w.same(e["address"], net.FIRST, "which is on record as dialled")
    w.same(sorted(e["not_dialled"].split()), ["10.9.9.9", "169.254.169.254"], "the others as not dialled")


@test("an alias may lead anywhere, but not to a private address")
def alias(w):
    w.zone("api.example.test", CNAME="cdn.elsewhere.test")
    w.zone("cdn.elsewhere.test", CNAME="edge.elsewhere.test")
    w.zone("edge.elsewhere.test", net.SECOND)
    w.zone("bad.example.test", CNAME="internal.corp.test")
    w.zone("internal.corp.test", net.PRIVATE)
    w.serve("echo", 7000)
    got = w.inside([NAME, "tcp://bad.example.test:7000"], "show([talk('api.example.test', 7000), talk('bad.example.test', 7000)])")
    w.same(got, ["ping", "ECONNRESET"], "a chain to a public one works, one to a private one does not")
    w.same([c["to"] for c in w.accepted()], [net.SECOND], "the world saw only the first")
    loop = w.zone("loop.example.test", CNAME="loop.example.test")
    got = w.inside(["tcp://loop.example.test:7000"], "show(talk('loop.example.test', 7000, seconds=20))")
    w.same([loop, got], [None, "ECONNRESET"], "a chain without an end ends")


@test("a name that changes its mind: what was checked is what is dialled", seconds=180)
def rebinding(w):
    turns = [[net.FIRST], ["127.0.0.1"], [net.SECOND], [net.PRIVATE], [net.HOST], ["169.254.169.254"]]
    w.zone("api.example.test", ttl=0, turns=turns)
    port, hits = net.host_listener()
    w.serve("echo", port)
    got = w.inside([f"tcp://api.example.test:{port}"], f"""
got = []
for i in range(6):
    got.append(talk("api.example.test", {port}))
    time.sleep(2.1)
show(got)
""", timeout=100)
    w.same(got, ["ping", "ECONNRESET", "ping", "ECONNRESET", "ECONNRESET", "ECONNRESET"], "public answers are dialled, others are not")
    w.same(hits, [], "nobody on the host heard anything")
    w.same([c["to"] for c in w.accepted()], [net.FIRST, net.SECOND], "in the world only the public ones")
    asked = [q for q in w.queries("api") if q[1] == "A"]
    w.same(len(asked), 6, "each was asked for once per connection")
    e = w.net_events("connect")
    w.same([x.get("address") for x in e], [net.FIRST, None, net.SECOND, None, None, None], "the record says what was dialled")
    w.same([x.get("not_dialled") for x in e], [None, "127.0.0.1", None, net.PRIVATE, net.HOST, "169.254.169.254"], "and what was not")


@test("every address of this machine is its own, also those it does not send from")
def own_second(w):
    own, own6 = "5.6.7.8", "2600:aaaa::fd"
    net.space.add_address("lo", own, 32)
    net.space.add_address("h0", own6, 64)
    port, hits = net.host_listener(own)
    port6, hits6 = net.host_listener(own6)
    w.serve("echo", port)
    w.zone("first.example.test", net.FIRST)
    w.zone("own.example.test", own)
    w.zone("six.example.test", "2600:bbbb::7")
    w.zone("own6.example.test", own6)
    rules = [f"tcp://*.example.test:{p}" for p in (port, port6)]
    got = w.inside(rules, f"""
first, own = talk("first.example.test", {port}), talk("own.example.test", {port})
talk("six.example.test", {port6})
show([first, own, talk("own6.example.test", {port6}), talk("first.example.test", {port})])
""")
    w.same(got, ["ping", "ECONNRESET", "ECONNRESET", "ping"], "they are not dialled, whoever was dialled before")
    w.same([hits, hits6], [[], []], "nobody on the host heard anything")
    with net.socket.create_connection((own, port), 3) as s:
        s.sendall(b"x")
        w.same(s.recv(9), b"host", "who may reach the host there does")


@test("many connections at once to a name that changes its mind", seconds=180)
def rebinding_race(w):
    w.zone("api.example.test", ttl=0, turns=[[net.FIRST], ["127.0.0.1"]] * 200)
    port, hits = net.host_listener()
    w.serve("echo", port)
    got = w.inside([f"tcp://api.example.test:{port}"], f"""
got, lock = {{}}, threading.Lock()
def go():
    for _ in range(20):
        r = talk("api.example.test", {port})
        with lock: got[r] = got.get(r, 0) + 1
        time.sleep(0.1)
threads = [threading.Thread(target=go) for _ in range(16)]
[t.start() for t in threads], [t.join() for t in threads]
show(got)
""", timeout=150)
    w.ok(got.get("ping", 0) > 0 and set(got) <= {"ping", "ECONNRESET"}, "some are reached, some refused", got)
    w.same(hits, [], "nobody on the host's loopback heard anything")
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "all that were dialled are the public one")


@test("private= opens what it names and nothing else")
def private(w):
    w.zone("wiki.example.test", net.PRIVATE)
    w.zone("far.example.test", "10.8.8.8")
    w.zone("meta.example.test", "169.254.169.254")
    w.zone("loop.example.test", "127.0.0.1")
    w.zone("shared.example.test", "100.64.0.1")
    w.zone("six.example.test", "fd00:77::5")
    port, hits = net.host_listener()
    w.serve("echo", port)
    got = w.inside([f"tcp://wiki.example.test:{port} private=10.9.9.0/24", f"tcp://far.example.test:{port} private=10.9.9.0/24",
                    f"tcp://shared.example.test:{port} private=100.64.0.0/10", f"tcp://six.example.test:{port} private=[fd00:77::]/32"], f"""
show([talk(n + ".example.test", {port}) for n in ("wiki", "far", "shared", "six")] + [through("socks5", "wiki.example.test", {port})[1]])
""")
    w.same(got, ["ping", "ECONNRESET", "ping", "ping", "ping"], "inside the network that was named, not beside it")
    w.same([c["to"] for c in w.accepted()], [net.PRIVATE, "100.64.0.1", "fd00:77::5", net.PRIVATE], "dialled as checked")
    w.same(hits, [], "nothing went to the host")


@test("private= never opens the loopback or where clouds keep credentials")
def private_never(w):
    w.zone("meta.example.test", "169.254.169.254")
    w.zone("loop.example.test", "127.0.0.1")
    port, hits = net.host_listener()
    w.serve("echo", port)
    for name, what in (("meta", "169.254.169.254"), ("meta", "169.254.0.0/16"), ("loop", "127.0.0.0/8"), ("loop", "127.0.0.1")):
        r = w.run("python3", "-c", f"import socket\ntry:\n s=socket.create_connection(('{name}.example.test',{port}),5); s.sendall(b'x'); print('got', s.recv(9))\nexcept OSError as e: print('no', e)",
                  opts=w.rules(f"tcp://{name}.example.test:{port} private={what}"))
        w.ok("got b" not in r.text or "got b''" in r.text, f"{what}: refused when it is loaded, or when it is dialled", r)
    w.same(hits, [], "nothing came to the host")
    w.same(w.accepted(), [], "and nothing to the world")


@test("private= never opens an address of this machine")
def private_own(w):
    own, own6 = "10.9.0.1", "fd00:77::fd"
    net.space.add_address("lo", own, 32)
    net.space.add_address("lo", own6, 128)
    port, hits = net.host_listener("0.0.0.0")
    port6, hits6 = net.host_listener("::")
    w.zone("other.example.test", net.PRIVATE)
    w.zone("own.example.test", own)
    w.zone("own6.example.test", own6)
    w.zone("public.example.test", net.HOST)
    w.serve("echo", port)
    rules = [f"tcp://*.example.test:{port} private=10.0.0.0/8", f"tcp://own6.example.test:{port6} private=[fd00:77::]/32",
             f"tcp://public.example.test:{port} private={net.HOST}"]
    for tier in "AB":
        r = w.run("true", opts=["--tier", tier, *w.rules(*rules)])
        if tier == "B" and r.code == 122:
            continue  # such sessions are refused here
        got = w.python(net.INSIDE + f"""
show([talk("other.example.test", {port}), talk("own.example.test", {port}), talk("own6.example.test", {port6}),
      talk("public.example.test", {port})])
""", opts=["--tier", tier, *w.rules(*rules)], timeout=60)
        w.same(got, ["ping"] + ["ECONNRESET"] * 3, f"tier {tier}: another machine of the network is reached, this one is not")
    w.same(hits + hits6, [], "nobody on the host heard anything")
    for a, p in ((own, port), (own6, port6), (net.HOST, port)):
        with net.socket.create_connection((a, p), 3) as s:
            s.sendall(b"x")
            w.same(s.recv(9), b"host", f"who may reach the host at {a} does")


@test("the host's own addresses are not public")
def own(w):
    w.zone("api.example.test", net.HOST)
    w.zone("six.example.test", net.HOST6)
    port, hits = net.host_listener("0.0.0.0")
    port6, hits6 = net.host_listener("::")
    got = w.inside([f"tcp://api.example.test:{port}", f"tcp://six.example.test:{port6}"], f"""
show([talk("api.example.test", {port}), talk("six.example.test", {port6})])
""")
    w.same(got, ["ECONNRESET"] * 2, "a name that leads to one is not dialled")
    w.same(hits + hits6, [], "and nothing came")
    s = net.socket.create_connection((net.HOST, port), 2)
    s.sendall(b"x")
    w.same(s.recv(9), b"host", "while somebody does listen there")


@test("localhost:PORT is that port of the host's loopback and no other")
def localhost(w):
    port, hits = net.host_listener(answer=b"host")
    other, others = net.host_listener(answer=b"other")
    got = w.inside([f"localhost:{port}"], f"""
names = ["localhost", "127.0.0.1", "host.writ"]
show([[talk(n, {port}) for n in names], [talk(n, {other}) for n in names], through("connect", "localhost", {port})[1], through("socks5", "host.writ", {port})[1],
      [through("socks5", n, {other})[0] for n in names], [talk(a, {port}) for a in ("127.0.0.2", "::1", "0.0.0.0")]])
""")
    w.same(got[0], ["host"] * 3, "by each of its names")
    w.same(set(got[1]), {"ECONNREFUSED"}, "another port is refused")
    w.same(got[2:4], ["host", "host"], "through the proxy as well")
    w.same(got[4], ["2"] * 3, "which refuses the other too")
    w.same(others, [], "nobody came to the other port")
    w.same(len([h for h in hits if h == b"ping"]), len(hits), "and what came is what was sent")
    w.ok("host" not in got[5][:1], "another loopback address is not the host", got)
    w.nothing_left("nothing has left the host")


@test("a literal address is reached only if a rule names it")
def literals(w):
    w.serve("echo", 7000)
    w.serve("echo", 7001)
    tried = ["1.2.3.10", "9.8.7.6", "10.9.9.9", "169.254.169.254", "8.8.8.8", "224.0.0.251", "255.255.255.255", "0.0.0.0"]
    got = w.inside(["9.8.7.6:7000", "[2600:bbbb::7]:7000", "5.6.7.0/29:7001"], f"""
tried = {tried!r}
show({{"good": [talk("9.8.7.6", 7000), talk("2600:bbbb::7", 7000), talk("5.6.7.3", 7001), through("socks5", (1, socket.inet_aton("9.8.7.6")), 7000)[1],
                through("connect", "9.8.7.6", 7000)[1], through("connect", "[2600:bbbb::7]", 7000)[1], through("socks4", (1, socket.inet_aton("9.8.7.6")), 7000)[1],
                through("socks5", (4, socket.inet_pton(socket.AF_INET6, "2600:bbbb::7")), 7000)[1]],
      "bad": [talk(a, 7000) for a in tried if a != "9.8.7.6"], "port": talk("9.8.7.6", 7001), "beside": [talk("5.6.7.8", 7001), talk("5.6.6.255", 7001)],
      "connect": [through("connect", a, 7000)[0] for a in tried if a != "9.8.7.6"],
      "socks5": [through("socks5", (1, socket.inet_aton(a)), 7000)[0] for a in tried if a != "9.8.7.6"]}})
""")
    w.same(got["good"], ["ping"] * 8, "by socket and by proxy")
    w.same([a for a in got["bad"] if a not in ("ENETUNREACH", "ECONNREFUSED", "EACCES", "EHOSTUNREACH")], [], "others are unreachable")
    w.same(got["port"], "ECONNREFUSED", "and so is another port")
    w.same(set(got["beside"]), {"ENETUNREACH"}, "and what is beside the network")
    w.same(set(got["connect"]), {"403"}, "the proxy refuses them")
    w.same(set(got["socks5"]), {"2"}, "in both its languages")
    w.same(w.queries(), [], "no name was asked for")
    w.ok({c["to"] for c in w.accepted()} == {"9.8.7.6", "2600:bbbb::7", "5.6.7.3"}, "the world saw only those", w.accepted())


@test("no spelling of an address is taken for a name or for another address")
def spellings(w):
    w.serve("echo", 80)
    port, hits = net.host_listener()
    forms = ["2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "0", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376",
             "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "1.2.3.10.",
             "[::ffff:1.2.3.4%x.pkg.test]", "::1", "1.2.3.4.5", "1.2.3", "256.1.1.1", "01.2.3.10", "1.2.3.10 ", "[1.2.3.10]", "localhost.", "LOCALHOST"]
    got = w.inside(["*", "tcp://*.pkg.test:80"], f"""
forms = {forms!r}
ports = [80, {port}]
show({{"connect": [[f, through("connect", f, p)[0]] for f in forms for p in ports], "socks5": [[f, through("socks5", f, p)[0]] for f in forms for p in ports],
      "http": [[f, attempt(lambda: talk("198.18.0.1", 1080, ("GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (f, f)).encode())[9:12])] for f in forms]}})
""")
    w.same([g for g in got["connect"] if g[1] not in ("400", "403")], [], "in CONNECT")
    w.same([g for g in got["socks5"] if g[1] not in ("1", "2", "8", "closed", "ECONNRESET")], [], "in SOCKS")
    w.same([g for g in got["http"] if g[1] not in ("400", "403")], [], "in a request")
    w.same(hits, [], "nothing came to the host")
    w.nothing_left("and nothing left it")


@test("`net *` is names on the usual ports, and never an address")
def star(w):
    w.zone("any.thing.test", net.FIRST)
    w.zone("meta.thing.test", "169.254.169.254")
    w.zone("metadata.google.internal", "169.254.169.254")
    w.serve_tls(443)
    w.serve("echo", 7000)
    got = w.inside(["*"], """
show([tls("any.thing.test"), talk("any.thing.test", 7000), talk("1.2.3.10", 443), tls("meta.thing.test"), tls("metadata.google.internal"),
      through("connect", "169.254.169.254", 443)[0], through("connect", "1.2.3.10", 443)[0]])
""")
    w.same(got[0], "TLSv1.3", "any public name is reached")
    w.same(got[1:3], ["ECONNREFUSED", "ENETUNREACH"], "at no other port, and not by address")
    w.ok(got[3] in ("ECONNRESET", "closed") and got[4] in ("ECONNRESET", "closed", "no name"), "one with credentials behind it is not", got)
    w.same(got[5:], ["403", "403"], "nor through the proxy")
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "the world saw only the name")


@test("when one address does not answer the next is tried soon")
def eyeballs(w):
    w.zone("api.example.test", "2600:dead::1", net.FIRST)
    w.zone("dead.example.test", "2600:dead::1", "7.7.7.7")
    w.zone("refused.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside([NAME, "tcp://refused.example.test:7009"], """
start = time.monotonic()
one = talk("api.example.test", 7000)
took = time.monotonic() - start
show([one, took, talk("refused.example.test", 7009)])
""")
    w.same(got[0], "ping", "the one that answers is used")
    w.ok(within(got[1], 1.0), "after a fraction of a second", got)
    w.same(got[2], "ECONNRESET", "a port that nobody listens on out there is a reset, not a wait")


@test("three hundred addresses are too many, and do no harm")
def too_many(w):
    w.zone("api.example.test", *[f"1.2.{6 + i // 250}.{i % 250 + 1}" for i in range(300)])
    w.serve("echo", 7000)
    got = w.inside([NAME], "show([talk('api.example.test', 7000) for _ in range(3)])")
    w.same(got, ["ping"] * 3, "one of them is reached")
    w.ok(any(q[2] == "tcp" for q in w.queries("api")), "the long answer was fetched", w.queries())
