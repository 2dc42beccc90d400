#!/usr/bin/python3
"""MPI programs that nobody changed, four ranks, on each library: every kind of message and collective, against what the program knows of them itself.

    mpi_calls.py CASE       CASE: messages collectives large middle killed; the programs: workloads/mpi
"""
import os
import signal
import sys

from harness import check, Failed, kSource, main, Node, Trace, wait_until
from mpi_launch import require
from mpi_log import check_collectives, check_messages, kMpi, lines_of, Recorded, Said
from rsd.index import Job

sys.path.append(os.path.join(kSource, "tests", "bench"))
from ratios import cpu_seconds  # noqa: E402

kRanks = 4
kFull = 2
kOnEach = ("openmpi4", "mpich4", "openmpi5", "mpich5")


def traced(workspace, library, program, *words):
    """A whole run. @return (Job, Said)"""
    name = "%s-%s" % (program, library.name)
    log, output = workspace.path(name + ".log"), workspace.path(name)
    workspace.ringside("run", "-o", output, "--table", workspace.path(name + ".table"), "--", *library.mpirun(kRanks, library.program(program), log, *words),
                       environment=library.environment(), name="run-" + name)
    job = read(output)
    return job, Said(log, kRanks)


def read(output):
    job = Job(output)
    check(not job.problems(), "%s, the reader: %s", output, "; ".join(job.problems()))
    check(sum(dump.lost() for dump in job.dumps) == 0, "records were lost")
    levels = {p.rank: s.level for dump in job.dumps for p in dump.processes.values() for s in p.sources if s.id == kMpi and p.rank >= 0}
    check(levels == dict.fromkeys(range(kRanks), kFull), "levels of MPI by rank: %s", levels)
    return job


def falsified(lines):
    """What a log could say that is not so: (what was done to it, the lines). Each must be found out."""
    def changed(rank, number, change):
        copy = [list(each) for each in lines]
        words = copy[rank][number].split()
        change(words)
        copy[rank][number] = " ".join(words)
        return copy

    def nth(rank, kind, wanted):
        return [i for i, line in enumerate(lines[rank]) if line.startswith(kind)][wanted]

    def set_word(place, value):
        return lambda words: words.__setitem__(place, value)

    first, second = nth(0, "R", 1), nth(0, "R", 2)
    crossed = [list(each) for each in lines]
    for here, there in ((first, second), (second, first)):
        crossed[0][here] = " ".join(lines[0][here].split()[:4] + lines[0][there].split()[4:])
    yield "two messages crossed", crossed
    missing = [list(each) for each in lines]
    del missing[1][nth(1, "S", 3)]
    yield "a message that was not sent", missing
    yield "another tag", changed(2, nth(2, "S", 2), set_word(3, "999"))
    yield "another communicator", changed(3, nth(3, "S", 1), set_word(2, "world/7.0"))
    yield "another function", changed(3, nth(3, "S", 1), set_word(1, "MPI_Psend"))


def found_out(check_of, lines, case):
    try:
        check_of(Said(None, kRanks, lines))
    except (Failed, KeyError):
        return
    check(False, "the check does not see %s", case)


def messages(workspace):
    spans = {}
    for library in each_library():
        job, said = traced(workspace, library, "messages")
        spans[library.name] = check_messages(job, said)
        print("%s: %d messages" % (library.name, len(spans[library.name])), flush=True)
    lines = [lines_of(workspace.path("messages-%s.log" % library.name), rank) for rank in range(kRanks)]
    for case, wrong in falsified(lines):
        found_out(lambda log: check_messages(job, log), wrong, case)
    check(len({tuple(sorted(each.items())) for each in spans.values()}) == 1, "span ids differ between %s", ", ".join(spans))


def each_library():
    """Those that are here; where one is missing the test says so and is skipped, after the others."""
    for library in require(*kOnEach[:2]):
        yield library
    yield from require(*kOnEach[2:])


def collectives(workspace):
    for library in each_library():
        job, said = traced(workspace, library, "collectives")
        print("%s: %d collectives" % (library.name, check_collectives(job, said)), flush=True)
    lines = [lines_of(workspace.path("collectives-%s.log" % library.name), rank) for rank in range(kRanks)]
    for place, value in ((1, "MPI_Barter"), (2, "world/9.9"), (3, "77"), (4, "later")):
        wrong = [list(each) for each in lines]
        words = wrong[2][5].split()
        words[place] = value
        wrong[2][5] = " ".join(words)
        found_out(lambda log: check_collectives(job, log), wrong, value)
    found_out(lambda log: check_collectives(job, log), [lines[0], lines[1][:-1], lines[2], lines[3]], "a collective that one rank left out")


def large(workspace):
    """The large-count form of every function, under the plain names and with the plain forms' ids."""
    (library, plain) = require("large5", "mpich5")
    job, said = traced(workspace, library, "messages")
    spans = check_messages(job, said)
    check(spans == check_messages(*traced(workspace, plain, "messages")), "the ids of the large-count forms are others")
    print("%d messages, %d collectives" % (len(spans), check_collectives(*traced(workspace, library, "collectives"))), flush=True)


class Running:
    """rounds.c on a node of its own, after its first rounds."""

    def __init__(self, workspace, library, *words):
        self.workspace, self.node = workspace, Node(workspace, "node-" + library.name)
        self.log, self.say, self.until = (workspace.path("%s.%s" % (library.name, name)) for name in ("log", "say", "until"))
        self.job = workspace.start("job-" + library.name, self.node.job_command(*library.mpirun(kRanks, library.program("rounds"), self.log, self.say,
                                                                                              self.until, *words)),
                                   library.environment(self.node.environment()))
        wait_until("the first rounds", lambda: all(os.path.exists("%s.%d" % (self.say, rank)) for rank in range(kRanks)), children=[self.job])

    def until_said(self, more, rank=0):
        """Waits until a rank has said so many lines more."""
        begun = len(lines_of(self.log, rank))
        wait_until("more rounds", lambda: len(lines_of(self.log, rank)) > begun + more, children=[self.job])

    def end(self):
        open(self.until, "w").close()


