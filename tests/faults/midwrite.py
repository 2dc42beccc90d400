#!/usr/bin/python3
"""A program that stops in the middle of writing a record: killed between any two instructions, or one of its threads stopped there.

    midwrite.py CASE
"""
import os
import subprocess

from fault import (check, kFates, kFaults, kKilled, kShim, kWriter, lanes_by_thread, losses, Node, ranges_by_thread, read, run, skip, Trace, wait_until)

kStepper = os.path.join(kFaults, "fault_stepper")
kBefore = 20  # whole records of each process
kSkipped = 77


def step(node, steps, workspace):
    """@return what the lane said when the process was killed"""
    environment = dict(node.environment(), STEPPER_PRELOAD=kShim)
    done = subprocess.run([kStepper, "kill", str(steps), kWriter, "step", str(kBefore)], env=environment, cwd=workspace.path("cwd"), capture_output=True, text=True)
    if done.returncode == kSkipped:
        skip("ptrace is not allowed here")
    check(done.returncode == 0, "the stepper ends with %d: %s%s", done.returncode, done.stdout, done.stderr)
    words = done.stdout.split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def killed(workspace):
    """kill -9 at each instruction of a hook: what was committed then is in the dump, a record that was not is never, and its range is open."""
    node = Node(workspace, "node", capture_from_start=True, extra=["--name", "all"])
    whole = step(node, 1 << 20, workspace)["steps"]
    check(50 < whole < 20000, "from the one stop to the other it takes %d instructions", whole)
    told = [step(node, steps, workspace) for steps in range(0, whole, 1 + whole // 400)]
    wait_until("their segments to go", lambda: not node.segments())
    node.stop()
    job = read(workspace.path("output", "node", "all"))
    (dump,), (events,) = job.dumps, job.events
    by_pid = {p.pid: p.index for p in dump.processes.values()}
    ends = {e.process: e for e in dump.footer.processes}
    states = []
    for one in told:
        index = by_pid.get(one["pid"])
        check(index is not None, "pid %d, killed after %d instructions, is not in the dump", one["pid"], one["steps"])
        check(ends[index].fate == kKilled, "pid %d: fate %s", one["pid"], kFates[ends[index].fate])
        its = [r for r in events.ranges if r.process == index]
        numbers = sorted(r.payload for r in its if r.end is not None)
        committed = one["committed"]
        # A range takes one cell: as many as are committed, from the first on, each with its own number and name.
        check(numbers == list(range(committed)), "after %d instructions %d cells were committed; in the dump: %s", one["steps"], committed, numbers)
        check(all((r.name == "last") == (r.payload == kBefore) for r in its), "after %d instructions: %s", one["steps"], [(r.name, r.payload) for r in its])
        still_open = [r for r in its if r.end is None]
        check(len(still_open) == one["open"] and all(r.name == "last" for r in still_open) or committed == kBefore + 1,
              "after %d instructions %d ranges were open; in the dump: %s", one["steps"], one["open"], [r.name for r in still_open])
        check(not (still_open and committed == kBefore + 1), "after %d instructions the range is there twice", one["steps"])
        states.append((committed, len(still_open)))
    check({(kBefore, 0), (kBefore, 1), (kBefore + 1, 0)} <= set(states), "not all states were met: %s", sorted(set(states)))
    torn = sum(state == (kBefore, 1) for state in states)
    print("%d kills over %d instructions: %d before the range, %d in it or in its record, %d behind the commit; nothing lost" % (
        len(told), whole, states.count((kBefore, 0)), torn, states.count((kBefore + 1, 0))), flush=True)


def thread_stopped(workspace):
    """One thread stands still inside a hook: the other's lane is drained beyond its size, the capture ends, and both accounts are exact."""
    node = Node(workspace, "node", extra=["--first-lane-kib", "64"])
    go, leave, held, release = (workspace.path(name) for name in ("go", "leave", "held", "release"))
    job = workspace.start("job", node.job_command(kWriter, "steady", go, leave), node.environment())
    wait_until("its segment", node.segments, children=[job])
    trace = Trace(workspace, [node], workspace.path("trace"))
    touch(go)
    tid = int(wait_until("the thread", lambda: job.out().split()[1:2], children=[job])[0])
    stepper = workspace.start("stepper", [kStepper, "hold", str(tid), os.path.basename(kShim), held, release])
    wait_until("the thread to be stopped", lambda: os.path.exists(held) or stepper.process.poll() is not None, children=[job])
    if stepper.process.poll() == kSkipped:
        skip("ptrace is not allowed here")
    check(os.path.exists(held), "the stepper ended with %s", stepper.process.poll())
    made = lambda: int(_text(workspace.path("cwd", "made")) or 0)
    first, beyond = made(), 3 * 2048  # cells of 64 KiB, three times over
    wait_until("the other thread to go on", lambda: made() > first + beyond, children=[job])
    told = trace.end(expect=None)
    touch(release)
    stepper.wait()
    touch(leave)
    job.wait()
    node.stop()
    read_job = read(trace.output)
    ranges = ranges_by_thread(read_job, "stopped")[tid]
    check([r.payload for r in ranges] == list(range(len(ranges))) or told["nodes"][0]["lost"] > 0, "the stopped thread's ranges are not whole")
    (others,) = ranges_by_thread(read_job, "other").values()
    check(len(others) > beyond, "of the other thread %d ranges are there", len(others))
    (account,) = (a for tid, accounts in lanes_by_thread(read_job).items() if tid == others[0].tid for a in accounts)
    # It goes on while the capture ends, so what it lost last has no record behind it.
    missing = sum(run[0] for run in losses(others, others[-1].payload + 1))
    check(missing <= account.lost, "of the other thread %d are missing, %d were counted", missing, account.lost)
    stopped_at = max(r.end for r in ranges)
    behind = sum(r.begin > stopped_at for r in others)
    check(behind > beyond, "%d of the other's ranges are from after the stop", behind)
    print("stopped after %d ranges; of the other thread %d from after that, %d lost and counted" % (len(ranges), behind, account.lost), flush=True)


def touch(path):
    with open(path, "w"):
        pass


def _text(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


run({"killed": killed, "thread_stopped": thread_stopped})
