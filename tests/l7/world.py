"""world - everything around writ-l7: a supervisor, an egress process, origins and clients.

The reader of requests gets real sockets and real TLS. Names lead to origins on the
loopback of this machine, each a thread here, so a test sees both ends of a request.
"""
import fcntl
import json
import os
import queue
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "lib"))  # for bounds.py

L7 = os.environ.get("WRIT_L7", "writ-l7")
# Under a sanitizer freed memory is kept for a while, and none is locked.
SANITIZED = b"__asan_init" in open(shutil.which(L7), "rb").read()
HEADER = (Path(__file__).resolve().parents[2] / "src/network/egress/egress.h").read_text()


def number(name, enum="egress_type"):
    """What the header gives a name of an enumeration."""
    body = re.search(r"enum %s \{(.*?)\n\};" % enum, HEADER, re.S).group(1)
    return re.findall(r"^\t([A-Z_]+)", body, re.M).index(name)


ANSWER, GRANT, REVOKE, ASK, EVENT, READY = (number("EGRESS_" + n) for n in
                                            "ANSWER GRANT REVOKE ASK EVENT READY".split())
CLOSE, REQUEST = (number("EGRESS_" + n, "egress_what") for n in ("CLOSE", "REQUEST"))
TAKE, DIAL, DIALLED = 1, 2, 3
# struct egress_event, with the padding in front of its 64-bit members and at its end
EVENT_FORM = "<5I H BBB 7x 5Q 256s 64s 256s H254s 20s 512s 64s 4x"
EVENT_NAMES = ("what answer rule flow status port way proxy reason up down asked dialled lasted host "
               "address dropped cause detail method path credential").split()
READER_FORM = "<IIHBBI256sH254s"
PLACEHOLDER_ID = "00112233445566778899aabbccddeeff"


def causes():
    """The texts of enum cap_cause, by number."""
    table = (Path(__file__).resolve().parents[2] / "src/policy/cap/cause.def").read_text()
    rows = re.findall(r'^CAUSE\((\w+),\s*"(.*?)"\)$', table, re.M)
    return ["NONE"] + [name for name, _ in rows], [""] + [text for _, text in rows]


CAUSES, CAUSE_TEXTS = causes()


def placeholder(name):
    return f"writ-placeholder-{name}-{PLACEHOLDER_ID}"


def text(b):
    return b.split(b"\0")[0].decode()


def rule(url, m="*", q="any", more=""):
    """A grant of requests; more: params that sort behind m, such as ;n=1"""
    return {"rule": 0, "text": f"http.request:local:{url};m={m}{more};q={q}"}


WORLDS = []  # that have to be ended


