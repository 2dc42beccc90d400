#!/usr/bin/python3
"""A GPU job's exports as the field's tools read them: all that they count, add up and join is what the second reader has.

    exports.py GPU_JOB        tests/unit/viewer_export/gpu_job_main.cpp

Perfetto's trace_processor: the merged JSON and .pftrace. Perfetto's message classes: each packet. HolisticTraceAnalysis and TensorBoard's
PyTorch plugin: the files of ranks. The last two are fetched by tools/setup_oracles; without them: skipped, aloud.
"""
import json
import os
import subprocess
import sys

from harness import check, kSource, main, skip

sys.path.insert(0, os.path.join(kSource, "tests", "gpu"))
from checks import demangled
from perfetto import check_file, check_same, exported, need_trace_processor
from rsd.index import Job

kRanks = 2
kArgs = {".json": "args", ".pftrace": "debug"}
# A CPU operator's kernels, in one query: the operator's external id, that of its calls, their correlations, the kernels' own.
kKernelsOf = """
select op.name as operator, kernel.name as kernel, kernel_track.name as track, kernel.dur as ns, count(*) as n
from slice op
join slice call on call.category = 'cuda_runtime'
  and extract_arg(call.arg_set_id, '{args}.External id') = extract_arg(op.arg_set_id, '{args}.External id')
join slice kernel on kernel.category = 'kernel'
  and extract_arg(kernel.arg_set_id, '{args}.correlation') = extract_arg(call.arg_set_id, '{args}.correlation')
  and extract_arg(kernel.arg_set_id, '{args}.External id') = extract_arg(call.arg_set_id, '{args}.External id')
join {tracks} kernel_track on {joined}
where op.category = 'cpu_op' group by 1, 2, 3, 4 order by 1, 2"""
kTracks = {".json": ("(select tt.id as id, t.name as name from thread_track tt join thread t using (utid))", "kernel.track_id = kernel_track.id"),
           ".pftrace": ("track", "kernel.track_id = kernel_track.id")}
# What each operator launches a step, by its own program: (kernel begins with, stream, ns).
kLaunched = {"aten::mm": ("ampere_sgemm", 7, 60_000), "aten::relu": ("void at::native::vectorized_elementwise_kernel<4>(int)", 7, 40_000),
             "c10d::allreduce_": ("ncclDevKernel_AllReduce", 20, 60_000)}


