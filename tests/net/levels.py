"""net level: what passes unread, and what does not."""
import json

import net
from net import test

GET = """
import urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url, timeout=9).status
    except urllib.error.HTTPError as e: return e.code
    except Exception as e: return str(e)
"""


@test("hosts and hosts+dns: a host is a tunnel, names are answered from the policy")
def hosts(w):
    w.zone("api.example.test", net.FIRST)
    w.serve_tls()
    for level in ("hosts", "hosts+dns"):
        got = w.inside([f"net level {level}", "https://api.example.test"], "show([tls('api.example.test'), ask('evil.test')])")
        w.same(got, ["TLSv1.3", [3, []]], f"{level}: TLS of its own, and no other name")
        w.same([e["way"] for e in w.net_events("connect")], ["tls"], f"{level}: not read")
    w.same(w.queries("evil"), [], "nobody else was asked")


@test("signed: nothing passes unread, each request is on record")
def signed(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("raw.example.test", net.SECOND)
    w.serve_tls()
    w.serve("echo", 7000)
    w.env["WRIT_CA_FILE"] = str(w.certs / "ca.pem")
    got = w.inside(["net level signed", "https://api.example.test"], GET + """
show([get("https://api.example.test/a/b"), get("https://api.example.test/c?d"), through("connect", "api.example.test", 443, b"SSH-2.0-x\\r\\n"),
      talk("api.example.test", 443, b"not TLS at all"), tls("api.example.test")])
""")
    w.same(got[:2], [200, 200], "requests go through, without a rule about paths")
    w.ok("world" not in str(got[2:4]), "other bytes do not", got)
    w.ok(got[4] not in ("TLSv1.3", "TLSv1.2"), "and nobody but writ vouches for the host inside", got)
    w.same([(e["method"], e["path"], e["status"]) for e in w.net_events("request", answer="allow")], [("GET", "/a/b", 200), ("GET", "/c", 200)],
           "each request is on record, without its query")
    w.same({e["way"] for e in w.net_events() if "way" in e}, {"read"}, "and no tunnel")
    for rule in ("tcp://raw.example.test:7000", "raw.example.test:7000", "https://raw.example.test tls=passthrough", "localhost:7000"):
        r = w.run("true", opts=w.rules("net level signed", "https://api.example.test", rule))
        w.ok(r.code == 122 and "signed" in r.said, f"{rule}: not at this level", r)


@test("signed: nothing can be granted live that is not read")
def signed_live(w):
    w.zone("api.example.test", net.FIRST)
    w.zone("raw.example.test", net.SECOND)
    w.serve_tls()
    w.serve("echo", 7000)
    w.env["WRIT_CA_FILE"] = str(w.certs / "ca.pem")
    p = w.started_inside(["net level signed", "https://api.example.test"], GET + """
print("ready", flush=True)
sys.stdin.readline()
show([talk("raw.example.test", 7000), get("https://raw.example.test/x")])
""")
    p.stdout.readline()
    session = net.host.wait_for(w.ids)
    session = next(iter(session))
    r = w.writ("allow", session, "net:tcp://raw.example.test:7000")
    w.ok(r.code != 0, "a raw tunnel is refused", r)
    r = w.writ("allow", session, "net:https://raw.example.test")
    w.exits(r, 0, "a host is not")
    p.stdin.write(b"\n")
    p.stdin.flush()
    got = json.loads(p.stdout.readline())
    w.ok(got[0] != "ping" and got[1] == 200, "the one is not reached, the other is", got)
    p.wait(20)
    w.same([(e["host"], e["path"]) for e in w.net_events("request", answer="allow")], [("raw.example.test", "/x")], "and read")
