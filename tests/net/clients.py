"""Programs that people use, told of no proxy, reach what is allowed."""
import shutil

import net
from net import test

HTTPS = "https://web.example.test"


def need(w, program):
    """True if it is here; otherwise that is all there is to say."""
    if shutil.which(program, path=w.env["PATH"]):
        return True
    return not w.ok(True, f"not run # SKIP there is no {program}")


@test("curl, plainly and through each kind of proxy")
def curl(w):
    if not need(w, "curl"):
        return
    w.zone("web.example.test", net.FIRST)
    w.zone("evil.example.test", net.SECOND)
    w.serve_tls(443)
    rules = w.rules(HTTPS)
    get = ["curl", "-sS", "--max-time", "10", "--cacert", "ca.pem", "-o", "/dev/null", "-w", "%{http_code} %{remote_ip} %{ssl_verify_result}"]
    r = w.run(*get, "https://web.example.test/x", opts=rules)
    w.ok(r.code == 0 and r.text.startswith("200 198.18.") and r.text.endswith(" 0"), "no proxy: 200, and the server's own certificate is good", r)
    for proxy in ("http://proxy.writ:1080", "socks5h://proxy.writ:1080", "socks4a://198.18.0.1:1080", "socks5://proxy.writ:1080"):
        r = w.run(*get, "-x", proxy, "https://web.example.test/x", opts=rules)
        w.ok(r.code == 0 and r.text.startswith("200 "), f"{proxy.split(':')[0]}: 200", r)
    r = w.run(*get, "https://evil.example.test/", opts=rules)
    w.same(r.code, 6, "another host: it cannot be resolved", r)
    r = w.run(*get, "-x", "http://proxy.writ:1080", "https://evil.example.test/", opts=rules)
    w.ok(r.code == 56 and "403" in r.said, "through the proxy: 403", r)
    r = w.run(*get, "--connect-to", "::evil.example.test:443", "https://web.example.test/", opts=rules)
    w.same(r.code, 6, "another host under the allowed name", r)
    r = w.run(*get, "--connect-to", "::web.example.test:443", "https://evil.example.test/", opts=rules)
    w.same(r.code, 35, "another name to the allowed host", r)
    w.same({c["to"] for c in w.accepted()}, {net.FIRST}, "the world saw only the allowed one")


@test("ssh hears a banner")
def ssh(w):
    w.zone("web.example.test", net.FIRST)
    w.serve("banner", 22)
    rules = w.rules("tcp://web.example.test:22")
    if need(w, "ssh"):
        r = w.sh("ssh -v -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=5 -o UserKnownHostsFile=/dev/null web.example.test true", opts=rules, timeout=30)
        w.ok("remote software version world" in r.said, "ssh hears its server", r)


@test("Node: names, sockets and fetch")
def node(w):
    if not need(w, "node"):
        return
    w.zone("web.example.test", net.FIRST)
    w.zone("raw.example.test", net.SECOND)
    w.serve_tls(443)
    w.serve("banner", 7000)
    script = """
const dns = require('dns').promises, net = require('net');
const talk = (host, port) => new Promise(done => { const s = net.connect(port, host, () => {}); s.on('data', d => { done(d.toString()); s.destroy(); }); s.on('error', e => done(e.code)); });
(async () => {
  const out = {};
  out.resolve4 = await dns.resolve4('web.example.test').catch(e => e.code);
  out.lookup = (await dns.lookup('web.example.test').catch(e => ({address: e.code}))).address;
  out.evil = await dns.resolve4('evil.test').catch(e => e.code);
  out.fetch = await fetch('https://web.example.test/').then(r => r.status).catch(e => String(e.cause || e));
  out.raw = await talk('raw.example.test', 7000);
  out.address = await talk('1.2.3.10', 7000);
  console.log(JSON.stringify(out)); process.exit(0);
})();
"""
    r = w.sh("NODE_EXTRA_CA_CERTS=ca.pem exec node -e \"$1\"", "sh", script, opts=w.rules(HTTPS, "tcp://raw.example.test:7000"), timeout=60)
    try:
        got = net.json.loads(r.out)
    except ValueError:
        return w.ok(False, "it ran", r)
    w.ok(got["resolve4"] == [got["lookup"]] and got["lookup"].startswith("198.18."), "names, both ways", got)
    w.same([got["fetch"], got["raw"]], [200, "SSH-2.0-world\r\n"], "fetch and a bare socket", got)
    w.ok(got["evil"] == "ENOTFOUND" and got["address"] == "ENETUNREACH", "and nothing else", got)


@test("Python: urllib, asyncio and threads")
def python(w):
    w.zone("web.example.test", net.FIRST)
    w.serve_tls(443)
    got = w.inside([HTTPS], """
import asyncio, urllib.request
c = ssl.create_default_context(cafile="ca.pem")
def one(): return urllib.request.urlopen("https://web.example.test/", context=c, timeout=10).status
async def two():
    r, w = await asyncio.open_connection("web.example.test", 443, ssl=c)
    w.write(b"GET / HTTP/1.1\\r\\nHost: web.example.test\\r\\n\\r\\n")
    line = await r.readline()
    w.close()
    return line.split()[1].decode()
out = []
threads = [threading.Thread(target=lambda: out.append(attempt(one))) for _ in range(20)]
[t.start() for t in threads], [t.join() for t in threads]
show([one(), asyncio.run(two()), out])
""")
    w.same(got, [200, "200", [200] * 20], "each of them")
