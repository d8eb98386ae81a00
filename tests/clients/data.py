"""Clients of databases: protocols that are not http, by name."""
import glob
import os
import pwd
import shutil
import subprocess

from kit import PYTHON, need, net, settle, test, town

DB, EVIL = "db.example.test", "evil.example.test"


def judge(w, script, port, good):
    """@script tries "HOST PORT" pairs, one line each."""
    places = [(DB, port), (EVIL, port), (DB, port + 1), (net.FIRST, port)]
    argv = [str(x) for place in places for x in place]
    r = w.call(["sh", "-c", script, "sh", *argv], timeout=60)
    w.same(r.text.split(), [good] * 4, "outside it reaches everything", r)
    w.forget()
    r = w.sh(script, "sh", *argv, opts=w.rules(f"tcp://{DB}:{port}"), timeout=60)
    w.same(r.text.split(), [good, "no", "no", "no"], "inside, the name and port, and nothing else", r)
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, port)}, "the world saw nothing else")
    r = w.sh(script, "sh", *argv[:2], opts=w.rules(f"https://{DB}:{port}"), timeout=60)
    w.same(r.text.split(), ["no"], "a rule for https does not let it in: it does not begin with TLS", r)


STAND_IN = r"""
import socketserver, struct, sys, threading
def message(kind, body): return kind + struct.pack("!i", len(body) + 4) + body
class One(socketserver.StreamRequestHandler):
    def body(self): return self.rfile.read(struct.unpack("!i", self.rfile.read(4))[0] - 4)
    def handle(self):
        while self.body()[:4] in (struct.pack("!i", 80877103), struct.pack("!i", 80877104)): self.wfile.write(b"N")
        ready = message(b"Z", b"I")
        self.wfile.write(message(b"R", struct.pack("!i", 0)) + ready)
        while self.rfile.read(1) == b"Q":
            self.body()
            self.wfile.write(message(b"T", struct.pack("!h", 1) + b"n\0" + struct.pack("!ihihih", 0, 0, 23, 4, -1, 0)) +
                             message(b"D", struct.pack("!hi", 1, 2) + b"42") + message(b"C", b"SELECT 1\0") + ready)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("0.0.0.0", int(sys.argv[1])), One).serve_forever()
"""


def start_postgres(w, port):
    """Two servers, real ones where there is one; they do not run as root. Otherwise somebody who speaks as they do."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    for p in (port, port + 1) if not found else ():
        w.tell("spawn", argv=[PYTHON, "-c", STAND_IN, str(p)], port=p, log=str(w.dir / "pg.log"), env={"PATH": w.env["PATH"]})
    if not found:
        return
    data, uid = w.dir / "pg", None
    data.mkdir(mode=0o700)
    if os.geteuid() == 0:
        uid = next((pwd.getpwnam(n).pw_uid for n in ("postgres", "nobody") if n in {p.pw_name for p in pwd.getpwall()}), None)
        os.chown(data, uid, uid)
    who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    subprocess.run([f"{found[-1]}/initdb", "-D", str(data), "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"], check=True, cwd="/",
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": w.env["PATH"], "LC_ALL": "C"}, **who)
    with open(data / "pg_hba.conf", "w") as f:
        f.write("host all all 0.0.0.0/0 trust\n")
    shutil.copytree(data, w.dir / "pg2", copy_function=shutil.copy)
    for folder, p in ((data, port), (w.dir / "pg2", port + 1)):
        if uid is not None:
            subprocess.run(["chown", "-R", str(uid), str(folder)], check=True)
        folder.chmod(0o700)
        w.tell("spawn", argv=[f"{found[-1]}/postgres", "-D", str(folder), "-p", str(p), "-c", "listen_addresses=*", "-c", "unix_socket_directories=",
                              "-c", "fsync=off", "-c", "shared_buffers=1MB"], port=p, log=str(w.dir / "pg.log"), env={"PATH": w.env["PATH"], "LC_ALL": "C"}, uid=uid)


@test("psql", seconds=200)
def psql(w):
    if not need(w, "psql", slow=True):
        return
    w.zone(DB, net.FIRST)
    w.zone(EVIL, net.SECOND)
    start_postgres(w, 5432)
    settle(w)
    judge(w, """while [ $# -gt 0 ]; do
PGCONNECT_TIMEOUT=8 psql -X -At "host=$1 port=$2 user=tester dbname=postgres" -c 'select 6*7' 2>/dev/null || echo no; shift 2; done""", 5432, "42")


@test("redis-cli")
def redis(w):
    # One program under two names; Debian's package of tools has all of it.
    server = shutil.which("redis-server", path=w.env["PATH"]) or shutil.which("redis-check-rdb", path=w.env["PATH"])
    if not need(w, "redis-cli") or not (server or need(w, "redis-server")):
        return
    w.zone(DB, net.FIRST)
    w.zone(EVIL, net.SECOND)
    for port in (6379, 6380):
        w.tell("spawn", argv=["sh", "-c", 'ln -sf "$1" redis-server; shift; exec ./redis-server "$@"', "sh", server, "--port", str(port), "--bind", "0.0.0.0", "--protected-mode",
                              "no", "--save", "", "--appendonly", "no"], port=port, log=str(w.dir / "redis.log"), env={"PATH": w.env["PATH"]})
    settle(w)
    judge(w, """while [ $# -gt 0 ]; do
[ "$(timeout 8 redis-cli -h "$1" -p "$2" set k 42 2>/dev/null)" = OK ] && timeout 8 redis-cli -h "$1" -p "$2" get k || echo no; shift 2; done""", 6379, "42")
