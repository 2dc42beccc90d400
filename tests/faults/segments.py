"""A segment's file as few bytes: its pages that are not zero, and what of it a test may change."""
import gzip
import os
import struct

kPage = 4096
kHeader = struct.Struct("<QII")
kPidAt, kNamespaceAt, kStartAt, kSizeAt = 32, 48, 56, 64
kLayoutAt = 8
# schema/segment.hpp: where the lane table stands; schema/lane.hpp: a lane's words.
kLaneTableAt = 8192 + 8192 * 16 + 393216 + 1024 * 32
kFirstDropAt, kCellBytes, kRange = 16, 32, 1


def pages_of(path):
    pages, at = {}, 0
    with open(path, "rb") as file:
        while True:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // kPage * kPage
            except OSError:  # no data from here on
                return pages
            page = os.pread(file.fileno(), kPage, at)
            if page.strip(b"\0"):
                pages[at] = page
            at += kPage


def save(pages, path):
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        for at, page in sorted(pages.items()):
            out.write(struct.pack("<Q", at) + page)


def load(path):
    with gzip.open(path, "rb") as file:
        data = file.read()
    step = 8 + kPage
    return {struct.unpack_from("<Q", data, at)[0]: data[at + 8:at + step] for at in range(0, len(data), step)}


def word(pages, at, form="<Q"):
    return struct.unpack_from(form, pages.get(at // kPage * kPage, bytes(kPage)), at % kPage)[0]


def change(pages, at, value, form="<Q"):
    page = bytearray(pages.get(at // kPage * kPage, bytes(kPage)))
    struct.pack_into(form, page, at % kPage, value)
    pages[at // kPage * kPage] = bytes(page)


def put(pages, folder):
    """Writes it where an agent finds it: a dead process's, since nobody holds its lock. @return its path"""
    name = "%d.%d.%d" % (word(pages, kNamespaceAt), word(pages, kPidAt, "<i"), word(pages, kStartAt))
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "wb") as out:
        out.truncate(word(pages, kSizeAt))
        for at, page in pages.items():
            os.pwrite(out.fileno(), page, at)
    return path


def to_early_ticks(pages):
    """Ticks of its machine become small ones, which have been on every machine. Of a segment with one lane of ranges alone."""
    start = word(pages, kStartAt)
    lane = word(pages, kLaneTableAt)
    for position in range(word(pages, lane)):
        at = lane + kPage + kCellBytes * position
        assert word(pages, at) & 0xFFFF == kRange
        for place in (8, 16):
            change(pages, at + place, word(pages, at + place) - start + 1)
    change(pages, kStartAt, 1)
    return start
