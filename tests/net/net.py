"""net.py - what the tests of the network boundary share: a host with writ on it, and the world around it."""
import json
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "host"))
import host  # noqa: E402
import space  # noqa: E402
import world as outside  # noqa: E402

TESTS = []
LONG = bool(os.environ.get("WRIT_TEST_LONG"))
FIRST, SECOND, THIRD = "1.2.3.10", "1.2.4.20", "9.8.7.6"  # public ones
PRIVATE = "10.9.9.9"
HOST, HOST6 = space.HERE, space.HERE6


class Test:
    def __init__(self, name, body, bulk, alone, seconds):
        self.name, self.body, self.bulk, self.alone, self.seconds = name, body, bulk, alone, seconds


def test(name, bulk=False, alone=False, seconds=120):
    """@bulk: of TCP only the beginnings of connections are seen; @alone: it needs the machine for itself."""
    def keep(body):
        TESTS.append(Test(f"{body.__module__}: {name}", body, bulk, alone, seconds))
        return body
    return keep


# What scripts inside have: each outcome is a word, the name of an errno if the kernel said no.
INSIDE = r'''
import errno, hashlib, select, socket, ssl, struct, threading, time
DNS = ("198.18.0.1", 53)
PROXY = ("198.18.0.1", 1080)

def word(e):
    if isinstance(e, socket.gaierror): return "no name"
    if isinstance(e, (socket.timeout, TimeoutError)) and not getattr(e, "errno", None): return "timeout"
    if isinstance(e, ssl.SSLEOFError): return "closed"
    if isinstance(e, ssl.SSLError): return "tls: " + str(e.reason)
    return errno.errorcode.get(getattr(e, "errno", 0), repr(e))

def attempt(f, *args, **kw):
    try: return f(*args, **kw)
    except Exception as e: return word(e)

def talk(host, port, data=b"ping", seconds=5, end=False, family=0):
    """What comes back for @data: its text, "" if the other end closes."""
    try:
        with socket.create_connection((host, port), seconds) as s:
            s.sendall(data)
            if end: s.shutdown(socket.SHUT_WR)
            return s.recv(4096).decode("latin1")
    except Exception as e: return word(e)

def pump(s, n=None, h=None):
    """Reads to the end, or @n bytes; how many, and their hash."""
    h, got = hashlib.sha256(), 0
    while n is None or got < n:
        data = s.recv(1 << 18 if n is None else min(1 << 18, n - got))
        if not data: break
        got += len(data)
        h.update(data)
    return got, h.hexdigest()

def name_bytes(name):
    return b"".join(bytes([len(l)]) + l.encode("latin1") for l in name.split(".") if l) + b"\0"

def query(name, kind=1, number=0x1234, flags=0x0100):
    body = name if isinstance(name, bytes) else name_bytes(name)
    return struct.pack("!HHHHHH", number, flags, 1, 0, 0, 0) + body + struct.pack("!HH", kind, 1)

def parse(reply):
    """rcode, number of answers, addresses"""
    if reply is None: return None
    code, count = reply[3] & 15, struct.unpack_from("!H", reply, 6)[0]
    found, at = [], 12
    while at < len(reply) and reply[at]: at += reply[at] + 1
    at += 5
    for _ in range(count):
        if reply[at] & 0xc0: at += 2
        else:
            while reply[at]: at += reply[at] + 1
            at += 1
        kind, _, _, n = struct.unpack_from("!HHIH", reply, at)
        at += 10
        found.append(socket.inet_ntoa(reply[at:at + n]) if kind == 1 else [kind, reply[at:at + n].hex()])
        at += n
    return [code, found]

def ask_raw(data, tcp=False, seconds=2):
    """The reply to a DNS message, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(seconds)
        try:
            s.connect(DNS)
            if not tcp:
                s.send(data)
                return s.recv(65536)
            s.sendall(struct.pack("!H", len(data)) + data)
            head = s.recv(2)
            return s.recv(struct.unpack("!H", head)[0]) if len(head) == 2 else None
        except OSError: return None

def ask(name, kind=1, tcp=False): return parse(ask_raw(query(name, kind), tcp))

def through(kind, host, port, data=b"ping", seconds=5):
    """(what the proxy said, what came back) for a proxy of @kind; @host may be bytes, or (type, bytes) for SOCKS 5."""
    s = socket.create_connection(PROXY, seconds)
    with s:
        try:
            raw = host.encode("latin1") if isinstance(host, str) else host
            if kind == "connect":
                where = raw + b":" + str(port).encode()
                s.sendall(b"CONNECT " + where + b" HTTP/1.1\r\nHost: " + where + b"\r\n\r\n")
                head = b""
                while b"\r\n\r\n" not in head:
                    more = s.recv(4096)
                    if not more: return ["closed", head.decode("latin1")]
                    head += more
                said = head.split()[1].decode()
                if said != "200": return [said, head.decode("latin1")]
            elif kind == "socks5":
                s.sendall(b"\5\1\0")
                if s.recv(2) != b"\5\0": return ["greeting", ""]
                where = bytes([raw[0]]) + raw[1] if isinstance(raw, tuple) else b"\3" + bytes([len(raw)]) + raw
                s.sendall(b"\5\1\0" + where + struct.pack("!H", port))
                reply = s.recv(64)
                if len(reply) < 10: return ["closed", ""]
                said = str(reply[1])
                if said != "0": return [said, ""]
            else:
                where = raw[1] + b"u\0" if isinstance(raw, tuple) else b"\0\0\0\1u\0" + raw + b"\0"
                s.sendall(b"\4\1" + struct.pack("!H", port) + where)
                reply = s.recv(8)
                if len(reply) < 8: return ["closed", ""]
                said = str(reply[1])
                if said != "90": return [said, ""]
            s.sendall(data)
            return [said, s.recv(4096).decode("latin1")]
        except Exception as e: return [word(e), ""]

def tls(host, port=443, name=None, where=None, seconds=5, ca="ca.pem"):
    """The version of TLS if a connection to @host succeeds in which @name is asked for; @name "" is none."""
    try:
        c = ssl.create_default_context(cafile=ca)
        c.check_hostname = False
        with socket.create_connection(where or (host, port), seconds) as s:
            with c.wrap_socket(s, server_hostname=host if name is None else name or None) as t: return t.version()
    except Exception as e: return word(e)

def show(x): print(json.dumps(x))
'''


