"""stdio.py - bytes in and out, without a terminal."""
import fcntl
import os
import socket
import subprocess
import threading
import time

from host import test
from bounds import within

MIB = 1 << 20


def through_shell(w, script, **kw):
    """A line of a person's shell, in which $W is the program."""
    return w.call(["bash", "-c", script], env={**w.env, "W": w.program}, **kw)


@test("pipes are byte for byte")
def _(w):
    data = os.urandom(MIB)
    r = w.run("cat", data=data)
    w.ok(r.code == 0 and r.out == data, f"1 MiB in and out ({len(r.out)} bytes came)", r.said)
    r = w.sh("cat >&2", data=data)
    w.ok(r.err == data, f"1 MiB to standard error ({len(r.err)} bytes came)", r.err[:200])
    w.same(r.out, b"", "and nothing of it to standard output")
    r = w.sh("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 6")
    w.ok(r.code == 6 and r.out == b"x" * 3000000 and r.err == b"y" * 3000000, "both at once, and the status",
         f"{r.code} {len(r.out)} {len(r.err)}")
    r = w.run("cat", data=b"")
    w.same((r.code, r.out), (0, b""), "empty input")
    r = w.sh("echo out; echo err >&2")
    w.same((r.out, r.err), (b"out\n", b"err\n"), "output and error stay apart")
    r = w.run("wc", "-c", data=data)
    w.same(r.out.strip(), str(MIB).encode(), "input ends where it ends")
    r = through_shell(w, "printf 'abc' | $W run -- cat | $W run -- tr a-c A-C | $W run -- cat")
    w.same(r.out, b"ABC", "a pipeline of three", r)


@test("streams that end before the command")
def _(w):
    for name, script in (("input", "cat; sleep 0.3"), ("output", "exec >&-; sleep 0.3"), ("error", "exec 2>&-; sleep 0.3"),
                         ("all of them", "exec <&- >&- 2>&-; sleep 0.3")):
        w.exits(w.sh(script, data=b""), 0, f"{name}: it goes on to its end")
        w.clean(f"{name}: and nothing is left, although the number is another file's by then")


@test("sockets and pipes that do not block")
def _(w):
    data = os.urandom(300000)
    a, b = socket.socketpair()
    sender = threading.Thread(target=lambda: (a.sendall(data), a.shutdown(socket.SHUT_WR)))
    sender.start()
    r = w.run("cat", stdin=b.fileno())
    sender.join()
    w.ok(r.out == data, f"a socket as input ({len(r.out)} bytes came)", r.said)
    a.close()
    b.close()
    rd, wr = os.pipe()
    os.set_blocking(wr, False)
    proc = w.start([w.program, "run", "--", "head", "-c", str(MIB), "/dev/zero"], stdout=wr, stderr=subprocess.PIPE)
    flags = fcntl.fcntl(wr, fcntl.F_GETFL)
    os.close(wr)
    time.sleep(0.5)  # the pipe is full now
    got = 0
    with os.fdopen(rd, "rb") as f:
        while chunk := f.read(65536):
            got += len(chunk)
    w.same((got, proc.wait(10)), (MIB, 0), "a full pipe that does not block loses nothing", proc.stderr.read())
    w.ok(flags & os.O_NONBLOCK, "its flags are left alone")
    rd, wr = os.pipe()
    before = fcntl.fcntl(wr, fcntl.F_GETFL)
    w.run("true", stdin=rd, stdout=wr)
    w.same((fcntl.fcntl(wr, fcntl.F_GETFL), fcntl.fcntl(rd, fcntl.F_GETFL) & os.O_NONBLOCK), (before, 0),
           "flags of blocking pipes too")
    os.close(rd)
    os.close(wr)


@test("files")
def _(w):
    lines = b"".join(b"line %d\n" % i for i in range(20000))
    source = w.dir / "lines"
    source.write_bytes(lines)
    with open(source, "rb") as f:
        r = w.sh("read a; read b; echo $a $b", stdin=f)
        w.same((r.out, os.lseek(f.fileno(), 0, os.SEEK_CUR)), (b"line 0 line 1\n", 14), "unread input is given back", r)
        r = w.sh("read a; echo $a", stdin=f)
        w.same(r.out, b"line 2\n", "and the next command reads on", r)
        r = w.run("cat", stdin=f)
        w.ok(r.out == lines[21:], f"and the rest is all there ({len(r.out)} bytes)", r.said)
    r = through_shell(w, f"while read a; do $W run -- echo got $a; done < <(head -3 {source})")
    w.ok(r.out.startswith(b"got line 0\n"), "in a loop that reads", r)
    with open(w.dir / "out", "wb") as f:
        f.write(b"first\n")
        f.flush()
        w.run("head", "-c", "100000", "/dev/zero", stdout=f)
        w.run("echo", "last", stdout=f)
    w.ok((w.dir / "out").read_bytes() == b"first\n" + bytes(100000) + b"last\n", "output to a file goes on where it is")
    (w.dir / "log").write_bytes(b"old\n")
    with open(w.dir / "log", "ab") as f:
        w.sh("echo a; echo b >&2", stdout=f, stderr=subprocess.STDOUT)
    w.ok((w.dir / "log").read_bytes() in (b"old\na\nb\n", b"old\nb\na\n"), "appending", (w.dir / "log").read_bytes())
    r = w.run("cat", stdin=open("/dev/null", "rb"), stdout=open("/dev/null", "wb"))
    w.exits(r, 0, "/dev/null both ways")


