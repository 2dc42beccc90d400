#!/usr/bin/python3
"""What `ringside trace` lets one choose: whom, which sources, when, and what to do where another trace runs.

    choices.py CASE PROGRAM        CASE: filters sources start others progress foreign; PROGRAM: workloads/numbered.c
"""
import json
import os
import pty
import re
import shutil
import signal
import sys
import time

from harness import Node, Trace, check, kCommand, kPython, kSource, main, wait_until
from rsd.index import Job

kUsage, kNothingMatched, kRefused, kNotAllGood = 2, 3, 5, 1


def numbers(workspace, program, node, rank):
    """A process of a rank that marks a number each millisecond."""
    path = workspace.path("numbers.%d" % rank)
    child = workspace.start("rank%d" % rank, node.job_command(program, path, "1", "1000000"), node.environment(RANK=str(rank)))
    wait_until("rank %d" % rank, lambda: os.path.exists(path) and os.path.getsize(path), children=[child])
    return child


def launcher(workspace, node, name):
    """A launcher: no framework, and no end."""
    child = workspace.start(name, node.job_command(kPython, "-c", "import signal; print('up', flush=True); signal.pause()"), node.environment(RANK="0"))
    wait_until("the launcher", lambda: "up" in child.out(), children=[child])
    return child


class Asked:
    """`ringside trace` with options, to its end."""

    def __init__(self, workspace, nodes, *options, expect=0):
        self.output = workspace.path("traced-%d" % len(workspace.children))
        child = workspace.ringside("trace", "--hosts", ",".join(node.endpoint for node in nodes), "--duration", "200ms", "-o", self.output, "--json",
                                   *options, expect=expect)
        self.error = child.err()
        self.told = json.loads(child.out()) if child.out() else {"processes": [], "nodes": []}

    def recorded(self):
        return {(each["node"], each["rank"]) for each in self.told["processes"] if each["events"] > 0}

    def verdict(self, **wanted):
        (found,) = [each for each in self.told["processes"] if all(each[name] == value for name, value in wanted.items())]
        return found


