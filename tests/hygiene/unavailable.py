#!/usr/bin/python3
"""A torch that lacks what an option asks for: the job runs, the rest is recorded, and the level says what is missing and why.

    unavailable.py CASE
"""
import os

from cases import bare, check, compile_c, kHere, run, skip, written

from rsd.index import Job
from rsd.shapes import kLevels

kTorch = 1
kReasonBytes = 119
kShapes, kMemory = "--record-shapes", "--profile-memory"
kNoShapes = "input shapes unavailable: libtorch_cpu exports no inputSizes()"
kNoCpu = "CPU memory unavailable: libc10 has no slots of ProfiledCPUMemoryReporter"
kNoCuda = "CUDA memory unavailable: libc10_cuda has no slot of its report"
# Objects are looked at again when an extension module is loaded: it is, behind them.
kLoads = "import ctypes, sys\nfor path in sys.argv[1:]: torch = ctypes.CDLL(path)\nimport _queue\ntorch.one_range()\nprint('loaded')"


def level_of(workspace, name, libraries, options):
    output = workspace.path(name)
    environment = dict(bare(), RINGSIDE_DIR=workspace.root)
    ran = workspace.ringside("run", *options, "-o", output, "--", "/usr/bin/python3", "-c", kLoads, *libraries, environment=environment, name=name)
    check(ran.out() == "loaded\n", "%s: the program says %s", name, ran.tail())
    (level,) = [(kLevels[s.level], s.reason) for p in Job(output).dumps[0].processes.values() for s in p.sources if s.id == kTorch]
    return level


def shapes_and_memory(workspace):
    source = os.path.join(kHere, "bare_torch.c")
    torch = compile_c(workspace, source, "libtorch_cpu.so", "-shared", "-fPIC") or skip("no C compiler here")
    c10 = compile_c(workspace, source, "libc10.so", "-shared", "-fPIC", "-DC10")
    cuda = compile_c(workspace, written(workspace, "empty.c", "int nothing;\n"), "libc10_cuda.so", "-shared", "-fPIC")
    cases = (([torch], [], ("Full", "")), ([torch], [kShapes], ("Degraded", kNoShapes)), ([torch], [kMemory], ("Degraded", kNoCpu)),
             ([torch], [kShapes, kMemory], ("Degraded", (kNoShapes + "; " + kNoCpu)[:kReasonBytes])),
             ([c10, torch], [kMemory], ("Full", "")), ([c10, cuda, torch], [kMemory], ("Degraded", kNoCuda)), ([c10, cuda, torch], [], ("Full", "")))
    for number, (libraries, options, expected) in enumerate(cases):
        found = level_of(workspace, "case-%d" % number, libraries, options)
        check(found == expected, "%s with %s: %s, expected %s", [os.path.basename(l) for l in libraries], options, found, expected)
        print("%s: %s" % (" ".join(options) or "no option", ": ".join(filter(None, found))), flush=True)


run({"shapes_and_memory": shapes_and_memory})