def union(spans):
    """Disjoint intervals that cover the same."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(spans):
    return sum(end - begin for begin, end in spans)


def common(left, right):
    return length(union(left)) + length(union(right)) - length(union(list(left) + list(right)))


def breakdown(events):
    """As HTA defines it: of the time from the first work to the last, in which some kernel computes, other work alone runs, nothing does; and the
    percentage of communication beside which something computes. In us."""
    spans = lambda wanted: [(w.begin / 1000, w.end / 1000) for w in events.gpu.work if wanted(w)]
    on_device = ("kernel", "copy", "memset")
    compute = spans(lambda w: w.what == "kernel" and not demangled(w.name).startswith("nccl"))
    communication = spans(lambda w: w.what == "kernel" and demangled(w.name).startswith("nccl"))
    everything = spans(lambda w: w.what in on_device)
    total = max(end for _, end in everything) - min(begin for begin, _ in everything)
    busy = length(union(everything))
    return {"idle_time": total - busy, "compute_time": length(union(compute)), "non_compute_time": busy - length(union(compute)),
            "kernel_time": total}, 100 * common(compute, communication) / length(union(communication))


def check_perfetto(workspace, directory, end):
    trace, told = exported(workspace, "gpu", directory, end)
    tracks, joined = kTracks[end]
    (found,) = check_file(workspace, "gpu" + end, trace, told, kKernelsOf.format(args=kArgs[end], tracks=tracks, joined=joined))
    expected = kRanks * 3
    print("\n".join("  %s: %s launches %s on %s, %d ns, %d times" % (end, row["operator"], row["kernel"], row["track"], row["ns"], row["n"])
                    for row in found), flush=True)
    check(sorted(row["operator"] for row in found) == sorted(kLaunched), "%s: kernels of operators: %s", end, found)
    for row in found:
        kernel, stream, ns = kLaunched[row["operator"]]
        check(row["kernel"].startswith(kernel) and row["track"] == "stream %d" % stream and row["ns"] == ns and row["n"] == expected,
              "%s: %s, expected %s on stream %d, %d ns, %d times", end, row, kernel, stream, ns, expected)
    return trace, told


def python_of_oracles():
    made = subprocess.run([os.path.join(kSource, "tools", "setup_oracles"), "--path"], capture_output=True, text=True, check=False)
    return made.stdout.strip() if made.returncode == 0 else None


def read_by(workspace, python, script, argument):
    child = workspace.run(script, [python, os.path.join(kSource, "tests", "oracle", script + ".py"), argument])
    return json.loads(child.out())


def check_packets(workspace, python, trace, told):
    found = read_by(workspace, python, "pftrace_packets", trace)
    check(not found["wrong"], "packet by packet: %s", found["wrong"])
    seen = found["told"]
    arrows = told["launches"] + told["fwdbwd"] + told["rpc_requests"] + told["rpc_replies"] + told["collectives"]
    kinds = ("TYPE_SLICE_BEGIN", "TYPE_SLICE_END", "TYPE_INSTANT", "TYPE_COUNTER", "flows")
    check(tuple(seen.get(kind, 0) for kind in kinds) ==
          (told["slices"], told["slices"], told["instants"], told["counters"] + told["derived"], arrows), "packets %s, exported %s", seen, told)
    print("packet by packet: %s" % seen, flush=True)


def check_ranks(workspace, python, directory, job, gzip):
    ranks = workspace.path("ranks-gz" if gzip else "ranks")
    told = json.loads(workspace.ringside("export", directory, "--per-rank", "-o", ranks, "--json", *(["--gzip"] if gzip else [])).out())["files"]
    names = sorted(os.listdir(ranks))
    check(names == sorted(os.path.basename(file["path"]) for file in told) and len(names) == kRanks, "files of ranks: %s, told %s", names, told)
    check(all(name.startswith("host-node%d_%d." % (rank, 4000 + rank)) and name.endswith(".pt.trace.json" + gzip * ".gz")
              for rank, name in enumerate(names)), "names of files: %s", names)
    found = read_by(workspace, python, "kineto_readers", ranks)
    steps = {device["rank"]: device["trace"] for device in workspace.json("steps", directory)["devices"]}
    for rank, events in enumerate(job.events):
        times, overlap = breakdown(events)
        ours = steps[rank]
        told_of = {"idle_time": ours["idle_us"], "compute_time": ours["compute_us"], "kernel_time": ours["time_us"],
                   "non_compute_time": ours["exposed_communication_us"] + ours["copies_us"]}
        check(all(abs(told_of[key] - times[key]) < 1e-6 for key in times) and abs(ours["overlap_percent"] - overlap) < 1e-6,
              "rank %d: ringside steps %s, the reader %s, %s", rank, ours, times, overlap)
        theirs = found["hta"]["breakdown"][str(rank)]
        check(all(abs(theirs[key] - times[key]) < 1e-6 for key in times), "rank %d: HTA's breakdown %s, ours %s", rank, theirs, times)
        check(abs(found["hta"]["overlap_percent"][str(rank)] - overlap) < 0.005, "rank %d: HTA's overlap %s, ours %s", rank, found["hta"], overlap)
        launched = sum(w.what in ("kernel", "copy") for w in events.gpu.work)
        check(found["hta"]["launches"][str(rank)] == launched, "rank %d: HTA joins %s launches, ours %d", rank, found["hta"]["launches"], launched)
        worker = found["tensorboard"]["host-node%d_%d" % (rank, 4000 + rank)]
        check_tables(rank, worker, events)
    print("HTA: %s, overlap %s; TensorBoard: %d operators, %d kernels a rank, as the second reader" % (
        found["hta"]["breakdown"], found["hta"]["overlap_percent"], len(worker["operators"]), len(worker["kernels"])), flush=True)


def check_tables(rank, worker, events):
    operators = {}
    for event in events.ranges:
        calls, ns = operators.get(event.name, (0, 0))
        operators[event.name] = (calls + 1, ns + event.end - event.begin)
    theirs = {row["name"]: (row["calls"], round(row["host_total_duration"] * 1000)) for row in worker["operators"]}
    check(theirs == operators, "rank %d: the plugin's operators %s, ours %s", rank, theirs, operators)
    kernels = {}
    for work in events.gpu.work:
        if work.what == "kernel":
            name = demangled(work.name).split("(")[0]
            calls, ns = kernels.get(name, (0, 0))
            kernels[name] = (calls + 1, ns + work.end - work.begin)
    theirs = {row["Name"].split("(")[0]: (row["Calls"], round(row["Total Duration (us)"] * 1000)) for row in worker["kernels"]}
    check(theirs == kernels, "rank %d: the plugin's kernels %s, ours %s", rank, theirs, kernels)
    check({"title": "Name", "value": "Test GPU"} in worker["gpus"], "rank %d: the plugin's GPUs: %s", rank, worker["gpus"])


def test(workspace):
    directory = workspace.path("job")
    os.makedirs(directory)
    workspace.run("gpu_job", [sys.argv[1], str(kRanks), directory])
    job = Job(directory)
    chrome, _ = check_perfetto(workspace, directory, ".json")
    trace, told = check_perfetto(workspace, directory, ".pftrace")
    check_same(workspace, chrome, trace, "correlation=")
    python = python_of_oracles()
    if python is None:
        skip("HolisticTraceAnalysis and TensorBoard's plugin are not here; tools/setup_oracles fetches them (Perfetto's part passed)")
    check_packets(workspace, python, trace, told)
    for gzip in (False, True):
        check_ranks(workspace, python, directory, job, gzip)


if __name__ == "__main__":
    need_trace_processor()
    main(test, "exports")
