"""Everything that is not a TCP connection to an allowed name."""
import json
import os
import subprocess
import threading

import net
from net import test

RULES = ["tcp://api.example.test:7000"]


@test("datagrams, raw sockets and other protocols go nowhere")
def protocols(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    w.serve("echo", 443)
    got = w.inside(RULES, r"""
def udp(a, p, data=b"x" * 100):
    try:
        s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(0.3)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.sendto(data, (a, p))
        return s.recv(100).hex()
    except OSError as e: return word(e)
def raw(*args, to="1.2.3.10"):
    try:
        s = socket.socket(*args)
        s.settimeout(0.3)
        s.connect((to, 7000))
        s.send(b"x" * 40)
        return "sent"
    except OSError as e: return word(e)
def other(*args):
    try:
        socket.socket(*args).close()
        return "made"
    except OSError as e: return word(e)
fake = socket.gethostbyname("api.example.test")
I, I6, D, R, S, P = socket.AF_INET, socket.AF_INET6, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_STREAM, socket.AF_PACKET
show({"quic": [udp("1.2.3.10", 443), udp(fake, 443), udp("2600:aaaa::1", 443)], "ntp": udp("1.2.3.10", 123), "mdns": udp("224.0.0.251", 5353), "ssdp": udp("239.255.255.250", 1900),
      "broadcast": udp("255.255.255.255", 67), "link": udp("ff02::1", 5353),
      "ping": [raw(I, D, 1), raw(I, R, 1), raw(I6, D, 58, to="2600:aaaa::1"), raw(I6, R, 58, to="2600:aaaa::1")],
      "raw": [raw(I, R, 255), raw(I, R, 6), raw(I, R, 47), raw(I, S, 132), raw(I, socket.SOCK_SEQPACKET, 132), raw(I, 6, 33), raw(I, D, 136), raw(I, S, 262)],
      "packet": [other(P, R, 768), other(P, D, 768)], "families": {str(f): other(f, t, 0) for f in range(3, 46) if f != 10 for t in (S, D, R) if f != 16}})
""")
    w.ok(all(g in ("ENETUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL", "ECONNREFUSED", "EHOSTUNREACH", "timeout") for g in
             [*got["quic"], got["ntp"], got["mdns"], got["ssdp"], got["broadcast"], got["link"]]), "datagrams, QUIC among them", got)
    w.ok("sent" not in got["ping"], "pings", got["ping"])
    w.ok("sent" not in got["raw"], "raw IP, SCTP, DCCP, UDP-Lite and multipath TCP", got["raw"])
    w.ok("made" not in got["packet"], "frames", got["packet"])
    w.same({f: v for f, v in got["families"].items() if v == "made"}, {}, "no other family of sockets can be made")
    w.nothing_left("no packet has left the host")
    w.same(w.inside(RULES, "show(talk('api.example.test', 7000))"), "ping", "while what is allowed works")
    for family, kind, to in ((net.socket.AF_INET, net.socket.SOCK_DGRAM, net.FIRST), (net.socket.AF_INET6, net.socket.SOCK_DGRAM, "2600:aaaa::1")):
        with net.socket.socket(family, kind) as s:
            s.sendto(b"control", (to, 443))
    w.ok(net.host.wait_for(lambda: len([p for p in w.packets() if p[0] == "udp" and p[2] == 443]) == 2), "and the host itself can send them")


@test("routes, rules and namespaces of the session's own change nothing")
def own_network(w):
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def netlink(kind, body):
    try:
        s = socket.socket(16, socket.SOCK_RAW, 0)
        s.settimeout(1)
        s.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
        e = struct.unpack_from("=i", s.recv(4096), 16)[0]
        return errno.errorcode.get(-e, "done") if e else "done"
    except OSError as e: return word(e)
route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 253, 1, 0) + struct.pack("=HHI", 8, 4, 1)
link = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + struct.pack("=HH", 16, 18) + struct.pack("=HH", 10, 1) + b"dummy\0\0\0"
def space(flags):
    pid = os.fork()
    if pid == 0: os._exit(0 if libc.unshare(flags) == 0 and talk("1.2.3.10", 7000) not in ("ENETUNREACH", "EPERM") else 1)
    return os.waitpid(pid, 0)[1]
