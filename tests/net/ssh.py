"""ssh to hosts that a rule names, with a real server: no proxy command, no agent, nothing of the person's keys."""
import os
import pwd
import subprocess

import net
from net import test

OPTIONS = "-o ConnectTimeout=9 -o BatchMode=yes -o IdentitiesOnly=yes -i ./key"

# The first words of SFTP; its version comes back.
TALK = """
import subprocess
p = subprocess.Popen(["ssh", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdin.write(bytes((0, 0, 0, 5, 1, 0, 0, 0, 3)))
p.stdin.flush()
got = p.stdout.read(9)[4:].hex()
p.stdin.close()
p.wait(20)
print(json.dumps(got))
"""


def server(w):
    """Its address in known_hosts form is in ./known, a key that it takes in ./key."""
    if not os.access("/usr/sbin/sshd", os.X_OK):
        return False
    place = w.dir / "sshd"
    place.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    (place / "config").write_text(f"HostKey {place}/host\nAuthorizedKeysFile {place}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
                                  "PermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n")
    key = (place / "host.pub").read_text().split()
    w.put("known", f"git.example.test {key[0]} {key[1]}\n")
    w.put("key", (place / "user").read_text())
    os.chmod(w.ws / "key", 0o600)
    w.zone("git.example.test", net.FIRST)
    w.zone("other.test", net.SECOND)
    w.serve("sshd", 22, config=str(place / "config"))
    return True


def login(w):
    return pwd.getpwuid(os.geteuid()).pw_name


@test("ssh reaches a host that a rule names, and no other", seconds=90)
def both(w):
    if not server(w):
        w.ok(True, "not run # SKIP there is no sshd")
        return
    for tier in ("A", "B"):
        opts = ["--tier", tier, *w.rules("tcp://git.example.test:22")]
        if w.run("true", opts=opts).code == 122:
            w.ok(tier == "B", f"tier {tier} is there")
            continue
        # Not a command: who runs the tests may have no shell to log in with.
        got = w.python(TALK, *OPTIONS.split(), "-o", "UserKnownHostsFile=./known", "-s", f"{login(w)}@git.example.test", "sftp", opts=opts, timeout=40)
        w.same(got, "0200000003", f"tier {tier}: logs in, and the server answers to what it is asked")
        r = w.sh(f"ssh {OPTIONS} {login(w)}@git.example.test true", opts=opts, timeout=40)
        w.ok(r.code == 255 and "verification failed" in r.said, f"tier {tier}: a host that nobody knows is not trusted", r)
        r = w.sh(f"ssh {OPTIONS} -o UserKnownHostsFile=./known {login(w)}@other.test true", opts=opts, timeout=40)
        w.ok(r.code == 255 and "not resolve" in r.said, f"tier {tier}: another name does not exist", r)
        e = w.net_events("lookup", answer="deny")
        w.ok({x["host"] for x in e} == {"other.test"}, f"tier {tier}: on record", e)
    w.same({c["to"] for c in w.accepted(22)}, {net.FIRST}, "nobody else was connected to")
