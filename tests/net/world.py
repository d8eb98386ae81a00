"""world.py - everybody out there: a name server, origins of every manner, and somebody who sees each packet.

Runs as a process of its own in its own network and is told what to do over a socket, a line of JSON at a time.
"""
import asyncio
import ctypes
import hashlib
import json
import os
import socket
import ssl
import struct

import space

BLOCK = bytes(range(256)) * 256
QUIET = {130, 131, 132, 133, 134, 135, 136, 137, 143}  # ICMPv6 that interfaces say by themselves
TYPES = {1: "A", 2: "NS", 5: "CNAME", 12: "PTR", 16: "TXT", 28: "AAAA", 65: "HTTPS", 255: "ANY"}
DNS = space.NAMES
LOAD, AND, IS, HEAD, LOAD_BEHIND, RETURN = 0x30, 0x54, 0x15, 0xb1, 0x50, 0x06  # of classic BPF


def pattern(n, seed=0):
    """@n bytes, the same ones each time, in pieces."""
    block = hashlib.sha256(str(seed).encode()).digest() * 2048
    while n > 0:
        yield block[:min(n, len(block))]
        n -= len(block)


def digest(n, seed=0):
    h = hashlib.sha256()
    for piece in pattern(n, seed):
        h.update(piece)
    return h.hexdigest()


# --- packets ---

class Packets:
    """What came over the wire from the host, by kind and where to."""

    def __init__(self, only_first):
        self.seen = {}
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        if only_first:
            self.only_first()
        self.socket.bind(("w0", 3))
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)

    def only_first(self):
        """Of TCP only what begins a connection, so that bulk does not keep us busy."""
        v4 = [(LOAD, 0, 0, 9), (IS, 0, 9, 6), (HEAD, 0, 0, 0), (LOAD_BEHIND, 0, 0, 13), (AND, 0, 0, 0x12), (IS, 5, 6, 2)]
        v6 = [(LOAD, 0, 0, 6), (IS, 0, 3, 6), (LOAD, 0, 0, 53), (AND, 0, 0, 0x12), (IS, 0, 1, 2)]
        code = [(LOAD, 0, 0, 0), (AND, 0, 0, 0xf0), (IS, 0, len(v4), 0x40), *v4, *v6, (RETURN, 0, 0, 0xffff),
                (RETURN, 0, 0, 0)]
        raw = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *c) for c in code))
        prog = struct.pack("HP", len(code), ctypes.addressof(raw))
        self.socket.setsockopt(socket.SOL_SOCKET, 26, prog)

    def read(self):
        try:
            while True:
                data, where = self.socket.recvfrom(128)
                if where[2] != socket.PACKET_OUTGOING:
                    self.note(where[1], data)
        except BlockingIOError:
            pass

    def note(self, ether, data):
        proto, to, port = ether, "", 0
        if ether == 0x0800:
            proto, to, rest = data[9], socket.inet_ntop(socket.AF_INET, data[16:20]), data[(data[0] & 15) * 4:]
        elif ether == 0x86dd:
            proto, to, rest = data[6], socket.inet_ntop(socket.AF_INET6, data[24:40]), data[40:]
            if proto == 0 and len(data) > 48:  # hop-by-hop options, as those have who join groups
                proto, rest = data[40], data[48:]
            if proto == 58 and rest and rest[0] in QUIET:
                return
        elif ether == 0x0806:
            return
        else:
            rest = b""
        if proto in (6, 17) and len(rest) >= 4:
            port = struct.unpack_from("!H", rest, 2)[0]
        name = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp6", 2: "igmp"}.get(proto, str(proto))
        if name != "igmp":
            self.seen[name, to, port] = self.seen.get((name, to, port), 0) + 1


# --- names ---

def read_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin1"))
        at += data[at] + 1
    return ".".join(labels), at + 1


def put_name(name):
    return b"".join(bytes([len(l)]) + l.encode("latin1") for l in name.split(".") if l) + b"\0"


