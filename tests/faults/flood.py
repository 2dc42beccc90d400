#!/usr/bin/python3
"""Floods: written = kept + lost to the last record. Written is the program's own counter, which each record carries; kept is what the loader
and the second reader find, each by itself.

    flood.py CASE SECONDS [RECORDS]     RECORDS a thread makes at most; 0, or left out: as many as it can in SECONDS
"""
import os
import signal
import subprocess

from fault import (check, check_chunks, kFaults, kShim, kWriter, lanes_by_thread, losses, Node, ranges_by_thread, read, run, Trace, wait_until, written)
from rsd import codec
from rsd.events import kRepeated

kThreads = 2
kReadAll = 3_000_000  # records that the second reader, which is slow, decodes


def flood(workspace, seconds, records, agent=(), trace=(), stopped=False):
    """@return the trace's folder and JSON, and what each thread has written"""
    node = Node(workspace, "node", extra=agent)
    go, leave = workspace.path("go"), workspace.path("leave")
    job = workspace.start("job", node.job_command(kWriter, "flood", str(kThreads), records, seconds, go, leave), node.environment())
    wait_until("its segment", node.segments, children=[job])
    tracing = Trace(workspace, [node], workspace.path("trace"), options=trace)
    if stopped:
        node.agent.send(signal.SIGSTOP)
    with open(go, "w"):
        pass
    wait_until("the flood to be over", lambda: "done" in job.out(), children=[job])
    if stopped:
        node.agent.send(signal.SIGCONT)
    told = tracing.end(expect=None)
    with open(leave, "w"):
        pass
    job.wait()
    node.stop()
    made = written(job)
    check(len(made) == kThreads, "the flood says %s", job.out())
    return tracing.output, told, made


def by_the_loader(output, made, most_ours_lost):
    """The viewers' own loader: whole ranges, each number greater than the one before, and the account of each lane.
    @param most_ours_lost  records of ours that a dump which is full may have refused, beside the program's
    """
    done = subprocess.run([os.path.join(kFaults, "flood_check"), output], capture_output=True, text=True)
    check(done.returncode == 0, "the loader on %s: %s", output, done.stderr)
    kept, lost = dict.fromkeys(made, 0), dict.fromkeys(made, 0)
    for line in done.stdout.splitlines():
        tid, ranges, lane_kept, lane_lost, lane_written, first, last, ordered = (int(word) for word in line.split())
        # After a drop the lane says again which request it serves: a record of ours, not of the program's.
        check(ranges <= lane_kept and ordered, "lane of %d: %d ranges, its account says %d; in order %d", tid, ranges, lane_kept, ordered)
        check(lane_written == lane_kept + lane_lost, "lane of %d: written %d, kept %d, lost %d", tid, lane_written, lane_kept, lane_lost)
        check(-1 <= first <= last < made[tid].count, "lane of %d: numbers %d to %d, it made %d", tid, first, last, made[tid].count)
        kept[tid] += ranges
        lost[tid] += lane_lost
    for tid, its in made.items():
        check(0 <= kept[tid] + lost[tid] - its.count <= most_ours_lost, "thread %d: written %d, kept %d, lost %d", tid, its.count, kept[tid], lost[tid])
    return sum(kept.values()), sum(lost.values())


def told_again(job):
    """Records that are not the program's: of the request that a lane serves, after each drop."""
    others = [r for dump in job.dumps for lane in dump.lanes.values() for r, _, _ in lane.records if r.kind != codec.kRange]
    check(all(r.kind == codec.kContext and r.detail & kRepeated for r in others), "records that nobody made: %s", {r.kind for r in others})
    return len(others)


def by_the_reader(output, made, kept, interval, most_ours_lost):
    """The second reader: every chunk; every record too, where they are not too many.
    @param interval  the lanes alone have lost, so that each loss lies between the first and the last drop that its lane tells
    """
    (dump,) = [os.path.join(output, f) for f in os.listdir(output) if f.endswith(".rsd")]
    in_blocks = sum(check_chunks(dump).values())
    if kept > kReadAll:
        # As often as it came to a drop, at most: far more seldom than once in a hundred records.
        check(kept <= in_blocks <= 1.01 * kept, "the blocks hold %d records, the loader finds %d ranges", in_blocks, kept)
        return "chunks", in_blocks - kept
    job = read(output)
    again = told_again(job)
    check(in_blocks == kept + again, "the blocks hold %d records, the loader finds %d ranges, %d are of ours", in_blocks, kept, again)
    ranges, lanes = ranges_by_thread(job, "flood"), lanes_by_thread(job)
    for tid, its in made.items():
        numbers = [r.payload for r in ranges[tid]]
        check(len(set(numbers)) == len(numbers), "thread %d: %d of its ranges are there twice", tid, len(numbers) - len(set(numbers)))
        runs = losses(ranges[tid], its.count)
        lost = sum(l.lost for l in lanes[tid])
        check(0 <= lost - sum(run[0] for run in runs) <= most_ours_lost, "thread %d: missing %d, counted as lost %d", tid, sum(run[0] for run in runs), lost)
        if runs and interval:
            check_interval(tid, runs, [l for l in lanes[tid] if l.lost])
    check(sum(map(len, ranges.values())) == kept, "the reader finds %d ranges, the loader %d", sum(map(len, ranges.values())), kept)
    return "records", again


