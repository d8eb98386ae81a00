#!/usr/bin/env python3
"""run.py - golden transcripts: run the commands of a .t file, compare the output.

    tests/golden/run.py [--writ BINARY] [--update] [FILE.t ...]

A transcript is prose with indented blocks:

      $ command                 run by sh; all commands of a file share one shell
      > more of the command
      expected output           standard output and error, in order
      any name (glob)           * and ? match within the line
      pid [0-9]+ (re)           a regular expression for the whole line
      no newline at end (no-eol)
      [121]                     exit status, written when it is not 0

An empty output line is an empty line; if it is the last one it is written (re).
`#requires root` or `#requires user` as the first line skips the file for others.
Each file starts in an empty directory with HOME and XDG_* beside it, the built
writ first in PATH, and SRC naming the repository. In the output these two are
shown as $TMP and $SRC. --update rewrites what is expected; git diff is the review.
"""
import argparse
import difflib
import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMEOUT = 120
MARK = "--golden-mark--"


def parse(text):
    """Returns [(prose lines, command, expected lines)]; the last command may be None."""
    blocks, prose, lines = [], [], text.splitlines()
    i = 0
    while i < len(lines):
        if not lines[i].startswith("  $ "):
            prose.append(lines[i])
            i += 1
            continue
        command, expected, i = [lines[i][4:]], [], i + 1
        while i < len(lines) and lines[i].startswith("  > "):
            command.append(lines[i][4:])
            i += 1
        while i < len(lines) and not lines[i].startswith("  $ "):
            if lines[i].startswith("  "):
                expected.append(lines[i][2:])
            elif lines[i] or not output_follows(lines, i):
                break
            else:
                expected.append("")
            i += 1
        blocks.append((prose, "\n".join(command), expected))
        prose = []
    return blocks + ([(prose, None, [])] if prose else [])


def output_follows(lines, i):
    while i < len(lines) and not lines[i]:
        i += 1
    return i < len(lines) and lines[i].startswith("  ") and not lines[i].startswith("  $ ")


def render(blocks):
    out = []
    for prose, command, expected in blocks:
        out += prose
        if command is not None:
            first, *more = command.split("\n")
            out += [f"  $ {first}"] + [f"  > {m}" for m in more]
            out += [f"  {e}" if e else "" for e in expected]
    return "".join(line + "\n" for line in out)


def line_matches(expected, actual):
    if expected == actual:
        return True
    m = re.fullmatch(r"(.*?) ?\((re|glob)\)", expected)
    if not m:
        return False
    pattern = m[1] if m[2] == "re" else fnmatch.translate(m[1])
    try:
        return re.fullmatch(pattern, actual) is not None
    except re.error:
        return False


def matches(expected, actual):
    return len(expected) == len(actual) and all(map(line_matches, expected, actual))


def make_home(tmp, writ):
    """Lays out a fresh home below tmp and returns the environment that names it."""
    for d in ("work", "home", "tmp", "run", "home/.config", "home/.local/state", "bin"):
        (tmp / d).mkdir(parents=True, exist_ok=True)
    if writ:
        (tmp / "bin" / "writ").symlink_to(Path(writ).resolve())
    return {"HOME": f"{tmp}/home", "TMPDIR": f"{tmp}/tmp", "SRC": str(ROOT), "LC_ALL": "C",
            "TERM": "dumb", "TZ": "UTC0", "XDG_CONFIG_HOME": f"{tmp}/home/.config",
            "XDG_STATE_HOME": f"{tmp}/home/.local/state", "XDG_RUNTIME_DIR": f"{tmp}/run",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{tmp}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}


def run_shell(commands, writ):
    """Runs all commands in one shell; returns one list of output lines per command."""
    tmp = Path(tempfile.mkdtemp(prefix="writ-golden-", dir="/tmp"))
    try:
        script = tmp / "script"
        script.write_text("".join(f"{c}\nprintf '%s%s\\n' {MARK} $?\n" for c in commands))
        env = make_home(tmp, writ)
        proc = subprocess.Popen(["sh", script], cwd=tmp / "work", env=env, umask=0o022,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, start_new_session=True)
        try:
            raw, _ = proc.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(proc.pid, signal.SIGKILL)
            raw = proc.communicate()[0] + b"\n(timed out)\n"
        text = raw.decode("utf-8", "backslashreplace")
        text = text.replace(str(tmp), "$TMP").replace(str(ROOT), "$SRC")
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    parts = re.split(MARK + r"(\d+)\n", text)
    results = []
    for i in range(len(commands)):
        if 2 * i + 1 < len(parts):
            results.append(shown(parts[2 * i], int(parts[2 * i + 1])))
        else:
            results.append(shown(parts[-1] if 2 * i + 1 == len(parts) else "", None))
    return results


def shown(output, status):
    lines = output.split("\n")
    last = lines.pop()
    if last:
        lines.append(last + " (no-eol)")
    if status is None:
        lines.append("(the shell ended here)")
    elif status:
        lines.append(f"[{status}]")
    return lines


