"""kit.py - what the tests of clients share: the servers, the three ways to run a client, and the verdict."""
import os
import shutil
from pathlib import Path

import net
import town
from host import PYTHON

HERE = Path(__file__).resolve().parent
WEB, EVIL = "web.example.test", "evil.example.test"
TUNNEL = [f"https://{WEB}"]
READ = [f"https://{WEB} methods=GET,POST", f"deny net https://{WEB}/closed"]
# What is allowed; another name, port, the bare address; and what only one who reads requests can refuse.
URLS = [f"https://{WEB}/x", f"https://{EVIL}/x", f"https://{WEB}:8443/x", f"https://{net.FIRST}/x", f"https://{WEB}/closed"]
ALL = ["yes"] * 5


def test(name, seconds=120):
    return net.test(name, bulk=True, seconds=seconds)  # late packets of what ran outside do not count


def need(w, *programs, slow=False, module=None):
    """True if all are here and there is time for them; otherwise that is all there is to say."""
    if slow and not net.LONG:
        return not w.ok(True, "not run # SKIP only in the long run")
    for p in programs:
        if not shutil.which(p, path=w.env["PATH"]):
            return not w.ok(True, f"not run # SKIP there is no {p}")
    if module and w.call([PYTHON, "-c", f"import {module}"]).code != 0:
        return not w.ok(True, f"not run # SKIP there is no {module} for Python")
    return True


def settle(w, java=False):
    """Outside, from here on: names are those of the world, and its authority is one of the host's own."""
    bundle, resolver = w.dir / "bundle.pem", w.dir / "resolv.conf"
    real = next((b for b in ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt") if os.path.exists(b)), None)
    if not real:
        raise AssertionError("this machine has no list of authorities")
    bundle.write_text(Path(real).read_text() + (w.certs / "ca.pem").read_text())
    resolver.write_text(f"nameserver {town.DNS}\n")
    files = {real: bundle, "/etc/resolv.conf": resolver}
    if java:
        for f in w.certs.iterdir():
            f.chmod(0o644)
        files["/etc/ssl/certs/java/cacerts"] = w.certs / "cacerts"
    town.cover(files)
    assert not [n for n in w.env if "proxy" in n.lower() or "CERT" in n or "CA_" in n], w.env
    return bundle


def serve(w, *ports, java=False):
    """The web; returns the folder of its files, and the bundle of authorities that clients outside need."""
    folder = w.dir / "www"
    folder.mkdir(exist_ok=True)
    w.zone(WEB, net.FIRST)
    w.zone(EVIL, net.SECOND)
    w.tell("spawn", argv=[PYTHON, str(HERE / "origin.py"), str(w.certs / "leaf.pem"), str(w.certs / "leaf.key"), str(folder),
                          *map(str, ports or (443, 8443))], port=443, log=str(w.dir / "web.log"), env={"PATH": w.env["PATH"]})
    return folder, settle(w, java)


def requests(w):
    """What the web was asked for, as "METHOD HOST PATH STATUS"."""
    return net.read(w.dir / "web.log").splitlines()


def words(r):
    """Of a client's lines only whether each went well."""
    return ["yes" if line.startswith("yes from the world") else "no" if line.startswith("no") else line for line in r.text.splitlines()]


def web_client(w, argv, opts=(), outside=None, tunnel=(), rules=(), timeout=60):
    """@argv with URLs behind it prints "yes BODY" or "no WHY" for each. @outside: variables it needs there to trust the
    world; @tunnel: options for the same; @rules: more that the session needs."""
    judged = lambda r, want, text: w.same(words(r), want, text, r)
    judged(w.call([*argv, *URLS], env={**w.env, **(outside or {})}, timeout=timeout), ALL, "outside it reaches everything")
    w.forget()
    w.records_before = len(requests(w))
    r = w.run(*argv, *URLS, opts=[*w.rules(*TUNNEL, *rules), *opts, *tunnel], timeout=timeout)
    judged(r, ["yes", "no", "no", "no", "yes"], "in a tunnel, the name and nothing else")
    r = w.run(*argv, *URLS, opts=[*w.rules(*READ, *rules), *opts], timeout=timeout)
    judged(r, ["yes", "no", "no", "no", "no"], "read, what is allowed there and nothing else")
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 443)}, "the world saw nothing else")
    w.same({q[0].lower() for q in w.queries()}, {WEB}, "and no other name was looked up")
    w.same({line.split()[1:3][1] for line in requests(w)[w.records_before:]}, {"/x", "/closed"}, "two kinds of requests arrived")
    w.same(sum("/closed" in line for line in requests(w)[w.records_before:]), 1, "the one that was refused did not")
    w.ok(any(e.get("way") == "read" for e in w.net_events()), "the record says that it was read", w.net_events())
