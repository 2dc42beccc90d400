#!/usr/bin/python3
"""Each way of a process to live, traced: who recorded what, nothing of it twice or in another's ring, and the program is what it is without us.

    lives.py CASE       the modes of lives.c, and cancelled.c
"""
import os

from cases import Captured, check, compile_c, kHere, kLives, left_in, run, same

kRanges, kThreads, kRounds, kSpawns, kCancelled = 20, 8, 25, 100, 20
kExited = 1  # schema's Fate
kMostStack = 4096


def traced(workspace, mode, expected, status=0, program=kLives, **more):
    """@param expected  how many ranges of each name, exactly; None: any number"""
    without = same(workspace, [program, mode])
    check(not left_in(workspace), "%s: left behind: %s", mode, left_in(workspace))
    captured = Captured(workspace, [program, mode], status=status, **more)
    check(captured.result == without, "%s in a capture: %s, without the shim %s", mode, captured.result, without)
    counts = captured.counts()
    check(set(counts) <= set(expected), "%s: ranges that it has not made: %s", mode, counts)
    # More threads than lanes before a starved agent gives one back: not recorded, and counted.
    refused = captured.loss("lane refused")
    missing = {name: count - counts[name] for name, count in expected.items() if count is not None and counts[name] != count}
    check(sum(missing.values()) == refused == captured.lost() and min(missing.values(), default=0) >= 0,
          "%s: %s, expected %s, lost %d, without a lane %d", mode, dict(counts), expected, captured.lost(), refused)
    print("%s: %s in %d processes" % (mode, dict(counts), len(captured.processes)), flush=True)
    return captured


def fork(workspace):
    captured = traced(workspace, "fork", {"parent": 2 * kRanges, "child": kRanges, "grandchild": kRanges})
    owners = [captured.pids(name) for name in ("parent", "child", "grandchild")]
    check(all(len(o) == 1 for o in owners) and len(set.union(*owners)) == 3, "who recorded: %s", owners)
    fates = [end.fate for end in captured.job.dumps[0].footer.processes]
    check(fates == [kExited] * 3, "they ended by exit(), exit() and _exit(): fates %s", fates)


def fork_among_threads(workspace):
    captured = traced(workspace, "fork_among_threads", {"other thread": None, "child": 2 * kRounds})
    check(len(captured.pids("other thread")) == 1, "the threads' ranges are in %s", captured.pids("other thread"))
    check(len(captured.pids("child")) == kRounds, "the children's ranges are in %s", captured.pids("child"))


def raw_fork(workspace):
    """A child made past the C library is not traced; its own child, made in the common way, is again."""
    captured = traced(workspace, "raw_fork", {"parent": 2 * kRanges, "raw child": 0, "grandchild": kRanges})
    check(not captured.pids("parent") & captured.pids("grandchild"), "in one segment: %s", captured.pids("parent"))


def vfork(workspace):
    """The child calls hooks in its parent's memory. It has its parent's lane, and where there is none it gets none: that would be its parent's, with its
    own thread's number."""
    captured = traced(workspace, "vfork", {"parent": kRounds + kRanges, "around": kRounds, "thread": kRanges, "vforked": 2 * kRounds})
    (pid,) = {p.pid for p in captured.processes.values() if p.index in {r.process for r in captured.ranges}}
    threads = {name: {r.tid for r in captured.ranges if r.name == name} for name in ("parent", "around", "vforked", "thread")}
    check(threads["parent"] == threads["around"] == threads["vforked"] == {pid} and len(threads["thread"]) == 1 and pid not in threads["thread"], "on whose lanes: %s of %d", threads, pid)
    around = [r for r in captured.ranges if r.name == "around"]
    inside = [sum(a.begin <= r.begin and r.end <= a.end for r in captured.ranges if r.name == "parent") for a in around]
    check(inside == [1] * kRounds, "parent's ranges in the ranges around: %s", inside)


def spawn(workspace):
    traced(workspace, "spawn", {"parent": kSpawns})


def exec_(workspace):
    captured = traced(workspace, "exec", {"before": kRanges, "between": kRanges, "after": kRanges})
    check(captured.pids("before") == captured.pids("after"), "exec keeps the pid: %s", captured.pids("after"))
    segments = {r.process for r in captured.ranges}
    check(len(segments) == 2, "the two programs are %d processes in the dump", len(segments))


