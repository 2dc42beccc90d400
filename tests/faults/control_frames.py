"""Control messages as bytes: made of the schema's words, told apart, and such as nobody honest writes, which tell one thing again and again."""
import os
import subprocess

import flatbuffers
from flatbuffers import number_types
from flatbuffers.table import Table

from fault import kSource
from old_words import kinds

kSchema = os.path.join(kSource, "schema", "control.fbs")
kFirstSlot, kSlotBytes = 4, 2
kVersion, kId, kKind, kContent = range(4)  # fields of Message, a union takes two


kKinds = kinds(kSchema)


class Messages:
    """Made by flatc, from JSON."""

    def __init__(self, folder):
        self.folder = folder

    def make(self, kind, number=1, content="{}"):
        words = os.path.join(self.folder, "message.json")
        with open(words, "w") as file:
            file.write('{"version": 1, "id": %d, "content_type": "%s", "content": %s}' % (number, kind, content))
        subprocess.run(["flatc", "-b", "--unknown-json", "-o", self.folder, kSchema, words], check=True, capture_output=True)
        with open(os.path.join(self.folder, "message.bin"), "rb") as file:
            return file.read()


def _number(data, field, flags):
    table = Table(bytearray(data), int.from_bytes(data[:4], "little"))
    offset = table.Offset(kFirstSlot + kSlotBytes * field)
    return table.Get(flags, table.Pos + offset) if offset else 0


def id_of(data):
    return _number(data, kId, number_types.Uint64Flags)


def kind_of(data):
    return kKinds[_number(data, kKind, number_types.Uint8Flags)]


class Frame:
    """A message that is built by hand: what was made once may be told as often as one likes."""

    def __init__(self):
        self.builder = flatbuffers.Builder(1 << 10)

    def text(self, size):
        return self.builder.CreateString("x" * size)

    def numbers(self, size):
        return self.builder.CreateByteVector(bytes(size))

    def many(self, one, times):
        self.numbers(4 * times)  # room for so many tables: the verifier counts them
        self.builder.StartVector(4, times, 4)
        for _ in range(times):
            self.builder.PrependUOffsetTRelative(one)
        return self.builder.EndVector()

    def table(self, **fields):
        """@param fields  f<its number>=<what was made>"""
        self.builder.StartObject(16)
        for name, made in fields.items():
            self.builder.PrependUOffsetTRelativeSlot(int(name[1:]), made, 0)
        return self.builder.EndObject()

    def end(self, kind, content, number):
        self.builder.StartObject(4)
        self.builder.PrependUint32Slot(kVersion, 1, 0)
        self.builder.PrependUint64Slot(kId, number, 0)
        self.builder.PrependUint8Slot(kKind, kKinds.index(kind), 0)
        self.builder.PrependUOffsetTRelativeSlot(kContent, content, 0)
        self.builder.Finish(self.builder.EndObject(), file_identifier=b"RSC1")
        return bytes(self.builder.Output())


def _node_of_a_trace(number):
    """6 GB: thirty thousand times one node whose name has 200 KB."""
    frame = Frame()
    node = frame.table(f0=frame.text(200_000))
    return frame.end("TraceReply", frame.table(f2=frame.many(node, 30_000)), number)


def _half(number):
    """320 MB."""
    frame = Frame()
    name = frame.text(4000)
    return frame.end("HalvesReply", frame.table(f2=frame.many(frame.table(f14=name, f15=name), 40_000)), number)


def _noted_agent(number):
    frame = Frame()
    name = frame.text(4000)
    return frame.end("PeersReply", frame.table(f2=frame.many(frame.table(f0=name, f1=name, f2=name), 16_000)), number)


def _peer(number):
    """64 MiB, of a request."""
    frame = Frame()
    return frame.end("TraceRequest", frame.table(f0=frame.many(frame.text(4090), 16_384)), number)


def _relayed(number):
    """3 GB, of a request."""
    frame = Frame()
    passed = frame.table(f1=frame.numbers(100_000))
    return frame.end("RelayRequest", frame.table(f0=frame.many(passed, 30_000)), number)


kAgain = {"one node of a trace": _node_of_a_trace, "one half": _half, "one noted agent": _noted_agent, "one peer": _peer, "one message that is passed on": _relayed}
