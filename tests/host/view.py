"""view.py - what a command finds when it looks around."""
import os
import socket
import subprocess

from bounds import within
from host import PYTHON, ROOT, test

ENVIRONMENT = {"PATH", "SHELL", "USER", "LOGNAME", "TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ", "HOME", "TMPDIR",
               "WRIT_SESSION", "WRIT_POLICY", "GIT_TEMPLATE_DIR", "XDG_RUNTIME_DIR"}


@test("descriptors")
def _(w):
    fds = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(25)]
    fds += [fd for _ in range(12) for fd in os.pipe()] + [os.open(w.dir, os.O_RDONLY)]
    s = socket.socket()
    script = "print(json.dumps(sorted(os.listdir('/proc/self/fd'))))"
    for tier in ("A", "B"):
        r = w.python(script, opts=("--tier", tier), pass_fds=[*fds, s.fileno()])
        w.same(r, ["0", "1", "2", "3"], f"tier {tier}: 50 leaked ones are gone (3 is the listing itself)")
    for fd in fds:
        os.close(fd)
    s.close()


@test("the environment")
def _(w):
    env = {**w.env, "SECRET_X": "1", "AWS_SECRET_ACCESS_KEY": "k", "LD_PRELOAD": "/nowhere.so", "SSH_AUTH_SOCK": "/x",
           "LC_ALL": "C", "TZ": "UTC", "GIT_DIR": "/x", "PYTHONPATH": "/x", "BASH_ENV": "/x", "DISPLAY": ":0",
           "WRIT_SESSION": "forged"}
    got = w.python("print(json.dumps(dict(os.environ)))", env=env)
    extra = sorted(k for k in got if k not in ENVIRONMENT and not k.startswith("LC_"))
    w.same(extra, [], "nothing but the list")
    w.ok(got["LC_ALL"] == "C" and got["TZ"] == "UTC" and got["USER"] == "tester", "what is on the list comes through", got)
    w.ok(got["WRIT_SESSION"] in {f.stem for f in (w.state / "sessions").iterdir()}, "WRIT_SESSION is the session", got)
    w.ok(got["HOME"] != str(w.home) and got["TMPDIR"] == "/tmp", "HOME and TMPDIR are its own", got)
    got = w.python("print(json.dumps(os.environ.get('SECRET_X')))", env=env, opts=("-e", "SECRET_X"))
    w.same(got, "1", "control: what is named is passed")
    raw = w.run("cat", "/proc/self/environ", env=env).out
    w.ok(b"SECRET_X" not in raw and b"nowhere" not in raw, "nor in the kernel's copy")
    r = w.sh("cat /proc/1/environ; cat /proc/1/cmdline", env=env)
    w.ok(b"SECRET_X" not in r.out, "nor in that of pid 1", r)


@test("a bare environment")
def _(w):
    r = w.sh("echo $PATH; echo ok", env={"HOME": str(w.home)})
    w.ok(r.code == 0 and "/usr/bin" in r.text, "without PATH there is a default", r)


@test("writ's own files")
def _(w):
    (w.home / "note").write_text("a note\n")
    w.exits(w.run("true"), 0, "there are some")
    keys = w.state / "keys"
    w.ok(any("PRIVATE KEY" in f.read_text() for f in keys.iterdir()), "keys among them", keys)
    script = (f"cat {w.home}/note; cat $WRIT_POLICY | head -1; echo kept >$HOME/x; cat $HOME/x; cat {w.state}/*/* {keys}/*;"
              f" ls {w.state} {keys}; cd {w.state.parent} && cat writ/keys/* </dev/null; head -1 writ/realm; ln {w.state}/realm r; cp {w.state}/realm c; cat c r")
    names = [*(f.name for f in keys.iterdir()), "homes", "sessions"]
    for tier in "AB":
        r = w.sh(script, opts=("--tier", tier, "--allow", f"read:{w.home}"))
        w.ok(r.text.startswith("a note\n# ") and "kept\n" in r.text, f"tier {tier}: the home around them, the policy and a home of its own", r)
        w.exits(w.run("true", opts=("--tier", tier, "--allow", f"read:{keys}")), 122, f"tier {tier}: no rule is about them alone")
        w.ok("PRIVATE" not in r.text and "l-" not in r.text and not any(n in r.text.split() for n in names), f"tier {tier}: none of them", r)


