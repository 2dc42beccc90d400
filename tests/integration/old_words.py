"""What an agent and a leader of the version before said to each other (golden/README.md): recorded messages, and the schemas that they were made by.

A message is sent as its recorded bytes; what must be another (ids, times) is written over in place. Only where a text has another length it is made
anew, by flatc from the old schemas.
"""
import json
import os
import struct
import subprocess

from flatbuffers import number_types
from flatbuffers.table import Table

from harness import check, kHere

kGolden = os.path.join(kHere, "golden")
kSchema = os.path.join(kGolden, "control.fbs")
kFrame = struct.Struct("<cI")  # who says it, and how many bytes
kRequest, kReply = b"q", b"r"
kFirstSlot, kSlotBytes = 4, 2
kId, kKind, kContent = 1, 2, 3  # fields of Message, a union takes two


def load(name):
    """@return [(kRequest or kReply, bytes)], as they went over the wire"""
    with open(os.path.join(kGolden, name + ".messages"), "rb") as file:
        data = file.read()
    frames, at = [], 0
    while at < len(data):
        who, size = kFrame.unpack_from(data, at)
        at += kFrame.size
        frames.append((who, data[at:at + size]))
        at += size
    check(frames and at == len(data), "%s is cut short", name)
    return frames


def save(path, frames):
    with open(path, "wb") as file:
        for who, data in frames:
            file.write(kFrame.pack(who, len(data)) + data)


def kinds(schema):
    """The names of the union's members, by number."""
    with open(schema) as file:
        text = file.read()
    members = text[text.index("union Content {") + len("union Content {"):]
    return ["NONE"] + members[:members.index("}")].replace(",", " ").split()


kKinds = kinds(kSchema)  # of the version before


def _field(table, slot):
    offset = table.Offset(kFirstSlot + kSlotBytes * slot)
    return table.Pos + offset if offset else None


def _message(data):
    return Table(bytearray(data), struct.unpack_from("<I", data)[0])


def id_of(data):
    at = _field(_message(data), kId)
    return struct.unpack_from("<Q", data, at)[0] if at else 0


def kind_number(data):
    at = _field(_message(data), kKind)
    return data[at] if at else 0


def kind_of(data):
    """@return its name; "unknown" for one that the version before has not"""
    number = kind_number(data)
    return kKinds[number] if number < len(kKinds) else "unknown"


def with_id(data, number):
    changed = bytearray(data)
    struct.pack_into("<Q", changed, _field(_message(data), kId), number)
    return bytes(changed)


def with_number(data, slot, number):
    """@param slot  of an 8-byte number in the content, counted as in the schema"""
    table = _message(data)
    content = Table(table.Bytes, table.Indirect(_field(table, kContent)))
    at = _field(content, slot)
    check(at, "%s says nothing in slot %d: nothing can be written over", kind_of(data), slot)
    changed = bytearray(data)
    struct.pack_into("<q", changed, at, number)
    return bytes(changed)


def number_of(data, slot):
    table = _message(data)
    content = Table(table.Bytes, table.Indirect(_field(table, kContent)))
    at = _field(content, slot)
    return content.Get(number_types.Int64Flags, at) if at else 0


class Words:
    """Messages as the old schemas read and write them.
    @param verifier  the program that verifies as an agent of the version before does"""

    def __init__(self, folder, verifier):
        self.folder, self.verifier = folder, verifier
        os.makedirs(folder)

    def verifies(self, data):
        return subprocess.run([self.verifier], input=data, stderr=subprocess.DEVNULL).returncode == 0

    def read(self, data):
        """@return the message as JSON has it, all defaults said"""
        check(self.verifies(data), "%s of %d bytes: the version before would not take it", kind_of(data), len(data))
        path = os.path.join(self.folder, "message.bin")
        with open(path, "wb") as file:
            file.write(data)
        subprocess.run(["flatc", "--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", self.folder, kSchema, "--", path], check=True, capture_output=True)
        with open(os.path.join(self.folder, "message.json")) as file:
            return json.load(file)

    def write(self, message):
        path = os.path.join(self.folder, "made.json")
        with open(path, "w") as file:
            json.dump(message, file)
        subprocess.run(["flatc", "-b", "-o", self.folder, kSchema, path], check=True, capture_output=True)
        with open(os.path.join(self.folder, "made.bin"), "rb") as file:
            return file.read()
