#!/usr/bin/env python3
"""run_test.py - does run.py hear what its machine says, whole or in pieces? Speaks TAP."""
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run  # noqa: E402

run.SLACK_SECONDS = 0

# name, what the machine says (M is the mark, | a pause), [(output, exit code)] of two jobs
CASES = [
    ("two jobs", r"bios\036M ready 6.1\036one\n\036M end 0 0\036two\036M end 1 7\036",
     [(b"one\n", 0), (b"two", 7)]),
    ("in pieces", r"\036M rea|dy 6.1\036o|ne\036|M end 0 |0\036\036M end 1 137\036",
     [(b"one", 0), (b"", 137)]),
    ("a machine that stops in a job", r"\036M ready 6.1\036one\036M end 0 0\036two",
     [(b"one", 0), (b"two", None)]),
    ("a machine that does not start", r"bios", [(b"", None), (b"", None)]),
    ("another's mark is output", r"\036M ready 6.1\036a\036X end 0 0\036b\036M end 0 1\036",
     [(b"a\x1eX end 0 0\x1eb", 1), (b"", None)]),
    ("a job that hangs", r"\036M ready 6.1\036one||||||||", [(b"one", None), (b"", None)]),
]

# what `writ conform` said of a row, kernel and user: is that good?
TABLE = [["DV-*", "-2", "*", "*", "no such device"], ["*", "-1", "*", "user", "not for a user"],
         ["MD-004", "-38", "6.1", "*", "of 6.6"], ["*", "root", "*", "root", "another user"]]
ROWS = [
    (("FS-001", "held", ""), "6.1", "user", True),
    (("FS-001", "ESCAPED", "-1 no"), "6.1", "user", False),
    (("FS-001", "NOT RUN", "-1 no"), "6.1", "user", False),
    (("FS-001", "BROKEN", "-1 no"), "6.1", "user", False),
    (("FS-001", "something new", "-1 no"), "6.1", "user", False),
    (("FS-001", "n.a.", "-1 Operation not permitted"), "6.1", "user", True),
    (("FS-001", "n.a.", "-1 Operation not permitted"), "6.1", "root", False),
    (("FS-001", "n.a.", "-13 Permission denied"), "6.1", "user", False),
    (("FS-001", "n.a.", "0"), "6.1", "user", False),
    (("FS-001", "n.a.", ""), "6.1", "user", False),
    (("DV-001", "n.a.", "-2 No such file or directory"), "6.12", "root", True),
    (("MD-004", "n.a.", "-38 Function not implemented"), "6.1", "root", True),
    (("MD-004", "n.a.", "-38 Function not implemented"), "6.12", "root", False),
    (("ID-010", "n.a.", "needs root to prepare and a user to run"), "6.1", "root", True),
    (("ID-010", "n.a.", "needs root to prepare and a user to run"), "6.1", "user", False),
]


def hear(says):
    opts = run.arguments(["--timeout", "1", "--accel", "kvm"])
    jobs = [run.Job("root", ["x"]), run.Job("user", ["x"])]
    machine = run.Machine("6.1", jobs, opts, lambda job, data: None)
    parts = says.replace("M ", f"{machine.mark} ").split("|")
    script = "; sleep 0.2; ".join(f"printf '{p}'" for p in parts)
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as proc:
        machine.listen(proc)
    return [(job.output, job.code) for job in jobs]


def tree_bytes():
    """What cpio(1) would list of a packed tree."""
    import io
    tree, out = run.Tree(), io.BytesIO()
    tree.text("/etc/x", "hello")
    tree.file("/bin/sh", "/bin/sh")
    run.cpio(tree, out)
    return tree, out.getvalue()


def main():
    count = bad = 0

    def ok(good, name):
        nonlocal count, bad
        count, bad = count + 1, bad + (not good)
        print(f"{'' if good else 'not '}ok {count} - {name}")

    for name, says, want in CASES:
        got = hear(says)
        ok(got == want, name)
        if got != want:
            print(f"# got {got}, want {want}")
    for (row, verdict, said), kernel, who, want in ROWS:
        row = {"id": row, "verdict": verdict, "bare_said": said}
        good, end = run.judge_row(TABLE, kernel, who, row)
        ok(good == want and ("SKIP" in end) == (want and verdict == "n.a."),
           f"{row['id']} {verdict} ({said}) on {kernel} as {who} is {'good' if want else 'bad'}")
    ok(all(len(line) == 5 for line in run.unsupported()), "what is declared can be read")
    tree, data = tree_bytes()
    ok(len(data) % 4 == 0 and b"etc/x\0" in data and b"hello\0\0\0" in data, "a file is packed")
    ok("/usr/bin/sh" in tree.entries and "/bin/sh" not in tree.entries, "/bin is in /usr")
    ok(any("ld-linux" in path for path in tree.entries), "a program comes with its loader")
    print(f"1..{count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
