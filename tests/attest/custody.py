"""custody.py - the log under another user: what the user may do to it, and what not. Needs root."""
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from world import FILES, Signer, World, ok, skip
from bounds import within

USER = "writ-test"
libc = ctypes.CDLL(None, use_errno=True)


def accounts():
    """The ordinary user, and a name for the signer's own."""
    if subprocess.run(["getent", "passwd", USER], stdout=subprocess.DEVNULL).returncode:
        subprocess.run(["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
                        "--shell", "/usr/sbin/nologin", USER], check=True)
    return f"writ-sig{os.getpid()}"


def signer_pid(place):
    """The signer of a session that runs: by its program."""
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            if os.readlink(f"/proc/{pid}/exe") == str(place / "bin/writ-signer"):
                return int(pid)
        except OSError:
            pass
    return 0


def running(w, place):
    p, record = w.running("run", "--", "sleep", "60")
    return p, signer_pid(place) if record else 0


def test_kept(w):
    r = w.call("signer", "status")
    ok(r.code == 0 and "installed" in r.out, "the user sees that it is installed", r)
    r = w.call("run", "--", "true")
    ok(r.code == 0, "a session that it keeps", r)
    r = w.call("attest", "verify")
    ok(r.code == 0 and "signed by writ-signer" in r.out.splitlines()[0], "the verdict says who holds the key", r)
    ok(not (w.state / "log").exists() and not (w.state / "keys").exists(), "the user has no log and no key")
    out = w.top / "out"
    r = w.call("run", "--attest-out", out, "--", "sh", "-c", "exit 4")
    ok(r.code == 4 and (out / "session.sigstore.json").exists(), "a statement", r)
    code, got = w.json(out)
    ok(code == 0 and got["custody"] == "other-uid", "it verifies", got)
    record = w.record()
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b'"exit":4', b'"exit":0'))
    r = w.call("attest", "verify")
    ok(r.code == 4 and record.name in r.err, "rewriting what the session wrote shows", r)
    r = w.call("attest", "show")
    ok(r.code == 125, "and no statement is signed about that", r)
    record.write_bytes(whole)
    return out


def test_closed(w, place):
    data = place / "data"
    for what in (["ls", data], ["ls", data / str(os.stat(w.home).st_uid)], ["sh", "-c", f"cat {data}/*/*/keys/*"],
                 ["sh", "-c", f"echo x >> {data}/x"], ["mv", data, f"{place}/other"],
                 ["sh", "-c", f"echo x > {place}/bin/writ-signer"], ["chmod", "755", data]):
        r = w.do(*what)
        ok(r.code != 0, f"the user cannot: {' '.join(map(str, what))}"[:90], r)
    modes = {oct(p.stat().st_mode & 0o7777) for p in data.rglob("*") if p.is_file()}
    ok(modes == {"0o600"}, "whatever it writes is for itself", modes)
    ok(oct(data.stat().st_mode & 0o7777) == "0o2770", "the directory is the group's")


def try_as_user(w, code):
    return w.do("/usr/bin/python3", "-c", code)


def test_attack(w, place):
    p, pid = running(w, place)
    ok(pid > 0, "a session runs, and its signer")
    attach = ("import ctypes; l = ctypes.CDLL(None, use_errno=True); "
              f"print(l.ptrace(16, {pid}, 0, 0), ctypes.get_errno())")
    r = try_as_user(w, attach)
    ok(r.out.split() == ["-1", str(errno.EPERM)], "the user cannot trace it", r)
    for name in ("mem", "environ", "fd", "cwd", "root", "exe", "maps"):
        r = try_as_user(w, f"import os; p = '/proc/{pid}/{name}'; "
                        "print(os.listdir(p) if p.endswith('fd') else os.readlink(p) if p[-3:] in "
                        "('cwd', 'oot', 'exe') else open(p, 'rb').read(1))")
        ok(r.code != 0 and "Permission" in r.err, f"nor look into /proc/PID/{name}", r)
    r = w.do("kill", "-TERM", str(pid))
    time.sleep(0.1)
    ok(signer_pid(place) == pid, "a polite signal does not end it", r)
    r = w.do("kill", "-KILL", str(pid))
    ok(r.code == 0, "but the user can kill it", r)
    began = time.monotonic()
    try:
        said = p.communicate(timeout=20)[1].decode()
    except subprocess.TimeoutExpired:
        p.kill()
        said = "it goes on"
    ok(p.returncode == 125 and "writ-signer is gone" in said and within(time.monotonic() - began, 10),
       "then the session ends at once, and says why", f"{p.returncode} {said}")
    code, got = w.json()
    ok(code == 1 and got["answer"] == "not-ended", "then nobody knows how the session ended", got)


