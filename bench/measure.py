"""measure.py - run commands in turn, and what their times say.

One of each, again and again, in an order that moves on by one each round, so that a
busy machine slows all of them and nobody always comes after the same neighbour.
"""
import ctypes
import math
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field

PR_SET_CHILD_SUBREAPER = 36
WARM_UP = 2
LEAST = 12  # even the slowest is run that often


class Failed(Exception):
    """A command that did not end with 0; the text is the last it said."""


@dataclass
class Way:
    """One way to do the same thing."""
    cmd: list
    env: dict = field(default_factory=dict)
    before: list = None  # run first, and not timed
    peer: bool = False  # if it fails it is left out, with the reason


@dataclass
class Times:
    """Of one way: milliseconds of each run, and of CPU of everything it started, if known."""
    wall: list
    cpu: list

    @property
    def median(self):
        return statistics.median(self.wall)

    @property
    def p99(self):
        return percentile(self.wall, 99)

    @property
    def cpu_median(self):
        return statistics.median(self.cpu) if self.cpu else None


def percentile(values, p):
    """The nearest rank: of fewer than a hundred the 99th is the greatest."""
    return sorted(values)[max(0, math.ceil(len(values) * p / 100) - 1)]


def adopt_orphans():
    """What a run leaves behind comes to us, and counts."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(way, cwd):
    """Milliseconds until it has ended, and of CPU of everything it started."""
    if way.before:
        run(Way(way.before), cwd)
    with tempfile.TemporaryFile() as errors, open(os.devnull, "r+b") as null:
        os.chdir(cwd)
        start = time.perf_counter()
        pid = os.posix_spawnp(way.cmd[0], way.cmd, {**os.environ, **way.env}, file_actions=[
            (os.POSIX_SPAWN_DUP2, null.fileno(), 0), (os.POSIX_SPAWN_DUP2, null.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
        _, status, used = os.wait4(pid, 0)
        took = time.perf_counter() - start
        cpu = used.ru_utime + used.ru_stime
        try:
            while True:
                _, _, used = os.wait4(-1, 0)
                cpu += used.ru_utime + used.ru_stime
        except ChildProcessError:
            pass
        if status:
            errors.seek(0)
            said = errors.read()[-300:].decode(errors="replace").strip().splitlines()
            raise Failed(said[-1] if said else f"ended with {os.waitstatus_to_exitcode(status)}")
    return took * 1000, cpu * 1000


def share(count, rounds, i):
    """Whether one that is run `count` times in all of `rounds` has its turn in round i."""
    return (i + 1) * count // rounds > i * count // rounds


def interleave(ways, rounds, cwd, most=None):
    """Times of each way by name, or a string: why there are none.

    No peer takes more than about `most` seconds: who is slow has fewer turns.
    """
    got, turns = {}, {}
    for name, way in ways.items():
        try:
            took = min(run(way, cwd)[0] for _ in range(WARM_UP))
        except (Failed, OSError) as e:
            if not way.peer:
                raise
            got[name] = f"does not run here: {e}"
            continue
        got[name] = Times([], [])
        turns[name] = min(rounds, max(LEAST, int(most * 1000 / took))) if most and way.peer else rounds
    order = list(turns)
    for i in range(rounds):
        for name in order:
            if not share(turns[name], rounds, i) or isinstance(got[name], str):
                continue
            try:
                wall, cpu = run(ways[name], cwd)
            except Failed as e:
                if not ways[name].peer:
                    raise
                got[name] = f"fails now and then: {e}"
                continue
            got[name].wall.append(wall)
            got[name].cpu.append(cpu)
        order.append(order.pop(0))
    return got
