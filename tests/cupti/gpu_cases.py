#!/usr/bin/python3
"""The GPU tests' own cases (../gpu) over the fakes, with a program that says of itself what ../gpu/program.cu says: gpu_cases.py RELEASE [CASE ...].

It shows that the cases run to their end on true dumps, that what can be so here is found to be so, and that what can't (below) is found to be wrong.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import check, kAgent, kCommand, kShim, kSource, main
from lab import Lab, kFlags, kReleases

kCases = ("known_work", "idle_program", "kill_in_a_capture", "an_armed_window", "launch_overhead")
# The fake driver has no graphs: their kernels are launched by hand.
kWrongHere = {"known_work": {"a launch of the graph is their call"}}


def test(workspace):
    lab = Lab(workspace, sys.argv[1])
    stand_in = workspace.path("stand_in")
    lab.compile("cc", *kFlags, "-I", kSource, "-o", stand_in, os.path.join(kSource, "tests", "cupti", "stand_in.c"))
    for case in sys.argv[2:] or kCases:
        result = workspace.path(case + ".json")
        environment = dict(os.environ, RINGSIDE_COMMAND=kCommand, RINGSIDE_AGENT=kAgent, RINGSIDE_SHIM=kShim, RINGSIDE_GPU_PROGRAM=stand_in, RINGSIDE_GPU_RESULT=result, RINGSIDE_GPU_QUICK="1",
                           LD_LIBRARY_PATH=lab.libraries, FAKE_CUPTI="", FAKE_CUDA_DRIVER="13050" if lab.release.startswith("13") else "12090")
        child = workspace.run(case, [sys.executable, os.path.join(kSource, "tests", "gpu", "cases.py"), case], environment, expect=None)
        with open(result) as told:
            checks = json.load(told)["checks"]
        # A fake launch takes some nanoseconds: what is added to it says nothing.
        wrong = {what: detail for what, holds, detail in checks if not holds and not what.endswith("within its bound")}
        check(set(wrong) == kWrongHere.get(case, set()) and len(checks) > len(wrong), "%s: wrong are %s; status %d:\n%s", case, wrong, child.process.returncode, child.tail())
        check(child.process.returncode in (1 if wrong else 0, int(case == "launch_overhead")), "%s ended with %d:\n%s", case, child.process.returncode, child.tail())
        print("%s: %s: %d checks, %s" % (lab.release, case.replace("_", " "), len(checks), "wrong here: %s" % sorted(wrong) if wrong else "all hold"), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kReleases or set(sys.argv[2:]) - set(kCases):
        sys.exit(__doc__)
    main(test, "gpu_cases_" + sys.argv[1])
