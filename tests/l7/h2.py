"""h2 - HTTP/2 frames by hand, so that a test can say what no library would.

Blocks of fields go through the system's libnghttp2 (its compressor only); frames,
streams and windows are ours.
"""
import ctypes
import ctypes.util
import struct

LIB = ctypes.CDLL(ctypes.util.find_library("nghttp2") or "libnghttp2.so.14")
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMIT, FINAL = 2, 1


class Nv(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("value", ctypes.c_void_p), ("name_n", ctypes.c_size_t),
                ("value_n", ctypes.c_size_t), ("flags", ctypes.c_uint8)]


class Inflater:
    def __init__(self):
        self.p = ctypes.c_void_p()
        assert LIB.nghttp2_hd_inflate_new(ctypes.byref(self.p)) == 0

    def read(self, block):
        out, at, nv, flags = [], 0, Nv(), ctypes.c_int()
        LIB.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        data = ctypes.create_string_buffer(block, len(block))
        while True:
            flags.value = 0
            n = LIB.nghttp2_hd_inflate_hd2(self.p, ctypes.byref(nv), ctypes.byref(flags),
                                           ctypes.byref(data, at), ctypes.c_size_t(len(block) - at), 1)
            assert n >= 0, n
            at += n
            if flags.value & EMIT:
                out.append((ctypes.string_at(nv.name, nv.name_n).decode("latin-1"),
                            ctypes.string_at(nv.value, nv.value_n).decode("latin-1")))
            if flags.value & FINAL:
                LIB.nghttp2_hd_inflate_end_headers(self.p)
                return out


def literal(name, value):
    """One field, never indexed, with nothing checked."""
    def number(n):
        if n < 127:
            return bytes([n])
        out, n = b"\x7f", n - 127
        while n >= 128:
            out += bytes([n % 128 + 128])
            n //= 128
        return out + bytes([n])
    name, value = (v if isinstance(v, bytes) else v.encode("latin-1") for v in (name, value))
    return b"\0" + number(len(name)) + name + number(len(value)) + value


def block(fields):
    return b"".join(literal(n, v) for n, v in fields)


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request(path="/", method="GET", authority="api.test", more=(), scheme="https"):
    return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]


class Peer:
    """Either end of a connection; reads frames into streams and opens windows as it reads."""

    def __init__(self, sock, server=False, window=True, settings=b""):
        self.sock, self.server, self.window, self.inflater = sock, server, window, Inflater()
        self.rest, self.streams, self.frames, self.next = b"", {}, [], 1
        self.goaway, self.credit, self.stream_credit = None, 65535, {}
        self.initial = 65535
        if server:
            self.exactly(len(PREFACE))
            sock.sendall(frame(SETTINGS, payload=settings))
        else:
            sock.sendall(PREFACE + frame(SETTINGS, payload=settings))

    def exactly(self, n):
        while len(self.rest) < n:
            got = self.sock.recv(65536)
            if not got:
                raise EOFError
            self.rest += got
        got, self.rest = self.rest[:n], self.rest[n:]
        return got

    def stream(self, i):
        return self.streams.setdefault(i, {"fields": [], "blocks": [], "body": b"", "end": False,
                                           "reset": None})

    def step(self):
        """Reads one frame and does what has to be done about it."""
        head = self.exactly(9)
        n = int.from_bytes(head[:3], "big")
        kind, flags, i = struct.unpack(">BBI", head[3:])
        payload = self.exactly(n)
        self.frames.append((kind, flags, i, payload))
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, n, 6):
                key, value = struct.unpack_from(">HI", payload, at)
                if key == 4:
                    self.initial = value
            self.sock.sendall(frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.sock.sendall(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.goaway = struct.unpack_from(">II", payload)[1]
        elif kind == RST:
            self.stream(i)["reset"] = struct.unpack(">I", payload)[0]
        elif kind == WINDOW:
            self.opened(i, struct.unpack(">I", payload)[0])
        elif kind == HEADERS:
            while not flags & END_HEADERS:
                more = self.exactly(9)
                payload += self.exactly(int.from_bytes(more[:3], "big"))
                flags |= more[4]
            fields = self.inflater.read(payload)
            self.stream(i)["blocks"].append(fields)
            self.stream(i)["fields"] += fields
        elif kind == DATA:
            self.stream(i)["body"] += payload
            if self.window and n:
                self.sock.sendall(frame(WINDOW, 0, 0, struct.pack(">I", n)) +
                                  (b"" if flags & END_STREAM else
                                   frame(WINDOW, 0, i, struct.pack(">I", n))))
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.stream(i)["end"] = True
        return kind, flags, i, payload

    def opened(self, i, n):
        if i == 0:
            self.credit += n
        else:
            self.stream_credit[i] = self.stream_credit.get(i, self.initial) + n

    def headers(self, i, fields, end=True):
        self.sock.sendall(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), i, block(fields)))

    def data(self, i, body, end=True):
        """Sends within the windows; waits for them where it must."""
        at = 0
        while at < len(body) or (end and not body):
            mine = self.stream_credit.get(i, self.initial)
            n = min(len(body) - at, 16384, self.credit, mine)
            if n <= 0 and body:
                self.step()
                continue
            last = end and at + n == len(body)
            self.sock.sendall(frame(DATA, END_STREAM if last else 0, i, body[at:at + n]))
            self.credit -= n
            self.stream_credit[i] = mine - n
            at += n
            if last:
                return

    def ask(self, fields, body=None, end=True):
        i, self.next = self.next, self.next + 2
        self.headers(i, fields, body is None and end)
        if body is not None:
            self.data(i, body, end)
        return i

    def wait(self, i):
        s = self.stream(i)
        while not s["end"] and s["reset"] is None and self.goaway in (None, 0):
            self.step()
        return s

    def get(self, fields, body=None):
        """(status, fields, body) of one request."""
        s = self.wait(self.ask(fields, body))
        return dict(s["fields"]).get(":status"), dict(s["fields"]), s["body"]


def serve(reply=None):
    """A handler for an origin: reply(peer, stream number, stream) sends the answer."""
    def handler(origin, sock):
        if sock.selected_alpn_protocol() != "h2":
            raise EOFError
        p, done = Peer(sock, server=True), set()
        while True:
            p.step()
            for i, s in list(p.streams.items()):
                if not s["end"] or i in done or not i % 2:
                    continue
                done.add(i)
                origin.seen.append((dict(s["blocks"][0]), s["body"],
                                    dict(s["blocks"][1]) if len(s["blocks"]) > 1 else {}))
                if reply:
                    reply(p, i, s)
                else:
                    p.headers(i, [(":status", "200"), ("content-type", "text/plain")], end=False)
                    p.data(i, b"h2 " + dict(s["blocks"][0])[":path"].encode())
    return handler
