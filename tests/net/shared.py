"""Sessions that share the host's network, where no namespaces are to be had: the same decisions, led another way."""
import json
import socket
import threading
from pathlib import Path

import credentials
import net
from net import test

RULES = ["tcp://api.example.test:7000", "tcp://*.pkg.test:7000"]


def inside(w, rules, script, **kw):
    return w.python(net.INSIDE + script, opts=["--tier", "B", *w.rules(*rules)], timeout=60, **kw)


def tried(w, rules):
    """False, and said, if such sessions are refused here."""
    r = w.run("true", opts=["--tier", "B", *w.rules(*rules)])
    if r.code == 0:
        return True
    w.ok(r.code == 122, "it is refused before anything runs", r)
    return False


@test("an allowed name is reached, another is not, and nothing else leaves")
def names(w):
    if not tried(w, RULES):
        return
    w.zone("api.example.test", net.FIRST)
    w.zone("a.pkg.test", net.SECOND)
    w.zone("evil.test", net.THIRD)
    w.serve("echo", 7000)
    got = inside(w, RULES, """
show([talk("api.example.test", 7000), talk("a.pkg.test", 7000), talk("evil.test", 7000), talk("api.example.test", 7001)])
""")
    w.same(got[:2], ["ping", "ping"], "what is allowed")
    w.ok("ping" not in got[2:], "and nothing else", got)
    w.same([c["to"] for c in w.accepted()], [net.FIRST, net.SECOND], "the world saw just those")
    w.same(w.queries("evil"), [], "nobody was asked for the other")


@test("an address that a rule names is reached, by several at once")
def addresses(w):
    rules = [f"tcp://{net.FIRST}:7000", f"tcp://{net.SECOND}:7000"]
    if not tried(w, rules):
        return
    w.serve("echo", 7000)
    got = inside(w, rules, f"""
here = [socket.create_connection((a, 7000), 5) for a in ("{net.FIRST}", "{net.SECOND}") * 4]
for s in here: s.sendall(b"ping")
show([[s.recv(4).decode() for s in here], talk("{net.THIRD}", 7000)])
""")
    w.same(got, [["ping"] * 8, "ENETUNREACH"], "each of them, and no other")
    w.same(sorted(c["to"] for c in w.accepted()), [net.FIRST] * 4 + [net.SECOND] * 4, "the world saw just those")
    w.same({e["host"] for e in w.net_events("connect")} - {net.THIRD}, {net.FIRST, net.SECOND}, "the record names them")


@test("addresses, datagrams and the host's own ports are out of reach")
def others(w):
    if not tried(w, RULES):
        return
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    port, hits = net.host_listener()
    got = inside(w, RULES, f"""
def udp(a, p, how):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.5)
    try:
        if how == "connect":
            s.connect((a, p))
            s.send(query("evil.test"))
        elif how == "sendmsg": s.sendmsg([query("evil.test")], [], 0, (a, p))
        else: s.sendto(query("evil.test"), (a, p))
        return s.recv(512).hex()
    except OSError as e: return word(e)
show({{"address": [talk("1.2.3.10", 7000), talk("10.9.9.9", 7000), talk("169.254.169.254", 7000), talk("2600:aaaa::1", 7000), talk("::ffff:1.2.3.10", 7000)],
      "host": [talk("127.0.0.1", {port}), talk("localhost", {port}), talk("{net.HOST}", {port})], "names": [udp("1.2.3.53", 53, h) for h in ("connect", "sendmsg", "sendto")],
      "udp": [udp("1.2.3.10", p, h) for h in ("connect", "sendmsg", "sendto") for p in (443, 123, 5353)],
      "fast": attempt(lambda: socket.socket().sendto(b"x", 0x20000000, ("1.2.3.10", 7000)))}})
""")
    w.ok(not [g for g in got["address"] + got["host"] if g in ("ping", "host")], "none of them answers", got)
    w.same(hits, [], "nothing came to the host")
    w.ok(all(len(g) < 16 or g[7] == "3" for g in got["names"]), "whoever is asked for a name, there is no such", got["names"])
    w.ok(not [g for g in got["udp"] if g not in ("EACCES", "EPERM", "ENETUNREACH", "ECONNREFUSED", "EHOSTUNREACH", "timeout", "EAFNOSUPPORT")], "nor a datagram", got)
    w.nothing_left("no packet has left the host")


@test("a name that leads inwards is not dialled there either")
def inwards(w):
    if not tried(w, RULES):
        return
    w.zone("api.example.test", ttl=0, turns=[[net.FIRST], ["127.0.0.1"], [net.PRIVATE]])
    port, hits = net.host_listener()
    w.serve("echo", port)
    got = inside(w, [f"tcp://api.example.test:{port}"], f"""
out = []
for _ in range(3):
    out.append(talk("api.example.test", {port}))
    time.sleep(2.1)
show(out)
""")
    w.same(got[0], "ping", "the public one")
    w.ok("ping" not in got[1:] and "host" not in got[1:], "and no other", got)
    w.same([c["to"] for c in w.accepted()], [net.FIRST], "the world saw just that")
    w.same(hits, [], "and the host nothing")


