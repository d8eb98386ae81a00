"""mcp_server.py - profile mcp-server: a tool server spoken to over pipes."""
import json
import os
import select
import subprocess
import time

from kit import PYTHON, files, skip, test, tool
from bounds import within

SERVER = """\
    import json, os, sys

    def call(name, a):
        if name == "read":
            return open(a["path"]).read()
        if name == "write":
            open(a["path"], "w").write(a["text"])
            return "written"
        if name == "where":
            return {"cwd": os.getcwd(), "pid": os.getpid()}
        raise ValueError(name)

    for line in sys.stdin:
        q = json.loads(line)
        if "id" not in q:
            continue
        try:
            if q["method"] == "initialize":
                out = {"protocolVersion": q["params"]["protocolVersion"], "serverInfo": {"name": "t", "version": "1"},
                       "capabilities": {"tools": {}}}
            elif q["method"] == "tools/list":
                out = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("read", "write", "where")]}
            else:
                out = {"content": call(q["params"]["name"], q["params"]["arguments"])}
            answer = {"jsonrpc": "2.0", "id": q["id"], "result": out}
        except Exception as e:
            answer = {"jsonrpc": "2.0", "id": q["id"], "error": {"code": -32000, "message": type(e).__name__}}
        print(json.dumps(answer), flush=True)
    """


class Client:
    def __init__(self, w, opts=(), command=None):
        self.proc = w.start([w.program, "run", "--profile", "mcp-server", *opts, "--", *(command or [PYTHON, "server.py"])],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.id = 0

    def line(self, seconds=20):
        data = b""
        while not data.endswith(b"\n"):
            if not select.select([self.proc.stdout], [], [], seconds)[0]:
                raise AssertionError(f"no answer, only {data!r}")
            more = os.read(self.proc.stdout.fileno(), 1 << 16)
            if not more:
                raise AssertionError(f"it ended: {data!r} {self.proc.stderr.read()!r}")
            data += more
        return json.loads(data)

    def ask(self, method, **params):
        self.id += 1
        q = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        self.proc.stdin.write(json.dumps(q).encode() + b"\n")
        self.proc.stdin.flush()
        answer = self.line()
        if answer["id"] != self.id:
            raise AssertionError(f"asked {self.id}, answered {answer}")
        return answer.get("result", answer.get("error"))

    def tool(self, name, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)

    def end(self):
        self.proc.stdin.close()
        self.proc.stdin = None
        return self.proc.wait(20)


@test("requests and answers over pipes")
def rpc(w):
    files(w.ws, {"server.py": SERVER, "note.txt": "a note\n"})
    c = Client(w)
    w.same(c.ask("initialize", protocolVersion="2025-06-18")["serverInfo"]["name"], "t", "it introduces itself")
    w.same([t["name"] for t in c.ask("tools/list")["tools"]], ["read", "write", "where"], "it lists its tools")
    w.same(c.tool("read", path="note.txt"), {"content": "a note\n"}, "it reads the workspace")
    w.ok(c.tool("write", path="note.txt", text="x").get("message") in ("PermissionError", "OSError"), "it cannot write the workspace")
    w.same(c.tool("write", path="/var/agent/state/mcp/m", text="kept"), {"content": "written"}, "it writes its state")
    w.ok("message" in c.tool("read", path="/etc/shadow"), "it cannot read the machine's secrets")
    start, many = time.monotonic(), 200
    for _ in range(many):
        c.tool("where")
    w.ok(within(time.monotonic() - start, 10), f"{many} requests take {time.monotonic() - start:.2f} s", "slower than 20 a second")
    big = "x" * 3_000_000
    w.same(c.tool("write", path="/tmp/big", text=big), {"content": "written"}, "a request of megabytes gets through")
    w.same(len(c.tool("read", path="/tmp/big")["content"]), len(big), "and so does an answer")
    w.same(c.end(), 0, "it ends when its input does")
    w.same((w.ws / "note.txt").read_text(), "a note\n", "the workspace is as it was")
    c = Client(w)
    w.same(c.tool("read", path="/var/agent/state/mcp/m"), {"content": "kept"}, "the next session has its state")
    w.same(c.end(), 0, "it ends again")
    w.clean()


@test("a server that nobody speaks to ends")
def idle(w):
    files(w.ws, {"server.py": SERVER})
    c = Client(w, ["--limit", "idle=3s"])
    for _ in range(8):  # longer than the limit, but never idle that long
        c.tool("where")
        time.sleep(0.6)
    w.ok(c.proc.poll() is None, "as long as it is spoken to it stays")
    start = time.monotonic()
    code = c.proc.wait(20)
    w.same(code, 124, "then the limit ends it")
    w.ok(1.5 < time.monotonic() - start and within(time.monotonic() - start, 10), "after about that time", time.monotonic() - start)
    w.clean(seconds=5)


@test("its own limits stand without being asked for")
def limits(w):
    r = w.call([w.program, "explain", "--json", "--profile", "mcp-server"])
    w.ok(r.code == 0, "the profile can be explained", r)
    r = w.call([w.program, "caps", "--profile", "mcp-server"])
    text = r.text
    w.ok("idle" in text and "3600" in text, "an hour without a sign of life", r)
    files(w.ws, {"fork.py": """\
        import os, sys, time
        n = 0
        try:
            while n < 1000:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                n += 1
        except OSError as e:
            pass
        print(n)
        sys.stdout.flush()
        os.kill(-1, 9)
        """})
    r = w.run(PYTHON, "fork.py", opts=["--profile", "mcp-server"], timeout=60)
    n = int(r.text.split()[0]) if r.text.split() else -1
    w.ok(100 < n <= 256, "at most 256 processes", f"{n} {r}")


@test("a server written for node")
def node(w):
    if not tool(w, "node"):
        skip(w, "node is not installed")
        return
    files(w.ws, {"server.js": """\
        const http = require('node:http');
        const lines = require('node:readline').createInterface({ input: process.stdin });
        lines.on('line', async (line) => {
          const q = JSON.parse(line);
          const server = http.createServer((_, a) => a.end('fetched'));
          await new Promise((go) => server.listen(0, '127.0.0.1', go));
          const text = await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text();
          server.close();
          server.closeAllConnections();
          console.log(JSON.stringify({ jsonrpc: '2.0', id: q.id, result: { text } }));
        });
        """})
    c = Client(w, command=["node", "server.js"])
    w.same(c.ask("tools/call", name="x"), {"text": "fetched"}, "it answers, with fetch")
    w.same(c.end(), 0, "it ends")
