"""bounds.py - how long something may take.

A loaded machine makes a clock lie, so `make test` fails only where a call must have
waited for a timeout: after SLACK times the bound. With WRIT_BOUNDS=exact, as
bench/bounds.py runs the same tests, the bound itself counts.
"""
import os

EXACT = os.environ.get("WRIT_BOUNDS") == "exact"
SLACK = 10


def within(seconds, bound):
    return seconds < (bound if EXACT else max(10, bound * SLACK))