@test("where writ keeps its files may be a link")
def _(w):
    (w.dir / "real").mkdir()
    (w.dir / "link").symlink_to("real")
    os.chown(w.dir / "real", *(os.stat(w.ws).st_uid, os.stat(w.ws).st_gid))
    env = {**w.env, "XDG_STATE_HOME": str(w.dir / "link")}
    for tier in "AB":
        r = w.sh(f"echo ok; cat {w.dir}/real/writ/keys/* {w.dir}/link/writ/keys/*", env=env, opts=("--tier", tier, "--allow", f"read:{w.dir}/real"))
        w.ok(r.text == "ok\n", f"tier {tier}: it starts, and hides them", r)
    w.ok((w.dir / "real/writ/keys").is_dir(), "control: there they are")


@test("programs by other names")
def _(w):
    for tier in "AB":
        r = w.sh("for p in /proc/self/exe /proc/thread-self/exe /dev/fd/9 /proc/self/fd/9 /proc/self/root/usr/bin/env; do"
                 " python3 -c 'import os, sys; os.execv(sys.argv[1], [\"env\", \"-c\" if \"exe\" in sys.argv[1] else \"true\", \"0\"])' $p 9</usr/bin/env || echo $p; done; echo done",
                 opts=("--tier", tier))
        w.same(r.text, "done\n", f"tier {tier}: links in /proc lead where they lead outside", r)
        r = w.sh("/nowhere/x; /usr/bin/nothing; nothing; echo $?; printf '#!/bin/sh\necho made' >made; chmod +x made; ./made; $PWD/made; rm made; $PWD/made", opts=("--tier", tier))
        w.ok(r.text == "127\nmade\nmade\n" and r.said.count("not found") == 4, f"tier {tier}: what is missing is missing, and what is made is there", r)


@test("sockets have the names that they were given")
def _(w):
    script = ("import socket\nfor n in ('x.sock', os.getcwd() + '/y.sock'):\n"
              "    s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\n    s.bind(n)\n    s.listen()\n    c.connect(n)\n"
              "    assert s.getsockname() == c.getpeername() == n, (n, s.getsockname(), c.getpeername())\nprint(json.dumps('same'))")
    for tier in "AB":
        w.same(w.python(script, opts=("--tier", tier)), "same", f"tier {tier}: by name and by path")
        w.ok((w.ws / "x.sock").is_socket() and (w.ws / "y.sock").is_socket(), f"tier {tier}: and lie there")
        (w.ws / "x.sock").unlink()
        (w.ws / "y.sock").unlink()


@test("a place of the session's own is not written outside")
def _(w):
    r = w.run("true", opts=("--tier", "A", "--allow", "write:/tmp"))
    w.ok(r.code == 122 and "of its own" in r.said, "a rule that would write elsewhere is refused", r)
    w.exits(w.run("true", opts=("--tier", "B", "--allow", "write:/tmp")), 0, "tier B writes there")


@test("a rule for all files")
def _(w):
    for tier in "AB":
        opts = ("--tier", tier)
        w.ok("Permission" in (r := w.sh("ls /var/log", opts=opts)).said or "No such" in r.said, f"tier {tier}: control: /var/log is not shown", r)
        r = w.sh("ls / /var/log /usr | wc -l; echo x >/dev/null && echo y >$TMPDIR/y && echo written; cat /proc/self/comm;"
                 " head -c 1 /dev/zero | wc -c; echo z >z && cat z", opts=(*opts, "--allow", "read:/", "--allow", "write:."))
        lines = r.text.split()
        w.ok(int(lines[0]) > 20 and lines[1:] == ["written", "cat", "1", "z"], f"tier {tier}: everything can be seen, and a session's own is its own", r)
        r = w.sh("ls /sys/kernel; ls /dev | grep -x mem; head -c 1 /dev/kmsg; cat /dev/mem; touch /var/lib/w /etc/w /w", opts=(*opts, "--allow", "read:/", "--allow", "write:."))
        w.ok(not r.text, f"tier {tier}: but no devices, and nothing is written", r)


