#!/usr/bin/python3
"""The CUPTI source against fakes of five releases, built from NVIDIA's own headers: cupti.py RELEASE (11.8, 12.4, 12.9, 13.0, 13.5) [CASE ...].

A case is a function that is given a Lab; its name says what must be true. One shim and one plugin for all five.
"""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, Trace, check, kSource, main, wait_until
import armed_cases
import idle_cases
from lab import Captured, kDegraded, kEverything, kFull, kNotInstrumented, kOff, kReleases, Lab, mapped

from rsd.index import Job


# --- what is recorded ---

def every_kind_with_its_fields(lab):
    found = lab.captured("cuda", "init", *kEverything)
    check(found.source()[0] in (kFull, kOff), "the source: %s", found.source())
    kernels = found.of("kernel")
    check(len(kernels) == 3, "%d kernels", len(kernels))
    for k in kernels:
        check((k.name, k.device, k.context, k.stream) == ("_Z6kernelPf", 1, 3, 1), "a kernel's place: %s", vars(k))
        check((k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z) == (128, 2, 3, 256, 4, 5), "its shape: %s", vars(k))
        check((k.static_shared, k.dynamic_shared, k.registers, k.graph, k.graph_node, k.queued) == (64, 96, 40, 7, 77, 0), "its needs: %s", vars(k))
        check(k.end - k.begin == 500, "its length: %d", k.end - k.begin)
    (copy, peer), (memset,), (sync,), (overhead,), (event,) = found.of("copy"), found.of("memset"), found.of("sync"), found.of("overhead"), found.of("event")
    check((copy.detail, copy.bytes, copy.source_memory, copy.destination_memory, copy.asynchronous, copy.source_device, copy.destination_device) ==
          (1, 4096, 2, 3, True, 1, 1), "the copy: %s", vars(copy))
    check((peer.detail, peer.bytes, peer.source_device, peer.destination_device, peer.source_context, peer.destination_context, peer.graph,
           peer.graph_node) == (10, 8192, 1, 0, 3, 2, 8, 78), "the peer copy: %s", vars(peer))
    check((memset.bytes, memset.value, memset.detail) == (512, 7, 3), "the memset: %s", vars(memset))
    check((sync.detail, sync.context, sync.stream, sync.event, sync.result) == (3, 3, 1, 0, 9 if lab.newer else 0), "the wait: %s", vars(sync))
    check((overhead.kind, overhead.object) == (1 << 16, 2) and overhead.thread in tids(found), "the overhead: %s", vars(overhead))
    check(bool(overhead.correlation) == (lab.release != "11.8"), "the overhead's correlation: %d", overhead.correlation)
    check((event.event, event.context, event.stream, event.detail) == (17, 3, 1, int(lab.newer)), "the event: %s", vars(event))
    names = [c.name for c in found.gpu.calls]
    check(sorted(names) == sorted(["cuLaunchKernel"] * 3 + ["cuMemcpyHtoDAsync_v2", "cuMemcpyPeerAsync", "cuMemsetD8Async", "cuEventRecord",
                                                             "cuStreamSynchronize"]), "the calls: %s", names)
    asked = {"kernel": "cuLaunchKernel", "memset": "cuMemsetD8Async", "sync": "cuStreamSynchronize", "event": "cuEventRecord"}
    for work in found.work:
        call = found.gpu.call_of(work)
        expected = asked.get(work.what) or ("cuMemcpyPeerAsync" if work is peer else "cuMemcpyHtoDAsync_v2")
        check(work.what == "overhead" or (call and call.name == expected), "the call of %s: %s", vars(work), call and call.name)
    check(found.dropped() == 0, "%d dropped", found.dropped())
    device = found.gpu.devices.get((kernels[0].process, 1))
    check(device and (device.name, device.processors, device.memory, device.warp) == ("Fake GPU 1", 2016, 81 << 30, 2010), "the device: %s", device and vars(device))


