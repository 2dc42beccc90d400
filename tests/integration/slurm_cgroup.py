#!/usr/bin/python3
"""A Slurm that holds each step in control groups. A step that is killed in the middle of a capture: what was recorded is in the agent's last dump, or
`ringside recover` has it, and no process stays. A job at its memory's limit is not pushed over it by a capture.

    slurm_cgroup.py CASE [PROGRAM]        CASE: ddp killed time_limit memory
"""
import glob
import json
import mmap
import os
import shutil
import signal
import struct
import sys
import time

import slurm_ddp
from harness import check, kCommand, kPython, main, skip, wait_until
from rsd.codec import kMark
from rsd.index import Job
from slurm import job_directories, kWrap
from slurm_host import Slurm

kMounts = "/sys/fs/cgroup"
kInCapture = 2000  # numbers
kMiB = 1 << 20
kLimit, kHeadroom = 96 * kMiB, 6 * kMiB
kThreads = 8
# Fills a memory cgroup up to HEADROOM below its limit. What the kernel would give back first does not count.
kEater = """
import sys, time
folder, headroom, said = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def used():
    stat = dict(line.split() for line in open(folder + "/memory.stat"))
    return int(open(folder + "/memory.usage_in_bytes").read()) - int(stat["total_inactive_file"]) - int(stat["total_active_file"])
limit, blocks = int(open(folder + "/memory.limit_in_bytes").read()), []
while used() + headroom < limit:
    blocks.append(bytearray(b"x" * 65536))
open(said, "w").close()
while True:
    time.sleep(1)
"""


def cgroup_slurm(workspace, nodes=1):
    if not os.path.ismount(os.path.join(kMounts, "freezer")):
        skip("no freezer of cgroups v1 at %s" % kMounts)
    check(not groups(), "there are control groups of another Slurm's nodes: %s", groups())
    workspace.on_exit(remove_groups)
    return Slurm(workspace, nodes, proctrack="proctrack/cgroup")


def groups():
    return glob.glob(os.path.join(kMounts, "*", "slurm_n[1-9]"))


def processes_in(folder):
    found = []
    for inside, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            with open(os.path.join(inside, "cgroup.procs")) as file:
                found += file.read().split()
    return found


def remove_groups():
    """Slurm leaves its folders, with nobody in them."""
    for group in groups():
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)


def check_empty(slurm):
    """After Slurm's end nobody of it is left."""
    seen = groups()
    check(any("/freezer/" in group for group in seen), "Slurm has made no control group: %s", seen)
    wait_until("the step's end", lambda: not slurm.jobs() and not slurm.processes("slurmstepd"))
    in_steps = [pid for group in groups() for folder in glob.glob(group + "/uid_*") for pid in processes_in(folder)]
    check(not in_steps, "left in the step's control group: %s", [(pid, open("/proc/%s/cmdline" % pid).read()) for pid in in_steps])
    slurm.stop()
    left = [pid for group in groups() for pid in processes_in(group)]
    check(not left, "left in %s: %s", groups(), left)


def made(path):
    """How many numbers the first thread has made."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as memory:
        return struct.unpack_from("<Q", memory)[0]


def killed_in_capture(workspace, program, period_ns, how):
    """@param how  how(slurm, job): the step ends by it"""
    slurm = cgroup_slurm(workspace)
    agents_output = workspace.path("output")
    child = slurm.srun("srun", "-N1", "-n2", kWrap, "--agent-output", agents_output, "sh", "-c",
                       "exec %s %s/numbers.$SLURM_PROCID 1 %d" % (program, workspace.disk, period_ns))
    job = slurm.await_job([child])
    files = [workspace.path("numbers.%d" % rank) for rank in range(2)]
    wait_until("numbers", lambda: all(os.path.exists(path) and os.path.getsize(path) and made(path) > 100 for path in files), children=[child])
    trace = workspace.start("trace", [kCommand, "trace", "--job", job, "--duration", "120s", "-o", workspace.path("trace"), "--json"], slurm.environment)
    wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace, child])
    before = [made(path) for path in files]
    wait_until("numbers in it", lambda: all(made(path) > count + kInCapture for path, count in zip(files, before)), children=[trace, child])
    began = time.monotonic()
    how(slurm, job)
    child.wait(expect=None)
    trace.wait(expect=None)
    print("the step ended after %.1f s with %s, the trace with %s: %s" % (
        time.monotonic() - began, child.process.returncode, trace.process.returncode, trace.err().strip().split("\n")[-1]), flush=True)
    check_empty(slurm)
    whole = glob.glob(workspace.path("trace", "*.rsd"))
    by = "the agent"
    if not whole:
        whole, by = recovered(workspace, slurm), "recover"
    check(len(whole) == 1, "dumps: %s", whole)
    print("by %s: %s" % (by, os.path.basename(whole[0])), flush=True)
    check_numbers(Job(whole), files, before)
    return child.process.returncode


def recovered(workspace, slurm):
    """Of the one job directory that is left: its dumps. What remains then is of no process."""
    directory, = job_directories(workspace)
    done = workspace.ringside("recover", "--dir", workspace.root, "--job", directory, "-o", workspace.path("recovered"), "--json",
                              environment=slurm.environment, expect=None)
    check(done.process.returncode in (0, 1), "recover ended with %s: %s", done.process.returncode, done.tail())
    left = os.listdir(os.path.join(workspace.root, directory))
    check(not [name for name in left if name.replace(".", "").isdigit() or name == "capture"], "recovered, and there are %s", left)
    shutil.rmtree(os.path.join(workspace.root, directory))
    return [told["dump"] for told in json.loads(done.out())]


def check_numbers(job, files, before):
    """Each number that was made from the capture's begin on is in the dump, or lost and counted."""
    dump, = job.dumps
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    rank_of = {index: process.rank for index, process in dump.processes.items()}
    marks = [(rank_of[process], [r.words[3] for r, _, _ in lane.records if r.kind == kMark]) for (process, _), lane in dump.lanes.items()]
    lanes = {rank: numbers for rank, numbers in marks if numbers}
    check(sorted(rank for rank, numbers in marks if numbers) == [0, 1], "ranks with numbers: %s", marks)
    for rank, numbers in lanes.items():
        check(numbers[0] <= before[rank], "rank %d: the first number is %d, %d were made when the capture ran", rank, numbers[0], before[rank])
        total = made(files[rank])
        lost = sum(lane.lost for lane in dump.footer.lanes if rank_of[lane.process] == rank)
        # The last one may be recorded, and not yet noted as made.
        check(total - numbers[0] <= len(numbers) + lost <= total - numbers[0] + 1, "rank %d: %d made, the dump has %d from %d on, and %d lost",
              rank, total, len(numbers), numbers[0], lost)
        print("rank %d: %d numbers made since the capture's begin, %d in the dump, %d lost" % (rank, total - numbers[0], len(numbers), lost), flush=True)