class Pki:
    """A root that the reader trusts, one it does not, and certificates of both."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="l7-pki."))
        for name in ("root", "stranger"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30",
                         "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.dir, check=True, capture_output=True)

    def leaf(self, name, root="root", days=None):
        out = self.dir / f"{name}.{root}.{days}.both"
        if out.exists():
            return out
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", "k", "-out", "c", "-subj", f"/CN={name}")
        (self.dir / "x").write_text(f"subjectAltName=DNS:{name}\n")
        when = ["-days", "20"] if days is None else ["-days", str(days)]
        self.openssl("x509", "-req", "-in", "c", "-CA", f"{root}.pem", "-CAkey", f"{root}.key",
                     "-CAcreateserial", "-out", "l", "-extfile", "x", *when)
        out.write_bytes((self.dir / "l").read_bytes() + (self.dir / "k").read_bytes())
        return out

    def server(self, name, root="root", days=None, alpn=None):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(self.leaf(name, root, days))
        if alpn:
            ctx.set_alpn_protocols(alpn)
        return ctx


class Origin:
    """A listener whose connections are each served by handler(sock) in a thread."""

    def __init__(self, handler, ctx=None):
        self.handler, self.ctx, self.seen, self.connections = handler, ctx, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.ctx:
                sock = self.ctx.wrap_socket(sock, server_side=True)
            self.handler(self, sock)
        except (OSError, EOFError):
            pass
        finally:
            sock.close()


class Stream:
    """Buffered reading of HTTP/1 from a socket."""

    def __init__(self, sock):
        self.sock, self.rest = sock, b""

    def more(self):
        got = self.sock.recv(65536)
        if not got:
            raise EOFError(self.rest)
        self.rest += got

    def until(self, mark):
        while mark not in self.rest:
            self.more()
        head, self.rest = self.rest.split(mark, 1)
        return head

    def exactly(self, n):
        while len(self.rest) < n:
            self.more()
        got, self.rest = self.rest[:n], self.rest[n:]
        return got

    def chunked(self):
        body = b""
        while True:
            n = int(self.until(b"\r\n"), 16)
            if n == 0:
                trailers = b""
                while (line := self.until(b"\r\n")):
                    trailers += line + b"\n"
                return body, trailers
            body += self.exactly(n)
            assert self.exactly(2) == b"\r\n"

    def message(self, head_only=False):
        """(first line, {name: [values]}, body, trailers)"""
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            fields.setdefault(name.lower(), []).append(value.strip())
        body, trailers = b"", b""
        status = lines[0].split(" ")[1]
        if head_only or status in ("204", "304", "100", "101", "103"):
            pass
        elif "transfer-encoding" in fields:
            body, trailers = self.chunked()
        elif "content-length" in fields:
            body = self.exactly(int(fields["content-length"][0]))
        elif lines[0].startswith("HTTP/"):
            try:
                while True:
                    self.more()
            except EOFError:
                body, self.rest = self.rest, b""
        return lines[0], fields, body, trailers


def answer(status="200 OK", body=b"ok", fields=()):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
    return (head + "".join(f"{f}\r\n" for f in fields) + "\r\n").encode("latin-1") + body


def plain(reply=None):
    """A handler: each request is noted in origin.seen and answered by reply(first, fields, body)."""
    def handler(origin, sock):
        s = Stream(sock)
        while True:
            first, fields, body, trailers = s.message()
            origin.seen.append((first, fields, body, trailers))
            got = reply(first, fields, body) if reply else answer()
            if got is None:
                return
            sock.sendall(got)
    return handler


class World:
    def __init__(self, caps, pki, secrets=(), nots=(), limits=None, rules=("net https://api.test",),
                 expect_start=True):
        self.pki, self.events, self.asks = pki, queue.Queue(), queue.Queue()
        self.places, self.flow, self.all = {}, 0, []
        settings = {"caps": list(caps), "id": PLACEHOLDER_ID, "level": 0,
                    "limits": {"down": 0, "requests": 0, "session": 0, "up": 0, **(limits or {})},
                    "nots": list(nots), "prices": [], "realm": "local",
                    "rules": [{"n": i, "text": r} for i, r in enumerate(rules)],
                    "secrets": [{"name": n, "as": a, "to": t, "value": v.encode("latin-1").hex()}
                                for n, a, t, v in secrets], "session": "7f3a"}
        self.boss, boss = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.egress, egress = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memfd = os.memfd_create("settings", os.MFD_CLOEXEC)
        os.write(memfd, json.dumps(settings).encode())
        roots = os.open(pki.dir / "root.pem", os.O_RDONLY)
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 500) for fd in (boss.fileno(), egress.fileno(), memfd,
                                                               roots)]

        def place():
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.closerange(7, 8)  # no totals are shared

        self.proc = subprocess.Popen([L7], preexec_fn=place, close_fds=False, stderr=subprocess.PIPE,
                                     env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        for fd in (memfd, roots, *high):
            os.close(fd)
        boss.close()
        egress.close()
        self.pem = self.hear_ready()
        if expect_start and not self.pem:
            raise RuntimeError(self.proc.stderr.read().decode())
        if self.pem:
            WORLDS.append(self)
            (pki.dir / "session.pem").write_text(self.pem)
            threading.Thread(target=self.hear_boss, daemon=True).start()
            threading.Thread(target=self.hear_egress, daemon=True).start()

    def hear_ready(self):
        got = self.boss.recv(8192)
        return got[16:].decode() if got and struct.unpack_from("<I", got)[0] == READY else ""

    def hear_boss(self):
        while True:
            try:
                got = self.boss.recv(8192)
            except OSError:
                return
            if not got:
                return
            kind, ident, _, length = struct.unpack_from("<4I", got)
            if kind in (ASK, EVENT) and length != struct.calcsize(EVENT_FORM):
                raise RuntimeError(f"struct egress_event has {length} bytes, EVENT_FORM another size")
            event = dict(zip(EVENT_NAMES, (text(v) if isinstance(v, bytes) else v
                                           for v in struct.unpack_from(EVENT_FORM, got, 16))))
            event["id"] = ident
            event["why"] = CAUSE_TEXTS[event["cause"]].replace("%s", event["detail"])
            self.all.append(event)
            (self.asks if kind == ASK else self.events).put(event)

    def tell(self, kind, ident=0, count=0, what=b""):
        self.boss.send(struct.pack("<4I", kind, ident, count, len(what)) + what)

    def hear_egress(self):
        while True:
            try:
                got = self.egress.recv(4096)
            except OSError:
                return
            if not got:
                return
            _, ident, port, _, _, _, host, _, _ = struct.unpack_from(READER_FORM, got)
            threading.Thread(target=self.dial, args=(ident, text(host), port), daemon=True).start()

    def dial(self, ident, host, port):
        origin = self.places.get((host, port))
        try:
            sock = socket.create_connection(("127.0.0.1", origin.port)) if origin else None
        except OSError:
            sock = None
        m = struct.pack(READER_FORM, DIALLED, ident, 0, 0, 0, 0, b"203.0.113.7" if sock else b"",
                        CAUSES.index("NONE" if sock else "UNREACHED"), b"")
        if sock:
            socket.send_fds(self.egress, [m], [sock.fileno()])
            sock.close()
        else:
            self.egress.send(m)

    def origin(self, host, handler, port=443, tls=True, alpn=None, root="root", days=None, name=None):
        ctx = self.pki.server(name or host, root, days, alpn) if tls else None
        o = self.places[(host, port)] = Origin(handler, ctx)
        return o

    def take(self, host, port=443, tls=True, proxy=False, first=b""):
        """A connection to the reader, as raw bytes."""
        pair = socket.create_server(("127.0.0.1", 0))
        near = socket.create_connection(pair.getsockname())
        far, _ = pair.accept()
        pair.close()
        near.settimeout(20)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.flow += 1
        m = struct.pack(READER_FORM, TAKE, self.flow, port, proxy, tls, len(first), host.encode(), 0, b"")
        socket.send_fds(self.egress, [m + first], [far.fileno()])
        far.close()
        return near

    def tls(self, host, port=443, sni=True, alpn=None, change=None, **kw):
        """A verified TLS connection, as an agent that trusts the session's authority has it."""
        ctx = ssl.create_default_context(cadata=self.pem)
        if alpn:
            ctx.set_alpn_protocols(alpn)
        if sni is not True:
            ctx.check_hostname = False
        if change:
            change(ctx)
        sock = self.take(host, port, **kw)
        return ctx.wrap_socket(sock, server_hostname=host if sni is True else sni)

    def event(self, what=REQUEST, timeout=10):
        """The next event of that kind."""
        end = time.monotonic() + timeout
        while True:
            e = self.events.get(timeout=max(0.01, end - time.monotonic()))
            if e["what"] == what:
                return e

    def ask(self, request, host="api.test", sock=None, head_only=False, **kw):
        """Sends bytes and reads one answer."""
        s = Stream(sock or self.tls(host, **kw))
        s.sock.sendall(request)
        return s.message(head_only)

    def end(self):
        self.boss.shutdown(socket.SHUT_RDWR)
        self.egress.shutdown(socket.SHUT_RDWR)
        code = self.proc.wait(10)
        err = self.proc.stderr.read().decode()
        self.proc.stderr.close()
        self.boss.close()
        self.egress.close()
        for o in self.places.values():
            o.listener.close()
        return code, err


def get(path="/", host="api.test", method="GET", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode("latin-1")
