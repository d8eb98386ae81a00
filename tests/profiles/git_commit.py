"""git_commit.py - profile git-commit: clones, worktrees, submodules, and the names that stay closed."""
import os
from pathlib import Path

from host import difference, snapshot
from kit import files, outside, test, work

ME = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "C",
      "GIT_COMMITTER_EMAIL": "c@example.com"}


def git(w, *args, cwd=None):
    return outside(w, "git", "-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always",
                   "-c", "init.defaultBranch=main", *args, cwd=cwd)


def upstream(w, name="upstream"):
    top = w.dir / name
    top.mkdir()
    git(w, "init", "-q", ".", cwd=top)
    files(top, {"a.txt": "one\ntwo\nthree\n", "lib/b.txt": "b\n", ".gitignore": "*.o\n"})
    git(w, "add", ".", cwd=top)
    git(w, "commit", "-qm", "first", cwd=top)
    return top


def commit(w, script, cwd=None, **kw):
    return work(w, "git-commit", script, cwd=cwd, env={**w.env, **ME}, **kw)


def executable_parts(top):
    """The parts of a repository that git runs or obeys; the rest is its data."""
    found = {}
    for folder, dirs, names in os.walk(top):
        for n in names:
            path = Path(folder) / n
            if n in ("config", "config.worktree") or "hooks" in path.parts or path.parts[-2:] == ("info", "attributes"):
                found[str(path)] = path.read_bytes()
    return found


def attack(w, top, hooks, config, opts=()):
    """Nothing that git would run outside can be left in @top."""
    before = executable_parts(top)
    tries = [f"echo evil > {hooks}/post-checkout", f"mv {hooks} {hooks}.old",
             f"mkdir -p {hooks} && cp /bin/true {hooks}/pre-commit",
             f"printf '[core]\\n\\tpager = x\\n' >> {config}", f"ln -sf /tmp/x {config}", f"cp /bin/true /tmp/h && mv /tmp/h {hooks}/pre-push",
             "git config core.hooksPath /tmp/h", "git config core.fsmonitor /tmp/x", "git config core.sshCommand /tmp/x",
             "git config alias.st '!/tmp/x'", "git config filter.x.clean /tmp/x", "git config core.pager /tmp/x",
             "git config include.path /tmp/x"]
    script = "".join(f"if ( {t} ) >/dev/null 2>&1; then echo 'did: {n}'; fi\n" for n, t in enumerate(tries))
    r = w.sh(script, opts=["--profile", "git-commit", *opts], cwd=top, env={**w.env, **ME})
    w.same([tries[int(l.split()[1])] for l in r.text.splitlines()], [], "no hook and no program can be left for git", r)
    w.same(executable_parts(top), before, "hooks and settings are as they were")


@test("add, commit, stash, rebase, merge and tag in a clone")
def clone(w):
    git(w, "clone", "-q", str(upstream(w)), str(w.ws))
    r = commit(w, """
        echo four >> a.txt; git add a.txt; git commit -qm second
        echo scratch > new.txt; git add new.txt; git stash -q; test ! -e new.txt; git stash pop -q; git commit -qm third
        git checkout -qb side HEAD~1; sed -i s/one/ONE/ a.txt; git commit -qam side
        git rebase -q main; git checkout -q main; git merge -q --no-ff -m merged side; git branch -q -d side
        git tag -a -m tag v1; git cherry-pick --no-commit HEAD~1 2>/dev/null || true; git reset -q --hard
        git revert --no-edit HEAD -m 1 >/dev/null; git reset -q --hard HEAD~1; git notes add -m note; git mv lib/b.txt lib/c.txt; git commit -q --amend --no-edit
        git gc -q; git fsck --no-progress 2>&1 | grep -v dangling || true
        git status --short; git log --topo-order --format='%an %cn %s'
        """)
    w.exits(r, 0, "all of it works")
    w.same(r.text.splitlines(), ["A C merged", "A C side", "A C third", "A C second", "T T first"], "the history is right", r)
    w.same(git(w, "log", "--topo-order", "--format=%s", cwd=w.ws).split(), ["merged", "side", "third", "second", "first"], "outside too")
    w.same(git(w, "status", "--short", cwd=w.ws), "", "outside the tree is clean")
    git(w, "fsck", "--strict", cwd=w.ws)
    attack(w, w.ws, ".git/hooks", ".git/config")
    r = commit(w, "git fetch -q origin")
    w.ok(r.code not in (0, None), "the upstream outside the workspace is out of reach", r)


