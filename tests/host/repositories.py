"""repositories.py - git as people use it, in clones, worktrees and submodules."""
import os
import subprocess

from host import ROOT, places, test


def git(w, *args, cwd=None):
    env = {**w.env, "GIT_CONFIG_NOSYSTEM": "1"}
    r = w.call(["git", *args], cwd=cwd, env=env)
    assert r.code == 0, f"git {args}: {r}"
    return r


def prepare(w):
    """An origin with two commits, a clone, a linked worktree and a clone with a submodule; returns their paths."""
    git(w, "config", "--global", "user.name", "Tester")
    git(w, "config", "--global", "user.email", "tester@example.com")
    git(w, "config", "--global", "protocol.file.allow", "always")
    git(w, "config", "--global", "init.defaultBranch", "main")
    seed, origin = w.dir / "seed", w.dir / "origin.git"
    git(w, "init", "-q", seed, cwd=w.dir)
    (seed / "a").write_text("one\n")
    git(w, "add", "a", cwd=seed)
    git(w, "commit", "-qm", "first", cwd=seed)
    (seed / "a").write_text("one\ntwo\n")
    git(w, "commit", "-qam", "second", cwd=seed)
    git(w, "clone", "-q", "--bare", seed, origin, cwd=w.dir)
    clone, tree, super_ = w.dir / "clone", w.dir / "tree", w.dir / "super"
    git(w, "clone", "-q", origin, clone, cwd=w.dir)
    git(w, "clone", "-q", origin, w.dir / "base", cwd=w.dir)
    git(w, "worktree", "add", "-q", "-b", "side", tree, cwd=w.dir / "base")
    git(w, "clone", "-q", origin, super_, cwd=w.dir)
    git(w, "submodule", "--quiet", "add", origin, "mod", cwd=super_)
    git(w, "commit", "-qm", "with a submodule", cwd=super_)
    return clone, tree, super_


IDENTITY = ("-e", "GIT_AUTHOR_NAME=Agent", "-e", "GIT_AUTHOR_EMAIL=agent@example.com", "-e", "GIT_COMMITTER_NAME=Agent",
            "-e", "GIT_COMMITTER_EMAIL=agent@example.com")

STEPS = [
    ("status", "git status --short"),
    ("add", "echo new > b && git add b"),
    ("commit", "git commit -qm third"),
    ("commit --amend", "git commit -q --amend -m 'third again'"),
    ("diff and log", "git log --oneline && git diff HEAD~1"),
    ("branch and switch", "git switch -qc work && echo w > w && git add w && git commit -qm work && git switch -q -"),
    ("merge", "git merge -q --no-edit work"),
    ("stash", "echo dirty >> a && git stash -q && git stash pop -q && git checkout -q a"),
    ("rebase", "git switch -qc topic HEAD~1 && echo t > t && git add t && git commit -qm topic && git rebase -q work && git switch -q work"),
    ("rebase -i", "GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~1"),
    ("cherry-pick", "git cherry-pick topic >/dev/null 2>&1 || git cherry-pick --skip || git cherry-pick --abort; true"),
    ("revert", "git revert --no-edit HEAD > /dev/null"),
    ("tag", "git tag v1 && git tag -am note v2 && git tag -d v1 > /dev/null"),
    ("reset", "git reset -q --soft HEAD~1 && git reset -q --hard"),
    ("remote add", "git remote add other https://example.com/x.git && git remote | grep -q other"),
    ("remote rename and remove", "git remote rename other third && git remote remove third"),
    ("branch -u", "git branch -q -u origin/main && git rev-parse --abbrev-ref @{u} | grep -q origin/main"),
    ("branch -m", "git branch -m renamed && git branch -m work"),
    ("gc", "git gc -q"),
    ("clean", "touch junk && git clean -qf && test ! -e junk"),
]

HARMLESS = [("a description", "git config branch.work.description text"), ("a commit after all that", "git commit -qm x --allow-empty")]

