"""manager.py - plays the systemd of a user for one run of writ, in a mount namespace of its own.

    unshare -m manager.py MODE RUNTIME_DIR COMMAND...

Speaks D-Bus on RUNTIME_DIR/systemd/private, makes a real cgroup for a scope and moves the process there. The limits
are files that are laid over it, because the machines that run this have no controllers left to hand out. Prints as JSON
what it was asked for, and how the command ended.

MODE: good; without (the limits are left out without a word); refuse; silent; elsewhere (the process is not moved);
stranger (another user listens).
"""
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

CGROUPS = [l.split()[4] for l in open("/proc/self/mountinfo") if " - cgroup2 " in l]


class Reader:
    """Values of the wire format, little endian."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def align(self, n):
        self.at += -self.at % n

    def number(self, form):
        n = struct.calcsize(form)
        self.align(n)
        self.at += n
        return struct.unpack_from("<" + form, self.data, self.at - n)[0]

    def text(self, form="I"):
        n = self.number(form)
        self.at += n + 1
        return self.data[self.at - n - 1:self.at - 1].decode()

    def value(self, kind):
        if kind in ("s", "o"):
            return self.text()
        if kind == "g":
            return self.text("B")
        if kind == "v":
            return self.value(self.text("B"))
        if kind == "au":
            end = self.number("I") + self.at
            out = []
            while self.at < end:
                out.append(self.number("I"))
            return out
        return self.number({"t": "Q", "u": "I", "y": "B"}[kind])

    def pairs(self):
        size = self.number("I")
        self.align(8)
        end, out = self.at + size, {}
        while self.at < end:
            self.align(8)
            key = self.text()
            out[key] = self.value("v")
        return out


def pad(data, n):
    return data + b"\0" * (-len(data) % n)


def put(data, text):
    return pad(data, 4) + struct.pack("<I", len(text)) + text.encode() + b"\0"


def message(kind, fields, body):
    head = b""
    for code, sig, value in fields:
        head = pad(head, 8) + bytes([code, 1]) + sig.encode() + b"\0"
        if sig == "u":
            head = pad(head, 4) + struct.pack("<I", value)
        elif sig == "g":
            head += bytes([len(value)]) + value.encode() + b"\0"
        else:
            head = put(head, value)
    return pad(b"l" + bytes([kind, 1, 1]) + struct.pack("<III", len(body), 5, len(head)) + head, 8) + body


def read_exactly(c, n):
    data = b""
    while len(data) < n:
        more = c.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_call(c):
    head = read_exactly(c, 16)
    body_n, serial, fields_n = struct.unpack_from("<III", head, 4)
    rest = read_exactly(c, fields_n + -fields_n % 8 + body_n)
    r, fields = Reader(head + rest, 16), {}
    while r.at < 16 + fields_n:
        r.align(8)
        code = r.number("B")
        fields[code] = r.value("v")
    r.align(8)
    body = Reader(r.data[r.at:])
    return serial, fields, {"unit": body.text(), "mode": body.text(), "properties": body.pairs(), "more": body.number("I")}


class Manager:
    def __init__(self, mode, runtime):
        self.mode, self.asked, self.made = mode, None, []
        os.makedirs(f"{runtime}/systemd", exist_ok=True)
        path = f"{runtime}/systemd/private"
        self.s = socket.socket(socket.AF_UNIX)
        self.s.bind(path)
        if mode == "stranger":
            os.chown(path, 65534, 65534)
        self.s.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            c = self.s.accept()[0]
            try:
                self.talk(c)
            except (EOFError, OSError):
                pass

    def talk(self, c):
        line = b""
        while not line.endswith(b"\r\n"):
            line += read_exactly(c, 1)
        if line != b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n":
            c.sendall(b"REJECTED\r\n")
            return
        c.sendall(b"OK " + b"0" * 32 + b"\r\n")
        read_exactly(c, len(b"BEGIN\r\n"))
        serial, fields, asked = read_call(c)
        self.asked = {**asked, "member": fields[3], "signature": fields[8]}
        if self.mode == "silent":
            threading.Event().wait(30)
        if self.mode == "refuse":
            c.sendall(message(3, [(5, "u", serial), (4, "s", "org.freedesktop.DBus.Error.Failed"), (8, "g", "s")], put(b"", "no such luck")))
            return
        self.make(asked)
        job = "/org/freedesktop/systemd1/job/1"
        c.sendall(message(2, [(5, "u", serial), (8, "g", "o")], put(b"", job)))
        body = struct.pack("<I", 1)
        for text in (job, asked["unit"], "done"):
            body = put(body, text)
        c.sendall(message(4, [(1, "o", "/org/freedesktop/systemd1"), (2, "s", "org.freedesktop.systemd1.Manager"), (3, "s", "JobRemoved"),
                              (8, "g", "uoss")], body))
        read_exactly(c, 1)

    def make(self, asked):
        p, folder = asked["properties"], f"{CGROUPS[0]}/{asked['unit']}"
        os.mkdir(folder)
        self.made.append(folder)
        if self.mode != "elsewhere":
            with open(f"{folder}/cgroup.procs", "w") as f:
                f.write(str(p["PIDs"][0]))
        subprocess.run(["mount", "-t", "tmpfs", "scope", folder], check=True)
        files = {"cgroup.kill": "", "cgroup.freeze": "", "cgroup.procs": "", "cgroup.events": "populated 0\nfrozen 0\n",
                 "memory.events": "oom_kill 3\n", "pids.events": "max 0\n", "memory.oom.group": "0\n"}
        if self.mode != "without":
            files |= {"memory.max": f"{p.get('MemoryMax', 'max')}\n", "memory.swap.max": f"{p.get('MemorySwapMax', 'max')}\n",
                      "pids.max": f"{p.get('TasksMax', 'max')}\n",
                      "cpu.max": f"{p['CPUQuotaPerSecUSec'] // 10} 100000\n" if "CPUQuotaPerSecUSec" in p else "max 100000\n"}
        for name, text in files.items():
            with open(f"{folder}/{name}", "w") as f:
                f.write(text)

    def close(self):
        for folder in self.made:
            # Whoever was just killed may still be on the way out.
            for _ in range(50):
                if subprocess.run(["umount", folder], stderr=subprocess.DEVNULL).returncode == 0 or not os.path.ismount(folder):
                    break
                time.sleep(0.1)
            os.rmdir(folder)


def main():
    mode, runtime, *command = sys.argv[1:]
    m = Manager(mode, runtime)
    try:
        r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                           env={**os.environ, "XDG_RUNTIME_DIR": runtime})
    finally:
        m.close()
    print(json.dumps({"asked": m.asked, "code": r.returncode, "out": r.stdout, "err": r.stderr}))


main()
