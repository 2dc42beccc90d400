"""Captures of whole jobs that more than one test looks at."""
import os
import signal

from harness import Node, Trace, Workers, wait_until
from hosts import Hosts

# The skews that a node's clock gets: +1 s; 3 ms; 50 ppm (and 3 ms, so that it does not begin at zero).
kSkewNs = (0, 1_000_000_000, 3_000_000)
kDriftPpb = (0, 0, 50_000)


def three_nodes(workspace, skewed=True):
    return [Node(workspace, "node%d" % n, skew_ns=kSkewNs[n] if skewed else 0, drift_ppb=kDriftPpb[n] if skewed else 0) for n in range(3)]


def three_hosts(workspace):
    """Nodes that are hosts of their own: names, addresses, shared memory, monotonic clocks; 2 ms one way, 4 ms the other; tcp with one key."""
    hosts = Hosts(workspace, 3, delays_ms={(0, 1): 2, (1, 0): 4, (0, 2): 4, (2, 0): 2, (1, 2): 1, (2, 1): 1})
    return [Node(workspace, host.name, skew_ns=kSkewNs[n], drift_ppb=kDriftPpb[n], extra=["--key", hosts.key], host=host)
            for n, host in enumerate(hosts.hosts)]


def traced_logged_job(workspace, rounds=1, addresses=("127.0.0.1",) * 3, environment=None, make_nodes=three_nodes, armed=False):
    """logged_job.py, one worker a node, all its calls inside the capture.
    @param armed  the nodes keep windows, and the capture is asked for when all calls are over
    @return (directory, the command's JSON, the paths of the job's own logs)
    """
    nodes = make_nodes(workspace)
    workers = Workers(workspace, nodes, "logged_job.py", "--log", workspace.path("log.%RANK%"), "--rounds", str(rounds),
                      addresses=addresses, environment=environment)
    workers.await_ready()
    output = workspace.path("trace")
    if armed:
        workspace.ringside("arm", "--hosts", ",".join(node.endpoint for node in nodes), "--keep", "60s", "--max-bytes", "64M")
        workspace.announce("go")
        workspace.await_condition("done", workers.children)
        told = workspace.json("trace", "--hosts", ",".join(node.endpoint for node in nodes), "--history", "60s", "--duration", "50ms", "-o", output)
    else:
        trace = Trace(workspace, nodes, output)
        workspace.announce("go")
        workspace.await_condition("done", workers.children)
        told = trace.end()
    workers.leave()
    for node in nodes:
        wait_until("the segments of %s to go" % node.name, lambda node=node: not node.segments())
        node.stop()
    return output, told, [workspace.path("log.%d" % n) for n in range(3)]


def traced_killed_job(workspace):
    """killed_job.py: worker1 is stopped and killed in the middle of a call.
    @return (directory, the command's JSON, what it wrote to stderr); the command has ended with 1
    """
    nodes = three_nodes(workspace)
    workers = Workers(workspace, nodes, "killed_job.py")
    workers.await_ready()
    trace = Trace(workspace, nodes, workspace.path("trace"))
    workspace.announce("go")
    victim = workers.children.pop(1)
    for name in ("worked.0", "worked.2", "holding", "holding.inner"):
        workspace.await_condition(name, workers.children)
    os.kill(victim.pid, signal.SIGSTOP)
    wait_until("worker1 to stop", lambda: _state(victim.pid) == "T")
    workspace.announce("stopped")
    for name in ("sent.0", "sent.2"):
        workspace.await_condition(name, workers.children)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(expect=-signal.SIGKILL)
    for name in ("failed.0", "failed.2"):
        workspace.await_condition(name, workers.children)
    told = trace.end(expect=1)
    workers.leave()
    for node in nodes:
        wait_until("the segments of %s to go" % node.name, lambda node=node: not node.segments())
        node.stop()
    return trace.output, told, trace.child.err()


def _state(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(")")[2].split()[0]
