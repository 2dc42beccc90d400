"""The demo's three nodes: agents, workers, one capture, the table, the trace. Called by tools/demo, in its user's folder.

    demo_nodes.py OUTPUT_DIR

Nothing is timed: each step waits until the one before has said that it is done. Whatever happens, what was started ends.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

kRoot = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
kWorkloads = os.path.join(kRoot, "tests", "workloads")
sys.path.insert(0, kWorkloads)
import conditions

kBuild = os.environ.get("RINGSIDE_BUILD", os.path.join(kRoot, "build"))
kCommand = os.path.join(kBuild, "tools", "ringside")
kAgent = os.path.join(kBuild, "agent", "ringside-agent")
kShim = os.path.abspath(os.path.join(kBuild, "inject", "libringside_inject.so"))
kDeadlineS = 60.0
# Node name and how far its clock is off: nothing, a second, 3 ms and 50 ppm.
kNodes = (("node0", 0, 0), ("node1", 1_000_000_000, 0), ("node2", 3_000_000, 50_000))


class Failed(Exception):
    """A step did not come to its end; the text says which and what it had printed."""


def say(text):
    print("demo: " + text, file=sys.stderr, flush=True)


def read_text(path):
    with open(path, errors="replace") as text:
        return text.read()


class Demo:
    def __init__(self, work, output):
        self.work, self.output = work, os.path.abspath(output)
        self.dumps = tempfile.mkdtemp(prefix="ringside-demo-", dir="/var/tmp")  # of the agents: on a disk
        self.children = contextlib.ExitStack()
        self.children.callback(shutil.rmtree, self.dumps, True)
        self.port = self.free_port()

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return str(probe.getsockname()[1])

    def start(self, name, arguments, environment=None, pass_fds=()):
        """Starts a process whose output goes to a file of its name, and which surely ends with the demo."""
        log = open(os.path.join(self.work, name + ".log"), "w")
        child = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, pass_fds=pass_fds)
        log.close()
        child.name = name
        self.children.callback(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def log_of(self, child):
        return read_text(os.path.join(self.work, child.name + ".log"))

    def wait_for(self, what, condition, children):
        """Waits until `condition()` holds, or one of the children it depends on has ended."""
        end = time.monotonic() + kDeadlineS
        while not condition():
            for child in children:
                if child.poll() is not None:
                    raise Failed("%s: %s has ended with status %d:\n%s" % (what, child.name, child.returncode, self.log_of(child)[-2000:]))
            if time.monotonic() > end:
                raise Failed("%s: not so after %g s" % (what, kDeadlineS))
            time.sleep(conditions.kPollSeconds)

    # --- the steps ---

    def start_agents(self):
        self.endpoints = []
        for name, offset_ns, drift_ppb in kNodes:
            root = os.path.join(self.work, name)
            endpoint = "ipc://" + os.path.join(self.work, name + ".sock")
            read_end, write_end = os.pipe()
            agent = self.start(name, [kAgent, "--node", name, "--dir", root, "--job", "demo", "--endpoint", endpoint, "--output", self.dumps,
                                      "--skew-offset-ns", str(offset_ns), "--skew-drift-ppb", str(drift_ppb), "--ready-fd", str(write_end)], pass_fds=(write_end,))
            os.close(write_end)
            with os.fdopen(read_end) as ready:
                if ready.readline().strip() != "ready":
                    raise Failed("start the agent of %s: it did not get ready:\n%s" % (name, self.log_of(agent)))
            self.endpoints.append(endpoint)

    def start_workers(self):
        self.told = os.path.join(self.work, "conditions")
        os.mkdir(self.told)
        self.workers = []
        for rank, (name, _, _) in enumerate(kNodes):
            environment = dict(os.environ, RINGSIDE_DIR=os.path.join(self.work, name), RINGSIDE_JOB="demo", LD_PRELOAD=kShim,
                               MASTER_ADDR="127.0.0.1", MASTER_PORT=self.port)
            script = os.path.join(kWorkloads, "recipe.py")
            self.workers.append(self.start("worker%d" % rank, [sys.executable, script, "--rank", str(rank), "--conditions", self.told], environment))
        self.wait_for("start the workers", lambda: all(conditions.holds(self.told, "ready.%d" % rank) for rank in range(len(kNodes))), self.workers)

    def capture(self):
        """One `ringside trace` around the recipe: begun before it, ended (by SIGINT, which keeps everything) when it is through."""
        with open(os.path.join(self.work, "trace.json"), "w") as out, open(os.path.join(self.work, "trace.log"), "w") as log:
            trace = subprocess.Popen([kCommand, "trace", "--hosts", ",".join(self.endpoints), "--duration", "60s", "--json", "-o", self.output],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=log)
        trace.name = "trace"
        self.children.callback(self.end, trace)
        self.wait_for("start the capture", lambda: "capturing" in self.log_of(trace), [trace])
        conditions.announce(self.told, "go")
        self.wait_for("run the recipe", lambda: conditions.holds(self.told, "done"), self.workers + [trace])
        trace.send_signal(signal.SIGINT)
        status = trace.wait(kDeadlineS)
        conditions.announce(self.told, "leave")
        if status != 0:
            raise Failed("capture the three nodes: ringside trace ended with %d:\n%s" % (status, self.log_of(trace)))
        for worker in self.workers:
            if worker.wait(kDeadlineS) != 0:
                raise Failed("end the job: %s ended with %d:\n%s" % (worker.name, worker.returncode, self.log_of(worker)))
        return json.loads(read_text(os.path.join(self.work, "trace.json")))

    def show(self, result):
        shown = os.path.relpath(self.output)
        shown = self.output if shown.startswith("..") else shown
        trace = os.path.join(shown, "trace.json")
        if os.path.exists(trace):
            os.remove(trace)
        subprocess.run([kCommand, "table", shown, "--full-names"], check=True)
        totals = json.loads(subprocess.run([kCommand, "table", shown, "--json"], check=True, stdout=subprocess.PIPE).stdout)["totals"]
        subprocess.run([kCommand, "export", shown, "-o", trace], check=True)
        nodes = result["nodes"]
        records = sum(node["records"] for node in nodes)
        cost_ns = sum(node["overhead_estimate_ns"] for node in nodes)
        print("\nRPCs joined %d, cut %d, orphans %d, unfinished %d; %d events in %d records, lost %d; clocks within %.1f us; overhead %.1f us in all (an estimate: records x %.1f ns)" % (
            result["joined_requests"], result["cut"], result["orphans"], result["unfinished"], totals["events"], records, sum(node["lost"] for node in nodes),
            result["clock_bound_ns"] / 1e3, cost_ns / 1e3, cost_ns / max(records, 1)))
        print("dumps and index in %s; open %s in https://ui.perfetto.dev" % (shown, trace))

    def run(self):
        with self.children:
            say("three agents, each with a clock of its own: +0, +1 s, +3 ms and 50 ppm fast")
            self.start_agents()
            say("three workers of the recipe, each on its node (torch takes a few seconds to load) ...")
            self.start_workers()
            say("ringside trace --hosts %s" % ",".join(name for name, _, _ in kNodes))
            result = self.capture()
        self.show(result)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Shared memory for the nodes' job directories; the path stays short, since sockets lie in it.
    work = tempfile.mkdtemp(prefix="ringside-demo-", dir="/dev/shm")
    try:
        Demo(work, sys.argv[1]).run()
    except Failed as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
