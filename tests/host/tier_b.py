"""tier_b.py - without namespaces: the same basics, and honest about the rest."""
import ctypes
import errno
import json
import os
import signal
import struct
from pathlib import Path

from host import OTHER_USER, PYTHON, ROOT, Terminal, children, processes, test, wait_for

B = ("--tier", "B")


@test("the basics")
def _(w):
    for code in (0, 1, 42, 255):
        w.exits(w.sh(f"exit {code}", opts=B), code, f"exit {code}")
    w.exits(w.sh("kill -9 $$", opts=B), 137, "ended by a signal")
    w.exits(w.run("no-such-program", opts=B), 127, "not found")
    w.exits(w.run("/etc/passwd", opts=B), 126, "not executable")
    w.exits(w.sh("sleep 30", opts=(*B, "--limit", "session=1s")), 124, "a limit")
    data = os.urandom(1 << 20)
    r = w.run("cat", data=data, opts=B)
    w.ok(r.code == 0 and r.out == data, "1 MiB both ways", r.said)
    r = w.sh("echo o; echo e >&2", opts=B)
    w.same((r.out, r.err), (b"o\n", b"e\n"), "output and error stay apart")
    r = w.sh("echo new > f; mkdir d; mv f d/g; ln -s d/g l; cat l; rm l; chmod 600 d/g; ls; rm -r d", opts=B)
    w.same((r.code, r.out), (0, b"new\nd\n"), "the workspace is worked in as usual", r)
    w.same(w.run("pwd", opts=B).text.strip(), str(w.ws), "here")
    w.clean()


def failing(number, error):
    """For preexec_fn: that call fails with that error from now on."""
    code = b"".join(struct.pack("<HBBI", *row) for row in
                    ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7FFF0000)))
    room = ctypes.create_string_buffer(code)
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(room)))
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, room)


@test("a failure of the moment is not kept as what the machine is")
def _(w):
    kept = w.state / "facts"
    unshare = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    for error, keeps in ((errno.ENOMEM, False), (errno.EPERM, True)):
        w.run("true", preexec_fn=failing(unshare, error))
        w.same(kept.exists(), keeps, f"no namespace: {errno.errorcode[error]}")
    w.run("true")
    before = kept.read_bytes()
    w.run("true", preexec_fn=failing(444, errno.EMFILE))
    w.same(kept.read_bytes(), before, "what is kept stays")


