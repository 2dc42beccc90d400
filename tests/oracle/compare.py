"""Compares a job's table with the legacy profiler's reference, row by row.

A row is (name, Node ID) with its number of calls. For every RPC: the same name chain, node and number of calls; every operator of
the reference inside it; beyond the reference at most kMostExtras served operators in all, each of them named below with its reason.
"""
import json

from filter import is_call, last_part, served_operators

kMostExtras = 3
# (name of the served operator): why the profiler does not show it and we do. None is known.
kKnownExtras = {}


def rows_of_table(text):
    """{(name, node): calls} of `ringside table --json`."""
    rows = {}
    for row in json.loads(text)["rows"]:
        key = (row["name"], row["node_id"])
        rows[key] = rows.get(key, 0) + row["count"]
    return rows


def _tell(rows):
    return "; ".join("%s on node %d x %d" % (name, node, calls) for (name, node), calls in sorted(rows.items()))


def differences(reference, ours):
    """What is wrong with `ours`, as sentences; none: it matches."""
    wrong = []
    calls = {row: n for row, n in reference.items() if is_call(row[0])}
    our_calls = {row: n for row, n in ours.items() if is_call(row[0])}
    for row in sorted(calls.keys() | our_calls.keys()):
        if calls.get(row, 0) != our_calls.get(row, 0):
            wrong.append("call %s on node %d: the reference has %d, ours %d" % (row[0], row[1], calls.get(row, 0), our_calls.get(row, 0)))
    missing = {row: n - ours.get(row, 0) for row, n in reference.items() if not is_call(row[0]) and n > ours.get(row, 0)}
    if missing:
        wrong.append("operators missing: " + _tell(missing))
    extras = extras_of(reference, ours)
    if sum(extras.values()) > kMostExtras:
        wrong.append("%d served operators beyond the reference, at most %d are allowed: %s" % (sum(extras.values()), kMostExtras, _tell(extras)))
    unnamed = {row: n for row, n in extras.items() if last_part(row[0]) not in kKnownExtras}
    if unnamed:
        wrong.append("served operators beyond the reference without a known reason: " + _tell(unnamed))
    return wrong


def extras_of(reference, ours):
    """Served operators that ours has beyond the reference: {(name, node): how many more}."""
    return {row: n - reference.get(row, 0) for row, n in ours.items()
            if "#remote_op: " in row[0] and not is_call(row[0]) and n > reference.get(row, 0)}


def summary(reference, ours):
    return "%d calls and %d served operators of the reference found, %d beyond it" % (
        sum(n for row, n in reference.items() if is_call(row[0])), served_operators(reference), sum(extras_of(reference, ours).values()))
