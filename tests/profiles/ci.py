"""ci.py - profile ci: a build job with firm limits."""
import os
from pathlib import Path

from host import cgroups, wait_for
from kit import PYTHON, ROOT, files, skip, test, tool, work

PROJECT = {
    "hello.c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n',
    "check.sh": "#!/bin/sh\n./hello | grep -qx hello && test \"$CI\" = true && echo passed > report.txt\n",
}
MAKEFILE = "hello: hello.c\n\tcc -o $@ $<\ntest: hello\n\t./check.sh\n\tcat report.txt\n"


def project(w):
    files(w.ws, PROJECT)
    (w.ws / "Makefile").write_text(MAKEFILE)


@test("make test of a small project")
def build(w):
    project(w)
    r = work(w, "ci", "make test")
    w.exits(r, 0, "it passes")
    w.same((w.ws / "report.txt").read_text(), "passed\n", "with CI set, and a report in the checkout")
    w.ok(not r.said.strip(), "nothing is complained about, whoever runs it", r)
    files(w.ws, {"check.sh": "#!/bin/sh\nexit 3\n"})
    r = work(w, "ci", "make test")
    w.same(r.code, 2, "a failing job fails", r)
    r = w.sh("echo x > ~/cache; echo y > /tmp/t; echo z > ../outside; echo u > /usr/probe", opts=["--profile", "ci"])
    w.same((sorted(p.name for p in w.dir.iterdir()), os.path.exists("/usr/probe")), (["home", "work"], False),
           "nothing beside the checkout is written", r)


@test("the profile's limits are defaults, limits of a person are not")
def defaults(w):
    project(w)
    w.exits(work(w, "ci", "make hello"), 0, "as they are, they never stop a job from starting")
    r = work(w, "ci", "true", opts=["--limit", "memory=9G"])
    if ROOT:
        w.exits(r, 0, "a limit that can be held is taken")
    else:
        w.ok(r.code in (0, 122), "a limit of one's own is held, or refused with 122", r)
        if r.code == 122:
            w.ok("limit memory 9G" in r.said, "which says what cannot be held", r)
    r = work(w, "ci", "true", opts=["--limit", "session=5s", "--limit", "output=1M"])
    w.exits(r, 0, "limits that need no delegation are always taken")


@test("memory, processes, time and output are bounded")
def bounds(w):
    r = w.call([w.program, "caps", "--json", "--profile", "ci"])
    r = r if r.code == 0 else w.call([w.program, "caps", "--profile", "ci"])
    for number in (8 << 30, 2048, 3600, 100 << 20):
        w.ok(str(number) in r.text, f"{number} is among the limits", r)
    if ROOT:
        proc, session = w.background("sleep 30", opts=["--profile", "ci"])
        mine = [c for c in cgroups() if os.path.basename(c) == f"writ-{session}"]
        read = {}
        for c in mine:
            for name in ("memory.limit_in_bytes", "memory.max", "pids.max"):
                if (Path(c) / name).exists():
                    read[name.split(".")[0]] = (Path(c) / name).read_text().strip()
        w.same(read, {"memory": str(8 << 30), "pids": "2048"}, "the session's cgroup has them", mine)
        w.writ("stop", session)
        wait_for(lambda: proc.poll() is not None)
    else:
        r = w.run(PYTHON, "-c", "bytearray(9 << 30)", opts=["--profile", "ci"], timeout=60)
        w.ok(r.code == 1 and "MemoryError" in r.said, "one process cannot have 9 GiB", r)
    r = work(w, "ci", "head -c 200M /dev/zero", timeout=60)
    w.ok(len(r.out) <= (100 << 20) + (1 << 20), "it cannot print more than 100 MiB", len(r.out))


@test("what jobs of other languages need")
def others(w):
    if tool(w, "node"):
        r = w.run("node", "-e", """
            const s = require('http').createServer((q, a) => a.end('x')).listen(0, '127.0.0.1', async () => {
                console.log(await (await fetch('http://127.0.0.1:' + s.address().port)).text());
                s.close(); s.closeAllConnections();
            })""", opts=["--profile", "ci"])
        w.same((r.code, r.text), (0, "x\n"), "node with fetch", r)
    else:
        skip(w, "node is not installed")
    if tool(w, "javac"):
        files(w.ws, {"H.java": """\
            public class H {
                public static void main(String[] a) throws Exception {
                    Thread t = new Thread(() -> System.out.println("java"));
                    t.start();
                    t.join();
                }
            }
            """})
        r = work(w, "ci", "javac H.java; java H")
        w.same((r.code, r.text), (0, "java\n"), "a Java compiler and its program", r)
    else:
        skip(w, "javac is not installed")
