#!/usr/bin/python3
"""The oracle's own tests: 33 served operators stay in the union, and a comparison with anything planted in it fails."""
import glob
import os
import sys
import unittest

kHere = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, kHere)

import compare
import filter as oracle_filter

kRuns = sorted(glob.glob(os.path.join(kHere, "reference", "run-*.txt")))


class Reference(unittest.TestCase):
    def test_ten_raw_runs_make_33_served_operators(self):
        rows, notes = oracle_filter.reference(kRuns)
        self.assertEqual(len(notes), 10)
        self.assertEqual(oracle_filter.served_operators(rows), 33)
        for path, added, served in notes:
            self.assertEqual(added, 9 * 4, path)  # 9 profiled calls
            self.assertIn(served, (32, 33), path)

    def test_only_what_the_profiler_adds_goes(self):
        raw = oracle_filter.read_run(kRuns[0])
        kept, _ = oracle_filter.without_profiler(raw)
        names = lambda events: [e.name for e in events]
        # the job's own empties stay, those of 288 bytes and the handles' go
        self.assertEqual(sum(e.memory == 288 for e in kept), 0)
        self.assertEqual(sum(oracle_filter.last_part(n) == "aten::empty" for n in names(kept)), 4 + 6)

    def test_another_profiler_is_noticed(self):
        raw = oracle_filter.read_run(kRuns[0])
        without_288 = [e for e in raw if e.memory != 288 or e.node != 0]
        with self.assertRaises(oracle_filter.NotAsKnown):
            oracle_filter.without_profiler(without_288)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.reference = oracle_filter.reference(kRuns)[0]
        self.served = "rpc_sync#nested_sync(worker0 -> worker1)#remote_op: rpc_sync#udf_with_ops(worker1 -> worker2)#remote_op: aten::add"

    def test_the_same_rows_match(self):
        self.assertEqual(compare.differences(self.reference, dict(self.reference)), [])

    def test_a_planted_missing_operator_fails(self):
        for row in [r for r in self.reference if not oracle_filter.is_call(r[0])]:
            ours = dict(self.reference)
            ours[row] -= 1
            self.assertEqual(len(compare.differences(self.reference, ours)), 1, row)

    def test_a_missing_extra_or_misnamed_call_fails(self):
        for row in [r for r in self.reference if oracle_filter.is_call(r[0])]:
            for calls in (self.reference[row] - 1, self.reference[row] + 1):
                self.assertTrue(compare.differences(self.reference, self.reference | {row: calls}), row)
            moved = dict(self.reference)
            moved[row[0], row[1] + 1] = moved.pop(row)
            self.assertTrue(compare.differences(self.reference, moved), row)

    def test_an_operator_on_another_node_fails(self):
        moved = dict(self.reference)
        moved[self.served, 1] = moved.pop((self.served, 2))
        self.assertTrue(compare.differences(self.reference, moved))

    def test_extras_fail_unless_few_and_named(self):
        ours = dict(self.reference)
        ours[self.served.replace("aten::add", "aten::planted"), 2] = 1
        self.assertEqual(len(compare.differences(self.reference, ours)), 1)
        compare.kKnownExtras["aten::planted"] = "planted"
        self.addCleanup(compare.kKnownExtras.clear)
        self.assertEqual(compare.differences(self.reference, ours), [])
        ours[self.served.replace("aten::add", "aten::planted"), 2] = 4
        self.assertEqual(len(compare.differences(self.reference, ours)), 1)


if __name__ == "__main__":
    unittest.main()