def filters(workspace, program):
    a, b = Node(workspace, "a"), Node(workspace, "b")
    other = workspace.path("other")
    shutil.copy(program, other)
    # Launchers of a lower pid that bear a rank, too: neither recorded nor counted against a limit.
    for n in range(3):
        launcher(workspace, a, "launcher%d" % n)
    for rank, node in ((0, a), (1, a), (2, b)):
        numbers(workspace, program, node, rank)
    third = numbers(workspace, other, a, 3)
    nodes = [a, b]
    everybody = {("a", 0), ("a", 1), ("a", 3), ("b", 2)}

    def chosen(*options, expect=0):
        return Asked(workspace, nodes, *options, expect=expect)

    check(chosen().recorded() == everybody, "all of them")
    ranks = chosen("--rank", "0,2")
    check(ranks.recorded() == {("a", 0), ("b", 2)}, "--rank 0,2: %s", ranks.told["processes"])
    # Those that were left out were not merely left out of the report.
    index = Job(ranks.output)
    check(not index.problems(), "the reader: %s", "; ".join(index.problems()))
    in_dumps = sorted(p.rank for dump in index.dumps for p in dump.processes.values() if p.executable.endswith("numbered"))
    check(in_dumps == [0, 2], "--rank 0,2: in the dumps are %s", in_dumps)
    one = chosen("--rank", "1")
    check(one.recorded() == {("a", 1)} and one.told["all_good"], "--rank 1: %s", one.told)
    check([node["not_meant"] for node in one.told["nodes"]] == [False, True], "--rank 1: %s", one.told["nodes"])
    missing = chosen("--rank", "1,9", expect=kNotAllGood)
    check(missing.recorded() == {("a", 1)} and missing.verdict(rank=9)["verdict"] == "not injected", "--rank 1,9: %s", missing.told)
    nobody = chosen("--rank", "9", expect=kNothingMatched)
    check("ranks 0, 1, 3" in nobody.error and not os.path.exists(nobody.output), "--rank 9 says %s", nobody.error)
    check(chosen("--exe", "other").recorded() == {("a", 3)}, "--exe other")
    check(chosen("--exe", other, "--exe", "nowhere", expect=kNotAllGood).recorded() == {("a", 3)}, "--exe %s", other)
    check("numbered" in chosen("--exe", "nowhere", expect=kNothingMatched).error, "--exe nowhere does not say who is there")
    check(chosen("--exe", "numbered", "--rank", "1,3", expect=kNotAllGood).recorded() == {("a", 1)}, "--exe and --rank")
    chosen("--exe", "other", "--rank", "1", expect=kNothingMatched)
    check(chosen("--pid", str(third.pid), "--rank", "3").recorded() == {("a", 3)}, "--pid and --rank")
    on_b = chosen("--host", "b")
    check(on_b.recorded() == {("b", 2)} and [node["name"] for node in on_b.told["nodes"]] == ["b"], "--host b: %s", on_b.told)
    check(chosen("--host", "b,%s" % os.uname().nodename).recorded() == everybody, "--host by the host's name")
    unknown = chosen("--host", "b,nowhere", expect=kNothingMatched)
    check("nowhere" in unknown.error and "there are a on" in unknown.error, "--host nowhere says %s", unknown.error)
    limited = chosen("--limit", "1")
    check(limited.recorded() == {("a", 0), ("b", 2)}, "--limit 1: %s", limited.told["processes"])
    check([node["left_out"] for node in limited.told["nodes"]] == [2, 0], "--limit 1: %s", limited.told["nodes"])
    check(chosen("--limit", "2").recorded() == {("a", 0), ("a", 1), ("b", 2)}, "--limit 2")
    check(chosen("--limit", "1", "--rank", "1,3").recorded() == {("a", 1)}, "--limit and --rank")


kBoth = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
import conditions, ringside, torch
conditions.announce(sys.argv[1], "both")
while True:
    with ringside.range("mine"):
        torch.ones(2).neg()
    time.sleep(0.002)
