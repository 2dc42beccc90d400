#!/usr/bin/python3
"""`ringside arm` and `trace --history`: what came before the trigger is in the dump, exactly as far back as it was asked for; what is older
is said. The job marks numbers (workloads/numbered.c) and notes when it made each.

    armed.py CASE PROGRAM        CASE: history flood kill9 recover
"""
import mmap
import os
import re
import shutil
import signal
import struct
import sys
import time

from harness import Node, check, kAgent, main, wait_until
from rsd.dump import Dump
from rsd.index import Job

kThreads = 2
kMark = 8
kMostThreads, kTimes = 16, 1 << 17
kSecond = 1_000_000_000
# Two clocks that are read one after the other, and a calibration over 0.2 s: far more than they differ, far less than what is asked for.
kSlackNs = 3_000_000


class Numbers:
    """The job on a node, and what it says of itself."""

    def __init__(self, workspace, node, program, period_ns):
        path = workspace.path("numbers-%d" % len(workspace.children))
        self.child = workspace.start("job-%d" % len(workspace.children), node.job_command(program, path, str(kThreads), str(period_ns)),
                                     node.environment())
        size = kMostThreads * 8 + kMostThreads * kTimes * 16
        wait_until("the job's file", lambda: os.path.exists(path) and os.path.getsize(path) == size, children=[self.child])
        with open(path, "rb") as file:
            self.map = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)

    def made(self, thread):
        return struct.unpack_from("<Q", self.map, 8 * thread)[0]

    def when(self, thread, number):
        """@return (before, after) of making it, in ns of CLOCK_REALTIME"""
        return struct.unpack_from("<QQ", self.map, kMostThreads * 8 + (thread * kTimes + number) * 16)

    def end(self):
        self.child.send(signal.SIGTERM)
        self.child.wait()


def arm(workspace, node, *options):
    return workspace.json("arm", "--hosts", node.endpoint, *options)


def status(workspace, node):
    return workspace.json("status", "--hosts", node.endpoint)[0]


def trace(workspace, node, name, *options):
    """@return (Job, the node in the command's answer)"""
    output = workspace.path(name)
    told = workspace.json("trace", "--hosts", node.endpoint, "-o", output, *options)
    job = Job(output)
    check(not job.problems(), "%s, the reader: %s", name, "; ".join(job.problems()))
    return job, told["nodes"][0]


def numbers_of(dump):
    """@return {lane: [number]} in their order; beside them a lane has its context again after a drop"""
    return {index: [record.words[3] for record, _, _ in lane.records if record.kind == kMark] for (_, index), lane in dump.lanes.items()}


def pieces(node):
    folder = os.path.join(node.root, node.job)
    found = [f for f in os.listdir(folder) if re.fullmatch(r"window\.\d+", f)]
    return [os.path.join(folder, f) for f in sorted(found, key=lambda f: int(f.partition(".")[2]))]


def check_exact(job, dump, history_ns, asked_ns):
    """In the dump are the numbers that were made from the asked time before the instant on, none twice, none missing."""
    footer = dump.footer
    check(footer.lost == 0, "%d lost", footer.lost)
    start = dump.node_ns(footer.start_ticks)
    stop = dump.node_ns(footer.stop_ticks)
    check(abs(history_ns - asked_ns) < kSlackNs, "the history is %d ns, asked for %d", history_ns, asked_ns)
    check(stop - start > history_ns, "the capture takes %d ns, its history alone %d", stop - start, history_ns)
    lanes = numbers_of(dump)
    check(len(lanes) == kThreads, "%d lanes", len(lanes))
    for lane, numbers in lanes.items():
        check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), "lane %d is not in a row: %s ...", lane, numbers[:5])
    # Whichever thread was first got the first lane.
    fits = [all(_fits(job, thread, lanes[lane], start, stop) for lane, thread in zip(sorted(lanes), order))
            for order in (range(kThreads), reversed(range(kThreads)))]
    check(any(fits), "the numbers are not those of the time from %d to %d: %s", start, stop, {k: (v[0], v[-1]) for k, v in lanes.items()})
    return sum(map(len, lanes.values()))


def _begins(job, thread, first, start, armed=0):
    """@param armed  by when it was: the one before the first was made earlier, at the latest"""
    return job.when(thread, first)[1] >= start - kSlackNs and (first == 0 or job.when(thread, first - 1)[0] <= max(start, armed) + kSlackNs)