@test("/etc")
def _(w):
    r = w.sh("id -un; getent passwd $(id -u) | cut -d: -f6; cat /etc/hostname; grep -c . /etc/passwd; cat /etc/shadow")
    lines = r.text.split("\n")
    w.same(lines[:3], ["tester", "/var/agent/home", "agent"], "the user has a name and a home", r)
    w.ok(int(lines[3]) <= 3, "and there are few others", r)
    w.ok("shadow" in r.said, "no shadow file", r)
    w.same(w.sh("getent passwd root | cut -d: -f3; getent group root | cut -d: -f3").text, "0\n0\n", "root among them")
    # Whether they are there was not always seen, and then they were called denied.
    for _ in range(6):
        r = w.run("wc", "-l", "/etc/passwd", "/etc/hosts", "/etc/group", "/etc/hostname")
        if not w.ok(r.code == 0 and "denied" not in r.said, "what can be read is not called denied", r):
            break
    r = w.sh("cat /etc/machine-id /etc/resolv.conf; ls /etc/ssh; ls /etc")
    ours = open("/etc/machine-id").read().strip() if os.path.exists("/etc/machine-id") else "-"
    w.ok(ours == "" or ours not in r.text, "the machine's id is not this machine's", r)
    w.ok("ssh_config" in r.text and "sudoers" not in r.text and "cron" not in r.text, "only what is needed", r)
    w.exits(w.sh("echo x >> /etc/passwd"), 2, "it cannot be changed")
    w.exits(w.sh(f"{PYTHON} -c 'import socket; socket.gethostbyname(\"localhost\")'"), 0, "localhost has an address")
    evil = w.sh("cat /etc/passwd", env={**w.env, "USER": "evil:y:7:7::/:\nroot2"})
    w.ok("root2" not in evil.text and "evil" not in evil.text, "a user's name cannot add lines", evil)


