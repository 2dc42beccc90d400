#!/usr/bin/python3
"""What a trace says of each process: those that hang, launchers that record nothing, and those that no preload reaches.

    verdicts.py CASE PROGRAM        CASE: hung launchers limit untraced; PROGRAM: workloads/numbered.c
"""
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

from harness import Node, Trace, check, kCommand, kPython, kSource, main, skip, wait_until

kNotAllGood = 1
kShortOnes = 35

kTorch = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
import conditions, torch
conditions.announce(sys.argv[1], sys.argv[3])
while True:
    torch.ones(2).neg() if sys.argv[3] == "works" else None
    time.sleep(0.01)
"""


def torch_job(workspace, node, name, **environment):
    here = os.path.join(kSource, "tests", "workloads")
    job = workspace.start(name, node.job_command(kPython, "-c", kTorch, workspace.conditions, here, name), node.environment(**environment))
    workspace.await_condition(name, [job])
    return job


def state_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()[0]


def hung(workspace, program):
    node = Node(workspace, "node")
    stopped, works = torch_job(workspace, node, "stopped", RANK="1"), torch_job(workspace, node, "works", RANK="0")
    # Without a helper thread, and without a call: nobody hears what the agent asks.
    deaf = torch_job(workspace, node, "deaf", RANK="2", RINGSIDE_THREAD="0")
    alone = workspace.start("alone", node.job_command(program, workspace.path("numbers"), "1", "1000000"), node.environment(RANK="3"))
    wait_until("the numbers", lambda: os.path.exists(workspace.path("numbers")), children=[alone])
    for child in (stopped, alone):
        child.send(signal.SIGSTOP)
        wait_until("it to stop", lambda: state_of(child.pid) == "T")
    began = time.monotonic()
    child = workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "200ms", "-o", workspace.path("hung"), "--json", expect=kNotAllGood)
    check(time.monotonic() - began < 10, "it took %.1f s", time.monotonic() - began)
    told = {each["pid"]: (each["verdict"], each["reason"], each["good"]) for each in json.loads(child.out())["processes"]}
    check(told == {works.pid: ("captured", "", True), stopped.pid: ("hung", "stopped: state T; it did not attach within 2 s", False),
                   deaf.pid: ("hung", "it did not attach within 2 s", False), alone.pid: ("hung", "stopped: state T", False)}, "verdicts: %s", told)
    text = workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "200ms", "-o", workspace.path("text"), expect=kNotAllGood).out()
    marked = [line for line in text.splitlines() if line.startswith("!")]
    check(len(marked) == 3 and all("hung: " in line for line in marked), "the text:\n%s", text)
    seen = {each["pid"]: each["verdict"] for each in workspace.json("ps", "--hosts", node.endpoint)}
    check(seen[stopped.pid] == seen[alone.pid] == "hung" and seen[works.pid] != "hung", "ps: %s", seen)
    for child in (stopped, alone):
        child.send(signal.SIGCONT)
    deaf.end()
    told = workspace.json("trace", "--hosts", node.endpoint, "--duration", "200ms", "-o", workspace.path("goes-on"))["processes"]
    check({each["verdict"] for each in told} == {"captured"}, "going on: %s", told)


def made(path):
    """How many numbers it has marked."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return int.from_bytes(file.read(8), "little")