def host_net(path):
    try: fd = os.open(path, os.O_RDONLY)
    except OSError as e: return word(e)
    return "entered" if libc.setns(fd, 0x40000000) == 0 else errno.errorcode[ctypes.get_errno()]
show({"route": netlink(24, route), "link": netlink(16, link), "spaces": [space(0x40000000), space(0x50000000)], "host": [host_net("/proc/%d/ns/net" % os.getppid()), host_net("/proc/1/ns/net")],
      "tun": attempt(lambda: os.open("/dev/net/tun", os.O_RDWR)), "then": talk("1.2.3.10", 7000), "bind": attempt(lambda: socket.socket().bind(("1.2.3.254", 0)))})
""")
    w.ok(got["route"] != "done" and got["link"] != "done", "no route or interface can be made", got)
    w.ok(all(got["spaces"]), "a network of its own leads nowhere", got)
    w.ok(isinstance(got["tun"], str), "there is no device for packets", got)
    w.same(got["then"], "ENETUNREACH", "afterwards addresses are as unreachable as before")
    w.ok(got["bind"] is not None, "the host's address cannot be taken", got)
    w.nothing_left("no packet has left the host")


@test("nobody inside can take the place of a listener")
def take_place(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(RULES, r"""
fake = socket.gethostbyname("api.example.test")
def take(a, p, kind=socket.SOCK_STREAM, family=socket.AF_INET):
    try:
        s = socket.socket(family, kind)
        for o in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, o, 1)
        s.bind((a, p))
        if kind == socket.SOCK_STREAM: s.listen(5)
        keep.append(s)
        return "taken"
    except OSError as e: return word(e)
keep = []
show({"proxy": take("198.18.0.1", 1080), "names": [take("198.18.0.1", 53, socket.SOCK_DGRAM), take("198.18.0.1", 53)], "name": take(fake, 7000),
      "all": [take("0.0.0.0", 7000), take("0.0.0.0", 1080), take("0.0.0.0", 53, socket.SOCK_DGRAM), take("::", 7000, family=socket.AF_INET6)], "talk": talk(fake, 7000),
      "free": take("0.0.0.0", 7001)})
""")
    w.ok({got["proxy"], *got["names"], got["name"]} <= {"EADDRINUSE", "EACCES"}, "not of the proxy, the names or a host", got)
    w.same(got["talk"], "ping", "connections go where they went")
    w.same(got["free"], "taken", "while other ports are free")


@test("a program inside cannot take the port of names that come up later, and is told about where it could")
def later(w):
    w.zone("a.pkg.test", net.FIRST)
    w.zone("new.example.test", net.SECOND)
    w.serve("echo", 7000)
    w.serve("echo", 7005)
    p = w.started_inside(["tcp://*.pkg.test:7000"], """
def take(a, p, family=socket.AF_INET):
    s = socket.socket(family)
    try:
        for o in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, o, 1)
        s.bind((a, p))
        s.listen(5)
        return s
    except OSError as e: return word(e)
first = [take("0.0.0.0", 7000), take("::", 7000, socket.AF_INET6), talk("a.pkg.test", 7000), talk("198.18.0.2", 7000)]
own = take("127.0.0.1", 7000)
mine = take("0.0.0.0", 7005)
show(first + [isinstance(own, socket.socket), isinstance(mine, socket.socket)])
sys.stdout.flush()
sys.stdin.readline()
socket.getaddrinfo("new.example.test", 7005)
mine.close()
show([talk("new.example.test", 7005)])
""")
    got = json.loads(p.stdout.readline())
    w.same(got, ["EADDRINUSE", "EADDRINUSE", "ping", "ECONNRESET", True, True], "not at all addresses, but its own loopback is free")
    w.exits(w.writ("allow", next(iter(w.ids())), "net:tcp://new.example.test:7005"), 0, "a name is allowed later")
    p.stdin.write(b"\n")
    p.stdin.flush()
    w.same(json.loads(p.stdout.readline()), ["ping"], "it is reached once the port is free again")
    p.wait(20)
    w.same([(e["port"], e["why"]) for e in w.net_events("connect", host="new.example.test", answer="deny")],
           [(7005, "a program of the session listens at this port")], "and until then the record says why not")


@test("sockets of the host are out of reach: abstract names, inherited descriptors")
def host_sockets(w):
    import socket
    name = f"\0{w.mark}"
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen(5)
    ours, theirs = socket.socketpair()
    port, hits = net.host_listener()
    tcp = socket.create_connection(("127.0.0.1", port))
    r = w.run(net.host.PYTHON, "-c", f"""
