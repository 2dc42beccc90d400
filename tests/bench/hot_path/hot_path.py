#!/usr/bin/env python3
"""What a range costs the traced program, as ratios to the floor, each with its control beside it.

    hot_path.py SHIM HOT_PATH AGENT [--quick] [--only TEXT] [--json FILE]

The floor: two reads of the ticks and one record of 32 bytes, published with release into a private ring. A registered name: the call has its handle, an
id: ringside_range_push_name(), and a registered string of NVTX through the functions that the shim put into its tables. A dynamic name: ringside_range_push() and nvtxRangePushA() of 200 texts at addresses of their own; "put
together": of the same texts, copied into one buffer first, as frameworks do that put names together (its floor copies them too).

HOT_PATH runs in several processes, since one differs from the next for all its life: the median of their ratios, of blocks beside each other.
AGENT is there where draining is measured; elsewhere the program empties its lane itself, between blocks. LTTng-UST's two events, and a function
that uftrace records, stand beside where they are installed. Exits 0, or 1 if a bound is missed while its control holds.
"""
import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "torch_overhead")]
import agent_stand_in  # noqa: E402
from ratios import cpu_seconds, lower_decile, median, paired, paired_difference, report, undisturbed  # noqa: E402

kTight, kWork = "tight", ("work85", "work420")
# Where the peer's blocks are: its control is of a bound below one.
kPeerMargin = 0.1


class Lttng:
    """LTTng's daemon and a session of ours, in a home of its own; everything that it writes goes with it."""

    def __init__(self, root):
        self._home = os.path.join(root, "lttng")
        os.mkdir(self._home)
        self.environment = dict(os.environ, LTTNG_HOME=self._home, LTTNG_UST_REGISTER_TIMEOUT="5000")
        self._session = "ringside-bench-%d" % os.getpid()
        self._daemon = None

    def start(self):
        """@return why it can't be had, or None"""
        if shutil.which("lttng") is None or shutil.which("lttng-sessiond") is None:
            return "no lttng here (Debian package lttng-tools)"
        if self._run("list").returncode != 0:
            pid_file = os.path.join(self._home, "pid")
            started = subprocess.run(["lttng-sessiond", "--daemonize", "--no-kernel", "--pidfile", pid_file], env=self.environment,
                                     capture_output=True, text=True)
            if started.returncode != 0:
                return "lttng-sessiond can't be started: " + started.stderr.strip()[-200:]
            with open(pid_file) as file:
                self._daemon = int(file.read())
        for step in (["create", self._session, "--output=" + os.path.join(self._home, "trace")],
                     ["enable-channel", "--userspace", "--session=" + self._session, "--subbuf-size=4M", "--num-subbuf=8", "bench"],
                     ["enable-event", "--userspace", "--session=" + self._session, "--channel=bench", "ringside_bench:*"],
                     ["start", self._session]):
            done = self._run(*step)
            if done.returncode != 0:
                return "lttng %s: %s" % (" ".join(step), done.stderr.strip()[-200:])
        return None

    def _run(self, *arguments):
        return subprocess.run(["lttng", "--no-sessiond", *arguments], env=self.environment, capture_output=True, text=True)

    def discarded(self):
        lines = self._run("list", self._session).stdout.splitlines()
        return sum(int(line.rsplit(":", 1)[1]) for line in lines if "Discarded events" in line)

    def stop(self):
        self._run("destroy", self._session)
        if self._daemon is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._daemon, signal.SIGTERM)