def launchers(workspace, program):
    """A version manager's `python3`: a shell that runs some tens of short programs before it becomes the one that matters."""
    node = Node(workspace, "node")
    wrapper = workspace.path("python3")
    with open(wrapper, "w") as file:
        file.write("#!/bin/sh\nfor n in $(seq %d); do /usr/bin/env true; done\nexec %s \"$@\"\n" % (kShortOnes, program))
    os.chmod(wrapper, 0o755)

    def wrapped(name):
        child = workspace.start(name, node.job_command(wrapper, workspace.path(name), "1", "1000000"), node.environment())
        wait_until("the one that matters", lambda: made(workspace.path(name)) > 10, children=[child])
        return child

    trace = Trace(workspace, [node], workspace.path("traced"))
    child = wrapped("first")
    told = trace.end()["processes"]
    recorded = [each for each in told if each["events"] > 0]
    check([(each["pid"], each["verdict"]) for each in recorded] == [(child.pid, "captured")], "recorded: %s", recorded)
    # The shim takes away what it leaves empty, so that the agent has not met each of them.
    quiet = [each for each in told if each["events"] == 0]
    check(quiet and all(each["verdict"] == "nothing recorded" and each["reason"].startswith("no framework") for each in quiet), "the others: %s", quiet)
    check(len(node.segments()) == 1, "left are %s", node.segments())
    child.end()
    command = workspace.start("text", [kCommand, "trace", "--hosts", node.endpoint, "--duration", "120s", "-o", workspace.path("again")])
    wait_until("the trace to capture", lambda: "capturing" in command.err(), children=[command])
    child = wrapped("second")
    command.send(signal.SIGINT)
    command.wait()
    lines = command.out().splitlines()
    check(len([line for line in lines if " %d " % child.pid in line and "captured" in line]) == 1, "the text:\n%s", command.out())
    check(len([line for line in lines if line.endswith("more recorded nothing: no framework")]) == 1, "the text:\n%s", command.out())
    check("/bin/sh" not in command.out(), "the text:\n%s", command.out())


def limit(workspace, program):
    """A limit's place is for the one that matters, though all that is there when the trace begins is the shell that will become it, with its short programs."""
    node = Node(workspace, "node")
    wrapper, go = workspace.path("python3"), workspace.path("go")
    with open(wrapper, "w") as file:
        file.write("#!/bin/sh\nwhile [ ! -e %s ]; do sleep 0.02; done\nfor n in $(seq %d); do /usr/bin/env true; done\nexec %s \"$@\"\n" % (go, kShortOnes, program))
    os.chmod(wrapper, 0o755)

    def wrapped(name):
        child = workspace.start(name, node.job_command(wrapper, workspace.path(name), "1", "1000000"), node.environment())
        wait_until("the shell", lambda: node.segments(), children=[child])
        return child

    first = wrapped("first")
    trace = Trace(workspace, [node], workspace.path("traced"), options=["--limit", "1"])
    open(go, "w").close()
    wait_until("the one that matters", lambda: made(workspace.path("first")) > 0, children=[first])
    # It has a place once it is seen; from then on each number that it makes is in the dump.
    place = wait_until("it to record", lambda: recorded_by(workspace, node).get(first.pid), children=[first])
    before = made(workspace.path("first"))
    second = wrapped("second")
    wait_until("more numbers", lambda: made(workspace.path("first")) > before + 100 and made(workspace.path("second")) > 100, children=[first, second])
    told = trace.end()
    recorded = {each["pid"]: (each["verdict"], each["events"]) for each in told["processes"] if each["events"] > 0}
    check(list(recorded) == [first.pid] and recorded[first.pid][0] == "captured" and recorded[first.pid][1] >= max(place, 100), "recorded: %s", told["processes"])
    check([each["left_out"] for each in told["nodes"]] == [1], "of the second: %s", told["nodes"])
    # Of a name that comes in the middle, and marks at once: it is there, and the verdict says what it may lack.
    os.unlink(go)
    first.end()
    second.end()
    third = wrapped("third")
    shell = os.path.basename(os.path.realpath("/bin/sh"))
    trace = Trace(workspace, [node], workspace.path("of-a-name"), options=["--exe", "numbered", "--exe", shell])
    open(go, "w").close()
    wait_until("the one that matters", lambda: made(workspace.path("third")) > 0, children=[third])
    wait_until("it to record", lambda: recorded_by(workspace, node).get(third.pid), children=[third])
    told = {each["pid"]: each for each in trace.end()["processes"] if each["events"] > 0}
    check(list(told) == [third.pid] and told[third.pid]["verdict"] == "captured", "of a name: %s", told)


