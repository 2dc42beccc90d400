"""One node's dump: header, processes, names, lanes with their records, footer; and what is wrong with it."""
import collections
import os
import struct

from . import Damaged, codec, frames
from .shapes import kDumpReader

kVersion = 2
kZstd = 1
# What a name has beside its text; the texts "" where there is none. `payload`: what a record's argument is (kPayloads).
Attributes = collections.namedtuple("Attributes", "domain category colour payload")
kNoAttributes = Attributes("", "", 0, 0)
kPayloads = ("none", "unsigned", "signed", "double")
kUnresolved = ""
# Of ProcessEnd.losses: those that stand for a record each which no lane has seen (ranges too deep, calls beyond the pool, no lane, a hook in a hook, dropped by CUPTI).
kPassedOver = (1, 2, 3, 4, 11)


class Lane:
    """A lane of one process: its records in order of position, and each block's facts beside them.

    spans: [(first position taken, block)]; a block's `open` and `context` stand in the block.
    """

    def __init__(self, process, index):
        self.process, self.index = process, index
        self.records = []
        self.blocks = []
        self.last = 0
        self._inline = None  # a NameInline whose record has not come yet: it may be in the next block

    def take(self, block, seen_again):
        """Adds a block; records before the positions read so far are dropped and counted in `seen_again`."""
        kept = 0
        self.blocks.append(block)
        for record in codec.decode(block.data, block.first, block.last, block.base_ticks):
            kept += record.kind != codec.kNameInline
            if record.position < self.last:
                seen_again[0] += 1
                continue
            if record.kind == codec.kNameInline:
                length = record.words[1]
                if length > (4 * record.cells - 3) * 8:
                    raise Damaged("an inline name of %d bytes in %d cells" % (length, record.cells))
                self._inline = b"".join(w.to_bytes(8, "little") for w in record.words[3:])[:length].decode("utf-8", "replace")
                continue
            inline, self._inline = (self._inline if record.name == codec.kInlineName else None), None
            self.records.append((record, block, inline))
        if kept != block.records:
            raise Damaged("lane %d.%d, positions %d to %d: %d records, the block says %d" % (
                self.process, self.index, block.first, block.last, kept, block.records))
        self.last = max(self.last, block.last)


def unpacked(chunk):
    """The chunk, or the one that it is the compressed form of.
    @errors Damaged: it unpacks to nothing, or to more or less than it says
    """
    if chunk.body is None or chunk.body._shape != "Packed":
        return chunk
    packed = chunk.body
    if packed.packing != kZstd or packed.bytes > frames.kMostBytes:
        raise Damaged("a Packed of packing %d and %d bytes" % (packed.packing, packed.bytes))
    import zstandard  # where dumps are packed alone

    try:
        data = zstandard.ZstdDecompressor().decompress(bytes(packed.data), max_output_size=packed.bytes)
    except zstandard.ZstdError as broken:
        raise Damaged("a Packed that does not unpack: %s" % broken) from broken
    inner = kDumpReader.root(data, b"RSD1", "Chunk") if len(data) == packed.bytes else None
    if inner is None or inner.body is None or inner.body._shape == "Packed":
        raise Damaged("a Packed that holds no chunk of %d bytes" % packed.bytes)
    return inner


