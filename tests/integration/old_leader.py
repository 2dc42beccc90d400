"""A leader and a command of the version before, played from their recording (golden/README.md) against today's agents.

What they send is the recording's bytes, but for instants and, where it names other agents, their endpoints. What comes back must verify as it did there,
and mean what it meant: read by the old schemas, all that a run can't change is the same.
"""
import time

import zmq

import old_words
from harness import check, kDeadlineS, wait_until
from old_words import kRequest, id_of, kind_of, with_number

kBeginStart, kStopStop = 1, 1  # slots of BeginRequest.start_node_ns, StopRequest.stop_node_ns
kAheadNs = 30 * 10 ** 6
# Another run has other ones: what they are is not compared, that they are there is.
kOfTheRun = frozenset((
    "id", "pid", "host_pid", "parent_pid", "pid_namespace", "uid", "capture_id", "span", "trace_hi", "trace_lo", "bytes", "host", "version", "directory", "output",
    "endpoint", "command", "command_line", "executable", "ticks_per_second", "error_ppb", "drift_ppb", "ticks_source", "elapsed_ms", "max_bytes"))
kOfTheRunEndings = ("_ns", "_ticks")
kPaths = ("path", "job_index")  # of these the last component


def meaning(value, name="", beside=()):
    """A message without what belongs to its run. @param beside  names of numbers that belong to it, too"""
    if name in kOfTheRun or name in beside or name.endswith(kOfTheRunEndings):
        return type(value).__name__.replace("float", "int")
    if name in kPaths:
        return value.rpartition("/")[2]
    if isinstance(value, dict):
        return {key: meaning(inner, key, beside) for key, inner in value.items()}
    if isinstance(value, list):
        return [meaning(inner, "", beside) for inner in value]
    return value


class OldLeader:
    """@param words  old_words.Words"""

    def __init__(self, workspace, words, endpoint):
        self.words = words
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint)
        workspace.on_leave(self.context.destroy)

    def send(self, data):
        self.socket.send(data)

    def receive(self):
        check(self.socket.poll(kDeadlineS * 1000), "no answer within %g s", kDeadlineS)
        data = self.socket.recv()
        return data, self.words.read(data)

    def ask(self, request, recorded, beside=()):
        """@param recorded  the reply as it was then; None: its meaning is not compared
        @return what comes back, read by the old schemas"""
        self.send(request)
        data, reply = self.receive()
        check(id_of(data) == id_of(request), "the reply to %s %d has the id %d", kind_of(request), id_of(request), id_of(data))
        if recorded is not None:
            self.compare(reply, recorded, beside)
        return reply["content"]

    def compare(self, reply, recorded, beside=()):
        was, now = meaning(self.words.read(recorded), "", beside), meaning(reply, "", beside)
        check(now == was, "%s means\n%s, then it meant\n%s", kind_of(recorded), now, was)

    def play(self, name, during=None, beside=()):
        """Asks what was asked, in turn.
        @param during  {kind of a request: what happens after its reply}
        @return {kind of a reply: its content}"""
        recorded = old_words.load(name)
        told = {}
        for number, (who, data) in enumerate(recorded):
            if who != kRequest:
                continue
            kind = kind_of(data)
            then = next(reply for said_by, reply in recorded[number:] if said_by != kRequest and id_of(reply) == id_of(data))
            if kind == "BeginRequest":
                sent = with_number(data, kBeginStart, time.time_ns() + kAheadNs)
            elif kind == "StopRequest":
                sent = with_number(data, kStopStop, time.time_ns())
            else:
                sent = data
            if kind == "IterationsRequest":
                # How far they are is asked until they are as far as they were at the end.
                last = [reply for _, reply in recorded if kind_of(reply) == "IterationsReply"][-1]
                if "IterationsReply" not in told:
                    told["IterationsReply"] = wait_until("the iterations", lambda: self._as_far(sent, last))
                continue
            told[kind_of(then)] = self.ask(sent, then, beside)
            if during and kind in during:
                during[kind]()
        return told

    def _as_far(self, request, last):
        reply = self.ask(request, None)
        return reply if reply["done"] == self.words.read(last)["content"]["done"] else None
