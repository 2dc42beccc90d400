#!/usr/bin/python3
"""Processes by the thousand: in a capture each is there with what it recorded; afterwards nothing of them is left, in the agent neither.

    churn.py CASE COUNT
"""
import os
import shutil

from fault import check, kKilled, kWriter, Node, ranges_by_thread, read, run, Trace, wait_until

kRangesALeaf = 3
# malloc gives back what is freed, so that what stays is in use; beside it, a leak of 1 KiB or of one descriptor a process shows.
kFrugal = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
kMostGrowth = {"descriptors": 0, "threads": 0, "mappings": 24, "KiB": 1024}
kSmall = 60
kRounds = 5


def churn(workspace, node, count, ways, deadline_s=900):
    """@return how many ranges the parent made meanwhile"""
    number = len(workspace.children)
    job = workspace.start("churn-%d" % number, node.job_command(kWriter, "churn", str(count), ways), node.environment())
    job.wait(deadline_s)
    words = job.out().split()
    check(int(words[1]) == count and not job.err(), "of %d children %s ended well: %s", count, words[1], job.err())
    return int(words[3])


def spawned(workspace, count):
    """posix_spawn, vfork and exec, fork and _exit, beside a thread that records: no deadlock, and everybody's ranges, once each."""
    count = int(count)
    node = Node(workspace, "node", capture_from_start=True, extra=["--name", "all"])
    made = churn(workspace, node, count, "svf")
    wait_until("their segments to go", lambda: not node.segments())
    node.stop()
    job = read(workspace.path("output", "node", "all"))
    (dump,), (events,) = job.dumps, job.events
    leaves = [r for r in events.ranges if r.name == "leaf"]
    parents = [r for r in events.ranges if r.name == "churn"]
    lost = sum(lane.lost for lane in dump.footer.lanes) + sum(sum(end.losses) for end in dump.footer.processes)
    numbers = sorted(r.payload for r in leaves)
    check(len(set(numbers)) == len(numbers), "%d ranges of children are there twice", len(numbers) - len(set(numbers)))
    check(lost == 0 and numbers == list(range(kRangesALeaf * count)), "of %d ranges %d are there, lost %d", kRangesALeaf * count, len(numbers), lost)
    check(sorted(r.payload for r in parents) == list(range(made)), "of the parent's %d ranges %d are there", made, len(parents))
    owners = {r.process for r in leaves}
    check(len(owners) == count and not owners & {r.process for r in parents}, "%d children are %d processes in the dump", count, len(owners))
    killed = sum(end.fate == kKilled for end in dump.footer.processes if end.process in owners)
    print("%d children, %d ranges of theirs and %d of their parent's, none lost; %d ended without a word" % (count, len(leaves), made, killed), flush=True)


def sizes(pid):
    status = {}
    with open("/proc/%d/status" % pid) as text:
        for line in text:
            name, _, value = line.partition(":")
            status[name] = value.split()
    with open("/proc/%d/maps" % pid) as text:
        mappings = len(text.readlines())
    return {"descriptors": len(os.listdir("/proc/%d/fd" % pid)), "threads": int(status["Threads"][0]), "mappings": mappings, "KiB": int(status["RssAnon"][0])}


def at_rest(workspace, node):
    """A small capture, so that the agent forgets the one before; then its sizes, and what lies in shared memory."""
    traced(workspace, node, kSmall)
    wait_until("the segments to go", lambda: not node.segments(), children=[node.agent])
    files = [os.path.join(d, f) for d, _, fs in os.walk(workspace.root) for f in fs]
    in_memory = sum(os.stat(f).st_blocks * 512 for f in files)
    return dict(sizes(node.agent.pid), shm=in_memory, files=len(files))


def traced(workspace, node, count):
    output = workspace.path("trace-%d" % len(workspace.children))
    trace = Trace(workspace, [node], output)
    churn(workspace, node, count, "svfk")
    told = trace.end(expect=None)
    check(len(told["processes"]) >= count, "%d processes are told, %d there were", len(told["processes"]), count)
    return output


def baseline(workspace, count):
    """In rounds, each half in a capture and half without: shared memory, descriptors and memory of the agent are what they were after the first,
    for what allocators keep is the most that was ever needed at once."""
    round_size = int(count) // kRounds
    os.environ.update(kFrugal)
    node = Node(workspace, "node")
    before = None
    for _ in range(kRounds):
        churn(workspace, node, round_size // 2, "svfk")
        output = traced(workspace, node, round_size // 2)
        leaves = sum(len(ranges) for ranges in ranges_by_thread(read(output), "leaf").values())
        check(leaves == kRangesALeaf * (round_size // 2), "%d ranges of %d children", leaves, round_size // 2)
        shutil.rmtree(output)
        after = at_rest(workspace, node)
        before = before or after
    print("%s processes: %s" % (count, ", ".join("%s %d -> %d" % (what, before[what], after[what]) for what in before)), flush=True)
    for what, most in kMostGrowth.items():
        check(after[what] - before[what] <= most, "%s of the agent: %d, before %d", what, after[what], before[what])
    check((after["shm"], after["files"]) == (before["shm"], before["files"]), "in shared memory: %s, before %s", after, before)
    node.stop()


run({"spawned": spawned, "baseline": baseline})
