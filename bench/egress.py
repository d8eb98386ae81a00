#!/usr/bin/env python3
"""egress.py - the network against its budgets and its peers, as ratios.

    bench/egress.py [--rounds N] [--ms N] [--json FILE] [WORD ...]

Client, proxy and origin are the same programs for all: the origin is in a network of its own behind a virtual cable,
the proxies are on this side of it, and the client asks them, or for writ is in a session and asks nobody. All run at
once and are measured in turn, for a moment each, again and again; medians are compared. With words, only what has one
of them in its name is measured. tools/peers-net.sh brings the peers; what is missing is said. WRIT is the program.
"""
import argparse
import asyncio
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/net")]
import measure  # noqa: E402
import peers as boxes  # noqa: E402
import proxies as peers  # noqa: E402
import space  # noqa: E402
import world as names  # noqa: E402

WRIT = Path(os.environ.get("WRIT", ROOT / "build/release/prog/writ")).resolve()
BUILD = WRIT.parent.parent
NAME, ADDRESS = "origin.bench.test", "1.2.3.10"  # in networks of our own
PORT = {"echo": 7001, "source": 7002, "tls": 443}
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
FILES = 65536
ROWS = []


class World:
    """What everything here needs to know of everything else."""

    def __init__(self, folder):
        self.dir, self.name, self.address, self.port, self.dns = folder, NAME, ADDRESS, PORT, names.DNS
        self.ca, self.ca_key = folder / "ca.pem", folder / "ca.key"
        self.leaf, self.leaf_key = folder / "leaf.pem", folder / "leaf.key"
        self.pid = os.getpid()

    def die_with_parent(self):
        space.die_with_parent(self.pid)

    def make_certificates(self):
        def run(*args):
            subprocess.run(["openssl", *args], cwd=self.dir, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        (self.dir / "ext").write_text(f"subjectAltName=DNS:{NAME}\n")
        run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=bench authority",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", f"/CN={NAME}")
        run("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "leaf.pem")
        for file in self.dir.iterdir():
            file.chmod(0o644)

    def be_origin(self, boss):
        """In the other network: the origin, and a name server."""
        # An ordinary user's origin has no rights there once it is started.
        Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")

        async def main():
            zone = names.Names()
            zone.zone[NAME] = {"A": [ADDRESS], "ttl": 60}
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: zone, local_addr=(names.DNS, 53))
            origin = await asyncio.create_subprocess_exec(
                BUILD / "bench/origin", "0.0.0.0", *(str(PORT[p]) for p in ("echo", "source", "tls")),
                self.leaf, self.leaf_key, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
            if await origin.stdout.readline() == b"ready\n":
                boss.sendall(b"r")
            await origin.wait()
        asyncio.run(main())

    def trust(self):
        """Our authority is the only one, for whoever asks the system."""
        libc = ctypes.CDLL(None, use_errno=True)
        space.unshare(CLONE_NEWNS)
        for args in ((b"none", b"/", None, MS_REC | MS_PRIVATE, None), (bytes(self.ca), BUNDLE.encode(), None, MS_BIND, None)):
            if libc.mount(*args) < 0:
                raise OSError(ctypes.get_errno(), "mount")


class Client:
    """A load program that takes orders."""

    def __init__(self, w, cmd, cwd):
        self.proc = subprocess.Popen(cmd, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     preexec_fn=w.die_with_parent)

    def order(self, what, target, ways=1, ms=0):
        """(count, seconds, errors, median and 99th percentile of one in seconds)"""
        address, port, connect = target
        self.proc.stdin.write(f"{what} {address} {port} {connect} {NAME} {ways} {ms}\n")
        self.proc.stdin.flush()
        line = self.proc.stdout.readline()
        if not line:
            sys.exit(f"egress.py: the client ended at '{what}'")
        count, ns, errors, mid, high = map(int, line.split())
        return count, ns / 1e9 or 1, errors, mid / 1e9, high / 1e9

    def end(self):
        self.proc.stdin.close()
        self.proc.wait()


class Writ:
    """A session whose command is the client."""
    name, why = "writ", ""

    def __init__(self, w):
        work = w.dir / "work"
        work.mkdir()
        shutil.copy(BUILD / "bench/load", work / "load")
        (work / "p.writ").write_text(f"version 1\nallow net tcp://{NAME}:{PORT['echo']}-{PORT['source']}\n"
                                     f"allow net https://{NAME}/** methods=GET\n")
        self.client = Client(w, [str(WRIT), "run", "-q", "--policy", "p.writ", "--", "./load"], work)
        self.port = PORT

    def target(self, what):
        return NAME, PORT[what], "-"

    def helpers(self):
        """Its supervisor and what deals with the network, without what it runs."""
        pid = self.client.proc.pid
        inside = {p for p in peers.tree(pid) if Path(f"/proc/{p}/comm").read_text().strip() == "load"}
        return [p for p in peers.tree(pid) if p not in inside]

    pids = helpers


class Direct:
    name, why = "no proxy", ""

    def target(self, what):
        return ADDRESS, PORT[what], "-"

    def pids(self):
        return []


# --- the table ---

def row(what, who, measured, unit, budget=None, note="", least=False):
    verdict = "" if budget is None else "ok" if (measured >= budget if least else measured <= budget) else "MISSED"
    shown = "" if budget is None else f"{'>=' if least else '<='} {budget:g} {unit}"
    print(f"{what:<30}{who:<11}{measured:>9.2f} {unit:<12} {shown:<20}{verdict:<8}{note}".rstrip(), flush=True)
    ROWS.append({"what": what, "who": who, "measured": measured, "unit": unit, "budget": budget, "least": least,
                 "ok": verdict != "MISSED", "note": note})


class Bench:
    def __init__(self, w, opt):
        self.w, self.opt = w, opt
        self.outside = Client(w, [BUILD / "bench/load"], w.dir)
        self.writ, self.direct, self.peers = Writ(w), Direct(), []
        for kind in peers.PEERS:
            peer = kind(w)
            if peer.begin():
                self.peers.append(peer)
            else:
                print(f"{'':<30}{peer.name:<11}  not there: {peer.why}")

    def client(self, who):
        return self.writ.client if who is self.writ else self.outside

    def measure(self, order, place, ways, who_else=()):
        """For each, in turn: (rate, CPU seconds for one, median of one)."""
        all_ = [self.writ, *self.peers, *who_else]
        got = {who: [] for who in all_}
        bad = {}
        for i in range(self.opt.rounds + 1):
            for who in all_:
                if who in bad:
                    continue
                before = peers.cpu_of(who.pids())
                count, took, errors, mid, _ = self.client(who).order(order, who.target(place), ways,
                                                                    self.opt.ms if i else self.opt.ms // 4)
                cpu = peers.cpu_of(who.pids()) - before
                if i and (count == 0 or errors > count // 100):
                    bad[who] = f"{errors} errors" if errors else "nothing came in time"
                elif i:  # the first of each warms up
                    got[who].append((count / took, cpu / count, mid))
        for who, why in bad.items():
            print(f"{order:<30}{who.name:<11}  failed: {why}")
        return {who.name: tuple(statistics.median(x) for x in zip(*v)) for who, v in got.items() if v and who not in bad}

    def rates(self, what, got, scale, unit, cost, budgets):
        """A row for each: writ's against each budget's peer, the others' own numbers."""
        def note(name):
            rate, cpu, mid = got[name]
            return f"{rate / scale:.2f} {unit}" + (f"; CPU {cpu * cost[0]:.3g} {cost[1]}" if cpu else "") + \
                (f"; {mid * 1e6:.0f} us" if mid else "")
        for peer, budget in budgets.items():
            if peer in got and "writ" in got:
                row(what, "writ", got["writ"][0] / got[peer][0], f"x {peer}", budget, note("writ"), least=True)
        for name in got:
            if name != "writ" and "writ" in got:
                row(what, name, got[name][0] / got["writ"][0], "x writ", note=note(name))

    def costs(self, what, got, budgets):
        """CPU for the same: on a busy machine it says more than the time."""
        for peer, budget in budgets.items():
            if peer in got and "writ" in got:
                row(what + ", CPU", "writ", got["writ"][1] / got[peer][1], f"x {peer}", budget)

    def tunnels(self):
        for ways in (1, 4):
            got = self.measure("tput", "source", ways, [self.direct])
            what = f"bytes, {ways} tunnel{'s' if ways > 1 else ''}"
            self.rates(what, got, 1e9, "GB/s", (1e9, "s/GB"), {"haproxy": 1, "nginx": None})
            self.costs(what, got, {"nginx": 0.6})

    def connections(self):
        got = self.measure("new", "echo", 8, [self.direct])
        self.rates("new connections", got, 1, "/s", (1e6, "us each"), {"haproxy": 1, "nginx": None})
        self.costs("new connections", got, {"haproxy": None, "nginx": None})
        got = self.measure("rtt", "echo", 1, [self.direct])
        for name, (_, _, mid) in got.items():
            row("64 bytes there and back", name, mid / got["no proxy"][2], "x no proxy", note=f"{mid * 1e6:.0f} us")

    def requests(self):
        for order, what, budgets in (("keep", "requests, TLS, kept", {"squid": 1, "haproxy": None}),
                                     ("tls", "requests, TLS, new", {"squid": None})):
            got = self.measure(order, "tls", 8, [self.direct])
            self.rates(what, got, 1, "/s", (1e6, "us each"), budgets)
            self.costs(what, got, {name: None for name in budgets})

    def hold(self):
        """What tunnels that do nothing take, and whether others are served meanwhile."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = min(10000, (hard - 500) // 2)
        self.hold_one(self.writ, [9000, most] if most > 9000 else [most])
        for peer in self.peers:
            self.hold_one(peer, [1000])

    def hold_one(self, who, steps):
        client, target = self.client(who), who.target("echo")
        client.order("new", target, 8, 100)
        before, held = memory_min(who), 0
        for n in steps:
            count, _, errors, _, _ = client.order("hold", target, n - held)
            held += count
            grown = memory_min(who) - before
            if errors:
                row("idle tunnels", who.name, held, "held", n if who is self.writ else None, f"{errors} errors", least=True)
                break
            if n == steps[0]:
                row("an idle tunnel", who.name, grown / held, "KiB", 0.5 if who is self.writ else None, f"{held} of them")
            if n == 9000:
                row("9,000 idle tunnels", who.name, grown / 1024, "MiB", 5)
        else:
            if who is self.writ:
                count, took, errors, mid, high = client.order("new", target, 8, self.opt.ms)
                row("idle tunnels", "writ", held, "held", steps[-1], f"meanwhile {count / took:.0f} new/s, {errors} errors, "
                    f"99% within {high * 1e3:.1f} ms", least=True)
        client.order("drop", target)

    def end(self):
        self.writ.client.end()
        self.outside.end()
        for peer in self.peers:
            peer.end()


def raise_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for most in (max(hard, FILES), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            return
        except (ValueError, OSError):
            pass


def memory_min(who):
    return peers.memory_of(who.pids())


def start(w, rounds):
    """What a session with a rule for the network takes more than one without, in bwrap's whole starts."""
    work = w.dir / "start"
    work.mkdir()
    ways = {"bwrap": [*boxes.bwrap(work), "/bin/true"], "without": [str(WRIT), "run", "-q", "--", "/bin/true"],
            "with": [str(WRIT), "run", "-q", "--allow", f"net:tcp://{NAME}:7001", "--", "/bin/true"],
            "read": [str(WRIT), "run", "-q", "--allow", f"net:https://{NAME}/x/**", "--", "/bin/true"]}
    got = {k: v.median for k, v in measure.interleave({k: measure.Way(v) for k, v in ways.items()}, rounds, work).items()}
    bwrap, plain = got["bwrap"], got["without"]
    for name, budget in (("with", 0.1), ("read", None)):
        row("a net rule adds to a start" if budget else "one whose requests are read", "writ",
            (got[name] - plain) / bwrap, "x bwrap", budget, f"{got[name]:.2f} ms, without {plain:.2f}, bwrap {bwrap:.2f}")


def main():
    ap = argparse.ArgumentParser(description="the network against its budgets and peers")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--ms", type=int, default=600, help="how long each is measured")
    ap.add_argument("--json", help="also write the rows there")
    ap.add_argument("words", nargs="*")
    opt = ap.parse_args()

    def wanted(name):
        return not opt.words or any(word in name for word in opt.words)

    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", "/var/tmp")) as d:
        os.chmod(d, 0o755)
        os.environ.update(HOME=f"{d}/home", XDG_STATE_HOME=f"{d}/state", XDG_CONFIG_HOME=f"{d}/config", WRIT_RESOLVER=names.DNS)
        w = World(Path(d))
        w.make_certificates()
        raise_files()
        space.enter(w.be_origin)
        w.trust()
        if wanted("start") and shutil.which("bwrap"):
            # What a start leaves behind is waited for, so nothing else may be running yet.
            pid = os.fork()
            if pid == 0:
                measure.adopt_orphans()
                start(w, 6 * opt.rounds)
                Path(d, "rows").write_text(json.dumps(ROWS))
                os._exit(0)
            os.waitpid(pid, 0)
            ROWS.extend(json.loads(Path(d, "rows").read_text()))
        bench = Bench(w, opt)
        try:
            for name, part in (("tunnels", bench.tunnels), ("connections", bench.connections), ("requests", bench.requests),
                               ("hold idle", bench.hold)):
                if wanted(name):
                    part()
        finally:
            bench.end()
        os.chdir("/")
        subprocess.run(["chmod", "-R", "u+rwx", d], check=False)
    if opt.json:
        Path(opt.json).write_text(json.dumps(ROWS, indent=1) + "\n")


if __name__ == "__main__":
    main()