EVIL = [
    ("a hook", "echo '#!/bin/sh' > {git}/hooks/pre-commit"),
    ("a hook by renaming", "echo x > x && mv x {git}/hooks/post-checkout"),
    ("a hook by a sample", "cp {git}/hooks/pre-commit.sample {git}/hooks/pre-commit"),
    ("core.hooksPath", "git config core.hooksPath /tmp/evil"),
    ("core.fsmonitor", "git config core.fsmonitor /tmp/evil"),
    ("core.sshCommand", "git config core.sshCommand /tmp/evil"),
    ("core.pager", "git config core.pager /tmp/evil"),
    ("an alias", "git config alias.st '!/tmp/evil'"),
    ("a filter", "git config filter.x.clean /tmp/evil"),
    ("an include", "git config include.path /tmp/evil"),
    ("config, directly", "printf '[core]\\n\\tfsmonitor = /tmp/evil\\n' >> {git}/config"),
    ("config, replaced", "printf '[core]\\n\\tfsmonitor = /tmp/evil\\n' > c && mv c {git}/config"),
    ("attributes", "mkdir -p {git}/info; echo '* filter=x' > {git}/info/attributes"),
    ("config.worktree", "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor /tmp/evil"),
]


def dangerous(top, common):
    """Files that would run a program later, outside."""
    found = set()
    for folder in (common, top):
        for path, _, files in os.walk(folder):
            for f in files:
                full = os.path.join(path, f)
                if os.path.basename(path) == "hooks" and not f.endswith(".sample") or full.endswith("info/attributes"):
                    found.add(full)
                elif f.startswith("config") and not os.path.islink(full):
                    with open(full, errors="replace") as text:
                        if "evil" in text.read():
                            found.add(full)
    return sorted(found)