def tids(found):
    return {b.tid for d in found.job.dumps for lane in d.lanes.values() for b in lane.blocks} | {c.thread for c in found.gpu.calls}


def work_is_tied_to_range_and_request(lab):
    found = lab.captured("cuda", "init", "push:before", "serve", "push:outer", "push:inner", "launch:1", "pop", "copy", "pop", "leave", "pop", "memset", "sync")
    (kernel,), (copy,), (memset,) = found.of("kernel"), found.of("copy"), found.of("memset")
    check((found.range_of(kernel), found.range_of(copy), found.range_of(memset)) == ("inner", "outer", None), "the ranges: %s",
          [found.range_of(w) for w in (kernel, copy, memset)])
    requests = [found.events.served_by(found.gpu.context_of(found.events, found.gpu.call_of(w)), w.process) for w in (kernel, copy, memset)]
    check([r and r.name for r in requests] == ["served", "served", None], "the requests: %s", requests)


def the_runtimes_call_is_what_work_belongs_to(lab):
    found = lab.captured("cuda", "init", "runtime", "launch:1", "event", "sync")
    (kernel,), (event,) = found.of("kernel"), found.of("event")
    call = found.gpu.call_of(kernel)
    check((call.name, call.detail, call.callback) == ("cudaLaunchKernel", 0, 211), "the call: %s", vars(call))
    check({c.name for c in found.gpu.calls if c.correlation == kernel.correlation} == {"cudaLaunchKernel", "cuLaunchKernel"}, "both are told")
    check(found.gpu.call_of(event).name.startswith("cuda runtime #"), "a call that CUPTI has no name for: %s", found.gpu.call_of(event).name)


def numbers_of_other_tools_are_told(lab):
    found = lab.captured("cuda", "cupti:CUPTI", "init", "external:4711", "launch:1", "unexternal", "launch:1", "sync")
    check([(link.id, link.detail) for link in found.gpu.links] == [(4711, 5)], "the links: %s", [vars(link) for link in found.gpu.links])
    check(found.gpu.links[0].correlation == min(k.correlation for k in found.of("kernel")), "whose: %s", vars(found.gpu.links[0]))


def the_table_says_what_ran(lab):
    """From `ringside run` of a program to its table: each piece of work that the fakes made, the ranges and the request that it was for, and a sum that
    is what the device was busy."""
    output = lab.workspace.path("run-table")
    lab.workspace.ringside("run", "-o", output, "--", *lab.program_words(
        ["cuda", "init", "runtime", "push:step", "push:mm", "launch:20", "pop", "copy", "pop", "serve", "push:mm", "launch:7:2", "pop", "leave", "memset", "sync"]),
        environment=dict(os.environ, **lab.libraries_environment()))
    check("kernels:27" in lab.called(), "what the fakes say: %s", lab.called())
    table = lab.workspace.json("table", output, "--row-limit", "0", "--full-names")
    rows = {(r["name"].split("#remote_op: ")[-1], "#remote_op: " in r["name"], r["device_type"]): r for r in table["rows"]}
    found = Captured(Job(output))
    ns = found.job.dumps[0].node_ns
    lengths = {w: ns(w.end) - ns(w.begin) for w in found.work if w.what in ("kernel", "copy", "memset")}
    check(sorted(w.what for w in lengths) == ["copy"] + ["kernel"] * 27 + ["memset"] and {w.end - w.begin for w in lengths} == {500}, "the work: %s",
          [(w.what, w.end - w.begin) for w in lengths])
    one = next(iter(lengths.values()))  # each has as many ticks
    expected = {("kernel(float*)", False, "cuda"): (20, 20, None), ("kernel(float*)", True, "cuda"): (7, 7, None),
                ("Memcpy HtoD (Pinned -> Device)", False, "cuda"): (1, 1, None), ("Memset (Device)", False, "cuda"): (1, 1, None),
                ("mm", False, "cpu"): (1, 20, 20), ("mm", True, "cpu"): (1, 7, 7), ("step", False, "cpu"): (1, 21, 1),
                ("cudaLaunchKernel", False, "cpu"): (20, 0, 0), ("cuLaunchKernel", True, "cpu"): (7, 0, 0)}
    for key, (count, total, own) in expected.items():
        row = rows[key]
        got, self_ns = row["cuda_time_total_us"] * 1000, row["self_cuda_time_total_us"] * 1000
        check(row["count"] == count and abs(got - total * one) <= 2 * total, "%s: %d, %d ns; expected %d, %d ns", key, row["count"], got, count, total * one)
        check((self_ns > 0) == (total > 0) if own is None else (self_ns > 0) == (own > 0), "%s: %d ns of its own", key, self_ns)
        check(self_ns <= got, "%s: %d ns of its own, %d in all", key, self_ns, got)
    busy, until = 0, 0
    for work in sorted(lengths, key=lambda w: w.begin):
        busy, until = busy + max(0, ns(work.end) - max(ns(work.begin), until)), max(until, ns(work.end))
    told = round(table["self_cuda_time_total_us"] * 1000)
    device = sum(r["self_cuda_time_total_us"] for r in table["rows"] if r["device_type"] == "cuda") * 1000
    check(round(device) == told and busy - 2 * len(lengths) <= told <= busy + len(lengths), "the sum is %d ns, of the rows %d, the device was busy for %d", told, device, busy)
    text = lab.workspace.ringside("table", output, "--sort-by", "self_cuda_time_total").out()
    check("  Self CUDA   Self CUDA %    CUDA total  CUDA time avg  " in text and "\nSelf CUDA time total: " in text, "the text:\n%s", text)


