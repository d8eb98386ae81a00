#!/usr/bin/env python3
"""meaning.py - what docs/language.md says about meaning, sentence by sentence. Speaks TAP.

    tests/language/meaning.py [--writ BINARY] [--dir DIRECTORY]
"""
import itertools
import re
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from lab import Lab, Tap, arguments

DENIED, ASKED, ALLOWED, WRONG = 1, 3, 0, 121


class Says:
    def __init__(self, tap, lab):
        self.tap, self.lab = tap, lab

    def policy(self, text, name="p.writ"):
        return self.lab.file("version 1\n" + text, name)

    def answer(self, name, code, text, *question):
        r = self.lab.run("why", "--policy", self.policy(text), *question)
        self.tap.check(r.code == code, name, f"{question}: exit {r.code}, expected {code}\n{text}{r.out}{r.err}")

    def wrong(self, name, text, says=""):
        r = self.lab.run("check", self.policy(text))
        self.tap.check(r.code == WRONG and says in r.err, name, f"exit {r.code}\n{text}{r.out}{r.err}")

    def right(self, name, text):
        r = self.lab.run("check", self.policy(text))
        self.tap.check(r.code == 0, name, text + r.err)

    def caps(self, text):
        r = self.lab.run("caps", self.policy(text))
        return r.out if r.code == 0 else f"exit {r.code}\n{r.err}"

    def same(self, name, *texts):
        found = [self.caps(t) for t in texts]
        self.tap.check(len(set(found)) == 1 and "digest" in found[0], name, "\n".join(found))


def order(s):
    lines = ("allow write .\n", "ask write ./data\n", "deny write ./data/raw\n")
    for n, perm in enumerate(itertools.permutations(lines)):
        text = "".join(perm)
        for code, path in ((ALLOWED, "./src/a"), (ASKED, "./data/a"), (DENIED, "./data/raw/a")):
            s.answer(f"deny beats ask beats allow: order {n}, {path}", code, text, "write", path)
    for name, text in (("x.writ", "allow write ./logs\nlimit pids 9\n"), ("y.writ", "deny write ./logs/a\nlimit pids 8\n")):
        s.policy(text, name)
    s.answer("deny beats allow across files", DENIED, "use ./x.writ\nuse ./y.writ\n", "write", "./logs/a")
    digests = {re.search(r"digest \S+", s.caps(t))[0] for t in ("use ./x.writ\nuse ./y.writ\n", "use ./y.writ\nuse ./x.writ\n")}
    s.tap.check(len(digests) == 1, "files compose in any order", digests)
    r = s.lab.run("caps", s.policy("limit pids 1000\nuse ./x.writ\nuse ./y.writ\n"))
    s.tap.check("limit pids 8\n" in r.out, "the smallest limit holds", r.out)
    r = s.lab.run("caps", s.policy("limit pids 100000\n"))
    s.tap.check("limit pids 100000\n" in r.out, "a policy may raise a default limit of base", r.out)


def defaults(s):
    s.answer("what no line allows is denied", DENIED, "", "write", "/etc/passwd")
    s.answer("base reads the workspace", ALLOWED, "", "read", "./README.md")
    s.answer("base does not write it", DENIED, "", "write", "./README.md")
    s.answer("base does not read the home", DENIED, "", "read", "~/outbox/x")
    s.answer("/tmp is the session's own", ALLOWED, "", "write", "/tmp/x")
    s.answer("the workspace stays closed even if it lies in /tmp", DENIED, "", "write", "./src/main.c")
    s.answer("a rule about a directory in /tmp counts", DENIED, f"allow put {s.lab.home}/outbox\n",
             "read", f"{s.lab.home}/outbox/x")
    s.answer("use none leaves out base", DENIED, "use none\n", "read", "./README.md")
    r = s.lab.run("why", "write", "./README.md")
    s.tap.check(r.code == ALLOWED, "without any rule the workspace can be written", r.out + r.err)
    r = s.lab.run("why", "--allow", "net:api.example.com", "write", "./README.md")
    s.tap.check(r.code == DENIED, "with a rule only what is written counts", r.out + r.err)
    r = s.lab.run("check", "--profile", "none")
    a, b = s.lab.run("caps", "--profile", "none"), s.lab.run("caps", "--allow", "shell:read-only")
    s.tap.check(r.code == WRONG or "rt sha256" not in a.out, "--profile none is not ignored", a.out + b.out)