class Names(asyncio.DatagramProtocol):
    """An authority for everything. A name that nobody told it about does not exist."""

    def __init__(self):
        self.zone, self.queries, self.turn, self.out = {}, [], {}, None

    def connection_made(self, transport):
        self.out = transport

    def datagram_received(self, data, peer):
        reply = self.answer(data, "udp")
        if reply:
            self.out.sendto(reply, peer)

    async def stream(self, reader, writer):
        try:
            while True:
                n = struct.unpack("!H", await reader.readexactly(2))[0]
                reply = self.answer(await reader.readexactly(n), "tcp")
                if reply:
                    writer.write(struct.pack("!H", len(reply)) + reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def records(self, name, kind, depth=0):
        """(rcode, [(owner, type, ttl, data)])"""
        entry = self.zone.get(name.lower())
        if entry is None or depth > 12:
            return (3 if depth == 0 else 0), []
        ttl = entry.get("ttl", 60)
        if "CNAME" in entry:
            code, more = self.records(entry["CNAME"], kind, depth + 1)
            return code, [(name, 5, ttl, put_name(entry["CNAME"]))] + more
        addresses = entry.get(kind, [])
        if kind == "A" and "turns" in entry:
            i = self.turn[name] = self.turn.get(name, -1) + 1
            addresses = entry["turns"][min(i, len(entry["turns"]) - 1)]
        number = 28 if kind == "AAAA" else 1
        return entry.get("rcode", 0), [
            (name, number, ttl, socket.inet_pton(socket.AF_INET6 if number == 28 else socket.AF_INET, a))
            for a in addresses if kind in ("A", "AAAA")]

    def answer(self, data, how):
        if len(data) < 12:
            return None
        name, end = read_name(data, 12)
        kind = TYPES.get(struct.unpack_from("!H", data, end)[0], "?")
        self.queries.append([name, kind, how])
        if kind in self.zone.get(name.lower(), {}).get("silent", []):
            return None
        code, found = self.records(name, kind)
        body = b"".join(put_name(o) + struct.pack("!HHIH", t, 1, ttl, len(d)) + d for o, t, ttl, d in found)
        flags, count = 0x8580 | code, len(found)
        if how == "udp" and end + 4 + len(body) > 512:
            flags, count, body = flags | 0x200, 0, b""
        return data[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + data[12:end + 4] + body


# --- origins ---

class Origin:
    """A server on every address at one port. Its connections are on record: where they came to, and what came."""

    def __init__(self, world, kind, port, options):
        self.world, self.kind, self.port, self.options = world, kind, port, options

    async def start(self):
        tls = None
        if self.options.get("cert"):
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.options["cert"], self.options["key"])
        sockets = []
        for family, any_ in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            s = socket.socket(family, socket.SOCK_STREAM)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.options.get("small"):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            if self.options.get("pace"):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            s.bind((any_, self.port))
            s.listen(4096)
            sockets.append(s)
        if self.kind == "deaf":  # the kernel accepts, nobody else does
            self.world.kept += sockets
            return
        for s in sockets:
            await asyncio.start_server(self.serve, sock=s, ssl=tls, limit=1 << (15 if self.options.get("pace") else 18))

    async def serve(self, reader, writer):
        raw = writer.get_extra_info("socket")
        me, peer = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        log = {"kind": self.kind, "to": me[0], "port": me[1], "from": peer[0], "got": 0, "first": "", "end": None}
        self.world.accepted.append(log)
        try:
            await getattr(self, self.kind)(Counted(reader, log, self.options.get("pace", 0)), writer, log, raw)
            log["end"] = log["end"] or "done"
        except (ConnectionError, BrokenPipeError) as e:
            log["end"] = "reset" if isinstance(e, ConnectionResetError) else type(e).__name__
        except (asyncio.IncompleteReadError, ssl.SSLError, OSError) as e:
            log["end"] = type(e).__name__
        except asyncio.CancelledError:  # the world ends while somebody slow still reads
            pass
        finally:
            try:
                writer.close()
            except OSError:
                pass

    async def echo(self, reader, writer, log, raw):
        while data := await reader.read():
            writer.write(data)
            await writer.drain()
        log["end"] = "eof"

    async def banner(self, reader, writer, log, raw):
        writer.write(self.options.get("text", "SSH-2.0-world\r\n").encode())
        await self.echo(reader, writer, log, raw)

    async def connect(self, reader, writer, log, raw):
        """A proxy that a company runs."""
        log["asked"], fields = (await reader.line()).decode("latin1").split()[1], {}
        while (field := (await reader.line()).strip()):
            key, _, value = field.decode("latin1").partition(":")
            fields[key.lower()] = value.strip()
        log["login"] = fields.get("proxy-authorization")
        where, _, port = log["asked"].rpartition(":")
        says = self.options.get("says", {}).get(where, self.options.get("always"))
        if says:
            writer.write(says.encode())
            return
        far, to = await asyncio.open_connection(where.strip("[]"), int(port))
        try:
            first = await asyncio.wait_for(far.read(65536), 0.2)
        except asyncio.TimeoutError:
            first = b""
        head = b"HTTP/1.1 200 Connection established\r\nVia: somebody\r\n\r\n"
        if self.options.get("slow"):
            for b in head[:-1]:
                writer.write(bytes([b]))
                await writer.drain()
                await asyncio.sleep(0.002)
            head = head[-1:]
        writer.write(head + first)  # the other end's first bytes come with ours

        async def pump(read, out):
            while data := await read():
                out.write(data)
                await out.drain()
            out.write_eof()
        await asyncio.gather(pump(reader.read, to), pump(lambda: far.read(1 << 16), writer))
        to.close()
        log["end"] = "eof"

    async def sshd(self, reader, writer, log, raw):
        """A real one, for who runs the tests."""
        run = ["/usr/sbin/sshd", "-i", "-e", "-f", self.options["config"]]
        if os.geteuid() == 0:  # it wants a place of its own, which need not be the machine's
            run = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"', "sh", *run]
        with open(self.options["config"] + ".log", "ab") as said:
            p = await asyncio.create_subprocess_exec(*run, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=said)

        async def up():
            while data := await reader.read():
                p.stdin.write(data)
                await p.stdin.drain()
            p.stdin.close()
        task = asyncio.ensure_future(up())
        while data := await p.stdout.read(1 << 16):
            writer.write(data)
            await writer.drain()
        task.cancel()
        log["end"] = "eof"

    async def sink(self, reader, writer, log, raw):
        await asyncio.sleep(self.options.get("wait", 0))
        h = hashlib.sha256()
        while data := await reader.read():
            h.update(data)
        log["sha"], log["end"] = h.hexdigest(), "eof"
        writer.write(f"{h.hexdigest()} {log['got']}\n".encode())
        await writer.drain()

    async def source(self, reader, writer, log, raw):
        n, seed = (int(v) for v in (await reader.line()).split())
        for piece in pattern(n, seed):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        while await reader.read():
            pass
        log["end"] = "eof"

    async def duplex(self, reader, writer, log, raw):
        """Sends what was asked for and hashes what comes, both at once."""
        n, seed = (int(v) for v in (await reader.line()).split())
        h = hashlib.sha256()

        async def up():
            while data := await reader.read():
                h.update(data)
        task = asyncio.ensure_future(up())
        for piece in pattern(n, seed):
            writer.write(piece)
            await writer.drain()
        await task
        writer.write(h.hexdigest().encode())
        await writer.drain()
        log["sha"], log["end"] = h.hexdigest(), "eof"

    async def says_bye(self, reader, writer, log, raw):
        """Ends its side first and goes on listening."""
        writer.write(b"bye")
        writer.write_eof()
        await self.sink_quietly(reader, log)

    async def sink_quietly(self, reader, log):
        h = hashlib.sha256()
        while data := await reader.read():
            h.update(data)
        log["sha"], log["end"] = h.hexdigest(), "eof"

    async def resets(self, reader, writer, log, raw):
        """A reset once something has come."""
        await reader.read()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def hold(self, reader, writer, log, raw):
        self.world.holding += 1
        try:
            await self.sink_quietly(reader, log)
        finally:
            self.world.holding -= 1

    async def flood(self, reader, writer, log, raw):
        """Sends as fast as it can."""
        while True:
            writer.write(BLOCK)
            await writer.drain()

    async def upload(self, reader, writer, log, raw):
        """Requests with a body of a length that was said, each hashed and answered."""
        while line := (await reader.line()).decode("latin1").split():
            length = 0
            while (field := (await reader.line()).strip().lower()):
                if field.startswith(b"content-length:"):
                    length = int(field.split(b":")[1])
            h, got = hashlib.sha256(), 0
            while got < length and (data := await reader.read()):
                h.update(data)
                got += len(data)
            log.setdefault("bodies", []).append([line[0], line[1], got, h.hexdigest()])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()

    async def http(self, reader, writer, log, raw):
        while True:
            line = (await reader.line()).decode("latin1").split()
            if len(line) != 3:
                return
            fields = {}
            while (field := (await reader.line()).strip()):
                key, _, value = field.decode("latin1").partition(":")
                fields[key.lower()] = value.strip()
            log.setdefault("requests", []).append([line[0], line[1], fields.get("host")])
            status, extra, body = self.page(line[1], fields)
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body)
            await writer.drain()

    def page(self, target, fields):
        path = target.split("?")[0]
        if "://" in path:
            path = "/" + path.split("/", 3)[3]
        if path == "/redirect":
            return "302 Found", f"Location: {target.partition('?')[2]}\r\n", b""
        folder = self.options.get("files")
        if folder:
            name = os.path.normpath(folder + path)
            if name.startswith(folder) and os.path.isfile(name):
                with open(name, "rb") as f:
                    return "200 OK", "", f.read()
            return "404 Not Found", "", b""
        return "200 OK", "", f"hello from the world to {fields.get('host')}\n".encode()