class Dump:
    """What a .rsd file holds. `problem`: None, or why it is not whole (then everything before `end` bytes is here)."""

    def __init__(self, path):
        self.path = path
        self.header = None
        self.footer = None
        self.processes = {}
        self.names = {}
        self.attributes = {}
        self.lanes = {}
        self.seen_again = [0]
        self.unknown_bodies = 0
        with open(path, "rb") as file:
            read = frames.Frames(file.read(), frames.kDumpMagic)
        self.end, self.size, self.problem = read.end, read.size, read.problem
        if not read.payloads:
            raise Damaged("read %s: no whole frame (%s); not a dump" % (path, read.problem or "the file is empty"))
        for number, payload in enumerate(read.payloads):
            try:
                self._take(unpacked(kDumpReader.root(payload, b"RSD1", "Chunk")), number)
            except Damaged as broken:
                raise Damaged("read %s, frame %d: %s" % (path, number, broken)) from broken
        if self.problem:
            self.problem = "%s ends at byte %d of %d: %s" % (path, self.end, self.size, self.problem)
        elif self.footer is None:
            self.problem = "%s has no Footer: it was cut short at byte %d" % (path, self.end)

    def _take(self, chunk, number):
        kind = chunk.body._shape if chunk.body is not None else None
        if self.footer is not None:
            raise Damaged("a %s after the Footer" % kind)
        if (number == 0) != (kind == "FileHeader"):
            raise Damaged("a %s, expected %s" % (kind, "the FileHeader" if number == 0 else "no second one"))
        if kind is None:
            self.unknown_bodies += 1
        elif kind == "FileHeader":
            if chunk.body.min_reader > kVersion:
                raise Damaged("version %d wants a reader of %d, this one knows %d" % (chunk.body.version, chunk.body.min_reader, kVersion))
            self.header = chunk.body
        elif kind == "Process":
            self.processes[chunk.body.index] = chunk.body
        elif kind == "Names":
            self.names.setdefault(chunk.body.process, {}).update({n.id: n for n in chunk.body.names})
            self.attributes.setdefault(chunk.body.process, {}).update({a.id: a for a in chunk.body.attributes})
        elif kind == "Blocks":
            for block in chunk.body.blocks:
                if block.process not in self.processes:
                    raise Damaged("a block of process %d, which has not been described" % block.process)
                lane = self.lanes.setdefault((block.process, block.lane), Lane(block.process, block.lane))
                lane.take(block, self.seen_again)
        else:
            self.footer = chunk.body

    @property
    def node(self):
        return self.header.node

    def name(self, process, name_id, inline=None):
        """The text of a name id of that process; id 0 is no name.
        @errors Damaged: an id that no chunk has given
        """
        if name_id == 0:
            return kUnresolved
        if name_id == codec.kInlineName:
            if inline is None:
                raise Damaged("%s: an inline name without its NameInline" % self.path)
            return inline
        found = self.names.get(process, {}).get(name_id)
        if found is None:
            raise Damaged("%s: name %d of process %d is in no chunk" % (self.path, name_id, process))
        return found.text

    def attributes_of(self, process, name_id):
        """@errors Damaged: an attribute set that no chunk has given"""
        name = self.names.get(process, {}).get(name_id)
        if name is None or name.attribute == 0:
            return kNoAttributes
        found = self.attributes.get(process, {}).get(name.attribute)
        if found is None:
            raise Damaged("%s: attribute set %d of process %d is in no chunk" % (self.path, name.attribute, process))
        return Attributes(self.name(process, found.domain), self.name(process, found.category), found.colour, found.payload)

    def node_ns(self, ticks):
        """The node's own clock, raw: the job index says how to correct it."""
        c = self.header.calibration
        return c.reference_ns + round((ticks - c.reference_ticks) * 1e9 / c.ticks_per_second)

    def duration_ns(self, ticks):
        return ticks * 1e9 / self.header.calibration.ticks_per_second

    def lost(self):
        """Records that lanes or hooks lost: the lanes' sum, and what each process's hooks passed over."""
        if self.footer is None:
            return 0
        return self.footer.lost + sum(end.losses[i] for end in self.footer.processes for i in kPassedOver if i < len(end.losses))

    def accounts(self):
        """What does not add up, as sentences: written = kept + outside + lost for each lane, and kept is what the blocks hold."""
        wrong = []
        if self.footer is None:
            return wrong
        kept = {}
        for (process, lane), held in self.lanes.items():
            for record, block, _ in held.records:
                key = (process, lane, block.generation)
                kept[key] = kept.get(key, 0) + 1
        for lane in self.footer.lanes:
            key = (lane.process, lane.lane, lane.generation)
            here = kept.pop(key, 0)
            if lane.kept != here:
                wrong.append("lane %s: the footer says %d kept, the blocks hold %d" % (key, lane.kept, here))
            if lane.written != lane.kept + lane.outside + lane.lost:
                wrong.append("lane %s: %d written is not %d kept + %d outside + %d lost" % (
                    key, lane.written, lane.kept, lane.outside, lane.lost))
        wrong += ["lane %s: %d records, none in the footer" % item for item in kept.items()]
        if self.footer.records != sum(l.kept for l in self.footer.lanes):
            wrong.append("the footer's %d records are not the lanes' %d" % (self.footer.records, sum(l.kept for l in self.footer.lanes)))
        if self.footer.lost != sum(l.lost for l in self.footer.lanes):
            wrong.append("the footer's %d lost are not the lanes' %d" % (self.footer.lost, sum(l.lost for l in self.footer.lanes)))
        return wrong


def payload_value(attributes, argument):
    """What the argument of a record means; None: it is no payload."""
    kind = kPayloads[attributes.payload] if attributes.payload < len(kPayloads) else "none"
    raw = (argument & (1 << 64) - 1).to_bytes(8, "little")
    return None if kind == "none" else struct.unpack({"unsigned": "<Q", "signed": "<q", "double": "<d"}[kind], raw)[0]


def find_dumps(inputs):
    """The .rsd files that `inputs` (files or directories) name."""
    found = []
    for given in inputs:
        if os.path.isdir(given):
            found += sorted(os.path.join(given, f) for f in os.listdir(given) if f.endswith(".rsd"))
        elif given.endswith(".rsd"):
            found.append(given)
    return found