def places(s):
    deep = s.lab.project / "src"
    r = s.lab.run("why", "--allow", "write:./logs", "write", "./logs/x", cwd=deep)
    s.tap.check(r.code == ALLOWED, "the workspace is the checkout, not the directory in it", r.out + r.err)
    r = s.lab.run("check", "--allow", "write:.", cwd=s.lab.home)
    s.tap.check(r.code == WRONG and "no workspace" in r.err, "home is never a workspace", r.out + r.err)
    for where in ("/", "/usr", "/etc", "/tmp"):
        r = s.lab.run("check", "--allow", "write:.", cwd=where)
        s.tap.check(r.code == WRONG and "no workspace" in r.err, f"{where} is never a workspace", r.out + r.err)


def paths(s):
    head = [line for line in s.caps("allow read ./data\n").splitlines() if "fs.read" in line]
    s.tap.check(head == [f"fs.read:l-{'a' * 26}:{s.lab.project}/data/**"], "a directory is its subtree", head)
    s.same("./x, ./x/ and ./x/** are the same if x is a directory", *(f"allow read {p}\n" for p in (
        "./data", "./data/", "./data/**")))
    s.same("the physical name counts", "allow read ./data\n", f"allow read {s.lab.project}/data\n")
    (s.lab.project / "way").symlink_to("data")
    s.same("links are followed when a policy is read", "allow read ./data\n", "allow read ./way\n")
    (s.lab.project / "way").unlink()
    s.answer("one star is inside one segment", DENIED, "allow write ./logs/*\n", "write", "./logs/a/b")
    s.answer("one star matches dot files", ALLOWED, "allow write ./logs/*\n", "write", "./logs/.hidden")
    s.answer("a missing optional path has no effect", DENIED, "allow write ?./nowhere\n", "write", "./nowhere")
    s.answer("a denial may name what is not there", DENIED, "allow write .\ndeny write ./soon\n", "write", "./soon/x")
    s.answer("**/name is any depth and below", DENIED, "allow write .\ndeny write **/keys\n", "write", "./a/b/keys/c")
    s.answer("deny read denies writing", DENIED, "allow write .\ndeny read ./data\n", "write", "./data/a.csv")
    s.answer("an escaped star is no wildcard", DENIED, 'allow write "?./logs/\\*"\n', "write", "./logs/a")
    s.policy("limit pids 7\n", "a*b.writ")
    s.policy("limit pids 8\n", "a")
    r = s.lab.run("caps", s.policy('use "./a\\*b.writ"\n'))
    s.tap.check("limit pids 7\n" in r.out, "an escaped star in a file name is a star", r.out + r.err)


def programs(s):
    s.answer("without exec lines anything readable runs", ALLOWED, "", "exec", "cat")
    s.answer("with one, only that", DENIED, "allow exec sh\n", "exec", "cat")
    s.answer("also if that one is missing", DENIED, "allow exec ?no-such-program\n", "exec", "cat")
    s.answer("shell none runs nothing", DENIED, "allow shell none\n", "exec", "cat")
    s.answer("a denied program does not turn the default around", ALLOWED, "deny exec sh\n", "exec", "cat")
    helpers = [d for d in ("/usr/lib/git-core", "/usr/libexec/git-core") if Path(d).is_dir()]
    free = [line for line in s.caps('allow exec git args="git status"\n').splitlines()
            if line.startswith("proc.exec") and "args=" not in line]
    if helpers:
        s.tap.check(not free, "args hold for the helpers of a program too", free)
    a, b = (re.search(r"digest \S+", s.caps(f"allow shell {x}\n"))[0] for x in ("none", "read-only"))
    s.tap.check(a != b, "different rights have different digests", a)


def nothing_is_dropped(s):
    for text in ("allow net api.example.com methods=GET,\n", "allow net api.example.com private=10.0.0.0/8,\n",
                 "allow tool github/*a*\n", "allow tool github/**\n", "allow agent a*b*\n",
                 'allow exec sh args="sh *a*"\n', "use python\nuse python\n", "limit time 1m\nlimit command 2m\n",
                 "env A=1\nenv A=2\n", "env A\nenv A=2\n"):
        s.wrong(f"not accepted: {text!r}", text)
    r = s.lab.run("check", "--allow", "write:./src;")
    s.tap.check(r.code == WRONG, "not accepted: --allow 'write:./src;'", r.out)
    s.wrong("a variable cannot carry the secret of the same name",
            "secret KEY from env:KEY to https://api.example.com as bearer\nenv KEY\n")
    s.wrong("nor can a pattern", "secret KEY_A from env:KEY_A to https://api.example.com as bearer\nenv KEY_*\n")
    r = s.lab.run("check", s.policy("use ./p.writ\nalow read .\n"))
    s.tap.check(r.err.count('unknown word "alow"') == 1, "a file that uses itself is judged once", r.err)
    r = s.lab.run("check", s.policy("allow net wiki.internal\n"))
    s.tap.check(r.code == 0 and "warning" in r.err, "a name that looks internal gets a warning", r.out + r.err)
    s.right("a dangerous socket can be asked about", "test deny unix /run/docker.sock\n")
    s.right("also when it is let in", "danger unix /run/docker.sock\ntest allow unix /run/docker.sock\n")