def _fits(job, thread, numbers, start, stop):
    first, last = numbers[0], numbers[-1]
    return (_begins(job, thread, first, start) and
            job.when(thread, last)[0] <= stop + kSlackNs and job.when(thread, last + 1)[1] >= stop - kSlackNs)


def history(workspace, program):
    node = Node(workspace, "node")
    child = workspace.ringside("trace", "--hosts", node.endpoint, "--history", "1s", "-o", workspace.path("none"), expect=5)
    check("ringside arm" in child.err(), "history without a window: %s", child.err())
    job = Numbers(workspace, node, program, 500_000)
    wait_until("numbers", lambda: all(job.made(t) > 10 for t in range(kThreads)), children=[job.child])
    told = arm(workspace, node, "--keep", "60s", "--max-bytes", "64M")[0]
    check(told["window"]["keep_ms"] == 60000 and told["window"]["max_bytes"] == 64 << 20 and not told["changed"], "armed: %s", told)
    wait_until("three seconds in the window", lambda: status(workspace, node)["window"]["holds_ns"] > 3 * kSecond)
    read, said = trace(workspace, node, "two", "--history", "2s", "--duration", "200ms")
    count = check_exact(job, read.dumps[0], said["history_ns"], 2 * kSecond)
    check(said["window_note"] == "", "of what it had it says %r", said["window_note"])
    print("two seconds before and 0.2 after: %d numbers, history %.6f s" % (count, said["history_ns"] / 1e9), flush=True)

    read, said = trace(workspace, node, "plain", "--duration", "200ms")
    check_exact(job, read.dumps[0], said["history_ns"], 0)
    text = workspace.ringside("trace", "--hosts", node.endpoint, "--history", "50s", "--duration", "50ms", "-o", workspace.path("all")).out()
    check(re.search(r"; history [\d.]+ s of 50 s: it was armed then", text), "what was there is not said: %s", text)
    numbers = numbers_of(Job(workspace.path("all")).dumps[0])
    check(all(n == list(range(n[0], n[0] + len(n))) for n in numbers.values()), "all of the window is not in a row")

    told = arm(workspace, node, "--keep", "1s", "--max-bytes", "8M")[0]
    check(told["changed"] and told["window"]["keep_ms"] == 1000, "armed again: %s", told)
    wait_until("the window to age", lambda: status(workspace, node)["window"]["holds_ns"] < 2 * kSecond)
    held = status(workspace, node)["window"]
    check(held["aged_records"] > 0 and held["aged_until_ns"] > 0, "what aged out is not counted: %s", held)
    _, said = trace(workspace, node, "aged", "--history", "30s", "--duration", "50ms")
    check(said["window_note"] == "of 30 s: older has aged out (it keeps 1 s)" and kSecond <= said["history_ns"] < 2 * kSecond, "it says %s", said)
    text = workspace.ringside("status", "--hosts", node.endpoint).out()
    check(re.search(r": armed\n", text) and "keeps 1 s / 8.0 MiB, holds" in text and "aged out" in text, "status: %s", text)
    text = workspace.ringside("ps", "--hosts", node.endpoint).out()
    check("node node is armed: keeps 1 s / 8.0 MiB, holds" in text, "ps: %s", text)
    workspace.ringside("trace", "--hosts", node.endpoint, "--record-shapes", "-o", workspace.path("shapes"), expect=5)
    workspace.ringside("arm", "--hosts", node.endpoint, "--sources", "torch", expect=5)
    check(pieces(node), "an armed node has no pieces")
    workspace.ringside("disarm", "--hosts", node.endpoint)
    check(not pieces(node) and not status(workspace, node)["armed"], "disarmed, pieces stay: %s", pieces(node))
    # What the window had begun to write is nobody's.
    read, said = trace(workspace, node, "disarmed", "--duration", "200ms")
    check_exact(job, read.dumps[0], 0, 0)
    arm(workspace, node, "--keep", "1s")
    job.end()
    wait_until("its segment to go", lambda: not node.segments())
    check(pieces(node), "armed again, there are no pieces")
    node.stop()
    check(not pieces(node), "an agent that ended in order leaves %s", pieces(node))