def common_dir(w, top):
    out = subprocess.run(["git", "rev-parse", "--git-common-dir"], cwd=top, stdout=subprocess.PIPE, env={**w.env, "GIT_CONFIG_COUNT": "1",
                         "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}, check=True).stdout.decode().strip()
    return os.path.join(top, out)


def work(w, what, top, grants=()):
    opts = [*IDENTITY]
    if grants:
        opts += ["--policy", w.policy("allow write .", *grants)]
    for name, script in STEPS:
        r = w.sh("set -e; " + script, cwd=top, opts=opts)
        w.exits(r, 0, f"{what}: {name}")
    common = common_dir(w, top)
    r = w.call(["git", "-c", "safe.directory=*", "fsck", "--no-dangling"], cwd=top)
    w.ok(r.code == 0, f"{what}: the repository is whole", r)
    holes, notes = [], []
    for name, script in EVIL:
        r = w.sh(script.format(git=common), cwd=top, opts=opts)
        if bad := dangerous(top, common):
            holes.append(name)
            notes.append(f"{name}: {bad} {r}")
            tidy(bad)
    w.same(holes, [], f"{what}: what git would run later cannot be left behind", "\n".join(notes))
    for name, script in HARMLESS:
        w.exits(w.sh(script, cwd=top, opts=opts), 0, f"{what}: control: {name}")


def tidy(files):
    """So that one hole is counted once."""
    for f in files:
        if "/hooks/" in f or f.endswith("attributes"):
            os.unlink(f)
        else:
            with open(f) as old:
                kept = [l for l in old if "evil" not in l]
            with open(f, "w") as new:
                new.writelines(kept)


@test("a clone")
def _(w):
    for top, user in places():
        v = w.at(top, user)
        clone, _, _ = prepare(v)
        work(v, f"below {top}{', a user' if user is not None else ''}", clone)


@test("a linked worktree")
def _(w):
    for top, user in places()[-1:]:
        v = w.at(top, user)
        _, tree, _ = prepare(v)
        work(v, "worktree", tree, grants=(f"allow write {v.dir}/base/.git",))


# What git does in a repository that belongs to somebody else's worktree as well, without a grant by hand.
SHARED = [s for s in STEPS if s[0] not in ("remote add", "remote rename and remove", "branch -u", "branch -m", "gc")] + [
    ("branch -d", "git branch gone && git branch -qd gone; test -z \"$(git branch --list gone)\""),
    ("packed refs", "git pack-refs --all && git tag later && git tag -d later > /dev/null"),
    ("worktree add and remove", "git worktree add -q ./inner && cd inner && git commit -qm i --allow-empty && cd .. && git worktree remove inner"),
]


@test("a linked worktree, found by itself")
def _(w):
    for tier in ("A", "B"):
        v = w.at(*places()[-1])
        _, tree, _ = prepare(v)
        base = v.dir / "base"
        git(v, "worktree", "add", "-q", "-b", "other", v.dir / "other", cwd=base)
        opts = ("--tier", tier, *IDENTITY)
        r = v.writ("explain", "--tier", tier, cwd=tree)
        w.ok(f"linked worktree: {base}/.git" in r.text, f"tier {tier}: explain says so", r)
        before = v.call(["sh", "-c", "cd .git && sha256sum config HEAD index description worktrees/other/* hooks/*"], cwd=base).text
        for name, script in SHARED:
            w.exits(v.sh("set -e; " + script, cwd=tree, opts=opts), 0, f"tier {tier}: {name}")
        r = v.call(["git", "-c", "safe.directory=*", "fsck", "--no-dangling"], cwd=base)
        w.ok(r.code == 0, f"tier {tier}: the repository is whole", r)
        for name, script in EVIL:
            v.sh(script.format(git=base / ".git"), cwd=tree, opts=opts)
            v.sh(script.format(git=base / ".git/worktrees/tree"), cwd=tree, opts=opts)
        w.same(dangerous(str(tree), str(base / ".git")), [], f"tier {tier}: what git would run later cannot be left behind")
        for name in ("HEAD", "index", "config", "description", "rebase-merge/git-rebase-todo", "worktrees/other/HEAD", "new"):
            v.sh(f"mkdir -p $(dirname {base}/.git/{name}); echo x > {base}/.git/{name}", cwd=tree, opts=opts)
        v.sh(f"cd {base}/.git/worktrees; mv other o2; rm -r other; mv tree/HEAD other/HEAD; cd ..; mv worktrees refs/w; mv logs hooks/l", cwd=tree, opts=opts)
        after = v.call(["sh", "-c", "cd .git && sha256sum config HEAD index description worktrees/other/* hooks/*"], cwd=base).text
        w.same(after, before, f"tier {tier}: nothing of the others has changed")
        w.ok(not (base / ".git/new").exists() and not (base / ".git/rebase-merge").exists(), f"tier {tier}: nothing new")


@test("a submodule as the workspace")
def _(w):
    for tier in ("A", "B"):
        v = w.at(*places()[-1])
        _, _, super_ = prepare(v)
        opts = ("--tier", tier, *IDENTITY)
        for name, script in [s for s in STEPS if s[0] != "branch -u"]:
            w.exits(v.sh("set -e; " + script, cwd=super_ / "mod", opts=opts), 0, f"tier {tier}: {name}")
        for name, script in EVIL:
            v.sh(script.format(git=super_ / ".git/modules/mod"), cwd=super_ / "mod", opts=opts)
            v.sh(script.format(git=super_ / ".git"), cwd=super_ / "mod", opts=opts)
        w.same(dangerous(str(super_), str(super_ / ".git")), [], f"tier {tier}: what git would run later cannot be left behind")
        r = v.sh(f"echo x > {super_}/a; echo x > {super_}/.git/HEAD; ls {super_}", cwd=super_ / "mod", opts=opts)
        w.ok((super_ / "a").read_text() != "x\n" and "ref:" in (super_ / ".git/HEAD").read_text(),
             f"tier {tier}: what holds it is as it was", r)


@test("pointers to a repository that does not know the workspace")
def _(w):
    v = w.at(*places()[-1])
    _, tree, super_ = prepare(v)
    base, forged = v.dir / "base/.git", v.dir / "forged"
    forged.mkdir()
    if v.user is not None:
        os.chown(forged, v.user, v.user)
    for name, to in {"a worktree of another place": base / "worktrees/tree", "a repository": base,
                     "a submodule of another": super_ / ".git/modules/mod", "a directory": v.dir / "home"}.items():
        (forged / ".git").write_text(f"gitdir: {to}\n")
        if v.user is not None:
            os.chown(forged / ".git", v.user, v.user)
        r = v.sh(f"ls {to}; echo x > {to}/objects/x", cwd=forged)
        w.ok(r.out == b"" and not (to / "objects/x").exists(), f"{name} is not granted", r)
        r = v.writ("explain", cwd=forged)
        w.ok("repository" not in r.text, f"{name}: and nothing is said of one", r)
    if ROOT and v.user is not None:
        os.chown(base / "worktrees/tree", 0, 0)
        r = v.sh(f"ls {base}", cwd=tree)
        w.ok(r.out == b"", "another user's is not granted", r)


@test("who commits")
def _(w):
    script = "git init -q r && cd r && git commit -qm x --allow-empty && git log -1 --format='%an <%ae> %cn <%ce>'"
    for tier in ("A", "B"):
        r = w.sh("rm -rf r; " + script, opts=("--tier", tier))
        w.ok(r.code != 0 and b"tell me who you are" in r.err, f"tier {tier}: nobody is known", r)
    (w.home / ".gitconfig").write_text("[user]\n\tname = Ann \"O\\\"Hara; #1\"\n\temail = ann@example.com\n"
                                       "[core]\n\teditor = evil\n[include]\n\tpath = ../secret\n")
    (w.dir / "secret").write_text("[user]\n\temail = secret@example.com\n")
    for tier in ("A", "B"):
        r = w.sh("rm -rf r; " + script, opts=("--tier", tier))
        w.same(r.text, 'Ann O"Hara; #1 <ann@example.com> Ann O"Hara; #1 <ann@example.com>\n', f"tier {tier}: the person's own name", r)
        r = w.sh("git config --get core.editor; git config --get include.path; true", opts=("--tier", tier))
        w.same(r.text, "", f"tier {tier}: and nothing else of the file", r)
        r = w.sh("rm -rf r; " + script, opts=("--tier", tier, *IDENTITY))
        w.ok("Agent <agent@example.com>" in r.text, f"tier {tier}: who says another name has it", r)
    r = w.sh("rm -rf r; git config --global user.name Inner; " + script + "; git config --global --unset user.name")
    w.ok("Inner <ann@" in r.text, "settings inside come after it", r)
    for bad in ("a\\nb", "a\x01b", "a<b>", "x" * 300):
        (w.home / ".gitconfig").write_text(f'[user]\n\tname = "{bad}"\n\temail = ann@example.com\n')
        r = w.sh("git config user.name; git config user.email")
        w.same(r.text, "ann@example.com\n", f"a name that is no name stays outside: {bad[:5]!r}", r)


@test("a submodule")
def _(w):
    for top, user in places()[-1:]:
        v = w.at(top, user)
        _, _, super_ = prepare(v)
        r = v.sh("cd mod && echo s > s && git add s && git commit -qm sub && cd .. && git add mod && git commit -qm moved && "
                 "git submodule status", cwd=super_, opts=IDENTITY)
        w.exits(r, 0, "commit in the submodule and in what holds it")
        r = v.sh("echo '#!/bin/sh' > .git/modules/mod/hooks/pre-commit; git -C mod config core.fsmonitor /tmp/evil; "
                 "echo '[x]' >> .gitmodules", cwd=super_, opts=IDENTITY)
        w.same(dangerous(str(super_), str(super_ / ".git")), [], "hooks and config of the submodule are closed", r)
        w.ok("[x]" not in (super_ / ".gitmodules").read_text(), ".gitmodules too", r)


@test("new repositories")
def _(w):
    for top, user in places()[-1:]:
        v = w.at(top, user)
        clone, _, _ = prepare(v)
        r = v.sh("git init -q inner && cd inner && echo x > x && git add x && git commit -qm x && git log --oneline", cwd=clone, opts=IDENTITY)
        w.exits(r, 0, "init inside the workspace")
        r = v.sh("git worktree add -q ./side && cd side && echo y > y && git add y && git commit -qm y", cwd=clone, opts=IDENTITY)
        w.exits(r, 0, "worktree add")
        r = v.sh("git worktree remove ./side", cwd=clone, opts=IDENTITY)
        w.exits(r, 0, "worktree remove")
        r = v.sh("git clone -q . copy && cd copy && git log --oneline", cwd=clone, opts=IDENTITY)
        w.exits(r, 0, "clone inside the workspace")
        w.same(dangerous(str(clone), str(clone / ".git")), [], "none of it has left a program to run")
        empty = v.ws
        r = v.sh("git init -q && echo x > x && git add x && git commit -qm x", cwd=empty, opts=IDENTITY)
        w.exits(r, 0, "init of the workspace itself")


LINKS = {
    "made": "ln -s {out} {at}",
    "made by a relative name": "ln -s ../../../out {at}",
    "moved in": "ln -s {out} l && mv -T l {at}",
    "given a second name": "ln -s {out} l && ln -P l {at}",
    "moved in with its directory": "mkdir m && ln -s {out} m/l && mv m {at}",
    "exchanged": "ln -s {out} l && echo x > {at} && {exchange} l {at}",
}
EXCHANGE = ("python3 -c 'import ctypes, os, sys; a, b = [os.fsencode(x) for x in sys.argv[1:]];"
            " sys.exit(ctypes.CDLL(None).renameat2(-100, a, -100, b, 2) != 0)'")


def links_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink())


@test("no link comes into a git directory")
def git_links(w):
    """git outside appends to its reflogs and replaces messages through links, so a link there leads it to any file."""
    for tier in "AB":
        v = w.at("/var/tmp")
        out = v.dir / "out"
        out.write_text("kept\n")
        clone, tree, super_ = prepare(v)
        places = {"a repository": (clone, [".git/logs/l", ".git/l", ".git/objects/pack/l", ".git/refs/heads/l", ".git/info/l", ".git/logs/refs/heads/l"]),
                  "its message": (clone, [".git/COMMIT_EDITMSG2"]),
                  "a linked worktree": (tree, [str(v.dir / "base/.git/worktrees/tree/logs/l"), str(v.dir / "base/.git/logs/l")]),
                  "a submodule": (super_, [".git/modules/mod/logs/l", ".git/modules/mod/l"]),
                  "a bare repository": (v.ws, ["bare.git/l", "bare.git/objects/l", "bare.git/refs/heads/l"])}
        git(v, "init", "-q", "--bare", v.ws / "bare.git", cwd=v.ws)
        for what, (cwd, names) in places.items():
            for name in names:
                for way, script in LINKS.items():
                    r = v.sh("rm -rf l m; " + script.format(out=out, at=name, exchange=EXCHANGE), opts=("--tier", tier), cwd=cwd)
                    found = links_below(v.dir / "base/.git") + links_below(v.ws / "bare.git") + links_below(clone / ".git") + links_below(super_ / ".git")
                    w.same(found, [], f"tier {tier}, {what}: none {way} at {os.path.basename(name)}", r)
                    v.sh(f"rm -rf l m {name}", cwd=cwd)
        w.exits(v.sh("ln -s a l1 && mv l1 l2 && mkdir d && mv l2 d/ && mv d e && test -L e/l2 && rm -r e", opts=("--tier", tier), cwd=clone), 0,
                f"tier {tier}: control: a link beside it works")
        r = v.sh("rm .git/logs/HEAD; ln -s ../../../out .git/logs/HEAD; rm -f .git/COMMIT_EDITMSG; ln -s config .git/COMMIT_EDITMSG", opts=("--tier", tier), cwd=clone)
        before = (clone / ".git/config").read_bytes()
        git(v, "commit", "-q", "--allow-empty", "-m", "[core] x", cwd=clone)
        w.same((out.read_text(), (clone / ".git/config").read_bytes()), ("kept\n", before), f"tier {tier}: a commit outside writes no other file", r)


@test("a directory with links does not become a git directory")
def links_first(w):
    for tier in "AB":
        v = w.at("/var/tmp")
        opts = ("--tier", tier)
        steps = {"its log is a link": "mkdir -p b/logs b/refs; echo 'ref: refs/heads/m' > b/HEAD; ln -s ../../x b/logs/HEAD; mkdir b/objects",
                 "its objects are a link": "mkdir -p b/refs o; echo 'ref: refs/heads/m' > b/HEAD; ln -s ../o b/objects",
                 "objects with a link are moved in": "mkdir -p b/refs o; echo 'ref: refs/heads/m' > b/HEAD; ln -s x o/l; mv o b/objects",
                 "its HEAD is a link": "mkdir -p b/objects; ln -s ../h b/HEAD",
                 "it hides a directory": "mkdir -p b/d b/refs; ln -s ../../x b/d/l; chmod 0 b/d; mkdir b/objects"}
        for what, script in steps.items():
            r = v.sh("chmod -R u+rwx b 2>/dev/null; rm -rf b o; " + script + "; chmod 700 b/d 2>/dev/null; true", opts=opts)
            b = v.ws / "b"
            whole = os.path.lexists(b / "objects") and (os.path.lexists(b / "refs") or os.path.lexists(b / "HEAD"))
            w.ok(not (whole and links_below(b)), f"tier {tier}: {what}", r)
        r = v.sh("rm -rf b o; mkdir -p b/refs b/objects && echo 'ref: refs/heads/m' > b/HEAD && test -d b/objects", opts=opts)
        w.exits(r, 0, f"tier {tier}: control: one without links may be made")
        script = ("rm -rf c; git init -q --bare c && d=$PWD && cd c/hooks && chmod 0 .. && echo x > post-update; chmod 755 $d/c; "
                  "cd $d/c/logs || { mkdir $d/c/logs && cd $d/c/logs; }; chmod 0 ..; ln -s ../../x HEAD; chmod 755 $d/c; true")
        r = v.sh(script, opts=opts)
        w.ok((v.ws / "c/HEAD").exists() and not (v.ws / "c/hooks/post-update").exists() and not links_below(v.ws / "c"),
             f"tier {tier}: nor is one that cannot be searched taken for another directory", r)


@test("a link that is in a git directory already is not written through")
def links_before(w):
    for tier in "AB":
        v = w.at("/var/tmp")
        git(v, "init", "-q", ".", cwd=v.ws)
        v.put("target", "kept\n")
        (v.ws / ".git/description").unlink()
        (v.ws / ".git/description").symlink_to("../target")
        (v.ws / "plain").symlink_to("target")
        r = v.sh("echo x >> .git/description; echo x > .git/description; truncate -s 0 .git/description; cat .git/description", opts=("--tier", tier))
        w.same(((v.ws / "target").read_text(), r.text), ("kept\n", "kept\n"), f"tier {tier}: but may be read", r)
        w.exits(v.sh("echo y > plain && rm .git/description && echo z > .git/description", opts=("--tier", tier)), 0, f"tier {tier}: control: others are")


@test("git itself still works")
def git_works(w):
    script = """set -e; export GIT_CONFIG_NOSYSTEM=1; g() { git -c user.name=a -c user.email=a@b -c init.defaultBranch=main "$@"; }
g init -q one; cd one; git config --get core.symlinks && exit 9; echo 1 > a; ln -s a l; g add -A; g commit -qm one; g branch side; echo 2 > a; g commit -qam two
g gc -q --prune=now; g fsck; g worktree add -q ../tree side; cd ../tree; test -L l; echo 3 > b; g add b; g commit -qm three; g worktree list; cd ..
g clone -q one two; cd two; test -L l; g repack -adq; cd ..; g clone -q --no-hardlinks one copy; g clone -q --bare one bare.git
find one/.git/objects bare.git/objects -type f -links +1 | grep -q .; cd bare.git; g gc -q; g update-ref refs/heads/x HEAD; cd ..
test -z "$(find . -path '*.git/*' -type l)"; cd one; g worktree remove ../tree; g stash list; g init -q ."""
    for tier in "AB":
        v = w.at("/var/tmp")
        w.exits(v.sh(script, opts=("--tier", tier)), 0, f"tier {tier}: init, clone, commit, gc and worktree add")


@test("the worktree of a submodule is no link, and becomes none")
def worktree_link(w):
    begin = ("mkdir -p .git/modules && git init -q --separate-git-dir=.git/modules/sub sub && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && cd .. && ")
    setting = "git config -f .git/modules/sub/config core.worktree "
    ways = {"a link before": ("ln -s {out} link; " + setting + "../../../link", "link"),
            "a link later": (setting + "../../../link; ln -s {out} link", "link"),
            "a link above it": (setting + "../../../p/q/link; ln -s {out} p", "p"),
            "a link that is moved there": (setting + "../../../link; ln -s {out} l; mv l link", "link"),
            "a link with a second name": (setting + "../../../link; ln -s {out} l; ln -P l link", "link"),
            "a directory that becomes one": ("mkdir link; " + setting + "../../../link; rmdir link; ln -s {out} link", "link"),
            "a directory with one is moved there": (setting + "../../../p/link; mkdir m; ln -s {out} m/link; mv m p", "p/link"),
            "a nested module": ("mkdir -p .git/modules/sub/d/e; printf '[core]\\n\\tworktree = ../../../../../link\\n' > c; mv c .git/modules/sub/d/e/config; ln -s {out} link", "link"),
            "a module among objects": ("mkdir -p .git/modules/sub/objects/e; printf '[core]\\n\\tworktree = ../../../../../link\\n' > c; mv c .git/modules/sub/objects/e/config; ln -s {out} link", "link")}
    for tier in "AB":
        for what, (script, name) in ways.items():
            v = w.at("/var/tmp")
            out = v.dir / "out"
            out.mkdir()
            git(v, "init", "-q", ".", cwd=v.ws)
            r = v.sh(begin + script.format(out=out), opts=("--tier", tier))
            told = [p for p in (v.ws / ".git/modules").rglob("config") if "link" in p.read_text()]
            w.ok(not (told and (v.ws / name).is_symlink()), f"tier {tier}: {what}", r)
            w.ok((v.ws / ".git/modules/sub/HEAD").exists(), f"tier {tier}, {what}: control: there is a submodule", r)
        r = v.sh(setting + "../../../sub && test \"$(git -C sub rev-parse --show-toplevel)\" = $PWD/sub && ln -s sub/a other && mv other third && mkdir -p n/m && ln -s ../x n/m/l && mv n sub/n",
                 opts=("--tier", tier))
        w.exits(r, 0, f"tier {tier}: control: its own directory, and links elsewhere")
