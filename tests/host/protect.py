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
        r = w.sh(f"echo x > {name}; for i in 1 2 3 4 5 6 7 8 9; do test -s /run/writ/denials.jsonl && break; sleep 0.1; done; "
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
