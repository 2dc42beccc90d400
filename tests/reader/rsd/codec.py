"""Records out of a block's bytes, step by step as schema/README.md, "The block"."""
from . import Damaged

kMask = (1 << 64) - 1
kRange, kOperator, kAsyncBegin, kAsyncEnd, kRpcBegin, kRpcEnd, kContext, kMark, kIteration, kCounter, kNameInline = range(1, 12)
(kGpuKernel, kGpuCopy, kGpuMemset, kGpuApi, kGpuSync, kGpuOverhead, kGpuEvent, kGpuLink, kGpuDevice) = range(16, 25)
kInlineName = 0xFFFFFFFF
kUsualCells = {kRange: 1, kOperator: 2, kAsyncBegin: 1, kAsyncEnd: 1, kRpcBegin: 3, kRpcEnd: 1, kContext: 2, kMark: 1, kIteration: 1,
               kCounter: 1, kNameInline: 0, kGpuKernel: 3, kGpuCopy: 3, kGpuMemset: 2, kGpuApi: 2, kGpuSync: 2, kGpuOverhead: 2, kGpuEvent: 2, kGpuLink: 1,
               kGpuDevice: 3}
kOwnStates = 31  # kinds from here on share one state
kMostCells = 8


class Record:
    """kind, cells, flags, name (an id), words: [0, word 1, word 2, ...]; position: of its first cell in the lane."""

    __slots__ = ("position", "kind", "cells", "flags", "name", "words")

    def __init__(self, position, kind, cells, flags, name, words):
        self.position, self.kind, self.cells, self.flags, self.name, self.words = position, kind, cells, flags, name, words

    @property
    def source(self):
        return self.flags >> 4

    @property
    def detail(self):
        return self.flags & 15


class _Kind:
    def __init__(self, cells):
        self.flags = 0
        self.cells = cells
        self.words = [0] * (4 * kMostCells)


class _Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        if self.at >= len(self.data):
            raise Damaged("a record that goes on beyond its block's data (%d bytes)" % len(self.data))
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = 0
        for place in range(10):
            byte = self.byte()
            value |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                return value & kMask
        raise Damaged("a varint of more than 10 bytes at byte %d of a block" % self.at)

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


def decode(data, first, last, base_ticks):
    """Yields the Records of a block that holds positions [first, last).
    @errors Damaged: bytes or positions that cannot be
    """
    source, time, position = _Bytes(data), base_ticks, first
    states = {}
    while source.at < len(data):
        tag = source.byte()
        if tag == 0:
            position += source.varint()
            continue
        if tag & 0x80:
            raise Damaged("a tag with bit 7 set at byte %d of a block" % (source.at - 1))
        kind = tag & 31
        if kind == kOwnStates:
            kind = source.varint()
            if kind < kOwnStates:
                raise Damaged("kind %d written the long way" % kind)
        state = states.get(min(kind, kOwnStates))
        if state is None:
            state = states[min(kind, kOwnStates)] = _Kind(kUsualCells.get(kind, 0))
        if tag & 32:
            state.flags = source.byte()
            state.cells = source.byte()
        if not 1 <= state.cells <= kMostCells:
            raise Damaged("a record of kind %d with %d cells" % (kind, state.cells))
        name = source.varint()
        time = (time + source.zigzag()) & kMask
        words = [0, time, 0, 0]
        if kind in (kRange, kOperator):
            words[2] = (time + source.varint()) & kMask
        else:
            words[2] = (state.words[2] + source.zigzag()) & kMask
        if tag & 64:
            words[3] = source.zigzag() & kMask
        for index in range(4, 4 * state.cells):
            words.append((state.words[index] + source.zigzag()) & kMask)
        state.words[2] = words[2]
        state.words[4:len(words)] = words[4:]
        if name > kInlineName:
            raise Damaged("a name id of %d" % name)
        yield Record(position, kind, state.cells, state.flags, name, words)
        position += state.cells
    if position > last:
        raise Damaged("records up to position %d in a block that ends at %d" % (position, last))
