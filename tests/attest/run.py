#!/usr/bin/env python3
"""run.py - statements about sessions, made and checked as people do. Speaks TAP.

$WRIT is the program; writ-signer lies beside it. What needs root is skipped without.
"""
import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import custody  # noqa: E402
import world  # noqa: E402
from world import FILES, World, flips, ok  # noqa: E402


def test_first_use(w):
    r = w.call("run", "--", "true")
    ok(r.code == 0, "a run", r)
    ok(not (w.state / "keys/attest.pem").exists(), "no key for statements is made before there is one")
    r = w.call("attest", "verify")
    lines = r.out.splitlines()
    ok(r.code == 0, "the last session verifies", r)
    ok(lines and lines[0].endswith("self-attested (same user holds the key)") and " true " in lines[0],
       "the first line says who holds the key", r)
    ok(lines and lines[-1].startswith("  not covered: "), "the last what is not covered", r)
    ok([x.split()[0] for x in lines[1:-1]] == ["filesystem", "network", "process", "resources", "credentials"],
       "every boundary between", r)
    pins = [x for x in (w.config / "log.policy").read_text().splitlines() if x.startswith("log writ/log/l-")]
    ok(len(pins) == 1, "the log's key is pinned")
    r = w.call("attest", "verify", w.record().name[:4])
    ok(r.code == 0, "the beginning of its id is enough", r)
    r = w.call("attest", "verify", "zzzz")
    ok(r.code == 125 and "zzzz" in r.err, "there is no such session", r)


def test_not_started(w):
    """Without --attest-out nothing but writ is there, and nothing is missed."""
    (w.bin / "writ-signer").rename(w.bin / "away")
    r = w.call("run", "--", "true")
    ok(r.code == 0, "writ run does not start writ-signer", r)
    r = w.call("attest", "verify")
    ok(r.code == 0, "nor does verifying what lies here", r)
    (w.bin / "away").rename(w.bin / "writ-signer")


def test_names(w):
    out = w.top / "named"
    w.call("run", "--attest-out", out, "--", "true")
    w.call("run", "--", "sh", "-c", "exit 7")
    name = w.record().stem
    shutil.copytree(out, w.work / name)
    r = w.call("attest", "verify", name)
    shutil.rmtree(w.work / name)
    ok(r.code == 0 and r.out.startswith(name), "what lies here under a session's name is not taken for it", r)


def test_files(w):
    out = w.top / "out"
    r = w.call("run", "--attest-out", out, "--", "sh", "-c", "cat /nowhere/secret-name; exit 3")
    ok(r.code == 3, "--attest-out keeps the command's status", r)
    ok(sorted(p.name for p in out.iterdir()) == sorted(FILES + ["log.vkey", "attest.pub.pem"]),
       "all files are there", list(out.iterdir()))
    ok("secret-name" not in (out / "entries.jsonl").read_text() and "secret-name" in w.record().read_text(),
       "what is private stays here")
    ok(oct((w.state / "keys/attest.pem").stat().st_mode & 0o777) == "0o600", "nobody else can read the key")
    ok((w.config / "attest.pub.pem").read_text() == (out / "attest.pub.pem").read_text(), "it is pinned")
    r = w.call("attest", "verify", out)
    ok(r.code == 0 and "self-attested" in r.out.splitlines()[0], "the files verify", r)
    r = w.call("attest", "verify", *(out / f for f in FILES))
    ok(r.code == 0, "each by its name, too", r)
    r = w.call("attest", "verify", out / "session.json")
    ok(r.code == 125 and "missing" in r.err, "not when some are missing", r)
    r = w.call("attest", "show", "--out", w.top / "again")
    ok(r.code == 0 and all((w.top / "again" / f).read_bytes() == (out / f).read_bytes()
                           for f in ("entries.jsonl", "session.json")), "show writes the same", r)
    r = w.call("attest", "show")
    ok(r.code == 0 and json.loads(r.out)["predicate"]["session"]["exit"] == 3, "and prints the statement", r)
    shutil.rmtree(w.top / "again")
    return out


