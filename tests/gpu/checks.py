"""What must be true of a GPU's records: pure, so that each check is shown to fail where there is no GPU (test_checks.py).

Work and calls are plain dicts (dump.py makes them of a dump, or of Kineto's JSON): what, name, begin, end (ns), stream, correlation, range,
call, call_begin, call_end, graph, graph_node, bytes, value, detail, grid, block.
"""
import collections
import ctypes
import functools
import statistics

kNsPerUs = 1000.0
kOffNs = 1000.0  # a duration, and what a GPU's clock may be off on the host's: the bound
kEmptyMostNs = 8000.0  # what CUPTI says of a kernel that does nothing
kCopies = {"HtoD": 1, "DtoH": 2, "DtoD": 8}  # CUpti_ActivityMemcpyKind


class Findings:
    """Every check by its name, whether it holds, and what was seen; figures beside them. One that fails keeps none of the others from being looked at."""

    def __init__(self):
        self.checks, self.figures = [], {}

    def expect(self, what, holds, detail="", *values):
        self.checks.append((what, bool(holds), str(detail) % values if values else str(detail)))
        return bool(holds)

    def equal(self, what, found, expected):
        return self.expect(what, found == expected, "%s" % (_shown(found),) if found == expected else "%s, expected %s" % (_shown(found), _shown(expected)))

    def figure(self, name, value):
        self.figures[name] = value

    def failed(self):
        return [(what, detail) for what, holds, detail in self.checks if not holds]


def _shown(value):
    text = repr(value)
    return text if len(text) < 300 else text[:300] + " ..."


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


# --- the program whose work is known (program.cu) ---

def of_range(work, name):
    return [w for w in work if w["range"] == name]


def in_launch_order(work):
    return sorted(work, key=lambda w: w["correlation"])


def program_work(truth, work, findings):
    """Count, names and order of everything that the program did, range by range; and that streams are the program's."""
    for name in dict.fromkeys(t["range"] for t in truth["work"] if t["range"]):
        told = [t for t in truth["work"] if t["range"] == name]
        mine = of_range(work, name)
        kernels = [t["name"] for t in told if "kernel" in t["what"]]
        seen = [w["name"] for w in sorted((w for w in mine if w["what"] == "kernel"), key=lambda w: (w["correlation"], w["begin"]))]
        findings.equal("%s: kernels, in order" % name, seen, kernels)
        for what in ("memset", "event"):
            findings.equal("%s: %ss" % (name, what), len([w for w in mine if w["what"] == what]), len([t for t in told if t["what"] == what]))
        copies = [(kCopies[t["name"]], t["bytes"]) for t in told if t["what"] == "copy"]
        findings.equal("%s: copies" % name, [(w["detail"], w["bytes"]) for w in in_launch_order(mine) if w["what"] == "copy"], copies)
    for told, seen in zip((t for t in truth["work"] if t["what"] == "memset"), in_launch_order([w for w in work if w["what"] == "memset" and w["range"]])):
        findings.equal("the memset", (seen["bytes"], seen["value"]), (told["bytes"], told["value"]))
    streams(truth, work, findings)


def streams(truth, work, findings):
    """One of ours for each of the program's; what one of them has is done one after the other."""
    numbers = collections.defaultdict(set)
    for name in ("durations", "streams", "graph"):
        told = [t for t in truth["work"] if t["range"] == name and "kernel" in t["what"]]
        mine = sorted((w for w in of_range(work, name) if w["what"] == "kernel"), key=lambda w: (w["correlation"], w["begin"]))
        for t, w in zip(told, mine):
            numbers[t["stream"]].add(w["stream"])
    found = [one for several in numbers.values() for one in several]
    findings.expect("streams are the program's, one by one", len(found) == len(set(found)) == len(numbers) == truth["streams"], dict(numbers))
    by_stream = collections.defaultdict(list)
    for w in work:
        if w["what"] == "kernel":
            by_stream[w["stream"]].append(w)
    overlaps = [(a["name"], b["begin"] - a["end"]) for mine in by_stream.values() for a, b in _neighbours(mine) if b["begin"] < a["end"] - kOffNs]
    findings.expect("a stream's kernels follow each other", not overlaps, overlaps[:5])
    spans = [(w["begin"], w["end"]) for w in of_range(work, "streams") if w["what"] == "kernel"]
    if spans:
        findings.figure("kernels at once on %d streams" % truth["streams"], max(sum(b <= at < e for b, e in spans) for at, _ in spans))


def _neighbours(work):
    ordered = sorted(work, key=lambda w: w["begin"])
    return zip(ordered, ordered[1:])


def program_graph(truth, work, findings):
    mine = [w for w in of_range(work, "graph") if w["what"] == "kernel"]
    launches = len([t for t in truth["work"] if t["what"] == "graph kernel"]) // 3
    findings.expect("a graph's kernels bear its number", mine and len({w["graph"] for w in mine}) == 1 and mine[0]["graph"], {w["graph"] for w in mine})
    nodes = collections.Counter(w["graph_node"] for w in mine)
    findings.expect("its nodes are told apart", len(nodes) == 3 and set(nodes.values()) == {launches} and 0 not in nodes, dict(nodes))
    findings.expect("a launch of the graph is their call", mine and {w["call"] for w in mine} <= {"cudaGraphLaunch", "cuGraphLaunch"}, {w["call"] for w in mine})
    plain = [w for w in of_range(work, "durations") if w["what"] == "kernel"]
    findings.expect("other kernels bear none", plain and not any(w["graph"] for w in plain), {w["graph"] for w in plain})