class Net(host.World):
    """One test: its directories, its two networks, its results."""

    def __init__(self, test, writ, boss, certificates):
        super().__init__(test, writ)
        self.boss, self.lines, self.lock, self.certs = boss, boss.makefile("rb"), threading.Lock(), certificates
        self.env["WRIT_RESOLVER"] = outside.DNS
        self.sanitized = b"__asan_init" in Path(writ).read_bytes()
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            assert name not in self.env

    def start(self, argv, **kw):
        parent = os.getpid()
        kw.setdefault("preexec_fn", lambda: space.die_with_parent(parent))
        return super().start(argv, **kw)

    # --- the world ---

    def tell(self, do, **kw):
        with self.lock:
            self.boss.sendall(json.dumps({"do": do, **kw}).encode() + b"\n")
            answer = json.loads(self.lines.readline())
        if "error" in answer:
            raise AssertionError(f"the world: {do}: {answer['error']}")
        return answer["ok"]

    def zone(self, name, *addresses, **records):
        """What @name means out there; addresses alone are its A and AAAA."""
        if addresses:
            records["A"] = [a for a in addresses if ":" not in a]
            records["AAAA"] = [a for a in addresses if ":" in a]
        self.tell("zone", name=name, records=records)

    def serve(self, kind, port, **options):
        self.tell("serve", kind=kind, port=port, **options)

    def serve_tls(self, port=443, kind="http", **options):
        self.serve(kind, port, cert=str(self.certs / "leaf.pem"), key=str(self.certs / "leaf.key"), **options)
        self.put("ca.pem", (self.certs / "ca.pem").read_text())

    def world(self):
        return self.tell("log")

    def queries(self, part=""):
        return [q for q in self.world()["queries"] if part in q[0].lower()]

    def accepted(self, port=None):
        return [c for c in self.world()["accepted"] if port in (None, c["port"])]

    def packets(self):
        return self.world()["packets"]

    def forget(self):
        self.tell("forget")

    def nothing_left(self, text):
        return self.same(self.packets(), [], text)

    # --- inside ---

    def rules(self, *lines):
        """Options of a run whose workspace may be written and that may go where @lines say."""
        return ["--policy", self.policy("allow write .", *(l if l.startswith(("allow ", "deny ", "ask ", "net ")) else
                                                           f"allow net {l}" for l in lines))]

    def inside(self, rules, script, *args, timeout=60, **kw):
        opts = [] if rules is None else self.rules(*rules)  # None: the policies that lie about
        return self.python(INSIDE + script, *args, opts=opts, timeout=timeout, **kw)

    def started_inside(self, rules, script, *args, **kw):
        """A run that goes on: its process; lines that it prints are read from stdout."""
        return self.start([self.program, "run", *self.rules(*rules), "--", host.PYTHON, "-u", "-c",
                           "import os, sys, json\n" + INSIDE + script, *map(str, args)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    # --- the record ---

    def net_events(self, what=None, **fields):
        """Of the latest session: what it says about the network."""
        return [e for e in self.events("net") if what in (None, e["what"]) and
                all(e.get(k) == v for k, v in fields.items())]


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def helpers_of(pid):
    """Processes of a session's supervisor @pid that deal with the network; the one that relays comes first."""
    name = read(f"/proc/{pid}/comm")
    return sorted(c for c in host.children(pid) if read(f"/proc/{c}/comm") == name and
                  "Seccomp:\t2" in read(f"/proc/{c}/status"))


def host_listener(address="127.0.0.1", answer=b"host", count=64):
    """Somebody who listens on the host itself; returns the port and the list of what came."""
    s = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    got = []

    def serve():
        for _ in range(count):
            try:
                c, _ = s.accept()
            except OSError:
                return
            with c:
                got.append(c.recv(4096))
                c.sendall(answer)
    threading.Thread(target=serve, daemon=True).start()
    return s.getsockname()[1], got


def select_ready(stream, seconds):
    return bool(select.select([stream], [], [], seconds)[0])
