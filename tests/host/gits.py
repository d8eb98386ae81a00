"""gits.py - `allow git`: repositories reached through the helper outside, judged by what the repositories then hold."""
import json
import os
import signal
import subprocess

from host import descendants, entry, processes, test, wait_for, whole

SSH = "git@git.example.com:acme/app.git"
HTTPS = "https://git.example.com/acme/web.git"
OTHER = "git@git.example.com:acme/other.git"
SETUP = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com; "


def git(w, *args, cwd=None):
    r = w.call(["git", *args], cwd=cwd or w.dir, env={**w.env, "GIT_CONFIG_NOSYSTEM": "1"})
    assert r.code == 0, f"git {args}: {r}"
    return r.text.strip()


def seed(w, policy, name="acme/app.git"):
    """A server with three repositories, reached by the operator's own ssh, which is a script; a policy for the workspace."""
    if not (w.dir / "srv").exists():
        git(w, "config", "--global", "user.name", "Tester")
        git(w, "config", "--global", "user.email", "tester@example.com")
        git(w, "config", "--global", "init.defaultBranch", "trunk")
        git(w, "config", "--global", "url.ssh://git@git.example.com/.insteadOf", "https://git.example.com/")
        for repo in ("acme/app.git", "acme/web.git", "acme/other.git"):
            git(w, "init", "-q", "--bare", w.dir / "srv" / repo)
            work = w.dir / "seed"
            git(w, "init", "-q", work)
            (work / "a").write_text(f"{repo}\n")
            git(w, "add", "a", cwd=work)
            git(w, "commit", "-qm", "first", cwd=work)
            git(w, "push", "-q", w.dir / "srv" / repo, "HEAD:refs/heads/trunk", cwd=work)
            subprocess.run(["rm", "-rf", str(work)], check=True)
        ssh = w.dir / "ssh"
        # The last argument is "git-upload-pack 'acme/app.git'"; the key is only the operator's.
        ssh.write_text(f'''#!/bin/sh
echo "$@" >> {w.dir}/ssh-log
[ -n "$SECRET_KEY" ] || exit 255
[ -f {w.dir}/down ] && exit 255
for last; do :; done
set -- $last
path=${{2#\\'}}; path=${{path%\\'}}
exec $1 {w.dir}/srv/${{path#/}}
''')
        ssh.chmod(0o755)
        w.env["GIT_SSH_COMMAND"] = str(ssh)
        w.env["GIT_SSH_VARIANT"] = "ssh"
        w.env["SECRET_KEY"] = "key-of-the-operator"
    (w.dir / "policy.writ").write_text("version 1\nallow write .\n" + policy)
    return ("-p", str(w.dir / "policy.writ"))


def head(w, ref, repo="acme/app.git"):
    r = w.call(["git", "--git-dir", w.dir / "srv" / repo, "rev-parse", "--verify", "-q", ref], cwd=w.dir)
    return r.text.strip()


def refs(w, repo="acme/app.git"):
    return git(w, "--git-dir", w.dir / "srv" / repo, "for-each-ref")


def events(w):
    found = []
    for f in sorted((w.state / "sessions").glob("*.jsonl"), key=lambda p: p.stat().st_mtime):
        found += [entry(line) for line in whole(f).splitlines()]
    return [e for e in found if e["event"] == "git"]


