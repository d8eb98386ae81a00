"""hidden.py - files that a rule hides by their name stay hidden, whatever becomes of their names."""
import os
import shutil

from host import PYTHON, ROOT, places, test, wait_for

HIDES = ("allow write .", "deny read **/.env")


def worlds(w):
    """Worlds outside /tmp, which belongs to a session; as root also one of another user."""
    found = [w.at(top, user) for top, user in places()[1:]] if ROOT else []
    return found or [w.at("/var/tmp")]


def tiers(w):
    return ["A", "B"] if w.run("true", opts=("--tier", "B")).code != 122 else ["A"]


def put(w, path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    for p in (path.parent, path) if w.user is not None else ():
        os.chown(p, w.user, w.user)


def waits(script):
    """A script for background(), which starts once the test has written `go` beside it."""
    return "while [ ! -e go ]; do sleep 0.05; done\n" + script


def result_of(w, proc, text="go"):
    w.put(text, "")
    out, err = proc.communicate(timeout=30)
    return out.decode(errors="replace"), err.decode(errors="replace")


@test("a live grant shows no file that a rule hides")
def _(w):
    for world in worlds(w):
        for kind in ("read", "write"):
            granted(world, kind, world.dir / f"granted-{kind}")


def granted(w, kind, d):
    for name, text in ((".env", "HIDDEN"), ("named", "NAMED"), ("plain", "plain")):
        put(w, d / name, text)
    (d / "link").symlink_to(".env")
    script = waits('cd "$1" && for f in plain .env named link ./.env; do cat $f 2>/dev/null && echo " $f"; done; '
                   'cat <.env; cat /proc/self/cwd/.env; cp .env /tmp/x; cat /tmp/x; tail -n +1 *; exit 11')
    proc, sid = w.background(script, "sh", str(d), opts=("--tier", "A", "--policy", w.policy(*HIDES, f"deny read {d}/named")))
    w.exits(w.writ("allow", sid, f"{kind}:{d}"), 0, f"{kind}: allow")
    out, err = result_of(w, proc)
    w.ok("plain plain" in out, f"{kind}: control: what is beside is read", out + err)
    w.ok("HIDDEN" not in out and "NAMED" not in out, f"{kind}: what the policy hides is not", out)
    w.ok([e for e in w.events("denied") if e["object"] == str(d / ".env")], f"{kind}: and it is on record as denied", w.events("denied"))
    (w.ws / "go").unlink()


@test("a live grant is refused if it would show what a line hides")
def _(w):
    for world in worlds(w):
        d = world.dir / "granted"
        for name in ("open/plain", "keys/a.key", "keys/plain", "secret/file"):
            put(world, d / name, name)
        for deny, refused, held in ((f"deny read {d}/secret", (d, d / "secret", d / "secret/file"), d / "open"),
                                    (f"deny read {d}/keys/*.key", (d, d / "keys", d / "keys/a.key"), d / "secret")):
            script = waits('cd "$1" && cat open/plain keys/* secret/file 2>/dev/null; exit 11')
            proc, sid = world.background(script, "sh", str(d), opts=("--tier", "A", "--policy", world.policy("allow write .", deny)))
            for path in refused:
                for kind in ("read", "write"):
                    r = world.writ("allow", sid, f"{kind}:{path}")
                    world.ok(r.code == 125 and "--allow" in r.said, f"{deny.split('/')[-1]}: {kind} of {path.name} is refused, and it says what to do", r)
            world.exits(world.writ("allow", sid, f"read:{held}"), 0, f"{deny.split('/')[-1]}: control: what is beside is granted")
            out, err = result_of(world, proc)
            world.same(out, "open/plain" if held.name == "open" else "secret/file", "control: and read, and nothing else", err)
            (world.ws / "go").unlink()


@test("nothing but plain files is opened below a live grant", needs_root=True)
def _(w):
    for world in worlds(w):
        nested(world)


def nested(w):
    """A tree with a procfs of the host in it, as the root of a container has one."""
    d = w.dir / "root"
    put(w, d / "etc/plain", "plain")
    for name in ("proc", "sys"):
        (d / name).mkdir()
    os.mkfifo(d / "pipe")
    victim = w.start(["sleep", "60"], env={**w.env, "CANARY": "hunter2"})
    script = waits(f'''"{PYTHON}" - "$1" {victim.pid} <<'E'
import os, sys
d, pid = sys.argv[1:]
def read(name):
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        print(name, "opened", os.read(fd, 200) if not os.path.isdir(name) else os.listdir(fd))
    except OSError as e:
        print(name, "refused", e.errno)
read(d + "/etc/plain")
for n in ("environ", "maps", "mem", "cmdline", "status", "task"):
    read(d + "/proc/" + pid + "/" + n)
read(d + "/proc/uptime")
read(d + "/sys/kernel/uevent_seqnum")
read(d + "/pipe")
held = os.open("/proc/1/environ", os.O_PATH)
read("/proc/self/fd/%d" % held)
at = os.open(d + "/proc/" + pid, os.O_PATH)
try:
    os.open("environ", os.O_RDONLY, dir_fd=at)
    print("at opened")
except OSError:
    print("at refused")
E''')
    drop = [] if w.user is None else ["setpriv", f"--reuid={w.user}", f"--regid={w.user}", "--clear-groups"]
    inner = (f'mount -t proc proc {d}/proc && mount -t sysfs sysfs {d}/sys || exit 77\n{" ".join(drop)} "$@" & p=$!\n'
             f'for i in $(seq 100); do sleep 0.1; s=$({" ".join(drop)} {w.program} ps --json | grep -o \'"session": *"[^"]*"\' | head -n1 | cut -d\\" -f4); [ "$s" ] && break; done\n'
             f'{" ".join(drop)} {w.program} allow "$s" read:{d} >&2; echo go >{w.ws}/go; chmod 644 {w.ws}/go; wait $p')
    r = w.call(["unshare", "-m", "--propagation", "private", "sh", "-c", inner, "sh", w.program, "run", "--tier", "A", "--policy",
                w.policy(*HIDES), "--", "sh", "-c", script, "sh", str(d)], as_user=0, timeout=60)
    if r.code == 77:
        w.ok(True, "not run # SKIP no procfs can be mounted here")
        return
    w.ok(f"{d}/etc/plain opened b'plain'" in r.text, "control: a plain file is opened", r)
    w.same([l for l in r.text.splitlines() if " opened" in l and "/etc/plain" not in l], [], "nothing else is", r)
    w.ok("hunter2" not in r.text, "and no environment of another process is seen", r)


@test("a hidden file that is replaced stays hidden")
def _(w):
    for world in worlds(w):
        for tier in tiers(world):
            replaced(world, tier)


def replaced(w, tier):
    """The host saves a file as editors do: a new file takes the name of the old one."""
    script = f'''exec "{PYTHON}" -c "
import os, time
end, seen, plain = time.monotonic() + 3, set(), 0
while time.monotonic() < end:
    for name in ('.env', 'plain'):
        try:
            fd = os.open(name, os.O_RDONLY)
        except OSError:
            continue
        text = os.read(fd, 10)
        os.close(fd)
        plain += name == 'plain'
        seen |= {{text}} if name == '.env' else set()
print(len(seen), plain)
"'''
    for name in (".env", "plain"):
        put(w, w.ws / name, "SECRET")
    proc, _ = w.background(script, opts=("--tier", tier, "--policy", w.policy(*HIDES)))
    saves = 0
    while proc.poll() is None:
        for name in (".env", "plain"):
            put(w, w.dir / "new", f"SECRET{saves % 1000}")
            os.rename(w.dir / "new", w.ws / name)
        saves += 1
    out, err = proc.communicate()
    got = out.split()
    w.ok(len(got) == 2 and int(got[1]) > 10 and saves > 10, f"{tier}: control: what is not hidden is read meanwhile ({saves} saves)", out + err)
    w.ok(got[:1] == [b"0"], f"{tier}: no save shows the hidden file", out + err)


@test("a hidden program is not run under another name")
def _(w):
    for world in worlds(w):
        for tier in tiers(world):
            hidden_program(world, tier)


WAYS = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
name, here = sys.argv[1:3]
tmp = os.environ.get("TMPDIR", "/tmp")
fd = os.open(name, os.O_PATH)
folder = os.open(".", os.O_PATH)
def script(n):
    with open(tmp + "/" + n, "w") as f:
        f.write("#!" + here + "/" + name + "\\n")
    os.chmod(tmp + "/" + n, 0o755)
    return tmp + "/" + n
for at, to in ((tmp + "/one", here + "/" + name), (tmp + "/two", tmp + "/one"), ("three", here + "/" + name), ("four", "/proc/self/fd/%d" % fd)):
    if os.path.lexists(at):
        os.unlink(at)
    os.symlink(to, at)
ways = {"name": name, "path": here + "/" + name, "fd": "/proc/self/fd/%d" % fd, "thread": "/proc/thread-self/fd/%d" % fd, "devfd": "/dev/fd/%d" % fd,
        "below": "/proc/self/fd/%d/%s" % (folder, name), "cwd": "/proc/self/cwd/" + name, "root": "/proc/self/root" + here + "/" + name,
        "pid": "/proc/%d/fd/%d" % (os.getpid(), fd), "slashes": "//dev//fd/%d" % fd, "one": tmp + "/one", "two": tmp + "/two", "three": "three", "four": "four",
        "long": "./" * 1500 + name, "script": script("s-" + name)}
def elf(n):
    data = bytearray(open("/bin/true", "rb").read())
    off, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    to = (here + "/" + name).encode() + b"\\0"
    for i in range(count):
        if struct.unpack_from("<I", data, off + i * size)[0] == 3:
            struct.pack_into("<Q", data, off + i * size + 8, len(data))
            struct.pack_into("<QQ", data, off + i * size + 32, len(to), len(to))
    with open(tmp + "/" + n, "wb") as f:
        f.write(data + to)
    os.chmod(tmp + "/" + n, 0o755)
    return tmp + "/" + n
ways["elf"] = elf("e-" + name)
ran = []
for way, path in ways.items():
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1)
        try:
            os.execv(path, [name])
        except OSError:
            pass
        os._exit(9)
    os.close(w)
    text = os.read(r, 3)
    os.close(r)
    status = os.waitpid(pid, 0)[1]
    # A program that runs as the interpreter of another may crash.
    if text == b"RAN" or (way == "elf" and os.waitstatus_to_exitcode(status) != 9):
        ran.append(way)
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.dup2(w, 1)
    argv = (ctypes.c_char_p * 2)(name.encode(), None)
    libc.execveat(fd, b"", argv, argv, 0x1000)
    os._exit(9)
