#!/usr/bin/python3
"""A job hangs because one rank stays away from a collective, and nothing was recorded until then: `ringside trace` says who waits, since when, and who
never came, and `ringside rpc` says it from the files.

    hanging.py alive | killed

alive: the rank that stays away lives, then comes: a healthy job has nothing to say. killed: it is killed during the capture.
"""
import json
import os
import signal
import sys
import time

from harness import check, free_port, kPython, kWorkloads, main, Node, OffInTime, Trace, wait_until

kRanks = 4
kAway = 2
kWaiting = (0, 1, 3)
# Where a machine is busy: between a rank's note and its call, between the capture's stop and the command's answer.
kSlackS = 0.5


def start(workspace, node):
    environment = node.environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    return [workspace.start("rank%d" % rank, node.job_command(
        kPython, "-W", "ignore", os.path.join(kWorkloads, "hanging.py"), "--rank", str(rank), "--conditions", workspace.conditions,
        "--out", workspace.path("began")), environment) for rank in range(kRanks)]


def await_hang(workspace, ranks):
    """@return rank -> when it called, by its own log"""
    workspace.await_condition("away", ranks)
    for rank in kWaiting:
        workspace.await_condition("in.%d" % rank, ranks)
    began = {}
    for rank in kWaiting:
        with open("%s.%d" % (workspace.path("began"), rank)) as file:
            began[rank] = float(file.read())
    # Older than what counts as waiting.
    wait_until("the hang to be old enough", lambda: time.monotonic() > max(began.values()) + 2.5)
    return began


def trace(workspace, node, name):
    output = workspace.path(name)
    child = workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "200ms", "-o", output, name="trace-" + name)
    return child.out(), output


def told(workspace, output):
    return json.loads(workspace.ringside("rpc", output, "--json").out())["waiting"]


def alive(workspace, node, ranks):
    began = await_hang(workspace, ranks)
    before = time.monotonic()
    text, output = trace(workspace, node, "hang")
    after = time.monotonic()
    waiting = told(workspace, output)
    check(len(waiting["waits"]) == 1, "one wait, not %s", waiting)
    wait = waiting["waits"][0]
    check(wait["function"] == "gloo:all_reduce" and wait["size"] == kRanks and wait["group"], "the collective: %s", wait)
    check([one["rank"] for one in wait["waiting"]] == list(kWaiting), "who waits: %s", wait["waiting"])
    for one in wait["waiting"]:
        check(one["pid"] == ranks[one["rank"]].pid, "its pid: %s", one)
        least, most = before - began[one["rank"]], after - began[one["rank"]]
        check(least - kSlackS < one["age_s"] < most, "rank %d waits for %.3f s, by its log %.3f to %.3f s", one["rank"], one["age_s"], least, most,
              failure=OffInTime)
    check([(other["rank"], other["standing"], other["pid"]) for other in wait["others"]] == [(kAway, "in no call", ranks[kAway].pid)],
          "who is away: %s", wait["others"])
    check(wait["others"][0]["last"] == wait["sequence"] - 1, "its last: %s of %s", wait["others"][0], wait["sequence"])
    check([other["rank"] for other in waiting["never_came"]] == [kAway] and not waiting["cycles"], "who never came: %s", waiting)
    line = "waiting: gloo:all_reduce #%d of group %s (4 members): ranks 0, 1, 3 for " % (wait["sequence"], wait["group"])
    check(line in text and "; rank 2 never came (its last was #%d; it is alive, pid %d on a, in no call that we see)" %
          (wait["sequence"] - 1, ranks[kAway].pid) in text, "the command says:\n%s", text)
    check(line in workspace.ringside("rpc", output).out(), "ringside rpc says nothing of it")
    print(next(row for row in text.splitlines() if row.startswith("waiting")), flush=True)

    # It comes: the job is healthy, its ranks at rest.
    workspace.announce("come")
    wait_until("the hang's end", lambda: "waiting" not in trace(workspace, node, "healthy-%d" % time.monotonic_ns())[0], children=ranks)


def killed(workspace, node, ranks):
    await_hang(workspace, ranks)
    capture = Trace(workspace, [node], workspace.path("killed"))
    ranks[kAway].send(signal.SIGKILL)
    ranks[kAway].wait(expect=-signal.SIGKILL)
    # Its neighbour in the ring hears of it, those behind it do not.
    wait_until("an error at some rank", lambda: any(os.path.exists(os.path.join(workspace.conditions, "failed.%d" % r)) for r in kWaiting))
    waiting = capture.end(expect=1)["waiting"]
    check(waiting and len(waiting["waits"]) == 1, "somebody still waits: %s", waiting)
    others = {other["rank"]: other["standing"] for other in waiting["waits"][0]["others"]}
    check(others.get(kAway) == "died", "the killed rank: %s", others)
    check(set(others.values()) <= {"died", "passed"}, "the others have left it: %s", others)
    print("ranks %s wait, %s" % ([one["rank"] for one in waiting["waits"][0]["waiting"]], others), flush=True)


def test(workspace):
    node = Node(workspace, "a")
    ranks = start(workspace, node)
    {"alive": alive, "killed": killed}[variant](workspace, node, ranks)
    workspace.announce("leave")
    for rank, child in enumerate(ranks):
        child.wait(expect=-signal.SIGKILL if variant == "killed" and rank == kAway else 0)
    node.stop()


variant = sys.argv[1] if len(sys.argv) > 1 else "alive"
main(test, "hanging")