"""


def sources(workspace, _):
    """Each source that is left out records nothing, each other one all."""
    node = Node(workspace, "node")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads")
    job = workspace.start("both", node.job_command(kPython, "-c", kBoth, workspace.conditions, here), node.environment())
    workspace.await_condition("both", [job])
    for chosen, expected in (("", {"mine", "aten::neg"}), ("torch", {"aten::neg"}), ("api", {"mine"}), ("nvtx,itt", set()),
                             ("torch,api", {"mine", "aten::neg"})):
        asked = Asked(workspace, [node], *(["--sources", chosen] if chosen else []))
        names = {r.name for events in Job(asked.output).events for r in events.ranges}
        check(names & {"mine", "aten::neg"} == expected, "--sources %s: %s", chosen, sorted(names))
        told = asked.verdict(pid=job.pid)
        check(told["verdict"] == "captured" and bool(told["events"]) == bool(expected) == bool(told["bytes"]), "--sources %s: %s", chosen, told)
    # What is refused by name says which there are: those that the shim has, each a folder, and no others.
    folder = os.path.join(kSource, "inject", "sources")
    there = {name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))}
    for verb in ("trace", "arm"):
        for name in ("magic", "mpich", "none"):
            refused = workspace.ringside(verb, "--hosts", node.endpoint, "--sources", "torch," + name, expect=kUsage).err()
            match = re.search(r"--sources: '(\w+)' is no source; name some of ([\w, ]+)", refused)
            check(match and match.group(1) == name and set(match.group(2).split(", ")) == there, "%s --sources %s says %s", verb, name, refused)
        text = workspace.ringside(verb, "--help").out()
        check(": " + match.group(2) + "; default all" in text, "the help of %s:\n%s", verb, text)


def start(workspace, program):
    node = Node(workspace, "node")
    numbers(workspace, program, node, 0)
    began = time.time()
    asked = Asked(workspace, [node], "--start-time", str(int((began + 4) * 1000)))
    check(began + 4.2 < time.time() < began + 14, "it took %.1f s", time.time() - began)
    dump = Job(asked.output).dumps[0]
    clock = dump.header.calibration
    instant = (clock.reference_ns + (dump.header.start_ticks - clock.reference_ticks) * 1e9 / clock.ticks_per_second) / 1e9
    check(abs(instant - int((began + 4) * 1000) / 1000) < 0.001, "it begins %.6f s after the instant", instant - began - 4)
    check(0.1 < asked.told["duration_ns"] / 1e9 < 0.3 and asked.recorded(), "it is %s", asked.told)
    for when, word in ((str(int((began - 1) * 1000)), "past"), (str(int((began + 7200) * 1000)), "an hour"), ("noon", "12:00:00")):
        asked = Asked(workspace, [node], "--start-time", when, expect=kUsage)
        check(word in asked.error, "--start-time %s says %s", when, asked.error)
    # None of its threads may take the signal for it, however late they are.
    late = dict(os.environ, LD_PRELOAD=os.path.join(os.path.dirname(program), "liblate_threads.so"))
    waits = workspace.start("waits", [kCommand, "trace", "--hosts", node.endpoint, "--start-time", str(int((time.time() + 600) * 1000)), "-o",
                                      workspace.path("never")], late)
    wait_until("it to wait", lambda: "waiting for the start" in waits.err(), children=[waits])
    waits.send(signal.SIGINT)
    waits.wait(expect=128 + signal.SIGINT)
    check(not os.path.exists(workspace.path("never")), "a trace that was given up left its directory")


def others(workspace, program):
    """While a trace runs: a second one, one that waits, and cancel."""
    node, other = Node(workspace, "node"), Node(workspace, "other")
    numbers(workspace, program, node, 0)
    first = Trace(workspace, [node, other], workspace.path("first"))
    holder = "(asked for by pid %d on %s)" % (first.child.pid, os.uname().nodename)
    # Led by the same agent, and by one that is the first one's member.
    for nodes, words in (([node], "running here already"), ([other, node], "runs there")):
        refused = Asked(workspace, nodes, expect=kRefused)
        check("capture" in refused.error and holder in refused.error and words in refused.error, "a second one: %s", refused.error)
    for each in (node, other):
        told, = workspace.json("status", "--hosts", each.endpoint)
        check(told["capturing"] and told["asker"] in holder and told["asker"], "status: %s", told)
        check("capturing for " + told["asker"] in workspace.ringside("status", "--hosts", each.endpoint).out(), "status does not say for whom")
    arguments = [kCommand, "trace", "--hosts", node.endpoint, "--duration", "200ms", "--wait", "--json"]
    given_up = workspace.start("given-up", arguments + ["-o", workspace.path("given-up")])
    waiting = workspace.start("waiting", arguments + ["-o", workspace.path("waited")])
    for child in (given_up, waiting):
        wait_until("it to wait", lambda: "waiting for the end of capture-" in child.err() and "on node node " + holder in child.err(), children=[child])
    given_up.send(signal.SIGINT)
    given_up.wait(expect=128 + signal.SIGINT)
    cancelled = workspace.json("cancel", "--hosts", node.endpoint)
    check([each["kept"] for each in cancelled] == [True], "cancel says %s", cancelled)
    first.child.wait()
    told = json.loads(first.child.out())
    check(told["all_good"] and told["duration_ns"] < 60e9 and all(os.path.exists(path) for path in told["paths"]), "cancelled: %s", told)
    waiting.wait()
    told = json.loads(waiting.out())
    check(told["all_good"] and [each["events"] > 0 for each in told["processes"]] == [True], "the one that waited: %s", told)
    workspace.ringside("cancel", "--hosts", node.endpoint, expect=kNothingMatched)
    discarded = Trace(workspace, [node], workspace.path("discarded"))
    workspace.ringside("cancel", "--hosts", node.endpoint, "--discard")
    discarded.child.wait(expect=kRefused)
    check("nothing was kept" in discarded.child.err() and not os.path.exists(workspace.path("discarded")), "discarded: %s", discarded.child.err())
    # One that waited for others and is cancelled itself does not begin again.
    for name, options, phase in (("not-again", ["--duration", "300s"], "capturing"),
                                 ("never", ["--start-time", str(int((time.time() + 600) * 1000))], "waiting for the start")):
        child = workspace.start(name, [kCommand, "trace", "--hosts", node.endpoint, "--wait", *options, "-o", workspace.path(name)])
        wait_until("it to be there", lambda: phase in child.err(), children=[child])
        workspace.ringside("cancel", "--hosts", node.endpoint, "--discard")
        child.wait(expect=kRefused)
    told, = workspace.json("status", "--hosts", node.endpoint)
    check(told["asker"] == "" and not told["capturing"], "status when none runs: %s", told)
    left = [file for name in ("node", "other") for _, _, files in os.walk(workspace.path("output", name)) for file in files]
    check(not left, "in the agent's output: %s", left)


def on_a_terminal(workspace, *arguments):
    """@return what a command writes to a terminal that is its stderr"""
    ours, its = pty.openpty()
    child = workspace.start("terminal-%d" % len(workspace.children), ["bash", "-c", 'exec "$@" 2>&%d' % its, "bash", *arguments], pass_fds=(its,))
    os.close(its)
    text = b""
    try:
        while True:
            text += os.read(ours, 4096)
    except OSError:  # its last writer is gone
        os.close(ours)
    child.wait()
    return text.decode()


def progress(workspace, program):
    node = Node(workspace, "node")
    numbers(workspace, program, node, 0)
    words = [kCommand, "trace", "--hosts", node.endpoint, "--duration", "1500ms", "-o"]
    text = on_a_terminal(workspace, *words, workspace.path("bar"))
    check("capturing [####" in text and " %, " in text and text.endswith("\r\033[K"), "on a terminal: %r", text)
    check("\n" not in text, "a bar is one line: %r", text)
    check(on_a_terminal(workspace, *words, workspace.path("quiet"), "--quiet") == "", "--quiet is not")
    lines = workspace.run("lines", words + [workspace.path("lines")]).err().splitlines()
    check("ringside: capturing ..." in lines and "\033" not in "".join(lines) and len(lines) == len(set(lines)), "elsewhere: %s", lines)
    short = workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "100ms", "-o", workspace.path("short"))
    check(short.err() == "", "a short one says %r", short.err())
    check(os.listdir(workspace.path("output", "node")) == [], "in the agent's output: %s", os.listdir(workspace.path("output", "node")))


def foreign(workspace, _):
    """What Dynolog's users type is an error that says what to write."""
    for words, expected in ((["--with-stacks"], "stacks are not recorded"), (["--with-flops"], "--record-shapes"), (["--with-modules"], "NVTX"),
                            (["--duration-ms", "500"], "--duration-ms 500: write --duration 500ms"), (["--job-id", "7"], "write --job 7"),
                            (["--pids", "1,2"], "write --pid 1,2"), (["--process-limit", "3"], "write --limit 3"),
                            (["--profile-start-time", "1700000000000"], "write --start-time 1700000000000"), (["--log-file", "/tmp/x"], "write -o DIR")):
        child = workspace.ringside("trace", *words, expect=kUsage)
        check(expected in child.err() and not child.out(), "%s: %s", words, child.err())
    text = workspace.ringside("trace", "--help").out()
    check(all(name in text for name in ("--with-stacks", "--with-flops", "--with-modules")) and "--duration-ms" not in text, "the help:\n%s", text)


kCases = {"filters": filters, "sources": sources, "start": start, "others": others, "progress": progress, "foreign": foreign}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "choices-" + sys.argv[1])
