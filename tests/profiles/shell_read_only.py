"""shell_read_only.py - profile shell-read-only: look at everything, change nothing."""
import os

from host import difference, snapshot
from kit import Terminal, files, outside, test, tool, work

OPEN = ["/tmp", "/var/tmp", "$HOME", "/dev/shm", "$XDG_RUNTIME_DIR"]
CLOSED = ["$PWD", "$PWD/src", "/", "/usr", "/usr/local/bin", "/etc", "/etc/ld.so.conf.d", "/home", "/var", "/var/agent",
          "/var/agent/state", "/run", "/opt", "/srv", "/root", "/dev", "/proc", "/sys", "/lib", "/bin", "/mnt"]


@test("everything in the workspace can be looked at")
def reading(w):
    files(w.ws, {"src/a.c": "int a;\n", "src/b.c": "int b;\n", "data/t.csv": "1,2\n3,4\n", "run.sh": "#!/bin/sh\necho ran\n"})
    os.symlink("src/a.c", w.ws / "link")
    outside(w, "git", "init", "-q", "-b", "main", ".")
    outside(w, "git", "add", ".")
    outside(w, "git", "-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-qm", "first")
    files(w.ws, {"src/a.c": "int a = 1;\n"})
    before = snapshot(w.ws)
    r = work(w, "shell-read-only", """
        cat link; grep -rl 'int' src | sort; find . -name '*.csv'; ./run.sh
        awk -F, '{ s += $2 } END { print s }' data/t.csv; sort -r data/t.csv | head -1; wc -l < src/b.c
        git log --oneline | wc -l; git diff --stat | tail -1; git status --short
        tar cf /tmp/all.tar src; tar tf /tmp/all.tar | wc -l; cp -r src ~/copy; echo x >> ~/copy/a.c
        """)
    w.same((r.code, r.text.splitlines()), (0, ["int a = 1;", "src/a.c", "src/b.c", "./data/t.csv", "ran", "6", "3,4", "1", "1",
                                               " 1 file changed, 1 insertion(+), 1 deletion(-)", " M src/a.c", "3"]),
           "the usual tools say the usual things", r)
    w.same(difference(before, snapshot(w.ws)), [], "nothing has changed")


@test("every write outside /tmp and HOME is refused")
def writing(w):
    files(w.ws, {"src/a.c": "int a;\n", "b": "b\n"})
    before = snapshot(w.ws)
    script = "".join(f"""if (echo x > "{d}/probe") 2>/dev/null; then echo 'wrote {d}'; rm "{d}/probe"; fi\n"""
                     for d in OPEN + CLOSED)
    r = w.sh(script, opts=["--profile", "shell-read-only"])
    w.same(r.text.splitlines(), [f"wrote {d}" for d in OPEN], "only what is the session's own can be written", r)
    tries = ["echo x > b", "echo x >> b", ": > b", "rm b", "mv b c", "ln b c", "ln -s b c", "mkdir d", "rmdir src", "rm -r src",
             "touch b", "touch -t 200001010000 b", "chmod 777 b", "chmod 700 .", "chown $(id -u) b", "truncate -s 0 b",
             "mv /tmp/own b", "cp /tmp/own c", "mkfifo f", "ln -f /tmp/own b", "sed -i s/b/c/ b", "dd if=/dev/zero of=b count=1",
             "python3 -c 'import os; os.open(\"b\", os.O_RDWR)'", "python3 -c 'import os; os.truncate(\"b\", 0)'",
             "python3 -c 'import os; os.setxattr(\"b\", \"user.x\", b\"1\")'", "git init -q .", "tar xf /tmp/own.tar"]
    checked = "echo own > /tmp/own; tar cf /tmp/own.tar -C /tmp own\n"
    checked += "".join(f"if ( {t} ) >/dev/null 2>&1; then echo 'did: {n}'; fi\n" for n, t in enumerate(tries))
    r = w.sh(checked, opts=["--profile", "shell-read-only"])
    w.same([tries[int(l.split()[1])] for l in r.text.splitlines()], [], "no way of changing the workspace works", r)
    w.same(difference(before, snapshot(w.ws)), [], "seen from outside nothing has changed")


@test("what is written to HOME stays, what is written to /tmp goes")
def own(w):
    work(w, "shell-read-only", "echo kept > ~/note; echo gone > /tmp/note")
    r = work(w, "shell-read-only", "cat ~/note; test ! -e /tmp/note; echo fresh")
    w.same((r.code, r.text), (0, "kept\nfresh\n"), "in the next session", r)
    w.same([p.name for p in w.home.glob("note")], [], "the real home has nothing of it")
    w.ok(tool(w, "sh"), "there is a shell")


@test("a shell with its history in the private home")
def history(w):
    (w.home / ".bash_history").write_text("echo the real history\n")
    typed = []
    for n in (1, 2):
        with Terminal(w, [w.program, "run", "--profile", "shell-read-only", "--", "bash", "--norc", "-i"]) as t:
            t.type(f"echo typed-$((40+{n}))\n")
            w.ok(t.expect(f"typed-4{n}"), f"shell {n} runs a command", t.screen)
            t.type("exit\n")
            w.same(t.code(), 0, f"shell {n} ends")
        typed += [f"echo typed-$((40+{n}))", "exit"]
        r = work(w, "shell-read-only", "cat ~/.bash_history")
        w.same(r.text.splitlines(), typed, f"the private home has the lines of {n} sessions", r)
    w.same((w.home / ".bash_history").read_text(), "echo the real history\n", "the real history is as it was")