@test("who it is")
def _(w):
    script = """
s = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().split('\\n') if ':\\t' in l)
print(json.dumps({**{k: s[k] for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Groups')},
    'uid': os.getuid(), 'gid': os.getgid(), 'host': os.uname().nodename, 'pid': os.getpid(), 'cwd': os.getcwd(),
    'sid': os.getsid(0), 'pids': [p for p in os.listdir('/proc') if p.isdigit()], 'umask': os.umask(0),
    'net': os.listdir('/sys/class/net') if os.path.exists('/sys/class/net') else [],
    'nets': [l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]]}))"""
    (w.ws / "sub").mkdir()
    got = w.python(script, cwd=w.ws / "sub")
    w.same({got[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16}, "no capability in any set")
    w.same((got["NoNewPrivs"], got["Seccomp"]), ("1", "2"), "no_new_privs, and a filter")
    w.same((got["uid"], got["gid"]), (os.geteuid(), os.getegid()), "the same user as outside")
    w.same(got["host"], "agent", "host name")
    w.ok(got["pid"] < 20 and len(got["pids"]) < 6, "it sees its own processes only", got)
    w.same(got["cwd"], str(w.ws / "sub"), "the directory it was started in")
    w.same(got["nets"], ["lo"], "the network is a loopback of its own")
    mask = os.umask(0o027)
    os.umask(mask)
    w.same(got["umask"], mask, "umask")
    r = w.sh("umask; touch made", preexec_fn=None)
    w.same(r.text.strip(), f"{mask:04o}", "umask in a shell", r)


@test("private places")
def _(w):
    other = w.dir / "other"
    other.mkdir()
    w.sh("echo kept > ~/note; echo temp > /tmp/note; mkdir -p ~/.config; echo set > ~/.config/x")
    r = w.sh("cat ~/note ~/.config/x; cat /tmp/note")
    w.same(r.out, b"kept\nset\n", "HOME is kept, /tmp is not", r)
    r = w.sh("cat ~/note", cwd=other)
    w.ok(r.code != 0 and not r.out, "another workspace has another HOME", r)
    w.ok(not (w.home / "note").exists() and not os.path.exists("/tmp/note"), "and nothing of it is in the real ones")
    (w.home / "private").write_text("mine")
    r = w.sh(f"cat ~/private; cat {w.home}/private")
    w.ok(r.code != 0 and not r.out, "the real HOME is not there", r)
    r = w.sh("ls -A /tmp; ls -A /home /root /srv /mnt 2>/dev/null | grep -v ':$' | grep .; ls /var /run")
    w.ok(w.dir.name in r.text and "wh-" not in r.text.replace(w.dir.name, ""), "/tmp has the way to the workspace only", r)
    r = w.sh("echo $XDG_RUNTIME_DIR; echo x > $XDG_RUNTIME_DIR/f && stat -c %a $XDG_RUNTIME_DIR/; echo y > /dev/shm/f && echo z > "
             "/var/tmp/f && cat /tmp/f")
    w.same(r.text.split()[1:], ["700", "z"], "a runtime directory, /dev/shm and /var/tmp", r)
    r = w.sh("echo x > /new; mkdir /usr/new; touch /run/writ/x; echo x >> /run/writ/policy; ls -d /new /usr/new /run/writ/x")
    w.ok(not r.out and r.code, "the rest cannot be written", r)
    r = w.sh("ls -A /dev | tr '\\n' ' '; head -c 3 /dev/urandom | wc -c; cat /etc/hostname > /dev/full")
    w.ok("3" in r.text and "space" in r.said and "sda" not in r.text and "kmsg" not in r.text, "a small /dev", r)


@test("where programs are found")
def _(w):
    tool = w.dir / "tool"
    (tool / "bin").mkdir(parents=True)
    (tool / "lib").mkdir()
    (tool / "lib/data").write_text("from its tree\n")
    (tool / "bin/mytool").write_text('#!/bin/sh\ncat "$(dirname "$0")/../lib/data"; echo "$@"; cat "$1"\n')
    (tool / "bin/mytool").chmod(0o755)
    secret = w.dir / "secret"
    secret.write_text("no\n")
    env = {**w.env, "PATH": f"{tool}/bin:{w.env['PATH']}"}
    r = w.run("mytool", str(secret), env=env)
    w.ok("from its tree\n" in r.text and "no\n" not in r.text.replace(str(secret), ""), "a program outside /usr runs, reads its "
         "own tree and nothing beside it", r)
    r = w.run(str(tool / "bin/mytool"), "x", env=w.env)
    w.ok("from its tree\n" in r.text, "also by its path", r)
    r = w.sh("mytool x", env=env)
    w.exits(r, 127, "but only if it is the command itself")
    (w.ws / "sh").write_text("#!/bin/false\n")
    (w.ws / "sh").chmod(0o755)
    w.exits(w.run("sh", "-c", "exit 3", env={**w.env, "PATH": ":.:" + w.env["PATH"]}), 3, "never in the current directory")
    r = w.run("hello", env={**w.env, "PATH": str(w.dir / "none")})
    w.exits(r, 127, "not where PATH does not lead")
    (w.ws / "bin").mkdir()
    (w.ws / "bin/own").write_text("#!/bin/sh\necho own\n")
    (w.ws / "bin/own").chmod(0o755)
    r = w.run("own", env={**w.env, "PATH": f"{w.ws}/bin:{w.env['PATH']}"})
    w.same(r.out, b"own\n", "a PATH into the workspace", r)


@test("what it may do is written inside")
def _(w):
    r = w.sh("cat $WRIT_POLICY; ls -l /run/writ/denials.jsonl", opts=("--policy", w.policy("allow write .", "deny read **/.env")))
    w.ok("allow write ." in r.text and "deny read **/.env" in r.text, "its own policy", r)
    (w.ws / ".env").write_text("secret")
    (w.ws / "plain").write_text("plain")
    r = w.sh("cat plain .env; mv .env x; cat x", opts=("--policy", w.policy("allow write .", "deny read **/.env")))
    w.same(r.out, b"plain", "and what it denies is denied", r)


@test("the workspace")
def _(w):
    r = w.sh("echo new > f; mkdir d; mv f d/g; ln -s d/g l; cat l; chmod 600 d/g; rm l; ls")
    w.same((r.code, r.out), (0, b"new\nd\n"), "is worked in as usual", r)
    w.same(((w.ws / "d/g").read_text(), (w.ws / "d/g").stat().st_mode & 0o777, (w.ws / "d/g").stat().st_uid),
           ("new\n", 0o600, os.geteuid()), "and what was done is there afterwards, as this user's")
    link = w.dir / "link"
    link.symlink_to(w.ws)
    r = w.sh("pwd -P; touch via", cwd=link)
    w.ok(r.text.strip() == str(w.ws) and (w.ws / "via").exists(), "through a symbolic link", r)
    r = w.sh("pwd; touch x && echo made", cwd=w.home)
    w.ok(not (w.home / "x").exists(), "a home is none", r)
    w.ok("work" not in r.text or r.code == 0, "and a run from there starts in the private home", r)
    w.same(w.run("pwd", cwd="/").text.strip(), "/var/agent/home", "nor is /")
    subprocess.run(["git", "init", "-q", str(w.ws)], check=True, env={**w.env, "HOME": str(w.home)})
    (w.ws / "deep/er").mkdir(parents=True)
    r = w.sh("touch ../../top; pwd", cwd=w.ws / "deep/er")
    w.ok((w.ws / "top").exists() and r.text.strip() == str(w.ws / "deep/er"), "in a checkout it is the whole of it", r)
    if ROOT:
        w.same((w.ws / "top").stat().st_uid, 0, "files belong to root")


@test("modes of what is made on behalf")
def _(w):
    script = """
import socket, threading
def made(n):
    os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY, 0o666))
    os.mkdir(f"d{n}")
    os.mkfifo(f"p{n}")
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"s{n}")
    return [oct(os.stat(f"{k}{n}").st_mode & 0o7777) for k in "fdps"]
out = []
def thread(n):
    out.append(made(n))
for n, mask in enumerate((0o022, 0o077, 0o027, 0o002, 0o777)):
    os.umask(mask)
    t = threading.Thread(target=thread, args=(n,))
    t.start()
    t.join()
t = threading.Thread(target=lambda: os.umask(0o037))
t.start()
t.join()
out.append(made(9))
print(json.dumps(out))
"""
    want = [[oct(m & ~mask) for m in (0o666, 0o777, 0o666, 0o777)] for mask in (0o022, 0o077, 0o027, 0o002, 0o777, 0o037)]
    for tier in ("A", "B"):
        v = w.at("/tmp")
        w.same(v.python(script, opts=("--tier", tier)), want, f"tier {tier}: the umask of that moment, of any thread")


@test("where a link leads is decided by what is seen inside")
def links_tell_nothing(w):
    """A refusal that depends on names of the host would tell which of them exist, and could wait for them."""
    (w.home / "here").mkdir()
    (w.dir / "real").mkdir()
    (w.dir / "alias").symlink_to("real")
    os.chown(w.dir / "real", *(os.stat(w.ws).st_uid, os.stat(w.ws).st_gid))
    got = w.python("""
def made(target):
    try: os.symlink(target, "p")
    except OSError: return False
    os.unlink("p")
    return True
print(json.dumps([[made(p + "/../zzz"), made(p + "/.."), made(p + "/x"), made(p)] for p in sys.argv[1:]]))
""", str(w.home / "here"), str(w.home / "none"), "/root", "/root0", "/srv/x/y", f"/proc/{os.getpid()}/fd", "/proc/999999/fd", opts=("--tier", "A"))
    w.same(got[0], got[1], "a directory outside looks like none")
    w.ok(got[2] == got[3] == got[4] and got[5] == got[6], "and so do those of the system, and processes", got)
    env = {**w.env, "XDG_STATE_HOME": str(w.dir / "alias")}
    for tier in "AB":
        opts = ("--tier", tier)
        texts = [f"{w.dir}/alias/writ", f"{w.dir}/real/writ/homes", f"{w.dir}/real", "../real/writ", "/proc/self/cwd/x", "/proc/1/root/home"]
        r = w.sh("for t; do ln -s $t l && echo $t; rm -f l; done; true", "sh", *texts, env=env, opts=opts)
        w.same(r.text, "", f"tier {tier}: no link leads to writ's own files", r)
        # A link in the session's own directory must not hide where the host goes.
        r = w.sh(f'for d in "$HOME" "$TMPDIR"; do ln -sfn /usr "$d/l"; done; mkdir -p {w.dir}/real/writ 2>/dev/null; ln -s {w.dir}/real/writ/keys k; true', env=env, opts=opts)
        w.ok(not os.path.lexists(w.ws / "k"), f"tier {tier}: nor past one that is its own", r)
        r = w.sh("set -e; mkdir d; ln -s d a; ln -s a/../d/x b; ln -s ../none c; ln -s /usr/bin/env e; ln -s $PWD/d/../d f; ln -s /none/x g; ln -s a/b/c h; rm -r a b c d e f g h", env=env, opts=opts)
        w.exits(r, 0, f"tier {tier}: control: other links are made")


@test("a link that takes long to follow does not keep the mediator busy")
def slow_link(w):
    for tier in "AB":
        got = w.python("""
import time
os.mkdir("d")
try: os.symlink("d/../" * 800 + ".", "l")
except OSError: os.symlink("d/../" * 300 + ".", "l")
begin = time.monotonic()
try: os.symlink("l/" * 30 + "a/" * 150 + "z", "probe")
except OSError: pass
took = time.monotonic() - begin
os.symlink("d", "control")
os.unlink("control"); os.rmdir("d"); os.unlink("l")
print(json.dumps(took))
""", opts=("--tier", tier), timeout=60)
        w.ok(within(got, 0.5), f"tier {tier}: it is answered at once", f"{got:.2f} s")
        w.sh("rm -f probe")


@test("a home without a workspace")
def _(w):
    """Started where no workspace can be: each such place has a home of its own."""
    for tier in ("A", "B"):
        for place in ("/", "/tmp"):
            r = w.sh("ls -A ~; echo planted >~/.bashrc", opts=("-q", "--tier", tier), cwd=place)
            w.same((r.code, r.out), (0, b""), f"{tier}: {place}: nothing of another place is in it", r)
        r = w.sh("cat ~/.bashrc", opts=("-q", "--tier", tier), cwd="/")
        w.same(r.out, b"planted\n", f"{tier}: control: the home is kept for its place", r)
