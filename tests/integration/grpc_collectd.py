#!/usr/bin/python3
"""A pair that Debian ships: collectd sends what it measures to another collectd, each by its gRPC plugin (loaded by dlopen()), on two nodes. Every
call is there at both ends and joined."""
import collections
import glob
import os
import signal

from annotations import check_level
from harness import check, free_port, main, Node, skip, Trace, wait_until
from rsd.index import Job

kCollectd, kPlugins = "/usr/sbin/collectd", "/usr/lib/collectd"
kGrpc = 3
kCommon = """
Hostname "%(name)s"
FQDNLookup false
BaseDir "%(folder)s"
PIDFile "%(folder)s/pid"
PluginDir "%(plugins)s"
TypesDB "/usr/share/collectd/types.db"
Interval 0.1
LoadPlugin grpc
"""
kReceives = """
LoadPlugin csv
<Plugin csv>
  DataDir "%(folder)s/csv"
</Plugin>
<Plugin grpc>
  <Listen "127.0.0.1" "%(port)d">
    EnableSSL false
  </Listen>
</Plugin>
"""
kSends = """
LoadPlugin load
LoadPlugin uptime
<Plugin grpc>
  <Listen "127.0.0.1" "%(own_port)d">
    EnableSSL false
  </Listen>
  <Server "127.0.0.1" "%(port)d">
    EnableSSL false
  </Server>
</Plugin>
"""


def collectd(workspace, node, port, configuration):
    folder = workspace.path(node.name)
    os.makedirs(folder)
    path = os.path.join(folder, "collectd.conf")
    with open(path, "w") as file:
        file.write((kCommon + configuration) % {"name": node.name, "folder": folder, "plugins": kPlugins, "port": port, "own_port": free_port()})
    return workspace.start("collectd-" + node.name, node.job_command(kCollectd, "-f", "-C", path), node.environment())


def end(child):
    child.send(signal.SIGTERM)
    child.wait()


def test(workspace):
    if not os.path.exists(kCollectd) or not os.path.exists(kPlugins + "/grpc.so"):
        skip("collectd with its gRPC plugin is not here (tools/setup --all)")
    sends, receives = Node(workspace, "sends"), Node(workspace, "receives")
    port = free_port()
    receiver = collectd(workspace, receives, port, kReceives)
    wait_until("the receiver", lambda: "Initialization complete" in receiver.err() + receiver.out(), children=[receiver])
    trace = Trace(workspace, [sends, receives], workspace.path("traced"))
    sender = collectd(workspace, sends, port, kSends)
    arrived = os.path.join(workspace.path("receives"), "csv", "sends", "uptime", "uptime*")
    wait_until("twenty values to arrive", lambda: sum(len(open(path).readlines()) for path in glob.glob(arrived)) > 20, children=[sender, receiver])
    end(sender)
    end(receiver)
    trace.end()
    job = Job(trace.output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    check_level(job, kGrpc)
    found = collections.Counter((c.either.module, c.function, c.state) for c in job.calls)
    check(set(found) == {("collectd.Collectd", "PutValues", "Joined")} and sum(found.values()) > 20, "the calls are %s", found)
    for call in job.calls:
        check((call.client_node, call.server_node) == ("sends", "receives") and call.mode == "sync" and call.client.peer.endswith(":%d" % port),
              "a call from %s to %s, %s, of %s", call.client_node, call.server_node, call.mode, call.client.peer)
        check((call.client.status, call.server.status) == (0, 0), "it has ended with %s, %s", call.client.status, call.server.status)
    print("%s" % job.counts(), flush=True)


main(test, "grpc_collectd")
