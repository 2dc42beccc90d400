#!/usr/bin/python3
"""NCCL's collectives over a fake of its library (no GPU is here): each rank's calls with communicator and number, as its own log has them, joined over all of
a communicator's members; a hang is told, with who never came, without anything recorded before.

    nccl_calls.py linked | loaded | looked_up | hang
"""
import collections
import json
import os
import sys
import time

from harness import check, kBuild, main, Node, Trace, wait_until
from rsd.index import Job

kRanks = 4
kNccl, kCollective = 8, 1
kNotInstrumented, kFull = 4, 2
kPrograms = os.path.join(kBuild, "tests", "workloads", "nccl")
kJob, kPlugin, kLoader, kLibrary = (os.path.join(kPrograms, name) for name in ("nccl_job", "libnccl_plugin.so", "nccl_loader", "libnccl.so.2"))


def ranks_command(command, folder, case):
    """All ranks, as processes of one shell."""
    return ["sh", "-c", "for rank in %s; do RANK=$rank \"$@\" $rank %d '%s' %s & pids=\"$pids $!\"; done; for pid in $pids; do wait $pid || exit 1; done" % (
        " ".join(map(str, range(kRanks))), kRanks, folder, case), "sh", *command]


def logs(folder):
    found = []
    for rank in range(kRanks):
        with open(os.path.join(folder, "log.%d" % rank)) as log:
            found.append([tuple(line.split()) for line in log])
    return found


def level(job):
    return {(s.level, s.reason) for dump in job.dumps for p in dump.processes.values() for s in p.sources if s.id == kNccl}


def calls(workspace, command):
    folder, output = workspace.path("job"), workspace.path("run")
    os.makedirs(folder)
    workspace.ringside("run", "-o", output, "--table", workspace.path("table"), "--", *ranks_command(command, folder, "calls"),
                       environment=dict(os.environ, FAKE_NCCL=folder))
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    check(level(job) == {(kFull, "")}, "levels: %s", level(job))
    ranks = {p.index: p.rank for p in job.dumps[0].processes.values() if p.rank >= 0}
    said, names, members = logs(folder), {}, collections.defaultdict(set)
    for process, rank in ranks.items():
        ranges = sorted((r for r in job.events[0].ranges if r.process == process and r.source == kNccl), key=lambda r: r.begin)
        check(all(r.end is not None for r in ranges), "rank %d: a call without its end", rank)
        collectives = [r for r in ranges if r.detail & kCollective]
        counts = collections.Counter()
        # Of a communicator whose ranks are all in one process both are told.
        recorded = [(r.name, r.attributes.category, r.payload) for r in collectives]
        recorded = [one for i, one in enumerate(recorded) if one not in recorded[:i]]
        check(len(recorded) == len(said[rank]), "rank %d called %s, recorded are %s", rank, said[rank], recorded)
        for (comm, function), one in zip(said[rank], recorded):
            counts[comm] += 1
            # Its making is a communicator's first collective, but for those that come of another one.
            check((one[0], one[2]) == (function, counts[comm]), "rank %d called %s as number %d of %s, recorded is %s", rank, function, counts[comm], comm, one)
            key = (comm, rank) if comm == "own" else comm
            check(names.setdefault(key, one[1]) == one[1], "rank %d: %s is %s, elsewhere %s", rank, comm, one[1], names[key])
            members[one[1]].add(rank)
        check({"ncclSend", "ncclRecv", "ncclGroupEnd", "ncclCommDestroy"} <= {r.name for r in ranges if not r.detail & kCollective}, "rank %d: other calls", rank)
    check(len(set(names.values())) == len(names) == 6 + kRanks, "communicators: %s", names)
    told = json.loads(workspace.ringside("rpc", "--json", output).out())["collectives"]
    for group in told["groups"]:
        check(group["source"] == "nccl" and group["size"] == len(members[group["group"]]), "the group %s has the members %s", group, members[group["group"]])
    check(all(row["incomplete"] == 0 for row in told["rows"]), "incomplete: %s", told["rows"])
    check("what the hosts call" in workspace.ringside("rpc", output).out(), "nothing says that these are the hosts' calls")
    print("%d collectives of %d communicators at all their members" % (sum(row["count"] for row in told["rows"]), len(names)), flush=True)


def linked(workspace):
    calls(workspace, [kJob])


def loaded(workspace):
    calls(workspace, [kLoader, kPlugin])


def looked_up(workspace):
    """Who asks for the functions by name has no slot."""
    node = Node(workspace, "a")
    child = workspace.start("program", node.job_command(kLoader, kLibrary), node.environment(FAKE_NCCL=workspace.path("out")))
    wait_until("the program", child.out, children=[child])
    trace = Trace(workspace, [node], workspace.path("traced"))
    trace.end(expect=None)
    check(level(Job(trace.output)) == {(kNotInstrumented, "nobody calls it through a slot (yet)")}, "levels: %s", level(Job(trace.output)))
    child.end()


def hang(workspace):
    node, folder = Node(workspace, "a"), workspace.path("job")
    os.makedirs(folder)
    job = workspace.start("job", node.job_command(*ranks_command([kJob], folder, "hang")), node.environment(FAKE_NCCL=folder))
    wait_until("the hang", lambda: len([f for f in os.listdir(folder) if f.startswith(("in.", "away."))]) == kRanks, children=[job])
    began = time.monotonic()
    wait_until("the hang to be old enough", lambda: time.monotonic() > began + 1.5, children=[job])
    output = workspace.path("hang")
    text = workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "100ms", "-o", output).out()
    waiting = json.loads(workspace.ringside("rpc", output, "--json").out())["waiting"]
    wait, = waiting["waits"]
    check((wait["function"], wait["sequence"], wait["size"]) == ("ncclGroupEnd", 7, kRanks), "the collective: %s", wait)
    check([one["rank"] for one in wait["waiting"]] == list(range(kRanks - 1)), "who waits: %s", wait["waiting"])
    check([(other["rank"], other["standing"], other["last"]) for other in wait["others"]] == [(kRanks - 1, "in no call", 6)], "who is away: %s", wait["others"])
    check([other["rank"] for other in waiting["never_came"]] == [kRanks - 1], "who never came: %s", waiting)
    print("\n".join(line for line in text.splitlines() if line.startswith("waiting")), flush=True)
    open(os.path.join(folder, "come.0"), "w").close()
    job.wait()
    node.stop()


kCases = {"linked": linked, "loaded": loaded, "looked_up": looked_up, "hang": hang}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], "nccl-" + sys.argv[1])
