"""Names are answered from the policy: a question never leaves, whatever it looks like."""
import json

import net
from net import test
from bounds import within

WILD = "tcp://*.pkg.test:7000"
KINDS = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "NAPTR": 35,
         "SVCB": 64, "HTTPS": 65, "IXFR": 251, "AXFR": 252, "ANY": 255, "URI": 256, "unknown": 65280}


@test("a denied name does not exist, for every type, and nobody outside hears of it")
def denied(w):
    w.zone("6b6579.evil.test", net.FIRST)
    got = w.inside([WILD], f"""
kinds = {KINDS!r}
show({{k: [ask("6b6579.evil.test", n), ask("6b6579.evil.test", n, tcp=True)] for k, n in kinds.items()}})
""")
    w.same({k: v for k, v in got.items() if any(not x or x[0] not in (3, 4, 5) or x[1] for x in v)}, {}, "no answer has anything in it")
    w.same(got["A"], [[3, []]] * 2, "an address is answered with: no such name")
    w.nothing_left("and not one packet has left the host")
    e = w.net_events("lookup", answer="deny")
    w.ok(e and all(x["host"] == "6b6579.evil.test" for x in e), "it is on record", e[:3])


@test("names under an allowed pattern are answered here too; only a connection asks outside")
def labels(w):
    w.serve("echo", 7000)
    w.zone("real.pkg.test", net.FIRST)
    got = w.inside([WILD], """
got = [ask("%032x.pkg.test" % i) for i in range(50)]
show([len({g[1][0] for g in got}), [g[0] for g in got if g[0]]])
""")
    w.same(got, [50, []], "each has an address of its own")
    w.nothing_left("and nothing has left the host")
    w.same(w.inside([WILD], "show(talk('real.pkg.test', 7000))"), "ping", "a connection goes out")
    w.same(sorted(q[:2] for q in w.queries()), [["real.pkg.test", "A"], ["real.pkg.test", "AAAA"]], "and asks for that name alone")


@test("other types of an allowed name are empty answers")
def other_types(w):
    w.zone("a.pkg.test", net.FIRST)
    got = w.inside([WILD], f"show({{k: ask('a.pkg.test', n) for k, n in {KINDS!r}.items()}})")
    w.ok(got["A"][0] == 0 and len(got["A"][1]) == 1, "its address is there", got["A"])
    bad = {k: v for k, v in got.items() if k != "A" and (not v or v[1] or v[0] not in (0, 4, 5))}
    w.same(bad, {}, "everything else is empty, so that no server name is hidden and nothing is carried out")
    w.same([got["HTTPS"], got["SVCB"], got["TXT"], got["AAAA"]], [[0, []]] * 4, "and no error where programs look first")
    w.nothing_left("nothing has left the host")


@test("addresses lead back to names without a word outside")
def reverse(w):
    got = w.inside(["tcp://api.example.test:7000"], """
fake = ask("api.example.test")[1][0]
back = lambda a: ask(".".join(reversed(a.split("."))) + ".in-addr.arpa", 12)
show([back(fake), back("127.0.0.1"), back("8.8.8.8"), back("198.18.99.99"), ask("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa", 12)])
""")
    w.ok(got[0][0] == 0 and bytes.fromhex(got[0][1][0][1]).startswith(b"\3api\7example"), "one of ours", got)
    w.same([g[0] for g in got[2:4]], [3, 3], "others do not exist")
    w.nothing_left("nothing has left the host")


@test("questions over TCP, several on one connection and in pieces")
def streams(w):
    got = w.inside(["tcp://api.example.test:7000", WILD], """
one = ask("api.example.test", tcp=True)
s = socket.create_connection(DNS, 5)
frame = lambda n, i: struct.pack("!H", len(query(n, number=i))) + query(n, number=i)
s.sendall(frame("api.example.test", 1) + frame("evil.test", 2) + frame("x.pkg.test", 3))
def reply():
    head = b""
    while len(head) < 2: head += s.recv(2 - len(head))
    n, body = struct.unpack("!H", head)[0], b""
    while len(body) < n: body += s.recv(n - len(body))
    return body
three = sorted((r[0] << 8 | r[1], parse(r)[0]) for r in (reply(), reply(), reply()))
for b in frame("api.example.test", 4):
    s.sendall(bytes([b]))
    time.sleep(0.005)
last = reply()
show([one, three, [last[1], parse(last)[0]]])
""")
    w.ok(got[0][0] == 0 and len(got[0][1]) == 1, "one question", got[0])
    w.same(got[1], [[1, 0], [2, 3], [3, 0]], "three at once")
    w.same(got[2], [4, 0], "byte by byte")
    w.nothing_left("nothing has left the host")


