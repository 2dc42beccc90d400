#!/usr/bin/python3
"""The reader's own tests: bytes made by hand and by flatc come out as meant, and deliberate damage is seen."""
import os
import shutil
import sys
import tempfile
import unittest

import zstandard

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sample
from rsd import Damaged, codec, frames
from rsd.dump import Dump
from rsd.events import Events
from rsd.index import Job, read_index

kTorch = 1 << 4


class Codec(unittest.TestCase):
    def decode(self, data, first=0, last=100, base=1000):
        return list(codec.decode(bytes(data), first, last, base))

    def test_a_range_as_the_steps_say(self):
        # tag: kind 1, extras, word 3; flags, cells; name 5; begin +20 (zigzag 40); end - begin 7; word 3 = -1 (zigzag 1)
        (r,) = self.decode([1 | 32 | 64, kTorch, 1, 5, 40, 7, 1], first=8)
        self.assertEqual((r.position, r.kind, r.cells, r.flags, r.name), (8, codec.kRange, 1, kTorch, 5))
        self.assertEqual(r.words[1:], [1020, 1027, (1 << 64) - 1])

    def test_flags_stay_and_time_goes_on_from_word_1(self):
        data = [1 | 32, kTorch, 1, 5, 40, 7] + [1, 6, 3, 2]  # the second: begin -2 against 1020
        first, second = self.decode(data)
        self.assertEqual((second.position, second.flags, second.name, second.words[1], second.words[2]), (1, kTorch, 6, 1018, 1020))

    def test_kinds_keep_states_of_their_own(self):
        # async begin key 9, a mark with value 3, async begin key 10: coded against 9
        data = [3, 1, 2, 18, 8, 2, 2, 6, 3, 1, 2, 2]
        keys = [r.words[2] for r in self.decode(data)]
        self.assertEqual(keys, [9, 3, 10])

    def test_an_rpc_begin_has_twelve_words(self):
        deltas = b"".join(sample.zigzag(n) for n in (11, 12, 13, 14, 15, 16, 17, 18))
        (r,) = self.decode(bytes([5, 7, 2, 8]) + deltas)
        self.assertEqual(r.cells, 3)
        self.assertEqual(r.words, [0, 1001, 4, 0, 11, 12, 13, 14, 15, 16, 17, 18])

    def test_pads_move_the_position_only(self):
        records = self.decode(bytes([1, 5, 0, 0]) + b"\0" + sample.varint(300) + bytes([1, 5, 0, 0]), last=400)
        self.assertEqual([r.position for r in records], [0, 301])

    def test_kinds_from_31_share_a_state(self):
        data = bytes([31 | 32]) + sample.varint(40) + bytes([0, 1, 0, 0, 10]) + bytes([31]) + sample.varint(31) + bytes([0, 0, 2])
        a, b = self.decode(data)
        self.assertEqual((a.kind, a.words[2], b.kind, b.cells, b.words[2]), (40, 5, 31, 1, 6))

    def test_sums_wrap_at_64_bits(self):
        (r,) = self.decode([1, 1, 1, 0], base=0)
        self.assertEqual(r.words[1], (1 << 64) - 1)

    def test_damage_is_seen(self):
        for what, data in (("cut", [1, 5, 40]), ("bit 7", [129, 5, 40, 1]), ("no cells", [12, 5, 0, 0]), ("long varint", [1] + [255] * 11),
                           ("cells 9", [1 | 32, 0, 9, 1, 0, 0]), ("short kind the long way", [31, 3, 0, 0, 0])):
            with self.subTest(what), self.assertRaises(Damaged):
                self.decode(data)
        with self.assertRaises(Damaged):
            self.decode([1, 5, 0, 0, 1, 5, 0, 0], last=1)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def dump(self, *parts, name="n0.rsd"):
        return Dump(sample.write(self.folder, name, *parts))

    def small(self):
        """Two ranges on one lane, whole."""
        return [sample.header(), sample.process(), sample.names(n5="aten::add"),
                sample.blocks(sample.block([1 | 32, kTorch, 1, 5, 40, 7, 1, 5, 3, 2], 2, cells=2)), sample.footer(sample.totals(2))]

    def test_a_whole_dump(self):
        dump = self.dump(*self.small())
        events = Events(dump)
        self.assertIsNone(dump.problem)
        self.assertEqual(dump.accounts(), [])
        self.assertEqual([(r.name, r.begin, r.end, r.source) for r in events.ranges], [("aten::add", 1020, 1027, 1), ("aten::add", 1018, 1020, 1)])
        self.assertEqual(dump.node_ns(1020), 5010)

    def test_each_cut_is_seen_and_leaves_whole_chunks(self):
        whole = b"".join(self.small())
        edges, at = [0], 0
        for part in self.small():
            at += len(part)
            edges.append(at)
        for cut in range(len(self.small()[0]), len(whole), 13):
            dump = self.dump(whole[:cut])
            self.assertIsNotNone(dump.problem, cut)
            self.assertEqual(dump.end, max(e for e in edges if e <= cut))

    def test_each_flipped_byte_is_seen(self):
        parts = self.small()
        for number, part in enumerate(parts):
            used = 16 + int.from_bytes(part[4:8], "little")  # the padding after it is not checked
            for place in list(range(0, 16)) + list(range(16, used, 7)):
                broken = part[:place] + bytes([part[place] ^ 0x10]) + part[place + 1:]
                try:
                    problem = self.dump(*parts[:number], broken, *parts[number + 1:]).problem
                except Damaged as raised:
                    problem = str(raised)
                self.assertIsNotNone(problem, (number, place))

    def test_what_follows_the_footer_is_damage(self):
        with self.assertRaises(Damaged):
            self.dump(*self.small(), sample.process())
        self.assertIn("ends at byte", self.dump(*self.small(), b"more").problem)

    def test_a_newer_dump_is_refused_and_a_grown_one_read(self):
        with self.assertRaisesRegex(Damaged, "wants a reader of 3"):
            self.dump(sample.header(min_reader=3, version=3))
        self.assertEqual(self.dump(sample.header(version=9), sample.footer()).node, "n0")

    def test_a_compressed_chunk_is_the_chunk_in_it(self):
        header, process, names, blocks, footer = self.small()
        plain = self.dump(header, process, names, blocks, footer)
        inner, = frames.Frames(blocks, frames.kDumpMagic).payloads
        data = list(zstandard.ZstdCompressor(level=1).compress(inner))
        packed = sample.chunk("Packed", bytes=len(inner), data=data)
        self.assertEqual(self.dump(header, process, names, packed, footer).accounts(), plain.accounts())
        for fields in ({"bytes": len(inner) - 1}, {"bytes": len(inner) + 1}, {"data": data[:-9]}, {"bytes": (64 << 20) + 1}):
            with self.assertRaisesRegex(Damaged, "Packed"):
                self.dump(header, process, names, sample.chunk("Packed", **{"bytes": len(inner), "data": data, **fields}), footer)

    def test_no_dump_at_all(self):
        for data in (b"", b"x" * 40, frames.frame(b"12345678", frames.kDumpMagic)):
            with self.assertRaises(Damaged):
                self.dump(data)

    def test_accounts_that_do_not_add_up(self):
        parts = self.small()
        self.assertEqual(len(self.dump(*parts[:4], sample.footer(sample.totals(3))).accounts()), 1)
        self.assertEqual(len(self.dump(*parts[:4], sample.footer(sample.totals(2, written=4, lost=1))).accounts()), 1)
        self.assertEqual(len(self.dump(*parts[:4], sample.footer(sample.totals(2), records=7)).accounts()), 1)
        self.assertEqual(self.dump(*parts[:4], sample.footer(sample.totals(2, written=9, lost=3, outside=4))).accounts(), [])
        self.assertEqual(len(self.dump(*parts[:4], sample.footer()).accounts()), 1)

    def test_a_block_that_lies_about_its_records(self):
        parts = self.small()
        parts[3] = sample.blocks(sample.block([1, 5, 40, 7], 2, cells=2))
        with self.assertRaisesRegex(Damaged, "the block says 2"):
            self.dump(*parts)

    def test_what_was_read_before_is_dropped(self):
        parts = self.small()
        again = sample.blocks(sample.block([1, 5, 3, 2, 1, 5, 60, 9], 2, first=1, last=3, base_ticks=1020))
        dump = self.dump(*parts[:4], again, sample.footer(sample.totals(3)))
        self.assertEqual([r.position for r, _, _ in dump.lanes[0, 0].records], [0, 1, 2])
        self.assertEqual((dump.seen_again[0], dump.accounts()), (1, []))

    def test_inline_names_even_across_blocks(self):
        text = "a name of 26 bytes, inline"
        words = text.encode().ljust(32, b"\0")
        parts = [sample.varint(0), sample.zigzag(26 - 1000), sample.zigzag(77)]
        values = [int.from_bytes(words[8 * i:8 * i + 8], "little") for i in range(4)] + [0]
        signed = [v - (1 << 64) if v >> 63 else v for v in values]
        inline = bytes([11 | 32 | 64, kTorch, 2]) + b"".join(parts) + b"".join(sample.zigzag(v) for v in signed)
        mark = bytes([1]) + sample.varint(0xFFFFFFFF) + bytes([40, 7])
        dump = self.dump(sample.header(), sample.process(), sample.blocks(sample.block(inline, 0, cells=2)),
                         sample.blocks(sample.block(mark, 1, first=2, cells=1)), sample.footer(sample.totals(1)))
        self.assertEqual([r.name for r in Events(dump).ranges], [text])
        self.assertEqual(dump.accounts(), [])

    def test_an_unknown_name_is_damage(self):
        parts = self.small()
        del parts[2]
        with self.assertRaisesRegex(Damaged, "in no chunk"):
            Events(self.dump(*parts))


