#!/usr/bin/python3
"""The table of a GPU job is torch's, to the character: `ringside table` against torch's own code over the same dump's events, as the second reader
reads them.

    cuda_table.py GPU_JOB        tests/unit/viewer_export/gpu_job_main.cpp
"""
import json
import os
import sys

from harness import check, kPython, kSource, main

from rsd.index import Job

kCopies = {1: "HtoD"}
kMemory = {1: "Pageable", 3: "Device"}


def told(dump):
    """The events as torch_cuda_table.py takes them."""
    ranges = [r for r in dump.ranges if r.kind in ("range", "operator")]
    place = {r: i for i, r in enumerate(ranges)}
    threads = [{"name": r.name, "thread": r.tid, "begin": r.begin, "end": r.end, "shapes": json.loads(r.shapes or "[]")} for r in ranges]
    threads += [{"name": c.name, "thread": c.thread, "begin": c.begin, "end": c.end, "shapes": []} for c in dump.gpu.calls]
    works = []
    for work in dump.gpu.work:
        if work.what not in ("kernel", "copy"):
            continue
        name = work.name if work.what == "kernel" else "Memcpy %s (%s -> %s)" % (
            kCopies[work.detail], kMemory[work.source_memory], kMemory[work.destination_memory])
        works.append({"name": name, "device": work.device, "stream": work.stream, "begin": work.begin, "end": work.end,
                      "around": place.get(dump.gpu.range_of(dump, dump.gpu.call_of(work)))})
    return {"threads": threads, "works": works}


def test(workspace):
    directory, events = workspace.path("job"), workspace.path("events.json")
    os.makedirs(directory)
    workspace.run("gpu_job", [sys.argv[1], "1", directory])
    with open(events, "w") as out:
        json.dump(told(Job(directory).events[0]), out)
    theirs = workspace.run("torch", [kPython, "-W", "ignore", os.path.join(kSource, "tests", "oracle", "torch_cuda_table.py"), events]).out()
    ours = workspace.ringside("table", directory, "--full-names", "--row-limit", "0").out().split("RPCs:")[0]
    check(theirs.count("\n") > 12 and "Self CUDA time total: " in theirs, "torch's:\n%s", theirs)
    off = next(((a, b) for a, b in zip(theirs.splitlines(), ours.splitlines()) if a != b), (theirs, ours))
    check(theirs == ours, "torch's and ours differ first in\n%s\n%s", *off)
    print("%d lines are torch's" % ours.count("\n"), flush=True)


main(test, "cuda_table")
