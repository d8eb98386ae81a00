#!/usr/bin/env python3
"""report.py - the rows of a measurement: the table a person reads, and build/bench.json.

    bench/report.py [FILE.md]

Prints what build/bench.json holds as tables of Markdown; with a file, puts them there,
between the two lines that say so.

bench.json has "machine" (facts of this one, when, how busy it was) and "sections": each
script replaces its own and leaves the others. A row has `what` was done by `who`; `value`
and `unit` is what is compared with `budget`; `median`, `p99` and `cpu` are milliseconds;
`missing` says why there is nothing.
"""
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("BENCH_ROOT", Path(__file__).resolve().parent.parent))
FILE = ROOT / "build/bench.json"
BEGIN, END = "<!-- measured: bench/report.py writes this -->", "<!-- end of what was measured -->"


def row(what, who, value=None, unit="", budget=None, times=None, note="", missing=None, more=False):
    """One row; `more` turns the budget round: at least so much."""
    r = {"what": what, "who": who, "value": value, "unit": unit, "budget": budget, "note": note}
    if more:
        r["at_least"] = True
    if times:
        r.update(n=len(times.wall), median=times.median, p99=times.p99, cpu=times.cpu_median)
    if missing:
        r["missing"] = missing
    elif budget is not None:
        r["ok"] = value >= budget if more else value <= budget
    return r


def against(what, got, peer, budgets):
    """Rows of several ways as ratios of the median to that of one of them."""
    base = got[peer]
    for who, times in got.items():
        if isinstance(times, str):
            yield row(what, who, missing=times)
            continue
        text = f"p99 {times.p99 / base.p99:.2f} x, CPU {times.cpu_median / (base.cpu_median or 1):.2f} x" if who != peer else ""
        yield row(what, who, times.median / base.median, f"x {peer}", budgets.get(who), times, text)


def number(x):
    return "" if x is None else f"{x:,.0f}" if isinstance(x, int) or abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 100 else f"{x:.2f}"


def cells(r):
    """Everything of a row but its names, as text."""
    if "missing" in r:
        return ["", "", "", "", "", "", r["missing"]]
    unit = r["unit"]
    budget = "" if r["budget"] is None else f"{'>=' if r.get('at_least') else '<='} {number(r['budget'])}"
    verdict = {True: "ok", False: "MISSED"}.get(r.get("ok"), "")
    few = f"of {r['n']} runs" if r.get("n", 100) < 100 else ""
    return [number(r.get("median")), number(r.get("p99")), number(r.get("cpu")), f"{number(r['value'])} {unit}".strip(), budget, verdict,
            "; ".join(t for t in (r["note"], few) if t)]


HEAD = ["median ms", "p99 ms", "CPU ms", "result", "budget", "", ""]
VERDICT = 5
WHO, WIDTHS = 23, [11, 10, 10, 18, 12, 9, 0]


class Printer:
    """Shows rows as they come, under a heading for each thing that is done."""

    def __init__(self):
        self.what, self.rows = None, []

    def add(self, *rows):
        for r in rows:
            self.rows.append(r)
            if r["what"] != self.what:
                self.what = r["what"]
                print(f"\n{self.what}\n  {'':<{WHO}}" + self.join(HEAD))
            print(f"  {r['who']:<{WHO}}" + self.join(cells(r)), flush=True)

    @staticmethod
    def join(texts):
        if not any(texts[:-1]):
            return f"  {texts[-1]}"
        return "".join(f"{t:>{w}}" if w > 9 else f"  {t:<{w}}" for t, w in zip(texts, WIDTHS)).rstrip()


def text_of(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def said(*cmd):
    try:
        return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def machine():
    """Facts of this machine that the numbers hang on."""
    import peers  # only who measures needs it
    cpu = re.search(r"model name\s*: (.*)", text_of("/proc/cpuinfo"))
    system = re.search(r'PRETTY_NAME="(.*)"', text_of("/etc/os-release"))
    memory = re.search(r"MemTotal:\s*(\d+)", text_of("/proc/meminfo"))
    return {"kernel": platform.release(), "machine": platform.machine(), "cores": os.cpu_count(), "cpu": cpu.group(1) if cpu else "",
            "memory_gib": round(int(memory.group(1)) / 2**20, 1) if memory else None, "system": system.group(1) if system else "",
            "writ": said(ROOT / "build/release/prog/writ", "--version"), "commit": said("git", "rev-parse", "--short", "HEAD"),
            "peers": peers.versions()}


def load_average():
    return os.getloadavg()[0]


def save(section, rows, load):
    """Puts a section in the file; `load` is what the machine was busy with before."""
    try:
        kept = json.loads(FILE.read_text())
    except (OSError, ValueError):
        kept = {}
    if not isinstance(kept, dict):
        kept = {}
    now = datetime.datetime.now(datetime.timezone.utc)
    kept["machine"] = machine()
    kept.setdefault("sections", {})[section] = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "load_before": round(load, 2),
                                                "load_after": round(load_average(), 2), "rows": rows}
    try:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
    except OSError as e:
        print(f"bench: not saved: {e}", file=sys.stderr)


def verdict(sections):
    """What to end with: of rows by section, how many budgets there are and which are missed."""
    judged = [(name, r) for name, rows in sections.items() for r in rows if "ok" in r]
    missed = [f"{name}: {r['what']} ({r['who']})" for name, r in judged if not r["ok"]]
    return f"{len(judged)} budgets, {len(missed)} missed" + "".join(f"\n  {m}" for m in missed)


def markdown(data):
    m = data["machine"]
    yield (f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['system']}, kernel {m['kernel']}; {m['writ']} ({m['commit']}); "
           + ", ".join(f"{name} {version}" for name, version in m["peers"].items()) + ".")
    for name, section in data["sections"].items():
        yield f"\n### {name}\n"
        yield f"{section['date']}; load {section['load_before']} before, {section['load_after']} after.\n"
        table = [cells(r) for r in section["rows"]]
        used = [i for i in range(len(HEAD)) if any(texts[i] for texts in table)]
        yield "| what | who | " + " | ".join(HEAD[i] for i in used) + " |"
        yield "|---|---|" + "".join("---|" if i >= VERDICT else "---:|" for i in used)
        before = None
        for r, texts in zip(section["rows"], table):
            what, before = ("" if r["what"] == before else r["what"]), r["what"]
            yield f"| {what} | {r['who']} | " + " | ".join(texts[i].replace("|", "/") for i in used) + " |"


def main():
    text = "\n".join(markdown(json.loads(FILE.read_text())))
    if len(sys.argv) < 2:
        print(text)
        return
    path = Path(sys.argv[1])
    head, rest = path.read_text().split(BEGIN)
    path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