def closefrom(workspace):
    captured = traced(workspace, "closefrom", {"before": kRanges, "after": kRanges})
    check("first descriptor 3\n" in captured.result.out, "a descriptor of ours is open: %s", captured.result.out)


def thread_ends(workspace):
    """Hooks in destructors come after our own end of the thread, up to three times."""
    threads = kThreads * kRounds
    captured = traced(workspace, "threads", {"thread": 5 * threads, "destructor": 6 * threads})


def signal_handlers(workspace):
    captured = Captured(workspace, [kLives, "signals"])
    check(captured.result.out == "errno kept 1\n", "in a handler: %s", captured.result)
    (stack, frame, used), (in_main, in_handler) = (map(int, line.split()[1:]) for line in captured.result.err.splitlines())
    check(used - frame <= kMostStack, "a thread's first record takes %d bytes of its handler's stack", used - frame)
    print("a first record in a handler: %d bytes of its stack of %d, beside %d of the kernel and the handler" % (used - frame, stack, frame), flush=True)
    counts = captured.counts()
    check(counts["main"] == in_main, "main has made %d ranges, %d are there", in_main, counts["main"])
    check(0 < counts["handler"] <= in_handler, "handlers have made %d ranges, %d are there", in_handler, counts["handler"])
    # A handler inside a hook records nothing, and is counted: its push, its pop, or both.
    missing, refused = in_handler - counts["handler"], captured.loss("reentered")
    check(missing <= refused <= 2 * (missing + 1), "%d ranges of handlers are missing, %d calls were counted", missing, refused)
    print("main %d, handlers %d, of which %d inside a hook" % (in_main, in_handler, missing), flush=True)


def cancelled_threads(workspace):
    """A thread with a cancel to come ends where it wants to: neither in a hook nor in a fork of ours, with its lock and a descriptor of ours."""
    program = compile_c(workspace, os.path.join(kHere, "cancelled.c"), "cancelled", "-pthread", "-ldl")
    captured = traced(workspace, "all", {"first": kCancelled, "child": kCancelled, "main": 1}, program=program)
    told = [line.partition(": ")[2] for line in captured.result.out.splitlines()]
    fine = "%d cancelled, the lock is free after %d, descriptors 0, children " % (kCancelled, kCancelled)
    check(told == [fine + "0", fine + "%d" % (3 * kCancelled), fine + "0"], "the program says: %s", captured.result.out)


def constructors(workspace):
    """A linked library's constructor, a child and a thread of it come before our own constructor: nothing of theirs is in the way, and what comes after it is recorded."""
    source = os.path.join(kHere, "early.c")
    library = compile_c(workspace, source, "libearly.so", "-shared", "-fPIC", "-pthread", "-ldl")
    program = compile_c(workspace, source, "early", "-DUSER", "-pthread", "-ldl", library, "-Wl,-rpath," + os.path.dirname(library))
    captured = traced(workspace, "constructors", {"early": None, "early child": None, "early thread": None, "main": kRanges, "late thread": kRanges, "at the end": kRanges},
                      program=program)
    check(captured.result.out == "loaded 1, by the thread 1, child 3\n", "it says %s", captured.result.out)


def user_namespace(workspace):
    """unshare(CLONE_NEWUSER) is refused to a process with a second thread: where no framework is, there is none."""
    captured = traced(workspace, "namespace", {"before": kRanges, "after": kRanges})
    check("unshare 0" in captured.result.out or "unshare 1\n" in captured.result.out, "it says %s", captured.result.out)


def weak_checks(workspace):
    out = same(workspace, [kLives, "weak"]).out
    check(out.startswith("weak 0\nMPI_Init -\n"), "without the shim: %s", out)


run({"fork": fork, "fork_among_threads": fork_among_threads, "raw_fork": raw_fork, "vfork": vfork, "posix_spawn": spawn, "exec": exec_,
     "closefrom": closefrom, "thread_ends": thread_ends, "signal_handlers": signal_handlers, "user_namespace": user_namespace,
     "weak_checks": weak_checks, "cancelled_threads": cancelled_threads, "constructors": constructors})