def test_shown(w, place):
    """The verbs about the record know whose log it is."""
    r = w.call("audit", "verify")
    ok(r.code == 0 and "signed by writ-signer" in r.out and "self-attested" not in r.out, "audit verify looks at its log", r)
    r = w.call("audit", "verify", "--json")
    got = json.loads(r.out)
    ok(got["verifies"] and got["custody"] == "other-uid" and {s["state"] for s in got["sessions"]} == {"sealed"}, "for machines, too", got)
    sid = w.record().stem
    for verb in ("show", "export"):
        r = w.call("audit", verb, sid)
        ok(r.code == 0 and "signed by writ-signer" in r.err and "start" in r.out, f"audit {verb} says whose log it is", r)
    r = w.call("audit", "prove", sid, "--out", w.work / "proved")
    entry = json.loads((w.work / f"proved/{sid}-end.json").read_text()) if r.code == 0 else {}
    ok(entry.get("session") == sid and "writ-signer" in r.err, "audit prove", r)
    r = w.call("key", "show", "log")
    ok(r.code == 0 and "writ/log/l-" in r.out and "signed by writ-signer" in r.out, "key show has its key", r)
    r = w.call("key", "rotate")
    ok(r.code == 125 and "writ-signer" in r.err, "which the user cannot change", r)
    ok(not list(w.state.glob("copy.*")) and not (w.state / "keys/log.pem").exists(), "no copy of it stays, and no key is made")
    record = w.record()
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b'"exit":4', b'"exit":0'))
    r = w.call("audit", "verify")
    ok(r.code == 1 and record.name in r.out, "a record that was changed does not verify", r)
    record.write_bytes(whole + whole.splitlines(keepends=True)[-1])
    r = w.call("audit", "verify", sid)
    line = f"line {whole.count(bytes([10])) + 1} "
    ok(r.code == 1 and line in r.out and line in w.call("attest", "verify", sid).err, "one that was added to: which line is known", r)
    record.write_bytes(whole)


def test_both_logs(w):
    """Sessions of before, in the user's own log, beside those of the signer."""
    r = w.call("run", "--", "true", env={"WRIT_SIGNER": "none"})
    own = w.record().stem
    r = w.call("audit", "verify", "--json")
    got = json.loads(r.out)
    ok(r.code == 0 and got["custody"] == "other-uid" and got["own"]["custody"] == "same-uid", "both logs are looked at", r)
    ok([s["session"] for s in got["own"]["sessions"]] == [own] and own not in [s["session"] for s in got["sessions"]],
       "each session is in its own", got)
    r = w.call("audit", "verify", own)
    ok(r.code == 0 and "self-attested" in r.out, "asked for one: whose it is", r)
    r = w.call("attest", "show", own)
    ok(r.code == 0 and json.loads(r.out)["predicate"]["custody"] == "same-uid", "and a statement says so", r)
    (w.config / "attest.pub.pem").unlink()
    shutil.rmtree(w.state / "log")
    shutil.rmtree(w.state / "keys")
    (w.state / f"sessions/{own}.jsonl").unlink()
    (w.config / "log.policy").unlink()


