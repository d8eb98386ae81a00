"""protect.py - names that other programs obey stay closed inside any write."""
import json
import os
import subprocess

from host import places, test

# Made where nothing like it exists; each must be refused, and named.
FRESH = [".envrc", ".mcp.json", ".bashrc", ".npmrc", ".gitattributes", ".gitmodules", ".pre-commit-config.yaml", ".tool-versions",
         "sub/.envrc", "sub/deep/.mcp.json", "agent.writ"]
FOLDERS = [".claude", ".vscode", ".husky", ".devcontainer", ".ssh", "sub/.cursor"]
WAYS = ["echo x > {n}", "touch {n}", "ln -s /etc/passwd {n}", "ln plain {n}", "mv plain {n}", "cp plain {n}", "mkdir {n}",
        "mkfifo {n}", "mkdir t && mv t {n}", "ln -s {n} l && echo x > l"]


def where(user):
    return "as a user" if user is not None else "as this user"


@test("a name that does not exist yet")
def _(w):
    for top, user in places():
        fresh(w.at(top, user), f"below {top}, {where(user)}")


def fresh(w, what):
    made, unsaid, untold, filled = [], [], [], []
    w.mkdirs("sub/deep")
    r = w.sh("touch sub/allowed && echo yes")
    w.ok(r.out == b"yes\n", f"{what}: control: other names may be made", r)
    for name in FRESH:
        # Of attributes it counts what they say.
        r = w.sh(f"echo '* filter=x' > {name}; for i in 1 2 3 4 5 6 7 8 9; do test -s /run/writ/denials.jsonl && break; sleep 0.1; done; "
                 "cat /run/writ/denials.jsonl")
        feed = [json.loads(l) for l in r.text.splitlines()]
        made += [name] if (w.ws / name).exists() else []
        unsaid += [name] if f"denied write {w.ws / name}" not in r.said else []
        untold += [name] if not [l for l in feed if l["object"] == str(w.ws / name) and "protected" in l["hint"]] else []
        (w.ws / name).unlink(missing_ok=True)
    for name in FOLDERS:
        w.sh(f"mkdir {name}; mkdir -p {name}/x; echo x > {name}/settings.json")
        filled += [name] if (w.ws / name / "settings.json").exists() else []
    w.same(made, [], f"{what}: cannot be made")
    w.same(unsaid, [], f"{what}: a line says so, with the name")
    w.same(untold, [], f"{what}: and is in denials.jsonl inside")
    w.same(filled, [], f"{what}: directories cannot be filled")


@test("attributes are judged by what they say")
def _(w):
    git = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"
    make = (f"{git} init -q . && echo '* text=auto' >.gitattributes && echo one >file && {git} add -A && {git} commit -qm one && {git} checkout -qb other &&"
            f" printf '* text=auto\n*.py diff=python\n' >.gitattributes && {git} commit -qam two && {git} checkout -q main && echo two >file && {git} commit -qam three")
    work = (f"set -e; {git} clone -q . copy; cat copy/.gitattributes; {git} worktree add -q --detach tree other; cat tree/.gitattributes; {git} checkout -q other;"
            f" cat .gitattributes; {git} checkout -q main; {git} rebase -q other; cat .gitattributes; {git} status --short --untracked-files=no;"
            f" mv .gitattributes a; sed -i s/auto/auto/ a; mv a .gitattributes; rm .gitattributes; {git} checkout -q .gitattributes; echo done")
    bad = ("echo '* filter=x' >.gitattributes; echo '* filter=x' >>.gitattributes; echo '* filter=x' >b; mv b .gitattributes; ln b .gitattributes;"
           " ln -sf b .gitattributes; ln .gitattributes y && cat b >y; echo '\"*\"filter=x' >.gitattributes; cp b .gitattributes; mkdir -p d; cp b d/.gitattributes; mv d/.gitattributes d/x; sed -i 's/.*/* diff=x/' .gitattributes;"
           " python3 -c 'import os; f = os.open(\".gitattributes\", os.O_RDWR | os.O_CREAT); os.write(f, b\"* filter=x\")'; true")
    for tier in "AB":
        v = w.at("/tmp")
        w.exits(v.call(["sh", "-c", make]), 0, f"tier {tier}: a repository")
        r = v.sh(work, opts=("--tier", tier))
        one, two = "* text=auto\n", "* text=auto\n*.py diff=python\n"
        w.same(r.text, one + two + two + two + "done\n", f"tier {tier}: git works with harmless ones", r)
        before = (v.ws / ".gitattributes").read_text()
        r = v.sh(bad, opts=("--tier", tier))
        w.same((v.ws / ".gitattributes").read_text(), before, f"tier {tier}: others never get there", r)
        w.ok(not (v.ws / "d/.gitattributes").exists() and not (v.ws / ".gitattributes").is_symlink(), f"tier {tier}: nor beside it", r)
        w.ok('.gitattributes is protected: "filter=x" may make git run programs' in r.said, f"tier {tier}: and why is said", r)