class Counted:
    """A reader that keeps count of what came, and how it began."""

    def __init__(self, reader, log, pace):
        self.reader, self.log, self.pace = reader, log, pace

    async def read(self):
        if self.pace:  # somebody slow
            await asyncio.sleep(self.pace)
        data = await self.reader.read(1 << (15 if self.pace else 18))
        self.note(data)
        return data

    async def line(self):
        data = await self.reader.readuntil(b"\n")
        self.note(data)
        return data

    def note(self, data):
        if len(self.log["first"]) < 128:
            self.log["first"] += data[:64].hex()
        self.log["got"] += len(data)


# --- orders ---

class World:
    def __init__(self, only_first):
        self.names, self.packets, self.accepted, self.kept, self.holding = Names(), Packets(only_first), [], [], 0

    async def zone(self, name, records):
        self.names.zone[name] = records

    async def serve(self, kind, port, **options):
        await Origin(self, kind, port, options).start()

    async def log(self):
        self.packets.read()
        return {"queries": self.names.queries, "accepted": self.accepted, "holding": self.holding,
                "packets": [[*k, n] for k, n in sorted(self.packets.seen.items())]}

    async def forget(self):
        self.packets.read()
        self.names.queries, self.accepted = [], []
        self.packets.seen.clear()

    async def main(self, boss):
        loop = asyncio.get_running_loop()
        loop.add_reader(self.packets.socket, self.packets.read)
        await loop.create_datagram_endpoint(lambda: self.names, local_addr=(DNS, 53))
        await asyncio.start_server(self.names.stream, DNS, 53)
        reader, writer = await asyncio.open_unix_connection(sock=boss, limit=1 << 26)
        writer.write(b"r")
        while line := await reader.readline():
            order = json.loads(line)
            try:
                result = {"ok": await getattr(self, order.pop("do"))(**order)}
            except Exception as e:
                result = {"error": repr(e)}
            writer.write(json.dumps(result).encode() + b"\n")
            await writer.drain()


def main(boss, only_first=False):
    try:
        import resource
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        pass
    asyncio.run(World(only_first).main(boss))
