#!/usr/bin/env python3
"""run.py - measure the budgets of the language and print a table; also for build/bench.json.

    bench/run.py [--rounds N]

Start-up is measured against a static hello world, both in turn in one run, so
that the numbers mean the same on a slow machine. Everything smaller comes from
build/release/bench/micro, tlog_bench, audit_bench and token_bench, which print one line per item:

    name <TAB> measured <TAB> unit <TAB> budget

A row is ok if measured <= budget. The exit code is 1 if a budget is missed.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build/release"


def interleaved(rounds, a, b):
    """Median, 10th and 90th percentile in ms of two commands run in turn."""
    out = subprocess.run([RELEASE / "bench/ab", str(rounds), *a, "--", *b], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return [[int(ns) / 1e6 for ns in line.split()] for line in out.splitlines()]


def startup(rounds):
    hello, writ = interleaved(rounds, [RELEASE / "bench/hello"],
                              [RELEASE / "prog/writ", "check", ROOT / "bench/small.writ"])
    return {"name": "writ check, small policy", "measured": writ[0], "unit": "ms",
            "budget": 1.5 * hello[0] + 1.0, "note": f"hello {hello[0]:.2f} ms, ratio "
            f"{writ[0] / hello[0]:.2f}, p90 {writ[2]:.2f}"}


def micro(program):
    out = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in out.splitlines():
        name, measured, unit, budget = line.split("\t")
        yield {"name": name, "measured": float(measured), "unit": unit, "budget": float(budget),
               "note": ""}


def main():
    ap = argparse.ArgumentParser(description="measure the budgets")
    ap.add_argument("--rounds", type=int, default=1000)
    args = ap.parse_args()
    load = report.load_average()
    rows = [startup(args.rounds)]
    for name in ("micro", "tlog_bench", "audit_bench", "token_bench"):
        if (RELEASE / "bench" / name).exists():
            rows += micro(RELEASE / "bench" / name)
    width = max(len(r["name"]) for r in rows)
    print(f"{'WHAT':<{width}}  {'MEASURED':>12}  {'BUDGET':>12}")
    for r in rows:
        r["ok"] = r["measured"] <= r["budget"]
        print(f"{r['name']:<{width}}  {r['measured']:>9.3f} {r['unit']:<2}  "
              f"{r['budget']:>9.3f} {r['unit']:<2}  {'ok' if r['ok'] else 'MISSED'}  {r['note']}".rstrip())
    report.save("language and policy", [report.row(r["name"], "writ", r["measured"], r["unit"], r["budget"], note=r["note"])
                                        for r in rows], load)
    return 0 if all(r["ok"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
