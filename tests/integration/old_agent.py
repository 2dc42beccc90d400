"""An agent of the version before, played from its recording (golden/README.md): a peer that today's leader leads and today's command asks.

It answers with the bytes that such an agent has sent. The calls and the dump are the recording's, so its clock is, too: that of a node whose clock
stands where it stood then. Ids, its clock and the instants that the leader names are written over; what the recording knows no answer to is answered
as that agent has answered to what it did not know.
"""
import os
import shutil
import struct
import threading
import time

import zmq

from flatbuffers.table import Table

import old_words
from rsd.frames import frame, kDumpMagic
from old_words import kReply, Words, id_of, kind_number, kind_of, number_of, with_id, with_number

kPingNode, kBeginStart, kStopStop = 1, 1, 1  # slots of PingReply.node_ns, BeginRequest.start_node_ns, StopRequest.stop_node_ns
kStopCapture = 0  # slot of StopRequest.capture_id
kChunkBody, kHeaderCapture = 1, 8  # slots of a dump's first chunk, and of the FileHeader that it holds
kLeadSeconds = 2.0  # from the first question to the recorded calls' begin
kNs = 10 ** 9


def of_capture(path, capture_id):
    """Writes over of which capture a dump is."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack_from("<IIQ", data)[1]
    chunk = bytearray(data[16:16 + length])
    table = Table(chunk, struct.unpack_from("<I", chunk)[0])
    header = Table(chunk, table.Indirect(table.Pos + table.Offset(4 + 2 * kChunkBody)))
    struct.pack_into("<Q", chunk, header.Pos + header.Offset(4 + 2 * kHeaderCapture), capture_id % 2 ** 64)
    first = frame(bytes(chunk), kDumpMagic)
    with open(path, "wb") as file:
        file.write(first + data[len(first):])


class OldAgent:
    """@param counts_iterations  False: of a version before iterations were counted"""

    prefix, host = [], None  # as harness.Node has them

    def __init__(self, workspace, verifier, name="old", counts_iterations=True):
        self.words = Words(workspace.path(name), verifier)
        self.endpoint = "ipc://" + os.path.join(workspace.root, name + ".sock")
        self.replies, self.asked, self.refused = {}, [], []
        for recording in ("asked", "iterations", "peer", "unknown"):
            for who, data in old_words.load(recording):
                if who == kReply:
                    self.replies[kind_of(data)] = data
        unknown = [data for _, data in old_words.load("unknown")]
        self.unknown = dict(zip(map(kind_number, unknown[::2]), unknown[1::2]))
        self.stopped = self.words.read(self.replies["StopReply"])
        self.dump = workspace.path("output", os.path.basename(self.stopped["content"]["path"]))
        shutil.copyfile(os.path.join(old_words.kGolden, "caller.rsd"), self.dump)
        self.halves = self.words.read(self.replies["HalvesReply"])["content"]["halves"]
        self.calls_begin_ns = max(self.node_ns(h["begin_ticks"]) for h in self.halves)
        self.calls_end_ns = min(self.node_ns(h["end_ticks"]) for h in self.halves)
        if not counts_iterations:
            status = self.words.read(self.replies["StatusReply"])
            status["content"]["counts_iterations"] = False
            self.replies["StatusReply"] = self.words.write(status)
        self.behind_ns = None
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(self.endpoint)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        workspace.on_leave(self.end)

    def end(self):
        self.ending.set()
        self.thread.join()
        self.socket.close()
        self.context.term()
        os.path.exists(self.endpoint[len("ipc://"):]) and os.unlink(self.endpoint[len("ipc://"):])

    def node_ns(self, ticks):
        clock = self.stopped["content"]["calibration"]
        return clock["reference_ns"] + int((ticks - clock["reference_ticks"]) * kNs / clock["ticks_per_second"])

    def ticks(self, node_ns):
        clock = self.stopped["content"]["calibration"]
        return clock["reference_ticks"] + int((node_ns - clock["reference_ns"]) * clock["ticks_per_second"] / kNs)

    def now_ns(self):
        return time.time_ns() - self.behind_ns

    def ids(self):
        """@return what the callee is called with: a line a call"""
        return ["00-%016x%016x-%016x-01" % (h["trace_hi"], h["trace_lo"], h["span"]) for h in sorted(self.halves, key=lambda h: h["position"])]

    def _serve(self):
        while not self.ending.is_set():
            if not self.socket.poll(50):
                continue
            who, data = self.socket.recv_multipart()[:2]
            self.socket.send_multipart([who, self._answer(data)])

    def _answer(self, data):
        kind, number = kind_of(data), id_of(data)
        if kind == "PingRequest":
            return with_id(with_number(self.replies["PingReply"], kPingNode, self.now_ns()), number)
        self.asked.append(kind)
        if not self.words.verifies(data):
            self.refused.append(kind)
            return self.unknown.get(kind_number(data), next(iter(self.unknown.values())))
        if self.behind_ns is None:
            self.behind_ns = time.time_ns() - (self.calls_begin_ns - int(kLeadSeconds * kNs))
        if kind == "BeginRequest":
            self.stopped["content"]["start_ticks"] = self.ticks(number_of(data, kBeginStart))
        if kind == "StopRequest":
            of_capture(self.dump, number_of(data, kStopCapture))
            self.stopped["content"].update(path=self.dump, stop_ticks=self.ticks(number_of(data, kStopStop)))
            self.replies["StopReply"] = self.words.write(self.stopped)
        return with_id(self.replies[kind.replace("Request", "Reply")], number)
