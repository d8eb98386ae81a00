#!/usr/bin/env python3
"""fuzz.py - run every libFuzzer target for a while, two at a time.

    tools/fuzz.py [--seconds N] [TARGET ...]

Targets are build/fuzz/tests/fuzz/fuzz_*; the seeds of fuzz_x are the files in
tests/fuzz/corpus/x, what it learns stays in build/fuzz/corpus/x, and a
dictionary tests/fuzz/x.dict is used if there is one. At the first finding all
stop, and the file that reproduces it is named.
"""
import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
FOUND = BUILD / "found"
PARALLEL = 2


def start(target, seconds):
    name = target.name.removeprefix("fuzz_")
    seeds, learned = ROOT / "tests/fuzz/corpus" / name, BUILD / "corpus" / name
    words = ROOT / "tests/fuzz" / f"{name}.dict"
    learned.mkdir(parents=True, exist_ok=True)
    FOUND.mkdir(parents=True, exist_ok=True)
    cmd = [target, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
           "-print_final_stats=1", f"-artifact_prefix={FOUND}/{name}-", learned]
    cmd += [seeds] if seeds.is_dir() else []
    cmd += [f"-dict={words}"] if words.is_file() else []
    log = open(FOUND / f"{name}.log", "wb")
    env = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "SRC": str(ROOT)}
    return name, subprocess.Popen(cmd, cwd=BUILD, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT)


def report(name, code):
    """One line for a target that ended; True if it is clean."""
    text = (FOUND / f"{name}.log").read_text(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    if code == 0 and runs:
        print(f"{name:<20} {int(runs[1]):>12,} runs, nothing found", flush=True)
        return True
    artifact = re.search(r"Test unit written to (\S+)", text)
    print(f"{name:<20} FOUND (exit {code}): {artifact[1] if artifact else 'see the log'}")
    print(f"  log: {FOUND / f'{name}.log'}")
    if artifact:
        print(f"  again: {BUILD}/tests/fuzz/fuzz_{name} {artifact[1]}")
    print("".join(f"  {line}\n" for line in text.splitlines()
                  if re.match(r"==\d+==|SUMMARY|.*runtime error:|    #[0-6] ", line))[:2000])
    return False


def run_all(targets, seconds):
    waiting, running, clean = list(targets), [], True
    try:
        while running or (waiting and clean):
            while waiting and clean and len(running) < PARALLEL:
                running.append(start(waiting.pop(0), seconds))
            time.sleep(0.2)
            for item in [r for r in running if r[1].poll() is not None]:
                running.remove(item)
                clean = report(item[0], item[1].returncode) and clean
            if not clean:
                break
    finally:
        for _, proc in running:
            proc.terminate()
            proc.wait()
    return clean


def main():
    ap = argparse.ArgumentParser(description="run the fuzz targets")
    ap.add_argument("--seconds", type=int, default=300)
    ap.add_argument("names", nargs="*")
    args = ap.parse_args()
    targets = sorted(p for p in (BUILD / "tests/fuzz").glob("fuzz_*") if p.is_file())
    if args.names:
        targets = [t for t in targets if t.name.removeprefix("fuzz_") in args.names]
    if not targets:
        print("fuzz: no target was built", file=sys.stderr)
        return 1
    return 0 if run_all(targets, args.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
