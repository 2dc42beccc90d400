#!/usr/bin/env python3
"""That each check of the GPU tests passes where all is right, and fails for its own reason where one thing is wrong; and that `run` says what it must. No GPU."""
import copy
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

kHere = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, kHere)
sys.path.insert(0, os.path.join(kHere, "..", "integration"))
sys.path.insert(0, os.path.join(kHere, "..", "reader"))
import checks
import machine
import torch_hooks
import work

kMhz = 1.9


def program():
    """A truth, and work that is as it says: (truth, work)."""
    told, done, now = [], [], 10_000.0

    def add(what, name, stream, us, range_name, **more):
        nonlocal now
        entry = {"what": what, "name": name, "stream": stream, "bytes": more.get("bytes", 0), "value": more.get("value", 0), "range": range_name}
        if us is not None:
            entry.update(cycles=round(us * 1000 * kMhz), global_begin=0, global_end=us * 1000)
        told.append(entry)
        if what == "event":
            length = None
        else:
            length = 1200 if us is None else us * 1000 + 900
        done.append({"what": "kernel" if "kernel" in what else what, "name": name if what != "copy" else "", "begin": now, "end": None if length is None else now + length,
                     "stream": stream + 7, "correlation": more.get("correlation", len(told)), "graph": 3 if "graph" in what else 0, "graph_node": more.get("node", 0),
                     "bytes": entry["bytes"], "value": entry["value"], "detail": checks.kCopies.get(name, 0), "call": "cudaGraphLaunch" if "graph" in what else "cudaLaunchKernel",
                     "call_begin": now - 2000, "range": range_name, "range_end": 1e9, "grid": [1, 1, 1], "block": [1, 1, 1]})
        now += (length or 0) + 500

    for us in (5, 50, None, 2000, 10, None, 500, 5000, 1000, 200, 3000, 4000, 2500):
        add("kernel", "nothing" if us is None else "spin_plain", 0, us, "durations")
    for i in range(8):
        add("kernel", "spin_other", i % 4, 200, "streams")
    for name in checks.kCopies:
        add("copy", name, 1, None, "copies", bytes=4096)
    add("memset", "", 2, None, "copies", bytes=1 << 20, value=90)
    for i in range(6):
        add("graph kernel", ("graph_first", "graph_second", "graph_first")[i % 3], 3, None, "graph", node=100 + i % 3, correlation=1000 + i // 3)
    add("event", "", 0, None, "events")
    return {"streams": 4, "work": told}, done


def wrong_with(change=lambda truth, done: None):
    truth, done = copy.deepcopy(program())
    change(truth, done)
    findings = checks.Findings()
    checks.program_work(truth, done, findings)
    checks.program_graph(truth, done, findings)
    checks.durations(truth, done, findings)
    checks.clock(done, findings)
    return {what for what, _ in findings.failed()}


def kernel(done, name):
    return next(w for w in done if w["name"] == name)


class TheProgram(unittest.TestCase):
    def test_all_is_right(self):
        self.assertEqual(wrong_with(), set())

    def planted(self, change, *expected):
        wrong = wrong_with(change)
        for text in expected:
            self.assertTrue(any(text in one for one in wrong), "%s not in %s" % (text, wrong))
        return wrong

    def test_a_kernel_that_is_missing(self):
        self.planted(lambda truth, done: done.remove(kernel(done, "spin_other")), "streams: kernels, in order")

    def test_a_kernel_of_another_name(self):
        self.planted(lambda truth, done: kernel(done, "graph_second").update(name="other"), "graph: kernels, in order")

    def test_two_kernels_in_another_order(self):
        def swap(truth, done):
            done[2]["correlation"], done[3]["correlation"] = done[3]["correlation"], done[2]["correlation"]
        self.planted(swap, "durations: kernels, in order")

    def test_a_length_that_is_two_microseconds_off(self):
        def stretch(truth, done):
            kernel(done, "spin_plain")["end"] += 2500
        self.planted(stretch, "durations: within 1 us of the global timer", "durations: within 1 us of clock64")

    def test_lengths_that_are_a_thousandth_off(self):
        def stretch(truth, done):
            for w in done:
                if w["range"] == "durations":
                    w["end"] = w["begin"] + (w["end"] - w["begin"]) * 1.001
        self.planted(stretch, "durations: within 1 us of the global timer")

    def test_an_unsteady_clock_is_not_judged_by_and_the_timer_still_is(self):
        def slow(truth, done):
            truth["work"][0]["cycles"] *= 2
        self.assertEqual(wrong_with(slow), set())

    def test_an_empty_kernel_that_takes_long(self):
        def stretch(truth, done):
            for w in done:
                if w["name"] == "nothing":
                    w["end"] += 20000
        self.planted(stretch, "an empty kernel is short")

    def test_a_kernel_on_another_stream(self):
        self.planted(lambda truth, done: [w.update(stream=8) for w in done if w["stream"] == 9], "streams are the program's")

    def test_kernels_that_overlap_on_one_stream(self):
        def overlap(truth, done):
            done[1].update(begin=done[0]["begin"] + 100, end=done[0]["begin"] + 100 + done[1]["end"] - done[1]["begin"])
        self.planted(overlap, "a stream's kernels follow each other")

    def test_a_copy_of_other_bytes_and_another_kind(self):
        self.planted(lambda truth, done: next(w for w in done if w["what"] == "copy").update(bytes=1), "copies: copies")
        self.planted(lambda truth, done: next(w for w in done if w["what"] == "copy").update(detail=2), "copies: copies")

    def test_a_memset_of_another_value_and_none(self):
        self.planted(lambda truth, done: next(w for w in done if w["what"] == "memset").update(value=1), "the memset")
        self.planted(lambda truth, done: done.remove(next(w for w in done if w["what"] == "memset")), "copies: memsets")

    def test_an_event_that_is_missing(self):
        self.planted(lambda truth, done: done.pop(), "events: events")

    def test_graphs(self):
        self.planted(lambda truth, done: [w.update(graph=0) for w in done], "a graph's kernels bear its number")
        self.planted(lambda truth, done: kernel(done, "graph_first").update(graph_node=101), "its nodes are told apart")
        self.planted(lambda truth, done: kernel(done, "graph_first").update(call="cudaLaunchKernel"), "a launch of the graph is their call")
        self.planted(lambda truth, done: kernel(done, "nothing").update(graph=3), "other kernels bear none")

    def test_a_clock_that_is_off(self):
        self.planted(lambda truth, done: [w.update(begin=w["begin"] - 4000) for w in done], "clock: nothing begins before its call")
        self.planted(lambda truth, done: [w.update(end=w["end"] and w["end"] + 2e9) for w in done], "clock: nothing ends after what waited for it")

    def test_nothing_at_all(self):
        self.planted(lambda truth, done: done.clear(), "durations: as many kernels as known", "clock: work has calls and ranges", "copies: copies")


class BesideTorchProfiler(unittest.TestCase):
    def wrong(self, change=lambda theirs: None, ordered=True):
        _, ours = program()
        theirs = copy.deepcopy(ours)
        change(theirs)
        findings = checks.Findings()
        checks.same_kernels(ours, theirs, findings, ordered)
        return {what.split(" equal")[0] for what, _ in findings.failed()}

    def test_the_same(self):
        self.assertEqual(self.wrong(), set())

    def test_one_kernel_more_another_name_shape_order(self):
        self.assertIn("kernels: count and names", self.wrong(lambda theirs: theirs.append(dict(theirs[0]))))
        self.assertIn("kernels: count and names", self.wrong(lambda theirs: theirs[0].update(name="other")))
        self.assertEqual(self.wrong(lambda theirs: theirs[0].update(grid=[2, 1, 1]), ordered=False), {"kernels: shapes"})

        def swap(theirs):
            theirs[1]["correlation"], theirs[2]["correlation"] = theirs[2]["correlation"], theirs[1]["correlation"]
        self.assertEqual(self.wrong(swap), {"kernels: order"})
        self.assertEqual(self.wrong(swap, ordered=False), set())

    def test_bytes(self):
        self.assertEqual(self.wrong(lambda theirs: next(w for w in theirs if w["what"] == "copy").update(bytes=7)), {"copy: bytes"})

    def test_none_at_all_is_no_equality(self):
        findings = checks.Findings()
        checks.same_kernels([], [], findings, True)
        self.assertEqual([what for what, _ in findings.failed()], ["there are kernels"])

    def test_names_are_demangled(self):
        self.assertEqual(checks.demangled("_Z6turnedILi7EEvP5Timesx"), "void turned<7>(Times*, long long)")
        self.assertEqual(checks.demangled("nothing"), "nothing")
        self.assertEqual(checks.demangled("_Zwrong"), "_Zwrong")

    def test_kinetos_file(self):
        events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1, "args": {"correlation": 5}},
                  {"ph": "X", "cat": "kernel", "name": "k", "ts": 3.5, "dur": 2, "args": {"correlation": 5, "stream": 7, "grid": [1, 2, 3], "block": [4, 5, 6]}},
                  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 9, "dur": 1, "args": {"correlation": 6, "stream": 7, "bytes": 64}},
                  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 0, "dur": 9, "args": {}}, {"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 1}]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"traceEvents": events}, file)
            file.flush()
            found, calls = work.of_kineto(file.name)
        self.assertEqual([(w["what"], w["name"], w["begin"], w["end"], w["call"], w["bytes"]) for w in found],
                         [("kernel", "k", 3500, 5500, "cudaLaunchKernel", 0), ("copy", "Memcpy HtoD", 9000, 10000, None, 64)])
        self.assertEqual((calls, checks.shape_of(found[0])), (1, ("k", (1, 2, 3), (4, 5, 6))))


class ACase(unittest.TestCase):
    """Whatever a case does, the script goes on, and says what it did."""

    def result(self, script, seconds=60):
        loader = importlib.machinery.SourceFileLoader("gpu_run", os.path.join(kHere, "run"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
        loader.exec_module(module)
        module.kGraceS = 1
        with tempfile.TemporaryDirectory() as folder:
            reader = os.path.join(folder, "reader")
            with open(reader, "w") as out:
                out.write("#!/bin/sh\n" + script + "\n")
            os.chmod(reader, 0o755)
            told = module.run_case("one", seconds, reader, dict(os.environ), folder)
        return told["result"], told["why"]

    @staticmethod
    def writes(holds):
        return "echo '%s' > $RINGSIDE_GPU_RESULT; " % json.dumps({"checks": [["that", holds, "seen"]], "figures": {}, "skipped": None})

    def test_passes_only_with_checks_that_hold(self):
        self.assertEqual(self.result(self.writes(True)), ("passed", ""))
        self.assertEqual(self.result("true")[0], "FAILED")
        self.assertEqual(self.result(self.writes(False)), ("FAILED", "that"))
        self.assertEqual(self.result(self.writes(True) + "echo why; exit 1"), ("FAILED", "status 1: why"))
        self.assertEqual(self.result("kill -9 $$")[0], "FAILED")

    def test_is_skipped_with_its_reason(self):
        self.assertEqual(self.result("echo SKIPPED: none here; exit 77"), ("skipped", "SKIPPED: none here"))

    def test_that_hangs_is_ended_with_all_that_it_started(self):
        with tempfile.NamedTemporaryFile("r") as pid:
            began = time.monotonic()
            self.assertEqual(self.result("trap '' TERM; sleep 1000 & echo $! > %s; wait; wait" % pid.name, seconds=1), ("FAILED", "ended after 1 s"))
            self.assertLess(time.monotonic() - began, 30)
            child = int(pid.read())
        for _ in range(200):
            if not os.path.exists("/proc/%d" % child):
                return
            time.sleep(0.05)
        self.fail("process %d lives" % child)


class TheProgramCompiles(unittest.TestCase):
    def test_for_hopper_and_as_ptx_with_the_names_that_it_says(self):
        compiler, why = machine.nvcc()
        if compiler is None:
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gpu_program")
            self.assertEqual(machine.build_program(compiler, os.path.join(machine.kRoot, "inject", "sources", "api"), path), "")
            names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
            for kernel in ("nothing", "spin_plain", "spin_other", "graph_first", "graph_second", "_Z6turnedILi7EEvP5Timesx"):
                self.assertRegex(names, r"(?m) [tTwW] %s$" % kernel)
            with open(path, "rb") as file:
                self.assertIn(b"_Z6turnedILi7EEvP5Timesx\0", file.read())
            done = subprocess.run([path, "work", os.path.join(folder, "truth")], capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, 3), done.stderr)


class TheScript(unittest.TestCase):
    def said(self, *words, **environment):
        done = subprocess.run([sys.executable, os.path.join(kHere, "run"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200,
                              env=dict(os.environ, **environment))
        return done.returncode, done.stdout

    def test_without_a_gpu_it_says_why_and_is_skipped(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("a GPU is here")
        status, text = self.said()
        self.assertEqual(status, 77)
        self.assertIn("SKIPPED: no GPU here: ", text)

    def test_each_listed_case_is_there(self):
        status, listed = self.said("--list")
        done = subprocess.run([sys.executable, os.path.join(kHere, "cases.py")], capture_output=True, text=True, check=False)
        names = [line.split()[0] for line in done.stderr.splitlines()]
        self.assertEqual((status, sorted(line.split()[0] for line in listed.splitlines())), (0, sorted(names)))

    def test_without_ringside_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            status, text = self.said("--rehearse", "--bundle", folder)
            self.assertEqual(status, 2)
            self.assertIn("nothing can be run: not there: ", text)

    def test_an_unknown_case(self):
        self.assertEqual(self.said("--only", "nonsense")[0], 2)

    def test_the_headers_symbols(self):
        os.environ.setdefault("RINGSIDE_SOURCE", os.path.join(kHere, "..", ".."))
        found = torch_hooks.symbols()
        self.assertEqual(found["kRemoveCallback"], "_ZN2at14removeCallbackEm")
        self.assertEqual(found["kAgentVtable"], "_ZTVN5torch11distributed3rpc15TensorPipeAgentE")
        self.assertTrue(found["kGlooEnqueue"].endswith("6detail34intrusive_target_default_null_typeIS3_EEEE"), found["kGlooEnqueue"])


if __name__ == "__main__":
    unittest.main()
