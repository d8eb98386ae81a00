"""kit.py - what the tests of profiles share: projects, tools, homes with something in them."""
import os
import shutil
import subprocess
import textwrap

from host import PYTHON, ROOT, Terminal, test  # noqa: F401  (for the tests)

LONG = bool(os.environ.get("WRIT_TEST_LONG"))
STATE = "/var/agent/state"


def files(top, tree):
    """Writes {name: text} below @top; texts are dedented, and what begins with #! is executable."""
    for name, text in tree.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        if text.lstrip().startswith("#!"):
            path.chmod(0o755)


def tool(world, name):
    """Where @name is in the PATH of @world, or None."""
    return shutil.which(name, path=world.env["PATH"])


def skip(world, why):
    world.checks.append((True, f"not run # SKIP {why}", ""))


def work(world, profile, script, *args, opts=(), timeout=240, **kw):
    """A shell script inside @profile that stops at its first error."""
    return world.sh("set -eu\n" + textwrap.dedent(script), *args, opts=["--profile", profile, *opts], timeout=timeout, **kw)


def outside(world, *argv, **kw):
    """The same tools without writ, as the same user: for what comes before and after."""
    r = world.call(argv, timeout=120, **kw)
    if r.code != 0:
        raise AssertionError(f"outside, {argv} failed: {r}")
    return r.text


def shows(world, profile, readable, hidden, opts=()):
    """Of a home with all these files, inside @profile the first are readable, no more, and the others are not there."""
    text = "#!/bin/sh\necho works\n"
    for name in (*readable, *hidden):
        files(world.home, {name: text})
    names = [str(world.home / n) for n in (*readable, *hidden)]
    got = world.python("""
def can(f, *a):
    try:
        f(*a)
        return True
    except OSError:
        return False
found = []
for name in sys.argv[1:]:
    found.append([can(open, name), can(open, name, "a"), can(open, name + ".new", "w")])
print(json.dumps(found))
""", *names, opts=["--profile", profile, *opts])
    for name, can in zip(readable, got):
        world.same(can, [True, False, False], f"~/{name} can be read and not changed")
    for name, can in zip(hidden, got[len(readable):]):
        # Where a home lies below /tmp its name leads to the session's own /tmp, where anything can be made.
        real = ((world.home / name).read_text(), (world.home / f"{name}.new").exists())
        world.same((can[0], *real), (False, text, False), f"~/{name} is out of reach")


def keeps(world, profile, variable, below):
    """What @variable names lies in the state @below, and a second session finds what the first one left."""
    r = work(world, profile, f'mkdir -p "${variable}"; echo kept > "${variable}/mark"; echo "${variable}"')
    world.same(r.text.strip(), f"{STATE}/{below}", f"{variable} is in the profile's state", r)
    r = work(world, profile, f'cat "${variable}/mark"')
    world.same(r.text, "kept\n", "a second session finds it again", r)


def hard_copy(source, target):
    """A copy of a tree that shares its files where it can."""
    def link(a, b, **_):
        try:
            os.link(a, b)
        except OSError:
            shutil.copy2(a, b)
    shutil.copytree(source, target, symlinks=True, copy_function=link)


def give(world, path):
    """What the test made belongs to the world's user."""
    if world.user is not None:
        subprocess.run(["chown", "-hR", f"{world.user}:{world.user}", path], check=True)