def recorded_by(workspace, node):
    return {each["pid"]: each["events"] for each in workspace.json("ps", "--hosts", node.endpoint) if each["events"]}


kPause = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def untraced(workspace, program):
    """Tasks that no preload reaches, and ranks of whom nobody has heard, with their ranks and reasons: in ps and in the trace."""
    if os.geteuid() != 0 or shutil.which("gcc") is None:
        skip("to make a static program and a setuid one of another user needs gcc and root")
    source, static, setuid = workspace.path("pause.c"), workspace.path("static"), workspace.path("setuid")
    with open(source, "w") as file:
        file.write(kPause)
    made = subprocess.run(["gcc", "-static", "-o", static, source], stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        skip("no static C library here: %s" % made.stderr.strip()[:200])
    subprocess.run(["gcc", "-o", setuid, source], check=True)
    # It becomes that user, and reaches its own file as that user.
    os.chmod(workspace.disk, 0o755)
    os.chown(setuid, pwd.getpwnam("nobody").pw_uid, -1)
    os.chmod(setuid, 0o4755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE", "RANK"))}
    clean.update(RINGSIDE_DIR=workspace.root, RINGSIDE_JOB="job", SLURM_GTIDS="0,1,2,3,4")
    wrap = os.path.join(kSource, "tools", "ringside-wrap")
    commands = ([program, workspace.path("numbers"), "1", "1000000"], [static], [setuid], ["sh", "-c", "exec " + static])
    tasks = [workspace.start("task%d" % rank, [wrap, *command], dict(clean, RANK=str(rank), SLURM_PROCID=str(rank))) for rank, command in enumerate(commands)]
    expected = {0: ("alive", ""), 1: ("not injected", "static"), 2: ("not injected", "setuid"),
                3: ("not injected", "no word from it: it runs without the preload"),
                4: ("not injected", "no word from it on this node (another user's? started without ringside-wrap?)")}

    def listed():
        done = workspace.ringside("ps", "--job", "job", "--json", environment=clean, expect=None)
        if done.process.returncode != 0:
            return {}
        return {each["rank"]: (each["verdict"] if each["verdict"] == "not injected" else "alive", each["reason"]) for each in json.loads(done.out())}

    wait_until("ps to tell of all", lambda: listed() == expected, children=tasks)
    child = workspace.ringside("trace", "--job", "job", "--duration", "200ms", "-o", workspace.path("traced"), "--json", environment=clean,
                               expect=kNotAllGood)
    told = {each["rank"]: each for each in json.loads(child.out())["processes"]}
    check({rank: (each["verdict"], each["reason"]) for rank, each in told.items()} == {**expected, 0: ("captured", "")}, "verdicts: %s", told)
    check(told[0]["events"] > 0 and told[1]["executable"] == static, "verdicts: %s", told)
    # The task's own pid, not its wrapper's.
    with open("/proc/%d/stat" % told[1]["pid"]) as file:
        check(int(file.read().rpartition(")")[2].split()[1]) == tasks[1].pid, "pid %d is no child of the wrapper", told[1]["pid"])
    one = workspace.ringside("trace", "--job", "job", "--duration", "100ms", "--rank", "1", "-o", workspace.path("static-alone"), "--json", environment=clean,
                             expect=kNotAllGood)
    check([each["reason"] for each in json.loads(one.out())["processes"]] == ["static"], "of rank 1 alone: %s", one.out())
    # A task that has ended is none that has never been there.
    tasks[1].send(signal.SIGTERM)
    tasks[1].wait(expect=None)
    del expected[1]
    wait_until("ps to forget it", lambda: listed() == expected, children=[tasks[0]])
    for task in tasks:
        task.send(signal.SIGTERM)
    for task in tasks:
        task.wait(expect=None)
    wait_until("the directory to go", lambda: os.listdir(workspace.root) == [])


kCases = {"hung": hung, "launchers": launchers, "limit": limit, "untraced": untraced}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "verdicts-" + sys.argv[1])
