#!/usr/bin/python3
"""Makes the recordings in this folder again: RINGSIDE_BUILD=FOLDER_OF_THE_GOLDEN_BUILD record.py TODAYS_CONTROL_FBS

Real agents, shim and command of that build, and between them somebody who writes down what is said. README.md says what each file holds.
"""
import os
import shutil
import subprocess
import sys
import threading

import zmq

kHere = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(kHere))

from harness import check, kWorkloads, main, Node, Trace
from old_words import kReply, kRequest, kind_of, save
from versions import Carried

kAtLeastSeconds = 4.0  # the calls last so long that others can be served within them
kBoundBytes = 100_000  # of the recordings: they stay small


def without_later_pings(said):
    """An answer to a ping is like the next one."""
    kept, pinged = [], set()
    for who, data in said:
        kind = kind_of(data)
        if kind not in pinged:
            kept.append((who, data))
        if kind.startswith("Ping"):
            pinged.add(kind)
    return kept


class Tap:
    """Stands before an agent's socket and passes everything on. conversations: a list a connection of [(who, bytes)]"""

    def __init__(self, workspace, node):
        self.prefix, self.host, self.name = [], None, node.name
        self.back, self.endpoint = node.endpoint, node.endpoint.replace(".sock", ".tap")
        self.conversations, self.dealers = [], {}
        self.context = zmq.Context()
        self.ending = threading.Event()
        self.front = self.context.socket(zmq.ROUTER)
        self.front.bind(self.endpoint)
        self.thread = threading.Thread(target=self._pass_on, daemon=True)
        self.thread.start()
        workspace.on_leave(self.end)

    def end(self):
        self.ending.set()
        self.thread.join()
        self.context.destroy(0)
        os.unlink(self.endpoint[len("ipc://"):])

    def _pass_on(self):
        poller = zmq.Poller()
        poller.register(self.front, zmq.POLLIN)
        while not self.ending.is_set():
            for ready, _ in poller.poll(50):
                if ready is self.front:
                    who, data = self.front.recv_multipart()
                    if who not in self.dealers:
                        dealer = self.context.socket(zmq.DEALER)
                        dealer.connect(self.back)
                        poller.register(dealer, zmq.POLLIN)
                        self.conversations.append([])
                        self.dealers[who] = (dealer, self.conversations[-1])
                    dealer, said = self.dealers[who]
                    said.append((kRequest, data))
                    dealer.send(data)
                else:
                    (who, said), = [(who, said) for who, (dealer, said) in self.dealers.items() if dealer is ready]
                    data = ready.recv()
                    said.append((kReply, data))
                    self.front.send_multipart([who, data])

    def with_a(self, kind, after=0):
        """What was said over the connections on which such a request came."""
        found = [said for said in self.conversations[after:] if any(kind_of(data) == kind for _, data in said)]
        check(found, "nobody has sent a %s", kind)
        return [frame for said in found for frame in said]


def unknown(workspace, endpoint, schema):
    """What today's command asks, and a version before does not know."""
    context, said = zmq.Context(), []
    socket = context.socket(zmq.DEALER)
    socket.connect(endpoint)
    for kind in ("PeersRequest", "FetchRequest"):
        path = workspace.path("unknown.json")
        with open(path, "w") as file:
            file.write('{"version": 1, "id": 77, "content_type": "%s", "content": {}}' % kind)
        subprocess.run(["flatc", "-b", "-o", workspace.path(), schema, path], check=True)
        with open(workspace.path("unknown.bin"), "rb") as file:
            said.append((kRequest, file.read()))
        socket.send(said[-1][1])
        check(socket.poll(5000), "no answer to a %s", kind)
        said.append((kReply, socket.recv()))
    context.destroy(0)
    return said


def record(workspace):
    nodes = [Node(workspace, "callee-node"), Node(workspace, "caller-node")]
    # Nothing of this machine's folders goes into a recording.
    folder = workspace.path("workloads")
    os.makedirs(folder)
    for script in ("carried_calls.py", "conditions.py"):
        shutil.copy(os.path.join(kWorkloads, script), folder)
    job = Carried(workspace, *nodes, at_least_s=kAtLeastSeconds, folder=folder)
    leader, peer = taps = [Tap(workspace, node) for node in nodes]
    for verb in (["status"], ["ps"], ["arm"], ["disarm"]):
        workspace.ringside(*verb, "--hosts", peer.endpoint)
    made = {"asked": [frame for said in peer.conversations for frame in said]}
    before = len(peer.conversations)
    output = workspace.path("trace")
    trace = Trace(workspace, taps, output)
    job.call()
    job.await_ended()
    trace.end()
    made["command"], made["peer"] = leader.with_a("TraceRequest"), peer.with_a("PrepareRequest", before)
    before = len(peer.conversations)
    job.count()
    workspace.ringside("trace", "--hosts", leader.endpoint + "," + peer.endpoint, "--iterations", "2", "--timeout", "2s", "-o", workspace.path("steps"), expect=None)
    made["iterations"] = peer.with_a("IterationsRequest", before)
    made["unknown"] = unknown(workspace, peer.back, sys.argv[1])
    job.leave()
    for name, said in made.items():
        said = without_later_pings(said)
        save(os.path.join(kHere, name + ".messages"), said)
        print("%s: %d messages, %s" % (name, len(said), sorted({kind_of(data) for _, data in said})), flush=True)
    shutil.copyfile(os.path.join(output, "caller-node.rsd"), os.path.join(kHere, "caller.rsd"))
    size = sum(os.path.getsize(os.path.join(kHere, f)) for f in os.listdir(kHere) if not f.endswith(".xz"))
    check(size < kBoundBytes, "the folder has %d bytes", size)


if __name__ == "__main__":
    main(record, "record")
