"""Every record that a program tried, against one capture of it: kept, lost and counted, or outside. Exactly."""
import bisect
import collections

import numpy

from board import kBegins, kRests
from harness import check

from rsd.index import Job
from rsd.shapes import kLevels

Tried = collections.namedtuple("Tried", "pid thread number after before")  # numpy columns; its time lies between the two


def tried_records(log, pids):
    """The log's records, each with the bounds of its time."""
    log = log[log["thread"] != 0]
    order = numpy.argsort(log["thread"], kind="stable")  # a thread's own entries stay in their order
    log = log[order]
    begins = log[log["number"] == kBegins]
    for thread, pid in zip(begins["thread"].tolist(), begins["ticks"].tolist()):
        pids[thread] = pid
    times = log[log["number"] != kBegins]
    following = numpy.roll(times, -1)
    before = numpy.where(following["thread"] == times["thread"], following["ticks"], numpy.uint64((1 << 64) - 1))
    if len(before):
        before[-1] = (1 << 64) - 1
    records = times["number"] != kRests
    thread = times["thread"][records]
    pid = numpy.array([pids[t] for t in thread.tolist()], dtype=numpy.int64)
    return Tried(pid, thread, times["number"][records], times["ticks"][records], before[records])


kTorch = 1
kOperator = "aten::neg"  # one in each range of torch_churn.py


class Account:
    """One dump. certain: records whose time is inside the capture for sure; possible: those on one of its edges.
    torch: pid of the process that has it all the time: its operators are accounted for, too. Others may not have attached yet where their first ones run.
    """

    def __init__(self, output, tried, selected, torch=None):
        job = Job(output)
        problems = job.problems()
        check(not problems, "the reader on %s: %s", output, "; ".join(problems[:5]))
        self.output, self.dump = output, job.dumps[0]
        start, stop = self.dump.header.start_ticks, self.dump.footer.stop_ticks
        mine = numpy.isin(tried.pid, selected) if selected else numpy.ones(len(tried.pid), dtype=bool)
        certain = mine & (tried.after >= start) & (tried.before <= stop)
        possible = mine & ~certain & (tried.before >= start) & (tried.after <= stop)
        payload = tried.thread.astype(numpy.uint64) << numpy.uint64(32) | tried.number.astype(numpy.uint64)
        self.certain = dict(zip(payload[certain].tolist(), tried.pid[certain].tolist()))
        self.possible = dict(zip(payload[possible].tolist(), tried.pid[possible].tolist()))
        self.tried = tried
        events = job.events[0]
        kept = [m[8] for m in events.marks] + [r.payload for r in events.ranges if r.end is not None and r.payload is not None]
        self.kept = set(kept)
        check(len(kept) == len(self.kept), "%s: %d records are there twice", output, len(kept) - len(self.kept))
        self.lost = self._lost()
        self.torch = torch
        self.operators = self._operators(events) if torch else 0
        self.with_torch = {p.pid for p in self.dump.processes.values() if any(s.id == kTorch and kLevels[s.level] != "Absent" for s in p.sources)}

    def _operators(self, events):
        """How many of the torch process are whole and inside the capture. In each of its ranges there is one, at most."""
        process = [index for index, p in self.dump.processes.items() if p.pid == self.torch]
        its = [r for r in events.ranges if r.process in process and r.end is not None]
        operators = collections.defaultdict(list)
        for r in sorted((r for r in its if r.name == kOperator), key=lambda r: r.begin):
            operators[r.tid].append(r.begin)
        for r in its:
            if r.payload is None:
                continue
            begins = operators[r.tid]
            inside = bisect.bisect_right(begins, r.end) - bisect.bisect_left(begins, r.begin)
            check(inside == 1 or inside == 0 and (self.lost[self.torch] or r.payload not in self.certain), "%s: %d operators in range %#x of pid %d",
                  self.output, inside, r.payload, self.torch)
        start, stop = self.dump.header.start_ticks, self.dump.footer.stop_ticks
        return sum(start <= r.begin and r.end <= stop for r in its if r.name == kOperator)

    def _lost(self):
        """By pid, whatever the reason."""
        lost = collections.Counter()
        pids = {index: process.pid for index, process in self.dump.processes.items()}
        for lane in self.dump.footer.lanes:
            lost[pids[lane.process]] += lane.lost
        for end in self.dump.footer.processes:
            lost[pids[end.process]] += sum(end.losses)
        return lost

    def _around(self):
        """By pid: records outside the capture, from the time in which a lane of the process lost some on both sides of one of its ends. A lane
        counts what it loses and tells when, but not each one's time."""
        start, stop = self.dump.header.start_ticks, self.dump.footer.stop_ticks
        pids = {index: process.pid for index, process in self.dump.processes.items()}
        around = collections.Counter()
        for lane in self.dump.footer.lanes:
            first, last = lane.first_lost_ticks, lane.last_lost_ticks
            if lane.lost and (first < start or last > stop):
                its = (self.tried.pid == pids[lane.process]) & (self.tried.before >= first) & (self.tried.after <= last)
                around[pids[lane.process]] += int((its & ((self.tried.before < start) | (self.tried.after > stop))).sum())
        return around

    def check(self):
        strange = self.kept - self.certain.keys() - self.possible.keys()
        check(not strange, "%s: %d records that nobody made in the capture, as %s", self.output, len(strange), [hex(p) for p in sorted(strange)[:4]])
        missing = collections.Counter(pid for payload, pid in self.certain.items() if payload not in self.kept)
        unknown = collections.Counter(pid for payload, pid in self.possible.items() if payload not in self.kept) + self._around()
        of_pid, at_edge = collections.Counter(self.certain.values()), collections.Counter(self.possible.values())
        if self.torch:
            around = self._around()[self.torch]
            check(self.operators <= of_pid[self.torch] + at_edge[self.torch], "%s: %d operators of pid %d, which has made %d, and %d at an edge", self.output,
                  self.operators, self.torch, of_pid[self.torch], at_edge[self.torch])
            missing[self.torch] += max(of_pid[self.torch] - self.operators, 0)
            unknown[self.torch] += at_edge[self.torch] + around
        for pid in self.with_torch - {self.torch}:
            unknown[pid] += of_pid[pid] + at_edge[pid]
        for pid in set(missing) | set(self.lost):
            check(missing[pid] <= self.lost[pid] <= missing[pid] + unknown[pid], "%s: %d records of pid %d are missing, %d at an edge; counted as lost %d",
                  self.output, missing[pid], pid, unknown[pid], self.lost[pid])

    def totals(self):
        lost = sum(self.lost.values())
        return {"produced": len(self.kept) + self.operators + lost, "kept": len(self.kept), "operators": self.operators, "lost": lost}