def durations(truth, work, findings):
    """Each kernel's length against what it has counted in itself: clock64 by the clock's rate in the longest ones, and the global timer. What CUPTI adds
    (begin and end of a kernel that does nothing) is taken off; the rest is within 1 us."""
    told = [t for t in truth["work"] if t["range"] == "durations"]
    mine = in_launch_order([w for w in of_range(work, "durations") if w["what"] == "kernel"])
    if not findings.expect("durations: as many kernels as known", len(told) == len(mine) and mine, "%d of %d", len(mine), len(told)):
        return
    pairs = [(t, w["end"] - w["begin"]) for t, w in zip(told, mine)]
    empty = statistics.median(length for t, length in pairs if "cycles" not in t)
    spun = [(t, length) for t, length in pairs if "cycles" in t]
    timer = {id(t): t["global_end"] - t["global_begin"] for t, _ in spun}
    longest = sorted(spun, key=lambda pair: timer[id(pair[0])])[-6:]
    rate = statistics.median(t["cycles"] / timer[id(t)] for t, _ in longest)
    by_clock = [length - t["cycles"] / rate for t, length in spun]
    by_timer = [length - timer[id(t)] for t, length in spun]
    unsteady = max(abs(t["cycles"] / rate - timer[id(t)]) for t, _ in spun)
    findings.figure("an empty kernel, ns", round(empty))
    findings.figure("clock, MHz", round(rate * 1000, 1))
    findings.figure("length - clock64, ns: least, median, most", [round(min(by_clock)), round(statistics.median(by_clock)), round(max(by_clock))])
    findings.figure("length - globaltimer, ns: least, median, most", [round(min(by_timer)), round(statistics.median(by_timer)), round(max(by_timer))])
    findings.figure("clock64 against globaltimer, most, ns", round(unsteady))
    findings.expect("an empty kernel is short", 0 < empty < kEmptyMostNs, "%.0f ns", empty)
    worst = max((abs(d - empty / 2) - empty / 2 for d in by_timer))
    findings.expect("durations: within 1 us of the global timer, begin and end of a kernel taken off", worst <= kOffNs, "%.0f ns beyond", worst)
    worst = max((abs(d - empty / 2) - empty / 2 for d in by_clock))
    steady = unsteady <= kOffNs
    findings.expect("durations: within 1 us of clock64, begin and end of a kernel taken off", worst <= kOffNs or not steady,
                    "%.0f ns beyond%s" % (worst, "" if steady else "; not judged: the clock's rate was not steady"))


def clock(work, findings):
    """The GPU's times on the host's line: nothing begins before its call, or ends after the wait that followed."""
    early = [w["begin"] - w["call_begin"] for w in work if w["what"] in ("kernel", "copy", "memset") and w["call_begin"] is not None]
    late = [w["range_end"] - w["end"] for w in work if w["what"] in ("kernel", "copy", "memset") and w.get("range_end") is not None]
    if not findings.expect("clock: work has calls and ranges", early and late, "%d, %d", len(early), len(late)):
        return
    findings.figure("begin after its call's, ns: least, median", [round(min(early)), round(statistics.median(early))])
    findings.figure("end before its range's, ns: least", round(min(late)))
    findings.expect("clock: nothing begins before its call", min(early) >= -kOffNs, "%.0f ns", min(early))
    findings.expect("clock: nothing ends after what waited for it", min(late) >= -kOffNs, "%.0f ns", min(late))


# --- beside torch.profiler ---

@functools.lru_cache(maxsize=None)
def demangled(name):
    """As the C++ runtime does it, which Kineto asks too."""
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.cast(found, ctypes.c_char_p).value.decode() if found and status.value == 0 else name


def shape_of(work):
    return (demangled(work["name"]), tuple(work["grid"]), tuple(work["block"]))


def same_kernels(ours, theirs, findings, ordered):
    """Count, names and shapes of kernels; their order, where the job has one; bytes of copies and memsets."""
    mine, others = ([w for w in some if w["what"] == "kernel"] for some in (ours, theirs))
    findings.figure("kernels", len(mine))
    findings.figure("kernels of torch.profiler", len(others))
    findings.expect("there are kernels", mine and others, "%d, torch.profiler %d", len(mine), len(others))
    names = [collections.Counter(demangled(w["name"]) for w in some) for some in (mine, others)]
    findings.expect("kernels: count and names equal torch.profiler's", names[0] == names[1], "%d of %d names; %s", len(mine), len(names[0]), difference(*names))
    shapes = [collections.Counter(map(shape_of, some)) for some in (mine, others)]
    findings.expect("kernels: shapes equal torch.profiler's", shapes[0] == shapes[1], difference(*shapes))
    if ordered:
        sequences = [list(map(shape_of, in_launch_order(some))) for some in (mine, others)]
        at = next((i for i, (a, b) in enumerate(zip(*sequences)) if a != b), None)
        findings.expect("kernels: order equal torch.profiler's", sequences[0] == sequences[1], "all %d" % len(mine) if at is None else "the first that differs: %d" % at)
    for what in ("copy", "memset"):
        sizes = [collections.Counter(w["bytes"] for w in some if w["what"] == what) for some in (ours, theirs)]
        findings.expect("%s: bytes equal torch.profiler's" % what, sizes[0] == sizes[1], "%d; %s", sum(sizes[0].values()), difference(*sizes))


def difference(first, second):
    only = [dict(list((a - b).items())[:4]) for a, b in ((first, second), (second, first))]
    return "equal" if first == second else "only ours %s, only theirs %s" % tuple(only)


def totals(ours, theirs, findings):
    """The two runs' busy times, beside each other: a figure, no check."""
    for name, some in (("ours", ours), ("torch.profiler", theirs)):
        findings.figure("kernels' time, us, " + name, round(sum(w["end"] - w["begin"] for w in some if w["what"] == "kernel") / kNsPerUs, 1))
