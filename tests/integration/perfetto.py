#!/usr/bin/python3
"""Exports (JSON, gzipped, .pftrace) in Perfetto's trace_processor: nothing in it is wrong or lost, and what Perfetto counts is what we wrote and what the reader reads.

Two captures: the recipe from first to last instruction, and the job whose worker is killed (open, unfinished, orphan and joined calls).
trace_processor is fetched by tools/setup into ${XDG_CACHE_HOME:-~/.cache}/ringside; without it or without node: skipped, aloud.
"""
import collections
import json
import os
import re
import shutil

from harness import check, kPython, kSource, kWorkloads, free_port, main, skip
from rsd.index import Job
from scenarios import traced_killed_job

kAssets = os.environ.get("RINGSIDE_TRACE_PROCESSOR") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringside", "trace-processor-v55")
kFormats = (".json", ".json.gz", ".pftrace")
kQueries = (
    "select name, severity, value from stats where value > 0 and severity in ('error', 'data_loss')",
    "select count(*) as n from slice where category is not null",
    "select count(*) as n from slice where dur = -1",
    "select s.category as leaves, t.category as arrives, count(*) as n from flow f join slice s on f.slice_out = s.id"
    " join slice t on f.slice_in = t.id group by 1, 2",
    "select count(*) as n from slice where category = 'rpc'",
    "select count(*) as n from counter",
)


def perfetto(workspace, trace, *more):
    """What trace_processor answers to kQueries, then to `more`."""
    child = workspace.run("trace_processor-%d" % len(workspace.children), [
        "node", os.path.join(kSource, "tests", "oracle", "trace_processor.mjs"), kAssets, trace, *kQueries, *more])
    return json.loads(child.out())


def check_file(workspace, what, trace, told, *more):
    """What Perfetto counts in a file is what was told of it. @return its answers to `more`"""
    bad, seen, endless, flows, halves, points, *answers = perfetto(workspace, trace, *more)
    check(not bad, "%s: trace_processor complains: %s", what, bad)
    check(seen[0]["n"] == told["slices"] + told["instants"], "%s: trace_processor has %d slices, exported were %d and %d instants",
          what, seen[0]["n"], told["slices"], told["instants"])
    check(endless[0]["n"] == 0, "%s: %d slices without an end", what, endless[0]["n"])
    arrows = sum(row["n"] for row in flows)
    check(arrows == told["rpc_requests"] + told["rpc_replies"] + told["fwdbwd"] + told["launches"] + told["collectives"],
          "%s: %d arrows in trace_processor (%s), exported %s", what, arrows, flows, told)
    between_halves = sum(row["n"] for row in flows if (row["leaves"], row["arrives"]) == ("rpc", "rpc"))
    check(between_halves == told["rpc_requests"] + told["rpc_replies"], "%s: %d arrows between halves, exported %s", what, between_halves, told)
    launches = sum(row["n"] for row in flows if row["leaves"].startswith("cuda_") and row["arrives"] in ("kernel", "gpu_memcpy", "gpu_memset"))
    check(launches == told["launches"], "%s: %d arrows from calls to the GPU's work, exported %s", what, launches, told)
    check(halves[0]["n"] == told["rpc_halves"], "%s: %d slices of category rpc, %d halves", what, halves[0]["n"], told["rpc_halves"])
    check(points[0]["n"] == told["counters"] + told["derived"], "%s: %d points of counters, exported %s", what, points[0]["n"], told)
    print("%s: %d slices, %d arrows, %d points of counters in trace_processor, as exported; no error, no data loss" % (
        what, seen[0]["n"], arrows, points[0]["n"]), flush=True)
    return answers


# Every slice with all that is said of it, but where its record lies, which .pftrace says of the row. Lists of lists are text in it.
kSlices = """
select s.category as category, s.name as name, s.ts - (select min(ts) from slice) as ts, s.dur as dur,
  (select group_concat(word, '; ') from (
     select substr(key, instr(key, '.') + 1) || '=' || coalesce(string_value, int_value, real_value) as word from args
     where arg_set_id = s.arg_set_id and (key glob 'args.*' or key glob 'debug.*')
       and not (key glob '*.Record' or key glob '*.Lane' or key glob '*.Input Dims*') order by 1)) as args
from slice s where s.category is not null order by 1, 2, 3, 4, 5"""


