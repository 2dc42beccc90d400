"""Every record that a program tried, against one capture of it: kept, lost and counted, or outside. Exactly."""
import collections

import numpy

from board import kBegins, kRests
from harness import check

from rsd.index import Job

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


class Account:
    """One dump. certain: records whose time is inside the capture for sure; possible: those on one of its edges."""

    def __init__(self, output, tried, selected):
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
        kept = [m[8] for m in events.marks] + [r.payload for r in events.ranges if r.end is not None]
        self.kept = set(kept)
        check(len(kept) == len(self.kept), "%s: %d records are there twice", output, len(kept) - len(self.kept))
        self.lost = self._lost()

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
        for pid in set(missing) | set(self.lost):
            check(missing[pid] <= self.lost[pid] <= missing[pid] + unknown[pid], "%s: %d records of pid %d are missing, %d at an edge; counted as lost %d",
                  self.output, missing[pid], pid, unknown[pid], self.lost[pid])

    def totals(self):
        lost = sum(self.lost.values())
        return {"produced": len(self.kept) + lost, "kept": len(self.kept), "lost": lost}