@test("a hook that was there before runs, and stays what it was")
def hook(w):
    git(w, "clone", "-q", str(upstream(w)), str(w.ws))
    files(w.ws, {".git/hooks/pre-commit": "#!/bin/sh\necho hooked >> hook.log\n"})
    before = snapshot(w.ws / ".git/hooks")
    r = commit(w, "rm -f .git/hooks/pre-commit || : > .git/hooks/pre-commit || chmod -x .git/hooks/pre-commit")
    w.ok(r.code != 0, "it cannot be removed, emptied or switched off", r)
    r = commit(w, "echo x > x; git add x; git commit -qm x; cat hook.log; rm hook.log")
    w.same((r.code, r.text), (0, "hooked\n"), "git runs it inside", r)
    attack(w, w.ws, ".git/hooks", ".git/config")
    w.same(difference(before, snapshot(w.ws / ".git/hooks")), [], "to the last bit")


@test("a worktree is added inside, and a linked worktree is worked in")
def worktree(w):
    git(w, "clone", "-q", str(upstream(w)), str(w.ws))
    r = commit(w, """
        git worktree add -q ./side -b side; cd side; echo s > s.txt; git add s.txt; git commit -qm in-side
        git stash list; cd ..; git worktree list | wc -l; git merge -q side; git worktree remove side; git worktree prune
        """)
    w.same((r.code, r.text), (0, "2\n"), "one is made, used and removed", r)
    linked = w.dir / "linked"
    git(w, "worktree", "add", "-q", str(linked), "-b", "linked", cwd=w.ws)
    main = ["--allow", f"write:{w.ws}/.git"]  # the repository lies outside this workspace
    r = commit(w, """
        echo l > l.txt; git add l.txt; git commit -qm linked; git status --short
        echo more >> l.txt; git stash -q; git stash pop -q; git commit -qam more
        git checkout -q --detach; git rebase -q main linked; git log --format=%s -2
        """, cwd=linked, opts=main)
    w.same((r.code, r.text), (0, "more\nlinked\n"), "in a linked one a commit reaches the repository", r)
    w.same(git(w, "log", "--format=%s", "-2", "linked", cwd=w.ws).split(), ["more", "linked"], "which has it, outside")
    attack(w, linked, w.ws / ".git/hooks", w.ws / ".git/config", main)
    r = commit(w, f"echo x > {w.ws}/a.txt", cwd=linked, opts=main)
    w.ok((w.ws / "a.txt").read_text() != "x\n", "files of the main checkout are not in reach from there", r)


@test("a submodule is worked in, and is not redefined")
def submodule(w):
    git(w, "clone", "-q", str(upstream(w)), str(w.ws))
    git(w, "submodule", "--quiet", "add", str(upstream(w, "part")), "part", cwd=w.ws)
    git(w, "commit", "-qm", "with part", cwd=w.ws)
    r = commit(w, """
        cd part; echo p >> a.txt; git commit -qam in-part; git stash list; cd ..
        git add part; git commit -qm 'part moves'; git submodule status | cut -c1; git status --short
        git diff --submodule=log HEAD~1 | tail -1
        """)
    w.same((r.code, r.text), (0, " \n  > in-part\n"), "both commits are made", r)
    w.same(git(w, "log", "--format=%s", "-1", cwd=w.ws / "part"), "in-part\n", "the submodule has its own, outside")
    attack(w, w.ws, ".git/modules/part/hooks", ".git/modules/part/config")
    before = (w.ws / ".gitmodules").read_bytes()
    r = commit(w, "git config -f .gitmodules submodule.part.url https://evil.example.com/x; echo '[x]' >> .gitmodules")
    w.ok(r.code != 0 and (w.ws / ".gitmodules").read_bytes() == before, "where it comes from cannot be changed", r)
    w.same(git(w, "status", "--short", cwd=w.ws), "", "outside the tree is clean")


@test("an identity from the repository's own settings")
def identity(w):
    git(w, "clone", "-q", str(upstream(w)), str(w.ws))
    git(w, "config", "user.name", "Repo", cwd=w.ws)
    git(w, "config", "user.email", "repo@example.com", cwd=w.ws)
    r = work(w, "git-commit", "echo i > i; git add i; git commit -qm i; git log -1 --format='%an <%ae>'; git commit --amend -q; "
             "echo \"$EDITOR\"")
    w.same((r.code, r.text), (0, "Repo <repo@example.com>\ntrue\n"), "is used, and no editor waits for anybody", r)
