"""hostile.py - odd names, full disks, exhausted limits, signals at the worst moment."""
import json
import os
import random
import resource
import signal
import socket
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from host import OTHER_USER, ROOT, processes, snapshot, difference, test, wait_for


@test("odd names of workspaces")
def _(w):
    long = "/".join(["n" * 250] * 14)
    names = {"a newline": b"new\nline", "quotes": b"it's \"quoted\"", "blanks": b" two  blanks ", "a backslash": b"back\\slash",
             "invalid UTF-8": b"caf\xe9 \xff\xfe", "stars": b"*.c [x] ?", "a hash": b"# no comment", "a dollar": b"$HOME `id`",
             "control characters": b"\x01\x1b[31m\x7f", "a leading dash": b"-rf", "UTF-8": "größe".encode(), "colons": b"a:b;c",
             "about 3800 bytes": long.encode()}
    for name, raw in names.items():
        path = os.path.join(os.fsencode(w.ws), raw)
        subprocess.run([b"mkdir", b"-p", b"--", path], check=True)
        r = w.sh("echo made > file && cat file && pwd -P", cwd=path)
        w.ok(r.code == 0 and r.out == b"made\n" + path + b"\n", f"{name}: works there", r)
        w.ok(os.path.exists(path + b"/file"), f"{name}: and the file is there")
        r = w.sh("exit 3", opts=("--policy", w.policy("allow write .")), cwd=path)
        w.exits(r, 3, f"{name}: with a policy")
    records = w.records()
    w.same([r[-1]["event"] for r in records], ["end"] * 2 * len(names), "each has a record, in JSON to its end")


@test("a workspace in /var/tmp")
def _(w):
    v = w.at("/var/tmp")
    for tier in ("A", "B"):
        r = v.sh(f"echo made > {tier} && cat {tier} && pwd -P", opts=("--tier", tier))
        w.ok(r.code == 0 and r.text == f"made\n{v.ws}\n", f"tier {tier}: works as anywhere", r)