@test("rules for addresses hold, and the record says which")
def literal(w):
    if not tried(w, RULES):
        return
    w.serve("echo", 7000)
    rules = [f"tcp://{net.FIRST}:7000", f"tcp://{net.THIRD}:7000"]
    got = inside(w, rules, f"""
show([talk(a, 7000) for a in ("{net.FIRST}", "{net.THIRD}", "{net.SECOND}", "localhost") * 5])
""")
    w.same([got[i::4].count("ping") for i in range(4)], [5, 5, 0, 0], "those that are named are reached", got)
    w.same({c["to"] for c in w.accepted()}, {net.FIRST, net.THIRD}, "and no other")
    w.same({e["host"] for e in w.net_events("connect", answer="allow")}, {net.FIRST, net.THIRD}, "on record as they are")


@test("requests are read here, too")
def requests(w):
    rules = ["http://api.example.test/a/**", "http://*.pkg.test/a/**", f"http://{net.THIRD}/a/**"]
    if not tried(w, rules):
        return
    w.zone("api.example.test", net.FIRST)
    w.zone("x.pkg.test", net.SECOND)
    w.serve("http", 80)
    got = inside(w, rules, f"""
def ask(host, path): return talk(host, 80, f"GET {{path}} HTTP/1.1\\r\\nHost: {{host}}\\r\\n\\r\\n".encode())[9:12]
show([[ask(h, p) for p in ("/a/x", "/b")] for h in ("api.example.test", "x.pkg.test", "{net.THIRD}")])
""")
    w.same(got, [["200", "403"]] * 3, "what is allowed is answered, other paths are not")
    w.same([c["requests"][0][1] for c in w.accepted()], ["/a/x"] * 3, "nor seen outside")


@test("a message cannot say by which way it goes")
def control(w):
    """With an interface and an address of its own choice in its control data it would leave the host."""
    if not tried(w, RULES):
        return
    script = f"""
def info(index): return [(socket.IPPROTO_IP, 8, struct.pack("@i4s4s", index, socket.inet_aton("{net.HOST}"), bytes(4)))]
def options(): return info(0) + [(socket.IPPROTO_IP, 7, bytes([131, 7, 4]) + socket.inet_aton("{net.THIRD}") + b"\\0")]
def send(control):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("1.2.3.53", 53))
    return s.sendmsg([b"leak"], control)
show([attempt(send, c) for c in ([], *[info(i) for i in range(1, 8)], options())])
"""
    got = inside(w, RULES, script)
    w.same(got[0], 4, "without any it is sent to where names are asked for")
    w.same(set(got[1:]), {"EPERM"}, "with an address, an interface or hosts on the way it is not")
    w.nothing_left("no packet has left the host")
    exec(net.INSIDE + "show = id\n" + script, {})  # the same without writ
    w.ok(any(p[1] == "1.2.3.53" for p in w.packets()), "while the host's own do", w.packets())


@test("nothing is said to the wire by joining a group")
def groups(w):
    """The group is a word of the agent's choice, and who joins it says so to everybody."""
    if not tried(w, RULES):
        return
    got = inside(w, RULES, """
four, six = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
group = socket.inet_pton(socket.AF_INET6, "ff05::6c65:616b")
show([attempt(four.setsockopt, 0, 35, socket.inet_aton("239.1.2.3") + bytes(4)), attempt(six.setsockopt, 41, 20, group + bytes(4)),
      attempt(four.setsockopt, 1, 25, b"lo"), attempt(four.setsockopt, 0, 4, bytes([1, 1, 1, 0])), attempt(four.setsockopt, 1, 2, 1)])
""")
    w.same(got, ["EPERM"] * 4 + [None], "nor an interface or a way chosen")


@test("no option says by which interface a packet leaves")
def interfaces(w):
    """Where the host routes its loopback outwards, a datagram for egress would leave by the interface of its socket."""
    if not tried(w, RULES):
        return
    try:
        Path("/proc/sys/net/ipv4/conf/all/route_localnet").write_text("1")
    except OSError:
        pass  # what is refused is seen anyway
    w.serve("echo", 7000)
    with socket.create_connection((net.FIRST, 7000), 3):
        pass  # the host knows its neighbour
    w.forget()
    got = inside(w, RULES, """
out = set()
for index in range(1, 8):
    for level, option, family in ((0, 50, 2), (0, 32, 2), (0, 50, 10), (41, 76, 10), (41, 17, 10)):
        s = socket.socket(family, socket.SOCK_DGRAM)
        out.add(attempt(s.setsockopt, level, option, struct.pack("!I" if option > 49 else "@I", index)))
        try:
            s.connect((("::ffff:" if family == 10 else "") + DNS[0], 53))
            s.send(query("evil.test"))
        except OSError: pass
four, six = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
show([sorted(out, key=str), [attempt(four.setsockopt, 0, o, 1) for o in (1, 2, 8, 10, 11, 12, 13, 24, 49)],
      [attempt(six.setsockopt, 41, o, 1) for o in (16, 23, 25, 26, 29, 49, 62, 66, 67)]])
""")
    w.same(got[0], ["EPERM"], "each is refused")
    w.same([set(map(str, g)) for g in got[1:]], [{"None"}] * 2, "what programs set is not")
    w.same([p for p in w.packets() if p[0] != "tcp"], [], "no datagram has left the host")


