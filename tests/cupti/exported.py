#!/usr/bin/python3
"""A capture of the fakes as others' tools read it: exported.py RELEASE (11.8, 12.4, 12.9, 13.0, 13.5).

What the second reader has of the dump is what the JSON says, field by field as Kineto has them; the .pftrace says the same; trace_processor, Perfetto's
message classes, HolisticTraceAnalysis and TensorBoard's PyTorch plugin count as much. The last three need tools/setup_oracles.
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from exports import check_packets, check_same, length, python_of_oracles, read_by, union
from harness import check, main, skip
from lab import kEverything, kReleases, Lab
from perfetto import check_file, exported, need_trace_processor

kCategories = {"kernel": "kernel", "copy": "gpu_memcpy", "memset": "gpu_memset", "sync": "cuda_sync", "event": "cuda_event", "overhead": "overhead"}
kPlace = {"device", "context", "stream", "correlation"}
kShape = {"queued", "registers per thread", "shared memory", "blocks per SM", "warps per SM", "grid", "block", "est. achieved occupancy %"}
# What each category's events say, no more and no less, beside External id, which they have where a range made the call, and the request's fields.
kArgs = {
    "cuda_driver": {"cbid", "correlation"},
    "kernel": kPlace | kShape | {"graph id", "graph node id"},
    "gpu_memcpy": kPlace | {"bytes", "memory bandwidth (GB/s)"},
    "gpu_memset": kPlace | {"bytes", "memory bandwidth (GB/s)"},
    "cuda_sync": kPlace | {"cuda_sync_kind"},
    "cuda_event": kPlace | {"event_id"},
    "overhead": set(),
}
kOfEvent = {"wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id"}  # a wait for a CUDA event has them, too
kMayHave = {"External id", "Request", "Trace id", "Span id", "Result", "graph id", "graph node id"}


def known(event):
    """What the JSON says of an event that the dump says, too."""
    args = event["args"]
    at = (round(event["ts"] * 1000), round(event["dur"] * 1000), args.get("correlation"))
    more = ("device", "context", "stream", "bytes", "registers per thread", "shared memory", "graph id", "graph node id", "event_id")
    return at + tuple(args.get(key) for key in more) + tuple(map(tuple, (args.get("grid", ()), args.get("block", ()))))


def told_of(work, at):
    """The same by the second reader. @param at  ticks to ns from the file's base on"""
    field = lambda name, kinds: getattr(work, name, None) if work.what in kinds else None
    placed = ("kernel", "copy", "memset", "sync", "event")
    device = 1 if work.what == "sync" else field("device", placed)
    graph = work.graph if work.what in ("kernel", "copy", "memset") and work.graph else None
    begin, end = at(work.begin), at(work.begin if work.what == "event" else work.end)
    return (begin, end - begin, field("correlation", placed), device, field("context", placed), field("stream", placed),
            field("bytes", ("copy", "memset")), field("registers", ("kernel",)),
            work.static_shared + work.dynamic_shared if work.what == "kernel" else None, graph, work.graph_node if graph else None,
            field("event", ("event",)),
            (work.grid_x, work.grid_y, work.grid_z) if work.what == "kernel" else (),
            (work.block_x, work.block_y, work.block_z) if work.what == "kernel" else ())


def check_fields(path, found):
    with open(path) as file:
        trace = json.load(file)
    check(list(trace) == ["schemaVersion", "deviceProperties", "host_name", "ringside", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",
                          "distributedInfo", "traceName"], "the top level: %s", list(trace))
    check(trace["distributedInfo"] == {"rank": 0, "world_size": 1}, "distributedInfo: %s", trace["distributedInfo"])
    check([d.get("name") for d in trace["deviceProperties"]] == ["Fake GPU 0", "Fake GPU 1"], "the devices: %s", trace["deviceProperties"])
    events = trace["traceEvents"]
    check({e["ph"] for e in events} <= set("XiCsfM"), "phases: %s", {e["ph"] for e in events})
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["cat"]].append(event)
    for category, wanted in kArgs.items():
        for event in slices[category]:
            keys = set(event.get("args", ())) - {"Record"}
            if event["args"].get("cuda_sync_kind") in ("Event Sync", "Stream Wait Event"):
                check(kOfEvent <= keys, "a wait for an event says %s", event["args"])
                keys -= kOfEvent
            check(wanted <= keys | ({"graph id", "graph node id"} if category != "kernel" else set()) and keys - wanted <= kMayHave,
                  "%s says %s, expected %s", category, sorted(keys), sorted(wanted))
    at = lambda ticks: found.job.dumps[0].node_ns(ticks) - trace["baseTimeNanoseconds"]
    for what, category in kCategories.items():
        ours = collections.Counter(told_of(w, at) for w in found.of(what))
        theirs = collections.Counter(known(e) for e in slices[category])
        check(ours == theirs, "%s: in the JSON alone %s, in the dump alone %s", category, theirs - ours, ours - theirs)
    calls = collections.Counter((c.name, c.correlation, c.callback) for c in found.gpu.calls)
    theirs = collections.Counter((e["name"], e["args"]["correlation"], e["args"]["cbid"]) for e in slices["cuda_driver"] + slices["cuda_runtime"])
    check(calls == theirs, "calls: %s, in the dump %s", theirs, calls)
    check_flows(events, slices, found)
    check_annotations(slices, found)
    return slices


