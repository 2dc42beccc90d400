"""A file is a sequence of frames: magic u32, length u32, XXH3-64 u64, the FlatBuffer, zeros up to a multiple of 8."""
import struct

import xxhash

kDumpMagic = 0x46445352
kJobMagic = 0x464A5352
kMostBytes = 64 << 20


class Frames:
    """The whole frames at the file's start, and why the rest (if any) is not one.

    payloads: [bytes]; end: where the last whole frame ends; size: the file's; problem: None, or what stands at `end`.
    """

    def __init__(self, data, magic):
        self.size = len(data)
        self.payloads = []
        self.end = 0
        self.problem = None
        while self.end < self.size and self.problem is None:
            self._take(data, magic)

    def _take(self, data, magic):
        left = self.size - self.end
        if left < 16:
            self.problem = "a frame of %d bytes, its head alone is 16" % left
            return
        found, length, checksum = struct.unpack_from("<IIQ", data, self.end)
        whole = 16 + length + (-length % 8)
        if found != magic:
            self.problem = "magic 0x%08x, expected 0x%08x" % (found, magic)
        elif length > kMostBytes:
            self.problem = "a frame of %d bytes, at most %d are allowed" % (length, kMostBytes)
        elif whole > left:
            self.problem = "a frame of %d bytes of which %d are there" % (whole, left)
        else:
            payload = data[self.end + 16:self.end + 16 + length]
            if xxhash.xxh3_64_intdigest(payload, seed=0) != checksum:
                self.problem = "a frame whose checksum does not hold"
            else:
                self.payloads.append(payload)
                self.end += whole


def frame(payload, magic):
    """The frame around `payload`: what the tests write."""
    head = struct.pack("<IIQ", magic, len(payload), xxhash.xxh3_64_intdigest(payload, seed=0))
    return head + payload + bytes(-len(payload) % 8)