@test("every way to make one")
def _(w):
    for top, user in places():
        v, got = w.at(top, user), []
        for name in (".envrc", "sub/.mcp.json"):
            for way in WAYS:
                v.sh("rm -rf plain l t sub; mkdir sub; echo p > plain; " + way.format(n=name))
                got += [way.format(n=name)] if os.path.lexists(v.ws / name) else []
                subprocess.run(["rm", "-rf", v.ws / name], check=True)
        w.same(got, [], f"below {top}, {where(user)}: none of {2 * len(WAYS)} works")


@test("a name that exists")
def _(w):
    for top, user in places():
        v, changed = w.at(top, user), []
        what = f"below {top}, {where(user)}"
        v.mkdirs(".claude")
        v.put(".claude/settings.json", "{}")
        v.put(".envrc", "export A=1")
        r = v.sh("cat .envrc .claude/settings.json")
        w.same(r.out, b"export A=1{}", f"{what}: control: may be read", r)
        for way in ("echo x >> .envrc", "rm .envrc", "mv .envrc x", "truncate -s 0 .envrc", "ln .envrc l; echo x >> l", "rm -r .claude", "mv .claude y", "echo x > .claude/settings.json",
                    "echo x > .claude/new", "sed -i s/1/2/ .envrc", "cp /etc/hostname .envrc", "mv .claude/settings.json z", "chmod 755 .envrc", "touch -d 2001-01-01 .envrc"):
            before = state(v)
            v.sh(way)
            if state(v) != before:
                changed.append(way)
                v.sh("rm -rf .claude .envrc x y z l")
                v.mkdirs(".claude")
                v.put(".claude/settings.json", "{}")
                v.put(".envrc", "export A=1")
        w.same(changed, [], f"{what}: cannot be changed in any way")


def state(v):
    found = []
    for p in (".claude", ".claude/settings.json", ".envrc"):
        if not os.path.lexists(v.ws / p):
            return None
        st = os.lstat(v.ws / p)
        found.append((p, st.st_mtime_ns, st.st_mode, st.st_ino, None if p == ".claude" else (v.ws / p).read_text()))
    return found


@test("open lifts one")
def _(w):
    for top, user in places()[-1:]:
        v = w.at(top, user)
        policy = v.policy("allow write .", "open .envrc")
        r = v.sh("echo x > .envrc; echo x > .mcp.json", opts=("--policy", policy))
        w.ok((v.ws / ".envrc").exists(), "what is opened may be made", r)
        w.ok(not (v.ws / ".mcp.json").exists(), "the others not", r)


@test("rules inside the workspace")
def _(w):
    for top, user in places():
        v = w.at(top, user)
        what = f"below {top}, {where(user)}"
        for d in ("src", "logs", "raw"):
            v.mkdirs(d)
            v.put(d + "/f", "f")
        policy = v.policy("allow write ./src", "allow write ./logs/*", "deny write ./src/locked")
        r = v.sh("echo a > src/new; echo a > logs/x.log; mkdir src/d; rm src/f", opts=("--policy", policy))
        w.ok(r.code == 0 and (v.ws / "src/new").exists() and (v.ws / "logs/x.log").exists(), f"{what}: what is granted works", r)
        r = v.sh("echo a > raw/new; echo a > top; mv src/new raw/; rm raw/f; echo a > src/locked; mkdir logs/d && echo a > logs/d/x",
                 opts=("--policy", policy))
        bad = [p for p in ("raw/new", "top", "src/locked", "logs/d/x") if (v.ws / p).exists()]
        w.same((bad, (v.ws / "raw/f").exists()), ([], True), f"{what}: the rest does not", r)
        w.ok("denied write" in r.said, f"{what}: and lines say so", r)