@test("what is no question is answered with an error or not at all, and does no harm")
def malformed(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["tcp://api.example.test:7000"], r"""
good = query("api.example.test")
head = lambda q=1, a=0, n=0, x=0, flags=0x100: struct.pack("!HHHHHH", 7, flags, q, a, n, x)
tail = struct.pack("!HH", 1, 1)
opt = lambda size, version=0, data=b"": b"\0" + struct.pack("!HHIH", 41, size, version << 16, len(data)) + data
bad = {
 "empty": b"", "one byte": b"x", "head only": head(), "no question": head(0), "two questions": head(2) + (name_bytes("api.example.test") + tail) * 2,
 "a loop": head() + b"\xc0\x0c" + tail, "a pointer ahead": head() + b"\3api\xc0\xff" + tail, "a long name": head() + b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 4 + b"\0" + tail,
 "4 KiB of name": head() + (b"\x3f" + b"b" * 63) * 64 + b"\0" + tail, "no end": head() + b"\3api\7example\4test", "label of 64": head() + b"\x40" + b"a" * 64 + b"\0" + tail,
 "class chaos": head() + name_bytes("api.example.test") + struct.pack("!HH", 1, 3), "a reply": head(flags=0x8180) + name_bytes("api.example.test") + tail,
 "an update": head(flags=0x2900) + name_bytes("api.example.test") + tail, "a notify": head(flags=0x2100) + name_bytes("api.example.test") + tail,
 "left over": good + b"junk", "answers in it": head(1, 1) + name_bytes("api.example.test") + tail + b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + b"abcd",
 "opt of version 9": head(x=1) + name_bytes("api.example.test") + tail + opt(1232, 9), "opt twice": head(x=2) + name_bytes("api.example.test") + tail + opt(1232) + opt(1232),
 "opt of junk": head(x=1) + name_bytes("api.example.test") + tail + opt(1232, 0, b"\xff" * 40), "NUL in a label": head() + b"\5a\0b\0c\4test\0" + tail,
 "a dot in a label": head() + b"\x0bapi.example\4test\0" + tail, "root": head() + b"\0" + tail, "not ASCII": head() + b"\3\xc3\xa4x\4test\0" + tail,
}
out = {}
for how in (False, True):
    for k, v in bad.items():
        r = ask_raw(v, tcp=how, seconds=0.3)
        out[k + (" by TCP" if how else "")] = None if r is None or len(r) < 12 else [r[3] & 15, struct.unpack_from("!H", r, 6)[0]]
import random
random.seed(1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(DNS)
for i in range(20000):
    b = bytearray(good)
    for _ in range(random.randrange(1, 6)): b[random.randrange(len(b))] = random.randrange(256)
    attempt(s.send, bytes(b[:random.randrange(len(b)) + 1]))
time.sleep(0.5)
for n in (0, 1, 11, 512, 65535):
    t = socket.create_connection(DNS, 5)
    t.sendall(struct.pack("!H", n) + b"x" * 20)
    t.close()
show([out, ask("api.example.test"), ask("api.example.test", tcp=True), talk("api.example.test", 7000)])
""")
    leaks = {k: v for k, v in got[0].items() if v and v[1]}
    w.same(leaks, {}, "none gets an address")
    w.ok(all(v is None or v[0] in (1, 3, 4, 5, 0) for v in got[0].values()), "but an error or silence", got[0])
    w.same([g[0] for g in got[1:3]], [0, 0], "good questions are answered as before")
    w.same(got[3], "ping", "and the network works")
    w.ok(all(q[0] == "api.example.test" for q in w.queries()), "nobody outside was asked for anything else", w.queries())


@test("other name servers are out of reach, by every road")
def other_servers(w):
    w.zone("api.example.test", net.FIRST)
    for port in (853, 443, 53):
        w.serve("echo", port) if port != 53 else None
    got = w.inside(["tcp://api.example.test:7000"], """
def udp(a, p=53):
    s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.5)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    try:
        s.sendto(query("secret.evil.test"), (a, p))
        return s.recv(512).hex()
    except OSError as e: return word(e)
where = [("1.2.3.53", 53), ("8.8.8.8", 53), ("2606:4700:4700::1111", 53), ("224.0.0.251", 5353), ("224.0.0.252", 5355), ("ff02::fb", 5353), ("255.255.255.255", 53)]
show({"udp": [udp(*x) for x in where], "tcp": [talk(a, 53) for a in ("1.2.3.53", "8.8.8.8")], "dot": talk("1.2.3.53", 853), "doh": talk("1.1.1.1", 443),
      "name": talk("dns.google", 443)})
""")
    w.ok(all(g in ("ENETUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL", "EHOSTUNREACH") for g in got["udp"]), "datagrams", got["udp"])
    w.same(set(got["tcp"] + [got["dot"], got["doh"]]), {"ENETUNREACH"}, "streams, with and without TLS")
    w.same(got["name"], "no name", "and by name")
    w.nothing_left("nothing has left the host")


