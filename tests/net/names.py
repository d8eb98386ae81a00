"""Which names a rule means, however they are written."""
import net
from net import test

EXACT = "tcp://api.example.test:7000"
WILD = "tcp://*.pkg.test:7000"
DEEP = "tcp://**.deep.test:7000"


def scene(w, *names):
    for name in names:
        w.zone(name, net.FIRST)
    w.serve("echo", 7000)


@test("upper case and a dot at the end mean the same name")
def spelling(w):
    scene(w, "api.example.test", "a.pkg.test")
    got = w.inside([EXACT, WILD], """
fakes = [ask(n)[1] for n in ("api.example.test", "API.Example.TEST", "api.example.test.")]
show({"fakes": fakes, "talk": [talk(n, 7000) for n in ("API.Example.TEST", "api.example.test.", "A.PKG.test.")],
      "proxy": [through(k, n, 7000) for k in ("connect", "socks5", "socks4") for n in ("API.Example.TEST", "api.example.test.")]})
""")
    w.ok(got["fakes"][0] and got["fakes"].count(got["fakes"][0]) == 3, "all have one address", got["fakes"])
    w.same(got["talk"], ["ping"] * 3, "sockets reach it by each")
    w.same([g[1] for g in got["proxy"]], ["ping"] * 6, "and so does the proxy")
    w.same({e["host"] for e in w.net_events("connect")}, {"api.example.test", "a.pkg.test"}, "on record under one name")
    w.ok(all(q[0] in ("api.example.test", "a.pkg.test") for q in w.queries()), "and asked for under it", w.queries())


@test("names that only look like allowed ones are not")
def lookalikes(w):
    bad = ["evil-pkg.test", "xpkg.test", "pkg.test", "pkg.test.evil.test", "a.b.pkg.test", "api.example.test.evil.test",
           "notapi.example.test", "example.test", "xn--api-example.test", "xn--pi-7sb.example.test", "api_.example.test",
           "deep.test", "api.example.tes", "api.example.testt"]
    scene(w, "api.example.test", "a.pkg.test", "x.deep.test", "x.y.deep.test", *bad)
    got = w.inside([EXACT, WILD, DEEP], f"""
bad = {bad!r}
show({{"sockets": [talk(n, 7000) for n in bad], "connect": [through("connect", n, 7000)[0] for n in bad],
      "socks5": [through("socks5", n, 7000)[0] for n in bad], "socks4": [through("socks4", n, 7000)[0] for n in bad]}})
""")
    w.same(got["sockets"], ["no name"] * len(bad), "none has an address inside")
    w.same(got["connect"], ["403"] * len(bad), "none is connected to by HTTP")
    w.same(got["socks5"], ["2"] * len(bad), "or by SOCKS 5")
    w.same(got["socks4"], ["91"] * len(bad), "or by SOCKS 4a")
    w.nothing_left("and nothing has left the host")
    denied = w.net_events(answer="deny")
    w.same(sorted({e["host"] for e in denied}), sorted(bad), "each is on record as denied")
    got = w.inside([EXACT, WILD, DEEP], """
show([talk(n, 7000) for n in ("api.example.test", "a.pkg.test", "x.deep.test", "x.y.deep.test")])
""")
    w.same(got, ["ping"] * 4, "while one label matches *, and several match **")


@test("a name that is none is refused before any rule is looked at")
def malformed(w):
    scene(w, "api.example.test", "a.pkg.test", "evil.test")
    got = w.inside([EXACT, WILD], r"""
bad = [b"evil.test\0.pkg.test", b"a.pkg.test\0", b"a%00.pkg.test", b"a\r\n.pkg.test", b"a .pkg.test", b"a\t.pkg.test", b"a\x80.pkg.test",
       b"a..pkg.test", b".pkg.test", b"a.pkg.test..", b"", b".", b"x" * 64 + b".pkg.test", b"y." * 124 + b"pkg.test", b"user@a.pkg.test",
       b"a.pkg.test#@evil.test", b"a.pkg.test/evil", b"-a.pkg.test", "ä.pkg.test".encode(), "①.pkg.test".encode(), b"*.pkg.test",
       b"[a.pkg.test]", b"a.pkg.test:80"]
show({"connect": [[b.hex(), through("connect", b, 7000)[0]] for b in bad], "socks5": [[b.hex(), through("socks5", b, 7000)[0]] for b in bad if len(b) < 256],
      "socks4": [[b.hex(), through("socks4", b, 7000)[0]] for b in bad if b"\0" not in b]})
""")
    w.same([g for g in got["connect"] if g[1] not in ("400", "403")], [], "not by HTTP")
    w.same([g for g in got["socks5"] if g[1] not in ("1", "2", "8", "closed", "ECONNRESET")], [], "not by SOCKS 5")
    w.same([g for g in got["socks4"] if g[1] not in ("91", "closed", "ECONNRESET")], [], "not by SOCKS 4a")
    w.nothing_left("and nothing has left the host")
    w.same(w.inside([EXACT, WILD], "show([through(k, 'a.pkg.test', 7000)[1] for k in ('connect', 'socks5', 'socks4')])"), ["ping"] * 3,
           "while a good one goes each way")


