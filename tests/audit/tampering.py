"""tampering.py - somebody changes what was written, and verification says so and where (AUD-001, 002, 004, 013, 015, 016)."""
import shutil
from concurrent.futures import ThreadPoolExecutor

from audit import Kept, fails, holds, last, states, verify
from host import test


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def lines(file, change):
    kept = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(kept)))


def swap(kept, i):
    return kept[:i] + [kept[i + 1], kept[i]] + kept[i + 2:]


@test("a record: one byte, a line dropped, twice, moved, spelled otherwise (AUD-002, AUD-013)")
def _(w):
    w.run("true")
    w.sh("cat /etc/shadow; true")
    holds(w, "as it was written")
    file, kept = last(w), Kept(w)
    place = f"sessions/{file.name}"
    n = file.stat().st_size
    for at in (2, n // 3, n // 2, n - 3):
        flip(file, at)
        fails(w, place, f"byte {at} flipped")
        kept.back()
    for name, change in {
            "a line dropped": lambda k: k[:2] + k[3:], "the last dropped": lambda k: k[:-1], "the first dropped": lambda k: k[1:],
            "a line twice": lambda k: k[:2] + [k[1]] + k[2:], "two swapped": lambda k: swap(k, 1),
            "blanks": lambda k: [k[0].replace(b",", b", ", 1)] + k[1:],
            "another order": lambda k: k[:-1] + [k[-1].replace(b'"event":"end",', b"").replace(b"}", b',"event":"end"}')],
            "another escape": lambda k: [k[0].replace(b"start", b"st\\u0061rt")] + k[1:],
            "half a line behind": lambda k: k + [b'{"event":']}.items():
        lines(file, change)
        fails(w, place, name)
        fails(w, place, f"{name}, asked for that session", file.stem)
        kept.back()
    file.write_bytes(next(f for f in file.parent.glob("*.jsonl") if f != file).read_bytes())
    fails(w, place, "the record of another session")
    kept.back()
    file.unlink()
    code, result = verify(w)
    w.ok(code == 0 and states(w)[file.stem] == "gone", "one that was removed is gone, and the log still has its size and root", result)
    w.exits(w.writ("audit", "show", file.stem), 125, "show says so")


@test("many sessions at once, then every file of the log changed (AUD-002, AUD-014)")
def _(w):
    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda i: w.run("true", timeout=120).code, range(132)))
    w.same(set(codes), {0}, "132 sessions, six at a time")
    code, result = verify(w)
    w.ok(code == 0 and result["entries"] == 264 and result["signed"] == 264, "the log has start and end of each, and verifies", result)
    w.same(set(states(w).values()), {"sealed"}, "each is sealed")
    log, kept = w.state / "log", Kept(w)
    wal, bundle, tile, upper = next((log / "wal").iterdir()), log / "tile/entries/000", log / "tile/0/000", log / "tile/1/000.p/1"
    for file, place in ((wal, "latest"), (bundle, "tile/entries/000"), (tile, "tile/entries/000"), (upper, "tile/1/"), (log / "latest", "latest")):
        for at in (60, file.stat().st_size // 2, -2):
            if at < file.stat().st_size:
                flip(file, at)
                code, result = verify(w)
                w.ok(code == 1 and result["failures"], f"{file.relative_to(log)}: byte {at} flipped", result)
                kept.back()
        file.unlink()
        code, result = verify(w)
        w.ok(code == 1 and result["failures"] or file.name == "latest", f"{file.relative_to(log)} removed", result)
        kept.back()
    for name, change in {"a line dropped": lambda k: k[:2] + k[3:], "the end cut off": lambda k: k[:-1], "two swapped": lambda k: swap(k, 1)}.items():
        lines(wal, change)
        fails(w, "latest", f"wal: {name}")
        kept.back()
    r = w.run("true")
    w.ok(r.code == 0, "and it goes on", r)
    holds(w, "and verifies")


@test("the log shorter than what was signed is not written to, and says so")
def _(w):
    w.run("true")
    w.run("true")
    lines(next((w.state / "log/wal").iterdir()), lambda k: k[:-1])
    r = w.run("true")
    w.ok(r.code == 125 and "damaged" in r.said, "nothing runs that cannot be written down", r)
    fails(w, "latest", "it does not verify")


@test("another history, made without the key (AUD-004)")
def _(w):
    w.run("true")
    other = w.at(w.dir)
    other.state.mkdir(parents=True)
    shutil.copy(w.state / "realm", other.state / "realm")
    other.run("true")
    holds(other, "it verifies where its own key is pinned")
    kept = Kept(w)
    shutil.rmtree(w.state / "log")
    shutil.rmtree(w.state / "sessions")
    shutil.copytree(other.state / "log", w.state / "log")
    shutil.copytree(other.state / "sessions", w.state / "sessions")
    fails(w, "latest", "the log of somebody else, for the same realm")
    shutil.rmtree(w.state / "keys")
    shutil.copytree(other.state / "keys", w.state / "keys")
    fails(w, "latest", "and his key beside it")
    kept.back()
    holds(w, "as it was")


@test("from inside nothing of it can be touched or read (AUD-001, AUD-016)")
def _(w):
    w.run("true")
    (w.home / "mine").write_text("")
    r = w.sh(f"echo x >> {w.home}/mine && echo WROTE", opts=("--allow", f"write:{w.home}"))
    w.ok("WROTE" in r.text, "what is granted can be written", r)
    files = [p for d in ("log/wal", "sessions", "keys") for p in (w.state / d).iterdir()] + [w.home / ".config/writ/log.policy"]
    before = {f: f.read_bytes() for f in files}
    for opts in ((), ("--allow", f"write:{w.home}"), ("--allow", f"read:{w.home}")):
        r = w.sh("""for f; do grep -q . "$f" && echo READ $f; echo x >> "$f" && echo WROTE $f; true > "$f" && echo CUT $f
            mv "$f" "$f.x" && echo MOVED $f; rm -f "$f"; rm -rf "${f%/*}"; done 2>/dev/null; echo TRIED $#""", "sh", *files, opts=opts)
        w.ok(r.text == f"TRIED {len(files)}\n", f"nothing with {opts[-1] if opts else 'no rule'}", r)
        w.ok(all(f.exists() and f.read_bytes().startswith(data) for f, data in before.items()), "and everything is there as it was")
    holds(w, "it verifies")


@test("a key or a log that others can reach is not used (AUD-015, AUD-016)")
def _(w):
    w.run("true")
    key = w.state / "keys/log.pem"
    w.same(oct(key.stat().st_mode & 0o777), "0o600", "the key is its user's alone")
    w.same(oct(last(w).stat().st_mode & 0o777), "0o600", "so is a record")
    key.chmod(0o644)
    r = w.run("true")
    w.ok("can be read or written by others" in r.said, "one that others can read is not used", r)
    key.chmod(0o600)
    moved = w.dir / "elsewhere.pem"
    shutil.move(key, moved)
    key.symlink_to(moved)
    r = w.run("true")
    w.ok("cannot be written" in r.said, "nor one behind a link", r)
    key.unlink()
    shutil.move(moved, key)
    (w.state / "log").chmod(0o777)
    r = w.run("true")
    w.ok(r.code == 125 and "can be written by others" in r.said, "nothing runs with a log that anybody can write", r)
    (w.state / "log").chmod(0o700)
    w.exits(w.run("true"), 0, "as it was")


@test("an end that cannot be signed: the code says so, and so does everybody who looks, until it is")
def _(w):
    w.run("true")
    key = w.state / "keys/log.pem"
    key.chmod(0o644)
    r = w.run("true")
    w.ok(r.code == 125 and "cannot be written" in r.said, "a session that ended well, and is not sealed, did not end well", r)
    sid = last(w).stem
    r = w.sh("exit 3")
    w.ok(r.code == 3 and "cannot be written" in r.said, "another code than 0 stays", r)
    code, result = verify(w)
    w.ok(code == 0 and sorted(states(w).values()) == ["sealed", "unsigned", "unsigned"], "verify tells them apart", result)
    r = w.writ("audit", "verify", sid)
    w.ok(r.code == 1 and "ended, not signed yet" in r.text, "asked for one: nothing vouches for it yet", r)
    r = w.writ("attest", "verify", sid)
    w.ok(r.code == 1 and "not signed yet" in r.text and "UNKNOWN" in r.text, "attest verify says the same", r)
    r = w.writ("attest", "verify", "--json", sid)
    w.ok(r.code == 1 and '"answer":"not-signed-yet"' in r.text, "for machines, too", r)
    key.chmod(0o600)
    w.exits(w.run("true"), 0, "once the key is back")
    w.same(set(states(w).values()), {"sealed"}, "the next signature covers them")
    text = next((w.state / "log/wal").iterdir()).read_text()
    w.same(text.count('"event":"log.unsigned"'), 1, "and the log says that it was late, once")
    r = w.writ("audit", "verify")
    w.ok(r.code == 0 and "was not signed then" in r.text, "verify repeats it", r)
    w.exits(w.writ("attest", "verify", sid), 0, "attest verify holds")


@test("a record that was added to: the line is named; one that was changed: it is known by its root")
def _(w):
    w.sh("cat /etc/shadow; true")
    file, kept = last(w), Kept(w)
    n = len(file.read_bytes().splitlines())
    lines(file, lambda k: k + [k[1], k[2]])
    code, result = verify(w)
    w.ok(code == 1 and f"line {n + 1} and what follows were added" in str(result), "added", result)
    r = w.writ("attest", "verify")
    w.ok(r.code == 4 and f"line {n + 1} and what follows were added" in r.said, "attest verify names it, too", r)
    kept.back()
    lines(file, lambda k: swap(k, 1))
    code, result = verify(w)
    w.ok(code == 1 and "known by its root only" in str(result), "two swapped", result)
    r = w.writ("attest", "verify")
    w.ok(r.code == 4 and "known by their root only" in r.said, "by attest verify as well", r)
