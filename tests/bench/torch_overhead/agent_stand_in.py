"""Plays the agent for a bench: makes the control page, turns captures on and off, waits until shims have acted, empties lanes.

Only what a measurement needs, and between its blocks, so that no agent shares the two cores with what is measured. Layouts: schema/control_page.hpp,
schema/segment.hpp, schema/lane.hpp.
"""
import ctypes
import glob
import mmap
import os
import struct
import time

CONTROL_MAGIC, CONTROL_LAYOUT, MACHINE_MARK = 0x314C525443445352, 1, 0x86640102
CAPTURE_WORD_AT = 16
TICKS_SOURCE_AT, TSC = 28, 1
MACHINE_PROC_AT, MACHINE_PID_NAMESPACE = 80, 0xEFFFFFFC
ATTACHED_WORD_AT, LANES_IN_USE_AT, PID_AT, LOSSES_AT, TORCH_LEVEL_AT = 24, 28, 32, 176, 360 + 128
LANE_TABLE_AT = 8192 + 8192 * 16 + 384 * 1024 + 1024 * 32
LANE_ENTRY_BYTES, LANE_DROPPED_AT, LANE_TAIL_AT = 16, 8, 64
SYS_FUTEX, FUTEX_WAKE = 202, 1
DEADLINE_S = 30.0


def wait_until(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("wait for " + what + ": not within %g s" % DEADLINE_S)
        time.sleep(0.001)


def proc_mark(status):
    """schema/control_page.hpp, proc_mark()"""
    factor, word = 0x9E3779B97F4A7C15, 2**64
    mark = status.st_dev * factor % word ^ status.st_ctime_ns // 10**9
    return mark * factor % word ^ status.st_ctime_ns % 10**9 | 1


def make_control_page(directory):
    """A job directory with a control page, capture off."""
    os.makedirs(directory, mode=0o700)
    page = bytearray(4096)
    struct.pack_into("<QII", page, 0, CONTROL_MAGIC, CONTROL_LAYOUT, MACHINE_MARK)
    struct.pack_into("<II", page, CAPTURE_WORD_AT, 1 << 2, 0xFFFFFFFF)
    struct.pack_into("<I", page, TICKS_SOURCE_AT, TSC)
    struct.pack_into("<QQ", page, 32, 0, 2**64 - 1)
    struct.pack_into("<II", page, 48, 256, 4096)
    struct.pack_into("<QQQ", page, 56, 256 << 20, 2 << 30, 2 << 30)
    if os.stat("/proc/self/ns/pid").st_ino == MACHINE_PID_NAMESPACE:
        struct.pack_into("<Q", page, MACHINE_PROC_AT, proc_mark(os.stat("/proc")))
    path = os.path.join(directory, "control")
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(page)


class Segment:
    """One process's segment, mapped."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def _u32(self, at):
        return struct.unpack_from("<I", self._map, at)[0]

    def _u64(self, at):
        return struct.unpack_from("<Q", self._map, at)[0]

    def attached_word(self):
        return self._u32(ATTACHED_WORD_AT)

    def lanes(self):
        return self._u32(LANES_IN_USE_AT)

    def level(self):
        return self._u32(TORCH_LEVEL_AT)

    def _lane_offsets(self):
        entries = (self._u64(LANE_TABLE_AT + i * LANE_ENTRY_BYTES) for i in range(self.lanes()))
        return [offset for offset in entries if offset]

    def cells(self):
        return sum(self._u64(offset) for offset in self._lane_offsets())

    def losses(self):
        return sum(self._u64(offset + LANE_DROPPED_AT) for offset in self._lane_offsets()) + sum(
            struct.unpack_from("<16Q", self._map, LOSSES_AT))

    def empty(self):
        for offset in self._lane_offsets():
            struct.pack_into("<Q", self._map, offset + LANE_TAIL_AT, self._u64(offset))


class StandIn:
    """Captures in the processes `pids` of a job directory."""

    def __init__(self, directory, pids):
        with open(os.path.join(directory, "control"), "r+b") as file:
            self._page = mmap.mmap(file.fileno(), 4096)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._page, CAPTURE_WORD_AT))
        self._libc = ctypes.CDLL(None)
        self.segments = [Segment(self._path_of(directory, pid)) for pid in pids]

    @staticmethod
    def _path_of(directory, pid):
        pattern = os.path.join(directory, "*.%d.*" % pid)
        wait_until(lambda: glob.glob(pattern), "the segment of process %d" % pid)
        return glob.glob(pattern)[0]

    def capture(self, on, attaches=True):
        """Returns when each shim has attached, or detached; those whose sources act alone do neither."""
        generation = (struct.unpack_from("<I", self._page, CAPTURE_WORD_AT)[0] >> 2) + 1
        word = generation << 2 | (1 if on else 0)
        struct.pack_into("<I", self._page, CAPTURE_WORD_AT, word)
        self._libc.syscall(SYS_FUTEX, ctypes.c_void_p(self._address), FUTEX_WAKE, 2**31 - 1, None, None, 0)
        if attaches:
            wait_until(lambda: all(s.attached_word() == word for s in self.segments), "the shims")
        self.empty()

    def empty(self):
        for segment in self.segments:
            segment.empty()

    def losses(self):
        return sum(segment.losses() for segment in self.segments)