def killed(workspace, program):
    """Of a job KILL would be its end in order: TERM, and KILL for what is left. Of a step it comes at once, to all that is in it, the agent too."""
    status = killed_in_capture(workspace, program, 20_000, lambda slurm, job: slurm.ask("scancel", "--signal=KILL", job + ".0"))
    check(status == 128 + signal.SIGKILL, "the step ended with %s", status)


def time_limit(workspace, program):
    def over(slurm, job):
        # A limit is told in minutes, its end to the second; the controller looks twice a minute.
        slurm.ask("scontrol", "update", "JobId=" + job, "EndTime=now+2")

    killed_in_capture(workspace, program, 500_000, over)


def ddp(workspace, _):
    """What slurm_ddp.py has, with each step in a control group: captures, and the job's own end, after which its agents are gone too."""
    slurm = cgroup_slurm(workspace, slurm_ddp.kNodes)
    slurm_ddp.one_job(slurm)
    slurm_ddp.ends_on(slurm)
    check(job_directories(workspace) == [], "left: %s", job_directories(workspace))
    check_empty(slurm)


def memory(workspace, program):
    """The agent's memory counts, too: the wrapper is in the group, as under ConstrainRAMSpace."""
    group = os.path.join(kMounts, "memory", "ringside-test-%d" % os.getpid())
    if not os.path.exists(os.path.join(kMounts, "memory", "memory.limit_in_bytes")):
        skip("no memory cgroups v1 at %s" % kMounts)
    slurm = cgroup_slurm(workspace)
    os.mkdir(group)
    workspace.on_exit(lambda: wait_until("the group to be empty", lambda: not processes_in(group), deadline_s=10) and os.rmdir(group))
    with open(os.path.join(group, "memory.limit_in_bytes"), "w") as file:
        file.write(str(kLimit))
    eater, full = workspace.path("eater.py"), workspace.path("full")
    with open(eater, "w") as file:
        file.write(kEater)
    numbers = workspace.path("numbers")
    inner = "RINGSIDE_DISABLE=1 %s %s %s %d %s & exec %s %s %d 0" % (kPython, eater, group, kHeadroom, full, program, numbers, kThreads)
    child = slurm.srun("srun", "-N1", "-n1", "sh", "-c", "echo $$ > %s/cgroup.procs && exec %s sh -c '%s'" % (group, kWrap, inner))
    job = slurm.await_job([child])
    wait_until("the group to be full", lambda: os.path.exists(full), children=[child])
    told = workspace.ringside("trace", "--job", job, "--duration", "300ms", "-o", workspace.path("trace"), "--json", environment=slurm.environment, expect=None)
    with open(os.path.join(group, "memory.oom_control")) as file:
        control = dict(line.split() for line in file)
    check(child.process.poll() is None and control["oom_kill"] == "0" and control["under_oom"] == "0",
          "the capture has cost the job its memory: %s\n%s", control, child.tail())
    check(told.process.returncode in (0, 1), "trace ended with %s: %s", told.process.returncode, told.tail())
    process, = [each for each in json.loads(told.out())["processes"] if each["events"] + each["lost"] > 0]
    check(process["verdict"] == "captured", "the verdict is %s", process)
    read = Job(workspace.path("trace"))
    check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
    print("limit %d MiB, %d MiB of it free: %d events, %d lost, %s; oom_control %s" % (
        kLimit // kMiB, kHeadroom // kMiB, process["events"], process["lost"], process["reason"], control), flush=True)
    slurm.ask("scancel", job)
    child.wait(expect=None)
    check_empty(slurm)


kCases = {"ddp": ddp, "killed": killed, "time_limit": time_limit, "memory": memory}

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, *(sys.argv[2:] or [None])), "cgroup-" + sys.argv[1], limit_s=300)
