"""The test's side of board.hpp."""
import mmap
import os
import struct

import numpy

kCapacity = 1 << 20
kLogAt = 32  # offsetof(Board, log)
kEntry = numpy.dtype([("thread", "<u4"), ("number", "<u4"), ("ticks", "<u8")])
kBegins, kRests = 0xFFFFFFFE, 0xFFFFFFFF


class Board:
    def __init__(self, path):
        self.path = path
        size = kLogAt + kCapacity * kEntry.itemsize
        with open(path, "w+b") as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
        struct.pack_into("<I", self._map, 12, kCapacity)

    def _word(self, offset, form="<I"):
        return struct.unpack_from(form, self._map, offset)[0]

    def go(self, round):
        struct.pack_into("<I", self._map, 0, round)

    def resting(self):
        return self._word(4)

    def threads(self):
        return self._word(8)

    def lives(self):
        return self._word(24, "<Q")

    def empty(self):
        """At rest only. Old entries have no thread any more."""
        end = kLogAt + min(self._word(16, "<Q"), kCapacity) * kEntry.itemsize
        self._map[kLogAt:end] = bytes(end - kLogAt)
        struct.pack_into("<Q", self._map, 16, 0)

    def log(self):
        """At rest: all entries of the round, a copy. Where the log is full nothing is tried any more."""
        count = min(self._word(16, "<Q"), kCapacity)
        return numpy.frombuffer(self._map, kEntry, count, kLogAt).copy()

    def close(self):
        self._map.close()
        os.unlink(self.path)
