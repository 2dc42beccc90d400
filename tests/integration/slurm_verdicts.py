#!/usr/bin/python3
"""Sixteen tasks on two nodes of a Slurm, of which one is stopped, one ends in the capture, one is another user's, one is static: each has its true verdict, the
exit status says that not all are good, and nobody is waited for without end.

    slurm_verdicts.py PROGRAM
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import check, kCommand, main, skip, wait_until
from rsd.index import Job
from slurm import kWrap, state_of
from slurm_cgroup import made
from slurm_host import Slurm

kTasks = 16
kStatic, kOthers, kStopped, kEnds = 3, 6, 9, 12
# A task of which there is no word at all is given five seconds to come.
kDurationS, kMostS = 6.0, 12.0
kNobody = "65534"
# Whatever a task becomes, it says that it is there.
kTask = """\
numbers={folder}/numbers.$SLURM_PROCID
case $SLURM_PROCID in
%d) exec {wrap} {static} $numbers ;;
%d) exec setpriv --reuid={nobody} --regid={nobody} --clear-groups {wrap} {program} $numbers 1 1000000 ;;
*) exec {wrap} {program} $numbers 1 1000000 ;;
esac
""" % (kStatic, kOthers)
kProgram = """\
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** words) { return count == 2 && open(words[1], O_CREAT | O_WRONLY, 0600) >= 0 ? pause() : 1; }
"""
# rank: (verdict, what its reason has)
kExpected = {rank: ("captured", "") for rank in range(kTasks)}
kExpected.update({kStatic: ("not injected", "static"), kOthers: ("not injected", "user"), kStopped: ("hung", ""), kEnds: ("exited", "")})


def static_program(workspace):
    source, program = workspace.path("static.c"), workspace.path("static")
    with open(source, "w") as file:
        file.write(kProgram)
    if shutil.which("cc") is None:
        skip("no C compiler here")
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    return program


def pid_of(rank, folder):
    """Of the task's own process, by what its command line names."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0].endswith("numbered") and os.path.join(folder, "numbers.%d" % rank) in words:
            return int(pid)
    return 0


def test(workspace, program):
    if shutil.which("setpriv") is None:
        skip("no setpriv here (util-linux)")
    folder = workspace.path("numbers")
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    script = kTask.format(wrap=kWrap, static=static_program(workspace), program=program, folder=folder, nobody=kNobody)
    slurm = Slurm(workspace, 2)
    child = slurm.srun("srun", "-N2", "-n%d" % kTasks, "sh", "-c", script)
    job = slurm.await_job([child])
    wait_until("the tasks", lambda: len(os.listdir(folder)) == kTasks, children=[child])
    for rank in set(range(kTasks)) - {kStatic}:
        path = os.path.join(folder, "numbers.%d" % rank)
        wait_until("rank %d" % rank, lambda path=path: os.path.getsize(path) > 0 and made(path) > 10, children=[child])
    stopped = wait_until("rank %d" % kStopped, lambda: pid_of(kStopped, folder))
    os.kill(stopped, signal.SIGSTOP)
    wait_until("it to stop", lambda: state_of(stopped) == "T")
    output = workspace.path("trace")
    began = time.monotonic()
    trace = workspace.start("trace", [kCommand, "trace", "--job", job, "--duration", "%gs" % kDurationS, "-o", output, "--json"], slurm.environment)
    wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace])
    os.kill(pid_of(kEnds, folder), signal.SIGTERM)
    trace.wait(expect=None)
    took = time.monotonic() - began
    told = json.loads(trace.out())
    print("%d tasks: trace took %.1f s, %.1f s of them the capture, and ended with %s" % (kTasks, took, kDurationS, trace.process.returncode), flush=True)
    by_rank = collections.defaultdict(list)
    for each in told["processes"]:
        by_rank[each["rank"]].append((each["verdict"], each["reason"]))
    wrong = ["rank %d: expected %s, told %s" % (rank, expected, by_rank.get(rank)) for rank, expected in sorted(kExpected.items())
             if len(by_rank[rank]) != 1 or by_rank[rank][0][0] != expected[0] or expected[1] not in by_rank[rank][0][1]]
    check(not wrong, "%s", "; ".join(wrong))
    check(set(by_rank) == set(kExpected), "verdicts of others too: %s", {rank: told for rank, told in by_rank.items() if rank not in kExpected})
    check(trace.process.returncode == 1, "it ended with %s: some verdicts are not good", trace.process.returncode)
    check(took < kDurationS + kMostS, "it took %.1f s", took)
    read = Job(output)
    check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
    for rank in (kStatic, kOthers, kStopped):
        print("rank %d: %s (%s)" % (rank, *by_rank[rank][0]), flush=True)
    os.kill(stopped, signal.SIGCONT)
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait(expect=None)


if __name__ == "__main__":
    main(lambda workspace: test(workspace, sys.argv[1]), "verdicts", limit_s=200)