def flood(workspace, program):
    """As fast as two threads can, and a window that holds a small part of it."""
    node = Node(workspace, "node")
    job = Numbers(workspace, node, program, 0)
    bound = 2 << 20
    arm(workspace, node, "--keep", "60s", "--max-bytes", "2M")
    most = [0]

    def aged():
        most[0] = max(most[0], sum(os.path.getsize(p) for p in pieces(node) if os.path.exists(p)))
        return status(workspace, node)["window"]["aged_records"] > 2_000_000
    wait_until("two million to age out", aged, children=[job.child])
    check(0 < most[0] <= bound, "the window's files take %d bytes, the bound is %d", most[0], bound)
    # The dump's bound keeps the second reader's work small; what it refuses is counted as lost.
    output = workspace.path("flood")
    child = workspace.ringside("trace", "--hosts", node.endpoint, "--history", "10s", "--duration", "1ms", "--max-bytes", "4M", "-o", output, expect=None)
    check("of 10 s: older has aged out (bound 2 MiB)" in child.out(), "what aged out is not said: %s", child.out())
    read = Job(output)
    check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
    dump = read.dumps[0]
    for lane, numbers in numbers_of(dump).items():
        total = [l for l in dump.footer.lanes if l.lane == lane][0]
        gaps = sum(b - a - 1 for a, b in zip(numbers, numbers[1:]))
        check(all(b > a for a, b in zip(numbers, numbers[1:])), "lane %d: numbers come twice or not in order", lane)
        check(gaps <= total.lost and total.written == total.kept + total.outside + total.lost, "lane %d: %d are missing, %s", lane, gaps, total)
        print("lane %d: kept %d, outside %d, lost %d, of that in gaps %d" % (lane, total.kept, total.outside, total.lost, gaps), flush=True)
    held = status(workspace, node)["window"]
    check(held["bytes"] <= bound, "after the trace the window holds %d bytes", held["bytes"])
    workspace.ringside("disarm", "--hosts", node.endpoint)
    job.end()
    node.stop()


def kill9(workspace, program):
    """kill -9 of the agent: its window can be read, the job goes on, the next agent says what is there and takes it away when asked."""
    node = Node(workspace, "node")
    job = Numbers(workspace, node, program, 200_000)
    arm(workspace, node, "--keep", "2s", "--max-bytes", "64M")
    wait_until("the window to age", lambda: status(workspace, node)["window"]["aged_records"] > 0)
    kill_agent(node)
    made = [job.made(t) for t in range(kThreads)]
    left = pieces(node)
    check(len(left) > 2, "a killed agent leaves %s", left)
    lanes = {}
    for number, piece in enumerate(left):
        copy = workspace.path("piece-%d.rsd" % number)
        shutil.copy(piece, copy)
        dump = Dump(copy)
        check(dump.footer is None and "cut short" in dump.problem, "%s: %s", piece, dump.problem)
        for lane, numbers in numbers_of(dump).items():
            lanes.setdefault(lane, []).extend(numbers)
        check({dump.name(p, r.name, i) for (p, _), l in dump.lanes.items() for r, _, i in l.records} <= {"number"}, "names of %s", piece)
    for lane, numbers in lanes.items():
        check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), "lane %d of the pieces is not in a row", lane)
        check(len(numbers) >= 2 * 5000 * 0.5 and numbers[-1] <= max(made), "lane %d: %d numbers up to %d", lane, len(numbers), numbers[-1])
    print("pieces %d, numbers %s" % (len(left), {k: (v[0], v[-1]) for k, v in lanes.items()}), flush=True)
    again = workspace.start("agent-again", [kAgent, "--dir", node.root, "--job", node.job, "--node", "node", "--endpoint", node.endpoint,
                                            "--output", workspace.path("output", "again")])
    wait_until("the second agent", lambda: os.path.exists(node.endpoint[len("ipc://"):]) and
               workspace.ringside("status", "--hosts", node.endpoint, expect=None).process.returncode == 0, children=[again])
    told = status(workspace, node)
    check(told["left_pieces"] == len(left) and not told["armed"] and pieces(node) == left, "the next agent says %s", told)
    before = [job.made(t) for t in range(kThreads)]
    wait_until("the job to go on", lambda: all(job.made(t) > before[t] + 100 for t in range(kThreads)), children=[job.child])
    arm(workspace, node, "--keep", "60s")
    wait_until("the new window", lambda: status(workspace, node)["window"]["holds_ns"] > kSecond)
    read, said = trace(workspace, node, "again", "--history", "1s", "--duration", "50ms")
    check_exact(job, read.dumps[0], said["history_ns"], kSecond)
    workspace.ringside("disarm", "--hosts", node.endpoint)
    check(not pieces(node), "disarmed, pieces stay: %s", pieces(node))
    job.end()
    again.send(signal.SIGTERM)
    again.wait(20)