import socket, os
s = socket.socket(socket.AF_UNIX)
try: s.connect("\\0{w.mark}"); print("connected")
except OSError as e: print("no")
for fd in range(3, 64):
    try: os.write(fd, b"escaped"); print("wrote", fd, os.readlink("/proc/self/fd/%d" % fd))
    except OSError: pass
""", opts=w.rules(*RULES), pass_fds=(theirs.fileno(), tcp.fileno()))
    w.same(r.text, "no\n", "neither can be used", r.said)
    ours.setblocking(False)
    try:
        got = ours.recv(10)
    except BlockingIOError:
        got = b""
    w.same(got, b"", "the inherited socket received nothing")
    w.same(hits, [], "on neither of them")


@test("what the session listens on is not seen outside unless `listen` says so")
def published(w):
    import socket
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    p = w.started_inside(RULES + [f"allow listen {port}"], f"""
a, b = socket.create_server(("0.0.0.0", {port})), socket.create_server(("0.0.0.0", {port + 1 if port < 65535 else port - 1}))
print("there", flush=True)
while True:
    c, _ = a.accept()
    c.sendall(c.recv(10).upper())
    c.close()
""")
    if not w.same(p.stdout.readline(), b"there\n", "it listens inside"):
        p.kill()
        return w.ok(False, "why not", p.stderr.read())

    def reach(address, number):
        try:
            with socket.create_connection((address, number), 2) as c:
                c.sendall(b"hello")
                return c.recv(10)
        except OSError as e:
            return type(e).__name__
    w.same(reach("127.0.0.1", port), b"HELLO", "the port that was named is there on the loopback")
    w.same(reach(net.HOST, port), "ConnectionRefusedError", "and nowhere else")
    w.same(reach("127.0.0.1", port + 1 if port < 65535 else port - 1), "ConnectionRefusedError", "and no other port")
    out = []
    threads = [threading.Thread(target=lambda: out.append(reach("127.0.0.1", port))) for _ in range(300)]
    [t.start() for t in threads], [t.join() for t in threads]
    w.same(out.count(b"HELLO"), 300, "three hundred at once are served", out[:5])
    held = []
    for _ in range(2500):
        held.append(socket.socket())
        held[-1].setblocking(False)
        held[-1].connect_ex(("127.0.0.1", port))
    for s in held:
        s.close()
    w.ok(net.host.wait_for(lambda: reach("127.0.0.1", port) == b"HELLO", 20), "thousands that come and go do no harm")
    w.exits(w.writ("ps"), 0, "the session answers")
    p.terminate()
    try:
        p.wait(10)
    except subprocess.TimeoutExpired:
        pass
    w.ok(p.returncode is not None, "the session ends on SIGTERM")


@test("helpers have nothing to read and nothing to write on the host")
def helpers(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("hold", 7000)
    p = w.started_inside(RULES, """
s = socket.create_connection(("api.example.test", 7000), 5)
s.sendall(b"x")
print("there", flush=True)
sys.stdin.readline()
""")
    w.ok(net.host.wait_for(lambda: w.world()["holding"] == 1), "a tunnel is there")
    helpers = net.helpers_of(p.pid)
    w.same(len(helpers), 2, "two helpers run: one that relays, one that looks names up", helpers)
    for c in helpers:
        status = dict(l.split(":\t", 1) for l in net.read(f"/proc/{c}/status").splitlines() if ":\t" in l)
        w.same([status.get("Seccomp"), status.get("NoNewPrivs"), int(status["CapEff"], 16), int(status["CapPrm"], 16)], ["2", "1", 0, 0],
               "each is under a filter of its own and has no capability", status)
        files = []
        try:
            for fd in os.listdir(f"/proc/{c}/fd"):
                files.append(os.readlink(f"/proc/{c}/fd/{fd}"))
        except OSError:
            files = []
        bad = [f for f in files if not f.startswith(("socket:", "anon_inode:", "pipe:"))]
        w.same(bad, [], "and holds no file")
    p.stdin.close()
    p.wait(5)