def check_flows(events, slices, found):
    """Each arrow leaves its call and arrives at what that launched."""
    ends = {phase: {e["id"]: e for e in events if e["ph"] == phase and e["cat"] == "ac2g"} for phase in "sf"}
    check(set(ends["s"]) == set(ends["f"]), "arrows with one end: %s", set(ends["s"]) ^ set(ends["f"]))
    calls = slices["cuda_driver"] + slices["cuda_runtime"]
    work = [e for category in ("kernel", "gpu_memcpy", "gpu_memset") for e in slices[category]]
    joined = [sorted(_around(ends["s"][i], calls) & _around(ends["f"][i], work)) for i in sorted(ends["s"])]
    expected = sorted([w.correlation] for w in found.work if w.what in ("kernel", "copy", "memset") and found.gpu.call_of(w))
    check(sorted(joined) == expected and all(e.get("bp") == "e" for e in ends["f"].values()), "arrows join %s, expected %s", joined, expected)


def _around(tip, slices):
    """The correlations of the slices in which an arrow's end lies."""
    return {e["args"]["correlation"] for e in slices
            if (e["pid"], e["tid"]) == (tip["pid"], tip["tid"]) and e["ts"] <= tip["ts"] <= round(e["ts"] + e["dur"], 3)}


def check_annotations(slices, found):
    """Users' ranges as a stream ran them: from the first kernel's begin to the last one's end, on the stream's row."""
    external = {e["args"]["External id"]: e for e in slices["user_annotation"] if "External id" in e["args"]}
    spans = collections.defaultdict(list)
    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        for event in slices[category]:
            for number, around in external.items():
                call = [c for c in slices["cuda_driver"] if c["args"]["correlation"] == event["args"]["correlation"]][0]
                if around["tid"] == call["tid"] and around["ts"] <= call["ts"] <= around["ts"] + around["dur"]:
                    spans[(number, around["name"], event["pid"], event["args"]["stream"])].append((event["ts"], event["ts"] + event["dur"]))
    expected = {key: (min(b for b, _ in each), max(e for _, e in each)) for key, each in spans.items()}
    drawn = {(e["args"]["External id"], e["name"], e["pid"], e["tid"]): (e["ts"], round(e["ts"] + e["dur"], 3)) for e in slices["gpu_user_annotation"]}
    check(expected and {k: (b, round(e, 3)) for k, (b, e) in expected.items()} == drawn, "gpu_user_annotation: %s, expected %s", drawn, expected)


def test(workspace):
    lab = Lab(workspace, sys.argv[1])
    found = lab.captured("cuda", "init", "push:outer", "push:inner", *kEverything, "pop", "launch:2", "copy", "pop", "memset", "sync", RANK="0")
    directory = workspace.path("output", "run1", "all")
    files = {}
    for end in (".json", ".pftrace"):
        files[end], told = exported(workspace, "fakes", directory, end)
        check_file(workspace, "fakes" + end, files[end], told)
        check((told["gpu_work"], told["gpu_calls"], told["ranges"]) == (len(found.work), len(found.gpu.calls), len(found.events.ranges)),
              "%s: told %s", end, told)
    check_same(workspace, files[".json"], files[".pftrace"])
    ranks, everything = workspace.path("ranks"), workspace.path("ranks-everything")
    waits = len(found.of("sync")) + len(found.of("event"))
    for where, more, left_out in ((ranks, [], waits), (everything, ["--cuda-sync"], 0)):
        (told_of_it,) = json.loads(workspace.ringside("export", directory, "--per-rank", "-o", where, "--json", *more).out())["files"]
        check((told_of_it["left_out"], told_of_it["gpu_work"]) == (left_out, len(found.work) - left_out), "told %s", told_of_it)
    (name,) = os.listdir(ranks)
    with open(os.path.join(ranks, name)) as file:
        check(waits > 0 and "\"cat\":\"cuda_sync\"" not in file.read(), "waits that nobody asked for are in %s", name)
    slices = check_fields(os.path.join(everything, name), found)
    print("%s: %s, field by field as the dump" % (sys.argv[1], {category: len(each) for category, each in sorted(slices.items())}), flush=True)
    python = python_of_oracles()
    if python is None:
        skip("HolisticTraceAnalysis and TensorBoard's plugin are not here; tools/setup_oracles fetches them (Perfetto's part passed)")
    check_packets(workspace, python, files[".pftrace"], told)
    theirs = read_by(workspace, python, "kineto_readers", ranks)
    (worker,) = theirs["tensorboard"].values()
    (kernel,) = worker["kernels"]
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in slices["kernel"]]
    # It shows whole microseconds.
    check(kernel["Calls"] == len(found.of("kernel")) and abs(kernel["Total Duration (us)"] - length(spans)) <= 0.5, "the plugin's kernels: %s", kernel)
    compute = theirs["hta"]["breakdown"]["0"]["compute_time"]
    check(abs(compute - length(union(spans))) < 1e-6, "HTA's time of computing %s, the kernels' %s", compute, length(union(spans)))



if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in kReleases:
        sys.exit(__doc__)
    need_trace_processor()
    main(test, "exported_" + sys.argv[1])
