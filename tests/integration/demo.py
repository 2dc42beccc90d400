#!/usr/bin/python3
"""`tools/demo` as a newcomer runs it: from a folder of one's own, with relative paths, and read by eye; it fetches and builds nothing where all is there,
and leaves nothing behind.
"""
import glob
import json
import os
import re
import subprocess

from harness import check, kBuild, kPython, kSource, main, skip, wait_until
from rsd.index import Job

kRpcs = 13
kNodes = 3
# What brings something from elsewhere: each says that it was called, and fails.
kFetchers = ("apt-get", "sudo", "npm", "pip", "pip3", "curl", "wget", "git", "cargo", "debootstrap", "meson")
kSummary = re.compile(r"^RPCs joined (\d+), cut (\d+), orphans (\d+), unfinished (\d+); \d+ events in \d+ records, lost (\d+); .*", re.M)
kWhere = re.compile(r"^dumps and index in (.*); open (.*) in https://ui.perfetto.dev$", re.M)


def folders():
    """Of all demos that run now."""
    return set(glob.glob("/dev/shm/ringside-demo-*") + glob.glob("/var/tmp/ringside-demo-*"))


def up_to_date():
    told = subprocess.run(["ninja", "-C", kBuild, "-n"], capture_output=True, text=True)
    return "no work to do" in told.stdout


def environment(workspace):
    """The user's own, with our root's name in it: who still has it afterwards was left behind."""
    fetchers, called = workspace.path("fetchers"), workspace.path("called")
    os.makedirs(fetchers)
    for name in kFetchers:
        with open(os.path.join(fetchers, name), "w") as script:
            script.write('#!/bin/sh\necho "%s $*" >>%s\nexit 1\n' % (name, called))
        os.chmod(script.name, 0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSIDE_", "SLURM_"))}
    return dict(kept, PATH="%s:%s" % (fetchers, os.environ["PATH"]), DEMO_OF=workspace.root), called


def check_text(out):
    said = kSummary.search(out)
    check(said is not None, "no summary in:\n%s", out[-1500:])
    joined, *others = map(int, said.groups())
    check(joined == kRpcs and not any(others), "it says: %s", said.group())
    check("rpc_sync#nested_sync(worker0 -> worker1)#remote_op: rpc_sync#udf_with_ops(worker1 -> worker2)#remote_op: aten::mul" in out, "a row is missing in:\n%s", out)


def check_files(output):
    trace = os.path.join(output, "trace.json")
    check(os.path.isfile(trace), "there is no %s", trace)
    with open(trace) as text:
        events = json.load(text)["traceEvents"]
    ours = {e["name"] for e in events}
    check(len(events) > 100 and any("nested_sync" in name for name in ours), "trace.json has %d events: %s", len(events), sorted(ours)[:20])
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    counts = job.counts()
    check(len(job.dumps) == kNodes and counts["joined"] >= kRpcs and counts["orphans"] == counts["cut"] == counts["lost"] == 0, "the reader counts %s", counts)


def test(workspace):
    if not os.path.isdir(os.path.join(kSource, "build")) or not os.path.samefile(kBuild, os.path.join(kSource, "build")):
        skip("tools/demo runs what lies in the clone's build/")
    settled, before = up_to_date(), folders()
    user, called = environment(workspace)
    user_folder = workspace.path("cwd")
    python = os.path.relpath(kPython, user_folder)
    demo = workspace.run("demo", [os.path.join(kSource, "tools", "demo"), "--python", python, "-o", "my demo"], user)
    check_text(demo.out())
    where = kWhere.search(demo.out())
    check(where is not None and where.groups() == ("my demo", "my demo/trace.json"), "it says where: %s", where and where.group())
    check_files(os.path.join(user_folder, "my demo"))
    check(os.listdir(user_folder) == ["my demo"], "in the user's folder: %s", os.listdir(user_folder))
    check(not os.path.exists(called), "it fetches: %s", os.path.exists(called) and open(called).read())
    check(not settled or "building" not in demo.err(), "it builds what was built: %s", demo.err())
    # Others' demos end, too.
    wait_until("its folders to go", lambda: not folders() - before)
    print(kSummary.search(demo.out()).group(), flush=True)


main(test, "demo")
