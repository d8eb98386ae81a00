#!/usr/bin/env python3
"""scale.py - many sessions at once, and one after the other; what they leave behind.

    bench/scale.py [--quick] [--root] [--at-once N] [--in-a-row N]

A thousand sessions that all run at the same time, and ten thousand in a row; with
--quick fifty and two hundred. Root measures as an ordinary user, and with --root as
root, where sessions also have cgroups. Judged from outside: processes, mounts,
cgroups, files and directories are counted before and after, and the descriptors of a
session that stays while commands come and go. The record of each session is kept on
purpose, and what the workspace has for itself (its home); the rest must be gone.
"""
import argparse
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import measure
import report
import stage
from measure import Way

BUDGET_SPREAD = 20.0  # the 99th start of a hundred, in medians
# Kept on purpose, below the state directory: records, the log that seals them, keys, and one of each per workspace.
KEPT = ("sessions", "homes", "homes-b", "kept", "facts", "realm", "tidied", "order", "log", "keys", "programs")
REMEMBERED = 128  # two descriptors of each of the 64 processes that a session met last
OUT = report.Printer()


class Host:
    """What there is on this machine that a session could leave behind."""

    def __init__(self, place, top):
        self.place, self.top = place, top

    def look(self):
        reap()
        return {"process": self.processes(), "mount": self.mounts(), "cgroup": self.cgroups(), "file or directory": self.files()}

    def processes(self):
        """All below us, wherever they put themselves, and all that run our copy of the program."""
        parents, ours = {}, {os.getpid()}
        for pid in (int(n) for n in os.listdir("/proc") if n.isdigit()):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                parents[pid] = int(fields[1])
                if os.readlink(f"/proc/{pid}/exe").startswith(str(self.place.dir)):
                    ours.add(pid)
            except OSError:
                pass
        grown = True
        while grown:
            grown = {pid for pid, parent in parents.items() if parent in ours} - ours
            ours |= grown
        return {f"process {pid}" for pid in ours - {os.getpid()}}

    def mounts(self):
        """In our own namespace, of things of ours."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return {" ".join(line.split()[3:5]) for line in lines if str(self.place.dir) in line or "writ" in line.split()[4]}

    def cgroups(self):
        """Those of our sessions: others may be at work with the same name."""
        ids = {name.split(".")[0] for name in os.listdir(self.top / "state/writ/sessions")}
        return {d for d, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(d).removeprefix("writ-") in ids}

    def files(self):
        found = set()
        for d, dirs, names in os.walk(self.top):
            if Path(d) == self.top / "state/writ":
                dirs[:] = [name for name in dirs if name not in KEPT]
                names = [name for name in names if name not in KEPT]
            found |= {os.path.join(d, name) for name in (*dirs, *names)}
        for d in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
            found |= {os.path.join(d, name) for name in os.listdir(d) if self.is_ours(os.path.join(d, name))}
        return found

    def is_ours(self, path):
        """Of the account that is measured. Root owns what everybody makes there: of root, only TMPDIR, which is ours, is judged."""
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            return False
        return owner == self.top.stat().st_uid and owner != 0 and (stage.am_root() or os.path.basename(path).startswith("writ"))


def reap():
    """Orphans that ended came to us; they are not left behind, they are ours to wait for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def left_behind(host, before, seconds=20):
    """What is there now and was not before; what is about to end may."""
    end = time.monotonic() + seconds
    while True:
        now = host.look()
        left = {kind: sorted(now[kind] - before[kind]) for kind in now}
        if not any(left.values()) or time.monotonic() > end:
            return left
        time.sleep(0.5)


def show_left(what, left):
    for kind, names in left.items():
        for name in names[:3]:
            print(f"  left behind: {kind}: {name}")
    OUT.add(*(report.row(what, f"{kind} left", len(names), "", 0) for kind, names in left.items()))


