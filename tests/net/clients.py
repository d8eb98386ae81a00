"""Programs that people use, told of no proxy, reach what is allowed."""
import shutil
import subprocess

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


@test("git clones over https, and ssh hears the banner")
def git(w):
    work, bare = w.dir / "origin", w.dir / "files/repo.git"
    run = lambda *a, cwd=None: subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *a], cwd=cwd, check=True, env=w.env, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL)
    run("init", "-q", "-b", "main", str(work))
    (work / "hello").write_text("hello\n" * 1000)
    run("add", "."  , cwd=work)
    run("commit", "-qm", "one", cwd=work)
    run("clone", "-q", "--bare", str(work), str(bare))
    run("update-server-info", cwd=bare)
    w.zone("web.example.test", net.FIRST)
    w.serve_tls(443, files=str(w.dir / "files"))
    w.serve("banner", 22)
    rules = w.rules(HTTPS, "tcp://web.example.test:22")
    r = w.sh("GIT_SSL_CAINFO=$PWD/ca.pem git clone -q https://web.example.test/repo.git copy && wc -l < copy/hello", opts=rules, timeout=60)
    w.same(r.text.strip(), "1000", "a whole repository", r)
    r = w.sh("GIT_SSL_CAINFO=$PWD/ca.pem git ls-remote https://evil.example.test/repo.git", opts=rules, timeout=60)
    w.ok(r.code != 0 and "resolve" in r.said, "but not from elsewhere", r)
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


@test("psql finds its server by name")
def psql(w):
    if not need(w, "psql"):
        return
    w.zone("db.example.test", net.FIRST)
    w.serve("hold", 5432)
    w.sh("PGCONNECT_TIMEOUT=2 timeout 5 psql 'host=db.example.test port=5432 user=probe dbname=x sslmode=disable' -c 'select 1'", opts=w.rules("tcp://db.example.test:5432"))
    first = [bytes.fromhex(c["first"]) for c in w.accepted(5432)]
    w.ok(first and b"probe" in first[0], "and greets it", first)


@test("a static Go program with its own resolver", seconds=300)
def go(w):
    program = shutil.which("go", path=w.env["PATH"] + ":/usr/local/go/bin")
    if not program or not net.LONG:
        return w.ok(True, "not run # SKIP " + ("only in the long run" if program else "there is no go"))
    w.zone("raw.example.test", net.FIRST)
    w.serve("echo", 7000)
    (w.dir / "main.go").write_text('''package main
import ("fmt"; "net"; "io")
func main() {
	for _, a := range []string{"raw.example.test:7000", "evil.test:7000"} {
		c, err := net.Dial("tcp", a)
		if err != nil { fmt.Println("no"); continue }
		c.Write([]byte("ping"))
		b := make([]byte, 4)
		io.ReadFull(c, b)
		fmt.Println(string(b))
	}
}
''')
    env = {**w.env, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(w.dir / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    subprocess.run([program, "build", "-o", str(w.ws / "prog"), str(w.dir / "main.go")], check=True, env=env, cwd=w.dir)
    r = w.run("./prog", opts=w.rules("tcp://raw.example.test:7000", "allow exec ./prog"))
    if r.code != 0:
        r = w.run("./prog", opts=w.rules("tcp://raw.example.test:7000"))
    w.same(r.text.split(), ["ping", "no"], "reaches what is allowed and nothing else", r)
