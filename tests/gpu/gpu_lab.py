"""What the cases share: where Ringside, the program and a Python with torch are; a job in a capture; and what came out, in a file for `run`.

A case is a function of a Lab. It looks at everything that it can and says each thing to `findings`; what it can't look at here it skips with a reason.
Rehearsed (no GPU: jobs run on the CPU) a case must come to its end, and what it says of a GPU's work is not judged.
"""
import json
import os
import sys
import time

kHere = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(kHere, "..", "integration"))
from harness import Failed, kPython, kSkipped, main

from checks import Findings
from rsd.index import Job
from work import Dump

kCupti, kTorch = 5, 1
kOff, kFull, kDegraded, kNotInstrumented = 1, 2, 3, 4
kJobs = os.path.join(kHere, "jobs")
kProgram = os.environ.get("RINGSIDE_GPU_PROGRAM", "")
kRehearsal = bool(os.environ.get("RINGSIDE_GPU_REHEARSAL"))
kDevice = "cpu" if kRehearsal else "cuda"
kDeadlineS = float(os.environ.get("RINGSIDE_GPU_DEADLINE", "110"))


class Skipped(Exception):
    """What the machine lacks for this case."""


class Lab:
    def __init__(self, workspace, findings):
        self.workspace, self.findings = workspace, findings

    def need_program(self):
        self.need_gpu("the program's work (../cupti/gpu_cases.py has its cases over the fakes)")
        if not os.access(kProgram, os.X_OK):
            raise Skipped("no program: nvcc is not here and none was given (--program)")
        return kProgram

    @staticmethod
    def sizes(measured, shown):
        """Of blocks: what measures, or what shows that it runs."""
        return shown if kRehearsal or os.environ.get("RINGSIDE_GPU_QUICK") else measured

    def need_gpu(self, what):
        if kRehearsal:
            raise Skipped("rehearsed without a GPU: " + what)

    def bare(self, name, words, expect=0, environment=None):
        """A job without us. @return its Child"""
        return self.workspace.run(name, words, environment or clean_environment(), expect, kDeadlineS)

    def traced(self, name, words, expect=0):
        """The same under `ringside run`. @return (Child, Job): the dump is whole, or this fails"""
        out = self.workspace.path("traced-" + name)
        child = self.workspace.start("run-" + name, [*ringside(), "run", "-o", out, "--table", self.workspace.path(name + ".table"), "--", *words], clean_environment())
        child.wait(kDeadlineS, expect)
        return child, self.job(out)

    def job(self, directory):
        job = Job(directory)
        if job.problems():
            raise Failed("the reader: " + "; ".join(job.problems()))
        self.findings.expect("the dump is whole, nothing lost", job.counts()["lost"] == 0, "%d lost" % job.counts()["lost"])
        return job

    def source_is_full(self, dump):
        level, reason = dump.source(kCupti)
        self.findings.expect("CUPTI's level is full", (level in (kOff, kFull) and reason == "") or kRehearsal, "level %d %s" % (level, reason))

    def python_job(self, script, *words):
        return [kPython, "-W", "ignore", os.path.join(kJobs, script), *words]


def ringside():
    from harness import kCommand
    return [kCommand]


def clean_environment(**more):
    return {**{key: value for key, value in os.environ.items() if not key.startswith("RINGSIDE_GPU_")}, **more}


def run_case(case, name):
    """One case, to its end; what it found goes to RINGSIDE_GPU_RESULT. Exit status 0: every check holds; 1; 77: skipped."""
    findings, began, told = Findings(), time.monotonic(), {"skipped": None}

    def tell():
        told.update(checks=findings.checks, figures=findings.figures, seconds=round(time.monotonic() - began, 1))
        if os.environ.get("RINGSIDE_GPU_RESULT"):
            with open(os.environ["RINGSIDE_GPU_RESULT"], "w") as out:
                json.dump(told, out, default=str)

    def test(workspace):
        findings.checks.clear()
        findings.figures.clear()
        try:
            case(Lab(workspace, findings))
        except Skipped as why:
            told["skipped"] = str(why)
        except Failed as failure:
            findings.expect("it came to its end", False, failure)
            raise
        except Exception as error:
            findings.expect("it came to its end", False, "%s: %s" % (type(error).__name__, error))
            raise
        finally:
            tell()
        for what, holds, detail in findings.checks:
            print("%s %s%s" % ("  ok  " if holds else "WRONG ", what, ": " + detail if detail else ""), flush=True)
        for figure, value in findings.figures.items():
            print("       %s = %s" % (figure, value), flush=True)
        if told["skipped"]:
            print("SKIPPED: " + told["skipped"], flush=True)
            sys.exit(kSkipped)
        if findings.failed():
            raise Failed("%d of %d checks" % (len(findings.failed()), len(findings.checks)))
        if not findings.checks:
            raise Failed("it has checked nothing")

    main(test, "gpu_" + name)