def delegation(s):
    head = "allow write ./src\nallow net https://api.example.com methods=GET\nallow exec sh\nenv LANG\nlimit session 1h\n"
    for line in ("allow write ./src/x*", "allow net https://api.example.com/v1 methods=GET", "allow exec sh", "env LANG",
                 "limit session 30m", "ask write ./src", "deny read ./src/keys", "limit pids 10", "allow read ./data"):
        s.right(f"an agent may have: {line}", f"{head}agent a\n    {line}\n")
    for line in ("allow write ./logs", "allow write .", "allow net https://api.example.com", "allow exec cat",
                 "env EDITOR", "limit session 2h", "allow net api.example.com:443", "allow shell read-write",
                 "secret K from env:K to https://api.example.com as bearer"):
        s.wrong(f"an agent may not have: {line}", f"{head}agent a\n    {line}\n", "more than its parent")
    s.wrong("an agent cannot shed what its parent is asked for", "ask write ./src\nagent a\n    allow write ./src\n",
            "more than its parent")
    r = s.lab.run("why", "--policy", s.policy(f"{head}agent a\n    limit pids 9\n"), "--agent", "a", "write", "./src/x")
    s.tap.check(r.code == DENIED, "an agent has only its own rules", r.out + r.err)
    s.answer("a parent's denial holds without being repeated", DENIED,
             "allow write .\ndeny write ./data\nagent a\n    allow write .\n", "--agent", "a", "write", "./data/x")


def trust(s):
    agent, config = s.lab.project / "agent.writ", s.lab.top / "config"

    def asks(name, code, *question):
        r = s.lab.run("why", *question)
        s.tap.check(r.code == code, name, f"exit {r.code}, expected {code}\n{r.out}{r.err}")
    (config / "writ").mkdir(parents=True)
    (config / "writ/policy.writ").write_text("version 1\nallow write ./src\nallow write ./logs\n")
    agent.write_text("version 1\nallow write ./src\nallow write ./data\n")
    asks("an untrusted agent.writ narrows", DENIED, "write", "./logs/x")
    asks("what both allow stays", ALLOWED, "write", "./src/x")
    asks("it cannot widen", DENIED, "write", "./data/x")
    r = s.lab.run("check")
    s.tap.check(r.code == 0 and "agent.writ:3:1: warning" in r.err, "the line that tried is named", r.out + r.err)
    r = s.lab.run("trust")
    s.tap.check(r.code == DENIED, "trust needs a person or --yes", r.out + r.err)
    r = s.lab.run("trust", "--yes")
    s.tap.check(r.code == 0 and "+ allow write ./data" in r.out, "trust shows what is new", r.out + r.err)
    asks("a trusted agent.writ counts like one's own", ALLOWED, "write", "./data/x")
    agent.write_text("version 1\nallow write ./src\nallow write ./data\nallow write ./tests\n")
    asks("a changed one only narrows again", DENIED, "write", "./data/x")
    r = s.lab.run("trust", "--yes")
    s.tap.check("+ allow write ./tests" in r.out and "+ allow write ./data" not in r.out, "trust shows the change", r.out)
    agent.write_text("version 1\nuse ./more.writ\n")
    (s.lab.project / "more.writ").write_text("version 1\nallow write ./src\n")
    for verb in (("trust", "--yes"), ("check",)):
        r = s.lab.run(*verb)
        s.tap.check(r.code == WRONG and "cannot use files" in r.err, f"agent.writ uses no files: {verb[0]}", r.out + r.err)
    agent.write_text("version 1\nuse python\nallow write ./src\n")
    asks("agent.writ may use profiles", ALLOWED, "write", "./src/x")
    agent.write_text("version 1\nalow\n")
    r = s.lab.run("trust", "--yes")
    s.tap.check(r.code == WRONG, "a policy with errors is not trusted", r.out + r.err)
    agent.unlink()
    shutil.rmtree(config)


def main():
    args, tap = arguments(__doc__.splitlines()[0]), Tap()
    with Lab(args.writ, args.dir) as lab:
        for part in (order, defaults, places, paths, programs, nothing_is_dropped, delegation, trust):
            part(Says(tap, lab))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