class Bench:
    def __init__(self, options, root):
        self.options, self.root, self.jobs = options, root, 0
        self.numbers = {}
        self.lttng = None

    def job(self):
        self.jobs += 1
        name = "job%d" % self.jobs
        base = self.lttng.environment if self.lttng else os.environ
        return name, dict(base, LD_PRELOAD=self.options.shim, RINGSIDE_DIR=self.root, RINGSIDE_JOB=name)

    def program(self, environment, *arguments, beneath=()):
        done = subprocess.run([*beneath, self.options.hot_path, *map(str, arguments)], env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError("hot_path %s: it has ended with %d" % (" ".join(map(str, arguments)), done.returncode))
        return json.loads(done.stdout)

    def processes(self, count, mode, rounds, beneath=()):
        """@return [{name of a variant: [ns a pair, of each block]}], one for each process"""
        answers = []
        for _ in range(count):
            name, environment = self.job()
            agent_stand_in.make_control_page(os.path.join(self.root, name))
            answer = self.program(environment, mode, rounds, beneath=beneath)
            self.note(mode, answer)
            if answer.get("recorded_while_off"):
                raise RuntimeError("hot_path: records were written while no capture was on")
            answers.append(answer)
        return list(map(own_core, answers))

    def note(self, mode, answer):
        """What was lost makes a block cheaper: no verdict then."""
        if answer["lost"]:
            raise RuntimeError("hot_path %s: %d records were lost: the blocks are too long for the lane" % (mode, answer["lost"]))

    def with_agent(self, *arguments, lane_kib):
        """The program with an agent that captures from the start. @return its answer, the agent's CPU seconds, the dump's bytes"""
        name, environment = self.job()
        output = os.path.join(self.root, "out-" + name)
        ready, ready_write = os.pipe()
        agent = subprocess.Popen([self.options.agent, "--dir", self.root, "--job", name, "--output", output, "--capture-from-start", "--name", "bench",
                                  "--ready-fd", str(ready_write), "--first-lane-kib", str(lane_kib)], pass_fds=[ready_write])
        os.close(ready_write)
        with os.fdopen(ready) as file:
            file.read()
        idle = cpu_seconds(agent.pid)
        try:
            arguments = [agent.pid if argument == "AGENT" else argument for argument in arguments]
            answer = self.program(environment, *arguments)
            used = cpu_seconds(agent.pid) - idle
        finally:
            agent.send_signal(signal.SIGCONT)
            agent.terminate()
            agent.wait()
        dumps = [os.path.join(folder, file) for folder, _, files in os.walk(output) for file in files if file.endswith(".rsd")]
        answer.update(cpu_s=used, dump_bytes=sum(map(os.path.getsize, dumps)))
        shutil.rmtree(output)
        return answer

    # --- the ratios ---

    def pairs(self, results, count, rounds):
        each = self.processes(count, "pairs", rounds)
        self.numbers["pairs"] = typical(each)

        def ratio(of, over):
            return median_ratio(each, of, over)

        def added(kind, name, other, base="bare", other_base="bare"):
            def adds(one, what, to):
                return paired_difference(one["%s %s" % (kind, what)], one["%s %s" % (kind, to)])

            return median(adds(one, name, base) / adds(one, other, other_base) for one in each)

        floor_control = ratio("tight floor again", "tight floor")
        for title, name, floor, bound in (("registered name", "id", "floor", 1.15), ("200 registered names", "200 ids", "floor", None),
                                          ("NVTX's registered string", "nvtx id", "floor", 1.15),
                                          ("dynamic name", "name", "floor", 1.15), ("nvtxRangePushA", "nvtx name", "floor", 1.15),
                                          ("name put together", "put name", "floor put", None)):
            results["tight pair, %s / floor" % title] = {
                "ratio": ratio("tight " + name, "tight " + floor), "control": ratio("tight %s again" % floor, "tight " + floor), "bound": bound}
        for kind in kWork:
            work = "%s ns of work" % kind[4:]
            control = added(kind, "floor again", "floor")
            for title, name, bound, base in (("registered name", "id", 1.3, "bare"), ("200 registered names", "200 ids", None, "bare"),
                                             ("NVTX's registered string", "nvtx id", 1.3, "bare"),
                                             ("dynamic name", "name", 2.6, "bare"), ("nvtxRangePushA", "nvtx name", 2.6, "bare"),
                                             ("name put together", "put name", None, "bare put")):
                results["added in %s, %s / floor" % (work, title)] = {
                    "ratio": added(kind, name, "floor", base), "control": control, "margin": 0.15, "bound": bound}
        for title, name in (("registered name", "id"), ("NVTX's registered string", "nvtx id"), ("dynamic name", "name"), ("nvtxRangePushA", "nvtx name")):
            results["switched off, %s / floor" % title] = {
                "ratio": ratio("off " + name, "off floor"), "control": ratio("off floor again", "off floor"), "margin": 0.15, "bound": 0.15}
        results["switched off, two calls of a function that does nothing / floor"] = {
            "ratio": ratio("off nothing", "off floor"), "control": ratio("off floor again", "off floor")}
        if self.lttng is None:
            return
        self.numbers["lttng_discarded"] = self.lttng.discarded()
        peer_control = ratio("tight lttng id again", "tight lttng id")
        results["tight pair, registered name / LTTng-UST, two events"] = {
            "ratio": ratio("tight id", "tight lttng id"), "control": peer_control, "margin": kPeerMargin, "bound": 1 / 5}
        results["tight pair, LTTng-UST, two events / floor"] = {"ratio": ratio("tight lttng id", "tight floor"), "control": floor_control}
        for kind in kWork:
            work = "%s ns of work" % kind[4:]
            control = added(kind, "lttng id again", "lttng id")
            for title, name, peer, bound in (("registered name", "id", "lttng id", 1 / 8), ("dynamic name", "name", "lttng name", 1 / 4)):
                results["added in %s, %s / LTTng-UST, two events" % (work, title)] = {
                    "ratio": added(kind, name, peer), "control": control, "margin": kPeerMargin, "bound": bound}

    def uftrace(self, results, count, rounds):
        if shutil.which("uftrace") is None:
            print("uftrace's rows are left out: no uftrace here (Debian package uftrace)")
            return
        trace = os.path.join(self.root, "uftrace")
        # Its own buffers hold a block; it neither follows libraries' calls nor the scheduler.
        each = self.processes(count, "uftrace", rounds, ["uftrace", "record", "--no-libcall", "--no-event", "--no-pager", "-b", "4M", "-d", trace])
        self.numbers["uftrace"] = typical(each)
        results["tight pair, registered name / uftrace, a function"] = {
            "ratio": median_ratio(each, "tight id", "tight uftrace"), "control": median_ratio(each, "tight uftrace again", "tight uftrace")}
        results["tight pair, uftrace, a function / floor"] = {
            "ratio": median_ratio(each, "tight uftrace", "tight floor"), "control": median_ratio(each, "tight floor again", "tight floor")}

        def adds(one, what):
            return paired_difference(one["work85 " + what], one["work85 bare"])

        results["added in 85 ns of work, registered name / uftrace, a function"] = {
            "ratio": median(adds(one, "id") / adds(one, "uftrace") for one in each),
            "control": median(adds(one, "uftrace again") / adds(one, "uftrace") for one in each)}

    def threads(self, results, count, rounds):
        each = self.processes(count, "threads", rounds)
        self.numbers["threads"] = typical(each)
        control = median_ratio(each, "floor two", "floor one")
        for title, name in (("registered name", "id"), ("dynamic name", "name")):
            # Two floors know nothing of each other: what they lose, the machine takes.
            results["two threads / one, %s" % title] = {
                "ratio": median_ratio(each, name + " two", name + " one"), "control": control, "bound": 1.15}

    def drained(self, results, count, rounds):
        each, undrained = [], 0
        for _ in range(count):
            answer = self.with_agent("drained", rounds, "AGENT", lane_kib=8192)
            self.note("drained", answer)
            undrained += answer["undrained_blocks"]
            each.append(own_core(answer))
        self.numbers["drained"] = dict(typical(each), undrained_blocks=undrained)
        results["producer while the agent drains / while it is stopped"] = {
            "ratio": median(paired(one["drained"], one["stopped"], one["stopped again"]) for one in each),
            "control": median_ratio(each, "stopped again", "stopped"), "bound": 1.1}

    def flood(self, results, count, records):
        each, lossy = [], 0
        for _ in range(count):
            answer = self.with_agent("flood", records, lane_kib=8192)
            lossy += answer["lost"] > 0
            blocks = own_core(answer)["floor"]
            floors = [lower_decile(blocks[:len(blocks) // 2]), lower_decile(blocks[len(blocks) // 2:])]
            answer["floor_ns"] = min(floors)
            answer["floors"] = floors[1] / floors[0]
            each.append(answer)
        self.numbers["flood"] = [{name: value for name, value in one.items() if name not in ("ns", "probes")} for one in each]
        whole = [one for one in each if one["lost"] == 0 and not math.isnan(one["floors"])]
        if not whole:
            print("a flood into a dump: in none of %d runs was nothing lost and a floor to be had; no figures" % count)
            return
        control = statistics.median(one["floors"] for one in whole)
        best = max(one["floor_ns"] / one["drained_ns"] for one in whole)
        # Less is missed: the ratio is of times.
        results["time a record, lossless into a dump / floor"] = {"ratio": 1 / best, "control": control, "bound": 1 / 0.85}
        results["agent's CPU time a record / floor"] = {
            # The lower quartile: of the agent's core no probe tells whether it was all its own.
            "ratio": sorted(one["cpu_s"] * 1e9 / one["written"] / one["floor_ns"] for one in whole)[len(whole) // 4], "control": control,
            "margin": 0.15, "bound": 0.35}
        results["stored bytes a range"] = {"ratio": statistics.median(one["dump_bytes"] / one["written"] for one in whole), "control": None, "bound": 8}

    def measure(self):
        count, rounds = (1, 8) if self.options.quick else (5, 160)
        records = 2_000_000 if self.options.quick else 20_000_000
        results = {}
        for part, repeats in (("pairs", rounds), ("uftrace", rounds), ("threads", 2 * rounds), ("drained", rounds), ("flood", records)):
            if self.options.only in part:
                getattr(self, part)(results, count, repeats)
        return results


def own_core(answer):
    """@return {name of a variant: [ns a pair, of each block, or None where the core was not all ours]}"""
    least = min(min(probes) for probes in answer["probes"].values())
    return {name: undisturbed(blocks, answer["probes"][name], least) for name, blocks in answer["ns"].items()}


def median_ratio(each, of, over):
    """Of several processes."""
    return median(paired(one[of], one[over]) for one in each)


def typical(each):
    """{name of a variant: ns a pair}, for the reader; and the part of all blocks that had the core to themselves."""
    blocks = [block for one in each for blocks in one.values() for block in blocks]
    return {"own core": round(sum(block is not None for block in blocks) / len(blocks), 3),
            **{name: round(median(lower_decile(one[name]) for one in each), 2) for name in each[0]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shim")
    parser.add_argument("hot_path")
    parser.add_argument("agent")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", metavar="PART", help="pairs, uftrace, threads, drained or flood")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: shows that the bench works, not what it measures")
    options = parser.parse_args()
    options.shim, options.hot_path, options.agent = map(os.path.abspath, (options.shim, options.hot_path, options.agent))
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    bench = Bench(options, root)
    lttng = Lttng(root)
    # Whoever ends us leaves no daemon and no session behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        missing = lttng.start() if options.only in "pairs" else None
        if missing is None:
            bench.lttng = lttng
        else:
            print("LTTng-UST's rows are left out: " + missing)
        results = bench.measure()
    finally:
        lttng.stop()
        shutil.rmtree(root, ignore_errors=True)
    return report(results, options.json, lambda _: print(json.dumps(bench.numbers, indent=1)))


if __name__ == "__main__":
    sys.exit(main())
