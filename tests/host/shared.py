"""shared.py - what the kernel counts for a user or for the machine: no session takes all of it."""
import json
import os
import subprocess
import time
from pathlib import Path

from host import OTHER_USER, PYTHON, ROOT, test, wait_for

TIERS = ("A", "B")

# How every script below begins: a call that says its errno.
HEAD = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    r = libc.syscall(nr, *args)
    return r if r >= 0 else -ctypes.get_errno()
def hold(*said):
    with open("said.new", "w") as f: print(*said, file=f)
    os.rename("said.new", "said")
    while not os.path.exists("go"): time.sleep(0.01)
"""


def held(w, argv, script, *args, inside=True, tier="A", judge=lambda: None):
    """Starts a script, with @argv before it, and returns what it said and what judge() saw while it held what it took."""
    for name in ("said", "go"):
        (w.ws / name).unlink(missing_ok=True)
    box = (w.program, "run", "-q", "--tier", tier, "--") if inside else ()
    p = w.start([*argv, *box, PYTHON, "-c", HEAD + script, *args])
    try:
        said = wait_for(lambda: p.poll() is not None or (w.ws / "said").exists(), 20) and (w.ws / "said").exists()
        seen = judge() if said else None
        return ((w.ws / "said").read_text().split() if said else None), seen
    finally:
        w.put("go", "")
        p.wait(20)


def contexts():
    return int(Path("/proc/sys/fs/aio-nr").read_text())


@test("contexts of asynchronous input and output", alone=True)
def _(w):
    """The kernel counts them for the machine, root included: fs.aio-max-nr."""
    script = ("import platform\n"
              "n, c = (206 if platform.machine() == 'x86_64' else 0), ctypes.c_ulong(0)\n"
              "hold(call(n, int(sys.argv[1]), ctypes.byref(c)))")
    many = 4096
    before = contexts()
    said, during = held(w, (), script, many, inside=False, judge=contexts)
    w.ok(said == ["0"] and during >= before + many, "control: outside they can be made, and are counted", (said, before, during))
    for tier in TIERS:
        before = contexts()
        said, during = held(w, (), script, many, tier=tier, judge=contexts)
        w.same(said, ["-38"], f"{tier}: inside the call does not exist: programs fall back")
        w.ok(during < before + many, f"{tier}: the machine has lost none", (before, during))


QUEUE = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
n = 0
while n < int(sys.argv[1]) and libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0: n += 1
hold(n)
"""