def test_strangers(w, out):
    with World() as other:
        r = other.call("attest", "verify", out)
        ok(r.code == 5 and "not pinned" in r.err, "a stranger has no key of ours", r)
        policy = other.top / "policy"
        policy.write_text(f"log {(out / 'log.vkey').read_text()}quorum none\n")
        keys = ["--key", out / "attest.pub.pem", "--policy", policy]
        r = other.call("attest", "verify", *keys, out)
        ok(r.code == 0, "whom somebody gave the keys verifies", r)
        r = other.call("attest", "verify", "--key", out / "attest.pub.pem", out)
        ok(r.code == 5, "one of both is not enough", r)
        policy.write_text(f"log {(out / 'log.vkey').read_text()}witness w1 "
                          f"w.example+af9be457+BK1EHhGhDIoDPwK12mJ+qaUHMF5dwt0PxGTXdbTTL6mH\nquorum w1\n")
        r = other.call("attest", "verify", *keys, out)
        ok(r.code in (4, 125) and r.err, "a quorum that nobody has met", r)


def test_outside(out):
    """The bytes that are signed, checked by a program that is not ours."""
    bundle = json.loads((out / "session.sigstore.json").read_text())
    envelope = bundle["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    bytes_ = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    (out.parent / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))

    def openssl(what):
        (out.parent / "pae").write_bytes(what)
        return subprocess.run(["openssl", "dgst", "-sha256", "-verify", out / "attest.pub.pem", "-signature",
                               out.parent / "sig", out.parent / "pae"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode
    ok(openssl(bytes_) == 0, "openssl accepts the signature")
    ok(openssl(bytes_[:-9] + bytes([bytes_[-9] ^ 1]) + bytes_[-8:]) != 0, "and refuses it after one bit")
    ok(openssl(bytes_[:-1]) != 0, "and one byte less")
    statement = json.loads(payload)
    for s in statement["subject"]:
        ok(hashlib.sha256((out / s["name"]).read_bytes()).hexdigest() == s["digest"]["sha256"],
           f"the statement has the hash of {s['name']}")
    der = base64.b64decode("".join((out / "attest.pub.pem").read_text().splitlines()[1:-1]))
    ok(bundle["verificationMaterial"]["publicKey"]["hint"] == hashlib.sha256(der).hexdigest()
       and envelope["signatures"][0]["keyid"] == "", "the hint is the hash of the key, and nothing else names it")
    ok("verdict" not in payload.decode().lower(), "there is no verdict in it")


def caught(w, path, step, *words):
    missed, silent, n = [], [], 0
    for i in flips(path, step):
        r = w.call("attest", "verify", *words)
        n += 1
        if r.code not in (4, 5):
            missed.append((i, r.code))
        if path.name not in r.err and "log" not in r.err:
            silent.append((i, r.err))
    ok(n > 3 and not missed, f"{path.name}: {n} changed bytes, all noticed", missed)
    ok(not silent, f"{path.name}: it is said where", silent[:3])


def test_changes(w, out):
    for name in FILES:
        size = (out / name).stat().st_size
        caught(w, out / name, max(size // 6, 1), out)
    r = w.call("attest", "verify", out)
    ok(r.code == 0, "whole again, they verify", r)
    record = w.record()
    caught(w, record, max(record.stat().st_size // 9, 1))
    wal = next((w.state / "log/wal").iterdir())
    caught(w, wal, max(wal.stat().st_size // 9, 1))
    r = w.call("attest", "verify")
    ok(r.code == 0, "and so does what lies here", r)
    mark = w.state / "log/checkpoint"
    caught(w, mark, 29)


def edit(w, path, change, what, *words):
    whole = path.read_bytes()
    path.write_bytes(change(whole))
    r = w.call("attest", "verify", *words)
    ok(r.code in (4, 5) and r.err, what, r)
    path.write_bytes(whole)


def test_edits(w, out):
    def lines(f):
        return lambda b: b"".join(f(b.splitlines(keepends=True)))

    def second(b):
        v = json.loads(b)
        v["dsseEnvelope"]["signatures"] *= 2
        return json.dumps(v, sort_keys=True, separators=(",", ":")).encode()
    edit(w, out / "entries.jsonl", lines(lambda v: v[:-1]), "an entry less", out)
    edit(w, out / "entries.jsonl", lines(lambda v: [v[0], v[2], v[1], *v[3:]]), "two entries swapped", out)
    edit(w, out / "session.sigstore.json", second, "a second signature", out)
    edit(w, out / "session.sigstore.json", lambda b: json.dumps(json.loads(b), indent=1).encode(), "other blanks", out)
    edit(w, out / "end.tlog-proof", lambda b: (out / "start.tlog-proof").read_bytes(), "the start as the end", out)
    edit(w, w.record(), lines(lambda v: v[:-1]), "a line less in the session's file")
    edit(w, w.record(), lambda b: b + b.splitlines(keepends=True)[-1], "a line more")
    record = w.record().read_bytes()
    erased = w.call("attest", "verify", "--json")
    ok(erased.code == 0 and b"_salt" in record, "nothing is erased yet", erased)


def test_require(w):
    code, got = w.json()
    held = got["boundaries"]["filesystem"]["verdict"] == "held" and got["boundaries"]["filesystem"]["strength"] >= 2
    ok(code == 0 and got["answer"] == "verified" and got["custody"] == "same-uid", "the answer for machines", got)
    code, got = w.json("--require", "fs>=E2")
    ok((code == 0) == held and code in (0, 1), "what is required must have held", (code, got))
    r = w.call("attest", "verify", "--require", "fs>=E2")
    ok(held or "filesystem held, by E2" in r.err, "and is named if it did not", r)
    r = w.call("attest", "verify", "--require", "fs>=E9")
    ok(r.code == 125 and "--require" in r.err, "a level that is none", r)
    r = w.call("attest", "verify", "--require", "moon")
    ok(r.code == 125, "a boundary that is none", r)


def test_killed(w):
    p, _ = w.running("run", "--", "sleep", "60")
    p.send_signal(signal.SIGKILL)
    p.wait()
    r = w.call("attest", "verify")
    ok(r.code == 1 and "UNKNOWN" in r.out, "nobody knows how one ended that was killed with its supervisor", r)
    r = w.call("attest", "show")
    ok(r.code == 125 and "ended" in r.err, "and there is no statement about it", r)


def test_links(w):
    """What an agent puts where the files go is not followed."""
    out, victim = w.work / "out", w.top / "victim"
    victim.write_text("mine")
    out.mkdir()
    r = w.call("run", "--attest-out", out, "--", "sh", "-c",
               f"ln -s {victim} out/session.json; ln -s {victim} out/entries.jsonl; mkdir -p out/log.vkey")
    ok(victim.read_text() == "mine", "a link is replaced, not written through", r)
    ok(r.code in (0, 125), "a directory in the way is an error", r)


def test_forged_custody(w):
    """Who holds the key cannot say that somebody else does."""
    log = w.state / "log"
    wal = next((log / "wal").iterdir())
    ok(b'"custody":"same-uid"' in wal.read_bytes(), "the log says who holds its key")


def main():
    if not os.access(world.WRIT, os.X_OK) or not os.access(Path(world.WRIT).parent / "writ-signer", os.X_OK):
        print(f"Bail out! no program to test: {world.WRIT}")
        return 1
    with World() as w:
        test_first_use(w)
        test_not_started(w)
        test_names(w)
        out = test_files(w)
        test_strangers(w, out)
        test_outside(out)
        test_changes(w, out)
        test_edits(w, out)
        test_require(w)
        test_forged_custody(w)
        test_links(w)
        test_killed(w)
    custody.main()
    print(f"1..{world.count}")
    return world.bad > 0


if __name__ == "__main__":
    sys.exit(main())
