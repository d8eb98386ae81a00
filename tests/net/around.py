"""What the operator says about the network around writ: a proxy that everything goes through, authorities of a company."""
import base64

import net
from net import test

PROXY = f"http://{net.PRIVATE}:3128"
RULES = ["tcp://api.example.test:7000", "tcp://*.pkg.test:7000"]


def asked(w):
    return [c.get("asked") for c in w.accepted(3128)]


def outward(w):
    """Where the host itself has sent packets of TCP."""
    return {(p[1], p[2]) for p in w.packets() if p[0] == "tcp"}


@test("with an upstream proxy every public address is dialled by it, and it is asked for what was checked")
def through_it(w):
    w.zone("api.example.test", net.PRIVATE, net.FIRST)
    w.zone("a.pkg.test", net.SECOND)
    w.zone("bad.pkg.test", net.PRIVATE)
    w.zone("six.pkg.test", "2600:aaaa::7")
    w.zone("proxy.corp.test", net.PRIVATE)
    w.serve("echo", 7000)
    w.serve("connect", 3128, slow=True)
    w.serve("banner", 7022)
    for proxy in (PROXY, "http://proxy.corp.test:3128/"):
        w.env["WRIT_UPSTREAM_PROXY"] = proxy
        got = w.inside(RULES + ["tcp://a.pkg.test:7022"], """
import socket
with socket.create_connection(("a.pkg.test", 7022), 5) as s: first = s.recv(99).decode()
show([talk("api.example.test", 7000), talk("a.pkg.test", 7000), talk("six.pkg.test", 7000), through("socks5", "a.pkg.test", 7000)[1], talk("bad.pkg.test", 7000), first])
""")
        w.same(got, ["ping"] * 4 + ["ECONNRESET", "SSH-2.0-world\r\n"], f"{proxy}: what is allowed is reached, and nothing private")
        w.same(sorted(asked(w)), sorted([f"{net.SECOND}:7022", f"{net.FIRST}:7000", f"{net.SECOND}:7000", "[2600:aaaa::7]:7000", f"{net.SECOND}:7000"]),
               "the proxy is asked for addresses")
        w.same(outward(w), {(net.PRIVATE, 3128)}, "and nothing else is dialled")
        w.same({e["address"] for e in w.net_events("connect", answer="allow")}, {net.FIRST, net.SECOND, "[2600:aaaa::7]"}, "which are on record")
        w.same({e.get("upstream_proxy") for e in w.events("start")}, {proxy[7:].rstrip("/")}, "and so is the proxy")
        w.forget()
    w.same(w.tell("log")["queries"], [], "nothing was asked for later")


@test("what is private or on this machine does not go through the upstream proxy")
def beside_it(w):
    w.zone("wiki.example.test", "10.8.8.8")
    port, hits = net.host_listener()
    w.serve("echo", 7000)
    w.serve("connect", 3128)
    w.env["WRIT_UPSTREAM_PROXY"] = PROXY
    got = w.inside(["tcp://wiki.example.test:7000 private=10.8.8.0/24", f"localhost:{port}"], f"show([talk('wiki.example.test', 7000), talk('localhost', {port})])")
    w.same(got, ["ping", "host"], "both are reached")
    w.same([asked(w), len(hits)], [[], 1], "without it")