@test("programs beside hidden files")
def _(w):
    steps = {
        "a program that was just built": "printf '#!/bin/sh\\necho made' > new && chmod +x new && test $(./new) = made && cp /bin/echo e && test $(./e x) = x",
        "a program of the system": "test $(/bin/echo x) = x",
        "a file beside it": "test $(cat plain) = shown",
        "the temporary directory": 'echo x > "$TMPDIR/t" && test $(cat "$TMPDIR/t") = x && cp /bin/echo "$TMPDIR/e" && test $("$TMPDIR/e" y) = y',
        "a link to it": 'echo x > "$TMPDIR/t" && ln -sf "$TMPDIR/t" ln && test $(cat ln) = x',
        "a pipe with a name": 'mkfifo "$TMPDIR/p"; { sleep 0.2; echo x > "$TMPDIR/p"; } & test "$(cat "$TMPDIR/p")" = x',
        "descriptors by name": "echo x | { test $(cat /dev/stdin) = x; } && exec 7< plain && test $(cat /dev/fd/7) = shown",
        "a file that is gone": 'echo x > "$TMPDIR/g" && exec 7< "$TMPDIR/g" && rm "$TMPDIR/g" && test $(cat /proc/self/fd/7) = x',
        "devices": "head -c 3 /dev/zero | wc -c | grep -q 3 && cat /dev/null && head -c 1 /dev/urandom > /dev/null",
        "oneself in /proc": "grep -q Name: /proc/self/status && test -n \"$(head -c 1 /proc/self/maps)\" && ls /proc/self/fd > /dev/null && cat /proc/self/exe > /dev/null",
        "threads of oneself": "cat /proc/thread-self/comm | grep -q cat",
        "the machine in /proc": "test -s /proc/cpuinfo || grep -q . /proc/cpuinfo && grep -q . /proc/mounts && grep -q . /etc/mtab && grep -q lo /proc/net/dev",
        "directories": "ls . > /dev/null && ls /usr/bin > /dev/null",
        "its own policy": 'grep -q version "$WRIT_POLICY"',
        "git": "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline > /dev/null",
    }
    for tier in ("A", "B"):
        v = w.at("/var/tmp")
        v.put("plain", "shown\n")
        v.put(".env", "hidden\n")
        opts = ("--quiet", "--tier", tier, "--policy", v.policy("allow write .", "deny read **/.env"))
        if tier == "B":  # no link may lead to where writ keeps its files, and that is where TMPDIR is
            del steps["a link to it"]
        for name, script in steps.items():
            w.exits(v.sh("rm -rf r ln e new; " + script, opts=opts), 0, f"tier {tier}: {name}")
        for name, script in {"open": "cat .env", "a link": "ln -s .env l; cat l", "a copy": "cp .env c; cat c", "another name": "mv .env c; cat c",
                             "a second name": "ln .env c; cat c", "a shell": ". ./.env", "running it": "./.env", "/proc": "cat /proc/self/cwd/.env"}.items():
            r = v.sh(script, opts=opts)
            w.ok(b"hidden" not in r.out + r.err and r.code != 0, f"tier {tier}: {name} does not show it", r)
        v.put("later.env", "")
        os.rename(v.ws / "later.env", v.ws / ".env")
        v.put(".env", "hidden\n")
        r = v.sh("cat .env", opts=opts)
        w.ok(b"hidden" not in r.out, f"tier {tier}: nor when it was replaced", r)
        w.same((v.ws / ".env").read_text(), "hidden\n", f"tier {tier}: and it is still there")


