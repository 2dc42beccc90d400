"""Conditions between processes that share nothing but a directory: a condition holds once its file exists.

Used by the workloads (a worker says "ready" and waits for "go") and by the tests that drive them, so that no test has to
guess how long something takes.
"""
import os
import time

kPollSeconds = 0.002
kDeadlineSeconds = 120.0


class DeadlineMissed(Exception):
    """A condition did not come to hold in time; the text names it."""


def announce(directory, name, text=""):
    """Makes the condition `name` hold. The file appears whole: written aside, then renamed."""
    path = os.path.join(directory, name)
    aside = "%s.%d.tmp" % (path, os.getpid())
    with open(aside, "w") as out:
        out.write(text)
    os.rename(aside, path)


def holds(directory, name):
    return os.path.exists(os.path.join(directory, name))


def await_condition(directory, name, deadline_s=kDeadlineSeconds):
    """Returns the text of condition `name` as soon as it holds."""
    path = os.path.join(directory, name)
    end = time.monotonic() + deadline_s
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise DeadlineMissed("wait for %s: not there after %g s" % (path, deadline_s))
        time.sleep(kPollSeconds)
    with open(path) as text:
        return text.read()
