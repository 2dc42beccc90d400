"""Injected and idle: a CUDA program without CUPTI gets none of it, and where there is one nobody calls it. Its every entry point is a trap here, and a capture
that walks into one shows that the traps are set."""
import os
import signal

from harness import Node, check, wait_until
from lab import mapped, set_traps

kLaunches = 100_000


def helper(child):
    """How often our thread has run; the process has one."""
    for task in os.listdir("/proc/%d/task" % child.pid):
        with open("/proc/%d/task/%s/status" % (child.pid, task)) as status:
            told = dict(line.split(":", 1) for line in status)
        if told["Name"].strip() == "ringside":
            return int(told["voluntary_ctxt_switches"]) + int(told["nonvoluntary_ctxt_switches"])
    return None


def idle_in_a_cuda_program_no_libcupti_is_mapped_and_nothing_runs(lab):
    """Of us there are two pages, and a thread that sleeps through 100000 launches."""
    node = Node(lab.workspace, "untouched")
    words = ["cuda", "init", "announce:untouched", "await:untouched-go", "launch:%d" % kLaunches, "sync", "announce:untouched-worked", "await:untouched-end"]
    child = lab.workspace.start("untouched", lab.program_words(words), lab.environment(node))
    lab.workspace.await_condition("untouched", [child])
    wait_until("our thread to sleep", lambda: helper(child) is not None, children=[child])
    ran, switches = helper(child), None
    while switches != ran:  # it comes to rest after its start
        switches, ran = ran, helper(child)
    lab.workspace.announce("untouched-go")
    lab.workspace.await_condition("untouched-worked", [child])
    check(helper(child) == ran, "our thread ran %d times while nothing was asked", helper(child) - ran)
    check(mapped(child) == {"libcuda.so.1", "libringside_inject.so"} and lab.called() == set(), "mapped: %s, called: %s", mapped(child), lab.called())
    (process,) = [p for p in lab.workspace.json("ps", "--hosts", node.endpoint) if p["pid"] == child.pid]
    check([s["level"] for s in process["sources"] if s["name"] == "cupti"] == ["off"], "its sources: %s", process["sources"])
    lab.workspace.announce("untouched-end")
    child.wait()
    wait_until("its segment to go", lambda: not node.segments())
    node.stop()


def idle_beside_a_libcupti_no_entry_point_is_called(lab):
    traps = set_traps(lab)
    for captured in (False, True):
        name = "trapped-%d" % captured
        node = Node(lab.workspace, name, capture_from_start=captured, extra=["--name", "all"] if captured else [])
        environment = dict(lab.environment(node), LD_LIBRARY_PATH=traps + ":" + lab.libraries)
        child = lab.workspace.run(name, lab.program_words(["cupti:CUPTI", "cuda", "init", "launch:1000", "copy", "sync"]), environment,
                                  expect=-signal.SIGABRT if captured else 0)
        check(("trap: cuptiGetVersion" in child.err()) == captured, "it says: %s", child.err())
        wait_until("its segment to go", lambda: not node.segments())
        node.stop()


kCases = [idle_in_a_cuda_program_no_libcupti_is_mapped_and_nothing_runs, idle_beside_a_libcupti_no_entry_point_is_called]
