#!/usr/bin/python3
"""What shows agents at work: `ringside top` on a terminal, as lines and as JSON, and the metrics that Prometheus scrapes.

    watching.py CASE PROGRAM        CASE: top (workloads/iterating.c) metrics (workloads/numbered.c)
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import urllib.error
import urllib.request

from harness import check, free_port, kAgent, kCommand, kShim, main, Node, skip, wait_until

kTurnNs = 20_000_000
kTake, kGiveBack = b"\x1b[?1049h", b"\x1b[?1049l"


def status(workspace, node):
    return workspace.json("status", "--hosts", node.endpoint)[0]


class Terminal:
    """A terminal of its own in which a command runs."""

    def __init__(self, *command):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(command[0], command)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 130, 0, 0))
        self.before = termios.tcgetattr(self.master)
        self.output = b""

    def await_output(self, what, seen):
        """Until seen(all that it has written)."""
        def look():
            while select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self.master, 65536)
                except OSError:  # the command has ended
                    return seen(self.output)
            return seen(self.output)
        try:
            wait_until(what, look)
        finally:
            if not seen(self.output):
                print(self.output[-2000:], file=sys.stderr)

    def end(self):
        """@return the exit status, once it has given the terminal back"""
        self.await_output("the terminal's first screen", lambda out: out.rfind(kGiveBack) > out.rfind(kTake) >= 0)
        _, ended = os.waitpid(self.pid, 0)
        now = termios.tcgetattr(self.master)
        os.close(self.master)
        check(now == self.before, "the terminal was %s, now it is %s", self.before, now)
        return os.waitstatus_to_exitcode(ended)


def top(workspace, program):
    node = Node(workspace, "node")
    job = workspace.start("job", node.job_command(program, str(kTurnNs // 1000)), node.environment())
    wait_until("the job", lambda: status(workspace, node)["processes"] == 1, children=[job])
    asked = ["top", "--hosts", node.endpoint, "--interval", "300ms"]

    idle, = json.loads(workspace.ringside(*asked, "--once", "--json").out())["nodes"]
    check(idle["iteration_ns"] is None and idle["state"] == "idle" and idle["events_per_s"] == 0, "nothing is recorded, and it says %s", idle)
    workspace.ringside("arm", "--hosts", node.endpoint)
    wait_until("iterations", lambda: status(workspace, node)["total_iterations"] > 3, children=[job])
    lines = workspace.start("lines", [kCommand, *asked, "--json"])
    wait_until("some looks", lambda: lines.out().count("\n") >= 3, children=[lines])
    lines.send(signal.SIGINT)
    lines.wait()
    for line in lines.out().splitlines():
        armed, = json.loads(line)["nodes"]
        process, = armed["processes"]
        # Two ranges, three beats and a boundary a turn.
        for each in (armed, process):
            check(kTurnNs <= each["iteration_ns"] < 3 * kTurnNs, "an iteration takes %s: %s", each["iteration_ns"], line)
            check(20 < each["events_per_s"] < 1000 and each["bytes_per_s"] > 0 and each["lost"] == 0, "events: %s", line)
        check(armed["state"] == "armed" and armed["window_held_ns"] > 0 and armed["window_bytes"] > 0, "the window: %s", line)
        check(0 <= armed["agent_cpu_percent"] < 100 and process["pid"] == job.pid, "the rest: %s", line)

    table = workspace.ringside(*asked, "--once").out()
    check(re.search(r"(?m)^node +job +armed +1 +[1-9]\d* +0 +\d+\.\d{3} +\d\d\.\d+ ms +\d+\.\d s, [\d.]+ \w+ +\d+\.\d %$", table), "its table: %s", table)
    check(re.search(r"(?m)^  %d +iterating 20000 +alive +[1-9]\d* +0 " % job.pid, table), "its table: %s", table)

    for name, end in {"q": lambda t: os.write(t.master, b"q"), "Ctrl-C": lambda t: os.write(t.master, b"\x03"),
                      "SIGTERM": lambda t: os.kill(t.pid, signal.SIGTERM)}.items():
        terminal = Terminal(kCommand, *asked)
        terminal.await_output("two tables", lambda out: out.count(b"ITERATION") > 1 and b" ms" in out)
        check(terminal.output.startswith(kTake), "%s: it begins with %r", name, terminal.output[:20])
        os.write(terminal.master, b"\x1b[B\x1b[A")
        end(terminal)
        check(terminal.end() == 0, "%s: its end", name)

    watched = workspace.start("watched", [kCommand, *asked, "--json"])
    wait_until("a look", lambda: watched.out().count("\n") >= 1, children=[watched])
    job.send(signal.SIGTERM)
    job.wait()
    node.stop()
    wait_until("the agent's silence to be said", lambda: '"error"' in watched.out(), children=[watched])
    watched.send(signal.SIGTERM)
    watched.wait()
    workspace.ringside(*asked, "--once", expect=4)


def scrape(port, path="/metrics"):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=10) as answer:
        check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), "it is %s", answer.headers)
        return answer.read().decode()


def values(text):
    """@return {(metric, job): value}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, job, value = re.fullmatch(r'(\w+)\{job="([^"]*)"(?:,node="[^"]*")?\} (\S+)', line).groups()
            found[name, job] = float(value)
    return found