def times_are_our_ticks(lab):
    """What CUPTI stamps lies inside of the range that our own clock has put around it."""
    found = lab.captured("cuda", "init", "push:around", "launch:50", "sync", "pop")
    (around,) = [r for r in found.events.ranges if r.name == "around"]
    for call in found.gpu.calls:
        check(around.begin <= call.begin <= call.end <= around.end, "a call at %d..%d, the range around it %d..%d", call.begin, call.end, around.begin, around.end)


# --- the protocol ---

def buffers_that_complete_out_of_order_lose_nothing(lab):
    """One kernel keeps the first buffer from completing; those behind it are handed over first."""
    found = lab.captured("cuda", "init", "launch:1:2", "launch:5000:1", "sync:1", "launch:10:1", "sync:1", "sync:2", fake="streams")
    check(len(found.of("kernel")) == 5011, "%d kernels", len(found.of("kernel")))
    first = min(found.of("kernel"), key=lambda k: k.correlation)
    check(first.stream == 2 and found.dropped() == 0, "the first: %s", vars(first))
    order = [k.correlation for k in sorted(found.of("kernel"), key=lambda k: (k.lane, k.position))]
    check(order != sorted(order), "all of them came in order: nothing was shown")


def buffers_partly_filled_are_handed_over_while_the_job_runs(lab):
    """What is done is in the trace of a job that goes on, and is killed."""
    node = Node(lab.workspace, "partly", capture_from_start=True, extra=["--name", "all"])
    child = lab.workspace.start("partly", lab.program_words(["cuda", "init", "launch:7", "sync", "announce:launched", "await:never"]), lab.environment(node))
    lab.workspace.await_condition("launched", [child])
    wait_until("the kernels to be handed over", lambda: "kernels:7" in lab.called(), children=[child])
    child.send(signal.SIGKILL)
    child.wait(expect=None)
    wait_until("its segment to go", lambda: not node.segments())
    node.stop()
    found = Captured(Job(lab.workspace.path("output", "partly", "all")))
    check(len(found.of("kernel")) == 7, "%d kernels", len(found.of("kernel")))


