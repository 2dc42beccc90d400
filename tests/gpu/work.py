"""The GPU's work as checks.py wants it: of our dumps, by the second reader; of torch.profiler, from Kineto's JSON."""
import bisect
import collections
import json

kCategories = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
kCalls = ("cuda_runtime", "cuda_driver")


class Dump:
    """One node's dump: all work of it, each with its call, the range and the request that the call was made in."""

    def __init__(self, job, index=0):
        self.dump, self.events = job.dumps[index], job.events[index]
        gpu = self.events.gpu
        calls = {}
        for call in sorted(gpu.calls, key=lambda c: c.begin):
            calls.setdefault((call.process, call.correlation), call)
        self.calls = [(c.process, c.name, c.correlation) for c in gpu.calls]
        self._ranges = collections.defaultdict(list)
        for r in self.events.ranges:
            if r.kind != "async":
                self._ranges[r.process, r.tid].append(r)
        for ranges in self._ranges.values():
            ranges.sort(key=lambda r: r.begin)
        self._begins = {key: [r.begin for r in ranges] for key, ranges in self._ranges.items()}
        self._tracks = {}
        for (process, _), lane in self.events.dump.lanes.items():
            for block in lane.blocks:
                self._tracks.setdefault((process, block.tid), block.lane)
        self.work = [self._told(w, calls.get((w.process, w.correlation)) if w.correlation else None) for w in gpu.work]

    def _told(self, w, call):
        inner = call and self._around(call)
        told = {
            "what": w.what, "name": w.name, "process": w.process, "begin": self._ns(w.begin), "end": None if w.end is None else self._ns(w.end),
            "stream": getattr(w, "stream", 0), "correlation": w.correlation, "graph": getattr(w, "graph", 0), "graph_node": getattr(w, "graph_node", 0),
            "bytes": getattr(w, "bytes", 0), "value": getattr(w, "value", 0), "detail": w.detail, "device": getattr(w, "device", 0),
            "call": call and call.name, "call_begin": call and self._ns(call.begin), "range": inner.name if inner else "",
            "range_end": self._ns(inner.end) if inner and inner.end is not None else None, "request": call and self._request(call),
        }
        if w.what == "kernel":
            told.update(grid=[w.grid_x, w.grid_y, w.grid_z], block=[w.block_x, w.block_y, w.block_z])
        return told

    def _ns(self, ticks):
        """From the dump's start, in floating point: nothing is rounded."""
        return self.dump.duration_ns(ticks - self.dump.header.start_ticks)

    def _around(self, call):
        """The innermost range around the call's begin on its thread."""
        key = call.process, call.thread
        ranges = self._ranges.get(key, ())
        for i in range(bisect.bisect_right(self._begins.get(key, ()), call.begin) - 1, -1, -1):
            if ranges[i].end is None or call.begin <= ranges[i].end:
                return ranges[i]
        return None

    def _request(self, call):
        lane = self._tracks.get((call.process, call.thread))
        context = None if lane is None else self.events.contexts[call.process, lane].at(call.begin)
        served = context and self.events.served_by(context, call.process)
        return served.name if served else None

    def of_process(self, process):
        return [w for w in self.work if w["process"] == process]

    def processes(self):
        return sorted({w["process"] for w in self.work})

    def source(self, number):
        """(level, reason) of a source, in the last process that has it."""
        found = [s for p in self.dump.processes.values() for s in p.sources if s.id == number and s.level]
        return (found[-1].level, found[-1].reason or "") if found else (0, "")


def of_kineto(path):
    """The same of a file that torch.profiler has exported; @return (work, number of calls)"""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in kCalls and "correlation" in e.get("args", {})}
    work = []
    for e in events:
        what = kCategories.get(e.get("cat"))
        if what is None or e.get("ph") != "X":
            continue
        args = e["args"]
        call = calls.get(args.get("correlation"))
        work.append({"what": what, "name": e["name"], "begin": e["ts"] * 1000, "end": (e["ts"] + e["dur"]) * 1000, "stream": args.get("stream"),
                     "correlation": args.get("correlation", 0), "bytes": args.get("bytes", 0), "call": call and call["name"], "range": "",
                     "grid": args.get("grid", [0, 0, 0]), "block": args.get("block", [0, 0, 0])})
    return work, len(calls)