def check_same(workspace, chrome, packets, *said):
    """trace_processor finds the same slices with the same args in both; among these is each of `said`."""
    def told(value):
        # A point in a key is a level of it, so Perfetto takes `_` for those of .pftrace; of a whole number beyond its own 64 bits in JSON it makes a broken one.
        return re.sub(r"=(-?\d+)\.0(?=;|$)", r"=\1", str(value).replace("est.", "est_"))
    one, other = ([tuple(told(value) for value in row.values()) for row in perfetto(workspace, trace, kSlices)[-1]] for trace in (chrome, packets))
    wrong = [pair for pair in zip(one, other) if pair[0] != pair[1]]
    check(len(one) == len(other) and not wrong, "JSON has %d slices, .pftrace %d; unlike: %s", len(one), len(other), wrong[:3])
    for word in said:
        check(any(word in row[-1] for row in one), "no arg %s: %s", word, one[:3])
    print("%d slices, each with the same times and args in JSON and .pftrace" % len(one), flush=True)


def exported(workspace, what, directory, end):
    """@return the file that `ringside export` makes, and what it tells of it"""
    trace = workspace.path(what + end)
    return trace, json.loads(workspace.ringside("export", directory, "-o", trace, "--json").out())


def expected_slices(job):
    """Every range once, every half once, a step between two boundaries of one name, and each mark or boundary as an instant."""
    counts = job.counts()
    boundaries = collections.Counter((id(e), m[1], m[3]) for e in job.events for m in e.marks if m[0] == "iteration")
    steps = sum(n - 1 for n in boundaries.values())
    instants = sum(m[0] != "counter" for e in job.events for m in e.marks)
    return counts["ranges"] + counts["client_halves"] + counts["server_halves"], steps, instants


def check_export(workspace, what, directory):
    job = Job(directory)
    check(not job.problems(), "%s, the reader: %s", what, "; ".join(job.problems()))
    counts = job.counts()
    slices, steps, instants = expected_slices(job)
    for end in kFormats:
        trace, told = exported(workspace, what, directory, end)
        check(told["ranges"] + told["asyncs"] + told["rpc_halves"] == slices and told["iterations"] == steps and told["instants"] == instants,
              "%s: exported %s, the reader has %d slices, %d steps, %d instants (%s)", what, told, slices, steps, instants, counts)
        check(told["slices"] == slices + steps, "%s: %d slices exported, %d expected", what, told["slices"], slices + steps)
        check((told["rpc_requests"], told["rpc_replies"]) == (counts["joined"], counts["joined_replies"]),
              "%s: %d + %d arrows exported, the reader joins %d + %d", what, told["rpc_requests"], told["rpc_replies"], counts["joined"], counts["joined_replies"])
        check_file(workspace, what + end, trace, told)


def test(workspace):
    output = workspace.path("recipe")
    workspace.ringside("run", "-o", output, "--", kPython, "-W", "ignore", os.path.join(kWorkloads, "recipe.py"),
                       environment=dict(os.environ, MASTER_PORT=str(free_port())))
    check_export(workspace, "recipe", output)
    output = workspace.path("training")
    workspace.ringside("run", "-o", output, "--", kPython, os.path.join(kWorkloads, "training.py"))
    check_export(workspace, "training", output)
    directory, _, _ = traced_killed_job(workspace)
    check_export(workspace, "killed", directory)


def need_trace_processor():
    if shutil.which("node") is None:
        skip("node is not installed; tools/setup --all installs it")
    if not os.path.exists(os.path.join(kAssets, "complete")):
        skip("Perfetto's trace_processor is not in %s; tools/setup fetches it" % kAssets)


if __name__ == "__main__":
    need_trace_processor()
    main(test, "perfetto")