@test("names below a descriptor in /proc")
def below_descriptor(w):
    (w.ws / ".git/hooks").mkdir(parents=True)
    (w.home / "other").mkdir()
    (w.ws / "out").symlink_to(w.home / "other")
    got = w.python("""
import errno
def attempt(f, *a):
    try: f(*a); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
def put(p): open(p, "w").write("x")
out = {}
for head in ("/proc/self/fd", "/dev/fd", "/proc/thread-self/fd"):
    d = os.open(".", os.O_PATH | os.O_DIRECTORY)
    p = "%s/%d" % (head, d)
    n = head.split("/")[-2]
    out[n] = [attempt(os.mkdir, p + "/made-" + n), attempt(put, p + "//made-" + n + "/f"), attempt(os.rename, p + "/made-" + n + "/f", p + "/moved-" + n),
              attempt(os.chmod, p + "/moved-" + n, 0o600), attempt(os.symlink, "x", p + "/link-" + n), attempt(os.unlink, p + "/link-" + n),
              attempt(os.mkdir, p + "/no/such"), attempt(os.mkdir, head + "/999/x"), attempt(os.mkdir, head + "/0x/y"),
              attempt(put, p + "/.git/hooks/pre-commit"), attempt(put, p + "/../home/other/x"), attempt(put, p + "/out/x")]
    os.close(d)
print(json.dumps(out))
""", opts=["--policy", w.policy("allow write .")], timeout=30)
    for head, r in got.items():
        w.same(r[:6], ["ok"] * 6, f"{head}: make, write, rename, chmod, link, remove")
        w.same(r[6:9], ["ENOENT"] * 3, f"{head}: what is not there is not there")
        w.ok(r[9] == "EACCES" and "ok" not in r[10:], f"{head}: no way around", r)
    w.same([sorted(p.name for p in d.iterdir()) for d in (w.ws / ".git/hooks", w.home / "other")], [[], []], "which is seen from outside")
    w.same(sorted(p.name for p in w.ws.glob("moved-*")), ["moved-dev", "moved-self", "moved-thread-self"], "and so is what was made")


@test("a denied name that is not there yet")
def _(w):
    """Nothing may come to stand above it that leads elsewhere: then its name would be another one."""
    for d in ("out/d", "out/e", "home/config"):
        (w.ws / d).mkdir(parents=True)
    deny = ("--allow", "write:.", "--deny", "write:./out/d/x", "--deny", "write:./home/config/writ/policy")
    ways = ["mv out/d out/f; ln -s e out/d", "rmdir out/d; ln -s e out/d", "ln -s e out/l; rmdir out/d; mv out/l out/d",
            "ln -s e out/l; rmdir out/d; ln -P out/l out/d", "rmdir home/config; ln -s ../out/e home/config"]
    for way in ways:
        (w.ws / "out/d").mkdir(exist_ok=True)
        (w.ws / "home/config").mkdir(exist_ok=True)
        r = w.sh(f"{way}; echo bad > out/e/x", opts=deny)
        there = [n for n in ("out/d", "home/config") if (w.ws / n).is_symlink()]
        w.same(there, [], way, r)
        w.sh("rm -rf out/l out/f")
    r = w.sh("mv out/d out/f && mkdir out/d && echo fine > out/d/y && ln -s y out/d/z", opts=deny)
    w.exits(r, 0, "what leads nowhere else may")
    w.ok(w.sh("echo bad > out/d/x", opts=deny).code != 0, "and the name stays denied")


@test("a pattern of denied names, and links")
def _(w):
    """A link must not give what a pattern denies another name, wherever it is made or comes to stand."""
    links = ["mkdir -p conf z; ln -s ../z conf/x", "mkdir -p conf z; ln -s ../z l; mv l conf/x", "mkdir -p q z; ln -s ../z q/x; mv q conf",
             f"mkdir -p conf z; ln -s {w.ws}/z conf/x", "mkdir -p conf/y z; ln -s ../../z conf/y/x; mv conf/y/x conf/x"]
    for deny in ("write:./conf/*/run.sh", "write:./conf/**/run.sh"):
        for way in links:
            w.sh("rm -rf conf q l z")
            r = w.sh(f"{way}; echo evil >conf/x/run.sh", opts=("--allow", "write:.", "--deny", deny))
            w.ok(not (w.ws / "conf/x/run.sh").exists(), f"{deny}: {way}", r)
        w.sh("rm -rf conf q l z")
    r = w.sh("mkdir -p conf/a/b conf/c; ln -s ../../c conf/a/b/l; ln -s b conf/a/k; mv conf/a conf/d; test -L conf/d/b/l -a -L conf/d/k",
             opts=("--allow", "write:.", "--deny", "write:./conf/**/run.sh"))
    w.exits(r, 0, "links that stay below it may be made, and moved")
    r = w.sh("echo evil >conf/d/b/l/run.sh", opts=("--allow", "write:.", "--deny", "write:./conf/**/run.sh"))
    w.ok(r.code != 0 and not (w.ws / "conf/c/run.sh").exists(), "and lead to what is denied all the same", r)