@test("who was led to egress does not listen there")
def listening(w):
    """A socket that connects is bound on the way; let go of, it would still be."""
    if not tried(w, RULES):
        return
    script = """
import ctypes
s = socket.socket()
s.connect(("198.18.0.1", 53))
gone = ctypes.CDLL(None).connect(s.fileno(), struct.pack("=H14x", 0), 16)
show([gone, s.getsockname()[0], attempt(s.listen)])
"""
    w.same(inside(w, RULES, script), [0, "127.0.0.1", "EACCES"], "it is refused")
    w.same(inside(w, [*RULES, "allow listen 8080"], script), [0, "127.0.0.1", "EACCES"], "with a rule for another port, too")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def reach(address, port, data=b""):
    """What somebody outside of the session reads at a port of this machine."""
    try:
        with socket.create_connection((address, port), 2) as c:
            c.sendall(data)
            return c.recv(9)
    except OSError as e:
        return type(e).__name__


@test("a session listens at the loopback address and the port of its rule, and nowhere else")
def listen_port(w):
    port = free_port()
    rules = [*RULES, f"allow listen {port}"]
    if not tried(w, rules):
        return
    before = credentials.listening()
    p = w.start([w.program, "run", "--tier", "B", *w.rules(*rules), "--", net.host.PYTHON, "-u", "-c", "import sys, json\n" + net.INSIDE + f"""
def take(a, p):
    s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET)
    if ":" in a: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((a, p))
    s.listen()
    keep.append(s)
keep = []
all_of_them = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::ffff:0.0.0.0", "127.0.0.2", "::ffff:127.0.0.2", "::127.0.0.1",
               "{net.HOST}", "::ffff:{net.HOST}", "{net.HOST6}", "255.255.255.255"]
show([[a, p, attempt(take, a, p)] for p in (0, {port + 1 if port < 65535 else port - 1}) for a in all_of_them] +
     [[a, {port}, attempt(take, a, {port})] for a in all_of_them[3:] + all_of_them[:2]])
c = keep[0].accept()[0]
c.sendall(b"inside")
sys.stdin.readline()
"""], stdin=-1, stdout=-1, stderr=-1)
    got = json.loads(p.stdout.readline())
    w.same([g for g in got if g[2] is None], [["127.0.0.1", port, None], ["::1", port, None]], "of all addresses and ports")
    here = {a for _, a in credentials.listening() - before}
    w.ok(f"0100007F:{port:04X}" in here, "the kernel has it", here)
    w.same({a for a in here if not a.startswith("0100007F:")}, {f"{'0' * 24}01000000:{port:04X}"}, "and nothing beyond the loopback")
    w.same(reach(net.HOST, port), "ConnectionRefusedError", "the machine's address does not lead there")
    w.same(reach("127.0.0.1", port), b"inside", "its loopback does")
    p.communicate(b"\n", timeout=20)


@test("a socket that lost its address does not listen on all of them")
def listen_lost(w):
    port, hits = net.host_listener()
    rules = [f"localhost:{port}", "allow listen 8080"]
    if not tried(w, rules):
        return
    got = inside(w, rules, f"""
import ctypes
def lost(family, a):
    s = socket.socket(family)
    if a:
        s.connect((a, {port}))
        s.sendall(b"x")
        s.recv(9)
        ctypes.CDLL(None).connect(s.fileno(), struct.pack("=H26x", 0), 28)
    return [attempt(s.listen), s.getsockname()[1] if not a else 0]
show([lost(socket.AF_INET, "127.0.0.1"), lost(socket.AF_INET6, "::ffff:127.0.0.1"), lost(socket.AF_INET, None), lost(socket.AF_INET6, None)])
""")
    w.same(got, [["EACCES", 0]] * 4, "none does")
    w.same(len(hits), 2, "while two were connected before")


@test("localhost:PORT is that port of 127.0.0.1 and ::1, and of no other loopback address")
def loopback(w):
    port, others = net.host_listener("127.0.0.53", b"other")
    hits = []

    def serve(address, family):
        s = socket.create_server((address, port), family=family)
        while True:
            c, _ = s.accept()
            with c:
                hits.append(c.recv(9))
                c.sendall(b"host")
    for at in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        threading.Thread(target=serve, args=at, daemon=True).start()
    if not tried(w, [f"localhost:{port}"]):
        return
    got = inside(w, [f"localhost:{port}", *RULES], f"""
show([[talk(a, {port}) for a in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost")],
      [talk(a, {port}) for a in ("127.0.0.53", "::ffff:127.0.0.53", "127.0.0.2", "127.255.255.254")]])
""")
    w.same(got[0], ["host"] * 4, "by each of its addresses")
    w.same(set(got[1]), {"EACCES"}, "the others are refused")
    w.same(others, [], "and nobody came there")
    w.same(reach("127.0.0.53", port, b"ping"), b"other", "while somebody does listen there")