@test("the port belongs to the rule")
def ports(w):
    scene(w, "api.example.test")
    for port in (22, 25, 443, 6379):
        w.serve("echo", port)
    got = w.inside([EXACT], """
ps = [22, 25, 443, 6379, 6999, 7001, 0, 65535]
fake = socket.gethostbyname("api.example.test")
show([[talk(fake, p) for p in ps], [through("connect", "api.example.test", p)[0] for p in ps], [through("socks5", "api.example.test", p)[0] for p in ps]])
""")
    w.same(set(got[0]), {"ECONNREFUSED"}, "sockets are refused at every other one")
    w.ok(set(got[1]) <= {"403", "400"}, "and CONNECT", got[1])
    w.ok(set(got[2]) <= {"2", "1", "8", "closed"}, "and SOCKS", got[2])
    w.nothing_left("nothing has left the host")


@test("at most 4,096 names stand for something; earlier ones stay good", seconds=240, bulk=True)
def cap(w):
    n = 4200
    scene(w, *[f"n{i}.pkg.test" for i in (0, 1, 4000, n - 1)])
    got = w.inside([WILD], f"""
first, codes, seen = ask("n0.pkg.test")[1], {{}}, set()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.connect(DNS)
for i in range({n}):
    s.send(query("n%d.pkg.test" % i, number=i & 0xffff))
    reply = attempt(s.recv, 512)
    if not isinstance(reply, bytes):
        codes[reply] = codes.get(reply, 0) + 1
        continue
    code, found = parse(reply)
    codes[code] = codes.get(code, 0) + 1
    seen.update(found)
show({{"first": first, "again": ask("n0.pkg.test")[1], "codes": codes, "seen": len(seen), "talk": talk("n0.pkg.test", 7000),
       "late": talk("n4000.pkg.test", 7000), "too late": talk("n{n - 1}.pkg.test", 7000), "proxy": through("socks5", "n{n - 1}.pkg.test", 7000)[0]}})
""", timeout=200)
    w.same(got["seen"], got["codes"].get("0", 0), "no address stands for two names")
    w.ok(4000 < got["codes"].get("0", 0) <= 4096, "about so many are answered", got["codes"])
    w.same(set(got["codes"]), {"0", "2"}, "and the rest with a failure that says it is ours")
    w.same(got["again"], got["first"], "the first keeps its address")
    w.same(got["talk"], "ping", "and is reached")
    w.same(got["late"], "ping", "and so is a late one")
    w.same([got["too late"], got["proxy"]], ["no name", "2"], "but not one too many")


@test("hosts file, search list and host aliases inside change no decision")
def own_files(w):
    scene(w, "api.example.test", "evil.test")
    got = w.inside([EXACT], """
open("aliases", "w").write("mine evil.test\\nother api.example.test\\n")
os.environ["HOSTALIASES"] = os.path.abspath("aliases")
os.environ["LOCALDOMAIN"] = "evil.test"
os.environ["RES_OPTIONS"] = "ndots:9"
import subprocess
run = lambda n: subprocess.run([sys.executable, "-c", "import socket,sys\\ntry: print(socket.gethostbyname(sys.argv[1]))\\nexcept OSError: print('none')", n],
                               stdout=subprocess.PIPE, text=True).stdout.strip()
etc = attempt(lambda: open("/etc/hosts", "a").write("198.18.0.16 evil.test\\n"))
show({"mine": run("mine"), "evil": run("evil.test"), "api": run("api"), "other": run("api.example.test"), "etc": etc if isinstance(etc, str) else "written",
      "literal": talk("198.18.0.16", 7000)})
""")
    w.same([got["mine"], got["evil"], got["api"]], ["none"] * 3, "an alias or a search list leads nowhere else")
    w.same(got["other"], "198.18.0.16", "the allowed name has its address")
    w.same(got["literal"], "ping", "which means that name and no other, whatever it is called inside")
    w.ok(all(q[0] == "api.example.test" for q in w.queries()), "nobody outside was asked for anything else", w.queries())


@test("thousands of rules: each name reaches its own host", seconds=180)
def many_rules(w):
    names = [f"h{i}.many.test" for i in range(600)]
    for i in (0, 300, 599):
        w.zone(names[i], f"1.2.5.{i % 250 + 1}")
    w.serve("echo", 7000)
    got = w.inside([f"tcp://{n}:7000" for n in names], f"""
names = {names!r}
show([[talk(names[i], 7000) for i in (0, 300, 599)], len({{ask(n)[1][0] for n in names}})])
""", timeout=120)
    w.same(got[0], ["ping"] * 3, "the first, one between and the last")
    w.same(got[1], 600, "and no two share an address")
    w.same([c["to"] for c in w.accepted()], [f"1.2.5.{i % 250 + 1}" for i in (0, 300, 599)], "each went where it belongs")