class Account:
    """Starts programs as somebody."""

    def __init__(self, place, name, head):
        self.head = head
        self.top, self.env = place.account(name, owned=bool(head))
        self.work, self.writ = self.top / "work", place.writ

    def cmd(self, *words):
        return [*self.head, self.writ, *words]

    def output(self, *words):
        return subprocess.run(self.cmd(*words), cwd=self.work, env=self.env, stdout=subprocess.PIPE, text=True, check=True).stdout


def at_once(account, count):
    """Starts them all as fast as it can, and waits until each has said that it runs."""
    says = ["run", "-q", "--", "sh", "-c", "echo here; read word"]
    os.chdir(account.work)
    started, ends, sessions, failed = {}, [], {}, 0
    poll = select.epoll()
    errors = os.open(account.top / "errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def collect(timeout):
        nonlocal failed
        for fd, _ in poll.poll(timeout):
            took = time.perf_counter() - started.pop(fd)
            if os.read(fd, 64):
                ends.append(took * 1000)
            else:
                failed += 1
            poll.unregister(fd)
            os.close(fd)
    for _ in range(count):
        word, answer = os.pipe(), os.pipe()
        began = time.perf_counter()
        pid = os.posix_spawnp(account.cmd()[0], account.cmd(*says), account.env, file_actions=[
            (os.POSIX_SPAWN_DUP2, word[0], 0), (os.POSIX_SPAWN_DUP2, answer[1], 1), (os.POSIX_SPAWN_DUP2, errors, 2)])
        os.close(word[0])
        os.close(answer[1])
        sessions[pid] = word[1]
        started[answer[0]] = began
        poll.register(answer[0], select.EPOLLIN)
        collect(0)
    while started:
        collect(600)
    os.close(errors)
    return sessions, ends, failed


def end_all(sessions):
    """A third ends by itself, a third is asked to, a third is killed; how many ended in a way they should not."""
    strange = 0
    for i, (pid, fd) in enumerate(sessions.items()):
        if i % 3 == 1:
            os.kill(pid, signal.SIGTERM)
        elif i % 3 == 2:
            os.kill(pid, signal.SIGKILL)
        os.close(fd)
    for i, pid in enumerate(sessions):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        # `read` at the end of its input says 1. One that was asked may have seen that end first.
        strange += code not in {0: (1,), 1: (1, 143, -15), 2: (-9, 1)}[i % 3]
    return strange


def answer(account, count, seconds=5):
    """How many sessions answer; one begins to only after its command has been started."""
    end = time.monotonic() + seconds
    while True:
        listed = len(account.output("ps").splitlines()) - 1
        if listed >= count or time.monotonic() > end:
            return listed
        time.sleep(0.2)


def crowd(host, account, count):
    what = f"{count:,} sessions at once"
    account.output("run", "-q", "--", "true")
    before = host.look()
    sessions, took, failed = at_once(account, count)
    listed = answer(account, count)
    pids = [name.split()[1] for name in host.processes()]
    mib = sum(pss(pid) for pid in pids) / 1024
    OUT.add(report.row(what, "failed to start", failed, "", 0), report.row(what, "seen by writ ps", listed, "", count, more=True))
    if took:
        median, p99 = measure.percentile(took, 50), measure.percentile(took, 99)
        OUT.add(report.row(what, "start, p99", p99 / median, "x median", BUDGET_SPREAD, note=f"median {median:.0f} ms, p99 {p99:.0f} ms"))
    OUT.add(report.row(what, "memory of each", mib / count, "MiB PSS", note=f"{len(pids):,} processes, command included"))
    strange = end_all(sessions)
    OUT.add(report.row(what, "ended strangely", strange, "", 0, note="a third by itself, by SIGTERM, by SIGKILL"))
    # What was killed cannot clean up; the next session does it.
    account.output("run", "-q", "--", "true")
    show_left(what, left_behind(host, before))


def pss(pid):
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def row_of_sessions(host, account, count):
    what = f"{count:,} sessions in a row"
    way = Way(account.cmd("run", "-q", "--", "/bin/true"), env=account.env)
    measure.run(way, account.work)
    before, took, failed = host.look(), [], 0
    for i in range(count):
        try:
            took.append(measure.run(way, account.work)[0])
        except measure.Failed as e:
            failed += 1
            print(f"  session {i + 1}: {e}")
    median, p99 = measure.percentile(took, 50), measure.percentile(took, 99)
    OUT.add(report.row(what, "failed", failed, "", 0), report.row(what, "start, p99", p99 / median, "x median", BUDGET_SPREAD,
                                                                note=f"median {median:.2f} ms, p99 {p99:.2f} ms"))
    # The first and the last tenth: does it grow slower with what is kept?
    tenth = max(1, len(took) // 10)
    first, last = measure.percentile(took[:tenth], 50), measure.percentile(took[-tenth:], 50)
    OUT.add(report.row(what, "last tenth", last / first, "x first tenth", note=f"{first:.2f} ms, then {last:.2f} ms"))
    show_left(what, left_behind(host, before))
    account.output("session", "prune")
    kept = len(os.listdir(account.top / "state/writ/sessions"))
    OUT.add(report.row(what, "records kept", kept, "", 500, note="after writ session prune"))


def descriptors(pids):
    """How many they have, and how many of /proc/PID."""
    names = [os.readlink(fd) for pid in pids for fd in Path(f"/proc/{pid}/fd").iterdir()]
    processes = sum(1 for name in names if re.fullmatch(r"/proc/\d+(/status)?( \(deleted\))?", name))
    return len(names) - processes, processes


def one_session(host, account, count):
    """Commands come and go in a session that stays."""
    what = f"{count:,} commands in one session"
    sid = account.output("session", "start").strip()
    try:
        account.output("session", "exec", sid, "--", "true")
        time.sleep(0.5)
        pids = sorted(name.split()[1] for name in host.processes())
        try:
            before, _ = descriptors(pids)
        except PermissionError:
            OUT.add(report.row(what, "descriptors left", missing="only root may look"))
            return
        for _ in range(count):
            account.output("session", "exec", sid, "--", "true")
        time.sleep(1)
        after = sorted(name.split()[1] for name in host.processes())
        count_after, remembered = descriptors(after)
        OUT.add(report.row(what, "descriptors left", count_after - before, "", 0),
                report.row(what, "processes remembered", remembered, "", REMEMBERED, note="descriptors of /proc/PID"),
                report.row(what, "processes left", len(set(after) - set(pids)), "", 0))
    finally:
        account.output("stop", sid)


def scale(place, name, head, opt):
    account = Account(place, name, head)
    host = Host(place, account.top)
    account.output("run", "-q", "--", "true")  # the first makes what is kept
    (account.top / "errors").touch()
    one_session(host, account, max(10, opt.in_a_row // 100))
    crowd(host, account, opt.at_once)
    row_of_sessions(host, account, opt.in_a_row)


def main():
    ap = argparse.ArgumentParser(description="many sessions, and what they leave behind")
    ap.add_argument("--at-once", type=int, default=1000)
    ap.add_argument("--in-a-row", type=int, default=10000)
    ap.add_argument("--quick", action="store_true", help="50 at once, 200 in a row")
    ap.add_argument("--root", action="store_true", help="as root, not as an ordinary user")
    opt = ap.parse_args()
    if opt.quick:
        opt.at_once, opt.in_a_row = 50, 200
    if opt.root and not stage.am_root():
        sys.exit("scale.py: --root is for root")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    measure.adopt_orphans()
    stage.make_user()
    who = "root" if opt.root else "ordinary user"
    load = report.load_average()
    print(f"\n== scale, {who}")
    with stage.Stage() as place:
        scale(place, "root" if opt.root else "user", [] if opt.root else stage.become(), opt)
    print(f"\n{report.verdict({f'scale, {who}': OUT.rows})}")
    report.save(f"scale, {who}", OUT.rows, load)


if __name__ == "__main__":
    main()