@test("standard output and error in one place keep their order")
def _(w):
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo o$i; echo e$i >&2; done"
    want = b"".join(b"o%d\ne%d\n" % (i, i) for i in range(1, 11))
    r = w.sh(script, stderr=subprocess.STDOUT)
    w.same(r.out, want, "one pipe")
    with open(w.dir / "both", "wb") as f:
        w.sh(script, stdout=f, stderr=subprocess.STDOUT)
    w.same((w.dir / "both").read_bytes(), want, "one file")


@test("closed descriptors")
def _(w):
    for what, redirect in (("input", "<&-"), ("output", ">&-"), ("error", "2>&-"), ("all three", "<&- >&- 2>&-")):
        r = through_shell(w, f"$W run -- sh -c 'cat >/dev/null; echo o; echo e >&2; touch \"ran {what}\"; exit 4' {redirect}")
        w.exits(r, 4, f"{what} closed")
        w.ok((w.ws / f"ran {what}").exists(), f"{what} closed: it ran", r)
    r = through_shell(w, "$W run -- sh -c 'ls /proc/self/fd | tr \"\\n\" \" \"' <&-")
    w.same(r.out, b"0 1 2 3 ", "nothing of writ's stands on a number that was closed", r)


@test("a reader that goes away")
def _(w):
    r = through_shell(w, f"$W run -- yes {w.mark} | head -1; echo ${{PIPESTATUS[0]}}")
    w.same(r.text.split(), [w.mark, "141"], "yes | head -1: ends by SIGPIPE", r)
    w.ok(within(r.seconds, 10), "soon", r)
    r = through_shell(w, "set -o pipefail; $W run -- seq 1 1000000 | head -1 > /dev/null; echo $?")
    w.same(r.text.strip(), "141", "as it would without writ", r)
    r = through_shell(w, "$W run -- sh -c 'echo a; sleep 0.3; exit 5' | true; echo ${PIPESTATUS[0]}")
    w.same(r.text.strip(), "5", "a command that does not write any more is not harmed", r)
    r = through_shell(w, "$W run -- sh -c 'cat >/dev/null; echo done' < <(sleep 0.5)")
    w.same(r.out, b"done\n", "input that ends late", r)
    w.clean()


@test("output that cannot be written")
def _(w):
    with open("/dev/full", "wb") as f:
        r = w.run("echo", "hello", stdout=f)
        w.ok(r.code != 0 or b"No space" in r.err, "a full disk is not passed over in silence", r)
        r = w.sh("head -c 300000 /dev/zero; exit 0", stdout=f)
        w.ok(r.code != 0 or b"No space" in r.err, "nor with much output", r)


@test("the output limit")
def _(w):
    r = w.sh("head -c 5000 /dev/zero | tr '\\0' x; exit 3", opts=("--limit", "output=1000"))
    w.same((r.code, r.out), (3, b"x" * 1000), "as much as allowed, and the command's own status", r.said)
    w.ok(r.said.count("output limit of 1000 bytes reached") == 1, "the marker, once", r)
    w.same([e["limit"] for e in w.events("limit")], ["output"], "on record")
    r = w.sh("head -c 1000 /dev/zero", opts=("--limit", "output=1000"))
    w.ok(len(r.out) == 1000 and not r.err, "control: exactly the limit", r)
    r = w.sh("head -c 600 /dev/zero; sleep 0.2; head -c 600 /dev/zero >&2", opts=("--limit", "output=1000"))
    w.ok(r.out == bytes(600) and r.err.startswith(bytes(400)) and b"limit" in r.err[400:], "both streams together", r)


@test("without a terminal there is none inside")
def _(w):
    r = w.sh("for i in 0 1 2; do test -t $i && echo $i; done; tty; cat < /dev/tty || echo no /dev/tty; ls /dev/pts")
    w.same(r.out.replace(b"ptmx\n", b""), b"not a tty\nno /dev/tty\n", "no descriptor is one, and none can be opened", r)
    r = w.sh("ps -o tty= -p $$ 2>/dev/null || awk '{print $7}' /proc/self/stat")
    w.ok(r.text.strip() in ("?", "0"), "no controlling terminal", r)


@test("slow readers and writers")
def _(w):
    proc = w.start([w.program, "run", "--", "sh", "-c", "seq 1 100000; exit 8"], stdout=subprocess.PIPE)
    time.sleep(0.7)  # the command has ended or waits; nothing may be lost
    out = proc.stdout.read()
    w.ok(out == b"".join(b"%d\n" % i for i in range(1, 100001)), f"a reader that starts late ({len(out)} bytes)")
    w.same(proc.wait(10), 8, "and the status")
    proc = w.start([w.program, "run", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    got = []
    for i in range(5):
        proc.stdin.write(b"%d\n" % i)
        proc.stdin.flush()
        got.append(proc.stdout.readline())
    proc.stdin.close()
    w.same(got, [b"%d\n" % i for i in range(5)], "a conversation, line by line")
    w.same(proc.wait(10), 0, "ends with its input")
