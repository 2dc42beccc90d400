#!/usr/bin/python3
"""An agent as a node's daemon: its configuration, read again while it captures, and its systemd unit.

    daemon.py CASE PROGRAM        CASE: config reload unit (root); PROGRAM: workloads/numbered.c
"""
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

from harness import check, free_port, kAgent, kBuild, kCommand, kShim, main, skip, wait_until
from rsd.index import Job
from watching import scrape, values

kMark = 8
kUid = 61234  # nobody's
kMostExposure = 3.0


def plain_environment(**more):
    return dict({name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE_", "XDG_CONFIG"))}, **more)


def config(workspace, program):
    """What counts more, where each value is from, and what a wrong file is told."""
    file = workspace.path("agent.toml")
    environment = plain_environment(RINGSIDE_DIR="/dev/shm/of-environment", RINGSIDE_LOG_LEVEL="error")

    def written(text):
        with open(file, "w") as out:
            out.write(text)

    def asked(*options, expect=0):
        return workspace.run("asked-%d" % len(workspace.children), [kAgent, "--check-config", *options], environment, expect)

    def settings(*options):
        return {each["name"]: (each["value"], each["from"]) for each in json.loads(asked("--json", *options).out())["settings"]}

    written('dir = "/of-file"\nlog-level = "info"\nmetrics = "127.0.0.1:9400"\n# so much\nnode-budget = "2G"\nfirst-lane-kib = 128\n')
    found = settings("--config", file, "--first-lane-kib", "512")
    check(found["dir"] == ("/dev/shm/of-environment", "RINGSIDE_DIR") and found["log-level"] == ("error", "RINGSIDE_LOG_LEVEL"), "environment: %s", found)
    check(found["metrics"] == ("127.0.0.1:9400", file + ":3") and found["node-budget"] == (2 << 30, file + ":5"), "file: %s", found)
    check(found["first-lane-kib"] == (512, "command line") and found["output"][1] == "default", "the rest: %s", found)
    text = asked("--config", file).out()
    check('metrics = "127.0.0.1:9400"  # %s:3\n' % file in text, "as text: %s", text)
    check(settings("--config", "")["metrics"] == ("", "default"), "no file")
    own = os.path.join(os.environ["HOME"], ".config", "ringside")
    os.makedirs(own)
    shutil.copy(file, os.path.join(own, "agent.toml"))
    check(settings()["metrics"][1] == os.path.join(own, "agent.toml") + ":3", "the user's own: %s", settings())

    # What can't be written of it is said, and is no error.
    nobody = ["setpriv", "--reuid", str(kUid), "--regid", str(kUid), "--clear-groups"] if os.getuid() == 0 else []
    closed = workspace.path("closed")
    os.makedirs(os.path.join(closed, "open"), mode=0o700)
    done = subprocess.run([*nobody, kAgent, "--config", "", "--check-config", "--json", "--dir", closed + "/shm", "--output", "/etc/passwd/dumps"], env=dict(environment, HOME=closed),
                          capture_output=True, text=True, check=True)
    warned = [words.split(" can't be written: ")[0] for words in json.loads(done.stdout)["warnings"]]
    wanted = ["output /etc/passwd/dumps"] if not nobody else ["dir %s/shm" % closed, "output /etc/passwd/dumps", "home %s/.ringside" % closed]
    check(warned == wanted, "it warns of %s", done.stdout)
    done = subprocess.run([*nobody, kAgent, "--config", "", "--check-config", "--output", "/etc/passwd/dumps"], env=environment, capture_output=True, text=True, check=True)
    check("output /etc/passwd/dumps can't be written: Not a directory; " in done.stderr, "it says %s", done.stderr)

    for text, said in {'\nmetrix = "x"\n': ":2: 'metrix' is no setting; there are dir, node, key, output, metrics,",
                       "metrics = 9400\n": ":1: metrics wants a string", 'first-lane-kib = "128"\n': ":1: first-lane-kib wants an integer",
                       "first-lane-kib = 1\n": ":1: ", 'log-level = "loud"\n': ":1: ", "dir = [1]\n": ":1: dir wants a string", 'dir = "\n': ":1: "}.items():
        written(text)
        environment = plain_environment()
        for options in [["--check-config"], []]:  # and no agent starts with it
            told = workspace.run("wrong-%d" % len(workspace.children), [kAgent, "--config", file, *options], environment, expect=2).err()
            check(file + said in told, "%r is told %s", text, told)
    written('metrics = "0.0.0.0:9400"\n')
    check("no loopback address" in asked("--config", file, expect=5).err(), "another address is not refused")
    check(file + "0" in asked("--config", file + "0", expect=2).err(), "no such file")


@contextlib.contextmanager
def resident(workspace, environment, file, *options, command=(kAgent, "--all"), prefix=()):
    """A resident agent that is ready."""
    reading, writing = os.pipe()
    child = workspace.start("resident", [*prefix, *command, *(["--config", file] if file else []), "--ready-fd", str(writing), *options], environment, pass_fds=(writing,))
    os.close(writing)
    with os.fdopen(reading) as ready:
        check(ready.readline() == "ready\n", "the resident agent is not ready:\n%s", child.tail())
    yield child
    child.send(signal.SIGTERM)
    child.wait(30)


def numbered(workspace, environment, program, prefix=()):
    """The job, once it writes."""
    path = os.path.join(environment["HOME"], "numbers")
    child = workspace.start("job", [*prefix, "env", "LD_PRELOAD=" + os.path.abspath(kShim), program, path, "2", "200000"], dict(environment, RINGSIDE_JOB="job"))
    wait_until("the job", lambda: os.path.exists(path) and os.path.getsize(path) > 0, children=[child])
    return child


def check_whole(output):
    """Each thread's numbers are in a row, and none is lost: produced = kept."""
    job = Job(output)
    check(not job.problems() and job.dumps[0].footer.lost == 0, "the dump: %s, %d lost", job.problems(), job.dumps[0].footer.lost)
    lanes = [[record.words[3] for record, _, _ in lane.records if record.kind == kMark] for lane in job.dumps[0].lanes.values()]
    check(sum(map(bool, lanes)) == 2, "lanes: %s", [len(lane) for lane in lanes])
    for lane in filter(None, lanes):
        check(lane == list(range(lane[0], lane[-1] + 1)) and len(lane) > 1000, "a lane has %d numbers from %d to %d", len(lane), lane[0], lane[-1])
    return sum(map(len, lanes))


def traced(workspace, environment, during, prefix=()):
    """@return the dump's folder, of a trace in which during() was called"""
    output = os.path.join(environment["HOME"], "traced")
    trace = workspace.start("trace", [*prefix, kCommand, "trace", "--hosts", "ipc://%s/job/agent.sock" % environment["RINGSIDE_DIR"], "--duration", "60s", "-o", output], environment)
    wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace])
    during()
    trace.send(signal.SIGINT)
    trace.wait(expect=None)
    return output