@test("an upstream proxy that says no, is not there, or speaks something else")
def fails(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("a.pkg.test", net.FIRST, net.SECOND)
    w.serve("echo", 7000)
    w.serve("connect", 3128, says={net.FIRST: "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"})
    w.serve("connect", 3129, always="SSH-2.0-not a proxy\r\n\r\n")
    w.serve("connect", 3130, always="HTTP/1.1 200 OK\r\nVia: x\r\n")
    w.serve("connect", 3131, always="HTTP/1.1 200 " + "x" * 20000)
    for port, why in ((3128, "the upstream proxy said 403"), (3129, "the upstream proxy could not be reached"), (3130, "the upstream proxy could not be reached"),
                      (3131, "the upstream proxy could not be reached"), (3199, "the upstream proxy could not be reached")):
        w.env["WRIT_UPSTREAM_PROXY"] = f"http://{net.PRIVATE}:{port}"
        got = w.inside(RULES, "show([talk('api.example.test', 7000, seconds=9), talk('a.pkg.test', 7000, seconds=9)])")
        w.same(got, ["ECONNRESET", "ping" if port == 3128 else "ECONNRESET"], f"{port}: nothing is reached another way; the next address may be")
        e = w.net_events("connect", host="api.example.test")[0]
        w.same((e["answer"], e["why"]), ("allow", why), f"{port}: on record with the reason")
    w.same({a for a in outward(w) if a[0] != net.PRIVATE}, set(), "never directly")


@test("the login of an upstream proxy, and settings that cannot be")
def login(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    w.serve("connect", 3128)
    w.put("login", "agency:pass word:1\n")
    secret = w.ws / "login"
    w.env.update(WRIT_UPSTREAM_PROXY=PROXY, WRIT_UPSTREAM_PROXY_LOGIN=str(secret))
    got = w.inside(RULES, "import os\nshow([talk('api.example.test', 7000), [v for v in os.environ if 'UPSTREAM' in v]])")
    w.same(got, ["ping", []], "it is reached, and nothing of that is inside")
    want = "Basic " + base64.b64encode(b"agency:pass word:1").decode()
    w.same([c["login"] for c in w.accepted(3128)], [want], "with the login")
    for name, value, part in (("WRIT_UPSTREAM_PROXY", "https://proxy.test:3128", "http://HOST:PORT"), ("WRIT_UPSTREAM_PROXY", "http://u:p@proxy.test:3128", "file of its own"),
                              ("WRIT_UPSTREAM_PROXY", "http://proxy.test", "port"), ("WRIT_UPSTREAM_PROXY_LOGIN", "/nowhere/at all", "WRIT_UPSTREAM_PROXY_LOGIN"),
                              ("WRIT_CA_FILE", str(secret), "WRIT_CA_FILE"), ("WRIT_CA_FILE", "/nowhere", "/nowhere")):
        env = dict(w.env)
        w.env[name] = value
        r = w.run("true", opts=w.rules(*RULES))
        w.ok(r.code == 125 and part in r.err.decode(), f"{name}={value}: nothing starts, and it is said", r)
        w.env.clear()
        w.env.update(env)


@test("authorities of the operator's own count for inspected hosts, also through an upstream proxy")
def authorities(w):
    w.zone("api.example.test", net.FIRST)
    w.serve_tls()
    w.serve("connect", 3128)
    rules = ["https://api.example.test/v1/**"]
    ask = """
import os, ssl, urllib.request, urllib.error
def get(path):
    try: return urllib.request.urlopen("https://api.example.test" + path, timeout=9).read().decode()
    except urllib.error.HTTPError as e: return e.code
    except Exception as e: return str(e)
show([get("/v1/a"), get("/v2"), "test authority" in open(os.environ["SSL_CERT_FILE"]).read() or len(ssl.create_default_context().get_ca_certs())])
"""
    got = w.inside(rules, ask)
    w.ok("hello" not in str(got[0]), "a server that nobody vouches for is not spoken to", got)
    w.env["WRIT_CA_FILE"] = str(w.certs / "ca.pem")
    plain = got[2]
    got = w.inside(rules, ask)
    w.same(got[:2], ["hello from the world to api.example.test\n", 403], "with the company's authority it is, and rules hold")
    w.ok(got[2] is True or got[2] == plain + 1, "programs inside know it too", (got, plain))
    w.same({e.get("ca_file") for e in w.events("start")}, {str(w.certs / "ca.pem")}, "which is on record")
    w.forget()
    w.env["WRIT_UPSTREAM_PROXY"] = PROXY
    got = w.inside(rules, ask)
    w.same(got[:2], ["hello from the world to api.example.test\n", 403], "also through the proxy")
    w.same([asked(w), outward(w)], [[f"{net.FIRST}:443"], {(net.PRIVATE, 3128)}], "which was asked for the address")


@test("sessions without a network of their own go through the upstream proxy as well")
def shared(w):
    if w.run("true", opts=["--tier", "B", *w.rules(*RULES)]).code == 122:
        w.ok(True, "not run # SKIP there is no tier B here")
        return
    w.zone("api.example.test", net.FIRST)
    w.serve("echo", 7000)
    w.serve("connect", 3128)
    w.env["WRIT_UPSTREAM_PROXY"] = PROXY
    got = w.python(net.INSIDE + "show(talk('api.example.test', 7000))", opts=["--tier", "B", *w.rules(*RULES)], timeout=60)
    w.same([got, asked(w), outward(w)], ["ping", [f"{net.FIRST}:7000"], {(net.PRIVATE, 3128)}], "as the others do")
