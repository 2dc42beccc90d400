"""One side of a few calls whose ids travel in files: DIRECTORY caller SECONDS | callee | callee IDS. See conditions.py.

The caller begins all of them at once, says "asked" with their ids, waits for "answered" (at least SECONDS), ends them and says "ended". The callee
serves those that "asked" names, or the file IDS, when "serve" holds, and says "answered". Both then wait for "leave"; from "count" on the caller counts
steps meanwhile.
"""
import contextlib
import sys
import time

import conditions
import ringside

kMethods = ("first", "second", "third", "fourth", "fifth")
kStepSeconds = 0.02


def caller(directory, at_least_s):
    ringside.set_worker("caller", 0)
    conditions.announce(directory, "caller ready")
    conditions.await_condition(directory, "call")
    until = time.monotonic() + float(at_least_s)
    with ringside.range("asking"), contextlib.ExitStack() as calls:
        ids = [calls.enter_context(ringside.client(method, peer="callee", mode=ringside.ASYNC)).text() for method in kMethods]
        conditions.announce(directory, "asked", "".join("%s %s\n" % pair for pair in zip(kMethods, ids)))
        conditions.await_condition(directory, "answered")
        time.sleep(max(0.0, until - time.monotonic()))
    conditions.announce(directory, "ended")
    conditions.await_condition(directory, "count")
    while not conditions.holds(directory, "leave"):
        ringside.iteration("step")
        time.sleep(kStepSeconds)


def callee(directory, ids=None):
    ringside.set_worker("callee", 1)
    conditions.announce(directory, "callee ready")
    conditions.await_condition(directory, "serve")
    asked = conditions.await_condition(directory, "asked") if ids is None else open(ids).read()
    for line in asked.splitlines():
        method, carried = line.split()
        with ringside.server(method, carried, peer="caller"), ringside.range("work of " + method):
            pass
    conditions.announce(directory, "answered")
    conditions.await_condition(directory, "leave")


{"caller": caller, "callee": callee}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
