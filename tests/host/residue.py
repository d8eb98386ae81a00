"""residue.py - a run changes what the command changes, and nothing else."""
import os
import signal

from host import descendants, difference, processes, snapshot, test, wait_for


def fill(w):
    (w.ws / "dir/sub").mkdir(parents=True)
    (w.ws / "dir/file").write_text("text")
    (w.ws / "link").symlink_to("dir/file")
    (w.ws / "dangling").symlink_to("nowhere")
    os.link(w.ws / "dir/file", w.ws / "hard")
    os.mkfifo(w.ws / "fifo")
    (w.ws / "closed").mkdir(mode=0o500)
    (w.home / ".bashrc").write_text("# mine")
    (w.home / "Documents").mkdir()


@test("a command that only looks")
def _(w):
    fill(w)
    for name, opts in (("as it comes", ()), ("tier B", ("--tier", "B")),
                       ("with rules", ("--policy", w.policy("allow write ./dir", "deny write ./dir/sub", name="a.writ"))),
                       ("with something hidden", ("--policy", w.policy("allow write .", "deny read ./dir/file", name="b.writ"))),
                       ("with names that are not there", ("--policy", w.policy("allow write .", "deny read ./x/y", "deny read "
                                                                               "**/.env", "allow read ?./z", name="c.writ")))):
        before = snapshot(w.ws)
        w.sh("ls -laR . > /dev/null; cat dir/file > /dev/null", opts=opts)
        w.same(difference(before, snapshot(w.ws)), [], f"{name}: the workspace is as it was")


@test("a command that writes one file")
def _(w):
    fill(w)
    w.sh("echo x > dir/first; rm dir/first")
    home, ws = snapshot(w.home), snapshot(w.ws)
    w.sh("echo x > dir/new")
    w.same(difference(ws, snapshot(w.ws)), [str(w.ws / "dir"), str(w.ws / "dir/new")],
           "that file, and the directory it is in")
    changed = [c for c in difference(home, snapshot(w.home)) if not c.startswith(str(w.state) + "/sessions") and
               not c.startswith(str(w.state) + "/run")]
    w.same(changed, [], "nothing in the home but the record")


@test("what writ keeps is this user's alone")
def _(w):
    w.sh("true")
    open_to_others = [str(p) for p in [w.state, *w.state.rglob("*")] if p.stat().st_mode & 0o077]
    w.same(open_to_others, [], "no file or directory that others may read")
    made = sorted(str(p.relative_to(w.home)) for p in w.home.iterdir())
    w.same(made, [".config", ".local"], "and nothing else in the home but the pin of its key")
    w.same(sorted(str(p.relative_to(w.home)) for p in w.home.glob(".config/**/*")), [".config/writ", ".config/writ/log.policy"],
           "which is all that is there")


@test("SIGKILL in the middle of a run")
def _(w):
    fill(w)
    w.sh("true")
    for name, opts in (("as it comes", ()), ("with rules", ("--policy", w.policy("allow write ./dir", "deny read ./dir/file"))),
                       ("tier B", ("--tier", "B"))):
        before = snapshot(w.ws)
        proc, _ = w.background("sleep 300", w.mark, opts=opts)
        for pid in [proc.pid]:
            os.kill(pid, signal.SIGKILL)
        proc.wait()
        wait_for(lambda: not processes(w.mark))
        w.same(difference(before, snapshot(w.ws)), [], f"{name}: the workspace is as it was")
    before = snapshot(w.ws)
    proc, _ = w.background("sleep 300", w.mark)
    for pid in [proc.pid, *descendants(proc.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    proc.wait()
    w.same(difference(before, snapshot(w.ws)), [], "all of it killed: the workspace is as it was")
    w.exits(w.sh("true"), 0, "the next run starts")
    w.clean("and tidies up")