def dropped_records_are_losses(lab):
    found = lab.captured("cuda", "init", "push:ours", "launch:20", "sync", "pop", fake="no_buffers")
    check(found.work == [] and found.dropped() >= 40, "%d pieces of work, %d dropped", len(found.work), found.dropped())
    check(found.job.counts()["lost"] >= 40, "lost: %d", found.job.counts()["lost"])


def buffers_are_bounded(lab):
    """Work that is never done keeps its buffers until the pool is out: what a newer CUPTI drops then is counted; an older one is stopped, which is said."""
    node = Node(lab.workspace, "bounded", capture_from_start=True, extra=["--name", "all"])
    child = lab.workspace.start("bounded", lab.program_words(["cuda", "init", "push:ours", "launch:75000", "pop", "announce:filled", "await:let go"]),
                                lab.environment(node, "late"))
    lab.workspace.await_condition("filled", [child])
    if not lab.newer:
        wait_until("ps to say that recording was stopped", lambda: "stopped" in source_by_ps(lab, node), children=[child])
    lab.workspace.announce("let go")
    child.wait()
    wait_until("its segments to go", lambda: not node.segments())
    node.stop()
    found = Captured(Job(lab.workspace.path("output", "bounded", "all")))
    kernels, calls, lost = len(found.of("kernel")), len(found.gpu.calls), found.job.counts()["lost"]
    print("    %d kernels, %d calls, %d lost, %d of them dropped by CUPTI" % (kernels, calls, lost, found.dropped()))
    check(kernels > 1000, "%d kernels", kernels)
    if lab.newer:
        check(kernels + calls + lost >= 150000, "%d kernels, %d calls, %d lost", kernels, calls, lost)
        check(found.dropped() > 0 and found.source()[1] == "", "%d dropped: %s", found.dropped(), found.source())
    else:
        check(found.dropped() == 0 and found.source() == (kDegraded, "stopped: CUPTI's buffers are full"), "%d dropped: %s", found.dropped(), found.source())


def source_by_ps(lab, node):
    """The reason that `ringside ps` gives for what CUPTI reached."""
    found = lab.workspace.json("ps", "--hosts", node.endpoint)
    return " ".join(s["reason"] for p in found for s in p["sources"] if s["name"] == "cupti")


def unfinished_work_at_the_end_is_counted(lab):
    found = lab.captured("cuda", "init", "launch:9", fake="never")
    check(found.of("kernel") == [] and found.dropped() == 9, "%d kernels, %d dropped", len(found.of("kernel")), found.dropped())
    check(len(found.gpu.calls) == 9, "%d calls", len(found.gpu.calls))


def late_work_is_flushed_at_exit(lab):
    found = lab.captured("cuda", "init", "launch:500", "copy", fake="late")
    check((len(found.of("kernel")), len(found.of("copy")), found.dropped()) == (500, 1, 0), "%d kernels, %d copies, %d dropped", len(found.of("kernel")),
          len(found.of("copy")), found.dropped())


def a_kill_with_buffers_in_flight_leaves_a_whole_dump(lab):
    found = lab.captured("cuda", "init", "push:open", "launch:3000:1", "sync:1", "launch:100:2", "kill", fake="streams", status=-signal.SIGKILL)
    check(len(found.of("kernel")) <= 3000, "%d kernels", len(found.of("kernel")))
    check([r.name for r in found.events.ranges if r.end is None] == ["open"], "what is open: %s", [r.name for r in found.events.ranges])
    check(found.events.killed(0), "its fate")


# --- what goes wrong: the job runs, the status says why ---

def _refused(lab, fake, words, level=kNotInstrumented, **more):
    found = lab.captured("cuda", "init", "push:ours", "launch:5", "sync", "pop", fake=fake, **more)
    got, reason = found.source()
    check(got == level and re.search(words, reason), "level %d, %r; expected level %d, %r", got, reason, level, words)
    check([r.name for r in found.events.ranges] == ["ours"], "the other sources: %s", [r.name for r in found.events.ranges])
    check(level != kNotInstrumented or (found.work, found.gpu.calls) == ([], []), "%d pieces of work", len(found.work))
    return found