def events(workspace, environment, prefix=()):
    done = workspace.run("status-%d" % len(workspace.children), [*prefix, kCommand, "status", "--json"], environment, expect=None)
    return next((each["total_events"] for each in json.loads(done.out() or "[]") if each["job"] == "job"), None)


def reload(workspace, program):
    """The file is read again, five times in a capture: nothing of it is lost, what can change changes, what is wrong changes nothing."""
    file, ports = workspace.path("agent.toml"), [free_port(), free_port()]
    environment = plain_environment(RINGSIDE_DIR=os.path.join(workspace.root, "all"))

    def write(port, level, more=""):
        with open(file + ".new", "w") as out:
            out.write('metrics = "127.0.0.1:%d"\nlog-level = "%s"\noutput = "%s"\n%s' % (port, level, workspace.path("output"), more))
        os.rename(file + ".new", file)

    write(ports[0], "info")
    with resident(workspace, environment, file) as agent:
        job = numbered(workspace, environment, program)
        wait_until("its agent", lambda: events(workspace, environment) is not None)

        def again(said, times, grows=True):
            """@param said  by the resident one and by its job's agent"""
            before = events(workspace, environment)
            agent.send(signal.SIGHUP)
            wait_until("%r to be said" % said, lambda: len(re.findall(said, agent.err())) == times, children=[agent])
            if grows:
                wait_until("records", lambda: events(workspace, environment) > before + 500, children=[job])

        def during():
            again("reload: done", 2)
            write(ports[1], "info", 'process-budget = "64M"\n')
            again("reload: done", 4)
            check(values(scrape(ports[1]))["ringside_capturing", "job"] == 1, "metrics at their new address: %s", scrape(ports[1]))
            with socket.create_server(("127.0.0.1", 0)) as taken:
                write(taken.getsockname()[1], "info")
                again("metrics stay at 127.0.0.1:%d" % ports[1], 1)
            check(values(scrape(ports[1]))["ringside_capturing", "job"] == 1, "metrics where they could stay: %s", scrape(ports[1]))
            write(ports[1], "info", "nonsense\n")
            again("reload: the configuration is wrong", 2)
            write(ports[1], "info", 'dir = "/elsewhere"\n')
            again("reload: dir = /elsewhere needs a restart", 0)  # RINGSIDE_DIR counts for more
            write(ports[1], "info", 'node = "other"\n')
            again("reload: node = other needs a restart", 2)

        print("%d numbers, %d reloads" % (check_whole(traced(workspace, environment, during)), 5), flush=True)
        try:
            scrape(ports[0])
            check(False, "the metrics' old address still answers")
        except OSError:
            pass
        write(ports[1], "off")
        agent.send(signal.SIGHUP)
        job.send(signal.SIGTERM)
        job.wait()
    # Without a file SIGHUP ends an agent, as when its terminal goes.
    alone = workspace.start("alone", [kAgent, "--config", "", "--job", "alone"], environment)
    wait_until("it to listen", lambda: os.path.exists(os.path.join(environment["RINGSIDE_DIR"], "alone", "agent.sock")), children=[alone])
    alone.send(signal.SIGHUP)
    alone.wait()