@test("a workspace of more than 4000 bytes")
def _(w):
    here = os.open(w.ws, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("m" * 250, dir_fd=here)
        here, old = os.open("m" * 250, os.O_RDONLY, dir_fd=here), here
        os.close(old)
    r = w.sh("exit 0", cwd=f"/proc/self/fd/{here}", pass_fds=(here,))
    w.ok(r.code in (0, 125) and (r.code == 0 or r.err), "works, or says why not", r)
    w.ok(r.code != 125 or "ame too long" in r.said or "current directory" in r.said, "in words", r)
    os.close(here)


@test("directories that are gone, closed or links")
def _(w):
    gone = w.ws / "gone"
    gone.mkdir()
    r = w.call(["sh", "-c", f"cd {gone}; rmdir {gone}; exec {w.program} run -- true"])
    w.exits(r, 125, "a current directory that was removed")
    w.ok("current directory" in r.said or "No such file" in r.said, "is said", r)
    if not ROOT:
        shut = w.ws / "shut"
        shut.mkdir()
        fd = os.open(shut, os.O_PATH)
        shut.chmod(0)
        r = w.sh("echo in; pwd", cwd=w.ws, opts=("-C", str(shut)))
        w.ok(r.code == 125 and r.err, "an unreadable directory", r)
        os.close(fd)
        shut.chmod(0o700)
    link, real = w.dir / "link", w.dir / "real"
    real.mkdir()
    link.symlink_to(real)
    r = w.sh("pwd -P; echo x > f", cwd=link, env={**w.env, "PWD": str(link)})
    w.ok(r.code == 0 and (real / "f").exists() and r.text.strip() == str(real), "a workspace that is a link", r)
    (w.ws / "dangling").symlink_to("nowhere")
    r = w.sh("touch ran", opts=("--policy", w.policy("allow read ./dangling", "allow write .")))
    w.exits(r, 121, "a root that is a dangling link")
    w.exits(w.sh("touch ran2", opts=("--policy", w.policy("allow read ?./dangling", "allow write ."))), 0, "an optional one")
    w.ok(not (w.ws / "ran").exists() and (w.ws / "ran2").exists(), "nothing ran in the first, the second did")
    (w.ws / "out").symlink_to(w.dir)
    w.exits(w.sh("true", opts=("--policy", w.policy("allow write ./out"))), 121, "a link that leads out")


@test("HOME")
def _(w):
    env = {k: v for k, v in w.env.items() if k != "HOME"}
    xdg = {"XDG_STATE_HOME": str(w.dir / "state"), "XDG_CONFIG_HOME": str(w.dir / "config")}
    r = w.sh("echo ~", env={**env, **xdg})
    w.ok(r.code == 0 and r.out == b"/var/agent/home\n", "unset, but with a place for state", r)
    for name, home in (("relative", "home"), ("missing", str(w.dir / "none")), ("a file", w.policy()), ("empty", "")):
        r = w.sh("exit 6", env={**w.env, "HOME": home, **xdg})
        w.exits(r, 6, f"{name}, with a place for state")
    closed = w.dir / "closed"
    closed.mkdir(mode=0o500)
    if not ROOT:
        r = w.sh("exit 6", env={**w.env, "HOME": str(closed)})
        w.ok(r.code == 125 and str(closed) in r.said, "unwritable: says which", r)
    r = w.sh("exit 6", env={**w.env, "HOME": "/proc"})
    w.ok(r.code == 125 and r.err, "on a file system that cannot be written", r)
    r = w.sh("true", env={**w.env, "XDG_STATE_HOME": "/dev/null"})
    w.ok(r.code == 125 and r.err, "a state directory that is none", r)
    w.same(sorted(p.name for p in w.ws.iterdir()), [], "nothing was made in the workspace")


@test("a full disk", needs_root=True)
def _(w):
    small = w.dir / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
    try:
        env = {**w.env, "XDG_STATE_HOME": str(small)}
        with open(small / "filler", "wb") as f:
            try:
                f.write(bytes(1 << 20))
            except OSError:
                pass
        r = w.sh("touch ran", env=env)
        w.ok(r.code == 125 and "space" in r.said, "for the state: it does not start, and says why", r)
        w.ok(not (w.ws / "ran").exists(), "nothing ran")
        (small / "filler").unlink()
        r = w.sh("touch ran; exit 3", env=env)
        w.ok(r.code == 3 and (w.ws / "ran").exists(), "control: with room it does", r)
        with open(small / "filler", "wb") as f:
            try:
                f.write(bytes(1 << 20))
            except OSError:
                pass
        r = w.sh("touch unrecorded", env=env)
        w.ok(r.code == 125 and "record" in r.said, "for the record alone: it does not start either", r)
        w.ok(not (w.ws / "unrecorded").exists(), "and nothing ran")
        left = [str(p) for p in (small / "writ/run").rglob("*")]
        w.same(left, [], "and nothing is left of any")
    finally:
        subprocess.run(["umount", small], check=True)


def limited(what, value):
    return lambda: resource.setrlimit(what, (value, value))


@test("exhausted limits of the launcher")
def _(w):
    def fits(r):
        """It ran, or it did not and said why."""
        return (r.code, r.out) == (0, b"ran\n") or (r.code in (122, 125) and r.err and not r.out)

    w.exits(w.sh("exit 0"), 0, "control: without a limit")
    for n in (4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64):
        r = w.sh("echo ran", preexec_fn=limited(resource.RLIMIT_NOFILE, n))
        w.ok(fits(r), f"{n} descriptors: runs, or says that it cannot", r)
    w.ok(r.code == 0, "64 are enough", r)
    w.clean("descriptors: nothing is left", seconds=1)
    r = w.sh("echo ran", preexec_fn=limited(resource.RLIMIT_FSIZE, 0))
    w.ok(fits(r), "no file may grow: runs, or says that it cannot", r)
    r = w.sh("echo ran", preexec_fn=limited(resource.RLIMIT_AS, 32 << 20))
    w.ok(fits(r), "little memory: runs, or says that it cannot", r)
    w.clean("nothing is left", seconds=1)


@test("what was found under a tight limit is not believed later")
def _(w):
    for n in (5, 6, 8, 10, 12, 16):
        env = {**w.env, "XDG_STATE_HOME": str(w.dir / f"state{n}")}
        first = w.sh("exit 3", env=env, preexec_fn=limited(resource.RLIMIT_NOFILE, n))
        r = w.sh("exit 3", env=env)
        w.exits(r, 3, f"the first run had {n} descriptors and ended with {first.code}: the next one works")


@test("no more processes", alone=True)
def _(w):
    w = w.at("/tmp", OTHER_USER if ROOT else None)
    uid = OTHER_USER if ROOT else os.geteuid()
    w.exits(w.sh("exit 4"), 4, "control: without a limit")
    could, could_not = 0, 0
    for n in range(0, 14):
        own = sum(1 for p in os.listdir("/proc") if p.isdigit() and os.path.exists(f"/proc/{p}") and
                  os.stat(f"/proc/{p}").st_uid == uid)
        r = w.call(["bash", "-c", f"ulimit -u {own + n}; exec \"$@\"", "bash", w.program, "run", "--", "sh", "-c",
                    "echo ran; exit 4"], timeout=8)
        ran = (r.code, r.out) == (4, b"ran\n")
        w.ok(ran or (r.code in (122, 125, 126) and r.err and not r.out), f"{n} more: runs, or says that it cannot", r)
        could, could_not = could + ran, could_not + (not ran)
    w.ok(could_not, "control: some of them could not", could)
    w.exits(w.sh("exit 4"), 4, "and the next one, without a limit, works")
    w.clean("nothing is left", seconds=1)


@test("signals at any moment of starting", alone=True)
def _(w):
    w.sh("true")
    before = snapshot(w.ws)
    random.seed(7)
    moments = [(random.random() * (0.010 if i < 60 else 0.040), (signal.SIGTERM, signal.SIGINT)[i % 2]) for i in range(100)]

    def one(moment):
        proc = w.start([w.program, "run", "--", "sleep", "3"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(moment[0])
        os.kill(proc.pid, moment[1])
        proc.communicate()
        return moment[1].name, proc.returncode
    with ThreadPoolExecutor(3) as pool:
        ends = Counter(pool.map(one, moments))
    want = {("SIGTERM", 143), ("SIGTERM", -15), ("SIGINT", 130), ("SIGINT", -2)}
    w.same({e: n for e, n in ends.items() if e not in want}, {}, "each run ends by its signal (0: the signal was lost)", ends)
    w.clean("nothing is left", seconds=1)
    w.same(difference(before, snapshot(w.ws)), [], "the workspace is as it was")
    w.exits(w.sh("exit 3"), 3, "and the next run works")


@test("SIGKILL at any moment of starting", alone=True)
def _(w):
    w.sh("true")
    random.seed(8)
    for _ in range(40):
        proc = w.start([w.program, "run", "--", "sleep", "20", w.mark], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.03)
        proc.kill()
        proc.wait()
    w.ok(wait_for(lambda: not processes(w.mark), 1), "no process stays", processes(w.mark))
    w.exits(w.sh("exit 3"), 3, "the next run works")
    w.clean("and tidies up")


@test("huge arguments and environments")
def _(w):
    big = "x" * 100_000
    r = w.sh("printf %s \"$1\" | wc -c", "sh", big)
    w.same((r.code, r.text.strip()), (0, "100000"), "one argument of 100 KB", r.said[:300])
    many = ["y" * 100] * 10_000
    r = w.sh("echo $#; echo ${9999}", "sh", *many)
    w.ok(r.code == 0 and r.text.startswith("10000\n"), "ten thousand arguments", r.said[:300])
    env = {**w.env, **{f"LC_{i}": "z" * 1000 for i in range(500)}}
    r = w.sh("env | grep -c ^LC_", env=env)
    w.same(r.text.strip(), "500", "an environment of half a megabyte", r.said[:300])
    half = ["a" * 131000] * 8
    env = {**w.env, **{f"LC_{i}": "z" * 130000 for i in range(8)}}
    r = w.run("true", *half, env=env)
    w.ok(r.code == 0 or (r.code == 126 and "too long" in r.said), "two megabytes: runs, or says that it is too long", r)
    r = w.sh("echo ok", env={**w.env, "LC_EVIL": "a\nb=c\x01\xff"})
    w.same(r.out, b"ok\n", "odd bytes in the environment")
    r = w.run("printf", "%s|", "", "a b", "new\nline", "\xe9", "*")
    w.same(r.out, "|a b|new\nline|\xe9|*|".encode(), "arguments are passed as they are")
    r = w.call([w.program, "run", "--", "printf", "%s", b"\xff\xfe"])
    w.same(r.out, b"\xff\xfe", "also those that are no text")


@test("many things in one policy")
def _(w):
    lines = []
    for i in range(300):
        (w.ws / f"d{i}").mkdir()
        lines.append(f"allow write ./d{i}")
    r = w.sh("for i in 0 150 299; do touch d$i/x; done; touch y", opts=("--policy", w.policy(*lines)))
    w.ok(r.code == 1 and all((w.ws / f"d{i}/x").exists() for i in (0, 150, 299)) and not (w.ws / "y").exists(),
         "three hundred roots", r)
    deep = "/".join(["e"] * 100)
    (w.ws / deep).mkdir(parents=True)
    r = w.sh(f"touch {deep}/x; touch y", opts=("--policy", w.policy(f"allow write ./{deep}")))
    w.ok((w.ws / deep / "x").exists() and not (w.ws / "y").exists(), "a root one hundred deep", r)


CONNECT = """
import socket
def reach(kind, path):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(3)
    s.connect(path)
    s.send(b"hello")
def say(f, *a):
    try:
        f(*a)
        return "reached"
    except OSError as e:
        return e.strerror
"""


@test("sockets of programs outside")
def _(w):
    shown = w.dir / "shown"
    shown.mkdir()
    kinds = {"s": socket.SOCK_STREAM, "d": socket.SOCK_DGRAM, "q": socket.SOCK_SEQPACKET}
    open_ones = []
    for folder in (w.ws, shown):
        for name, kind in kinds.items():
            s = socket.socket(socket.AF_UNIX, kind)
            s.bind(str(folder / name))
            if kind != socket.SOCK_DGRAM:
                s.listen()
            open_ones.append(s)
    for tier in ("A", "B"):
        policy = w.policy("allow write .", f"allow read {shown}")
        script = CONNECT + "print(json.dumps([say(reach, k, p) for k, p in json.loads(sys.argv[1])]))"
        asked = json.dumps([(int(k), str(f / n)) for f in (w.ws, shown) for n, k in kinds.items()])
        got = w.python(script, asked, opts=("--quiet", "--tier", tier, "--policy", policy))
        w.same(got, ["Permission denied"] * 6, f"tier {tier}: none is reached, in what is written and in what is read")
        rules = [f"allow unix {f / n}" for f in (w.ws, shown) for n in kinds]
        got = w.python(script, asked, opts=("--tier", tier, "--policy", w.policy("allow write .", f"allow read {shown}", *rules)))
        w.same(got, ["reached"] * 6, f"tier {tier}: control: by a rule each of them is")
        denied = [e["object"] for e in w.events("denied")]
        w.same(denied, [], f"tier {tier}: and nothing was refused")
    for s in open_ones:
        s.close()


@test("sockets of its own")
def _(w):
    own = CONNECT + """
def pair(folder, kind):
    l = socket.socket(socket.AF_UNIX, kind)
    l.bind(folder + "/own")
    if kind != socket.SOCK_DGRAM:
        l.listen()
    try:
        reach(kind, folder + "/own")
    finally:
        os.unlink(folder + "/own")
def loop():
    l = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(l.getsockname(), 3)
    c.sendall(b"x")
    assert l.accept()[0].recv(1) == b"x"
def two():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.send(b"x")
    assert b.recv(1) == b"x"
dirs = [".", os.environ["TMPDIR"], os.environ["HOME"]]
print(json.dumps([[say(pair, d, k) for d in dirs for k in (1, 5)], [say(pair, d, 2) for d in dirs] + [say(two)], say(loop)]))
"""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(w.dir / "server"))
    server.listen()
    for tier, plain in (("A", "Permission denied"), ("B", "reached")):
        streams, datagrams, loop = w.python(own, opts=("--quiet", "--tier", tier))
        w.same(streams, ["reached"] * 6, f"tier {tier}: streams and packets, in the workspace, TMPDIR and HOME")
        w.same(datagrams, [plain] * 4, f"tier {tier}: datagrams")
        w.ok(loop == "reached" if tier == "A" else loop.startswith("Permission denied"), f"tier {tier}: the loopback", loop)
        policy = w.policy("allow write .", f"allow unix {w.dir / 'server'}")
        streams, datagrams, _ = w.python(own, opts=("--tier", tier, "--policy", policy))
        w.same([streams, datagrams], [["reached"] * 6, ["reached"] * 4], f"tier {tier}: all of it where a rule names a socket")
    server.close()


@test("a connect that has to wait")
def _(w):
    script = CONNECT + """
import threading, time
l = socket.socket(socket.AF_UNIX)
l.bind("full")
l.listen(0)
held = []
def more():
    s = socket.socket(socket.AF_UNIX)
    s.connect("full")
    held.append(s)
t = [threading.Thread(target=more) for _ in range(4)]
for x in t: x.start()
time.sleep(0.5)
before = len(held)
for _ in range(4): l.accept()
for x in t: x.join(5)
n = socket.socket(socket.AF_UNIX)
n.setblocking(False)
n.connect("full")
print(json.dumps([before < 4, len(held), n.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO)]))
"""
    for tier in ("A", "B"):
        w.same(w.python(script, opts=("--tier", tier)), [True, 4, 0], f"tier {tier}: waits, and nobody else does")
        os.unlink(w.ws / "full")