@test("clone, fetch, pull and push over ssh")
def ssh_works(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    r = w.sh(SETUP + f"git clone -q {SSH} c && cd c && cat a && git branch --show-current && git remote get-url origin", opts=opts)
    w.exits(r, 0, "a clone works")
    w.ok("acme/app.git" in r.text and "trunk" in r.text, "it has the files and the default branch", r)
    stored = (w.ws / "c/.git/config").read_text()
    w.ok(SSH in stored and "198.18" not in stored, "the clone keeps the URL as it was given", stored)
    # Somebody else pushes.
    git(w, "clone", "-q", w.dir / "srv/acme/app.git", "them")
    (w.dir / "them/b").write_text("theirs\n")
    git(w, "add", "b", cwd=w.dir / "them")
    git(w, "commit", "-qm", "theirs", cwd=w.dir / "them")
    git(w, "push", "-q", "origin", "trunk", cwd=w.dir / "them")
    r = w.sh(SETUP + "cd c && git fetch && git log --oneline origin/trunk | wc -l && git pull -q && cat b", opts=opts)
    w.exits(r, 0, "fetch and pull work")
    w.ok("2" in r.text and "theirs" in r.text, "and bring what is new", r)
    r = w.sh(SETUP + "cd c && git switch -qc agent/x && echo mine > m && git add m && git commit -qm mine && git push -q origin agent/x"
             " && git rev-parse HEAD && echo more > m && git commit -qam more && git push origin agent/x 2>/dev/null && git rev-parse HEAD", opts=opts)
    w.exits(r, 0, "pushes of a granted branch work, the first and the next")
    w.same(head(w, "refs/heads/agent/x"), r.text.split()[-1], "the repository has the last commit")
    e = events(w)
    w.ok(any(x["what"] == "push" and x["ref"] == "refs/heads/agent/x" and x["done"] and x["answer"] == "allow" for x in e)
         and any(x["what"] == "fetch" and x["done"] for x in e), "both are on record", e)


@test("every spelling of a granted URL, and https")
def spellings(w):
    opts = seed(w, f"allow git {SSH} fetch\nallow git {HTTPS} fetch push=refs/tags/v*\n")
    for i, url in enumerate([SSH, "ssh://git@git.example.com/acme/app.git", "ssh://git@git.example.com:22/acme/app.git", HTTPS,
                             "https://git.example.com:443/acme/web.git"]):
        w.exits(w.sh(f"git clone -q {url} c{i} && test -s c{i}/a", opts=opts), 0, f"clone of {url}")
    r = w.sh(SETUP + "cd c3 && git tag v1 && git tag -am note v2 && git push -q origin v1 v2", opts=opts)
    w.exits(r, 0, "tags are pushed where they are granted")
    w.ok(head(w, "refs/tags/v1", "acme/web.git") and head(w, "refs/tags/v2", "acme/web.git"), "the repository has them")
    w.exits(w.sh("cd c3 && git tag other && git push -q origin other", opts=opts), 1, "another tag is refused")
    w.ok(not head(w, "refs/tags/other", "acme/web.git"), "and is not there")
    r = w.sh("git ls-remote https://git.example.com/acme/web.git-other", opts=opts)
    w.ok(r.code != 0 and "no rule allows it" in r.said, "a longer name is another repository", r)


@test("what is not granted is refused, and the repository stays as it was")
def refused(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\nallow git {HTTPS} fetch\n")
    before, other = refs(w), refs(w, "acme/other.git")
    base = SETUP + f"git clone -q {SSH} c && cd c && echo x >> a && git commit -qam x && "
    for what, script in {"another branch": "git push origin HEAD:refs/heads/trunk",
                         "a new branch": "git push origin HEAD:refs/heads/elsewhere",
                         "a branch of a branch": "git push origin HEAD:refs/heads/agent/a/b",
                         "a tag": "git tag v1 && git push origin v1",
                         "a deletion": "git push origin :refs/heads/trunk",
                         "one granted, one not": "git push origin HEAD:refs/heads/agent/y HEAD:refs/heads/trunk",
                         "a note": "git push origin HEAD:refs/notes/commits"}.items():
        r = w.sh(base + script, opts=opts)
        w.exits(r, 1, f"{what} is refused")
        w.same(refs(w), before, f"{what}: nothing changed")
        subprocess.run(["rm", "-rf", str(w.ws / "c")], check=True)
    r = w.sh(base + "git push origin HEAD:refs/heads/trunk", opts=opts)
    w.ok("no rule allows to push it" in r.said and "denied git" in r.said, "inside and outside are told why", r)
    for url in (OTHER, "ssh://git@git.example.com/acme/other.git", "https://git.example.com/acme/other.git"):
        w.ok(w.sh(f"timeout 10 git ls-remote {url}", opts=opts).code == 128, f"{url} is not reached")
    w.ok(w.sh("git ls-remote git://198.18.0.1/git@git.example.com:acme/other.git", opts=opts).code != 0,
         "nor by asking the helper")
    r = w.sh(SETUP + f"git clone -q {HTTPS} d && cd d && git push origin HEAD:refs/heads/agent/x", opts=opts)
    w.ok(r.code != 0 and not head(w, "refs/heads/agent/x", "acme/web.git"), "no push where only fetch is granted", r)
    w.ok("other" not in (w.dir / "ssh-log").read_text(), "the operator's ssh was never asked for another repository")
    w.same(refs(w, "acme/other.git"), other, "and it stayed as it was")
    e = [x for x in events(w) if x["answer"] == "deny"]
    w.ok(any(x.get("ref") == "refs/heads/trunk" for x in e) and any("other.git" in x["repository"] for x in e),
         "refusals are on record", e)


@test("deletion and force, even of what is granted")
def no_force(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    r = w.sh(SETUP + f"git clone -q {SSH} c && cd c && git switch -qc agent/x && echo 1 > m && git add m && git commit -qm 1 && git push -q origin agent/x",
             opts=opts)
    w.exits(r, 0, "a branch is pushed")
    before = head(w, "refs/heads/agent/x")
    for what, script in {"deletion": "git push origin :agent/x", "force": "git commit -q --amend -m 2 && git push -f origin agent/x",
                         "force with lease": "git commit -q --amend -m 3 && git push --force-with-lease origin agent/x"}.items():
        r = w.sh(SETUP + "cd c && " + script, opts=opts)
        w.exits(r, 1, f"{what} is refused")
        w.same(head(w, "refs/heads/agent/x"), before, f"{what}: the branch stayed")
        w.ok("nothing is deleted" in r.said or "not a fast-forward" in r.said, f"{what}: and says why", r)


@test("deny git takes it away")
def denied(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\ndeny git {SSH}\n")
    w.ok(w.sh(f"git ls-remote {SSH}", opts=opts).code == 128, "no fetch")
    w.ok(not (w.dir / "ssh-log").exists(), "nobody was asked")


@test("keys stay outside")
def keys(w):
    opts = seed(w, f"allow git {SSH} fetch\n")
    w.env["SSH_AUTH_SOCK"] = str(w.dir / "agent.sock")
    r = w.sh(f"git clone -q {SSH} c; env; cat /proc/*/environ 2>/dev/null; ls {w.dir} {w.state} 2>&1; true", opts=opts)
    w.ok("key-of-the-operator" not in r.text and "SSH_AUTH_SOCK" not in r.text and "GIT_SSH_COMMAND" not in r.text,
         "neither key nor agent nor the operator's ssh is seen inside", r)
    w.ok("ssh-log" not in r.text and "sessions" not in r.text, "nor the operator's files", r)
    w.ok((w.ws / "c/a").exists(), "and yet it was cloned", r)


@test("a repository that cannot be reached")
def down(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    (w.dir / "down").touch()
    r = w.sh(f"git clone {SSH} c", opts=opts)
    w.ok(r.code == 128 and "cannot be reached" in r.said, "is said to be", r)
    (w.dir / "down").unlink()
    w.exits(w.sh(f"git clone -q {SSH} c", opts=opts), 0, "and it works when it is back")


@test("the repository refuses a push")
def hook_refuses(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    hook = w.dir / "srv/acme/app.git/hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho secret-of-the-server >&2\nexit 1\n")
    hook.chmod(0o755)
    r = w.sh(SETUP + f"git clone -q {SSH} c && cd c && git push origin HEAD:refs/heads/agent/x 2>&1", opts=opts)
    w.ok(r.code == 1 and "the repository refused it" in r.text and "secret-of-the-server" not in r.text, "the client is told", r)
    w.ok(not head(w, "refs/heads/agent/x"), "and nothing is there")
    w.ok(any(x["what"] == "push" and not x["done"] for x in events(w)), "and it is on record")


@test("several fetches at once, shallow and partial clones, a submodule")
def kinds(w):
    opts = seed(w, f"allow git {SSH} fetch\nallow git {HTTPS} fetch\n")
    r = w.sh(f"for i in 1 2 3 4 5 6; do git clone -q {SSH} c$i & done; wait; cat c?/a | wc -l", opts=opts)
    w.same(r.text.strip(), "6", "six clones at once", r)
    w.exits(w.sh(f"git clone -q --depth 1 {HTTPS} s && test -f s/.git/shallow -o -s s/a", opts=opts), 0, "a shallow one")
    w.exits(w.sh(f"git clone -q --filter=blob:none {HTTPS} p && test -s p/a", opts=opts), 0, "a partial one")
    w.exits(w.sh(f"git -c protocol.version=0 clone -q {SSH} v0 && git -c protocol.version=1 clone -q {SSH} v1", opts=opts), 0,
            "by older protocols")
    git(w, "clone", "-q", w.dir / "srv/acme/app.git", "them")
    (w.dir / "them/.gitmodules").write_text(f'[submodule "mod"]\n\tpath = mod\n\turl = {HTTPS}\n')
    git(w, "add", ".gitmodules", cwd=w.dir / "them")
    git(w, "update-index", "--add", "--cacheinfo", f"160000,{head(w, 'refs/heads/trunk', 'acme/web.git')},mod", cwd=w.dir / "them")
    git(w, "commit", "-qm", "with a submodule", cwd=w.dir / "them")
    git(w, "push", "-q", "origin", "trunk", cwd=w.dir / "them")
    # Not in the workspace, where .gitmodules is protected.
    r = w.sh(f"cd /tmp && git clone -q --recurse-submodules {SSH} m && cat m/mod/a", opts=opts)
    w.ok(r.code == 0 and "acme/web.git" in r.text, "with a submodule that is granted", r)


@test("a pack of 50 MB, there and back")
def large(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    r = w.sh(SETUP + f"git clone -q {SSH} c && cd c && head -c 50000000 /dev/urandom > big && git add big && git commit -qm big && "
             "git push -q origin HEAD:refs/heads/agent/big && cd .. && "
             f"git clone -q -b agent/big {SSH} back && cmp c/big back/big", opts=opts, timeout=120)
    w.exits(r, 0, "is pushed, and comes back the same")


@test("the helper is killed, and another takes its place", alone=True)
def killed(w):
    opts = seed(w, f"allow git {SSH} fetch\n")
    proc, _ = w.background(f"until test -f go; do sleep 0.05; done; git clone -q {SSH} c; echo $? > first; "
                           f"sleep 0.5; git clone -q {SSH} d; echo $? > second", opts=opts)
    slow = w.dir / "ssh"
    text = slow.read_text()
    slow.write_text(text.replace("for last;", "sleep 30\nfor last;"))
    (w.ws / "go").touch()
    wait_for(lambda: (w.dir / "ssh-log").exists())
    slow.write_text(text)
    # The parent of the process that runs the operator's git, whose parent in turn is the helper.
    victim = None
    for pid in descendants(proc.pid):
        try:
            line = open(f"/proc/{pid}/cmdline").read()
        except OSError:
            continue
        if "fetch" in line and "--prune" in line:
            serve = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
            victim = int(open(f"/proc/{serve}/stat").read().rsplit(")", 1)[1].split()[1])
    w.ok(victim and victim != proc.pid, "the helper is found", victim)
    os.kill(victim, signal.SIGKILL)
    proc.communicate(timeout=30)
    w.ok((w.ws / "first").read_text().strip() == "128", "what was under way fails")
    w.same((w.ws / "second").read_text().strip(), "0", "the next works")


@test("a client that speaks nonsense")
def nonsense(w):
    opts = seed(w, f"allow git {SSH} fetch push=agent/*\n")
    before = refs(w)
    got = w.python(r'''
import socket, random
random.seed(7)
def send(data):
    s = socket.create_connection(("198.18.0.1", 9418), 5)
    got = b""
    try:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        while len(got) < 65536:
            more = s.recv(4096)
            if not more: break
            got += more
    except (ConnectionResetError, BrokenPipeError): pass
    except OSError as e:
        if e.errno != 107: raise  # it hung up before we did
    return got
def pkt(b): return b"%04x" % (len(b) + 4) + b
path = b"/git@git.example.com:acme/app.git"
good = pkt(b"git-upload-pack " + path + b"\0host=x\0")
push = pkt(b"git-receive-pack " + path + b"\0host=x\0")
answers = [len(send(d)) for d in (b"", b"00", b"0000", b"ffff", b"zzzz", b"0005a", pkt(b"git-upload-archive /x\0"),
    pkt(b"git-upload-pack --help\0"), pkt(b"git-upload-pack ;id\0"), b"GET / HTTP/1.0\r\n\r\n")]
for i in range(60):
    d = bytearray(random.choice((good, push)) + bytes(random.randrange(256) for _ in range(random.randrange(200))))
    for _ in range(random.randrange(4)): d[random.randrange(len(d))] = random.randrange(256)
    send(bytes(d))
for path2 in (b"/../../etc", b"/git@git.example.com:acme/app.git/", b"/git@git.example.com:acme/other.git", b"/--upload-pack=id", b"/"):
    assert b"no rule allows it" in send(pkt(b"git-upload-pack " + path2 + b"\0host=x\0")), path2
lies = b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/agent/../trunk\0report-status"
send(push + pkt(lies) + b"0000")
print(json.dumps([answers, os.system("git clone -q git@git.example.com:acme/app.git c")]))
''', opts=opts, timeout=120)
    w.same(got[0], [0] * 10, "gets no answer")
    w.same(got[1], 0, "and the next clone works")
    w.same(refs(w), before, "nothing changed in the repository")


@test("ask, count and rate are refused as before")
def prices(w):
    for line in (f"ask git {SSH} fetch", f"allow git {SSH} fetch count=3", f"allow git {SSH} fetch rate=1/1m"):
        r = w.sh("true", opts=seed(w, line + "\n"))
        w.ok(r.code == 122 or "not in this version" in r.said, line, r)


@test("in tier B, without a network of the session's own")
def tier_b(w):
    opts = ("--tier", "B", *seed(w, f"allow git {SSH} fetch push=agent/*\n"))
    if w.run("true", opts=("--tier", "B")).code == 122:
        w.ok(True, "not run # SKIP there is no tier B here")
        return
    r = w.sh(SETUP + f"git clone -q {SSH} c && cd c && git switch -qc agent/b && echo mine > m && git add m && git commit -qm mine && git push -q origin agent/b"
             " && git rev-parse HEAD && git fetch -q && echo good", opts=opts)
    w.ok(r.code == 0 and r.text.endswith("good\n"), "clone, push and fetch work", r)
    w.same(head(w, "refs/heads/agent/b"), r.text.split()[0], "the repository has the commit")
    before = refs(w)
    r = w.sh("cd c && git push origin HEAD:trunk", opts=opts)
    w.ok(r.code != 0 and "no rule allows to push it" in r.said, "another ref is refused", r)
    r = w.sh(f"git clone -q {OTHER} d", opts=opts)
    w.ok(r.code != 0, "another repository too", r)
    w.same(refs(w), before, "nothing changed in the repository")
    e = events(w)
    w.ok(any(x["what"] == "push" and x["done"] for x in e) and any(x["answer"] == "deny" for x in e), "both are on record", e[-3:])
    r = w.sh("ls ~/.ssh; env | grep SECRET_KEY; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a key-of-the-operator", opts=opts)
    w.ok("key-of" not in r.text, "keys stay outside", r)
    many = w.sh("for i in 1 2 3 4 5 6; do git ls-remote -q " + SSH + " > $i & done; wait; cat 1 2 3 4 5 6 | grep -c trunk", opts=opts)
    w.ok(many.text.strip() == "6", "several at once", many)


@test("bytes of git count against limit up and limit down")
def limited(w):
    for tier in ("A", "B"):
        if w.run("true", opts=("--tier", tier)).code == 122:
            continue
        opts = ("--tier", tier, *seed(w, f"allow git {SSH} fetch push=agent/*\nlimit down 1M\nlimit up 1M\n"))
        small = w.sh(SETUP + f"rm -rf c; git clone -q {SSH} c && cd c && git switch -qc agent/{tier} && echo {tier} > m && git add m && git commit -qm m"
                     f" && git push -q origin agent/{tier} && echo good", opts=opts)
        w.ok(small.code == 0 and "good" in small.text, f"tier {tier}: little of it passes", small)
        big = w.sh(SETUP + f"cd c && head -c 3000000 /dev/urandom > big && git add big && git commit -qm big && git push -q origin HEAD:agent/{tier}-big", opts=opts)
        w.ok(big.code != 0 and not head(w, f"refs/heads/agent/{tier}-big"), f"tier {tier}: a push above it does not", big)
        w.ok(any("limit of bytes" in x.get("why", "") for x in events(w)), f"tier {tier}: which is on record", events(w)[-2:])
    git(w, "clone", "-q", w.dir / "srv/acme/app.git", "them")
    (w.dir / "them/b").write_bytes(os.urandom(3000000))
    git(w, "add", "b", cwd=w.dir / "them")
    git(w, "commit", "-qm", "theirs", cwd=w.dir / "them")
    git(w, "push", "-q", "origin", "trunk", cwd=w.dir / "them")
    r = w.sh(f"git clone -q {SSH} d; git ls-remote {SSH}; git ls-remote {SSH}; true", opts=opts)
    w.ok(not (w.ws / "d/b").exists() and ("early EOF" in r.said or "hung up" in r.said), "a clone above it ends", r)
    w.exits(w.sh(f"git clone -q {SSH} e", opts=seed(w, f"allow git {SSH} fetch\nlimit down 100M\n")), 0, "below it is fine")


SERVER = r'''
import base64, http.server, os, ssl, subprocess, sys
root, port, pem = sys.argv[1], int(sys.argv[2]), sys.argv[3]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def serve(self):
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"op:pass-of-the-operator").decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic realm=x")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "REMOTE_USER": "op", "REMOTE_ADDR": "127.0.0.1",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        n = self.headers.get("Content-Length")
        body = self.rfile.read(int(n)) if n else b""
        if n: env["CONTENT_LENGTH"] = n
        out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        status = 200
        lines = [l.split(": ", 1) for l in head.decode().split("\r\n") if l]
        for k, v in lines:
            if k == "Status": status = int(v.split()[0])
        self.send_response(status)
        for k, v in lines:
            if k != "Status": self.send_header(k, v)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
    do_GET = do_POST = serve
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pem)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
'''


@test("https to a real server, with the operator's credential helper")
def https(w):
    seed(w, "")
    w.call(["git", "config", "--global", "--unset-all", "url.ssh://git@git.example.com/.insteadOf"], cwd=w.dir)
    pem = w.dir / "pem"
    r = w.call(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", w.dir / "key", "-out", w.dir / "cert", "-days", "2",
                "-subj", "/CN=git.example.com", "-addext", "subjectAltName=DNS:git.example.com"], cwd=w.dir)
    assert r.code == 0, r
    pem.write_text((w.dir / "key").read_text() + (w.dir / "cert").read_text())
    git(w, "--git-dir", w.dir / "srv/acme/web.git", "config", "http.receivepack", "true")
    server = w.start(["python3", "-c", SERVER, w.dir / "srv", "0", pem], stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    url = f"https://git.example.com:{port}/acme/web.git"
    git(w, "config", "--global", "http.curloptResolve", f"git.example.com:{port}:127.0.0.1")
    git(w, "config", "--global", "http.sslCAInfo", str(w.dir / "cert"))
    opts = seed(w, f"allow git {url} fetch push=agent/*\n")
    r = w.sh(f"git clone {url} c", opts=opts)
    w.ok(r.code == 128 and "could not read Username" in r.said and not (w.ws / "c/a").exists(), "without a password it fails, and asks nobody", r)
    (w.home / ".git-credentials").write_text(f"https://op:pass-of-the-operator@git.example.com:{port}\n")
    git(w, "config", "--global", "credential.helper", "store")
    r = w.sh(SETUP + f"git clone -q {url} c && cd c && echo x > x && git add x && git commit -qm x && git push -q origin HEAD:refs/heads/agent/h && "
             "git rev-parse HEAD; env; cat .git/config", opts=opts)
    w.exits(r, 0, "with the operator's helper it is cloned and pushed to")
    w.same(head(w, "refs/heads/agent/h", "acme/web.git"), r.text.split()[0], "the repository has it")
    w.ok("pass-of-the-operator" not in r.text + r.said, "the password is not seen inside")
    w.ok("pass-of-the-operator" not in "".join(p.read_text() for p in (w.state / "sessions").iterdir()), "nor in the record")
    server.kill()
    server.wait()


@test("with a list of programs, and in a session that stays")
def lists(w):
    opts = seed(w, f"allow git {SSH} fetch\nallow exec git\nallow exec sh\naccept exec=partial\n")
    w.exits(w.run("git", "clone", "-q", SSH, "c", opts=opts), 0, "git on the list is enough")
    opts = seed(w, f"allow git {SSH} fetch\n")
    r = w.session(*opts)
    w.exits(r, 0, "a session starts")
    name = r.text.split()[0]
    w.exits(w.writ("session", "exec", name, "--", "git", "clone", "-q", SSH, "d"), 0, "a command in it clones")
    w.writ("session", "stop", name)
    w.ok((w.ws / "d/a").exists(), "and has the files")
    w.ok(not list((w.state / "run").glob("*/push-*")), "no quarantine is left")


@test("a session that ends while it fetches leaves nothing that runs", alone=True)
def ended(w):
    opts = seed(w, f"allow git {SSH} fetch\n")
    text = (w.dir / "ssh").read_text()
    (w.dir / "ssh").write_text(text.replace("for last;", f"cat > /dev/null; exit 1 # {w.mark}\nfor last;"))
    proc, name = w.background(f"git clone -q {SSH} c", opts=opts)
    wait_for(lambda: (w.dir / "ssh-log").exists())
    w.writ("stop", name)
    proc.communicate(timeout=30)
    w.ok(wait_for(lambda: not processes(str(w.state)) and not processes(str(w.dir / "ssh"))), "no git and no ssh is left",
         processes(str(w.dir)))
    w.ok(not list((w.state / "run").iterdir()), "and no directory of the session", os.listdir(w.state / "run"))


@test("no program of the agent's is run outside")
def planted(w):
    opts = seed(w, f"allow git {SSH} fetch\nallow write {w.dir}/tools\n")
    (w.dir / "tools").mkdir()
    (w.ws / "bin").mkdir()
    w.env["PATH"] = f"{w.ws}/bin:bin:.:{w.dir}/tools:" + w.env["PATH"]
    script = w.env.pop("GIT_SSH_COMMAND")
    git(w, "config", "--global", "core.sshCommand", "operator-ssh")
    (w.dir / "own").mkdir()
    (w.dir / "own/operator-ssh").symlink_to(script)
    w.env["PATH"] += f":{w.dir}/own"
    evil = f"#!/bin/sh\ntouch {w.dir}/evil\nexit 1\n"
    for at in (w.ws / "bin", w.ws, w.dir / "tools"):
        for name in ("operator-ssh", "git", "git-upload-pack"):
            (at / name).write_text(evil)
            (at / name).chmod(0o755)
    r = w.call([w.program, "run", *opts, "--", "/usr/bin/git", "clone", "-q", SSH, "c"])
    w.exits(r, 0, "a clone works, by the operator's own ssh")
    w.ok(not (w.dir / "evil").exists(), "and none of those that were put in its way was run")