def busy_says_who(lab):
    _refused(lab, "busy", r"^CUPTI is held by %s \(39\)$" % ("CUPTI for Other Tool" if lab.release.startswith("13") else "another profiler"))
    check("cuptiActivityEnable" not in lab.called(), "was enabled all the same: %s", lab.called())


def a_holder_that_shares_is_shared_with(lab):
    if not lab.shares:
        return _refused(lab, "holder_shares", r"\(39\)$")
    found = lab.captured("cuda", "init", *kEverything, fake="holder_shares")
    check(len(found.of("kernel")) == 3 and "cuptiActivityEnable_v2" in lab.called(), "%d kernels; called: %s", len(found.of("kernel")), lab.called())
    check("cuptiActivityEnable" not in lab.called() and "cuptiActivityRegisterTimestampCallback" not in lab.called(), "the old interface: %s", lab.called())


def a_failing_enable_turns_it_off(lab):
    _refused(lab, "enable=10:15", r"^cuptiActivityEnable of kernels failed: 15$")
    check("cuptiUnsubscribe" in lab.called(), "CUPTI is still held: %s", lab.called())


def every_enable_that_fails_turns_it_off(lab):
    _refused(lab, "enable=999", r"^cuptiActivityEnable of kernels failed: 999$")


def a_failing_enable_of_one_kind_is_said(lab):
    found = _refused(lab, "enable=38:28", r"^without synchronisation \(28\)$", level=kDegraded)
    check(len(found.of("kernel")) == 5 and found.of("sync") == [], "%d kernels, %d waits", len(found.of("kernel")), len(found.of("sync")))


def a_failing_get_version_turns_it_off(lab):
    _refused(lab, "version", r": cuptiGetVersion failed: 999$")
    check(lab.called() == {"cuptiGetVersion"}, "called: %s", lab.called())


def a_process_without_libcupti_says_so(lab):
    os.rename(os.path.join(lab.libraries, lab.soname), os.path.join(lab.libraries, "away"))
    try:
        _refused(lab, "", r"^no libcupti\.so in the process or where the loader looks$")
    finally:
        os.rename(os.path.join(lab.libraries, "away"), os.path.join(lab.libraries, lab.soname))


# --- when nothing is asked of it ---

def idle_costs_nothing(lab):
    """Injected, no capture: neither CUPTI nor the plugin is mapped, nothing is called; then a capture, and off again."""
    node = Node(lab.workspace, "idle")
    child = lab.workspace.start("idle", lab.program_words(
        ["cuda", "init", "launch:5", "announce:idle", "await:captured", "launch:20", "sync", "announce:worked", "await:ended", "launch:5", "announce:after", "await:end"]),
        lab.environment(node))
    lab.workspace.await_condition("idle", [child])
    check(mapped(child) == {"libcuda.so.1", "libringside_inject.so"}, "mapped: %s", mapped(child))
    output = lab.workspace.path("idle-trace")
    trace = Trace(lab.workspace, [node], output)
    lab.workspace.announce("captured")
    lab.workspace.await_condition("worked", [child])
    trace.end()
    check("cuptiUnsubscribe" in lab.called() and "cuptiActivityDisable" + ("_v2" if lab.shares else "") in lab.called(), "called: %s", lab.called())
    lab.workspace.announce("ended")
    lab.workspace.await_condition("after", [child])
    lab.workspace.announce("end")
    child.wait()
    wait_until("its segment to go", lambda: not node.segments())
    node.stop()
    found = Captured(Job(output))
    check(len(found.of("kernel")) == 20 and found.dropped() == 0, "%d kernels, %d dropped", len(found.of("kernel")), found.dropped())