def record(kind, cells, time, *words, flags=kTorch, name=0, base=1000):
    """One record with extras, at the begin of its block: words are word 2, 3, 4, ..."""
    word3 = words[1] if len(words) > 1 else 0
    out = bytes([kind | 32 | (64 if word3 else 0), flags, cells]) + sample.varint(name) + sample.zigzag(time - base)
    out += sample.varint(words[0] - time) if kind in (1, 2) else sample.zigzag(words[0])
    if word3:
        out += sample.zigzag(word3)
    return out + b"".join(sample.zigzag(w) for w in words[2:])


class What(unittest.TestCase):
    """Records to events: each block here holds one record, so that every delta is against zero."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def events(self, *lanes, fate="Running", opens=None, iterations=None):
        """lanes: lists of (record bytes, cells); one block a record. opens: of the last block of lane 0."""
        made, lane_totals = [], []
        for number, lane in enumerate(lanes):
            at = 0
            for place, (data, cells) in enumerate(lane):
                extra = {"open": opens} if opens and number == 0 and place == len(lane) - 1 else {}
                made.append(sample.block(data, 1, first=at, cells=cells, lane=number, **extra))
                at += cells
            lane_totals.append(sample.totals(len(lane), lane=number))
        path = sample.write(self.folder, "n0.rsd", sample.header(), sample.process(),
                            sample.names(n1="f", n2="w0", n3="w1", n4="mod"), sample.blocks(*made),
                            sample.footer(*lane_totals, processes=[{"process": 0, "fate": fate, **({"iterations": iterations} if iterations else {})}]))
        dump = Dump(path)
        self.assertEqual((dump.problem, dump.accounts()), (None, []))
        return Events(dump)

    def test_async_ranges_pair_by_key_on_any_lane(self):
        events = self.events([(record(4, 1, 1900, 9), 1)], [(record(3, 1, 1100, 9, name=1), 1), (record(3, 1, 1200, 10, name=1), 1)],
                             [(record(4, 1, 1001, 8), 1)])
        self.assertEqual([(r.kind, r.begin, r.end) for r in events.ranges], [("async", 1100, 1900), ("async", 1200, None)])
        self.assertEqual(events.ends_alone, 1)

    def rpc(self, time, key, side, parent=0):
        last = 1 | side << 8 | 0 << 16 | 1 << 32  # mode sync, side, self id 0, peer id 1
        return (record(5, 3, time, key, 64, 0, 0, 777, parent, 3 | 2 << 32, 4 | 259 << 32, 5, last, name=1), 3)

    def test_an_rpc_half(self):
        events = self.events([self.rpc(1100, 7, 0), (record(6, 1, 1300, 7, 2 << 56 | 99), 1)])
        (h,) = events.halves
        self.assertEqual((h.name, h.peer, h.self_name, h.module, h.wire_type, h.wire_id), ("f", "w1", "w0", "mod", 259, 5))
        self.assertEqual((h.mode, h.side, h.self_id, h.peer_id, h.span, h.key, h.begin, h.end), (1, 0, 0, 1, 777, 7, 1100, 1300))
        self.assertEqual((h.status, h.answer_bytes, h.request_bytes), (2, 99, 64))

    def test_contexts_hold_from_switch_to_switch(self):
        lane = [self.rpc(1010, 7, 1), (record(7, 2, 1100, 7, 0, 0, 0, 777, 0, flags=kTorch | 1), 2), (record(1, 1, 1110, 1120, name=1), 1),
                (record(7, 2, 1200, 0, 0, 0, 0, 0, 0), 2), (record(1, 1, 1210, 1220, name=1), 1), (record(1, 1, 1050, 1230, name=1), 1)]
        events = self.events(lane)
        self.assertEqual([r.context for r in events.ranges], [7, None, None])
        self.assertIs(events.served_by(7, 0), events.halves[0])

    def test_after_a_drop_the_context_is_unknown_until_it_is_repeated(self):
        lane = [(record(7, 2, 1100, 7, 0, 0, 0, 777, 0, flags=kTorch | 1), 2), (record(1, 1, 1110, 1120, name=1), 1),
                (record(7, 2, 1500, 7, 0, 0, 0, 777, 0, flags=kTorch | 3), 2), (record(1, 1, 1400, 1510, name=1), 1),
                (record(1, 1, 1501, 1509, name=1), 1)]
        self.assertEqual([r.context for r in self.events(lane).ranges], [7, "unknown", 7])

    def test_open_ranges_of_the_last_block(self):
        opens = [{"begin": 1050, "key": 0, "argument": 0, "what": 1 << 32 | kTorch << 24 | 1 << 16 | 1},
                 {"begin": 1110, "key": 0, "argument": 0, "what": 1 << 32 | kTorch << 24 | 1 << 16 | 1}]
        events = self.events([(record(1, 1, 1110, 1120, name=1), 1)], opens=opens, fate="Killed")
        self.assertEqual([(r.kind, r.begin, r.end) for r in events.ranges], [("range", 1110, 1120), ("open", 1050, None)])
        self.assertTrue(events.killed(0))

    def gpu(self, kind, cells, time, *words, detail=0, name=0):
        """words: 2, 3, ...; what the kind has beyond them is 0."""
        return (record(kind, cells, time, *words, *[0] * (4 * cells - 2 - len(words)), flags=0x50 | detail, name=name), cells)

    def test_a_kernel_and_a_copy_have_their_fields_and_belong_to_call_range_and_request(self):
        thread = [self.rpc(1010, 7, 1), (record(7, 2, 1100, 7, 0, 0, 0, 777, 0, flags=kTorch | 1), 2),
                  (record(1, 1, 1110, 1190, name=1), 1), (record(1, 1, 1100, 1290, name=2), 1), (record(1, 1, 1130, 1140, name=3), 1)]
        told = [self.gpu(16, 3, 1500, 1600, 9 | 1 << 32, 2 | 7 << 32, 128 | 3 << 32, 1 | 256 << 32, 2 | 4 << 32, 64 | 96 << 32, 40 | 5 << 32, 77, 1490, name=4),
                self.gpu(17, 3, 1700, 1710, 10 | 1 << 32, 2 | 7 << 32, 4096, 1 | 3 << 8 | 1 << 16 | 6 << 32, 0, 0 | 1 << 32, detail=1),
                self.gpu(19, 2, 1121, 1125, 9, 42 | 13 << 32, detail=1, name=2), self.gpu(19, 2, 1120, 1128, 9, 42 | 211 << 32, name=1),
                self.gpu(23, 1, 1120, 4711, 9, detail=3), self.gpu(24, 3, 1500, 80 << 30, 1 | 132 << 32, 9, name=3)]
        events = self.events(thread, told)
        kernel, copy = events.gpu.work
        self.assertEqual((kernel.what, kernel.name, kernel.begin, kernel.end, kernel.correlation, kernel.device, kernel.context, kernel.stream),
                         ("kernel", "mod", 1500, 1600, 9, 1, 2, 7))
        self.assertEqual((kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z), (128, 3, 1, 256, 2, 4))
        self.assertEqual((kernel.static_shared, kernel.dynamic_shared, kernel.registers, kernel.graph, kernel.graph_node, kernel.queued),
                         (64, 96, 40, 5, 77, 1490))
        self.assertEqual((copy.what, copy.detail, copy.bytes, copy.source_memory, copy.destination_memory, copy.asynchronous, copy.graph,
                          copy.source_device, copy.destination_device), ("copy", 1, 4096, 1, 3, True, 6, 0, 1))
        call = events.gpu.call_of(kernel)
        self.assertEqual((call.begin, call.end, call.thread, call.callback, call.detail), (1120, 1128, 42, 211, 0))
        self.assertIsNone(events.gpu.call_of(copy))
        self.assertEqual(events.gpu.range_of(events, call).begin, 1110)
        self.assertEqual(events.gpu.context_of(events, call), 7)
        self.assertEqual([(link.id, link.correlation, link.detail) for link in events.gpu.links], [(4711, 9, 3)])
        self.assertEqual((events.gpu.devices[0, 1].name, events.gpu.devices[0, 1].processors, events.gpu.devices[0, 1].memory), ("w1", 132, 80 << 30))
        self.assertEqual(events.unknown, 0)

    def test_iterations_keep_gpu_work_with_its_call(self):
        kept = {"name": "f", "asked": 1, "count": 1, "first": 1, "begin_ticks": 1200, "end_ticks": 1300}
        told = [self.gpu(19, 2, 1290, 1295, 1, 42, name=1), self.gpu(16, 3, 1400, 1500, 1), self.gpu(19, 2, 1190, 1195, 2, 42, name=1),
                self.gpu(16, 3, 1250, 1260, 2), self.gpu(16, 3, 1270, 1280, 3), self.gpu(16, 3, 1300, 1310, 4)]
        events = self.events(told, iterations=kept)
        events.trim()
        self.assertEqual([(w.begin, w.correlation) for w in events.gpu.work], [(1400, 1), (1270, 3)])
        self.assertEqual([c.begin for c in events.gpu.calls], [1290])

    def test_iterations_leave_out_what_lies_outside(self):
        kept = {"name": "f", "asked": 2, "count": 2, "first": 3, "begin_ticks": 1200, "end_ticks": 1400}
        ranges = [(1100, 1200), (1190, 1201), (1200, 1200), (1399, 1500), (1400, 1401), (1000, 1900)]
        lane = [(record(1, 1, begin, end, name=1), 1) for begin, end in ranges]
        lane += [(record(9, 1, ticks, ticks, name=1), 1) for ticks in (1100, 1200, 1300, 1400, 1500)]
        lane += [(record(8, 1, ticks, 0, name=1), 1) for ticks in (1199, 1200, 1400)]
        events = self.events(lane, [(record(3, 1, 1100, 9, name=1), 1), (record(4, 1, 1150, 9), 1), (record(3, 1, 1100, 10, name=1), 1)], iterations=kept)
        whole = len(events.ranges)
        events.trim()
        self.assertEqual(whole, 8)
        self.assertEqual([(r.begin, r.end) for r in events.ranges],
                         [(1190, 1201), (1200, 1200), (1399, 1500), (1000, 1900), (1100, None)])
        self.assertEqual([m[4] for m in events.marks if m[0] == "iteration"], [1200, 1300, 1400])
        self.assertEqual([m[4] for m in events.marks if m[0] == "mark"], [1200])

    def test_without_iterations_all_of_a_dump_is_shown(self):
        events = self.events([(record(1, 1, 1100, 1200, name=1), 1)])
        events.trim()
        self.assertEqual(len(events.ranges), 1)

    def test_backward_finds_its_forward(self):
        operator = lambda begin, sequence, thread, forward, scope: (
            record(2, 2, begin, begin + 5, sequence, thread | forward << 32, scope, 0, 0, flags=kTorch | scope, name=1), 2)
        events = self.events([operator(1100, 3, 1, 0, 0), operator(1200, 3, 1, 0, 0), operator(1300, 4, 1, 0, 0)],
                             [operator(1400, 3, 2, 1, 1), operator(1500, 9, 2, 1, 1)])
        back = [r for r in events.ranges if r.detail == 1]
        self.assertEqual([getattr(events.forward_of(b), "begin", None) for b in back], [1200, None])

    def job(self, iterations=None, **index):
        lane = [self.rpc(1100, 7, 0), (record(6, 1, 1300, 7), 1)], [self.rpc(1150, 8, 1), (record(6, 1, 1250, 8), 1)]
        self.events(*lane, iterations=iterations)
        ref = lambda lane, position: {"node": 0, "process": 0, "lane": lane, "generation": 1, "position": position}
        rpc = {"span": 777, "state": "Joined", "client": ref(0, 0), "server": ref(1, 0), "reply": True}
        rpc.update(index.pop("rpc", {}))
        base = {"version": 1, "min_reader": 1, "leader": "n0", "rpcs": [rpc], "joined_requests": 1, "joined_replies": 1,
                "nodes": [{"name": "n0", "dump": "n0.rsd", "clock": {"reference_node_ns": 5000, "offset_ns": -100, "drift_ppb": 1e9, "bound_ns": 3}}]}
        base.update(index)
        sample.write(self.folder, "job.rsj", sample.index(**base))
        return Job(self.folder)

    def test_a_job_joins_its_halves(self):
        job = self.job()
        (call,) = job.calls
        self.assertEqual((call.function, call.caller, call.callee, call.mode, call.state), ("f", "w0", "w1", "sync", "Joined"))
        self.assertEqual((call.client.begin, call.server.begin), (1100, 1150))
        self.assertEqual((job.problems(), job.counts()["joined"]), ([], 1))
        self.assertEqual((job.leader_ns(0, 1200), job.leader_ns(0, 1200, corrected=False)), (5100 - 100 + 100, 5100))

    def test_a_call_goes_or_stays_by_its_clients_iterations(self):
        for begin, end, left in ((1100, 1120, 1), (1140, 1260, 1), (1299, 1400, 1), (1300, 1400, 0), (1000, 1100, 0)):
            job = self.job(iterations={"asked": 1, "count": 1, "begin_ticks": begin, "end_ticks": end})
            job.trim()
            self.assertEqual((len(job.calls), len(job.events[0].halves)), (left, 2 * left), (begin, end))

    def test_an_index_that_points_nowhere_or_miscounts(self):
        with self.assertRaisesRegex(Damaged, "no RpcBegin"):
            self.job(rpc={"server": {"node": 0, "process": 0, "lane": 1, "generation": 1, "position": 3}})
        with self.assertRaisesRegex(Damaged, "node 4 of 1"):
            self.job(rpc={"server": {"node": 4, "process": 0, "lane": 1, "generation": 1, "position": 0}})
        self.assertEqual(len(self.job(joined_requests=2).problems()), 1)
        self.assertEqual(len(self.job(rpc={"span": 778}).problems()), 2)
        swapped = {"client": {"node": 0, "process": 0, "lane": 1, "generation": 1, "position": 0}}
        self.assertGreater(len(self.job(rpc=swapped).problems()), 1)

    def test_an_index_is_all_of_its_frames(self):
        self.job()
        path = os.path.join(self.folder, "job.rsj")
        with open(path, "rb") as file:
            data = file.read()
        for broken in (data + data, data[:-9], b"", data.replace(b"RSJ1", b"RSJ2")):
            sample.write(self.folder, "job.rsj", broken)
            with self.assertRaises(Damaged):
                read_index(path)

    def test_calls_in_frames_make_a_tree_by_their_keys(self):
        self.job()
        none = {"node": 0xFFFFFFFF, "process": 0, "lane": 0, "generation": 0, "position": 0}
        ref = lambda lane: {"node": 0, "process": 0, "lane": lane, "generation": 1, "position": 0}
        call = lambda begin, **fields: {**{name: 0 for name in ("trace_hi", "key", "parent_key", "server_begin_ns", "server_end_ns", "client_end_ns")},
                                        "trace_lo": begin, "span": 777, "client": none, "server": none, "client_begin_ns": begin, "state": "Joined",
                                        "unfinished": False, "reply": True, **fields}
        inner, outer = call(20, client=ref(0), parent_key=9), call(10, server=ref(1), server_begin_ns=11, client=ref(2), key=9)
        last = {"version": 2, "min_reader": 2, "nodes": [{"name": "n0", "dump": "n0.rsd"}]}
        part = sample.index(version=2, min_reader=2, calls=[inner])
        sample.write(self.folder, "job.rsj", part, sample.index(calls=[outer], frames=2, **last))
        index = read_index(os.path.join(self.folder, "job.rsj"))
        self.assertEqual([(r.client_begin_ns, r.parent, r.trace_lo, r.reply) for r in index.rpcs], [(10, -1, 10, True), (20, 0, 10, True)])
        self.assertEqual((index.rpcs[0].server.lane, index.rpcs[1].server, len(index.nodes)), (1, None, 1))
        for frames in (0, 1, 3):
            sample.write(self.folder, "job.rsj", part, sample.index(calls=[outer], frames=frames, **last))
            with self.assertRaisesRegex(Damaged, "2 frames"):
                read_index(os.path.join(self.folder, "job.rsj"))


if __name__ == "__main__":
    unittest.main()