@test("a name server that never answers, or says no, is a failure and not a way out", seconds=180)
def silence(w):
    w.zone("silent.example.test", silent=["A", "AAAA"])
    w.zone("broken.example.test", rcode=2)
    w.zone("fine.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside([f"tcp://{n}.example.test:7000" for n in ("silent", "missing", "broken", "fine")], """
got = []
for n in ("missing", "broken", "fine", "silent"):
    start = time.monotonic()
    got.append([n, talk(n + ".example.test", 7000, seconds=60), round(time.monotonic() - start, 1)])
show(got)
""", timeout=120)
    w.same([g[1] for g in got], ["ECONNRESET", "ECONNRESET", "ping", "ECONNRESET"], "a reset for each, but for the one that is there")
    w.ok(within(got[3][2], 45), "within bounds", got)
    w.ok(got[0][2] < 2 and got[2][2] < 2, "at once where there is an answer", got)
    e = {x["host"]: (x["answer"], x.get("why")) for x in w.net_events("connect")}
    w.same(e["missing.example.test"][0], "allow", "the record does not call it a denial")
    w.ok(e["missing.example.test"][1], "but says what happened", e)


@test("a server that answers for one family only costs a moment, not a minute")
def one_family(w):
    w.zone("four.example.test", A=[net.FIRST], silent=["AAAA"])
    w.zone("six.example.test", AAAA=["2600:bbbb::7"], silent=["A"])
    w.serve("echo", 7000)
    got = w.inside(["tcp://four.example.test:7000", "tcp://six.example.test:7000"], """
def timed(n):
    start = time.monotonic()
    return [talk(n, 7000, seconds=30), time.monotonic() - start]
show([timed("four.example.test"), timed("six.example.test"), timed("four.example.test")])
""")
    w.same([g[0] for g in got], ["ping"] * 3, "both are reached")
    w.ok(max(g[1] for g in got) < 2, "soon", got)


@test("while one name is not answered for, others are")
def not_in_the_way(w):
    w.zone("silent.example.test", silent=["A", "AAAA"])
    w.zone("fine.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["tcp://silent.example.test:7000", "tcp://fine.example.test:7000"], """
held = []
for _ in range(100):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((socket.gethostbyname("silent.example.test"), 7000))
    held.append(s)
time.sleep(0.2)
start = time.monotonic()
show([talk("fine.example.test", 7000), time.monotonic() - start < 2])
""")
    w.same(got, ["ping", True], "at once")


@test("a pattern with many ports: who asks at the same time waits for all of them")
def many_ports(w):
    w.zone("x.pkg.test", net.FIRST)
    for port in (8000, 8063):
        w.serve("echo", port)
    got = w.inside(["tcp://*.pkg.test:8000-8063"], """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(DNS)
for i in range(4): s.send(query("x.pkg.test", number=i))
fakes = [parse(s.recv(512))[1][0]]
first = talk(fakes[0], 8063)
fakes += [parse(s.recv(512))[1][0] for _ in range(3)]
show([first, len(set(fakes))])
""")
    w.same(got, ["ping", 1], "whichever answer comes first, every port is there by then")


@test("a flood of questions for names with many ports stops nothing", seconds=180)
def flood(w):
    w.zone("fine.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["tcp://*.pkg.test:8000-8063", "tcp://fine.example.test:7000"], """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(DNS)
for i in range(3000): attempt(s.send, query("n%d.pkg.test" % i, number=i & 0xffff))
start = time.monotonic()
show([talk("fine.example.test", 7000, seconds=60), round(time.monotonic() - start, 1), ask("evil.test")])
""", timeout=150)
    w.same(got[0], "ping", "what is allowed is still reached")
    w.ok(within(got[1], 30), "soon", got)
    w.same(got[2], [3, []], "and questions are answered")


@test("a storm of refused names is on record with its number, and in few lines")
def storm(w):
    got = w.inside([WILD], """
for i in range(3000): ask_raw(query("evil.test"))
for i in range(500): ask_raw(query("n%d.other.test" % i))
time.sleep(1.2)
ask_raw(query("evil.test"))
show(0)
""", timeout=100)
    e = w.net_events("lookup", answer="deny")
    w.same([got, sum(x.get("count", 1) for x in e)], [0, 3501], "every question is counted")
    w.same(sum(x.get("count", 1) for x in e if x["host"] == "evil.test"), 3001, "by name, where one is asked for again and again")
    w.ok(len(e) < 700, "in few lines", len(e))
    r = w.writ("net", "summary", w.events("start")[0]["session"], "--json")
    w.same(sum(p["denied"] for p in json.loads(r.out)), 3501, "and so says the summary")
