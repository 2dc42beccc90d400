"""A deterministic piece of training that can watch itself by torch's own profilers: forward, backward, optimizer, a DataLoader with workers;
with --elsewhere a function that torch runs on another thread.

    profiled.py --out FILE [--profiler none|kineto|legacy] [--shapes] [--memory] [--workers N] [--elsewhere] [--conditions DIR]

Everything happens inside one user range, "measured", after a round of warming up. Writes a JSON object: "loss", and with a profiler "events", in
the order of their begin (in us where "resolution_ns" is 1000): name, thread (numbered from 0 as they appear), begin, end, sequence, forward_thread, shapes, bytes; and "table", the
profiler's own summary: {name: calls}; "rows", the same by input shapes: [name, shapes, calls, bytes, own bytes]. With --conditions it says
DIR/ready before that range, begins it after DIR/go, says DIR/done and leaves after DIR/leave.
"""
import argparse
import collections
import inspect
import json

import torch
from torch.utils.data import DataLoader, Dataset

import conditions

kMeasured = "measured"
kBatches, kBatch, kFeatures = 4, 5, 8


class Squares(Dataset):
    """Makes its items by operators, so that the workers have some."""

    def __len__(self):
        return kBatches * kBatch

    def __getitem__(self, index):
        return torch.full((kFeatures,), float(index)).mul(0.1).sin()


@torch.jit.script
def elsewhere(x):
    """Runs on a thread of torch's own pool, which is handed this one's profiler. In place: torch counts memory of any thread for the ranges of that time."""
    return torch.cos_(x)


@torch.jit.script
def hand_over(x):
    return torch.jit.fork(elsewhere, x)


class Training:
    def __init__(self, workers, elsewhere):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(kFeatures, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.here = torch.ones(2) if elsewhere else None
        self.loader = DataLoader(Squares(), batch_size=kBatch, num_workers=workers)

    def epoch(self):
        if self.here is not None:
            # First: the range over there may end a little after the wait for its result. Not waited for in TorchScript, where who waits may end on that thread, too.
            # Kept: else it is chance on which thread its memory is given back.
            self.handed_over = hand_over(self.here)
            self.handed_over.wait()
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(batch).pow(2).sum()
            loss.backward()
            self.optimizer.step()
        with torch.autograd.profiler.record_function("user range"):
            torch.add(torch.ones(2), 1)
        return loss.item()


def renumbered(numbers):
    """Each number by the order of its first appearance; 0, which is none, is none."""
    order = {}
    return [order.setdefault(n, len(order)) if n else None for n in numbers]


def kineto_events(profiler):
    """The raw list: events() drops an only child of the same name."""
    raw = profiler.profiler.kineto_results.events()
    begin = (lambda e: e.start_ns()) if hasattr(raw[0], "start_ns") else (lambda e: e.start_us() * 1000)
    length = (lambda e: e.duration_ns()) if hasattr(raw[0], "duration_ns") else (lambda e: e.duration_us() * 1000)
    raw = sorted(raw, key=begin)
    return [dict(name=e.name(), thread=e.start_thread_id(), begin=begin(e), end=begin(e) + length(e), sequence=e.sequence_nr(),
                 forward_thread=e.fwd_thread_id(), shapes=e.shapes(), bytes=e.nbytes()) for e in raw]


def legacy_events(profiler):
    """The raw list, too: function_events has lost the only children of the same name."""
    return [dict(name=e.name, thread=e.thread, begin=e.time_range.start * 1000, end=e.time_range.end * 1000, sequence=e.sequence_nr,
                 forward_thread=e.fwd_thread or 0, shapes=e.input_shapes, bytes=e.cpu_memory_usage)
            for e in sorted(profiler.raw_events, key=lambda e: e.time_range.start)]


def make_profiler(which, shapes, memory):
    if which == "kineto":
        from torch.profiler import ProfilerActivity, profile

        return profile(activities=[ProfilerActivity.CPU], record_shapes=shapes, profile_memory=memory)
    import torch.autograd.profiler_legacy as profiler_legacy

    profiler, parse = profiler_legacy.profile(record_shapes=shapes, profile_memory=memory), profiler_legacy._parse_legacy_records

    def keep(records):
        parsed = parse(records)
        profiler.raw_events = list(parsed)
        return parsed

    profiler_legacy._parse_legacy_records = keep
    return profiler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--profiler", choices=("none", "kineto", "legacy"), default="none")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--elsewhere", action="store_true")
    parser.add_argument("--conditions")
    options = parser.parse_args()
    torch.set_num_threads(1)
    Training(options.workers, options.elsewhere).epoch()
    training = Training(options.workers, options.elsewhere)
    told = {"torch": torch.__version__}
    if options.conditions:
        conditions.announce(options.conditions, "ready")
        conditions.await_condition(options.conditions, "go")
    if options.profiler == "none":
        with torch.autograd.profiler.record_function(kMeasured):
            told["loss"] = training.epoch()
    else:
        with make_profiler(options.profiler, options.shapes, options.memory) as profiler:
            with torch.autograd.profiler.record_function(kMeasured):
                told["loss"] = training.epoch()
        events = (kineto_events if options.profiler == "kineto" else legacy_events)(profiler)
        for field in ("thread", "forward_thread"):
            for event, number in zip(events, renumbered([e[field] for e in events])):
                event[field] = number
        told["events"] = events
        told["resolution_ns"] = 1000 if all(e["begin"] % 1000 == 0 for e in events) else 1
        # Up to 2.8 the profiler compares memory's times with operators' as floats of microseconds since the epoch: right within 256 ns.
        in_interval = inspect.signature(torch.autograd.profiler_util.MemRecordsAcc.in_interval)
        told["rows_are_exact"] = "start_us" not in in_interval.parameters
        told["rows"] = [[row.key, str(row.input_shapes), row.count, row.cpu_memory_usage, row.self_cpu_memory_usage]
                        for row in profiler.key_averages(group_by_input_shape=True)]
        told["table"] = dict(collections.Counter({row.key: row.count for row in profiler.key_averages()}))
    with open(options.out, "w") as out:
        json.dump(told, out)
    if options.conditions:
        conditions.announce(options.conditions, "done")
        conditions.await_condition(options.conditions, "leave")


if __name__ == "__main__":
    main()
