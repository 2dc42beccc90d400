#!/usr/bin/python3
"""The reference out of the legacy profiler's raw runs: without what the profiler itself adds, the union of all runs.

    filter.py reference/*.txt [--json]

The profiler wraps each call that it profiles in a record_function of its own, which makes, on the calling thread:
  before the call  a 4-byte tensor: an operator of 4 bytes with two operators inside it, one of 4 bytes and one of 0 bytes on shape
                   [1] (zeros, with empty and zero_), the last before the call's begin;
  in the call      one operator of 288 bytes, the first after the call's begin (the profiler's configuration on its way).
They are told by parent and size, never by name: the job's own `empty` and `zeros` stay. What torch's own table leaves out
([memory], is_leaf, output_nr, _version) is left out by name, as torch does.
"""
import ast
import collections
import glob
import json
import sys

kLeftOutByTorch = {"[memory]", "aten::is_leaf", "aten::output_nr", "aten::_version"}
kSeparator = "#remote_op: "
kConfigurationBytes = 288
kHandleBytes = 4
kSlackUs = 0.11  # the file has one decimal

Event = collections.namedtuple("Event", "start elapsed tid node remote is_async shapes memory name")


class NotAsKnown(Exception):
    """The profiler's own operators are not where they were: another torch, or a broken run."""


def read_run(path):
    events = []
    with open(path) as lines:
        for line in lines:
            start, elapsed, tid, node, remote, is_async, _, shapes, memory, name = line.rstrip("\n").split("\t")
            value = lambda field: field.partition("=")[2]
            events.append(Event(float(start), float(elapsed), int(value(tid)), int(value(node)), value(remote) == "True",
                                value(is_async) == "True", ast.literal_eval(value(shapes)), int(value(memory)), name))
    return events


def last_part(name):
    return name.rpartition(kSeparator)[2]


def is_call(name):
    """Whether the row is a call (rpc_..., to_here) and no operator."""
    return last_part(name).startswith(("rpc_", "to_here#"))


def _left_out_by_torch(name):
    return last_part(name) in kLeftOutByTorch


def _inside(inner, outer):
    return inner is not outer and inner.start >= outer.start - kSlackUs and \
        inner.start + inner.elapsed <= outer.start + outer.elapsed + kSlackUs


def _handle_of(call, operators):
    """The 4-byte tensor made right before `call`: the operator and the two inside it."""
    before = [o for o in operators if o.start + o.elapsed <= call.start + kSlackUs]
    top = [o for o in before if not any(_inside(o, other) for other in before)]
    if not top:
        raise NotAsKnown("no operator before %s" % call.name)
    outer = max(top, key=lambda o: o.start)
    inner = sorted((o for o in before if _inside(o, outer)), key=lambda o: o.start)
    if outer.memory != kHandleBytes or [(o.memory, o.shapes == [[1]]) for o in inner] != [(kHandleBytes, False), (0, True)]:
        raise NotAsKnown("before %s stands %s (%d bytes) with %d inside" % (call.name, outer.name, outer.memory, len(inner)))
    return [outer] + inner


def _configuration_of(call, operators):
    after = [o for o in operators if o.start >= call.start - kSlackUs]
    first = min(after, key=lambda o: o.start, default=None)
    if first is None or first.memory != kConfigurationBytes:
        raise NotAsKnown("after the begin of %s stands %s, not %d bytes" % (call.name, first and first.name, kConfigurationBytes))
    return [first]


def without_profiler(events):
    """The run without what the profiler adds.
    @return (events kept, number of operators left out)
    """
    kept = [e for e in events if not _left_out_by_torch(e.name)]
    added = set()
    for call in kept:
        if not call.is_async:
            continue
        prefix = call.name[:len(call.name) - len(last_part(call.name))]
        operators = [e for e in kept if not is_call(e.name) and id(e) not in added and (e.node, e.tid) == (call.node, call.tid) and
                     e.name == prefix + last_part(e.name)]
        added.update(id(e) for e in _handle_of(call, operators) + _configuration_of(call, operators))
    return [e for e in kept if id(e) not in added], len(added)


def union(runs):
    """{(name, node): calls}: of each row the most that any run saw."""
    most = collections.Counter()
    for events in runs:
        for row, calls in collections.Counter((e.name, e.node) for e in events).items():
            most[row] = max(most[row], calls)
    return dict(most)


def reference(paths):
    """@return ({(name, node): calls}, [(path, operators left out, served operators kept)])"""
    runs, notes = [], []
    for path in sorted(paths):
        kept, added = without_profiler(read_run(path))
        runs.append(kept)
        notes.append((path, added, sum(e.remote and not is_call(e.name) for e in kept)))
    return union(runs), notes


def served_operators(rows):
    """How many operators of `rows` ran for a request."""
    return sum(calls for (name, _), calls in rows.items() if kSeparator in name and not is_call(name))


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    rows, notes = reference([p for given in paths for p in glob.glob(given)])
    if "--json" in sys.argv:
        print(json.dumps([{"name": n, "node": node, "calls": calls} for (n, node), calls in sorted(rows.items())], indent=1))
        return
    for path, added, served in notes:
        print("%s: %d operators of the profiler's own left out, %d served operators stay" % (path, added, served))
    for (name, node), calls in sorted(rows.items()):
        print("%3d  node %2d  %s" % (calls, node, name))
    print("union: %d rows, %d served operators" % (len(rows), served_operators(rows)))


if __name__ == "__main__":
    main()