def kill_agent(node):
    os.kill(node.agent.pid, signal.SIGKILL)
    node.agent.wait(expect=-signal.SIGKILL)


def recover(workspace, program):
    """kill -9 of the agent, then `ringside recover`: one dump of the window and of what the job has written since, no number twice, none missing that is
    not counted; the pieces are gone. Once from a window that has aged, with a job that goes on; once from its first second, with one that is dead."""
    for aged in (True, False):
        node = Node(workspace, "aged" if aged else "young")
        job = Numbers(workspace, node, program, 200_000)
        arm(workspace, node, "--keep", "2s" if aged else "60s", "--max-bytes", "64M")
        armed = time.time_ns()
        wait_until("the window to fill", lambda: status(workspace, node)["window"]["aged_records"] > 0 if aged else
                   status(workspace, node)["window"]["holds_ns"] > kSecond, children=[job.child])
        kill_agent(node)
        at_kill = [job.made(t) for t in range(kThreads)]
        wait_until("the job to go on", lambda: all(job.made(t) > at_kill[t] + 500 for t in range(kThreads)), children=[job.child])
        if not aged:
            job.child.send(signal.SIGKILL)
            job.child.wait(expect=-signal.SIGKILL)
        before = [job.made(t) for t in range(kThreads)]
        left = pieces(node)
        output = workspace.path("recovered-" + node.name)
        told = workspace.json("recover", "--dir", node.root, "--job", node.job, "-o", output, expect=None)[0]
        after = [job.made(t) for t in range(kThreads)]
        check("the window of an agent that died" in told["found"] and told["complete"] and told["lost"] == 0, "recover says %s", told)
        check(not pieces(node), "recovered, pieces stay: %s", pieces(node))
        read = Job(output)
        check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
        dump = read.dumps[0]
        lanes = numbers_of(dump)
        check(len(lanes) == kThreads and dump.footer.lost == 0, "%d lanes, %d lost", len(lanes), dump.footer.lost)
        for lane, numbers in lanes.items():
            check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), "lane %d is not in a row: %s ...", lane, numbers[:5])
            # Whichever thread was first got the first lane. A dead one's last number may have been made and not been marked, or the other way round.
            check(any(before[t] - 2 <= numbers[-1] <= after[t] + 1 for t in range(kThreads)),
                  "lane %d ends at %d; made were %s to %s", lane, numbers[-1], before, after)
            total = [l for l in dump.footer.lanes if l.lane == lane][0]
            check(total.written == total.kept + total.outside and total.kept >= len(numbers), "lane %d: %s", lane, total)
        start = dump.node_ns(dump.footer.start_ticks)
        # Of a window that has not aged: to arm it takes as long as the machine lets it.
        check(any(all(_begins(job, thread, lanes[lane][0], start, armed) for lane, thread in zip(sorted(lanes), order))
                  for order in (range(kThreads), reversed(range(kThreads)))), "the numbers do not begin at %d: %s", start, {k: v[0] for k, v in lanes.items()})
        reach = (dump.node_ns(dump.footer.stop_ticks) - dump.node_ns(dump.footer.start_ticks)) / 1e9
        check(reach > (2 if aged else 1), "it reaches back %.3f s", reach)
        print("%s: %d pieces, %.3f s, numbers %s" % (node.name, len(left), reach, {k: (v[0], v[-1]) for k, v in lanes.items()}), flush=True)
        again = workspace.ringside("recover", "--dir", node.root, "--job", node.job, "-o", workspace.path("none"), expect=None)
        check(again.process.returncode == 3, "a second time there is nothing: %s", again.out())
        if aged:
            job.end()
            workspace.ringside("recover", "--dir", node.root, "--job", node.job, "-o", workspace.path("rest"), expect=None)
        check(not node.segments(), "segments stay: %s", node.segments())
        os.unlink(node.endpoint[len("ipc://"):])  # of an agent that was killed


case, program = sys.argv[1:3]
main(lambda workspace: {"history": history, "flood": flood, "kill9": kill9, "recover": recover}[case](workspace, program), "armed_" + case)