def updated(expected, actual):
    """The actual lines, keeping patterns that still match."""
    patterns = [e for e in expected if re.search(r"\((re|glob)\)$", e)]
    new = []
    for line in actual:
        kept = next((p for p in patterns if line_matches(p, line)), None)
        if kept is not None:
            patterns.remove(kept)
            line = kept
        elif re.search(r"\((re|glob)\)$", line) or line.startswith(("$ ", "> ")):
            line = re.escape(line) + " (re)"
        new.append(line)
    if new and new[-1] == "":
        new[-1] = "(re)"
    return new


def check(path, writ, update=False):
    """Returns (verdict, text): "ok", "skip" or "fail" with a diff."""
    text = path.read_text()
    blocks = parse(text)
    need = re.match(r"#requires (root|user)\n", text)
    if need and (need[1] == "root") != (os.geteuid() == 0):
        return "skip", f"needs {need[1]}"
    runs = [b for b in blocks if b[1] is not None]
    if not runs:
        return "fail", "no command in this file"
    results = run_shell([b[1] for b in runs], writ)
    if all(matches(b[2], got) for b, got in zip(runs, results)):
        return "ok", ""
    got = iter(results)
    new = []
    for prose, command, expected in blocks:
        if command is not None:
            actual = next(got)
            expected = expected if matches(expected, actual) else updated(expected, actual)
        new.append((prose, command, expected))
    if update:
        path.write_text(render(new))
        return "ok", "updated"
    return "fail", "\n".join(difflib.unified_diff(text.splitlines(), render(new).splitlines(),
                                                  f"{path.name} expected", "actual", lineterm=""))


def self_test():
    """Each transcript must get the verdict in its name."""
    cases = [
        ("exact", "  $ printf 'a\\n\\nb\\n'\n  a\n\n  b\n", "ok"),
        ("wrong text", "  $ echo a\n  b\n", "fail"),
        ("missing text", "  $ echo a\n", "fail"),
        ("extra text", "  $ true\n  a\n", "fail"),
        ("exit status", "  $ (exit 3)\n  [3]\n", "ok"),
        ("unexpected exit status", "  $ (exit 3)\n", "fail"),
        ("expected exit status is absent", "  $ true\n  [1]\n", "fail"),
        ("re", "  $ echo pid 12\n  pid [0-9]+ (re)\n", "ok"),
        ("re covers the whole line", "  $ echo pid 12x\n  pid [0-9]+ (re)\n", "fail"),
        ("glob", "  $ echo abc\n  a*c (glob)\n", "ok"),
        ("glob that does not match", "  $ echo abd\n  a*c (glob)\n", "fail"),
        ("no newline", "  $ printf a\n  a (no-eol)\n", "ok"),
        ("newline expected", "  $ printf a\n  a\n", "fail"),
        ("standard error", "  $ echo a >&2\n  a\n", "ok"),
        ("one shell", "  $ x=1\n  $ echo $x\n  1\n", "ok"),
        ("here document", "  $ cat <<E\n  > a\n  > E\n  a\n", "ok"),
        ("shell ends early", "  $ exit 0\n  $ true\n", "fail"),
        ("syntax error", "  $ if\n", "fail"),
        ("no command", "just prose\n", "fail"),
        ("temporary directory", "  $ pwd\n  $TMP/work\n", "ok"),
        ("clean environment", "  $ echo $HOME ${GOLDEN_LEAK-none}\n  $TMP/home none\n", "ok"),
    ]
    os.environ["GOLDEN_LEAK"] = "yes"
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "case.t"
        for i, (name, text, want) in enumerate(cases, 1):
            path.write_text(text)
            good = check(path, None)[0] == want
            if good and want == "fail" and name not in ("shell ends early", "syntax error", "no command"):
                check(path, None, update=True)
                good = check(path, None)[0] == "ok"
            bad += not good
            print(f"{'' if good else 'not '}ok {i} - {name} is {want}")
    print(f"1..{len(cases)}")
    return bad


def main():
    ap = argparse.ArgumentParser(description="run golden transcripts")
    ap.add_argument("--writ", default=str(ROOT / "build/release/prog/writ"))
    ap.add_argument("--update", action="store_true", help="rewrite what is expected")
    ap.add_argument("--omit", action="store_true", help="leave out files that need another user")
    ap.add_argument("--self-test", action="store_true")
    ap.add_argument("files", nargs="*", type=Path)
    args = ap.parse_args()
    if args.self_test:
        return 1 if self_test() else 0
    files = args.files or sorted(HERE.glob("*.t"))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(zip(files, pool.map(lambda f: check(f, args.writ, args.update), files)))
    if args.omit:
        results = [r for r in results if r[1][0] != "skip"]
    for i, (path, (verdict, text)) in enumerate(results, 1):
        skip = f" # SKIP {text}" if verdict == "skip" else ""
        print(f"{'not ' if verdict == 'fail' else ''}ok {i} - {path.name}{skip}")
        if verdict == "fail":
            print("".join(f"# {line}\n" for line in text.splitlines()), end="")
    print(f"1..{len(results)}")
    return 1 if any(verdict == "fail" for _, (verdict, _) in results) else 0


if __name__ == "__main__":
    sys.exit(main())