def middle(workspace):
    """Captures that begin and end while the job runs: what lies in them joins, with the ids that it would have had in a capture of all of it."""
    for library in each_library():
        running = Running(workspace, library)
        trace = Trace(workspace, [running.node], workspace.path("middle-" + library.name))
        running.until_said(250)
        trace.end()
        running.until_said(50)
        last = Trace(workspace, [running.node], workspace.path("last-" + library.name))
        running.until_said(200)
        running.end()
        running.job.wait()
        last.end(expect=None)
        running.node.stop()
        said, numbers = Said(running.log, kRanks), {}
        for output in (trace.output, last.output):
            job = read(output)
            numbers[output] = check_in_the_middle(job, said)
        check(not numbers[trace.output] & numbers[last.output], "two messages have one id")


def check_in_the_middle(job, said):
    """A capture holds for each rank one piece of its log, whole; its halves are the program's messages. @return span ids"""
    messages, recorded = said.messages(), Recorded(job, kRanks)
    truth, whole = {}, 0
    order = {}  # of each channel: its messages as the sender sent them
    for rank in range(kRanks):
        for _, label, tag, payload in said.sent[rank]:
            order.setdefault((rank, messages[payload].receiver, label, tag), []).append(payload)
    for rank, halves in enumerate(recorded.halves):
        seen = []
        for half in halves:
            other = int(half.peer.split()[1])
            source, to = (other, rank) if half.server else (rank, other)
            channel = order[source, to, half.module, half.wire_type]
            check(1 <= half.wire_id <= len(channel), "message %d of a channel of %d", half.wire_id, len(channel))
            payload = channel[half.wire_id - 1]
            check(truth.setdefault(half.span, payload) == payload, "span %016x is of %d and of %d", half.span, truth[half.span], payload)
            if not half.server:
                seen.append(payload)
        mine = [payload for _, _, _, payload in said.sent[rank]]
        begin = mine.index(seen[0])
        check(mine[begin:begin + len(seen)] == seen, "rank %d: what the capture holds is no piece of its messages", rank)
    check(len(set(truth.values())) == len(truth), "one message has two ids")
    for rank, ones in enumerate(recorded.collectives):
        said_there = [line[:3] for line in said.collectives[rank]]
        there = [(one.name, one.attributes.category, one.payload) for one in ones]
        begin = said_there.index(there[0])
        check(said_there[begin:begin + len(there)] == there, "rank %d: what the capture holds is no piece of its collectives: %s, from its %d-th on %s", rank,
              there, begin, said_there[begin:begin + len(there)])
        check(all(one.kind == "range" for one in ones[:-1]), "rank %d: one in the middle has not ended", rank)
    for call in job.calls:
        whole += call.state == "Joined"
        check(call.state in ("Joined", "Cut"), "%s is %s", vars(call.either), call.state)
    check(whole > 100 and whole >= 0.8 * len(job.calls), "%d of %d messages of a capture in the middle are joined", whole, len(job.calls))
    return set(truth)


def killed(workspace):
    """A rank that waits for what nobody sends is killed: the call that it was in is in the dump, open since then."""
    (library,) = require("openmpi4")  # MPICH's shared memory would stay behind
    running = Running(workspace, library, "3")
    trace = Trace(workspace, [running.node], workspace.path("killed"))
    running.end()
    pid = wait_until("rank 3 to say its pid", lambda: stopped(running), children=[running.job])
    begun = cpu_seconds(pid)
    wait_until("rank 3 to wait", lambda: cpu_seconds(pid) > begun + 0.05, children=[running.job])  # it spins where it waits
    os.kill(pid, signal.SIGKILL)
    running.job.wait(expect=None)
    trace.end(expect=None)
    job = Job(trace.output)
    (end,) = [end for dump in job.dumps for end in dump.footer.processes if dump.processes[end.process].rank == 3]
    check(end.fate == 2, "the killed rank's fate is %d", end.fate)
    found = [(call.function, call.source, call.peer, call.tag, call.sequence) for call in end.open_calls]
    check(found == [("MPI_Recv", kMpi, -1, 77, 0)], "open calls of the killed rank: %s", found)
    line, = [line for line in workspace.ringside("rpc", trace.output).out().splitlines() if line.startswith("killed: rank 3 ")]
    check(line.startswith("killed: rank 3 (pid %d on " % pid) and " in MPI_Recv from any rank with tag 77 of group world/1.1, in it for " in line, "%s", line)
    labels = {group.id: (group.label, group.size, group.rank, group.job_rank) for group in end.groups}
    check(labels.get(end.open_calls[0].group) == ("world/1.1", 2, 1, 3), "its group is %s of %s", end.open_calls[0].group, labels)


def stopped(running):
    """@return the pid of the rank that waits for what nobody sends"""
    folder, name = os.path.split(running.say)
    told = [int(file.rpartition(".")[2]) for file in os.listdir(folder) if file.startswith(name + ".")]
    return next((pid for pid in told if pid >= kRanks), None)


kCases = {"messages": messages, "collectives": collectives, "large": large, "middle": middle, "killed": killed}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], "mpi-" + sys.argv[1], limit_s=200)
