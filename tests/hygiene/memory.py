#!/usr/bin/python3
"""Memory that is short: a full file system, a small one that the job needs itself, a memory cgroup without headroom, the node's budget; and lanes
that grow when the agent is late, a thousand of them. The job is unharmed, and what is not recorded is counted.

    memory.py CASE
"""
import os
import signal
import subprocess

from cases import Captured, Job, Node, bare, check, compile_c, kCommand, kLives, kLosses, kPython, kShim, need, outcome, run, skip, wait_until, written

kMiB = 1 << 20
# Fills the cgroup nearly up to its limit, and then has many threads record as much as they like.
kHungry = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inject/sources/api/ringside.h"
enum { kThreads = 24, kRanges = 40000 };
static void* record(void* unused) {
    for (int i = 0; i < kRanges; ++i) { ringside_range_push("hungry"); ringside_range_pop(); }
    return unused;
}
int main(int count, char** arguments) {
    const size_t own = (size_t)atoi(arguments[1]) << 20;
    char* memory = malloc(own);
    memset(memory, count, own);
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, record, NULL);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    printf("%d\\n", memory[own - 1]);
    return 0;
}
"""
# Threads that are all there at once, from before their first record until after their last: each counts from 0 to RECORDS.
kCounters = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "inject/sources/api/ringside.h"
static pthread_barrier_t all;
static int records;
static void* record(void* unused) {
    pthread_barrier_wait(&all);
    for (int i = 0; i < records; ++i) ringside_counter("n", i);
    pthread_barrier_wait(&all);
    return unused;
}
int main(int count, char** arguments) {
    const int threads = atoi(arguments[count - 2]);
    records = atoi(arguments[count - 1]);
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_t* ids = calloc((size_t)threads, sizeof *ids);
    for (int i = 0; i < threads; ++i) if (pthread_create(&ids[i], &small, record, NULL) != 0) return 1;
    for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    puts("counted");
    return 0;
}
"""
# Batches of 8 MiB through /dev/shm, several in flight; what lies in the job's own folder there, at most, is told at the end.
kLoader = """
import os, sys, torch
from torch.utils.data import DataLoader, Dataset
class Big(Dataset):
    def __len__(self): return 24
    def __getitem__(self, n): return torch.full((1024, 896), float(n))
if __name__ == "__main__":
    ours = lambda: sum(os.stat(os.path.join(d, f)).st_blocks * 512 for d, _, fs in os.walk(os.environ["RINGSIDE_DIR"]) for f in fs if f != "done")
    most, total = 0, 0.0
    for batch in DataLoader(Big(), batch_size=2, num_workers=3):
        total += batch.neg().mean().item()
        most = max(most, ours())
    print(total)
    print("most", most, file=sys.stderr)
"""


def in_private_mounts(script, environment, workspace):
    """The script, in a mount namespace of its own."""
    unshare = need("unshare", "util-linux")
    if subprocess.run([unshare, "-m", "true"], capture_output=True).returncode != 0:
        skip("mount namespaces are not allowed here")
    return outcome([unshare, "-m", "sh", "-c", script], environment, workspace, deadline_s=120)


def cgroup(workspace, limit):
    """A memory cgroup of ours, its folder; v2 where memory is there, else v1."""
    name = "ringside-test-%d" % os.getpid()
    for parent, limit_file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/unified", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        folder = os.path.join(parent, name)
        try:
            os.mkdir(folder)
            # Not to be made: where no cgroup is mounted the file is not there.
            with open(os.path.join(folder, limit_file), "r+") as file:
                file.write(str(limit))
            return folder
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
    return skip("no memory cgroup can be made here")