def test_witnessed(w, place):
    """The log is shown to a witness, and a quorum of it counts."""
    vkey = json.loads(w.call("key", "show", "log", "--json").out)[0]["vkey"]
    proc = subprocess.Popen(w.head + [w.writ, "witness", "serve", "--listen", "127.0.0.1:0", vkey], env={**w.env, "XDG_STATE_HOME": str(w.work / "witness")},
                            cwd=w.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        url, key = proc.stdout.readline().decode().split()
        r = w.call("witness", "add", url, key)
        ok(r.code == 0, "a witness is added", r)
        r = w.call("audit", "witness")
        ok(r.code == 0 and "cosigned" in r.out, "it is shown the log", r)
        r = w.call("audit", "verify")
        ok(r.code == 0 and "cosigned all" in r.out, "and then it verifies", r)
        out = w.work / "witnessed"
        r = w.call("run", "--attest-out", out, "--", "true")
        ok(r.code == 0 and not r.err, "a session that ends is shown to it", r)
        r = w.call("attest", "verify")
        ok(r.code == 0 and "1 witness" in r.out, "attest verify with a quorum", r)
        r = w.call("attest", "verify", out)
        ok(r.code == 0 and "1 witness" in r.out and key.split("+")[0] in (out / "end.tlog-proof").read_text(), "and a statement", r)
        r = w.call("audit", "prove", "--last", "--out", out)
        ok(r.code == 0 and "too few" not in r.err, "and proofs", r)
    finally:
        proc.kill()
        proc.wait()
    r = w.call("run", "--", "true")
    ok(r.code == 0 and "cannot be reached" in r.err, "one that is gone is said, and the code is the command's", r)
    r = w.call("attest", "verify")
    ok(r.code == 4, "and without it nothing verifies", r)
    (w.config / "log.policy").unlink()
    data = next((place / "data").glob("*/*/log/cosigned"))
    ok(key.split("+")[0] in data.read_text(), "what it said is kept with the log")


def test_bad_cosigned(w, place, realm):
    program = place / "bin/writ-signer"
    kept = next((place / "data").glob(f"*/{realm}/log/cosigned")).read_bytes()
    for what, note in (("nothing", b""), ("another root", kept.replace(kept.split(b"\n")[2], b"A" * 43 + b"=")), ("another size", kept.replace(b"\n" + kept.split(b"\n")[1] + b"\n", b"\n1\n", 1))):
        s = Signer(w, program, "log")
        got = s.ask("C", realm.encode() + b"\n" + note)
        s.close()
        ok(got[0] == "F", f"a checkpoint that is none of its own is not kept: {what}", got)
    for name in ("../x", "", "l-other"):
        s = Signer(w, program, "log")
        got = s.ask("C", name.encode() + b"\n" + kept)
        s.close()
        ok(got[0] == "N", f"nor one of the log {name!r}", got)
    s = Signer(w, program, "log")
    ok(s.ask("R", {"realm": "l-other", "sign": True, "entries": True})[0] == "N", "who asks for a log that is not there makes none")
    s.close()
    ok(not list((place / "data").glob("*/l-other")), "indeed")


def test_stopped(w, place):
    """Who stops their own signer stops nobody else's."""
    p, pid = running(w, place)
    ok(w.do("kill", "-STOP", str(pid)).code == 0, "a user stops their own")
    with World(None, w.env["WRIT_SIGNER"]) as other:
        began = time.monotonic()
        r = other.call("run", "--", "true")
        ok(r.code == 0 and within(time.monotonic() - began, 9), "another user's sessions do not notice", r)
        r = other.call("attest", "verify")
        ok(r.code == 0 and "signed by writ-signer" in r.out, "and are signed", r)
    w.do("kill", "-CONT", str(pid))
    p.send_signal(signal.SIGTERM)
    p.wait(30)
    r = w.call("attest", "verify")
    ok("signed by writ-signer" in r.out, "it goes on, and so does theirs", r)


def test_quota(w, place):
    used = place / f"data/{os.stat(w.home).st_uid}/used"
    n = used.stat().st_size
    w.call("run", "--", "true")
    ok(used.stat().st_size == n + 1, "each session is counted")
    with used.open("ab") as f:
        f.truncate(100000)
    r = w.call("run", "--", "true")
    ok(r.code == 122 and "100000 sessions" in r.err, "a user who has all of theirs starts no more", r)
    with used.open("ab") as f:
        f.truncate(n)
    ok(w.call("run", "--", "true").code == 0, "with fewer they do")


def test_cut(w, place):
    p, pid = running(w, place)
    p.send_signal(signal.SIGKILL)
    p.wait()
    end = time.monotonic() + 10
    while signer_pid(place) and time.monotonic() < end:
        time.sleep(0.02)
    code, got = w.json()
    ok(pid and code == 1 and got["answer"] == "cut-off", "a supervisor that is killed: the log says it was cut off", got)
    ok(code == 1 and all(b["verdict"] == "unknown" for b in got["boundaries"].values()), "and every verdict is unknown")
    r = w.call("attest", "show")
    ok(r.code == 125 and "cut off" in r.err, "there is no statement about it", r)


def start_message(realm, session):
    d = "A" * 43
    return {"adapter": "host", "durable": False, "plan": d, "policy": d, "realm": realm, "session": session, "tier": "A", "version": "1"}


def test_by_hand(w, place, out):
    """Whoever speaks to it without writ gets no further."""
    program, done = place / "bin/writ-signer", json.loads((out / "session.json").read_text())
    realm, old = done["realm"], done["session"]

    def one(mode, letter, what, given=None, **kw):
        s = Signer(w, program, mode, given, **kw)
        got = s.ask(letter, what)
        s.close()
        return got
    fd = os.open(out, os.O_RDONLY)
    ok(one("sign", "G", b"anything", fd)[0] == "F", "it does not sign what it is given")
    ok(one("verify", "V", b"x" * 200)[0] == "F", "nor verify")
    ok(one("", "S", b"")[0] == "F" and one("session", "A", b"{}")[0] == "F", "it does what it is for")
    got = one("session", "S", start_message(realm, old))
    ok(got[0] == "F" and b"already" in got[1], "nothing is added to a session that was", got)
    for name in ("../../0/x", "..", ".", "a/b", "", "x" * 300):
        ok(one("session", "S", start_message(name, "newone12"))[0] == "F", f"no realm is called {name[:20]!r}")
        ok(one("session", "S", start_message(realm, name))[0] == "F", f"and no session {name[:20]!r}")
    ok(one("attest", "A", {"realm": realm, "session": "newone13", "sign": True}, fd)[-2] in ("N", "D"),
       "there is nothing to say about one that never was")
    false_end(w, program, realm)
    false_entries(w, program, realm, old, out)
    os.close(fd)


def false_end(w, program, realm):
    s = Signer(w, program, "session")
    ok(s.ask("S", start_message(realm, "byhand01"))[0] == "K", "a session by hand begins")
    s.say("L", b'{"event":"start"}\n')
    got = s.ask("E", {"entries": 2, "exit": 0, "root": "A" * 43})
    ok(got[0] == "F", "an end that does not fit what came is none", got)
    s.close()
    s = Signer(w, program, "attest")
    s.say("A", {"realm": realm, "session": "byhand01", "sign": False})
    letters = [s.hear() for _ in range(5)]
    ok(letters[4][0] == "K" and b"end.tlog-proof" in letters[3][1], "it was cut off, then", [m[0] for m in letters])
    s.close()


def false_entries(w, program, realm, session, out):
    changed = w.top / "changed"
    text = (out / "entries.jsonl").read_bytes()
    for what, entries, good in (("other entries", text.replace(b'"exit":4', b'"exit":0'), False),
                                ("fewer", b"".join(text.splitlines(keepends=True)[:-1]), False),
                                ("the right ones", text, True)):
        changed.write_bytes(entries)
        fd = os.open(changed, os.O_RDONLY)
        s = Signer(w, program, "attest", fd)
        s.say("A", {"realm": realm, "session": session, "sign": True})
        letters = []
        while not letters or letters[-1][0] == "D":
            letters.append(s.hear())
        signed = any(m[1].startswith(b"session.sigstore.json") for m in letters)
        ok((letters[-1][0] == "K" and signed) if good else (letters[-1][0] == "F" and not signed),
           f"{what}: {'signed' if good else 'not signed'}", letters[-1])
        s.close()
        os.close(fd)


def test_hostile(w, place, realm):
    """What it inherits does not matter."""
    program = place / "bin/writ-signer"

    def strange():
        os.umask(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for fd in (0, 1, 2):
            os.close(fd)
    env = {"LD_PRELOAD": "/nowhere.so", "OPENSSL_CONF": "/etc/passwd", "HOME": str(w.top), "TMPDIR": str(w.top)}
    s = Signer(w, program, "session", env=env, cwd=w.top)
    s2 = subprocess.Popen(w.head + [str(program), "session"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=strange)
    ok(s2.wait(10) == 1, "without its socket it ends")
    ok(s.ask("S", start_message(realm, "strange1"))[0] == "K", "a strange environment changes nothing")
    s.close()
    group = place.joinpath("bin/writ-signer").stat().st_gid
    r = w.call("run", "--", "true", head=["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={group}"])
    ok(r.code == 122 and "group" in r.err, "a user who is in its group is refused", r)
    r = w.call("run", "--", "true", head=w.head[:-1] + ["--clear-groups", "--no-new-privs"])
    ok(r.code == 122 and "no_new_privs" in r.err, "where it cannot get its group, nothing is run", r)
    r = w.call("run", "--", "true", env={"WRIT_SIGNER": "none"})
    ok(r.code == 0, "who says so does without", r)
    r = w.call("attest", "verify", env={"WRIT_SIGNER": "none"})
    ok(r.code == 0 and "self-attested" in r.out, "and the verdict says that", r)
    code, got = w.json()
    ok(code == 0 and got["custody"] == "same-uid", "also where the signer is asked first", got)
    fake = w.top / "conf"
    fake.write_text(f"writ-signer 1\ndir {w.top}\n")
    shutil.chown(fake, USER)
    r = w.call("run", "--", "true", env={"WRIT_SIGNER": str(fake)})
    ok(r.code != 0 and "root" in r.err, "nobody but root says where it is", r)


def test_inside(w, place):
    r = w.call("run", "--allow", f"read:{place}", "--allow", "write:.", "--", "sh", "-c",
               f"ls {place}/data; {place}/bin/writ-signer attest; grep NoNewPrivs /proc/self/status")
    ok("NoNewPrivs:\t1" in r.out and str(os.stat(w.home).st_uid) not in r.out, "inside nothing of it is reached", r)


def test_linked(w, place):
    """The program under another name finds no directory that it believes."""
    other = w.top / "elsewhere"
    (other / "bin").mkdir(parents=True)
    (other / "data").mkdir(mode=0o770)
    group = (place / "bin/writ-signer").stat().st_gid
    shutil.copy(place / "bin/writ-signer", other / "bin/writ-signer")
    subprocess.run(["chown", "-R", USER, other], check=True)
    os.chown(other / "bin/writ-signer", 0, group)
    os.chmod(other / "bin/writ-signer", 0o2755)
    os.chown(other / "data", -1, group)
    os.chmod(other / "data", 0o2770)
    s = Signer(w, other / "bin/writ-signer", "session")
    got = s.ask("S", start_message("l-x", "linked01"))
    s.close()
    ok(got[0] == "F" and b"directory" in got[1], "a directory that the user made is none of its own", got)


def main():
    if os.geteuid() != 0:
        return skip("custody by another user", "needs root")
    name, top = accounts(), Path(tempfile.mkdtemp(prefix="writ-signer-", dir="/var/lib"))
    os.chmod(top, 0o755)
    conf, place = top / "conf", top / "place"
    try:
        with World(USER, conf) as w:
            r = w.call("signer", "install")
            ok(r.code == 125 and "root" in r.err, "only root installs it", r)
            r = w.call("signer", "install", "--dir", place, "--user", name, head=[])
            ok(r.code == 0, "it is installed", r)
            out = test_kept(w)
            realm = json.loads((out / "session.json").read_text())["realm"]
            test_shown(w, place)
            test_both_logs(w)
            test_witnessed(w, place)
            test_bad_cosigned(w, place, realm)
            test_closed(w, place)
            test_attack(w, place)
            test_cut(w, place)
            test_stopped(w, place)
            test_quota(w, place)
            test_by_hand(w, place, out)
            test_hostile(w, place, realm)
            test_inside(w, place)
            test_linked(w, place)
            shutil.rmtree(out)
            r = w.call("signer", "remove", head=[])
            ok(r.code == 0 and not conf.exists() and (place / "data").is_dir(), "it is removed, its logs are not", r)
            r = w.call("run", "--", "true")
            ok(r.code == 0 and "self-attested" in w.call("attest", "verify").out, "and users keep theirs again", r)
    finally:
        shutil.rmtree(top, ignore_errors=True)
        subprocess.run(["userdel", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return None