@test("queued signals", alone=True)
def _(w):
    """The kernel counts them for a user, in every namespace: timers need one, too."""
    most = 4000
    limit = ("prlimit", f"--sigpending={most}")
    more = [*limit, PYTHON, "-c", HEAD + QUEUE.replace("hold(n)", "print(n)"), "200"]
    said, _ = held(w, limit, QUEUE, most * 2, inside=False)
    w.ok(said and int(said[0]) > most // 2, "control: outside one program can take them all", said)
    for tier in TIERS:
        said, other = held(w, limit, QUEUE, most * 2, tier=tier, judge=lambda: w.call(more))
        w.ok(said and 100 <= int(said[0]) <= most // 4, f"{tier}: a session has some, but few of the user's", said)
        w.same(other and other.out, b"200\n", f"{tier}: programs outside still have theirs", other)


WATCH = """
open("began", "w").close()  # its own mediator runs before the instances are gone
n, e = 0, 0
while e == 0 and n < 500:
    e = min(libc.inotify_init1(0), 0)
    n += e == 0
hold(n)
"""


@test("inotify instances")
def _(w):
    """All of it happens in a user namespace whose limit is low: nothing is taken from this user's other programs."""
    (w.ws / "other").mkdir()
    if w.user is not None:
        os.chown(w.ws / "other", w.user, w.user)
    with open(w.ws / "inner.py", "w") as f:
        f.write(HEAD + WATCH)
    script = """
echo 16 >/proc/sys/user/max_inotify_instances || exit 77
rm -f said go
"$1" run -q --tier "$2" -- "$3" inner.py & p=$!
i=0; while [ ! -e said ] && [ $i -lt 1000 ]; do sleep 0.01; i=$((i + 1)); done
cat said
(cd other && "$1" run -q --tier "$2" -- sh -c 'echo x >f && mkdir -p d && rm -r d'); echo "other $?"
"$3" -c 'import ctypes; print("outside", ctypes.CDLL(None).inotify_init1(0) >= 0)'
touch go; wait $p; echo "first $?"
"""
    for tier in TIERS:
        r = w.call(["unshare", "-Ur", "sh", "-c", script, "sh", w.program, tier, PYTHON], timeout=60)
        if r.code == 77 or r.code == 1 and b"unshare" in r.err:
            w.ok(True, "not run # SKIP no user namespaces here")
            return
        said = r.text.split("\n")
        w.ok(said[0].isdigit() and int(said[0]) > 0, f"{tier}: control: a session has instances", r)
        w.ok("other 0" in said, f"{tier}: another session works all the same", r)
        if tier == "A":
            w.ok(said[0].isdigit() and int(said[0]) <= 8, "A: and it has no more than a part of the user's", r)
            w.ok("outside True" in said, "A: programs outside still have theirs", r)
        w.ok("first 0" in said, f"{tier}: the first ends as usual", r)


FILL = """
import array, resource, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
def send(s, n):
    try:
        s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1] * n))], socket.MSG_DONTWAIT)
        return True
    except OSError as e:
        return e.errno == 11
pairs, n = [], 0
def fill(most):
    global n
    while n < most:
        pairs.append(socket.socketpair())
        while n < most and send(pairs[-1][0], min(most - n, 50)) and len(pairs) < 60: n += min(most - n, 50)
        if n >= most or not send(pairs[-1][0], 1): return
        pairs.append(socket.socketpair())
"""


@test("descriptors in flight", alone=True)
def _(w):
    """The kernel counts those of a user, and compares them with the limit of open files of whoever sends the next."""
    limit = ("prlimit", "--nofile=128:512")
    (w.dir / "granted").mkdir()
    (w.ws / "other").mkdir()
    for d in (w.dir / "granted", w.ws / "other"):
        if w.user is not None:
            os.chown(d, w.user, w.user)
    outside = [*limit, PYTHON, "-c", HEAD + FILL + "p = socket.socketpair(); print(send(p[0], 1))"]

    def judge():
        sid = next(iter(w.ids()), "none")
        return (w.call([*limit, w.program, "run", "-q", "--tier", tier, "--", "sh", "-c", "echo x >f"], cwd=w.ws / "other"),
                w.call([*limit, w.program, "allow", sid, f"write:{w.dir / 'granted'}"]), w.call(outside))

    for tier in TIERS:
        said, seen = held(w, limit, FILL + "fill(2000); hold(n)", tier=tier, judge=judge)
        w.ok(said and 100 < int(said[0]), f"{tier}: control: a session sends descriptors", said)
        if not seen:
            continue
        w.exits(seen[0], 0, f"{tier}: another session starts and works")
        w.exits(seen[1], 0, f"{tier}: a grant reaches the session")
        w.same(seen[2].out, b"True\n", f"{tier}: programs outside send theirs", seen[2])


@test("a mediator that cannot be given its calls ends the session", alone=True)
def _(w):
    """Somebody else has put more descriptors in flight than writ may have open: its helper cannot be given anything."""
    if ROOT:
        w = w.at("/tmp", OTHER_USER)
    (w.dir / "granted").mkdir()
    w.put("slow.py", "import time, os\nopen('/dev/null').close()\nwhile not os.access('/proc/self/cwd/full', 0): time.sleep(0.02)\n"
          "time.sleep(3)\ntry: os.mkdir('made')\nexcept OSError: pass\n")
    for tier in TIERS:
        for full in (False, True):
            (w.ws / "full").unlink(missing_ok=True)
            p = w.start(["prlimit", "--nofile=128:256", w.program, "run", "-q", "--tier", tier, "--", PYTHON, "-B", "slow.py"],
                        stderr=subprocess.DEVNULL)
            sid = wait_for(lambda: next(iter(w.ids()), None))
            time.sleep(0.5)
            other = [PYTHON, "-c", HEAD + FILL + f"fill({900 if full else 1}); hold(n)"]
            for name in ("said", "go"):
                (w.ws / name).unlink(missing_ok=True)
            q = w.start(["prlimit", "--nofile=2000:2000", *other])
            wait_for(lambda: (w.ws / "said").exists())
            r = w.writ("allow", str(sid), f"write:{w.dir / 'granted'}")
            w.put("full", "")
            code = p.wait(20)
            w.put("go", "")
            q.wait(20)
            if full:
                w.ok(r.code != 0 and code == 125, f"{tier}: the session ends, and says so", (r, code))
            else:
                w.same((r.code, code), (0, 0), f"{tier}: control: it goes on after a grant", r)


COMMANDS = """
import fcntl, json
said = {}
for name, cmd in json.loads(sys.argv[1]).items():
    try: fcntl.ioctl(os.open("file", os.O_RDONLY), cmd, bytearray(1024))
    except OSError as e: said[name] = e.errno
    else: said[name] = 0
print(json.dumps(said))
"""


@test("commands of file systems")
def _(w):
    """The owner of a file may give them through a descriptor for reading; some change what everybody sees."""
    w.put("file", "")
    change = {"btrfs: a subvolume read-only": 0x4008941A, "btrfs: a default": 0x40089413, "verity": 0x40806685, "fat: attributes": 0x40047211,
              "ext4: version": 0x40086604, "version": 0x40087602}
    read = {"flags": 0x80086601, "extents": 0xC020660B}
    ask = json.dumps({**change, **read})
    bare = json.loads(w.call([PYTHON, "-c", HEAD + COMMANDS, ask]).out)
    w.ok(bare["btrfs: a subvolume read-only"] not in (0, 1), "control: outside the file system answers", bare)
    for tier in TIERS:
        got = json.loads(w.run(PYTHON, "-c", HEAD + COMMANDS, ask, opts=("-q", "--tier", tier)).out)
        w.same({n: got[n] for n in change}, dict.fromkeys(change, 1), f"{tier}: none of them gets there")
        w.same({n: got[n] for n in read}, {n: bare[n] for n in read}, f"{tier}: control: those that read do")