def parent_and_name(pid):
    """@return None: it is gone"""
    try:
        with open("/proc/%s/stat" % pid) as stat:
            before, _, after = stat.read().rpartition(") ")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(after.split()[1]), before.partition("(")[2]


def check_by_promtool(text):
    kept = os.path.join(os.environ["XDG_CACHE_HOME"], "ringside", "promtool")
    promtool = shutil.which("promtool") or (kept if os.path.exists(kept) else skip("no promtool: tools/setup --all fetches it"))
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    check(done.returncode == 0 and done.stderr == "", "promtool says %s of\n%s", done.stdout + done.stderr, text)


def metrics(workspace, program):
    port = free_port()
    for address, expect in {"0.0.0.0:%d" % port: 5, "localhost:%d" % port: 5, "127.0.0.1": 2}.items():
        workspace.run("refused-" + address, [kAgent, "--dir", workspace.path("none"), "--metrics", address], expect=expect)
    node = Node(workspace, "node", capture_from_start=True, extra=["--metrics", "127.0.0.1:%d" % port])
    job = workspace.start("job", node.job_command(program, workspace.path("numbers"), "2", "100000"), node.environment())
    wait_until("records", lambda: status(workspace, node)["total_events"] > 1000, children=[job])
    check(values(scrape(port))["ringside_processes", "job"] == 1, "of processes it says %s", scrape(port))
    job.send(signal.SIGTERM)
    job.wait()
    told = wait_until("the job's end", lambda: (lambda now: now["processes"] == 0 and now)(status(workspace, node)))
    text = scrape(port)
    check_by_promtool(text)
    found = values(text)
    for name, key in {"processes": "processes", "events_total": "total_events", "lost_events_total": "total_lost", "recorded_bytes_total": "total_bytes",
                      "capturing": "capturing", "window_armed": "armed", "iterations_total": "total_iterations",
                      "refused_requests_total": "refused", "damaged_messages_total": "damaged"}.items():
        check(found["ringside_" + name, "job"] == told[key], "%s is %s, and status says %s", name, found["ringside_" + name, "job"], told[key])
    check(told["total_events"] == told["events"] > 1000, "of the one capture: %s", told)
    check(found["ringside_requests_total", "job"] > told["requests"], "requests: %s", found)
    check(told["agent_cpu_ns"] / 1e9 <= found["ringside_agent_cpu_seconds_total", "job"] < 60, "processor time: %s", found)
    check(1 << 20 < found["ringside_agent_resident_memory_bytes", "job"] < 1 << 30, "memory: %s", found)
    try:
        scrape(port, "/")
    except urllib.error.HTTPError as error:
        check(error.code == 404, "another path: %s", error)
    node.stop()

    # All of a user's job directories at one address.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE_"))}
    environment["RINGSIDE_DIR"] = workspace.path("all")
    resident = workspace.start("resident", [kAgent, "--all", "--metrics", "127.0.0.1:%d" % port], environment)
    jobs = [workspace.start(name, ["env", "LD_PRELOAD=" + os.path.abspath(kShim), program, workspace.path("numbers." + name), "1", "1000000"],
                            dict(environment, RINGSIDE_JOB=name)) for name in ("one", "two")]

    def both():
        try:
            now = values(scrape(port))
        except OSError:
            return False
        return [now.get(("ringside_processes", name)) for name in ("one", "two")] == [1, 1]

    wait_until("both jobs at one address", both, children=[resident, *jobs])
    serving = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_and_name(pid) == (resident.pid, "ringside-metric")]
    check(len(serving) == 1, "metrics are served by %s", serving)
    os.kill(serving[0], signal.SIGKILL)
    wait_until("metrics of another process", both, children=[resident, *jobs])
    check(parent_and_name(serving[0]) is None, "the dead one is not reaped")
    workspace.ringside("arm", "--hosts", "ipc://%s/one/agent.sock" % environment["RINGSIDE_DIR"], environment=environment)
    text = scrape(port)
    check_by_promtool(text)
    found = values(text)
    check(found["ringside_window_armed", "one"] == 1 and found["ringside_window_armed", "two"] == 0, "armed: %s", found)
    check(("ringside_window_bytes", "one") in found and ("ringside_window_bytes", "two") not in found, "windows: %s", found)
    for child in [*jobs, resident]:
        child.send(signal.SIGTERM)
        child.wait(expect=None)


kCases = {"top": top, "metrics": metrics}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "watching-" + sys.argv[1], limit_s=100)