@test("a directory that becomes a repository while something in it is written")
def _(w):
    owned = w.dir / "owned"
    for tier in ("A", "B"):
        w.sh("rm -rf objects refs src config info foo HEAD t", opts=("--allow", "write:."))
        r = w.sh(f'''
mkdir -p objects refs/heads src/lib; printf "[extensions]\\n\\tworktreeConfig = true\\n[core]\\n\\trepositoryformatversion = 1\\n" >t; mv t config
printf "[core]\\n\\tbare = false\\n\\tworktree = {w.ws}\\n\\tfsmonitor = \\"touch {owned}; false\\"\\n" >src/lib/config.worktree
exec 7>src/lib/commondir; echo "ref: refs/heads/main" >src/lib/HEAD; echo ../.. >&7; exec 7>&-; sleep 0.3
test -s src/lib/config.worktree -a -e src/lib/HEAD''', opts=("--tier", tier, "--allow", "write:."))
        w.exits(r, 0, f"tier {tier}: control: the rest of it is there")
        w.call(["git", "status"], cwd=w.ws / "src/lib")
        w.ok(not owned.exists() and not (w.ws / "src/lib/commondir").exists(), f"tier {tier}: git outside runs nothing of it", r)
        w.sh("rm -rf objects refs src config", opts=("--allow", "write:."))
        w.sh("mkdir foo; ln -s foo info; mkdir objects refs; echo 'ref: refs/heads/m' >HEAD; echo '* filter=lfs' >info/attributes",
             opts=("--tier", tier, "--allow", "write:."))
        w.ok(not ((w.ws / "refs").exists() and (w.ws / "foo/attributes").exists()), f"tier {tier}: attributes behind a link")


# Each is executed or obeyed by a tool: as a file, or as a directory with a file in it.
OBEYED = """
.hg/sharedpath .hg/requires .sl/config .sl/sharedpath .sl/requires .jj/repo/config.toml .jj/workspace-config.toml
.git/lazygit.yml .lazygit.yml .lefthook.yml .lefthook-local.yml lefthook.yml lefthook-local.yml .overcommit.yml .windsurf
.roo .clinerules .kiro .amazonq .qwen .factory .crush.json crush.json opencode.jsonc .github/hooks .mise .mise.local.toml
.config/mise.toml mise.local.toml .config/direnv .dir-locals-2.el .helix .config/helix .config/zed .lvimrc .Rprofile
.ocamlinit .iex.exs .irbrc .pryrc .octaverc .erlang .cshrc .tcshrc .kshrc .login .config/nushell .screenrc .config/tmux
.xprofile .pam_environment .config/environment.d .config/hypr .config/sway .config/i3 .local/share/applications .local/bin
.bazelrc .mvn/extensions.xml .mvn/jvm.config rust-toolchain.toml rust-toolchain .pylintrc
""".split()


@test("what each tool obeys")
def obeyed(w):
    """A name that a tool executes cannot be made, and the work beside it goes on."""
    script = ('for n; do mkdir -p "$(dirname "$n")" 2>/dev/null; (echo x > "$n") 2>/dev/null; mkdir "$n" 2>/dev/null && echo x > "$n/f";'
              ' echo x > t; mv t "$n" 2>/dev/null; ln -s t "$n" 2>/dev/null; done; rm -f t; true')
    for tier in "AB":
        v = w.at("/var/tmp")
        r = v.sh(script, "sh", *OBEYED, opts=("--tier", tier))
        made = [n for n in OBEYED if (v.ws / n).is_file() or (v.ws / n).is_symlink() or (v.ws / n / "f").exists()]
        w.same(made, [], f"tier {tier}: none can be made", r)
        names = ["Rprofile", "sub/lefthook.yml", "sub/rust-toolchain.toml", ".hg/store/x", ".jj/repo/store/x", ".config/other", ".local/share/x", ".github/workflows/x.yml", ".mvn/x",
                 "tools/x", ".mise-x", "CLAUDE.md"]
        r = v.sh('for n; do mkdir -p "$(dirname "$n")" && echo x > "$n" || exit 1; done; mv tools t2', "sh", *names, opts=("--tier", tier))
        w.exits(r, 0, f"tier {tier}: control: others can")
        opened = v.policy("allow write .", "open .hg/requires", "open lefthook.yml")
        r = v.sh("echo x > .hg/requires && echo x > lefthook.yml", opts=("--tier", tier, "--policy", opened))
        w.exits(r, 0, f"tier {tier}: control: and those that are opened")
