"""base.py - the profile base alone."""
from host import difference, snapshot
from bounds import within
from kit import PYTHON, files, shows, test, work


@test("`use base` and nothing else")
def alone(w):
    files(w.ws, {"a.txt": "a\n", "run.sh": "#!/bin/sh\necho ran \"$1\"\n"})
    policy = w.policy("use base")
    before = snapshot(w.ws)
    r = w.sh("cat a.txt; ./run.sh x; echo t > /tmp/t && cat /tmp/t; echo h > ~/h && cat ~/h; ls /usr/bin | grep -cx env",
             opts=["--policy", policy])
    w.same((r.code, r.text), (0, "a\nran x\nt\nh\n1\n"), "reads the workspace and the system, writes its own /tmp and HOME", r)
    r = w.sh("echo b > a.txt || echo c > new || rm a.txt", opts=["--policy", policy])
    w.ok(r.code != 0, "it cannot change the workspace", r)
    w.same(difference(before, snapshot(w.ws)), [], "which is as it was")
    same = w.sh("cat a.txt", opts=["--profile", "base"])
    w.same((same.code, same.text), (0, "a\n"), "--profile base is the same", same)


@test("variables, and a home without secrets")
def clean_room(w):
    env = {**w.env, "LC_TIME": "C", "NO_COLOR": "1", "TZ": "Asia/Tokyo", "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "x",
           "SSH_AUTH_SOCK": "/tmp/agent", "LD_PRELOAD": "", "HTTP_PROXY": "http://127.0.0.1:1"}
    got = w.python("print(json.dumps(dict(os.environ)))", opts=["--profile", "base"], env=env)
    for name in ("PATH", "TERM", "LANG", "LC_TIME", "NO_COLOR", "TZ"):
        w.same(got.get(name), env[name], f"{name} comes along")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD", "HTTP_PROXY"):
        w.ok(name not in got, f"{name} does not")
    w.ok(got["HOME"] != env["HOME"], "HOME is another")
    shows(w, "base", [], [".ssh/id_ed25519", ".aws/credentials", ".bashrc", ".config/gh/hosts.yml", "project/file"])


@test("date, time zone, locale, users, host name")
def machine(w):
    r = work(w, "base", """
        TZ=Europe/Berlin date -d @0 +%H:%M; date -u -d @0 +%Y
        LC_ALL=C.UTF-8 "$0" -c 'print("\\xe4", len("\\xe4"))'; id -un; getent passwd "$(id -u)" | cut -d: -f1,6; hostname
        getent hosts localhost | wc -l; getent services https/tcp | tr -s ' '; getent protocols tcp | tr -s ' '
        """, PYTHON)
    me = w.env["USER"]
    w.same((r.code, r.text.splitlines()), (0, ["01:00", "1970", "ä 1", me, f"{me}:/var/agent/home", "agent", "1",
                                               "https 443/tcp", "tcp 6 TCP"]), "are there", r)


@test("no network, and it says so at once")
def network(w):
    got = w.python("""
import socket, time
def attempt(f):
    start = time.monotonic()
    try:
        f()
        return ["connected", 0]
    except OSError as e:
        return [type(e).__name__, round(time.monotonic() - start, 1)]
print(json.dumps([attempt(lambda: socket.create_connection(("192.0.2.1", 80), 5)),
                  attempt(lambda: socket.create_connection(("2001:db8::1", 80), 5)),
                  attempt(lambda: socket.create_connection(("example.com", 443), 5)),
                  attempt(lambda: socket.create_connection(("127.0.0.1", 22), 5))]))
""", opts=["--profile", "base"])
    for (what, seconds), target in zip(got, ("an address", "an IPv6 address", "a name", "the host's loopback")):
        w.ok(what != "connected" and within(seconds, 2), f"{target} cannot be reached, and that is known at once", (what, seconds))