os.close(w)
if os.read(r, 3) == b"RAN":
    ran.append("empty")
os.waitpid(pid, 0)
print(json.dumps(ran))
"""


def hidden_program(w, tier):
    echo = shutil.which("echo")
    for name in ("hidden", "shown"):
        shutil.copy(echo, w.ws / name)
        if w.user is not None:
            os.chown(w.ws / name, w.user, w.user)
    opts = ("--tier", tier, "--policy", w.policy("allow write .", "deny read **/hidden"))
    source = WAYS.replace("[name])", "[name, 'RAN'])").replace("(ctypes.c_char_p * 2)(name.encode(), None)",
                                                              "(ctypes.c_char_p * 3)(name.encode(), b'RAN', None)")
    shown = w.python(source, "shown", str(w.ws), opts=opts)
    w.ok({"name", "path", "fd", "devfd", "one", "two", "three", "elf", "empty"} <= set(shown), f"{tier}: control: the same program is run under another name", shown)
    w.same(w.python(source, "hidden", str(w.ws), opts=opts), [], f"{tier}: a hidden one is not, in any way")


@test("a program runs itself again beside a hidden file")
def _(w):
    for world in worlds(w):
        for tier in tiers(world):
            r = world.python("os.execv('/proc/self/exe', ['python3', '-c', 'print(1)'])", opts=("--tier", tier, "--policy", world.policy(*HIDES)))
            world.same(r, 1, f"{tier}: by /proc/self/exe")


@test("a directory that leaves the workspace takes its hidden files along")
def _(w):
    for world in worlds(w):
        for tier in tiers(world):
            moved(world, tier)


def moved(w, tier):
    for name in (".env", "sub/plain"):
        put(w, w.ws / "conf" / name, "HIDDEN")
    put(w, w.ws / "kept/plain", "plain")
    script = f'''exec "{PYTHON}" -c "
import os, time
held = [os.open(n, os.O_PATH | os.O_DIRECTORY) for n in ('conf', 'conf/sub', 'kept')]
open('ready', 'w').close()
ws = os.getcwd()
os.chdir('conf')
while not os.path.exists(ws + '/go'): time.sleep(0.05)
for fd in held:
    for name in ('.env', 'later', 'sub/later', 'plain', '../later'):
        try: print(os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 20).decode())
        except OSError: pass
for name in ('.env', 'later', '../later'):
    try: print(open(name).read())
    except OSError: pass
"'''
    proc, _ = w.background(script, opts=("--tier", tier, "--policy", w.policy(*HIDES)))
    w.ok(wait_for(lambda: (w.ws / "ready").exists(), 10), f"{tier}: it holds the directories")
    vault = w.dir / "vault"
    put(w, vault / "later", "VAULT")
    os.rename(w.ws / "conf", vault / "conf")
    for name in ("later", "sub/later"):
        put(w, vault / "conf" / name, "NEW")
    out, err = result_of(w, proc)
    w.same(out.split(), ["plain"], f"{tier}: only what stayed is read", err)
    shutil.rmtree(vault)
    for name in ("ready", "go"):
        (w.ws / name).unlink()