def no_call_without_a_driver(lab):
    """As in torch without a GPU: libcupti is mapped, libcuda is not."""
    found = lab.captured("cupti:CUPTI", "push:ours", "pop")
    check(lab.called() == set() and found.source()[0] == 0, "called: %s; %s", lab.called(), found.source())


def an_injection_without_a_driver_calls_nothing(lab):
    """Somebody else calls our entry: libcupti is there, libcuda is not."""
    found = lab.captured("cupti:CUPTI", "inject", "push:ours", "pop")
    check(lab.called() == set() and found.source() == (kNotInstrumented, "no libcuda.so.1 in the process"), "called: %s; %s", lab.called(), found.source())


def a_driver_that_nobody_starts_is_left_alone(lab):
    found = lab.captured("cuda", "cupti:CUPTI", "push:ours", "pop")
    check(lab.called() == set() and found.source()[0] == 0, "called: %s; %s", lab.called(), found.source())


def the_tool_before_us_runs_too(lab):
    tool = os.path.join(lab.libraries, "tool.so")
    source = lab.workspace.path("tool.c")
    with open(source, "w") as out:
        out.write('#include <stdio.h>\nint InitializeInjection(void) { puts("the tool before"); return 1; }\n')
    lab.compile("cc", "-shared", "-fPIC", "-o", tool, source)
    found = lab.captured("cuda", "init", "launch:2", "sync", CUDA_INJECTION64_PATH=tool)
    check(found.child.out() == "the tool before\n" and len(found.of("kernel")) == 2, "%r, %d kernels", found.child.out(), len(found.of("kernel")))
    found = lab.captured("cuda", "init", "launch:2", "sync", CUDA_INJECTION64_PATH="/nowhere/tool.so")
    check(len(found.of("kernel")) == 2, "%d kernels", len(found.of("kernel")))


def a_forked_child_calls_nothing(lab):
    found = lab.captured("cuda", "init", "launch:3", "fork:4", "launch:3", "sync")
    check(sorted(k.name for k in found.of("kernel")) == ["_Z6kernelPf"] * 6, "kernels: %s", [k.name for k in found.of("kernel")])


def the_layouts_are_the_headers(lab):
    lab.compile("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-isystem", lab.include, "-I", kSource,
                os.path.join(kSource, "tests", "cupti", "layout.cpp"))


kCases = [
    the_layouts_are_the_headers, every_kind_with_its_fields, work_is_tied_to_range_and_request, the_runtimes_call_is_what_work_belongs_to,
    numbers_of_other_tools_are_told, the_table_says_what_ran, times_are_our_ticks, buffers_that_complete_out_of_order_lose_nothing,
    buffers_partly_filled_are_handed_over_while_the_job_runs, dropped_records_are_losses, buffers_are_bounded,
    unfinished_work_at_the_end_is_counted, late_work_is_flushed_at_exit, a_kill_with_buffers_in_flight_leaves_a_whole_dump, busy_says_who,
    a_holder_that_shares_is_shared_with, a_failing_enable_turns_it_off, every_enable_that_fails_turns_it_off, a_failing_enable_of_one_kind_is_said,
    a_failing_get_version_turns_it_off, a_process_without_libcupti_says_so, idle_costs_nothing, no_call_without_a_driver,
    an_injection_without_a_driver_calls_nothing,
    a_driver_that_nobody_starts_is_left_alone, the_tool_before_us_runs_too, a_forked_child_calls_nothing,
    *idle_cases.kCases, *armed_cases.kCases,
]


def test(workspace):
    wanted = sys.argv[2:]
    lab = Lab(workspace, sys.argv[1])
    for case in kCases:
        if wanted and case.__name__ not in wanted:
            continue
        case(lab)
        print("%s: %s" % (lab.release, case.__name__.replace("_", " ")), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kReleases or set(sys.argv[2:]) - {c.__name__ for c in kCases}:
        sys.exit(__doc__)
    main(test, "cupti_" + sys.argv[1])