def check_interval(tid, runs, lanes):
    """The first and the last loss lie where the first and the last missing number would have been."""
    first, last = min(l.first_lost_ticks for l in lanes), max(l.last_lost_ticks for l in lanes)
    for what, ticks, (_, before, behind) in (("first", first, runs[0]), ("last", last, runs[-1])):
        check((before is None or before.end <= ticks) and (behind is None or ticks <= behind.begin),
              "thread %d: its %s loss at %d, the records around it end at %s and begin at %s", tid, what, ticks, before and before.end, behind and behind.begin)


def check_receipt(told, everything):
    """What `trace` says, what the dump says and what was written are one."""
    (node,) = told["nodes"]
    cost = node["perturbation"]
    check(cost["records"] == everything == node["records"] + node["lost"], "the receipt has %d records, kept and lost are %d, told %d + %d", cost["records"],
          everything, node["records"], node["lost"])
    check(abs(cost["cost_ns"] - cost["records"] * node["record_cost_ns"]) <= 1, "%s, a record costs %s", cost, node["record_cost_ns"])
    check(0 < cost["share_percent"] < 100 * kThreads and cost["agent_cpu_ns"] > 0, "not a share, or no time of the agent's: %s", cost)


def judge(output, told, made, interval=True, most_ours_lost=0):
    kept, lost = by_the_loader(output, made, most_ours_lost)
    how, again = by_the_reader(output, made, kept, interval, most_ours_lost)
    check_receipt(told, kept + lost + again)
    cost = told["nodes"][0]["perturbation"]
    print("written %d = kept %d + lost %d; the second reader has read all %s; %.2f %% of the job's time, agent's CPU %.2f s, longest gap %.1f ms" % (
        kept + lost, kept, lost, how, cost["share_percent"], cost["agent_cpu_ns"] / 1e9, max(its.longest_ns for its in made.values()) / 1e6), flush=True)
    return kept, lost


def dump(workspace, seconds, records="0"):
    judge(*flood(workspace, seconds, records))


def bound(workspace, seconds, records="0"):
    """--max-bytes is reached: what came before is whole, what comes after is lost and counted."""
    endless = records == "0"
    most = 64 << 20 if endless else 1 << 20
    # Lanes that hold all of it: then nothing is lost but what the dump does not take.
    output, told, made = flood(workspace, seconds, records, agent=["--first-lane-kib", "8192"], trace=["--max-bytes", str(most)])
    kept, lost = judge(output, told, made, interval=False, most_ours_lost=sum(its.count for its in made.values()) // 1000 if endless else 0)
    size = sum(os.path.getsize(os.path.join(output, f)) for f in os.listdir(output) if f.endswith(".rsd"))
    check(lost > 0 and size <= most and not told["all_good"], "%d bytes of %d, %d lost, good %s", size, most, lost, told["all_good"])
    check(str(most) in told["nodes"][0]["error"], "it does not name the bound: %s", told["nodes"][0]["error"])


def stopped_agent(workspace, seconds, records="0"):
    """Nobody drains: a lane of 64 KiB is full at once, the program goes on, and each thread's losses have their time."""
    output, told, made = flood(workspace, seconds, records, agent=["--first-lane-kib", "64"], stopped=True)
    kept, lost = judge(output, told, made)
    check(lost > kept, "kept %d of lanes of 64 KiB, lost %d: the agent was not stopped", kept, lost)
    floor = 0.5 * float(seconds)
    check(records != "0" or all(its.longest_ns < 1e9 * floor for its in made.values()), "a thread stood still for %s ns", [its.longest_ns for its in made.values()])


run({"dump": dump, "bound": bound, "stopped_agent": stopped_agent})