@test("what is inside")
def _(w):
    script = """
s = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().split('\\n') if ':\\t' in l)
print(json.dumps({**{k: s[k].strip() for k in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs', 'Seccomp')},
    'env': dict(os.environ), 'fds': sorted(os.listdir('/proc/self/fd'))}))"""
    got = w.python(script, opts=B, env={**w.env, "SECRET_X": "1"})
    w.same({got[k] for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")}, {"0" * 16}, "no capability")
    w.same((got["NoNewPrivs"], got["Seccomp"]), ("1", "2"), "no_new_privs, and a filter")
    w.same(got["fds"], ["0", "1", "2", "3"], "descriptors")
    w.ok("SECRET_X" not in got["env"] and got["env"]["HOME"] != str(w.home), "the environment is chosen", got["env"])
    r = w.sh("echo kept > ~/note; echo t > $TMPDIR/t; cat $TMPDIR/t", opts=B)
    w.same((r.code, r.out), (0, b"t\n"), "a home and a temporary directory of its own", r)
    r = w.sh("cat ~/note; cat $TMPDIR/t", opts=B)
    w.same(r.out, b"kept\n", "the home is kept, the temporary directory is not", r)
    w.clean()


@test("shared memory and semaphores")
def _(w):
    script = w.ws / "shm.py"
    script.write_text("""
import errno, multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with ProcessPoolExecutor(2) as pool:
        print(sum(pool.map(square, range(5))))
    mine = shared_memory.SharedMemory(create=True, size=64)
    mine.buf[0] = 9
    again = shared_memory.SharedMemory(name=mine.name)
    print(again.buf[0], os.path.exists("/dev/shm/" + mine.name))
    again.close()
    mine.close()
    mine.unlink()
    shared_memory.SharedMemory(name=os.path.basename(sys.argv[2]) + "-left", create=True, size=64)
    for path, flags in ((sys.argv[2], os.O_RDWR), (sys.argv[2], os.O_RDONLY), ("/dev/shm/../shm/" + os.path.basename(sys.argv[2]), os.O_RDWR),
                        ("/dev/shm/./" + os.path.basename(sys.argv[2]), os.O_RDWR | os.O_CREAT)):
        try:
            print(os.read(os.open(path, flags), 9))
        except OSError as e:
            print(errno.errorcode[e.errno])
    sys.stdout.flush()
    os._exit(0)  # nobody tidies up
""")
    theirs = Path("/dev/shm") / w.mark
    theirs.write_text("theirs")
    try:
        for how in ("fork", "spawn"):
            r = w.run(PYTHON, script, how, theirs, opts=("--tier", "B"))
            w.ok(r.text.startswith("30\n9 False\n"), f"{how}: a pool of processes, and memory by name", r)
            w.same(r.text.split()[3:], ["ENOENT", "EACCES", "EACCES", "EACCES"], f"{how}: what is somebody else's is not there", r)
        w.same(theirs.read_text(), "theirs", "nothing happened to it")
        w.same([n for n in os.listdir("/dev/shm") if n.startswith(w.mark)], [w.mark], "nothing of the session is beside it")
    finally:
        theirs.unlink()
    left = [p for p in (w.state / "run").rglob("*") if "-left" in p.name]
    w.same(left, [], "and nothing is left of it")


@test("what is outside")
def _(w):
    secret = w.dir / "secret"
    secret.write_text("no")
    (w.home / "private").write_text("no")
    r = w.sh(f"cat {secret} {w.home}/private /etc/shadow; ls {w.home}", opts=B)
    w.ok(r.code and not r.out, "cannot be read", r)
    r = w.sh(f"echo x > {secret}; echo x > {w.dir}/new; mkdir {w.dir}/d; mv {secret} {w.ws}/; rm {secret}; chmod 777 {secret}; "
             f"ln {secret} {w.ws}/l; touch /tmp/{w.mark} /usr/{w.mark}", opts=B)
    w.ok(secret.read_text() == "no" and secret.stat().st_mode & 0o777 != 0o777 and not (w.dir / "new").exists() and
         not (w.dir / "d").exists() and not os.path.exists(f"/tmp/{w.mark}") and not list(w.ws.iterdir()), "cannot be changed", r)
    r = w.sh(f"kill -0 {os.getpid()} && echo reached; kill -0 1 && echo reached", opts=B)
    w.ok(not r.out, "no other process can be signalled", r)
    r = w.run(PYTHON, "-c", "import socket; s = socket.socket(); s.settimeout(1); s.connect(('127.0.0.1', 9))", opts=B)
    w.ok(r.code and b"refused" not in r.err, "no connection is made, not even to this machine", r)
    r = w.sh("touch .envrc; mkdir .claude; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; ls -A", opts=B)
    w.ok(".envrc" not in r.text and ".claude" not in r.text, "protected names stay protected", r)


@test("gaps are declared")
def _(w):
    p = json.loads(w.writ("explain", "--json", "--tier", "B").out)
    levels = {k: g["level"] for k, g in p["guarantees"].items()}
    w.same(p["tier"], "B", "explain --tier B plans for it")
    w.same((levels["fs.metadata"], levels["proc.see"]), ("partial", "partial"), "names, sizes and processes can be seen", levels)
    r = w.sh("ls -d /root /etc/shadow > /dev/null; ls /proc | grep -cE '^[0-9]+$'", opts=B)
    w.ok(int(r.text.strip() or 0) > 3, "and they can", r)
    r = w.sh("touch ran", opts=(*B, "--policy", w.policy("allow write .", "require proc.see=exact")))
    w.exits(r, 122, "so requiring more is refused")
    r = w.sh("true", opts=(*B, "--policy", w.policy("allow write .", "accept proc.see=partial fs.metadata=partial")))
    w.exits(r, 0, "and accepting it is not")
    w.sh("true", opts=B)
    w.same(w.events("start")[0]["guarantees"]["tier"], "B", "the record says which tier it was")


@test("a terminal")
def _(w):
    with Terminal(w, [w.program, "run", "-q", *B, "--", "sh", "-c", "test -t 0 && test -t 1 && echo tty; stty size; read x; echo $x; exit 6"],
                  rows=33, cols=77) as t:
        w.ok(t.expect("tty\r\n33 77\r\n"), "it has one, of the right size", t.screen)
        t.type("word\n")
        w.ok(t.expect("word\r\nword\r\n"), "lines go in and come out", t.screen)
        w.same(t.code(), 6, "and its status comes back", t.screen)
    with Terminal(w, [w.program, "run", "-q", *B, "--", "sh", "-c", "echo go; exec sleep 30"]) as t:
        t.expect("go")
        t.type("\x03")
        w.same(t.code(), 130, "Ctrl-C", t.screen)
    w.clean()


@test("live grants")
def _(w):
    d = w.dir / "outside"
    d.mkdir()
    (d / "file").write_text("data")
    script = 'while [ ! -e stop ]; do cat "$1" 2>/dev/null && break; sleep 0.05; done; exit 11'
    proc, sid = w.background(script, "sh", str(d / "file"), opts=B)
    r = w.writ("allow", sid, f"read:{d}")
    if r.code:
        w.ok("cannot be widened" in r.said, "refused, in words", r)
    (w.ws / "go").write_text("")
    if r.code == 0:
        try:
            proc.wait(3)
        except Exception:
            pass
    (w.ws / "stop").write_text("")
    out, err = proc.communicate(timeout=10)
    w.ok(r.code or out == b"data", "what is said to be granted is granted", f"{r}\n{out!r} {err!r}")


# Each link of a chain starts the next and ends, in a session of its own. They end by themselves if nobody else ends them.
CHAINS = """
import os, sys, time
end = time.monotonic() + 20
for i in range(8):
    if os.fork() == 0:
        while time.monotonic() < end:
            try:
                if os.fork():
                    os._exit(0)
                os.setsid()
            except OSError:
                pass
        os._exit(0)
open('begun', 'w').close()
time.sleep(30)
"""


def guarded(w, *command):
    """An ordinary user's world, and how to run something there that cannot use up the machine's processes."""
    theirs = w.at("/tmp", OTHER_USER) if ROOT else w
    most = 400 + sum(p.isdigit() for p in os.listdir("/proc"))
    return theirs, ["prlimit", f"--nproc={most}", w.program, "run", *B, *command]


def gone(w, seconds=2.0):
    return wait_for(lambda: not processes(w.mark), seconds)


@test("who forks without end ends with the session")
def _(w):
    theirs, argv = guarded(w, "--limit", "session=2s", "--", "/usr/bin/python3", "-c", CHAINS, w.mark)
    r = theirs.call(argv)
    w.exits(r, 124, "chains of processes: a limit of time")
    w.ok((theirs.ws / "begun").exists(), "control: they were there", r)
    w.ok(gone(w), "nothing lives on", processes(w.mark))
    w.ok("everything was ended" in r.said, "so that may be said", r)


@test("writ-init is killed")
def _(w):
    for name, script in (("quiet ones", "import os, time; os.fork(); os.fork(); open('begun', 'w').close(); time.sleep(20)"), ("chains", CHAINS)):
        theirs, argv = guarded(w, "--", "/usr/bin/python3", "-c", script, w.mark)
        (theirs.ws / "begun").unlink(missing_ok=True)
        proc = theirs.start(argv)
        w.ok(wait_for((theirs.ws / "begun").exists), f"{name}: control: they are there", processes(w.mark))
        init = [p for p in children(proc.pid) if Path(f"/proc/{p}/cmdline").read_bytes().startswith(b"writ-init")]
        os.kill(init[0], signal.SIGKILL)
        w.same(wait_for(lambda: proc.poll() is not None, 15) and proc.returncode, 125, f"{name}: the run fails")
        w.ok(gone(w), f"{name}: and nothing lives on", processes(w.mark))
        w.ok("left" not in theirs.events("end")[-1], f"{name}: as the record says", theirs.events("end"))


@test("the number of processes of an ordinary user")
def _(w):
    script = """
import os, time
n = 0
try:
    while n < 350:
        if os.fork() == 0:
            time.sleep(10)
            os._exit(0)
        n += 1
except BlockingIOError:
    pass
print(n)
"""
    policy = w.policy("allow write .", "limit pids 60", "accept res.pids=partial")
    theirs, argv = guarded(w, "--policy", policy, "--", "/usr/bin/python3", "-c", script, w.mark)
    r = theirs.call(argv)
    w.ok(r.code == 0 and 10 < int(r.text) < 200, "is bounded, if not exactly", r)
    p = json.loads(theirs.writ("explain", "--json", *B).out)
    w.ok(p["guarantees"]["res.pids"]["level"] in ("partial", "exact"), "and said to be", p["guarantees"]["res.pids"])
