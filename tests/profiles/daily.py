"""daily.py - the programs people have at hand every day, inside."""
import re

from kit import PYTHON, Terminal, files, skip, test, tool, work
from bounds import within

WRITE = ["--profile", "git-commit"]


def with_tool(*names):
    """Marks a test that needs these programs."""
    def wrap(body):
        def run(w):
            missing = [n for n in names if not tool(w, n)]
            skip(w, f"{', '.join(missing)} not installed") if missing else body(w)
        run.__module__, run.__name__ = body.__module__, body.__name__
        return run
    return wrap


@test("ps and top see the session and nothing else")
@with_tool("ps", "top")
def processes(w):
    r = work(w, "base", "sleep 5 & ps -eo args; top -bn1 | sed -n 's/^Tasks: *\\([0-9]*\\) total.*/tasks \\1/p'")
    lines = r.text.splitlines()
    w.ok(r.code == 0 and any("sleep 5" in l for l in lines), "ps lists what runs inside", r)
    w.ok(len(lines) < 10 and not any(w.program in l for l in lines), "and nothing of the host", r)


@test("vim, less and tmux on a terminal")
@with_tool("vim", "less", "tmux")
def screens(w):
    files(w.ws, {"long.txt": "".join(f"line {n}\n" for n in range(1000))})
    with Terminal(w, [w.program, "run", *WRITE, "--", "vim", "-N", "-u", "NONE", "made.txt"]) as t:
        t.expect("made.txt")
        t.type("ihello from vim\x1b:wq\r")
        w.same(t.code(), 0, "vim ends")
    w.same((w.ws / "made.txt").read_text() if (w.ws / "made.txt").exists() else None, "hello from vim\n", "and has written")
    with Terminal(w, [w.program, "run", "--profile", "base", "--", "less", "long.txt"]) as t:
        w.ok(t.expect("line 20"), "less shows a page")
        t.type("G")
        w.ok(t.expect("line 999"), "and the last one")
        t.type("q")
        w.same(t.code(), 0, "less ends")
    with Terminal(w, [w.program, "run", "--profile", "base", "--", "tmux", "-f", "/dev/null", "new-session",
                      "echo in-$((20+1))-tmux; sleep 1"]) as t:
        w.ok(t.expect("in-21-tmux"), "tmux runs a program in a window", t.screen[-300:])
        w.same(t.code(), 0, "tmux ends")
    w.clean(seconds=5)


@test("sudo and su say no")
def privilege(w):
    for name in ("sudo", "su"):
        if tool(w, name):
            r = w.run(name, *(["-n", "id"] if name == "sudo" else ["-c", "id"]), opts=["--profile", "base"], timeout=20)
            w.ok(r.code not in (0, None) and "uid=0" not in r.text and r.said.strip(), f"{name} fails with a message", r)
    r = work(w, "base", "cp /bin/sh /tmp/s; chmod 4755 /tmp/s && echo set-id; id -u")
    w.ok("set-id" not in r.text, "no set-id program can be made", r)


@test("archives, databases, scripts")
def tools(w):
    files(w.ws, {"d/a": "a\n", "d/b": "b\n"})
    r = work(w, "git-commit", "tar czf d.tgz d; mkdir x; tar xzf d.tgz -C x; diff -r d x/d; tar cf - d | tar tf - | sort | tail -1")
    w.same((r.code, r.text), (0, "d/b\n"), "tar packs and unpacks", r)
    for name, script, want in (
            ("zip", "zip -qr d.zip d; rm -rf y; mkdir y; cd y; unzip -q ../d.zip; cat d/b", "b\n"),
            ("sqlite3", "sqlite3 w.db 'pragma journal_mode=wal; create table t(a); insert into t values(42); select a from t'",
             "wal\n42\n"),
            ("perl", "perl -MPOSIX -MSocket -MData::Dumper -e 'print strftime(\"%Y\", gmtime 0), inet_ntoa(INADDR_LOOPBACK)'",
             "1970127.0.0.1"),
            ("ssh", "ssh -V 2>&1 | cut -d_ -f1; ! ssh -o BatchMode=yes x.example.com 2>/dev/null", "OpenSSH\n"),
            ("openssl", "openssl rand -hex 8 | wc -c", "17\n"),
            ("script", "script -qec 'tty' /dev/null | grep -c /dev/pts/", "1\n")):
        if tool(w, name):
            r = work(w, "git-commit", script, timeout=30)
            w.same((r.code, r.text), (0, want), name, r)


@test("curl finds no network and says so at once")
@with_tool("curl")
def curl(w):
    for url, code in (("https://example.com/", 6), ("http://192.0.2.1/", 7)):
        r = w.run("curl", "-sS", url, opts=["--profile", "base"], timeout=20)
        w.ok(r.code == code and within(r.seconds, 3), f"{url}: curl ends with {code}", r)


@test("manual pages and the list of packages")
def manual(w):
    page = w.call(["sh", "-c", "man -w ls"]) if tool(w, "man") else None
    if page and page.code == 0:
        r = work(w, "base", "man ls 2>&1")
        w.ok(r.code == 0 and re.search(r"list directory contents", r.text) and "can't" not in r.text, "man ls", r)
    else:
        skip(w, "there is no manual page of ls")
    if tool(w, "dpkg-query"):
        r = work(w, "base", "dpkg-query -W -f '${Status}\\n' dpkg; apt list --installed 2>/dev/null | grep -c '^dpkg/'")
        w.same((r.code, r.text), (0, "install ok installed\n1\n"), "dpkg and apt know what is installed", r)
    else:
        skip(w, "not a Debian")


@test("git status on ten thousand files")
@with_tool("git")
def many(w):
    for n in range(100):
        (w.ws / f"d{n}").mkdir()
        for m in range(100):
            (w.ws / f"d{n}/f{m}").write_text("x\n")
    r = w.call(["sh", "-c", "git init -q . && git add . && git -c user.name=T -c user.email=t@e.x commit -qm all"], timeout=60)
    w.exits(r, 0, "there is a repository")
    (w.ws / "d7/f7").write_text("y\n")
    r = work(w, "git-commit", "git status --short")
    w.same((r.code, r.text), (0, " M d7/f7\n"), "the one change is found", r)
    w.ok(within(r.seconds, 10), f"in {r.seconds:.2f} s", r)
    r = work(w, "git-commit", "git add -A; git status --short; grep -rl y . --exclude-dir=.git; find d* -type f | wc -l")
    w.same((r.code, r.text), (0, "M  d7/f7\n./d7/f7\n10000\n"), "grep and find go through all of them", r)


@test("a person's programs that multiply")
def multiply(w):
    r = work(w, "base", '"$0" -c "import multiprocessing as m; print(sum(m.Pool(4).map(abs, range(-99, 0))))"', PYTHON)
    w.same((r.code, r.text), (0, "4950\n"), "a pool of processes", r)
    r = work(w, "base", "seq 300 | xargs -P 8 -n 1 echo | wc -l; yes | head -c 50M | wc -c")
    w.same((r.code, r.text), (0, "300\n52428800\n"), "xargs -P, and a pipe under load", r)
