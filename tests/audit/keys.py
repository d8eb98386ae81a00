"""keys.py - whose word counts: pins, other keys, keys that take over."""
import json
import shutil

from audit import Kept, fails, holds
from host import test


def vkey(w, role="log"):
    return next(k["vkey"] for k in json.loads(w.writ("key", "show", "--json").out) if k["role"] == role)


@test("the first run makes the key and pins it; a key that is not pinned is not believed")
def _(w):
    w.ok("no key yet" in w.writ("key", "show").said, "none yet")
    w.exits(w.writ("audit", "verify"), 125, "nothing to verify yet")
    w.run("true")
    policy = w.home / ".config/writ/log.policy"
    w.ok(f"log {vkey(w)}\n" in policy.read_text(), "pinned")
    r = w.writ("audit", "verify")
    w.ok(r.code == 0 and "self-attested (same user holds the key)" in r.text, "it verifies, and says who holds the key", r)
    own = policy.read_text()
    policy.unlink()
    fails(w, "log.policy", "without a pin it does not verify")
    w.ok("signer not pinned" in w.writ("audit", "verify").text, "and says why")
    w.run("true")
    w.ok(not policy.exists(), "a later run does not pin a key that it found")
    (w.dir / "vkey").write_text(vkey(w) + "\n")
    holds(w, "with --key it does", "--key", w.dir / "vkey")
    (w.dir / "pem").write_text(json.loads(w.writ("key", "show", "log", "--json").out)[0]["pem"])
    holds(w, "as PEM, too", "--key", w.dir / "pem")
    (w.dir / "policy").write_text(own)
    holds(w, "and with --policy", "--policy", w.dir / "policy")
    policy.write_text("quorum some\n")
    w.exits(w.writ("audit", "verify"), 125, "pins that cannot be read are not pins")
    policy.write_text("# mine\nquorum none\n")
    w.exits(w.writ("key", "init"), 0, "key init pins what is there")
    w.ok("# mine\n" in policy.read_text(), "and leaves what somebody wrote")
    holds(w, "then it verifies")


@test("pins that cannot be written do not keep anything from running")
def _(w):
    (w.home / ".config").write_text("in the way")
    w.exits(w.run("true"), 0, "it runs")
    (w.home / ".config").unlink()
    fails(w, "log.policy", "and does not verify until somebody pins the key")
    w.exits(w.writ("key", "init"), 0, "pinned")
    holds(w, "then it does")


@test("another key of the log: history stays, and an old key or an old copy does not count any more")
def _(w):
    w.run("true")
    first, old = vkey(w), Kept(w)
    r = w.writ("key", "rotate")
    w.ok(r.code == 0 and vkey(w) != first, "another key", r)
    w.run("true")
    holds(w, "both parts verify")
    policy = (w.home / ".config/writ/log.policy").read_text()
    w.ok(first in policy and vkey(w) in policy, "both are pinned")
    new = Kept(w, "new")
    old.back()
    fails(w, "log", "a copy of before, with the old private key")
    w.run("true")
    fails(w, "log", "and what the old key signs from there on")
    new.back()
    shutil.copy(old.copy / "keys/log.pem", w.state / "keys/log.pem")
    w.run("true")
    fails(w, "latest", "the old key signing behind the change")
    new.back()
    for file in (w.state / "log/rotated").iterdir():
        file.unlink()
    fails(w, "rotated/", "a change that nobody signed")


@test("the issuer's key: another one, on record")
def _(w):
    w.exits(w.writ("key", "init"), 0, "made")
    w.exits(w.writ("key", "rotate", "issue"), 0, "changed")
    text = next((w.state / "log/wal").iterdir()).read_text()
    w.ok('"event":"key.rotate"' in text and '"role":"issue"' in text, "the log says so", text)
    w.ok((w.state / "keys/issue.old.pem").read_text().startswith("-----BEGIN PUBLIC KEY-----"), "the old public half is kept")
    holds(w, "it verifies")
    w.exits(w.writ("key", "rotate", "nothing"), 125, "a role that is none")


@test("statements of a log whose key changed: what the old one signs behind that does not count")
def _(w):
    def verified(folder, *args):
        return w.writ("attest", "verify", *args, folder)

    def attested(name):
        w.exits(w.run("true", opts=("--attest-out", w.dir / name)), 0, f"{name} is made")
        return w.dir / name
    before, policy = attested("before"), w.home / ".config/writ/log.policy"
    only_old, old = policy.read_text(), Kept(w)
    w.exits(w.writ("key", "rotate"), 0, "another key")
    after, new = attested("after"), Kept(w, "new")
    w.ok((after / "rotated-1.tlog-proof").exists() and not (before / "rotated-1.tlog-proof").exists(), "the change comes along")
    w.exits(verified(before), 0, "what the old one signed before stands")
    w.exits(verified(after), 0, "what the new one signs holds")
    old.back()
    for i in range(2):
        forged = attested(f"forged{i}")
    r = w.writ("attest", "verify")
    w.ok(r.code == 4 and "older copy" in r.said, "a copy of before, with the old private key, is none of this log", r)
    r = verified(forged)
    w.exits(r, 0, "which nobody can see where that is all there is")
    new.back()
    r = verified(forged)
    w.ok(r.code == 4 and "another took over" in r.said, "but where the log is that says so", r)
    keys = ["--key", forged / "attest.pub.pem", "--policy"]
    shutil.copy(after / "rotated-1.tlog-proof", forged)
    both = w.dir / "both.policy"
    both.write_text(policy.read_text())
    other = w.at(w.dir)
    r = other.writ("attest", "verify", *keys, both, forged)
    w.ok(r.code == 4 and "another took over" in r.said, "and where the change came along", r)
    both.write_text(only_old)
    w.exits(other.writ("attest", "verify", *keys, both, after), 0, "who pinned the old one is led to the new one")
    (after / "rotated-1.tlog-proof").unlink()
    w.exits(other.writ("attest", "verify", *keys, both, after), 5, "but not without it")
    shutil.copy(old.copy / "keys/log.pem", w.state / "keys/log.pem")
    w.run("true")
    r = w.writ("attest", "verify")
    w.ok(r.code == 4 and "another took over" in r.said, "the old key signing behind the change", r)
