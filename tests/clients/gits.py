"""git over https and ssh, cloning and pushing as it does anywhere."""
import os
import shutil
import subprocess

from kit import EVIL, READ, TUNNEL, WEB, need, net, serve, settle, test, town


def git(w, *args, cwd=None):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=cwd, check=True, env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_repository(w, bare):
    work = w.dir / "origin"
    git(w, "init", "-q", "-b", "main", str(work))
    (work / "hello").write_text("hello\n" * 1000)
    git(w, "add", ".", cwd=work)
    git(w, "commit", "-qm", "one", cwd=work)
    git(w, "clone", "-q", "--bare", str(work), str(bare))
    git(w, "config", "http.receivepack", "true", cwd=bare)


CLONE = """
n=0
for u; do n=$((n + 1)); rm -rf copy$n
if o=$(timeout 20 git clone -q "$u" copy$n 2>&1) && [ "$(wc -l < copy$n/hello)" = 1000 ]; then echo yes; else echo "no $o" | tr '\\r\\n' '  '; echo; fi
done"""


def lines(r):
    return [line.split()[0] for line in r.text.splitlines() if line]


@test("git over https")
def https(w):
    folder, _ = serve(w)
    (folder / "git").mkdir()
    make_repository(w, folder / "git/repo.git")
    urls = [f"https://{h}/git/repo.git" for h in (WEB, EVIL, f"{WEB}:8443", net.FIRST)]
    r = w.call(["sh", "-c", CLONE, "sh", *urls], timeout=60)
    w.same(lines(r), ["yes"] * 4, "outside it clones from everywhere", r)
    w.forget()
    for name, rules in (("in a tunnel", TUNNEL), ("read", READ)):
        r = w.sh(CLONE, "sh", *urls, opts=w.rules(*rules), timeout=90)
        w.same(lines(r), ["yes", "no", "no", "no"], f"{name}, from the allowed name and nowhere else", r)
    push = f"git clone -q {urls[0]} mine && cd mine && echo {{0}} > {{0}} && git add . && git -c user.name=a -c user.email=a@a commit -qm two && git push -q origin HEAD:{{0}}"
    for name, rules, good in (("pushed", READ, True), ("refused", [f"https://{WEB}/git/** methods=GET", f"https://{WEB}/git/repo.git/git-upload-pack methods=POST"], False)):
        r = w.sh("rm -rf mine; " + push.format(name), opts=w.rules(*rules), timeout=60)
        there = subprocess.run(["git", "rev-parse", "-q", "--verify", f"refs/heads/{name}"], cwd=folder / "git/repo.git", env=w.env, stdout=subprocess.DEVNULL).returncode == 0
        w.same((r.code == 0, there), (good, good), "a push arrives" if good else "where its requests are not allowed, a clone works and a push does not", r)
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 443)}, "the world saw nothing else")


def start_sshd(w, port):
    """A server for keys of ours, as which we log in as ourselves."""
    ssh = w.dir / "ssh"
    ssh.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(ssh / name)], check=True, env=w.env)
    (ssh / "passwd").write_text(f"tester:x:{os.geteuid()}:{os.getegid()}::{w.home}:/bin/sh\nsshd:x:65533:65533::/run/sshd:/usr/sbin/nologin\n")
    (ssh / "config").write_text(f"""
Port {port}
HostKey {ssh}/host
AuthorizedKeysFile {ssh}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
""")
    covered = {"/etc/passwd": str(ssh / "passwd")}
    if os.geteuid() == 0:
        covered["/run"] = None
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(ssh / "config")]
    if not os.access(argv[0], os.X_OK):
        (w.home / ".ssh").mkdir(mode=0o700)
        shutil.copy(ssh / "user.pub", w.home / ".ssh/authorized_keys")
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", str(ssh / "dropbear")], check=True, env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        argv = ["/usr/sbin/dropbear", "-F", "-E", "-s", "-r", str(ssh / "dropbear"), "-P", str(ssh / "pid"), "-p", str(port)]
    w.tell("spawn", argv=argv, port=port, log=str(w.dir / "sshd.log"), env={"PATH": w.env["PATH"]}, covered=covered)
    return ssh


@test("git over ssh")
def ssh(w):
    if not need(w, "ssh", "ssh-keygen") or not (os.access("/usr/sbin/sshd", os.X_OK) or need(w, "dropbear")):
        return
    w.zone(WEB, net.FIRST)
    w.zone(EVIL, net.SECOND)
    keys = start_sshd(w, 22)
    settle(w)
    make_repository(w, w.dir / "repo.git")
    shutil.copy(keys / "user", w.ws / "key")
    (w.ws / "key").chmod(0o600)
    command = f"ssh -F none -i {w.ws}/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=8"
    script = f"export GIT_SSH_COMMAND='{command}'\n" + CLONE
    urls = [f"tester@{WEB}:{w.dir}/repo.git", f"tester@{EVIL}:{w.dir}/repo.git", f"ssh://tester@{net.FIRST}:22{w.dir}/repo.git"]
    r = w.call(["sh", "-c", script, "sh", *urls], timeout=60)
    if not w.same(lines(r), ["yes"] * 3, "outside it clones from everywhere", f"{r}\n{net.read(w.dir / 'sshd.log')[-1500:]}"):
        return
    w.forget()
    r = w.sh(script, "sh", *urls, f"ssh://tester@{WEB}:443{w.dir}/repo.git", opts=w.rules(f"tcp://{WEB}:22"), timeout=90)
    w.same(lines(r), ["yes", "no", "no", "no"], "inside, from the allowed name and port and nowhere else", r)
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 22)}, "the world saw nothing else")