def cgroup_without_headroom(workspace):
    program = compile_c(workspace, written(workspace, "hungry.c", kHungry), "hungry", "-pthread") or skip("no C compiler here")
    limit, own = 64 * kMiB, 52
    folder = cgroup(workspace, limit)
    try:
        enter = ["sh", "-c", "echo $$ > %s/cgroup.procs; exec %s %d" % (folder, program, own)]
        without = outcome(enter, bare(), workspace)
        check(without.status == 0, "without the shim: %s", without)
        captured = Captured(workspace, enter, status=None)
        check(captured.result == without, "in a capture: %s, without the shim %s", captured.result, without)
        kept, lost, refused = captured.counts()["hungry"], captured.lost(), captured.loss("lane refused")
        # A lane counts the ranges that it drops, a thread without one its pops: a push that finds no lane would have written nothing.
        check(kept > 0 and lost > 0, "%d kept, %d lost: nothing was short", kept, lost)
        check(refused <= lost and kept + lost == 24 * 40000, "%d kept, %d lost, of which %d without a lane, of %d", kept, lost, refused, 24 * 40000)
        check(captured.loss("by cgroup") > 0, "it is not said what was short")
        print("limit %d MiB, the job has %d: %d kept, %d lost, of which %d without a lane" % (limit // kMiB, own, kept, lost, refused), flush=True)
    finally:
        os.rmdir(folder)


def counters(workspace):
    return compile_c(workspace, written(workspace, "counters.c", kCounters), "counters", "-pthread") or skip("no C compiler here")


def check_counted(job, threads, records):
    """Each lane's numbers ascend from what one thread wrote, none is there twice, and what is missing is what is said to be lost.
    @return (kept, lost)
    """
    numbers = {}
    for _, process, lane, _, _, value, *_ in job.events[0].marks:
        numbers.setdefault((process, lane), []).append(value)
    for lane, each in numbers.items():
        check(all(a < b for a, b in zip(each, each[1:])) and 0 <= each[0] and each[-1] < records, "lane %s: its numbers are not those of one thread", lane)
    kept, lost = sum(map(len, numbers.values())), job.counts()["lost"]
    check(kept + lost == threads * records, "%d kept, %d lost of %d", kept, lost, threads * records)
    return kept, lost


def thousand_threads(workspace):
    """1024 threads at once: each has its lane, and nothing is lost, within what a node may have by default."""
    threads, records = 1024, 50
    captured = Captured(workspace, [counters(workspace), str(threads), str(records)])
    check(captured.result.out == "counted\n", "the program: %s", captured.result)
    kept, lost = check_counted(captured.job, threads, records)
    check(lost == 0, "%d lost of %d", lost, threads * records)
    check(len({mark[2] for mark in captured.job.events[0].marks}) == threads, "not a lane for each thread")
    print("%d threads, %d records, none lost" % (threads, kept), flush=True)


def stopped_agent(workspace):
    """Nobody drains: lanes of 64 KiB grow, as far as they may, and what finds no room then is counted to the last record."""
    program, threads = counters(workspace), 2
    for most_kib, records in ((4096, 100000), (512, 100000)):
        node = Node(workspace, "stopped%d" % most_kib, capture_from_start=True,
                    extra=["--name", "all", "--first-lane-kib", "64", "--most-lane-kib", str(most_kib)])
        node.agent.send(signal.SIGSTOP)
        got = outcome([program, str(threads), str(records)], node.environment(LD_PRELOAD=kShim), workspace)
        real = sum(os.stat(os.path.join(node.root, "job", name)).st_blocks * 512 for name in node.segments())
        node.agent.send(signal.SIGCONT)
        check((got.status, got.out) == (0, "counted\n"), "the program: %s", got)
        wait_until("its segment to go", lambda: not node.segments())
        node.stop()
        job = Job(workspace.path("output", node.name, "all"))
        check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
        kept, lost = check_counted(job, threads, records)
        # A lane's largest ring, and nothing beyond.
        room = threads * min(records, most_kib * 1024 // 32)
        check(kept == room, "lanes of at most %d KiB kept %d of %d records, there is room for %d", most_kib, kept, threads * records, room)
        print("at most %d KiB a lane: %d kept, %d lost, %d KiB real" % (most_kib, kept, lost, real // 1024), flush=True)


def node_budget(workspace):
    """Several processes that all want more than there is: together they stay within the node's budget, what is refused is said, and what the
    dead had is there for the next."""
    program, budget, records = counters(workspace), 3 * kMiB, 60000
    node = Node(workspace, "budget", capture_from_start=True, extra=["--name", "all", "--node-budget", "3M", "--first-lane-kib", "64"])
    ours = lambda: sum(os.stat(os.path.join(node.root, "job", name)).st_blocks * 512 for name in node.segments())
    for _ in range(2):
        node.agent.send(signal.SIGSTOP)
        jobs = [subprocess.Popen([program, "4", str(records)], env=node.environment(LD_PRELOAD=kShim), stdout=subprocess.DEVNULL) for _ in range(4)]
        check([job.wait(60) for job in jobs] == [0] * 4, "the programs: %s", [job.returncode for job in jobs])
        # A header page each, the pages of the lane table, and what the budget is about.
        taken = ours()
        check(budget // 2 < taken <= budget + 4 * 3 * 4096, "%d bytes are real, the budget is %d", taken, budget)
        node.agent.send(signal.SIGCONT)
        wait_until("their segments to go", lambda: not node.segments())
        print("%d KiB real of a budget of %d KiB" % (taken // 1024, budget // 1024), flush=True)
    node.stop()
    job = Job(workspace.path("output", node.name, "all"))
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    kept, lost = check_counted(job, 8 * 4, records)
    by_node = sum(end.losses[kLosses.index("by node")] for end in job.dumps[0].footer.processes)
    check(kept > 0 and lost > 0 and by_node > 0, "%d kept, %d lost, refused %d times", kept, lost, by_node)
    table = subprocess.run([kCommand, "table", workspace.path("output", node.name, "all")], capture_output=True, text=True)
    check("times by the node's budget" in table.stdout, "the table does not say what refused the memory:\n%s", table.stdout[-600:])


def full_file_system(workspace):
    """A root of 64 KiB that is full, and one with room for a header and not for a lane."""
    lives = "%s fork && %s threads && %s hello" % (kLives, kLives, kLives)
    expected = outcome(["sh", "-c", lives], bare(), workspace)
    for size, filled in (("64k", 64), ("64k", 40), ("256k", 0)):
        place = workspace.path("small")
        os.makedirs(place, exist_ok=True)
        script = "mount -t tmpfs -o size=%s,mode=700 tmpfs %s && { dd if=/dev/zero of=%s/full bs=1k count=%d 2>/dev/null; export LD_PRELOAD=%s; %s; }" % (
            size, place, place, filled, kShim, lives)
        got = in_private_mounts(script, dict(bare(), RINGSIDE_DIR=place, RINGSIDE_JOB="job"), workspace)
        check(got == expected, "%s with %d KiB taken: %s, expected %s", size, filled, got, expected)
        run_there = "mount -t tmpfs -o size=%s,mode=700 tmpfs %s && %s run -o %s -- %s threads" % (size, place, kCommand, workspace.path("out-" + size + str(filled)), kLives)
        got = in_private_mounts(run_there, dict(bare(), RINGSIDE_DIR=place), workspace)
        check(got.status == 0 and got.out == "threads 200\n", "ringside run in %s: %s", size, got)


def small_shared_memory(workspace):
    """64 MiB of /dev/shm that DataLoader's workers send their batches through: they get them, and we stay within half of what is free. Two a worker are under
    way, and the job holds up to two more: 56 MiB."""
    if subprocess.run([kPython, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("%s has no torch" % kPython)
    loader = written(workspace, "loader.py", kLoader)
    mount = "mount -t tmpfs -o size=64m tmpfs /dev/shm && mkdir -m 700 /dev/shm/ours && "
    environment = dict(bare(), RINGSIDE_DIR="/dev/shm/ours")
    plain = in_private_mounts(mount + "%s -W ignore %s" % (kPython, loader), environment, workspace)
    check(plain.status == 0, "64 MiB are too few for the job alone: %s", plain)
    traced = in_private_mounts(mount + "%s run -o %s -- %s -W ignore %s" % (kCommand, workspace.path("out"), kPython, loader), environment, workspace)
    check((traced.status, traced.out) == (0, plain.out), "traced: %s, without us %s", traced, plain)
    most = int(traced.err.split("most")[1].split()[0])
    check(0 < most <= 32 * kMiB, "of 64 MiB we have taken %d KiB", most // 1024)
    print("we took %d KiB of 64 MiB" % (most // 1024), flush=True)


if __name__ == "__main__":
    run({"cgroup_without_headroom": cgroup_without_headroom, "full_file_system": full_file_system, "node_budget": node_budget,
         "small_shared_memory": small_shared_memory, "stopped_agent": stopped_agent, "thousand_threads": thousand_threads})