def unit(workspace, program):
    """systemd's own word on the unit; and its ExecStart line as another user in the unit's sandbox, who captures a job of his own."""
    built = os.path.join(kBuild, "tools", "ringside-agent@.service")
    if os.getuid() != 0 or shutil.which("systemd-analyze") is None:
        skip("another user, and systemd-analyze (package systemd), are needed")
    # As installed, but for where that is.
    with open(built) as file:
        text = re.sub(r"(?m)^(ExecStart=)\S+", lambda found: found[1] + os.path.abspath(kAgent), file.read())
    here = workspace.path("ringside-agent@.service")
    with open(here, "w") as out:
        out.write(text)
    verified = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True)
    check(verified.returncode == 0 and verified.stderr == "", "systemd-analyze verify: %s", verified.stderr)
    graded = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", here], capture_output=True, text=True)
    exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", graded.stdout)[1])
    print("exposure %.1f" % exposure, flush=True)
    check(exposure <= kMostExposure, "systemd-analyze security: %s", graded.stdout + graded.stderr)

    prefix = ["setpriv", "--reuid", str(kUid), "--regid", str(kUid), "--clear-groups", "--"]
    if subprocess.run([*prefix, kAgent, "--version"], capture_output=True).returncode != 0:
        skip("another user can't execute %s" % kAgent)
    home = workspace.path("home")
    root = os.path.join(workspace.root, "theirs")
    for folder in (workspace.root, workspace.disk, workspace.path("out"), workspace.path("cwd")):
        os.chmod(folder, 0o711)
    for folder in (home, root):
        os.makedirs(folder, mode=0o700)
        os.chown(folder, kUid, kUid)
    environment = plain_environment(HOME=home, RINGSIDE_DIR=root, RINGSIDE_OUTPUT=os.path.join(home, "output"))
    command = shlex.split(re.search(r"(?m)^ExecStart=(.*)$", text)[1])
    # The agent alone is in the unit's sandbox.
    sandbox = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "unit_sandbox.py"), here, str(kUid)]
    for what, refused in (["nice", "true"], "Operation not permitted"), (["touch", "/usr/by-the-agent"], "Read-only file system"):
        said = subprocess.run([*sandbox, *what], capture_output=True, text=True).stderr
        check(refused in said, "in the sandbox %s says %r", what[0], said)
    with resident(workspace, environment, None, command=command, prefix=sandbox) as agent:
        job = numbered(workspace, environment, program, prefix)
        wait_until("its agent", lambda: events(workspace, environment, prefix) is not None)
        output = traced(workspace, environment, lambda: wait_until("records", lambda: events(workspace, environment, prefix) > 5000), prefix)
        check_whole(output)
        check(os.stat(output).st_uid == kUid, "the dump's owner is %d", os.stat(output).st_uid)
        done = workspace.run("reload", shlex.split(re.search(r"(?m)^ExecReload=(.*)$", text)[1].replace("$MAINPID", str(agent.pid))))
        check(done.err() == "", "ExecReload: %s", done.err())
        before = events(workspace, environment, prefix)
        check(before is not None, "after a reload nobody answers")
        job.send(signal.SIGTERM)
        job.wait()


kCases = {"config": config, "reload": reload, "unit": unit}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "daemon-" + sys.argv[1], limit_s=100)
