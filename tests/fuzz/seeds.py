"""Inputs by hand, one for each thing that a segment does or suffers: what the fuzzer starts from. script.hpp says what the bytes mean."""
import struct

kOrders = ("record", "open", "name", "thread", "drop", "cells", "commit", "word", "truncate", "later", "drain", "seal", "capture", "take_over",
           "look", "instants")
kParts = ("header", "names", "name_bytes", "attributes", "lane_table", "lane", "open_stack", "cells")
kRecords = ("range", "operator", "async_begin", "async_end", "rpc_begin", "rpc_end", "context", "mark", "iteration", "name_inline")
kFresh, kCapturing, kLate, kLast = 1, 2, 4, 8
kKeep, kKeepLast, kRefuse = 0, 1, 6


def order(what, where=0, index=0, value=0):
    return struct.pack("<BBHQ", kOrders.index(what), where, index, value & (1 << 64) - 1)


def script(*orders, lanes=1, capacities=0, flags=kFresh | kCapturing, instants=0):
    return bytes([lanes - 1, capacities, flags, instants]) + b"".join(orders)


def record(kind, lane=0, value=1):
    return order("record", lane, kRecords.index(kind), value)


def word(part, place, value, width=8, lane=0):
    """@param place  in bytes from the part's begin"""
    return order("word", kParts.index(part) | (width.bit_length() - 1) << 3 | lane << 5, place // width, value)


def later(looks, what):
    """`what` happens between two looks of the agent, that many from now."""
    return order("later", 0, looks) + what


kTaken = order("drain") + order("seal", kKeep)
kRing = [record("range", value=n) for n in range(12)]
kSome = [record(kind, value=n * 257 + 1) for n, kind in enumerate(kRecords)]


def seeds():
    """Pairs of (what it is, the input)."""
    yield "nothing", script()
    yield "one record", script(record("range"), kTaken)
    yield "every kind", script(*kSome, kTaken, lanes=2, capacities=0x0F)
    yield "a ring that wraps, pads and overruns", script(*(kRing + [kTaken]) * 4, *kRing, *kRing, kTaken)
    yield "positions far from the first", script(*kSome, kTaken, *kSome, kTaken, flags=kFresh | kCapturing | kLate, capacities=2)
    yield "positions where 64 bits end", script(*(kSome + [kTaken]) * 4, flags=kFresh | kCapturing | kLast, capacities=2)
    yield "drops", script(record("range"), order("drop", 0, 0, 3), kTaken, order("drop", 0, 0, 5), kTaken)
    yield "threads come and go", script(*([record("range"), order("thread"), kTaken, order("thread"), record("mark")] * 3), kTaken)
    yield "open ranges", script(*[order("open", 0, 1 + n, n) for n in range(70)], order("seal", kKeepLast), order("open"), kTaken)
    yield "names and their sets", script(order("name", 3, 1, 0x20103), order("name", 0, 1, 20), *[record("range", value=n) for n in range(6)], kTaken)
    yield "a sink that refuses", script(*kSome, order("drain"), order("seal", kRefuse), *kSome, kTaken, capacities=2)
    yield "instants", script(*kRing, order("instants", 0, 6, 4), kTaken, instants=40)
    yield "captures come and go", script(record("range"), order("capture", 1), *kSome, kTaken, order("capture"), *kSome, kTaken, capacities=2, flags=0)
    yield "another agent", script(*kSome, order("drain"), order("take_over"), order("capture", 1), *kSome, kTaken, capacities=2)
    yield "all that is read beside the drain", script(*kSome, order("look"), kTaken, order("look"), capacities=2)
    for what, place in (("magic", 0), ("layout", 8), ("state", 16), ("lanes in use", 28), ("size", 64), ("worker's name", 0xa0)):
        for value in (0, 0xFFFFFFFF):
            yield "header: %s %d" % (what, value), script(record("range"), kTaken, word("header", place, value, 4), order("look"), order("take_over"),
                                                          order("capture", 1), order("look"), record("range"), kTaken)
    for value in (1 << 50, -4096, 4096, 0x8E008, 0x8E000 + 64, 0x8E000 + 3 * 4096):
        yield "a lane's offset %d" % value, script(record("range"), word("lane_table", 0, value), kTaken, lanes=2)
    for value in (0, 100, 1 << 31, 1 << 26, 4096, 1):
        yield "a lane's capacity %d" % value, script(record("range"), word("lane_table", 8, value, 4), kTaken, lanes=2)
    for value in (-1, 1, 1000, 1 << 63):
        yield "committed %d" % value, script(*kRing, kTaken, order("commit", 0, 0, value), kTaken, record("range", 1), kTaken, lanes=2)
    for kind, cells in ((0, 0), (0, 7), (0, 255), (1, 0), (1, 9), (2, 1), (5, 1), (7, 1), (11, 1), (11, 8), (12, 1), (31, 8), (0xFFFF, 8)):
        yield "kind %d with %d cells" % (kind, cells), script(
            record("range"), order("cells", 0, max(1, cells % 16), kind | cells << 16 | 3 << 32), record("range"), kTaken, lanes=2, capacities=2)
    for place, value, width in ((4, 0xFFFFFFFF, 4), (4, 393216, 4), (8, 1025, 2), (12, 1025, 2), (14, 1, 2)):
        yield "a name's byte %d says %d" % (place, value), script(word("names", place, value, width), *kSome, kTaken, capacities=2)
    yield "a set that is its own domain", script(order("name", 3, 0, 0x0202), order("name", 0, 1, 5), word("names", 12, 1, 2), *kSome, kTaken)
    for place in (0, 8, 32, 64, 132):
        for value in (0, ~0):
            yield "a lane's byte %d says %d between looks" % (place, value), script(
                *[later(looks, word("lane", place, value)) for looks in (2, 4)], *kRing, kTaken, kTaken, record("range", 1), lanes=2)
    yield "a depth beyond the stack", script(word("lane", 40, 0xFFFFFFFF, 4), order("seal", kKeepLast), kTaken)
    yield "a state that changes at each look", script(*[later(n, word("lane", 132, 4 * n + 1, 4)) for n in range(1, 12)], *kRing, kTaken, kTaken)
    for edge in range(11):
        yield "truncated, edge %d" % edge, script(*kRing, kTaken, record("range"), order("truncate", 0, edge, 700000), kTaken, order("look"))
        yield "truncated between looks, edge %d" % edge, script(
            *kRing, *[later(n, order("truncate", 0, edge, 600000 * n)) for n in (2, 3)], order("drain"), order("truncate", 0, 9), kTaken,
            order("take_over"))
